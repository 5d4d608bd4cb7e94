//! Clients of the Redis door that say much before they read, against the real binary.

use anyhow::{Context, Result, ensure};
use e2e::Launch;
use e2e::redis::{LineClient, door_port};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// What stands still for that long stands still for good.
const STALL: Duration = Duration::from_secs(30);

fn connect(port: u16) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(STALL))?;
    stream.set_write_timeout(Some(STALL))?;
    Ok(stream)
}

fn expect(stream: &mut TcpStream, expected: &[u8]) -> Result<()> {
    let mut answers = vec![0; expected.len()];
    stream.read_exact(&mut answers).context("the answers do not come")?;
    ensure!(answers == expected, "the answers differ");
    Ok(())
}

#[test]
fn a_pipeline_may_be_sent_before_any_answer_is_read() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0").start()?;
    let mut stream = connect(door_port(&server)?)?;
    // 32 MiB both ways are more than the system keeps for a connection.
    let text = "x".repeat(8 << 10);
    let (command, answer) = (format!("ECHO {text}\r\n"), format!("${}\r\n{text}\r\n", text.len()));
    let all = command.repeat(4096);
    stream.write_all(all.as_bytes()).context("the door does not read")?;
    expect(&mut stream, answer.repeat(4096).as_bytes())?;
    // Small answers take the system more room than their bytes.
    stream.write_all("INCR x\r\n".repeat(500_000).as_bytes()).context("the door does not read")?;
    let counts: String = (1..=500_000).map(|count| format!(":{count}\r\n")).collect();
    expect(&mut stream, counts.as_bytes())?;
    Ok(())
}

#[test]
fn a_command_behind_one_that_waits_may_come_in_pieces() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0").start()?;
    let port = door_port(&server)?;
    let (mut one, mut other) = (connect(port)?, connect(port)?);
    // It waits twice: what comes first is of another type, and the half behind it stays where it is.
    one.write_all(b"SET n 7\r\nBLPOP list 0\r\n\r\n*2\r\n$3\r\nGET\r\n$1\r\n")?;
    expect(&mut one, b"+OK\r\n")?;
    other.write_all(b"MULTI\r\nRPUSH list a\r\nDEL list\r\nEXEC\r\n")?;
    expect(&mut other, b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:1\r\n")?;
    other.write_all(b"RPUSH list b\r\n")?;
    expect(&mut other, b":1\r\n")?;
    expect(&mut one, b"*2\r\n$4\r\nlist\r\n$1\r\nb\r\n")?;
    one.write_all(b"n\r\nPING\r\n")?;
    expect(&mut one, b"$1\r\n7\r\n+PONG\r\n")
}

#[test]
fn what_stands_before_a_mistake_in_a_pipeline_is_done() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0").start()?;
    let mut stream = connect(door_port(&server)?)?;
    stream.write_all(b"SET a 1\r\nMSET a 2 b 3 c 4\r\nMGET a b c d\r\n*1\r\n?GET a\r\n")?;
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers)?;
    let expected = "+OK\r\n+OK\r\n*4\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n$-1\r\n\
        -ERR Protocol error: expected '$', got '?'\r\n";
    assert_eq!(String::from_utf8_lossy(&answers), expected);
    Ok(())
}

#[test]
fn a_library_that_is_there_already_is_not_written_again() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0").start()?;
    let mut client = LineClient::of(&server)?;
    let mut load = |returned: u32| {
        let code = format!("redis.register_function('one', function() return {returned} end)");
        let line = format!("FUNCTION LOAD REPLACE \"#!lua name=numbers\\n{code}\"");
        let answer = client.say(&format!("{line}\r\nFCALL one 0"))?;
        ensure!(answer == format!("$7 numbers :{returned}"), "{answer}");
        // Each time it is written it is another file.
        Ok(std::fs::metadata(directory.path().join("keys/functions"))?.ino())
    };
    let written = load(1)?;
    assert_eq!(load(1)?, written);
    assert_ne!(load(2)?, written);
    Ok(())
}
