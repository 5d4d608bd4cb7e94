//! Ordinary tables: made, filled, changed and joined with samples as somebody would with psql, by drivers, and
//! when the server is killed meanwhile.

use anyhow::{Context as _, Result, ensure};
use e2e::Psql;
use e2e::clients::{check, script};
use e2e::postgres::{launch, play, refuse, start};
use e2e::programs::python_with;

const HOSTS: &str = "CREATE TABLE hosts (id serial PRIMARY KEY, name text NOT NULL UNIQUE, \
                     owner varchar(10) DEFAULT 'ops', cpus int, price numeric(10,2), tags text[])";

#[test]
fn rows_are_inserted_and_changed() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    play(
        &psql,
        &[
            (HOSTS, "CREATE TABLE"),
            (
                "INSERT INTO hosts (name, cpus, price) VALUES ('a', 4, 12.345), ('b', 8, 1e2) RETURNING id, \
                 price, owner",
                "1|12.35|ops\n2|100.00|ops\nINSERT 0 2",
            ),
            ("INSERT INTO hosts VALUES (7, 'c', DEFAULT, 1, 2, '{x,NULL}')", "INSERT 0 1"),
            (
                "INSERT INTO hosts (name, cpus) SELECT name || '2', cpus + 1 FROM hosts WHERE id < 3",
                "INSERT 0 2",
            ),
            (
                "SELECT id, name, cpus, tags FROM hosts ORDER BY name",
                "1|a|4|\n4|a2|5|\n2|b|8|\n5|b2|9|\n7|c|1|{x,NULL}",
            ),
            (
                "UPDATE hosts SET cpus = cpus * 2, owner = upper(owner) WHERE name IN ('a', 'b')",
                "UPDATE 2",
            ),
            (
                "UPDATE hosts AS h SET owner = DEFAULT WHERE h.id = 2 RETURNING h.owner, cpus",
                "ops|16\nUPDATE 1",
            ),
            ("UPDATE hosts SET cpus = 2.5 WHERE id = 7 RETURNING cpus", "3\nUPDATE 1"),
            ("UPDATE hosts SET (id, cpus) = (id + 100, 0) WHERE name LIKE '%2'", "UPDATE 2"),
            ("DELETE FROM hosts WHERE cpus = 0 RETURNING id", "104\n105\nDELETE 2"),
            (
                "INSERT INTO hosts (name, cpus) VALUES ('a', 100), ('z', 1) ON CONFLICT (name) DO UPDATE SET \
                 cpus = EXCLUDED.cpus + hosts.cpus WHERE hosts.cpus < 50 RETURNING name, cpus",
                "a|108\nz|1\nINSERT 0 2",
            ),
            (
                "INSERT INTO hosts (name) VALUES ('a'), ('y'), ('y') ON CONFLICT DO NOTHING",
                "INSERT 0 1",
            ),
            ("SELECT id > 7 FROM hosts WHERE name = 'y'", "t"),
        ],
    )?;
    server.stop()
}

#[test]
fn rows_are_joined_with_samples() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    play(
        &psql,
        &[
            (HOSTS, "CREATE TABLE"),
            (
                "INSERT INTO hosts (name, owner) VALUES ('a', 'OPS'), ('b', 'ops'), ('z', 'x')",
                "INSERT 0 3",
            ),
            (
                "INSERT INTO metrics VALUES ('cpu{host=\"a\"} 3'), ('cpu{host=\"b\"} 4')",
                "INSERT 0 2",
            ),
            (
                "SELECT h.id, h.owner, m.value FROM metrics m JOIN hosts h ON h.name = m.labels->>'host' ORDER BY 1",
                "1|OPS|3\n2|ops|4",
            ),
            (
                "UPDATE hosts SET price = m.value FROM metrics m WHERE m.labels->>'host' = hosts.name",
                "UPDATE 2",
            ),
            (
                "DELETE FROM hosts USING metrics m WHERE m.value = 4 AND m.labels->>'host' = hosts.name",
                "DELETE 1",
            ),
            ("SELECT name, price FROM hosts WHERE id = 1", "a|3.00"),
            (
                "CREATE TABLE few AS SELECT id, name, price FROM hosts WHERE name IN ('a', 'z')",
                "SELECT 2",
            ),
            ("SELECT count(*), max(price) FROM few", "2|3.00"),
            ("TRUNCATE few", "TRUNCATE TABLE"),
            ("SELECT count(*) FROM few", "0"),
            ("DROP TABLE few, hosts", "DROP TABLE"),
            ("CREATE TABLE empty ()", "CREATE TABLE"),
            ("INSERT INTO empty DEFAULT VALUES", "INSERT 0 1"),
            ("SELECT count(*) FROM empty", "1"),
        ],
    )?;
    server.stop()
}

