//! Statements whose answers were others than PostgreSQL 15's, and are its own now.

use anyhow::Result;
use e2e::clients::{check, script};
use e2e::postgres::{door_port, play, refuse, start};
use e2e::programs::python_with;

/// What is in a list of NULL is not known, and neither is what is not in it.
#[test]
fn lists_of_one_column_are_joined_as_conditions() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(directory.path())?;
    play(
        &psql,
        &[
            ("CREATE TABLE n (a text, b int, c int, d int)", "CREATE TABLE"),
            (
                "INSERT INTO n VALUES ('a', 1, 1, 2), ('b', 2, 3, 2), (NULL, 3, 3, NULL), ('c', NULL, NULL, 1)",
                "INSERT 0 4",
            ),
            ("SELECT * FROM n WHERE a IN ('a', 'b') AND a NOT IN (NULL)", ""),
            ("SELECT b FROM n WHERE b = 1 AND b NOT IN (NULL)", ""),
            ("SELECT b, (b IN (1, NULL) AND b NOT IN (2, 7)) FROM n ORDER BY 1", "1|t\n2|f\n3|\n|"),
            (
                "SELECT * FROM (SELECT b FROM n WHERE b IN (1, 2, 4, 5, 6)) AS q WHERE b NOT IN (3, 6, 7, 8, NULL)",
                "",
            ),
            (
                "SELECT b FROM n WHERE b IN (SELECT c FROM n) AND b NOT IN (SELECT d FROM n WHERE a <> 'c')",
                "1\n3",
            ),
            ("SELECT b FROM n WHERE b IN (SELECT c FROM n) AND b NOT IN (SELECT d FROM n)", ""),
            (
                "SELECT b FROM n WHERE b NOT IN (1, 5, 6, 7, 8) OR b NOT IN (2, 9) ORDER BY 1",
                "1\n2\n3",
            ),
            ("SELECT b FROM n WHERE NOT (b IN (1) AND b IN (2)) ORDER BY 1", "1\n2\n3"),
            ("SELECT b FROM n WHERE b IN (c, d, 7, 8, 9) AND b IN (d, 4, 5, 6)", "2"),
            ("SELECT b FROM n WHERE b IN (c, d) AND b NOT IN (d)", "1"),
            (
                "SELECT count(*) FILTER (WHERE b IN (1, 2, 4, 5) AND b NOT IN (9, 8, 7, 6, NULL)) FROM n",
                "0",
            ),
            ("DELETE FROM n WHERE b IN (1, 2) AND b NOT IN (3, NULL) RETURNING *", "DELETE 0"),
            ("UPDATE n SET b = 99 WHERE a IN ('a', 'b') AND a NOT IN ('x', NULL)", "UPDATE 0"),
            ("DELETE FROM n WHERE b NOT IN (1) OR b NOT IN (2) RETURNING b", "1\n2\n3\nDELETE 3"),
            (
                "CREATE TABLE h (time timestamptz NOT NULL, host text, v float8) WITH (tsdb.hypertable, \
                 tsdb.partition_column = 'time', tsdb.segmentby = 'host')",
                "CREATE TABLE",
            ),
            ("INSERT INTO h VALUES ('2024-01-01', 'a', 1), ('2024-01-01', 'b', 2)", "INSERT 0 2"),
            ("DELETE FROM h WHERE host IN ('a', 'b') AND host NOT IN ('c', NULL)", "DELETE 0"),
            ("SELECT host FROM h WHERE host IN ('a', 'b') AND host NOT IN ('c', 'b')", "a"),
        ],
    )
}

