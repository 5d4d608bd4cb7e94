//! Queries that ask for too much stop with an error that says so.

use engine::{
    MemorySource, QueryError, QueryLimits, QueryOptions, StepRange, Value, fuzzing, instant, range,
};
use histogram::{Bucket, Histogram};
use model::Labels;
use promql::Dialect;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

const HOUR: StepRange = StepRange { start_ms: 0, end_ms: 3_600_000, step_ms: 1_000 };

fn many_series() -> MemorySource {
    let mut source = MemorySource::new();
    for idx in 0..100 {
        let labels = Labels::from_pairs(&[("__name__", "m"), ("i", &idx.to_string())]);
        source.append(&labels, 0, f64::from(idx));
    }
    source
}

#[track_caller]
fn error(source: &MemorySource, text: &str, options: &QueryOptions) -> QueryError {
    range(source, text, HOUR, options).expect_err(text)
}

#[test]
fn samples_and_memory_are_bounded() {
    let source = many_series();
    let limits = QueryLimits { samples_max: 10_000, ..QueryLimits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    let too_many = "query processing would load too many samples into memory in query execution";
    let message = error(&source, "m", &options).to_string();
    assert!(message.starts_with(too_many), "{message}");
    assert!(message.contains("the limit is 10000 (query.max-samples)"), "{message}");
    assert_eq!(error(&source, "m + 1", &options).error_type(), "execution");
    // An aggregation holds its groups only.
    assert!(range(&source, "sum(m)", HOUR, &options).is_ok());
    let limits = QueryLimits { memory_bytes_max: 100_000, ..QueryLimits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    let message = error(&source, "m", &options).to_string();
    assert!(message.contains("the limit is 97.7 KiB (query.max-memory)"), "{message}");
}

/// `left op right` of as many selectors as 2 to the `depth`th.
fn balanced(operand: &str, op: &str, depth: usize) -> String {
    match depth {
        0 => operand.to_string(),
        depth => {
            let half = balanced(operand, op, depth - 1);
            format!("({half} {op} {half})")
        }
    }
}

#[test]
fn operands_of_one_expression_share_its_memory() {
    let source = many_series();
    // A vector of `m` takes 2.9 MB, a number at each step 29 KB.
    let limits = QueryLimits { memory_bytes_max: 10_000_000, ..QueryLimits::default() };
    let promql = QueryOptions { limits, ..QueryOptions::default() };
    let metricsql = QueryOptions { dialect: Dialect::MetricsQl, ..promql.clone() };
    let check = |text: &str, options: &QueryOptions| {
        let message = error(&source, text, options).to_string();
        assert!(message.contains("the limit is 9.5 MiB (query.max-memory)"), "{message}");
    };
    let union = |argument: &str| format!("union({})", vec![argument; 10_000].join(","));
    for argument in
        ["m", "1", "5m", "time()", "pi()", "abs(m)", "sum(m)", "quantiles(\"q\", 1, 0, m)"]
    {
        check(&union(argument), &metricsql);
    }
    check(&balanced("m", "or", 9), &promql);
    check(&balanced("m", "or", 9), &metricsql);
    // Finished parts give their memory back.
    assert!(range(&source, &balanced("sum(m)", "+", 7), HOUR, &promql).is_ok());
    assert!(range(&source, &balanced("sum(m)", "+", 7), HOUR, &metricsql).is_ok());
    let chain = vec!["m"; 3_000].join(" or ");
    let message = error(&source, &chain, &promql).to_string();
    assert!(message.contains("nested deeper than 200 levels"), "{message}");
}

#[test]
fn histograms_count_for_their_size() {
    let mut source = MemorySource::new();
    let bucket = |index| Bucket { index, count: 1.0 };
    let histogram = Histogram { positive: (0..100).map(bucket).collect(), ..Histogram::default() };
    for idx in 0..10 {
        let labels = Labels::from_pairs(&[("__name__", "h"), ("i", &idx.to_string())]);
        source.append_histogram(&labels, 0, histogram.clone());
    }
    // As Prometheus counts: 168 bytes, a span, a hundred buckets and the time, by sixteen.
    let size = (168 + 8 + 800 + 8) / 16;
    let bounded = |samples_max, memory_bytes_max| {
        let limits = QueryLimits { samples_max, memory_bytes_max, ..QueryLimits::default() };
        QueryOptions { limits, ..QueryOptions::default() }
    };
    let at_once = |text: &str, options: &QueryOptions| instant(&source, text, 0, options);
    assert!(at_once("h", &bounded(10 * size, 1 << 30)).is_ok());
    let message = at_once("h", &bounded(10 * size - 1, 1 << 30)).expect_err("too many").to_string();
    assert!(message.contains("too many samples"), "{message}");
    assert!(at_once("h[5m]", &bounded(10 * size - 1, 1 << 30)).is_err());
    assert!(at_once("sum by (i) (h)", &bounded(10 * size - 1, 1 << 30)).is_err());
    // A sum holds its groups only; where only counts are asked for no buckets are held.
    assert!(at_once("sum(h)", &bounded(3 * size, 1 << 30)).is_ok());
    assert!(at_once("histogram_count(h)", &bounded(10 * 12, 1 << 30)).is_ok());
    let message = at_once("h", &bounded(1 << 30, 16_000)).expect_err("too much").to_string();
    assert!(message.contains("the limit is 15.6 KiB (query.max-memory)"), "{message}");
}

#[test]
fn series_are_bounded() {
    let limits = QueryLimits { series_max: 99, ..QueryLimits::default() };
    let options = QueryOptions { limits, ..QueryOptions::default() };
    let message = error(&many_series(), "count(m)", &options).to_string();
    let expected = "100 series, the limit is 99 (query.max-series). Select fewer series, or raise \
                    --query.max-series";
    assert_eq!(message, expected);
}

#[test]
fn deadlines_and_cancellation_stop_a_query() {
    let source = many_series();
    let options = QueryOptions { deadline: Some(Instant::now()), ..QueryOptions::default() };
    let late = error(&source, "sum(m)", &options);
    let message = late.to_string();
    assert!(message.starts_with("query timed out in expression evaluation"), "{message}");
    assert!(message.contains("--query.timeout"), "{message}");
    assert_eq!(late.error_type(), "timeout");
    let flag = Some(Arc::new(AtomicBool::new(true)));
    let options = QueryOptions { cancelled: flag, ..QueryOptions::default() };
    let cancelled = error(&source, "sum(m)", &options);
    assert_eq!(cancelled.to_string(), "query was canceled in expression evaluation");
    assert_eq!(cancelled.error_type(), "canceled");
}

#[test]
fn times_at_the_ends_of_the_world() {
    let source = many_series();
    let options = QueryOptions::default();
    for at_ms in [i64::MIN, i64::MIN / 1_000_000, -1, 0, i64::MAX / 1_000_000, i64::MAX] {
        for text in [
            "m",
            "m[100y]",
            "rate(m[100y])",
            "m offset 100y",
            "m offset -100y",
            "m @ 9e15",
            "m @ -9e15",
            "max_over_time(m[1h:30m])",
            "predict_linear(m[1y] @ 0, 1e300)",
            "timestamp(m)",
            "day_of_year()",
            "sum_over_time(time()[1h:1m])",
        ] {
            // A value or an error, but no panic and no endless loop.
            let _ = instant(&source, text, at_ms, &options);
        }
    }
    let all = StepRange { start_ms: i64::MIN, end_ms: i64::MAX, step_ms: i64::MAX };
    assert!(range(&source, "m", all, &options).is_ok());
}

/// The deepest expressions that parse fit the stack of an ordinary thread.
#[test]
fn deep_expressions_fit_the_stack() {
    let run = || {
        let source = fuzzing::sample_source();
        let deep = |open: &str, close: &str, levels: usize| {
            format!("{}a{}", open.repeat(levels), close.repeat(levels))
        };
        let levels = promql::NESTING_MAX - 2;
        let steps = StepRange { start_ms: 0, end_ms: 60_000, step_ms: 30_000 };
        for text in [
            deep("(", ")", levels),
            deep("abs(", ")", levels),
            deep("sum(", ")", levels),
            deep("-(", ")", levels / 2 - 1),
            deep("(1 + ", ")", levels / 2 - 1),
            deep("", " + 1", levels),
            deep("", " or a", levels),
            deep("sum_over_time(", "[1m:1m])", levels / 2 - 1),
        ] {
            let result = range(&source, &text, steps, &QueryOptions::default());
            assert!(matches!(result.expect(&text).value, Value::Matrix(_)));
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run).expect("a thread");
    thread.join().expect("no overflow");
}
