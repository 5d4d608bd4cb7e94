//! `--legacy`: old samples of a real VictoriaMetrics and a real Prometheus in answers of a Quipu that
//! has some of them already, compared with a Quipu that has all.

use anyhow::{Context, Result, ensure};
use e2e::victoria::start_victoria;
use e2e::{Client, Launch, Prometheus, Response, Server, free_port, percent, poll};
use histogram::{Bucket, Histogram, ResetHint};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wire::remote_write::encode::{MillisSample, RequestV1};
use wire::remote_write::encode_histograms::{CountForm, MillisHistogram};

const PATIENCE: Duration = Duration::from_secs(60);
/// 2026-08-30 00:00:00 UTC in seconds.
const START: i64 = 1_788_048_000;
/// Rows, ten minutes apart.
const ROWS: i64 = 60;
/// The row from which on everything is in Quipu.
const SWITCH: i64 = 40;
const STEP: i64 = 600;

/// A row of the history as line protocol: what host it is of, and whether it is of the series that
/// only the old database has.
fn line(row: i64, host: i64) -> String {
    let at = START + row * STEP;
    let (v, n) = (row * 30 + host, row as f64 / 8.0 + host as f64);
    format!("cpu,host=h{host},zone=é\\ {} v={v},n={n} {at}\n", host % 2)
}

/// What is in Quipu when it has everything, and only what was copied.
fn write_history(victoria: &str, whole: &Server, half: &Server) -> Result<()> {
    let (mut old, mut all, mut copied) = (String::new(), String::new(), String::new());
    for row in 0..ROWS {
        for host in 0..5 {
            let text = line(row, host);
            let is_old = row < SWITCH;
            // What the old one still gets after that counts no more.
            let theirs = if is_old { text.clone() } else { line(row + 1000, host) };
            old += &theirs.replace(
                &format!(" {}\n", START + (row + 1000) * STEP),
                &format!(" {}\n", START + row * STEP),
            );
            all += &text;
            // Of host 0 nothing is copied, of 1 all, of the others some rows.
            if !is_old || host == 1 || (1 < host && row % (host + 1) == 0) {
                copied += &text;
            }
        }
    }
    // A series that ended before, one that began after, and a value that was mended here.
    let gone = format!("gone v=7 {}\n", START + 3 * STEP);
    let new = format!("new v=8 {}\n", START + 50 * STEP);
    let mended = format!("cpu,host=h3,zone=é\\ 1 v=-1000 {}\n", START + 5 * STEP);
    let mut client = Client::new(victoria);
    let written = client.post("/write?precision=s", &[], (old + &gone).as_bytes())?;
    ensure!(written.status == 204, "{}", written.excerpt());
    client.get("/internal/force_flush")?;
    whole.write("/write?precision=s", all + &gone + &new + &mended)?;
    half.write("/write?precision=s", copied + &new + &mended)
}

/// The data of an answer, what has no order sorted, and whether something is missing.
pub fn data(response: &Response) -> Result<(Value, bool)> {
    let json: Value = serde_json::from_slice(&response.body).context(response.excerpt())?;
    ensure!(json["status"] == "success", "{json}");
    let mut data = json["data"].clone();
    let list = if data.is_array() { &mut data } else { &mut data["result"] };
    if let Some(list) = list.as_array_mut() {
        list.sort_by_key(Value::to_string);
    }
    Ok((data, json["isPartial"] == true))
}

/// Fails unless two servers give the same whole answer, which is not empty.
pub fn alike(whole: &Server, half: &Server, path: &str) -> Result<()> {
    let (expected, _) = data(&whole.get(path)?).context(path.to_string())?;
    let (found, is_partial) = data(&half.get(path)?).context(path.to_string())?;
    ensure!(!is_partial, "{path}: something is missing");
    let is_empty =
        [&expected, &expected["result"]].iter().any(|v| v.as_array().is_some_and(Vec::is_empty));
    ensure!(!is_empty, "{path} tells nothing: {expected}");
    ensure!(same(&expected, &found), "{path}:\n{expected}\n{found}");
    Ok(())
}

