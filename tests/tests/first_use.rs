//! The first minutes with the binary: mistakes of somebody who starts it for the first time, and what
//! the banner and the log say.

use anyhow::{Context as _, Result, ensure};
use e2e::Launch;
use e2e::launch::quipu;
use std::fs::{self, Permissions};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the binary; returns its exit code, standard output and standard error.
pub(super) fn run(arguments: &[&str]) -> Result<(i32, String, String)> {
    let output = quipu(arguments)?.output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().context("ended by a signal")?;
    Ok((code, text(&output.stdout), text(&output.stderr)))
}

#[test]
fn variables_of_a_kubernetes_service_are_ignored() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path())
        .environment("QUIPU_SERVICE_HOST", "10.0.0.1")
        .environment("QUIPU_PORT", "tcp://10.0.0.1:8428")
        .environment("QUIPU_PORT_8428_TCP_ADDR", "10.0.0.1")
        .environment("QUIPU_RETENTOIN", "90d");
    let server = launch.start()?;
    server.wait_for_log("QUIPU_RETENTOIN sets no flag; did you mean QUIPU_RETENTION?")?;
    ensure!(!server.log().contains("QUIPU_PORT"), "{}", server.log());
    server.stop()
}

#[test]
fn directories_of_other_databases_are_left_alone() -> Result<()> {
    let directory = tempfile::tempdir()?;
    for name in ["chunks_head", "wal"] {
        fs::create_dir(directory.path().join(name))?;
    }
    let text = Launch::new(directory.path()).refusal()?;
    ensure!(text.contains("files of another program (chunks_head, wal)"), "{text}");
    ensure!(text.contains("--data-dir") && !text.contains("--repair"), "{text}");
    ensure!(fs::read_dir(directory.path())?.count() == 2, "it wrote files");
    let path = directory.path().display().to_string();
    let (code, _, error) = run(&["verify", "--data-dir", &path])?;
    ensure!(code == 2 && error.contains("holds no store"), "{code}: {error}");
    Ok(())
}

#[test]
fn paths_that_cannot_be_used_name_the_remedy() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("file");
    fs::write(&file, "x")?;
    let text = Launch::new(&file).refusal()?;
    ensure!(text.contains("name a directory") && !text.contains("--repair"), "{text}");
    let locked = directory.path().join("locked");
    Launch::new(&locked).start()?.stop()?;
    fs::set_permissions(&locked, Permissions::from_mode(0o000))?;
    // Root may read everything.
    if fs::read_dir(&locked).is_err() {
        let text = Launch::new(&locked).refusal()?;
        ensure!(text.contains("chown -R") && !text.contains("--repair"), "{text}");
    }
    fs::set_permissions(&locked, Permissions::from_mode(0o700))?;
    Ok(())
}

#[test]
fn a_closed_terminal_does_not_end_the_server() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let pid = server.pid().to_string();
    let sent = Command::new("kill").args(["-HUP", &pid]).status()?;
    ensure!(sent.success(), "kill: {sent}");
    server.wait_for_log("SIGHUP ignored")?;
    ensure!(server.get("/-/healthy")?.status == 200);
    server.stop()
}

#[test]
fn the_log_tells_of_the_start() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("new");
    let server = Launch::new(&data).flag("redis-listen", "127.0.0.1:0").start()?;
    for words in [
        "quipu 0.",
        "created a new store in",
        "a partition is a month",
        "HTTP is served at 127.0.0.1:",
        "(--http-listen)",
        "keys are served to Redis' clients at 127.0.0.1:",
    ] {
        server.wait_for_log(words)?;
    }
    ensure!(!server.log().contains("max-connections"), "nobody set it: {}", server.log());
    server.write("/write", "m v=1\nm v=2\n")?;
    let server = server.restart()?;
    server.wait_for_log("opened the store in")?;
    server.wait_for_log("replayed ")?;
    server.stop()
}