#[test]
fn tables_are_altered() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    let shown = "SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns \
                 WHERE table_name = 'owners' ORDER BY ordinal_position";
    play(
        &psql,
        &[
            (HOSTS, "CREATE TABLE"),
            ("INSERT INTO hosts (name) VALUES ('a'), ('b')", "INSERT 0 2"),
            ("ALTER TABLE hosts ADD COLUMN note text NOT NULL DEFAULT 'none'", "ALTER TABLE"),
            (
                "ALTER TABLE hosts DROP COLUMN price, DROP COLUMN tags, DROP COLUMN cpus",
                "ALTER TABLE",
            ),
            ("ALTER TABLE hosts RENAME COLUMN owner TO who", "ALTER TABLE"),
            (
                "ALTER TABLE hosts ALTER COLUMN who DROP DEFAULT, ALTER note SET DEFAULT 'new'",
                "ALTER TABLE",
            ),
            ("ALTER TABLE hosts RENAME TO owners", "ALTER TABLE"),
            ("INSERT INTO owners (name) VALUES ('c') RETURNING *", "3|c||new\nINSERT 0 1"),
            ("SELECT * FROM owners WHERE id < 3", "1|a|ops|none\n2|b|ops|none"),
            (
                shown,
                "id|integer|NO|nextval('owners_id_seq'::regclass)\nname|text|NO|\nwho|character varying|YES|\nnote|text|NO|'new'::text",
            ),
            (
                "SELECT constraint_name, column_name FROM information_schema.key_column_usage ORDER BY 1",
                "hosts_name_key|name\nhosts_pkey|id",
            ),
            ("ALTER TABLE owners DROP CONSTRAINT hosts_name_key", "ALTER TABLE"),
            ("INSERT INTO owners (name) VALUES ('c')", "INSERT 0 1"),
            ("CREATE UNIQUE INDEX by_both ON owners (name, id)", "CREATE INDEX"),
            ("DROP INDEX by_both", "DROP INDEX"),
            ("CREATE TABLE IF NOT EXISTS owners (x int)", "CREATE TABLE"),
            ("DROP TABLE IF EXISTS nowhere", "DROP TABLE"),
            ("SELECT to_regclass('owners') IS NULL, to_regclass('hosts') IS NULL", "f|t"),
        ],
    )?;
    let described = psql.ask(&["\\d owners"], "")?;
    ensure!(
        described.contains("id|integer||not null|nextval('owners_id_seq'::regclass)"),
        "{described}"
    );
    ensure!(described.contains("who|character varying(10)||"), "{described}");
    refuse(
        &psql,
        &[
            ("ALTER TABLE owners ADD PRIMARY KEY (name)", "42P16", "multiple primary keys"),
            ("ALTER TABLE owners ADD UNIQUE (name)", "23505", "Key (name)=(c)"),
            ("ALTER TABLE owners ALTER COLUMN who SET NOT NULL", "23502", "\"who\""),
            (
                "ALTER TABLE owners ALTER COLUMN who TYPE int",
                "0A000",
                "ADD COLUMN one of the new type",
            ),
            ("ALTER TABLE owners RENAME TO metrics", "42P07", "already exists"),
            ("ALTER TABLE metrics ADD COLUMN x int", "0A000", "holds samples"),
        ],
    )?;
    server.stop()
}

