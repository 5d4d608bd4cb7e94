//! Rows of `COPY` that mean harm, or were cut, and what `jsonb` answers where PostgreSQL's answers are
//! easily missed.

use anyhow::{Result, ensure};
use e2e::postgres::{Raw, start};

const PARTS: &str = "COPY metrics (name, value, labels) FROM STDIN";

/// Copies pieces; returns the answer's code, empty where it was done.
fn copied(raw: &mut Raw, asked: &str, pieces: &[&[u8]]) -> Result<String> {
    raw.query(asked)?;
    raw.until('G')?;
    for piece in pieces {
        raw.say('d', piece)?;
    }
    raw.say('c', b"")?;
    let said = raw.until('Z')?;
    match Raw::kinds(&said).contains('E') {
        true => Raw::code(&said),
        false => Ok(String::new()),
    }
}

fn object(count: usize) -> String {
    let pairs: Vec<String> = (0..count).map(|at| format!("\"l{at}\":\"x\"")).collect();
    format!("{{{}}}", pairs.join(","))
}

#[test]
fn a_row_of_a_hundred_thousand_labels_is_refused_at_once() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    let many = object(100_000);
    let mut raw = Raw::of(&server)?;
    let row = format!("many\t1\t{many}\n");
    assert_eq!(copied(&mut raw, PARTS, &[row.as_bytes()])?, "54000");
    let said = psql.say(&[PARTS], &row)?;
    let is_told = ["100000 labels, the limit is 1000", "row 1"];
    ensure!(is_told.iter().all(|words| said.error.contains(words)), "{said:?}");
    // What is wrong is not said whole.
    let said = psql.say(&[PARTS], &format!("bad\t1\t{}\n", "x".repeat(100_000)))?;
    ensure!(!said.is_ok && said.error.len() < 2000, "{} bytes", said.error.len());
    let labels = object(2000);
    for asked in [
        format!("SELECT prom_construct(now(), 'a', 1, '{labels}')"),
        format!("INSERT INTO metrics (name, value, labels) VALUES ('a', 1, '{labels}')"),
    ] {
        let said = psql.say(&["\\set VERBOSITY verbose", &asked], "")?;
        ensure!(said.error.contains("54000"), "{said:?}");
    }
    assert_eq!(psql.ask(&["SELECT count(*) FROM metrics"], "")?, "0");
    Ok(())
}

#[test]
fn rows_come_byte_by_byte_and_with_any_end_of_lines() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    let mut raw = Raw::of(&server)?;
    let csv = "COPY metrics (name, value) FROM STDIN WITH (FORMAT csv, HEADER)";
    let text = "COPY metrics (name, value) FROM STDIN";
    for (asked, bytes, code) in [
        (csv, &b"name,value\ra,1\rb,2\r"[..], ""),
        (csv, b"name,value\r\nc,1\r\n", ""),
        (text, b"d\t1\re\t2\r", ""),
        (csv, b"name,value\nx,1\r\n", "22P04"),
        (csv, b"name,value\r\nx,1\n", "22P04"),
        (text, b"x\t1\nx\ry\t2\n", "22P04"),
        (text, b"x\t1\t2\n", "22P04"),
        (text, b"x\t1e400\n", "22003"),
        (text, b"x\t2e-324\n", "22003"),
        (text, "x\t\u{a0}1\n".as_bytes(), "22P02"),
    ] {
        let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(copied(&mut raw, asked, &pieces)?, code, "{asked} {}", bytes.escape_ascii());
    }
    let many = "\t".repeat(2 << 20);
    assert_eq!(copied(&mut raw, text, &[many.as_bytes(), b"\n"])?, "22P04");
    let all = "SELECT string_agg(name, '' ORDER BY name) FROM metrics";
    assert_eq!(psql.ask(&[all], "")?, "abcde");
    // As if their columns had been left out.
    let nulls = "COPY metrics (time, name, value, labels) FROM STDIN";
    assert_eq!(psql.ask(&[nulls], "\\N\tnow\t1\t\\N\n")?, "COPY 1");
    let insert = "INSERT INTO metrics (time, name, value, labels) VALUES (NULL, 'now', 2, NULL), \
                  ('2024-02-29 12:00:00+00', 'then', 2, '{\"a\": \"b\"}')";
    assert_eq!(psql.ask(&[insert], "")?, "INSERT 0 2");
    let now = "SELECT count(*), bool_and(labels = '{}') FROM metrics WHERE name = 'now' AND \
               now() - time < interval '1 h'";
    assert_eq!(psql.ask(&[now], "")?, "2|t");
    Ok(())
}

