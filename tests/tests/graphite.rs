//! Graphite's index over HTTP: the exact JSON that its clients' metric browsers get.

use anyhow::{Result, ensure};
use e2e::{Launch, Server, percent};

/// 2024-02-29 12:00:00 UTC in seconds.
const NOON: i64 = 1_709_208_000;

/// Names in which a leaf is an inner node too, and their tags.
const SERIES: &[(&str, &str)] = &[
    ("web.host1.cpu", "eu"),
    ("web.host2.cpu", "us"),
    ("web.host2.mem", "us"),
    ("web.host10.cpu.user", "eu"),
    ("web", "eu"),
    ("db_reads", "eu"),
    ("db_writes", "us"),
];

fn server(directory: &tempfile::TempDir) -> Result<Server> {
    let server = Launch::new(directory.path()).start()?;
    let lines = SERIES.iter().map(|(name, dc)| {
        format!(
            "{{\"metric\":{{\"__name__\":\"{name}\",\"dc\":\"{dc}\"}},\
             \"values\":[1],\"timestamps\":[{NOON}000]}}\n"
        )
    });
    server.write("/api/v1/import", lines.collect::<String>())?;
    Ok(server)
}

/// Parameters as a person writes them, percent-encoded where they must be.
fn path(route: &str, parameters: &[&str]) -> String {
    let pairs = parameters.iter().map(|pair| {
        let (name, value) = pair.split_once('=').expect("name=value");
        format!("{name}={}", percent(value))
    });
    format!("{route}?{}", pairs.collect::<Vec<_>>().join("&"))
}

#[track_caller]
fn check(server: &Server, route: &str, parameters: &[&str], expected: &str) {
    let path = path(route, parameters);
    let answer = server.get(&path).expect("an answer");
    assert_eq!((answer.status, answer.text().as_str()), (200, expected), "{path}");
    assert_eq!(answer.header("content-type"), "application/json", "{path}");
}

#[track_caller]
fn refused(server: &Server, route: &str, parameters: &[&str], part: &str) {
    let path = path(route, parameters);
    let answer = server.get(&path).expect("an answer");
    let text = answer.text();
    assert!(answer.status == 400 && text.contains(part), "{path}: {} {text}", answer.status);
    assert!(text.contains("\"errorType\":\"bad_data\""), "{path}: {text}");
}

fn check_find(server: &Server) {
    let find = "/metrics/find";
    check(
        server,
        find,
        &["query=*"],
        r#"[{"id":"db_reads","text":"db_reads","allowChildren":0,"expandable":0,"leaf":1},{"id":"db_writes","text":"db_writes","allowChildren":0,"expandable":0,"leaf":1},{"id":"web","text":"web","allowChildren":1,"expandable":1,"leaf":0}]"#,
    );
    check(
        server,
        find,
        &["query=web.host[12].*", "wildcards=1"],
        r#"[{"id":"web.host[12].cpu","text":"cpu","allowChildren":0,"expandable":0,"leaf":1},{"id":"web.host[12].mem","text":"mem","allowChildren":0,"expandable":0,"leaf":1},{"id":"web.host[12].*","text":"*","allowChildren":0,"expandable":0,"leaf":1}]"#,
    );
    check(
        server,
        find,
        &["query=web.host?"],
        r#"[{"id":"web.host1.","text":"host1","allowChildren":1,"expandable":1,"leaf":0},{"id":"web.host2.","text":"host2","allowChildren":1,"expandable":1,"leaf":0}]"#,
    );
    check(
        server,
        find,
        &["query=w", "format=completer", "wildcards=1"],
        r#"{"metrics":[{"path":"web.","name":"web","is_leaf":0},{"path":"web","name":"web","is_leaf":1},{"name":"*"}]}"#,
    );
    check(server, find, &["query=d*", "label=dc"], "[]");
    check(
        server,
        find,
        &["query=db_*", "delimiter=_", "leavesOnly=1"],
        r#"[{"id":"db_reads","text":"reads","allowChildren":0,"expandable":0,"leaf":1},{"id":"db_writes","text":"writes","allowChildren":0,"expandable":0,"leaf":1}]"#,
    );
    // To the day.
    let (day_before, day_after) = (NOON - 86_400, NOON + 86_400);
    check(server, find, &["query=*", &format!("until={day_before}")], "[]");
    check(server, find, &["query=*", &format!("from={day_after}")], "[]");
    check(server, find, &["query=*", "from=-5min"], "[]");
}

