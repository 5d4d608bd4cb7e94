//! Series that are fed with aggregates of others.
//!
//! Nothing is kept of a bucket under way: when a sample opens the next one, the bucket is read back
//! from the store and its aggregate is written; so is the bucket of a sample that comes late.

use super::aggregate::{Aggregation, Aggregator, Around, BucketTime, aggregate, bucket_start};
use super::range::bucket_arg;
use super::samples::{self, Sample, TIME_MS_MAX};
use super::series::{self, Found, record, record_in};
use super::words::{AGGREGATION, NO_KEY, UNKNOWN_AGGREGATION, error};
use super::write::{changed, put_sample};
use crate::commands::Flow;
use crate::dispatch::Context;
use kv::keyspace::EVENT_MODULE;
use kv::number::parse_i64;
use kv::series::SERIES_DB;
use kv::value::series::Rule;
use kv::{CommandError, Reply as _};

/// Rules of one series.
const RULES_MAX: usize = 1000;

/// `TS.CREATERULE source target AGGREGATION what bucket [align]`
pub fn create_rule(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let (source, target) = (context.args[1], context.args[2]);
    let [word, aggregator, bucket, rest @ ..] = &context.args[3..] else {
        return Err(AGGREGATION);
    };
    if !word.eq_ignore_ascii_case(b"AGGREGATION") {
        return Err(AGGREGATION);
    }
    if aggregator.contains(&b',') {
        return Err(error("TS.CREATERULE takes exactly one aggregator"));
    }
    let aggregator = Aggregator::parse(aggregator).ok_or(UNKNOWN_AGGREGATION)?;
    let bucket_ms = bucket_arg(bucket)?;
    let align_ms = match rest {
        [] => 0,
        [align] => parse_i64(align)
            .filter(|ms| 0 <= *ms)
            .ok_or_else(|| error("Couldn't parse alignTimestamp"))?,
        _ => return Err(CommandError::arity(context.info.name)),
    };
    if source == target {
        return Err(error("the source key and destination key should be different"));
    }
    let from = record(context, source)?.ok_or(NO_KEY)?;
    if from.source.is_some() {
        return Err(error("the source key already has a source rule"));
    }
    if RULES_MAX <= from.rules.len() {
        return Err(error(format!("a series has at most {RULES_MAX} rules")));
    }
    let found = Found::own(source, from);
    let to = record(context, target)?.ok_or(NO_KEY)?;
    if to.source.is_some() {
        return Err(error("the destination key already has a src rule"));
    }
    if !to.rules.is_empty() {
        return Err(error("the destination key already has a dst rule"));
    }
    to.source = Some(source.into());
    to.resize();
    changed(context, target)?;
    let after_ms = series::newest(context, &found)?.map(|sample| sample.ms);
    let aggregator = aggregator.name().into();
    let rule = Rule { target: target.into(), aggregator, bucket_ms, align_ms, after_ms };
    if let Some(from) = record_in(context.keys, source)? {
        from.rules.push(rule);
        from.resize();
    }
    changed(context, source)?;
    context.keys.event(EVENT_MODULE, "ts.createrule:src", SERIES_DB, source);
    context.keys.event(EVENT_MODULE, "ts.createrule:dest", SERIES_DB, target);
    context.session.out.ok();
    Ok(Flow::Next)
}

/// `TS.DELETERULE source target`
pub fn delete_rule(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let (source, target) = (context.args[1], context.args[2]);
    record(context, target)?.ok_or(NO_KEY)?;
    let from = record(context, source)?.ok_or(NO_KEY)?;
    let before = from.rules.len();
    from.rules.retain(|rule| *rule.target != *target);
    if from.rules.len() == before {
        return Err(error("compaction rule does not exist"));
    }
    from.resize();
    changed(context, source)?;
    if let Some(to) = record_in(context.keys, target)? {
        to.source = None;
        to.resize();
        changed(context, target)?;
    }
    context.keys.event(EVENT_MODULE, "ts.deleterule:src", SERIES_DB, source);
    context.keys.event(EVENT_MODULE, "ts.deleterule:dest", SERIES_DB, target);
    context.session.out.ok();
    Ok(Flow::Next)
}

/// The aggregate of the bucket that begins at `start`; none without samples.
fn bucket_of(
    context: &Context<'_, '_>,
    source: &Found,
    rule: &Rule,
    start: i64,
) -> Result<Option<Sample>, CommandError> {
    let app = &context.redis.app;
    let end = start.saturating_add(rule.bucket_ms - 1).min(TIME_MS_MAX);
    let from_ms = start.max(rule.after_ms.map_or(0, |after| after + 1));
    let samples = samples::read_one(app, &source.sets, from_ms, end)?;
    let aggregator = Aggregator::parse(rule.aggregator.as_bytes()).ok_or(UNKNOWN_AGGREGATION)?;
    let aggregation = Aggregation {
        aggregators: vec![aggregator],
        bucket_ms: rule.bucket_ms,
        align_ms: rule.align_ms,
        time: BucketTime::Low,
        is_empty_shown: false,
    };
    let (mut before, mut after) = (None, None);
    if aggregator == Aggregator::Twa && !samples.is_empty() {
        before = samples::newest_one(app, &source.sets, 0, start - 1)?;
        before = before.filter(|sample| rule.after_ms.is_none_or(|after| after < sample.ms));
        after = samples::first_one(app, &source.sets, end.saturating_add(1))?;
    }
    let around = Around { from_ms: 0, to_ms: TIME_MS_MAX, before, after };
    let rows = aggregate(&samples, &aggregation, &around)?;
    Ok(rows.iter().next().map(|(ms, values)| Sample { ms, value: values[0] }))
}

