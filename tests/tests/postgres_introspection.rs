//! First queries of drivers and schema queries of tools. The expected rows are those of PostgreSQL 15.

use anyhow::{Result, ensure};
use e2e::postgres;
use e2e::postgres::Psql;

/// The types that Npgsql loads when it connects.
const NPGSQL_TYPES: &str = "SELECT ns.nspname, t.oid, t.typname, t.typtype, t.typnotnull, t.elemtypoid FROM ( SELECT \
     typ.oid, typ.typnamespace, typ.typname, typ.typtype, typ.typrelid, typ.typnotnull, \
     typ.relkind, elemtyp.oid AS elemtypoid, elemtyp.typname AS elemtypname, elemcls.relkind AS \
     elemrelkind, CASE WHEN elemproc.proname='array_recv' THEN 'a' ELSE elemtyp.typtype END AS \
     elemtyptype FROM ( SELECT typ.oid, typnamespace, typname, typrelid, typnotnull, relkind, \
     typelem AS elemoid, CASE WHEN proc.proname='array_recv' THEN 'a' ELSE typ.typtype END AS \
     typtype, CASE WHEN proc.proname='array_recv' THEN typ.typelem WHEN typ.typtype='r' THEN \
     rngsubtype WHEN typ.typtype='m' THEN (SELECT rngtypid FROM pg_range WHERE rngmultitypid = \
     typ.oid) WHEN typ.typtype='d' THEN typ.typbasetype END AS elemtypoid FROM pg_type AS typ \
     LEFT JOIN pg_class AS cls ON (cls.oid = typ.typrelid) LEFT JOIN pg_proc AS proc ON proc.oid \
     = typ.typreceive LEFT JOIN pg_range ON (pg_range.rngtypid = typ.oid) ) AS typ LEFT JOIN \
     pg_type AS elemtyp ON elemtyp.oid = elemtypoid LEFT JOIN pg_class AS elemcls ON \
     (elemcls.oid = elemtyp.typrelid) LEFT JOIN pg_proc AS elemproc ON elemproc.oid = \
     elemtyp.typreceive ) AS t JOIN pg_namespace AS ns ON (ns.oid = typnamespace) WHERE typtype \
     IN ('b', 'r', 'm', 'e', 'd') OR (typtype = 'c' AND relkind='c') OR (typtype = 'p' AND \
     typname IN ('record', 'void', 'unknown')) OR (typtype = 'a' AND ( elemtyptype IN ('b', 'r', \
     'm', 'e', 'd') OR (elemtyptype = 'p' AND elemtypname IN ('record', 'void')) OR (elemtyptype \
     = 'c' AND elemrelkind='c') ))";

/// Checks the answers to statements.
fn check(psql: &Psql, cases: &[(&str, &str)]) -> Result<()> {
    for (asked, expected) in cases {
        let said = psql.ask(&[asked], "")?;
        ensure!(said == *expected, "{asked}: {said}");
    }
    Ok(())
}

#[test]
fn types_have_their_functions_and_elements() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = postgres::start(directory.path())?;
    let types = format!(
        "SELECT count(*), count(elemtypoid), sum(oid::bigint) FROM ({NPGSQL_TYPES}) t \
         WHERE nspname = 'pg_catalog'"
    );
    check(
        &psql,
        &[
            (&types, "156|89|323478"),
            (
                "SELECT oid, typname, typreceive, typbasetype FROM pg_type WHERE (typreceive != 0 OR \
                 typsend != 0) AND typtype != 'r' AND typreceive::text != 'array_recv' ORDER BY 1 LIMIT 2",
                "16|bool|boolrecv|0\n17|bytea|bytearecv|0",
            ),
            (
                "SELECT typname, typlen, typalign, typcategory, typinput FROM pg_type \
                 WHERE oid IN (16, 600, 3904) ORDER BY oid",
                "bool|1|c|B|boolin\npoint|16|d|G|point_in\nint4range|-1|i|R|range_in",
            ),
            ("SELECT count(*) FROM pg_range", "6"),
        ],
    )
}

