//! PostgreSQL's door with psql: what is copied in SQL and PromQL read, bad lines change nothing,
//! settings change labels, errors have PostgreSQL's codes.

use anyhow::{Result, ensure};
use e2e::postgres::{launch, start};
use e2e::{Psql, Server, poll};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// 2024-02-29 12:00:00 UTC in milliseconds.
const NOON: i64 = 1_709_208_000_000;

/// What an exporter writes.
fn page() -> String {
    format!(
        "# HELP http_requests_total Requests.\n\
         # TYPE http_requests_total counter\n\
         http_requests_total{{job=\"api\",code=\"200\"}} 1e+09 {NOON}\n\
         http_requests_total{{job=\"api\",code=\"500\",path=\"a, \\\"b\\\\c\\\"=}}\"}} 3 {NOON}\n\
         \n\
         http_requests_total{{job=\"web\",code=\"200\"}} +Inf {NOON}\r\n\
         temperature 21.5 {NOON}\n"
    )
}

#[test]
fn what_is_copied_sql_and_promql_read_and_a_crash_keeps() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    assert_eq!(psql.ask(&["COPY metrics FROM STDIN"], &page())?, "COPY 4");
    let check = |server: &Server, psql: &Psql| -> Result<()> {
        let all = "SELECT * FROM metrics WHERE name = 'http_requests_total' \
                   AND labels @> '{\"job\": \"api\", \"code\": \"200\"}'";
        let sample = format!("http_requests_total{{code=\"200\",job=\"api\"}} 1e+09 {NOON}");
        let expected = format!(
            "{sample}|2024-02-29 12:00:00+00|http_requests_total|1000000000|\
             {{\"job\": \"api\", \"code\": \"200\"}}"
        );
        assert_eq!(psql.ask(&[all], "")?, expected);
        let path = "SELECT labels->>'path' FROM metrics WHERE labels ? 'path'";
        assert_eq!(psql.ask(&[path], "")?, "a, \"b\\c\"=}");
        let grouped = "SELECT labels->>'job', count(*), max(value) FROM metrics \
                       WHERE name LIKE 'http%' AND time >= '2024-02-29 00:00:00+00' \
                       GROUP BY 1 ORDER BY 1";
        assert_eq!(psql.ask(&[grouped], "")?, "api|2|1000000000\nweb|1|Infinity");
        let at = NOON as f64 / 1000.0;
        let vector = server.vector("sum(http_requests_total{job=\"api\"})", at)?;
        ensure!(vector.values().eq(["1000000003"]), "{vector:?}");
        Ok(())
    };
    check(&server, &psql)?;
    server.kill()?;
    let (server, psql) = start(directory.path())?;
    check(&server, &psql)
}

#[test]
fn a_bad_line_changes_nothing_unless_it_may_be_left_out() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(directory.path())?;
    let lines = format!("good 1 {NOON}\n\nbad{{x=}} 2 {NOON}\ngood 3 {}\n", NOON + 1);
    let said = psql.say(&["\\set VERBOSITY verbose", "COPY metrics FROM STDIN"], &lines)?;
    assert!(!said.is_ok && said.error.contains("22P02"), "{said:?}");
    let count = "SELECT count(*) FROM metrics";
    assert_eq!(psql.ask(&[count], "")?, "0");
    // Of two bad lines the first is told, whatever is wrong with it.
    let two = psql.say(&["COPY metrics FROM STDIN"], "good 1\nbad{x=} 2\nworse\n")?;
    assert!(two.error.contains("line 2:"), "{two:?}");
    assert!(said.error.contains("line 3: \"bad{x=} 2"), "{said:?}");
    assert_eq!(psql.ask(&[count], "")?, "0");
    let skipping = psql.say(&["COPY metrics FROM STDIN WITH (ON_ERROR ignore)"], &lines)?;
    assert_eq!(skipping.out, "COPY 2");
    assert!(skipping.error.contains("1 rows were skipped"), "{skipping:?}");
    assert_eq!(psql.ask(&[count], "")?, "2");
    let limit = "COPY metrics FROM STDIN WITH (ON_ERROR ignore, REJECT_LIMIT 1)";
    let said = psql.say(&[limit], "a{ 1\nb{ 1\n")?;
    assert!(!said.is_ok && said.error.contains("REJECT_LIMIT (1)"), "{said:?}");
    // The connection lives on after an error.
    let said = psql.say(&["\\set ON_ERROR_STOP 0", "SELEC 1", "SELECT 2"], "")?;
    assert_eq!(said.out, "2", "{said:?}");
    Ok(())
}

