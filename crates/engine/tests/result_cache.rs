//! Answers with the result cache against answers without, bit for bit: random histories of a real
//! store, asked by dashboards whose windows move.
//!
//! `SEED=n cargo test -p engine --test all result_cache` replays one history.

use crate::rows::Rows;
use crate::stores;
use engine::{CacheLimits, CacheStats, Matrix, NameRemoval, QueryOptions, ResultCache, StepRange};
use engine::{QueryResult, Value, range, range_cached};
use model::{Matcher, TimeRange};
use rng::Random;
use std::sync::Arc;
use std::time::Duration;
use store::{Durability, Store};
use vfs::SimVfs;

const SECOND: i64 = 1_000_000_000;
/// 2020-01-31 23:40: histories cross into February.
const START_S: i64 = 1_580_514_000;
const SCRAPE_S: i64 = 15;

/// Numbers whose sum depends on the order of additions.
fn any_value(random: &mut Random) -> f64 {
    match random.below(40) {
        0 => model::stale_marker(),
        1 => f64::NAN,
        2 => -0.0,
        3 => 0.0,
        4 => 7.0,
        _ => random.next() as f64 * 2f64.powi(random.below(60) as i32 - 80),
    }
}

/// What panels of dashboards ask; some of it can be kept, some cannot.
const TEXTS: &[&str] = &[
    "a_total",
    "rate(a_total[2m])",
    "sum(rate(a_total[1m]))",
    "sum by (dc) (rate(a_total[5m]))",
    "avg by (host) (g)",
    "max(sum by (dc) (rate(a_total[2m])))",
    "sum(sum by (host) (g) * 3)",
    "stddev(sum by (dc) (g))",
    "stdvar(count by (dc) (g) + avg by (dc) (g))",
    "topk(2, sum by (host) (rate(a_total[3m])))",
    "topk(3, g)",
    "bottomk by (dc) (1, g offset 2m)",
    "quantile by (dc) (0.7, g)",
    "stddev(g) / stdvar by () (g)",
    "sum(g / on (host, dc) h)",
    "sum by (dc) (g) / sum by (dc) (h)",
    "g > 1",
    "g and on (host) (h > 0)",
    "sum(g) or vector(0)",
    "g or h",
    "count by (__name__) ({dc=\"d1\"})",
    "max by (__name__) (max_over_time({dc=\"d1\"}[2m]))",
    "max by (__name__, host) (max_over_time(g[3m]))",
    "sum(max_over_time(rate(a_total[1m])[5m:30s]))",
    "max_over_time((sum by (dc) (g))[4m:1m] offset 1m)",
    "avg_over_time(g[90s] offset -45s)",
    "histogram_quantile(0.9, sum by (le) (rate(b_bucket[2m])))",
    "rate(g[2m])",
    "rate({dc=\"d1\"}[2m])",
    "label_replace(sum by (host) (g), \"x\", \"$1\", \"host\", \"(.).*\")",
    "sum by (x) (label_replace(g, \"x\", \"$1\", \"host\", \"(.).*\"))",
    "count_values(\"v\", round(g))",
    "absent(g{host=\"h0\"})",
    "absent_over_time(g{host=\"h3\"}[1m])",
    "predict_linear(g[5m], 60) + time()",
    "timestamp(g) - scalar(max(timestamp(h)))",
    "abs(-g) + clamp_max(g, 5)",
    "sort_desc(sum by (host) (g))",
    "g @ end()",
    "hour() + on () group_right () max by (dc) (g)",
    "group by (dc) (last_over_time({dc=~\"d.\"}[1m]))",
    "quantile_over_time(1.5, g[2m])",
];

/// A panel: an expression, how long its window is and how it moves.
struct Panel {
    text: &'static str,
    step_s: i64,
    steps: i64,
    options: QueryOptions,
}

struct History {
    random: Random,
    disk: SimVfs,
    store: Arc<Store>,
    cache: ResultCache,
    panels: Vec<Panel>,
    retention_ns: Option<i64>,
    now_s: i64,
    /// Hosts that are scraped at the moment.
    hosts: Vec<u64>,
}

fn empty_cache() -> ResultCache {
    ResultCache::new(CacheLimits { bytes_max: 8 << 20, evaluation_min: Duration::ZERO })
}

impl History {
    fn new(seed: u64) -> History {
        let (mut random, disk) = (Random(seed), SimVfs::new(seed));
        disk.set_now(START_S * SECOND);
        let retention_ns = seed.is_multiple_of(3).then_some(15 * 60 * SECOND);
        let store = stores::open_keeping(&disk, retention_ns);
        let panels = TEXTS.iter().map(|text| panel(&mut random, text)).collect();
        let (cache, hosts) = (empty_cache(), (0..6).collect());
        let now_s = START_S + (seed % 4) as i64 * 1200;
        History { random, disk, store, cache, panels, retention_ns, now_s, hosts }
    }