#[test]
fn what_is_wrong_is_told_and_changes_nothing() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    psql.ask(&[HOSTS, "INSERT INTO hosts (name, cpus) VALUES ('a', 1), ('b', 2)"], "")?;
    refuse(
        &psql,
        &[
            ("INSERT INTO hosts (name) VALUES ('c'), ('a')", "23505", "hosts_name_key"),
            ("INSERT INTO hosts (cpus) VALUES (1)", "23502", "\"name\""),
            (
                "INSERT INTO hosts (name, owner) VALUES ('d', 'somebody else')",
                "22001",
                "varying(10)",
            ),
            ("INSERT INTO hosts (name, cpus) VALUES ('d', 3000000000)", "22003", "integer"),
            ("INSERT INTO hosts (name, cpus) VALUES ('d', 'many')", "22P02", "\"many\""),
            ("INSERT INTO hosts (name, price) VALUES ('d', 123456789)", "22003", "10 digits"),
            ("INSERT INTO hosts (nam) VALUES ('d')", "42703", "\"nam\""),
            ("INSERT INTO hosts (name) VALUES ('d', 2)", "42601", "more expressions"),
            ("INSERT INTO hosts (name, name) VALUES ('d', 'e')", "42701", "more than once"),
            ("INSERT INTO nowhere VALUES (1)", "42P01", "\"nowhere\""),
            ("INSERT INTO other.hosts VALUES (1)", "42P01", "other.hosts"),
            ("UPDATE hosts SET name = 'x'", "23505", "hosts_name_key"),
            ("UPDATE hosts SET cpus = 1 / (cpus - 2)", "22012", "zero"),
            ("UPDATE hosts SET cpus = 1, cpus = 2", "42601", "multiple assignments"),
            ("UPDATE hosts SET nothing = 1", "42703", "\"nothing\""),
            ("UPDATE hosts SET hosts.cpus = 1", "42703", "\"hosts\""),
            ("UPDATE hosts SET cpus = true", "42804", "boolean"),
            ("UPDATE hosts SET cpus = '{}'::jsonb WHERE false", "42804", "jsonb"),
            ("DELETE FROM hosts WHERE nothing = 1", "42703", "nothing"),
            ("UPDATE metrics SET value = 1", "0A000", "INSERT it"),
            ("DROP TABLE metrics", "42809", "stays"),
            ("EXPLAIN DELETE FROM hosts", "0A000", "EXPLAIN is of queries"),
            ("SELECT nextval('hosts_id_seq')", "42883", "nextval"),
            ("CREATE TABLE hosts (x int)", "42P07", "\"hosts\""),
            ("CREATE TABLE metrics (x int)", "42P07", "\"metrics\""),
            ("CREATE TABLE other.t (x int)", "3F000", "public"),
            ("CREATE TABLE t (a int, a text)", "42701", "\"a\""),
            ("CREATE TABLE t (a money)", "0A000", "money"),
            ("CREATE TABLE t (a int REFERENCES hosts (id))", "0A000", "REFERENCES"),
            ("CREATE TABLE t (a int CHECK (a > 0))", "0A000", "CHECK"),
            ("CREATE TABLE t (a int DEFAULT nothing())", "42883", "nothing"),
            ("CREATE TABLE t (a int DEFAULT 'x')", "22P02", "\"x\""),
            ("CREATE TEMP TABLE t (a int)", "0A000", "temporary"),
            ("BEGIN READ ONLY; DELETE FROM hosts", "25006", "DELETE"),
            (
                "INSERT INTO hosts (name) VALUES ('q'), ('q') ON CONFLICT (name) DO UPDATE SET cpus = 1",
                "21000",
                "a second time",
            ),
            (
                "INSERT INTO hosts (name) VALUES ('q') ON CONFLICT (cpus) DO NOTHING",
                "42P10",
                "ON CONFLICT",
            ),
        ],
    )?;
    assert_eq!(psql.ask(&["SELECT id, name, cpus FROM hosts"], "")?, "1|a|1\n2|b|2");
    server.stop()
}

#[test]
fn values_of_other_types_are_assigned_as_in_postgresql() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    let columns = "j json, b jsonb, u uuid, d date, z timestamptz, t time, i interval, s text";
    psql.ask(&[&format!("CREATE TABLE x (id int, {columns})")], "")?;
    let z = "'2024-01-01 10:00+00'::timestamptz";
    psql.ask(
        &[
            "INSERT INTO x (id, j, b) SELECT 1, '{\"a\":1}'::jsonb, '[2]'::json",
            "UPDATE x SET j = b, b = j",
            &format!("INSERT INTO x (id, d, z, t, i) SELECT 2, {z}, '2024-01-02'::date, {z}, '10:00'::time"),
            "INSERT INTO x (id, t, s) SELECT 3, '1 day 11:00'::interval, now()::date - now()::date",
            "INSERT INTO x (id, b, j) VALUES (4, '1', to_json('a'::text)), (5, to_jsonb(5), NULL)",
        ],
        "",
    )?;
    let rows = psql.ask(&["SELECT id, j, b, d, z, t, i, s FROM x ORDER BY id"], "")?;
    let expected = "1|[2]|{\"a\": 1}|||||\n2|||2024-01-01|2024-01-02 00:00:00+00|10:00:00|10:00:00|\n\
                    3|||||11:00:00||0\n4|\"a\"|1|||||\n5||5|||||";
    assert_eq!(rows, expected);
    refuse(&psql, &[("INSERT INTO x (u) SELECT '{}'::jsonb", "42804", "jsonb")])?;
    server.stop()
}

