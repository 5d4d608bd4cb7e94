//! `PREPARE` and `EXECUTE`.

use crate::session::parsed::Parsed;
use crate::session::prepared::Template;
use crate::session::statements::parse;

fn template(text: &str) -> Template {
    match parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).remove(0) {
        Parsed::Prepare { template, .. } => template,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn values_stand_in_their_places() {
    let values = |text: &str| match parse(text).unwrap().remove(0) {
        Parsed::Execute { values, .. } => values,
        other => panic!("{text}: {other:?}"),
    };
    for (prepared, executed, expected) in [
        ("PREPARE a AS SELECT $1, 'it''s $1'", "EXECUTE a(7)", "SELECT 7, 'it''s $1'"),
        (
            "prepare \"A b\" (int, text) as SELECT $2 || $1",
            "execute \"A b\" (1 + 2, 'x''y')",
            "SELECT CAST('x''y' AS text) || CAST(1 + 2 AS int)",
        ),
        ("PREPARE a AS SELECT $1", "EXECUTE a(f(1, 2))", "SELECT (f(1, 2))"),
        ("PREPARE a AS SELECT $1", "EXECUTE a('x''y')", "SELECT ('x''y')"),
        ("PREPARE a AS SELECT $1 - $1", "EXECUTE a(-1)", "SELECT (-1) - (-1)"),
        ("PREPARE a AS SELECT \"b\"\"c\"", "EXECUTE a", "SELECT \"b\"\"c\""),
        ("PREPARE a AS SELECT E'\\n'", "EXECUTE a", "SELECT '\n'"),
    ] {
        let made = template(prepared).with_values("a", &values(executed)).unwrap();
        assert_eq!(made, expected, "{prepared}");
    }
    let one = template("PREPARE a AS SELECT $1");
    assert_eq!(one.with_values("a", &[]).map_err(|error| error.code), Err("42601"));
}

#[test]
fn what_cannot_be_read_is_said() {
    for text in [
        "PREPARE a SELECT 1",
        "PREPARE a (int AS SELECT 1",
        "PREPARE a",
        "PREPARE a AS BEGIN",
        "EXECUTE a(1",
        "EXECUTE a(1,)",
        "EXECUTE a(1) b",
    ] {
        assert_eq!(parse(text).map_err(|error| error.code), Err("42601"), "{text}");
    }
}
