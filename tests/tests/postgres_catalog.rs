//! What PostgreSQL's clients ask beside their own statements: psql's commands with a backslash,
//! drivers' first queries, PromQL within SQL, `COPY` out.

use anyhow::{Result, ensure};
use e2e::{Psql, Server, postgres};

/// 2024-02-29 12:00:00 UTC in milliseconds.
const NOON: i64 = 1_709_208_000_000;

fn start(directory: &tempfile::TempDir) -> Result<(Server, Psql)> {
    let (server, psql) = postgres::start(directory.path())?;
    let lines = format!(
        "up{{job=\"a\"}} 1 {NOON}\nup{{job=\"b\"}} 0 {NOON}\n\
         bytes_total{{job=\"a\"}} 100 {}\nbytes_total{{job=\"a\"}} 400 {NOON}\n",
        NOON - 60_000
    );
    psql.ask(&["COPY metrics FROM STDIN"], &lines)?;
    Ok((server, psql))
}

#[test]
fn psqls_commands_work() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    for (command, expected) in [
        ("\\d", "public|metrics|table|quipu"),
        ("\\dt", "public|metrics_cx|table|quipu"),
        ("\\d metrics", "time|timestamp with time zone||not null|"),
        ("\\d+ metrics", "labels|jsonb||not null|"),
        ("\\l", "quipu|quipu|UTF8|"),
        ("\\dn", "public|quipu"),
        ("\\dx", "pg_prometheus|1.0|public|"),
        ("\\du", "quipu|Superuser"),
        ("\\conninfo", "You are connected to database \"metrics\" as user \"somebody\""),
    ] {
        let said = psql.ask(&[command], "")?;
        ensure!(said.contains(expected), "{command}: {said}");
    }
    for command in ["\\dv", "\\df prom*", "\\di", "\\ds", "\\dT", "\\z", "\\db", "\\dp", "\\dD"] {
        let said = psql.say(&[command], "")?;
        ensure!(said.is_ok, "{command}: {said:?}");
    }
    Ok(())
}

#[test]
fn drivers_first_questions_are_answered() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    for (asked, expected) in [
        ("select current_database(), current_user, current_schema()", "metrics|somebody|public"),
        ("select current_setting('server_version_num')::int/100", "1500"),
        (
            "select t.oid, typarray from pg_type t join pg_namespace ns on typnamespace = ns.oid where typname = 'jsonb'",
            "3802|3807",
        ),
        (
            "SELECT nspname = ANY(current_schemas(true)), nspname FROM pg_catalog.pg_namespace WHERE oid = 2200",
            "t|public",
        ),
        (
            "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;",
            "\nCLOSE CURSOR ALL\nUNLISTEN\nRESET",
        ),
        (
            "SELECT relname FROM pg_class WHERE relname = 'metrics' AND pg_table_is_visible(oid) AND relkind = ANY (ARRAY['r', 'v'])",
            "metrics",
        ),
        (
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1",
            "metrics\nmetrics_copy\nmetrics_cx\nmetrics_cx_copy\nmetrics_cx_labels\nmetrics_cx_samples\n\
             metrics_cx_values\nmetrics_labels\nmetrics_samples\nmetrics_values",
        ),
        (
            "SELECT column_name, data_type, udt_name FROM information_schema.columns WHERE table_name = 'metrics' AND column_name = 'value'",
            "value|double precision|float8",
        ),
        (
            "SELECT 'metrics'::regclass::oid, 16384::regclass, format_type(1184, -1), 'int4'::regtype",
            "16384|metrics|timestamp with time zone|integer",
        ),
        (
            "SELECT set_config('a.b', 'c', false), current_setting('a.b'), current_setting('a.z', true)",
            "c|c|",
        ),
        // Tables that have no rows here are counted, and joined, as others are.
        ("SELECT (SELECT count(*) FROM pg_trigger), count(*) FROM pg_trigger", "0|0"),
        ("SELECT n FROM (SELECT count(*) AS n FROM pg_trigger) t", "0"),
        ("SELECT max(tgname), count(*) + 1 FROM pg_trigger HAVING count(*) = 0", "|1"),
        ("SELECT count(*) FROM pg_trigger GROUP BY tgname", ""),
        (
            "SELECT nspname FROM pg_trigger t RIGHT JOIN pg_namespace n ON true WHERE nspname = 'public'",
            "public",
        ),
        ("SELECT nspname FROM pg_namespace n JOIN pg_trigger t ON true", ""),
    ] {
        let said = psql.ask(&[asked], "")?;
        assert_eq!(said, expected, "{asked}");
    }
    let version = psql.ask(&["select pg_catalog.version()"], "")?;
    ensure!(version.starts_with("PostgreSQL 15.0"), "{version}");
    Ok(())
}

