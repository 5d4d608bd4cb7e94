//! What a copy reads of OpenTSDB: lines of its exports, and answers of its queries.
//!
//! ```text
//! line     sys.cpu.user 1356998400 42.5 host=a dc=lga        seconds, or milliseconds
//! answer   [{"metric":"sys.cpu.user","tags":{"host":"a"},"aggregateTags":[],"dps":[[1356998400000,42.5]]}]
//! ```
//! A metric is the name of a series, its tags are the labels, as they stand.

pub mod answer;
pub mod line;

use model::{LabelError, Labels, LabelsBuilder, METRIC_NAME};

/// Times below this are seconds, the others milliseconds: OpenTSDB looks at the upper four of eight bytes.
const SECONDS_MAX: i64 = u32::MAX as i64;

/// Milliseconds of a time that is seconds or milliseconds.
fn millis_of(time: i64) -> i64 {
    if time <= SECONDS_MAX { time * 1000 } else { time }
}

/// The labels of a metric with its tags.
///
/// # Errors
/// When a tag comes twice, or is called as the metric's name is.
pub fn labels_of<'a>(
    metric: &str,
    tags: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<Labels, LabelError> {
    let mut labels = LabelsBuilder::new();
    labels.push(METRIC_NAME, metric);
    tags.for_each(|(name, value)| labels.push(name, value));
    Ok(labels.sorted()?.into_labels())
}
