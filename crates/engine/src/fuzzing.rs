//! What must hold of the evaluation for any expression: no panic, bounded memory, and the same
//! answer each time.

use crate::options::{QueryLimits, QueryOptions};
use crate::query::{instant, range};
use crate::result::{QueryResult, Timings};
use crate::time::StepRange;
use crate::{MemorySource, NameRemoval};
use histogram::{Bucket, CUSTOM_SCHEMA, Histogram, ResetHint};
use model::Labels;
use model::sample::{NANOS_PER_SECOND, stale_marker};

/// A few series of all kinds: counters, gauges, buckets, gaps, stale markers, infinities, native
/// histograms.
pub fn sample_source() -> MemorySource {
    let mut source = MemorySource::new();
    let mut append = |name: &str, label: (&str, &str), at: i64, value: f64| {
        let labels = Labels::from_pairs(&[("__name__", name), label]);
        source.append(&labels, at * NANOS_PER_SECOND, value);
    };
    for idx in 0..40 {
        let at = idx * 15;
        append("a", ("x", "1"), at, idx as f64);
        append("a", ("x", "2"), at + 3, (idx % 7) as f64);
        append("b", ("x", "1"), at, if idx % 5 == 0 { stale_marker() } else { 2.5 });
        append("b", ("y", "1"), at, if idx % 9 == 0 { f64::NAN } else { -1.0 });
        append("c", ("le", "1"), at, idx as f64);
        append("c", ("le", "+Inf"), at, 2.0 * idx as f64);
    }
    append("d", ("x", "1"), 300, f64::INFINITY);
    append_histograms(&mut source);
    source
}

/// Histograms that grow, fall, change their layout, are gauges, and stand among numbers.
fn append_histograms(source: &mut MemorySource) {
    for idx in 0..40i32 {
        let at = i64::from(idx * 15) * NANOS_PER_SECOND;
        let mut append = |name: &str, label: &str, histogram: Histogram| {
            let labels = Labels::from_pairs(&[("__name__", name), ("x", label)]);
            source.append_histogram(&labels, at, histogram);
        };
        let growing = exponential(f64::from(idx % 17), 3 - idx as i8 / 16, idx % 5);
        append("h", "1", growing.clone());
        append("h", "2", Histogram { reset_hint: ResetHint::Gauge, ..growing.clone() });
        append("h", "3", custom(f64::from(idx % 13), if idx < 20 { 2.0 } else { 3.0 }));
        // The last series of "a" and "e" are now numbers, now histograms, now stale.
        match idx % 4 {
            0 => append("a", "2", growing),
            1 => append("e", "1", custom(2.0, 2.0)),
            2 => append("e", "1", growing),
            _ => append("e", "1", Histogram::stale()),
        }
    }
}

fn exponential(count: f64, schema: i8, first: i32) -> Histogram {
    let bucket = |index| Bucket { index, count };
    Histogram {
        schema,
        zero_threshold: 0.001,
        zero_count: count,
        count: 5.0 * count,
        sum: if first == 4 { f64::NAN } else { 3.0 * count },
        positive: vec![bucket(first), bucket(first + 1), bucket(first + 9)],
        negative: vec![bucket(first)],
        ..Histogram::default()
    }
}

fn custom(count: f64, bound: f64) -> Histogram {
    Histogram {
        schema: CUSTOM_SCHEMA,
        count: 2.0 * count,
        sum: 4.0 * count,
        positive: vec![Bucket { index: 0, count }, Bucket { index: 2, count }],
        custom_bounds: vec![1.0, bound],
        ..Histogram::default()
    }
}

/// Evaluates the bytes as an expression over [`sample_source`], twice.
pub fn fuzz_evaluate(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let limits =
        QueryLimits { samples_max: 20_000, memory_bytes_max: 1 << 22, ..Default::default() };
    let late = data.len().is_multiple_of(2);
    let options = QueryOptions {
        experimental_functions: true,
        limits,
        name_removal: if late { NameRemoval::Late } else { NameRemoval::AtOnce },
        ..QueryOptions::default()
    };
    let source = sample_source();
    let steps = StepRange { start_ms: 0, end_ms: 600_000, step_ms: 30_000 };
    let run = || {
        // How long it takes is the only thing that may differ.
        let untimed = |result: QueryResult| QueryResult { timings: Timings::default(), ..result };
        let at_once = instant(&source, text, 400_000, &options).map(untimed);
        let by_steps = range(&source, text, steps, &options).map(untimed);
        format!("{at_once:?} {by_steps:?}")
    };
    assert_eq!(run(), run(), "{text:?}");
}
