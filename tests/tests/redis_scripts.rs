//! Scripts that run while other connections of the Redis protocol publish, log in and wait, against
//! the real binary. A script holds the keys, but not what connections share.

use anyhow::{Context, Result, ensure};
use e2e::redis::Reply;
use e2e::{Launch, RedisClient, Server, poll};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
/// Messages that [`PUBLISHING`] sends to the channel `news`.
const MESSAGES: usize = 1000;
/// Sends messages, then publishes to nobody until it is killed.
const PUBLISHING: &str = "for i = 1, 1000 do redis.call('PUBLISH', 'news', i) end \
                          while true do redis.call('PUBLISH', 'idle', 'x') end";
/// Takes longer than the threshold, then panics.
const LATE_PANIC: &str = "local start = redis.call('TIME')[1] \
                          while redis.call('TIME')[1] - start < 2 do end \
                          redis.call('DEBUG', 'PANIC')";
/// Threads that log in at once.
const GUESTS: usize = 4;
/// Connections that each of them opens, one after the other.
const LOGINS: usize = 50;

fn start(directory: &tempfile::TempDir) -> Result<Server> {
    let launch = Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0");
    let server = launch.flag("redis.enable-debug-command", "local").start()?;
    RedisClient::of(&server)?.must("CONFIG SET busy-reply-threshold 50")?;
    Ok(server)
}

fn eval(client: &mut RedisClient, script: &str) -> Result<Reply> {
    client.call(&[b"EVAL", script.as_bytes(), b"0"])
}

fn message(channel: &str, text: &str) -> Reply {
    Reply::List(["message", channel, text].map(|word| Reply::Text(word.to_owned())).to_vec())
}

fn poll_until_busy(client: &mut RedisClient) -> Result<()> {
    poll("that the script takes long", PATIENCE, || {
        ensure!(client.say("GET x")?.text().starts_with("-BUSY"), "not yet");
        Ok(())
    })
}

/// Opens connections while the script of another one runs.
fn log_in_often(server: &Server) -> Result<()> {
    for _ in 0..LOGINS {
        let mut guest = RedisClient::of(server)?;
        let hello = guest.must("HELLO 3 SETNAME guest")?;
        ensure!(hello.list().contains(&Reply::Text("proto".to_owned())), "{hello:?}");
        for line in ["CLIENT LIST", "PUBLISH news 1", "SUBSCRIBE news", "EVAL 1 0"] {
            let answer = guest.say(line)?;
            ensure!(answer.text().starts_with("-BUSY"), "{line}: {answer:?}");
        }
    }
    Ok(())
}

/// Checks that a server without scripts serves channels and lists its clients.
fn check_channels(client: &mut RedisClient, listener: &mut RedisClient) -> Result<()> {
    ensure!(client.must("PUBLISH news plain")? == Reply::Int(1), "nobody listens");
    ensure!(listener.next_message()? == message("news", "plain"), "another message");
    let sent = eval(client, "return redis.call('PUBLISH', 'news', 'scripted')")?;
    ensure!(sent == Reply::Int(1), "{sent:?}");
    ensure!(listener.next_message()? == message("news", "scripted"), "another message");
    let list = client.must("CLIENT LIST")?;
    ensure!(list.text().contains(" sub=1 "), "{}", list.text());
    Ok(())
}

