//! `docs/parameters.md` sent to the server: what is applied changes the answer, what is ignored does
//! not, what is refused is named.

use anyhow::{Context, Result, bail, ensure};
use e2e::{Launch, Response, Server, percent};
use std::path::Path;

/// 2024-02-29 12:00:00 UTC in seconds.
const NOON: i64 = 1_709_208_000;

/// A row of a table: paths or a header, an example, what is done with it.
struct Row {
    first: Vec<String>,
    example: String,
    treatment: String,
}

/// Code between backticks.
fn codes(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_string).collect()
}

/// The rows of all tables whose head begins with that word.
fn rows(head: &str) -> Result<Vec<Row>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/parameters.md");
    let text = std::fs::read_to_string(path)?;
    let (mut rows, mut is_table) = (Vec::new(), false);
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells.as_slice() {
            ["", first, ..] if *first == head => is_table = true,
            ["", first, ..] if first.starts_with("---") => {}
            ["", path, parameter, _, treatment, _, ""] if is_table => rows.push(Row {
                first: codes(path),
                example: codes(parameter).concat(),
                treatment: treatment.to_string(),
            }),
            ["", header, _, treatment, _, ""] if is_table => rows.push(Row {
                first: Vec::new(),
                example: codes(header).concat(),
                treatment: treatment.to_string(),
            }),
            _ => is_table = false,
        }
    }
    ensure!(!rows.is_empty(), "no table of {head}");
    Ok(rows)
}

fn start(directory: &Path) -> Result<Server> {
    let server = Launch::new(directory).start()?;
    let mut text = String::new();
    for team in ["dev", "ops"] {
        for at in 0..20 {
            let time = NOON - 600 + 30 * at;
            text += &format!("xl{{team=\"{team}\",host=\"h-{team}\"}} {at} {time}");
            text += &format!(" # {{trace_id=\"t-{team}\"}} 1 {time}\n");
            text += &format!("only_{team}{{team=\"{team}\"}} {at} {time}\n");
        }
    }
    let headers = [("Content-Type", "application/openmetrics-text; version=1.0.0")];
    let help =
        "# HELP only_dev a\n# TYPE only_dev gauge\n# HELP only_ops b\n# TYPE only_ops gauge\n";
    ensure!(
        server.post_with("/api/v1/import/prometheus", &headers, text + "# EOF\n")?.status == 204
    );
    ensure!(server.post("/api/v1/import/prometheus", help)?.status == 204);
    server.write("/write", format!("cpu v=1 {NOON}000000000"))?;
    server.write("/write?db=second", format!("cpu v=2 {NOON}000000000"))?;
    Ok(server)
}

/// What a path is asked with besides the example.
fn base(path: &str) -> Vec<(&'static str, &'static str)> {
    match path {
        "/api/v1/query" => vec![("query", "xl"), ("time", "1709208000")],
        "/api/v1/query_range" => {
            vec![("query", "xl"), ("start", "1709207400"), ("end", "1709208000"), ("step", "60")]
        }
        "/api/v1/query_exemplars" => vec![("query", "xl")],
        "/api/v1/series" | "/api/v1/export" | "/api/v1/export/native" => vec![("match[]", "xl")],
        "/api/v1/export/csv" => vec![("match[]", "xl"), ("format", "team,__value__")],
        "/federate" => vec![("match[]", "xl"), ("end", "1709208000")],
        "/api/v1/status/tsdb" => vec![("date", "2024-02-29")],
        "/api/v1/admin/tsdb/delete_series" => vec![("match[]", "nothing_at_all")],
        "/query" => vec![("db", "quipu"), ("q", "SELECT v FROM cpu")],
        "/api/v3/query_influxql" => vec![("db", "quipu"), ("q", "SELECT v FROM cpu")],
        "/api/v3/write_lp" => vec![("db", "third")],
        "/metrics/find" | "/metrics/expand" => vec![("query", "*")],
        "/tags/findSeries" => vec![("expr", "name=xl")],
        "/tags/autoComplete/values" => vec![("tag", "team")],
        _ => vec![],
    }
}

fn body(path: &str) -> &'static [u8] {
    match path {
        "/write" | "/api/v2/write" | "/api/v3/write_lp" => b"w v=1 1709208000000",
        "/api/v1/import/prometheus" => b"w 1",
        // An empty message, compressed.
        "/api/v1/write" => b"\0",
        "/api/v1/import" => {
            br#"{"metric":{"__name__":"w"},"values":[1],"timestamps":[1709208000000]}"#
        }
        _ => b"",
    }
}

