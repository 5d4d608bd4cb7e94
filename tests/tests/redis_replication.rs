//! Replication between a real Redis and the real binary, either way.

use crate::redis_moving::{fill, quipu};
use anyhow::{Context, Result, ensure};
use e2e::launch::signal;
use e2e::redis::{Reply, door_port};
use e2e::{Redis, RedisClient, launch, poll};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until the replica has what the primary has, whichever of them is which.
pub fn await_same(primary: &mut RedisClient, replica: &mut RedisClient) -> Result<()> {
    primary.must("SET marker same")?;
    poll("that both hold the same", PATIENCE, || {
        let (one, other) = (primary.contents()?, replica.contents()?);
        for (key, content) in &one {
            ensure!(other.get(key) == Some(content), "{key}: {content}\n{:?}", other.get(key));
        }
        let more: Vec<&String> = other.keys().filter(|key| !one.contains_key(*key)).collect();
        ensure!(more.is_empty(), "{more:?}");
        Ok(())
    })
}

/// Commands whose effects differ from what is said: random, relative, by scripts, of several keys.
fn change(client: &mut RedisClient) -> Result<()> {
    for line in [
        "SPOP set:big 20",
        "SPOP set:words",
        "INCRBYFLOAT float 10.5",
        "HINCRBYFLOAT hash:small f 1.25",
        "HSET hash:small g 1",
        "INCR counter",
        "INCR counter",
        "EXPIRE text 10000",
        "SET soon x EX 5000",
        "GETEX soon PX 7000000",
        "PERSIST hash:small",
        "SETRANGE long 5 middle",
        "APPEND text more",
        "SETBIT bits 77 1",
        "BITOP OR bits2 bits text",
        "BITFIELD bits INCRBY u8 0 5",
        "PFADD unique more and more",
        "PFMERGE unique2 unique",
        "LPUSH list:small x y z",
        "LTRIM list:big 5 100",
        "LMOVE list:small list:other LEFT RIGHT",
        "LINSERT list:small BEFORE b inserted",
        "LREM list:small 1 x",
        "RPOPLPUSH list:small list:small",
        "SORT set:ints STORE sorted",
        "SINTERSTORE inter set:ints set:words",
        "SMOVE set:words set:moved 7",
        "ZINCRBY zset:small 3 a",
        "ZPOPMIN zset:big 3",
        "ZUNIONSTORE union 2 zset:small zset:big",
        "ZREMRANGEBYRANK zset:big 0 10",
        "GEOSEARCHSTORE near places FROMLONLAT 15 37 BYRADIUS 200 km",
        "RENAME zset:small renamed",
        "COPY renamed copied",
        "MOVE int 3",
        "XADD stream * auto id",
        "XADD stream MAXLEN = 400 * trimmed yes",
        "XREADGROUP GROUP workers cat COUNT 5 STREAMS stream >",
        "XCLAIM stream workers ann 0 9-0 9-1",
        "XAUTOCLAIM stream workers bob 0 0 COUNT 3",
        "XGROUP DELCONSUMER stream idle nobody",
        "XSETID stream 99999999999999-5",
        "DEL unique",
        "UNLINK places",
        "MSET m1 1 m2 2",
        "GETDEL m1",
        "MULTI",
        "SET in-transaction 1",
        "RPUSH list:small transaction",
        "EXEC",
    ] {
        client.must(line)?;
    }
    let script =
        b"redis.call('SET', KEYS[1], redis.call('TIME')[1]); redis.call('SPOP', KEYS[2]); \
                   return redis.call('INCR', 'counter')";
    client.call(&[b"EVAL", script, b"2", b"script", b"set:big"])?;
    client.must("SELECT 4")?;
    client.must("SET four 4")?;
    client.must("SWAPDB 4 5")?;
    client.must("SELECT 3")?;
    client.must("FLUSHDB")?;
    client.must("SELECT 0")?;
    Ok(())
}

/// Has a server follow a primary, and waits until it does.
pub fn follow(client: &mut RedisClient, port: u16) -> Result<()> {
    client.must(&format!("REPLICAOF 127.0.0.1 {port}"))?;
    poll("the link to the primary", PATIENCE, || {
        let status = client.info("master_link_status")?;
        ensure!(status == "up", "{status}: {:?}", client.info("quipu_replica_failure"));
        Ok(())
    })
}

