//! Hypertables: rows of time, labels and numbers that are samples, as somebody would use them who comes from
//! TimescaleDB; beside ordinary tables with the same rows; and when the server is killed meanwhile.

use anyhow::{Result, ensure};
use e2e::Psql;
use e2e::clients::{check, script};
use e2e::postgres::{launch, play, refuse, start};
use e2e::programs::python_with;

const CPU: &str =
    "CREATE TABLE cpu (time timestamptz NOT NULL, host text, rack int, usage float8, idle float8)";
/// Four hosts in two racks, every hour of a day and the first of the next.
const FILL: &str = "INSERT INTO cpu SELECT t, 'h' || h, h % 2, h, 100 - h FROM generate_series('2024-01-01'::timestamptz, \
                    '2024-01-02', interval '1 hour') AS t, generate_series(1, 4) AS h";

const LISTED: &str = "SELECT time_bucket('1 day', time) AS b, max(usage) FROM cpu WHERE host IN (SELECT name FROM hosts WHERE \
                      name IN ('h3', 'h4', 'h99')) AND time < '2024-01-01 05:00' GROUP BY b ORDER BY b";
const NEWEST: &str = "SELECT time_bucket('1 hour', time) AS b, max(usage) FROM cpu WHERE time < '2024-01-01 11:30' GROUP BY b \
                      ORDER BY b DESC LIMIT 2";

fn make(psql: &Psql) -> Result<()> {
    play(
        psql,
        &[
            (CPU, "CREATE TABLE"),
            ("SELECT create_hypertable('cpu', 'time')", "(0,public,cpu,t)"),
            (FILL, "INSERT 0 100"),
        ],
    )
}

/// More bytes than are kept in one piece until they are stored: none is forgotten, none is there twice.
#[test]
fn long_rows_of_one_statement_are_all_there() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(directory.path())?;
    let create = "CREATE TABLE long (time timestamptz NOT NULL, path text, size float8)";
    let fill = "INSERT INTO long SELECT t, repeat('/x', 1000) || h, h FROM generate_series('2024-01-01'::timestamptz, \
                '2024-01-02 00:59:59', interval '1 minute') AS t, generate_series(1, 8) AS h";
    let counted =
        "SELECT count(*), sum(size), count(DISTINCT path), min(length(path)), max(time) FROM long";
    play(
        &psql,
        &[
            (create, "CREATE TABLE"),
            ("SELECT create_hypertable('long', 'time')", "(0,public,long,t)"),
            (fill, "INSERT 0 12000"),
            (counted, "12000|54000|8|2001|2024-01-02 00:59:00+00"),
        ],
    )?;
    let out = psql.ask(&["COPY long TO STDOUT WITH (FORMAT csv)"], "")?;
    ensure!(16 << 20 < out.len(), "only {} bytes", out.len());
    play(&psql, &[("TRUNCATE long", "TRUNCATE TABLE"), ("SELECT count(*) FROM long", "0")])?;
    ensure!(psql.ask(&["COPY long FROM STDIN WITH (FORMAT csv)"], &out)? == "COPY 12000");
    play(&psql, &[(counted, "12000|54000|8|2001|2024-01-02 00:59:00+00")])
}