/// The tree of what there is, a table's tabs, the roles' privileges.
#[test]
fn what_dbeaver_asks_for_its_tree_is_answered() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    for (asked, expected) in [
        ("SELECT setting FROM pg_settings WHERE name = 'standard_conforming_strings'", "on"),
        (
            "SELECT e.extname, c.names FROM pg_extension e LEFT JOIN ( \
               SELECT array_agg(k.relname) AS names, u.of FROM ( \
                 SELECT unnest(x.extconfig) AS kept, x.oid AS of FROM pg_extension x) u \
               JOIN pg_class k ON k.oid = u.kept GROUP BY u.of) c ON c.of = e.oid \
             WHERE e.extname = 'pg_prometheus'",
            "pg_prometheus|",
        ),
        (
            "SELECT i.indkey, pg_stat_get_numscans(i.indexrelid) FROM pg_index i \
             JOIN pg_class c ON c.oid = i.indrelid WHERE c.relname = 'metrics'",
            "",
        ),
        ("SELECT contoencoding FROM pg_conversion GROUP BY contoencoding ORDER BY 1", ""),
        ("SELECT * FROM pg_policies WHERE schemaname = 'public' AND tablename = 'metrics'", ""),
        ("SELECT count(*) FROM information_schema.table_privileges WHERE grantee = 'a'", "0"),
        ("SELECT count(*) FROM information_schema.routine_privileges WHERE grantee = 'a'", "0"),
        (
            "SELECT catcode, count(*) FROM pg_catalog.pg_get_keywords() GROUP BY 1 ORDER BY 1 LIMIT 1",
            "C|51",
        ),
        ("SELECT 0 < pg_backend_pid()", "t"),
        ("SELECT count(*) FROM pg_database WHERE datname = current_database()", "1"),
    ] {
        let said = psql.ask(&[asked], "")?;
        ensure!(said.trim() == expected, "{asked}: {said}");
    }
    Ok(())
}

#[test]
fn promql_is_a_table() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    let seconds = NOON / 1000;
    for (asked, expected) in [
        (format!("SELECT name, value, labels->>'job' FROM promql('up == 1', {seconds})"), "up|1|a"),
        (
            "SELECT time, value FROM promql('sum(up)', '2024-02-29 11:59:30+00', \
             '2024-02-29 12:00:30+00'::timestamptz, interval '30 seconds') ORDER BY time"
                .to_string(),
            "2024-02-29 12:00:00+00|1\n2024-02-29 12:00:30+00|1",
        ),
        (
            // From nothing, as MetricsQL counts.
            format!("SELECT value FROM metricsql('increase(bytes_total[2m])', {seconds})"),
            "400",
        ),
        (
            format!(
                "SELECT m.value + p.value FROM metrics m JOIN promql('up', {seconds}) p \
                 ON m.labels = p.labels WHERE m.name = 'bytes_total' AND m.value > 100"
            ),
            "401",
        ),
        (format!("SELECT count(*) FROM promql('1 + 1', {seconds})"), "1"),
    ] {
        assert_eq!(psql.ask(&[&asked], "")?, expected, "{asked}");
    }
    let wrong = psql.say(&["\\set VERBOSITY verbose", "SELECT * FROM promql('up{')"], "")?;
    ensure!(!wrong.is_ok && wrong.error.contains("42601"), "{wrong:?}");
    let wrong = psql.say(&["SELECT * FROM promql('up', 1, 2)"], "")?;
    ensure!(wrong.error.contains("one, two or four arguments"), "{wrong:?}");
    Ok(())
}

#[test]
fn rows_are_copied_out() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    let csv = "COPY (SELECT name, value, labels FROM metrics WHERE name = 'up' ORDER BY 3) \
               TO STDOUT WITH (FORMAT csv, HEADER)";
    let expected = "name,value,labels\nup,1,\"{\"\"job\"\": \"\"a\"\"}\"\n\
                    up,0,\"{\"\"job\"\": \"\"b\"\"}\"";
    assert_eq!(psql.ask(&[csv], "")?, expected);
    // What comes out goes in again.
    let lines = psql.ask(&["COPY metrics (sample) TO STDOUT"], "")?;
    assert_eq!(lines.lines().count(), 4);
    let again = psql.ask(&["COPY metrics FROM STDIN"], &format!("{lines}\n"))?;
    assert_eq!(again, "COPY 4");
    assert_eq!(psql.ask(&["SELECT count(*) FROM metrics"], "")?, "4");
    Ok(())
}