/// Asks a path with its base, where the parameters of `more` take the place of others.
fn ask(server: &Server, place: &str, more: &[(&str, &str)]) -> Result<Response> {
    let (method, path) = place.split_once(' ').unwrap_or(("GET", place));
    let mut all: Vec<(&str, &str)> = more.to_vec();
    all.extend(base(path).into_iter().filter(|(name, _)| more.iter().all(|(own, _)| own != name)));
    let pairs = all.iter().map(|(name, value)| format!("{}={}", percent(name), percent(value)));
    let target = format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"));
    server.client().send(method, &target, &[], body(path))
}

/// The answer without what differs each time.
fn content(response: &Response) -> (u16, String) {
    (response.status, response.text())
}

fn check(server: &Server, place: &str, row: &Row) -> Result<()> {
    let (name, value) = row.example.split_once('=').context("name=value")?;
    let without = ask(server, place, &[])?;
    ensure!(without.status < 300, "{place}: {}", without.excerpt());
    let with = ask(server, place, &[(name, value)])?;
    let is_same = content(&without) == content(&with);
    match row.treatment.as_str() {
        "refused" => {
            ensure!(with.status == 400 && with.text().contains(name), "{}", with.excerpt());
        }
        "ignored" => ensure!(is_same, "{} is not {}", with.excerpt(), without.excerpt()),
        "applied" if !is_same => {}
        // It changes no answer of a server that is well: then nonsense is refused.
        "applied" => {
            let nonsense = ask(server, place, &[(name, "{nonsense")])?;
            ensure!(nonsense.status == 400, "changes nothing: {}", nonsense.excerpt());
        }
        other => bail!("{other:?} is no treatment"),
    }
    Ok(())
}

#[test]
fn parameters_are_treated_as_documented() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let mut wrong = Vec::new();
    for row in rows("path")? {
        for place in &row.first {
            if let Err(error) = check(&server, place, &row) {
                wrong.push(format!("{place} {} ({}): {error:#}", row.example, row.treatment));
            }
        }
    }
    ensure!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    server.stop()
}

#[test]
fn headers_are_treated_as_documented() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    for Row { example, treatment, .. } in rows("header")? {
        let (name, value) = example.split_once(": ").context("name: value")?;
        for path in ["/api/v1/labels", "/query?q=SHOW+DATABASES", "/metrics/find?query=*"] {
            let without = server.get(path)?;
            let with = server.client().send("GET", path, &[(name, value)], &[])?;
            match treatment.as_str() {
                "refused" => {
                    let named = with.text().contains(&name.to_ascii_lowercase());
                    ensure!(with.status == 400 && named, "{path} {example}: {}", with.excerpt());
                }
                _ => ensure!(content(&with) == content(&without), "{path}: {}", with.excerpt()),
            }
        }
        let written = server.post_with("/write", &[(name, value)], "tenant v=1")?;
        let expected = if treatment == "refused" { 400 } else { 204 };
        ensure!(written.status == expected, "{example}: {}", written.excerpt());
        let alive = server.client().send("GET", "/-/healthy", &[(name, value)], &[])?;
        ensure!(alive.status == 200, "{example}: {}", alive.excerpt());
    }
    for zero in ["AccountID", "ProjectID"] {
        let response = server.client().send("GET", "/api/v1/labels", &[(zero, "0")], &[])?;
        ensure!(response.status == 200, "{zero}: {}", response.excerpt());
    }
    server.stop()
}

#[test]
fn paths_of_tenants_are_not_there() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    for path in [
        "/select/0:1/prometheus/api/v1/query?query=xl",
        "/select/0/prometheus/api/v1/export?match[]=xl",
        "/prometheus/select/0/prometheus/api/v1/labels",
        "/select/0/graphite/metrics/find?query=*",
        "/insert/0:1/influx/write",
        "/delete/0:1/prometheus/api/v1/admin/tsdb/delete_series?match[]=xl",
    ] {
        for method in ["GET", "POST"] {
            let response = server.client().send(method, path, &[], b"tenant v=1")?;
            ensure!(response.status == 404, "{method} {path}: {}", response.excerpt());
        }
    }
    ensure!(server.export("xl")?.0.len() == 2);
    server.stop()
}