#[test]
fn casts_of_varchar_have_the_type_of_the_cast() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    psql.ask(&["CREATE TABLE x (v varchar(20), c char(12))"], "")?;
    psql.ask(&["INSERT INTO x VALUES ('2020-01-01', '2020-01-02')"], "")?;
    let rows =
        psql.ask(&["SELECT v::date, v::timestamp, c::date, '5'::varchar::int FROM x"], "")?;
    assert_eq!(rows, "2020-01-01|2020-01-01 00:00:00|2020-01-02|5");
    let types = "SELECT pg_typeof('5'::varchar::int), pg_typeof(v::date) FROM x";
    assert_eq!(psql.ask(&[types], "")?, "integer|date");
    server.stop()
}

#[test]
fn statements_of_one_text_are_one_transaction() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    psql.ask(&["CREATE TABLE m (a int UNIQUE)"], "")?;
    for (text, is_good, expected) in [
        ("INSERT INTO m VALUES (1); COMMIT", true, "1"),
        ("INSERT INTO m VALUES (2); INSERT INTO m VALUES (2)", false, "1"),
        (
            "INSERT INTO m VALUES (2); COMMIT; INSERT INTO m VALUES (3); INSERT INTO m VALUES (3)",
            false,
            "1\n2",
        ),
        (
            "BEGIN; INSERT INTO m VALUES (4); COMMIT; INSERT INTO m VALUES (5); SELECT b FROM m",
            false,
            "1\n2\n4",
        ),
        ("INSERT INTO m VALUES (6); ROLLBACK; INSERT INTO m VALUES (7)", true, "1\n2\n4\n7"),
        ("INSERT INTO m VALUES (8); BEGIN; INSERT INTO m VALUES (9); ROLLBACK", true, "1\n2\n4\n7"),
        ("INSERT INTO m VALUES (8); COPY m FROM STDIN", false, "1\n2\n4\n7"),
    ] {
        let said = psql.say(&[text], "")?;
        ensure!(said.is_ok == is_good, "{text}: {said:?}");
        assert_eq!(psql.ask(&["SELECT a FROM m ORDER BY a"], "")?, expected, "{text}");
    }
    server.stop()
}

#[test]
fn what_cannot_be_returned_is_not_done() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    psql.ask(&["CREATE TABLE r (id int, a text)", "INSERT INTO r VALUES (1, 'x')"], "")?;
    refuse(
        &psql,
        &[
            ("INSERT INTO r VALUES (2, 'y') RETURNING 10 / (id - 2)", "22012", "zero"),
            ("UPDATE r SET a = 'z' RETURNING a::int", "22P02", "z"),
            ("DELETE FROM r RETURNING a::int", "22P02", "x"),
            ("DELETE FROM r RETURNING count(*)", "42803", "RETURNING"),
        ],
    )?;
    assert_eq!(psql.ask(&["SELECT * FROM r"], "")?, "1|x");
    server.stop()
}

#[test]
fn no_digit_and_no_day_is_lost_without_a_word() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    psql.ask(&["CREATE TABLE n (x numeric, f float8, d date, t timestamptz)"], "")?;
    refuse(
        &psql,
        &[
            ("INSERT INTO n (x) VALUES (1e-45)", "22003", "38 behind"),
            ("INSERT INTO n (x) VALUES (1e-45), (now() - now())", "22003", "38 behind"),
            (
                "INSERT INTO n (x) VALUES ('1234567890123456789012345678901234567')",
                "22003",
                "36 digits",
            ),
            ("INSERT INTO n (f) VALUES ('1e400')", "22003", "double precision"),
            ("INSERT INTO n (d) VALUES ('infinity')", "22008", "infinity"),
            ("UPDATE n SET x = 1 WHERE nothing = 1", "42703", "column \"nothing\" does not exist"),
        ],
    )?;
    play(
        &psql,
        &[
            (
                "INSERT INTO n VALUES (1.50, 1e300, '9999-12-31', '9999-12-31 23:59:59.5')",
                "INSERT 0 1",
            ),
            ("SELECT * FROM n", "1.50|1e+300|9999-12-31|9999-12-31 23:59:59.5+00"),
        ],
    )?;
    server.stop()
}

