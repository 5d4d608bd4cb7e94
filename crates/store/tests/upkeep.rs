//! What happens to old data: retention, snapshots, deletion, backfill over years.

use crate::rows::Rows;
use model::{MatchOp, Matcher, TimeRange};
use std::path::Path;
use std::sync::Arc;
use store::{CardinalityRequest, Durability, SelectLimits, Store, StoreConfig};
use vfs::{SimVfs, Vfs};

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
const LIMITS: SelectLimits =
    SelectLimits { series_max: 1_000_000, deadline: None, cancelled: None, cost_max: u64::MAX };

fn config() -> StoreConfig {
    StoreConfig {
        background: false,
        free_disk_min: 0,
        retention_clock_wait_ns: 0,
        ..StoreConfig::standard()
    }
}

fn open(disk: &SimVfs, dir: &str, config: StoreConfig) -> Arc<Store> {
    Store::open(Arc::new(disk.clone()), Path::new(dir), config).unwrap()
}

/// One sample a day for each of `days`, of three hosts.
fn append(store: &Store, days: std::ops::Range<i64>) {
    let mut rows = Rows::default();
    for day in days {
        for host in ["a", "b", "c"] {
            rows.push(&store.hasher(), &[("host", host)], day * DAY, &[("m", day as f64)]);
        }
    }
    let batch = rows.batch();
    let appended = store.append(&batch, Durability::Synced).unwrap();
    assert_eq!(appended.samples as usize, batch.values.len());
}

fn count(store: &Store, range: TimeRange) -> usize {
    let set = vec![Matcher::new("host", MatchOp::Regex, ".+")];
    let selection = store.select(&[set], range, &LIMITS).unwrap();
    let mut count = 0;
    selection.read(0..selection.len(), &mut |_, times, _| count += times.len()).unwrap();
    count
}

#[test]
fn retention_hides_at_once_and_removes_parts_and_months() {
    let disk = SimVfs::new(1);
    disk.set_now(20_000 * DAY);
    let kept = StoreConfig { retention_ns: Some(100 * DAY), ..config() };
    let store = open(&disk, "/data", kept.clone());
    append(&store, 19_910..20_000);
    store.flush().unwrap();
    assert_eq!(count(&store, TimeRange::ALL), 3 * 90);
    let months = || disk.list(Path::new("/data/partitions")).unwrap();
    assert_eq!(months(), ["2024-07", "2024-08", "2024-09", "2024-10"]);

    disk.set_now(20_060 * DAY);
    assert_eq!(count(&store, TimeRange::ALL), 3 * 40, "older samples are invisible at once");
    store.expire().unwrap();
    assert_eq!(months(), ["2024-08", "2024-09", "2024-10"]);
    store.force_merge("").unwrap();
    disk.set_now(20_090 * DAY);
    store.expire().unwrap();
    assert_eq!(months(), ["2024-09", "2024-10"]);
    let mut rows = Rows::default();
    rows.push(&store.hasher(), &[("host", "a")], 19_900 * DAY, &[("m", 1.0)]);
    rows.push(&store.hasher(), &[("host", "a")], 20_089 * DAY, &[("m", 1.0)]);
    rows.push(&store.hasher(), &[("host", "a")], 20_099 * DAY, &[("m", 1.0)]);
    let appended = store.append(&rows.batch(), Durability::Synced).unwrap();
    assert_eq!((appended.samples, appended.rejected), (1, 2));
    assert!(appended.rejections[0].reason.contains("retention"), "{:?}", appended.rejections);
    assert!(appended.rejections[1].reason.contains("future"), "{:?}", appended.rejections);
    store.close().unwrap();
    drop(store);
    let store = open(&disk, "/data", kept);
    assert_eq!(count(&store, TimeRange::ALL), 3 * 10 + 1);
}

