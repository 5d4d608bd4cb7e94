//! Clients of the Redis door that say much before they read, against the real binary.

use anyhow::{Context, Result, ensure};
use e2e::redis::{LineClient, Reply, door_port};
use e2e::{Launch, RedisClient};
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

/// What a client gets for those bytes, in two pieces, until the door has answered `ECHO done`.
fn answers(port: u16, bytes: &[u8], cut: usize) -> Result<String> {
    let mut stream = connect(port)?;
    stream.set_nodelay(true)?;
    let (first, second) = bytes.split_at(cut);
    stream.write_all(first)?;
    stream.write_all(second)?;
    stream.write_all(b"CLIENT REPLY ON\r\nRESET\r\nECHO done\r\n")?;
    let mut answers = Vec::new();
    let mut piece = [0; 4096];
    while !answers.ends_with(b"$4\r\ndone\r\n") {
        let size = stream.read(&mut piece).context("the answers do not come")?;
        ensure!(0 < size, "closed after {}", String::from_utf8_lossy(&answers));
        answers.extend_from_slice(&piece[..size]);
    }
    let text = String::from_utf8_lossy(&answers).replace("\r\n", " ");
    Ok(text.trim_end_matches("$4 done ").to_owned())
}

#[test]
fn who_wants_no_answers_gets_none() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0").start()?;
    let port = door_port(&server)?;
    // As Redis 7.0 answers them; the last +OK +RESET are of `CLIENT REPLY ON` and `RESET`.
    let cases = [
        ("CLIENT REPLY OFF\nBLPOP x 0.01\nPING\n", "+OK +RESET "),
        ("CLIENT REPLY SKIP\nBLPOP x 0.01\nPING\n", "+PONG +OK +RESET "),
        ("CLIENT REPLY SKIP\nCLIENT REPLY SKIP\nPING\nPING\n", "+PONG +OK +RESET "),
        // What is queued is not answered either, `CLIENT REPLY ON` included.
        ("CLIENT REPLY OFF\nMULTI\nSET a 1\nUNSUBSCRIBE\n", "+RESET "),
        ("MULTI\nCLIENT REPLY OFF\nSET a 1\nEXEC\nPING\n", "+OK +QUEUED +QUEUED *2 +OK +RESET "),
        ("CLIENT REPLY SKIP\nRESET\nPING\n", "+PONG +OK +RESET "),
        ("CLIENT REPLY OFF\nSUBSCRIBE c\nPING\n", "*3 $9 subscribe $1 c :1 +RESET "),
        (
            "CLIENT REPLY OFF\nMULTI\nGET a\nSUBSCRIBE c\nGET a\nEXEC\nPING\n",
            "*3 $9 subscribe $1 c :1 +RESET ",
        ),
        (
            "SUBSCRIBE c\nEXEC\nRESET\n",
            "*3 $9 subscribe $1 c :1 -EXECABORT Transaction discarded because of: Can't execute \
             'exec': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in \
             this context +RESET +OK +RESET ",
        ),
    ];
    for (commands, expected) in cases {
        let bytes = commands.replace('\n', "\r\n");
        for cut in 0..=bytes.len() {
            assert_eq!(answers(port, bytes.as_bytes(), cut)?, expected, "{commands} at {cut}");
        }
    }
    // The client whose list it is gets nothing, and its element is taken.
    let (mut silent, mut other) = (connect(port)?, connect(port)?);
    silent.write_all(b"CLIENT REPLY SKIP\r\nBLPOP list 0\r\nPING\r\n")?;
    let mut redis = LineClient::of(&server)?;
    e2e::poll("that it waits", STALL, || {
        ensure!(redis.say("INFO clients")?.contains("blocked_clients:1"), "not yet");
        Ok(())
    })?;
    other.write_all(b"RPUSH list a\r\nLLEN list\r\n")?;
    expect(&mut other, b":1\r\n:0\r\n")?;
    expect(&mut silent, b"+PONG\r\n")?;
    // A mistake is not told to who wants to hear nothing: the connection ends.
    silent.write_all(b"CLIENT REPLY OFF\r\n*x\r\n")?;
    let mut rest = Vec::new();
    silent.read_to_end(&mut rest)?;
    ensure!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
    Ok(())
}

