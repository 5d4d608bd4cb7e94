//! Damage to a file of users or passwords closes the Redis listener, and nothing else.

use anyhow::{Result, ensure};
use e2e::http::connect;
use e2e::redis::{RedisClient, door_port};
use e2e::{Launch, Server};
use std::io::{BufRead as _, BufReader};
use std::path::Path;

/// 2024-02-29 12:00:00 UTC in seconds.
const NOON: i64 = 1_709_208_000;

fn start(directory: &Path) -> Result<Server> {
    Launch::new(directory).flag("redis-listen", "127.0.0.1:0").start()
}

/// A directory whose keys are behind a password, which the file of that name has.
fn filled(file: &str) -> Result<tempfile::TempDir> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    server.write("/write?precision=s", format!("m,host=h v=7 {NOON}\n"))?;
    let mut client = RedisClient::of(&server)?;
    client.must("SET key secret")?;
    let lines: &[&str] = match file {
        "users.acl" => &[
            "ACL SETUSER admin on >pw ~* &* +@all",
            "AUTH admin pw",
            "ACL SETUSER default off",
            "ACL SAVE",
        ],
        _ => &["CONFIG SET requirepass pw", "AUTH pw", "CONFIG REWRITE"],
    };
    for line in lines {
        client.must(line)?;
    }
    server.stop()?;
    ensure!(directory.path().join("keys").join(file).is_file(), "{file} is there");
    Ok(directory)
}

/// The first line that a client gets, or that it gets to a command.
fn first_line(server: &Server) -> Result<String> {
    let stream = connect(&format!("127.0.0.1:{}", door_port(server)?))?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line)
}

fn check_closed(directory: &Path, what: &str) -> Result<()> {
    let path = directory.display().to_string();
    let verified = e2e::launch::quipu(&["verify", "--data-dir", &path])?.output()?;
    ensure!(verified.status.code() == Some(1), "{what}: verify finds nothing");
    let server = start(directory)?;
    let line = first_line(&server)?;
    ensure!(line.starts_with("-ERR a file of users or passwords is damaged"), "{what}: {line}");
    let samples = server.vector("m_v", NOON as f64)?;
    ensure!(samples.len() == 1, "{what}: {samples:?}");
    let damage = server.get("/api/v1/status/damage")?;
    ensure!(damage.text().contains("clients of Redis are refused"), "{what}: {}", damage.excerpt());
    server.stop()
}

#[test]
fn damaged_credentials_close_redis_alone() -> Result<()> {
    for file in ["users.acl", "settings.conf"] {
        let directory = filled(file)?;
        let path = directory.path().join("keys").join(file);
        let good = std::fs::read(&path)?;
        let server = start(directory.path())?;
        let reply = RedisClient::of(&server)?.say("GET key")?;
        ensure!(reply.text().contains("NOAUTH"), "{file}: {reply:?}");
        server.stop()?;
        for at in [0, good.len() / 2, good.len() - 3] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, bad)?;
            check_closed(directory.path(), &format!("{file} with a flipped bit at {at}"))?;
        }
        std::fs::write(&path, &good[..good.len() / 2])?;
        check_closed(directory.path(), &format!("{file} cut short"))?;
        std::fs::write(&path, b"")?;
        check_closed(directory.path(), &format!("{file} without bytes"))?;
        std::fs::remove_file(&path)?;
        check_closed(directory.path(), &format!("{file} removed"))?;
        let list = directory.path().join("keys/credentials");
        let good_list = std::fs::read(&list)?;
        std::fs::remove_file(&list)?;
        check_closed(directory.path(), &format!("{file} and the list removed"))?;
        std::fs::write(&path, &good)?;
        check_closed(directory.path(), &format!("the list of {file} removed"))?;
        std::fs::write(&list, good_list)?;
        let server = start(directory.path())?;
        let reply = RedisClient::of(&server)?.say("GET key")?;
        ensure!(reply.text().contains("NOAUTH"), "{file} restored: {reply:?}");
        server.stop()?;
    }
    Ok(())
}

#[test]
fn verify_reports_users_that_a_start_refuses() -> Result<()> {
    let directory = filled("users.acl")?;
    let path = directory.path().join("keys/users.acl");
    std::fs::write(&path, b"guest on nopass +ping\n# checksum accept\n")?;
    check_closed(directory.path(), "a line without the word user")?;
    std::fs::write(&path, b"user default on nopass ~* &* +@all\n# checksum accept\n")?;
    let server = start(directory.path())?;
    RedisClient::of(&server)?.must("GET key")?;
    server.stop()
}

#[test]
fn damage_to_the_file_of_the_primary_refuses_writes() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let mut client = RedisClient::of(&server)?;
    client.must("SET key value")?;
    // Nobody answers there.
    client.must("REPLICAOF 127.0.0.1 1")?;
    server.stop()?;
    let path = directory.path().join("keys/replica-of");
    let good = std::fs::read(&path)?;
    let shown = directory.path().display().to_string();
    let mut other = good.clone();
    other[0] ^= 3;
    for bad in [None, Some(other), Some(Vec::new()), Some(vec![0; good.len()])] {
        match &bad {
            None => std::fs::remove_file(&path)?,
            Some(bytes) => std::fs::write(&path, bytes)?,
        }
        let verified = e2e::launch::quipu(&["verify", "--data-dir", &shown])?.output()?;
        ensure!(verified.status.code() == Some(1), "{bad:?}: verify finds nothing");
        let server = start(directory.path())?;
        let mut client = RedisClient::of(&server)?;
        let value = client.must("GET key")?;
        ensure!(value.text() == "value", "{value:?}");
        let refused = client.say("SET key other")?;
        ensure!(refused.text().contains("READONLY the file replica-of is damaged"), "{refused:?}");
        let info = client.must("INFO replication")?;
        ensure!(info.text().contains("role:slave"), "{}", info.text());
        ensure!(info.text().contains("replica-of"), "{}", info.text());
        server.wait_for_log("keys take no writes and follow no primary")?;
        server.stop()?;
    }
    let server = start(directory.path())?;
    let mut client = RedisClient::of(&server)?;
    client.must("REPLICAOF NO ONE")?;
    client.must("SET key other")?;
    server.stop()?;
    let server = start(directory.path())?;
    RedisClient::of(&server)?.must("SET key again")?;
    server.stop()
}
