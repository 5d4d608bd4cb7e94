//! What queries can be asked to tell of themselves, what is told of those that run, and how one is
//! made to end.

use anyhow::{Context, Result, ensure};
use e2e::{Client, Launch, Response, Server, percent, poll};
use serde_json::{Value, json};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// No step takes longer, also on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// 2024-02-29 12:00:00 UTC.
const NOON: i64 = 1_709_208_000;

fn server(directory: &std::path::Path) -> Result<Server> {
    let server = Launch::new(directory).flag("query.timeout", "10m").start()?;
    let mut lines = String::new();
    for host in 0..10 {
        for step in 0..5 {
            lines += &format!("m,host={host} v={step} {}\n", NOON + 10 * step);
        }
    }
    let answer = server.post("/write?precision=s", lines)?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    Ok(server)
}

fn instant(more: &str) -> String {
    format!("/api/v1/query?query=m_v&time={}{more}", NOON + 60)
}

fn range(more: &str) -> String {
    let query = "sum_over_time(m_v[20s])";
    let end = NOON + 60;
    format!("/api/v1/query_range?query={query}&start={NOON}&end={end}&step=10{more}")
}

#[test]
fn a_limit_cuts_and_warns() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = server(directory.path())?;
    for path in [instant, range] {
        let all = server.get(&path(""))?.json()?;
        assert_eq!(all["data"]["result"].as_array().map(Vec::len), Some(10));
        assert!(all["warnings"].is_null());
        let cut = server.get(&path("&limit=3"))?.json()?;
        let first = all["data"]["result"].as_array().map(|all| &all[..3]);
        assert_eq!(cut["data"]["result"].as_array().map(Vec::as_slice), first);
        assert_eq!(cut["warnings"], json!(["results truncated due to limit"]));
        for more in ["&limit=10", "&limit=0"] {
            assert_eq!(server.get(&path(more))?.json()?, all, "{more}");
        }
        let bad = server.get(&path("&limit=-1"))?;
        assert!(bad.status == 400 && bad.text().contains("limit"), "{}", bad.excerpt());
    }
    let scalar = server.get("/api/v1/query?query=1&limit=1")?.json()?;
    assert!(scalar["warnings"].is_null(), "{scalar}");
    server.stop()
}

#[test]
fn stats_have_the_names_of_prometheus() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = server(directory.path())?;
    // Of five samples the windows of 20 s have 1, 2, 2, 2, 2, 1 and none: ten series of each.
    for (path, samples) in [
        (instant("&stats=1"), 50),
        (range("&stats=1"), 50),
        (range("&stats=all"), 100),
        (instant("&stats=all"), 10),
    ] {
        let stats = server.get(&path)?.data()?["stats"].take();
        assert_eq!(stats["samples"]["totalQueryableSamples"], samples, "{stats}");
        let peak = stats["samples"]["peakSamples"].as_u64().context("a number")?;
        assert!(10 <= peak, "{stats}");
        let time = |name: &str| stats["timings"][name].as_f64().context(name.to_string());
        let (inner, total) = (time("innerEvalTime")?, time("evalTotalTime")?);
        let (sort, select) = (time("resultSortTime")?, time("queryPreparationTime")?);
        assert!(0.0 < inner && 0.0 < select && 0.0 < sort, "{stats}");
        assert!((inner + sort + select - total).abs() < 1e-6, "{stats}");
        assert!(time("execQueueTime")? + total <= time("execTotalTime")?, "{stats}");
    }
    let steps = |path: String| -> Result<Value> {
        let mut stats = server.get(&path)?.data()?["stats"].take();
        Ok(stats["samples"]["totalQueryableSamplesPerStep"].take())
    };
    let counts = [10, 20, 20, 20, 20, 10, 0];
    let expected: Vec<Value> =
        (0..).zip(counts).map(|(step, count)| json!([NOON + 10 * step, count])).collect();
    // Also when the result cache has the steps already.
    for _ in 0..2 {
        assert_eq!(steps(range("&stats=all"))?, json!(expected));
    }
    assert_eq!(steps(instant("&stats=all"))?, json!([[NOON + 60, 10]]));
    let between = format!("/api/v1/query?query=m_v&time={NOON}.25&stats=all");
    assert_eq!(steps(between)?, json!([[NOON as f64 + 0.25, 10]]));
    for path in [instant("&stats=1"), range("&stats=1"), range("&stats=all&dialect=metricsql")] {
        assert!(steps(path)?.is_null());
    }
    for path in [instant(""), instant("&stats=0"), range("&stats=false")] {
        assert!(server.get(&path)?.data()?["stats"].is_null());
    }
    for query in ["1", "\"text\""] {
        let path = format!("/api/v1/query?query={}&stats=true", percent(query));
        let stats = server.get(&path)?.data()?["stats"].take();
        assert_eq!(stats["samples"]["totalQueryableSamples"], 0, "{stats}");
    }
    server.stop()
}

