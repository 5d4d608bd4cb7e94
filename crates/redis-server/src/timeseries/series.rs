//! The series that a key names: one of this door, or one that others wrote.

use super::news;
use super::samples::{self, Sample, labels_of};
use super::words::{INVALID_TIMESTAMP, NO_KEY, NOT_READABLE, NOT_SERIES, OTHER_DATABASE, error};
use crate::dispatch::Context;
use kv::series::SERIES_DB;
use kv::value::Series;
use kv::value::series::Newest;
use kv::{CommandError, Keyspace};
use model::{Labels, METRIC_NAME, MatchOp};
use promql::matchers_of;

/// A series that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its key, as it is shown.
    pub key: Vec<u8>,
    /// Its labels, as they are shown.
    pub labels: Vec<(String, String)>,
    /// Where its samples are; the last set is the present one.
    pub sets: Vec<Labels>,
    /// Its record, unless others wrote it.
    pub record: Option<Box<Series>>,
}

impl Found {
    /// A series of this door.
    pub fn own(key: &[u8], record: &Series) -> Found {
        let labels = record.labels.iter();
        Found {
            key: key.to_vec(),
            labels: labels.map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            sets: sets_of(record),
            record: Some(Box::new(record.clone())),
        }
    }

    /// One that others wrote.
    pub fn foreign(labels: &Labels) -> Found {
        let pairs = labels.iter().filter(|(name, _)| *name != METRIC_NAME);
        Found {
            key: shown_name(labels).into_bytes(),
            labels: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            sets: vec![labels.clone()],
            record: None,
        }
    }

    /// How long samples are shown, in milliseconds; 0 for ever.
    pub fn retention_ms(&self) -> i64 {
        self.record.as_ref().map_or(0, |record| record.retention_ms)
    }

    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        let found = self.labels.iter().find(|(label, _)| label == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// All label sets of a record, the present one last.
pub fn sets_of(record: &Series) -> Vec<Labels> {
    let all = record.past_labels.iter().chain([&record.labels]);
    all.map(|labels| labels_of(&record.name, labels)).collect()
}

/// The key under which a series of other doors is shown: `name{label="value",..}`.
pub fn shown_name(labels: &Labels) -> String {
    let mut text = labels.metric_name().to_owned();
    let mut separator = '{';
    for (name, value) in labels.iter().filter(|(name, _)| *name != METRIC_NAME) {
        text.push(separator);
        let is_plain = |c: char| c == '_' || c.is_ascii_alphanumeric();
        match name.chars().all(is_plain) && !name.starts_with(|c: char| c.is_ascii_digit()) {
            true => text.push_str(name),
            false => text.push_str(&promql::quote(name)),
        }
        text.push('=');
        text.push_str(&promql::quote(value));
        separator = ',';
    }
    if separator == ',' {
        text.push('}');
    }
    text
}

/// The labels that such a key says.
pub fn named_labels(key: &[u8]) -> Option<Labels> {
    let text = std::str::from_utf8(key).ok()?;
    if !text.ends_with('}') {
        return Some(labels_of::<&str, &str>(text, &[])).filter(|_| !text.is_empty());
    }
    let (name, rest) = text.split_once('{')?;
    let matchers = matchers_of(promql::parse(&format!("{{{rest}")).ok()?)?;
    if !matchers.iter().all(|one| one.op == MatchOp::Equal && !one.value.is_empty()) {
        return None;
    }
    let pairs: Vec<_> = matchers.iter().map(|one| (&*one.name, &*one.value)).collect();
    Some(labels_of(name, &pairs))
}

/// Fails unless the client is in the database of series.
pub fn check_database(context: &Context<'_, '_>) -> Result<(), CommandError> {
    match context.session.db == SERIES_DB {
        true => Ok(()),
        false => Err(OTHER_DATABASE),
    }
}

/// The record of a key, if there is one.
///
/// # Errors
/// When the key has another type, or its record cannot be read.
pub fn record<'k>(
    context: &'k mut Context<'_, '_>,
    key: &[u8],
) -> Result<Option<&'k mut Series>, CommandError> {
    check_database(context)?;
    // Looking expires it, maybe: its samples must go before others come.
    context.keys.exists(SERIES_DB, key)?;
    news::settle(context)?;
    record_in(context.keys, key)
}

