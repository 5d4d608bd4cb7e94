//! What somebody who comes from PostgreSQL, pg_prometheus or TimescaleDB makes and finds again after a restart: views,
//! continuous aggregates, settings of roles, tables of samples of other names, policies of retention. And `DELETE` of
//! samples.

use anyhow::{Result, ensure};
use e2e::postgres::{launch, play, start};
use e2e::{Psql, Server};

/// 2024-02-29 12:00:00 UTC in milliseconds.
const NOON: i64 = 1_709_208_000_000;

/// Samples of some series, an hour apart.
fn fill(psql: &Psql, table: &str) -> Result<()> {
    let mut lines = String::new();
    for hour in 0..4 {
        let time = NOON + hour * 3_600_000;
        lines.push_str(&format!("up{{job=\"a\",node=\"x\"}} {hour} {time}\n"));
        lines.push_str(&format!("up{{job=\"b\"}} {} {time}\n", 10 + hour));
        lines.push_str(&format!("load{{job=\"a\"}} {} {time}\n", 20 + hour));
    }
    let said = psql.ask(&[&format!("COPY {table} FROM STDIN")], &lines)?;
    ensure!(said == "COPY 12", "{said}");
    Ok(())
}

/// Statements that are refused with a code.
fn refuse(psql: &Psql, all: &[(&str, &str)]) -> Result<()> {
    let all: Vec<(&str, &str, &str)> = all.iter().map(|(said, code)| (*said, *code, "")).collect();
    e2e::postgres::refuse(psql, &all)
}

/// The same server once more.
fn again(server: Server, directory: &tempfile::TempDir) -> Result<(Server, Psql)> {
    server.stop()?;
    let server = launch(directory.path()).start()?;
    let psql = Psql::of(&server)?;
    Ok((server, psql))
}

#[test]
fn samples_are_deleted_by_their_labels_and_times() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    fill(&psql, "metrics")?;
    play(
        &psql,
        &[
            (
                "DELETE FROM metrics WHERE name = 'up' AND labels->>'job' = 'b' AND time < '2024-02-29 13:00'",
                "DELETE 1",
            ),
            ("DELETE FROM metrics WHERE name = 'nothing'", "DELETE 0"),
            ("DELETE FROM metrics WHERE false", "DELETE 0"),
            ("SELECT count(*) FROM metrics", "11"),
            (
                "DELETE FROM metrics_cx WHERE metric = 'load' AND ts >= '2024-02-29 15:00' AND labels @> '{\"job\": \"a\"}'",
                "DELETE 1",
            ),
            ("DELETE FROM up WHERE time = '2024-02-29 12:00' AND node_id IS NOT NULL", "DELETE 1"),
            (
                "DELETE FROM prom_metric.up WHERE job_id <> 'a' AND time < '2024-02-29 14:00'",
                "DELETE 1",
            ),
            (
                "SELECT name, labels->>'job', count(*), min(value) FROM metrics GROUP BY 1, 2 ORDER BY 1, 2",
                "load|a|3|20\nup|a|3|1\nup|b|2|12",
            ),
            ("DELETE FROM metrics_copy", "DELETE 0"),
            ("DELETE FROM metrics_values WHERE time < '2024-02-29 14:00'", "DELETE 3"),
            // What is written again is there.
            (
                "INSERT INTO metrics VALUES ('up{job=\"a\",node=\"x\"} 7 1709208000000')",
                "INSERT 0 1",
            ),
            ("SELECT value FROM metrics WHERE name = 'up' AND time = '2024-02-29 12:00'", "7"),
        ],
    )?;
    refuse(
        &psql,
        &[
            ("DELETE FROM metrics WHERE value > 1", "0A000"),
            ("DELETE FROM metrics WHERE name = 'up' OR labels->>'job' = 'a'", "0A000"),
            ("DELETE FROM metrics WHERE labels->>'job' = ''", "0A000"),
            ("DELETE FROM metrics WHERE name = 'up' RETURNING *", "0A000"),
            ("DELETE FROM metrics_labels WHERE metric_name = 'up'", "0A000"),
            ("DELETE FROM no_such_metric", "42P01"),
            ("UPDATE metrics SET value = 1", "0A000"),
        ],
    )?;
    let (_server, psql) = again(server, &directory)?;
    play(&psql, &[("SELECT count(*), sum(value) FROM metrics", "6|59")])
}

