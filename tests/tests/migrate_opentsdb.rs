//! `quipu migrate` from an OpenTSDB, and from what its `tsdb scan --import` printed.

use anyhow::{Context, Result, ensure};
use e2e::Launch;
use e2e::migration::{lines, migrate, must};
use e2e::opentsdb::{Database, start_opentsdb};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// 2026-08-30 00:00:00 UTC in milliseconds.
const START: i64 = 1_788_048_000_000;
const MINUTE: i64 = 60_000;

/// Two days of three hosts, and metrics with other kinds of values and tags.
fn database() -> Database {
    let mut database = Database { points_max: 1_000_000, has_meta: true, ..Database::default() };
    for at in 0..2 * 24 * 60 {
        for host in ["a", "b", "c"] {
            let tags = [("host", host), ("dc", "lga")];
            database.put("sys.cpu.user", &tags, START + at * MINUTE, json!(at as f64 / 7.0));
        }
    }
    for at in 0..40 {
        let tags = [("host", "x-1/é.z"), ("cpu_0", "0")];
        database.put("sys/ms", &tags, START + at * MINUTE + at, json!(at));
    }
    for (at, value) in [json!(9_007_199_254_740_993i64), json!(-1.5e300), json!("NaN"), json!(0.1)]
        .into_iter()
        .enumerate()
    {
        database.put("odd", &[("t", "1")], START + at as i64, value);
    }
    (0..40).for_each(|at| database.put(&format!("many.m{at:02}"), &[("t", "1")], START, json!(at)));
    database
}

/// The lines that `tsdb scan --import` prints of it: seconds where that is enough.
fn scanned(database: &Database) -> String {
    let mut text = String::new();
    for ((metric, tags), points) in &database.points {
        let tags: String = tags.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        for (at, value) in points.iter().filter(|(_, value)| value.is_number()) {
            let time = if at % 1000 == 0 { at / 1000 } else { *at };
            text += &format!("{metric} {time} {value}{tags}\n");
        }
    }
    text
}

fn asked(database: &Mutex<Database>) -> Result<Vec<String>> {
    let mut database = database.lock().map_err(|_| anyhow::anyhow!("a thread panicked"))?;
    Ok(std::mem::take(&mut database.asked))
}

#[test]
fn an_opentsdb_is_copied() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let database = Arc::new(Mutex::new(database()));
    let url = start_opentsdb(database.clone())?;
    let server = Launch::new(&directory.join("quipu")).start()?;
    let said = migrate(&server, directory, &["opentsdb", &url])?;
    ensure!(said.code == 1 && said.text.contains("say --start"), "{}", said.text);
    let all = ["opentsdb", &url, "--start", "2026-08-30", "--end", "2026-08-31T23:59:59Z"];
    let told = must(&server, directory, &[&all[..], &["--dry-run"]].concat())?;
    ensure!(told.contains("2026-08-31: ") && told.contains("2 windows; nothing"), "{told}");
    let said = must(&server, directory, &all)?;
    ensure!(said.contains("8724 samples of 2 windows sent"), "{said}");
    ensure!(said.contains("1 annotations of the windows"), "{said}");
    let found = server.export("{__name__=\"sys/ms\"}")?;
    let series = found.0.keys().next().context("a series")?;
    ensure!(series.contains("x-1/é.z") && series.contains("cpu_0"), "{series}");
    ensure!(
        found.len() == 40
            && found
                .0
                .values()
                .flatten()
                .any(|one| one.0 == (START + 39 * MINUTE + 39).to_string()),
        "milliseconds"
    );
    let odd: Vec<String> =
        server.export("odd")?.0.into_values().flatten().map(|one| one.1).collect();
    ensure!(odd.len() == 4 && odd.contains(&"0.1".to_string()), "{odd:?}");
    let said = must(&server, directory, &[&["verify"], &all[..]].concat())?;
    ensure!(said.contains("with 8724 samples compared; 0 differ"), "{said}");

    // What clients write now is the same series.
    asked(&database)?;
    let other = Launch::new(&directory.join("other")).start()?;
    let some =
        ["--match", "{__name__=~\"sys.cpu.*\",host=\"b\"}", "--rename-label", "host=instance"];
    must(&other, directory, &[&all[..], &some].concat())?;
    let found = lines(&other)?;
    ensure!(found.len() == 1 && found[0].contains("\"instance\":\"b\""), "{}", found.len());
    let bodies = asked(&database)?;
    ensure!(
        bodies.iter().all(|body| !body.contains("many.")),
        "what no selector takes is not asked for"
    );
    other.stop()?;
    server.stop()
}

