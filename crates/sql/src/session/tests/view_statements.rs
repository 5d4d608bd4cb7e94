//! Statements that define views, as they are parsed.

use crate::session::parsed::Parsed;
use crate::session::statements::parse;

#[test]
fn views_are_read() {
    for (text, word) in [
        ("CREATE VIEW v AS SELECT 1", "CREATE VIEW"),
        ("create or replace view v (a) as select 1", "CREATE VIEW"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1 WITH NO DATA", "CREATE MATERIALIZED VIEW"),
        (
            "CREATE MATERIALIZED VIEW IF NOT EXISTS v WITH (timescaledb.continuous, \
             timescaledb.materialized_only = false) AS SELECT time_bucket('1 h', time) FROM t \
             GROUP BY 1 WITH DATA",
            "CREATE MATERIALIZED VIEW",
        ),
        ("DROP VIEW IF EXISTS a, b CASCADE", "DROP VIEW"),
        ("DROP MATERIALIZED VIEW a", "DROP MATERIALIZED VIEW"),
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY a WITH NO DATA", "REFRESH MATERIALIZED VIEW"),
    ] {
        match parse(text).map(|mut all| all.remove(0)) {
            Ok(Parsed::Define(definition)) => assert_eq!(definition.word(), word, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}
