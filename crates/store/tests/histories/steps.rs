//! The steps of a history: what clients and the background ask of a store, noted in the model as it
//! is answered.

use super::history::{DAY, History, SECOND, SNAPSHOTS_MAX};
use super::model::{ExemplarKey, SampleKey, Value};
use super::observe::{Observed, everything, observe, observe_samples};
use crate::rows::{self, Rows};
use ::model::{Exemplar, ExemplarRow, Labels, Matcher, Metadata, Row, TimeRange};
use histogram::Histogram;
use store::{Appended, Durability, Error, Store};

/// A step and how often it comes.
type Step = (&'static str, u64, fn(&mut History, &Store) -> Result<(), Error>);

const STEPS: [Step; 20] = [
    ("rows", 22, rows_of_fields),
    ("relaxed rows", 3, relaxed_rows),
    ("whole series", 8, whole_series),
    ("histograms", 10, histograms),
    ("exemplars", 5, exemplars),
    ("metadata", 3, metadata),
    ("flush", 10, |_, store| store.flush()),
    ("force merge", 5, |_, store| store.force_merge("")),
    ("merge as needed", 4, |_, store| store.merge_as_needed()),
    ("delete", 5, delete),
    ("expire", 3, |_, store| store.expire()),
    ("prepare rollover", 4, |_, store| store.prepare_rollover_fully()),
    ("snapshot", 3, snapshot),
    ("delete snapshot", 2, delete_snapshot),
    ("list snapshots", 1, |_, store| store.snapshots().map(drop)),
    ("query", 6, query),
    ("query all", 2, query_all),
    ("look at the disk", 1, |_, store| {
        store.check_disk();
        Ok(())
    }),
    ("time passes", 6, time_passes),
    ("memory is tight", 1, |history, store| {
        store.set_memory_tight(history.dice.below(2) == 0);
        Ok(())
    }),
];

/// One step, drawn; its error is what the store said, and in the model already.
pub fn step(history: &mut History, store: &Store) -> Result<(), Error> {
    let mut left = history.dice.below(STEPS.iter().map(|(_, weight, _)| weight).sum());
    for (name, weight, act) in STEPS {
        if left < weight {
            let done = act(history, store);
            history.tally.step(name, done.as_ref().err());
            history.say(|| match &done {
                Ok(()) => format!("  {name}"),
                Err(error) => format!("  {name}: {error}"),
            });
            return done;
        }
        left -= weight;
    }
    unreachable!("the weights add up")
}

impl History {
    /// Notes a batch by its answer: `samples` has the row's position of each.
    fn note(&mut self, done: &Result<Appended, Error>, samples: Vec<(u32, SampleKey, Value)>) {
        for (position, key, value) in samples {
            self.say(|| format!("    {} at {} = {value:?}", key.0, key.1));
            self.model.series.insert(key.0.clone());
            self.model.sent.insert((key.clone(), value));
            match done {
                Ok(appended) if appended.rejected == 0 => {
                    self.model.samples.acknowledge(key, value)
                }
                Ok(appended) if appended.rejected == appended.rejections.len() as u64 => {
                    if appended.rejections.iter().all(|one| one.position != position) {
                        self.model.samples.acknowledge(key, value);
                    }
                }
                _ => self.model.samples.doubt(key, value),
            }
        }
    }

    fn time(&mut self) -> i64 {
        let back = match self.dice.below(20) {
            0 => self.dice.below(45) as i64 * DAY,
            1 => self.dice.below(12) as i64 * DAY,
            2..=5 => self.dice.below(7200) as i64 * SECOND,
            // Ahead, so that the next month has samples before it begins.
            6 => -(self.dice.below(86_400) as i64) * SECOND,
            _ => 0,
        };
        self.now - back + self.dice.below(4) as i64
    }

    fn value(&mut self) -> f64 {
        match self.dice.below(8) {
            0 => ::model::stale_marker(),
            1 => f64::from_bits(self.dice.next()),
            _ => self.dice.below(100) as f64 / 4.0,
        }
    }

    fn host(&mut self) -> String {
        format!("h{}", self.dice.below(self.hosts))
    }
}

/// Rows of some of four fields; the lists change from row to row.
fn append_rows(history: &mut History, store: &Store) -> (Rows, Vec<(u32, SampleKey, Value)>) {
    let mut rows = Rows::default();
    let mut samples = Vec::new();
    for position in 0..1 + history.dice.below(10) as u32 {
        let host = history.host();
        let zone = format!("z{}", history.dice.below(2));
        let tags = [("host", host.as_str()), ("zone", zone.as_str())];
        let tags = &tags[..1 + history.dice.index(2)];
        let chosen = 1 + history.dice.below(15);
        let names = ["a", "b", "c", "d"].into_iter().enumerate();
        let names = names.filter(|(idx, _)| chosen >> idx & 1 == 1);
        let fields: Vec<(&str, f64)> = names.map(|(_, name)| (name, history.value())).collect();
        let time = history.time();
        rows.push(&store.hasher(), tags, time, &fields);
        for (name, value) in fields {
            let key = (rows::labels(tags, name), time);
            samples.push((position, key, Value::Float(value.to_bits())));
        }
    }
    (rows, samples)
}

fn rows_of_fields(history: &mut History, store: &Store) -> Result<(), Error> {
    let (rows, samples) = append_rows(history, store);
    let done = store.append(&rows.batch(), Durability::Synced);
    history.note(&done, samples);
    done.map(drop)
}

/// Rows that may be lost though they were taken.
fn relaxed_rows(history: &mut History, store: &Store) -> Result<(), Error> {
    let (rows, samples) = append_rows(history, store);
    let done = store.append(&rows.batch(), Durability::Relaxed);
    for (_, key, value) in samples {
        history.say(|| format!("    {} at {} = {value:?}", key.0, key.1));
        history.model.series.insert(key.0.clone());
        history.model.sent.insert((key.clone(), value));
        history.model.samples.doubt(key, value);
    }
    done.map(drop)
}

/// Series one by one, some of which are columns of rows too.
fn whole_series(history: &mut History, store: &Store) -> Result<(), Error> {
    let mut list = Vec::new();
    for _ in 0..1 + history.dice.below(5) {
        let name = *history.dice.pick(&["a", "b", "h", "single"]);
        let labels = rows::labels(&[("host", &history.host())], name);
        list.push((labels, history.time(), history.value()));
    }
    let done = store.append(&rows::floats(&store.hasher(), &list), Durability::Synced);
    let samples = (0..).zip(list).map(|(position, (labels, time, value))| {
        (position, (labels, time), Value::Float(value.to_bits()))
    });
    history.note(&done, samples.collect());
    done.map(drop)
}

/// Histograms at few instants, so that they often replace each other.
fn histograms(history: &mut History, store: &Store) -> Result<(), Error> {
    let mut list = Vec::new();
    for _ in 0..1 + history.dice.below(5) {
        let name = *history.dice.pick(&["a", "h", "h", "i"]);
        let labels = rows::labels(&[("host", &history.host())], name);
        let back = [0, 0, 0, 1, 30][history.dice.index(5)] * DAY;
        let hour = 3600 * SECOND;
        let time = history.now - history.now.rem_euclid(hour) - back;
        let one = match history.dice.below(6) {
            0 => Histogram::stale(),
            _ => rows::histogram(history.dice.next()),
        };
        list.push((labels, time, one));
    }
    let done = store.append_histograms(&rows::histograms(&list), Durability::Synced);
    let samples = (0..).zip(list).map(|(position, (labels, time, one))| {
        let value = match one.is_stale() {
            true => Value::Float(::model::STALE_NAN_BITS),
            false => Value::Histogram(rows::hash_of(&one)),
        };
        (position, (labels, time), value)
    });
    history.note(&done, samples.collect());
    done.map(drop)
}

/// Exemplars of series, some of which nobody knows; each has a time and a trace of its own.
fn exemplars(history: &mut History, store: &Store) -> Result<(), Error> {
    let mut rows = Rows::default();
    let mut all = Vec::new();
    for _ in 0..1 + history.dice.below(4) {
        let host = history.host();
        rows.push(&store.hasher(), &[("host", &host)], history.now, &[("a", 0.0)]);
        history.traces += 1;
        let trace = format!("t{}", history.traces);
        let exemplar = Exemplar {
            labels: Labels::from_pairs(&[("trace_id", &trace)]),
            value: 1.0,
            timestamp: history.now + history.traces as i64,
            has_timestamp: true,
        };
        all.push((rows::labels(&[("host", &host)], "a"), trace, exemplar));
    }
    let batch = rows.batch();
    let one = |(row, (_, _, exemplar)): (&Row, &(Labels, String, Exemplar))| ExemplarRow {
        row: Row { timestamp: exemplar.timestamp, ..*row },
        exemplar: exemplar.clone(),
        may_be_first: false,
    };
    let list: Vec<ExemplarRow> = batch.rows.iter().zip(&all).map(one).collect();
    let done = store.append_exemplars(&batch, &list, Durability::Synced);
    let all_taken = done.as_ref().is_ok_and(|done| done.written == all.len() as u64);
    for (labels, trace, exemplar) in all {
        let key: ExemplarKey = (labels, exemplar.timestamp, trace);
        history.model.traces.insert(key.clone());
        match all_taken {
            true => history.model.exemplars.acknowledge(key, ()),
            false => history.model.exemplars.doubt(key, ()),
        }
    }
    done.map(drop)
}

fn metadata(history: &mut History, store: &Store) -> Result<(), Error> {
    let metric = history.dice.pick(&["a", "b", "c", "h"]).to_string();
    let help = format!("said {} times", history.dice.below(1000));
    let entry = Metadata { metric: metric.clone(), help: help.clone(), ..Metadata::default() };
    history.model.descriptions.insert((metric.clone(), help.clone()));
    let done = store.put_metadata(&[entry]);
    match done {
        Ok(()) => history.model.metadata.acknowledge(metric, help),
        Err(_) => history.model.metadata.doubt(metric, help),
    }
    done
}

fn delete(history: &mut History, store: &Store) -> Result<(), Error> {
    let host = history.host();
    let start = history.now - history.dice.below(50) as i64 * DAY;
    let range = match history.dice.below(3) {
        0 => TimeRange::ALL,
        1 => TimeRange::new(start, i64::MAX),
        _ => TimeRange::new(start, start + history.dice.below(20) as i64 * DAY),
    };
    let done = store.delete(&[vec![Matcher::equal("host", &host)]], range);
    let is_meant =
        |labels: &Labels, time| labels.get("host") == Some(&host) && range.contains(time);
    let model = &mut history.model;
    match done {
        Ok(_) => {
            model.samples.delete(|(labels, time)| is_meant(labels, *time));
            model.exemplars.delete(|(labels, time, _)| is_meant(labels, *time));
        }
        Err(_) => {
            model.samples.doubt_deletion(|(labels, time)| is_meant(labels, *time));
            model.exemplars.doubt_deletion(|(labels, time, _)| is_meant(labels, *time));
        }
    }
    done.map(drop)
}

fn snapshot(history: &mut History, store: &Store) -> Result<(), Error> {
    if SNAPSHOTS_MAX <= history.snapshots.len() || !history.mix.has_snapshots {
        return Ok(());
    }
    let name = store.create_snapshot()?;
    history.note_snapshot(name);
    Ok(())
}

fn delete_snapshot(history: &mut History, store: &Store) -> Result<(), Error> {
    if history.snapshots.is_empty() {
        return Ok(());
    }
    let idx = history.dice.index(history.snapshots.len());
    let done = store.delete_snapshot(&history.snapshots[idx].name);
    match done {
        Ok(()) => drop(history.snapshots.remove(idx)),
        Err(_) => history.snapshots[idx].is_in_doubt = true,
    }
    done
}

/// A part of all, compared as far as it goes: by the values that may be there.
fn query(history: &mut History, store: &Store) -> Result<(), Error> {
    let host = history.host();
    let start = history.now - history.dice.below(50) as i64 * DAY;
    let (sets, range) = match history.dice.below(3) {
        0 => (vec![vec![Matcher::equal("host", &host)]], TimeRange::ALL),
        1 => (vec![vec![Matcher::equal("__name__", "a")]], TimeRange::new(start, i64::MAX)),
        _ => (everything(), TimeRange::new(start, start + DAY)),
    };
    let mut observed = Observed::default();
    observe_samples(store, &sets, range, &mut observed)?;
    let is_asked = |labels: &Labels, time: i64| {
        let is_named = sets[0].iter().all(|one| match (one.name.as_str(), one.value.as_str()) {
            (_, ".+") => true,
            (name, value) => labels.get(name) == Some(value),
        });
        is_named && range.contains(time)
    };
    history.compare_part(&observed, &is_asked);
    Ok(())
}

fn query_all(history: &mut History, store: &Store) -> Result<(), Error> {
    let observed = observe(store)?;
    history.compare_now(&observed);
    Ok(())
}

/// A while passes: seconds, often, seldom days. Not while the clock is wrong: who waits for long
/// enough comes to believe it.
fn time_passes(history: &mut History, _: &Store) -> Result<(), Error> {
    let seconds = match history.dice.below(8) {
        0 => history.dice.below(4 * 86_400),
        1..=3 => history.dice.below(6 * 3600),
        _ => history.dice.below(60),
    };
    if !history.is_clock_wrong() {
        history.pass(seconds * SECOND as u64);
    }
    Ok(())
}
