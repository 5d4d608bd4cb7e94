//! Statements of TimescaleDB that have no effect, as they are parsed.

use crate::session::parsed::Parsed;
use crate::session::statements::parse;

fn said(text: &str) -> String {
    match parse(text).map(|mut all| all.remove(0)) {
        Ok(Parsed::Upkeep(upkeep)) => upkeep.answer.unwrap_or(upkeep.name),
        Ok(_) => "another".to_string(),
        Err(error) => error.code.to_string(),
    }
}

#[test]
fn what_is_done_already_is_told() {
    for (text, expected) in [
        ("SELECT create_hypertable('metrics', 'time')", "(1,public,metrics,f)"),
        (
            "SELECT public.create_hypertable('public.metrics', by_range('time'))",
            "(1,public,metrics,f)",
        ),
        ("SELECT add_compression_policy('metrics', INTERVAL '7 days')", "-1"),
        ("SELECT compress_chunk('metrics'::regclass)", "metrics"),
        ("CALL add_columnstore_policy('metrics', after => INTERVAL '1d')", "CALL"),
        (
            "ALTER TABLE metrics SET (timescaledb.compress, timescaledb.compress_segmentby = 'name')",
            "ALTER TABLE",
        ),
        (
            "ALTER TABLE IF EXISTS ONLY public.\"metrics\" SET (timescaledb.enable_columnstore = true)",
            "ALTER TABLE",
        ),
        ("ALTER TABLE nothing SET (timescaledb.compress)", "another"),
        ("ALTER TABLE metrics SET (fillfactor = 70)", "another"),
        ("SELECT create_hypertable('nothing', 'time')", "another"),
        ("SELECT create_hypertable()", "42883"),
        ("SELECT drop_chunks('metrics', older_than => INTERVAL '1 day')", "another"),
        ("SELECT drop_chunks()", "42883"),
        ("SELECT add_retention_policy('metrics', INTERVAL '1 day')", "another"),
        ("CALL nothing()", "0A000"),
        ("SELECT 1", "another"),
        ("ALTER", "42601"),
        ("ALTER TABLE", "42601"),
        ("ALTER TABLE metrics SET (", "42601"),
    ] {
        assert_eq!(said(text), expected, "{text}");
    }
}