#[test]
fn rows_of_a_hypertable_are_samples() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    make(&psql)?;
    let rows = "2024-01-01 05:00:00+00|h3|1|3|97";
    play(
        &psql,
        &[
            ("SELECT * FROM cpu WHERE host = 'h3' AND time = '2024-01-01 05:00'", rows),
            (
                "SELECT promql.value FROM promql('cpu_usage{host=\"h3\",rack=\"1\"}', '2024-01-01 05:00') promql",
                "3",
            ),
            (
                "SELECT name, labels->>'rack' FROM metrics WHERE labels->>'host' = 'h2' GROUP BY 1, 2 ORDER BY 1",
                "cpu_idle|0\ncpu_usage|0",
            ),
            (
                "SELECT time_bucket('12 hours', time) AS b, rack, max(usage), avg(idle), count(*) FROM cpu \
                 WHERE time < '2024-01-02' GROUP BY 1, 2 ORDER BY 1, 2",
                "2024-01-01 00:00:00+00|0|4|97|24\n2024-01-01 00:00:00+00|1|3|98|24\n\
                 2024-01-01 12:00:00+00|0|4|97|24\n2024-01-01 12:00:00+00|1|3|98|24",
            ),
            (
                "SELECT INTERVAL '1 hour' * 2, 3 * INTERVAL '1 day', INTERVAL '1 month' / 2",
                "02:00:00|3 days|15 days",
            ),
            // The last row of a time and labels is the one that counts.
            ("INSERT INTO cpu VALUES ('2024-01-01 05:00', 'h3', 1, -1, -2)", "INSERT 0 1"),
            (
                "SELECT usage, idle, (SELECT count(*) FROM cpu) FROM cpu WHERE host = 'h3' AND time = '2024-01-01 05:00'",
                "-1|-2|100",
            ),
            // What some rows lack is null, and a row takes the place of another whole.
            (
                "INSERT INTO cpu VALUES ('2024-01-03', NULL, NULL, 1, 2), ('2024-01-03', NULL, NULL, NULL, 7)",
                "INSERT 0 2",
            ),
            ("SELECT host, rack, usage, idle FROM cpu WHERE time = '2024-01-03'", "|||7"),
            ("INSERT INTO cpu VALUES ('2024-01-03', 'none', NULL, NULL, NULL)", "INSERT 0 1"),
            ("SELECT host, usage, idle FROM cpu WHERE host = 'none'", "none||"),
            ("SELECT count(*) FROM metrics WHERE labels->>'host' = 'none'", "0"),
            ("DELETE FROM cpu WHERE host = 'none'", "DELETE 1"),
            ("SELECT count(*), count(usage), count(host) FROM cpu", "101|100|100"),
        ],
    )?;
    server.stop()?;
    let server = launch(directory.path()).start()?;
    let psql = Psql::of(&server)?;
    play(
        &psql,
        &[
            (
                "SELECT count(*), count(usage), min(time), max(time) FROM cpu",
                "101|100|2024-01-01 00:00:00+00|2024-01-03 00:00:00+00",
            ),
            ("TRUNCATE cpu", "TRUNCATE TABLE"),
            ("SELECT count(*) FROM cpu", "0"),
            (FILL, "INSERT 0 100"),
            ("DROP TABLE cpu", "DROP TABLE"),
            ("SELECT count(*) FROM metrics WHERE name LIKE 'cpu%'", "0"),
        ],
    )
}

#[test]
fn lists_and_the_newest_stretches_are_asked_of_the_store() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    make(&psql)?;
    play(
        &psql,
        &[
            ("CREATE TABLE hosts (id int, name text, rack int)", "CREATE TABLE"),
            (
                "INSERT INTO hosts SELECT i, 'h' || i, i % 2 FROM generate_series(1, 200) i",
                "INSERT 0 200",
            ),
            (LISTED, "2024-01-01 00:00:00+00|4"),
            (LISTED, "2024-01-01 00:00:00+00|4"),
            (LISTED, "2024-01-01 00:00:00+00|4"),
            (NEWEST, "2024-01-01 11:00:00+00|4\n2024-01-01 10:00:00+00|4"),
            (
                "SELECT time_bucket('1 hour', time) AS b, max(usage) FROM cpu GROUP BY b ORDER BY b DESC LIMIT 1",
                "2024-01-02 00:00:00+00|4",
            ),
            (
                "SELECT count(*) FROM (SELECT time_bucket('1 hour', time) AS b, max(usage) FROM cpu GROUP BY b ORDER BY b DESC LIMIT 1000) x",
                "25",
            ),
        ],
    )?;
    server.stop()
}

