//! Some of a column's series are read as when all are: those that lie close together, far apart,
//! alone in a page of it or with others.

use crate::rows::Rows;
use model::{MatchOp, Matcher, TimeRange};
use std::path::Path;
use std::sync::Arc;
use store::{Durability, SelectLimits, Store, StoreConfig};
use vfs::SimVfs;

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const START: i64 = 1_700_000_000 * SECOND;
const HOSTS: usize = 240;
const LIMITS: SelectLimits =
    SelectLimits { series_max: 1_000_000, deadline: None, cancelled: None, cost_max: u64::MAX };

/// How many instants within the minute hosts are scraped at: one, a few, each its own.
fn offset(host: usize, instants: usize) -> i64 {
    (host % instants) as i64 * SECOND / 8
}

/// Whole numbers of several sizes, and now and then a fraction.
fn value(host: usize, step: i64) -> f64 {
    let number = (host as i64 * 1000 + step * (host as i64 % 5)) as f64;
    if host % 11 == 3 { number + 0.123_456_789 * step as f64 } else { number }
}

fn store(instants: usize, steps: i64) -> Arc<Store> {
    let config = StoreConfig { background: false, free_disk_min: 0, ..StoreConfig::standard() };
    let disk = SimVfs::new(1);
    disk.set_now(START + steps * MINUTE);
    let store = Store::open(Arc::new(disk), Path::new("/data"), config).unwrap();
    let mut rows = Rows::default();
    for host in 0..HOSTS {
        let (name, seventh) = (format!("h{host:03}"), (host / 2 % 7).to_string());
        let tags = [("host", name.as_str()), ("seventh", seventh.as_str())];
        for step in 0..steps {
            // One of them is there for a while only.
            if host % 13 == 5 && step % 50 > 20 {
                continue;
            }
            let time = START + step * MINUTE + offset(host, instants);
            rows.push(&store.hasher(), &tags, time, &[("m", value(host, step))]);
        }
    }
    store.append(&rows.batch(), Durability::Synced).unwrap();
    store.flush().unwrap();
    store
}

/// Reads the hosts that match in the range, and holds each against what was written.
#[track_caller]
fn check(store: &Store, matcher: Matcher, range: TimeRange, instants: usize, steps: i64) -> usize {
    let selection = store.select(&[vec![matcher]], range, &LIMITS).unwrap();
    let labels = selection.labels_of(0..selection.len()).unwrap();
    let read = &mut |idx: usize, times: &[i64], values: &[f64]| {
        let host = labels[idx].get("host").unwrap()[1..].parse::<usize>().unwrap();
        let expected = (0..steps)
            .filter(|step| host % 13 != 5 || step % 50 <= 20)
            .map(|step| (START + step * MINUTE + offset(host, instants), value(host, step)))
            .filter(|(time, _)| range.contains(*time))
            .collect::<Vec<_>>();
        let found = times.iter().copied().zip(values.iter().copied()).collect::<Vec<_>>();
        assert_eq!(found, expected, "host {host} of {}", labels.len());
    };
    selection.read(0..selection.len(), read).unwrap();
    labels.len()
}

#[test]
fn some_series_are_read_as_when_all_are() {
    for (instants, steps) in [(1, 60), (5, 60), (HOSTS, 60), (5, 5000)] {
        let store = store(instants, steps);
        let last = TimeRange::new(START + (steps - 5) * MINUTE, START + steps * MINUTE);
        for range in [TimeRange::ALL, last, TimeRange::new(START, START + 9 * MINUTE)] {
            let some = |name: &str, op, text: &str| {
                check(&store, Matcher::new(name, op, text), range, instants, steps)
            };
            assert!(some("seventh", MatchOp::Equal, "3") > HOSTS / 8);
            assert_eq!(some("host", MatchOp::Regex, "h.*"), HOSTS);
            assert_eq!(some("host", MatchOp::Regex, "h.(17|18|55|90)"), 10);
            assert_eq!(some("host", MatchOp::Equal, "h131"), 1);
        }
    }
}
