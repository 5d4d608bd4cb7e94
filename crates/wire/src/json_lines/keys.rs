//! `{"__name__":"up","job":"x"}` to labels, when the store meets it for the first time.

use super::scan::Scan;
use crate::extra_labels::ExtraLabels;
use crate::influx::Texts;
use model::{KeyDecoder, LabelError, LabelsBuilder, METRIC_NAME};
use std::sync::Arc;

/// Decodes the keys of one request.
#[derive(Clone, Debug)]
pub struct JsonKeys {
    extra: ExtraLabels,
    context: Vec<u8>,
    /// Where strings become numbers; without one they are refused.
    texts: Option<Arc<dyn Texts>>,
}

impl JsonKeys {
    /// Keys that get the extra labels.
    pub fn new(extra: ExtraLabels) -> JsonKeys {
        let context = extra.context("json_lines");
        JsonKeys { extra, context, texts: None }
    }

    /// The same for lines whose strings are numbers of a dictionary.
    pub fn with_texts(self, texts: Option<Arc<dyn Texts>>) -> JsonKeys {
        JsonKeys { texts, ..self }
    }

    pub(super) fn texts(&self) -> Option<&dyn Texts> {
        self.texts.as_deref()
    }

    pub(super) fn context(&self) -> &[u8] {
        &self.context
    }
}

impl KeyDecoder for JsonKeys {
    fn tags(&self, key: &[u8], tags: &mut LabelsBuilder) -> Result<(), LabelError> {
        each_label(key, |name, value| {
            if name.is_empty() {
                return Err(LabelError::EmptyName);
            }
            if name != METRIC_NAME {
                tags.push(name, value);
            }
            Ok(())
        })?;
        self.extra.complete(tags)
    }

    fn metric_name(&self, key: &[u8], _field: &str, name: &mut String) -> Result<(), LabelError> {
        each_label(key, |label, value| {
            if label != METRIC_NAME {
                return Ok(());
            }
            if !name.is_empty() {
                return Err(LabelError::Duplicate(METRIC_NAME.to_string()));
            }
            name.push_str(value);
            Ok(())
        })?;
        if name.is_empty() { Err(LabelError::MissingMetricName) } else { Ok(()) }
    }
}

fn each_label(
    key: &[u8],
    mut take: impl FnMut(&str, &str) -> Result<(), LabelError>,
) -> Result<(), LabelError> {
    let mut refused = Ok(());
    let scanned = Scan::new(key).members(|scan, name| {
        let value = scan.string()?;
        if refused.is_ok() {
            refused = take(name, &value);
        }
        Ok(())
    });
    scanned.map_err(|fault| LabelError::Refused(format!("labels: {fault}")))?;
    refused
}
