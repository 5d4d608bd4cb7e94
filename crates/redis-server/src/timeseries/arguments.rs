//! The options of commands that make or change series.

use super::samples::TIME_MS_MAX;
use super::words::{LABELS, error};
use kv::CommandError;
use kv::number::parse_i64;
use kv::value::Series;
use kv::value::series::{DuplicatePolicy, LabelList};
use model::METRIC_NAME;

/// Bytes of a chunk, when nobody says.
pub const CHUNK_SIZE: u32 = 4096;
/// What clients may ask for.
const CHUNK_SIZES: std::ops::RangeInclusive<i64> = 48..=1 << 20;

/// What was asked for; nothing of what was not said.
#[derive(Debug, Default)]
pub struct Options {
    retention_ms: Option<i64>,
    is_uncompressed: Option<bool>,
    chunk_size: Option<u32>,
    policy: Option<DuplicatePolicy>,
    ignore: Option<(i64, f64)>,
    labels: Option<LabelList>,
    /// What this one sample does at a time that has one already.
    pub on_duplicate: Option<DuplicatePolicy>,
    /// The time that `TIMESTAMP` says.
    pub timestamp: Option<Vec<u8>>,
}

impl Options {
    /// Reads options in any order. `LABELS` takes all that follow.
    ///
    /// # Errors
    /// When one is not understood.
    pub fn parse(args: &[&[u8]]) -> Result<Options, CommandError> {
        let mut options = Options::default();
        let mut at = 0;
        while let Some(word) = args.get(at) {
            let value = args.get(at + 1).copied();
            let name = word.to_ascii_uppercase();
            match name.as_slice() {
                b"LABELS" => {
                    options.labels = Some(labels_arg(args.get(at + 1..).unwrap_or_default())?);
                    return Ok(options);
                }
                b"IGNORE" => {
                    options.ignore = Some(ignore_arg(value, args.get(at + 2).copied())?);
                    at += 3;
                    continue;
                }
                b"UNCOMPRESSED" | b"COMPRESSED" => {
                    options.is_uncompressed = Some(name == b"UNCOMPRESSED");
                    at += 1;
                    continue;
                }
                _ => options.take(&name, value)?,
            }
            at += 2;
        }
        Ok(options)
    }

    /// Takes an option of one value.
    fn take(&mut self, name: &[u8], value: Option<&[u8]>) -> Result<(), CommandError> {
        let word = String::from_utf8_lossy(name).into_owned();
        let invalid = || error(format!("Couldn't parse {word}"));
        let policy = || {
            DuplicatePolicy::parse(value.ok_or_else(invalid)?)
                .ok_or_else(|| error(format!("Unknown {word}")))
        };
        match name {
            b"RETENTION" => {
                let ms = value.and_then(parse_i64).filter(|ms| 0 <= *ms).ok_or_else(invalid)?;
                self.retention_ms = Some(ms.min(TIME_MS_MAX));
            }
            b"ENCODING" => {
                self.is_uncompressed =
                    match value.ok_or_else(invalid)?.to_ascii_lowercase().as_slice() {
                        b"uncompressed" => Some(true),
                        b"compressed" => Some(false),
                        _ => return Err(error("unknown ENCODING parameter")),
                    };
            }
            b"CHUNK_SIZE" => {
                let size = value.and_then(parse_i64).ok_or_else(invalid)?;
                if !CHUNK_SIZES.contains(&size) || size % 8 != 0 {
                    let words =
                        "CHUNK_SIZE value must be a multiple of 8 in the range [48 .. 1048576]";
                    return Err(error(words));
                }
                self.chunk_size = u32::try_from(size).ok();
            }
            b"DUPLICATE_POLICY" => self.policy = Some(policy()?),
            b"ON_DUPLICATE" => self.on_duplicate = Some(policy()?),
            b"TIMESTAMP" => self.timestamp = Some(value.ok_or_else(invalid)?.to_vec()),
            _ => return Err(error(format!("unknown argument {word}"))),
        }
        Ok(())
    }

    /// Changes a series so.
    pub fn apply(&self, series: &mut Series) {
        series.retention_ms = self.retention_ms.unwrap_or(series.retention_ms);
        series.chunk_size = self.chunk_size.unwrap_or(series.chunk_size);
        series.policy = self.policy.or(series.policy);
        if let Some((ms, value)) = self.ignore {
            (series.ignore_ms, series.ignore_value) = (ms, value);
        }
        if let Some(labels) = &self.labels
            && *labels != series.labels
        {
            let before = std::mem::replace(&mut series.labels, labels.clone());
            if series.is_sampled {
                series.past_labels.push(before);
            }
            let labels = &series.labels;
            let is_back = series.past_labels.iter().position(|past| past == labels);
            series.is_sampled = is_back.is_some();
            if let Some(at) = is_back {
                series.past_labels.remove(at);
            }
        }
        series.resize();
    }

    /// A new series.
    pub fn make(&self, name: &str) -> Series {
        let mut series = Series::new(name, CHUNK_SIZE);
        series.is_uncompressed = self.is_uncompressed.unwrap_or(false);
        self.apply(&mut series);
        series
    }
}

fn ignore_arg(ms: Option<&[u8]>, value: Option<&[u8]>) -> Result<(i64, f64), CommandError> {
    let ms = ms.and_then(parse_i64).filter(|ms| 0 <= *ms);
    let value = value.and_then(kv::number::parse_f64).filter(|value| 0.0 <= *value);
    ms.zip(value).ok_or_else(|| error("Couldn't parse IGNORE"))
}

/// Label after value after label ..
fn labels_arg(args: &[&[u8]]) -> Result<LabelList, CommandError> {
    let mut labels: Vec<(Box<str>, Box<str>)> = Vec::new();
    for pair in args.chunks(2) {
        let [name, value] = pair else { return Err(LABELS) };
        let name = std::str::from_utf8(name).map_err(|_| LABELS)?;
        let value = std::str::from_utf8(value).map_err(|_| LABELS)?;
        let is_known = labels.iter().any(|(known, _)| **known == *name);
        if name.is_empty() || value.is_empty() || value.contains(['(', ')', ',']) || is_known {
            return Err(LABELS);
        }
        if name == METRIC_NAME {
            return Err(error("a label __name__ is the key itself"));
        }
        labels.push((name.into(), value.into()));
    }
    Ok(labels.into())
}