#[test]
fn rows_are_deleted_by_time_and_labels() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    make(&psql)?;
    play(
        &psql,
        &[
            ("DELETE FROM cpu WHERE time < '2024-01-01 02:00' AND host = 'h1'", "DELETE 2"),
            ("DELETE FROM cpu c WHERE c.rack = 0 AND c.time >= '2024-01-01 23:00'", "DELETE 4"),
            ("DELETE FROM cpu WHERE time < now() - interval '100 years'", "DELETE 0"),
            ("DELETE FROM cpu WHERE host IN ('h8', 'h9')", "DELETE 0"),
            (
                "SELECT drop_chunks('cpu', older_than => '2024-01-01 03:00'::timestamptz)",
                "public.cpu",
            ),
            (
                "SELECT drop_chunks('cpu', INTERVAL '1 month', newer_than => '2024-01-01 23:00')",
                "public.cpu",
            ),
            (
                "SELECT count(*), min(time), max(time) FROM cpu",
                "80|2024-01-01 03:00:00+00|2024-01-01 22:00:00+00",
            ),
            ("DELETE FROM cpu WHERE host = 'h1' OR host = 'h2'", "DELETE 40"),
            ("SELECT count(*), min(host) FROM cpu", "40|h3"),
            // What is written afterwards stays.
            ("DELETE FROM cpu", "DELETE 40"),
            ("INSERT INTO cpu VALUES ('2024-01-01 05:00', 'h1', 1, 5, 6)", "INSERT 0 1"),
            ("SELECT host, usage FROM cpu", "h1|5"),
            (
                "SELECT drop_chunks('metrics', older_than => '2024-01-02'::timestamptz)",
                "public.metrics",
            ),
            ("SELECT count(*) FROM cpu", "0"),
        ],
    )?;
    let by_value = "DELETE FROM cpu WHERE usage > 2";
    refuse(
        &psql,
        &[
            (by_value, "0A000", "not deleted by such a condition on usage"),
            ("DELETE FROM cpu WHERE host LIKE 'h%'", "0A000", "such a condition on host"),
            ("DELETE FROM cpu RETURNING host", "0A000", "RETURNING"),
            ("BEGIN; DELETE FROM cpu; COMMIT", "25001", "transaction block"),
            (
                "BEGIN; SELECT drop_chunks('cpu', INTERVAL '1 day'); COMMIT",
                "25001",
                "transaction block",
            ),
            ("SELECT drop_chunks('cpu')", "22023", "older_than"),
            ("SELECT drop_chunks('cpu', 5)", "22023", "neither a time nor an interval"),
            ("SELECT drop_chunks('nope', INTERVAL '1 day')", "42P01", "does not exist"),
        ],
    )?;
    server.stop()
}

