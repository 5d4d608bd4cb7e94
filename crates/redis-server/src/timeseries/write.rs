//! Series made and changed, samples added and deleted.

use super::arguments::Options;
use super::rules;
use super::samples::{self, Sample, labels_of};
use super::series::{
    self, Found, check_database, is_sampled, named_labels, record, record_for_adding, record_in,
    time_arg, value_arg,
};
use super::words::{BLOCKED, INVALID_VALUE, KEY_EXISTS, NO_KEY, NOT_NEWEST, TOO_OLD, error};
use crate::commands::Flow;
use crate::dispatch::Context;
use kv::keyspace::{EVENT_MODULE, Expire};
use kv::series::SERIES_DB;
use kv::value::series::{DuplicatePolicy, Newest};
use kv::value::{Series, Stored as _};
use kv::{CommandError, Reply as _};

/// `TS.CREATE key ..`
pub fn create(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let key = context.args[1];
    let options = Options::parse(&context.args[2..])?;
    check_database(context)?;
    if context.keys.exists(SERIES_DB, key)? {
        return Err(KEY_EXISTS);
    }
    make(context, key, &options)?;
    context.keys.event(EVENT_MODULE, "ts.create", SERIES_DB, key);
    context.session.out.ok();
    Ok(Flow::Next)
}

/// Makes a series whose key is free.
fn make(context: &mut Context<'_, '_>, key: &[u8], options: &Options) -> Result<(), CommandError> {
    super::news::settle(context)?;
    let name = std::str::from_utf8(key).map_err(|_| error("the key of a series must be UTF-8"))?;
    if name.is_empty() {
        return Err(error("the key of a series cannot be empty"));
    }
    if name.ends_with('}') && named_labels(key).is_some_and(|labels| 1 < labels.len()) {
        return Err(error("such a key names a series of other doors, which is only read here"));
    }
    let mut series = options.make(name);
    series.newest = Newest::None;
    let labels = labels_of(name, &series.labels);
    if is_sampled(context, &labels)? {
        (series.is_shared, series.is_sampled, series.newest) = (true, true, Newest::Unknown);
    }
    context.keys.put(SERIES_DB, key, series.into_value(), Expire::Never)?;
    context.keys.log_key(SERIES_DB, key)
}

/// `TS.ALTER key ..`
pub fn alter(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let key = context.args[1];
    let options = Options::parse(&context.args[2..])?;
    let series = record(context, key)?.ok_or(NO_KEY)?;
    options.apply(series);
    changed(context, key)?;
    context.keys.event(EVENT_MODULE, "ts.alter", SERIES_DB, key);
    context.session.out.ok();
    Ok(Flow::Next)
}

/// Notes and logs that a record changed.
pub fn changed(context: &mut Context<'_, '_>, key: &[u8]) -> Result<(), CommandError> {
    context.keys.modified(SERIES_DB, key);
    context.keys.log_key(SERIES_DB, key)
}

/// `TS.ADD key time value ..`
pub fn add(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let key = context.args[1];
    let value = value_arg(context.args[3]).ok_or(INVALID_VALUE)?;
    let ms = time_arg(context, context.args[2])?;
    let options = Options::parse(&context.args[4..])?;
    if record_for_adding(context, key)?.is_none() {
        make(context, key, &options)?;
    }
    let ms = add_sample(context, key, Sample { ms, value }, options.on_duplicate)?;
    context.keys.event(EVENT_MODULE, "ts.add", SERIES_DB, key);
    context.session.out.int(ms);
    Ok(Flow::Next)
}

/// `TS.INCRBY key n ..`
pub fn incrby(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    add_to_newest(context, 1.0, "ts.incrby")
}

/// `TS.DECRBY key n ..`
pub fn decrby(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    add_to_newest(context, -1.0, "ts.decrby")
}

