//! `quipu export` in the formats of others, read by those others: promtool, Prometheus, VictoriaMetrics,
//! and a second Quipu. Values and names are ugly on purpose.

use anyhow::{Context, Result, ensure};
use e2e::answers::Export;
use e2e::launch::quipu;
use e2e::programs::run;
use e2e::{Client, Launch, Program, Prometheus, Server, free_port, poll};
use random::Random;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
/// 2026-08-30 00:00:00 UTC in milliseconds.
const START: i64 = 1_788_048_000_000;
/// Series that have one sample.
const SINGLES: i64 = 10_000;

/// What the command said.
struct Said {
    code: i32,
    stdout: Vec<u8>,
    stderr: String,
}

fn export(server: &Server, arguments: &[&str]) -> Result<Said> {
    let mut command = quipu(&["export"])?;
    let output = command.args(arguments).args(["--url", server.url()]).output()?;
    let code = output.status.code().context("a signal")?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(Said { code, stdout: output.stdout, stderr })
}

fn must(server: &Server, arguments: &[&str]) -> Result<Said> {
    let said = export(server, arguments)?;
    ensure!(said.code == 0, "{arguments:?}: {}", said.stderr);
    Ok(said)
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A line of JSON.
fn line(metric: Value, values: Vec<Value>, times: Vec<i64>) -> String {
    format!("{}\n", json!({ "metric": metric, "values": values, "timestamps": times }))
}

/// Numbers, of which some are none.
fn any_value(random: &mut Random) -> Value {
    match random.below(12) {
        0 => json!("Infinity"),
        1 => json!("-Infinity"),
        2 => Value::Null,
        3 => json!("NaN:7ff0000000000002"),
        4 => json!(1e300),
        5 => json!(-1.25e-7),
        6 => json!(random.next() >> 12),
        _ => json!(random.below(100_000) as f64 / 100.0),
    }
}

/// Writes history: series of some thousand samples over three days, ugly labels, long texts, one sample a
/// series, times before 1970.
fn fill(server: &Server, seed: u64) -> Result<()> {
    let mut random = Random::seeded(seed);
    let mut lines = String::new();
    let long = "x".repeat(3000);
    let ugly = [
        json!({"__name__": "temp_celsius", "host": "a b,c=d", "quoted": "\"\\x\""}),
        json!({"__name__": "temp_celsius", "host": "é\u{1F600}", "lines": "a\nb"}),
        json!({"__name__": "temp_celsius", "host": "trailing\\", "empty": ""}),
        json!({"__name__": "long:name_total", "long": long}),
        json!({"__name__": "plain"}),
        json!({"__name__": "plain", "a": "\u{1}\u{2}\u{7f}"}),
    ];
    for metric in ugly {
        let mut at = START - 3 * 86_400_000 + random.below(60_000) as i64;
        let (mut values, mut times) = (Vec::new(), Vec::new());
        for _ in 0..2000 {
            at += 1 + random.below(260_000) as i64;
            values.push(any_value(&mut random));
            times.push(at);
        }
        lines += &line(metric, values, times);
    }
    for single in 0..SINGLES {
        let metric = json!({"__name__": "single", "id": format!("{single}")});
        lines += &line(metric, vec![json!(single)], vec![START + single]);
    }
    let before = json!({"__name__": "before_1970", "job": "x"});
    lines += &line(before, vec![json!(1), json!(2.5)], vec![-86_400_001, -5]);
    let answer = server.post("/api/v1/import", lines)?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    // What things are is known by exposition text alone.
    let text = "# HELP temp_celsius How \"warm\"\n# TYPE temp_celsius gauge\n# UNIT temp_celsius celsius\n\
                # TYPE long:name counter\n# EOF\n";
    let headers = [("content-type", "application/openmetrics-text; version=1.0.0")];
    let answer = server.post_with("/api/v1/import/prometheus", &headers, text)?;
    ensure!(answer.status < 300, "{}", answer.excerpt());
    Ok(())
}

/// Histograms with whole counts and others, beside numbers of the same series.
fn fill_histograms(server: &Server) -> Result<()> {
    let mut lines = String::new();
    for (name, unit) in [("whole_seconds", 1.0), ("half_seconds", 0.5)] {
        let histogram = |at: i64| {
            let count = |of: i64| json!((of * at) as f64 * unit);
            json!({"schema": 2, "zero_threshold": 0.001, "zero_count": count(1), "count": count(10),
                "sum": at as f64 * 2.5, "positive": [[-1, count(2)], [0, count(3)], [5, count(1)]],
                "negative": [[2, count(3)]]})
        };
        let all: Vec<Value> = (1..400).map(histogram).collect();
        let times: Vec<i64> = (1..400).map(|at| START + at * 15_000).collect();
        let metric = json!({"__name__": name, "job": "h"});
        let line = json!({"metric": metric, "histograms": all, "histogram_timestamps": times});
        lines += &format!("{line}\n");
    }
    let floats = (0..130).map(|at| json!(at)).collect();
    let times = (0..130).map(|at| START - 3_000_000 + at * 15_000).collect();
    lines += &line(json!({"__name__": "whole_seconds", "job": "h"}), floats, times);
    let answer = server.post("/api/v1/import", lines)?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    Ok(())
}

/// Samples by series and time, as bits of their numbers; NaNs are one but for markers of an end.
type Samples = BTreeMap<(String, i64), u64>;

fn bits(value: &str) -> Result<u64> {
    Ok(match value {
        "null" => f64::NAN.to_bits(),
        "\"NaN:7ff0000000000002\"" => 0x7ff0_0000_0000_0002,
        "\"Infinity\"" => f64::INFINITY.to_bits(),
        "\"-Infinity\"" => f64::NEG_INFINITY.to_bits(),
        number => number.parse::<f64>().with_context(|| number.to_string())?.to_bits(),
    })
}

/// All numbers of an export in JSON lines.
fn samples(text: &str) -> Result<Samples> {
    let mut found = Samples::new();
    for line in text.lines() {
        let one: Value = serde_json::from_str(line)?;
        let labels = e2e::answers::labels(&one["metric"]);
        let (Some(values), Some(times)) = (one["values"].as_array(), one["timestamps"].as_array())
        else {
            continue;
        };
        for (value, time) in values.iter().zip(times) {
            let time = time.as_i64().context("a time with fractions")?;
            found.insert((labels.clone(), time), bits(&value.to_string())?);
        }
    }
    Ok(found)
}

fn all_of(server: &Server) -> Result<Samples> {
    let answer = server.get("/api/v1/export?match[]=%7B__name__!%3D%22%22%7D&start=-1000000")?;
    let mut found = samples(&answer.text())?;
    // What the server measures of itself goes on while the test runs.
    found.retain(|(labels, _), _| !labels.contains("quipu_"));
    Ok(found)
}

fn start(directory: &Path) -> Result<Server> {
    Launch::new(directory).flag("self-scrape-interval", "0s").start()
}

fn promtool(arguments: &[&str]) -> Result<String> {
    let output = run("promtool", arguments)?;
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "promtool {arguments:?}: {out}{error}");
    Ok(out.into_owned())
}

