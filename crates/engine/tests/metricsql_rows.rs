//! Aggregates of MetricsQL whose rows are made by the threads that read their samples give the
//! bits of those whose rows are made one after the other.

use engine::{MemorySource, MetricsQlOptions, QueryOptions, StepRange, Value};
use model::Labels;
use promql::Dialect;

/// More than are read by one thread.
const SERIES: u64 = 1500;

const STEPS: StepRange = StepRange { start_ms: 3_600_000, end_ms: 7_200_000, step_ms: 600_000 };

fn source() -> MemorySource {
    let mut source = MemorySource::new();
    let mut state = 3u64;
    for idx in 0..SERIES {
        let name = format!("m{}", idx % 2);
        let (host, group) = (format!("h{idx}"), format!("g{}", idx % 13));
        let labels = Labels::from_pairs(&[("__name__", &name), ("group", &group), ("host", &host)]);
        // Most have the same timestamps, some their own, some none.
        let shift_ms = if idx % 11 == 0 { (idx as i64 * 977) % 60_000 } else { 0 };
        for step in 0..if idx % 17 == 0 { 0 } else { 120 } {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(99);
            let value = (state >> 40) as f64 / 3.0 + 1.0;
            source.append(&labels, (step * 60_000 + shift_ms) * 1_000_000, value);
        }
    }
    source
}

fn ask(source: &MemorySource, text: &str) -> Vec<(Labels, Vec<(i64, u64)>)> {
    let metricsql = MetricsQlOptions { step_ms: STEPS.step_ms, ..MetricsQlOptions::default() };
    let options =
        QueryOptions { dialect: Dialect::MetricsQl, metricsql, ..QueryOptions::default() };
    let value = engine::range(source, text, STEPS, &options).expect(text).value;
    let Value::Matrix(matrix) = value else { panic!("{text}: a matrix") };
    let points = |idx| matrix.points(idx).map(|(at, value)| (at, value.to_bits())).collect();
    (0..matrix.len()).map(|idx| (matrix.labels(idx).clone(), points(idx))).collect()
}

#[test]
fn rows_of_threads_are_the_rows() {
    let source = source();
    for rollup in ["avg_over_time", "max_over_time", "sum_over_time", "rate", "median_over_time"] {
        for (aggregate, by) in
            [("avg", "group"), ("sum", "host"), ("max", "group, host"), ("count", "group")]
        {
            let rows = format!("{rollup}({{__name__=~'m.*'}}[15m])");
            let folded = ask(&source, &format!("{aggregate}({rows}) by ({by})"));
            // Behind a function the rows are kept and added up afterwards.
            let kept = ask(&source, &format!("{aggregate}(clamp_min({rows}, 0)) by ({by})"));
            assert!(!folded.is_empty());
            assert_eq!(folded, kept, "{aggregate} by {by} of {rollup}");
        }
        // Names that a rollup keeps are there to group by, others are not.
        let by_name = ask(&source, &format!("count({rollup}({{__name__=~'m.*'}})) by (__name__)"));
        let keeps = rollup != "rate" && rollup != "sum_over_time";
        assert_eq!(by_name.len(), if keeps { 2 } else { 1 }, "{rollup}");
    }
}

#[test]
fn a_window_of_no_length_has_no_samples() {
    let source = source();
    let options = QueryOptions { dialect: Dialect::MetricsQl, ..QueryOptions::default() };
    for (text, samples) in [("m0{host='h2'}[1m]", 1), ("m0{host='h2'}[1m:]", 1), ("m0[0]", 0)] {
        let value = engine::instant(&source, text, 3_600_000, &options).expect(text).value;
        let Value::Matrix(matrix) = value else { panic!("{text}: a matrix") };
        let count: usize = (0..matrix.len()).map(|idx| matrix.points(idx).count()).sum();
        assert_eq!(count, samples, "{text}");
    }
}
