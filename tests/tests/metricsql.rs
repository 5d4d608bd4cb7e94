//! MetricsQL over HTTP: answers, what may be left out, hints, errors, layouts and limits.
//!
//! Series and many of the right answers are those of `testdata/metricsql/answers.test`, which
//! VictoriaMetrics gave; the engine's own tests run all of that file.

use anyhow::{Context, Result, ensure};
use e2e::{Launch, Matrix, Response, Server, Vector, percent};
use serde_json::{Value, json};
use std::path::Path;

/// Second 0 of the script: 2024-02-29 12:00:00 UTC.
const BASE: i64 = 1_709_208_000;
/// The script's samples are so many seconds apart.
const INTERVAL: i64 = 15;

/// Expressions of the script that stand for what the language has.
const INSTANT: &[&str] = &[
    "gauge{job=\"api\" or instance=\"2\"}",
    "gauge offset 5m",
    "sum(gauge) offset 3m",
    "rate(requests_total)",
    "lonely default 7",
    "gappy default 0",
    "gauge ifnot (lonely > 20)",
    "WITH (x = gauge{job=\"api\"}) x + x",
    "WITH (f(a, b) = a / (a + b)) f(gauge, requests_total)",
    "WITH (w = 5m) rate(requests_total[w])",
    "count_values(\"v\", state)",
    "topk_avg(2, gauge, \"job=others\")",
    "clamp_min(gauge, 20) keep_metric_names",
    "range_avg(gauge)",
];
const RANGE: &[&str] = &[
    "gauge",
    "gauge @ end()",
    "{__name__=~\"ga.+\",job!=\"db\"}",
    "sum(gauge) @ (end() - 60)",
    "rate(requests_total)",
    "lonely default 7",
];

fn script() -> Result<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/metricsql/answers.test");
    std::fs::read_to_string(path).context(path)
}

/// `name{a="1"} 2 3` is the labels and the numbers; samples have no spaces in their labels.
fn series(line: &str) -> (String, Vec<&str>) {
    let end = line.rfind('}').map_or_else(|| line.find(' ').unwrap_or(line.len()), |at| at + 1);
    let (labels, numbers) = line.split_at(end);
    let braces = if labels.contains('{') { "" } else { "{}" };
    (format!("{labels}{braces}"), numbers.split_whitespace().collect())
}

/// The script's series as JSON lines.
fn samples(script: &str) -> String {
    let block = script.lines().skip_while(|line| !line.starts_with("load ")).skip(1);
    let mut lines = String::new();
    for line in block.take_while(|line| line.starts_with("  ")) {
        let (labels, numbers) = series(line.trim());
        let (name, rest) = labels.split_once('{').unwrap_or((&labels, ""));
        let mut metric = json!({ "__name__": name });
        for pair in rest.trim_end_matches('}').split(',').filter(|pair| !pair.is_empty()) {
            let (label, value) = pair.split_once('=').unwrap_or((pair, ""));
            metric[label] = json!(value.trim_matches('"'));
        }
        let (mut values, mut timestamps) = (Vec::new(), Vec::new());
        for (at, number) in numbers.iter().enumerate().filter(|(_, number)| **number != "_") {
            values.push(number.parse::<f64>().expect("a number"));
            timestamps.push((BASE + INTERVAL * at as i64) * 1000);
        }
        let line = json!({ "metric": metric, "values": values, "timestamps": timestamps });
        lines.push_str(&format!("{line}\n"));
    }
    lines
}

/// The lines below a line of the script.
fn answer<'a>(script: &'a str, head: &str) -> Result<Vec<&'a str>> {
    let mut lines = script.lines().skip_while(|line| *line != head).skip(1).peekable();
    ensure!(lines.peek().is_some(), "the script has no {head:?}");
    Ok(lines.take_while(|line| line.starts_with("  ")).map(str::trim).collect())
}

fn start(directory: &Path, dialect: &str) -> Result<Server> {
    let server = Launch::new(directory).flag("query.dialect", dialect).start()?;
    let answer = server.post("/api/v1/import", samples(&script()?))?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    Ok(server)
}

fn instant_path(query: &str, at: i64) -> String {
    format!("/api/v1/query?dialect=metricsql&time={}&query={}", BASE + at, percent(query))
}

fn instant(server: &Server, query: &str, at: i64) -> Result<Vector> {
    server.get(&instant_path(query, at))?.vector().context(query.to_string())
}

fn range(server: &Server, query: &str, start: i64, end: i64, step: i64) -> Result<Matrix> {
    let (start, end, query) = (BASE + start, BASE + end, percent(query));
    let grid = format!("start={start}&end={end}&step={step}");
    server.get(&format!("/api/v1/query_range?dialect=metricsql&{grid}&query={query}"))?.matrix()
}