fn follows_a_redis(directory: &Path, arguments: &[&str]) -> Result<()> {
    let redis = Redis::start(directory, arguments)?;
    let mut primary = redis.client()?;
    primary.say("AUTH secret")?;
    fill(&mut primary)?;
    let server = quipu(&directory.join("data"))?;
    let mut replica = RedisClient::of(&server)?;
    replica.must("SET old 1")?;
    replica.must("TS.ADD heat 1709208000000 21.5")?;
    if arguments.contains(&"secret") {
        replica.must("CONFIG SET masterauth secret")?;
    }
    follow(&mut replica, redis.port)?;

    // What was there is replaced, but for time series.
    assert_eq!(replica.must("EXISTS old")?, Reply::Int(0));
    assert_eq!(replica.must("EXISTS heat")?, Reply::Int(1));
    assert_eq!(server.export("heat")?.len(), 1);
    change(&mut primary)?;
    primary.must("SET heat nothing")?;
    primary.must("DEL heat")?;
    poll("what comes last", PATIENCE, || {
        replica.must("GET m2")?;
        ensure!(replica.info("quipu_replica_refused_commands")? == "2");
        Ok(())
    })?;
    replica.must("CONFIG SET replica-read-only no")?;
    replica.must("DEL heat")?;
    replica.must("CONFIG SET replica-read-only yes")?;
    await_same(&mut primary, &mut replica)?;

    let refused = replica.say("SET a b")?;
    assert_eq!(refused.text(), "-READONLY You can't write against a read only replica.");
    let refused = replica.say("EVAL return(redis.call('set','a','b')) 0")?;
    ensure!(refused.text().starts_with("-READONLY"), "{refused:?}");
    let role = replica.must("ROLE")?;
    assert_eq!((role.list()[0].text(), role.list()[3].text()), ("slave", "connected"));
    assert_eq!(primary.must("WAIT 1 30000")?, Reply::Int(1));
    ensure!(primary.info("slave0")?.contains("state=online"));
    Ok(())
}

#[test]
fn quipu_follows_a_redis_that_sends_its_dump_at_once() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let diskless = ["--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"];
    follows_a_redis(directory.path(), &diskless)
}

#[test]
fn quipu_follows_a_redis_that_wants_a_password_and_sends_a_file() -> Result<()> {
    let directory = tempfile::tempdir()?;
    follows_a_redis(directory.path(), &["--repl-diskless-sync", "no", "--requirepass", "secret"])
}

#[test]
fn a_broken_link_goes_on_where_it_was_and_a_promoted_replica_writes() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let redis = Redis::start(directory.path(), &["--repl-diskless-sync-delay", "0"])?;
    let mut primary = redis.client()?;
    fill(&mut primary)?;
    let server = quipu(&directory.path().join("data"))?;
    let mut replica = RedisClient::of(&server)?;
    follow(&mut replica, redis.port)?;

    // Cut off, it comes back for what it missed.
    // The feed stands in another database when the link breaks, and is not told so again.
    primary.must("SELECT 1")?;
    primary.must("SET before-the-break 1")?;
    await_same(&mut primary, &mut replica)?;
    primary.must("CLIENT KILL TYPE replica")?;
    primary.must("SELECT 1")?;
    primary.must("SET behind-the-break 1")?;
    primary.must("SELECT 0")?;
    change(&mut primary)?;
    await_same(&mut primary, &mut replica)?;
    assert_eq!(primary.info("sync_partial_ok")?, "1");
    assert_eq!(primary.info("sync_full")?, "1");

    // Keys expire when the primary says so, and are not seen before.
    primary.must("SET brief x PX 50")?;
    poll("that it expires", PATIENCE, || {
        ensure!(replica.must("EXISTS brief")? == Reply::Int(0));
        Ok(())
    })?;

    // After a restart it follows again, with all keys anew.
    let server = server.restart()?;
    let mut replica = RedisClient::of(&server)?;
    await_same(&mut primary, &mut replica)?;

    // Without a primary it says so, and goes on as one itself.
    drop(primary);
    drop(redis);
    poll("that the link is down", PATIENCE, || {
        ensure!(replica.info("master_link_status")? == "down");
        Ok(())
    })?;
    replica.must("REPLICAOF NO ONE")?;
    replica.must("SET own 1")?;
    assert_eq!(replica.info("role")?, "master");
    let server = server.restart()?;
    let mut client = RedisClient::of(&server)?;
    assert_eq!((client.must("GET own")?.text(), client.info("role")?.as_str()), ("1", "master"));
    Ok(())
}

