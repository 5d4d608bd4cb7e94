//! Thousands of series that have nothing in common, each in a block of its own: their parts have long
//! directories, which are packed in memory, and are sealed some after the other.

use crate::rows::Rows;
use crate::stores;
use model::{Labels, Matcher, TimeRange};
use std::collections::BTreeMap;
use store::{Durability, SelectLimits, Store};
use vfs::SimVfs;

const MINUTE: i64 = 60_000_000_000;
const START: i64 = 1_700_000_000_000_000_000;
/// More than a directory lists plainly, and than are sealed together.
const SERIES: usize = 9_000;
const LIMITS: SelectLimits =
    SelectLimits { series_max: 1_000_000, deadline: None, cancelled: None, cost_max: u64::MAX };

/// What was written: by series and time.
type Truth = BTreeMap<(usize, i64), f64>;

fn name(series: usize) -> String {
    format!("sensor:{series}")
}

/// Of each third series nothing comes in odd rounds.
fn comes(series: usize, round: i64) -> bool {
    !series.is_multiple_of(3) || round % 2 == 0
}

fn write(store: &Store, round: i64, truth: &mut Truth) {
    let mut rows = Rows::default();
    for series in (0..SERIES).filter(|series| comes(*series, round)) {
        let time = START + round * MINUTE + (series % 7) as i64;
        let (name, id, value) = (name(series), series.to_string(), (series as i64 + round) as f64);
        let tags = [("id", id.as_str()), ("kind", "odd")];
        rows.push(&store.hasher(), &tags, time, &[(&name, value)]);
        truth.insert((series, time), value);
    }
    store.append(&rows.batch(), Durability::Synced).unwrap();
}

#[track_caller]
fn check_samples(store: &Store, truth: &Truth) {
    let set = vec![Matcher::equal("kind", "odd")];
    let selection = store.select(&[set], TimeRange::ALL, &LIMITS).unwrap();
    let labels = selection.labels_of(0..selection.len()).unwrap();
    let mut found = Truth::new();
    let read = &mut |idx: usize, times: &[i64], values: &[f64]| {
        let series: usize = labels[idx].get("id").unwrap().parse().unwrap();
        let samples = times.iter().zip(values);
        found.extend(samples.map(|(time, value)| ((series, *time), *value)));
    };
    selection.read(0..selection.len(), read).unwrap();
    assert!(found == *truth, "{} samples of {}", found.len(), truth.len());
}

fn is_surely_over(store: &Store, series: usize, start: i64) -> bool {
    let (hasher, name, id) = (store.hasher(), name(series), series.to_string());
    let tags = Labels::from_pairs(&[("id", id.as_str()), ("kind", "odd")]);
    let shape = hasher.shape(b"test", &[name.as_str().into()]);
    let labels =
        Labels::from_pairs(&[("__name__", name.as_str()), ("id", id.as_str()), ("kind", "odd")]);
    store.surely_none_since(&labels, hasher.hash(tags.as_bytes(), shape), start)
}

/// What is told at a glance is true, and it is told of all series that are over.
#[track_caller]
fn check_glances(store: &Store, truth: &Truth) {
    for series in (0..SERIES + 10).step_by(31) {
        let last = truth.range((series, i64::MIN)..(series + 1, i64::MIN)).next_back();
        let Some(((_, last), _)) = last else {
            assert!(is_surely_over(store, series, i64::MIN), "nobody wrote {series}");
            continue;
        };
        assert!(is_surely_over(store, series, last + 1), "{series} ended at {last}");
        for start in [i64::MIN, START, *last] {
            assert!(!is_surely_over(store, series, start), "{series} has a sample at {last}");
        }
    }
}

#[test]
fn odd_series_are_kept_and_told_at_a_glance() {
    let disk = SimVfs::new(1);
    disk.set_now(START + 100 * MINUTE);
    let mut store = stores::open(&disk, stores::config());
    let mut truth = Truth::new();
    check_glances(&store, &truth);
    for round in 0..8 {
        write(&store, round, &mut truth);
        check_glances(&store, &truth);
        match round {
            1 | 2 | 5 => store.flush().unwrap(),
            3 => {
                store.close().unwrap();
                drop(store);
                store = stores::open(&disk, stores::config());
            }
            4 => store.force_merge("").unwrap(),
            _ => continue,
        }
        check_glances(&store, &truth);
        check_samples(&store, &truth);
    }
    store.flush().unwrap();
    store.force_merge("").unwrap();
    check_samples(&store, &truth);
    check_glances(&store, &truth);
}

/// Several rows of a series in memory are looked at one by one, up to a bound.
#[test]
fn rows_in_memory_are_looked_at_back_to_the_latest() {
    let disk = SimVfs::new(1);
    disk.set_now(START + 1000 * MINUTE);
    let store = stores::open(&disk, stores::config());
    let put = |time: i64| {
        let mut rows = Rows::default();
        let tags = [("id", "5"), ("kind", "odd")];
        rows.push(&store.hasher(), &tags, time, &[("sensor:5", 1.0)]);
        store.append(&rows.batch(), Durability::Synced).unwrap();
    };
    put(START + 50 * MINUTE);
    for round in 0..40 {
        put(START + round * MINUTE);
    }
    // The latest came first.
    assert!(!is_surely_over(&store, 5, START + 50 * MINUTE));
    assert!(is_surely_over(&store, 5, START + 50 * MINUTE + 1));
    for round in 0..40 {
        put(START + round * MINUTE);
    }
    assert!(!is_surely_over(&store, 5, START + 51 * MINUTE), "too many to look at");
    store.flush().unwrap();
    assert!(is_surely_over(&store, 5, START + 51 * MINUTE));
    assert!(!is_surely_over(&store, 5, START + 50 * MINUTE));
}
