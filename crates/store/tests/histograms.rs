//! Native histograms: what goes in comes out, and nobody sees the series that hold them.

mod rows;

use histogram::{Bucket, Histogram, ResetHint};
use model::{Labels, LabelsBuilder, MatchOp, Matcher, TimeRange};
use rows::Rows;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use store::{
    CardinalityRequest, Durability, Error, LimitScope, SelectLimits, SeriesLimit, Store,
    StoreConfig,
};
use vfs::SimVfs;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
const LIMITS: SelectLimits =
    SelectLimits { series_max: 1_000_000, deadline: None, cost_max: u64::MAX };
/// 2020-02-01.
const START: i64 = 18_293 * DAY;

fn config() -> StoreConfig {
    StoreConfig { background: false, free_disk_min: 0, ..StoreConfig::standard() }
}

fn open_with(config: StoreConfig) -> (SimVfs, Arc<Store>) {
    let disk = SimVfs::new(1);
    disk.set_now(START + 10 * DAY);
    let store = Store::open(Arc::new(disk.clone()), Path::new("/data"), config).unwrap();
    (disk, store)
}

fn open() -> (SimVfs, Arc<Store>) {
    open_with(config())
}

fn labels(metric: &str, job: &str) -> Labels {
    Labels::from_pairs(&[("__name__", metric), ("job", job)])
}

#[track_caller]
fn put(store: &Store, list: &[(Labels, i64, Histogram)]) {
    let appended = store.append_histograms(&rows::histograms(list), Durability::Synced).unwrap();
    assert_eq!((appended.samples as usize, appended.rejected), (list.len(), 0), "{appended:?}");
}

#[track_caller]
fn put_floats(store: &Store, list: &[(Labels, i64, f64)]) {
    let batch = rows::floats(&store.hasher(), list);
    let appended = store.append(&batch, Durability::Synced).unwrap();
    assert_eq!((appended.samples as usize, appended.rejected), (list.len(), 0), "{appended:?}");
}

/// Bits of floats, and histograms, by time.
type Found = BTreeMap<Labels, (Vec<(i64, u64)>, Vec<(i64, Histogram)>)>;

#[track_caller]
fn read(store: &Store, sets: &[Vec<Matcher>], range: TimeRange) -> Found {
    let selection = store.select(sets, range, &LIMITS).unwrap();
    let mut found = Found::new();
    selection
        .read_mixed(0..selection.len(), &mut |idx, times, values, histogram_times, histograms| {
            assert_eq!((times.len(), histogram_times.len()), (values.len(), histograms.len()));
            let floats = times.iter().zip(values).map(|(t, v)| (*t, v.to_bits())).collect();
            let histograms =
                histogram_times.iter().copied().zip(histograms.iter().cloned()).collect();
            let labels = selection.labels(idx).unwrap();
            assert!(found.insert(labels, (floats, histograms)).is_none());
        })
        .unwrap();
    let mut next = 0;
    selection
        .read(0..selection.len(), &mut |idx, times, values| {
            assert_eq!(idx, next);
            next += 1;
            let floats: Vec<(i64, u64)> =
                times.iter().zip(values).map(|(t, v)| (*t, v.to_bits())).collect();
            assert_eq!(found[&selection.labels(idx).unwrap()].0, floats);
        })
        .unwrap();
    let has_any = found.values().any(|(_, histograms)| !histograms.is_empty());
    assert!(selection.has_histograms() || !has_any);
    found
}

fn job(value: &str) -> Vec<Vec<Matcher>> {
    vec![vec![Matcher::equal("job", value)]]
}

#[test]
fn histograms_come_back_from_rows_and_parts_and_the_log() {
    let (disk, store) = open();
    let series = labels("h", "a");
    let all: Vec<(i64, Histogram)> =
        (0..200).map(|i| (START + i * 15 * SECOND, rows::histogram(i as u64))).collect();
    for (idx, some) in all.chunks(7).enumerate() {
        let list: Vec<_> = some.iter().map(|(t, h)| (series.clone(), *t, h.clone())).collect();
        put(&store, &list);
        if idx % 9 == 3 {
            store.flush().unwrap();
        }
    }
    let check = |store: &Store| {
        let found = read(store, &job("a"), TimeRange::ALL);
        assert_eq!(found, Found::from([(series.clone(), (Vec::new(), all.clone()))]));
        let range = TimeRange::new(all[50].0, all[120].0 - 1);
        let found = read(store, &job("a"), range);
        assert_eq!(found[&series].1, all[50..120]);
    };
    check(&store);
    let crashed = Store::open(Arc::new(disk.crash()), Path::new("/data"), config()).unwrap();
    check(&crashed);
    store.force_merge("").unwrap();
    check(&store);
    store.close().unwrap();
    drop(store);
    let store = Store::open(Arc::new(disk), Path::new("/data"), config()).unwrap();
    check(&store);
}
