//! Each door over a real socket: what it takes, what it gives, how it words an error.

use crate::common::{gunzip, gzip, percent, start, start_on};
use model::{Metadata, MetricKind};
use wire::remote_write::encode::{MillisSample, RequestV1};

/// A second in the past that all tests write around.
const T: u64 = 1_700_000_000;

fn snappy(bytes: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(bytes).expect("memory")
}

#[test]
fn line_protocol_in_promql_out_also_after_a_restart() {
    let server = start(&[]);
    let line = format!("cpu,host=a usage=1.5,idle=2i {T}000000000\n");
    for path in ["/write", "/influx/write", "/api/v2/write", "/influx/api/v2/write"] {
        assert_eq!(server.post(path, line.as_bytes()).status, 204, "{path}");
    }
    let reply =
        server.send("POST", "/write", &[("content-encoding", "gzip")], &gzip(line.as_bytes()));
    assert_eq!(reply.status, 204, "{}", reply.text());
    let expected =
        [("cpu_idle".to_string(), "2".to_string()), ("cpu_usage".to_string(), "1.5".to_string())];
    let mut found = server.query("{__name__=~\"cpu_.*\"}", T + 1);
    found.sort();
    assert_eq!(found, expected);
    let server = start_on(server.stop(), &[]);
    let mut found = server.query("{__name__=~\"cpu_.*\"}", T + 1);
    found.sort();
    assert_eq!(found, expected, "after a restart");
    server.stop();
}

#[test]
fn database_and_extra_labels_become_labels() {
    let server = start(&[]);
    let line = format!("m v=1 {T}");
    let path = "/write?db=metrics&precision=s&extra_label=site=x&extra_label=a=b%3Dc";
    assert_eq!(server.post(path, line.as_bytes()).status, 204);
    let query = percent("m_v{db=\"metrics\",site=\"x\",a=\"b=c\"}");
    let reply = server.get(&format!("/api/v1/query?query={query}&time={T}"));
    assert_eq!(
        reply.json()["data"]["result"].as_array().map(Vec::len),
        Some(1),
        "{}",
        reply.text()
    );
    let bad = server.post("/write?extra_label=nothing", b"m v=1");
    assert_eq!(bad.status, 400);
    let bad = server.post("/write?precision=fortnight", b"m v=1");
    assert!(bad.status == 400 && bad.text().contains("fortnight"), "{}", bad.text());
}

#[test]
fn the_good_lines_of_a_bad_batch_are_stored() {
    let server = start(&[]);
    let body = format!("good v=1 {T}\nbad\ngood v=2 {}\n", T + 1);
    let reply = server.post("/write?precision=s", body.as_bytes());
    assert_eq!(reply.status, 400);
    let error = reply.json()["error"].as_str().unwrap_or_default().to_string();
    assert!(error.starts_with("partial write: unable to parse 'bad': missing fields"), "{error}");
    assert!(error.ends_with("dropped=1"), "{error}");
    assert_eq!(server.query("good_v", T + 1), [("good_v".to_string(), "2".to_string())]);
    let reply = server.post("/api/v2/write?precision=s", body.as_bytes());
    let json = reply.json();
    assert_eq!((reply.status, &json["code"], &json["line"]), (400, &"invalid".into(), &2.into()));
    assert_eq!(server.metric("quipu_insert_lines_refused_total{protocol=\"influx\"}"), 2.0);
}

#[test]
fn strings_are_dropped_and_their_lines_stored_where_none_are_kept() {
    let server = start(&[("influx.max-strings", "0")]);
    let body = format!("sys,h=a up=1,text=\"7 days\",load=2 {T}\nsys,h=a text=\"alone\" {T}\n");
    for path in ["/write?precision=s", "/api/v2/write?precision=s"] {
        let reply = server.post(path, body.as_bytes());
        assert_eq!((reply.status, reply.text().as_str()), (204, ""));
    }
    assert_eq!(server.query("sys_load", T), [("sys_load".to_string(), "2".to_string())]);
    let dropped = "quipu_insert_lossy_total{kind=\"influx_string_dropped\"}";
    assert_eq!(server.metric(dropped), 4.0);
    assert_eq!(server.metric("quipu_insert_lines_refused_total{protocol=\"influx\"}"), 0.0);
    assert_eq!(server.metric("quipu_insert_samples_total{protocol=\"influx\"}"), 4.0);
    let reply = server.post("/write?precision=s", b"sys text=\"x\",up=yes");
    assert_eq!(reply.status, 400, "other faults are told as ever: {}", reply.text());
}