/// What is said of roles and databases, with what is answered.
const SAID_OF_ROLES: &[(&str, &str)] = &[
    ("ALTER DATABASE metrics SET pg_prometheus.job_label = 'of the database'", "ALTER DATABASE"),
    ("ALTER ROLE ALL SET pg_prometheus.append_labels = '{\"env\": \"dev\"}'", "ALTER ROLE"),
    ("SHOW pg_prometheus.job_label", "of the database"),
    ("ALTER ROLE somebody SET pg_prometheus.job_label TO 'node'", "ALTER ROLE"),
    ("ALTER USER somebody IN DATABASE metrics SET statement_timeout = '2min'", "ALTER ROLE"),
    ("ALTER ROLE other SET pg_prometheus.job_label = 'never'", "ALTER ROLE"),
];

#[test]
fn settings_of_roles_are_those_of_their_sessions() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    play(&psql, SAID_OF_ROLES)?;
    let (server, psql) = again(server, &directory)?;
    play(
        &psql,
        &[
            ("SHOW pg_prometheus.job_label", "node"),
            ("SHOW statement_timeout", "2min"),
            (
                "SELECT r.rolname, d.datname, array_to_string(setconfig, ',') FROM pg_db_role_setting s LEFT JOIN \
                 pg_database d ON d.oid = setdatabase LEFT JOIN pg_roles r ON r.oid = setrole ORDER BY 1, 2",
                "other||pg_prometheus.job_label=never\nsomebody|metrics|statement_timeout=2min\n\
                 somebody||pg_prometheus.job_label=node\n|metrics|pg_prometheus.job_label=of the database\n\
                 ||pg_prometheus.append_labels={\"env\": \"dev\"}",
            ),
        ],
    )?;
    psql.ask(&["COPY metrics FROM STDIN"], "up 1 1709208000000\n")?;
    play(&psql, &[("SELECT labels FROM metrics", "{\"env\": \"dev\", \"job\": \"node\"}")])?;
    // What a client comes with goes first, and RESET goes back to that.
    let own = Psql::of(&server)?.with("PGOPTIONS", "-c pg_prometheus.job_label=mine");
    let said = own.ask(
        &[
            "SHOW pg_prometheus.job_label",
            "SET pg_prometheus.job_label = 'x'",
            "RESET ALL",
            "SHOW pg_prometheus.job_label",
        ],
        "",
    )?;
    ensure!(said == "mine\nSET\nRESET\nmine", "{said}");
    refuse(
        &psql,
        &[
            ("ALTER ROLE somebody SET no_such = 1", "42704"),
            ("ALTER ROLE somebody SET timezone = 'Europe/Berlin'", "22023"),
            ("ALTER ROLE somebody SET a.b FROM CURRENT", "0A000"),
        ],
    )?;
    play(
        &psql,
        &[
            ("ALTER ROLE somebody RESET pg_prometheus.job_label", "ALTER ROLE"),
            ("SHOW pg_prometheus.job_label", "of the database"),
            ("ALTER DATABASE metrics RESET ALL", "ALTER DATABASE"),
            ("SELECT current_setting('pg_prometheus.job_label', true) IS NULL", "t"),
        ],
    )?;
    // In a transaction that is rolled back nothing is kept; no table of it can be seen.
    psql.ask(&["BEGIN; ALTER ROLE somebody SET a.b = 'c'; ROLLBACK"], "")?;
    refuse(&psql, &[("SHOW a.b", "42704")])?;
    play(
        &psql,
        &[(
            "SELECT count(*) FROM pg_class WHERE relname LIKE '%settings%' AND relnamespace = 2200",
            "0",
        )],
    )
}

/// Views that are made, and asked.
const VIEWS_MADE: &[(&str, &str)] = &[
    ("CREATE TABLE hosts (name text PRIMARY KEY, owner text)", "CREATE TABLE"),
    ("INSERT INTO hosts VALUES ('x', 'ann')", "INSERT 0 1"),
    (
        "CREATE VIEW owned AS SELECT time, value, owner FROM metrics JOIN hosts h ON h.name = labels->>'node' \
                 WHERE metrics.name = 'up'",
        "CREATE VIEW",
    ),
    (
        "CREATE VIEW best (who, what) AS SELECT owner, max(value) FROM owned GROUP BY 1",
        "CREATE VIEW",
    ),
    ("SELECT * FROM best", "ann|3"),
    ("SELECT b.what, count(*) FROM best b JOIN owned o ON o.owner = b.who GROUP BY 1", "3|4"),
    (
        "CREATE VIEW devs AS SELECT value FROM up WHERE labels ? ('job' == 'b') AND job_id = 'b'",
        "CREATE VIEW",
    ),
    ("SELECT sum(value) FROM devs", "46"),
    ("INSERT INTO metrics VALUES ('up{job=\"a\",node=\"x\"} 9 1709208000001')", "INSERT 0 1"),
    ("SELECT * FROM best", "ann|9"),
];