#[test]
fn what_is_too_much_for_an_opentsdb_is_asked_in_halves() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let truth = Launch::new(&directory.join("truth")).start()?;
    let database = Arc::new(Mutex::new(database()));
    let url = start_opentsdb(database.clone())?;
    let all = ["opentsdb", &url, "--start", "2026-08-30", "--end", "2026-08-31T23:59:59Z"];
    must(&truth, directory, &all)?;
    for (name, points_max, has_meta) in
        [("hours", 200, true), ("series", 70, true), ("minutes", 7, false)]
    {
        if let Ok(mut database) = database.lock() {
            (database.points_max, database.has_meta) = (points_max, has_meta);
            database.names.push("went.meanwhile".to_string());
        }
        let server = Launch::new(&directory.join(name)).start()?;
        let said = must(&server, directory, &all)?;
        ensure!(said.contains("8724 samples of 2 windows sent"), "{name}: {said}");
        ensure!(said.contains("no longer knows: went.meanwhile"), "{name}: {said}");
        ensure!(lines(&server)? == lines(&truth)?, "{name}");
        server.stop()?;
    }
    if let Ok(mut database) = database.lock() {
        database.points_max = 0;
    }
    let other = Launch::new(&directory.join("other")).start()?;
    let said = migrate(&other, directory, &all)?;
    ensure!(said.code == 1 && said.text.contains("our limit of 0 data points"), "{}", said.text);
    ensure!(said.text.contains("a second of "), "{}", said.text);
    other.stop()?;
    truth.stop()
}

#[test]
fn what_is_no_answer_of_an_opentsdb_is_not_done() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let failed = json!({"error": {"code": 500, "message": "a region is away"}});
    let database = Arc::new(Mutex::new(Database { adds: vec![failed], ..database() }));
    let url = start_opentsdb(database.clone())?;
    let server = Launch::new(&directory.join("quipu")).start()?;
    let all = ["opentsdb", &url, "--start", "2026-08-30", "--end", "2026-08-30T23:59:59Z"];
    let said = migrate(&server, directory, &all)?;
    ensure!(said.code == 1, "{}", said.text);
    ensure!(said.text.contains("the answer breaks off: a region is away"), "{}", said.text);
    let dps = json!([[START + 3 * 24 * 60 * MINUTE, 1], [i64::MAX, 2]]);
    let late = json!({"metric": "late", "tags": {"t": "1"}, "aggregateTags": [], "dps": dps});
    database.lock().map_err(|_| anyhow::anyhow!("a thread panicked"))?.adds = vec![late];
    let said = must(&server, directory, &all)?;
    let words = "samples of times that were not asked for, or that nothing can keep: late (";
    ensure!(said.contains(words), "{said}");
    ensure!(server.export("late")?.is_empty(), "none of them");
    server.stop()
}

#[test]
fn lines_of_a_scan_are_copied() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let mut database = database();
    database.points.retain(|(metric, _), _| metric != "odd");
    let text = scanned(&database);
    let shared = Arc::new(Mutex::new(database));
    let url = start_opentsdb(shared)?;
    let truth = Launch::new(&directory.join("truth")).start()?;
    let all = ["opentsdb", &url, "--start", "2026-08-30", "--end", "2026-08-31T23:59:59Z"];
    must(&truth, directory, &all)?;
    std::fs::write(directory.join("scan.txt"), &text)?;
    let file = std::fs::File::create(directory.join("scan.gz"))?;
    let mut packed = GzEncoder::new(file, Compression::fast());
    packed.write_all(text.as_bytes())?;
    packed.finish()?;
    for file in ["scan.txt", "scan.gz"] {
        let server = Launch::new(&directory.join(format!("quipu-{file}"))).start()?;
        let told = must(&server, directory, &["opentsdb-lines", file, "--dry-run"])?;
        ensure!(told.contains("8.7k samples"), "{told}");
        let said = must(&server, directory, &["opentsdb-lines", file])?;
        ensure!(said.contains("8720 samples of 1 window sent"), "{said}");
        ensure!(lines(&server)? == lines(&truth)?, "{file}");
        let said = must(&server, directory, &["verify", "opentsdb-lines", file])?;
        ensure!(said.contains("with 8720 samples compared; 0 differ"), "{said}");
        server.stop()?;
    }
    truth.stop()?;
    check_bad_lines(directory)
}

/// Lines that are none are named, the others come; the newer of two files is copied first.
fn check_bad_lines(directory: &Path) -> Result<()> {
    let server = Launch::new(&directory.join("bad")).start()?;
    let old = "m 1788048000 1 t=1\nm never 1 t=1\nm 1788048060 2 t=1\nm 1788048060 3\nm 1788048120 x t=1\nm 1 1 t\n";
    std::fs::write(directory.join("old.txt"), old)?;
    std::fs::write(directory.join("new.txt"), "m 1788134400 4 t=1\n")?;
    let said = migrate(&server, directory, &["opentsdb-lines", "old.txt", "new.txt"])?;
    ensure!(
        said.code == 1 && said.text.contains("3 records cannot be read: 2: a timestamp"),
        "{}",
        said.text
    );
    ensure!(said.text.contains("not done: 1 window: old.txt@0"), "{}", said.text);
    ensure!(server.export("m")?.len() == 4, "the others came");
    let told = must(&server, directory, &["opentsdb-lines", "old.txt", "new.txt", "--dry-run"])?;
    let place = |name: &str| told.find(name).context("a window");
    ensure!(place("new.txt@0")? < place("old.txt@0")?, "the newest first: {told}");
    server.stop()
}
