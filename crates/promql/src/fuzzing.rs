//! What must hold of the parser for any bytes: no panic, and printing gives an equal tree back.

use crate::error::ParseError;
use crate::{Options, metricsql, parse_with};

/// Parses the bytes; what parses must print to a text that parses to the same print.
pub fn fuzz_parse(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let options = Options { experimental_functions: true };
    match parse_with(text, &options) {
        Ok(expr) => {
            let printed = expr.to_string();
            let again = parse_with(&printed, &options)
                .unwrap_or_else(|error| panic!("{text:?} printed as {printed:?}: {error}"));
            assert_eq!(again.to_string(), printed, "of {text:?}");
        }
        Err(error) => check_error(text, &error),
    }
}

/// Longer texts than this may be over the limits when they are parsed again, since templates make
/// long texts of short ones.
const PRINTED_SIZE_MAX: usize = 64 << 10;

/// As [`fuzz_parse`], for MetricsQL.
pub fn fuzz_metricsql(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match metricsql::parse(text) {
        Ok(expr) => {
            let printed = expr.to_string();
            if PRINTED_SIZE_MAX < printed.len() {
                return;
            }
            let again = metricsql::parse(&printed)
                .unwrap_or_else(|error| panic!("{text:?} printed as {printed:?}: {error}"));
            assert_eq!(again.to_string(), printed, "of {text:?}");
            let pretty = metricsql::prettify(text).unwrap_or_default();
            assert_eq!(metricsql::expand_with(&pretty), Ok(printed), "{text:?} as {pretty:?}");
        }
        Err(error) => check_error(text, &error),
    }
}

/// An error stands within its text.
fn check_error(text: &str, error: &ParseError) {
    assert!(error.span.start <= error.span.end, "{text:?}: {error}");
    assert!(error.span.end as usize <= text.len(), "{text:?}: {error}");
}