#[test]
fn label_limits_refuse_series_and_say_so() {
    let server = start(&[("max-labels-per-series", "3"), ("max-label-value-size", "10")]);
    let body = format!("m,a=1,b=2,c=3 v=1 {T}\nm,a=12345678901 v=1 {T}\nm,a=1 v=7 {T}\n");
    let reply = server.post("/write?precision=s", body.as_bytes());
    let error = reply.text();
    assert_eq!(reply.status, 400, "{error}");
    assert!(
        error.contains("max-labels-per-series") && error.contains("max-label-value-size"),
        "{error}"
    );
    assert_eq!(server.query("m_v", T), [("m_v".to_string(), "7".to_string())]);
}

#[test]
fn influx_handshakes() {
    let server = start(&[]);
    let ping = server.get("/ping");
    assert_eq!((ping.status, ping.header("x-influxdb-version")), (204, Some("1.8.10")));
    assert_eq!(server.send("HEAD", "/ping", &[], b"").status, 204);
    assert_eq!(server.get("/ping?verbose=true").json()["version"], "1.8.10");
    assert_eq!(server.get("/health").json()["status"], "pass");
    let reply = server.get("/query?q=SHOW+DATABASES");
    assert_eq!(reply.json()["results"][0]["series"][0]["name"], "databases");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let reply = server.send("POST", "/query", &form, b"q=CREATE+DATABASE+%22telegraf%22");
    assert_eq!((reply.status, &reply.json()["results"][0]["statement_id"]), (200, &0.into()));
    let reply = server.get("/query?db=telegraf&q=SELECT+1");
    assert!(reply.text().contains("error parsing query"), "{}", reply.text());
    assert_eq!(server.get("/query").status, 400);
}

#[test]
fn remote_write_1() {
    let server = start(&[]);
    let mut request = RequestV1::new();
    let sample = |value| MillisSample { millis: T as i64 * 1000, value };
    request.series(&[("__name__", "up"), ("job", "j")], &[sample(1.0)]);
    request.metadata(&Metadata {
        metric: "up".into(),
        kind: MetricKind::Gauge,
        help: "Is it?".into(),
        unit: String::new(),
    });
    let body = snappy(request.as_bytes());
    let headers = [("content-type", "application/x-protobuf"), ("content-encoding", "snappy")];
    for path in ["/api/v1/write", "/api/v1/push", "/prometheus/api/v1/write"] {
        let reply = server.send("POST", path, &headers, &body);
        assert_eq!(reply.status, 204, "{path}: {}", reply.text());
    }
    assert_eq!(server.query("up", T), [("up".to_string(), "1".to_string())]);
    let metadata = server.get("/api/v1/metadata?metric=up").json();
    assert_eq!(metadata["data"]["up"][0]["type"], "gauge");
    assert_eq!(metadata["data"]["up"][0]["help"], "Is it?");
    // A series without a name is refused, the other is stored.
    let mut request = RequestV1::new();
    request.series(&[("job", "nameless")], &[sample(1.0)]);
    request.series(&[("__name__", "second")], &[sample(2.0)]);
    let reply = server.send("POST", "/api/v1/write", &headers, &snappy(request.as_bytes()));
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("series 0: missing metric name"), "{}", reply.text());
    assert_eq!(server.query("second", T), [("second".to_string(), "2".to_string())]);
}

#[test]
fn remote_write_speaks_of_what_it_cannot_read() {
    let server = start(&[]);
    let send =
        |headers: &[(&str, &str)], body: &[u8]| server.send("POST", "/api/v1/write", headers, body);
    assert_eq!(send(&[("content-type", "application/json")], b"{}").status, 415);
    let unknown = [("content-type", "application/x-protobuf;proto=io.prometheus.write.v9.Request")];
    assert_eq!(send(&unknown, b"").status, 415);
    assert_eq!(send(&[("content-encoding", "br")], b"").status, 415);
    let whole = snappy(&[0x0a; 1000]);
    assert_eq!(send(&[], &whole[..whole.len() / 2]).status, 400, "half a snappy block");
    assert_eq!(send(&[], &snappy(b"\x0a\xff\xff\xff\xff\x0f")).status, 400, "lies about lengths");
    let huge = [0xff, 0xff, 0xff, 0xff, 0x0f];
    assert_eq!(send(&[], &huge).status, 413, "promises 4 GiB");
    let v2 = [("content-type", "application/x-protobuf;proto=io.prometheus.write.v2.Request")];
    let reply = send(&v2, &snappy(b""));
    assert_eq!(reply.status, 204, "{}", reply.text());
    for what in ["samples", "histograms", "exemplars"] {
        let name = format!("x-prometheus-remote-write-{what}-written");
        assert_eq!(reply.header(&name), Some("0"), "{name}");
    }
}

