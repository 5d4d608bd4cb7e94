//! From the key of a row to its labels, checked.

use crate::partition::head::arena::COLUMNS_MAX;
use crate::partition::histograms::names;
use model::limits::Limits;
use model::{KeyDecoder, LabelError, Labels, METRIC_NAME, Row, SortedLabels, WriteBatch};

/// The labels of a row, decoded.
#[derive(Default)]
pub(crate) struct RowLabels {
    /// All but the metric's name.
    pub tags: SortedLabels,
    /// The metric's name for each field.
    pub names: Vec<String>,
}

impl RowLabels {
    /// Decodes and checks the labels of a key.
    pub fn decode(
        &mut self,
        decoder: &dyn KeyDecoder,
        key: &[u8],
        fields: &[Box<str>],
        limits: &Limits,
    ) -> Result<(), LabelError> {
        let is_limited = !fields.is_empty() && fields.len() <= COLUMNS_MAX;
        assert!(is_limited, "doors limit the fields of a line");
        let mut tags = std::mem::take(&mut self.tags).into_builder();
        tags.clear();
        decoder.tags(key, &mut tags)?;
        self.tags = tags.sorted()?;
        check_tags(&self.tags, limits)?;
        self.names.resize_with(fields.len(), String::new);
        for (name, field) in self.names.iter_mut().zip(fields) {
            name.clear();
            decoder.metric_name(key, field, name)?;
            check_value(METRIC_NAME, name, limits)?;
            if name.is_empty() {
                return Err(LabelError::MissingMetricName);
            }
        }
        check_distinct(&self.names)
    }

    /// The labels of the one series that a row is of, checked.
    pub fn of_series(
        &mut self,
        batch: &WriteBatch<'_>,
        row: &Row,
        limits: &Limits,
    ) -> Result<Labels, LabelError> {
        let fields = &batch.shapes[row.shape as usize].fields;
        self.decode(batch.decoder, batch.key(row), fields, limits)?;
        let [name] = self.names.as_slice() else {
            return Err(LabelError::Refused("exemplars belong to one series".into()));
        };
        let mut labels = std::mem::take(&mut self.tags).into_builder();
        labels.push(METRIC_NAME, name);
        Ok(labels.finish())
    }
}

fn check_tags(tags: &SortedLabels, limits: &Limits) -> Result<(), LabelError> {
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
