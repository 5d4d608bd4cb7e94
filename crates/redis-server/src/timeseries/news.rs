//! What follows when a key that is a series goes, or comes under another name: its samples go, too,
//! or are written again under that name. Samples of other doors stay.

use super::samples::{self, TIME_MS_MAX, labels_of, read_one};
use super::series::{is_sampled, record_in, sets_of};
use crate::dispatch::Context;
use app::App;
use kv::series::{SERIES_DB, SeriesEvent};
use kv::value::Series;
use kv::value::series::Newest;
use kv::{CommandError, Keyspace};
use model::{Labels, TimeRange};

/// Does what follows from what became of keys since the last call.
///
/// # Errors
/// When the store fails; what was not done is lost, and is in the log of the program.
pub fn settle(context: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if !context.keys.has_series_events() {
        return Ok(());
    }
    let events = context.keys.take_series_events();
    let mut moved: Vec<Box<[u8]>> = Vec::new();
    let mut gone: Vec<(Box<[u8]>, Box<Series>)> = Vec::new();
    for event in events {
        match event {
            SeriesEvent::Moved(key) => moved.push(key),
            SeriesEvent::Gone(key, series) => gone.push((key, series)),
        }
    }
    // A key that was renamed goes last: its samples are written again before.
    let mut names: Vec<Box<str>> = Vec::new();
    for key in &moved {
        names.extend(record_in(context.keys, key)?.map(|series| series.name.clone()));
    }
    let is_moved = |series: &Series| names.contains(&series.name);
    let (renamed, others): (Vec<_>, Vec<_>) =
        gone.into_iter().partition(|(_, series)| is_moved(series));
    let app = &context.redis.app;
    for (key, series) in &others {
        cut_rules(context.keys, key, series)?;
    }
    delete(app, &others)?;
    for key in &moved {
        let is_renamed = |name: &str| renamed.iter().any(|(_, series)| *series.name == *name);
        write_again(context, key, &is_renamed)?;
    }
    delete(app, &renamed)
}

/// Deletes the samples of keys that expired; for who has no command at hand.
///
/// # Errors
/// When the store fails.
pub fn settle_expired(app: &App, keys: &mut Keyspace) -> Result<(), CommandError> {
    let mut gone = Vec::new();
    for event in keys.take_series_events() {
        if let SeriesEvent::Gone(key, series) = event {
            cut_rules(keys, &key, &series)?;
            gone.push((key, series));
        }
    }
    delete(app, &gone)
}

fn delete(app: &App, gone: &[(Box<[u8]>, Box<Series>)]) -> Result<(), CommandError> {
    let own = gone.iter().filter(|(_, series)| !series.is_shared);
    let sets: Vec<Labels> = own.flat_map(|(_, series)| sets_of(series)).collect();
    let result = samples::delete(app, &sets, TimeRange::ALL);
    if let Err(error) = &result {
        tracing::error!("samples of deleted time series stay in the store: {error}");
    }
    result
}

/// Takes a series that went out of the rules of others.
fn cut_rules(keys: &mut Keyspace, key: &[u8], gone: &Series) -> Result<(), CommandError> {
    let targets = gone.rules.iter().map(|rule| &rule.target);
    for other in targets.chain(&gone.source) {
        let Ok(Some(series)) = record_in(keys, other) else { continue };
        if series.source.as_deref() == Some(key) {
            series.source = None;
        }
        series.rules.retain(|rule| *rule.target != *key);
        series.resize();
        keys.modified(SERIES_DB, other);
        keys.log_key(SERIES_DB, other)?;
    }
    Ok(())
}

/// Writes the samples of a series whose record came from another key under its own, new name.
fn write_again(
    context: &mut Context<'_, '_>,
    key: &[u8],
    is_renamed: &dyn Fn(&str) -> bool,
) -> Result<(), CommandError> {
    let Some(series) = record_in(context.keys, key)? else { return Ok(()) };
    let before = series.clone();
    let Ok(name) = std::str::from_utf8(key) else {
        return Err(super::words::error("the key of a series must be UTF-8"));
    };
    let labels = labels_of(name, &before.labels);
    let is_shared = is_sampled(context, &labels)?;
    let app = &context.redis.app;
    let all = read_one(app, &sets_of(&before), 0, TIME_MS_MAX)?;
    samples::append(app, &labels, &all)?;
    context.session.has_written_samples = true;
    let is_renamed = is_renamed(&before.name);
    let Some(series) = record_in(context.keys, key)? else { return Ok(()) };
    series.name = name.into();
    series.past_labels.clear();
    series.is_shared = is_shared;
    series.is_sampled = is_shared || !all.is_empty();
    series.newest = Newest::Unknown;
    if !is_renamed {
        series.source = None;
        series.rules.clear();
    }
    series.resize();
    context.keys.modified(SERIES_DB, key);
    context.keys.log_key(SERIES_DB, key)?;
    if is_renamed {
        point_rules(context.keys, before.name.as_bytes(), key, &before)?;
    }
    Ok(())
}

/// Has the rules of others name the new key.
fn point_rules(
    keys: &mut Keyspace,
    old: &[u8],
    new: &[u8],
    moved: &Series,
) -> Result<(), CommandError> {
    let targets = moved.rules.iter().map(|rule| &rule.target);
    for other in targets.chain(&moved.source) {
        let Ok(Some(series)) = record_in(keys, other) else { continue };
        if series.source.as_deref() == Some(old) {
            series.source = Some(new.into());
        }
        for rule in series.rules.iter_mut().filter(|rule| *rule.target == *old) {
            rule.target = new.into();
        }
        series.resize();
        keys.modified(SERIES_DB, other);
        keys.log_key(SERIES_DB, other)?;
    }
    Ok(())
}
