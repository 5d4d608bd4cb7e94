//! Expressions of SQL over ordinary tables that PostgreSQL answers: rows as values, numbers with all their
//! digits, functions that make rows, arrays, names and codes. The expected answers are PostgreSQL 15's.

use anyhow::{Result, ensure};
use e2e::postgres::{self, Raw};
use e2e::{Psql, Server};

const GOODS: &[&str] = &[
    "CREATE TABLE goods (id int PRIMARY KEY, price numeric(10,2), amount int, weight float8, tags text[], \
     mark uuid, note text)",
    "INSERT INTO goods VALUES \
     (1, 2.50, 3, 1.5, '{x,y}', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 'a12b'), \
     (2, 0.10, 4, 2.5, '{z}', NULL, 'zz'), (3, NULL, NULL, NULL, NULL, NULL, NULL)",
];

fn check(cases: &[(&str, &str)]) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    for (asked, expected) in cases {
        assert_eq!(psql.ask(&[asked], "")?, *expected, "{asked}");
    }
    Ok(())
}

fn start(directory: &tempfile::TempDir) -> Result<(Server, Psql)> {
    let (server, psql) = postgres::start(directory.path())?;
    psql.ask(GOODS, "")?;
    Ok((server, psql))
}

#[test]
fn rows_are_values() -> Result<()> {
    check(&[
        (
            "SELECT 2 BETWEEN SYMMETRIC 3 AND 1, 2 NOT BETWEEN SYMMETRIC 3 AND 1, 4 BETWEEN SYMMETRIC 3 AND 1 OR true, \
             2 BETWEEN ASYMMETRIC 3 AND 1, 2 BETWEEN SYMMETRIC NULL AND 1",
            "t|f|t|f|",
        ),
        ("SELECT id FROM goods WHERE (id, amount) = (1, 3)", "1"),
        ("SELECT id FROM goods WHERE ROW(id, amount) > (1, 3) ORDER BY 1", "2\n3"),
        (
            "SELECT id FROM goods WHERE (id, amount) >= (1, 3) AND (id, amount) < (2, 5) ORDER BY 1",
            "1\n2",
        ),
        ("SELECT id FROM goods WHERE (id, amount) IN ((1, 3), (2, 5))", "1"),
        ("SELECT id FROM goods WHERE (id, amount) NOT IN ((1, 3), (2, 5)) ORDER BY 1", "2\n3"),
        (
            "SELECT id FROM goods WHERE (id, amount) IN (SELECT id, amount FROM goods WHERE weight > 2)",
            "2",
        ),
        (
            "SELECT id FROM goods WHERE (id, amount) NOT IN (SELECT id, amount FROM goods WHERE weight > 2) ORDER BY 1",
            "1\n3",
        ),
        // What is unknown is not found, and not missing.
        ("SELECT id FROM goods WHERE (3, id) NOT IN (SELECT id, amount FROM goods)", ""),
    ])
}

#[test]
fn numbers_keep_their_digits() -> Result<()> {
    check(&[
        ("SELECT 1234567890.1234567890123::numeric(30,13)", "1234567890.1234567890123"),
        (
            "SELECT price * 1.19, price + 0.005 FROM goods ORDER BY id",
            "2.9750|2.505\n0.1190|0.105\n|",
        ),
        ("SELECT sum(price * 1.19) FROM goods", "3.0940"),
        ("SELECT id FROM goods WHERE price = 2.5 AND -price < -2.4", "1"),
        ("SELECT id FROM goods WHERE price < 2.505 ORDER BY 1", "1\n2"),
        (
            "SELECT round(2.5), round(-2.5), round(3.49), round(weight) FROM goods WHERE id = 2",
            "3|-3|3|2",
        ),
        ("SELECT div(7, 2), div(-7, 2), mod(-7, 2)", "3|-3|-1"),
        (
            "SELECT sum(weight), sum(weight::real), sum(amount), sum(amount::float8) FROM goods",
            "4|4|7|7",
        ),
    ])
}

