//! Answers that clients of Prometheus and VictoriaMetrics expect, in tables with the other product's
//! answer.

use anyhow::{Result, ensure};
use e2e::answers::percent;
use e2e::{Launch, Server};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use wire::remote_write::encode::{MillisSample, RequestV1};

/// 2024-02-29 12:00:00 UTC in milliseconds.
const NOON: i64 = 1_709_208_000_000;
/// Prometheus' stale marker.
const STALE: u64 = 0x7ff0_0000_0000_0002;
/// A native histogram in JSON lines.
const HISTOGRAM: &str =
    r#"{"count":3,"sum":5,"zero_threshold":0.001,"zero_count":1,"positive":[[1,2]]}"#;

fn start(directory: &tempfile::TempDir) -> Result<Server> {
    Launch::new(directory.path()).flag("self-scrape-interval", "0").start()
}

/// Sends samples of one series by remote write.
fn send(server: &Server, name: &str, samples: &[(i64, f64)]) -> Result<()> {
    let mut request = RequestV1::new();
    let samples: Vec<MillisSample> = samples
        .iter()
        .map(|(millis, value)| MillisSample { millis: *millis, value: *value })
        .collect();
    request.series(&[("__name__", name)], &samples);
    let body = snap::raw::Encoder::new().compress_vec(request.as_bytes())?;
    let headers = [("Content-Type", "application/x-protobuf"), ("Content-Encoding", "snappy")];
    let answer = server.post_with("/api/v1/write", &headers, body)?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    Ok(())
}

/// The values of an instant query at noon, or the error.
fn values(server: &Server, query: &str) -> Result<Vec<String>> {
    let path = format!("/api/v1/query?time={}&query={}", NOON / 1000, percent(query));
    let answer = server.get(&path)?.json()?;
    let Some(result) = answer.pointer("/data/result").and_then(Value::as_array) else {
        return Ok(vec![answer["error"].as_str().unwrap_or("").to_string()]);
    };
    let value = |one: &Value| one["value"][1].as_str().unwrap_or("").to_string();
    Ok(match result.first() {
        Some(Value::Number(_)) => vec![result[1].as_str().unwrap_or("").to_string()],
        _ => result.iter().map(value).collect(),
    })
}

/// The members `values` and `histograms` of the lines of a metric.
fn stored(server: &Server, name: &str) -> Result<(Value, usize)> {
    let text = server.get(&format!("/api/v1/export?match[]={name}"))?.text();
    let (mut values, mut histograms) = (json!([]), 0);
    for line in text.lines() {
        let line: Value = serde_json::from_str(line)?;
        if let Some(found) = line.get("values") {
            values = found.clone();
        }
        histograms += line["histograms"].as_array().map_or(0, Vec::len);
    }
    Ok((values, histograms))
}

/// Prometheus' sign changes leave a NaN that is one; here it must not become "no sample".
#[test]
fn sign_changes_of_nan_make_no_gaps() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    send(&server, "n", &[(NOON, f64::from_bits(STALE | 1 << 63))])?;
    let line = r#"{"metric":{"__name__":"h"},"histograms":[{"count":"NaN:fff0000000000002","sum":"NaN:fff0000000000002","zero_threshold":0.001,"zero_count":1}],"histogram_timestamps":[NOON]}"#;
    server.write("/api/v1/import", line.replace("NOON", &NOON.to_string()))?;
    for query in [
        "count(n)",
        "count(abs(n))",
        "count(-n)",
        "count(-(-n))",
        "count(vector(-scalar(n)))",
        "count(vector(-(-scalar(n))))",
        "count(last_over_time(abs(n)[1m:10s]))",
        "count(sort(-n))",
        "count(topk(1, -n))",
        "count(-n or vector(1))",
        "count(label_replace(-n, \"a\", \"b\", \"\", \"\"))",
        "count(-n != bool 1)",
        "count(n % 2)",
        "count(n atan2 1)",
        "count(histogram_sum(h))",
        "count(histogram_sum(-h))",
        "count(histogram_count(-h))",
        "count(-h)",
        "count(abs(histogram_sum(h)))",
    ] {
        assert_eq!(values(&server, query)?, ["1"], "{query}");
    }
    assert_eq!(values(&server, "absent(-n)")?, [""; 0]);
    server.stop()
}

