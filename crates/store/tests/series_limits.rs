//! Limits on series: only new ones are refused, with words that say which limit it was.

use crate::rows::Rows;
use model::{Matcher, TimeRange};
use std::path::Path;
use std::sync::Arc;
use store::{
    Appended, Durability, Error, LimitScope, SelectLimits, SeriesLimit, Store, StoreConfig,
};
use vfs::SimVfs;

const HOUR: i64 = 3600 * 1_000_000_000;
/// Noon of a day in the middle of a month.
const START: i64 = 20_010 * 24 * HOUR + 12 * HOUR;
const LIMITS: SelectLimits =
    SelectLimits { series_max: usize::MAX, deadline: None, cancelled: None, cost_max: u64::MAX };

fn limit(scope: LimitScope, [active_max, new_hourly_max, new_daily_max]: [u64; 3]) -> SeriesLimit {
    SeriesLimit { name: "test".into(), scope, active_max, new_hourly_max, new_daily_max }
}

fn open(disk: &SimVfs, limits: &[SeriesLimit]) -> Arc<Store> {
    disk.set_now(START);
    let config = StoreConfig {
        background: false,
        free_disk_min: 0,
        series_limits: limits.to_vec(),
        ..StoreConfig::standard()
    };
    Store::open(Arc::new(disk.clone()), Path::new("/data"), config).unwrap()
}

/// A row of each of these hosts.
fn try_append(
    store: &Store,
    hosts: std::ops::Range<u32>,
    fields: &[&str],
) -> Result<Appended, Error> {
    let mut rows = Rows::default();
    for host in hosts {
        let host = format!("h{host}");
        let fields: Vec<(&str, f64)> = fields.iter().map(|name| (*name, 1.0)).collect();
        rows.push(&store.hasher(), &[("host", &host), ("zone", "z")], store.now(), &fields);
    }
    store.append(&rows.batch(), Durability::Synced)
}

fn append(store: &Store, hosts: std::ops::Range<u32>, fields: &[&str]) -> Appended {
    try_append(store, hosts, fields).unwrap()
}

#[test]
fn active_series_stay_within_their_limit_and_make_room_when_they_end() {
    let none = u64::MAX;
    let disk = SimVfs::new(1);
    let store = open(&disk, &[limit(LimitScope::All, [100, none, none])]);
    let first = append(&store, 0..60, &["a", "b"]);
    assert_eq!((first.samples, first.rejected), (100, 10));
    let reason = &first.rejections[0].reason;
    assert_eq!(
        reason,
        "new series refused: 100 active series, the limit is 100 (test); leave out labels that vary, \
         or raise --test"
    );
    assert_eq!(append(&store, 0..50, &["a", "b"]).rejected, 0, "known series go on");
    assert_eq!(append(&store, 50..60, &["a", "b"]).rejected, 10);
    assert_eq!(store.stats().series_active, 100);
    assert_eq!(store.stats().series_refused_total, 40);

    // Of a row only the new values are refused, also when it comes again.
    for round in 1..3 {
        disk.set_now(START + round);
        let partly = append(&store, 0..1, &["a", "c"]);
        assert_eq!((partly.samples, partly.rejected), (1, 1));
    }
    let selection =
        store.select(&[vec![Matcher::equal("host", "h0")]], TimeRange::ALL, &LIMITS).unwrap();
    let mut counts = Vec::new();
    selection.read(0..selection.len(), &mut |_, times, _| counts.push(times.len())).unwrap();
    counts.sort_unstable();
    assert_eq!(counts, [1, 3]);

    let refusals = store.take_refusals().unwrap();
    assert_eq!(refusals.count, 42);
    assert_eq!(refusals.label, Some(("host".to_string(), 11)));
    assert_eq!(refusals.example, "c{host=\"h0\", zone=\"z\"}");
    assert_eq!(store.take_refusals(), None);

    // In the next hour half of them are still there; the hour before counts as well.
    disk.set_now(START + HOUR);
    assert_eq!(append(&store, 0..25, &["a", "b"]).rejected, 0);
    assert_eq!(append(&store, 50..60, &["a", "b"]).rejected, 10);
    disk.set_now(START + 2 * HOUR);
    assert_eq!(append(&store, 0..25, &["a", "b"]).rejected, 0);
    assert_eq!(append(&store, 50..90, &["a", "b"]).rejected, 15, "50 are active, 25 hosts fit");
    assert_eq!(store.stats().series_active, 100);
}