/// Whether two values are equal, numbers in texts to the last digits, which depend on the order of
/// additions.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        (Value::String(a), Value::String(b)) if a != b => {
            match (a.parse::<f64>(), b.parse::<f64>()) {
                (Ok(a), Ok(b)) => (a - b).abs() <= 1e-12 * a.abs().max(b.abs()),
                _ => false,
            }
        }
        _ => a == b,
    }
}

fn range_path(query: &str, first: i64, last: i64) -> String {
    let (start, end) = (START + first * STEP, START + last * STEP);
    format!("/api/v1/query_range?query={}&start={start}&end={end}&step=300", percent(query))
}

#[rustfmt::skip] // one query, one line
const QUERIES: &[&str] = &[
    "cpu_v", "sum(cpu_v)", "sum by (zone) (rate(cpu_v[30m]))", "topk(2, cpu_n)", "rate(cpu_v{host=\"h0\"}[1h])",
    "last_over_time(cpu_v[2h])", "count(cpu_n)", "max by (host) (cpu_v) - on (host) min by (host) (cpu_n)",
    "quantile(0.5, cpu_v)", "increase(cpu_v{host=~\"h[12]\",zone!=\"\"}[1h])", "avg_over_time(cpu_n[1h:10m])",
    "{__name__=~\"cpu_.|gone_v|new_v\"}", "absent(cpu_v{host=\"h0\"})", "cpu_v offset 1h", "changes(cpu_v[1h])",
];

fn compare(whole: &Server, half: &Server) -> Result<()> {
    for query in QUERIES {
        for (first, last) in [(0, ROWS), (2, 20), (SWITCH - 3, SWITCH + 3)] {
            if *query == "absent(cpu_v{host=\"h0\"})" && first != 0 {
                continue;
            }
            alike(whole, half, &range_path(query, first, last))?;
            // And again, where some of it may have been kept.
            alike(whole, half, &range_path(query, first, last + 1))?;
        }
    }
    for query in ["cpu_v", "sum(rate(cpu_n[1h]))", "topk(1, cpu_v)"] {
        for row in [1, 20, SWITCH, ROWS - 1] {
            let at = START + row * STEP;
            for dialect in ["promql", "metricsql"] {
                let query = percent(query);
                alike(
                    whole,
                    half,
                    &format!("/api/v1/query?query={query}&time={at}&dialect={dialect}"),
                )?;
            }
        }
    }
    check_aggregates(whole, half)?;
    let metricsql = "sum(median_over_time(cpu_n[1h])) by (zone)";
    alike(whole, half, &format!("{}&dialect=metricsql", range_path(metricsql, 0, ROWS)))?;
    for path in [
        "series?match[]=%7B__name__%3D~%22.%2B%22%7D",
        "labels?",
        "label/host/values?",
        "label/__name__/values?",
        "label/zone/values?match[]=cpu_v",
    ] {
        alike(whole, half, &format!("/api/v1/{path}&start={START}&end={}", START + ROWS * STEP))?;
    }
    ensure!(whole.export("{__name__!=\"\"}")? == half.export("{__name__!=\"\"}")?, "exports");
    Ok(())
}

/// What the old one may make itself; of host 0 nothing is here, of the others some rows.
#[rustfmt::skip] // one query, one line
const AGGREGATES: &[&str] = &[
    "max(max_over_time(cpu_v{host=\"h0\"}[1h])) by (host)", "sum(cpu_v{host=\"h0\"})",
    "min by (zone) (min_over_time(cpu_n[40m]))", "count(count_over_time(gone_v[2h]))",
    "avg(avg_over_time(cpu_n{host=~\"h0|x\"}[90m])) by (__name__, host, nope)",
    "group by (zone) (last_over_time(cpu_v{host=\"h0\"}[30m]))",
    "sum by (zone) (sum_over_time(cpu_v{host!~\"h[1-4]\"}[30m])) / 2 > 10",
    "max by (__name__, host) (max_over_time({__name__=~\"cpu_[vn]\", host=\"h0\"}[20m]))",
    "max_over_time((max(cpu_n{host=\"h0\"}))[2h:10m])",
];