#[test]
fn commands_of_the_banner_work_with_credentials() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let password = directory.path().join("pass word");
    fs::write(&password, "s3cret\n")?;
    let server = Launch::new(&directory.path().join("data"))
        .flag("http-user", "ann")
        .flag("http-password-file", &password.display().to_string())
        .flag("redis-listen", "127.0.0.1:0")
        .start()?;
    server.wait_for_log("redis-cli")?;
    let log = server.log();
    ensure!(!log.contains("s3cret"), "{log}");
    let shell = |number: &str| -> Result<String> {
        let line = log.lines().find(|line| line.starts_with(number)).context("no such line")?;
        let at = line.find("curl").or(line.find("REDISCLI_AUTH")).context("no command")?;
        let output = Command::new("sh").args(["-c", &line[at..]]).output()?;
        ensure!(output.status.success(), "{line}: {output:?}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    ensure!(shell("1.")?.is_empty(), "written");
    let answer = shell("2.")?;
    ensure!(answer.contains("14.5"), "{answer}");
    if Command::new("redis-cli").arg("--version").output().is_ok() {
        ensure!(shell("4.")?.trim() == "OK");
    }
    server.stop()
}

#[test]
fn flags_of_other_databases_name_the_flag() -> Result<()> {
    for (arguments, expected) in [
        (&["-httpListenAddr=:8428"][..], "--http-listen"),
        (&["-storageDataPath=/x"], "--data-dir"),
        (&["--web.listen-address=:9090"], "--http-listen"),
        (&["serve", "-retentionPeriod=3"], "--retention"),
        (&["serve", "--storage.tsdb.path=/x"], "--data-dir"),
        (&["serve", "--retentoin=1d"], "--retention"),
    ] {
        let (code, output, error) = run(arguments)?;
        ensure!(code != 0 && output.is_empty(), "{arguments:?}: {code}, {output}");
        ensure!(error.contains(expected), "{arguments:?}: {error}");
        ensure!(error.lines().count() < 12, "{arguments:?}: {error}");
    }
    Ok(())
}

#[test]
fn the_limit_of_samples_names_its_flag() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("query.max-samples", "100").start()?;
    server.write("/api/v1/import/prometheus", "m 1 1700000000000\n")?;
    let path = "/api/v1/query_range?query=m&start=1700000000&end=1700002000&step=1";
    let answer = server.get(path)?;
    let text = answer.text();
    ensure!(answer.status == 422 && text.contains("--query.max-samples"), "{text}");
    ensure!(text.contains("the limit is 100 "), "{text}");
    server.stop()
}

#[test]
fn own_metrics_are_no_series_of_a_scraper() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("self-scrape-interval", "1s").start()?;
    e2e::poll("own metrics", std::time::Duration::from_secs(30), || {
        let text = server.get("/api/v1/series?match[]=up")?.text();
        ensure!(text.contains("\"job\":\"quipu\""), "{text}");
        ensure!(text.contains("\"instance\":\"self\""), "{text}");
        Ok(())
    })?;
    server.stop()
}

#[test]
fn exports_of_nothing_and_to_head_end_as_scripts_expect() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(&directory.path().join("data")).start()?;
    let lines: String = (0..20_000).map(|i| format!("m{{i=\"{i}\"}} 1 1700000000000\n")).collect();
    server.write("/api/v1/import/prometheus", lines)?;
    let file = directory.path().join("out").display().to_string();
    let (code, output, error) =
        run(&["export", "--url", server.url(), "--match", "nothing", "--output", &file])?;
    ensure!(code == 3 && output.is_empty(), "{code}: {output}");
    ensure!(error.contains("matches --match nothing; nothing was exported"), "{error}");
    ensure!(!Path::new(&file).exists(), "an empty file");
    let mut child = quipu(&["export", "--url", server.url()])?
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut some = [0; 10];
    child.stdout.take().context("piped")?.read_exact(&mut some)?;
    let output = child.wait_with_output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(141), "{output:?}");
    ensure!(!error.contains("quipu:"), "{error}");
    server.stop()
}

#[test]
fn a_server_that_is_away_or_asks_for_credentials_is_named() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("data");
    let server = Launch::new(&data).flag("bearer-token", "t").start()?;
    let (code, _, error) = run(&["export", "--url", server.url()])?;
    ensure!(code == 1, "{code}: {error}");
    ensure!(error.contains(server.authority()) && error.contains("--bearer-token-file"), "{error}");
    let target = Launch::new(&directory.path().join("target")).start()?;
    let from = ["migrate", "victoriametrics", server.url(), "--url", target.url()];
    let (code, _, error) = run(&from)?;
    ensure!(code != 0 && error.contains("--from-bearer-token-file"), "{code}: {error}");
    target.stop()?;
    server.stop()
}
