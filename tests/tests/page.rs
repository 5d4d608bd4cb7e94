//! The page at `/`: served from the binary, asking nobody else, and it renders in a browser.

use anyhow::{Context, Result, ensure};
use e2e::{Launch, Server, is_installed, percent, run};
use std::path::Path;

#[test]
fn the_page_and_all_its_files_are_served_with_a_policy() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let page = server.get("/")?;
    assert_eq!(page.status, 200);
    assert!(page.header("content-type").starts_with("text/html"), "{:?}", page.headers);
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let html = page.text();
    let mut waiting: Vec<String> = references(&html, "/");
    assert!(3 <= waiting.len(), "{waiting:?}");
    let mut seen = Vec::new();
    while let Some(path) = waiting.pop() {
        if seen.contains(&path) {
            continue;
        }
        let file = server.get(&path)?;
        ensure!(file.status == 200 && !file.body.is_empty(), "{path}: {}", file.excerpt());
        assert_eq!(file.header("x-content-type-options"), "nosniff", "{path}");
        let text = file.text();
        if path.ends_with(".js") && !path.contains("/vendor/") {
            assert!(!text.contains("//cdn"), "{path}");
            waiting.extend(imports(&text, &path));
        }
        seen.push(path);
    }
    for foreign in ["src=\"http", "href=\"http", "src=\"//", "href=\"//", "@import"] {
        assert!(!html.contains(foreign), "the page names {foreign}");
    }
    assert_eq!(server.get("/ui/nothing.js")?.status, 404);
    assert_eq!(server.get("/ui/../Cargo.toml")?.status, 404);
    server.stop()
}

/// What `src` and `href` name, if it is ours.
fn references(html: &str, start: &str) -> Vec<String> {
    let after = html.split("src=\"").skip(1).chain(html.split("href=\"").skip(1));
    let paths = after.filter_map(|rest| rest.split('"').next());
    paths.filter(|path| path.starts_with(start) && *path != "/").map(str::to_string).collect()
}

/// The modules that a module imports, as paths of the server.
fn imports(script: &str, path: &str) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let named = script.lines().filter_map(|line| {
        let (_, rest) = line.split_once(" from ").or_else(|| line.split_once("import "))?;
        let quoted = rest.trim().trim_end_matches(';').trim();
        let name = quoted.strip_prefix(['"', '\''])?.strip_suffix(['"', '\''])?;
        Some(name.to_string())
    });
    named
        .map(|name| match name.strip_prefix("./") {
            Some(rest) => format!("{folder}/{rest}"),
            None => match name.strip_prefix("../") {
                Some(rest) => {
                    let parent = folder.rsplit_once('/').map_or("", |(parent, _)| parent);
                    format!("{parent}/{rest}")
                }
                None => name,
            },
        })
        .collect()
}

/// What a browser shows at `/` with something behind `#`, once its scripts have run; `None` without
/// a browser.
fn shown(server: &Server, directory: &Path, hash: &str) -> Result<Option<String>> {
    if !is_installed("chromium") {
        println!("skipped: chromium is not installed");
        return Ok(None);
    }
    let profile = format!("--user-data-dir={}", directory.join("profile").display());
    let url = format!("{}/#{hash}", server.url());
    let arguments = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--virtual-time-budget=8000",
        profile.as_str(),
        "--dump-dom",
        url.as_str(),
    ];
    let output = run("chromium", &arguments)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "chromium: {errors}");
    assert!(!errors.contains("Refused to"), "the policy forbids something: {errors}");
    assert!(!errors.contains("Uncaught"), "{errors}");
    Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()))
}

#[test]
fn the_page_renders_in_a_browser() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    server.write("/write", "weather,city=Cusco temperature=14.5\nrain,city=Lima mm=0")?;
    // The graph's last step may be before the sample, so zero stands in for it.
    let query = percent("count(weather_temperature) or vector(0)");
    if let Some(dom) = shown(&server, directory.path(), &format!("query={query}"))? {
        assert!(dom.contains("Quipu"), "{dom}");
        // The list of the biggest metrics is filled by scripts that asked the server.
        assert!(dom.contains("weather_temperature"), "{dom}");
        assert!(dom.contains("1 series"), "the query has an answer: {dom}");
        assert!(dom.contains("nothing runs now"), "running queries were asked for: {dom}");
    }
    server.stop()
}

#[test]
fn histograms_do_not_break_the_page() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let line = r#"{"metric":{"__name__":"latency_seconds"},"histograms":[{"schema":0,"count":5,
        "sum":7.5,"positive":[[0,1],[1,4]]}],"histogram_timestamps":[TIME]}"#;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis();
    // The graph's last step may be up to half a minute ago.
    let line = line.replace("TIME", &(now - 60_000).to_string()).replace('\n', " ");
    server.write("/api/v1/import", line)?;
    if let Some(dom) = shown(&server, directory.path(), "query=latency_seconds")? {
        assert!(dom.contains("1 series") && dom.contains("drawn by their count"), "{dom}");
        assert!(dom.contains("count 5, sum 7.5"), "{dom}");
        assert!(dom.contains("2 buckets from 0.5 to 2"), "{dom}");
    }
    server.stop()
}

/// What the page says of the dialect, it says in the empty box.
fn speaks(dom: &str, title: &str) -> bool {
    dom.contains(&format!("placeholder=\"{title}, such as"))
}

#[test]
fn the_page_asks_in_the_chosen_dialect() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let query = format!("query={}", percent("alias(time(), \"clock\")"));
    let open = |more: &str| shown(&server, directory.path(), &format!("{query}{more}"));
    if let Some(dom) = open("&dialect=metricsql")? {
        assert!(speaks(&dom, "MetricsQL"), "{dom}");
        assert!(dom.contains("1 series") && dom.contains("clock</td>"), "{dom}");
        assert!(!dom.contains("Ask in"), "{dom}");
    }
    // The server's own default; the error comes with a button that switches.
    if let Some(dom) = open("")? {
        assert!(speaks(&dom, "PromQL"), "{dom}");
        assert!(dom.contains("ask with dialect=metricsql"), "{dom}");
        assert!(dom.contains("value=\"metricsql\">Ask in MetricsQL</button>"), "{dom}");
    }
    server.stop()
}

#[test]
fn the_servers_default_is_the_pages() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("query.dialect", "metricsql").start()?;
    if let Some(dom) = shown(&server, directory.path(), "query=vector(1)")? {
        assert!(speaks(&dom, "MetricsQL"), "{dom}");
    }
    server.stop()
}

#[test]
fn completion_has_no_list_of_functions_of_its_own() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let script = server.get("/ui/src/completion.js")?.text();
    assert!(script.contains("functions(dialect)"), "{script}");
    for dialect in ["promql", "metricsql"] {
        let list = server.get(&format!("/api/v1/functions?dialect={dialect}"))?.data()?;
        let rows = list.as_array().context("a list")?;
        let names = rows.iter().filter_map(|row| row["name"].as_str());
        for name in names.filter(|name| name.contains('_')) {
            assert!(!script.contains(name), "{name} is written into the page");
        }
    }
    server.stop()
}
