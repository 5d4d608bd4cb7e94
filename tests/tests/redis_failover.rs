//! `FAILOVER` between a real Redis and the real binary, either way.

use crate::redis_moving::{fill, quipu};
use anyhow::{Context, Result, ensure};
use e2e::redis::{LineClient, Reply, door_port};
use e2e::{Redis, RedisClient, poll, run};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn await_info(client: &mut RedisClient, name: &str, value: &str) -> Result<()> {
    poll(&format!("{name}:{value}"), PATIENCE, || {
        let found = client.info(name)?;
        ensure!(found == value, "{found}");
        Ok(())
    })
}

/// Waits until the new replica has what its primary, the old replica, is told now.
fn await_handed_over(old: &mut RedisClient, new: &mut RedisClient) -> Result<()> {
    await_info(new, "role", "master")?;
    await_info(old, "role", "slave")?;
    await_info(old, "master_link_status", "up")?;
    await_info(old, "master_failover_state", "no-failover")?;
    new.must("SELECT 2")?;
    new.must("SET written-after 1")?;
    new.must("SELECT 0")?;
    new.must("SET after 2")?;
    poll("what the new primary is told", PATIENCE, || {
        ensure!(old.say("GET after")?.text() == "2");
        ensure!(old.contents()? == new.contents()?);
        Ok(())
    })?;
    let refused = old.say("SET a b")?;
    ensure!(refused.text().starts_with("-READONLY"), "{refused:?}");
    Ok(())
}

#[test]
fn quipu_hands_over_to_a_redis() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = quipu(&directory.path().join("data"))?;
    let mut primary = RedisClient::of(&server)?;
    let refused = |client: &mut RedisClient, line: &str, words: &str| -> Result<()> {
        let answer = client.say(line)?;
        ensure!(answer.text() == words, "{line}: {answer:?}");
        Ok(())
    };
    refused(&mut primary, "FAILOVER", "-ERR FAILOVER requires connected replicas.")?;
    refused(&mut primary, "FAILOVER ABORT", "-ERR No failover in progress.")?;
    fill(&mut primary)?;
    let port = door_port(&server)?.to_string();
    let redis = Redis::start(directory.path(), &["--replicaof", "127.0.0.1", &port])?;
    let mut replica = redis.client()?;
    await_info(&mut replica, "master_link_status", "up")?;
    primary.must("SET before 1")?;
    assert_eq!(primary.must("WAIT 1 30000")?, Reply::Int(1));
    refused(&mut primary, "FAILOVER TIMEOUT 0", "-ERR FAILOVER timeout must be greater than 0")?;
    refused(
        &mut primary,
        "FAILOVER TO 127.0.0.1 1",
        "-ERR FAILOVER target HOST and PORT is not a replica.",
    )?;
    let to = format!("FAILOVER TO 127.0.0.1 {}", redis.port);
    let words = "-ERR FAILOVER with force option requires both a timeout and target HOST and IP.";
    refused(&mut primary, &format!("{to} FORCE"), words)?;

    primary.must(&to)?;
    await_handed_over(&mut primary, &mut replica).with_context(|| redis.log())?;
    // It goes on where both were: no key is sent anew.
    assert_eq!(replica.info("sync_full")?, "0");
    assert_eq!(replica.info("sync_partial_ok")?, "1");
    refused(&mut primary, "FAILOVER", "-ERR FAILOVER is not valid when server is a replica.")?;

    // And back.
    let to = format!("FAILOVER TO 127.0.0.1 {port}");
    poll("that it may hand over again", PATIENCE, || replica.must(&to).map(|_| ()))?;
    await_handed_over(&mut replica, &mut primary).with_context(|| redis.log())?;
    assert_eq!(primary.info("sync_partial_ok")?, "1");
    server.stop()
}

#[test]
fn a_redis_hands_over_to_quipu() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let redis = Redis::start(directory.path(), &["--repl-diskless-sync-delay", "0"])?;
    let mut primary = redis.client()?;
    fill(&mut primary)?;
    let server = quipu(&directory.path().join("data"))?;
    let mut replica = RedisClient::of(&server)?;
    replica.must(&format!("REPLICAOF 127.0.0.1 {}", redis.port))?;
    await_info(&mut replica, "master_link_status", "up")?;
    primary.must("SET before 1")?;
    assert_eq!(primary.must("WAIT 1 30000")?, Reply::Int(1));
    primary.must(&format!("FAILOVER TO 127.0.0.1 {}", door_port(&server)?))?;
    await_handed_over(&mut primary, &mut replica).with_context(|| redis.log())?;
    assert_eq!(
        (replica.info("sync_full")?, replica.info("sync_partial_ok")?),
        ("0".into(), "1".into())
    );
    // It is the primary after a restart, too.
    let server = server.restart()?;
    let mut client = RedisClient::of(&server)?;
    assert_eq!(client.info("role")?, "master");
    assert_eq!(client.must("GET after")?.text(), "2");
    server.stop()
}

