//! What one client of PostgreSQL's door can take from the others: memory, places among the queries,
//! and nothing else; and what the protocol asks for where things go wrong.

use anyhow::{Result, ensure};
use e2e::postgres::Raw;
use e2e::{Launch, Psql, Server};
use std::time::{Duration, Instant};

fn start(directory: &tempfile::TempDir, flags: &[(&str, &str)]) -> Result<Server> {
    let mut launch = Launch::new(directory.path()).flag("postgres-listen", "127.0.0.1:0");
    launch = launch.flag("self-scrape-interval", "0");
    for (name, value) in flags {
        launch = launch.flag(name, value);
    }
    launch.start()
}

#[test]
fn lines_of_all_copies_share_one_memory() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let flags = [
        ("max-bodies-size", "8MiB"),
        ("max-body-size", "4MiB"),
        ("insert-queue-duration", "200ms"),
    ];
    let server = start(&directory, &flags)?;
    let piece = "# a comment that is kept until the end\n".repeat(20_000);
    let mut first = Raw::of(&server)?;
    first.query("COPY metrics FROM STDIN")?;
    first.until('G')?;
    let mut second = Raw::of(&server)?;
    second.query("COPY metrics FROM STDIN")?;
    second.until('G')?;
    for _ in 0..5 {
        first.say('d', piece.as_bytes())?;
    }
    // Nothing else tells that the server has taken them.
    e2e::poll("that they are taken", Duration::from_secs(10), || {
        for _ in 0..6 {
            second.say('d', piece.as_bytes())?;
        }
        second.say('c', b"")?;
        let said = second.until('Z')?;
        let is_refused = Raw::kinds(&said).starts_with('E');
        if !is_refused {
            second.query("COPY metrics FROM STDIN")?;
            second.until('G')?;
        }
        ensure!(is_refused, "{said:?}");
        ensure!(Raw::code(&said)? == "53000", "{said:?}");
        Ok(())
    })?;
    first.say('d', format!("a 1 {}\n", 1_709_208_000_000i64).as_bytes())?;
    first.say('c', b"")?;
    let said = first.until('Z')?;
    assert_eq!(Raw::kinds(&said), "CZ", "{said:?}");
    second.query("COPY metrics FROM STDIN")?;
    second.until('G')?;
    second.say('d', piece.as_bytes())?;
    second.say('c', b"")?;
    assert_eq!(Raw::kinds(&second.until('Z')?), "CZ");
    Ok(())
}

#[test]
fn a_row_without_end_comes_out_of_the_same_memory() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let flags = [
        ("max-bodies-size", "8MiB"),
        ("max-body-size", "4MiB"),
        ("insert-queue-duration", "200ms"),
    ];
    let server = start(&directory, &flags)?;
    let mut raw = Raw::of(&server)?;
    raw.query("COPY metrics (name, value) FROM STDIN WITH (FORMAT csv)")?;
    raw.until('G')?;
    raw.say('d', b"\"")?;
    for _ in 0..12 {
        raw.say('d', &vec![b'x'; 1 << 20])?;
    }
    raw.say('c', b"")?;
    let said = raw.until('Z')?;
    assert_eq!(Raw::code(&said)?, "53000", "{said:?}");
    // What was held is free again.
    raw.query("COPY metrics (name, value) FROM STDIN WITH (FORMAT csv)")?;
    raw.until('G')?;
    raw.say('d', b"a,1\n")?;
    raw.say('c', b"")?;
    assert_eq!(Raw::kinds(&raw.until('Z')?), "CZ");
    Ok(())
}

#[test]
fn a_line_without_end_is_refused_soon() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[])?;
    let mut raw = Raw::of(&server)?;
    raw.query("COPY metrics FROM STDIN")?;
    raw.until('G')?;
    let began = Instant::now();
    // 18 MiB in pieces of 4 KiB: time that grows by the square would be minutes.
    for _ in 0..4608 {
        raw.say('d', &[b'x'; 4096])?;
    }
    raw.say('c', b"")?;
    let said = raw.until('Z')?;
    assert_eq!(Raw::code(&said)?, "54000", "{said:?}");
    ensure!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    Ok(())
}