#[test]
fn a_pipeline_in_any_two_pieces_is_answered_alike() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0").start()?;
    let port = door_port(&server)?;
    let stream = "FLUSHALL\nSET a 1\nINCR a\n*2\n$3\nGET\n$1\na\n\nMULTI\nINCR a\nNOSUCH\nEXEC\n\
        MULTI\nINCR a\nGET a\nEXEC\nWATCH a\nSELECT 1\nSET b 2\nHELLO 3\nHGETALL h\nHELLO 2\n\
        SUBSCRIBE c\nGET a\nUNSUBSCRIBE c\nCLIENT REPLY SKIP\nPING\nRPUSH l x y\nBLPOP l 1\n\
        BLPOP none 0.001\nEVAL \"return redis.call('incr', KEYS[1])\" 1 b\nRESET\nGET a\nGET b\n\
        CLIENT REPLY OFF\nSET a 5\nCLIENT REPLY ON\nGET a\nCONFIG SET slowlog-max-len 7\n";
    let bytes = stream.replace('\n', "\r\n");
    // Each connection has a number of its own.
    let without_number = |answer: String| {
        let (before, after) = answer.split_once("$2 id :").expect("of HELLO 3");
        let after = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let (between, after) = after.split_once("$2 id :").expect("of HELLO 2");
        let after = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
        format!("{before}{between}{after}")
    };
    let whole = without_number(answers(port, bytes.as_bytes(), 0)?);
    assert!(whole.contains("-EXECABORT") && whole.ends_with("$1 5 +OK +OK +RESET "), "{whole}");
    for cut in 1..bytes.len() {
        let answer = without_number(answers(port, bytes.as_bytes(), cut)?);
        assert_eq!(answer, whole, "in two pieces, {cut} bytes and the rest");
    }
    Ok(())
}

/// What a client does to itself comes behind the answer of the command that does it, and before the
/// next one's, also when all are sent at once.
#[test]
fn what_a_client_does_to_itself_is_told_where_it_is_done() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0").start()?;
    let mut stream = connect(door_port(&server)?)?;
    stream.write_all(b"MONITOR\r\nPING\r\nRESET\r\nPING\r\n")?;
    expect(&mut stream, b"+OK\r\n+PONG\r\n+")?;
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        line.push(byte[0]);
    }
    ensure!(line.ends_with(b"] \"PING\"\r\n"), "{}", String::from_utf8_lossy(&line));
    expect(&mut stream, b"+RESET\r\n+PONG\r\n")?;

    stream.write_all(b"HELLO 3\r\nPING behind\r\n")?;
    let mut hello = Vec::new();
    while !hello.ends_with(b"$6\r\nbehind\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        hello.push(byte[0]);
    }
    let listening = "SUBSCRIBE c\r\nPUBLISH c x\r\nUNSUBSCRIBE c\r\nPUBLISH c y\r\n";
    stream.write_all(listening.as_bytes())?;
    expect(&mut stream, b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")?;
    expect(&mut stream, b":1\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n")?;
    expect(&mut stream, b">3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n:0\r\n")?;

    let tracking = "CLIENT TRACKING ON\r\nGET a\r\nSET a 1\r\nGET a\r\nFLUSHALL\r\nPING\r\n";
    stream.write_all(tracking.as_bytes())?;
    expect(&mut stream, b"+OK\r\n_\r\n+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n")?;
    // One for all databases.
    expect(&mut stream, b"$1\r\n1\r\n+OK\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n+PONG\r\n")
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

/// A script that takes 400 ms.
const SLOW: &str = "local began = redis.call('TIME')
    repeat
        local now = redis.call('TIME')
    until 400000 <= (now[1] - began[1]) * 1000000 + now[2] - began[2]";

/// What `TIME` answers, in milliseconds.
fn milliseconds(time: &Reply) -> Result<i64> {
    let [seconds, micros] = time.list() else { anyhow::bail!("no time: {time:?}") };
    Ok(seconds.text().parse::<i64>()? * 1000 + micros.text().parse::<i64>()? / 1000)
}

#[test]
fn each_command_of_a_pipeline_has_its_own_time() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0").start()?;
    let mut client = RedisClient::of(&server)?;
    let answers = client.pipeline(&[
        &["EVAL", SLOW, "0"],
        &["SET", "lock", "one", "NX", "PX", "300"],
        &["SET", "lock", "other", "NX", "PX", "300"],
        &["TIME"],
        &["XADD", "stream", "*", "a", "b"],
        &["BLPOP", "nothing", "0.25"],
        &["TIME"],
    ])?;
    assert_eq!((answers[1].text(), &answers[2]), ("OK", &Reply::Null), "the lock is given once");
    let (before, after) = (milliseconds(&answers[3])?, milliseconds(&answers[6])?);
    let (ms, _) = answers[4].text().split_once('-').context("no id")?;
    ensure!(before <= ms.parse::<i64>()?, "XADD takes {ms} for the time, which is {before}");
    ensure!(before + 250 <= after, "BLPOP waited for {} ms", after - before);
    Ok(())
}

#[test]
fn time_stands_still_within_a_transaction_and_a_script() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0").start()?;
    let mut client = RedisClient::of(&server)?;
    let answers = client.pipeline(&[
        &["EVAL", SLOW, "0"],
        &["MULTI"],
        &["SET", "key", "x", "PX", "300"],
        &["EVAL", SLOW, "0"],
        &["PTTL", "key"],
        &["EXEC"],
        &["EXISTS", "key"],
    ])?;
    assert_eq!(answers[5].list()[2], Reply::Int(300));
    assert_eq!(answers[6], Reply::Int(0));
    let script = format!(
        "redis.call('SET', 'key', 'x', 'PX', '300')
        {SLOW}
        return redis.call('PTTL', 'key')"
    );
    let answers = client.pipeline(&[&["EVAL", &script, "0"], &["EXISTS", "key"]])?;
    assert_eq!(answers, [Reply::Int(300), Reply::Int(0)]);
    Ok(())
}
