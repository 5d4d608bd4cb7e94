//! Rewrites of phrases.

use crate::parse::text::parse_query;

#[test]
fn phrases_are_calls() {
    for (text, expected) in [
        ("SELECT extract(CENTURY FROM t)", "SELECT extract_numeric('century', t)"),
        ("SELECT t AT TIME ZONE 'Asia/Tokyo'", "SELECT timezone('Asia/Tokyo', t)"),
        ("SELECT a SIMILAR TO 'b%'", "SELECT (a ~ '(?s)^(?:b.*)$')"),
        ("SELECT a NOT SIMILAR TO b", "SELECT (a !~ similar_to_escape(b))"),
        (
            "SELECT json_agg(a ORDER BY b) FILTER (WHERE c)",
            "SELECT CAST(json_array_of_gathered(array_agg(to_json(a) ORDER BY b) FILTER (WHERE c)) AS JSON)",
        ),
        (
            "SELECT make_interval(days => 3, hours => 2)",
            "SELECT make_interval(0, 0, 0, 3, 2, 0, 0)",
        ),
        ("SELECT to_timestamp(a, 'YYYY')", "SELECT to_timestamp_by_template(a, 'YYYY')"),
        (
            "SELECT date_trunc('day', t, 'Asia/Tokyo')",
            "SELECT timezone('Asia/Tokyo', date_trunc('day', timezone('Asia/Tokyo', t)))",
        ),
        ("SELECT a && b, mod(a, b)", "SELECT array_overlaps(a, b)"),
        ("SELECT position(a IN b)", "SELECT strpos(b, a)"),
        ("SELECT age(t)", "SELECT age(current_date(), t)"),
    ] {
        let Ok(query) = parse_query(text) else { panic!("{text}") };
        let shown = query.rephrased().statement.to_string();
        let shown = shown.split(" AS \"").next().unwrap_or_default();
        assert_eq!(shown, expected, "{text}");
    }
    for text in ["SELECT make_interval(moons => 3)", "SELECT mode(1) WITHIN GROUP (ORDER BY a)"] {
        assert_eq!(parse_query(text).map_err(|error| error.code), Err("42883"), "{text}");
    }
}