#[test]
fn views_are_kept_and_always_new() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    fill(&psql, "metrics")?;
    play(&psql, VIEWS_MADE)?;
    refuse(
        &psql,
        &[
            ("CREATE VIEW best AS SELECT 1", "42P07"),
            ("CREATE VIEW metrics AS SELECT 1", "42P07"),
            ("CREATE VIEW twice AS SELECT 1 AS a, 2 AS a", "42701"),
            ("CREATE VIEW lost AS SELECT * FROM nowhere", "42P01"),
            ("CREATE OR REPLACE VIEW best AS SELECT 1 AS other", "42P16"),
            (
                "CREATE OR REPLACE VIEW owned AS SELECT now() AS time, what AS value, who AS owner FROM best",
                "54001",
            ),
            ("INSERT INTO best VALUES ('a', 1)", "42809"),
            ("UPDATE best SET what = 1", "42809"),
            ("DELETE FROM best", "42809"),
            ("DROP TABLE best", "42809"),
            ("DROP VIEW hosts", "42809"),
            ("DROP VIEW owned", "2BP01"),
            ("DROP TABLE hosts", "2BP01"),
            ("ALTER TABLE hosts DROP COLUMN owner", "2BP01"),
            ("DROP VIEW no_such", "42P01"),
        ],
    )?;
    let (_server, psql) = again(server, &directory)?;
    play(
        &psql,
        &[
            ("SELECT * FROM best", "ann|9"),
            (
                "CREATE OR REPLACE VIEW best AS SELECT owner AS who, min(value) AS what, count(*) AS n FROM owned GROUP BY 1",
                "CREATE VIEW",
            ),
            ("SELECT * FROM best", "ann|0|5"),
            (
                "SELECT relname, relkind FROM pg_class WHERE relname IN ('best', 'hosts') ORDER BY 1",
                "best|v\nhosts|r",
            ),
            ("SELECT table_name FROM information_schema.views ORDER BY 1", "best\ndevs\nowned"),
            ("SELECT pg_get_viewdef('devs'::regclass) LIKE ' SELECT value FROM up%;'", "t"),
            ("ALTER TABLE hosts ADD COLUMN room int", "ALTER TABLE"),
            ("SELECT count(*) FROM owned", "5"),
            ("DROP VIEW IF EXISTS no_such", "DROP VIEW"),
            ("DROP TABLE hosts CASCADE", "DROP TABLE"),
            ("SELECT viewname FROM pg_views WHERE schemaname = 'public'", "devs"),
            ("DROP VIEW devs", "DROP VIEW"),
        ],
    )
}

