//! Runs of protobuf label messages to labels, when the store meets them for the first time.

use crate::extra_labels::ExtraLabels;
use crate::protobuf::Message;
use model::{KeyDecoder, LabelError, LabelsBuilder, METRIC_NAME};

/// Decodes the keys of one request of either version.
#[derive(Clone, Debug)]
pub struct RemoteWriteKeys {
    extra: ExtraLabels,
    context: Vec<u8>,
}

impl RemoteWriteKeys {
    /// Keys that get the extra labels.
    pub fn new(extra: ExtraLabels) -> RemoteWriteKeys {
        let context = extra.context("remote_write");
        RemoteWriteKeys { extra, context }
    }

    pub(super) fn context(&self) -> &[u8] {
        &self.context
    }
}

impl KeyDecoder for RemoteWriteKeys {
    fn tags(&self, key: &[u8], tags: &mut LabelsBuilder) -> Result<(), LabelError> {
        each_label(key, |name, value| {
            if name.is_empty() {
                return Err(LabelError::EmptyName);
            }
            if name == METRIC_NAME {
                return Ok(());
            }
            tags.push(name, value);
            Ok(())
        })?;
        self.extra.complete(tags)
    }

    fn metric_name(&self, key: &[u8], _field: &str, name: &mut String) -> Result<(), LabelError> {
        let mut count = 0;
        each_pair(key, |label, value| {
            if label == METRIC_NAME.as_bytes() {
                count += 1;
                name.push_str(utf8(value, "label value")?);
            }
            Ok(())
        })?;
        if 1 < count {
            return Err(LabelError::Duplicate(METRIC_NAME.to_string()));
        }
        if name.is_empty() { Err(LabelError::MissingMetricName) } else { Ok(()) }
    }
}

/// Calls `take` with each label of the run.
#[inline]
fn each_label(
    key: &[u8],
    mut take: impl FnMut(&str, &str) -> Result<(), LabelError>,
) -> Result<(), LabelError> {
    each_pair(key, |name, value| take(utf8(name, "label name")?, utf8(value, "label value")?))
}

fn utf8<'a>(bytes: &'a [u8], what: &'static str) -> Result<&'a str, LabelError> {
    std::str::from_utf8(bytes).map_err(|_| LabelError::InvalidUtf8(what))
}

/// The same with bytes that nobody has looked at.
#[inline]
fn each_pair(
    key: &[u8],
    mut take: impl FnMut(&[u8], &[u8]) -> Result<(), LabelError>,
) -> Result<(), LabelError> {
    let mut labels = Message::new(key);
    while let Some((_, label)) = labels.next_field().map_err(broken)? {
        let (mut name, mut value) = (&b""[..], &b""[..]);
        let mut pair = Message::new(label.bytes().map_err(broken)?);
        while let Some((number, field)) = pair.next_field().map_err(broken)? {
            match number {
                1 => name = field.bytes().map_err(broken)?,
                2 => value = field.bytes().map_err(broken)?,
                _ => {}
            }
        }
        take(name, value)?;
    }
    Ok(())
}

fn broken(error: crate::Error) -> LabelError {
    LabelError::Refused(error.to_string())
}