fn check_aggregates(whole: &Server, half: &Server) -> Result<()> {
    for query in AGGREGATES {
        for dialect in ["promql", "metricsql"] {
            for (first, last) in [(0, ROWS), (3, 4), (SWITCH - 3, SWITCH + 3)] {
                if query.contains("gone") && first != 0 {
                    continue;
                }
                let path = format!("{}&dialect={dialect}", range_path(query, first, last));
                alike(whole, half, &path)?;
            }
            let at = START + 20 * STEP + 1;
            if !query.contains("gone") {
                let query = percent(query);
                let path = format!("/api/v1/query?query={query}&time={at}&dialect={dialect}");
                alike(whole, half, &path)?;
            }
        }
    }
    Ok(())
}

/// Who wants a sum gets that from there, and no samples; what was copied is read here.
fn check_what_is_made_there(half: &Server, url: &str) -> Result<()> {
    let counts = || -> Result<(f64, f64)> {
        let of =
            |name: &str| half.metric(&format!("quipu_legacy_{name}_total{{backend=\"{url}\"}}"));
        Ok((of("aggregates")?, of("samples")?))
    };
    let ask = |query: &str| -> Result<(f64, f64)> {
        let before = counts()?;
        ensure!(half.get(&range_path(query, 2, 20))?.status == 200, "{query}");
        let after = counts()?;
        Ok((after.0 - before.0, after.1 - before.1))
    };
    let (made, samples) = ask("sum(count_over_time(cpu_v{host=\"h0\"}[1h]))")?;
    ensure!(made == 0.0 && 0.0 < samples, "what is there twice is once here: {made} {samples}");
    let query = "sum(max_over_time(cpu_v{host=\"h0\"}[1h]))";
    ensure!(ask(query)? == (1.0, 0.0), "made there");
    let (found, _) = data(&half.get(&format!("{}&stats=all", range_path(query, 2, 20)))?)?;
    let seen = &found["stats"]["samples"]["totalQueryableSamples"];
    ensure!(seen.as_u64().is_some_and(|seen| 100 < seen), "who counts samples gets them: {seen}");
    let (made, samples) = ask("sum(max_over_time(cpu_v{host=\"h1\"}[1h]))")?;
    ensure!(made == 0.0 && 0.0 < samples, "host 1 was copied: {made} {samples}");
    let (made, samples) = ask("sum(rate(cpu_v{host=\"h0\"}[1h]))")?;
    ensure!(made == 0.0 && 0.0 < samples, "rates are made here: {made} {samples}");
    Ok(())
}

fn requests(server: &Server, url: &str, outcome: &str) -> Result<f64> {
    server
        .metric(&format!("quipu_legacy_requests_total{{backend=\"{url}\",outcome=\"{outcome}\"}}"))
}

/// What does not begin before the switch, and what asks for nothing else, asks nobody.
fn check_asks_only_where_it_must(half: &Server, url: &str) -> Result<()> {
    let before = requests(half, url, "ok")?;
    ensure!(0.0 < before, "it was asked");
    // The window of five minutes begins with the switch.
    half.get(&range_path("cpu_v", SWITCH + 1, ROWS))?;
    half.get(&format!("/api/v1/series?match[]=cpu_v&start={}", START + SWITCH * STEP))?;
    let path = format!("{}&nolegacy=1", range_path("cpu_v{host=\"h0\"}", 0, SWITCH - 1));
    let (found, is_partial) = data(&half.get(&path)?)?;
    ensure!(found["result"] == serde_json::json!([]) && !is_partial, "{found}");
    ensure!(requests(half, url, "ok")? == before, "nobody was asked");
    half.get(&range_path("cpu_v", SWITCH, ROWS))?;
    ensure!(
        requests(half, url, "ok")? == before + 1.0,
        "a sample within five minutes before counts"
    );
    let samples = format!("quipu_legacy_samples_total{{backend=\"{url}\"}}");
    ensure!(1000.0 < half.metric(&samples)?, "samples are counted");
    Ok(())
}

