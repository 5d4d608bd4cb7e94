//! Samples at both ends of time: what a writer accepts every later start reads.

use crate::rows::Rows;
use crate::stores;
use model::{MatchOp, Matcher, TimeRange};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use store::{Durability, PartitionLength, SelectLimits, Store, StoreConfig, verify};
use vfs::SimVfs;

const DAY: i64 = 86_400_000_000_000;
const NOW: i64 = 20_000 * DAY;
const LIMITS: SelectLimits =
    SelectLimits { series_max: usize::MAX, deadline: None, cancelled: None, cost_max: u64::MAX };

/// Instants at the ends of time, and around the first instant of the last period.
fn instants(length: PartitionLength) -> Vec<i64> {
    let last = length.of(i64::MAX).range().start;
    let first = length.of(i64::MIN).range().end;
    let mut instants = vec![i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
    instants.extend([first, first + 1, last - 1, last]);
    // Milliseconds, as clients send them.
    instants.extend([9_223_372_030_000_000_000, -9_223_372_030_000_000_000]);
    instants
}

fn open(disk: &SimVfs, length: PartitionLength) -> Arc<Store> {
    let partition_length = Some(length);
    stores::open(
        disk,
        StoreConfig { partition_length, future_ns_max: i64::MAX, ..stores::config() },
    )
}

fn samples(store: &Store) -> BTreeMap<i64, f64> {
    let set = vec![Matcher::new("host", MatchOp::Regex, ".+")];
    let selection = store.select(&[set], TimeRange::ALL, &LIMITS).unwrap();
    let mut samples = BTreeMap::new();
    let read = &mut |_: usize, times: &[i64], values: &[f64]| {
        samples.extend(times.iter().copied().zip(values.iter().copied()));
    };
    selection.read(0..selection.len(), read).unwrap();
    samples
}

fn check_verified(disk: &SimVfs) {
    let report = verify(Arc::new(disk.clone()), Path::new("/data"), &mut |_| {}).unwrap();
    assert_eq!(report.problem_count(), 0, "{:?}", report.problems);
}

#[test]
fn every_instant_is_stored_and_read_after_a_kill_and_a_flush() {
    for length in PartitionLength::ALL {
        let disk = SimVfs::new(1);
        disk.set_now(NOW);
        let store = open(&disk, length);
        let mut expected = BTreeMap::new();
        for (instant, value) in instants(length).into_iter().zip(1..) {
            let mut rows = Rows::default();
            let value = f64::from(value);
            rows.push(&store.hasher(), &[("host", "a")], instant, &[("m", value)]);
            let appended = store.append(&rows.batch(), Durability::Synced).unwrap();
            assert_eq!(appended.rejected, 0, "{instant}: {:?}", appended.rejections);
            expected.insert(instant, value);
        }
        // The partition behind the last one has no time, so nothing is prepared for it.
        store.prepare_rollover_fully().unwrap();
        drop(store);
        let disk = disk.kill();
        check_verified(&disk);
        let store = open(&disk, length);
        assert_eq!(samples(&store), expected, "{length}: from the log");
        store.prepare_rollover_fully().unwrap();
        store.flush().unwrap();
        assert_eq!(samples(&store), expected, "{length}: from parts");
        drop(store);
        let disk = disk.kill();
        check_verified(&disk);
        let store = open(&disk, length);
        assert_eq!(samples(&store), expected, "{length}: after another start");
        store.force_merge("").unwrap();
        assert_eq!(samples(&store), expected, "{length}: merged");
    }
}