#[test]
fn exposition_text_and_pushgateway() {
    let server = start(&[]);
    let body = "# HELP jobs Jobs done.\n# TYPE jobs counter\njobs{q=\"a\"} 3\nbroken{\njobs 4\n";
    let path = format!("/api/v1/import/prometheus?timestamp={T}000");
    let reply = server.post(&path, body.as_bytes());
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("line 4:"), "{}", reply.text());
    assert_eq!(server.query("sum(jobs)", T)[0].1, "7");
    let path = format!("/metrics/job/backup/instance@base64/YS9i?timestamp={T}000");
    assert_eq!(server.post(&path, b"last_success 1\n").status, 200);
    let path = format!("/api/v1/import/prometheus/metrics/job/backup/instance/c?timestamp={T}000");
    assert_eq!(server.post(&path, b"last_success 1\n").status, 204);
    assert_eq!(server.query("last_success{job=\"backup\",instance=~\"a/b|c\"}", T).len(), 2);
    assert_eq!(server.post("/metrics/job/backup/instance", b"x 1\n").status, 400);
}

#[test]
fn json_lines_go_around() {
    let server = start(&[]);
    let line = format!(
        "{{\"metric\":{{\"__name__\":\"m\",\"a\":\"b\"}},\"values\":[1,null,\"-Infinity\",0.1],\
         \"timestamps\":[{T}000,{T}001,{T}002,{T}003.000001]}}\n"
    );
    assert_eq!(server.post("/api/v1/import", line.as_bytes()).status, 204);
    let export = format!("/api/v1/export?match[]={}", percent("m"));
    assert_eq!(server.get(&export).text(), line);
    let text = server.get(&format!("{export}&format=prometheus")).text();
    assert!(text.starts_with(&format!("m{{a=\"b\"}} 1 {T}000\n")), "{text}");
    assert_eq!(server.get("/api/v1/export").status, 400, "no match[]");
    let bad = server.post("/api/v1/import", b"{}\nnonsense\n");
    assert!(bad.status == 400 && bad.text().contains("line 2:"), "{}", bad.text());
}

#[test]
fn queries_and_their_errors() {
    let server = start(&[]);
    let lines: String = (0..100).map(|i| format!("m,i={i} v={i} {T}\n")).collect();
    assert_eq!(server.post("/write?precision=s", lines.as_bytes()).status, 204);
    let reply = server.get(&format!("/api/v1/query?query=count(m_v)&time={T}"));
    let expected = format!(
        "{{\"status\":\"success\",\"data\":{{\"resultType\":\"vector\",\"result\":[\
         {{\"metric\":{{}},\"value\":[{T},\"100\"]}}]}}}}"
    );
    assert_eq!(reply.text(), expected);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let body = format!("query=m_v&start={T}&end={}&step=15", T + 60);
    let reply = server.send("POST", "/api/v1/query_range", &form, body.as_bytes());
    assert_eq!(reply.json()["data"]["result"].as_array().map(Vec::len), Some(100));
    let headers = [("accept-encoding", "br, gzip")];
    let path = format!("/api/v1/query_range?{body}");
    let packed = server.send("GET", &path, &headers, b"");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(gunzip(&packed.body), reply.body);
    for (path, part) in [
        ("/api/v1/query?query=m[", "parse error"),
        ("/api/v1/query", "parse error"),
        ("/api/v1/query?query=m&time=noon", "noon"),
        ("/api/v1/query_range?query=m&start=1&end=2&step=0", "step"),
        ("/api/v1/query_range?query=m&start=2&end=1&step=1", "end timestamp"),
        ("/api/v1/query_range?query=m&start=1&end=2", "step"),
        ("/api/v1/query_range?query=m&start=0&end=100000&step=1", "11,000 points"),
        ("/api/v1/query?query=m&dialect=sql", "promql or metricsql"),
        ("/api/v1/functions?dialect=sql", "promql or metricsql"),
        ("/api/v1/query?query=m&timeout=x", "timeout"),
        ("/api/v1/series", "no match[]"),
        ("/api/v1/series?match[]=m[1m]", "no series selector"),
        ("/api/v1/labels?match[]={", "parse error"),
        ("/api/v1/labels?limit=x", "limit"),
    ] {
        let reply = server.get(path);
        let json = reply.json();
        assert_eq!((reply.status, &json["errorType"]), (400, &"bad_data".into()), "{path}");
        let error = json["error"].as_str().unwrap_or_default();
        assert!(error.contains(part), "{path}: {error}");
    }
}