#[track_caller]
fn assert_close(found: &str, expected: &str, query: &str) {
    let [found, expected] = [found, expected].map(|text| text.parse::<f64>().expect("a number"));
    let scale = expected.abs().max(1.0);
    assert!((found - expected).abs() <= 1e-12 * scale, "{query}: {found}, not {expected}");
}

#[test]
fn instant_answers_are_those_of_victoriametrics() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path(), "promql")?;
    let script = script()?;
    for query in INSTANT {
        let found = instant(&server, query, 25 * 60)?;
        let expected = answer(&script, &format!("eval instant at 25m {query}"))?;
        assert_eq!(found.len(), expected.len(), "{query}: {found:?}");
        for (labels, numbers) in expected.into_iter().map(series) {
            let value = found.get(&labels).with_context(|| format!("{query}: no {labels}"))?;
            assert_close(value, numbers[0], query);
        }
    }
    server.stop()
}

#[test]
fn range_answers_are_those_of_victoriametrics() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path(), "promql")?;
    let script = script()?;
    for query in RANGE {
        let found = range(&server, query, 600, 1800, 120)?;
        let head = format!("eval range from 600s to 1800s step 120s {query}");
        let expected = answer(&script, &head)?;
        assert_eq!(found.len(), expected.len(), "{query}: {found:?}");
        for (labels, numbers) in expected.into_iter().map(series) {
            let points = found.get(&labels).with_context(|| format!("{query}: no {labels}"))?;
            let there: Vec<(i64, &str)> = (0i64..)
                .map(|step| (BASE + 600 + 120 * step) * 1000)
                .zip(numbers)
                .filter(|(_, number)| *number != "_")
                .collect();
            assert_eq!(points.len(), there.len(), "{query} {labels}: {points:?}");
            for ((at, value), (expected_at, expected)) in points.iter().zip(there) {
                assert_eq!(*at, expected_at, "{query} {labels}");
                assert_close(value, expected, query);
            }
        }
    }
    server.stop()
}

/// A counter that grows by 3 in each quarter of a minute, and what follows from that.
#[test]
fn answers_that_can_be_reasoned_out() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let mut lines = String::new();
    for (host, step) in [("a", 3), ("b", 6)] {
        for at in 0..=40 {
            lines += &format!("c,host={host} v={} {}\n", step * at, BASE + INTERVAL * at);
        }
    }
    server.write("/write?precision=s", lines)?;
    let check = |query: &str, expected: &[(&str, &str)]| -> Result<()> {
        let expected: Vector = expected
            .iter()
            .map(|(labels, value)| (labels.to_string(), value.to_string()))
            .collect();
        assert_eq!(instant(&server, query, 600)?, expected, "{query}");
        Ok(())
    };
    check("increase(c_v[1m])", &[("{host=\"a\"}", "12"), ("{host=\"b\"}", "24")])?;
    check("sum(increase(c_v[1m])) / 2", &[("{}", "18")])?;
    check("rate(c_v{host=\"a\"}[4i]) > 0", &[("{host=\"a\"}", "0.2")])?;
    check("c_v{host=\"a\" or host=\"none\"}", &[("c_v{host=\"a\"}", "120")])?;
    check("alias(max(c_v), \"most\")", &[("most{}", "240")])?;
    check("label_set(max(c_v), \"a\", \"1\") + 1Ki", &[("{a=\"1\"}", "1264")])?;
    check("sum(c_v) by (host) limit 1", &[("{host=\"a\"}", "120")])?;
    check(
        "share(c_v)",
        &[("c_v{host=\"a\"}", "0.3333333333333333"), ("c_v{host=\"b\"}", "0.6666666666666666")],
    )?;
    check("nothing default 5", &[("{}", "5")])?;
    server.stop()
}

#[test]
fn the_dialect_can_be_the_servers() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path(), "metricsql")?;
    let query = percent("sum(gauge) default 0");
    let path = |more: &str| format!("/api/v1/query?time={}&query={query}{more}", BASE + 1500);
    assert_eq!(server.get(&path(""))?.vector()?.len(), 1);
    assert_eq!(server.get(&path("&dialect=promql"))?.status, 400);
    let bad = server.get(&path("&dialect=sql"))?;
    ensure!(bad.status == 400 && bad.text().contains("promql or metricsql"), "{}", bad.excerpt());
    let list = server.get("/api/v1/functions")?.json()?;
    assert_eq!(list["dialect"], "metricsql");
    server.stop()
}

