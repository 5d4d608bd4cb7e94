//! Copies, comparisons and backups of a server with damaged files: refused, or reported with exit code 1.

use crate::backup::backup;
use crate::damage::{files, fill, flip};
use anyhow::{Result, ensure};
use e2e::migration::migrate;
use e2e::{Launch, Server};
use rng::Random;
use std::path::Path;

/// 2024-02-29 12:00:00 UTC in seconds.
const NOON: i64 = 1_709_208_000;
/// Samples that need several pieces of an answer.
const MANY: i64 = 40_000;

/// A server with the series `early_v`, whose page is damaged, and the sound `late_v` and `a_v`.
fn damaged(directory: &Path) -> Result<Server> {
    fill(directory)?;
    let server = Launch::new(directory).start()?;
    let mut random = Random::seeded(3);
    let mut line = |second: i64| format!("a v={} {}\n", random.next() >> 12, NOON + second);
    let body: String = (0..MANY).map(&mut line).collect();
    server.write("/write?precision=s", body)?;
    server.post("/internal/force_flush", "")?;
    server.stop()?;
    flip(&files(directory, "parts")?[0], 40)?;
    Launch::new(directory).start()
}

#[test]
fn partial_answers_of_a_source_are_no_copy() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let source = damaged(&directory.path().join("source"))?;
    let target = Launch::new(&directory.path().join("target")).start()?;
    let copy = |series: &str, arguments: &[&str]| {
        let selector = format!("{{__name__=~\"{series}\"}}");
        let (start, end) = (NOON.to_string(), (NOON + MANY).to_string());
        let time = ["--start", &start, "--end", &end, "--match", &selector];
        migrate(&target, directory.path(), &[arguments, &time].concat())
    };
    let url = source.url().to_string();
    for kind in ["quipu", "prometheus", "victoriametrics"] {
        let said = copy("early_v", &[kind, &url])?;
        ensure!(said.code == 1, "{kind}: {}", said.text);
        ensure!(said.text.contains("partial answers are denied"), "{kind}: {}", said.text);
        ensure!(said.text.contains("partitions/2024-02/"), "{kind}: {}", said.text);
        let said = copy("early_v", &["verify", kind, &url])?;
        ensure!(said.code == 2, "{kind}: {}", said.text);
        // What is sound is copied.
        let said = copy("late_v", &[kind, &url])?;
        ensure!(said.code == 0 && said.text.contains("300 samples"), "{kind}: {}", said.text);
    }
    // The first series is on its way when the damage is met.
    let said = copy("a_v|early_v", &["quipu", &url])?;
    ensure!(said.code == 1, "{}", said.text);
    ensure!(said.text.contains("the server has damaged files, as partitions/"), "{}", said.text);
    source.stop()?;
    target.stop()
}

#[test]
fn a_damaged_target_cannot_be_compared() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let target = damaged(&directory.path().join("target"))?;
    fill(&directory.path().join("source"))?;
    let source = Launch::new(&directory.path().join("source")).start()?;
    let verify = ["verify", "quipu", source.url(), "--start", "2024-02-29", "--end", "2024-03-01"];
    let said = migrate(&target, directory.path(), &verify)?;
    ensure!(said.code == 2 && said.text.contains("denied"), "{}", said.text);
    source.stop()?;
    target.stop()
}

#[test]
fn partial_answers_of_a_legacy_backend_are_refused() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let source = damaged(&directory.path().join("source"))?;
    for kind in ["prometheus", "victoriametrics"] {
        let legacy = format!("url={} kind={kind} until=2024-03-01T00:00:00Z", source.url());
        let launch = Launch::new(&directory.path().join(kind)).flag("legacy", &legacy);
        let server = launch.start()?;
        // More often than silence is forgiven: the backend is there.
        for _ in 0..5 {
            let path = format!("/api/v1/query?query=early_v&time={}", NOON + 99);
            let json = server.get(&path)?.json()?;
            ensure!(json["isPartial"] == true && json["data"]["result"][0].is_null(), "{json}");
            let warning = json["warnings"][0].as_str().unwrap_or_default();
            ensure!(warning.contains("denied"), "{kind}: {warning}");
        }
        let path = format!("/api/v1/query?query=late_v&time={}", NOON + 99);
        let json = server.get(&path)?.json()?;
        let value = &json["data"]["result"][0]["value"][1];
        ensure!(json["isPartial"] != true && value == "99", "{kind}: {json}");
        server.stop()?;
    }
    source.stop()
}

#[test]
fn a_backup_of_a_damaged_store_says_so_each_time() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("data");
    let server = damaged(&data)?;
    let (data, place) = (data.display().to_string(), directory.path().join("place"));
    let place = place.display().to_string();
    let create =
        || backup(&["create", "--url", server.url(), "--data-dir", &data, "--to", &place], &[]);
    for round in 0..2 {
        let said = create()?;
        ensure!(!said.is_ok && said.out.contains("backup 20"), "{round}: {}", said.out);
        ensure!(said.error.contains("/partitions/2024-02/parts/"), "{round}: {}", said.error);
        ensure!(said.error.contains("1 damaged places"), "{round}: {}", said.error);
        ensure!(said.error.contains("samples of 1 series"), "{round}: {}", said.error);
        ensure!(round == 0 || said.out.contains("0 blobs"), "{round}: {}", said.out);
    }
    server.stop()?;
    let mut repair = e2e::launch::quipu(&["verify", "--repair", "--yes", "--data-dir", &data])?;
    ensure!(repair.output()?.status.code() == Some(0), "repaired");
    let server = Launch::new(Path::new(&data)).start()?;
    let arguments = ["create", "--url", server.url(), "--data-dir", &data, "--to", &place];
    let said = backup(&arguments, &[])?;
    ensure!(said.is_ok, "{}{}", said.out, said.error);
    server.stop()
}