    fn step(&mut self) {
        let before_s = self.now_s;
        self.now_s += 5 + self.random.below(60) as i64;
        self.disk.set_now(self.now_s * SECOND);
        let scrapes = before_s / SCRAPE_S + 1..=self.now_s / SCRAPE_S;
        for scrape in scrapes {
            self.scrape(scrape * SCRAPE_S);
        }
        match self.random.below(24) {
            0 => self.store.flush().unwrap(),
            1 => self.store.force_merge("").unwrap(),
            2 => self.delete(),
            3..=6 => {
                // Late, by up to forty minutes.
                let late_s = self.now_s - self.random.below(2400) as i64;
                self.scrape(late_s);
            }
            7 => self.hosts.push(self.random.below(12)),
            8 if 3 < self.hosts.len() => drop(self.hosts.remove(0)),
            9 => self.store.expire().unwrap(),
            10 if self.random.below(4) == 0 => self.restart(),
            _ => {}
        }
        for idx in 0..self.panels.len() {
            if self.random.below(3) == 0 {
                self.ask(idx);
            }
        }
    }

    fn scrape(&mut self, at_s: i64) {
        let mut rows = Rows::default();
        let hasher = self.store.hasher();
        for host in self.hosts.clone() {
            if self.random.below(20) == 0 {
                continue;
            }
            let (name, dc) = (format!("h{host}"), format!("d{}", host % 3));
            let time = at_s * SECOND + self.random.below(3) as i64 * 500_000_000 / 2;
            let tags = [("dc", dc.as_str()), ("host", name.as_str())];
            let fields = [
                ("a_total", any_value(&mut self.random)),
                ("g", any_value(&mut self.random)),
                ("h", 2.5),
            ];
            let count = 1 + self.random.below(4).min(2) as usize;
            rows.push(&hasher, &tags, time, &fields[..count]);
            for le in ["0.5", "1", "+Inf"] {
                let tags = [("dc", dc.as_str()), ("host", name.as_str()), ("le", le)];
                rows.push(&hasher, &tags, time, &[("b_bucket", any_value(&mut self.random))]);
            }
        }
        self.store.append(&rows.batch(), Durability::Synced).unwrap();
    }

    fn delete(&mut self) {
        let set = vec![Matcher::equal("host", format!("h{}", self.random.below(8)))];
        let start = (self.now_s - self.random.below(1800) as i64) * SECOND;
        let end = start + self.random.below(600) as i64 * SECOND;
        self.store.delete(&[set], TimeRange::new(start, end)).unwrap();
    }

    fn restart(&mut self) {
        self.store.close().unwrap();
        // Releases the lock before the new one takes it.
        self.store = stores::open_keeping(&SimVfs::new(0), None);
        self.store = stores::open_keeping(&self.disk, self.retention_ns);
        self.cache = empty_cache();
    }

    fn ask(&mut self, idx: usize) {
        let panel = &self.panels[idx];
        let step_ms = panel.step_s * 1000;
        let end_ms = self.now_s * 1000 / step_ms * step_ms;
        let asked = StepRange { start_ms: end_ms - (panel.steps - 1) * step_ms, end_ms, step_ms };
        let (text, options) = (panel.text, &panel.options);
        let fresh = range(&*self.store, text, asked, options);
        let cached = range_cached(&*self.store, &self.cache, text, asked, options);
        match (fresh, cached) {
            (Ok(fresh), Ok(cached)) => check_same(&fresh, &cached, text),
            (Err(fresh), Err(cached)) => assert_eq!(fresh, cached, "{text}"),
            (fresh, cached) => panic!("{text}: {fresh:?} without the cache, {cached:?} with it"),
        }
    }
}

fn panel(random: &mut Random, text: &'static str) -> Panel {
    let mut options = QueryOptions::default();
    if random.below(4) == 0 {
        options.lookback_ms = 90_000;
    }
    options.name_removal = match random.below(8) {
        0 => NameRemoval::KeepOverTime,
        1 => NameRemoval::Late,
        _ => NameRemoval::AtOnce,
    };
    let step_s = [10, 15, 30, 60, 7][random.below(5) as usize];
    Panel { text, step_s, steps: 1 + random.below(120) as i64, options }
}

#[track_caller]
fn check_same(fresh: &QueryResult, cached: &QueryResult, text: &str) {
    let (Value::Matrix(a), Value::Matrix(b)) = (&fresh.value, &cached.value) else {
        panic!("{text}: not a matrix")
    };
    assert_eq!(lines(a), lines(b), "{text}");
    assert_eq!(fresh.warnings, cached.warnings, "{text}");
    assert_eq!(fresh.infos, cached.infos, "{text}");
}

/// Series in order, with times and the bits of values. Which NaN it is no answer tells.
fn lines(matrix: &Matrix) -> Vec<(String, Vec<(i64, u64)>)> {
    let bits = |value: f64| if value.is_nan() { 0x7ff8 << 48 } else { value.to_bits() };
    let series = (0..matrix.len()).map(|idx| {
        let points = matrix.points(idx).map(|(time, value)| (time, bits(value))).collect();
        (matrix.labels(idx).to_string(), points)
    });
    series.filter(|(_, points): &(_, Vec<_>)| !points.is_empty()).collect()
}

fn run(seed: u64, steps: usize) -> CacheStats {
    println!("SEED={seed}");
    let mut history = History::new(seed);
    for _ in 0..steps {
        history.step();
    }
    history.cache.stats()
}

#[test]
fn answers_are_the_same_with_and_without() {
    if let Some(seed) = rng::seed() {
        println!("{:?}", run(seed, 400));
        return;
    }
    let (mut partial, mut misses) = (0, 0);
    for seed in 1..=12 {
        let stats = run(seed, 120);
        println!("{stats:?}");
        partial += stats.hits + stats.partial;
        misses += stats.misses;
    }
    // Else nothing was tested.
    assert!(misses < partial, "{partial} answers had reused steps, {misses} had none");
}
