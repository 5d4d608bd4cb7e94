//! Stores that earlier versions left behind, each as a kill found it: they open, answer what their own
//! version answered, take new samples, are merged, and still answer it.
//!
//! The stores are in `golden/`, made by `golden/make.py` of the binary of the commit that each is called
//! after; they are never made anew.

use anyhow::{Context, Result, ensure};
use e2e::launch::quipu;
use e2e::{Export, Launch, Psql, RedisClient, Server, percent, run};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn golden() -> Result<Vec<PathBuf>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".tar.gz") {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}

/// What a version said of its store.
struct Said(Value);

impl Said {
    fn has(&self, what: &str) -> bool {
        self.0["made"].as_array().is_some_and(|made| made.iter().any(|one| one == what))
    }

    /// Its samples, by series.
    fn samples(&self) -> Result<Export> {
        let lines = self.0["export"].as_array().context("export")?;
        let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
        plain(&lines.join("\n"))
    }

    /// Its histograms, line by line.
    fn histograms(&self) -> Vec<String> {
        let lines = self.0["export"].as_array().into_iter().flatten().filter_map(Value::as_str);
        lines.filter(|line| line.contains("\"histograms\"")).map(str::to_string).collect()
    }
}

/// Samples of JSON lines; those with histograms are compared as they stand.
fn plain(text: &str) -> Result<Export> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("\"histograms\"")).collect();
    Export::parse(&lines.join("\n"))
}

fn export(server: &Server) -> Result<String> {
    let selector = percent("{__name__!=\"\",__name__!~\"later.*\"}");
    let answer = server.get(&format!("/api/v1/export?match[]={selector}"))?;
    ensure!(answer.status == 200, "{}", answer.excerpt());
    Ok(String::from_utf8(answer.body)?)
}

fn check_samples(server: &Server, said: &Said) -> Result<()> {
    let text = export(server)?;
    let (found, expected) = (plain(&text)?, said.samples()?);
    for (labels, samples) in &expected.0 {
        ensure!(found.0.get(labels) == Some(samples), "{labels}: {:?}", found.0.get(labels));
    }
    ensure!(found == expected, "series that were not there: {:?}", found.0.keys());
    let histograms: Vec<&str> =
        text.lines().filter(|line| line.contains("\"histograms\"")).collect();
    ensure!(histograms == said.histograms(), "{histograms:?}");
    if let Some(expected) = said.0.get("exemplars") {
        let path = "/api/v1/query_exemplars?query=hits_total&start=1788047999&end=1788048600";
        ensure!(server.get(path)?.data()? == *expected, "exemplars");
    }
    for (query, expected) in said.0["queries"].as_object().context("queries")? {
        let path = format!(
            "/api/v1/query_range?query={}&start=1788048000&end=1788288000&step=7200",
            percent(query)
        );
        let found = server.get(&path)?.data()?;
        ensure!(found["result"] == *expected, "{query}: {}", found["result"]);
    }
    Ok(())
}

/// What there is beside samples.
fn check_others(server: &Server, said: &Said) -> Result<()> {
    if said.has("keys") {
        let mut client = RedisClient::of(server)?;
        ensure!(client.must("GET k:a:37")?.text().ends_with("v37"), "a key on disk");
        ensure!(client.must("GET k:b:7")?.text().ends_with("v7"), "a key in the log");
        ensure!(client.must("HGET h:a f11")?.text() == "11", "a hash");
        ensure!(client.must("LRANGE l:b 0 -1")?.list().len() == 30, "a list");
        ensure!(client.must("ZSCORE z:a m59")?.text() == "59.5", "a sorted set");
        ensure!(client.must("SCARD s:a")?.int() == 60, "a set");
        ensure!(client.must("XLEN x:b")?.int() == 1, "a stream");
        ensure!(client.must("EXISTS gone:a gone:b")?.int() == 0, "deleted keys");
        let size = said.0["keys"].as_str().unwrap_or_default().lines().last().unwrap_or_default();
        ensure!(client.must("DBSIZE")?.int().to_string() == size, "{size} keys");
    }
    if said.has("strings") {
        for (asked, expected) in said.0["influxql"].as_object().context("influxql")? {
            let answer = server.get(&format!("/query?epoch=s&db=shop&q={}", percent(asked)))?;
            let found: Value = serde_json::from_slice(&answer.body)?;
            ensure!(found["results"] == *expected, "{asked}: {found}");
        }
    }
    if said.has("tables") {
        let psql = Psql::of(server)?;
        for (asked, expected) in said.0["sql"].as_object().context("sql")? {
            let expected = expected.as_str().unwrap_or_default().trim_end();
            ensure!(psql.ask(&[asked], "")? == expected, "{asked}");
        }
    }
    Ok(())
}