#[test]
fn continuous_aggregates_are_worked_out_when_they_are_asked() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    let make = "CREATE MATERIALIZED VIEW hourly WITH (timescaledb.continuous, timescaledb.materialized_only = true) AS \
                SELECT time_bucket('2 hours', time) AS bucket, host, avg(usage) AS usage FROM cpu GROUP BY 1, 2 WITH NO DATA";
    play(
        &psql,
        &[
            (
                "CREATE TABLE cpu (time timestamptz NOT NULL, host text, usage float8)",
                "CREATE TABLE",
            ),
            ("SELECT create_hypertable('cpu', 'time')", "(0,public,cpu,t)"),
            (make, "CREATE MATERIALIZED VIEW"),
            ("SELECT * FROM hourly", ""),
            (
                "INSERT INTO cpu SELECT t, 'h', extract(hour FROM t) FROM generate_series('2024-01-01'::timestamptz, \
                 '2024-01-01 03:00', interval '1 hour') t",
                "INSERT 0 4",
            ),
            (
                "SELECT * FROM hourly ORDER BY 1",
                "2024-01-01 00:00:00+00|h|0.5\n2024-01-01 02:00:00+00|h|2.5",
            ),
            (
                "CREATE MATERIALIZED VIEW daily WITH (timescaledb.continuous) AS SELECT time_bucket('1 day', bucket) AS day, \
                 max(usage) FROM hourly GROUP BY 1",
                "CREATE MATERIALIZED VIEW",
            ),
            ("CALL refresh_continuous_aggregate('hourly', NULL, NULL)", "CALL"),
            (
                "SELECT add_continuous_aggregate_policy('hourly', start_offset => INTERVAL '1 month', end_offset => INTERVAL '1 \
                 hour', schedule_interval => INTERVAL '1 hour')",
                "-1",
            ),
            ("SELECT add_compression_policy('hourly', INTERVAL '7 days')", "-1"),
            (
                "ALTER MATERIALIZED VIEW hourly SET (timescaledb.materialized_only = false)",
                "ALTER MATERIALIZED VIEW",
            ),
            ("REFRESH MATERIALIZED VIEW hourly", "REFRESH MATERIALIZED VIEW"),
        ],
    )?;
    refuse(
        &psql,
        &[
            (
                "CREATE MATERIALIZED VIEW none WITH (timescaledb.continuous) AS SELECT max(usage) FROM cpu",
                "0A000",
            ),
            ("CALL refresh_continuous_aggregate('cpu', NULL, NULL)", "42P01"),
            ("DROP VIEW hourly", "42809"),
            ("DROP MATERIALIZED VIEW hourly", "2BP01"),
        ],
    )?;
    let (_server, psql) = again(server, &directory)?;
    play(
        &psql,
        &[
            ("SELECT * FROM daily", "2024-01-01 00:00:00+00|2.5"),
            ("SELECT matviewname FROM pg_matviews ORDER BY 1", "daily\nhourly"),
            ("DROP MATERIALIZED VIEW hourly CASCADE", "DROP MATERIALIZED VIEW"),
            ("DROP TABLE cpu", "DROP TABLE"),
        ],
    )
}

/// Policies that are made.
const POLICIES_MADE: &[(&str, &str)] = &[
    ("CREATE TABLE cpu (time timestamptz NOT NULL, host text, usage float8)", "CREATE TABLE"),
    ("SELECT create_hypertable('cpu', 'time')", "(0,public,cpu,t)"),
    ("INSERT INTO cpu VALUES (now() - interval '40 days', 'a', 1), (now(), 'a', 2)", "INSERT 0 2"),
    ("SELECT add_retention_policy('cpu', INTERVAL '30 days')", "1000"),
    (
        "SELECT add_retention_policy('cpu', drop_after => INTERVAL '30 days', if_not_exists => true)",
        "-1",
    ),
    ("SELECT prom_api.set_default_retention_period(INTERVAL '5 days')", "t"),
    ("SELECT prom_api.set_metric_retention_period('load', INTERVAL '15 days')", "t"),
    ("SELECT prom_api.get_metric_retention_period('load')", "15 days"),
    ("SELECT prom_api.get_metric_retention_period('up')", "5 days"),
];

#[test]
fn policies_of_retention_are_carried_out() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    let sample = |name: &str, days: u32| {
        format!(
            "INSERT INTO metrics (time, name, value) VALUES (now() - interval '{days} days', '{name}', {days})"
        )
    };
    for (name, days) in [("up", 1), ("up", 10), ("load", 1), ("load", 10), ("load", 20)] {
        psql.ask(&[&sample(name, days)], "")?;
    }
    play(&psql, POLICIES_MADE)?;
    refuse(
        &psql,
        &[
            ("SELECT add_retention_policy('cpu', INTERVAL '30 days')", "42710"),
            ("SELECT add_retention_policy('nothing', INTERVAL '30 days')", "42P01"),
            ("SELECT add_retention_policy('cpu', 'soon')", "22007"),
            ("SELECT add_retention_policy('metrics', INTERVAL '-1 day')", "22023"),
            ("SELECT prom_api.set_default_retention_period(INTERVAL '-1 day')", "22023"),
            ("CALL run_job(7)", "42704"),
        ],
    )?;
    let (_server, psql) = again(server, &directory)?;
    play(
        &psql,
        &[
            ("SELECT count(*) FROM cpu", "2"),
            ("CALL run_job(1000)", "CALL"),
            ("SELECT usage FROM cpu", "2"),
            ("SELECT count(*) FROM metrics WHERE name IN ('up', 'load')", "5"),
            ("CALL prom_api.execute_maintenance()", "CALL"),
            (
                "SELECT name, value FROM metrics WHERE name IN ('up', 'load') ORDER BY 1, 2",
                "load|1\nload|10\nup|1",
            ),
            ("SELECT prom_api.reset_metric_retention_period('load')", "t"),
            ("CALL prom_api.execute_maintenance()", "CALL"),
            (
                "SELECT name, value FROM metrics WHERE name IN ('up', 'load') ORDER BY 1, 2",
                "load|1\nup|1",
            ),
            ("SELECT remove_retention_policy('cpu')", ""),
            ("SELECT remove_retention_policy('cpu', if_exists => true)", ""),
            ("DROP TABLE cpu", "DROP TABLE"),
            // That of all metrics, by another of their names.
            ("SELECT remove_retention_policy('metrics_cx', false)", ""),
        ],
    )?;
    refuse(&psql, &[("SELECT remove_retention_policy('metrics_cx', false)", "42704")])
}

