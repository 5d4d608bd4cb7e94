//! pg_prometheus' tables and functions as its users use them: `INSERT`, `_values` and `_labels`, a
//! sample taken apart and put together.

use anyhow::{Result, ensure};
use e2e::postgres::{Raw, start};
use e2e::{Psql, Server};

/// 2024-02-29 12:00:00 UTC in milliseconds.
const NOON: i64 = 1_709_208_000_000;

#[test]
fn what_is_inserted_is_there_after_a_crash() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    let lines = format!(
        "INSERT INTO metrics VALUES ('cpu{{service=\"nginx\"}} 34.6 {NOON}'), ('cpu{{service=\"db\"}} 1e+09 {NOON}')"
    );
    assert_eq!(psql.ask(&[&lines], "")?, "INSERT 0 2");
    let parts = "INSERT INTO metrics (time, name, value, labels) VALUES \
                 ('2024-02-29 12:00:00.123456+00', 'room temp', 'NaN', '{\"floor\": \"1\"}'), \
                 ('2024-02-29 12:00:01+00', 'cpu', 7, '{\"service\": \"nginx\"}')";
    assert_eq!(psql.ask(&[parts], "")?, "INSERT 0 2");
    let settings = "SET pg_prometheus.job_label = 'node'";
    let from_query = "INSERT INTO metrics_cx (metric, ts, value) \
                      SELECT 'copied', ts, value * 2 FROM metrics_cx WHERE metric = 'cpu' AND value < 100";
    assert_eq!(psql.ask(&[settings, from_query], "")?, "SET\nINSERT 0 2");
    let check = |server: &Server, psql: &Psql| -> Result<()> {
        let all = "SELECT time, name, value, labels FROM metrics ORDER BY name, time, value";
        let expected = "\
            2024-02-29 12:00:00+00|copied|69.2|{\"job\": \"node\"}\n\
            2024-02-29 12:00:01+00|copied|14|{\"job\": \"node\"}\n\
            2024-02-29 12:00:00+00|cpu|34.6|{\"service\": \"nginx\"}\n\
            2024-02-29 12:00:00+00|cpu|1000000000|{\"service\": \"db\"}\n\
            2024-02-29 12:00:01+00|cpu|7|{\"service\": \"nginx\"}\n\
            2024-02-29 12:00:00.123456+00|room temp|NaN|{\"floor\": \"1\"}";
        assert_eq!(psql.ask(&[all], "")?, expected);
        let at = NOON as f64 / 1000.0;
        let vector = server.vector("cpu{service=\"nginx\"}", at)?;
        ensure!(vector.values().eq(["34.6"]), "{vector:?}");
        Ok(())
    };
    check(&server, &psql)?;
    server.kill()?;
    let (server, psql) = start(directory.path())?;
    check(&server, &psql)
}

