//! One sample's line by itself, for those who do not store it.

use super::decode::{Format, Options, sample};
use super::{Created, ExpositionKeys};
use crate::ExtraLabels;
use model::{KeyDecoder as _, Labels, LabelsBuilder, METRIC_NAME, Timestamp};

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The series, with its name.
    pub labels: Labels,
    /// What.
    pub value: f64,
    /// When, if it says so.
    pub timestamp: Option<Timestamp>,
}

/// Stands for no time: no line can say it, since it is no whole number of milliseconds.
const NO_TIME: Timestamp = Timestamp::MIN;

/// Reads a line in the text format.
///
/// # Errors
/// In words, when it is no sample.
pub fn decode_line(text: &str) -> Result<Line, String> {
    let options = Options { format: Format::Text, now: NO_TIME, created: Created::Samples };
    let parts = sample(text.trim().as_bytes(), &options).map_err(|fault| fault.to_string())?;
    let keys = ExpositionKeys::new(ExtraLabels::none());
    let (mut labels, mut name) = (LabelsBuilder::new(), String::new());
    let named = keys.metric_name(parts.key, "", &mut name);
    named.and_then(|()| keys.tags(parts.key, &mut labels)).map_err(|error| error.to_string())?;
    labels.push(METRIC_NAME, &name);
    let labels = labels.sorted().map_err(|error| error.to_string())?.into_labels();
    let timestamp = Some(parts.timestamp).filter(|one| *one != NO_TIME);
    Ok(Line { labels, value: parts.value, timestamp })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_who_and_when() {
        let line = decode_line(" up{job=\"a\\\"b\"} +Inf 1500 ").unwrap();
        assert_eq!(line.labels, Labels::from_pairs(&[(METRIC_NAME, "up"), ("job", "a\"b")]));
        assert_eq!((line.value, line.timestamp), (f64::INFINITY, Some(1_500_000_000)));
        assert_eq!(decode_line("{\"a b\"} 1").unwrap().timestamp, None);
        for text in ["", "up", "up x", "up{a=1} 2", "up 1 2 3", "{} 1"] {
            assert!(decode_line(text).is_err(), "{text}");
        }
    }
}