#[test]
fn rows_are_found_by_a_value_whatever_changes() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    let fill = "INSERT INTO v SELECT i, 'n' || i % 10, i::text FROM generate_series(1, 300) i";
    let by_name = "SELECT count(*), min(id), max(id) FROM v WHERE name = 'n7'";
    let by_names = "SELECT count(*) FROM v WHERE name IN ('n7', 'n8', 'none') AND id < 100";
    let by_number = "SELECT id, name FROM v WHERE number = 207";
    play(
        &psql,
        &[
            ("CREATE TABLE v (id int, name text, other text, number bigint)", "CREATE TABLE"),
            (fill, "INSERT 0 300"),
            ("UPDATE v SET number = id", "UPDATE 300"),
            (by_name, "30|7|297"),
            (by_name, "30|7|297"),
            (by_name, "30|7|297"),
            (by_names, "20"),
            (by_number, "207|n7"),
            (by_number, "207|n7"),
            ("UPDATE v SET name = 'n8' WHERE id = 7", "UPDATE 1"),
            (by_name, "29|17|297"),
            (by_name, "29|17|297"),
            (by_names, "20"),
            ("DELETE FROM v WHERE number = 207", "DELETE 1"),
            (by_number, ""),
            (by_number, ""),
            (by_name, "28|17|297"),
            ("SELECT count(*) FROM v WHERE name = NULL OR number = 9223372036854775807", "0"),
            ("SELECT count(*) FROM v WHERE number IN (1, 2, NULL)", "2"),
            ("SELECT count(*) FROM v WHERE number IN (1, 2, NULL)", "2"),
            (
                "BEGIN; UPDATE v SET name = 'n7' WHERE id = 1; SELECT count(*) FROM v WHERE name = 'n7'; \
                 SELECT count(*) FROM v WHERE name = 'n7'; ROLLBACK; SELECT count(*) FROM v WHERE name = 'n7'",
                "BEGIN\nUPDATE 1\n29\n29\nROLLBACK\n28",
            ),
        ],
    )?;
    server.stop()
}

#[test]
fn psycopg_sqlalchemy_and_asyncpg_change_tables() -> Result<()> {
    let python = python_with("asyncpg")?;
    let directory = tempfile::tempdir()?;
    let (server, _) = start(directory.path())?;
    let port = e2e::postgres::door_port(&server)?.to_string();
    check(python, &[&script("postgres_tables.py"), &port])?;
    server.stop()
}

#[test]
fn rows_are_there_after_a_restart_and_after_kill_9() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    psql.ask(&["CREATE TABLE kept (id serial PRIMARY KEY, pair int, side text)"], "")?;
    psql.ask(&["INSERT INTO kept (pair, side) VALUES (0, 'l'), (0, 'r')"], "")?;
    server.stop()?;
    let mut acknowledged = 0;
    for round in 0..3 {
        let server = launch(directory.path()).start()?;
        let psql = Psql::of(&server)?;
        let writer = std::thread::spawn(move || -> Result<i64> {
            let mut done = 0;
            for pair in 1.. {
                let pair = round * 1000 + pair;
                let said =
                    format!("INSERT INTO kept (pair, side) VALUES ({pair}, 'l'), ({pair}, 'r')");
                match psql.say(&[&said], "")? {
                    answer if answer.is_ok => done = pair,
                    _ => return Ok(done),
                }
            }
            Ok(done)
        });
        let seen = Psql::of(&server)?;
        let wanted = format!("SELECT count(*) FROM kept WHERE pair > {}", round * 1000);
        while seen.ask(&[&wanted], "")?.parse::<i64>()? < 10 {}
        server.kill()?;
        acknowledged = writer.join().ok().context("the writer panicked")??;
        ensure!(0 < acknowledged, "nothing was acknowledged");
    }
    let (server, psql) = start(directory.path())?;
    let halves =
        "SELECT count(*) FROM (SELECT pair FROM kept GROUP BY pair HAVING count(*) <> 2) AS half";
    assert_eq!(psql.ask(&[halves], "")?, "0");
    let last: i64 = psql.ask(&["SELECT max(pair) FROM kept"], "")?.parse()?;
    ensure!(acknowledged <= last, "{acknowledged} was acknowledged, {last} is the last");
    // Numbers go on where they were.
    let (next, last): (i64, i64) = (
        psql.ask(&["SET x.y = 1", "INSERT INTO kept (pair) VALUES (-1) RETURNING id"], "")?
            .lines()
            .nth(1)
            .context("no number")?
            .parse()?,
        psql.ask(&["SELECT max(id) FROM kept WHERE pair >= 0"], "")?.parse()?,
    );
    ensure!(last < next, "{next} after {last}");
    server.stop()
}

