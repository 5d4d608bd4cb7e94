//! Every door with curl, as a person would use it: the README's commands, credentials, TLS, and
//! what the command line refuses.

use anyhow::{Context, Result, ensure};
use e2e::launch::quipu;
use e2e::tls::certificate;
use e2e::{Launch, Server, run};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Runs curl; returns the status and the body.
fn curl(arguments: &[&str]) -> Result<(u16, String)> {
    let start = ["-sS", "--max-time", "30", "-w", "\n%{http_code}"];
    let output = run("curl", &[start.as_slice(), arguments].concat())?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "curl {arguments:?}: {errors}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (body, status) = text.rsplit_once('\n').context("a status")?;
    Ok((status.parse()?, body.to_string()))
}

#[track_caller]
fn check(url: &str, path: &str, arguments: &[&str], status: u16, part: &str) {
    let url = format!("{url}{path}");
    let (found, body) = curl(&[&[url.as_str()], arguments].concat()).expect("curl runs");
    assert!(found == status && body.contains(part), "{path}: {found} {body:?}, not {part:?}");
}

#[test]
fn the_commands_of_the_readme_work() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = std::fs::read_to_string(readme)?;
    let (_, section) = readme.split_once("## First five minutes").context("the section")?;
    let (_, block) = section.split_once("```sh\n").context("the commands")?;
    let (block, _) = block.split_once("```").context("their end")?;
    let mut bodies = Vec::new();
    for command in block.lines().filter(|line| line.contains("curl ")) {
        let command = command.replace("127.0.0.1:8428", server.authority());
        let output = run("sh", &["-c", &command.replace("curl ", "curl -sS --fail ")])?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{command}: {errors}");
        bodies.push(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    assert!(5 <= bodies.len(), "{bodies:?}");
    let all = bodies.join("\n");
    for part in ["204 No Content", "\"21.5\"", "{\"floor\":\"1\"}", "\"values\":[21.5]"] {
        assert!(all.contains(part), "{part} is not in {all}");
    }
    assert_eq!(server.export("{__name__=~\".+\"}")?.len(), 3);
    server.stop()
}

#[test]
fn every_door_in_and_out() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let url = server.url();
    let noon = 1_709_208_000;
    let lines = format!("m,host=a v=1 {noon}\nm,host=b v=2 {noon}\nm,host=a v=3 {}", noon + 60);
    check(url, "/write?precision=s", &["--data-binary", &lines], 204, "");
    check(url, "/influx/write?precision=s&db=d", &["-d", &format!("n v=1 {noon}")], 204, "");
    let v2 = "/api/v2/write?precision=s&bucket=b&org=o";
    check(url, v2, &["-d", &format!("n v=2 {noon}")], 204, "");
    let text = format!("# TYPE t counter\nt{{a=\"b\"}} 7 {noon}000\n");
    check(url, "/api/v1/import/prometheus", &["--data-binary", &text], 204, "");
    let open = format!("# TYPE o gauge\no 1.5 {noon}.25\n# EOF\n");
    let header = "Content-Type: application/openmetrics-text; version=1.0.0";
    check(url, "/api/v1/import/prometheus", &["-H", header, "--data-binary", &open], 204, "");
    let push = "/metrics/job/batch/instance/i%2F1";
    check(url, push, &["--data-binary", &format!("p 4 {noon}000\n")], 200, "");
    let json = format!(
        r#"{{"metric":{{"__name__":"j"}},"values":[1,2],"timestamps":[{noon}000,{noon}001]}}"#
    );
    check(url, "/api/v1/import", &["--data-binary", &json], 204, "");

    let at = format!("time={}", noon + 60);
    let sum = r#""result":[{"metric":{},"value":[1709208060,"5"]}]"#;
    let query = ["--data-urlencode", "query=sum(m_v)", "-d", &at];
    check(url, "/api/v1/query", &query, 200, sum);
    check(url, "/api/v1/query", &[query.as_slice(), &["-G"]].concat(), 200, sum);
    check(url, "/prometheus/api/v1/query", &query, 200, sum);
    let range = format!("query=m_v&start={noon}&end={}&step=60", noon + 60);
    let values = r#""values":[[1709208000,"1"],[1709208060,"3"]]"#;
    check(url, "/api/v1/query_range", &["-d", &range], 200, values);
    check(url, "/api/v1/labels", &[], 200, r#"["__name__","a","db","host","instance","job"]"#);
    check(url, "/api/v1/label/host/values", &[], 200, r#"["a","b"]"#);
    check(url, "/api/v1/series", &["-d", "match[]=p"], 200, r#""instance":"i/1","job":"batch""#);
    check(url, "/api/v1/export", &["-d", "match[]=j"], 200, &json);
    check(url, "/api/v1/export?match[]=o", &["-g"], 200, "[1709208000250]");
    check(url, "/api/v1/metadata", &[], 200, r#""t":[{"#);
    check(url, "/api/v1/status/buildinfo", &[], 200, "\"version\"");
    check(url, "/api/v1/status/runtimeinfo", &[], 200, "success");
    check(url, "/api/v1/status/flags", &[], 200, "self-scrape-interval");
    check(url, "/api/v1/status/tsdb", &[], 200, "seriesCountByMetricName");
    check(url, "/federate?match[]=fresh", &["-g"], 200, "");
    check(url, "/write", &["-d", "fresh now=1"], 204, "");
    check(url, "/federate?match[]=fresh_now", &["-g"], 200, "fresh_now");
    check(url, "/metrics", &[], 200, "# HELP quipu_store_samples_appended_total");
    check(url, "/-/healthy", &[], 200, "healthy");
    check(url, "/-/ready", &[], 200, "ready");
    check(url, "/ping", &[], 204, "");

    let error = r#"{"status":"error","errorType":"bad_data","error":"#;
    let kinds = r#""errorType":"bad_data""#;
    check(url, "/api/v1/query", &["-d", "query=sum("], 400, kinds);
    let (_, body) = curl(&[&format!("{url}/api/v1/query?query=")])?;
    assert!(body.contains("\"status\":\"error\"") && error.contains(kinds), "{body}");
    check(url, "/api/v1/query_range?query=m_v&start=0&end=9e9&step=1", &[], 400, "11,000");
    check(url, "/api/v1/nothing", &[], 404, "not_found");
    check(url, "/write", &[], 405, "POST");
    server.stop()
}

#[test]
fn answers_are_compressed_on_demand() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let body: String = (0..2000).map(|n| format!("m,n=n{n} v={n} 1709208000\n")).collect();
    server.write("/write?precision=s", body)?;
    let url = format!("{}/api/v1/export?match[]=m_v", server.url());
    let (_, plain) = curl(&["-g", &url])?;
    let (_, packed) = curl(&["-g", "--compressed", &url])?;
    assert_eq!(plain, packed);
    assert_eq!(plain.lines().count(), 2000);
    let size = run("curl", &["-sS", "-g", "-H", "Accept-Encoding: gzip", &url])?.stdout.len();
    assert!(10 * size < plain.len(), "{size} bytes of {}", plain.len());
    server.stop()
}

#[test]
fn credentials() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let password = directory.path().join("password");
    std::fs::write(&password, "open sesame\n")?;
    let data_dir = directory.path().join("data");
    let server = Launch::new(&data_dir)
        .listen("0.0.0.0:0")
        .flag("http-user", "ali")
        .flag("http-password-file", &password.display().to_string())
        .flag("bearer-token", "t0ken")
        .start()?;
    let url = &format!("http://127.0.0.1:{}", server.port());
    for path in ["/api/v1/labels", "/metrics", "/", "/api/v1/export?match=m"] {
        check(url, path, &[], 401, "");
        check(url, path, &["-u", "ali:wrong"], 401, "");
        check(url, path, &["-H", "Authorization: Bearer wrong"], 401, "");
        check(url, path, &["-u", "ali:open sesame"], 200, "");
        check(url, path, &["-H", "Authorization: Bearer t0ken"], 200, "");
        check(url, path, &["-H", "Authorization: Token t0ken"], 200, "");
    }
    let (_, headers) = curl(&["-i", &format!("{url}/metrics")])?;
    assert!(headers.to_ascii_lowercase().contains("www-authenticate: basic"), "{headers}");
    check(url, "/write", &["-d", "m v=1"], 401, "");
    check(url, "/write?u=ali&p=open%20sesame", &["-d", "m v=1"], 204, "");
    check(url, "/-/healthy", &[], 200, "");
    check(url, "/api/v1/status/flags", &["-u", "ali:open sesame"], 200, "<hidden>");
    server.stop()
}

#[test]
fn pages_of_other_sites_change_nothing() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let delete = "/api/v1/admin/tsdb/delete_series?match=m_v";
    for path in ["/write", delete] {
        check(server.url(), path, &["-d", "m v=1", "-H", "Origin: http://evil.example"], 403, "");
    }
    server.stop()
}

#[test]
fn tls() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (cert, key) = certificate(directory.path())?;
    let data_dir = directory.path().join("data");
    let launch = Launch::new(&data_dir).flag("tls-cert", &cert).flag("tls-key", &key);
    let server = launch.start()?;
    assert!(server.url().starts_with("https://"), "{}", server.url());
    check(server.url(), "/write", &["--cacert", &cert, "-d", "m v=1"], 204, "");
    check(server.url(), "/api/v1/labels", &["--cacert", &cert, "--http2"], 200, "success");
    assert!(curl(&[&format!("{}/metrics", server.url())]).is_err(), "the certificate is its own");
    let (status, advice) = curl(&[&format!("http://{}/metrics", server.authority())])?;
    assert!(status == 400 && advice.contains("https://"), "{status} {advice}");
    server.stop()?;
    let said = launch
        .flag("tls-key", &directory.path().join("none.pem").display().to_string())
        .refusal()?;
    assert!(said.contains("none.pem"), "{said}");
    Ok(())
}