#[test]
fn binary_rows_end_as_those_of_postgresql() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    let mut raw = Raw::of(&server)?;
    let asked = "COPY metrics (name, value) FROM STDIN WITH (FORMAT binary)";
    let header = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
    let row = |name: &str, count: u8| {
        let value = 1.5f64.to_be_bytes();
        [b"\0", &[count][..], b"\0\0\0\x01", name.as_bytes(), b"\0\0\0\x08", &value].concat()
    };
    let end: &[u8] = b"\xff\xff";
    for (bytes, code) in [
        ([header, &row("a", 2)[..], end].concat(), ""),
        ([header, &row("b", 2)[..]].concat(), ""),
        ([header, &row("x", 2)[..], end, b"x"].concat(), "22P04"),
        ([header, &row("x", 2)[..], end, &row("y", 2)].concat(), "22P04"),
        ([header, &row("x", 3)[..], end].concat(), "22P04"),
        ([header, &row("x", 2)[..9]].concat(), "22P04"),
        (header[..9].to_vec(), "22P04"),
    ] {
        for size in [1, bytes.len()] {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            assert_eq!(copied(&mut raw, asked, &pieces)?, code, "{}", bytes.escape_ascii());
        }
    }
    let all = "SELECT string_agg(DISTINCT name, '' ORDER BY name) FROM metrics";
    assert_eq!(psql.ask(&[all], "")?, "ab");
    Ok(())
}

#[test]
fn a_copy_ends_when_its_time_is_over() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    let mut raw = Raw::of(&server)?;
    raw.query("SET statement_timeout = '100ms'")?;
    raw.until('Z')?;
    // The client says nothing more.
    raw.query("COPY metrics (name, value) FROM STDIN")?;
    raw.until('G')?;
    raw.say('d', b"late\t1\n")?;
    assert_eq!(Raw::code(&raw.until('Z')?)?, "57014");
    raw.say('d', b"late\t2\n")?;
    raw.say('c', b"")?;
    raw.query("SELECT count(*) FROM metrics")?;
    let said = raw.until('Z')?;
    ensure!(said.iter().any(|one| one.kind == 'D' && one.body.ends_with(b"0")), "{said:?}");
    assert_eq!(psql.ask(&["COPY metrics FROM STDIN"], "up 1\n")?, "COPY 1");
    Ok(())
}

#[test]
fn jsonb_answers_as_postgresql_does() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = start(directory.path())?;
    for (asked, expected) in [
        ("'[1,2]'::jsonb->'0' IS NULL", "t"),
        ("'[1,2]'::jsonb->>'0' IS NULL", "t"),
        ("'[1,2]'::jsonb -> -1", "2"),
        ("'[1,2]'::jsonb->>0", "1"),
        ("'{\"1\":\"x\"}'::jsonb->>1 IS NULL", "t"),
        ("'{\"1\":\"x\"}'::jsonb->>'1'", "x"),
        ("'7'::jsonb->0", "7"),
        ("'{\"NULL\":1}'::jsonb #> '{NULL}' IS NULL", "t"),
        ("'{\"a\":[1,2]}'::jsonb #>> '{a,1}'", "2"),
        ("'[1,2]'::jsonb - 0", "[2]"),
        ("'{\"a\":1}'::jsonb - '{a,NULL}'::text[]", "{}"),
        ("jsonb_extract_path('[1,2]', '1')", "2"),
        ("'\"\\\\u0000\"'::jsonb", "\"\\\\u0000\""),
    ] {
        assert_eq!(psql.ask(&[&format!("SELECT {asked}")], "")?, expected, "{asked}");
    }
    for (asked, code) in [
        ("'1'::jsonb - 'a'", "22023"),
        ("'1'::jsonb - 0", "22023"),
        ("'{}'::jsonb - 0", "22023"),
        ("'\"\\u0000\"'::jsonb", "22P05"),
        ("'{\"a\": 1}'::jsonb @> '{\"\\u0000\": 1}'", "22P05"),
        ("'{'::jsonb", "22P02"),
    ] {
        let said = psql.say(&["\\set VERBOSITY verbose", &format!("SELECT {asked}")], "")?;
        ensure!(said.error.contains(code), "{asked}: {said:?}");
    }
    let labels = psql.say(&["\\set VERBOSITY verbose", PARTS], "a\t1\t{\"a\": \"\\\\u0000\"}\n")?;
    ensure!(labels.error.contains("22P05"), "{labels:?}");
    assert_eq!(psql.ask(&[PARTS], "a\t1\t{\"b\": \"c\"}\n")?, "COPY 1");
    let mut raw = Raw::of(&server)?;
    for (asked, oid) in [
        ("labels::text FROM metrics", 25),
        ("labels::varchar FROM metrics", 1043),
        ("x FROM (SELECT labels::text AS x FROM metrics) AS t", 25),
        ("to_jsonb(1)::text", 25),
        ("'{}'::jsonb::text", 25),
        ("name::text FROM metrics WHERE name::text = 'a'", 25),
        ("labels FROM metrics", 3802),
        ("labels::text::jsonb FROM metrics", 3802),
    ] {
        raw.query(&format!("SELECT {asked}"))?;
        let said = raw.until('Z')?;
        let described = said.iter().find(|one| one.kind == 'T');
        let body = described.map(|one| one.body.as_slice()).unwrap_or_default();
        // The name's end, a table and a column of it, the type.
        let at = body.iter().skip(2).position(|byte| *byte == 0).unwrap_or(0) + 2 + 1 + 6;
        let found = body
            .get(at..at + 4)
            .map(|oid| oid.iter().fold(0, |all, one| all << 8 | u32::from(*one)));
        assert_eq!(found, Some(oid), "{asked}: {said:?}");
        assert_eq!(Raw::kinds(&said), "TDCZ", "{asked}");
    }
    Ok(())
}
