//! Rewrites of windows.

use crate::parse::text::parse_query;

#[test]
fn named_windows_are_written_out() {
    for (text, expected) in [
        ("sum(a) OVER w FROM m WINDOW w AS (PARTITION BY b)", "sum(a) OVER (PARTITION BY b)"),
        ("sum(a) OVER (w) FROM m WINDOW w AS (PARTITION BY b)", "sum(a) OVER (PARTITION BY b)"),
        (
            "sum(a) OVER (W ORDER BY c) FROM m WINDOW w AS (PARTITION BY b)",
            "sum(a) OVER (PARTITION BY b ORDER BY c)",
        ),
        (
            "sum(a) OVER (v ROWS 1 PRECEDING) FROM m WINDOW w AS (PARTITION BY b), v AS (w ORDER BY c)",
            "sum(a) OVER (PARTITION BY b ORDER BY c ROWS 1 PRECEDING)",
        ),
    ] {
        let parsed = parse_query(&format!("SELECT {text}"));
        let Ok(query) = parsed else { panic!("{text}") };
        let shown = query.rephrased().statement.to_string();
        assert!(shown.contains(&format!("SELECT {expected} AS")), "{shown}");
    }
    for (text, code) in [
        ("sum(a) OVER w FROM m", "42704"),
        ("sum(a) OVER (w) FROM m WINDOW v AS (ORDER BY b)", "42704"),
        ("sum(a) OVER (w PARTITION BY c) FROM m WINDOW w AS (ORDER BY b)", "42P20"),
        ("sum(a) OVER (w ORDER BY c) FROM m WINDOW w AS (ORDER BY b)", "42P20"),
        ("sum(a) OVER (w) FROM m WINDOW w AS (ORDER BY b ROWS 1 PRECEDING)", "42P20"),
        ("a FROM m ORDER BY sum(a) OVER w", "42704"),
    ] {
        let parsed = parse_query(&format!("SELECT {text}"));
        assert_eq!(parsed.map_err(|error| error.code), Err(code), "{text}");
    }
}
