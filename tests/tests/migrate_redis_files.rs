//! `quipu migrate redistimeseries-files`: dump files of a Redis with time series. The one that is read was
//! written by RedisTimeSeries itself (its eleventh encoding, August 2026) in a Redis 7.0.15, which also said what
//! is in it.

use anyhow::{Context, Result, ensure};
use e2e::migration::{lines, migrate, must};
use e2e::redis::door_port;
use e2e::{Launch, RedisClient, Server};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What stands where a dump was cut.
const HEAD_SIZE: usize = 9;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/redistimeseries").join(name)
}

/// Compares what a server has with what Redis said, key by key.
fn check(server: &Server) -> Result<usize> {
    let truth: Value = serde_json::from_slice(&std::fs::read(data("dump.json"))?)?;
    let mut count = 0;
    for (key, samples) in truth.as_object().context("an object")? {
        let found = server.export(&format!("{{__name__=\"{key}\"}}"))?;
        let number = |text: &str| match text.to_lowercase().contains("nan") {
            true => Ok(f64::NAN.to_bits()),
            false => text.parse::<f64>().map(f64::to_bits),
        };
        let mut here = Vec::new();
        for (at, value) in found.0.values().flatten() {
            here.push((at.parse::<i64>()?, number(value)?));
        }
        let mut there = Vec::new();
        for pair in samples.as_array().context("samples")? {
            let value = number(pair[1].as_str().context("a value")?)?;
            there.push((pair[0].as_i64().context("a time")?, value));
        }
        ensure!(here == there, "{key}: {} there, {} here", there.len(), here.len());
        count += here.len();
    }
    Ok(count)
}

#[test]
fn a_dump_of_a_redis_with_time_series_is_copied() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let file = data("dump.rdb").canonicalize()?.display().to_string();
    let server =
        Launch::new(&directory.join("quipu")).flag("redis-listen", "127.0.0.1:0").start()?;
    let keys_url = format!("redis://127.0.0.1:{}", door_port(&server)?);
    let told = must(&server, directory, &["redistimeseries-files", &file, "--dry-run"])?;
    ensure!(told.contains("2.6k samples") && told.contains("nothing was copied"), "{told}");
    ensure!(lines(&server)?.is_empty(), "a dry run");
    let said =
        must(&server, directory, &["redistimeseries-files", &file, "--keys-url", &keys_url])?;
    for words in [
        "2647 samples of 1 window sent",
        "the compaction rules of room:1",
        "8 keys of other types",
        "1 keys of databases other than 0",
        "1 keys that have expired",
    ] {
        ensure!(said.contains(words), "{words}: {said}");
    }
    ensure!(check(&server)? == 2647, "all of it");
    let mut redis = RedisClient::of(&server)?;
    let kept = redis.must("TS.INFO kept")?;
    ensure!(format!("{kept:?}").contains("3600000"), "{kept:?}");
    let info = format!("{:?}", redis.must("TS.INFO room:1")?);
    ensure!(info.contains("last") && info.contains("Cusco"), "{info}");
    redis.must("TS.INFO empty")?;
    let said = must(&server, directory, &["verify", "redistimeseries-files", &file])?;
    ensure!(said.contains("with 2647 samples compared; 0 differ"), "{said}");
    redis.must("TS.DEL room:2 - +")?;
    let said = migrate(&server, directory, &["verify", "redistimeseries-files", &file])?;
    ensure!(said.code == 1 && said.text.contains("room:2"), "{}", said.text);

    let other = Launch::new(&directory.join("other")).start()?;
    let some = ["redistimeseries-files", &file, "--database", "1", "--set-label", "from=redis"];
    must(&other, directory, &some)?;
    let found = lines(&other)?;
    ensure!(found.len() == 1 && found[0].contains("\"from\":\"redis\""), "{found:?}");
    let some =
        ["redistimeseries-files", &file, "--match", "{city=\"Cusco\"}", "--end", "2026-08-31"];
    must(&other, directory, &some)?;
    ensure!(lines(&other)?.len() == 2, "{:?}", lines(&other)?);
    other.stop()?;
    server.stop()
}

#[test]
fn a_damaged_dump_is_told_of() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let whole = std::fs::read(data("dump.rdb"))?;
    let server = Launch::new(&directory.join("quipu")).start()?;
    let try_it = |name: &str, bytes: &[u8]| {
        std::fs::write(directory.join(name), bytes)?;
        let said = migrate(&server, directory, &["redistimeseries-files", name])?;
        ensure!(said.code == 1, "{name}: {}", said.text);
        anyhow::Ok(said.text)
    };
    // A bit of a label: the frame is good, the checksum is not.
    let at = whole.windows(5).position(|text| text == b"Quito").context("a label")?;
    let mut rotten = whole.clone();
    rotten[at] ^= 1;
    let said = try_it("rotten.rdb", &rotten)?;
    ensure!(
        said.contains("the checksum does not hold") && said.contains("nothing of this file"),
        "{said}"
    );
    ensure!(lines(&server)?.is_empty(), "nothing of it");
    // The same without a checksum: one key more is another one, and nobody can tell.
    let cut = &whole[..whole.len() * 2 / 3];
    let said = try_it("cut.rdb", cut)?;
    ensure!(said.contains("cut short") && said.contains("corrupt at byte "), "{said}");
    let count = lines(&server)?.len();
    ensure!(0 < count, "what stands before is copied");
    // A chunk of another content, in a file without a checksum.
    let mut plain = whole.clone();
    let end = plain.len();
    plain[end - 8..].fill(0);
    let chunk = plain.windows(6).position(|text| text == b"room:1").context("a key")?;
    let at = chunk + 1200;
    plain[at] ^= 0x10;
    let said = try_it("chunk.rdb", &plain)?;
    ensure!(
        said.contains("corrupt at byte ") || said.contains("keys cannot be read: key "),
        "{said}"
    );
    let said = try_it("none.rdb", &whole[HEAD_SIZE..])?;
    ensure!(said.contains("no dump of Redis"), "{said}");
    server.stop()
}
