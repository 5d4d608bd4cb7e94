//! Samples of each step, as Prometheus counts them for `stats=all`.

use engine::{MemorySource, QueryOptions, StepRange, StepStats, instant, range};
use histogram::{Bucket, Histogram};
use model::Labels;
use model::sample::NANOS_PER_SECOND;

/// A sample each ten seconds, to 1000 s: of one series, of three, and of one of histograms that
/// count for thirteen.
fn source() -> MemorySource {
    let mut source = MemorySource::new();
    let series = [
        Labels::from_pairs(&[("__name__", "one")]),
        Labels::from_pairs(&[("__name__", "three"), ("a", "1"), ("b", "1")]),
        Labels::from_pairs(&[("__name__", "three"), ("a", "2"), ("b", "2")]),
        Labels::from_pairs(&[("__name__", "three"), ("a", "3"), ("b", "2")]),
    ];
    let histogram = Labels::from_pairs(&[("__name__", "histogram")]);
    let bucket = |index| Bucket { index, count: 1.0 };
    for idx in 0..=100 {
        let at = 10 * idx * NANOS_PER_SECOND;
        series.iter().for_each(|labels| source.append(labels, at, 1.0 + idx as f64));
        let positive = (0..4).map(bucket).collect();
        source.append_histogram(&histogram, at, Histogram { positive, ..Histogram::default() });
    }
    source
}

fn counted() -> QueryOptions {
    let step_stats = StepStats::Counted;
    QueryOptions { step_stats, experimental_functions: true, ..QueryOptions::default() }
}

#[test]
fn an_instant_is_one_step() {
    let source = source();
    for (text, at_s, expected) in [
        ("\"literal string\"", 21, 0),
        ("1", 21, 0),
        ("one", 21, 1),
        ("histogram", 21, 13),
        ("timestamp(one)", 21, 1),
        ("timestamp(histogram)", 21, 1),
        ("one offset 10s", 21, 1),
        ("one @ 15", 21, 1),
        ("three[20s] @ 19", 21, 6),
        ("one[60s]", 201, 6),
        ("histogram[60s]", 201, 78),
        ("max_over_time(one[60s])[20s:5s]", 201, 24),
        ("max_over_time(one[61s])[20s:5s]", 201, 26),
        ("one[60s] @ 30", 201, 4),
        ("sum by (b) (max_over_time(three[60s] @ 30))", 201, 12),
        ("absent_over_time(one[60s])", 201, 6),
        ("one[60s:5s] offset 10s", 201, 12),
        ("sum(max_over_time(three[60s:5s])) + sum(max_over_time(three[60s:5s]))", 201, 72),
        ("rate(histogram[60s])", 201, 78),
        ("scalar(one) + three", 201, 4),
        ("increase(one[60s] anchored)", 500, 36),
    ] {
        let result = instant(&source, text, at_s * 1000, &counted()).expect(text);
        assert_eq!(result.step_samples, [expected], "{text}");
        let uncounted = instant(
            &source,
            text,
            at_s * 1000,
            &QueryOptions { step_stats: StepStats::Omitted, ..counted() },
        );
        assert_eq!(uncounted.expect(text).step_samples, [0; 0], "{text}");
    }
}

#[test]
fn each_step_counts_its_window() {
    let source = source();
    for (text, (start, end, step), expected) in [
        ("three{a=\"1\"}", (201, 220, 5), &[1, 1, 1, 1][..]),
        ("histogram", (204, 223, 5), &[13; 4]),
        ("timestamp(histogram)", (201, 220, 5), &[1; 4]),
        ("max_over_time(three{a=\"1\"}[10s])", (991, 1021, 10), &[1, 1, 0, 0]),
        ("max_over_time(three[60s] @ 30)", (201, 220, 5), &[12; 4]),
        ("max_over_time(three[60s])", (201, 220, 5), &[18; 4]),
        ("max_over_time(three[60s:5s])", (201, 220, 5), &[36; 4]),
        (
            "sum(max_over_time(three[60s:5s])) + sum(max_over_time(one[60s:5s]))",
            (201, 216, 5),
            &[48; 4],
        ),
        ("max_over_time(one[20s:10s])", (201, 261, 10), &[2; 7]),
        ("avg_over_time(histogram[2m:1m])", (120, 240, 60), &[26; 3]),
        ("predict_linear(one[60s] @ 100, 60)", (100, 300, 100), &[6; 3]),
        ("one + on() group_right() (three @ 30)", (1290, 1310, 10), &[4, 3, 3]),
        ("vector(1)", (0, 10, 5), &[0; 3]),
    ] {
        let steps = StepRange { start_ms: start * 1000, end_ms: end * 1000, step_ms: step * 1000 };
        let result = range(&source, text, steps, &counted()).expect(text);
        assert_eq!(result.step_samples, expected, "{text}");
    }
}