/// Sends numbers, histograms and markers of the same times, in every order.
fn send_markers(server: &Server, stale: f64) -> Result<()> {
    let import = |server: &Server, lines: &str| {
        server.write("/api/v1/import", lines.replace("NOON", &NOON.to_string()))
    };
    send(server, "number_first", &[(NOON, 3.0)])?;
    send(server, "number_first", &[(NOON, stale)])?;
    send(server, "marker_first", &[(NOON, stale)])?;
    send(server, "marker_first", &[(NOON, 3.0)])?;
    send(server, "one_body", &[(NOON, 3.0), (NOON, stale)])?;
    send(server, "one_body_turned", &[(NOON, stale), (NOON, 3.0)])?;
    send(server, "twice", &[(NOON, 2.0)])?;
    send(server, "twice", &[(NOON, stale)])?;
    send(server, "twice", &[(NOON, stale)])?;
    send(server, "twice", &[(NOON, 3.0)])?;
    import(
        server,
        r#"{"metric":{"__name__":"lines","a":"1","b":"2"},"values":[3],"timestamps":[NOON]}
{"metric":{"b":"2","a":"1","__name__":"lines"},"values":["StaleNaN"],"timestamps":[NOON]}"#,
    )?;
    import(
        server,
        r#"{"metric":{"b":"2","a":"1","__name__":"lines"},"values":["StaleNaN"],"timestamps":[NOON]}"#,
    )?;
    server.write("/write?precision=ms", format!("line x=3 {NOON}"))?;
    send(server, "line_x", &[(NOON, stale)])?;
    let marker_of_histograms = HISTOGRAM.replace("\"sum\":5", "\"sum\":\"StaleNaN\"");
    import(
        server,
        &format!(
            r#"{{"metric":{{"__name__":"native"}},"histograms":[{HISTOGRAM}],"histogram_timestamps":[NOON]}}"#
        ),
    )?;
    send(server, "native", &[(NOON, stale)])?;
    import(
        server,
        &format!(
            r#"{{"metric":{{"__name__":"native"}},"histograms":[{marker_of_histograms}],"histogram_timestamps":[NOON]}}"#
        ),
    )?;
    send(server, "number_marked", &[(NOON, 3.0)])?;
    import(
        server,
        &format!(
            r#"{{"metric":{{"__name__":"number_marked"}},"histograms":[{marker_of_histograms}],"histogram_timestamps":[NOON]}}"#
        ),
    )?;
    // Markers that replace nothing stay, and a later number does not bring back what ended.
    send(server, "ended", &[(NOON - 1, 3.0), (NOON, stale)])?;
    send(server, "alone", &[(NOON, stale)])?;
    Ok(())
}

/// As in VictoriaMetrics, however both were sent.
#[test]
fn stale_markers_replace_no_samples() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut server = start(&directory)?;
    let stale = f64::from_bits(STALE);
    send_markers(&server, stale)?;
    let marker = json!("NaN:7ff0000000000002");
    for round in 0..3 {
        for name in [
            "number_first",
            "marker_first",
            "one_body",
            "one_body_turned",
            "twice",
            "lines",
            "line_x",
            "number_marked",
        ] {
            assert_eq!(stored(&server, name)?, (json!([3]), 0), "{name} in round {round}");
        }
        assert_eq!(stored(&server, "native")?, (json!([]), 1), "round {round}");
        assert_eq!(stored(&server, "ended")?, (json!([3, marker]), 0), "round {round}");
        assert_eq!(stored(&server, "alone")?, (json!([marker]), 0), "round {round}");
        match round {
            0 => {
                // Over what is on disk, and again after a merge.
                ensure!(server.post("/internal/force_flush", "")?.status < 300);
                send(&server, "number_first", &[(NOON, stale)])?;
                send(&server, "native", &[(NOON, stale)])?;
                ensure!(server.post("/internal/force_flush", "")?.status < 300);
                ensure!(server.post("/internal/force_merge", "")?.status < 300);
            }
            _ => server = server.restart()?,
        }
    }
    server.stop()
}