#[test]
fn a_bad_row_changes_nothing() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(directory.path())?;
    for (asked, code, words) in [
        ("INSERT INTO metrics VALUES ('good 1'), ('bad{x=} 2')", "22P02", "INTO metrics, row 2"),
        ("INSERT INTO metrics VALUES ('a 1' || chr(10) || 'b 2')", "22P02", "is not one"),
        ("INSERT INTO metrics VALUES (NULL)", "23502", "sample"),
        ("INSERT INTO metrics (name, value) VALUES ('a', 'x')", "22", "x"),
        ("INSERT INTO metrics (name, value) SELECT name, name FROM metrics_cx", "42703", "name"),
        ("INSERT INTO metrics (name, value) SELECT 'a', 'x'", "22P02", "x"),
        ("INSERT INTO metrics (name, value) SELECT 'a', true", "42804", "boolean"),
        ("INSERT INTO metrics (name, value, labels) VALUES ('a', 1, '{\"b\": 1}')", "22P02", "b"),
        ("INSERT INTO metrics (name, value) VALUES (NULL, 1)", "23502", "name"),
        ("INSERT INTO nowhere (name, value) VALUES ('a', 1)", "42P01", "nowhere"),
        ("INSERT INTO metrics_labels (name, value) VALUES ('a', 1)", "42P01", "metrics_labels"),
        ("INSERT INTO metrics (name, value) VALUES ('a', 1) RETURNING name", "0A000", "RETURNING"),
        ("INSERT INTO metrics VALUES ('good 1'), ('\\.')", "22P02", "is not one"),
        ("INSERT INTO metrics VALUES ('good 1'), (' # HELP x y')", "22P02", "is not one"),
        ("INSERT INTO metrics VALUES (E'good 1\r')", "22P02", "is not one"),
        ("INSERT INTO other.metrics VALUES ('good 1')", "42P01", "other.metrics"),
        ("INSERT INTO metrics (name, value) VALUES ('a', now())", "42804", "timestamp"),
        ("INSERT INTO metrics (name, value) VALUES ('a', true)", "42804", "boolean"),
        ("INSERT INTO metrics (name, value) VALUES (1, 1)", "42804", "integer"),
        ("INSERT INTO metrics (time, name, value) VALUES ('2400-01-01', 'a', 1)", "22008", "range"),
        ("INSERT INTO metrics (name, value) VALUES ('a' || chr(0), 1)", "54000", "null character"),
    ] {
        let said = psql.say(&["\\set VERBOSITY verbose", asked], "")?;
        let is_told = said.error.contains(code) && said.error.contains(words);
        ensure!(!said.is_ok && is_told, "{asked}: {said:?}");
    }
    assert_eq!(psql.ask(&["SELECT count(*) FROM metrics"], "")?, "0");
    // The connection lives, and a failed transaction ends as others do.
    let mut raw = Raw::of(&_server)?;
    raw.query("BEGIN")?;
    raw.until('Z')?;
    raw.query("INSERT INTO metrics VALUES ('a 1')")?;
    assert_eq!(Raw::kinds(&raw.until('Z')?), "CZ");
    raw.query("ROLLBACK")?;
    assert_eq!(Raw::kinds(&raw.until('Z')?), "NCZ");
    Ok(())
}

#[test]
fn rows_are_copied_in_text_and_csv() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    let text = "2024-02-29 12:00\tup\t1\t{\"job\": \"a\\\\\"b\"}\nepoch\troom temp\tNaN\t{}\n";
    let asked = "COPY metrics (time, name, value, labels) FROM STDIN";
    assert_eq!(psql.ask(&[asked], text)?, "COPY 2");
    let csv = "ts,metric,value\n2024-02-29 13:00:00+01,\"with \"\"quotes\"\"\",2.5\n";
    let asked = "COPY metrics_cx (ts, metric, value) FROM STDIN WITH (FORMAT csv, HEADER)";
    assert_eq!(psql.ask(&["SET pg_prometheus_cx.job_label = 'j'", asked], csv)?, "SET\nCOPY 1");
    let all = "SELECT time, name, value, labels FROM metrics ORDER BY name, time";
    let expected = "2024-02-29 12:00:00+00|room temp|NaN|{}";
    let expected = expected.replace("2024-02-29 12", "1970-01-01 00")
        + "\n2024-02-29 12:00:00+00|up|1|{\"job\": \"a\\\"b\"}"
        + "\n2024-02-29 12:00:00+00|with \"quotes\"|2.5|{\"job\": \"j\"}";
    assert_eq!(psql.ask(&[all], "")?, expected);
    // What goes out comes in again.
    let out = psql.ask(&["COPY metrics TO STDOUT WITH (FORMAT csv, HEADER)"], "")?;
    let again = tempfile::tempdir()?;
    let (_other, other) = start(again.path())?;
    let said = other.ask(&["COPY metrics FROM STDIN WITH (FORMAT csv, HEADER)"], &out)?;
    assert_eq!(said, "COPY 3");
    assert_eq!(other.ask(&[all], "")?, expected);
    // A bad row changes nothing, or is left out.
    let bad = "epoch\tgood\t1\t{}\nepoch\tbad\tx\t{}\nepoch\tfine\t2\t{}\n";
    let asked = "COPY metrics (time, name, value, labels) FROM STDIN";
    let said = psql.say(&["\\set VERBOSITY verbose", asked], bad)?;
    let is_told = ["22P02", "COPY metrics, row 2, column value", "ON_ERROR ignore"];
    ensure!(is_told.iter().all(|words| said.error.contains(words)), "{said:?}");
    assert_eq!(psql.ask(&["SELECT count(*) FROM metrics"], "")?, "3");
    let said = psql.say(&[&format!("{asked} WITH (ON_ERROR ignore)")], bad)?;
    ensure!(said.out == "COPY 2" && said.error.contains("1 rows were skipped"), "{said:?}");
    let said =
        psql.say(&[&format!("{asked} WITH (ON_ERROR ignore, REJECT_LIMIT 1)")], &bad.repeat(2))?;
    ensure!(!said.is_ok && said.error.contains("REJECT_LIMIT"), "{said:?}");
    drop(server);
    Ok(())
}