#[test]
fn settings_change_labels() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    let options = "-c pg_prometheus_cx.job_label=node -c pg_prometheus_cx.instance_label=h1:9100";
    let by_options = Psql::of(&server)?.with("PGOPTIONS", options);
    by_options.ask(&["COPY metrics_copy FROM STDIN"], &format!("up{{x=\"1\"}} 1 {NOON}\n"))?;
    let set = [
        "SET pg_prometheus.append_labels = '{\"env\": \"dev\"}'",
        "SET pg_prometheus.remove_labels = '{x}'",
        "COPY metrics FROM STDIN",
    ];
    psql.ask(&set, &format!("down{{x=\"1\",y=\"2\"}} 1 {NOON}\n"))?;
    let labels = "SELECT labels FROM metrics ORDER BY name";
    let expected = "{\"y\": \"2\", \"env\": \"dev\"}\n\
                    {\"x\": \"1\", \"job\": \"node\", \"instance\": \"h1:9100\"}";
    assert_eq!(psql.ask(&[labels], "")?, expected);
    assert_eq!(psql.ask(&["SET a.b = 'c'", "SHOW a.b"], "")?, "SET\nc");
    Ok(())
}

#[test]
fn samples_stay_and_no_file_is_read() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(directory.path())?;
    for statement in [
        "COPY metrics FROM '/etc/passwd'",
        "COPY (SELECT 1) TO '/tmp/x.csv'",
        "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'",
        "CREATE TABLE metrics (a int)",
        "DROP TABLE metrics",
        "SELECT * FROM '/etc/passwd'",
        "COPY nowhere FROM STDIN",
    ] {
        let said = psql.say(&[statement], "")?;
        assert!(!said.is_ok && said.error.contains("ERROR"), "{statement}: {said:?}");
    }
    Ok(())
}

#[test]
fn who_does_not_know_the_password_is_not_let_in() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = launch(directory.path()).flag("http-user", "somebody");
    let server = launch.flag("http-password", "open sesame").start()?;
    let wrong = Psql::of(&server)?.with("PGPASSWORD", "open").say(&["SELECT 1"], "")?;
    assert!(!wrong.is_ok && wrong.error.contains("authentication failed"), "{wrong:?}");
    let right = Psql::of(&server)?.with("PGPASSWORD", "open sesame");
    assert_eq!(right.ask(&["SELECT 1"], "")?, "1");
    Ok(())
}

#[test]
fn messages_that_make_no_sense_end_their_connection_alone() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    let address = format!("127.0.0.1:{}", e2e::postgres::door_port(&server)?);
    let startup = b"\0\0\0\x1c\0\x03\0\0user\0me\0database\0x\0\0";
    for message in [
        &b"B\0\0\0\x0a\xff\xff\xff\xff\xff\xff"[..],
        b"Q\x7f\xff\xff\xff",
        b"Q\0\0\0\0",
        b"@\0\0\0\x04",
        b"P\0\0\0\x05x",
        b"D\0\0\0\x04",
        b"d\0\0\0\x06ab",
    ] {
        let mut stream = TcpStream::connect(&address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(startup)?;
        stream.write_all(message)?;
        stream.shutdown(Shutdown::Write)?;
        let _ = stream.read_to_end(&mut Vec::new());
        assert_eq!(psql.ask(&["SELECT 1"], "")?, "1", "after {message:?}");
    }
    poll("that they are gone", Duration::from_secs(10), || {
        let open = server.metric("quipu_connections{listener=\"postgres\"}")?;
        ensure!(open == 0.0, "{open} are open");
        Ok(())
    })
}
