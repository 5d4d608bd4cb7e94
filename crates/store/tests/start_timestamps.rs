//! Start timestamps against a naive map: what restarts, merges, deletions, snapshots, retention and
//! deaths at every write leave of them, and that nobody sees the series that hold them.
//!
//! `SEED=n` chooses another history, `STRIDE=1` dies at every single operation.

use crate::damaged;
use crate::rows;
use crate::stores;
use histogram::Histogram;
use model::{Labels, Matcher, StartRow, TimeRange};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use store::{
    AppendedStarts, Durability, Error, LimitScope, SelectLimits, SeriesLimit, StartBatch, Store,
    StoreConfig, series_of_starts,
};
use vfs::{SimVfs, Vfs};

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
/// An hour before a month ends.
const START: i64 = 1_583_020_800 * SECOND - 3600 * SECOND;
const DATA: &str = "/data";
const LIMITS: SelectLimits =
    SelectLimits { series_max: usize::MAX, deadline: None, cancelled: None, cost_max: u64::MAX };

/// Milliseconds by series and time.
type Starts = BTreeMap<(Labels, i64), i64>;

fn open_at(disk: &SimVfs, dir: &str) -> Result<Arc<Store>, Error> {
    Store::open(Arc::new(disk.clone()), Path::new(dir), stores::config())
}

fn store() -> (SimVfs, Arc<Store>) {
    store_with(stores::config())
}

fn store_with(config: StoreConfig) -> (SimVfs, Arc<Store>) {
    let disk = SimVfs::new(1);
    disk.set_now(START);
    let store = Store::open(Arc::new(disk.clone()), Path::new(DATA), config).unwrap();
    (disk, store)
}

fn host(host: &str) -> Labels {
    rows::labels(&[("host", host)], "m_total")
}

/// A sample: its series, time and start timestamp, if it has one.
type Sample = (Labels, i64, Option<i64>);

/// Appends samples of the value 1, and their start timestamps, as a door does.
fn append(store: &Store, samples: &[Sample]) -> Result<AppendedStarts, Error> {
    let floats: Vec<(Labels, i64, f64)> =
        samples.iter().map(|(labels, at, _)| (labels.clone(), *at, 1.0)).collect();
    store.append(&rows::floats(&store.hasher(), &floats), Durability::Relaxed)?;
    append_starts(store, samples)
}

fn append_starts(store: &Store, samples: &[Sample]) -> Result<AppendedStarts, Error> {
    let (mut bytes, mut starts) = (Vec::new(), Vec::new());
    for (position, (labels, timestamp, start)) in (0..).zip(samples) {
        let Some(start_ms) = *start else { continue };
        let (key_offset, key) = (bytes.len() as u32, labels.as_bytes());
        bytes.extend_from_slice(key);
        let key_size = key.len() as u32;
        let timestamp = *timestamp;
        starts.push(StartRow { timestamp, start_ms, key_offset, key_size, position });
    }
    let decoder = &rows::WholeKeys;
    let batch = StartBatch { bytes: &bytes, rows: &starts, decoder, context: b"test" };
    store.append_starts(&batch, Durability::Synced)
}

fn any() -> Vec<Vec<Matcher>> {
    vec![vec![Matcher::equal("__name__", "m_total")]]
}

fn read(store: &Store, sets: &[Vec<Matcher>], range: TimeRange) -> Starts {
    let selection = store.strict().select_starts(sets, range, &LIMITS).unwrap();
    let mut found = Starts::new();
    selection
        .read(0..selection.len(), &mut |idx, times, values| {
            let labels = series_of_starts(&selection.labels(idx).unwrap());
            for (at, start) in times.iter().zip(values) {
                assert!(found.insert((labels.clone(), *at), *start as i64).is_none());
            }
        })
        .unwrap();
    found
}

fn all(store: &Store) -> Starts {
    read(store, &any(), TimeRange::ALL)
}

fn starts_of(samples: &[Sample]) -> Starts {
    let one = |(labels, at, start): &Sample| Some(((labels.clone(), *at), (*start)?));
    samples.iter().filter_map(one).collect()
}

