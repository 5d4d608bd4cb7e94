//! Damage to keys or tables closes those alone: samples and the other part are served.

use anyhow::{Context, Result, ensure};
use e2e::postgres::{launch, play};
use e2e::redis::RedisClient;
use e2e::{Launch, Psql, Server};
use std::path::{Path, PathBuf};

/// 2024-02-29 12:00:00 UTC in seconds.
const NOON: i64 = 1_709_208_000;

fn with_redis(directory: &Path) -> Launch {
    launch(directory).flag("redis-listen", "127.0.0.1:0").flag("kv-durability", "always")
}

/// A directory with a sample, a key and a table, all of them in checkpoints.
fn filled() -> Result<tempfile::TempDir> {
    let directory = tempfile::tempdir()?;
    let server = with_redis(directory.path()).start()?;
    server.write("/write?precision=s", format!("m,host=h v=7 {NOON}\n"))?;
    RedisClient::of(&server)?.must("SET key value")?;
    let psql = Psql::of(&server)?;
    psql.ask(&["CREATE TABLE t (id int PRIMARY KEY, name text)"], "")?;
    psql.ask(&["INSERT INTO t VALUES (1, 'one')"], "")?;
    server.stop()?;
    Ok(directory)
}

fn file(directory: &Path, part: &str, end: &str) -> Result<PathBuf> {
    let mut names = std::fs::read_dir(directory.join(part))?;
    let found = names.find_map(|entry| {
        let path = entry.ok()?.path();
        path.to_string_lossy().ends_with(end).then_some(path)
    });
    found.with_context(|| format!("no {part}/*{end}"))
}

fn flip(path: &Path, byte: usize) -> Result<()> {
    let mut bytes = std::fs::read(path)?;
    bytes[byte] ^= 4;
    Ok(std::fs::write(path, bytes)?)
}

fn check_samples(server: &Server) -> Result<()> {
    let found = server.vector("m_v", NOON as f64)?;
    ensure!(found.len() == 1, "{found:?}");
    server.write("/write?precision=s", format!("m,host=h v=8 {}\n", NOON + 1))
}

fn check_key(server: &Server) -> Result<()> {
    let value = RedisClient::of(server)?.must("GET key")?;
    ensure!(value.text() == "value", "{value:?}");
    Ok(())
}

fn check_table(server: &Server) -> Result<()> {
    play(&Psql::of(server)?, &[("SELECT name FROM t", "one")])
}

fn verify(directory: &Path, arguments: &[&str]) -> Result<(Option<i32>, String)> {
    let path = directory.display().to_string();
    let all = [&["verify", "--data-dir", &path], arguments].concat();
    let output = e2e::launch::quipu(&all)?.output()?;
    Ok((output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()))
}

fn check_ready(server: &Server, words: &str) -> Result<()> {
    let ready = server.get("/-/ready")?;
    ensure!(ready.status == 200 && ready.text().contains(words), "{}", ready.excerpt());
    Ok(())
}

/// Every Redis command gets an error that names the file; all else is served; a repair opens it again.
fn keys_are_closed(damage: &dyn Fn(&Path) -> Result<PathBuf>) -> Result<()> {
    let directory = filled()?;
    let path = damage(directory.path())?;
    let name = path.strip_prefix(directory.path())?.display().to_string();
    let (code, said) = verify(directory.path(), &[])?;
    ensure!(code == Some(1) && said.contains(&name), "{code:?}: {said}");
    let server = with_redis(directory.path()).start()?;
    check_samples(&server)?;
    check_table(&server)?;
    let mut client = RedisClient::of(&server)?;
    for line in ["PING", "GET key", "SET key other"] {
        let reply = client.say(line)?;
        ensure!(reply.text().starts_with("-ERR keys do not open and are closed"), "{reply:?}");
        ensure!(reply.text().contains(&name), "{name}: {reply:?}");
    }
    server.wait_for_log("keys do not open and are closed")?;
    check_ready(&server, &name)?;
    let snapshot = server.post("/api/v1/admin/tsdb/snapshot", "")?;
    ensure!(snapshot.status == 500 || snapshot.status == 503, "{}", snapshot.excerpt());
    server.stop()?;
    let (code, said) = verify(directory.path(), &["--repair", "--yes"])?;
    ensure!(code == Some(0), "{code:?}: {said}");
    let server = with_redis(directory.path()).start()?;
    check_samples(&server)?;
    check_table(&server)?;
    RedisClient::of(&server)?.must("SET key again")?;
    server.stop()
}

