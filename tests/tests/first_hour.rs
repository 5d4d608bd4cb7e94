//! Mistakes of somebody who begins to use the server: errors name the cause and the remedy.

use super::first_use::run;
use anyhow::{Result, ensure};
use e2e::tls::certificate;
use e2e::{Launch, Server, free_port};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

fn start(directory: &Path) -> Result<Server> {
    Launch::new(directory).start()
}

#[test]
fn empty_secrets_do_not_open_the_server() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = || Launch::new(directory.path());
    let text = launch().flag("bearer-token", "").refusal()?;
    ensure!(text.contains("--bearer-token (command line): is empty: give a value"), "{text}");
    let text = launch().environment("QUIPU_BEARER_TOKEN", "").refusal()?;
    ensure!(text.contains("QUIPU_BEARER_TOKEN (environment): is empty"), "{text}");
    let text = launch().flag("http-user", "").flag("http-password", "").refusal()?;
    ensure!(text.contains("--http-user (command line): is empty"), "{text}");
    let file = directory.path().join("quipu.toml");
    fs::write(&file, "bearer-token = \"\"\n")?;
    let text = launch().flag("config", &file.display().to_string()).refusal()?;
    ensure!(text.contains("is empty: give a value"), "{text}");
    Ok(())
}

#[test]
fn files_that_cannot_be_used_name_their_flag() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = || Launch::new(directory.path());
    let text = launch().flag("config", "/nowhere/quipu.toml").refusal()?;
    ensure!(text.contains("/nowhere/quipu.toml") && text.contains("--config"), "{text}");
    let text = launch().flag("tls-cert", "/nowhere/c").flag("tls-key", "/nowhere/k").refusal()?;
    ensure!(text.contains("--tls-cert") && text.contains("/nowhere/c"), "{text}");
    let other = directory.path().join("other");
    fs::create_dir(&other)?;
    let (cert, _) = certificate(directory.path())?;
    let (_, key) = certificate(&other)?;
    let text = launch().flag("tls-cert", &cert).flag("tls-key", &key).refusal()?;
    ensure!(text.contains("does not belong to the certificate"), "{text}");
    Ok(())
}

#[test]
fn occupied_port_names_the_remedy() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory.path().join("one"))?;
    let text = Launch::new(&directory.path().join("two")).port(server.port()).refusal()?;
    ensure!(text.contains("--http-listen") && text.contains("choose another port"), "{text}");
    server.stop()
}

#[test]
fn server_that_shows_a_trusted_certificate_is_trusted() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (cert, key) = certificate(directory.path())?;
    let other = directory.path().join("other");
    fs::create_dir(&other)?;
    let (other, _) = certificate(&other)?;
    let data = directory.path().join("data");
    let server = Launch::new(&data).flag("tls-cert", &cert).flag("tls-key", &key).start()?;
    let url = format!("https://127.0.0.1:{}", server.port());
    let (code, _, error) = run(&["export", "--url", &url, "--tls-ca", &cert])?;
    ensure!(code == 0, "{code}: {error}");
    let begun = Instant::now();
    let (code, _, error) = run(&["export", "--url", &url, "--tls-ca", &other])?;
    ensure!(code == 1 && error.contains("is not trusted"), "{code}: {error}");
    ensure!(error.contains("--tls-ca FILE") && !error.contains("trying again"), "{error}");
    let (code, _, error) = run(&["export", "--url", &url])?;
    ensure!(code == 1 && error.contains("--tls-ca FILE"), "{code}: {error}");
    let name = format!("https://127.0.0.2:{}", server.port());
    let (code, _, error) = run(&["export", "--url", &name, "--tls-ca", &cert])?;
    // Only loopback's first address is listened at.
    ensure!(code == 1, "{code}: {error}");
    server.stop()?;
    let server = start(&directory.path().join("plain"))?;
    let url = format!("https://127.0.0.1:{}", server.port());
    let (code, _, error) = run(&["export", "--url", &url, "--tls-ca", &cert])?;
    ensure!(code == 1 && error.contains("does not speak TLS"), "{code}: {error}");
    ensure!(error.contains("http://"), "{error}");
    ensure!(begun.elapsed() < Duration::from_secs(40), "it tried again and again");
    server.stop()
}