#[test]
fn a_snapshot_is_a_store_of_its_own() {
    let disk = SimVfs::new(2);
    disk.set_now(20_000 * DAY);
    let store = open(&disk, "/data", config());
    append(&store, 19_950..19_980);
    let name = store.create_snapshot().unwrap();
    append(&store, 19_980..20_000);
    store.delete(&[vec![Matcher::equal("host", "a")]], TimeRange::ALL).unwrap();
    store.force_merge("").unwrap();
    assert_eq!(store.snapshots().unwrap(), std::slice::from_ref(&name));
    assert_eq!(count(&store, TimeRange::ALL), 2 * 50);

    let frozen = open(&disk, &format!("/data/snapshots/{name}"), config());
    assert_eq!(count(&frozen, TimeRange::ALL), 3 * 30, "as it was");
    append(&frozen, 19_990..19_991);
    assert_eq!(count(&frozen, TimeRange::ALL), 3 * 31);
    frozen.close().unwrap();
    drop(frozen);
    assert_eq!(count(&store, TimeRange::ALL), 2 * 50, "not disturbed");
    store.delete_snapshot(&name).unwrap();
    assert_eq!(store.snapshots().unwrap(), Vec::<String>::new());
    assert!(store.delete_snapshot("../data").is_err());
}

#[test]
fn backfill_over_years_goes_to_months_of_its_own() {
    let disk = SimVfs::new(3);
    disk.set_now(20_000 * DAY);
    let store = open(&disk, "/data", config());
    append(&store, 18_000..20_000);
    append(&store, -500..-400);
    assert_eq!(count(&store, TimeRange::ALL), 3 * 2100);
    assert_eq!(count(&store, TimeRange::new(-450 * DAY, 0)), 3 * 50);
    store.close().unwrap();
    drop(store);
    let store = open(&disk, "/data", config());
    assert_eq!(count(&store, TimeRange::ALL), 3 * 2100);
    assert_eq!(store.stats().partitions, 67 + 4);
    assert_eq!(store.stats().wal_bytes, 0, "everything was flushed");
}

#[test]
fn catalog_and_cardinality_are_exact_to_the_day() {
    let disk = SimVfs::new(4);
    disk.set_now(20_000 * DAY);
    let store = open(&disk, "/data", config());
    append(&store, 19_990..19_995);
    store.flush().unwrap();
    let mut rows = Rows::default();
    rows.push(&store.hasher(), &[("zone", "z")], 19_996 * DAY + 5, &[("n", 1.0), ("o", 2.0)]);
    store.append(&rows.batch(), Durability::Synced).unwrap();

    let day = |day: i64| TimeRange::new(day * DAY, day * DAY + 1);
    let names = |range| store.strict().label_names(&[], range, &LIMITS).unwrap();
    let values =
        |name: &str, range| store.strict().label_values(name, &[], range, &LIMITS).unwrap();
    assert_eq!(names(day(19_994)), ["__name__", "host"]);
    assert_eq!(names(day(19_996)), ["__name__", "zone"], "unsealed rows, exact to the day");
    assert_eq!(names(day(19_997)), Vec::<String>::new());
    assert_eq!(values("host", day(19_994)), ["a", "b", "c"]);
    assert_eq!(values("__name__", TimeRange::ALL), ["m", "n", "o"]);
    store.delete(&[vec![Matcher::equal("host", "b")]], TimeRange::ALL).unwrap();
    assert_eq!(values("host", day(19_994)), ["a", "c"]);

    let request = CardinalityRequest {
        top_n: 2,
        day: None,
        sets: Vec::new(),
        focus_label: None,
        limits: LIMITS,
    };
    let found = store.strict().cardinality(&request).unwrap();
    assert_eq!(found.series, 2, "the newest day");
    let all = CardinalityRequest { day: Some(19_994), ..request };
    let found = store.strict().cardinality(&all).unwrap();
    assert_eq!((found.series, found.label_pairs), (2, 3));
    assert_eq!((found.by_metric[0].name.as_str(), found.by_metric[0].count), ("m", 2));
    assert_eq!(found.bytes_by_label.iter().map(|label| label.count).sum::<u64>(), 3);
}

/// One sample of each of `pods`, in a series that nobody else has, and one of a host.
fn append_pods(store: &Store, pods: std::ops::Range<u32>, timestamp: i64) {
    let mut rows = Rows::default();
    for pod in pods {
        let pod = format!("pod-{pod}");
        rows.push(&store.hasher(), &[("pod", &pod)], timestamp, &[("cpu", 1.0), ("mem", 2.0)]);
    }
    rows.push(&store.hasher(), &[("host", "a")], timestamp, &[("m", 1.0)]);
    store.append(&rows.batch(), Durability::Synced).unwrap();
}