#[test]
fn damaged_keys_close_redis_alone() -> Result<()> {
    keys_are_closed(&|directory| {
        let path = file(directory, "keys", ".index")?;
        flip(&path, 20)?;
        Ok(path)
    })?;
    // `DATA/MANIFEST` names the file.
    keys_are_closed(&|directory| {
        std::fs::remove_dir_all(directory.join("keys"))?;
        Ok(directory.join("keys/MANIFEST"))
    })?;
    // A start refuses a segment of another size.
    keys_are_closed(&|directory| {
        let path = file(directory, "keys", ".cold")?;
        let bytes = [std::fs::read(&path)?, vec![0]].concat();
        std::fs::write(&path, bytes)?;
        Ok(path)
    })?;
    // The number of the format is not believed without its checksum.
    keys_are_closed(&|directory| {
        let path = file(directory, "keys", ".index")?;
        flip(&path, 4)?;
        Ok(path)
    })?;
    keys_are_closed(&|directory| {
        let path = file(directory, "keys", ".cold")?;
        std::fs::remove_file(&path)?;
        Ok(path)
    })?;
    keys_are_closed(&|directory| {
        flip(&directory.join("keys/MANIFEST.copy"), 9)?;
        let path = directory.join("keys/MANIFEST");
        flip(&path, 4)?;
        Ok(path)
    })
}

#[test]
fn damaged_tables_close_postgres_alone() -> Result<()> {
    let directory = filled()?;
    let path = file(directory.path(), "tables", ".table")?;
    flip(&path, 40)?;
    let name = path.strip_prefix(directory.path())?.display().to_string();
    let (code, said) = verify(directory.path(), &[])?;
    ensure!(code == Some(1) && said.contains(&name), "{code:?}: {said}");
    let server = with_redis(directory.path()).start()?;
    check_samples(&server)?;
    check_key(&server)?;
    let said = Psql::of(&server)?.say(&["SELECT name FROM t"], "")?;
    ensure!(!said.is_ok && said.error.contains("tables do not open and are closed"), "{said:?}");
    ensure!(said.error.contains(&name), "{said:?}");
    check_ready(&server, &name)?;
    server.stop()?;
    let (code, said) = verify(directory.path(), &["--repair", "--yes"])?;
    ensure!(code == Some(0), "{code:?}: {said}");
    let server = with_redis(directory.path()).start()?;
    check_key(&server)?;
    play(&Psql::of(&server)?, &[("CREATE TABLE again (id int)", "CREATE TABLE")])?;
    server.stop()
}

#[test]
fn one_damaged_manifest_costs_nothing() -> Result<()> {
    for part in ["keys", "tables"] {
        for name in ["MANIFEST", "MANIFEST.copy"] {
            let directory = filled()?;
            let path = directory.path().join(part).join(name);
            flip(&path, 4)?;
            let (code, said) = verify(directory.path(), &[])?;
            ensure!(code == Some(1) && said.contains(name), "{code:?}: {said}");
            let server = with_redis(directory.path()).start()?;
            server.wait_for_log(name)?;
            check_samples(&server)?;
            check_key(&server)?;
            check_table(&server)?;
            server.stop()?;
            let (code, said) = verify(directory.path(), &[])?;
            ensure!(code == Some(0), "{code:?}: {said}");
        }
    }
    Ok(())
}

#[test]
fn a_damaged_piece_of_a_large_value_costs_that_value() -> Result<()> {
    const SIZE: usize = 40 << 20;
    let directory = tempfile::tempdir()?;
    let server = with_redis(directory.path()).start()?;
    let mut client = RedisClient::of(&server)?;
    client.must("SET before 1")?;
    let big = vec![b'x'; SIZE];
    let reply = client.call(&[b"SET", b"big", &big])?;
    ensure!(reply.text() == "OK", "{}", reply.text());
    client.must("SET after 1")?;
    server.kill()?;
    let mut logs = std::fs::read_dir(directory.path().join("wal"))?;
    let log = logs.find_map(|entry| {
        let path = entry.ok()?.path();
        (SIZE as u64 <= path.metadata().ok()?.len()).then_some(path)
    });
    flip(&log.context("a segment with the value")?, 24 << 20)?;
    let (code, said) = verify(directory.path(), &["--repair", "--yes"])?;
    ensure!(code == Some(0) && said.contains("record 2 of keys"), "{code:?}: {said}");
    let server = with_redis(directory.path()).start()?;
    let mut client = RedisClient::of(&server)?;
    for (key, expected) in [("before", 1), ("big", 0), ("after", 1)] {
        let exists = client.must(&format!("EXISTS {key}"))?.int();
        ensure!(exists == expected, "{key}: {exists}");
    }
    server.wait_for_log("record 2 of keys")?;
    server.stop()
}

