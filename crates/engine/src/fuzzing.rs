//! What must hold of the evaluation for any expression: no panic, bounded memory, and the same
//! answer each time.

use crate::query::{QueryLimits, QueryOptions, QueryResult, StepRange, Timings, instant, range};
use crate::{MemorySource, NameRemoval};
use model::Labels;
use model::sample::{NANOS_PER_SECOND, stale_marker};

/// A few series of all kinds: counters, gauges, buckets, gaps, stale markers, infinities.
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
    source
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