#[test]
fn a_redis_follows_quipu() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = quipu(&directory.path().join("data"))?;
    let mut primary = RedisClient::of(&server)?;
    fill(&mut primary)?;
    let port = door_port(&server)?.to_string();
    let redis = Redis::start(directory.path(), &["--replicaof", "127.0.0.1", &port])?;
    let mut replica = redis.client()?;
    await_same(&mut primary, &mut replica).with_context(|| redis.log())?;
    change(&mut primary)?;
    await_same(&mut primary, &mut replica).with_context(|| redis.log())?;
    assert_eq!(replica.must("FCALL_RO one 0")?, Reply::Int(1));

    assert_eq!(primary.must("WAIT 1 30000")?, Reply::Int(1));
    primary.must("SET waited 1")?;
    assert_eq!(primary.must("WAIT 1 30000")?, Reply::Int(1));
    assert_eq!(replica.must("GET waited")?.text(), "1");
    assert_eq!(primary.must("WAIT 2 50")?, Reply::Int(1));
    assert_eq!(primary.must("ROLE")?.list()[2].list().len(), 1);
    ensure!(primary.info("slave0")?.contains("state=online"));

    // What expires is told; what Redis has not is left out and counted.
    primary.must("SET brief x PX 20")?;
    primary.must("BF.ADD seen a")?;
    primary.must("TS.ADD heat 1709208000000 21.5")?;
    poll("that it expires there", PATIENCE, || {
        ensure!(replica.must("DBSIZE")?.int() + 2 == primary.must("DBSIZE")?.int());
        Ok(())
    })?;
    ensure!(primary.info("quipu_left_out_for_replicas")? != "0");
    primary.must("DEL seen heat")?;

    // Cut off, it goes on where it was.
    primary.must("CLIENT KILL TYPE replica")?;
    let mut replica = redis.client()?;
    primary.must("SET after 1")?;
    await_same(&mut primary, &mut replica).with_context(|| redis.log())?;
    assert_eq!(primary.info("sync_full")?, "1");

    Ok(())
}

#[test]
fn nothing_is_written_without_as_many_replicas_as_are_wanted() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = quipu(&directory.path().join("data"))?;
    let mut primary = RedisClient::of(&server)?;
    primary.must("CONFIG SET min-replicas-to-write 1")?;
    let refused = "-NOREPLICAS Not enough good replicas to write.";
    assert_eq!(primary.say("SET a b")?.text(), refused);
    let by_script = primary.say("EVAL return(redis.call('set','a','b')) 0")?;
    ensure!(by_script.text().starts_with(refused), "{by_script:?}");
    primary.must("MULTI")?;
    assert_eq!(primary.say("DEL a")?.text(), refused);
    ensure!(primary.say("EXEC")?.text().starts_with("-EXECABORT"));
    assert_eq!(primary.must("GET a")?, Reply::Null);
    assert_eq!(primary.info("min_slaves_good_slaves")?, "0");

    let port = door_port(&server)?.to_string();
    let redis = Redis::start(directory.path(), &["--replicaof", "127.0.0.1", &port])?;
    poll("that it writes", PATIENCE, || {
        let answer = primary.say("SET a b")?;
        ensure!(answer.text() == "OK", "{answer:?}");
        Ok(())
    })
    .with_context(|| redis.log())?;
    assert_eq!(primary.info("min_slaves_good_slaves")?, "1");
    primary.must("EVAL return(redis.call('set','a','c')) 0")?;
    // What was queued while there was one is not done without.
    primary.must("MULTI")?;
    primary.must("SET a d")?;
    drop(redis);
    poll("that it is gone", PATIENCE, || {
        let mut other = RedisClient::of(&server)?;
        ensure!(other.info("connected_slaves")? == "0");
        Ok(())
    })?;
    let answer = primary.say("EXEC")?;
    ensure!(answer.text().contains("NOREPLICAS"), "{answer:?}");
    assert_eq!(primary.must("GET a")?.text(), "c");
    // Where no lag is allowed none is wanted.
    primary.must("CONFIG SET min-replicas-max-lag 0")?;
    primary.must("SET a e")?;
    Ok(())
}