#[test]
fn what_a_hypertable_is_not_is_refused() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    make(&psql)?;
    let plain = "CREATE TABLE plain (id serial, time timestamptz, a text PRIMARY KEY, b float8)";
    let whole = "CREATE TABLE whole (time timestamptz, host text)";
    let filled = "CREATE TABLE filled (time timestamptz, b float8); \
                  INSERT INTO filled VALUES (now(), 1)";
    for (said, tag) in
        [(plain, "CREATE TABLE"), (whole, "CREATE TABLE"), (filled, "CREATE TABLE\nINSERT 0 1")]
    {
        play(&psql, &[(said, tag)])?;
    }
    refuse(
        &psql,
        &[
            ("SELECT create_hypertable('cpu', 'time')", "TS110", "already a hypertable"),
            ("SELECT create_hypertable('nope', 'time')", "42P01", "does not exist"),
            ("SELECT create_hypertable('plain', 'time')", "0A000", "PRIMARY KEY"),
            ("SELECT create_hypertable('whole', 'time')", "42P16", "no column is a value"),
            ("SELECT create_hypertable('whole', 'host')", "42804", "no timestamp"),
            ("SELECT create_hypertable('filled', 'time')", "0A000", "not empty"),
            ("UPDATE cpu SET usage = 1", "0A000", "UPDATE"),
            (
                "INSERT INTO cpu (time, usage) VALUES (now(), 1) ON CONFLICT DO NOTHING",
                "0A000",
                "ON CONFLICT",
            ),
            ("INSERT INTO cpu (host, usage) VALUES ('a', 1)", "23502", "time"),
            ("BEGIN; DROP TABLE cpu; COMMIT", "25001", "transaction block"),
            ("ALTER TABLE cpu ADD COLUMN x int", "0A000", "hypertable"),
        ],
    )?;
    play(
        &psql,
        &[
            ("SELECT create_hypertable('cpu', 'time', if_not_exists => true)", "(0,public,cpu,f)"),
            ("SELECT count(*) FROM cpu", "100"),
            // A transaction that is not committed leaves nothing.
            (
                "BEGIN; INSERT INTO cpu VALUES (now(), 'x', 1, 1, 1); ROLLBACK",
                "BEGIN\nINSERT 0 1\nROLLBACK",
            ),
            (
                "BEGIN; INSERT INTO cpu VALUES (now(), 'y', 1, 1, 1); SAVEPOINT a; INSERT INTO cpu VALUES (now(), 'z', 1, 1, 1); \
                 ROLLBACK TO a; COMMIT",
                "BEGIN\nINSERT 0 1\nSAVEPOINT\nINSERT 0 1\nROLLBACK\nCOMMIT",
            ),
            ("SELECT DISTINCT host FROM cpu WHERE time > '2025-01-01'", "y"),
        ],
    )?;
    server.stop()
}

#[test]
fn a_hypertable_says_what_an_ordinary_table_says() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, _) = start(directory.path())?;
    let python = python_with("psycopg")?;
    let port = e2e::postgres::door_port(&server)?.to_string();
    check(python, &[&script("postgres_hypertables.py"), &port])?;
    server.stop()
}

#[test]
fn hypertables_are_made_as_in_timescaledb() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    let a = "CREATE TABLE a (time timestamptz NOT NULL, device_id int NOT NULL, temperature float8, hits bigint)";
    let b = "CREATE TABLE b (time timestamptz NOT NULL, symbol text, price float8, volume int) \
             WITH (tsdb.hypertable, tsdb.partition_column='time', tsdb.segmentby='symbol')";
    play(
        &psql,
        &[
            (a, "CREATE TABLE"),
            (
                "SELECT * FROM create_hypertable('a', by_range('time', INTERVAL '1 day'))",
                "(0,public,a,t)",
            ),
            (
                "SELECT create_hypertable('a', 'time', 'device_id', 4, if_not_exists => true)",
                "(0,public,a,f)",
            ),
            // Whole numbers tell rows apart.
            (
                "INSERT INTO a SELECT time, device_id, 1, 2 FROM generate_series(now() - interval '1 hour', now(), \
                 '1 minute') AS time, generate_series(1, 4) AS device_id",
                "INSERT 0 244",
            ),
            ("SELECT count(*), count(DISTINCT device_id) FROM a", "244|4"),
            ("SELECT add_compression_policy('a', INTERVAL '7 days')", "-1"),
            ("CALL add_columnstore_policy('a', after => INTERVAL '7 days')", "CALL"),
            (
                "ALTER TABLE a SET (timescaledb.compress, timescaledb.compress_segmentby = 'device_id')",
                "ALTER TABLE",
            ),
            // Unless it is said which do.
            (b, "CREATE TABLE"),
            (
                "INSERT INTO b VALUES ('2024-01-01', 'x', 1.5, 7), ('2024-01-01', 'x', 2.5, 8)",
                "INSERT 0 2",
            ),
            ("SELECT symbol, price, volume, pg_typeof(volume) FROM b", "x|2.5|8|integer"),
            (
                "BEGIN; CREATE TABLE c (time timestamptz, a text, v float8); SELECT create_hypertable('c', 'time'); \
                 INSERT INTO c VALUES (now(), 'b', 1); COMMIT",
                "BEGIN\nCREATE TABLE\n(2,public,c,t)\nINSERT 0 1\nCOMMIT",
            ),
            ("SELECT a, v FROM c", "b|1"),
        ],
    )?;
    refuse(
        &psql,
        &[
            (
                "INSERT INTO a VALUES (now(), NULL, 1, 1)",
                "23502",
                "null value in column \"device_id\"",
            ),
            ("ALTER TABLE b SET (timescaledb.segmentby = 'price')", "42804", "cannot be a label"),
            ("ALTER TABLE b SET (timescaledb.segmentby = 'nope')", "42703", "does not exist"),
            ("SELECT add_compression_policy('nope', INTERVAL '7 days')", "42P01", "does not exist"),
            (
                "CREATE MATERIALIZED VIEW m WITH (timescaledb.continuous) AS SELECT 1",
                "0A000",
                "valid time bucket function",
            ),
        ],
    )?;
    server.stop()
}