fn durations(trace: &Value) -> Vec<f64> {
    let children = trace["children"].as_array().into_iter().flatten();
    children.filter_map(|child| child["duration_msec"].as_f64()).collect()
}

#[test]
fn a_trace_says_where_the_time_went() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = server(directory.path())?;
    for path in [instant("&trace=1"), range("&trace=1")] {
        let answer = server.get(&path)?.json()?;
        let trace = &answer["trace"];
        let message = trace["message"].as_str().context("a message")?;
        assert!(message.starts_with(path.split('?').next().unwrap_or("")), "{message}");
        assert!(message.ends_with("10 series"), "{message}");
        let children = durations(trace);
        assert_eq!(children.len(), 4, "{trace}");
        let total = trace["duration_msec"].as_f64().context("a duration")?;
        assert!(children.iter().sum::<f64>() <= total + 0.01, "{trace}");
        let evaluate = &trace["children"][2];
        assert_eq!(evaluate["children"][0]["message"], "select: 10 series found");
        let work = evaluate["children"][1]["message"].as_str().context("a message")?;
        assert!(work.contains("50 samples"), "{work}");
    }
    assert!(server.get(&instant(""))?.json()?["trace"].is_null());
    let bad = server.get(&instant("&trace=maybe"))?;
    assert!(bad.status == 400 && bad.text().contains("trace"), "{}", bad.excerpt());
    server.stop()
}

/// A query that takes half a minute, and looks at its flag many times a second.
fn long_query(depth: usize) -> String {
    (0..depth).fold("vector(1)".to_string(), |inner, _| format!("max_over_time({inner}[30m:1s])"))
}

fn ask_in_background(server: &Server, query: &str) -> JoinHandle<Result<Response>> {
    let authority = server.authority().to_string();
    let end = NOON + 10_000;
    let query = percent(query);
    let path = format!("/api/v1/query_range?query={query}&start={NOON}&end={end}&step=1&nocache=1");
    thread::spawn(move || Client::new(&authority).get(&path))
}

/// The queries that run, once there are `count`.
fn active(server: &Server, count: usize) -> Result<Vec<Value>> {
    poll("active queries", PATIENCE, || {
        let answer = server.get("/api/v1/status/active_queries")?.json()?;
        ensure!(answer["status"] == "ok", "{answer}");
        let found = answer["data"].as_array().cloned().context("a list")?;
        ensure!(found.len() == count, "{} queries", found.len());
        Ok(found)
    })
}

fn delete(server: &Server, path: &str) -> Result<Response> {
    Client::new(server.authority()).send("DELETE", path, &[], b"")
}

#[test]
fn one_query_is_killed_and_the_others_go_on() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = server(directory.path())?;
    let (first, second) = (long_query(60), format!("1 + {}", long_query(60)));
    let first_answer = ask_in_background(&server, &first);
    let listed = active(&server, 1)?;
    let second_answer = ask_in_background(&server, &second);
    let both = active(&server, 2)?;
    assert_eq!((&listed[0]["query"], &both[1]["query"]), (&json!(first), &json!(second)));
    assert_eq!(listed[0]["start"], NOON * 1000);
    assert_eq!(listed[0]["end"], (NOON + 10_000) * 1000);
    assert_eq!(listed[0]["step"], 1000);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    assert!(text(&listed[0]["remote_addr"]).starts_with("127.0.0.1:"), "{listed:?}");
    assert!(text(&listed[0]["duration"]).ends_with('s'), "{listed:?}");

    let kill = |id: &str| server.post(&format!("/api/v1/status/active_queries/{id}/kill"), "");
    assert_eq!(kill("FFFF")?.status, 404);
    let bad = kill("x")?;
    assert!(bad.status == 400 && bad.text().contains("\\\"id\\\""), "{}", bad.excerpt());
    let answer = kill(&text(&listed[0]["id"]))?;
    assert_eq!(answer.status, 200, "{}", answer.excerpt());
    let killed = first_answer.join().expect("no panic")?;
    assert_eq!((killed.status, &killed.json()?["errorType"]), (499, &json!("canceled")));
    let left = active(&server, 1)?;
    assert_eq!(left[0]["id"], both[1]["id"], "the other one goes on");
    assert!(!second_answer.is_finished());
    assert_eq!(server.vector("1 + count(m_v)", (NOON + 60) as f64)?.len(), 1);

    let path = format!("/api/v1/status/active_queries?id={}", text(&left[0]["id"]));
    assert_eq!(delete(&server, &path)?.status, 200);
    assert_eq!(second_answer.join().expect("no panic")?.status, 499);
    active(&server, 0)?;
    assert_eq!(delete(&server, &path)?.status, 404);
    server.stop()
}