#[test]
fn they_come_back_from_rows_and_parts_and_the_log() {
    let (disk, store) = store();
    // Over the turn of the month, one series in three without any.
    let mut expected = Starts::new();
    for round in 0..200i64 {
        let at = START + round * 60 * SECOND;
        disk.set_now(at);
        let start = |host: i64| (host != 0).then_some(round / 50 * 1_000_000 - host);
        let samples: Vec<Sample> =
            (0..3).map(|idx| (host(&idx.to_string()), at, start(idx))).collect();
        let done = append(&store, &samples).unwrap();
        assert_eq!(done, AppendedStarts { written: 2, refused: 0 });
        expected.extend(starts_of(&samples));
        if round % 40 == 20 {
            store.flush().unwrap();
        }
    }
    let check = |store: &Store| {
        assert_eq!(all(store), expected);
        let one = [vec![Matcher::equal("host", "1"), Matcher::equal("__name__", "m_total")]];
        let (from, to) = (START + 30 * 60 * SECOND, START + 90 * 60 * SECOND);
        let found = read(store, &one, TimeRange::new(from, to));
        let inside = expected
            .iter()
            .filter(|((labels, at), _)| *labels == host("1") && (from..=to).contains(at));
        assert_eq!(found, inside.map(|(key, start)| (key.clone(), *start)).collect());
        assert_eq!(read(store, &[vec![Matcher::equal("host", "0")]], TimeRange::ALL).len(), 0);
        let other = [vec![Matcher::equal("__name__", "start")]];
        assert_eq!(read(store, &other, TimeRange::ALL).len(), 0);
    };
    check(&store);
    check(&open_at(&disk.crash(), DATA).unwrap());
    store.force_merge("").unwrap();
    check(&store);
    let name = store.create_snapshot().unwrap();
    check(&open_at(&disk, &format!("{DATA}/snapshots/{name}")).unwrap());
    store.close().unwrap();
    drop(store);
    check(&open_at(&disk, DATA).unwrap());
    let report = store::verify(Arc::new(disk.clone()), Path::new(DATA), &mut |_| ()).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

#[test]
fn nobody_sees_the_series_that_hold_them() {
    let (_disk, store) = store();
    let now = store.now();
    append(&store, &[(host("a"), now, Some(5)), (host("b"), now, None)]).unwrap();
    let histogram = (host("c"), now, rows::histogram(3));
    let batch = rows::histograms(std::slice::from_ref(&histogram));
    store.append_histograms(&batch, Durability::Synced).unwrap();
    append_starts(&store, &[(host("c"), now, Some(7))]).unwrap();
    assert_eq!(all(&store).len(), 2);
    for sets in [vec![], any(), vec![vec![Matcher::equal("__quipu_run__", "start")]]] {
        let found = store.strict().series(&sets, TimeRange::ALL, &LIMITS).unwrap();
        let hosts: Vec<&str> = found.iter().filter_map(|labels| labels.get("host")).collect();
        let expected: &[&str] = if sets.iter().flatten().any(|m| m.name != "__name__") {
            &[]
        } else {
            &["a", "b", "c"]
        };
        assert_eq!(hosts, expected);
    }
    let names = store.strict().label_names(&[], TimeRange::ALL, &LIMITS).unwrap();
    assert_eq!(names, ["__name__", "host"]);
    let metrics = store.strict().label_values("__name__", &[], TimeRange::ALL, &LIMITS).unwrap();
    assert_eq!(metrics, ["m_total"]);
    // Floats with start timestamps are read the plain way, histograms as ever.
    let floats = vec![vec![Matcher::equal("host", "a")]];
    assert!(!store.select(&floats, TimeRange::ALL, &LIMITS).unwrap().has_histograms());
    let selection = store.select(&any(), TimeRange::ALL, &LIMITS).unwrap();
    let mut found: Vec<(usize, Vec<Histogram>)> = Vec::new();
    selection
        .read_mixed(0..selection.len(), &mut |_, times, _, _, histograms| {
            found.push((times.len(), histograms.to_vec()));
        })
        .unwrap();
    found.sort_by_key(|one| one.1.len());
    assert_eq!(found, [(1, vec![]), (1, vec![]), (0, vec![histogram.2])]);
}

#[test]
fn deletion_takes_them_along() {
    let (_disk, store) = store();
    let now = store.now();
    append(&store, &[(host("a"), now, Some(5)), (host("b"), now, Some(6))]).unwrap();
    store.delete(&[vec![Matcher::equal("host", "a")]], TimeRange::ALL).unwrap();
    assert_eq!(all(&store), starts_of(&[(host("b"), now, Some(6))]));
    store.force_merge("").unwrap();
    assert_eq!(all(&store), starts_of(&[(host("b"), now, Some(6))]));
}

#[test]
fn limits_refuse_them_and_not_their_samples() {
    let limit = SeriesLimit {
        name: "test".into(),
        scope: LimitScope::EachMetric,
        active_max: 3,
        new_hourly_max: u64::MAX,
        new_daily_max: u64::MAX,
    };
    let config = StoreConfig { series_limits: vec![limit], ..stores::config() };
    let (_disk, store) = store_with(config);
    let now = store.now();
    let samples = [(host("a"), now, Some(5)), (host("b"), now, Some(6))];
    assert_eq!(append(&store, &samples).unwrap(), AppendedStarts { written: 1, refused: 1 });
    assert_eq!(store.select(&any(), TimeRange::ALL, &LIMITS).unwrap().len(), 2);
    assert_eq!(all(&store), starts_of(&samples[..1]));
    // Known ones go on; a time that is not accepted is refused, too.
    let later = [(host("a"), now + 1, Some(5)), (host("a"), now + 30 * DAY, Some(5))];
    let done = append_starts(&store, &later).unwrap();
    assert_eq!(done, AppendedStarts { written: 1, refused: 1 });
}

#[test]
fn rot_costs_them_and_not_their_samples_and_is_listed_as_lost() {
    let disk = SimVfs::new(9);
    disk.set_now(START);
    let store = open_at(&disk, DATA).unwrap();
    for round in 0..60 {
        let at = START + round as i64 * 30 * SECOND;
        let sample = |idx: u64| (host(&idx.to_string()), at, Some(mix(9, round, idx) as i64 >> 20));
        append(&store, &(0..4).map(sample).collect::<Vec<_>>()).unwrap();
    }
    store.flush().unwrap();
    drop(store);
    let disk = damaged::settled(&disk);
    let truth = damaged::answers(&disk).unwrap();
    let starts = all(&open_at(&damaged::copy(&disk), DATA).unwrap());
    assert_eq!((truth.len(), starts.len()), (240, 240));
    let part = damaged::nth(&disk, "/data/partitions/2020-02/parts", 0);
    let mut alone = 0;
    for idx in 0..32 {
        let hurt = damaged::copy(&disk);
        damaged::flip(&hurt, &part, f64::from(idx) / 32.0);
        let (_, lost) = damaged::repair(&hurt).unwrap();
        let what = format!("flip {idx}");
        let found = damaged::check_repaired(&hurt, &truth, &lost, &what);
        let left = all(&open_at(&hurt, DATA).unwrap());
        for (key, start) in &left {
            assert_eq!(starts.get(key), Some(start), "{what}: {key:?}");
        }
        for key in starts.keys().filter(|key| !left.contains_key(key)) {
            assert!(lost.iter().any(|one| one.covers(key)), "{what}: {key:?} is lost unsaid");
        }
        alone += usize::from(found.len() == truth.len() && left.len() < starts.len());
    }
    assert!(0 < alone, "no page of start timestamps was hit");
}

fn mix(seed: u64, round: u64, salt: u64) -> u64 {
    rng::mix(seed ^ (round << 20) ^ (salt << 40))
}

/// Does the history until the disk fails. Of the two maps the first is what was acknowledged, the
/// second what may be there as well.
fn live(disk: &SimVfs, seed: u64, maps: &mut [Starts; 2]) -> Result<(), Error> {
    disk.set_now(START);
    let mut store = open_at(disk, DATA)?;
    for round in 0..24 {
        disk.set_now(START + round as i64 * 300 * SECOND);
        let sample = |idx: u64| {
            let start = (!mix(seed, round, 10 + idx).is_multiple_of(3))
                .then(|| mix(seed, round / 5, 30 + idx) as i64 % 1_000_000_000);
            (host(&idx.to_string()), store.now() + idx as i64, start)
        };
        let samples: Vec<Sample> = (0..4).map(sample).collect();
        maps[1].extend(starts_of(&samples));
        append(&store, &samples)?;
        maps[0] = maps[1].clone();
        match mix(seed, round, 2) % 8 {
            0 | 1 => store.flush()?,
            2 => {
                maps[0].retain(|(labels, _), _| *labels != host("1"));
                store.delete(&[vec![Matcher::equal("host", "1")]], TimeRange::ALL)?;
                maps[1] = maps[0].clone();
            }
            3 => drop(store.create_snapshot()?),
            4 => {
                store.close()?;
                drop(store);
                store = open_at(disk, DATA)?;
            }
            5 => store.force_merge("")?,
            _ => {}
        }
        assert_eq!(all(&store), maps[0], "round {round}");
    }
    store.close()
}

fn check(disk: &SimVfs, maps: &[Starts; 2], death: u64) {
    if !disk.exists(Path::new("/data/partitions")).unwrap() {
        assert!(maps[0].is_empty(), "death {death}: the store is gone");
        return;
    }
    let store = open_at(disk, DATA).unwrap();
    let found = all(&store);
    let lost = maps[0].iter().find(|(key, start)| found.get(key) != Some(start));
    assert_eq!(lost, None, "death {death}");
    let strange = found.iter().find(|(key, start)| maps[1].get(key) != Some(start));
    assert_eq!(strange, None, "death {death}");
    drop(store);
    let report = store::verify(Arc::new(disk.clone()), Path::new(DATA), &mut |_| ()).unwrap();
    assert_eq!(report.problems, Vec::<String>::new(), "death {death}");
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn a_death_at_every_write_leaves_what_was_acknowledged() {
    let seed = number("SEED", 5);
    let whole = SimVfs::new(seed);
    let mut maps = <[Starts; 2]>::default();
    live(&whole, seed, &mut maps).unwrap();
    let operations = whole.operations();
    check(&whole, &maps, u64::MAX);
    println!("SEED={seed}: {operations} operations");
    assert!(200 < operations, "the history writes too little to be a test");
    for death in (0..operations).step_by(number("STRIDE", 2) as usize) {
        let disk = SimVfs::new(seed ^ death);
        disk.fail_after(death);
        let mut maps = <[Starts; 2]>::default();
        live(&disk, seed, &mut maps).expect_err("the disk fails");
        let after = disk.crash();
        check(&after, &maps, death);
        // Whatever recovery did must be durable, too: die again, at once.
        check(&after.crash(), &maps, death);
    }
}
