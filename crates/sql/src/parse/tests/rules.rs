//! Rules that statements must keep.

use crate::parse::text::parse_query;

#[test]
fn calls_stand_where_postgresql_lets_them() {
    for (text, code) in [
        ("SELECT k FROM a WHERE count(*) > 1", "42803"),
        ("SELECT k FROM a WHERE rank() OVER (ORDER BY k) = 1", "42P20"),
        ("SELECT 1 FROM a JOIN b ON sum(a.k) = b.k", "42803"),
        ("SELECT k, count(*) FROM a GROUP BY 2", "42803"),
        ("SELECT k FROM a GROUP BY rank() OVER ()", "42P20"),
        ("SELECT k FROM a GROUP BY k HAVING rank() OVER () > 1", "42P20"),
        ("SELECT sum(count(*)) FROM a", "42803"),
        ("SELECT sum(rank() OVER ()) OVER () FROM a", "42P20"),
        ("SELECT sum(k) FILTER (WHERE sum(k) > 1) FROM a", "42803"),
        ("SELECT rank() FROM a", "42809"),
        ("SELECT count(DISTINCT k) OVER () FROM a", "0A000"),
        ("SELECT k FROM a ORDER BY 9", "42P10"),
        ("SELECT k FROM a GROUP BY 9", "42P10"),
        ("SELECT k FROM a LIMIT k", "42P10"),
        ("SELECT k FROM a LIMIT -1", "2201W"),
        ("SELECT k FROM a OFFSET -1", "2201X"),
        ("WITH q AS (SELECT 1), q AS (SELECT 2) SELECT 1", "42712"),
        ("SELECT * FROM a, a", "42712"),
        ("SELECT k FROM a UNION SELECT k FROM b ORDER BY k + 1", "0A000"),
    ] {
        assert_eq!(parse_query(text).map_err(|error| error.code), Err(code), "{text}");
    }
    for text in [
        "SELECT k FROM a WHERE k > (SELECT max(k) FROM b)",
        "SELECT sum(count(*)) OVER () FROM a GROUP BY k",
        "SELECT rank(1) WITHIN GROUP (ORDER BY k) FROM a",
        "SELECT * FROM a, a AS b",
        "SELECT k FROM a UNION SELECT k FROM b ORDER BY k, 1",
    ] {
        assert!(parse_query(text).is_ok(), "{text}");
    }
}