#[test]
fn what_is_left_out_has_the_defaults_of_victoriametrics() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    server.write("/write", "now v=7")?;
    // The last five minutes in one step: two points.
    let path = "/api/v1/query_range?query=count(now_v)%20default%200";
    let found = server.get(&format!("{path}&dialect=metricsql"))?.matrix()?;
    let points = found.get("{}").context("a series")?;
    assert_eq!(points.len(), 2, "{points:?}");
    assert_eq!(points[1].0 - points[0].0, 300_000);
    assert_eq!(points[0].1, "0");
    // Prometheus wants all three.
    let strict = server.get("/api/v1/query_range?query=now_v&dialect=promql")?;
    ensure!(strict.status == 400 && strict.text().contains("start"), "{}", strict.excerpt());
    server.stop()
}

fn error(response: &Response) -> Result<String> {
    let answer = response.json()?;
    ensure!(answer["status"] == "error", "{}", response.excerpt());
    Ok(answer["error"].as_str().context("error")?.to_string())
}

#[test]
fn errors_say_what_and_where() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path(), "promql")?;
    // PromQL refuses what MetricsQL knows, and says so; what neither knows has no such hint.
    for (query, has_hint) in [("gauge default 0", true), ("WITH (x = 1) x", true), ("sum(", false)]
    {
        let refused = server.get(&format!("/api/v1/query?query={}", percent(query)))?;
        assert_eq!(refused.status, 400, "{query}");
        let text = error(&refused)?;
        assert!(text.contains("parse error"), "{text}");
        assert_eq!(text.contains("ask with dialect=metricsql"), has_hint, "{text}");
    }
    for (query, place) in [("sum(gauge", "1:"), ("gauge +\n nope(1)", "2:2"), ("gauge{a=}", "1:")] {
        let refused = server.get(&instant_path(query, 600))?;
        assert_eq!(refused.status, 400, "{query}");
        let text = error(&refused)?;
        assert!(text.contains(place) && text.contains("parse error"), "{text}");
    }
    server.stop()
}

#[test]
fn templates_are_expanded_and_queries_laid_out() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let written = "WITH (x = rate(m{a=\"1\" or b=\"2\"}[5m])) x/sum(x)";
    let query = percent(written);
    let expanded = server.get(&format!("/expand-with-exprs?query={query}"))?.json()?;
    let half = "rate(m{a=\"1\" or b=\"2\"}[5m])";
    assert_eq!(expanded["expr"], format!("{half} / sum({half})"), "{expanded}");
    let pretty = server.get(&format!("/prettify-query?dialect=metricsql&query={query}"))?.json()?;
    assert_eq!(pretty["status"], "success", "{pretty}");
    let text = pretty["query"].as_str().context("query")?;
    assert!(text.starts_with("WITH (") && text.contains("x / sum(x)"), "{text}");
    let again = server
        .get(&format!("/prettify-query?dialect=metricsql&query={}", percent(text)))?
        .json()?;
    assert_eq!(again["query"], text);
    let formatted =
        server.get(&format!("/api/v1/format_query?dialect=metricsql&query={query}"))?.data()?;
    assert_eq!(formatted, text);
    assert_eq!(server.get(&format!("/prettify-query?query={query}"))?.status, 400);
    server.stop()
}

#[test]
fn a_subquery_of_too_many_points_is_refused_at_once() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path(), "promql")?;
    let refused = server.get(&instant_path("sum_over_time(rate(gauge)[10y:1ms])", 600))?;
    assert_eq!(refused.status, 422, "{}", refused.excerpt());
    let text = error(&refused)?;
    assert!(text.contains("points, the limit is"), "{text}");
    server.stop()
}

#[test]
fn every_function_is_listed() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    for (dialect, count, some) in [
        ("promql", 80, ["rate", "topk", "label_join"].as_slice()),
        ("metricsql", 229, ["rate", "topk_avg", "label_set", "alias"].as_slice()),
    ] {
        let list = server.get(&format!("/api/v1/functions?dialect={dialect}"))?.json()?;
        assert_eq!(list["dialect"], dialect);
        let rows = list["data"].as_array().context("data")?;
        assert!(count <= rows.len(), "{dialect}: {}", rows.len());
        for name in some {
            let row = rows.iter().find(|row| row["name"] == **name).context(name.to_string())?;
            for field in ["kind", "usage", "doc", "example"] {
                assert!(row[field].as_str().is_some_and(|text| !text.is_empty()), "{row}");
            }
        }
        // That each gives its answer is a test of the engine; here, that a list's text can be asked.
        let is_known = |row: &&Value| row["experimental"] == false;
        for row in rows.iter().filter(is_known).step_by(7) {
            let example = percent(row["example"].as_str().context("example")?);
            let path = format!("/api/v1/query?dialect={dialect}&time=90000&query={example}");
            let found = server.get(&path)?;
            ensure!(found.status == 200, "{row}: {}", found.excerpt());
        }
    }
    server.stop()
}