/// The last sample of a series and time wins, a number or a histogram, in one body and in two.
#[test]
fn the_last_of_number_and_histogram_wins() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    let number = |name: &str| {
        format!(
            "{{\"metric\":{{\"__name__\":\"{name}\",\"a\":\"1\"}},\"values\":[7],\"timestamps\":[{NOON}]}}\n"
        )
    };
    let turned = |name: &str| {
        format!(
            "{{\"metric\":{{\"a\":\"1\",\"__name__\":\"{name}\"}},\"values\":[7],\"timestamps\":[{NOON}]}}\n"
        )
    };
    let histogram = |name: &str| {
        format!(
            "{{\"metric\":{{\"__name__\":\"{name}\",\"a\":\"1\"}},\"histograms\":[{HISTOGRAM}],\"histogram_timestamps\":[{NOON}]}}\n"
        )
    };
    for (name, bodies, is_number) in [
        ("hf", vec![histogram("hf") + &number("hf")], true),
        ("hft", vec![histogram("hft") + &turned("hft")], true),
        ("fh", vec![number("fh") + &histogram("fh")], false),
        ("hfh", vec![histogram("hfh") + &number("hfh") + &histogram("hfh")], false),
        ("fhf", vec![number("fhf") + &histogram("fhf") + &number("fhf")], true),
        ("h_f", vec![histogram("h_f"), number("h_f")], true),
        ("f_h", vec![number("f_h"), histogram("f_h")], false),
    ] {
        for body in bodies {
            server.write("/api/v1/import", body)?;
        }
        let expected = if is_number { (json!([7]), 0) } else { (json!([]), 1) };
        assert_eq!(stored(&server, name)?, expected, "{name}");
    }
    server.stop()
}

/// Prometheus 2.42 reads no quoted names, and sets `instance` where it is missing.
#[test]
fn federation_is_for_the_server_that_scrapes() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    let text = "{\"a.b\",\"c.d\"=\"x\"} 1\nfa{a=\"b\"} 2\nfc{instance=\"x\"} 3\nfd{job=\"j\",zz=\"q\"} 4\n\
                fe{__x=\"q\"} 5\n";
    server.write(&format!("/api/v1/import/prometheus?timestamp={NOON}"), text)?;
    let old = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;\
               version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    let new = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
               text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2";
    let plain = "fa{a=\"b\",instance=\"\"} 2\nfc{instance=\"x\"} 3\n\
                 fd{job=\"j\",zz=\"q\",instance=\"\"} 4\nfe{__x=\"q\",instance=\"\"} 5\n";
    for (accept, content_type, first) in [
        (
            "",
            "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
            "a_b{c_d=\"x\",instance=\"\"} 1\n",
        ),
        (
            old,
            "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
            "a_b{c_d=\"x\",instance=\"\"} 1\n",
        ),
        (
            "text/plain;version=0.0.4",
            "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
            "a_b{c_d=\"x\",instance=\"\"} 1\n",
        ),
        (
            new,
            "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8",
            "{\"a.b\",\"c.d\"=\"x\",instance=\"\"} 1\n",
        ),
        (
            "text/plain;escaping=values",
            "text/plain; version=0.0.4; charset=utf-8; escaping=values",
            "U__a_2e_b{U__c_2e_d=\"x\",instance=\"\"} 1\n",
        ),
        (
            "text/plain;escaping=dots",
            "text/plain; version=0.0.4; charset=utf-8; escaping=dots",
            "a_dot_b{c_dot_d=\"x\",instance=\"\"} 1\n",
        ),
    ] {
        let selector = percent("{__name__=~\"a.b|f.\"}");
        let path = format!("/federate?max_lookback=1h&end={}&match[]={selector}", NOON / 1000);
        let answer = server.client().send("GET", &path, &[("Accept", accept)], b"")?;
        assert_eq!(answer.header("content-type"), content_type, "{accept}");
        let text = answer.text().replace(&format!(" {NOON}"), "");
        let lines: String = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(lines, format!("{first}{plain}"), "{accept}");
    }
    server.stop()
}

