//! Rewrites of calls that only casts distinguish.

use crate::parse::text::parse_query;

#[test]
fn casts_are_told_apart_where_nothing_else_does() {
    for (text, expected) in [
        (
            "SELECT sum(x) AS a, sum(x::real) AS b FROM m",
            "SELECT sum(x) AS a, sum(cast_told_apart(x::REAL, 'real')) AS b FROM m",
        ),
        (
            "SELECT sum(x::real) AS a, avg(x) AS b FROM m",
            "SELECT sum(x::REAL) AS a, avg(x) AS b FROM m",
        ),
        (
            "SELECT sum(x::real) AS a, sum(x::real) AS b FROM m",
            "SELECT sum(x::REAL) AS a, sum(x::REAL) AS b FROM m",
        ),
    ] {
        let Ok(query) = parse_query(text) else { panic!("{text}") };
        assert_eq!(query.rephrased().statement.to_string(), expected);
    }
}
