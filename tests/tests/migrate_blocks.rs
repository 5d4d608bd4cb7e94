//! `quipu migrate prometheus-blocks` from buckets and directories of Thanos' kind: what is there twice comes
//! once, what is not whole is named, requests that fail are sent again, and a copy that was killed goes on.
//! moto's server is the S3; a build without the feature `s3` is left alone.

use crate::backup_s3::deny;
use anyhow::{Context, Result, bail, ensure};
use e2e::launch::quipu;
use e2e::migration::{Said, lines as all_lines, migrate, must};
use e2e::s3::{ENVIRONMENT, S3, SECRET};
use e2e::{Launch, Server, poll};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::spawn;
use std::time::Duration;

/// 2026-08-30 00:00:00 UTC in seconds.
const START: i64 = 1_788_048_000;
const HOUR: i64 = 3600;
const PLACE: &str = "s3://bucket/of/thanos";
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether the binary knows buckets.
fn is_built() -> Result<bool> {
    let help = quipu(&["migrate", "--help"])?.output()?;
    let is_built = String::from_utf8_lossy(&help.stdout).contains("--endpoint");
    if !is_built {
        println!("left out: this binary is without the feature s3");
    }
    Ok(is_built)
}

/// A server with numbers that no codec makes small: so many hosts, a sample in 15 seconds, for some hours.
fn truth(directory: &Path, hosts: i64, hours: Range<i64>) -> Result<Server> {
    let server = Launch::new(&directory.join("truth")).start()?;
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for hour in hours {
        let mut text = String::new();
        for row in 0..HOUR / 15 {
            for host in 0..hosts {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let value = (state >> 11) as f64 / 1e7;
                text += &format!("cpu,host=h{host} v={value} {}\n", START + hour * HOUR + row * 15);
            }
        }
        server.write("/write?precision=s", text)?;
    }
    Ok(server)
}

