//! A small store with a bit of everything, ways to damage it, and what it answers.

#![allow(dead_code, reason = "each test file uses a part")]

use crate::{rows, stores};
use model::{
    Exemplar, ExemplarRow, Labels, MatchOp, Matcher, Metadata, MetricKind, Row, TimeRange,
};
use rows::Rows;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Durability, Error, LossLine, LostSeries, Missing, SelectLimits, Store, VerifyReport};
use vfs::{SimVfs, Vfs};

pub const DATA: &str = "/data";
pub const SECOND: i64 = 1_000_000_000;
/// 2020-03-01; the store has samples from two hours before to two after.
pub const TURN: i64 = 1_583_020_800 * SECOND;
/// The months of the store.
pub const FIRST: &str = "/data/partitions/2020-02";
pub const SECOND_MONTH: &str = "/data/partitions/2020-03";

/// By series and time, the sample's bits, or a hash of the histogram.
pub type Answers = BTreeMap<(Labels, i64), u64>;

pub fn limits() -> SelectLimits {
    SelectLimits { series_max: usize::MAX, deadline: None, cancelled: None, cost_max: u64::MAX }
}

pub fn try_open(disk: &SimVfs) -> Result<Arc<Store>, Error> {
    Store::open(Arc::new(disk.clone()), Path::new(DATA), stores::config())
}

/// Rows of hosts, each with two or three fields; values that do not compress away.
pub fn append(store: &Store, hosts: std::ops::Range<u32>, time: i64) {
    let mut rows = Rows::default();
    for host in hosts {
        let name = format!("h{host}");
        let value = |salt: u64| rng::mix(u64::from(host) ^ time as u64 ^ salt << 50) as f64;
        let fields = [("a", value(1)), ("b", value(2)), ("c", value(3))];
        let fields = &fields[..2 + (host % 2) as usize];
        let zone = format!("z{}", host % 3);
        rows.push(&store.hasher(), &[("host", &name), ("zone", &zone)], time, fields);
    }
    store.append(&rows.batch(), Durability::Synced).unwrap();
}

pub fn append_histograms(store: &Store, hosts: std::ops::Range<u32>, time: i64) {
    let one = |host: u32| {
        let name = format!("h{host}");
        let labels = rows::labels(&[("host", name.as_str())], "hist");
        (labels, time, rows::histogram(u64::from(host) + time as u64 / SECOND as u64))
    };
    let list: Vec<_> = hosts.map(one).collect();
    store.append_histograms(&rows::histograms(&list), Durability::Synced).unwrap();
}

pub fn append_exemplars(store: &Store, time: i64) {
    let mut rows = Rows::default();
    rows.push(&store.hasher(), &[("host", "h1"), ("zone", "z1")], time, &[("a", 0.0)]);
    let batch = rows.batch();
    let labels = Labels::from_pairs(&[("trace_id", "1")]);
    let exemplar = Exemplar { labels, value: 1.0, timestamp: time, has_timestamp: true };
    let row = Row { timestamp: time, ..batch.rows[0] };
    store
        .append_exemplars(
            &batch,
            &[ExemplarRow { row, exemplar, may_be_first: false }],
            Durability::Synced,
        )
        .unwrap();
}

/// Two months with two parts and two index segments each, and a log of two segments with rows of
/// series that no segment has. Killed, not closed. Everything is on the disk.
pub fn small_store(seed: u64) -> SimVfs {
    let disk = SimVfs::new(seed);
    disk.set_now(TURN - 7200 * SECOND);
    let store = stores::open(&disk, stores::config());
    let help = Metadata { metric: "a".into(), kind: MetricKind::Gauge, ..Metadata::default() };
    store.put_metadata(&[help]).unwrap();
    for round in 0..2 {
        for month in [TURN - 7000 * SECOND, TURN + 100 * SECOND] {
            disk.set_now(month + 100 * SECOND);
            for step in 0..4 {
                let time = month + (i64::from(round) * 4 + step) * 10 * SECOND;
                append(&store, 0..8 + round * 6, time);
                append_histograms(&store, 0..3 + round, time + SECOND);
            }
        }
        append_exemplars(&store, TURN + 150 * SECOND);
        store.flush().unwrap();
    }
    append(&store, 5..20, TURN + 300 * SECOND);
    drop(store);
    let store = stores::open(&disk, stores::config());
    append(&store, 10..25, TURN + 310 * SECOND);
    append_histograms(&store, 2..6, TURN + 311 * SECOND);
    append(&store, 10..25, TURN + 320 * SECOND);
    append(&store, 20..30, TURN - 1000 * SECOND);
    drop(store);
    settled(&disk)
}

/// A copy of the disk on which all names are as they were last.
pub fn settled(disk: &SimVfs) -> SimVfs {
    let mut folders = vec![PathBuf::from(DATA)];
    while let Some(folder) = folders.pop() {
        disk.sync_dir(&folder).unwrap();
        let below = disk.list(&folder).unwrap().into_iter().map(|name| folder.join(name));
        folders.extend(below.filter(|path| disk.size(path).is_err()));
    }
    disk.crash()
}

/// A disk with the same on it.
pub fn copy(disk: &SimVfs) -> SimVfs {
    disk.crash()
}