fn unpack(path: &Path) -> Result<tempfile::TempDir> {
    let directory = tempfile::tempdir()?;
    let scratch = directory.path().to_string_lossy().into_owned();
    let unpacked = run("tar", &["-xzf", &path.to_string_lossy(), "-C", &scratch])?;
    ensure!(unpacked.status.success(), "{unpacked:?}");
    Ok(directory)
}

fn check(path: &Path) -> Result<()> {
    let directory = unpack(path)?;
    let text = std::fs::read_to_string(directory.path().join("expected.json"))?;
    let said = Said(serde_json::from_str(&text)?);
    let store = directory.path().join("store");
    let launch = || {
        let launch = Launch::new(&store).flag("redis-listen", "127.0.0.1:0");
        launch.flag("postgres-listen", "127.0.0.1:0")
    };
    let verify = || -> Result<()> {
        let output = quipu(&["verify", "--data-dir", &store.to_string_lossy()])?.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        Ok(())
    };
    verify()?;

    let server = launch().start()?;
    check_samples(&server, &said)?;
    check_others(&server, &said)?;
    // Of series that were there before, and of one that was not; half of it between old samples.
    let later = "later,host=h0 v=1 1788048000000000000\nlater,host=h0 v=2 1788134400000000000\n";
    server.write("/write", later)?;
    server.write("/write", "cpu,host=h0,région=eu\\ 0 f9=1 1788048000000000000\n")?;
    server.post("/api/v1/admin/tsdb/delete_series?match[]=cpu_f9", "")?;
    ensure!(server.post("/internal/force_merge", "")?.status == 200, "merged");
    check_samples(&server, &said)?;
    server.stop()?;
    verify()?;

    let server = launch().start()?;
    check_samples(&server, &said)?;
    check_others(&server, &said)?;
    ensure!(server.export("later_v")?.len() == 2, "what was written to it");
    server.stop()
}

#[test]
fn stores_of_earlier_versions_are_read_written_and_merged() -> Result<()> {
    let all = golden()?;
    ensure!(11 <= all.len(), "golden stores went: {all:?}");
    for path in all {
        check(&path).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// All files of a directory with what is in them, but of the lock.
fn contents(directory: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let (mut all, mut folders) = (Vec::new(), vec![directory.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("quipu.lock") {
                all.push((path.clone(), std::fs::read(path)?));
            }
        }
    }
    all.sort();
    Ok(all)
}

#[test]
fn a_store_that_needs_a_newer_program_is_left_as_it_is() -> Result<()> {
    let path = golden()?.pop().context("a golden store")?;
    let directory = unpack(&path)?;
    let store = directory.path().join("store");
    // What a later version might write: docs/format/manifest.md.
    std::fs::write(store.join("partition-length"), b"QPPLENG2month wings\x89\xca\xb0[")?;
    let before = contents(&store)?;
    let words = Launch::new(&store).refusal()?;
    ensure!(words.contains("`wings`") && words.contains("a newer Quipu wrote it"), "{words}");
    let repair = ["verify", "--repair", "--yes", "--data-dir", &store.to_string_lossy()];
    let output = quipu(&repair)?.output()?;
    ensure!(!output.status.success(), "repaired: {}", String::from_utf8_lossy(&output.stdout));
    ensure!(contents(&store)? == before, "something was changed");
    Ok(())
}