/// The old one has ended: what is here is told, and that it is not all.
fn check_away(half: &Server, url: &str) -> Result<()> {
    let path = range_path("cpu_v{host=\"h1\"}", 0, SWITCH - 1);
    let response = half.get(&path)?;
    let json: Value = serde_json::from_slice(&response.body)?;
    ensure!(json["isPartial"] == true, "{json}");
    let warning = json["warnings"][0].as_str().unwrap_or_default();
    ensure!(warning.contains(&format!("legacy backend {url} gave no whole answer")), "{warning}");
    ensure!(json["data"]["result"].as_array().is_some_and(|all| all.len() == 1), "{json}");
    ensure!(response.header("x-quipu-partial") == "true", "the header");
    let denied = half.get(&format!("{path}&deny_partial_response=1"))?;
    ensure!(denied.status == 503, "{}", denied.excerpt());
    for path in ["series?match[]=cpu_v&", "labels?", "label/host/values?"] {
        let path = format!("/api/v1/{path}start={START}");
        let (found, is_partial) = data(&half.get(&path)?)?;
        ensure!(
            is_partial && found.as_array().is_some_and(|all| !all.is_empty()),
            "{path}: {found}"
        );
        ensure!(half.get(&format!("{path}&deny_partial_response=1"))?.status == 503, "{path}");
    }
    let (found, is_partial) = data(&half.get(&range_path("cpu_v", SWITCH + 1, ROWS))?)?;
    ensure!(!is_partial && found["result"].as_array().is_some_and(|all| all.len() == 5), "{found}");
    ensure!(0.0 < requests(half, url, "refused")?, "it is left alone for a while");
    Ok(())
}

/// The command exports both sides, and nothing less than that without a word.
fn check_export(whole: &Server, half: &Server, directory: &Path) -> Result<()> {
    let export = |server: &Server, more: &[&str]| -> Result<std::process::Output> {
        let mut command = e2e::launch::quipu(&["export", "--url", server.url()])?;
        command.args(["--match", "cpu_v", "--match", "gone_v"]).args(more);
        Ok(command.current_dir(directory).output()?)
    };
    let silent = export(half, &[])?;
    let words = String::from_utf8_lossy(&silent.stderr);
    ensure!(silent.status.code() == Some(1) && words.contains("say --start"), "{words}");
    let start = ["--start", "2026-08-30", "--format", "influx"];
    let lines = |output: std::process::Output| -> Result<Vec<String>> {
        ensure!(output.status.success(), "{output:?}");
        let mut lines: Vec<String> =
            String::from_utf8(output.stdout)?.lines().map(str::to_string).collect();
        lines.sort();
        Ok(lines)
    };
    let (expected, found) = (lines(export(whole, &start)?)?, lines(export(half, &start)?)?);
    ensure!(!expected.is_empty() && expected == found, "{expected:?} {found:?}");
    Ok(())
}

#[test]
fn old_samples_of_a_victoriametrics_are_in_every_answer() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (victoria, authority) = start_victoria(directory.path())?;
    let url = format!("http://{authority}");
    let until = START + SWITCH * STEP;
    let whole = Launch::new(&directory.path().join("whole")).start()?;
    let launch = Launch::new(&directory.path().join("half"));
    let legacy = format!("url={url} kind=victoriametrics until={until}");
    let half = launch.flag("legacy", &legacy).start()?;
    write_history(&authority, &whole, &half)?;
    compare(&whole, &half)?;
    check_asks_only_where_it_must(&half, &url)?;
    check_what_is_made_there(&half, &url)?;
    // What is compared with the old one is what is here.
    let mut verify = e2e::launch::quipu(&["migrate", "verify", "victoriametrics", &url])?;
    let end = (until - 1).to_string();
    verify.args(["--url", half.url(), "--end", &end]).current_dir(directory.path());
    let output = verify.output()?;
    ensure!(output.status.code() == Some(1), "what is not copied is missing: {output:?}");
    check_export(&whole, &half, directory.path())?;
    drop(victoria);
    check_away(&half, &url)?;
    let half = half.restart()?;
    poll("a warning at start", PATIENCE, || {
        half.wait_for_log("does not answer")?;
        Ok(())
    })?;
    half.stop()
}