#[test]
fn server_that_was_never_there_is_given_up_soon() -> Result<()> {
    let url = format!("http://127.0.0.1:{}", free_port()?);
    let begun = Instant::now();
    let (code, _, error) = run(&["export", "--url", &url])?;
    ensure!(code == 1 && error.contains("waiting up to 10 s"), "{code}: {error}");
    ensure!(error.contains("is the server running"), "{error}");
    ensure!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    Ok(())
}

#[test]
fn dropped_strings_are_a_warning_with_the_flag() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("influx.max-strings", "1").start()?;
    server.write("/write", "st s=\"a\"\n")?;
    let answer = server.post("/write", "st s=\"b\",v=1\n")?;
    ensure!(answer.status == 400, "{}", answer.excerpt());
    server.wait_for_log("WARN")?;
    server.wait_for_log("field \"s\" is left out")?;
    server.wait_for_log("Raise --influx.max-strings")?;
    server.stop()
}

#[test]
fn timeout_of_the_request_is_named() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let query = "sum(sum_over_time(vector(1)[1h:1ms]))";
    let query = query.replace('[', "%5B").replace(']', "%5D");
    let answer = server.get(&format!("/api/v1/query?timeout=1ms&query={query}"))?;
    let text = answer.text();
    ensure!(answer.status == 503 && text.contains("(parameter timeout)"), "{text}");
    ensure!(!text.contains("query.timeout"), "{text}");
    server.stop()
}

#[test]
fn advice_for_queries() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let ask = |query: &str| -> Result<String> {
        let query = query.replace('[', "%5B").replace(']', "%5D").replace(' ', "%20");
        Ok(server.get(&format!("/api/v1/query?query={query}"))?.text())
    };
    let text = ask("rate(up)")?;
    ensure!(text.contains("say rate(up[5m])") && text.contains("MetricsQL accepts this"), "{text}");
    for query in
        ["histogram_quantile(0.9)", "topk(up, 5)", "up @ foo", "quantile_over_time(up[5m])"]
    {
        let text = ask(query)?;
        ensure!(!text.contains("MetricsQL"), "{query}: {text}");
    }
    let text = ask("rat(up[5m])")?;
    ensure!(text.contains("did you mean rate?"), "{text}");
    server.stop()
}

#[test]
fn failed_logins_are_logged() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("bearer-token", "right").start()?;
    let headers = [("authorization", "Bearer wrong-guess")];
    for _ in 0..3 {
        let answer = server.client().send("GET", "/api/v1/labels", &headers, b"")?;
        ensure!(answer.status == 401, "{}", answer.excerpt());
    }
    server.wait_for_log("HTTP: failed login from 127.0.0.1")?;
    let log = server.log();
    ensure!(!log.contains("wrong-guess"), "{log}");
    ensure!(log.matches("failed login").count() == 1, "{log}");
    server.stop()
}

#[test]
fn own_metrics_are_no_database_of_influxql() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path()).flag("redis-listen", "127.0.0.1:0");
    let server = launch.flag("self-scrape-interval", "1s").start()?;
    e2e::poll("own metrics", PATIENCE, || {
        let text = server.get("/api/v1/series?match[]=quipu_kv_keys")?.text();
        ensure!(text.contains("\"redis_db\":\"0\""), "{text}");
        Ok(())
    })?;
    let text = server.get("/query?q=SHOW%20DATABASES")?.text();
    ensure!(!text.contains("[\"0\"]"), "{text}");
    server.stop()
}

#[test]
fn misspelled_commands_have_a_suggestion() -> Result<()> {
    for (arguments, expected) in [
        (&["serv"][..], "did you mean quipu serve?"),
        (&["backup", "craete"], "did you mean quipu backup create?"),
        (&["migrate", "prom", "http://a"], "did you mean prometheus?"),
    ] {
        let (code, _, error) = run(arguments)?;
        ensure!(code != 0 && error.contains(expected), "{arguments:?}: {code}: {error}");
    }
    Ok(())
}