#[test]
fn a_dump_while_keys_change_is_of_one_moment() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = quipu(&directory.path().join("data"))?;
    let mut client = RedisClient::of(&server)?;
    client.must("DEBUG POPULATE 20000 populated 100")?;
    let increment = b"for i = 1, 50 do redis.call('INCR', 'counter:' .. i) end";
    client.call(&[b"EVAL", increment, b"0"])?;
    let out = directory.path().join("out");
    std::fs::create_dir(&out)?;
    let file = out.join("dump.rdb");
    let url = format!("redis://127.0.0.1:{}", door_port(&server)?);
    let name = file.to_str().context("a name")?.to_owned();
    let mut export = launch::quipu(&["kv", "export", &name, "--url", &url])?.spawn()?;
    while export.try_wait()?.is_none() {
        client.call(&[b"EVAL", increment, b"0"])?;
    }
    ensure!(export.wait()?.success());

    let redis = Redis::start(&out, &[])?;
    let mut loaded = redis.client()?;
    assert_eq!(loaded.must("DBSIZE")?, Reply::Int(20_050));
    let first = loaded.must("GET counter:1")?;
    for number in 2..=50 {
        assert_eq!(loaded.must(&format!("GET counter:{number}"))?, first);
    }
    Ok(())
}

#[test]
fn a_replica_that_lags_keeps_what_its_primary_kept() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let redis = Redis::start(directory.path(), &["--repl-diskless-sync-delay", "0"])?;
    let mut primary = redis.client()?;
    let server = quipu(&directory.path().join("data"))?;
    let mut replica = RedisClient::of(&server)?;
    follow(&mut replica, redis.port)?;
    for key in ["persisted", "prolonged", "read", "appended"] {
        primary.must(&format!("SET {key} x"))?;
    }
    let payload = primary.must("DUMP persisted")?;
    let payload: Vec<u8> = payload.text().chars().map(|letter| letter as u8).collect();
    await_same(&mut primary, &mut replica)?;

    // The replica hears of all this when the times have passed.
    signal("STOP", server.pid())?;
    for key in ["persisted", "prolonged", "read", "appended"] {
        primary.must(&format!("PEXPIRE {key} 1000"))?;
    }
    primary.must("SET set x PX 1000")?;
    primary.call(&[b"RESTORE", b"restored", b"1000", &payload])?;
    primary.must("APPEND appended y")?;
    for key in ["persisted", "set", "restored", "appended"] {
        assert_eq!(primary.must(&format!("PERSIST {key}"))?, Reply::Int(1), "{key}");
    }
    primary.must("PEXPIRE prolonged 10000000")?;
    primary.must("GETEX read PERSIST")?;
    primary.must("SET clock x PX 1100")?;
    poll("that the times pass", PATIENCE, || {
        ensure!(primary.must("EXISTS clock")? == Reply::Int(0));
        Ok(())
    })?;
    signal("CONT", server.pid())?;
    await_same(&mut primary, &mut replica)?;
    assert_eq!(replica.must("DBSIZE")?, primary.must("DBSIZE")?);
    Ok(())
}

#[test]
fn a_flush_within_a_transaction_spares_time_series_in_its_turn() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let redis = Redis::start(directory.path(), &["--repl-diskless-sync-delay", "0"])?;
    let mut primary = redis.client()?;
    let server = quipu(&directory.path().join("data"))?;
    let mut replica = RedisClient::of(&server)?;
    replica.must("TS.ADD heat 1709208000000 21.5")?;
    follow(&mut replica, redis.port)?;
    let keys = |client: &mut RedisClient| -> Result<Vec<String>> {
        let found = client.must("KEYS *")?;
        let mut keys: Vec<String> = found.list().iter().map(|key| key.text().to_owned()).collect();
        keys.sort();
        Ok(keys)
    };
    for flush in ["FLUSHALL", "FLUSHDB"] {
        primary.must("SET before 1")?;
        for line in ["MULTI", "SET a 1", flush, "SET b 2", "EXEC"] {
            primary.must(line)?;
        }
        assert_eq!(primary.must("WAIT 1 30000")?, Reply::Int(1));
        assert_eq!(keys(&mut replica)?, ["b", "heat"], "{flush} in a transaction");
        let script =
            format!("redis.call('SET','c',1); redis.call('{flush}'); redis.call('SET','d',2)");
        primary.call(&[b"EVAL", script.as_bytes(), b"0"])?;
        assert_eq!(primary.must("WAIT 1 30000")?, Reply::Int(1));
        assert_eq!(keys(&mut replica)?, ["d", "heat"], "{flush} in a script");
    }
    // What would change a series is counted, whatever it stands in.
    for line in ["MULTI", "SET heat 1", "SET e 1", "EXEC", "SWAPDB 0 1", "SELECT 2", "SET f 1"] {
        primary.must(line)?;
    }
    primary.must("COPY f heat DB 0 REPLACE")?;
    primary.must("SWAPDB 2 0")?;
    assert_eq!(primary.must("WAIT 1 30000")?, Reply::Int(1));
    assert_eq!(keys(&mut replica)?, ["d", "e", "heat"]);
    assert_eq!(replica.info("quipu_replica_refused_commands")?, "4");
    assert_eq!(server.export("heat")?.len(), 1);
    Ok(())
}