#[test]
fn a_failover_that_does_not_come_about_lets_writes_go_on() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = quipu(&directory.path().join("data"))?;
    let mut primary = RedisClient::of(&server)?;
    let port = door_port(&server)?.to_string();
    let redis = Redis::start(directory.path(), &["--replicaof", "127.0.0.1", &port])?;
    let mut replica = redis.client()?;
    await_info(&mut replica, "master_link_status", "up")?;
    poll("a replica that is online", PATIENCE, || {
        ensure!(primary.must("WAIT 1 100")? == Reply::Int(1));
        Ok(())
    })?;
    // It stands still, so that it cannot say that it has all.
    let pid = replica.info("process_id")?;
    ensure!(run("kill", &["-STOP", &pid])?.status.success());
    primary.must("SET n 1")?;
    primary.must("FAILOVER TIMEOUT 600000")?;
    let mut reader = RedisClient::of(&server)?;
    assert_eq!(reader.info("master_failover_state")?, "waiting-for-sync");
    let again = reader.say("FAILOVER")?;
    assert_eq!(again.text(), "-ERR FAILOVER already in progress.");
    let refused = reader.say("REPLICAOF NO ONE")?;
    assert_eq!(refused.text(), "-ERR REPLICAOF not allowed while failing over.");
    assert_eq!(reader.must("GET n")?.text(), "1", "reading goes on");
    let mut writer = RedisClient::of(&server)?;
    let written = std::thread::spawn(move || writer.say("SET n 2"));
    reader.must("FAILOVER ABORT")?;
    let written = written.join().map_err(|_| anyhow::anyhow!("a writer that panics"))??;
    assert_eq!(written.text(), "OK");
    assert_eq!(reader.info("master_failover_state")?, "no-failover");

    // A time that is over ends it, too.
    reader.must("FAILOVER TIMEOUT 1")?;
    await_info(&mut reader, "master_failover_state", "no-failover")?;
    assert_eq!(reader.info("role")?, "master");
    reader.must("SET n 3")?;
    ensure!(run("kill", &["-CONT", &pid])?.status.success());
    poll("that it follows", PATIENCE, || {
        ensure!(replica.say("GET n")?.text() == "3");
        Ok(())
    })?;
    server.stop()
}

/// What was queued, or waits, when the server becomes a replica is the new primary's business.
#[test]
fn nobody_writes_to_a_replica_who_began_before_it_was_one() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = quipu(&directory.path().join("data"))?;
    let redis = Redis::start(directory.path(), &["--repl-diskless-sync-delay", "0"])?;
    let mut primary = redis.client()?;
    let mut client = RedisClient::of(&server)?;
    let mut writer = RedisClient::of(&server)?;
    writer.must("MULTI")?;
    writer.must("SET k from-exec")?;
    let mut reader = RedisClient::of(&server)?;
    reader.must("MULTI")?;
    reader.must("GET k")?;
    let mut waiting = Vec::new();
    for line in ["BLPOP l 0", "BZPOPMIN z 0", "BLMOVE l m LEFT RIGHT 0", "WAIT 3 0"] {
        let mut one = LineClient::of(&server)?;
        one.send(format!("{line}\r\n").as_bytes())?;
        waiting.push(one);
    }
    await_info(&mut client, "blocked_clients", "4")?;

    client.must(&format!("REPLICAOF 127.0.0.1 {}", redis.port))?;
    for mut one in waiting {
        let answer = one.rest()?;
        ensure!(answer.starts_with("-UNBLOCKED force unblock"), "{answer}");
    }
    await_info(&mut client, "master_link_status", "up")?;
    primary.must("RPUSH l e1")?;
    primary.must("ZADD z 1 m")?;
    let refused = writer.say("EXEC")?;
    let words = "-EXECABORT Transaction discarded because of: READONLY You can't write against a \
                 read only replica.";
    assert_eq!(refused.text(), words);
    assert_eq!(reader.must("EXEC")?.list(), [Reply::Null]);
    poll("that both hold the same", PATIENCE, || {
        ensure!(client.must("EXISTS l z")? == Reply::Int(2));
        ensure!(client.contents()? == primary.contents()?);
        Ok(())
    })
}

/// As Sentinel promotes a replica, and tells another whom to follow.
#[test]
fn a_transaction_changes_whom_the_server_follows() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let redis = Redis::start(directory.path(), &["--repl-diskless-sync-delay", "0"])?;
    let server = quipu(&directory.path().join("data"))?;
    let mut client = RedisClient::of(&server)?;
    for (primary, role) in
        [(format!("127.0.0.1 {}", redis.port), "slave"), ("NO ONE".to_owned(), "master")]
    {
        let mut other = RedisClient::of(&server)?;
        other.must("PING")?;
        client.must("MULTI")?;
        client.must(&format!("SLAVEOF {primary}"))?;
        client.must("CONFIG REWRITE")?;
        client.must("CLIENT KILL TYPE normal")?;
        client.must("CLIENT KILL TYPE pubsub")?;
        let done = client.must("EXEC")?;
        assert_eq!(done.list()[0].text(), "OK", "{done:?}");
        ensure!(other.say("PING").is_err(), "it was closed");
        assert_eq!(client.info("role")?, role);
        if role == "slave" {
            // While the dump is loaded nobody may be told whom to follow, as in Redis.
            await_info(&mut client, "master_link_status", "up")?;
        }
    }
    client.must("SET a b")?;
    let server = server.restart()?;
    assert_eq!(RedisClient::of(&server)?.info("role")?, "master");
    Ok(())
}
