//! Who makes the series, who is new, who is never asked for, and what that costs.

use crate::rows::Rows;
use model::{Matcher, TimeRange};
use std::path::Path;
use std::sync::Arc;
use store::{CardinalityRequest, Durability, NameCount, SelectLimits, Store, StoreConfig};
use vfs::SimVfs;

const HOUR: i64 = 3600 * 1_000_000_000;
/// Noon of a day in the middle of a month.
const START: i64 = 20_010 * 24 * HOUR + 12 * HOUR;
const LIMITS: SelectLimits =
    SelectLimits { series_max: usize::MAX, deadline: None, cancelled: None, cost_max: u64::MAX };

fn open(disk: &SimVfs) -> Arc<Store> {
    disk.set_now(START);
    let config = StoreConfig { background: false, free_disk_min: 0, ..StoreConfig::standard() };
    Store::open(Arc::new(disk.clone()), Path::new("/data"), config).unwrap()
}

/// A row of each host, every host in one of two zones.
fn append(store: &Store, hosts: std::ops::Range<u32>, fields: &[&str]) {
    let mut rows = Rows::default();
    for host in hosts {
        let (name, zone) = (format!("h{host}"), format!("z{}", host % 2));
        let tags = [("host", name.as_str()), ("zone", zone.as_str())];
        let value = |name: &&str| (f64::from(host) * 1.37 + name.len() as f64).sin();
        let fields: Vec<(&str, f64)> = fields.iter().map(|name| (*name, value(name))).collect();
        rows.push(&store.hasher(), &tags, store.now(), &fields);
    }
    let appended = store.append(&rows.batch(), Durability::Synced).unwrap();
    assert_eq!(appended.rejected, 0);
}

fn request(focus_label: Option<&str>) -> CardinalityRequest {
    let focus_label = focus_label.map(str::to_string);
    CardinalityRequest { top_n: 5, day: None, sets: Vec::new(), focus_label, limits: LIMITS }
}

fn pairs(list: &[NameCount]) -> Vec<(&str, u64)> {
    list.iter().map(|row| (row.name.as_str(), row.count)).collect()
}

#[test]
fn costs_add_up() {
    let disk = SimVfs::new(1);
    let store = open(&disk);
    append(&store, 0..1000, &["cpu", "memory"]);
    append(&store, 0..1000, &["disk"]);
    let in_memory = store.strict().cardinality(&request(None)).unwrap();
    assert_eq!(in_memory.disk_bytes, 0, "nothing is on disk yet");
    assert!(10.0 < in_memory.memory_bytes_per_series, "{in_memory:?}");
    store.flush().unwrap();
    let found = store.strict().cardinality(&request(Some("zone"))).unwrap();
    assert_eq!(found.series, 3000);
    assert_eq!(pairs(&found.by_metric), [("cpu", 1000), ("disk", 1000), ("memory", 1000)]);
    assert_eq!(pairs(&found.by_label), [("__name__", 3000), ("host", 3000), ("zone", 3000)]);
    assert_eq!(pairs(&found.by_focus_value), [("z0", 1500), ("z1", 1500)]);
    let of_metrics: u64 = found.disk_bytes_by_metric.iter().map(|row| row.count).sum();
    assert_eq!(found.disk_bytes_by_metric.len(), 3);
    assert_eq!(of_metrics, found.disk_bytes, "every byte is some metric's");
    let part_bytes = store.stats().part_bytes;
    assert!(found.disk_bytes <= part_bytes && part_bytes / 2 < found.disk_bytes, "{found:?}");
    let of_zone = |zone: &str| {
        let sets = vec![vec![Matcher::equal("zone", zone)]];
        store.strict().cardinality(&CardinalityRequest { sets, ..request(None) }).unwrap()
    };
    let half = of_zone("z1");
    let share = half.disk_bytes as f64 / found.disk_bytes as f64;
    assert!((0.45..0.55).contains(&share), "{share}");
    assert_eq!(half.disk_bytes_by_pair[0].name, "zone=z1");
    // The index: hosts have most strings.
    let (name, size) = pairs(&found.index_bytes_by_label)[0];
    assert_eq!(name, "host");
    let all: u64 = found.index_bytes_by_label.iter().map(|row| row.count).sum();
    assert!(4000 < size && all < store.stats().index_bytes, "{size} {all}");
}

#[test]
fn new_series_are_told_by_hour() {
    let disk = SimVfs::new(2);
    let store = open(&disk);
    append(&store, 0..100, &["cpu"]);
    disk.set_now(START + 2 * HOUR);
    append(&store, 0..100, &["cpu"]);
    append(&store, 100..120, &["cpu"]);
    append(&store, 0..7, &["disk"]);
    let hour = START / HOUR;
    let day = store.new_series(&request(None), 24).unwrap();
    assert_eq!(day.hours, [(hour, 100), (hour + 2, 27)]);
    assert_eq!(day.series.series, 127);
    let last = store.new_series(&request(None), 1).unwrap();
    assert_eq!(last.hours, [(hour + 2, 27)]);
    assert_eq!(pairs(&last.series.by_metric), [("cpu", 20), ("disk", 7)]);
    assert_eq!(pairs(&last.series.values_by_label)[0], ("host", 27));
    let sets = vec![vec![Matcher::equal("__name__", "disk")]];
    let of_disk = CardinalityRequest { sets, ..request(None) };
    assert_eq!(store.new_series(&of_disk, 1).unwrap().series.series, 7);
    store.flush().unwrap();
    assert_eq!(store.new_series(&request(None), 24).unwrap().series.series, 127);
    disk.set_now(START + 40 * HOUR);
    append(&store, 200..201, &["cpu"]);
    let day = store.new_series(&request(None), 24).unwrap();
    assert_eq!(day.hours, [(hour + 40, 1)]);
}

#[test]
fn who_is_never_asked_for_is_told() {
    let disk = SimVfs::new(3);
    let store = open(&disk);
    append(&store, 0..10, &["cpu", "memory"]);
    let ask = |matcher| store.select(&[vec![matcher]], TimeRange::ALL, &LIMITS).unwrap().len();
    assert_eq!(store.strict().unqueried(&request(None)).unwrap().series, 20);
    assert_eq!(ask(Matcher::equal("__name__", "cpu")), 10);
    assert_eq!(ask(Matcher::equal("host", "h3")), 2);
    let check = || {
        let left = store.strict().unqueried(&request(Some("host"))).unwrap();
        assert_eq!(pairs(&left.by_metric), [("memory", 9)]);
        assert!(left.by_focus_value.iter().all(|host| host.name != "h3"));
    };
    check();
    store.flush().unwrap();
    check();
    // Lists of names are no question for samples.
    store.strict().series(&[], TimeRange::ALL, &LIMITS).unwrap();
    check();
}