#[test]
fn deleted_series_leave_the_index_and_may_come_back() {
    let disk = SimVfs::new(7);
    disk.set_now(20_000 * DAY);
    let store = open(&disk, "/data", config());
    let start = 19_995 * DAY;
    append_pods(&store, 0..3000, start);
    store.flush().unwrap();
    let before = store.stats();
    let pods = |from: &str| vec![vec![Matcher::new("pod", MatchOp::Regex, from)]];
    let all = |range| store.select(&pods("pod-.+"), range, &LIMITS).unwrap().len();
    let early = store.select(&pods("pod-.+"), TimeRange::ALL, &LIMITS).unwrap();
    // One of them is written again before the merge.
    store.delete(&pods("pod-.+"), TimeRange::ALL).unwrap();
    append_pods(&store, 5..6, start + SECOND);
    store.force_merge("").unwrap();
    assert_eq!(all(TimeRange::ALL), 2);
    let after = store.stats();
    assert_eq!((before.series_current, after.series_current), (6001, 3));
    assert!(after.index_bytes * 10 < before.index_bytes, "{before:?} {after:?}");
    // Who asked before the deletion has the samples, but nobody knows any more whose they are.
    assert!(early.labels(0).unwrap_err().to_string().contains("deleted while it was read"));

    append_pods(&store, 0..3000, start + 2 * SECOND);
    assert_eq!(all(TimeRange::ALL), 6000);
    let selection = store.select(&pods("pod-7"), TimeRange::ALL, &LIMITS).unwrap();
    assert_eq!(selection.len(), 2);
    let mut times = Vec::new();
    selection.read(0..1, &mut |_, found, _| times.extend_from_slice(found)).unwrap();
    assert_eq!(times, [start + 2 * SECOND], "the deleted sample does not come back");
    let after = open(&disk.crash(), "/data", config());
    assert_eq!(after.select(&pods("pod-.+"), TimeRange::ALL, &LIMITS).unwrap().len(), 6000);
    store.close().unwrap();
    let report = store::verify(Arc::new(disk.crash()), Path::new("/data"), &mut |_| ()).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

#[test]
fn metadata_survives_whatever_shortens_the_log() {
    let shorten: [fn(&Store); 2] = [
        |store| store.flush().unwrap(),
        |store| {
            store.delete(&[vec![Matcher::equal("host", "a")]], TimeRange::ALL).unwrap();
        },
    ];
    for shorten in shorten {
        let disk = SimVfs::new(6);
        disk.set_now(20_000 * DAY);
        let store = open(&disk, "/data", config());
        append(&store, 19_990..19_991);
        let entry =
            model::Metadata { metric: "m".into(), help: "days".into(), ..Default::default() };
        store.put_metadata(std::slice::from_ref(&entry)).unwrap();
        shorten(&store);
        let after = open(&disk.crash(), "/data", config());
        assert_eq!(after.metadata(Some("m"), 1), [entry]);
    }
}

#[test]
fn a_second_owner_is_refused() {
    let disk = SimVfs::new(5);
    let _store = open(&disk, "/data", config());
    let second = Store::open(Arc::new(disk.clone()), Path::new("/data"), config());
    assert!(second.is_err());
}

#[test]
fn the_background_drops_what_is_mostly_deleted() {
    let disk = SimVfs::new(8);
    disk.set_now(20_000 * DAY);
    let store = open(&disk, "/data", config());
    append_pods(&store, 0..400, 19_995 * DAY);
    store.flush().unwrap();
    let pods = |from: &str| vec![vec![Matcher::new("pod", MatchOp::Regex, from)]];
    let sizes = || (store.stats().part_samples, store.stats().series_current);
    assert_eq!(sizes(), (801, 801));
    store.delete(&pods("pod-[1-9]"), TimeRange::ALL).unwrap();
    store.merge_as_needed().unwrap();
    assert_eq!(sizes(), (801, 801), "too few to write the part again");
    store.delete(&pods("pod-[1-9].*"), TimeRange::ALL).unwrap();
    store.merge_as_needed().unwrap();
    assert_eq!(sizes(), (3, 3), "pod-0 and the host are left");
}