fn add_to_newest(
    context: &mut Context<'_, '_>,
    sign: f64,
    event: &'static str,
) -> Result<Flow, CommandError> {
    let key = context.args[1];
    let step = value_arg(context.args[2]).filter(|step| !step.is_nan());
    let step = step.ok_or_else(|| error("invalid increase/decrease value"))?;
    let options = Options::parse(&context.args[3..])?;
    let ms = time_arg(context, options.timestamp.as_deref().unwrap_or(b"*"))?;
    if record_for_adding(context, key)?.is_none() {
        make(context, key, &options)?;
    }
    let newest = newest_of(context, key)?;
    let (last_ms, last_value) = match newest {
        Some(sample) => (sample.ms, sample.value),
        None => (0, 0.0),
    };
    if newest.is_some() && ms < last_ms {
        return Err(NOT_NEWEST);
    }
    if last_value.is_nan() {
        return Err(error("the last value is NaN: nothing can be added to it"));
    }
    let sample = Sample { ms, value: last_value + sign * step };
    let ms = add_sample(context, key, sample, Some(DuplicatePolicy::Last))?;
    context.keys.event(EVENT_MODULE, event, SERIES_DB, key);
    context.session.out.int(ms);
    Ok(Flow::Next)
}

/// The newest sample of a series of this door.
fn newest_of(context: &mut Context<'_, '_>, key: &[u8]) -> Result<Option<Sample>, CommandError> {
    let series = record_in(context.keys, key)?.ok_or(NO_KEY)?;
    match series.newest {
        Newest::At(ms, value) => Ok(Some(Sample { ms, value })),
        Newest::None => Ok(None),
        Newest::Unknown => {
            let found = Found::own(key, series);
            series::newest(context, &found)
        }
    }
}

/// The newest sample of a series of this door, for who adds one at `ms`. None may be said where
/// there are only older ones that decide nothing: of a series that was not in memory, the samples
/// from there on are looked at, not those before.
pub fn newest_before(
    context: &mut Context<'_, '_>,
    key: &[u8],
    ms: i64,
) -> Result<Option<Sample>, CommandError> {
    let series = record_in(context.keys, key)?.ok_or(NO_KEY)?;
    let is_known = series.newest != Newest::Unknown;
    // A rule closes the bucket of the newest; what is near to it may be ignored.
    if is_known || !series.rules.is_empty() || 0 < series.ignore_ms {
        return newest_of(context, key);
    }
    let mut newest = None;
    if series.is_sampled || !series.past_labels.is_empty() {
        let (app, sets) = (&context.redis.app, series::sets_of(series));
        if !samples::surely_none_since(app, &sets, ms) {
            newest = samples::newest_one(app, &sets, ms, samples::TIME_MS_MAX)?;
        }
    }
    if let Some(sample) = newest
        && let Some(series) = record_in(context.keys, key)?
    {
        series.newest = Newest::At(sample.ms, sample.value);
    }
    Ok(newest)
}

/// Adds a sample to a series that is there. Returns the time that is answered.
pub fn add_sample(
    context: &mut Context<'_, '_>,
    key: &[u8],
    sample: Sample,
    on_duplicate: Option<DuplicatePolicy>,
) -> Result<i64, CommandError> {
    let newest = newest_before(context, key, sample.ms)?;
    let series = record_in(context.keys, key)?.ok_or(NO_KEY)?;
    let policy = on_duplicate.or(series.policy).unwrap_or(DuplicatePolicy::Block);
    let mut sample = sample;
    if let Some(last) = newest {
        if 0 < series.retention_ms && sample.ms < last.ms - series.retention_ms {
            return Err(TOO_OLD);
        }
        if is_ignored(series, policy, last, sample) {
            return Ok(last.ms);
        }
        if sample.ms <= last.ms {
            let sets = series::sets_of(series);
            let present = match sample.ms == last.ms {
                true => Some(last),
                false => {
                    let app = &context.redis.app;
                    samples::read_one(app, &sets, sample.ms, sample.ms)?.first().copied()
                }
            };
            if let Some(present) = present {
                match settled(policy, present.value, sample.value)? {
                    Some(value) => sample.value = value,
                    None => return Ok(sample.ms),
                }
            }
        }
    }
    put_sample(context, key, sample)?;
    if newest.is_none()
        && let Some(series) = record_in(context.keys, key)?
    {
        // Nothing was as late as it.
        series.newest = Newest::At(sample.ms, sample.value);
    }
    rules::feed(context, key, newest, sample)?;
    Ok(sample.ms)
}