/// The blocks of a server, by name, in the order of their times.
fn blocks_of(server: &Server, directory: &Path, duration: &str) -> Result<Vec<PathBuf>> {
    let mut command = quipu(&["export", "--format", "prometheus-blocks", "--url", server.url()])?;
    let output = command
        .args(["--match", "cpu_v", "--block-duration", duration, "--output"])
        .arg(directory)
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.join("meta.json").exists() {
            found.push((meta_of(&path)?["minTime"].as_i64(), path));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

fn meta_of(block: &Path) -> Result<Value> {
    Ok(serde_json::from_slice(&std::fs::read(block.join("meta.json"))?)?)
}

fn name_of(block: &Path) -> String {
    block.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Changes what a block says of itself.
fn change(block: &Path, change: impl FnOnce(&mut Value)) -> Result<()> {
    let mut meta = meta_of(block)?;
    change(&mut meta);
    Ok(std::fs::write(block.join("meta.json"), meta.to_string())?)
}

/// What Thanos adds when it puts a block into a bucket.
fn label(block: &Path, labels: &Value) -> Result<()> {
    let files = files_of(block, "")?;
    let files: Vec<Value> = files
        .iter()
        .map(|(name, size)| json!({"rel_path": name, "size_bytes": size}))
        .chain([json!({"rel_path": "meta.json"})])
        .collect();
    let thanos = json!({"labels": labels, "downsample": {"resolution": 0}, "source": "sidecar", "files": files});
    change(block, |meta| meta["thanos"] = thanos)
}

fn files_of(folder: &Path, beginning: &str) -> Result<BTreeMap<String, u64>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = format!("{beginning}{}", name_of(&path));
        if path.is_dir() {
            found.extend(files_of(&path, &format!("{name}/"))?);
        } else if name != "meta.json" {
            found.insert(name, path.metadata()?.len());
        }
    }
    Ok(found)
}

/// A copy of a block under another name.
fn copy_of(block: &Path, name: &str) -> Result<PathBuf> {
    let to = block.with_file_name(name);
    std::fs::create_dir_all(to.join("chunks"))?;
    for file in files_of(block, "")?.keys().map(String::as_str).chain(["meta.json"]) {
        std::fs::copy(block.join(file), to.join(file))?;
    }
    change(&to, |meta| meta["ulid"] = json!(name))?;
    Ok(to)
}

fn command(server: &Server, s3: &S3, arguments: &[&str]) -> Result<Command> {
    let mut command = quipu(&["migrate"])?;
    command.args(arguments).args(["--url", server.url(), "--endpoint", &s3.endpoint]);
    command.current_dir(s3.root());
    Ok(command)
}

fn from_bucket(server: &Server, s3: &S3, arguments: &[&str]) -> Result<Said> {
    let mut command = command(server, s3, arguments)?;
    let output = command.envs(ENVIRONMENT).output()?;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(!text.contains(SECRET), "a secret is said");
    Ok(Said { code: output.status.code().context("a signal")?, text })
}

fn must_copy(server: &Server, s3: &S3, arguments: &[&str]) -> Result<String> {
    let said = from_bucket(server, s3, arguments)?;
    ensure!(said.code == 0, "{arguments:?}: {}", said.text);
    Ok(said.text)
}

/// All that a server has, but for what it says of itself.
fn lines(server: &Server) -> Result<Vec<String>> {
    let mut all = all_lines(server)?;
    all.retain(|line| !line.contains("\"job\":\"quipu\""));
    Ok(all)
}

/// All that a server has, with a label that it was given.
fn labelled(server: &Server, label: &str) -> Result<Vec<String>> {
    let all = lines(server)?.into_iter();
    let mut all: Vec<String> = all
        .map(|line| {
            line.replacen("\"__name__\":\"cpu_v\",", &format!("\"__name__\":\"cpu_v\",{label},"), 1)
        })
        .collect();
    all.sort();
    Ok(all)
}

#[test]
fn a_bucket_of_thanos_is_copied_once() -> Result<()> {
    if !is_built()? {
        return Ok(());
    }
    let s3 = S3::start()?;
    let old = truth(s3.root(), 3, 0..18)?;
    let blocks = blocks_of(&old, &s3.root().join("blocks"), "6h")?;
    ensure!(blocks.len() == 3, "{blocks:?}");
    let (first, second, third) = (&blocks[0], &blocks[1], &blocks[2]);
    let eu = json!({"cluster": "eu"});
    for block in &blocks {
        label(block, &eu)?;
    }
    // The first was joined of two; one of them is still there, and says another number of series, so that
    // whoever reads it fails.
    let older = copy_of(first, "01ARZ3NDEKTSV4RRFFQ69G5FAV")?;
    let lies = |meta: &mut Value| {
        meta["stats"]["numSeries"] = json!(99);
        meta["compaction"] = json!({"level": 1, "sources": ["01ARZ3NDEKTSV4RRFFQ69G5FAV"]});
    };
    change(&older, lies)?;
    let both = ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW"];
    change(first, |meta| meta["compaction"] = json!({"level": 2, "sources": both}))?;
    // The second says which one it was made of.
    let parent = copy_of(second, "01ARZ3NDEKTSV4RRFFQ69G5FAX")?;
    change(&parent, |meta| {
        lies(meta);
        meta["compaction"]["sources"] = json!(["01ARZ3NDEKTSV4RRFFQ69G5FAX"]);
    })?;
    let parents = json!([{"ulid": name_of(&parent), "minTime": 0, "maxTime": 0}]);
    change(second, |meta| meta["compaction"]["parents"] = parents)?;
    // One is going away, one is being put, and one may not be joined with others.
    let marked = copy_of(third, "01ARZ3NDEKTSV4RRFFQ69G5FAY")?;
    change(&marked, |meta| meta["stats"]["numSeries"] = json!(99))?;
    std::fs::write(marked.join("deletion-mark.json"), "{\"version\":1,\"deletion_time\":1}")?;
    let unfinished = copy_of(third, "01ARZ3NDEKTSV4RRFFQ69G5FAZ")?;
    std::fs::remove_file(unfinished.join("meta.json"))?;
    std::fs::write(third.join("no-compact-mark.json"), "{\"version\":1,\"reason\":\"manual\"}")?;
    let all = [first, second, third, &older, &parent, &marked, &unfinished];
    for block in all {
        s3.put_all(&format!("of/thanos/{}", name_of(block)), block)?;
    }
    s3.put("of/thanos/debug/metas/x.json", b"{}")?;

    let server = Launch::new(&s3.root().join("quipu")).start()?;
    let told = must_copy(&server, &s3, &["prometheus-blocks", PLACE, "--dry-run"])?;
    ensure!(told.contains("3 windows; nothing was copied") && told.contains("KiB"), "{told}");
    let at = |block: &Path| told.find(&format!("{}: 2026", name_of(block)));
    ensure!(at(third) < at(second) && at(second) < at(first), "the newest first: {told}");
    for words in [
        format!("left out: 1 blocks that are marked to be deleted: {}", name_of(&marked)),
        format!("{} (in {})", name_of(&older), name_of(first)),
        format!("{} (in {})", name_of(&parent), name_of(second)),
        format!("being put there, or that broke off: {}", name_of(&unfinished)),
    ] {
        ensure!(told.contains(&words), "{words}: {told}");
    }
    let said = must_copy(&server, &s3, &["prometheus-blocks", PLACE])?;
    ensure!(said.contains("12960 samples of 3 windows sent; 0 requests"), "{said}");
    let expected = labelled(&old, "\"cluster\":\"eu\"")?;
    ensure!(lines(&server)? == expected, "{:?}", lines(&server)?.first());
    check_elsewhere(&server, &s3, &expected, &name_of(second))?;
    check_refusals(&server, &s3, third)
}

/// That both sides are alike; the same of a directory, and of one block alone.
fn check_elsewhere(server: &Server, s3: &S3, expected: &[String], block: &str) -> Result<()> {
    let said = must_copy(server, s3, &["verify", "prometheus-blocks", PLACE])?;
    ensure!(said.contains("; 0 differ"), "{said}");
    let plain = Launch::new(&s3.root().join("plain")).start()?;
    let place = s3.path("blocks");
    let said = must(&plain, s3.root(), &["prometheus-blocks", &place])?;
    ensure!(said.contains("12960 samples of 3 windows") && said.contains("left out: 1"), "{said}");
    ensure!(lines(&plain)? == expected, "of a directory");
    let alone = Launch::new(&s3.root().join("alone")).start()?;
    let place = format!("{PLACE}/{block}");
    let said = must_copy(&alone, s3, &["prometheus-blocks", &place, "--drop-label", "cluster"])?;
    ensure!(said.contains("4320 samples of 1 window"), "{said}");
    Ok(())
}

/// What is not there, what lies, and who may not come in.
fn check_refusals(server: &Server, s3: &S3, block: &Path) -> Result<()> {
    let refusal = |place: &str| -> Result<String> {
        let said = from_bucket(server, s3, &["prometheus-blocks", place])?;
        ensure!(said.code == 1, "{}", said.text);
        Ok(said.text)
    };
    for (place, words) in [
        ("s3://nobody/x", "there is no bucket nobody: make it, or say another"),
        ("s3://bucket/of", "no blocks, which are folders called as"),
        ("s3://bucket/of", "there are thanos: name one of them as prefix"),
        ("s3://bucket", "there are of: name one of them as prefix"),
        ("s3://bucket/nothing", "s3://bucket/nothing: no blocks"),
        ("s3:bucket", "a bucket is s3://BUCKET/PREFIX"),
        ("gs://bucket/x", "gs:// is not known"),
    ] {
        let said = refusal(place)?;
        ensure!(said.contains(words), "{place}: {said}");
    }
    let mut without = command(server, s3, &["prometheus-blocks", PLACE])?;
    without.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    let said = String::from_utf8_lossy(&without.output()?.stderr).into_owned();
    ensure!(said.contains("no credentials: say --credentials-file"), "{said}");
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    spawn(move || deny(listener));
    let mut denied = quipu(&["migrate", "prometheus-blocks", PLACE, "--url", server.url()])?;
    let denied = denied.args(["--endpoint", &endpoint]).envs(ENVIRONMENT).output()?;
    let said = String::from_utf8_lossy(&denied.stderr).into_owned();
    ensure!(said.contains("denied: these credentials need s3:ListBucket"), "{said}");
    ensure!(!said.contains("s3:PutObject"), "nothing is put: {said}");

    // An index that is not what its block says, and one that is cut short.
    let key = format!("lies/{}", name_of(block));
    s3.put_all(&key, block)?;
    let index = std::fs::read(block.join("index"))?;
    let mut rotten = index.clone();
    rotten[20] ^= 0x20;
    for (bytes, words) in
        [(&index[..index.len() - 100], "bytes, its meta.json says"), (&rotten[..], "checksum")]
    {
        s3.put(&format!("{key}/index"), bytes)?;
        let said = refusal("s3://bucket/lies")?;
        ensure!(said.contains(words) && said.contains("not done: 1 window"), "{said}");
    }
    s3.send("DELETE", &format!("/bucket/{key}/index"), b"")?;
    let said = refusal("s3://bucket/lies")?;
    ensure!(said.contains("it has a meta.json and no index"), "{said}");
    s3.put(&format!("{key}/index"), &index)?;
    s3.send("DELETE", &format!("/bucket/{key}/chunks/000001"), b"")?;
    let said = refusal("s3://bucket/lies")?;
    ensure!(said.contains("chunks/000001 is not there, which its meta.json names"), "{said}");
    // Put again, the same command copies it.
    s3.put_all(&key, block)?;
    must_copy(server, s3, &["prometheus-blocks", "s3://bucket/lies"])?;
    Ok(())
}

/// What stands between a client and the store: of so many connections the answer breaks off after some
/// bytes. Counts the connections.
fn between(port: u16, broken_every: usize) -> Result<(String, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    let count = Arc::new(AtomicUsize::new(0));
    let shared = count.clone();
    spawn(move || {
        for stream in listener.incoming().flatten() {
            let number = shared.fetch_add(1, Ordering::SeqCst) + 1;
            let limit = if number.is_multiple_of(broken_every) { 20_000 } else { usize::MAX };
            spawn(move || pass(stream, port, limit));
        }
    });
    Ok((endpoint, count))
}

fn pass(client: TcpStream, port: u16, limit: usize) -> Result<()> {
    let store = TcpStream::connect(("127.0.0.1", port))?;
    let (mut asked, mut asking) = (client.try_clone()?, store.try_clone()?);
    spawn(move || {
        let _ = std::io::copy(&mut asked, &mut asking);
    });
    let (mut store, mut client) = (store, client);
    let (mut sent, mut buffer) = (0, [0; 8192]);
    loop {
        let size = store.read(&mut buffer)?;
        if size == 0 || limit < sent + size {
            client.shutdown(std::net::Shutdown::Both)?;
            return Ok(store.shutdown(std::net::Shutdown::Both)?);
        }
        client.write_all(&buffer[..size])?;
        sent += size;
    }
}

#[test]
fn a_copy_that_is_killed_goes_on_within_its_block() -> Result<()> {
    if !is_built()? {
        return Ok(());
    }
    let mut s3 = S3::start()?;
    // Some megabytes in one file of chunks: a block of 162 hours begins at noon.
    let old = truth(s3.root(), 100, 12..42)?;
    let blocks = blocks_of(&old, &s3.root().join("blocks"), "162h")?;
    ensure!(blocks.len() == 1, "{blocks:?}");
    s3.put_all(&format!("of/thanos/{}", name_of(&blocks[0])), &blocks[0])?;
    let (endpoint, connections) = between(s3.port(), 3)?;
    s3.endpoint = endpoint;

    let server = Launch::new(&s3.root().join("quipu")).start()?;
    let arguments = ["prometheus-blocks", PLACE, "--progress", "p"];
    let mut command = command(&server, &s3, &[&arguments[..], &["--rate", "300000"]].concat())?;
    let child = command.envs(ENVIRONMENT).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child.spawn()?;
    let progress = s3.root().join("p.progress");
    let stored = poll("progress", PATIENCE, || {
        let progress: Value = serde_json::from_slice(&std::fs::read(&progress)?)?;
        let count = progress["part"]["mark"]["count"].as_u64().context("no mark yet")?;
        ensure!(10 <= count, "{count} series");
        ensure!(child.try_wait()?.is_none(), "it has ended");
        Ok(count)
    });
    child.kill()?;
    child.wait()?;
    let stored = stored?;
    let said = must_copy(&server, &s3, &arguments)?;
    let (_, rest) =
        said.split_once("going on: 0 of 1 windows are done, and ").context("no going on")?;
    let count: u64 = rest.split(' ').next().unwrap_or_default().parse()?;
    ensure!(stored <= count && count < 100, "{count} after {stored}: {said}");
    let sent: u64 = said
        .lines()
        .find_map(|line| {
            line.strip_suffix(" of 1 window sent; 0 requests had some that were refused")
        })
        .and_then(|line| line.strip_suffix(" samples"))
        .context("no summary")?
        .parse()?;
    ensure!(sent == (100 - count) * 7200, "{sent} of {count}: {said}");
    ensure!(3 < connections.load(Ordering::SeqCst), "nothing broke off");
    ensure!(lines(&server)? == lines(&old)?, "all of it, once");
    let said = must_copy(&server, &s3, &["verify", "prometheus-blocks", PLACE])?;
    ensure!(said.contains("720000 samples compared; 0 differ"), "{said}");
    check_away(&server, &mut s3)
}

/// A store that is gone ends the command, whatever else is to be copied.
fn check_away(server: &Server, s3: &mut S3) -> Result<()> {
    let nobody = TcpListener::bind("127.0.0.1:0")?;
    let address = nobody.local_addr()?;
    drop(nobody);
    s3.endpoint = format!("http://{address}");
    let said = from_bucket(server, s3, &["prometheus-blocks", PLACE])?;
    if said.code == 0 || !said.text.contains("s3://bucket/of/thanos/") {
        bail!("{}", said.text);
    }
    Ok(())
}

#[test]
fn what_a_rotten_block_was_made_of_is_read_instead() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let old = truth(directory.path(), 3, 0..12)?;
    let place = directory.path().join("blocks");
    let parts = blocks_of(&old, &place, "6h")?;
    ensure!(parts.len() == 2, "{parts:?}");
    let whole = blocks_of(&old, &directory.path().join("whole"), "12h")?;
    ensure!(whole.len() == 1, "{whole:?}");
    let joined = place.join("01ARZ3NDEKTSV4RRFFQ69G5FAV");
    std::fs::rename(&whole[0], &joined)?;
    let sources: Vec<String> = parts.iter().map(|one| name_of(one)).collect();
    change(&joined, |meta| meta["compaction"] = json!({"level": 2, "sources": sources}))?;
    // In the last third of the chunks: what stands before it is handed on.
    let chunks = joined.join("chunks/000001");
    let mut rotten = std::fs::read(&chunks)?;
    let at = rotten.len() * 2 / 3;
    rotten[at] ^= 0x20;
    std::fs::write(&chunks, rotten)?;

    let shown = place.display().to_string();
    let server = Launch::new(&directory.path().join("quipu")).start()?;
    let said = must(&server, directory.path(), &["prometheus-blocks", &shown])?;
    ensure!(said.contains("1 blocks that cannot be read, whose samples came from"), "{said}");
    ensure!(said.contains("chunks/000001") && said.contains(&sources[0]), "{said}");
    ensure!(lines(&server)? == lines(&old)?, "all of it");
    let said = must(&server, directory.path(), &["verify", "prometheus-blocks", &shown])?;
    ensure!(said.contains("; 0 differ"), "{said}");
    // With one of them gone it is not whole.
    std::fs::remove_dir_all(&parts[0])?;
    let half = Launch::new(&directory.path().join("half")).start()?;
    let said = migrate(&half, directory.path(), &["prometheus-blocks", &shown])?;
    ensure!(said.code == 1 && said.text.contains("others are gone"), "{}", said.text);
    ensure!(said.text.contains("not done: 1 window: 01ARZ3NDEKTSV4RRFFQ69G5FAV"), "{}", said.text);
    ensure!(!lines(&half)?.is_empty(), "what is there came");
    Ok(())
}

