//! Parquet as pyarrow and DuckDB write and read it, over SQL and by `quipu export` and `import`, against
//! the real binary. The client's half is `tests/clients/parquet.py`.

use anyhow::{Result, ensure};
use e2e::clients::{check, script};
use e2e::launch::quipu;
use e2e::programs::python_with;
use e2e::{Launch, Psql, Server};
use std::path::Path;

/// What loses something in most formats: nanoseconds, every kind of NaN, histograms, odd names.
const LINES: &str = r#"{"metric":{"__name__":"exact_total","job":"a"},"values":[0.1,"Infinity"],"timestamps":[1709208000000.000001,1709294400000]}
{"metric":{"__name__":"nans"},"values":[null,"NaN:7ff0000000000002","NaN:fff80000deadbeef","-Infinity",-0],"timestamps":[1709208000000,1709208001000,1709208002000,1709208003000,1709208004000]}
{"metric":{"__name__":"a:b/c d","ü.x":"y\"\\\n"},"values":[5],"timestamps":[1709208000000]}
{"metric":{"__name__":"starts_total"},"values":[1],"timestamps":[1709208000000],"start_timestamps":[1709207000000]}
{"metric":{"__name__":"latency"},"histograms":[{"schema":0,"zero_threshold":0.001,"zero_count":1,"count":4,"sum":5,"positive":[[0,2],[2,1]]}],"histogram_timestamps":[1709208000000]}
"#;

fn launch(directory: &Path) -> Launch {
    Launch::new(directory)
        .flag("postgres-listen", "127.0.0.1:0")
        .flag("start-timestamps", "true")
        .flag("self-scrape-interval", "0")
}

fn run(arguments: &[&str]) -> Result<String> {
    let output = quipu(arguments)?.output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{arguments:?}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}

/// All that is in it, line by line.
fn all(server: &Server) -> Result<Vec<String>> {
    let path = "/api/v1/export?match[]=%7B__name__!=%22%22%7D&start=0";
    let mut lines: Vec<String> = server.get(path)?.text().lines().map(str::to_string).collect();
    lines.sort();
    Ok(lines)
}

#[test]
fn pyarrow_and_duckdb() -> Result<()> {
    let python = python_with("duckdb")?;
    let directory = tempfile::tempdir()?;
    let (files, export) = (directory.path().join("files"), directory.path().join("export"));
    std::fs::create_dir(&files)?;
    let data = directory.path().join("data");
    let server = launch(&data).flag("sql.files-dir", &files.display().to_string()).start()?;
    server.write("/api/v1/import", LINES)?;
    let export = export.display().to_string();
    let said = run(&["export", "--url", server.url(), "--format", "parquet", "--output", &export])?;
    ensure!(said.starts_with("10 samples, 6 files,"), "{said}");
    let port = e2e::postgres::door_port(&server)?.to_string();
    check(python, &[&script("parquet.py"), &port, &files.display().to_string(), &export])?;
    server.stop()
}

#[test]
fn an_export_comes_back_whole() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (one, other) = (directory.path().join("one"), directory.path().join("other"));
    let export = directory.path().join("export").display().to_string();
    let server = launch(&one).start()?;
    server.write("/api/v1/import", LINES)?;
    let url = server.url().to_string();
    let asked = ["export", "--url", &url, "--format", "parquet", "--output", &export];
    run(&asked)?;
    // What is there is not mixed with something else.
    let again = quipu(&asked)?.output()?;
    ensure!(
        !again.status.success() && String::from_utf8_lossy(&again.stderr).contains("not empty")
    );
    let some = directory.path().join("some").display().to_string();
    let matched = ["--match", "{job=~\"a|b\"}", "--start", "2024-03-01"];
    let asked =
        [&["export", "--url", &url, "--format", "parquet", "--output", &some], &matched[..]];
    ensure!(run(&asked.concat())?.starts_with("1 samples, 1 files,"));
    let second = launch(&other).start()?;
    let said = run(&["import", "--url", second.url(), &export])?;
    ensure!(said.starts_with("10 rows of 6 files sent; 0 requests"), "{said}");
    let (expected, found) = (all(&server)?, all(&second)?);
    ensure!(expected.len() == 5 && expected == found, "{expected:#?}\n{found:#?}");
    server.stop()?;
    second.stop()
}

#[test]
fn files_are_off_until_somebody_names_a_directory() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = launch(directory.path()).start()?;
    let psql = Psql::of(&server)?;
    for asked in ["COPY metrics FROM 'x.parquet'", "COPY (SELECT 1 AS a) TO 'x.parquet'"] {
        let said = psql.say(&["\\set VERBOSITY verbose", asked], "")?;
        let words = ["42501", "--sql.files-dir"];
        ensure!(!said.is_ok && words.iter().all(|one| said.error.contains(one)), "{said:?}");
    }
    server.stop()?;
    let within = directory.path().display().to_string();
    let refused = launch(directory.path()).flag("sql.files-dir", &within).refusal()?;
    ensure!(refused.contains("is within --data-dir"), "{refused}");
    let nowhere = directory.path().join("nowhere").display().to_string();
    let refused = launch(directory.path()).flag("sql.files-dir", &nowhere).refusal()?;
    ensure!(refused.contains("sql.files-dir"), "{refused}");
    Ok(())
}
