//! The scripts over a real store: samples in the head, in parts that overlap, in one merged part,
//! and read from the log again.

use super::{count_of, options, run_directory};
use crate::{rows, stores};
use engine::script::{
    Answer, Loaded, LoadedSample, LoadedSeries, Runner, Subject, Times, Unanswered, ask_source,
};
use engine::{MetricsQlOptions, NameRemoval, QueryOptions};
use histogram::Histogram;
use model::sample::NANOS_PER_MILLI;
use model::{Labels, StartRow};
use promql::Dialect;
use std::sync::Arc;
use store::{Appended, Durability, StartBatch, Store};
use vfs::SimVfs;

/// Appends of one load: its samples are dealt out to them in turn, so that parts overlap in time.
const DEALS: usize = 3;

/// Where samples are when a script asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In memory only.
    Head,
    /// All but the last deal of each load in parts, two of each load, the last in the head.
    PartsAndHead,
    /// In one part per partition, merged after each load.
    OnePart,
    /// As [`Place::PartsAndHead`], in a store that was killed and opened again.
    OpenedAgain,
}

/// A store that is made anew for each data set of a script.
struct OverStore {
    place: Place,
    options: QueryOptions,
    disk: SimVfs,
    store: Arc<Store>,
}

impl OverStore {
    fn new(place: Place, options: &QueryOptions) -> OverStore {
        let disk = SimVfs::new(1);
        let store = stores::open(&disk, stores::config());
        OverStore { place, options: options.clone(), disk, store }
    }

    fn append(&self, series: &[LoadedSeries], deal: usize) -> Result<(), String> {
        let (mut floats, mut histograms, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        for (labels, samples) in series {
            for sample in samples.iter().skip(deal).step_by(DEALS) {
                let LoadedSample { at_ms, start_ms, loaded } = sample;
                let timestamp = at_ms * NANOS_PER_MILLI;
                starts.extend(start_ms.map(|start_ms| (labels, timestamp, start_ms)));
                match loaded {
                    Loaded::Number(value) => floats.push((labels.clone(), timestamp, *value)),
                    Loaded::Histogram(histogram) => {
                        histograms.push((labels.clone(), timestamp, (**histogram).clone()));
                    }
                }
            }
        }
        self.append_floats(&floats)?;
        self.append_histograms(&histograms)?;
        self.append_starts(&starts)
    }

    fn append_floats(&self, list: &[(Labels, i64, f64)]) -> Result<(), String> {
        let batch = rows::floats(&self.store.hasher(), list);
        all_taken(self.store.append(&batch, Durability::Synced), list.len())
    }

    fn append_histograms(&self, list: &[(Labels, i64, Histogram)]) -> Result<(), String> {
        let batch = rows::histograms(list);
        all_taken(self.store.append_histograms(&batch, Durability::Synced), list.len())
    }

    /// Series, times of samples, nanoseconds, and their start timestamps, milliseconds.
    fn append_starts(&self, list: &[(&Labels, i64, i64)]) -> Result<(), String> {
        let (mut bytes, mut rows) = (Vec::new(), Vec::new());
        for (position, (labels, timestamp, start_ms)) in (0..).zip(list) {
            let key = labels.as_bytes();
            let (key_offset, key_size) = (bytes.len() as u32, key.len() as u32);
            bytes.extend_from_slice(key);
            let (timestamp, start_ms) = (*timestamp, *start_ms);
            rows.push(StartRow { timestamp, start_ms, key_offset, key_size, position });
        }
        let decoder = &rows::WholeKeys;
        let batch = StartBatch { bytes: &bytes, rows: &rows, decoder, context: b"whole" };
        let appended = self.store.append_starts(&batch, Durability::Synced);
        let appended = appended.map_err(|error| error.to_string())?;
        match appended.written == list.len() as u64 {
            true => Ok(()),
            false => Err(format!("{} of {} starts taken", appended.written, list.len())),
        }
    }

    fn open_again(&mut self) {
        self.disk = self.disk.kill();
        self.store = stores::open(&self.disk, stores::config());
    }

    /// How many parts there are.
    fn part_count(&self) -> u64 {
        self.store.stats().parts
    }
}

fn all_taken(appended: store::Result<Appended>, count: usize) -> Result<(), String> {
    let appended = appended.map_err(|error| error.to_string())?;
    match appended.samples == count as u64 {
        true => Ok(()),
        false => Err(format!("{} of {count} taken: {:?}", appended.samples, appended.rejections)),
    }
}

impl Subject for OverStore {
    fn clear(&mut self) {
        *self = OverStore::new(self.place, &self.options);
    }

    fn load(&mut self, series: &[LoadedSeries]) -> Result<(), String> {
        for deal in 0..DEALS {
            self.append(series, deal)?;
            let is_last = deal + 1 == DEALS;
            let is_flushed = match self.place {
                Place::Head => false,
                Place::PartsAndHead | Place::OpenedAgain => !is_last,
                Place::OnePart => true,
            };
            if is_flushed {
                self.store.flush().map_err(|error| error.to_string())?;
                assert!(0 < self.part_count(), "a flush makes a part");
            }
        }
        match self.place {
            Place::Head => assert_eq!(self.part_count(), 0),
            Place::PartsAndHead => {}
            Place::OnePart => {
                self.store.force_merge("").map_err(|error| error.to_string())?;
                assert_eq!(self.part_count(), self.store.stats().partitions);
            }
            Place::OpenedAgain => self.open_again(),
        }
        Ok(())
    }

    fn ask(&mut self, text: &str, times: Times) -> Result<Answer, Unanswered> {
        ask_source(&*self.store, text, times, &self.options)
    }
}

/// Runs the scripts of a directory wherever samples can be.
#[track_caller]
fn check(directory: &str, options: &QueryOptions) {
    for place in [Place::Head, Place::PartsAndHead, Place::OnePart, Place::OpenedAgain] {
        let mut runner = Runner::over(options.dialect, OverStore::new(place, options));
        let passed = run_directory(directory, &mut runner);
        assert_eq!(passed, count_of(directory), "{place:?}");
    }
}

#[test]
fn scripts() {
    check("promql", &options());
}

#[test]
fn scripts_with_late_name_removal() {
    check("promql/late_names", &QueryOptions { name_removal: NameRemoval::Late, ..options() });
}

#[test]
fn scripts_that_keep_names_over_time() {
    let name_removal = NameRemoval::KeepOverTime;
    check("promql/kept_names", &QueryOptions { name_removal, ..options() });
}

#[test]
fn scripts_in_metricsql() {
    let metricsql = MetricsQlOptions { step_ms: 300_000, ..MetricsQlOptions::default() };
    check("metricsql", &QueryOptions { dialect: Dialect::MetricsQl, metricsql, ..options() });
}