#[test]
fn who_does_not_read_gives_its_place_back() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let flags = [("query.max-concurrency", "1"), ("http.write-timeout", "1s")];
    let server = start(&directory, &flags)?;
    let mut deaf = Raw::of(&server)?;
    deaf.query("SELECT repeat('x', 1000) FROM generate_series(1, 100000)")?;
    // It waits for the place, and gets it.
    assert_eq!(Psql::of(&server)?.ask(&["SELECT 1"], "")?, "1");
    Ok(())
}

#[test]
fn portals_that_wait_hold_no_more_than_one_place_and_not_for_ever() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let flags = [("query.max-concurrency", "1"), ("query.timeout", "2s")];
    let server = start(&directory, &flags)?;
    let many = "SELECT * FROM generate_series(1, 100000)";
    let mut raw = Raw::of(&server)?;
    // Outside a transaction they end with it.
    raw.execute(many, "a", 1)?;
    assert_eq!(Raw::kinds(&raw.sync()?), "12DsZ");
    assert_eq!(Psql::of(&server)?.ask(&["SELECT 1"], "")?, "1");
    raw.fetch("a", 1)?;
    assert_eq!(Raw::code(&raw.sync()?)?, "34000");
    // Within one the second goes on beside the first.
    raw.query("BEGIN")?;
    raw.until('Z')?;
    raw.execute(many, "a", 1)?;
    raw.execute(many, "b", 2)?;
    raw.fetch("a", 3)?;
    raw.fetch("a", i32::MAX)?;
    let said = raw.sync()?;
    let kinds = Raw::kinds(&said);
    ensure!(kinds.starts_with("12Ds12DDsDDDsDDDD") && kinds.ends_with("DCZ"), "{}", kinds.len());
    assert_eq!(kinds.matches('D').count(), 100_002);
    // And when their time is over they are gone.
    assert_eq!(Psql::of(&server)?.ask(&["SELECT 1"], "")?, "1");
    raw.fetch("b", 1)?;
    assert_eq!(Raw::code(&raw.sync()?)?, "34000");
    Ok(())
}

#[test]
fn prepared_statements_have_a_limit_and_are_forgotten() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[])?;
    let mut raw = Raw::of(&server)?;
    for number in 0..10_001 {
        raw.say('P', format!("s{number}\0SHOW a.b\0\0\0").as_bytes())?;
    }
    let said = raw.sync()?;
    assert_eq!(Raw::kinds(&said), format!("{}EZ", "1".repeat(10_000)));
    assert_eq!(Raw::code(&said)?, "54000");
    raw.query("DEALLOCATE s7; DEALLOCATE s7")?;
    assert_eq!(Raw::code(&raw.until('Z')?)?, "26000");
    raw.query("DISCARD ALL")?;
    raw.until('Z')?;
    raw.say('P', b"s1\0SELECT 1\0\0\0")?;
    raw.say('P', b"s1\0SELECT 1\0\0\0")?;
    assert_eq!(Raw::code(&raw.sync()?)?, "42P05");
    Ok(())
}