/// What tables of other names say of their samples.
const TABLES_ASKED: &[(&str, &str)] = &[
    ("SELECT count(*) FROM node", "12"),
    (
        "SELECT metric, ts, value, labels FROM app WHERE metric = 'load' AND value = 20",
        "load|2024-02-29 12:00:00+00|20|{\"job\": \"a\"}",
    ),
    ("SELECT sample FROM raw", "up{job=\"set\"} 1 1709208000000"),
    ("SELECT count(*) FROM node_labels", "3"),
    (
        "SELECT sum(value) FROM app_values v JOIN app_labels l ON l.id = v.labels_id WHERE l.metric_name = 'load'",
        "86",
    ),
    ("SELECT count(*) FROM metrics", "26"),
    (
        "SELECT labels->>'__table__', count(*) FROM metrics GROUP BY 1 ORDER BY 1",
        "app|12\nnode|12\nraw|1\n|1",
    ),
    ("SELECT value FROM promql('up{__table__=\"node\",job=\"b\"}', '2024-02-29 12:00')", "10"),
    ("INSERT INTO node VALUES ('up{job=\"b\"} 99 1709208000000')", "INSERT 0 1"),
    (
        "SELECT value FROM node WHERE name = 'up' AND labels->>'job' = 'b' AND time = '2024-02-29 12:00'",
        "99",
    ),
    ("DELETE FROM node WHERE name = 'up'", "DELETE 8"),
    ("SELECT count(*) FROM app", "12"),
    (
        "SELECT relname FROM pg_class WHERE relname LIKE 'node%' ORDER BY 1",
        "node\nnode_in\nnode_labels\nnode_values",
    ),
];

#[test]
fn tables_of_samples_of_other_names_are_kept_apart() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    play(
        &psql,
        &[
            ("SELECT create_prometheus_table('metrics')", ""),
            (
                "SELECT create_prometheus_table('node', metrics_copy_table_name => 'node_in', use_timescaledb => true)",
                "",
            ),
            ("SELECT create_prometheus_cx_table('app')", "t"),
            ("SELECT create_prometheus_table('raw', normalized_tables => false)", ""),
        ],
    )?;
    fill(&psql, "node_in")?;
    fill(&psql, "app")?;
    psql.ask(
        &["SET pg_prometheus.job_label = 'set'", "COPY raw_samples FROM STDIN"],
        "up 1 1709208000000\n",
    )?;
    psql.ask(&["COPY metrics FROM STDIN"], "up 5 1709208000000\n")?;
    play(&psql, TABLES_ASKED)?;
    refuse(
        &psql,
        &[
            ("SELECT create_prometheus_table('node')", "42P07"),
            ("CREATE TABLE node (a int)", "42P07"),
            ("UPDATE node SET value = 1", "0A000"),
            ("TRUNCATE node_values", "0A000"),
            ("DROP TABLE node_values", "2BP01"),
            ("SELECT create_prometheus_table('x', no_such => 1)", "42883"),
        ],
    )?;
    let (_server, psql) = again(server, &directory)?;
    play(
        &psql,
        &[
            ("SELECT count(*) FROM node", "4"),
            ("DROP VIEW app", "DROP VIEW"),
            ("SELECT count(*) FROM app_values", "12"),
            ("DROP TABLE app_values", "DROP TABLE"),
            ("DROP TABLE app_copy", "DROP TABLE"),
            ("DROP TABLE node_values CASCADE", "DROP TABLE"),
            (
                "SELECT labels->>'__table__', count(*) FROM metrics GROUP BY 1 ORDER BY 1",
                "raw|1\n|1",
            ),
        ],
    )?;
    refuse(&psql, &[("SELECT * FROM node", "42P01"), ("CREATE TABLE app (a int)", "42P07")])
}