#[test]
fn samples_and_series_are_apart_as_pg_prometheus_keeps_them() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(directory.path())?;
    let lines = format!(
        "up{{job=\"a\"}} 1 {NOON}\nup{{job=\"a\"}} 2 {}\nup{{job=\"b\"}} 3 {NOON}\nx 4 {NOON}\n",
        NOON + 1
    );
    psql.ask(&["COPY metrics_copy FROM STDIN"], &lines)?;
    for (asked, expected) in [
        ("SELECT count(*), count(DISTINCT id), min(id) >= 0 FROM metrics_labels", "3|3|t"),
        ("SELECT DISTINCT metric_name FROM metrics_labels ORDER BY 1", "up\nx"),
        (
            "SELECT metric_name, labels FROM metrics_labels WHERE labels @> '{\"job\": \"b\"}'",
            "up|{\"job\": \"b\"}",
        ),
        (
            "SELECT l.labels->>'job', sum(v.value) FROM metrics_values v JOIN metrics_labels l \
             ON v.labels_id = l.id WHERE l.metric_name = 'up' GROUP BY 1 ORDER BY 1",
            "a|3\nb|3",
        ),
        ("SELECT count(*) FROM metrics_copy", "0"),
        (
            "SELECT count(*), min(sample) FROM metrics_samples WHERE sample LIKE 'x%'",
            &format!("1|x 4 {NOON}"),
        ),
        (
            "SELECT v.ts FROM metrics_cx_values v JOIN metrics_cx_labels l ON l.id = labels_id WHERE metric_name = 'x'",
            "2024-02-29 12:00:00+00",
        ),
        (
            "SELECT prom_value(sample), prom_time(sample) FROM metrics WHERE prom_name(sample) = 'x'",
            "4|2024-02-29 12:00:00+00",
        ),
        (
            "SELECT count(*) FROM metrics_samples WHERE prom_name(sample) = 'up' AND prom_labels(sample) @> '{\"job\": \"a\"}'",
            "2",
        ),
        ("SELECT prom_labels('a{b=\"c\"} 1', true)", "{\"b\": \"c\", \"metric_name\": \"a\"}"),
        (
            "SELECT prom_construct('2024-02-29 12:00:00+00', 'a', 1.5, '{\"b\": \"c\"}')",
            &format!("a{{b=\"c\"}} 1.5 {NOON}"),
        ),
        (
            "SELECT prom_label('a{b=\"c\"} 1', 'b'), prom_label('a 1', 'b') IS NULL, prom_label_count('a 1')",
            "c|t|0",
        ),
        ("SELECT create_prometheus_table('metrics')", ""),
        ("SELECT create_prometheus_cx_table('metrics_cx')", ""),
    ] {
        let said = psql.ask(&[asked], "")?;
        assert_eq!(said, *expected, "{asked}");
    }
    Ok(())
}