#[test]
fn what_fails_leaves_a_hypertable_as_it_was() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    make(&psql)?;
    refuse(
        &psql,
        &[
            ("DROP TABLE cpu, nosuch", "42P01", "nosuch"),
            ("TRUNCATE cpu, nosuch", "42P01", "nosuch"),
            ("DROP TABLE cpu, metrics", "42809", "metrics"),
        ],
    )?;
    play(&psql, &[("CREATE TABLE other (a int)", "CREATE TABLE")])?;
    let too_late = "BEGIN; INSERT INTO other VALUES (1); \
                    INSERT INTO cpu VALUES (now() + interval '1 year', 'z', 1, 1, 1); COMMIT";
    refuse(&psql, &[(too_late, "22008", "future")])?;
    play(
        &psql,
        &[
            ("SELECT count(*) FROM cpu", "100"),
            ("SELECT count(*) FROM other", "0"),
            // A table of that name with other columns knows nothing of the one before.
            ("DROP TABLE cpu", "DROP TABLE"),
            ("CREATE TABLE cpu (time timestamptz, host int, usage float8)", "CREATE TABLE"),
        ],
    )?;
    // Its number depends on tables that are kept beside it.
    let made = psql.ask(&["SELECT create_hypertable('cpu', 'time')"], "")?;
    ensure!(made.ends_with(",public,cpu,t)"), "{made}");
    play(
        &psql,
        &[
            ("INSERT INTO cpu VALUES ('2024-01-02', 7, 1)", "INSERT 0 1"),
            ("SELECT host, usage FROM cpu", "7|1"),
            ("SELECT host, max(usage) FROM cpu GROUP BY 1", "7|1"),
        ],
    )?;
    server.stop()
}

#[test]
fn newest_rows_of_each_are_those_that_conditions_leave() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    make(&psql)?;
    let each = |query: &str| {
        format!(
            "SELECT n.* FROM (VALUES ('h1'), ('h2')) t(h), LATERAL ({query} ORDER BY time DESC LIMIT 1) n ORDER BY 1"
        )
    };
    let scenes = [
        (
            "SELECT host, time FROM cpu c WHERE c.host = t.h",
            "h1|2024-01-02 00:00:00+00\nh2|2024-01-02 00:00:00+00",
        ),
        // What is called `time` there is another column.
        ("SELECT host, usage AS time FROM cpu c WHERE c.host = t.h", "h1|1\nh2|2"),
        (
            "SELECT host, time FROM (SELECT * FROM cpu WHERE time < '2024-01-01 05:00') c WHERE c.host = t.h",
            "h1|2024-01-01 04:00:00+00\nh2|2024-01-01 04:00:00+00",
        ),
        (
            "SELECT c.host, c.time, c.n FROM (SELECT host, time_bucket('2 days', time) AS time, count(*) AS n FROM cpu GROUP BY 1, 2) c \
             WHERE c.host = t.h",
            "h1|2024-01-01 00:00:00+00|25\nh2|2024-01-01 00:00:00+00|25",
        ),
    ];
    for (query, expected) in scenes {
        play(&psql, &[(&each(query), expected)])?;
    }
    server.stop()
}

