//! The store against a naive map, over seeded random histories: appends in and out of order, duplicates,
//! changing field lists, partitions of each length, histograms that replace each other, flushes,
//! merges, deletions, retention, clean restarts and crashes.
//!
//! `SEED=n cargo test -p store --test all model` replays one history.

use crate::rows;
use crate::rows::Rows;
use crate::stores;
use histogram::Histogram;
use model::{Labels, MatchOp, Matcher, TimeRange};
use rng::Random;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use store::{Durability, PartitionLength, SelectLimits, Selection, Store, StoreConfig};
use vfs::SimVfs;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
/// 2020-01-30: histories cross into February and, by way of backfill, go back to December.
const START: i64 = 18_291 * DAY;
const LIMITS: SelectLimits =
    SelectLimits { series_max: usize::MAX, deadline: None, cancelled: None, cost_max: u64::MAX };

type Naive = BTreeMap<Labels, BTreeMap<i64, Sample>>;

/// What a series has at an instant.
#[derive(Clone, Debug, PartialEq)]
enum Sample {
    /// Bits of a float.
    Float(u64),
    Histogram(Histogram),
}

fn config() -> StoreConfig {
    StoreConfig {
        // A few chunks, so that row ids start again many times in a history.
        arena_words_max: 3 * store::inside::CHUNK_WORDS,
        ..stores::config()
    }
}

struct History {
    random: Random,
    disk: SimVfs,
    store: Arc<Store>,
    naive: Naive,
    now: i64,
}

