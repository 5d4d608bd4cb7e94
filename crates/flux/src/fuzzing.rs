//! What must hold of any bytes: no panic, and an answer that can be written.

use crate::{Annotation, Dialect, Limits, Query, run};
use influxql::ast::DataType;
use influxql::memory::MemorySource;

/// Samples of two hosts, a second apart from the epoch on.
pub fn samples() -> MemorySource {
    let mut source = MemorySource::default();
    for second in 0..20_i64 {
        let time = second * 1_000_000_000;
        let value = ((second * 7) % 11) as f64;
        for host in ["a", "b"] {
            let tags = [("host", host)];
            source.add("m", &tags, ("f", DataType::Float), (time, value + 0.5));
            source.add("m", &tags, ("i", DataType::Integer), (time, value));
            source.add("m", &tags, ("up", DataType::Boolean), (time, (second % 2) as f64));
        }
    }
    source
}

/// Evaluates the bytes as a query over a few samples, and writes what comes of it.
pub fn fuzz_flux(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let source = samples();
    let query = Query { text, external: None, parameters: None, now: 20_000_000_000 };
    let limits = Limits { memory_max: 4 << 20, is_over: &|| None };
    match run(&source, query, limits) {
        Ok(outcomes) => {
            let annotations = vec![Annotation::Datatype, Annotation::Group, Annotation::Default];
            let mut out = Vec::new();
            let dialect = Dialect { annotations, ..Dialect::default() };
            assert!(dialect.write(&outcomes, &mut out).is_ok());
            assert!(String::from_utf8(out).is_ok());
        }
        Err(error) => assert!(!error.words(text).is_empty()),
    }
}
