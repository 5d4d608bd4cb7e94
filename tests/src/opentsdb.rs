//! A server that answers as OpenTSDB 2.4 does where `quipu migrate` asks: suggest, query without aggregation
//! and lookup, with its errors and its limit on data points. It was written beside a real one on HBase, whose
//! answers it repeats.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

/// A series: its metric, and its tags.
pub type Series = (String, BTreeMap<String, String>);

/// What it has.
#[derive(Clone, Debug, Default)]
pub struct Database {
    /// Milliseconds, and numbers as JSON has them.
    pub points: BTreeMap<Series, BTreeMap<i64, Value>>,
    /// Data points of a query at most (`tsd.query.limits.data_points.default`).
    pub points_max: usize,
    /// Whether it keeps a table of series.
    pub has_meta: bool,
    /// Metrics whose names are there alone.
    pub names: Vec<String>,
    /// What stands behind the series of every answer.
    pub adds: Vec<Value>,
    /// Bodies of queries, as they came.
    pub asked: Vec<String>,
}

impl Database {
    /// Adds a point.
    pub fn put(&mut self, metric: &str, tags: &[(&str, &str)], millis: i64, value: Value) {
        let tags = tags.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let series = (metric.to_string(), tags.collect());
        self.points.entry(series).or_default().insert(millis, value);
    }

    /// The number of a series.
    fn tsuid(&self, series: &Series) -> String {
        let at = self.points.keys().position(|one| one == series).unwrap_or_default();
        format!("{at:012X}")
    }

    fn suggest(&self, path: &str) -> (u16, Value) {
        let max = path.split("max=").nth(1).and_then(|text| text.parse().ok()).unwrap_or(25);
        let own = self.points.keys().map(|(metric, _)| metric).chain(&self.names);
        let all: BTreeSet<&String> = own.collect();
        (200, all.into_iter().take(max).cloned().collect())
    }

    fn look_up(&self, asked: &Value) -> (u16, Value) {
        let found = self.points.keys().filter(|(metric, _)| asked["metric"] == metric.as_str());
        let result = |series: &Series| json!({"tsuid": self.tsuid(series), "metric": series.0, "tags": series.1});
        let mut results: Vec<Value> = found.map(result).collect();
        match asked["useMeta"] == true {
            true if !self.has_meta => results.clear(),
            true => {}
            // A row for each hour.
            false => results.extend(results.clone()),
        }
        let limit = asked["limit"].as_u64().unwrap_or(25) as usize;
        results.truncate(limit);
        (
            200,
            json!({"type": "LOOKUP", "startIndex": 0, "totalResults": results.len(), "results": results}),
        )
    }

    fn query(&self, path: &str, asked: &Value) -> (u16, Value) {
        let time = |name: &str| asked[name].as_i64().unwrap_or(-1);
        let (start, end) = (time("start"), time("end"));
        if start < 0 || end <= start {
            return failure(400, &format!("Invalid time: {start} to {end}"));
        }
        let (mut series, mut count) = (Vec::new(), 0);
        for query in asked["queries"].as_array().into_iter().flatten() {
            let numbers: Vec<&str> = query["tsuids"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let name = query["metric"].as_str().unwrap_or_default();
            let is_known = self.points.keys().any(|(metric, _)| metric == name);
            if numbers.is_empty() && !is_known {
                return failure(400, &format!("No such name for 'metrics': '{name}'"));
            }
            for (one, points) in &self.points {
                let is_asked = match numbers.is_empty() {
                    true => one.0 == name,
                    false => numbers.contains(&self.tsuid(one).as_str()),
                };
                let points: Vec<(&i64, &Value)> = points.range(start..=end).collect();
                if is_asked && !points.is_empty() {
                    count += points.len();
                    series.push(answered(one, &points, path.contains("arrays=true")));
                }
            }
        }
        match count <= self.points_max {
            true => (200, series.into_iter().chain(self.adds.clone()).collect()),
            false => failure(
                413,
                &format!(
                    "Sorry, you have attempted to fetch more than our limit of {} data points. Please try filtering using more tags or decrease your time range.",
                    self.points_max
                ),
            ),
        }
    }
}

fn answered((metric, tags): &Series, points: &[(&i64, &Value)], as_arrays: bool) -> Value {
    let dps = match as_arrays {
        true => points.iter().map(|(at, value)| json!([at, value])).collect(),
        false => {
            let pair = |(at, value): &(&i64, &Value)| (at.to_string(), (*value).clone());
            Value::Object(points.iter().map(pair).collect::<Map<_, _>>())
        }
    };
    let note = json!({"tsuid": "", "description": "a deploy", "notes": "", "custom": {}, "startTime": 1_788_048_060, "endTime": 0});
    json!({"metric": metric, "tags": tags, "aggregateTags": [], "globalAnnotations": [note], "dps": dps})
}

fn failure(code: u16, message: &str) -> (u16, Value) {
    let trace =
        format!("net.opentsdb.tsd.BadRequestException: {message}\n\tat net.opentsdb.tsd.QueryRpc");
    (code, json!({"error": {"code": code, "message": message, "details": message, "trace": trace}}))
}

/// Starts it; its URL. What it has may be changed at any time.
///
/// # Errors
/// When there is no port.
pub fn start_opentsdb(database: Arc<Mutex<Database>>) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    spawn(move || {
        for stream in listener.incoming().flatten() {
            // Whoever leaves in the middle is no reason to end.
            let _ = answer(stream, &database);
        }
    });
    Ok(url)
}

fn answer(mut stream: TcpStream, database: &Mutex<Database>) -> Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        head.push(line.to_lowercase());
    }
    let size = head.iter().find_map(|line| line.strip_prefix("content-length:"));
    let size: usize = size.map_or(Ok(0), |text| text.trim().parse())?;
    let mut body = vec![0; size];
    reader.read_exact(&mut body)?;
    let path = head.first().and_then(|line| line.split(' ').nth(1)).context("a path")?.to_string();
    let asked = serde_json::from_slice(&body).unwrap_or_default();
    let mut database = database.lock().map_err(|_| anyhow::anyhow!("a thread panicked"))?;
    database.asked.push(String::from_utf8_lossy(&body).into_owned());
    let (code, answer) = match path.split('?').next() {
        Some("/api/suggest") => database.suggest(&path),
        Some("/api/search/lookup") => database.look_up(&asked),
        Some("/api/query") => database.query(&path, &asked),
        _ => failure(404, "Endpoint not found"),
    };
    let text = answer.to_string();
    let size = text.len();
    let head = format!("HTTP/1.1 {code} X\r\nConnection: close\r\nContent-Length: {size}\r\n\r\n");
    Ok(stream.write_all((head + &text).as_bytes())?)
}
