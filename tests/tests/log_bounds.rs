//! The log stays bounded, whichever of its consumers has unsaved records in it.

use anyhow::{Result, ensure};
use e2e::{Launch, RedisClient};
use std::time::Duration;

const ROUNDS: u64 = 16;
const HOSTS: u64 = 20_000;
/// `--wal-size`, the least that it may be.
const LOG_SIZE: f64 = 1048576.0;

fn lines(round: u64) -> String {
    let millis = 1_700_000_000_000 + round * 1000;
    let line =
        |host: u64| format!("load,host=h{host} v={} {millis}\n", (host * round) as f64 / 7.0);
    (0..HOSTS).map(line).collect()
}

#[test]
fn one_key_does_not_hold_the_log_back() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch =
        Launch::new(directory.path()).flag("wal-size", "1MiB").flag("redis-listen", "127.0.0.1:0");
    let server = launch.start()?;
    RedisClient::of(&server)?.must("SET one value")?;
    let mut written = 0.0;
    for round in 0..ROUNDS {
        server.write("/write?precision=ms", lines(round))?;
        server.post("/internal/force_flush", "")?;
        written = server.metric("quipu_store_samples_appended_total")? * 10.0;
    }
    ensure!(3.0 * LOG_SIZE < written, "more than the bound was logged: {written}");
    e2e::poll("a short log", Duration::from_secs(20), || {
        server.post("/internal/force_flush", "")?;
        let size = server.metric("quipu_store_wal_size_bytes")?;
        ensure!(size < LOG_SIZE, "{size} bytes of log");
        Ok(())
    })?;
    server.kill()?;
    let server = launch.start()?;
    let value = RedisClient::of(&server)?.must("GET one")?;
    ensure!(value.text() == "value", "{value:?}");
    server.stop()
}