#[test]
fn rows_of_a_hypertable_are_there_after_kill_9() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut told = 0;
    for round in 0..4 {
        let (server, psql) = start(directory.path())?;
        if round == 0 {
            make(&psql)?;
            told = 100;
        }
        let count: u64 = psql.say(&["SELECT count(*) FROM cpu"], "")?.out.parse()?;
        ensure!(told <= count, "round {round}: {count} of {told} rows");
        for nth in 0..20 {
            let row = format!("INSERT INTO cpu VALUES ('2025-01-01', 'r{round}', {nth}, NULL, 1)");
            let answer = psql.say(&[&row], "")?;
            ensure!(answer.is_ok, "{}", answer.error);
            told += 1;
        }
        server.kill()?;
    }
    let (server, psql) = start(directory.path())?;
    let counts = format!("{told}|{}|{told}", 100);
    play(&psql, &[("SELECT count(*), count(usage), count(idle) FROM cpu", &counts)])?;
    server.stop()
}

#[test]
fn samples_that_are_there_become_rows_of_a_new_hypertable() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    let lines: String = (0..3)
        .map(|host| {
            format!("cpu_usage{{__table__=\"cpu\",host=\"h{host}\"}} {host} 1790000000000\n")
        })
        .collect();
    server.write("/api/v1/import/prometheus", &lines)?;
    play(
        &psql,
        &[
            (
                "CREATE TABLE cpu (time timestamptz NOT NULL, host text, usage float8)",
                "CREATE TABLE",
            ),
            ("SELECT create_hypertable('cpu', 'time')", "(0,public,cpu,t)"),
            ("SELECT host, usage FROM cpu ORDER BY host", "h0|0\nh1|1\nh2|2"),
            // What is dropped is gone, and no later import with it.
            ("DROP TABLE cpu", "DROP TABLE"),
            ("SELECT count(*) FROM metrics", "0"),
        ],
    )?;
    let later = lines.replace("1790000000000", "1790000060000");
    server.write("/api/v1/import/prometheus", &later)?;
    play(
        &psql,
        &[(
            "CREATE TABLE cpu (time timestamptz NOT NULL, host text, usage float8)",
            "CREATE TABLE",
        )],
    )?;
    psql.ask(&["SELECT create_hypertable('cpu', 'time')"], "")?;
    play(&psql, &[("SELECT count(*) FROM cpu", "3")])?;
    server.stop()
}

#[test]
fn a_killed_drop_is_finished_by_the_next_start() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    make(&psql)?;
    // A partition for each month takes its time.
    let fill = "INSERT INTO cpu SELECT t, 'old', 1, 1, 2 FROM generate_series('2010-01-01'::timestamptz, \
                '2018-01-01', interval '1 month') AS t";
    play(&psql, &[(fill, "INSERT 0 97")])?;
    server.write(
        "/api/v1/import/prometheus",
        "other_usage{__table__=\"other\",host=\"a\"} 1 1790000000000\n",
    )?;
    let mut dropping = e2e::postgres::Raw::of(&server)?;
    dropping.query("DROP TABLE cpu")?;
    e2e::poll("that the table is gone", std::time::Duration::from_secs(60), || {
        let said = psql.ask(&["SELECT count(*) FROM pg_class WHERE relname = 'cpu'"], "")?;
        ensure!(said == "0", "{said}");
        Ok(())
    })?;
    server.kill()?;
    let (server, psql) = start(directory.path())?;
    play(
        &psql,
        &[
            ("SELECT count(*) FROM metrics WHERE labels->>'__table__' = 'cpu'", "0"),
            ("SELECT count(*) FROM metrics WHERE labels->>'__table__' = 'other'", "1"),
        ],
    )?;
    server.stop()
}
