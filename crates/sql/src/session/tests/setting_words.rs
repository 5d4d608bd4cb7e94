//! Words as values of settings.

use crate::session::statements::parse;

#[test]
fn settings_may_be_on_and_expressions_may_not() {
    for text in [
        "SET transaction_read_only = on",
        "SET default_transaction_read_only TO on",
        "SELECT 1; SET transaction_read_only = ON; SELECT 2",
    ] {
        assert!(parse(text).is_ok(), "{text}");
    }
    for text in ["SELECT 1 = on", "SET a = b; SELECT 1 = on"] {
        assert_eq!(parse(text).err().map(|error| error.code), Some("42601"), "{text}");
    }
}