#[test]
fn strings_of_refused_lines_take_no_entry() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path()).flag("influx.max-strings", "3");
    let server = launch.clone().flag("max-active-series", "1").start()?;
    server.write("/write", "a v=1\n")?;
    for text in ["a", "b", "c", "d", "e"] {
        let answer = server.post("/write", format!("st s=\"{text}\"\n"))?;
        let told = answer.text();
        ensure!(answer.status == 400 && told.contains("new series refused"), "{told}");
    }
    let answer = server.post("/api/v2/write?bucket=b", "bad line\nst s=\"f\"\n")?;
    ensure!(answer.status == 400, "{}", answer.excerpt());
    server.stop()?;
    let server = launch.start()?;
    for text in ["g", "h", "i", "j"] {
        let answer = server.post("/write", format!("st s=\"{text}\" 4102444800000000000\n"))?;
        let told = answer.text();
        ensure!(answer.status == 400 && told.contains("future-retention"), "{told}");
    }
    server.write("/write", "st s=\"k\"\nst s=\"l\"\nst s=\"m\"\n")?;
    let answer = server.post("/write", "st s=\"n\"\n")?;
    ensure!(answer.text().contains("3 different strings already"), "{}", answer.excerpt());
    server.stop()
}

#[test]
fn export_and_import_end_with_counts() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory.path().join("data"))?;
    let lines =
        "m{a=\"1\"} 1 1700000000000\nm{a=\"1\"} 2 1700000001000\nm{a=\"2\"} 1 1700000000000\n";
    server.write("/api/v1/import/prometheus", lines)?;
    let file = directory.path().join("out.jsonl").display().to_string();
    let (code, output, error) = run(&["export", "--url", server.url(), "--output", &file])?;
    ensure!(code == 0 && output.contains("3 samples of 2 series"), "{code}: {output} {error}");
    let (code, output, error) = run(&["import", "--url", server.url(), &file])?;
    ensure!(code == 0 && output.contains("3 samples of 2 series"), "{code}: {output} {error}");
    ensure!(output.contains("0 requests had lines that were refused"), "{output}");
    server.stop()
}

#[test]
fn members_of_json_lines_are_named() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    for (line, words) in [
        (r#"{"metric":{"__name__":"a"},"value":[1],"timestamps":[1]}"#, "missing \"values\""),
        (
            r#"{"metric":{"name":"a"},"values":[1],"timestamps":[1700000000000]}"#,
            "missing metric name (label __name__)",
        ),
    ] {
        let answer = server.post("/api/v1/import", line)?;
        let text = answer.text();
        ensure!(answer.status == 400 && text.contains(words), "{text}");
        ensure!(text.starts_with("0 samples stored, 1 line or sample refused:"), "{text}");
    }
    server.stop()
}

#[test]
fn other_products_paths_have_an_answer() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    for (path, words) in [
        ("/opentelemetry/v1/metrics", "OTLP"),
        ("/loki/api/v1/push", "Loki"),
        ("/datadog/api/v1/series", "Datadog"),
        ("/graph", "the web UI is at /"),
        ("/vmui/", "the web UI is at /"),
    ] {
        let answer = server.get(path)?;
        ensure!(answer.status == 404 && answer.text().contains(words), "{}", answer.excerpt());
    }
    server.stop()
}

#[test]
fn limits_name_their_remedy() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path()).flag("query.max-series", "1");
    let server = launch.flag("max-active-series", "2").start()?;
    server.write("/write", "m,a=1 v=1\nm,a=2 v=1\n")?;
    let text = server.get("/api/v1/query?query=m_v")?.text();
    ensure!(text.contains("(query.max-series). Select fewer series, or raise"), "{text}");
    let text = server.post("/write", "m,a=3 v=1\n")?.text();
    ensure!(text.contains("or raise --max-active-series"), "{text}");
    server.stop()
}
