//! From the key of a row to its labels, checked.

use crate::append::AppendScratch;
use crate::arena::COLUMNS_MAX;
use crate::histograms::names;
use model::limits::Limits;
use model::{KeyDecoder, LabelError, Labels, LabelsBuilder, METRIC_NAME, Row, WriteBatch};

/// The labels of the one series that a row is of, checked.
pub(crate) fn series_labels(
    batch: &WriteBatch<'_>,
    row: &Row,
    limits: &Limits,
    scratch: &mut AppendScratch,
) -> Result<Labels, LabelError> {
    let fields = &batch.shapes[row.shape as usize].fields;
    decode_labels(batch.decoder, batch.key(row), fields, limits, scratch)?;
    let [name] = scratch.names.as_slice() else {
        return Err(LabelError::Refused("exemplars belong to one series".into()));
    };
    scratch.tags.push(METRIC_NAME, name);
    Ok(scratch.tags.finish())
}

/// Decodes and checks the labels of a key into `scratch.tags` (sorted) and `scratch.names`.
pub(crate) fn decode_labels(
    decoder: &dyn KeyDecoder,
    key: &[u8],
    fields: &[Box<str>],
    limits: &Limits,
    scratch: &mut AppendScratch,
) -> Result<(), LabelError> {
    assert!(!fields.is_empty() && fields.len() <= COLUMNS_MAX, "doors limit the fields of a line");
    scratch.tags.clear();
    decoder.tags(key, &mut scratch.tags)?;
    scratch.tags.sort()?;
    check_tags(&scratch.tags, limits)?;
    scratch.names.resize_with(fields.len(), String::new);
    for (name, field) in scratch.names.iter_mut().zip(fields) {
        name.clear();
        decoder.metric_name(key, field, name)?;
        check_value(METRIC_NAME, name, limits)?;
        if name.is_empty() {
            return Err(LabelError::MissingMetricName);
        }
    }
    check_distinct(&scratch.names)
}

fn check_tags(tags: &LabelsBuilder, limits: &Limits) -> Result<(), LabelError> {
    let (count, max) = (tags.len() + 1, limits.labels_per_series_max);
    if max < count {
        return Err(LabelError::TooMany { count, max });
    }
    for (name, value) in tags.iter() {
        let max = limits.label_name_size_max;
        if max < name.len() {
            let start = name.chars().take(32).collect();
            return Err(LabelError::NameTooLong { size: name.len(), max, start });
        }
        if name == METRIC_NAME {
            return Err(LabelError::Duplicate(METRIC_NAME.into()));
        }
        names::check_name(name)?;
        check_value(name, value, limits)?;
    }
    Ok(())
}

fn check_value(name: &str, value: &str, limits: &Limits) -> Result<(), LabelError> {
    let (size, max) = (value.len(), limits.label_value_size_max);
    if max < size {
        return Err(LabelError::ValueTooLong { name: name.into(), size, max });
    }
    Ok(())
}

/// Two fields of a line that give one metric would be two values of one series at one instant.
fn check_distinct(names: &[String]) -> Result<(), LabelError> {
    if names.len() < 2 {
        return Ok(());
    }
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(LabelError::Duplicate(format!("{METRIC_NAME}={}", pair[0]))),
        None => Ok(()),
    }
}