#[test]
fn statements_of_one_text_come_one_after_the_other() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.max-concurrency", "1")])?;
    let mut raw = Raw::of(&server)?;
    raw.query("SELECT 1; SELECT 2; SELEC")?;
    assert_eq!(Raw::kinds(&raw.until('Z')?), "EZ");
    raw.query("SELECT 1; SELECT 2; SELECT * FROM nowhere; SELECT 3")?;
    let said = raw.until('Z')?;
    assert_eq!(Raw::kinds(&said), "TDCTDCEZ");
    assert_eq!(Raw::code(&said)?, "42P01");
    raw.query("COPY metrics FROM STDIN; SELECT 1")?;
    assert_eq!(Raw::code(&raw.until('Z')?)?, "0A000");
    raw.query(" ; -- nothing")?;
    assert_eq!(Raw::kinds(&raw.until('Z')?), "IZ");
    // What failed within a transaction has to end first.
    raw.query("BEGIN")?;
    raw.until('Z')?;
    raw.query("SELECT * FROM nowhere")?;
    assert_eq!(raw.until('Z')?.pop().map(|ready| ready.body), Some(b"E".to_vec()));
    raw.query("SELECT 1")?;
    assert_eq!(Raw::code(&raw.until('Z')?)?, "25P02");
    raw.query("COMMIT")?;
    let said = raw.until('Z')?;
    assert_eq!(said[0].body, b"ROLLBACK\0");
    assert_eq!(said[1].body, b"I");
    Ok(())
}

#[test]
fn rollback_warns_of_its_own_transaction_alone() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[])?;
    let mut raw = Raw::of(&server)?;
    let copy = |raw: &mut Raw| -> Result<()> {
        raw.query("COPY metrics FROM STDIN")?;
        raw.until('G')?;
        raw.say('d', b"a 1 1709208000000\n")?;
        raw.say('c', b"")?;
        raw.until('Z').map(drop)
    };
    let rolled_back = |raw: &mut Raw| -> Result<String> {
        raw.query("ROLLBACK")?;
        Ok(Raw::kinds(&raw.until('Z')?))
    };
    copy(&mut raw)?;
    raw.query("BEGIN")?;
    raw.until('Z')?;
    assert_eq!(rolled_back(&mut raw)?, "CZ");
    raw.query("BEGIN")?;
    raw.until('Z')?;
    copy(&mut raw)?;
    assert_eq!(rolled_back(&mut raw)?, "NCZ");
    Ok(())
}

#[test]
fn all_in_one_piece_is_answered() -> Result<()> {
    use std::io::{Read as _, Write as _};
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[])?;
    let port = e2e::postgres::door_port(&server)?;
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
    let mut bytes = b"\0\0\0\x1c\0\x03\0\0user\0me\0database\0x\0\0".to_vec();
    bytes.extend_from_slice(b"Q\0\0\0\x0dSELECT 1\0X\0\0\0\x04");
    stream.write_all(&bytes)?;
    let mut said = Vec::new();
    stream.read_to_end(&mut said)?;
    let tail = b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
    ensure!(said.ends_with(tail), "{}", String::from_utf8_lossy(&said));
    Ok(())
}

#[test]
fn cursors_end_with_their_transaction() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory, &[("query.max-concurrency", "1")])?;
    let mut raw = Raw::of(&server)?;
    let declare = "DECLARE c CURSOR FOR SELECT * FROM generate_series(1, 5)";
    raw.query(declare)?;
    assert_eq!(Raw::code(&raw.until('Z')?)?, "25P01");
    raw.query(&format!(
        "BEGIN; {declare}; FETCH 2 FROM c; FETCH ALL FROM c; FETCH FROM c; CLOSE c"
    ))?;
    let said = raw.until('Z')?;
    assert_eq!(Raw::kinds(&said), "CCTDDCTDDDCTCCZ");
    let tags = said.iter().filter(|one| one.kind == 'C').map(|one| one.body.as_slice());
    let expected: [&[u8]; 6] = [
        b"BEGIN\0",
        b"DECLARE CURSOR\0",
        b"FETCH 2\0",
        b"FETCH 3\0",
        b"FETCH 0\0",
        b"CLOSE CURSOR\0",
    ];
    assert_eq!(tags.collect::<Vec<_>>(), expected);
    raw.query(&format!("{declare}; FETCH 1 FROM c; COMMIT; FETCH 1 FROM c"))?;
    assert_eq!(Raw::code(&raw.until('Z')?)?, "34000");
    assert_eq!(Psql::of(&server)?.ask(&["SELECT 1"], "")?, "1");
    Ok(())
}
