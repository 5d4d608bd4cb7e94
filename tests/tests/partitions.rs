//! Partitions of another length than a month: five years of sparse history in partitions of a year.

use anyhow::{Result, ensure};
use e2e::{Launch, Server};
use std::collections::BTreeSet;
use std::path::Path;

/// 2019-07-01 00:00:00 UTC in seconds.
const START: i64 = 1_561_939_200;
const DAY: i64 = 86_400;
/// A sample every 36 days is 50 in five years.
const STEP: i64 = 36 * DAY;
const ROWS: i64 = 50;
const METERS: i64 = 40;

fn time(row: i64) -> i64 {
    START + row * STEP
}

/// All of one series after the other, as an import from elsewhere sends.
fn backfill(server: &Server) -> Result<()> {
    for meter in 0..METERS {
        let line = |row: i64| format!("m,meter=meter-{meter} v={} {}\n", meter + row, time(row));
        server.write("/write?precision=s", (0..ROWS).map(line).collect::<String>())?;
    }
    Ok(())
}

fn check_answers(server: &Server) -> Result<()> {
    assert_eq!(server.export("m_v")?.len() as i64, METERS * ROWS);
    for row in [0, 7, 23, ROWS - 1] {
        let vector = server.vector("sum(m_v)", time(row) as f64)?;
        let sum = METERS * (METERS - 1) / 2 + METERS * row;
        assert_eq!(format!("{vector:?}").matches(&format!("{sum}")).count(), 1, "{vector:?}");
    }
    let query = "sum_over_time(m_v%7Bmeter%3D%22meter-3%22%7D%5B6y%5D)";
    let answer = server.get(&format!("/api/v1/query?query={query}&time={}", time(ROWS)))?.data()?;
    let sum = 3 * ROWS + ROWS * (ROWS - 1) / 2;
    assert_eq!(answer["result"][0]["value"][1], sum.to_string(), "{answer}");
    Ok(())
}

fn partitions(directory: &Path) -> Result<BTreeSet<String>> {
    let entries = std::fs::read_dir(directory.join("partitions"))?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

#[test]
fn sparse_history_of_five_years_lives_in_partitions_of_a_year() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("partition", "year").start()?;
    backfill(&server)?;
    check_answers(&server)?;
    server.stop()?;

    // The directory knows it.
    let server = Launch::new(directory.path()).start()?;
    let runtime = server.get("/api/v1/status/runtimeinfo")?.data()?;
    assert_eq!(runtime["partitionLength"], "year", "{runtime}");
    let flags = server.get("/api/v1/status/flags")?.data()?;
    assert_eq!(flags["partition"], "year", "what it has, not what this start was told");
    check_answers(&server)?;
    let backfilled = ["2019", "2020", "2021", "2022", "2023", "2024"].map(String::from);
    let found = partitions(directory.path())?;
    ensure!(backfilled.iter().all(|year| found.contains(year)), "{found:?}");
    // The server's own metrics are of this year.
    ensure!(found.iter().all(|name| name.len() == 4), "{found:?}");
    server.kill()?;

    let refusal = Launch::new(directory.path()).flag("partition", "day").refusal()?;
    for words in ["partitions of a year each, not of a day", "leave --partition away"] {
        ensure!(refusal.contains(words), "{refusal}");
    }
    ensure!(!refusal.contains("repair"), "nothing is damaged: {refusal}");
    let path = directory.path().to_string_lossy().into_owned();
    let output = e2e::launch::quipu(&["verify", "--data-dir", &path])?.output()?;
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{report}");
    ensure!(report.contains("partitions of a year each"), "{report}");
    let server = Launch::new(directory.path()).flag("partition", "year").start()?;
    check_answers(&server)?;
    server.stop()
}