#[test]
fn the_top_queries_of_the_last_minutes() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = server(directory.path())?;
    // Far apart, and evaluated each time: a query of less than a millisecond is in no list.
    let (short, long) = (long_query(4), long_query(40));
    for query in [&short, &short, &long] {
        let answer = ask_in_background(&server, query).join().expect("no panic")?;
        assert_eq!(answer.status, 200, "{}", answer.excerpt());
    }
    let top = server.get("/api/v1/status/top_queries?topN=5&maxLifetime=10m")?.json()?;
    assert_eq!(top["topN"], "5");
    let by_count = &top["topByCount"][0];
    assert_eq!((&by_count["query"], &by_count["count"]), (&json!(short), &json!(2)));
    assert_eq!(by_count["timeRangeSeconds"], 10_000);
    for (list, figure) in [
        ("topByAvgDuration", "avgDurationSeconds"),
        ("topBySumDuration", "sumDurationSeconds"),
        ("topByAvgMemoryUsage", "avgMemoryBytes"),
    ] {
        let first = &top[list][0];
        assert_eq!((&first["query"], &first["count"]), (&json!(long), &json!(1)), "{list}");
        assert!(first[figure].as_f64().is_some_and(|figure| 0.0 < figure), "{list}");
    }
    let one = server.get("/api/v1/status/top_queries?topN=1")?.json()?;
    assert_eq!(one["topByCount"].as_array().map(Vec::len), Some(1));
    for (parameter, name) in
        [("topN=0", "topN"), ("topN=x", "topN"), ("maxLifetime=x", "maxLifetime")]
    {
        let bad = server.get(&format!("/api/v1/status/top_queries?{parameter}"))?;
        assert!(bad.status == 400 && bad.text().contains(name), "{}", bad.excerpt());
    }
    server.stop()
}

#[test]
fn expressions_as_texts_and_trees() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = server(directory.path())?;
    let query = percent("sum by(a)(rate( up [5m]))");
    let pretty = "sum by (a) (rate(up[5m]))";
    let text = server.get(&format!("/api/v1/format_query?query={query}"))?.data()?;
    assert_eq!(text, pretty);
    let answer = server.get(&format!("/prettify-query?query={query}"))?.json()?;
    assert_eq!(answer, json!({ "status": "success", "query": pretty }));
    let tree = server.get(&format!("/api/v1/parse_query?query={query}"))?.data()?;
    assert_eq!((&tree["type"], &tree["op"]), (&json!("aggregation"), &json!("sum")));
    assert_eq!(tree["expr"]["func"]["name"], "rate");
    assert_eq!(tree["expr"]["args"][0]["range"], 300_000);
    for path in ["/api/v1/format_query", "/prettify-query", "/api/v1/parse_query"] {
        for query in ["", "sum(", "(((("] {
            let bad = server.get(&format!("{path}?query={}", percent(query)))?;
            assert!(bad.status == 400 && bad.text().contains("query"), "{}", bad.excerpt());
        }
    }
    server.stop()
}

#[test]
fn exports_in_other_shapes() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = server(directory.path())?;
    let export = |more: &str| server.get(&format!("/api/v1/export{more}"));
    let format = "__name__,host,__value__,__timestamp__:unix_s";
    let selector = percent("m_v{host=\"3\"}");
    let answer = export(&format!("/csv?match[]={selector}&format={format}&start={NOON}"))?;
    ensure!(answer.status == 200, "{}", answer.excerpt());
    assert_eq!(answer.header("content-type"), "text/csv; charset=utf-8");
    let expected: String =
        (0..5).map(|step| format!("m_v,3,{step},{}\n", NOON + 10 * step)).collect();
    assert_eq!(answer.text(), expected);
    for (query, part) in [
        ("?match[]=m_v", "format"),
        ("?match[]=m_v&format=__timestamp__:week", "week"),
        ("?format=a", "match[]"),
        ("?match[]=m_v&format=a&start=yesterday", "start"),
    ] {
        let bad = export(&format!("/csv{query}"))?;
        assert!(bad.status == 400 && bad.text().contains(part), "{}", bad.excerpt());
    }
    let matrix = export("?match[]=m_v&format=promapi&reduce_mem_usage=1")?.matrix()?;
    assert_eq!(matrix.len(), 10);
    assert!(matrix.values().all(|samples| samples.len() == 5));
    assert!(export("?match[]=nothing&format=promapi")?.matrix()?.is_empty());
    // Partial dates and relative times, as VictoriaMetrics takes them.
    for (start, end, count) in [
        ("2024-02", "2024-03", 50),
        ("2024-02-29T12", "2024-02-29T12:01Z", 50),
        ("1709208000000", "1709208000000000000", 10),
        ("2024-03", "now-5m", 0),
        ("-1h", "now", 0),
    ] {
        let answer = export(&format!("?match[]=m_v&start={start}&end={end}"))?;
        assert_eq!(answer.export()?.len(), count, "{start} to {end}");
    }
    server.stop()
}
