//! What must hold of the parser for any bytes: no panic, and printing gives an equal tree back.

use crate::{Options, parse_with};

/// Parses the bytes; what parses must print to a text that parses to the same print.
pub fn fuzz_parse(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let options = Options { experimental_functions: true, ..Options::default() };
    match parse_with(text, &options) {
        Ok(expr) => {
            let printed = expr.to_string();
            let again = parse_with(&printed, &options)
                .unwrap_or_else(|error| panic!("{text:?} printed as {printed:?}: {error}"));
            assert_eq!(again.to_string(), printed, "of {text:?}");
        }
        Err(error) => {
            assert!(error.span.start <= error.span.end, "{text:?}: {error}");
            assert!(error.span.end as usize <= text.len(), "{text:?}: {error}");
        }
    }
}