#[test]
fn lists_with_null_are_not_known_wherever_they_are_asked() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    play(
        &psql,
        &[
            ("CREATE TABLE known (host text)", "CREATE TABLE"),
            ("INSERT INTO known VALUES ('a'), (NULL)", "INSERT 0 2"),
            ("CREATE TABLE asked (host text, k int)", "CREATE TABLE"),
            ("INSERT INTO asked VALUES ('a', 1), ('b', 2), (NULL, 3)", "INSERT 0 3"),
            ("SELECT k FROM asked WHERE host NOT IN (SELECT host FROM known)", ""),
            ("SELECT k FROM asked WHERE NOT (host IN (SELECT host FROM known) AND k > 0)", ""),
            (
                "SELECT k FROM asked WHERE (k = 9 OR host IN (SELECT host FROM known)) IS NULL ORDER BY k",
                "2\n3",
            ),
            ("SELECT k, host IN (SELECT host FROM known) FROM asked ORDER BY k", "1|t\n2|\n3|"),
            (
                "SELECT k, CASE WHEN host IN (SELECT host FROM known WHERE host IS NOT NULL) THEN 'in' ELSE 'out' END \
                 FROM asked ORDER BY k",
                "1|in\n2|out\n3|out",
            ),
            (
                "SELECT k FROM asked WHERE k = 3 OR host NOT IN (SELECT host FROM known WHERE host IN \
                 (SELECT host FROM known) OR host IS NULL) ORDER BY k",
                "3",
            ),
            (
                "DELETE FROM asked WHERE NOT (host IN (SELECT host FROM known) AND k > 0)",
                "DELETE 0",
            ),
            (
                "UPDATE asked SET k = -k WHERE (k = 9 OR host IN (SELECT host FROM known)) IS NOT TRUE",
                "UPDATE 2",
            ),
            ("SELECT k FROM asked ORDER BY k", "-3\n-2\n1"),
            ("SELECT k FROM asked WHERE k = 0 OR host IN (SELECT host FROM known WHERE false)", ""),
        ],
    )?;
    refuse(
        &psql,
        &[(
            "SELECT k FROM asked a WHERE k = 0 OR host IN (SELECT host FROM known WHERE known.host > a.host AND random() < 2)",
            "0A000",
            "volatile",
        )],
    )?;
    server.stop()
}

#[test]
fn words_that_would_change_other_rows_are_refused() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    play(
        &psql,
        &[
            ("CREATE TABLE mo (a int)", "CREATE TABLE"),
            ("CREATE TABLE mx (a int)", "CREATE TABLE"),
            ("INSERT INTO mo VALUES (1), (2)", "INSERT 0 2"),
            ("INSERT INTO mx VALUES (1), (2)", "INSERT 0 2"),
        ],
    )?;
    refuse(
        &psql,
        &[
            ("DELETE FROM mo TABLESAMPLE BERNOULLI (0)", "0A000", "TABLESAMPLE"),
            ("UPDATE mo TABLESAMPLE SYSTEM (10) SET a = 3", "0A000", "TABLESAMPLE"),
            ("SELECT * FROM mo TABLESAMPLE BERNOULLI (0)", "0A000", "TABLESAMPLE"),
            ("DELETE mx FROM mo", "42601", "PostgreSQL does not have"),
            ("INSERT OVERWRITE INTO mo VALUES (3)", "42601", ""),
            ("REPLACE INTO mo VALUES (3)", "42601", ""),
        ],
    )?;
    play(&psql, &[("SELECT sum(mo.a), count(*) FROM mo, mx WHERE mo.a = mx.a", "3|2")])?;
    server.stop()
}
