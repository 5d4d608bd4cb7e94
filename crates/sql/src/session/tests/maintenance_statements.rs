//! `VACUUM`, `ANALYZE` and their kin as they are parsed.

use crate::session::parsed::Parsed;
use crate::session::statements::parse;

#[test]
fn what_leaves_nothing_to_be_done_is_read() {
    for (text, word) in [
        ("VACUUM", "VACUUM"),
        ("vacuum full verbose analyze a, public.\"B\" (c, d)", "VACUUM"),
        ("VACUUM (ANALYZE, PARALLEL 2) a", "VACUUM"),
        ("ANALYZE a (b)", "ANALYZE"),
        ("REINDEX (VERBOSE) TABLE CONCURRENTLY a", "REINDEX"),
        ("REINDEX DATABASE", "REINDEX"),
        ("CLUSTER a USING b", "CLUSTER"),
        ("COMMENT ON COLUMN public.a.b IS E'it\\'s'", "COMMENT"),
        ("COMMENT ON CONSTRAINT c ON a IS NULL", "COMMENT"),
    ] {
        match parse(text).map(|mut all| all.remove(0)) {
            Ok(Parsed::Define(definition)) => assert_eq!(definition.word(), word, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    for text in
        ["VACUUM a b", "ANALYZE (a", "REINDEX a", "COMMENT ON TABLE a", "COMMENT ON COLUMN b IS ''"]
    {
        assert_eq!(parse(text).map_err(|error| error.code).unwrap_err(), "42601", "{text}");
    }
}
