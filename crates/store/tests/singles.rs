//! Values of single columns are found at every moment, also while their rows are on the way from the
//! arena to a part.

use crate::rows::Rows;
use crate::stores;
use model::{Matcher, TimeRange};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use store::{Durability, SelectLimits};
use vfs::SimVfs;

const NOW: i64 = 20_000 * 86_400 * 1_000_000_000;
const HOSTS: u32 = 20;
/// Batches that are written while it is read.
const ROUNDS: u64 = 6000;
/// Newest batches that a query looks for.
const NEWEST: u64 = 4;
const LIMITS: SelectLimits =
    SelectLimits { series_max: 1_000_000, deadline: None, cancelled: None, cost_max: u64::MAX };

/// Before, a query that looked whether rows with singles were taken, and took the lock again
/// to search, missed those that were taken in between.
#[test]
fn singles_are_found_while_they_are_taken() {
    let disk = SimVfs::new(1);
    disk.set_now(NOW);
    let store = stores::open(&disk, stores::config());
    let put = |fields: &[(&str, f64)], time: i64| {
        let mut rows = Rows::default();
        for host in 0..HOSTS {
            rows.push(&store.hasher(), &[("host", &format!("h{host}"))], time, fields);
        }
        store.append(&rows.batch(), Durability::Synced).unwrap();
    };
    put(&[("a", 1.0), ("b", 1.0)], NOW);
    let (acknowledged, is_done) = (AtomicU64::new(1), AtomicBool::new(false));
    let (mut queries, mut wrong) = (0u64, Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                // A row of one of an entity's two fields is a single.
                put(&[("a", 2.0)], NOW + round as i64);
                acknowledged.store(1 + round, Ordering::SeqCst);
                if round % 2 == 0 {
                    store.flush().unwrap();
                }
                if round % 150 == 0 {
                    store.force_merge("").unwrap();
                }
            }
            is_done.store(true, Ordering::SeqCst);
        });
        while !is_done.load(Ordering::SeqCst) {
            let batches = acknowledged.load(Ordering::SeqCst);
            let before = batches.min(NEWEST) * u64::from(HOSTS);
            let set = vec![Matcher::equal("__name__", "a")];
            let range = TimeRange::new(NOW + batches.saturating_sub(NEWEST) as i64, i64::MAX);
            let selection = store.select(&[set], range, &LIMITS).unwrap();
            let mut found = 0u64;
            let count = &mut |_, times: &[i64], _: &[f64]| found += times.len() as u64;
            selection.read(0..selection.len(), count).unwrap();
            queries += 1;
            if found < before {
                wrong.push((before, found));
            }
        }
    });
    println!("{queries} queries");
    assert_eq!(wrong, [], "(acknowledged, found) of {queries} queries");
}