/// What a server does for its primary, as `MONITOR` shows it.
struct Monitor(BufReader<TcpStream>);

impl Monitor {
    fn at(port: u16) -> Result<Monitor> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"MONITOR\r\n")?;
        let mut monitor = Monitor(BufReader::new(stream));
        ensure!(monitor.line()? == "+OK");
        Ok(monitor)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(0 < self.0.read_line(&mut line)?, "the server hung up");
        Ok(line.trim_end().to_owned())
    }

    /// The names and first arguments of commands up to that one.
    fn commands_until(&mut self, last: &str) -> Result<Vec<String>> {
        let mut commands = Vec::new();
        loop {
            let line = self.line()?;
            let (_, words) = line.split_once("] ").context("no command")?;
            let words: Vec<&str> = words.split(' ').map(|word| word.trim_matches('"')).collect();
            let name = words[0].to_ascii_uppercase();
            if name != "PING" && name != "SELECT" {
                commands.push([name.as_str(), words.get(1).unwrap_or(&"")].join(" "));
            }
            if commands.last().is_some_and(|command| command.trim() == last) {
                return Ok(commands);
            }
        }
    }
}

#[test]
fn messages_reach_replicas_in_their_place_among_changes() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let first = quipu(&directory.path().join("first"))?;
    let second = quipu(&directory.path().join("second"))?;
    let (mut primary, mut replica) = (RedisClient::of(&first)?, RedisClient::of(&second)?);
    follow(&mut replica, door_port(&first)?)?;
    let mut monitor = Monitor::at(door_port(&second)?)?;

    primary.pipeline(&[&["SET", "k", "1"], &["PUBLISH", "ch", "k=1"], &["SET", "j", "1"]])?;
    let seen = monitor.commands_until("EXEC")?;
    assert_eq!(seen, ["MULTI ", "SET k", "PUBLISH ch", "SET j", "EXEC "]);

    primary.pipeline(&[&["MULTI"], &["SET", "k", "2"], &["PUBLISH", "ch", "k=2"], &["EXEC"]])?;
    let seen = monitor.commands_until("EXEC")?;
    assert_eq!(seen, ["MULTI ", "SET k", "PUBLISH ch", "EXEC "]);

    let script = "redis.call('SET', 'k', '3'); redis.call('PUBLISH', 'ch', 'k=3')";
    primary.pipeline(&[&["EVAL", script, "0"]])?;
    let seen = monitor.commands_until("EXEC")?;
    assert_eq!(seen, ["MULTI ", "SET k", "PUBLISH ch", "EXEC "]);

    // An effect that becomes several commands keeps its place.
    primary.pipeline(&[
        &["MULTI"],
        &["PUBLISH", "before", "it"],
        &["HSETEX", "h", "EX", "100", "FIELDS", "1", "f", "v"],
        &["PUBLISH", "behind", "it"],
        &["EXEC"],
    ])?;
    let seen = monitor.commands_until("EXEC")?;
    let both = ["MULTI ", "PUBLISH before", "HSET h", "HPEXPIREAT h", "PUBLISH behind", "EXEC "];
    assert_eq!(seen, both);

    primary.must("PUBLISH ch alone")?;
    assert_eq!(monitor.commands_until("PUBLISH ch")?, ["PUBLISH ch"]);
    Ok(())
}

/// When the fields `a` to `d` of some hashes expire.
fn field_times(client: &mut RedisClient) -> Result<Vec<Reply>> {
    let ask = |key| client.must(&format!("HPEXPIRETIME {key} FIELDS 4 a b c d"));
    ["h", "copy", "moved", "set"].into_iter().map(ask).collect()
}