/// Each group is there once, whatever other doors have made of the series of its rows.
#[test]
fn groups_by_all_labels_are_there_once() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(directory.path())?;
    let buckets = "SELECT time_bucket('1 hour', time), host, max(a), max(b) FROM g GROUP BY 1, 2 ORDER BY 1, 2";
    play(
        &psql,
        &[
            (
                "CREATE TABLE g (time timestamptz NOT NULL, host text, a float8, b float8) WITH (tsdb.hypertable, \
                 tsdb.partition_column = 'time', tsdb.segmentby = 'host')",
                "CREATE TABLE",
            ),
            (
                "INSERT INTO g VALUES ('2024-01-01 00:00', 'y', 1, 1), ('2024-01-01 01:00', 'y', 2, 2), \
                 ('2024-01-01 02:00', 'y', 3, 3), ('2024-01-01 03:00', 'y', 4, 4)",
                "INSERT 0 4",
            ),
            ("DELETE FROM metrics WHERE name = 'g_b' AND time = '2024-01-01 00:00'", "DELETE 1"),
            ("DELETE FROM metrics WHERE name = 'g_a' AND time = '2024-01-01 01:00'", "DELETE 1"),
            (
                buckets,
                "2024-01-01 00:00:00+00|y|1|\n2024-01-01 01:00:00+00|y||2\n\
                 2024-01-01 02:00:00+00|y|3|3\n2024-01-01 03:00:00+00|y|4|4",
            ),
            (
                "CREATE TABLE f (time timestamptz NOT NULL, host text, rack int, a float8) WITH (tsdb.hypertable, \
                 tsdb.partition_column = 'time', tsdb.segmentby = 'host, rack')",
                "CREATE TABLE",
            ),
            ("INSERT INTO f VALUES ('2024-01-01', 'x', 1, 1)", "INSERT 0 1"),
        ],
    )?;
    let lines = "f_a{__table__=\"f\",host=\"x\",rack=\"1\",dc=\"1\"} 2 1704067200000\n\
                 f_a{__table__=\"f\",host=\"x\",rack=\"+1\"} 3 1704070800000\n";
    assert_eq!(psql.ask(&["COPY metrics FROM STDIN"], lines)?, "COPY 2");
    play(
        &psql,
        &[
            ("SELECT host, rack, a FROM f ORDER BY a", "x|1|1\nx|1|2\nx|1|3"),
            ("SELECT host, rack, count(*), sum(a) FROM f GROUP BY host, rack", "x|1|3|6"),
        ],
    )
}

/// The key that is named decides, whatever other key is there, too.
#[test]
fn on_conflict_looks_at_the_key_that_is_named() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(directory.path())?;
    play(
        &psql,
        &[
            ("CREATE TABLE oc (id int PRIMARY KEY, k text UNIQUE, v int)", "CREATE TABLE"),
            ("INSERT INTO oc VALUES (1, 'a', 1), (2, 'b', 2)", "INSERT 0 2"),
            (
                "INSERT INTO oc VALUES (1, 'a', 5) ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v RETURNING *",
                "1|a|5\nINSERT 0 1",
            ),
            ("INSERT INTO oc VALUES (2, 'a', 7) ON CONFLICT (k) DO NOTHING", "INSERT 0 0"),
            (
                "INSERT INTO oc VALUES (2, 'a', 7) ON CONFLICT (k) DO UPDATE SET v = 8 RETURNING id",
                "1\nINSERT 0 1",
            ),
            (
                "INSERT INTO oc VALUES (2, 'a', 9) ON CONFLICT ON CONSTRAINT oc_pkey DO UPDATE SET v = 9 RETURNING id",
                "2\nINSERT 0 1",
            ),
            ("INSERT INTO oc VALUES (2, 'c', 7) ON CONFLICT DO NOTHING", "INSERT 0 0"),
            ("SELECT * FROM oc ORDER BY id", "1|a|8\n2|b|9"),
        ],
    )?;
    refuse(
        &psql,
        &[
            ("INSERT INTO oc VALUES (2, 'c', 7) ON CONFLICT (k) DO NOTHING", "23505", "oc_pkey"),
            ("INSERT INTO oc VALUES (NULL, 'a', 7) ON CONFLICT (k) DO NOTHING", "23502", "id"),
        ],
    )
}