/// Many megabytes, of which several threads make samples.
#[test]
fn a_large_answer_is_whole_whoever_unpacks_it() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_victoria, authority) = start_victoria(directory.path())?;
    let mut random = rng::Random::seeded(7);
    let mut lines = String::new();
    for row in 0..1000 {
        for host in 0..200 {
            let (v, at) = (random.below(1 << 30), START + row * 60);
            lines += &format!("cpu,host=h{host},zone=z{} v={v} {at}\n", host % 3);
        }
    }
    let mut client = Client::new(&authority);
    let written = client.post("/write?precision=s", &[], lines.as_bytes())?;
    ensure!(written.status == 204, "{}", written.excerpt());
    client.get("/internal/force_flush")?;
    let whole = Launch::new(&directory.path().join("whole")).start()?;
    whole.write("/write?precision=s", lines)?;
    let until = START + 86_400;
    let legacy =
        format!("url=http://{authority} kind=victoriametrics until={until} aggregates=here");
    let empty = Launch::new(&directory.path().join("empty")).flag("legacy", &legacy).start()?;
    for query in
        ["sum by (host) (sum_over_time(cpu_v[10m]))", "sum by (zone) (count_over_time(cpu_v[5m]))"]
    {
        // Blocks come whole, though their middle is asked for.
        for (first, last) in [(0, 100), (40, 60), (99, 101)] {
            alike(&whole, &empty, &range_path(query, first, last))?;
        }
    }
    let bytes =
        empty.metric(&format!("quipu_legacy_bytes_total{{backend=\"http://{authority}\"}}"))?;
    ensure!(4e6 < bytes, "{bytes} are not many");
    ensure!(whole.export("cpu_v")? == empty.export("cpu_v")?, "every sample");
    empty.stop()
}

fn histogram(at: i64) -> Histogram {
    let bucket = |index, count: i64| Bucket { index, count: count as f64 };
    let positive = vec![bucket(-3, 2 + at), bucket(-2, 5 + 2 * at), bucket(1, 1)];
    let count = positive.iter().map(|one| one.count).sum::<f64>() + 1.0;
    Histogram {
        schema: 1,
        reset_hint: ResetHint::Unknown,
        zero_threshold: 0.001,
        zero_count: 1.0,
        count,
        sum: 2.5 * at as f64,
        positive,
        negative: Vec::new(),
        custom_bounds: Vec::new(),
    }
}

/// A Prometheus with floats, one of which ends, and histograms; and since when.
fn start_prometheus(directory: &Path) -> Result<(Prometheus, i64)> {
    let flags = ["--web.enable-remote-write-receiver", "--enable-feature=native-histograms"];
    let prometheus =
        Prometheus::start(directory, &flags, |_| "global: {scrape_interval: 1h}\n".to_string())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64;
    // Its head takes samples of the last hours.
    let first = (now - 50 * 60 * 1000) / 10_000 * 10_000;
    let mut request = RequestV1::new();
    for host in 0..3 {
        let name = format!("h{host}");
        let value = |at: i64| {
            if at == 250 && host == 0 { model::stale_marker() } else { (at * (host + 1)) as f64 }
        };
        let count = if host == 0 { 251 } else { 300 };
        let samples: Vec<MillisSample> = (0..count)
            .map(|at| MillisSample { millis: first + at * 10_000, value: value(at) })
            .collect();
        request.series(&[("__name__", "temp"), ("host", name.as_str())], &samples);
    }
    let whole = |at: i64| MillisHistogram {
        millis: first + at * 10_000,
        histogram: histogram(at),
        form: CountForm::Whole,
    };
    request.mixed_series(&[("__name__", "latency")], &[], &(0..250).map(whole).collect::<Vec<_>>());
    let body = snap::raw::Encoder::new().compress_vec(request.as_bytes())?;
    let headers = [
        ("content-encoding", "snappy"),
        ("content-type", "application/x-protobuf"),
        ("x-prometheus-remote-write-version", "0.1.0"),
    ];
    let answer = Client::new(prometheus.authority()).post("/api/v1/write", &headers, &body)?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    Ok((prometheus, first / 1000))
}

fn copy(server: &Server, directory: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = e2e::launch::quipu(&["migrate", "prometheus"])?;
    let output =
        command.args(arguments).args(["--url", server.url()]).current_dir(directory).output()?;
    ensure!(output.status.success(), "{output:?}");
    Ok(())
}