#[test]
fn functions_make_rows_in_a_select_list() -> Result<()> {
    check(&[
        ("SELECT generate_series(1, 3)", "1\n2\n3"),
        ("SELECT generate_series(5, 1, -2)", "5\n3\n1"),
        (
            "SELECT id, generate_series(1, amount - 1) FROM goods ORDER BY 1, 2",
            "1|1\n1|2\n2|1\n2|2\n2|3",
        ),
        (
            "SELECT generate_series('2024-01-31 00:00'::timestamp, '2024-03-31', '1 month')",
            "2024-01-31 00:00:00\n2024-02-29 00:00:00\n2024-03-29 00:00:00",
        ),
        (
            "SELECT * FROM generate_series('2024-01-01 00:00'::timestamptz, '2024-01-01 01:00'::timestamptz, '1 hour')",
            "2024-01-01 00:00:00+00\n2024-01-01 01:00:00+00",
        ),
        ("SELECT count(*) FROM (SELECT generate_series(1, 100000)) AS made", "100000"),
    ])
}

#[test]
fn rows_of_functions_are_numbered() -> Result<()> {
    check(&[
        ("SELECT * FROM unnest(ARRAY['x','y']) WITH ORDINALITY AS t(tag, n)", "x|1\ny|2"),
        ("SELECT ordinality FROM unnest(ARRAY['x','y']) WITH ORDINALITY ORDER BY 1", "1\n2"),
        (
            "SELECT id, tag, n FROM goods, unnest(tags) WITH ORDINALITY AS t(tag, n) ORDER BY 1, 3",
            "1|x|1\n1|y|2\n2|z|1",
        ),
        (
            "SELECT value, ordinality FROM jsonb_array_elements('[5, {\"a\": 1}]') WITH ORDINALITY",
            "5|1\n{\"a\": 1}|2",
        ),
        (
            "SELECT key, n FROM jsonb_each_text('{\"a\": 1, \"b\": 2}') WITH ORDINALITY AS t(key, value, n)",
            "a|1\nb|2",
        ),
    ])
}

#[test]
fn a_jsonb_is_changed_at_a_path() -> Result<()> {
    check(&[
        ("SELECT jsonb_set('{\"a\": {\"b\": 1}}', '{a,b}', '[2]')", "{\"a\": {\"b\": [2]}}"),
        (
            "SELECT jsonb_set('{\"a\": 1}'::jsonb, ARRAY['c'], to_jsonb('x'::text), false)",
            "{\"a\": 1}",
        ),
        ("SELECT jsonb_insert('{\"a\": [0, 1]}', '{a,1}', '\"new\"')", "{\"a\": [0, \"new\", 1]}"),
        ("SELECT '{\"a\": [0, 1], \"b\": 2}'::jsonb #- '{a,0}'", "{\"a\": [1], \"b\": 2}"),
        ("SELECT jsonb_strip_nulls('{\"a\": null, \"b\": [null]}')", "{\"b\": [null]}"),
        ("SELECT jsonb_set('{}', '{a}', NULL) IS NULL", "t"),
        ("CREATE TABLE kept (id int PRIMARY KEY, data jsonb)", "CREATE TABLE"),
        ("INSERT INTO kept VALUES (1, '{\"n\": 1}')", "INSERT 0 1"),
        (
            "UPDATE kept SET data = jsonb_set(data, '{n}', to_jsonb((data->>'n')::int + 1)) WHERE id = 1 RETURNING data",
            "{\"n\": 2}\nUPDATE 1",
        ),
    ])
}

