//! What must hold of any bytes: no panic, and a SELECT prints as a text that prints the same.

use crate::ast::Statement;
use crate::memory::MemorySource;
use crate::{Evaluator, Limits, Parameters, Writer, parse};

/// Longer texts than this may be over the limits when they are parsed again.
const PRINTED_SIZE_MAX: usize = 64 << 10;

/// Parses the bytes and evaluates what they say over a few samples.
pub fn fuzz_influxql(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(statements) = parse(text, &Parameters::new()) else { return };
    let mut source = MemorySource::default();
    for time in 0..20 {
        let value = ((time * 7) % 11) as f64;
        let tags = [("host", if time % 2 == 0 { "a" } else { "b" })];
        source.add("m", &tags, ("f", crate::ast::DataType::Float), (time * 10, value));
        source.add("m", &tags, ("i", crate::ast::DataType::Integer), (time * 10, value));
    }
    for statement in &statements {
        if let Statement::Select(select) = statement {
            let printed = select.to_string();
            if printed.len() < PRINTED_SIZE_MAX {
                let again = parse(&printed, &Parameters::new());
                let again = again.unwrap_or_else(|e| panic!("{text:?} as {printed:?}: {e}"));
                let [Statement::Select(again)] = again.as_slice() else {
                    panic!("{text:?} as {printed:?}: no SELECT")
                };
                assert_eq!(again.to_string(), printed, "of {text:?}");
            }
        }
        let evaluator = Evaluator::new(&source, "db", 1_000, Limits::of_memory(1 << 20));
        if let Some(answer) = evaluator.run(statement) {
            let mut body = Vec::new();
            let written = Writer::default().body(&[answer], &mut body);
            let text = String::from_utf8_lossy(&body);
            let is_json = serde_json::from_slice::<serde_json::Value>(&body).is_ok();
            assert!(written.is_ok() && is_json, "{text}");
        }
    }
}
