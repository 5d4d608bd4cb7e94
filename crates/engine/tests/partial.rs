//! What is missing from an answer is said in the answer, is not kept, and can be refused.

use crate::rows::Rows;
use crate::stores;
use engine::{CacheLimits, Partial, QueryError, QueryOptions, ResultCache, StepRange, Value};
use engine::{QueryResult, instant, range, range_cached};
use promql::Dialect;
use std::path::Path;
use std::sync::Arc;
use store::{Durability, Store};
use vfs::{SimVfs, Vfs};

const SECOND: i64 = 1_000_000_000;
/// 2020-02-01.
const START_S: i64 = 1_580_515_200;

/// Two parts, an hour of samples in each, the first of which has a rotten page.
fn rotten() -> Arc<Store> {
    let disk = SimVfs::new(1);
    disk.set_now((START_S + 7200) * SECOND);
    let store = stores::open(&disk, stores::config());
    for hour in 0..2 {
        let mut rows = Rows::default();
        for second in (0..3600).step_by(15) {
            let time = (START_S + hour * 3600 + second) * SECOND;
            rows.push(&store.hasher(), &[("host", "h")], time, &[("g", 1.0)]);
        }
        store.append(&rows.batch(), Durability::Synced).unwrap();
        store.flush().unwrap();
    }
    drop(store);
    let folder = Path::new("/data/partitions/2020-02/parts");
    let first = disk.list(folder).unwrap().remove(0);
    disk.flip_bit(&folder.join(first), 30, 1).unwrap();
    stores::open(&disk, stores::config())
}

fn steps(first_s: i64, last_s: i64) -> StepRange {
    let ms = |second: i64| (START_S + second) * 1000;
    StepRange { start_ms: ms(first_s), end_ms: ms(last_s), step_ms: 15_000 }
}

fn points(result: &QueryResult) -> usize {
    match &result.value {
        Value::Matrix(matrix) => (0..matrix.len()).map(|idx| matrix.points(idx).count()).sum(),
        Value::Vector(samples) => samples.len(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check_partial(result: &QueryResult) {
    assert!(result.is_partial);
    let [warning] = &*result.warnings else { panic!("{:?}", result.warnings) };
    for piece in ["partitions/2020-02/parts/", "2020-02-01T00:00:00Z", "quipu verify --repair"] {
        assert!(warning.contains(piece), "{warning}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let store = rotten();
    for dialect in [Dialect::PromQl, Dialect::MetricsQl] {
        let options = QueryOptions { dialect, ..QueryOptions::default() };
        let both = range(&*store, "sum(g)", steps(0, 7185), &options).unwrap();
        check_partial(&both);
        assert!((230..=260).contains(&points(&both)), "{}", points(&both));
        let at = (START_S + 1800) * 1000;
        check_partial(&instant(&*store, "count_over_time(g[10m])", at, &options).unwrap());
        check_partial(&instant(&*store, "g[10m]", at, &options).unwrap());
    }
    // What does not need the page is whole.
    let at = (START_S + 7000) * 1000;
    let later = instant(&*store, "g", at, &QueryOptions::default()).unwrap();
    assert!(!later.is_partial && later.warnings.is_empty() && points(&later) == 1);
}

#[test]
fn partial_answers_can_be_denied() {
    let store = rotten();
    for dialect in [Dialect::PromQl, Dialect::MetricsQl] {
        let options = QueryOptions { dialect, partial: Partial::Deny, ..QueryOptions::default() };
        let denied = range(&*store, "g", steps(0, 7185), &options);
        let text = denied.unwrap_err().to_string();
        assert!(text.contains("partial answers are denied"), "{text}");
    }
}

#[test]
fn partial_answers_are_not_kept() {
    let store = rotten();
    let evaluation_min = std::time::Duration::ZERO;
    let limits = CacheLimits { bytes_max: 1 << 20, evaluation_min };
    let cache = ResultCache::new(limits);
    let options = QueryOptions::default();
    for _ in 0..3 {
        let result = range_cached(&*store, &cache, "sum(g)", steps(0, 7185), &options).unwrap();
        check_partial(&result);
        assert_eq!(result.stats.steps_reused, 0);
    }
    assert_eq!((cache.stats().entries, cache.stats().misses), (0, 3));
    // Steps that are kept are whole, and do not make others whole.
    let late = || range_cached(&*store, &cache, "sum(g)", steps(6000, 7185), &options).unwrap();
    assert!(!late().is_partial && late().stats.steps_reused == 80);
    let all = range_cached(&*store, &cache, "sum(g)", steps(0, 7185), &options).unwrap();
    check_partial(&all);
    assert!(!matches!(
        range_cached(&*store, &cache, "sum(g)", steps(0, 7185), &options),
        Err(QueryError::Partial(_))
    ));
}