#[test]
fn what_would_be_unsafe_is_refused_at_the_start() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let data_dir = directory.path().join("data");
    let launch = Launch::new(&data_dir);
    let said = launch.clone().listen("0.0.0.0:0").refusal()?;
    assert!(said.contains("credentials") && said.contains("--allow-anonymous"), "{said}");
    let open = launch.clone().listen("0.0.0.0:0").flag("allow-anonymous", "true").start()?;
    open.stop()?;
    let said = launch.clone().flag("retention", "soon").refusal()?;
    assert!(said.contains("--retention") && said.contains("soon"), "{said}");

    let server = launch.start()?;
    let said = launch.refusal()?;
    let pid = server.pid().to_string();
    assert!(said.contains(&pid), "the pid {pid} is not in {said}");
    let verify = quipu(&["verify", "--data-dir", &data_dir.display().to_string()])?.output()?;
    let said = String::from_utf8_lossy(&verify.stderr).into_owned();
    assert!(!verify.status.success() && said.contains(&pid), "{said}");
    server.stop()
}

#[test]
fn settings_come_from_a_file_and_the_environment() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("quipu.toml");
    std::fs::write(&file, "retention = \"90d\"\n[query]\nmax-series = 7\n")?;
    let file = file.display().to_string();
    let server = Launch::new(&directory.path().join("data")).flag("config", &file).start()?;
    let flags = server.get("/api/v1/status/flags")?.data()?;
    assert_eq!(flags["retention"], "90d");
    assert_eq!(flags["query.max-series"], "7");
    server.stop()?;
    let help = String::from_utf8(quipu(&["serve", "--help"])?.output()?.stdout)?;
    for group in ["Storage:", "Network:", "Ingestion:", "Queries:", "--http-listen"] {
        assert!(help.contains(group), "{group} is not in {help}");
    }
    let version = quipu(&["--version"])?.output()?;
    assert!(version.stdout.starts_with(b"quipu "), "{version:?}");
    Ok(())
}