#[test]
fn new_series_are_counted_by_hour_and_day() {
    let none = u64::MAX;
    let disk = SimVfs::new(2);
    let store = open(&disk, &[limit(LimitScope::All, [none, 30, 50])]);
    let check = |after_hours: i64, hosts: std::ops::Range<u32>, rejected: u64, words: &str| {
        disk.set_now(START + after_hours * HOUR);
        let appended = append(&store, hosts, &["a"]);
        assert_eq!(appended.rejected, rejected, "after {after_hours} h");
        let reasons = appended.rejections.iter().all(|r| r.reason.contains(words));
        assert!(reasons, "{:?}", appended.rejections);
    };
    check(0, 0..40, 10, "30 new series in this hour, the limit is 30");
    check(1, 0..40, 0, "");
    check(1, 40..60, 10, "50 new series on this day (UTC), the limit is 50");
    check(11, 50..60, 10, "on this day");
    check(12, 0..60, 0, "");
}

#[test]
fn limits_hold_for_each_metric_and_for_what_matches() {
    let none = u64::MAX;
    let h1 = Matcher::new("host", model::MatchOp::Regex, "h1.*");
    let limits = [
        limit(LimitScope::EachMetric, [none, 20, none]),
        limit(LimitScope::Matching(vec![h1]), [5, none, none]),
    ];
    let disk = SimVfs::new(3);
    let store = open(&disk, &limits);
    // h1 and h10 to h19 match: five of their eleven may come.
    let first = append(&store, 0..20, &["a"]);
    assert_eq!((first.samples, first.rejected), (14, 6));
    assert!(first.rejections[0].reason.contains("5 active series, the limit is 5 (test)"));
    let second = append(&store, 20..30, &["a"]);
    assert_eq!((second.samples, second.rejected), (6, 4));
    let reason = &second.rejections[0].reason;
    assert!(reason.contains("20 new series in this hour of a, the limit is 20"), "{reason}");
    assert_eq!(append(&store, 20..30, &["b"]).rejected, 0, "another metric");
    disk.set_now(START + HOUR);
    assert_eq!(append(&store, 0..20, &["a"]).rejected, 6, "those that match are counted again");
}

#[test]
fn a_closed_gate_refuses_new_series_only() {
    let disk = SimVfs::new(4);
    let store = open(&disk, &[]);
    assert_eq!(append(&store, 0..5, &["a"]).rejected, 0);
    store.refuse_new_series(Some("new series refused: no memory".into()));
    // Memory that is short passes: the batch must come again, nothing of it is lost for ever.
    disk.set_now(START + 1);
    let error = try_append(&store, 0..7, &["a"]).unwrap_err();
    let Error::NewSeriesRefused { count, reason } = error else { panic!("{error}") };
    assert_eq!((count, reason.as_str()), (2, "new series refused: no memory"));
    let samples = || {
        let range = TimeRange::new(store.now(), store.now());
        let selection = store.select(&[], range, &LIMITS).unwrap();
        let mut count = 0;
        selection.read(0..selection.len(), &mut |_, times, _| count += times.len()).unwrap();
        count
    };
    assert_eq!(samples(), 5, "those of known series were taken");
    let error = try_append(&store, 0..2, &["b", "a"]).unwrap_err();
    assert!(matches!(error, Error::NewSeriesRefused { count: 2, .. }), "{error}");
    store.refuse_new_series(None);
    assert_eq!(append(&store, 0..7, &["a"]).rejected, 0);
    assert_eq!(samples(), 7);
}

#[test]
fn a_row_may_be_refused_in_part_right_behind_the_one_that_registers_its_entity() {
    let none = u64::MAX;
    // Labels that nobody shares, so that ids have no gaps: one of these meets the end of the room
    // that was made for entities.
    for known in 1020..1030 {
        let disk = SimVfs::new(5);
        let store = open(&disk, &[limit(LimitScope::All, [known + 1, none, none])]);
        let mut rows = Rows::default();
        for label in 0..known {
            let name = format!("label{label}");
            rows.push(&store.hasher(), &[(&name, "v")], store.now(), &[("a", 1.0)]);
        }
        store.append(&rows.batch(), Durability::Synced).unwrap();
        let mut rows = Rows::default();
        let tags = [("last", "v")];
        rows.push(&store.hasher(), &tags, store.now(), &[("a", 1.0)]);
        rows.push(&store.hasher(), &tags, store.now() + 1, &[("a", 2.0), ("b", 2.0)]);
        let appended = store.append(&rows.batch(), Durability::Synced).unwrap();
        assert_eq!((appended.samples, appended.rejected), (2, 1));
    }
}
