//! Rollover: prepared ahead, the next month knows the active series before their first
//! sample; unprepared, nothing is different but the cost.

use crate::rows::Rows;
use model::TimeRange;
use std::path::Path;
use std::sync::Arc;
use store::{Durability, SelectLimits, SeriesLimit, Store, StoreConfig};
use vfs::{SimVfs, Vfs};

const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3600 * SECOND;
/// 2024-03-01, midnight.
const TURN: i64 = 19_783 * 24 * HOUR;
const LIMITS: SelectLimits =
    SelectLimits { series_max: usize::MAX, deadline: None, cancelled: None, cost_max: u64::MAX };

fn open(disk: &SimVfs) -> Arc<Store> {
    let new_only = SeriesLimit {
        name: "test".into(),
        scope: store::LimitScope::All,
        active_max: u64::MAX,
        new_hourly_max: 5000,
        new_daily_max: u64::MAX,
    };
    let config = StoreConfig {
        background: false,
        free_disk_min: 0,
        series_limits: vec![new_only],
        ..StoreConfig::standard()
    };
    Store::open(Arc::new(disk.clone()), Path::new("/data"), config).unwrap()
}

/// A row of each host, now. Fields of some differ, so that there are several blocks and pieces.
fn scrape(store: &Store, hosts: std::ops::Range<u32>) -> u64 {
    let mut rows = Rows::default();
    for host in hosts {
        let fields: &[(&str, f64)] = match host % 3 {
            0 => &[("a", 1.0)],
            _ => &[("a", 1.0), ("b", 2.0)],
        };
        let host = format!("h{host}");
        rows.push(&store.hasher(), &[("host", &host), ("zone", "z")], store.now(), fields);
    }
    let appended = store.append(&rows.batch(), Durability::Synced).unwrap();
    assert_eq!(appended.rejected, 0, "{:?}", appended.rejections);
    appended.samples
}

fn months(disk: &SimVfs) -> Vec<String> {
    let mut names = disk.list(Path::new("/data/partitions")).unwrap();
    names.sort();
    names
}

#[test]
fn active_series_are_known_in_the_new_month_before_it_begins() {
    let disk = SimVfs::new(1);
    disk.set_now(TURN - 8 * HOUR);
    let store = open(&disk);
    scrape(&store, 0..2000);
    store.prepare_rollover_fully().unwrap();
    store.flush().unwrap();
    assert_eq!(months(&disk), ["2024-02"], "too early");

    // A thousand have ended meanwhile.
    disk.set_now(TURN - 5 * HOUR);
    scrape(&store, 0..1000);
    store.prepare_rollover_fully().unwrap();
    assert_eq!(store.stats().series_current, 3333, "of the month that has samples");
    let listed = |store: &Store| store.strict().series(&[], TimeRange::ALL, &LIMITS).unwrap().len();
    assert_eq!(listed(&store), 3333);
    store.flush().unwrap();
    store.flush().unwrap();
    assert_eq!(months(&disk), ["2024-02", "2024-03"]);

    let new_before = store.stats().series_new_total;
    disk.set_now(TURN + SECOND);
    assert_eq!(scrape(&store, 0..1000), 1666);
    let new = store.stats().series_new_total - new_before;
    assert_eq!(new, 0, "the first scrape of the month registers nobody");
    assert_eq!(scrape(&store, 1000..1010), 17);
    assert_eq!(store.stats().series_new_total - new_before, 17, "who had ended is new");
    let range = TimeRange::new(TURN, i64::MAX);
    assert_eq!(store.select(&[], range, &LIMITS).unwrap().len(), 1683);

    // The registrations are in the log, before the rows that need them.
    let after = open(&disk.crash());
    assert_eq!(after.select(&[], range, &LIMITS).unwrap().len(), 1683);
    assert_eq!(after.select(&[], TimeRange::ALL, &LIMITS).unwrap().len(), 3333);
    store.close().unwrap();
    let report = store::verify(Arc::new(disk.crash()), Path::new("/data"), &mut |_| ()).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

#[test]
fn a_merge_of_the_coming_month_does_not_mislead_the_keys() {
    let disk = SimVfs::new(2);
    disk.set_now(TURN - HOUR);
    let store = open(&disk);
    scrape(&store, 0..100);
    store.prepare_rollover_fully().unwrap();
    store.flush().unwrap();
    // Forgets who has no sample: everybody.
    store.force_merge("2024-03").unwrap();
    store.prepare_rollover().unwrap();
    store.force_merge("2024-03").unwrap();
    disk.set_now(TURN);
    let samples = scrape(&store, 0..100);
    let selection = store.select(&[], TimeRange::new(TURN, i64::MAX), &LIMITS).unwrap();
    let mut count = 0;
    selection.read(0..selection.len(), &mut |_, times, _| count += times.len() as u64).unwrap();
    assert_eq!(count, samples);
}