fn await_same_times(primary: &mut RedisClient, replica: &mut RedisClient) -> Result<()> {
    await_same(primary, replica)?;
    poll("that fields expire at the same time", PATIENCE, || {
        let (one, other) = (field_times(primary)?, field_times(replica)?);
        ensure!(one == other, "{one:?}, not {other:?}");
        Ok(())
    })
}

const FIELDS: [&str; 12] = [
    "HSET h a 1 b 2 c 3",
    "HPEXPIRE h 900000 FIELDS 2 a b",
    "HINCRBYFLOAT h a 1.5",
    "HEXPIRE h 900 FIELDS 1 c",
    "HPERSIST h FIELDS 1 b",
    "HSETEX set PX 800000 FIELDS 2 a 1 b 2",
    "HSETEX set KEEPTTL FIELDS 1 a 3",
    "HSETEX set FIELDS 1 b 3",
    "HSET later d 1",
    "HGETEX later EX 700 FIELDS 1 d",
    "COPY h copy",
    "RENAME later moved",
];

#[test]
fn fields_expire_after_a_failover_as_they_would_have_before() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let first = quipu(&directory.path().join("first"))?;
    let second = quipu(&directory.path().join("second"))?;
    let (mut primary, mut replica) = (RedisClient::of(&first)?, RedisClient::of(&second)?);
    for line in FIELDS {
        primary.must(line)?;
    }
    // In the dump.
    follow(&mut replica, door_port(&first)?)?;
    await_same_times(&mut primary, &mut replica)?;
    ensure!(field_times(&mut replica)?[0].list()[0].int() > 0);
    // One by one, and as a transaction.
    primary.must("FLUSHALL")?;
    for line in FIELDS {
        primary.must(line)?;
    }
    await_same_times(&mut primary, &mut replica)?;
    primary.must("FLUSHALL")?;
    for line in ["MULTI"].into_iter().chain(FIELDS).chain(["EXEC"]) {
        primary.must(line)?;
    }
    await_same_times(&mut primary, &mut replica)?;
    assert_eq!(primary.info("quipu_left_out_for_replicas")?, "0");
    assert_eq!(replica.info("quipu_replica_refused_commands")?, "0");
    // Fields expire on the replica, too, and the key with its last field.
    primary.must("HSET short a 1 b 2")?;
    primary.must("HPEXPIRE short 50 FIELDS 2 a b")?;
    poll("that the fields expire", PATIENCE, || {
        ensure!(primary.must("EXISTS short")? == Reply::Int(0));
        ensure!(replica.must("DBSIZE")? == primary.must("DBSIZE")?);
        Ok(())
    })?;
    // The replica takes over.
    primary.must("HPEXPIRE copy 500 FIELDS 1 a")?;
    await_same_times(&mut primary, &mut replica)?;
    drop(first);
    replica.must("REPLICAOF NO ONE")?;
    poll("that a field expires", PATIENCE, || {
        ensure!(replica.must("HEXISTS copy a")? == Reply::Int(0));
        Ok(())
    })?;
    ensure!(replica.must("HPEXPIRETIME h FIELDS 1 a")?.list()[0].int() > 0);
    Ok(())
}

#[test]
fn a_redis_without_expiry_of_fields_takes_all_else() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = quipu(&directory.path().join("data"))?;
    let mut primary = RedisClient::of(&server)?;
    for line in FIELDS {
        primary.must(line)?;
    }
    let port = door_port(&server)?.to_string();
    let redis = Redis::start(directory.path(), &["--replicaof", "127.0.0.1", &port])?;
    let mut replica = redis.client()?;
    await_same(&mut primary, &mut replica).with_context(|| redis.log())?;
    primary.must("FLUSHALL")?;
    for line in ["MULTI", "SET before 1"].into_iter().chain(FIELDS).chain(["SET after 1", "EXEC"]) {
        primary.must(line)?;
    }
    await_same(&mut primary, &mut replica).with_context(|| redis.log())?;
    // The primary says when they have expired.
    primary.must("HPEXPIRE h 50 FIELDS 3 a b c")?;
    poll("that the fields go", PATIENCE, || {
        ensure!(replica.must("EXISTS h")? == Reply::Int(0));
        Ok(())
    })?;
    await_same(&mut primary, &mut replica).with_context(|| redis.log())?;
    ensure!(!redis.log().contains("CRITICAL"), "{}", redis.log());
    Ok(())
}
