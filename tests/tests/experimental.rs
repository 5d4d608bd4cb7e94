//! `--query.experimental-functions` end to end: one expression of each kind, on and off.

use anyhow::Result;
use e2e::{Launch, Server, percent};
use serde_json::Value;

/// 2024-02-29 12:00:00 UTC.
const NOON: i64 = 1_709_208_000;

/// A counter that grows by 2 a second, a gauge of one host, histograms, and what an info metric says.
fn fill(server: &Server) -> Result<()> {
    let mut lines = String::new();
    for step in 0..=12 {
        let at = NOON + 10 * step;
        lines += &format!("hits_total{{instance=\"i\",job=\"j\"}} {} {at}000\n", 20 * step);
        lines += &format!("target_info{{instance=\"i\",job=\"j\",zone=\"z\"}} 1 {at}000\n");
        for (le, count) in [("1", 5), ("2", 10), ("+Inf", 10)] {
            lines += &format!("time_bucket{{le=\"{le}\"}} {count} {at}000\n");
        }
        for (side, instance) in [("left", "a"), ("left", "b"), ("right", "a")] {
            lines += &format!("{side}{{instance=\"{instance}\"}} 1 {at}000\n");
        }
    }
    let answer = server.post("/api/v1/import/prometheus", lines)?;
    assert_eq!(answer.status, 204, "{}", answer.excerpt());
    Ok(())
}

/// At 12:01:05, between two samples: expression, and series with values as they are answered.
const CASES: &[(&str, &[&str])] = &[
    // smoothed and anchored selectors
    ("hits_total smoothed", &["hits_total i j 130"]),
    ("increase(hits_total[30s] smoothed)", &["i j 60"]),
    ("increase(hits_total[30s] anchored)", &["i j 60"]),
    // fill modifiers
    ("left + fill(5) right", &["a 2", "b 6"]),
    ("left + right", &["a 2"]),
    // info()
    ("info(hits_total)", &["hits_total i j z 120"]),
    // several quantiles at once
    ("histogram_quantiles(time_bucket, \"q\", 0.5, 0.75)", &["0.5 1", "0.75 1.5"]),
    // calculated durations
    ("count_over_time(hits_total[2 * 15s])", &["i j 3"]),
    ("count_over_time(hits_total[max_of(10s, 40s)] offset (10s + 5s))", &["i j 4"]),
    // an aggregation, a function
    ("count(limitk(1, left))", &["1"]),
    ("mad_over_time(hits_total[30s])", &["i j 20"]),
];

/// Values of labels, by label, and the sample's.
fn shown(data: &Value) -> Vec<String> {
    let one = |series: &Value| {
        let labels = series["metric"].as_object().into_iter().flatten();
        let mut words: Vec<String> =
            labels.filter_map(|(_, value)| value.as_str()).map(str::to_string).collect();
        words.push(series["value"][1].as_str().unwrap_or("no value").to_string());
        words.join(" ")
    };
    let mut all: Vec<String> = data["result"].as_array().into_iter().flatten().map(one).collect();
    all.sort();
    all
}

fn path(query: &str) -> String {
    format!("/api/v1/query?query={}&time={}", percent(query), NOON + 65)
}

#[test]
fn one_expression_of_each_kind() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server =
        Launch::new(directory.path()).flag("query.experimental-functions", "true").start()?;
    fill(&server)?;
    for (query, expected) in CASES {
        assert_eq!(shown(&server.get(&path(query))?.data()?), *expected, "{query}");
    }
    // A range query's step is known to it.
    let range = format!("&start={NOON}&end={}&step=20", NOON + 60);
    let query = percent("count_over_time(hits_total[2 * step()])");
    let data = server.get(&format!("/api/v1/query_range?query={query}{range}"))?.data()?;
    assert_eq!(data["result"][0]["values"][3][1], "4", "{data}");
    let tree = server.get("/api/v1/parse_query?query=up%20smoothed")?.data()?;
    assert_eq!(tree["smoothed"], true);
    server.stop()?;

    let server = Launch::new(directory.path()).start()?;
    // Prometheus calls calculated durations experimental no more.
    let is_plain =
        |query: &str| query == "left + right" || query.starts_with("count_over_time(hits_total[");
    for (query, expected) in CASES.iter().filter(|(query, _)| is_plain(query)) {
        assert_eq!(shown(&server.get(&path(query))?.data()?), *expected, "{query}");
    }
    for (query, _) in CASES.iter().filter(|(query, _)| !is_plain(query)) {
        let answer = server.get(&path(query))?;
        assert_eq!(answer.status, 400, "{query}: {}", answer.excerpt());
        assert!(answer.text().contains("experimental"), "{query}: {}", answer.excerpt());
    }
    server.stop()
}