/// Sends a request line as it stands; the status and the body.
fn raw(server: &Server, target: &str, more: &str) -> Result<(String, String)> {
    let mut stream = TcpStream::connect(server.authority())?;
    let host = server.authority();
    write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n{more}")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).unwrap_or("").to_string();
    Ok((status, body.to_string()))
}

/// Targets as people type them behind `curl -g`, with the statuses that Prometheus gives.
#[test]
fn unescaped_targets_are_read() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    server.write(
        &format!("/api/v1/import/prometheus?timestamp={NOON}"),
        "up{job=\"api\"} 5\nup{job=\"é<#>\"} 6\n",
    )?;
    for (target, status, part) in [
        (r#"/api/v1/query?time=T&query=up{job="api"}"#, "200", r#""5""#),
        (r#"/api/v1/query?time=T&query=up{job="api"}<7"#, "200", r#""5""#),
        (r#"/api/v1/query?time=T&query=up{job="api"}>7"#, "200", r#""result":[]"#),
        (r#"/api/v1/query?time=T&query=up{job=`api`}^2"#, "200", r#""25""#),
        (r#"/api/v1/query?time=T&query=up{job="é<#>"}"#, "200", r#""6""#),
        (r#"/api/v1/query?time=T&query=up{job=~"a|api|\\^"}"#, "200", r#""5""#),
        (r#"/api/v1/series?match[]=up{job="api"}"#, "200", r#""job":"api""#),
        (r#"//api/v1/query?time=T&query=up{job="api"}"#, "200", r#""5""#),
        (r#"/api/v1/query?time=T&query=up{job="#, "400", "bad_data"),
        (r#"/api/v1/query?query=1%zz"#, "400", "no expression found"),
        (r#"/api/v1/query?query=1;a=b"#, "400", "no expression found"),
        (r#"/api/v1/query?query=7&time=1%z"#, "200", r#""7""#),
        (r#"/api/v1/query?query=7&extra_label=a=b%z"#, "400", "error parsing form values"),
        (
            r#"/api/v1/series?match[]=up%zz"#,
            "400",
            r#"error parsing form values: invalid URL escape \"%zz\""#,
        ),
        (r#"/api/v1/labels?match[]=up;b"#, "400", "invalid semicolon separator in query"),
    ] {
        let target = target.replace("=T&", &format!("={}&", NOON / 1000));
        let (found, body) = raw(&server, &target, "")?;
        assert!(found == status && body.contains(part), "{target}: {found} {body}");
    }
    // Behind a body the next request line begins.
    let mut stream = TcpStream::connect(server.authority())?;
    let host = server.authority();
    write!(
        stream,
        "POST /api/v1/query HTTP/1.1\r\nHost: {host}\r\nContent-Length: 12\r\n\
                    Content-Type: application/x-www-form-urlencoded\r\n\r\nquery=\"<a>\"\n"
    )?;
    let mut answer = [0; 4096];
    let size = stream.read(&mut answer)?;
    ensure!(
        answer[..size].starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&answer[..size])
    );
    write!(
        stream,
        "GET /api/v1/query?query=\"<b>\" HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    assert!(text.contains("<b>"), "{text}");
    server.stop()
}

#[test]
fn forms_have_any_case_and_parts() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    server.write(&format!("/api/v1/import/prometheus?timestamp={NOON}"), "up{job=\"api\"} 5\n")?;
    let parts = |name: &str, value: &str| {
        format!(
            "--xyz\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n--xyz--\r\n"
        )
    };
    for (path, content_type, body, part) in [
        ("/api/v1/query", "APPLICATION/X-WWW-FORM-URLENCODED", "query=2".to_string(), r#""2""#),
        (
            "/api/v1/query",
            "Application/x-www-form-urlencoded; charset=UTF-8",
            "query=2".to_string(),
            r#""2""#,
        ),
        ("/api/v1/query", "multipart/form-data; boundary=xyz", parts("query", "2 + 1"), r#""3""#),
        (
            "/api/v1/query",
            "MULTIPART/FORM-DATA; Boundary=\"xyz\"",
            parts("query", "2 + 1"),
            r#""3""#,
        ),
        (
            "/api/v1/series",
            "multipart/form-data; boundary=xyz",
            parts("match[]", "up"),
            r#""job":"api""#,
        ),
        ("/api/v1/labels", "multipart/form-data; boundary=xyz", parts("match[]", "up"), r#""job""#),
        (
            "/federate?max_lookback=100000h",
            "multipart/form-data; boundary=xyz",
            parts("match[]", "up"),
            "up{",
        ),
        (
            "/api/v1/export",
            "multipart/form-data; boundary=xyz",
            parts("match[]", "up"),
            "\"values\":[5]",
        ),
        ("/query", "multipart/form-data; boundary=xyz", parts("q", "SHOW DATABASES"), "databases"),
        ("/api/v2/query", "Application/VND.Flux", "buckets()".to_string(), "result"),
    ] {
        let answer = server.post_with(path, &[("Content-Type", content_type)], body)?;
        assert!(
            answer.status == 200 && answer.text().contains(part),
            "{path} {content_type}: {}",
            answer.excerpt()
        );
    }
    let mut request = RequestV1::new();
    request.series(&[("__name__", "cases")], &[MillisSample { millis: NOON, value: 1.0 }]);
    let body = snap::raw::Encoder::new().compress_vec(request.as_bytes())?;
    let headers = [
        ("Content-Type", "APPLICATION/X-PROTOBUF; PROTO=prometheus.WriteRequest"),
        ("Content-Encoding", "SNAPPY"),
    ];
    assert_eq!(server.post_with("/api/v1/write", &headers, body)?.status, 204);
    assert_eq!(values(&server, "cases")?, ["1"]);
    server.stop()
}

/// Shapes that Prometheus' client in Go decodes.
#[test]
fn status_answers_have_the_types_that_go_decodes() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    for (path, pointer, expected) in [
        ("targets", "/activeTargets", json!([])),
        ("targets", "/droppedTargets", json!([])),
        ("targets/metadata", "", json!([])),
        ("alertmanagers", "/activeAlertmanagers", json!([])),
        ("alertmanagers", "/droppedAlertmanagers", json!([])),
        ("scrape_pools", "/scrapePools", json!([])),
        ("notifications", "", json!([])),
        ("rules", "/groups", json!([])),
        ("alerts", "/alerts", json!([])),
        ("status/walreplay", "/current", json!(0)),
        ("status/tsdb/blocks", "/blocks", json!([])),
    ] {
        let data = server.get(&format!("/api/v1/{path}"))?.data()?;
        assert_eq!(data.pointer(pointer), Some(&expected), "{path}{pointer}");
    }
    let runtime = server.get("/api/v1/status/runtimeinfo")?.data()?;
    for name in ["corruptionCount", "goroutineCount", "GOMAXPROCS", "GOMEMLIMIT"] {
        assert!(runtime[name].is_u64(), "{name} is {}", runtime[name]);
    }
    for name in ["startTime", "lastConfigTime", "CWD", "GOGC", "GODEBUG", "storageRetention"] {
        assert!(runtime[name].is_string(), "{name} is {}", runtime[name]);
    }
    server.stop()
}

#[test]
fn durations_are_calculated_without_a_flag() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    let lines: String =
        (0..60).map(|idx| format!("tick {idx} {}\n", NOON - 590_000 + idx * 10_000)).collect();
    server.write("/api/v1/import/prometheus", lines)?;
    for (query, expected) in [
        ("count_over_time(tick[30s + 30s])", "6"),
        ("tick offset (1m+1m)", "47"),
        ("count_over_time(tick[max_of(step(), 1m)])", "6"),
        ("tick offset step()", "59"),
    ] {
        assert_eq!(values(&server, query)?, [expected], "{query}");
    }
    let range = |query: &str, start: i64, end: i64| -> Result<String> {
        let path = format!(
            "/api/v1/query_range?start={}&end={}&step=60&query={}",
            NOON / 1000 - start,
            NOON / 1000 - end,
            percent(query)
        );
        let data = server.get(&path)?.data()?;
        Ok(data["result"][0]["values"]
            .as_array()
            .and_then(|all| all.last())
            .map_or(String::new(), |last| last[1].as_str().unwrap_or("").to_string()))
    };
    assert_eq!(range("count_over_time(tick[2*step()])", 120, 0)?, "12");
    // An answer that is kept is one of its own range alone.
    for _ in 0..3 {
        assert_eq!(range("count_over_time(tick[range()])", 120, 0)?, "12");
        assert_eq!(range("count_over_time(tick[range()])", 240, 0)?, "24");
    }
    for delta in ["0", "-5m"] {
        let query = format!("lookback_delta={delta}&query=tick&time={}", NOON / 1000);
        for path in ["/api/v1/query", "/prometheus//api/v1/query"] {
            assert_eq!(
                server.get(&format!("{path}?{query}"))?.vector()?.len(),
                1,
                "{path} {delta}"
            );
        }
    }
    // The first value counts, also if it is empty.
    let answer = server.get("/api/v1/query?query=tick&time=&time=x")?;
    assert_eq!(answer.status, 200, "{}", answer.excerpt());
    // VictoriaMetrics refuses durations below a millisecond.
    for parameter in ["step=0", "step=-1", "max_lookback=0"] {
        let answer = server.get(&format!("/metricsql/api/v1/query?query=tick&{parameter}"))?;
        assert_eq!(answer.status, 400, "{parameter}: {}", answer.excerpt());
    }
    server.stop()
}

/// What vmalert asks for when it starts, and selectors with alternatives.
#[test]
fn metricsql_is_understood_where_its_clients_look() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    server.write(
        &format!("/api/v1/import/prometheus?timestamp={NOON}"),
        "vv{a=\"1\"} 1\nvv{a=\"2\"} 2\nvv{a=\"3\"} 3\n",
    )?;
    let ask = |path: &str, name: &str, text: &str| -> Result<(u16, String)> {
        let answer = server.get(&format!("{path}{name}={}&time={}", percent(text), NOON / 1000))?;
        Ok((answer.status, answer.text()))
    };
    for (path, query, part) in [
        ("/api/v1/query?", "default_rollup(vv{a=\"1\"}[3600s])", Some("\"1\"")),
        ("/api/v1/query?", "  default_rollup( vv{a=\"1\"} )", Some("\"1\"")),
        ("/api/v1/query?", "range_over_time(vv{a=\"1\"}[1h])", Some("\"0\"")),
        ("/metricsql/api/v1/query?", "sum(default_rollup(vv[1h])) keep_metric_names", None),
        ("/metricsql/api/v1/query?", "sum(default_rollup(vv[1h]))", Some("\"6\"")),
        ("/metricsql/api/v1/query?", "vv{a=\"1\" or a=\"2\"}", Some("\"2\"")),
        ("/api/v1/query?dialect=promql&", "default_rollup(vv[1h])", None),
        ("/api/v1/query?", "sum(default_rollup(vv[1h]))", None),
        ("/api/v1/query?", "default_rollup(rate(vv[1h]))", None),
        ("/api/v1/query?", "nothing_such(vv[1h])", None),
    ] {
        let (status, text) = ask(path, "query", query)?;
        match part {
            Some(part) => assert!(status == 200 && text.contains(part), "{path}{query}: {text}"),
            None => assert_eq!(status, 400, "{path}{query}: {text}"),
        }
    }
    let or = "vv{a=\"1\" or a=\"2\"}";
    for path in [
        "/api/v1/series?",
        "/api/v1/export?",
        "/federate?max_lookback=1h&end=END&",
        "/api/v1/export/csv?format=a,__value__&",
        "/api/v1/label/a/values?",
    ] {
        let path = path.replace("END", &(NOON / 1000).to_string());
        for (path, is_metricsql) in [
            (format!("{path}dialect=metricsql&"), true),
            (format!("/metricsql{path}"), true),
            (path.clone(), false),
        ] {
            let (status, text) = ask(&path, "match[]", or)?;
            assert_eq!(status, if is_metricsql { 200 } else { 400 }, "{path}: {text}");
            if is_metricsql {
                assert!(
                    text.contains('1') && text.contains('2') && !text.contains("\"3\""),
                    "{path}: {text}"
                );
            }
        }
    }
    for (selector, status) in [("{}", 400), ("sum(vv)", 400), ("vv[5m]", 400), ("{a=~\"(\"}", 400)]
    {
        let (found, text) = ask("/federate?dialect=metricsql&", "match[]", selector)?;
        assert_eq!(found, status, "{selector}: {text}");
    }
    server.stop()
}

#[test]
fn a_column_of_csv_may_name_the_metric() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    let format = percent("1:label:__name__,2:metric:m2");
    let path = format!("/api/v1/import/csv?format={format}");
    assert_eq!(server.post(&path, "one,1\ntwo,2\n,3\n")?.status, 204);
    for (name, value) in [("one", 1), ("two", 2), ("m2", 3)] {
        let text = server.get(&format!("/api/v1/export?match[]={name}"))?.text();
        let line: Value = serde_json::from_str(&text)?;
        assert_eq!(line["values"], json!([value]), "{text}");
    }
    server.stop()
}

#[test]
fn csv_is_imported_as_victoriametrics_does() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    let at = NOON / 1000;
    let format = percent("1:label:a,2:metric:m1,3:time:unix_s");
    let body = format!(
        "x,5,{at}\r\ny,,{at}\n,7,{at}\n\"q\"\"z\",8,{at}\n\n\"w,1\",9,{at}\nzz,inf,{at}\ne,1e3,{at},extra\n"
    );
    let answer =
        server.post(&format!("/api/v1/import/csv?format={format}&extra_label=z=y"), body)?;
    assert_eq!(answer.status, 204, "{}", answer.excerpt());
    let text = server.get("/api/v1/export?match[]=m1")?.text();
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line)?;
        assert_eq!(line["timestamps"], json!([NOON]));
        assert_eq!(line["metric"]["z"], json!("y"));
        found.insert(
            line["metric"]["a"].as_str().unwrap_or("").to_string(),
            line["values"][0].clone(),
        );
    }
    let expected = [
        ("", json!(7)),
        ("e", json!(1000)),
        ("q\"z", json!(8)),
        ("w,1", json!(9)),
        ("x", json!(5)),
        ("zz", json!("Infinity")),
    ];
    let expected: BTreeMap<String, Value> =
        expected.map(|(name, value)| (name.to_string(), value)).into();
    assert_eq!(found, expected);
    let bad = server.post(
        &format!("/api/v1/import/csv?format={format}"),
        format!("bad,x,{at}\nok,1,{at}\nz,1\n"),
    )?;
    assert_eq!(bad.status, 400);
    assert!(
        bad.text().contains("line 1: cannot parse CSV: no number \"x\"")
            && bad.text().contains("line 3"),
        "{}",
        bad.text()
    );
    let none = server.post("/api/v1/import/csv?format=1:label:a", "x\n")?;
    assert!(none.status == 400 && none.text().contains("no metric column"), "{}", none.text());
    // Without a time, in whole milliseconds: VictoriaMetrics skips others.
    assert_eq!(
        server.post("/api/v1/import/csv?format=1:metric:now,2:metric:too", "1,2\n")?.status,
        204
    );
    assert_eq!(server.post("/api/v1/import/prometheus", "at_once 1\n")?.status, 204);
    ensure!(server.post("/metrics/job/j", "pushed 1\n")?.status < 300);
    for name in ["now", "too", "at_once", "pushed"] {
        let text = server.get(&format!("/api/v1/export?match[]={name}"))?.text();
        let line: Value = serde_json::from_str(&text)?;
        assert!(line["timestamps"][0].is_i64(), "{text}");
    }
    let count = server.get("/api/v1/series/count")?.json()?;
    let series =
        server.get(&format!("/api/v1/series?match[]={}", percent("{__name__!=\"\"}")))?.data()?;
    assert_eq!(count["data"], json!([series.as_array().map_or(0, Vec::len)]));
    server.stop()
}

#[test]
fn the_header_of_csv_is_passed_over() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    let format = percent("1:label:a,2:metric:m1,3:time:unix_s");
    let import = |body: String| server.post(&format!("/api/v1/import/csv?format={format}"), body);
    let at = NOON / 1000;
    let headed = import(format!("a,\"m1\",time\nx,1,{at}\n"))?;
    assert_eq!(headed.status, 204, "{}", headed.excerpt());
    // A line that is wrong in one column is none, nor is one behind the first.
    let wrong = import(format!("a,m1,{at}\n"))?;
    assert!(wrong.status == 400 && wrong.text().contains("line 1: "), "{}", wrong.text());
    let late = import(format!("x,2,{at}\na,m1,time\n"))?;
    assert!(late.status == 400 && late.text().contains("line 2: "), "{}", late.text());
    assert_eq!(values(&server, "m1")?, ["2"]);
    server.stop()
}

/// A query that Prometheus refuses is the client's fault, whatever stands around it.
#[test]
fn faults_of_queries_are_bad_data() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    send(&server, "gauge", &[(NOON, 1.0)])?;
    let deep = format!("gauge{{a=~\"{}a{}\"}}", "(".repeat(201), ")".repeat(201));
    let large = r#"gauge{a=~"\\pL{900}\\pL{900}"}"#.to_string();
    for query in ["(rate(gauge))".into(), "RATE(gauge)".into(), "(abs(1))".into(), deep, large] {
        let path = format!("/api/v1/query?time={}&query={}", NOON / 1000, percent(&query));
        let answer = server.get(&path)?;
        ensure!(answer.status == 400, "{query}: {} {}", answer.status, answer.excerpt());
        ensure!(answer.json()?["errorType"] == "bad_data", "{query}: {}", answer.excerpt());
    }
    Ok(())
}

/// Prometheus writes the value of a scalar without an exponent, and that of a vector with one.
#[test]
fn scalars_have_no_exponent() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory)?;
    for (query, value) in [
        ("1e-7", "0.0000001"),
        ("-1e22", "-10000000000000000000000"),
        ("vector(1e-7)", "1e-07"),
        ("0.5", "0.5"),
        ("1/0", "+Inf"),
    ] {
        ensure!(values(&server, query)? == [value], "{query}: {:?}", values(&server, query)?);
    }
    Ok(())
}
