//! Backups of keys: of a server whose Redis listener is off, and of a replica.

use crate::backup::backup;
use anyhow::{Result, ensure};
use e2e::{Launch, RedisClient, Server, poll};
use std::path::Path;
use std::time::Duration;

fn with_redis(directory: &Path) -> Launch {
    // A kill keeps what was answered only where each answer waits for the disk.
    Launch::new(directory).flag("redis-listen", "127.0.0.1:0").flag("kv-durability", "always")
}

/// Makes a backup of a server in `data` and restores it in `to`; returns what the restore said.
fn there_and_back(server: &Server, data: &Path, to: &Path) -> Result<String> {
    let place = to.with_extension("place").display().to_string();
    let (data, to) = (data.display().to_string(), to.display().to_string());
    let create = ["create", "--url", server.url(), "--data-dir", &data, "--to", &place];
    let made = backup(&create, &[])?;
    ensure!(made.is_ok, "{}{}", made.out, made.error);
    let restored = backup(&["restore", "latest", "--from", &place, "--data-dir", &to], &[])?;
    ensure!(restored.is_ok, "{}{}", restored.out, restored.error);
    Ok(restored.out)
}

#[test]
fn keys_are_backed_up_while_the_listener_is_off() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("data");
    let mut count = 0;
    for (round, is_killed) in [(0, false), (1, true), (2, true)] {
        let server = with_redis(&data).start()?;
        let mut redis = RedisClient::of(&server)?;
        for key in 0..100 {
            redis.must(&format!("SET {round}:{key} {key}"))?;
        }
        count += 100;
        if is_killed {
            server.kill()?
        } else {
            server.stop()?
        }
        let closed = Launch::new(&data).start()?;
        let to = directory.path().join(format!("restored{round}"));
        there_and_back(&closed, &data, &to)?;
        closed.stop()?;
        let server = with_redis(&to).start()?;
        let found = RedisClient::of(&server)?.contents()?.len();
        ensure!(found == count, "round {round}: {found} of {count} keys");
        server.stop()?;
    }
    Ok(())
}

#[test]
fn a_restored_replica_starts_as_a_primary() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let primary = with_redis(&directory.path().join("primary")).start()?;
    let mut keys = RedisClient::of(&primary)?;
    for key in 0..50 {
        keys.must(&format!("SET key:{key} {key}"))?;
    }
    let data = directory.path().join("replica");
    let replica = with_redis(&data).start()?;
    let mut follower = RedisClient::of(&replica)?;
    follower.must(&format!("REPLICAOF 127.0.0.1 {}", e2e::redis::door_port(&primary)?))?;
    poll("the keys of the primary", Duration::from_secs(60), || {
        ensure!(follower.contents()?.len() == 50, "not yet");
        Ok(())
    })?;
    let to = directory.path().join("restored");
    let said = there_and_back(&replica, &data, &to)?;
    ensure!(said.contains("the backup is of a replica of 127.0.0.1:"), "{said}");
    replica.stop()?;
    keys.must("FLUSHALL")?;
    let restored = with_redis(&to).start()?;
    let mut redis = RedisClient::of(&restored)?;
    ensure!(format!("{:?}", redis.must("ROLE")?).contains("master"), "a primary");
    ensure!(redis.contents()?.len() == 50, "the keys of the backup");
    restored.stop()?;
    primary.stop()
}
