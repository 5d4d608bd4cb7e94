//! A month of churn on the simulated clock: a tenth of the pods is replaced every hour. What is
//! over costs little, and who asks for the last hour gets the pods of the last hour.

use crate::rows::Rows;
use model::{Matcher, TimeRange};
use std::path::Path;
use std::sync::Arc;
use store::{Durability, SelectLimits, Store, StoreConfig};
use vfs::SimVfs;

const MINUTE: i64 = 60 * 1_000_000_000;
const HOUR: i64 = 60 * MINUTE;
/// 2024-03-02, midnight.
const START: i64 = 19_784 * 24 * HOUR;
const HOURS: i64 = 29 * 24;
const PODS: i64 = 100;
const METRICS: [&str; 2] = ["cpu_seconds_total", "memory_bytes"];
const LIMITS: SelectLimits =
    SelectLimits { series_max: usize::MAX, deadline: None, cancelled: None, cost_max: u64::MAX };

fn open(disk: &SimVfs) -> Arc<Store> {
    let config = StoreConfig { background: false, free_disk_min: 0, ..StoreConfig::standard() };
    Store::open(Arc::new(disk.clone()), Path::new("/data"), config).unwrap()
}

/// The pods of an hour: a tenth of them is new in each.
fn pods_of(hour: i64) -> std::ops::Range<i64> {
    let first = hour * PODS / 10;
    first..first + PODS
}

/// Up to seventeen seconds of CPU, or pages of memory: four bits of news a sample.
fn noise(pod: i64, minute: i64) -> f64 {
    let bits = rng::mix((pod as u64) << 32 ^ minute as u64);
    ((bits >> 40) % 17) as f64
}

/// A scrape a minute, for an hour.
fn scrape_hour(store: &Store, disk: &SimVfs, hour: i64) {
    let start = START + hour * HOUR;
    let mut rows = Rows::default();
    for minute in 0..60 {
        for pod in pods_of(hour) {
            let age = hour * 60 + minute - pod;
            let noise = noise(pod, hour * 60 + minute);
            let values = [(age * 60) as f64 + noise, 4096.0 * (25_000.0 + noise)];
            let fields: Vec<(&str, f64)> = METRICS.into_iter().zip(values).collect();
            let (name, node) = (format!("web-{pod:08x}"), format!("node-{}", pod % 50));
            let tags = [("namespace", "shop"), ("node", &node), ("pod", &name)];
            rows.push(&store.hasher(), &tags, start + minute * MINUTE, &fields);
        }
    }
    disk.set_now(start + HOUR);
    let appended = store.append(&rows.batch(), Durability::Relaxed).unwrap();
    assert_eq!(appended.rejected, 0);
}

#[test]
fn a_month_of_churn_leaves_little_behind() {
    let disk = SimVfs::new(1);
    disk.set_now(START);
    let store = open(&disk);
    for hour in 0..HOURS {
        scrape_hour(&store, &disk, hour);
        if hour % 6 == 5 {
            store.flush().unwrap();
        }
        if hour % 48 == 47 {
            store.force_merge("").unwrap();
        }
    }
    store.flush().unwrap();
    store.force_merge("").unwrap();

    let series_in_all = METRICS.len() as i64 * pods_of(HOURS - 1).end;
    let stats = store.stats();
    assert_eq!(stats.series_current as i64, series_in_all);
    let share = stats.index_bytes as f64 / stats.part_bytes as f64;
    println!("index {} B, samples {} B: {share:.3}", stats.index_bytes, stats.part_bytes);
    assert!(share <= 0.15, "the index takes {share:.3} of what samples take");

    let last_hour = TimeRange::new(START + (HOURS - 1) * HOUR, i64::MAX);
    let name = |pod: i64| format!("web-{pod:08x}");
    let pods = |range| store.strict().label_values("pod", &[], range, &LIMITS).unwrap();
    let day = START + (HOURS - 24) * HOUR;
    let of_day: Vec<String> =
        (pods_of(HOURS - 24).start..pods_of(HOURS - 1).end).map(name).collect();
    assert_eq!(pods(TimeRange::new(day, i64::MAX)), of_day);
    let sets = [vec![Matcher::equal("__name__", METRICS[0])]];
    let selection = store.select(&sets, last_hour, &LIMITS).unwrap();
    let mut with_samples = 0;
    selection
        .read(0..selection.len(), &mut |_, times, _| {
            assert!(times.is_empty() || times.len() == 60);
            with_samples += i64::from(!times.is_empty());
        })
        .unwrap();
    assert_eq!(with_samples, PODS);
    // Blocks fill up in the order of arrival, so those of the past are left aside as a whole.
    assert!(selection.len() <= 2048, "{} series were looked at for {PODS}", selection.len());
    let new_series = store.new_series(
        &store::CardinalityRequest {
            top_n: 3,
            day: None,
            sets: Vec::new(),
            focus_label: None,
            limits: LIMITS,
        },
        1,
    );
    assert_eq!(new_series.unwrap().hours, [((START + HOURS * HOUR) / HOUR, 20)]);
}