/// All that the store answers; opens a copy of the disk, so that nothing changes.
pub fn answers(disk: &SimVfs) -> Result<Answers, Error> {
    let store = try_open(&copy(disk))?;
    let set = vec![Matcher::new("host", MatchOp::Regex, ".*")];
    let selection = store.select(&[set], TimeRange::ALL, &limits())?;
    let mut all = BTreeMap::new();
    let mut failed = None;
    selection.read_mixed(0..selection.len(), &mut |idx, times, values, h_times, histograms| {
        let labels = match selection.labels(idx) {
            Ok(labels) => labels,
            Err(error) => {
                failed = Some(error);
                return;
            }
        };
        for (time, value) in times.iter().zip(values) {
            assert!(all.insert((labels.clone(), *time), value.to_bits()).is_none());
        }
        for (time, histogram) in h_times.iter().zip(histograms) {
            assert!(all.insert((labels.clone(), *time), bits_of(histogram)).is_none());
        }
    })?;
    failed.map_or(Ok(all), Err)
}

/// Float samples by series and time, and what the answer says is missing.
pub fn partial(store: &Store, range: TimeRange) -> (BTreeMap<(String, i64), u64>, Vec<String>) {
    let missing = Missing::new();
    let set = vec![Matcher::new("host", MatchOp::Regex, ".*")];
    let selection = store.noting(&missing).select(&[set], range, &limits()).unwrap();
    let mut found = BTreeMap::new();
    let read = &mut |idx: usize, times: &[i64], values: &[f64]| {
        let labels = selection.labels(idx).unwrap().to_string();
        let samples = times.iter().zip(values);
        found.extend(samples.map(|(time, value)| ((labels.clone(), *time), value.to_bits())));
    };
    selection.read(0..selection.len(), read).unwrap();
    (found, missing.sentences())
}

fn bits_of(histogram: &histogram::Histogram) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    std::hash::Hash::hash(&format!("{histogram:?}"), &mut hasher);
    std::hash::Hasher::finish(&hasher)
}

pub fn verify(disk: &SimVfs) -> VerifyReport {
    store::verify(Arc::new(disk.clone()), Path::new(DATA), &mut |_| ()).unwrap()
}

/// One line of what is lost.
#[derive(Clone, Debug)]
pub struct Lost {
    /// `None` when nobody knows of which series.
    pub labels: Option<Labels>,
    pub range: TimeRange,
    pub text: String,
}

impl Lost {
    fn of(line: &LossLine<'_>) -> Lost {
        let labels = match &line.series {
            LostSeries::Labels(labels) => Some(labels.clone()),
            LostSeries::Ordinal(_) | LostSeries::Unknown(_) => None,
        };
        Lost { labels, range: line.range, text: line.to_string() }
    }

    pub fn covers(&self, sample: &(Labels, i64)) -> bool {
        let is_of = self.labels.as_ref().is_none_or(|labels| *labels == sample.0);
        is_of && self.range.contains(sample.1)
    }
}

/// Plans a repair and does it; what it says and what is lost.
pub fn repair(disk: &SimVfs) -> Result<(Vec<String>, Vec<Lost>), Error> {
    let plan = store::plan_repair(Arc::new(disk.clone()), Path::new(DATA), &mut |_| ())?;
    let mut lost = Vec::new();
    plan.losses().for_each(&mut |line| lost.push(Lost::of(line)));
    assert_eq!(lost.len() as u64, plan.losses().len());
    let steps = plan.steps().map(str::to_string).collect();
    if !plan.is_empty() {
        plan.apply(&mut |_| ())?;
    }
    Ok((steps, lost))
}

/// What is found is true, and what is not found is listed as lost.
#[track_caller]
pub fn check_against(truth: &Answers, found: &Answers, lost: &[Lost], what: &str) {
    for (sample, bits) in found {
        assert_eq!(truth.get(sample), Some(bits), "{what}: {sample:?} is not what was sent");
    }
    for sample in truth.keys().filter(|sample| !found.contains_key(sample)) {
        assert!(lost.iter().any(|one| one.covers(sample)), "{what}: {sample:?} is lost unsaid");
    }
}

/// After a repair: clean, opens, answers the truth but for what is listed; and nothing more to do.
#[track_caller]
pub fn check_repaired(disk: &SimVfs, truth: &Answers, lost: &[Lost], what: &str) -> Answers {
    let report = verify(disk);
    assert_eq!(report.problems, Vec::<String>::new(), "{what}");
    let found = answers(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    check_against(truth, &found, lost, what);
    let (steps, _) = repair(disk).unwrap();
    assert_eq!(steps, Vec::<String>::new(), "{what}");
    found
}

/// The files below a directory, but the lock.
pub fn files(disk: &SimVfs, dir: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for name in disk.list(Path::new(dir)).unwrap() {
        let path = Path::new(dir).join(&name);
        match disk.size(&path) {
            Ok(_) if name == vfs::LOCK_FILE => {}
            Ok(_) => files.push(path),
            Err(_) => files.extend(self::files(disk, path.to_str().unwrap())),
        }
    }
    files
}

/// The path of the n-th file in a directory.
pub fn nth(disk: &SimVfs, dir: &str, n: usize) -> PathBuf {
    Path::new(dir).join(&disk.list(Path::new(dir)).unwrap()[n])
}

pub fn write(disk: &SimVfs, path: &Path, bytes: &[u8]) {
    if disk.exists(path).unwrap() {
        remove(disk, path);
    }
    let mut file = disk.create(path).unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
    disk.sync_dir(path.parent().unwrap()).unwrap();
}

pub fn remove(disk: &SimVfs, path: &Path) {
    disk.remove(path).unwrap();
    disk.sync_dir(path.parent().unwrap()).unwrap();
}

/// Turns a bit at a share of the file's length.
pub fn flip(disk: &SimVfs, path: &Path, share: f64) {
    let size = disk.size(path).unwrap();
    disk.flip_bit(path, (size as f64 * share) as u64, 3).unwrap();
}

pub fn cut(disk: &SimVfs, path: &Path, share: f64) {
    let size = disk.size(path).unwrap();
    disk.truncate(path, (size as f64 * share) as u64).unwrap();
}