/// The same without heed to what expires.
///
/// # Errors
/// As [`record`].
pub fn record_in<'k>(
    keys: &'k mut Keyspace,
    key: &[u8],
) -> Result<Option<&'k mut Series>, CommandError> {
    keys.get_mut::<Series>(SERIES_DB, key)
}

/// The same for commands that say what a key is not.
///
/// # Errors
/// As [`record`], in other words; when there is none.
pub fn record_for_adding<'k>(
    context: &'k mut Context<'_, '_>,
    key: &[u8],
) -> Result<Option<&'k mut Series>, CommandError> {
    record(context, key).map_err(|error| match error.0.starts_with("WRONGTYPE") {
        true => NOT_SERIES,
        false => error,
    })
}

/// The series of a key, for reading.
///
/// # Errors
/// When there is none.
pub fn find(context: &mut Context<'_, '_>, key: &[u8]) -> Result<Found, CommandError> {
    if let Some(record) = record(context, key)? {
        return Ok(Found::own(key, record));
    }
    let labels = named_labels(key).ok_or(NO_KEY)?;
    let found = Found::foreign(&labels);
    // The client may have said a key that it may read, for a series that has another.
    if found.key != key && !context.may_read(&found.key) {
        return Err(NOT_READABLE);
    }
    match is_sampled(context, &labels)? {
        true => Ok(found),
        false => Err(NO_KEY),
    }
}

/// Whether the store has samples under exactly these labels.
///
/// # Errors
/// When the store cannot tell.
pub fn is_sampled(context: &Context<'_, '_>, labels: &Labels) -> Result<bool, CommandError> {
    let app = &context.redis.app;
    if samples::surely_none_since(app, std::slice::from_ref(labels), 0) {
        return Ok(false);
    }
    let matching = samples::series(app, &[samples::matchers_of(labels)])?;
    if !matching.contains(labels) {
        return Ok(false);
    }
    // What was deleted may be in the index for a while.
    Ok(samples::newest_one(app, std::slice::from_ref(labels), 0, samples::TIME_MS_MAX)?.is_some())
}

/// The newest sample that is shown of a series, and remembered of one of this door.
///
/// # Errors
/// When the store cannot tell.
pub fn newest(
    context: &mut Context<'_, '_>,
    found: &Found,
) -> Result<Option<Sample>, CommandError> {
    let app = &context.redis.app;
    let known = found.record.as_ref().map(|record| record.newest);
    let sample = match known {
        Some(Newest::At(ms, value)) => {
            // Others may have written more.
            let later = samples::read_one(app, &found.sets, ms, samples::TIME_MS_MAX)?;
            later.last().copied().or(Some(Sample { ms, value }))
        }
        _ => samples::newest_one(app, &found.sets, 0, samples::TIME_MS_MAX)?,
    };
    if found.record.is_some()
        && let Some(record) = record_in(context.keys, &found.key)?
    {
        record.newest = sample.map_or(Newest::None, |one| Newest::At(one.ms, one.value));
    }
    Ok(sample)
}

/// A time of a sample: digits, or `*` for now.
///
/// # Errors
/// When it is none.
pub fn time_arg(context: &Context<'_, '_>, text: &[u8]) -> Result<i64, CommandError> {
    if text == b"*" {
        return Ok(context.keys.now_ms());
    }
    match kv::number::parse_i64(text) {
        Some(ms) if samples::TIME_MS_MAX < ms => Err(error("the time is beyond the year 2262")),
        Some(ms) if 0 <= ms => Ok(ms),
        _ => Err(INVALID_TIMESTAMP),
    }
}

/// A value; it may be no number.
pub fn value_arg(text: &[u8]) -> Option<f64> {
    let is_nan = text.eq_ignore_ascii_case(b"nan") || text.eq_ignore_ascii_case(b"-nan");
    // A point stands between digits, as RedisTimeSeries has it.
    let is_digit =
        |at: Option<usize>| at.and_then(|at| text.get(at)).is_some_and(u8::is_ascii_digit);
    let point = text.iter().position(|byte| *byte == b'.');
    match point {
        _ if is_nan => Some(f64::NAN),
        Some(at) if !is_digit(at.checked_sub(1)) || !is_digit(Some(at + 1)) => None,
        _ => kv::number::parse_f64(text),
    }
}
