//! `quipu migrate redistimeseries`: the keys of a server with `TS.*` become series, and keys where that is
//! wanted. The source is a second Quipu: Debian has no RedisTimeSeries.

use anyhow::{Result, ensure};
use e2e::migration::{lines, migrate, must};
use e2e::redis::door_port;
use e2e::{Launch, RedisClient, Server};
use std::path::Path;

/// 2026-08-30 00:00:00 UTC in milliseconds.
const START: i64 = 1_788_048_000_000;

fn launch(directory: &Path) -> Result<Server> {
    Launch::new(directory).flag("redis-listen", "127.0.0.1:0").start()
}

fn fill(redis: &mut RedisClient) -> Result<()> {
    redis.must("SET plain text")?;
    redis.must("TS.CREATE room:1 RETENTION 0 DUPLICATE_POLICY LAST LABELS city Cusco floor 2")?;
    redis.must("TS.CREATE empty LABELS city Lima")?;
    redis.must("TS.CREATE hourly")?;
    redis.must("TS.CREATERULE room:1 hourly AGGREGATION avg 3600000")?;
    for key in ["room:1", "room:2"] {
        for at in 0..120i64 {
            redis.must(&format!("TS.ADD {key} {} {}", START + at * 60_000, at as f64 / 7.0))?;
        }
    }
    Ok(())
}

#[test]
fn keys_become_series_and_keys() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let old = launch(&directory.join("old"))?;
    let mut there = RedisClient::of(&old)?;
    fill(&mut there)?;
    let url = format!("redis://127.0.0.1:{}", door_port(&old)?);
    let new = launch(&directory.join("new"))?;
    let keys_url = format!("redis://127.0.0.1:{}", door_port(&new)?);
    let told = must(&new, directory, &["redistimeseries", &url, "--dry-run"])?;
    ensure!(told.contains("samples") && told.contains("nothing was copied"), "{told}");
    ensure!(lines(&new)?.is_empty(), "a dry run");
    let said = must(&new, directory, &["redistimeseries", &url, "--keys-url", &keys_url])?;
    ensure!(said.contains("241 samples of "), "{said}");
    ensure!(said.contains("the compaction rules of room:1"), "{said}");
    ensure!(lines(&new)? == lines(&old)?, "{:?}\n{:?}", lines(&new)?, lines(&old)?);
    let mut here = RedisClient::of(&new)?;
    for line in
        ["TS.RANGE room:1 - +", "TS.GET room:2", "TS.MGET FILTER city=Cusco", "TS.GET empty"]
    {
        let (ours, theirs) = (here.must(line)?, there.must(line)?);
        ensure!(ours == theirs, "{line}: {ours:?}, {theirs:?}");
    }
    here.must(&format!("TS.ADD room:1 {} 5", START + 121 * 60_000))?;
    let verify = ["verify", "redistimeseries", &url];
    let said = must(&new, directory, &verify)?;
    ensure!(said.contains("with 241 samples compared; 0 differ"), "{said}");
    here.must(&format!("TS.DEL room:2 {START} {START}"))?;
    let said = migrate(&new, directory, &verify)?;
    ensure!(said.code == 1 && said.text.contains("120 samples there, 119 here"), "{}", said.text);

    let other = launch(&directory.join("other"))?;
    let some =
        ["redistimeseries", &url, "--match", "{city=\"Cusco\"}", "--set-label", "from=redis"];
    must(&other, directory, &some)?;
    let found = lines(&other)?;
    ensure!(found.len() == 1 && found[0].contains("\"from\":\"redis\""), "{found:?}");
    let said = migrate(&other, directory, &["redistimeseries", "http://127.0.0.1:1"])?;
    ensure!(said.code == 1 && said.text.contains("must begin with redis://"), "{}", said.text);
    Ok(())
}