#[test]
fn other_connections_are_served_while_a_script_publishes() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    let (mut listener, mut other) = (RedisClient::of(&server)?, RedisClient::of(&server)?);
    listener.must("SUBSCRIBE news")?;
    let in_transaction: &[&[&str]] = &[&["MULTI"], &["EVAL", PUBLISHING, "0"], &["EXEC"]];
    for commands in [&[["EVAL", PUBLISHING, "0"].as_slice()] as &[&[&str]], in_transaction] {
        let mut client = RedisClient::of(&server)?;
        let answers = thread::scope(|scope| {
            let running = scope.spawn(move || client.pipeline(commands));
            poll_until_busy(&mut other)?;
            for number in 1..=MESSAGES {
                let next = listener.next_message()?;
                ensure!(next == message("news", &number.to_string()), "{next:?}");
            }
            let guests = [(); GUESTS].map(|()| scope.spawn(|| log_in_often(&server)));
            for guest in guests {
                guest.join().ok().context("a guest panicked")??;
            }
            ensure!(other.say("FUNCTION KILL")?.text().starts_with("-BUSY"), "no function runs");
            other.must("SCRIPT KILL")?;
            running.join().ok().context("the client panicked")?
        })?;
        let answer = answers.last().context("no answer")?;
        let error = answer.list().first().unwrap_or(answer);
        ensure!(error.text().contains("Script killed"), "{answers:?}");
        check_channels(&mut other, &mut listener)?;
    }
    poll("that the guests are gone", PATIENCE, || {
        let list = other.must("CLIENT LIST")?;
        ensure!(!list.text().contains("name=guest"), "{}", list.text());
        Ok(())
    })
}

#[test]
fn panic_in_a_script_closes_its_connection_alone() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    let (mut listener, mut other) = (RedisClient::of(&server)?, RedisClient::of(&server)?);
    listener.must("SUBSCRIBE news")?;
    other.must("DEBUG SET-DISABLE-DENY-SCRIPTS 1")?;
    let (plain, caught) = ("redis.call('DEBUG', 'PANIC')", "redis.pcall('DEBUG', 'PANIC')");
    for script in [plain, caught] {
        let mut client = RedisClient::of(&server)?;
        ensure!(eval(&mut client, script).is_err(), "{script} is answered");
        check_channels(&mut other, &mut listener)?;
        let mut client = RedisClient::of(&server)?;
        let transaction: &[&[&str]] = &[&["MULTI"], &["EVAL", script, "0"], &["EXEC"]];
        ensure!(client.pipeline(transaction).is_err(), "{script} is answered in a transaction");
        check_channels(&mut other, &mut listener)?;
    }
    let mut client = RedisClient::of(&server)?;
    let ended = thread::scope(|scope| {
        let running = scope.spawn(move || eval(&mut client, LATE_PANIC));
        poll_until_busy(&mut other)?;
        RedisClient::of(&server)?.must("HELLO 3")?;
        running.join().ok().context("the client panicked")
    })?;
    ensure!(ended.is_err(), "a late panic is answered");
    poll("that the script is over", PATIENCE, || other.must("GET x").map(drop))?;
    check_channels(&mut other, &mut listener)?;
    poll("that the log has all panics", PATIENCE, || {
        let panics = server.log().matches("a command panicked").count();
        ensure!(panics == 5, "{panics} connections were closed");
        Ok(())
    })
}

#[test]
fn changes_of_a_script_reach_clients_that_wait_watch_and_listen() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    let mut client = RedisClient::of(&server)?;
    client.must("CONFIG SET notify-keyspace-events El")?;
    let mut watcher = RedisClient::of(&server)?;
    watcher.pipeline(&[&["WATCH", "list"], &["MULTI"], &["SET", "x", "1"]])?;
    let mut listener = RedisClient::of(&server)?;
    listener.must("SUBSCRIBE __keyevent@0__:rpush")?;
    let mut waiting = RedisClient::of(&server)?;
    thread::scope(|scope| {
        let served = scope.spawn(move || waiting.say("BLPOP list 0"));
        poll("that a client waits", PATIENCE, || {
            ensure!(client.info("blocked_clients")? == "1", "not yet");
            Ok(())
        })?;
        let pushed = eval(&mut client, "return redis.call('RPUSH', 'list', 'a', 'b')")?;
        ensure!(pushed == Reply::Int(2), "{pushed:?}");
        let served = served.join().ok().context("the client panicked")??;
        ensure!(served.list().last().is_some_and(|item| item.text() == "a"), "{served:?}");
        Ok(())
    })?;
    ensure!(listener.next_message()? == message("__keyevent@0__:rpush", "list"), "another event");
    ensure!(watcher.say("EXEC")? == Reply::Null, "the watched key has changed");
    Ok(())
}