#[test]
fn query_limits_have_names() {
    let flags = [("query.max-series", "10"), ("query.max-samples", "50")];
    let server = start(&flags);
    let lines: String = (0..20).map(|i| format!("m,i={i} v={i} {T}\n")).collect();
    assert_eq!(server.post("/write?precision=s", lines.as_bytes()).status, 204);
    let reply = server.get(&format!("/api/v1/query?query=m_v&time={T}"));
    assert_eq!((reply.status, &reply.json()["errorType"]), (422, &"execution".into()));
    assert!(reply.text().contains("query.max-series"), "{}", reply.text());
    assert_eq!(server.metric("quipu_limit_hits_total{limit=\"query.max-series\"}"), 1.0);
    let path = format!("/api/v1/query?query={}&time={T}&timeout=0", percent("sum(m_v{i=\"1\"})"));
    let reply = server.get(&path);
    assert_eq!(
        (reply.status, &reply.json()["errorType"]),
        (503, &"timeout".into()),
        "{}",
        reply.text()
    );
}

#[test]
fn labels_and_series() {
    let server = start(&[]);
    assert_eq!(
        server
            .post("/write?precision=s", format!("m,a=1 v=1 {T}\nn,b=2 v=1 {T}\n").as_bytes())
            .status,
        204
    );
    let data = |path: &str| server.get(path).json()["data"].to_string();
    assert_eq!(data("/api/v1/labels"), r#"["__name__","a","b"]"#);
    assert_eq!(data("/api/v1/labels?match[]=m_v"), r#"["__name__","a"]"#);
    assert_eq!(data("/api/v1/label/__name__/values"), r#"["m_v","n_v"]"#);
    assert_eq!(data("/api/v1/label/__name__/values?limit=1"), r#"["m_v"]"#);
    assert!(server.get("/api/v1/label/__name__/values?limit=1").text().contains("truncated"));
    assert_eq!(data("/api/v1/label/a/values?start=0&end=1"), "[]");
    assert_eq!(data("/api/v1/series?match[]=n_v"), r#"[{"__name__":"n_v","b":"2"}]"#);
    assert_eq!(data("/prometheus/api/v1/query_exemplars?query=m"), "[]");
    assert_eq!(data("/api/v1/format_query?query=sum(m)by(a)"), r#""sum by (a) (m)""#);
}

#[test]
fn status_pages() {
    let server = start(&[("bearer-token", "geheim")]);
    let headers = [("authorization", "Bearer geheim")];
    let get = |path: &str| server.send("GET", path, &headers, b"");
    assert!(
        get("/api/v1/status/buildinfo").json()["data"]["version"]
            .as_str()
            .is_some_and(|v| v.starts_with("3."))
    );
    let flags = get("/api/v1/status/flags");
    assert_eq!(flags.json()["data"]["query.timeout"], "2m");
    assert_eq!(flags.json()["data"]["partition"], "month");
    assert!(!flags.text().contains("geheim"), "{}", flags.text());
    assert!(!get("/api/v1/status/config").text().contains("geheim"));
    assert_eq!(get("/api/v1/status/runtimeinfo").json()["data"]["storageRetention"], "0");
    let line = format!("m,a=1 v=1 {T}\n");
    server.send("POST", "/write?precision=s", &headers, line.as_bytes());
    let tsdb = get("/api/v1/status/tsdb?limit=1").json();
    assert_eq!(tsdb["data"]["seriesCountByMetricName"][0]["name"], "m_v");
    assert_eq!(tsdb["data"]["headStats"]["numSeries"], 1);
    assert_eq!(tsdb["data"]["totalSeries"], 1, "VictoriaMetrics' name");
    let focused = get("/api/v1/status/tsdb?topN=3&focusLabel=a").json();
    assert_eq!(focused["data"]["seriesCountByFocusLabelValue"][0]["name"], "1");
    assert_eq!(get("/api/v1/status/tsdb?limit=0").status, 400);
    let new = get("/api/v1/status/series/new?hours=1").json();
    assert_eq!(new["data"]["newSeriesByHour"][0]["series"], 1, "{new}");
    assert_eq!(get("/api/v1/status/series/new?hours=0").status, 400);
    for left in [1, 0] {
        let unqueried = get("/api/v1/status/series/unqueried").json();
        assert_eq!(unqueried["data"]["totalSeries"], left, "{unqueried}");
        assert_eq!(get(&format!("/api/v1/query?query=m_v&time={T}")).status, 200);
    }
    assert_eq!(get("/api/v1/status/tsdb?date=2023-13-14").status, 400);
    assert_eq!(get("/-/ready").status, 200);
    let page = get("/");
    assert!(page.text().contains("<title>Quipu</title>"));
    assert!(
        page.header("content-security-policy").is_some_and(|p| p.contains("default-src 'none'"))
    );
    assert_eq!(get("/ui/src/main.js").status, 200);
    assert_eq!(get("/ui/../Cargo.toml").status, 404);
}

#[test]
fn federation_gives_the_newest() {
    let server = start(&[]);
    let now = server.app().vfs.now() / 1_000_000_000;
    let lines = format!("m,a=1 v=1 {}\nm,a=1 v=2 {}\nold v=1 {T}\n", now - 2, now - 1);
    assert_eq!(server.post("/write?precision=s", lines.as_bytes()).status, 204);
    let path = format!("/federate?match[]={}", percent("{__name__=~\"m_v|old_v\"}"));
    let reply = server.get(&path);
    let labels = "{a=\"1\",instance=\"\"}";
    assert_eq!(reply.text(), format!("# TYPE m_v untyped\nm_v{labels} 2 {}000\n", now - 1));
}

#[test]
fn orders() {
    let server = start(&[]);
    let lines = format!("m,a=1 v=1 {T}\nm,a=2 v=2 {T}\n");
    assert_eq!(server.post("/write?precision=s", lines.as_bytes()).status, 204);
    assert_eq!(server.post("/internal/force_flush", b"").status, 200);
    let snapshot = server.post("/api/v1/admin/tsdb/snapshot", b"");
    let name = snapshot.json()["data"]["name"].as_str().expect("a name").to_string();
    assert_eq!(server.get("/snapshot/list").json()["snapshots"][0], name.as_str());
    assert_eq!(server.post(&format!("/snapshot/delete?snapshot={name}"), b"").status, 200);
    assert_eq!(server.post("/snapshot/delete?snapshot=../x", b"").status, 404);
    assert_eq!(server.get("/snapshot/list").json()["snapshots"].as_array().map(Vec::len), Some(0));
    assert_eq!(server.post("/api/v1/admin/tsdb/delete_series", b"").status, 400);
    let path = format!("/api/v1/admin/tsdb/delete_series?match[]={}", percent("m_v{a=\"1\"}"));
    assert_eq!(server.get(&path).status, 405);
    assert_eq!(server.post(&path, b"").status, 204);
    assert_eq!(server.query("m_v", T), [("m_v".to_string(), "2".to_string())]);
    assert_eq!(server.post("/internal/force_merge?partition_prefix=2023_11", b"").status, 200);
    assert_eq!(server.query("m_v", T), [("m_v".to_string(), "2".to_string())]);
}

#[test]
fn own_metrics_are_stored() {
    let server = start(&[("self-scrape-interval", "0")]);
    let samples = quipu::self_scrape::scrape(server.app()).expect("a scrape");
    assert!(50 < samples, "{samples}");
    let now = server.app().vfs.now() as u64 / 1_000_000_000 + 1;
    assert_eq!(server.query("up{job=\"quipu\"}", now), [("up".to_string(), "1".to_string())]);
    assert_eq!(server.query("quipu_build_info", now).len(), 1);
}