#[test]
fn keys_and_tables_refuse_writes_while_the_disk_is_nearly_full() -> Result<()> {
    let directory = filled()?;
    let server = with_redis(directory.path()).flag("free-disk-min", "4096TiB").start()?;
    let mut client = RedisClient::of(&server)?;
    for line in ["SET key other", "DEL key", "EVAL return(redis.call('SET','key','other')) 0"] {
        let reply = client.say(line)?;
        let words = reply.text();
        ensure!(words.contains("MISCONF") && words.contains("free-disk-min"), "{line}: {words}");
    }
    check_key(&server)?;
    let psql = Psql::of(&server)?;
    let words = "free-disk-min";
    e2e::postgres::refuse(&psql, &[("INSERT INTO t VALUES (2, 'two')", "53100", words)])?;
    check_table(&server)?;
    let write = server.post("/write?precision=s", format!("m,host=h v=8 {NOON}\n"))?;
    ensure!(write.status == 503, "{}", write.excerpt());
    let ready = server.get("/-/ready")?;
    ensure!(ready.status == 503 && ready.text().contains(words), "{}", ready.excerpt());
    server.stop()?;
    let server = with_redis(directory.path()).start()?;
    check_samples(&server)?;
    check_key(&server)?;
    check_ready(&server, "ready")?;
    RedisClient::of(&server)?.must("SET key other")?;
    play(&Psql::of(&server)?, &[("INSERT INTO t VALUES (2, 'two')", "INSERT 0 1")])?;
    server.stop()
}

#[test]
fn another_number_of_databases_neither_mixes_nor_loses() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = |databases: &str| with_redis(directory.path()).flag("kv-databases", databases);
    let indexed = |client: &mut RedisClient| -> Result<usize> {
        Ok(client.must("TS.QUERYINDEX job=a")?.list().len())
    };
    let server = launch("16").start()?;
    let mut client = RedisClient::of(&server)?;
    for key in ["one", "two"] {
        client.must(&format!("TS.CREATE {key} LABELS job a"))?;
    }
    server.stop()?;
    let server = launch("32").start()?;
    let mut client = RedisClient::of(&server)?;
    ensure!(indexed(&mut client)? == 2);
    client.must("TS.CREATE three LABELS job a")?;
    for db in [16, 17, 20] {
        client.must(&format!("SELECT {db}"))?;
        ensure!(client.must("DBSIZE")?.int() == 0, "database {db}");
        client.must(&format!("SET in {db}"))?;
    }
    server.kill()?;
    let refusal = launch("16").refusal()?;
    ensure!(refusal.contains("--kv-databases=21"), "{refusal}");
    let server = launch("24").start()?;
    let mut client = RedisClient::of(&server)?;
    ensure!(indexed(&mut client)? == 3);
    for db in [16, 17, 20] {
        client.must(&format!("SELECT {db}"))?;
        ensure!(client.must("GET in")?.text() == db.to_string(), "database {db}");
        client.must("DEL in")?;
    }
    server.stop()?;
    let server = launch("16").start()?;
    let mut client = RedisClient::of(&server)?;
    ensure!(indexed(&mut client)? == 3);
    server.stop()
}

#[test]
fn snapshots_have_keys_while_no_listener_serves_them() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = with_redis(directory.path()).flag("kv-databases", "20").start()?;
    let mut client = RedisClient::of(&server)?;
    for key in 0..100 {
        client.must(&format!("SET key:{key} value"))?;
    }
    client.must("SELECT 19")?;
    client.must("SET last value PX 1")?;
    client.must("SET stays value")?;
    // Some of it is in the log alone.
    server.kill()?;
    let server = Launch::new(directory.path()).start()?;
    let answer = server.post("/api/v1/admin/tsdb/snapshot", "")?;
    ensure!(answer.status == 200, "{}", answer.excerpt());
    let name = answer.json()?["data"]["name"].as_str().context("a name")?.to_owned();
    server.stop()?;
    let copy = directory.path().join("snapshots").join(name);
    for data in [copy.as_path(), directory.path()] {
        let server = with_redis(data).flag("kv-databases", "20").start()?;
        let mut client = RedisClient::of(&server)?;
        ensure!(client.must("DBSIZE")?.int() == 100, "{}", data.display());
        client.must("SELECT 19")?;
        ensure!(client.must("EXISTS stays")?.int() == 1, "{}", data.display());
        server.stop()?;
    }
    Ok(())
}