fn check_expand(server: &Server) {
    let expand = "/metrics/expand";
    let all = r#"["web.host10.cpu.","web.host1.cpu","web.host2.cpu"]"#;
    check(server, expand, &["query=web.*.cpu"], all);
    check(server, "/graphite/metrics/expand/", &["query=web.*.cpu", "query=web.*.cpu"], all);
    check(
        server,
        expand,
        &["query=web.*.cpu", "leavesOnly=1"],
        r#"["web.host1.cpu","web.host2.cpu"]"#,
    );
    check(
        server,
        expand,
        &["query=w*", "query=web.host{1,10}", "groupByExpr=1"],
        r#"{"results":{"w*":["web.","web"],"web.host{1,10}":["web.host1.","web.host10."]}}"#,
    );
    check(
        server,
        "/metrics/index.json",
        &[],
        r#"["db_reads","db_writes","web","web.host1.cpu","web.host10.cpu.user","web.host2.cpu","web.host2.mem"]"#,
    );
}

#[test]
fn paths_in_memory_and_on_disk() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = server(&directory)?;
    check_find(&server);
    check_expand(&server);
    let flushed = server.post("/internal/force_flush", "")?;
    ensure!(flushed.status < 300, "{}", flushed.excerpt());
    check_find(&server);
    check_expand(&server);
    let form = "query=web.host2.m*&format=completer";
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let answer = server.post_with("/metrics/find", &headers, form)?;
    assert_eq!(answer.text(), r#"{"metrics":[{"path":"web.host2.mem","name":"mem","is_leaf":1}]}"#);
    server.stop()
}

#[test]
fn tags() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = server(&directory)?;
    check(&server, "/tags", &[], r#"[{"tag":"dc"},{"tag":"name"}]"#);
    check(&server, "/tags", &["filter=n.m"], r#"[{"tag":"name"}]"#);
    check(
        &server,
        "/tags/dc",
        &[],
        r#"{"tag":"dc","values":[{"count":1,"value":"eu"},{"count":1,"value":"us"}]}"#,
    );
    check(
        &server,
        "/tags/name",
        &["filter=web.host1", "limit=1"],
        r#"{"tag":"name","values":[{"count":1,"value":"web.host1.cpu"}]}"#,
    );
    check(
        &server,
        "/tags/findSeries",
        &["expr=name=~web", "expr=dc!=eu"],
        r#"["web.host2.cpu;dc=us","web.host2.mem;dc=us"]"#,
    );
    check(&server, "/tags/autoComplete/tags", &["tagPrefix=d"], r#"["dc"]"#);
    check(&server, "/tags/autoComplete/tags", &["expr=name=web"], r#"["dc","name"]"#);
    check(
        &server,
        "/tags/autoComplete/values",
        &["tag=name", "valuePrefix=db_", "expr=dc=us"],
        r#"["db_writes"]"#,
    );
    server.stop()
}

#[test]
fn selectors_take_path_patterns() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = server(&directory)?;
    let count = |selector: &str| -> Result<Option<String>> {
        let found = server.vector(&format!("count({selector})"), NOON as f64)?;
        Ok(found.into_values().next())
    };
    assert_eq!(count("{__graphite__=\"web.*.cpu\"}")?.as_deref(), Some("2"));
    assert_eq!(count("{__graphite__=\"web.*.cpu\",dc=\"us\"}")?.as_deref(), Some("1"));
    assert_eq!(count("{dc=\"us\",__graphite__!=\"web.host2.{cpu,mem}\"}")?.as_deref(), Some("1"));
    assert_eq!(count("{__graphite__=\"web.*\"}")?, None);
    check(
        &server,
        "/api/v1/label/dc/values",
        &["match[]={__graphite__=\"web.*.mem\"}"],
        r#"{"status":"success","data":["us"]}"#,
    );
    refused(&server, "/api/v1/series", &["match[]={__graphite__=~\"a\"}"], "no regular expression");
    server.stop()
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_do() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = server(&directory)?;
    let find = "/metrics/find";
    refused(&server, find, &[], "query=* lists");
    refused(&server, find, &["query=a", "format=xml"], "use treejson or completer");
    refused(&server, find, &["query=a", "delimiter=::"], "one ASCII character");
    refused(&server, find, &["query=a[z-a]"], "ends before it starts");
    refused(&server, find, &["query=a", "jsonp=f"], "leave it out");
    refused(&server, find, &["query=a", "from=soon"], "from");
    refused(&server, find, &["query=a", "from=2", "until=1"], "must not be before from");
    refused(&server, find, &[&format!("query={}", "a".repeat(5000))], "the limit is 4096");
    refused(&server, "/metrics/expand", &[], "query=* lists");
    refused(&server, "/tags", &["filter=("], "missing closing )");
    refused(&server, "/tags/findSeries", &[], "no expr");
    refused(&server, "/tags/findSeries", &["expr=host"], "tag=value");
    refused(&server, "/tags/autoComplete/values", &[], "no tag");
    server.stop()
}