impl History {
    fn new(seed: u64) -> History {
        let disk = SimVfs::new(seed);
        disk.set_now(START);
        // The directory remembers it: later lives do not ask.
        let length = PartitionLength::ALL[(seed % 4) as usize];
        let asked = StoreConfig { partition_length: Some(length), ..config() };
        let store = stores::open(&disk, asked);
        History { random: Random(seed), disk, store, naive: Naive::new(), now: START }
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..=44 => self.append(),
            45..=59 => self.append_histograms(),
            60..=69 => self.store.flush().unwrap(),
            70..=75 => self.store.force_merge("").unwrap(),
            76..=80 => self.delete(),
            81..=84 => self.restart(),
            85..=89 => self.crash(),
            90 => self.verify(),
            _ => self.check_some(),
        }
    }

    fn append(&mut self) {
        self.now += self.random.below(3600) as i64 * SECOND;
        self.disk.set_now(self.now);
        let mut rows = Rows::default();
        for _ in 0..1 + self.random.below(60) {
            let host = format!("h{}", self.random.below(40));
            let zone = format!("z{}", self.random.below(3));
            let tags = [("host", host.as_str()), ("zone", zone.as_str())];
            let tags = &tags[..1 + self.random.below(2) as usize];
            let back = match self.random.below(20) {
                0 => self.random.below(50 * 86_400) as i64 * SECOND,
                1..=4 => self.random.below(7200) as i64 * SECOND,
                _ => 0,
            };
            let timestamp = self.now - back + self.random.below(3) as i64;
            let all = ["a", "b", "c", "d"];
            let fields: Vec<(&str, f64)> = all
                .iter()
                .filter(|_| self.random.below(4) != 0)
                .copied()
                .collect::<Vec<_>>()
                .into_iter()
                .map(|name| (name, self.value()))
                .collect();
            if fields.is_empty() {
                continue;
            }
            rows.push(&self.store.hasher(), tags, timestamp, &fields);
            for (name, value) in fields {
                let series = self.naive.entry(rows::labels(tags, name)).or_default();
                series.insert(timestamp, Sample::Float(value.to_bits()));
            }
        }
        let batch = rows.batch();
        let appended = self.store.append(&batch, Durability::Synced).unwrap();
        assert_eq!((appended.samples as usize, appended.rejected), (batch.values.len(), 0));
    }

    /// Histograms of few series at few instants, and floats among them: late ones, and many that
    /// replace another, of another layout most often.
    fn append_histograms(&mut self) {
        self.now += self.random.below(1800) as i64 * SECOND;
        self.disk.set_now(self.now);
        for _ in 0..1 + self.random.below(3) {
            let (mut histograms, mut floats) = (Vec::new(), Vec::new());
            for _ in 0..1 + self.random.below(12) {
                // Some of these series are columns of entities of several.
                let name = ["a", "b", "h", "i"][self.random.below(4) as usize];
                let host = format!("h{}", self.random.below(6));
                let labels = rows::labels(&[("host", host.as_str())], name);
                let back = match self.random.below(8) {
                    0 => self.random.below(40) as i64 * DAY,
                    _ => self.random.below(4) as i64 * 3600 * SECOND,
                };
                let time = self.now - self.now.rem_euclid(3600 * SECOND) - back;
                match self.random.below(5) {
                    0 => floats.push((labels, time, self.value())),
                    1 => histograms.push((labels, time, Histogram::stale())),
                    _ => histograms.push((labels, time, rows::histogram(self.random.next()))),
                }
            }
            self.put(&histograms, &floats);
        }
    }

    /// Appends histograms, then floats.
    fn put(&mut self, histograms: &[(Labels, i64, Histogram)], floats: &[(Labels, i64, f64)]) {
        let batch = rows::histograms(histograms);
        let appended = self.store.append_histograms(&batch, Durability::Synced).unwrap();
        assert_eq!((appended.samples as usize, appended.rejected), (histograms.len(), 0));
        let batch = rows::floats(&self.store.hasher(), floats);
        let appended = self.store.append(&batch, Durability::Synced).unwrap();
        assert_eq!((appended.samples as usize, appended.rejected), (floats.len(), 0));
        let histograms = histograms.iter().map(|(labels, time, one)| {
            let sample = match one.is_stale() {
                true => Sample::Float(model::STALE_NAN_BITS),
                false => Sample::Histogram(one.clone()),
            };
            (labels, time, sample)
        });
        let floats =
            floats.iter().map(|(labels, time, one)| (labels, time, Sample::Float(one.to_bits())));
        for (labels, time, sample) in histograms.chain(floats) {
            self.naive.entry(labels.clone()).or_default().insert(*time, sample);
        }
    }

    fn value(&mut self) -> f64 {
        match self.random.below(10) {
            0 => model::stale_marker(),
            1 => f64::from_bits(self.random.next()),
            2 => -0.0,
            3 => self.random.below(1000) as f64 / 100.0,
            _ => self.random.below(100) as f64,
        }
    }

    fn delete(&mut self) {
        let host = format!("h{}", self.random.below(40));
        let start = self.now - self.random.below(20 * 86_400) as i64 * SECOND;
        let range = TimeRange::new(start, start + self.random.below(10 * 86_400) as i64 * SECOND);
        let set = vec![Matcher::equal("host", &host)];
        self.store.delete(&[set], range).unwrap();
        for (labels, samples) in &mut self.naive {
            if labels.get("host") == Some(&host) {
                samples.retain(|time, _| !range.contains(*time));
            }
        }
    }

    fn restart(&mut self) {
        self.store.close().unwrap();
        self.reopen(self.disk.clone());
    }

    fn crash(&mut self) {
        let disk = self.disk.crash();
        self.reopen(disk);
    }

    fn reopen(&mut self, disk: SimVfs) {
        // Release the lock of the old store before the new one takes it.
        self.store = Store::open(Arc::new(SimVfs::new(0)), Path::new("/none"), config()).unwrap();
        self.disk = disk;
        self.disk.set_now(self.now);
        self.store = stores::open(&self.disk, config());
    }

    fn verify(&mut self) {
        self.store.close().unwrap();
        self.store = Store::open(Arc::new(SimVfs::new(0)), Path::new("/none"), config()).unwrap();
        let disk = Arc::new(self.disk.clone());
        let report = store::verify(disk, Path::new("/data"), &mut |_| ()).unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
        self.store = stores::open(&self.disk, config());
    }

    fn check_some(&mut self) {
        let start = self.now - self.random.below(60 * 86_400) as i64 * SECOND;
        let range = match self.random.below(3) {
            0 => TimeRange::ALL,
            1 => TimeRange::new(start, i64::MAX),
            _ => TimeRange::new(start, start + self.random.below(86_400) as i64 * SECOND),
        };
        let (name, op, value) = match self.random.below(4) {
            0 => ("__name__", MatchOp::Equal, "b".to_string()),
            1 => ("host", MatchOp::Equal, format!("h{}", self.random.below(40))),
            2 => ("zone", MatchOp::Equal, String::new()),
            _ => ("host", MatchOp::Regex, "h.*".to_string()),
        };
        let matcher = Matcher::new(name, op, &value);
        let matches = |labels: &Labels| match op {
            MatchOp::Equal => labels.get(name).unwrap_or("") == value,
            _ => true,
        };
        check(&self.store, &self.naive, &matcher, range, &matches);
    }
}