/// After a sample was added to a series whose newest one had been `newest`: writes the buckets that
/// this closes or changes.
pub fn feed(
    context: &mut Context<'_, '_>,
    key: &[u8],
    newest: Option<Sample>,
    sample: Sample,
) -> Result<(), CommandError> {
    let Some(record) = record_in(context.keys, key)?.filter(|record| !record.rules.is_empty())
    else {
        return Ok(());
    };
    let Some(newest) = newest else { return Ok(()) };
    let found = Found::own(key, record);
    let rules = found.record.as_ref().map(|record| record.rules.clone()).unwrap_or_default();
    for rule in rules {
        let start_of = |ms| bucket_start(ms, rule.bucket_ms, rule.align_ms);
        let (open, touched) = (start_of(newest.ms), start_of(sample.ms));
        let start = if newest.ms < sample.ms { open } else { touched };
        if touched == open || rule.after_ms.is_some_and(|after| start + rule.bucket_ms <= after) {
            continue;
        }
        write_bucket(context, &found, &rule, start)?;
    }
    Ok(())
}

fn write_bucket(
    context: &mut Context<'_, '_>,
    source: &Found,
    rule: &Rule,
    start: i64,
) -> Result<(), CommandError> {
    let Some(sample) = bucket_of(context, source, rule, start)? else { return Ok(()) };
    if record_in(context.keys, &rule.target)?.is_none() {
        return Ok(());
    }
    put_sample(context, &rule.target, sample)?;
    context.keys.event(EVENT_MODULE, "ts.add:dest", SERIES_DB, &rule.target);
    Ok(())
}

/// What the source of a series has for it in the bucket that is still open.
///
/// # Errors
/// When the store cannot tell.
pub fn open_bucket(
    context: &mut Context<'_, '_>,
    found: &Found,
) -> Result<Option<Sample>, CommandError> {
    let source = found.record.as_ref().and_then(|record| record.source.clone());
    let Some(source) = source else { return Ok(None) };
    let Some(record) = record_in(context.keys, &source)? else { return Ok(None) };
    let source = Found::own(&source, record);
    let rules = source.record.iter().flat_map(|record| &record.rules);
    let Some(rule) = rules.into_iter().find(|rule| *rule.target == *found.key).cloned() else {
        return Ok(None);
    };
    let Some(newest) = series::newest(context, &source)? else { return Ok(None) };
    let start = bucket_start(newest.ms, rule.bucket_ms, rule.align_ms);
    bucket_of(context, &source, &rule, start)
}

/// Fails when samples from `from_ms` on cannot be deleted: they or others of their buckets are beyond
/// the retention, so that the compactions could not be computed again.
///
/// # Errors
/// In that case.
pub fn check_deletion(
    found: &Found,
    newest: Option<Sample>,
    from_ms: i64,
) -> Result<(), CommandError> {
    let Some((record, newest)) = found.record.as_ref().zip(newest) else { return Ok(()) };
    let kept_from = newest.ms - record.retention_ms;
    let is_beyond = |rule: &Rule| bucket_start(from_ms, rule.bucket_ms, rule.align_ms) < kept_from;
    if 0 < record.retention_ms && record.rules.iter().any(is_beyond) {
        return Err(error(
            "When a series has compactions, deleting samples or compaction buckets beyond the series retention period is not possible",
        ));
    }
    Ok(())
}

/// After samples were deleted: computes the closed buckets again that they were in. The one of the
/// newest sample that is left is open again.
///
/// # Errors
/// When the store cannot.
pub fn refresh(
    context: &mut Context<'_, '_>,
    found: &Found,
    newest: Option<Sample>,
    from_ms: i64,
    to_ms: i64,
) -> Result<(), CommandError> {
    let rules = found.record.as_ref().map(|record| record.rules.clone()).unwrap_or_default();
    let Some(newest) = newest.filter(|_| !rules.is_empty()) else { return Ok(()) };
    let app = &context.redis.app;
    let left = samples::newest_one(app, &found.sets, 0, TIME_MS_MAX)?;
    for rule in rules {
        let Some(target) = record_in(context.keys, &rule.target)? else { continue };
        let target = Found::own(&rule.target, target);
        let start_of = |ms| bucket_start(ms, rule.bucket_ms, rule.align_ms);
        let open = left.map_or(i64::MAX, |left| start_of(left.ms));
        let first = start_of(from_ms).min(open).max(0);
        let is_newest_left = left.is_some_and(|left| left.ms == newest.ms);
        let last = if is_newest_left { to_ms } else { TIME_MS_MAX };
        let app = &context.redis.app;
        for old in samples::read_one(app, &target.sets, first, last)? {
            let start = start_of(old.ms);
            let closed = if start < open { bucket_of(context, found, &rule, start)? } else { None };
            match closed {
                Some(sample) => put_sample(context, &rule.target, sample)?,
                None => delete_written(context, &rule, &target, old)?,
            }
        }
    }
    Ok(())
}

/// Takes back what was written for a bucket.
fn delete_written(
    context: &mut Context<'_, '_>,
    rule: &Rule,
    target: &Found,
    old: Sample,
) -> Result<(), CommandError> {
    let range = samples::time_range(old.ms, old.ms);
    samples::delete(&context.redis.app, &target.sets, range)?;
    if let Some(target) = record_in(context.keys, &rule.target)? {
        target.newest = kv::value::series::Newest::Unknown;
    }
    Ok(())
}
