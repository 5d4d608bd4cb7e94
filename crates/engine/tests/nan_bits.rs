//! Values whose bits are those of a stale marker once their sign is changed: they are samples.

use engine::{MemorySource, QueryOptions, Value, instant};
use histogram::Histogram;
use model::{Labels, STALE_NAN_BITS};

/// The stale marker with the other sign.
fn negative_marker() -> f64 {
    f64::from_bits(STALE_NAN_BITS | 1 << 63)
}

fn source() -> MemorySource {
    let mut source = MemorySource::new();
    source.append(&Labels::from_pairs(&[("__name__", "n")]), 0, negative_marker());
    let named = |name| Labels::from_pairs(&[("__name__", name)]);
    let sum = Histogram { sum: negative_marker(), count: 1.0, ..Histogram::default() };
    source.append_histogram(&named("sum"), 0, sum);
    let count = f64::from_bits(STALE_NAN_BITS);
    source.append_histogram(
        &named("count"),
        0,
        Histogram { count, sum: 1.0, ..Histogram::default() },
    );
    source
}

#[test]
fn sign_changes_make_no_gaps() {
    let source = source();
    for text in [
        "count(n)",
        "count(abs(n))",
        "count(-n)",
        "count(-(-n))",
        "count(+(-n))",
        "count(vector(-scalar(n)))",
        "count(vector(-(-scalar(n))))",
        "count(last_over_time(abs(n)[1m:10s]))",
        "count(last_over_time((-n)[1m:10s]))",
        "count(topk(1, -n))",
        "count(sgn(-n))",
        "count(clamp(-n, -1, 1))",
        "count(round(-n))",
        "count(n % 2)",
        "count(n ^ 0)",
        "count(n atan2 1)",
        "count(-n != bool 1)",
        "count(-n or vector(1))",
        "count(histogram_sum(sum))",
        "count(histogram_sum(-sum))",
        "count(-sum)",
        "count(-sum + sum)",
        "count(histogram_count(count))",
        "count(histogram_count(-count))",
        "count(histogram_avg(sum))",
        "count(abs(histogram_sum(sum)))",
    ] {
        let result = instant(&source, text, 0, &QueryOptions::default()).expect(text);
        let Value::Vector(samples) = result.value else { panic!("{text}") };
        let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
        assert_eq!(values, [1.0], "{text}");
    }
    for text in ["abs(n)", "-n", "-scalar(n)", "histogram_sum(-sum)"] {
        let result = instant(&source, text, 0, &QueryOptions::default()).expect(text);
        let value = match result.value {
            Value::Scalar(value) => value,
            Value::Vector(samples) => samples[0].value,
            _ => panic!("{text}"),
        };
        assert!(value.is_nan() && value.to_bits() != STALE_NAN_BITS, "{text}");
    }
}