fn check(
    store: &Store,
    naive: &Naive,
    matcher: &Matcher,
    range: TimeRange,
    matches: &dyn Fn(&Labels) -> bool,
) {
    let sets = [vec![matcher.clone()]];
    let selection = store.select(&sets, range, &LIMITS).unwrap();
    let mut found = Naive::new();
    selection
        .read_mixed(0..selection.len(), &mut |idx, times, values, histogram_times, histograms| {
            let labels = selection.labels(idx).unwrap();
            assert!(matches(&labels), "{labels} by {matcher}");
            assert!(times.is_sorted_by(|a, b| a < b), "{labels}");
            assert!(histogram_times.is_sorted_by(|a, b| a < b), "{labels}");
            let floats = times.iter().zip(values).map(|(t, v)| (*t, Sample::Float(v.to_bits())));
            let samples: BTreeMap<i64, Sample> = floats
                .chain(
                    histogram_times
                        .iter()
                        .zip(histograms)
                        .map(|(time, one)| (*time, Sample::Histogram(one.clone()))),
                )
                .collect();
            assert_eq!(samples.len(), times.len() + histograms.len(), "an instant twice");
            assert!(found.insert(labels, samples).is_none(), "a series twice");
        })
        .unwrap();
    check_floats(&selection, &found);
    found.retain(|_, samples: &mut BTreeMap<i64, Sample>| !samples.is_empty());
    let expected: Naive = naive
        .iter()
        .filter(|(labels, _)| matches(labels))
        .map(|(labels, samples)| {
            let inside = samples.iter().filter(|(time, _)| range.contains(**time));
            (labels.clone(), inside.map(|(t, v)| (*t, v.clone())).collect::<BTreeMap<_, _>>())
        })
        .filter(|(_, samples)| !samples.is_empty())
        .collect();
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{matcher}");
    for (labels, samples) in &expected {
        assert_eq!(&found[labels], samples, "{labels} in {range:?}");
    }
    let live: Vec<Labels> = store.strict().series(&sets, range, &LIMITS).unwrap();
    for labels in expected.keys() {
        assert!(live.contains(labels), "{labels} has samples in {range:?} but is not listed");
    }
}

/// Who reads floats gets the same without the histograms.
fn check_floats(selection: &Selection, found: &Naive) {
    selection
        .read(0..selection.len(), &mut |idx, times, values| {
            let floats = times.iter().zip(values).map(|(t, v)| (*t, Sample::Float(v.to_bits())));
            let floats: Vec<(i64, Sample)> = floats.collect();
            let wanted = found[&selection.labels(idx).unwrap()].iter();
            let wanted = wanted.filter(|(_, sample)| matches!(sample, Sample::Float(_)));
            let wanted: Vec<(i64, Sample)> = wanted.map(|(t, s)| (*t, s.clone())).collect();
            assert_eq!(floats, wanted);
        })
        .unwrap();
}

fn run(seed: u64, steps: usize) {
    let mut history = History::new(seed);
    let length = history.store.partition_length();
    println!("SEED={seed}, partitions of a {length}");
    for _ in 0..steps {
        history.step();
    }
    let all = |_: &Labels| true;
    let matcher = Matcher::new("host", MatchOp::Regex, ".+");
    check(&history.store, &history.naive, &matcher, TimeRange::ALL, &all);
    assert_eq!(history.store.partition_length(), length);
}

#[test]
fn random_histories_agree_with_a_map() {
    match rng::seed() {
        Some(seed) => run(seed, 400),
        None => (1..=12).for_each(|seed| run(seed, 150)),
    }
}