/// To the nearest; of a `numeric` halves go away from zero, of a float to the even one of two.
#[test]
fn numbers_become_whole_ones_by_rounding() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(directory.path())?;
    play(
        &psql,
        &[
            ("CREATE TABLE t (i int, n numeric(10,2), m numeric, f float8)", "CREATE TABLE"),
            (
                "INSERT INTO t VALUES (5, 0.99, 2.5, 2.5), (10, 1.50, -2.5, -2.5), (3, -1.49, 0.5, 3.5), \
                 (NULL, NULL, NULL, NULL)",
                "INSERT 0 4",
            ),
            (
                "SELECT 7.9::numeric(10,2)::int, '0.5'::numeric::int, (10 / 4.0)::int, \
                 extract(second FROM timestamp '2024-01-01 00:00:59.7')::int",
                "8|1|3|60",
            ),
            (
                "SELECT n::int, m::bigint, f::int, (i / 2.0)::smallint FROM t",
                "1|3|2|3\n2|-3|-2|5\n-1|1|4|2\n|||",
            ),
            ("SELECT n FROM t WHERE n::int = 2", "1.50"),
            (
                "SELECT CAST(avg(i) AS int), avg(i + 0.5)::int, sum(f)::int FROM t WHERE i IN (5, 10)",
                "8|8|0",
            ),
            ("SELECT x::int FROM (SELECT i / 2.0 AS x FROM t WHERE i = 5) AS q", "3"),
            (
                "SELECT (SELECT i / 2.0 FROM t WHERE i = 5)::int, (-(i * 0.5))::int FROM t WHERE i = 5",
                "3|-3",
            ),
            ("SELECT (f / 1)::int, (f * i / 5)::int FROM t WHERE i = 5", "2|2"),
        ],
    )?;
    refuse(&psql, &[("SELECT '2147483647.5'::numeric::int", "22003", "integer out of range")])
}

/// Of alike rows as many are taken away, or are in both, as there are on the other side.
#[test]
fn set_operations_count_rows() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(directory.path())?;
    play(
        &psql,
        &[
            ("SELECT * FROM (VALUES (1), (1), (2)) v(x) EXCEPT ALL SELECT 1 ORDER BY 1", "1\n2"),
            ("SELECT * FROM (VALUES (1), (1), (2)) v(x) INTERSECT ALL SELECT 1", "1"),
            ("CREATE TABLE n (a int, b text)", "CREATE TABLE"),
            (
                "INSERT INTO n VALUES (1, 'x'), (1, 'x'), (1, NULL), (1, NULL), (1, NULL), (2, 'y'), (NULL, NULL)",
                "INSERT 0 7",
            ),
            (
                "SELECT a, b FROM n EXCEPT ALL (SELECT 1, NULL UNION ALL SELECT 1, NULL UNION ALL SELECT 2, 'y') \
                 ORDER BY 1, 2",
                "1|x\n1|x\n1|\n|",
            ),
            (
                "SELECT a, b FROM n INTERSECT ALL (SELECT 1, NULL UNION ALL SELECT 1, NULL UNION ALL SELECT 2, 'y') \
                 ORDER BY 1, 2",
                "1|\n1|\n2|y",
            ),
            ("SELECT count(*) FROM (SELECT * FROM n EXCEPT ALL SELECT * FROM n) AS q", "0"),
            ("SELECT count(*) FROM (SELECT * FROM n INTERSECT ALL SELECT * FROM n) AS q", "7"),
            ("SELECT a FROM n EXCEPT SELECT 2 ORDER BY 1", "1"),
            ("SELECT a FROM n INTERSECT SELECT 1", "1"),
            (
                "SELECT a FROM n WHERE a = 1 EXCEPT ALL SELECT 1 EXCEPT ALL SELECT 1::bigint",
                "1\n1\n1",
            ),
            (
                "SELECT a FROM n WHERE a IN (SELECT a FROM n EXCEPT ALL SELECT 1) ORDER BY 1 LIMIT 1",
                "1",
            ),
        ],
    )
}

