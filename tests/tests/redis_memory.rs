//! Memory that clients of Redis make the real binary take, under a limit.

use anyhow::{Context, Result, ensure};
use e2e::redis::LineClient;
use e2e::{Launch, Server, poll};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const LIMIT_MB: u64 = 512;

fn start(directory: &tempfile::TempDir) -> Result<Server> {
    let launch = Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0");
    launch.flag("memory-limit", &format!("{LIMIT_MB}MiB")).with_many_files().start()
}

/// Megabytes of the process' own memory.
fn used_mb(server: &Server) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()))?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).context("RssAnon")?;
    Ok(line.split_whitespace().nth(1).context("a number")?.parse::<u64>()? / 1024)
}

fn ensure_within_limit(server: &Server) -> Result<()> {
    let used = used_mb(server)?;
    ensure!(used < LIMIT_MB, "{used} MB");
    Ok(())
}

/// Sends a command whose arguments are too long for a line.
fn say_long(client: &mut LineClient, words: &[&str]) -> Result<String> {
    let bulks: Vec<String> =
        words.iter().map(|word| format!("${}\r\n{word}", word.len())).collect();
    client.say(&format!("*{}\r\n{}", words.len(), bulks.join("\r\n")))
}

/// A value of that many megabytes in key `k`.
fn put_large(client: &mut LineClient, megabytes: usize) -> Result<()> {
    let answer = client.say(&format!("SETRANGE k {} x", (megabytes << 20) - 1))?;
    ensure!(answer == format!(":{}", megabytes << 20), "{answer}");
    Ok(())
}

#[test]
fn commands_that_need_more_memory_than_is_left_are_refused() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    let mut client = LineClient::of(&server)?;
    client.say("PING")?;
    let lines: Vec<String> = (0..10).map(|n| format!("SETBIT b{n} 4294967295 1")).collect();
    let answer = client.say(&lines.join("\r\n"))?;
    assert_eq!(answer.matches("-OOM command not allowed").count(), 10, "{answer}");
    let lines: Vec<String> = (0..10).map(|n| format!("SETRANGE s{n} 100000000 x")).collect();
    let answer = client.say(&lines.join("\r\n"))?;
    let done = answer.matches(":100000001").count();
    assert!((1..6).contains(&done), "{answer}");
    assert_eq!(answer.matches("-OOM command not allowed").count(), 10 - done, "{answer}");
    // What the commands took besides is given back soon.
    poll("memory within the limit", PATIENCE, || ensure_within_limit(&server))?;
    assert_eq!(client.say("SET small 1")?, "+OK");
    Ok(())
}

#[test]
fn answers_have_a_share_of_the_memory() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    let mut client = LineClient::of(&server)?;
    put_large(&mut client, 4)?;
    let answer = client.say(&format!("MGET {}", "k ".repeat(2000)))?;
    assert!(answer.starts_with("-ERR the answer is larger than"), "{}", &answer[..60]);
    ensure_within_limit(&server)?;
    Ok(())
}

#[test]
fn clients_that_read_nothing_share_messages_and_leave_memory_to_others() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    let mut client = LineClient::of(&server)?;
    let listen = |line: &str, count: usize| -> Result<Vec<LineClient>> {
        (0..count)
            .map(|_| {
                let mut listener = LineClient::of(&server)?;
                listener.send(format!("{line}\r\n").as_bytes())?;
                Ok(listener)
            })
            .collect()
    };
    let subscribers = listen("SUBSCRIBE d", 300)?;
    poll("all listen", PATIENCE, || {
        let answer = client.say("PUBSUB NUMSUB d")?;
        ensure!(answer == "*2 $1 d :300", "{answer}");
        Ok(())
    })?;
    let message = "m".repeat(1 << 20);
    for _ in 0..7 {
        assert_eq!(say_long(&mut client, &["PUBLISH", "d", &message])?, ":300");
    }
    let used = used_mb(&server)?;
    assert!(used < 250, "{used} MB for 300 subscribers");
    drop(subscribers);
    let _monitors = listen("MONITOR", 100)?;
    for _ in 0..18 {
        say_long(&mut client, &["SET", "k", &message])?;
    }
    ensure_within_limit(&server)?;
    Ok(())
}

#[test]
fn clients_with_the_largest_buffers_are_closed_and_memory_comes_back() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    let mut client = LineClient::of(&server)?;
    put_large(&mut client, 1)?;
    let before = used_mb(&server)?;
    let askers: Result<Vec<LineClient>> = (0..400)
        .map(|_| {
            let mut asker = LineClient::of(&server)?;
            asker.send("GET k\r\n".repeat(30).as_bytes())?;
            Ok(asker)
        })
        .collect();
    let askers = askers?;
    poll("that some are closed", PATIENCE, || {
        ensure!(!client.say("INFO stats")?.contains("evicted_clients:0 "), "not yet");
        Ok(())
    })?;
    ensure_within_limit(&server)?;
    assert_eq!(client.say("STRLEN k")?, ":1048576");
    drop(askers);
    poll("that memory comes back", PATIENCE, || {
        let used = used_mb(&server)?;
        ensure!(used < before + 100, "{used} MB, {before} MB before");
        Ok(())
    })
}

#[test]
fn half_received_values_count() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    let mut client = LineClient::of(&server)?;
    let part = vec![b'v'; 1 << 20];
    let mut senders = Vec::new();
    for _ in 0..20 {
        let mut sender = LineClient::of(&server)?;
        sender.send(b"*3\r\n$3\r\nSET\r\n$1\r\nh\r\n$100000000\r\n")?;
        // The server closes some of them.
        let _ = (0..30).try_for_each(|_| sender.send(&part));
        senders.push(sender);
    }
    poll("that some are closed", PATIENCE, || {
        ensure!(!client.say("INFO stats")?.contains("evicted_clients:0 "), "not yet");
        Ok(())
    })?;
    ensure_within_limit(&server)?;
    assert_eq!(client.say("SET small 1")?, "+OK");
    Ok(())
}