#[test]
fn objects_and_prefixes_with_odd_names_stop_nothing() -> Result<()> {
    if !is_built()? {
        return Ok(());
    }
    let s3 = S3::start()?;
    let old = truth(s3.root(), 2, 0..2)?;
    let blocks = blocks_of(&old, &s3.root().join("blocks"), "6h")?;
    let block = &blocks[0];
    // `%` is one of a name's own letters there.
    s3.put_all(&format!("odd~*%2541/{}", name_of(block)), block)?;
    let tilde = Launch::new(&s3.root().join("tilde")).start()?;
    let said = must_copy(&tilde, &s3, &["prometheus-blocks", "s3://bucket/odd~*%41"])?;
    ensure!(said.contains("of 1 window sent"), "{said}");
    ensure!(lines(&tilde)? == lines(&old)?, "of a prefix with signs");

    s3.put_all(&format!("slash/{}", name_of(block)), block)?;
    s3.put("slash/a//b", b"x")?;
    s3.put(&format!("slash/{}/a//b", name_of(block)), b"x")?;
    let slash = Launch::new(&s3.root().join("slash")).start()?;
    let said = must_copy(&slash, &s3, &["prometheus-blocks", "s3://bucket/slash"])?;
    ensure!(said.contains("is left out, and folder after folder is listed"), "{said}");
    ensure!(lines(&slash)? == lines(&old)?, "the block");

    // Where a name keeps a list from being had, that is said.
    let other = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    s3.put_all(&format!("slash/{other}"), block)?;
    s3.put(&format!("slash/{other}//b"), b"x")?;
    let said = from_bucket(&slash, &s3, &["prometheus-blocks", "s3://bucket/slash"])?;
    ensure!(said.code == 1 && said.text.contains("remove that object"), "{}", said.text);
    ensure!(said.text.contains(&format!("not done: 1 window: {other}")), "{}", said.text);
    let endpoint = s3.endpoint.replace("//", "//who:hunter2hunter2@");
    let mut command = quipu(&["migrate", "prometheus-blocks", PLACE, "--url", slash.url()])?;
    command.args(["--endpoint", &endpoint]).envs(ENVIRONMENT).current_dir(s3.root());
    let said = String::from_utf8_lossy(&command.output()?.stderr).into_owned();
    ensure!(said.contains("say --credentials-file") && !said.contains("hunter2"), "{said}");
    Ok(())
}

