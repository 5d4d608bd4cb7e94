//! Rewrites of cells of `VALUES`.

use crate::parse::text::parse_query;

#[test]
fn cells_have_the_type_of_their_column() {
    for (text, expected) in [
        ("VALUES (true), ('f')", "VALUES (true), (CAST('f' AS BOOLEAN))"),
        ("VALUES ('x'), ('y')", "VALUES ('x'), ('y')"),
        ("VALUES (true, 'a'), (NULL, 'b')", "VALUES (true, 'a'), (NULL, 'b')"),
    ] {
        let Ok(query) = parse_query(text) else { panic!("{text}") };
        assert_eq!(query.rephrased().statement.to_string(), expected, "{text}");
    }
}