/// Values and times of all kinds, in several months.
fn fill(server: &Server) -> Result<()> {
    let mut body = String::new();
    for n in 0..3000_i64 {
        let nanos = 1_700_000_000_000_000_000 + n * 7_777_777_777_777;
        let value = (n as f64 - 1500.0) / 7.0;
        body.push_str(&format!("m,host=h{},odd=a\\ b v={value},i={n}i {nanos}\n", n % 17));
    }
    server.write("/write", body)?;
    let special = r#"{"metric":{"__name__":"s"},"values":["NaN:7ff0000000000002",null,"Infinity",-0,5e-324],"timestamps":[1,2,3,4,5.000001]}"#;
    server.write("/api/v1/import", special)?;
    // From a clock that is ahead.
    let soon = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() + 3600;
    server.write("/write?precision=s", format!("ahead v=1 {soon}"))
}

#[test]
fn export_and_import_carry_everything_to_another_server() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let first = Launch::new(&directory.path().join("first")).start()?;
    fill(&first)?;
    let everything = "{__name__=~\".+\"}";
    let expected = first.export(everything)?;
    assert_eq!(expected.len(), 6006);
    let file = directory.path().join("export.jsonl").display().to_string();
    let export = quipu(&["export", "--url", first.url(), "--output", &file])?.output()?;
    ensure!(export.status.success(), "{}", String::from_utf8_lossy(&export.stderr));

    let data_dir = directory.path().join("second");
    let second = Launch::new(&data_dir).start()?;
    let import = quipu(&["import", "--url", second.url(), &file])?.output()?;
    ensure!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
    assert_eq!(second.export(everything)?, expected);
    second.stop()?;
    let verify = quipu(&["verify", "--data-dir", &data_dir.display().to_string()])?.output()?;
    let said = String::from_utf8_lossy(&verify.stdout);
    assert!(verify.status.success() && said.contains("no problems"), "{said}");
    let second = Launch::new(&data_dir).start()?;
    assert_eq!(second.export(everything)?, expected, "after a restart");
    second.stop()?;
    damage(&data_dir)?;
    let verify = quipu(&["verify", "--data-dir", &data_dir.display().to_string()])?.output()?;
    let said = String::from_utf8_lossy(&verify.stdout);
    assert!(verify.status.code() == Some(1) && said.contains("problem: "), "{said}");
    first.stop()
}

/// Turns one bit in the middle of the largest file.
fn damage(data_dir: &Path) -> Result<()> {
    let mut folders = vec![data_dir.to_path_buf()];
    let mut largest = (0, data_dir.to_path_buf());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let size = entry.metadata()?.len();
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if largest.0 < size {
                largest = (size, entry.path());
            }
        }
    }
    let mut bytes = std::fs::read(&largest.1)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&largest.1, bytes)?;
    println!("damaged {}", largest.1.display());
    Ok(())
}
