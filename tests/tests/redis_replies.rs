//! Replies and events that campaigns beside Redis 7.0 found to differ.

use anyhow::{Result, ensure};
use e2e::redis::{LineClient, RedisClient, Reply};
use e2e::{Launch, Server, poll};
use std::path::Path;
use std::time::Duration;

fn with_redis(directory: &Path) -> Result<Server> {
    Launch::new(directory).flag("redis-listen", "127.0.0.1:0").start()
}

/// Lines and what Redis 7.0.15 answers them.
const REPLIES: &[(&str, &str)] = &[
    ("COMMAND INFO nosuch", "*1 $-1"),
    ("EVAL \"local t={} for i=1,7999 do t[i]=i end return select('#',unpack(t))\" 0", ":7999"),
    ("CLUSTER INFO", "-ERR This instance has cluster support disabled"),
    ("CLUSTER MYID", "-ERR This instance has cluster support disabled"),
    ("CLUSTER KEYSLOT a", "-ERR This instance has cluster support disabled"),
    ("CLUSTER COUNTKEYSINSLOT 1", "-ERR This instance has cluster support disabled"),
    ("CLUSTER HELP", "-ERR This instance has cluster support disabled"),
    ("READONLY", "-ERR This instance has cluster support disabled"),
    // Floats as Redis 7.2 and later write them.
    (
        "ZADD d 0.1 a 3.3 b 1e20 c 1700000000.1234567 d -0.0001234 e\r\nZSCORE d a\r\nZSCORE d b",
        ":5 $3 0.1 $3 3.3",
    ),
    ("ZSCORE d c\r\nZSCORE d d\r\nZSCORE d e", "$5 1e+20 $21 1.7000000001234567e+9 $9 -1.234e-4"),
    ("EVAL \"return redis.call('SET', 'n', 0.1) and redis.call('GET', 'n')\" 0", "$3 0.1"),
    ("EVAL \"return redis.call('INCRBY', 'i', 1e15)\" 0", ":1000000000000000"),
    // Errors name what is to be done.
    ("SELECT 16", "-ERR DB index is out of range"),
    ("VADD k VALUES 1 1 e", "-ERR unknown command 'VADD' (Redis 8.0, vector sets): Quipu has none"),
    (
        "msetex 1 a b",
        "-ERR unknown command 'msetex' (Redis 8.4, sets several strings that expire): use SET with PX in MULTI",
    ),
    // A time of a field beyond 2^46 ms is restored as it was dumped.
    (
        "HSET big f v\r\nHPEXPIREAT big 70368744177663 FIELDS 1 f\r\n\
         EVAL \"return redis.call('RESTORE', 'copy', 0, redis.call('DUMP', 'big'))\" 0\r\n\
         HPEXPIRETIME copy FIELDS 1 f",
        ":1 *1 :1 +OK *1 :70368744177663",
    ),
    ("ACL GETUSER nosuch", "$-1"),
    ("ACL GENPASS x", "-ERR value is not an integer or out of range"),
    (
        "ACL GENPASS 1 2",
        "-ERR unknown subcommand or wrong number of arguments for 'GENPASS'. Try ACL HELP.",
    ),
    (
        "ACL LOG 1 2",
        "-ERR unknown subcommand or wrong number of arguments for 'LOG'. Try ACL HELP.",
    ),
    (
        "SLOWLOG GET 1 2",
        "-ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.",
    ),
    (
        "PUBSUB CHANNELS a b",
        "-ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.",
    ),
    ("ACL SETUSER u ( a", "-ERR Unmatched parenthesis in acl selector starting at '('."),
    ("EVALSHA x y", "-NOSCRIPT No matching script. Please use EVAL."),
    ("EVAL \"return redis.set_repl('x')\" 0", "$-1"),
    (
        "MOVE a 4294967296",
        "-ERR value is out of range, value must between -2147483648 and 2147483647",
    ),
    (
        "SELECT -4294967296",
        "-ERR value is out of range, value must between -2147483648 and 2147483647",
    ),
    ("LOLWUT VERSION x", "-ERR value is not an integer or out of range"),
    ("CLIENT KILL ID x y", "-ERR client-id should be greater than 0"),
    ("ZRANGEBYSCORE z \" \" 1", "-ERR min or max is not a float"),
    ("ZRANGEBYSCORE z \"\" \" 1\"", "*0"),
    // RESET forgets that a watched key was changed.
    ("WATCH s\r\nSET s 1\r\nRESET\r\nMULTI\r\nEXEC", "+OK +OK +RESET +OK *0"),
    // Containers have no flags and keys of their own.
    (
        "COMMAND LIST FILTERBY PATTERN obje?t\r\nACL SETUSER v -@all +@keyspace\r\nACL DRYRUN v XINFO STREAM x",
        "*1 $6 object +OK $62 This user has no permissions to run the 'xinfo|stream' command",
    ),
];