/// What `promtool tsdb dump` prints of a directory: labels, a number and a time in each line.
fn dumped(directory: &Path) -> Result<Samples> {
    let text = promtool(&["tsdb", "dump", &shown(directory)])?;
    let mut found = Samples::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let (labels, rest) = line.rsplit_once("} ").with_context(|| line.to_string())?;
        let (value, time) = rest.split_once(' ').with_context(|| line.to_string())?;
        let Ok(number) = value.parse::<f64>() else { continue };
        let labels = format!("{labels}}}");
        let labels = plain(&labels).with_context(|| labels.clone())?;
        found.insert((labels, time.parse()?), if number.is_nan() { f64::NAN.to_bits() } else { number.to_bits() });
    }
    Ok(found)
}

/// Labels as promtool prints them, as the tests' other labels are.
fn plain(text: &str) -> Result<String> {
    let mut map = serde_json::Map::new();
    let mut rest = text.trim_start_matches('{').trim_end_matches('}');
    while !rest.is_empty() {
        let (name, behind) = rest.split_once('=').context("no =")?;
        let end = closing(behind).context("no closing quote")?;
        map.insert(name.trim_start_matches(", ").to_string(), json!(unquoted(&behind[1..end])?));
        rest = &behind[end + 1..];
    }
    Ok(e2e::answers::labels(&Value::Object(map)))
}

/// Where a text in quotes ends.
fn closing(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().skip(1).find_map(|(at, letter)| {
        let ends = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        ends.then_some(at)
    })
}

/// A text as Go quotes it.
fn unquoted(text: &str) -> Result<String> {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        let mut hex = |count: usize| -> Result<char> {
            let digits: String = letters.by_ref().take(count).collect();
            char::from_u32(u32::from_str_radix(&digits, 16)?).context("no letter")
        };
        match text_after(&mut hex, out.len()) {
            () => {}
        }
        let _ = hex;
        match letters.next().context("a backslash at the end")? {
            'n' => out.push('\n'),
            'x' => {
                let digits: String = letters.by_ref().take(2).collect();
                out.push(char::from(u8::from_str_radix(&digits, 16)?));
            }
            other => out.push(other),
        }
    }
    Ok(out)
}
