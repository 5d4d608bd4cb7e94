//! Rewrites of joins with `USING`.

use crate::parse::text::parse_query;

#[test]
fn merged_columns_are_those_of_the_side_that_has_them() {
    for (text, expected) in [
        ("SELECT id FROM a JOIN b USING (id)", "SELECT id FROM a JOIN b USING(id)"),
        ("SELECT id FROM a LEFT JOIN b USING (id)", "SELECT id FROM a LEFT JOIN b USING(id)"),
        (
            "SELECT id FROM a LEFT JOIN b USING (id) WHERE id > 1",
            "SELECT id FROM a LEFT JOIN b USING(id) WHERE a.id > 1",
        ),
        (
            "SELECT id FROM a RIGHT JOIN b USING (id) ORDER BY id",
            "SELECT b.id FROM a RIGHT JOIN b USING(id) ORDER BY id",
        ),
        (
            "SELECT x FROM a FULL JOIN b USING (id) WHERE id = 1 ORDER BY id",
            "SELECT x FROM a FULL JOIN b USING(id) WHERE coalesce(a.id, b.id) = 1 ORDER BY coalesce(a.id, b.id)",
        ),
        (
            "SELECT * FROM a FULL JOIN b AS c USING (id)",
            "SELECT coalesce(a.id, c.id), a.* EXCLUDE (id), c.* EXCLUDE (id) FROM a FULL JOIN b AS c USING(id)",
        ),
        (
            "SELECT id FROM a FULL JOIN b USING (id) FULL JOIN c USING (id)",
            "SELECT coalesce(coalesce(a.id, b.id), c.id) FROM a FULL JOIN b USING(id) \
             FULL JOIN c ON (coalesce(a.id, b.id) = c.id)",
        ),
    ] {
        let Ok(query) = parse_query(text) else { panic!("{text}") };
        let shown = query.rephrased().statement.to_string();
        let plain = shown.replace(" AS id", "").replace(" AS \"id\"", "").replace('"', "");
        assert_eq!(plain, expected, "{text}");
    }
    for text in [
        "SELECT id FROM a NATURAL FULL JOIN b",
        "SELECT id FROM a JOIN b ON a.x = b.y FULL JOIN c USING (id)",
    ] {
        assert_eq!(parse_query(text).map_err(|error| error.code), Err("0A000"), "{text}");
    }
}