/// What is kept as text says the same when it is read again.
#[test]
fn signs_of_what_is_kept_stay_apart() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(directory.path())?;
    play(
        &psql,
        &[
            ("CREATE VIEW v AS SELECT - -5 AS x, 7 AS y, - - -5 AS z", "CREATE VIEW"),
            ("SELECT * FROM v", "5|7|-5"),
            (
                "CREATE TABLE n (i int, d int DEFAULT - -5 + 2, e int DEFAULT abs(- -3))",
                "CREATE TABLE",
            ),
            ("ALTER TABLE n ADD COLUMN f int DEFAULT - (- 4)", "ALTER TABLE"),
            ("INSERT INTO n (i) VALUES (1) RETURNING *", "1|7|3|4\nINSERT 0 1"),
            ("ALTER TABLE n ALTER COLUMN f SET DEFAULT 1 - - - -8", "ALTER TABLE"),
            ("INSERT INTO n (i) VALUES (2) RETURNING f", "9\nINSERT 0 1"),
        ],
    )?;
    let fetched = psql
        .ask(&["BEGIN", "DECLARE c CURSOR FOR SELECT - -5, 7", "FETCH ALL FROM c", "COMMIT"], "")?;
    assert_eq!(fetched, "BEGIN\nDECLARE CURSOR\n5|7\nCOMMIT");
    Ok(())
}

/// A parameter is what its client says that it is.
#[test]
fn parameters_are_of_their_declared_types() -> Result<()> {
    let python = python_with("psycopg")?;
    let directory = tempfile::tempdir()?;
    let (server, _psql) = start(directory.path())?;
    check(python, &[&script("postgres_parameters.py"), &door_port(&server)?.to_string()])
}

/// `NOT IN` of a list with NULL is not known, in what is deleted and changed, too.
#[test]
fn rows_that_are_changed_are_those_of_postgresql() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(directory.path())?;
    play(
        &psql,
        &[
            ("CREATE TABLE fa (id int, z int, w int, f float)", "CREATE TABLE"),
            (
                "INSERT INTO fa VALUES (1,10,1,0.1), (2,20,1,123456789.123), (NULL,30,2,1), (4,40,2,1), (5,NULL,1,1), (NULL,NULL,2,1)",
                "INSERT 0 6",
            ),
            ("CREATE TABLE fb (id int, z int, w int)", "CREATE TABLE"),
            (
                "INSERT INTO fb VALUES (1,5,1), (NULL,50,1), (4,NULL,2), (NULL,NULL,2), (2,20,3)",
                "INSERT 0 5",
            ),
            ("SELECT f FROM fa WHERE id < 3 ORDER BY id", "0.1\n123456789.123"),
            ("DELETE FROM fa WHERE 3 NOT IN (SELECT id FROM fb) RETURNING id", "DELETE 0"),
            ("UPDATE fa SET z = 0 WHERE 3 NOT IN (SELECT id FROM fb)", "UPDATE 0"),
            (
                "UPDATE fa SET z = 50 WHERE id NOT IN (SELECT fb.id FROM fb WHERE fb.id = fa.id) RETURNING w",
                "2\n1\n2\nUPDATE 3",
            ),
            (
                "DELETE FROM fa WHERE id NOT IN (SELECT fb.id FROM fb WHERE fb.w > fa.w) RETURNING id",
                "4\nDELETE 1",
            ),
            (
                "DELETE FROM fa WHERE EXISTS (SELECT count(*) FROM fb WHERE fb.id = fa.id) AND id = 5",
                "DELETE 1",
            ),
            ("CREATE TABLE ng (i int)", "CREATE TABLE"),
            ("INSERT INTO ng VALUES (-2147483648)", "INSERT 0 1"),
        ],
    )?;
    refuse(
        &psql,
        &[
            ("UPDATE ng SET i = -i", "22003", "integer out of range"),
            ("UPDATE ng SET i = abs(i)", "22003", "out of range"),
            (
                "DELETE FROM fa WHERE id NOT IN (SELECT id FROM fb WHERE fb.w = fa.w AND random() < 2 LIMIT 1)",
                "0A000",
                "volatile",
            ),
        ],
    )
}
