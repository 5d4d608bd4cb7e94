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