#[test]
fn schema_queries_of_tools_are_answered() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = postgres::start(directory.path())?;
    let table = "CREATE TABLE shop (id serial PRIMARY KEY, name varchar(20) NOT NULL UNIQUE, \
                 price numeric(10,2), at timestamptz(3), tags text[])";
    psql.ask(&[table, "INSERT INTO shop (name, tags) VALUES ('a', '{x,y}')"], "")?;
    check(
        &psql,
        &[
            (
                "SELECT column_name, character_maximum_length, numeric_precision, numeric_scale, \
                 datetime_precision FROM information_schema.columns WHERE table_name = 'shop' ORDER BY 1",
                "at||||3\nid||32|0|\nname|20|||\nprice||10|2|\ntags||||",
            ),
            (
                "SELECT sequencename, max_value, cycle FROM pg_sequences WHERE schemaname = 'public'",
                "shop_id_seq|2147483647|f",
            ),
            (
                "SELECT c.relname, o.opcname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
                 JOIN pg_opclass o ON o.oid = ANY(i.indclass) WHERE c.relname = 'shop_pkey'",
                "shop_pkey|int4_ops",
            ),
            (
                "SELECT attname FROM pg_attribute WHERE attrelid = 'shop'::regclass \
                 AND atttypid = ANY('{int,varchar}'::regtype[]) ORDER BY attnum",
                "id\nname",
            ),
            (
                "SELECT CASE atttypid WHEN 'int'::regtype THEN 'serial' ELSE 'other' END \
                 FROM pg_attribute WHERE attrelid = 'shop'::regclass ORDER BY attnum LIMIT 1",
                "serial",
            ),
            (
                "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace \
                 AND relname = 'shop' AND NOT relispartition",
                "shop",
            ),
            (
                "SELECT typnamespace::regnamespace FROM pg_type WHERE oid = 'int'::regtype",
                "pg_catalog",
            ),
            ("SELECT 'shop'::regclass::text", "shop"),
            (
                "SELECT s.id, u.tag, u.n FROM shop s \
                 LEFT JOIN LATERAL unnest(s.tags) WITH ORDINALITY AS u(tag, n) ON true ORDER BY n",
                "1|x|1\n1|y|2",
            ),
            ("SELECT pg_relation_is_updatable('shop'::regclass, true)", "28"),
            ("SELECT rolname FROM pg_roles WHERE rolname = current_role", "somebody"),
            ("SELECT datname FROM pg_stat_database WHERE datname = current_database()", "metrics"),
            ("SELECT state FROM pg_stat_activity WHERE pid = pg_backend_pid()", "active"),
            (
                "SELECT utc_offset, is_dst FROM pg_timezone_names WHERE name = 'Asia/Kolkata'",
                "05:30:00|f",
            ),
            ("SELECT pg_postmaster_start_time() < now()", "t"),
        ],
    )
}

#[test]
fn settings_of_postgresql_are_known() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = postgres::start(directory.path())?;
    check(
        &psql,
        &[
            ("SHOW work_mem", "4MB"),
            ("SET enable_seqscan = off; SHOW enable_seqscan", "SET\noff"),
            (
                "SET work_mem = '64MB'; SELECT setting, unit FROM pg_settings WHERE name = 'work_mem'",
                "SET\n65536|kB",
            ),
            ("SELECT 200 < count(*) FROM pg_show_all_settings()", "t"),
            ("SET CONSTRAINTS ALL DEFERRED", "SET CONSTRAINTS"),
            ("SET TIME ZONE LOCAL", "SET"),
            ("SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE", "SET"),
            ("START TRANSACTION; COMMIT", "START TRANSACTION\nCOMMIT"),
        ],
    )?;
    let all = psql.ask(&["SHOW ALL"], "")?;
    ensure!(all.contains("TimeZone|UTC|") && 200 < all.lines().count(), "{all}");
    for (statement, words) in [
        ("SET work_mem = '1kB'", "outside the valid range"),
        ("SET shared_buffers = '1GB'", "without restarting"),
        ("SET IntervalStyle = 'iso_8601'", "not supported"),
        ("SET nosuch = 1", "unrecognized configuration parameter"),
    ] {
        let said = psql.say(&[statement], "")?;
        ensure!(!said.is_ok && said.error.contains(words), "{statement}: {said:?}");
    }
    Ok(())
}

#[test]
fn errors_name_objects_and_positions() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = postgres::start(directory.path())?;
    psql.ask(
        &["CREATE TABLE t (a int PRIMARY KEY, b int NOT NULL)", "INSERT INTO t VALUES (1, 1)"],
        "",
    )?;
    for (statement, expected) in [
        (
            "INSERT INTO t VALUES (1, 1)",
            &["23505", "SCHEMA NAME:  public", "TABLE NAME:  t", "CONSTRAINT NAME:  t_pkey"][..],
        ),
        ("INSERT INTO t VALUES (2, NULL)", &["23502", "TABLE NAME:  t", "COLUMN NAME:  b"]),
        ("SELECT nosuch FROM t", &["42703", "LINE 1: SELECT nosuch FROM t\n               ^"]),
        (
            "SELECT * FROM nosuch",
            &["42P01", "LINE 1: SELECT * FROM nosuch\n                      ^"],
        ),
        ("SELEC 1", &["42601: syntax error at or near \"SELEC\"", "LINE 1: SELEC 1\n        ^"]),
    ] {
        let said = psql.say(&["\\set VERBOSITY verbose", statement], "")?;
        for words in expected {
            ensure!(said.error.contains(words), "{statement}: {}", said.error);
        }
    }
    Ok(())
}