/// All samples that a server tells, each with its series and time.
fn exported(server: &Server) -> Result<Vec<String>> {
    let answer = server.get("/api/v1/export?match[]=%7B__name__!%3D%22%22%7D")?;
    ensure!(answer.status == 200, "{}", answer.excerpt());
    ensure!(answer.header("x-quipu-partial").is_empty(), "something is missing: {}", server.log());
    let text = answer.text();
    let mut all = Vec::new();
    for line in text.lines() {
        let json: Value = serde_json::from_str(line)?;
        for [times, values] in [["timestamps", "values"], ["histogram_timestamps", "histograms"]] {
            let list = |name: &str| json[name].as_array().cloned().unwrap_or_default();
            ensure!(list(times).len() == list(values).len(), "{line}");
            let pairs = list(times).into_iter().zip(list(values));
            for (time, mut value) in pairs {
                // The first one of a piece that was copied has nothing before it.
                value.as_object_mut().and_then(|one| one.remove("reset_hint"));
                all.push(format!("{} {time} {value}", json["metric"]));
            }
        }
    }
    all.sort();
    Ok(all)
}

#[test]
fn old_samples_and_histograms_of_a_prometheus_are_in_every_answer() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (prometheus, first) = start_prometheus(directory.path())?;
    let url = format!("http://{}", prometheus.authority());
    let whole = Launch::new(&directory.path().join("whole")).start()?;
    copy(&whole, directory.path(), &[&url, "--start", "now-2h"])?;
    let legacy = format!("url={url} kind=prometheus until={}", first + 86_400);
    let half = Launch::new(&directory.path().join("half")).flag("legacy", &legacy).start()?;
    let middle = (first + 1200).to_string();
    let (start, end) = ((first + 600).to_string(), middle.as_str());
    for copied in [false, true] {
        if copied {
            copy(&half, directory.path(), &[&url, "--start", &start, "--end", end])?;
        }
        for query in [
            "temp",
            "sum(rate(temp[2m]))",
            "histogram_quantile(0.9, rate(latency[2m]))",
            "latency",
            "histogram_count(sum(latency))",
            "topk(1, temp)",
            "count_over_time(latency[5m])",
        ] {
            let query = percent(query);
            let path = format!(
                "/api/v1/query_range?query={query}&start={first}&end={}&step=30",
                first + 3000
            );
            alike(&whole, &half, &path)?;
            alike(&whole, &half, &format!("/api/v1/query?query={query}&time={}", first + 2400))?;
        }
        let federated = |server: &Server| -> Result<Vec<String>> {
            let text = server.get("/federate?match[]=temp&max_lookback=2h")?.text();
            let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
            lines.sort();
            Ok(lines)
        };
        let expected = federated(&whole)?;
        ensure!(2 < expected.len() && expected == federated(&half)?, "federated: {expected:?}");
        let until = first + 3000;
        for path in
            ["series?match[]=%7B__name__%3D~%22temp|latency%22%7D", "labels?", "label/host/values?"]
        {
            alike(&whole, &half, &format!("/api/v1/{path}&start={first}&end={until}"))?;
        }
        let (expected, found) = (exported(&whole)?, exported(&half)?);
        let differ = expected.iter().zip(&found).find(|(a, b)| a != b);
        ensure!(
            expected.len() == found.len() && differ.is_none(),
            "{copied}: {} and {}: {differ:?}",
            expected.len(),
            found.len()
        );
    }
    drop(prometheus);
    let (_, is_partial) =
        data(&half.get(&format!("/api/v1/query?query=temp&time={}", first + 2400))?)?;
    ensure!(is_partial, "it has ended");
    half.stop()
}

/// Each tells what it has itself, so two that ask each other come to an end.
#[test]
fn two_that_ask_each_other_come_to_an_end() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let ports = [free_port()?, free_port()?];
    let start = |idx: usize| {
        let legacy = format!(
            "url=http://127.0.0.1:{} kind=prometheus until={}",
            ports[1 - idx],
            START + 1000
        );
        let launch = Launch::new(&directory.path().join(idx.to_string())).port(ports[idx]);
        launch.flag("legacy", &legacy).start()
    };
    let servers = [start(0)?, start(1)?];
    for (idx, server) in servers.iter().enumerate() {
        server.write("/write?precision=s", format!("m,server={idx} v={idx} {START}\n"))?;
    }
    for server in &servers {
        let found = server.vector("sum by (server) (m_v)", (START + 60) as f64)?;
        ensure!(found.len() == 2, "{found:?}");
        let path = format!("/api/v1/label/server/values?start={START}");
        let (found, is_partial) = data(&server.get(&path)?)?;
        ensure!(found == serde_json::json!(["0", "1"]) && !is_partial, "{found}");
    }
    Ok(())
}