/// Samples of Thanos' own reading of blocks that it has downsampled.
fn expected(resolution: i64) -> Result<BTreeMap<String, Vec<(String, String)>>> {
    let path = fixture().join(format!("expected-{resolution}.json"));
    Ok(serde_json::from_slice(&std::fs::read(path)?)?)
}

/// Two blocks that Thanos made of 36 hours: a sample in five minutes and in an hour.
fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/thanos")
}

/// What a server has of both metrics, as the files of Thanos tell it.
fn check_downsampled(server: &Server, labels: &str, resolution: i64) -> Result<()> {
    for (metric, points) in expected(resolution)? {
        let found = server.export(&format!("{metric}{{{labels}}}"))?;
        let found: Vec<(String, String)> = found.0.into_values().flatten().collect();
        let numbers = |all: &[(String, String)]| -> Result<Vec<(i64, u64)>> {
            let one =
                |(at, value): &(String, String)| Ok((at.parse()?, value.parse::<f64>()?.to_bits()));
            all.iter().map(one).collect()
        };
        ensure!(!points.is_empty() && numbers(&found)? == numbers(&points)?, "{metric}");
    }
    Ok(())
}

#[test]
fn downsampled_blocks_stand_in_for_what_is_gone() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let place = directory.join("blocks");
    std::fs::create_dir(&place)?;
    let mut blocks = BTreeMap::new();
    for entry in std::fs::read_dir(fixture())? {
        let path = entry?.path();
        if !path.is_dir() {
            continue;
        }
        let resolution = meta_of(&path)?.pointer("/thanos/downsample/resolution").cloned();
        let to = place.join(name_of(&path));
        std::fs::create_dir_all(to.join("chunks"))?;
        for file in ["meta.json", "index", "chunks/000001"] {
            std::fs::copy(path.join(file), to.join(file))?;
        }
        blocks.insert(resolution.and_then(|one| one.as_i64()).context("no resolution")?, to);
    }
    ensure!(blocks.keys().eq(&[300_000, 3_600_000]), "{blocks:?}");
    let shown = place.display().to_string();
    let copy = ["prometheus-blocks", &shown];

    // The finer one has all of the coarser one's time.
    let fine = Launch::new(&directory.join("fine")).start()?;
    let said = must(&fine, directory, &copy)?;
    let words = format!("{} (a sample in 3600000 ms)", name_of(&blocks[&3_600_000]));
    ensure!(said.contains(&words) && said.contains("of 1 window sent"), "{said}");
    ensure!(said.contains("chunks of native histograms that were downsampled"), "{said}");
    check_downsampled(&fine, "cluster=\"eu\",replica=\"r1\"", 300_000)?;
    let said = must(&fine, directory, &[&["verify"], &copy[..]].concat())?;
    ensure!(said.contains("; 0 differ"), "{said}");

    // Where the finer one has only a part, the coarser one has the rest.
    let middle = expected(3_600_000)?["temperature"][20].0.parse::<i64>()? + 1;
    change(&blocks[&300_000], |meta| meta["minTime"] = json!(middle))?;
    let both = Launch::new(&directory.join("both")).start()?;
    let said = must(&both, directory, &copy)?;
    ensure!(said.contains("of 2 windows sent"), "{said}");
    let before = both.export("temperature")?.0.into_values().flatten().collect::<Vec<_>>();
    let is_coarse = |at: &str| at.parse::<i64>().is_ok_and(|at| at < middle);
    ensure!(before.iter().filter(|(at, _)| is_coarse(at)).count() >= 21, "the coarse ones");

    // Alone it is all that there is.
    std::fs::remove_dir_all(&blocks[&300_000])?;
    let coarse = Launch::new(&directory.join("coarse")).start()?;
    let said = migrate(&coarse, directory, &copy)?;
    ensure!(said.code == 0 && said.text.contains("of 1 window sent"), "{}", said.text);
    check_downsampled(&coarse, "cluster=\"eu\"", 3_600_000)?;
    // Beside blocks with all samples of its time nothing of it comes.
    let mut raw = meta_of(&blocks[&3_600_000])?;
    raw["thanos"]["downsample"] = json!({"resolution": 0});
    raw["stats"]["numSeries"] = json!(0);
    let fake = place.join("01ARZ3NDEKTSV4RRFFQ69G5FAV");
    std::fs::create_dir(&fake)?;
    std::fs::copy(blocks[&3_600_000].join("index"), fake.join("index"))?;
    std::fs::write(fake.join("meta.json"), raw.to_string())?;
    let said = migrate(&coarse, directory, &[&copy[..], &["--dry-run"]].concat())?;
    ensure!(said.text.contains("1 blocks that were downsampled"), "{}", said.text);
    Ok(())
}