#[test]
fn what_postgresql_means_is_what_comes() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    let odd = format!(
        "odd{{k=\"a<b\"}} 1 {NOON}\nodd{{k=\"c\"}} NaN {NOON}\nodd{{k=\"ä\",b=\"2\"}} 3 {NOON}\n"
    );
    psql.ask(&["COPY metrics FROM STDIN"], &odd)?;
    for (asked, expected) in [
        ("SELECT count(*) FROM metrics WHERE labels->>'k' LIKE 'a<%'", "1"),
        ("SELECT count(*) FROM metrics WHERE labels->>'k' IN ('a<b', 'c1', 'c2', 'c3', 'c4')", "1"),
        ("SELECT count(*) FROM metrics WHERE labels->>'k' ~ 'a<b'", "1"),
        ("SELECT count(*) FROM metrics WHERE labels->>'k' ~ '^\\w$'", "2"),
        ("SELECT count(*) FROM metrics WHERE name = ANY('{odd,up}')", "5"),
        ("SELECT count(*) FROM metrics WHERE value = 'NaN'", "1"),
        ("SELECT count(*) FROM metrics WHERE labels = '{\"k\":\"ä\",\"b\":\"2\"}'", "1"),
        ("SELECT '{\"a\": 1}'::jsonb = '{\"a\":1}'::jsonb", "t"),
        ("SELECT 2.7::float8::int, 2.5::float8::int, 1e15::float8::text", "3|2|1e+15"),
        ("SELECT time::text FROM metrics WHERE name = 'odd' LIMIT 1", "2024-02-29 12:00:00+00"),
        (
            "SELECT '2024-01-01'::timestamptz, to_timestamp(0)",
            "2024-01-01 00:00:00+00|1970-01-01 00:00:00+00",
        ),
        ("SELECT '{a,b}'::text[]", "{a,b}"),
        (
            "SELECT name, min(value), max(value) FROM metrics WHERE name = 'odd' GROUP BY 1",
            "odd|1|NaN",
        ),
        ("SELECT least(2, -('NaN'::float8)), 'NaN'::float8 - 1 > 5", "2|t"),
        ("SELECT 1 IS DISTINCT FROM 1 AND 2 = 2, round(2.5::float8)", "f|2"),
        ("SELECT to_timestamp(1709207999.001) = '2024-02-29 11:59:59.001+00'", "t"),
        ("SELECT name LIKE 'o/_d' ESCAPE '/' FROM metrics WHERE name = 'odd' LIMIT 1", "f"),
        ("SELECT E'a\\nb' ~ 'a.b'", "t"),
        (
            "SELECT date '2026-03-05' + interval '90 minutes', interval '1 month' + date '2026-01-31'",
            "2026-03-05 01:30:00|2026-02-28 00:00:00",
        ),
        (
            "SELECT age(timestamp '2001-06-13', timestamp '2026-03-05')",
            "-24 years -8 mons -22 days",
        ),
        ("SELECT date_trunc('hour', interval '2 days 03:40')", "2 days 03:00:00"),
        ("SELECT '\\x12'::bytea || '\\x34', '\\x12'::bytea = '\\x12'", "\\x1234|t"),
        ("SELECT pg_typeof(row_number() OVER ()), 32767::smallint + 1", "bigint|32768"),
    ] {
        assert_eq!(psql.ask(&[asked], "")?, expected, "{asked}");
    }
    for (asked, code) in [
        ("SELECT 'nojson'::jsonb", "22P02"),
        ("SELECT * FROM metrics WHERE labels @> 'nojson'", "22P02"),
        ("SELECT now() AT TIME ZONE 'Nowhere/Land'", "22023"),
        ("SELECT 9223372036854775807 + 1", "22003"),
        ("SELECT 32767::smallint + 1::smallint", "22003"),
        ("SELECT 4611686018427387904 * x FROM generate_series(1, 2) x", "22003"),
        ("SELECT 'abc' ~ '('", "2201B"),
        ("SELECT name FROM metrics WHERE name SIMILAR TO '('", "2201B"),
        ("SELECT * FROM nowhere", "42P01"),
        ("SELECT nothing FROM metrics", "42703"),
        ("SELECT 1/0", "22012"),
        ("SELECT 'abc'::int", "22P02"),
        ("UPDATE metrics SET value = 1", "0A000"),
        ("SELECT length(repeat('x', 300000000))", "54000"),
    ] {
        let said = psql.say(&["\\set VERBOSITY verbose", asked], "")?;
        ensure!(!said.is_ok && said.error.contains(code), "{asked}: {said:?}");
    }
    Ok(())
}

#[test]
fn settings_hold_as_long_as_they_should() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    let psql = psql.with("PGOPTIONS", "-c pg_prometheus.job_label=first");
    let set = "SET pg_prometheus.job_label = 'other'";
    let copy = |name: &str| format!("{name} 1 {NOON}\n");
    psql.ask(&[set, "DISCARD ALL", "COPY metrics FROM STDIN"], &copy("discarded"))?;
    psql.ask(&["BEGIN", set, "ROLLBACK", "COPY metrics FROM STDIN"], &copy("rolled_back"))?;
    let local = "SET LOCAL pg_prometheus.job_label = 'other'";
    psql.ask(&["BEGIN", local, "COMMIT", "COPY metrics FROM STDIN"], &copy("local"))?;
    psql.ask(&[set, "COPY metrics FROM STDIN"], &copy("own"))?;
    let asked = "SELECT name, labels->>'job' FROM metrics WHERE name ~ '^(disc|rolled|loc|own)' \
                 ORDER BY 1";
    let expected = "discarded|first\nlocal|first\nown|other\nrolled_back|first";
    assert_eq!(psql.ask(&[asked], "")?, expected);
    let slow = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b";
    let said = psql.say(&["SET statement_timeout = '300ms'", slow], "")?;
    ensure!(said.error.contains("statement timeout"), "{said:?}");
    Ok(())
}