#[test]
fn what_else_postgresql_knows() -> Result<()> {
    check(&[
        (
            "SELECT substring(note from '[0-9]+'), substring(note from 'a([0-9])') FROM goods WHERE id = 1",
            "12|1",
        ),
        ("SELECT id FROM goods WHERE tags @> '{y}'", "1"),
        (
            "SELECT id FROM goods WHERE tags @> ARRAY['x', 'y'] OR tags <@ '{z,w}' ORDER BY 1",
            "1\n2",
        ),
        ("SELECT id FROM goods WHERE mark = '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'::uuid", "1"),
        ("SELECT length(gen_random_uuid()::text)", "36"),
        (
            "SELECT id, EXISTS (SELECT 1 FROM goods AS other WHERE other.id = goods.amount) FROM goods ORDER BY 1",
            "1|t\n2|f\n3|f",
        ),
        ("SELECT 'goods'::regclass, 'goods'::regclass::oid > 0", "goods|t"),
        (
            "TABLE goods",
            "1|2.50|3|1.5|{x,y}|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|a12b\n2|0.10|4|2.5|{z}||zz\n3||||||",
        ),
        ("SELECT id INTO ids FROM goods", "SELECT 3"),
        ("SELECT count(*) FROM ids", "3"),
        ("BEGIN; DROP TABLE ids; ABORT", "BEGIN\nDROP TABLE\nROLLBACK"),
        ("SELECT count(*) FROM ids", "3"),
        (
            "SELECT DISTINCT table_catalog = current_database() FROM information_schema.columns WHERE table_name = 'goods'",
            "t",
        ),
        ("SELECT udt_name FROM information_schema.columns WHERE column_name = 'tags'", "_text"),
    ])
}

#[test]
fn what_is_wrong_is_told_in_postgresqls_words() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = start(&directory)?;
    let scenes = [
        ("SELECT id, sum(amount) FROM goods", "42803", "must appear in the GROUP BY clause"),
        (
            "SELECT '99999999999'::int",
            "22003",
            "value \"99999999999\" is out of range for type integer",
        ),
        ("SELECT 'abc'::int", "22P02", "invalid input syntax for type integer: \"abc\""),
        (
            "SELECT '2024-13-01'::date",
            "22008",
            "date/time field value out of range: \"2024-13-01\"",
        ),
        ("SELECT '2024-01-01 25:00'::timestamptz", "22008", "date/time field value out of range"),
        ("SELECT 'zz'::uuid", "22P02", "invalid input syntax for type uuid: \"zz\""),
        (
            "SELECT id FROM goods WHERE (id, amount) = (1, 2, 3)",
            "42601",
            "unequal number of entries",
        ),
        ("SELECT generate_series(1, 100000000)", "54000", "put it into FROM"),
        ("SELECT generate_series(1, 2, 0)", "42601", "step size cannot equal zero"),
    ];
    postgres::refuse(&psql, &scenes)
}

#[test]
fn an_advisory_lock_is_held_by_one_session_until_it_ends() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(&directory)?;
    let mut holder = Raw::of(&server)?;
    let ask = |raw: &mut Raw, text: &str| {
        raw.query(text)?;
        raw.until('Z')
    };
    let try_it = "SELECT pg_try_advisory_lock(7), pg_try_advisory_lock(0, 7)";
    ask(&mut holder, "SELECT pg_advisory_lock(7)")?;
    ensure!(psql.ask(&[try_it], "")? == "f|t", "another lock of two numbers");
    ask(&mut holder, "BEGIN")?;
    ask(&mut holder, "SELECT pg_advisory_xact_lock(8), pg_advisory_unlock(7)")?;
    let both = "SELECT pg_try_advisory_lock(7), pg_try_advisory_lock(8)";
    ensure!(psql.ask(&[both], "")? == "t|f", "of the transaction, which goes on");
    // Who waits goes on when the other's transaction ends, however it does.
    let mut waiting = Raw::of(&server)?;
    waiting.query("SELECT pg_advisory_lock(8)")?;
    ask(&mut holder, "ROLLBACK")?;
    ensure!(Raw::kinds(&waiting.until('Z')?) == "TDCZ");
    // The lock is its session's, which ends.
    ensure!(psql.ask(&["SELECT pg_try_advisory_lock(8)"], "")? == "f");
    drop(waiting);
    psql.ask(&["SELECT pg_advisory_lock(8)"], "")?;
    ensure!(psql.ask(&["SELECT pg_advisory_unlock(8)"], "")? == "f", "it is not held");
    Ok(())
}