/// Whether a sample is only to be appended: it is later than all of its series, and nothing else
/// follows from it.
pub fn is_plain(series: &Series, newest: Option<Sample>, sample: Sample) -> bool {
    let policy = series.policy.unwrap_or(DuplicatePolicy::Block);
    let is_next =
        newest.is_none_or(|last| last.ms < sample.ms && !is_ignored(series, policy, last, sample));
    is_next && series.rules.is_empty()
}

/// Whether a sample is so near to the one before that it is left out.
fn is_ignored(series: &Series, policy: DuplicatePolicy, last: Sample, sample: Sample) -> bool {
    policy == DuplicatePolicy::Last
        && last.ms <= sample.ms
        && sample.ms - last.ms <= series.ignore_ms
        && (sample.value - last.value).abs() <= series.ignore_value
}

/// What is kept of two values of one time; none if that is the old one.
fn settled(policy: DuplicatePolicy, old: f64, new: f64) -> Result<Option<f64>, CommandError> {
    let is_mixed = old.is_nan() != new.is_nan();
    let value = match policy {
        DuplicatePolicy::Block => return Err(BLOCKED),
        DuplicatePolicy::First => {
            if old.is_nan() && !new.is_nan() {
                new
            } else {
                old
            }
        }
        DuplicatePolicy::Last => {
            if new.is_nan() && !old.is_nan() {
                old
            } else {
                new
            }
        }
        _ if is_mixed => {
            return Err(error("MIN, MAX and SUM cannot have NaN beside a number at one time"));
        }
        DuplicatePolicy::Min => old.min(new),
        DuplicatePolicy::Max => old.max(new),
        DuplicatePolicy::Sum => old + new,
    };
    Ok(Some(value).filter(|value| value.to_bits() != old.to_bits()))
}

/// Writes a sample to the store and notes what the record must know of it.
pub fn put_sample(
    context: &mut Context<'_, '_>,
    key: &[u8],
    sample: Sample,
) -> Result<(), CommandError> {
    let app = &context.redis.app;
    let series = record_in(context.keys, key)?.ok_or(NO_KEY)?;
    samples::append(app, &labels_of(&series.name, &series.labels), &[sample])?;
    context.session.has_written_samples = true;
    series.newest = match series.newest {
        Newest::At(ms, _) if sample.ms < ms => series.newest,
        Newest::Unknown => Newest::Unknown,
        _ => Newest::At(sample.ms, sample.value),
    };
    note_sampled(context, key)
}

/// Notes that a series got a sample under the labels that it has now.
pub fn note_sampled(context: &mut Context<'_, '_>, key: &[u8]) -> Result<(), CommandError> {
    let series = record_in(context.keys, key)?.ok_or(NO_KEY)?;
    if !series.is_sampled {
        series.is_sampled = true;
        return changed(context, key);
    }
    context.keys.touched(SERIES_DB, key);
    Ok(())
}

/// `TS.DEL key from to`
pub fn del(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let key = context.args[1];
    let from_ms = super::range::from_arg(context, context.args[2])?;
    let to_ms = super::range::to_arg(context, context.args[3])?;
    let series = record(context, key)?.ok_or(NO_KEY)?;
    let found = Found::own(key, series);
    let newest = series::newest(context, &found)?;
    rules::check_deletion(&found, newest, from_ms)?;
    let app = &context.redis.app;
    let doomed = samples::read_one(app, &found.sets, from_ms, to_ms)?;
    if !doomed.is_empty() {
        samples::delete(app, &found.sets, samples::time_range(from_ms, to_ms))?;
        if let Some(series) = record_in(context.keys, key)? {
            series.newest = Newest::Unknown;
        }
        rules::refresh(context, &found, newest, from_ms, to_ms)?;
        context.keys.touched(SERIES_DB, key);
        context.keys.event(EVENT_MODULE, "ts.del", SERIES_DB, key);
    }
    context.session.out.len(doomed.len());
    Ok(Flow::Next)
}