#[test]
fn replies_are_those_of_redis() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = with_redis(directory.path())?;
    for (lines, expected) in REPLIES {
        let mut client = LineClient::of(&server)?;
        let reply = client.say(lines)?;
        ensure!(reply == *expected, "{lines}: {reply}");
    }
    // A length has one spelling.
    for length in ["04", "+4", "-0", "4x", "99999999999999999999"] {
        let mut client = LineClient::of(&server)?;
        client.send(format!("*1\r\n${length}\r\nPING\r\n").as_bytes())?;
        let reply = client.rest()?;
        ensure!(reply == "-ERR Protocol error: invalid bulk length\r\n", "{length}: {reply}");
    }
    server.stop()
}

/// The last words of messages until a client listens to nothing new.
fn events(listener: &mut RedisClient, teller: &mut RedisClient) -> Result<Vec<String>> {
    teller.must("PUBLISH end end")?;
    let mut found = Vec::new();
    loop {
        let message = listener.next_message()?;
        let words: Vec<&str> = message.list().iter().map(|word| word.text()).collect();
        match words.as_slice() {
            ["message", "end", _] => return Ok(found),
            [.., channel, key] => {
                let event = channel.rsplit(':').next().unwrap_or_default();
                found.push(format!("{event} {key}"));
            }
            _ => {}
        }
    }
}

/// Commands and the events that they send, with all classes wanted.
const EVENTS: &[(&str, &[&str])] = &[
    ("RPUSH l a", &["new l", "rpush l"]),
    ("RPUSH l b", &["rpush l"]),
    ("SET s 1", &["new s", "set s"]),
    ("SET s 2", &["set s"]),
    ("RENAME s l", &["new l", "rename_from s", "rename_to l"]),
    ("COPY l c", &["new c", "copy_to c"]),
    ("COPY l c REPLACE", &["new c", "copy_to c"]),
    ("GET none", &["keymiss none"]),
    ("MGET none l also", &["keymiss none", "keymiss also"]),
    ("GETEX none", &["keymiss none"]),
    ("OBJECT ENCODING none", &[]),
    ("WATCH none", &[]),
    ("LPUSHX none x", &[]),
    ("BITFIELD b OVERFLOW FAIL SET u2 0 9", &["new b"]),
    ("BITFIELD b OVERFLOW FAIL SET u2 0 2", &["setbit b"]),
    ("EVAL return(redis.call('GET','none')) 0", &["keymiss none"]),
];

#[test]
fn events_of_new_and_missed_keys_are_sent() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = with_redis(directory.path())?;
    let (mut listener, mut client) = (RedisClient::of(&server)?, RedisClient::of(&server)?);
    client.must("CONFIG SET notify-keyspace-events EAmn")?;
    listener.must("PSUBSCRIBE __keyevent@0__:*")?;
    listener.must("SUBSCRIBE end")?;
    for (command, expected) in EVENTS {
        client.say(command)?;
        let found = events(&mut listener, &mut client)?;
        ensure!(found == *expected, "{command}: {found:?}");
    }
    server.stop()
}

#[test]
fn monitors_see_commands_that_wait_and_the_end_of_transactions() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = with_redis(directory.path())?;
    let (mut monitor, mut client) = (RedisClient::of(&server)?, LineClient::of(&server)?);
    monitor.must("MONITOR")?;
    client.ask("MULTI")?;
    client.ask("EXEC x")?;
    client.send(b"BLPOP l 0\r\n")?;
    let mut shown = Vec::new();
    while shown.len() < 3 {
        let line = monitor.next_message()?;
        let line = line.text();
        shown.push(line.split_once("] ").map_or(line, |(_, words)| words).to_owned());
    }
    ensure!(shown == ["\"MULTI\"", "\"EXEC\" \"x\"", "\"BLPOP\" \"l\" \"0\""], "{shown:?}");
    server.stop()
}

#[test]
fn clients_that_watch_an_expired_key_are_not_told_of_its_end() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = with_redis(directory.path())?;
    let (mut first, mut second) = (RedisClient::of(&server)?, RedisClient::of(&server)?);
    for _ in 0..20 {
        first.must("SET s 1 PX 1")?;
        first.must("WATCH s")?;
        poll("the key to expire", Duration::from_secs(20), || {
            ensure!(second.say("EXISTS s")?.int() == 0, "it is there");
            Ok(())
        })?;
        second.must("WATCH s")?;
        second.must("MULTI")?;
        let reply = second.must("EXEC")?;
        ensure!(reply == Reply::List(Vec::new()), "{reply:?}");
        first.must("UNWATCH")?;
    }
    server.stop()
}
