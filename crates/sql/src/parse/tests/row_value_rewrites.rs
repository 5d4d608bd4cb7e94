//! Rewrites of rows as values.

use crate::parse::text::parse_query;

#[test]
fn rows_are_compared_by_columns() {
    for (text, expected) in [
        ("(a, b) = (1, 2)", "((((a) = (1)) AND ((b) = (2))))"),
        ("ROW(a, b) <> (1, 2)", "NOT ((((a) = (1)) AND ((b) = (2))))"),
        ("(a, b) IS NULL", "a IS NULL AND b IS NULL"),
        ("ROW(a, b + 1) IS NOT NULL", "a IS NOT NULL AND b + 1 IS NOT NULL"),
        ("(a, b) >= (1, 2)", "(((a) > (1)) OR (((((a) = (1)) AND ((b) >= (2))))))"),
        (
            "(a, b) IN ((1, 2), (3, 4))",
            "((((((a) = (1)) AND ((b) = (2))))) OR (((((a) = (3)) AND ((b) = (4))))))",
        ),
    ] {
        let parsed = parse_query(&format!("SELECT x FROM m WHERE {text}"));
        let Ok(query) = parsed else { panic!("{text}") };
        let shown = query.rephrased().statement.to_string();
        let shown = shown.split(" WHERE ").nth(1).unwrap_or_default();
        let plain = |text: &str| text.replace(['(', ')'], "");
        assert_eq!(plain(shown), plain(expected), "{text}");
    }
    for text in ["(a, b) = (1, 2, 3)", "(a, b) IN ((1, 2), 3)"] {
        let parsed = parse_query(&format!("SELECT x FROM m WHERE {text}"));
        assert_eq!(parsed.map_err(|error| error.code), Err("42601"), "{text}");
    }
}
