//! `TS.MADD`: samples of many series, put into the log together.
//!
//! ```text
//! sample ─► is it just later than all of its series? ─yes─► batch ─┬─► store, at once ─► records
//!                      │ no, or nobody knows                       │
//!                      └──► the batch so far, then it alone ◄──────┘ what was refused, one by one
//! ```
//!
//! What holds: each sample ends as if it had been added alone, in the order in which they were said.

use super::samples::{self, Sample, labels_of};
use super::series::{record_for_adding, record_in, time_arg, value_arg};
use super::words::{INVALID_VALUE, NO_KEY};
use super::write::{self, is_plain, newest_before};
use crate::commands::Flow;
use crate::dispatch::Context;
use kv::keyspace::EVENT_MODULE;
use kv::series::SERIES_DB;
use kv::value::series::Newest;
use kv::{CommandError, Reply as _};
use model::Labels;
use std::collections::HashSet;

/// Samples that wait to be added together.
const BATCH_MAX: usize = 512;

/// Samples that are only to be appended.
#[derive(Default)]
struct Batch<'a> {
    waiting: Vec<Waiting<'a>>,
    keys: HashSet<&'a [u8]>,
    /// What became of each sample of the command so far: its time, if it was added or waits.
    results: Vec<Result<i64, CommandError>>,
}

struct Waiting<'a> {
    /// Which of the results is its.
    result: usize,
    key: &'a [u8],
    labels: Labels,
    sample: Sample,
}

/// `TS.MADD key time value ..`
pub fn madd(context: &mut Context<'_, '_>) -> Result<Flow, CommandError> {
    let args = &context.args[1..];
    if !args.len().is_multiple_of(3) {
        return Err(CommandError::arity(context.info.name));
    }
    let mut batch = Batch::default();
    for item in args.chunks(3) {
        let added = batch.add(context, item[0], item[1], item[2]);
        batch.results.push(added);
    }
    batch.flush(context);
    context.session.out.array(batch.results.len());
    for result in batch.results {
        match result {
            Ok(ms) => context.session.out.int(ms),
            Err(error) => context.session.out.error(&error.0),
        }
    }
    Ok(Flow::Next)
}

impl<'a> Batch<'a> {
    /// Adds a sample, or has it wait for the others.
    fn add(
        &mut self,
        context: &mut Context<'a, '_>,
        key: &'a [u8],
        time: &[u8],
        value: &[u8],
    ) -> Result<i64, CommandError> {
        if self.keys.contains(key) || BATCH_MAX <= self.waiting.len() {
            self.flush(context);
        }
        record_for_adding(context, key)?.ok_or(NO_KEY)?;
        let value = value_arg(value).ok_or(INVALID_VALUE)?;
        let ms = time_arg(context, time)?;
        let sample = Sample { ms, value };
        let newest = newest_before(context, key, ms)?;
        let series = record_in(context.keys, key)?.ok_or(NO_KEY)?;
        if is_plain(series, newest, sample) {
            let labels = labels_of(&series.name, &series.labels);
            self.keys.insert(key);
            self.waiting.push(Waiting { result: self.results.len(), key, labels, sample });
            return Ok(ms);
        }
        // It may feed other series, and those that wait may be among them.
        self.flush(context);
        add_alone(context, key, sample)
    }

    /// Adds all that wait.
    fn flush(&mut self, context: &mut Context<'_, '_>) {
        if self.waiting.is_empty() {
            return;
        }
        self.keys.clear();
        let rows = self.waiting.iter().map(|one| (&one.labels, one.sample));
        let are_taken = samples::append_all(&context.redis.app, rows);
        for one in self.waiting.drain(..) {
            // Of those that were not taken as one, some may have been: added again they are the same.
            let added = match are_taken {
                true => note_added(context, &one),
                false => add_alone(context, one.key, one.sample).map(|_| ()),
            };
            if let Err(error) = added {
                self.results[one.result] = Err(error);
            }
        }
    }
}

fn add_alone(
    context: &mut Context<'_, '_>,
    key: &[u8],
    sample: Sample,
) -> Result<i64, CommandError> {
    let ms = write::add_sample(context, key, sample, None)?;
    context.keys.event(EVENT_MODULE, "ts.add", SERIES_DB, key);
    Ok(ms)
}

/// Notes what a record must know of a sample that was later than all others of its series.
fn note_added(context: &mut Context<'_, '_>, one: &Waiting<'_>) -> Result<(), CommandError> {
    context.session.has_written_samples = true;
    let series = record_in(context.keys, one.key)?.ok_or(NO_KEY)?;
    series.newest = Newest::At(one.sample.ms, one.sample.value);
    write::note_sampled(context, one.key)?;
    context.keys.event(EVENT_MODULE, "ts.add", SERIES_DB, one.key);
    Ok(())
}
