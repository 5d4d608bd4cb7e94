//! `extra_label` and `extra_filters[]`, by which a proxy confines a tenant: no route shows or
//! deletes another tenant's series.

use anyhow::{Context, Result, ensure};
use e2e::protobuf::{bytes, number};
use e2e::routes::{PARAMETERS, paths};
use e2e::{Launch, Response, Server, percent};

/// 2024-02-29 12:00:00 UTC in seconds.
const NOON: i64 = 1_709_208_000;
/// Each tenant's mark is in all of its names and values, and nowhere else.
const TENANTS: [&str; 3] = ["dev", "ops", "qa"];

/// Samples, exemplars and strings of three tenants; `xl` is everybody's metric.
fn write_tenants(server: &Server) -> Result<()> {
    let mut text = String::new();
    for (idx, team) in TENANTS.iter().enumerate() {
        for at in 0..20 {
            let (value, time) = (10 * idx as i64 + at, NOON - 600 + 30 * at);
            text += &format!("xl{{team=\"{team}\",host=\"h-{team}\"}} {value} {time}");
            text += &format!(" # {{trace_id=\"t-{team}\"}} 1 {time}\n");
            text += &format!("only_{team}{{team=\"{team}\"}} {value} {time}\n");
        }
    }
    let headers = [("Content-Type", "application/openmetrics-text; version=1.0.0")];
    let response = server.post_with("/api/v1/import/prometheus", &headers, text + "# EOF\n")?;
    ensure!(response.status == 204, "{}", response.excerpt());
    for team in TENANTS {
        let line = format!("log,team={team} line=\"said by {team}\" {NOON}000000000");
        server.write("/write", line)?;
    }
    Ok(())
}

/// `path` with parameters, which are encoded.
fn path(route: &str, parameters: &[(&str, &str)]) -> String {
    let pairs =
        parameters.iter().map(|(name, value)| format!("{}={}", percent(name), percent(value)));
    format!("{route}?{}", pairs.collect::<Vec<_>>().join("&"))
}

/// Ways to say that only `team="dev"` is to be seen.
fn confined_to_dev() -> Vec<Vec<(&'static str, &'static str)>> {
    vec![
        vec![("extra_label", "team=dev")],
        vec![("extra_filters[]", "{team=\"dev\"}")],
        vec![("extra_filters", "{team=~\"dev|dev2\"}")],
        vec![("extra_filters[]", "{team!=\"ops\",team!=\"qa\",team!=\"\"}")],
        vec![("extra_filters[]", "{team=\"nobody\" or team=\"dev\"}")],
        vec![
            ("extra_label", "team=dev"),
            ("extra_filters[]", "{team=\"ops\"}"),
            ("extra_filters[]", "{team!=\"ops\"}"),
        ],
        vec![("extra_filters[]", "{team=~\"dev|ops\"}"), ("extra_filters", "{team!=\"ops\"}")],
    ]
}

/// What routes that read answer for whoever is confined to one tenant: they name that one.
fn readers() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
    let range = [("start", "1709207000"), ("end", "1709209000")];
    let with = |more: &[(&'static str, &'static str)]| [more, &range[..]].concat();
    let day = ("date", "2024-02-29");
    vec![
        ("/api/v1/query", vec![("query", "xl"), ("time", "1709208000")]),
        ("/api/v1/query", vec![("query", "xl[5m]"), ("time", "1709208000")]),
        ("/api/v1/query", vec![("query", "{__name__=~\".+\"}"), ("time", "1709208000")]),
        ("/api/v1/query", vec![("query", "xl"), ("time", "1709208000"), ("dialect", "metricsql")]),
        ("/prometheus/api/v1/query", vec![("query", "xl"), ("time", "1709208000")]),
        ("/api/v1/query_range", with(&[("query", "xl"), ("step", "60")])),
        ("/api/v1/query_range", with(&[("query", "xl"), ("step", "60"), ("nocache", "1")])),
        (
            "/api/v1/query_range",
            with(&[("query", "{__name__!=\"\"}"), ("step", "60"), ("dialect", "metricsql")]),
        ),
        ("/api/v1/query_exemplars", with(&[("query", "xl")])),
        ("/api/v1/series", vec![("match[]", "xl"), ("match[]", "{__name__=~\"only.*\"}")]),
        ("/api/v1/labels", vec![]),
        ("/api/v1/label/team/values", vec![]),
        ("/api/v1/label/team/values", vec![("match[]", "xl")]),
        ("/api/v1/label/__name__/values", vec![]),
        ("/api/v1/export", vec![("match[]", "{__name__=~\".*\"}")]),
        ("/api/v1/export", vec![("match[]", "{__name__=~\".*\"}"), ("strings", "1")]),
        ("/api/v1/export", vec![("match[]", "{__name__=~\".*\"}"), ("strings", "only")]),
        ("/api/v1/export", vec![("match[]", "xl"), ("format", "prometheus")]),
        ("/api/v1/export", vec![("match[]", "xl"), ("format", "promapi")]),
        ("/api/v1/export/csv", vec![("match[]", "xl"), ("format", "__name__,team,host,__value__")]),
        ("/api/v1/export/native", vec![("match[]", "xl")]),
        ("/federate", vec![("match[]", "xl"), ("max_lookback", "100000h")]),
        ("/api/v1/status/tsdb", vec![day, ("focusLabel", "team")]),
        ("/api/v1/status/series/unqueried", vec![day, ("match[]", "{team!=\"\"}")]),
        ("/metrics/find", vec![("query", "*")]),
        ("/metrics/find", vec![("query", "*"), ("label", "host")]),
        ("/metrics/expand", vec![("query", "*")]),
        ("/graphite/metrics/index.json", vec![]),
        ("/tags", vec![]),
        ("/tags/team", vec![]),
        ("/tags/findSeries", vec![("expr", "name=xl")]),
        ("/tags/autoComplete/tags", vec![]),
        ("/tags/autoComplete/values", vec![("tag", "team")]),
        ("/tags/autoComplete/values", vec![("tag", "name"), ("valuePrefix", "only")]),
    ]
}

#[track_caller]
fn check(what: &str, response: &Response) {
    let text = response.text();
    assert_eq!(response.status, 200, "{what}: {}", response.excerpt());
    for other in ["ops", "qa"] {
        assert!(!text.contains(other), "{what} shows {other}: {text}");
    }
}

#[test]
fn every_read_is_confined_to_the_tenant() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    write_tenants(&server)?;
    // Names of labels are everybody's; what has been read is no longer unqueried.
    let lists_labels =
        |route: &str| ["/labels", "/tags", "/unqueried"].iter().any(|end| route.ends_with(end));
    for is_in_parts in [false, true] {
        if is_in_parts {
            ensure!(server.post("/internal/force_flush", "")?.status == 200);
        }
        for (route, parameters) in readers() {
            let all = server.get(&path(route, &parameters))?;
            ensure!(all.status == 200, "{route}: {}", all.excerpt());
            if !lists_labels(route) {
                ensure!(all.text().contains("ops"), "{route} does not read: {}", all.excerpt());
            }
            for filters in confined_to_dev() {
                let path = path(route, &[&parameters[..], &filters].concat());
                let response = server.get(&path)?;
                check(&path, &response);
                if !lists_labels(route) {
                    ensure!(response.text().contains("dev"), "{path}: {}", response.excerpt());
                }
            }
        }
    }
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let body = format!("query=xl&time={NOON}&extra_label=team%3Ddev");
    check("a form", &server.post_with("/api/v1/query", &form, body)?);
    server.stop()
}

#[test]
fn remote_read_is_confined_to_the_tenant() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    write_tenants(&server)?;
    let matcher = [number(1, 0), bytes(2, b"__name__"), bytes(3, b"xl")].concat();
    let (start, end) = ((NOON - 600) * 1000, NOON * 1000);
    let query = [number(1, start as u64), number(2, end as u64), bytes(3, &matcher)].concat();
    let headers = [("Content-Type", "application/x-protobuf"), ("Content-Encoding", "snappy")];
    for accepted in [Vec::new(), bytes(2, &[1, 0])] {
        let message = [bytes(1, &query), accepted].concat();
        let body = snap::raw::Encoder::new().compress_vec(&message)?;
        let read = |path: &str| server.post_with(path, &headers, &body);
        let unpacked = |response: Response| {
            let body = response.body;
            snap::raw::Decoder::new().decompress_vec(&body).unwrap_or(body)
        };
        let all = String::from_utf8_lossy(&unpacked(read("/api/v1/read")?)).into_owned();
        ensure!(all.contains("h-ops") && all.contains("h-dev"), "{all}");
        let response = read("/api/v1/read?extra_label=team=dev")?;
        ensure!(response.status == 200, "{}", response.excerpt());
        let own = String::from_utf8_lossy(&unpacked(response)).into_owned();
        ensure!(own.contains("h-dev") && !own.contains("h-ops") && !own.contains("h-qa"), "{own}");
    }
    server.stop()
}

/// An expression over `xl`, and the same with the matcher written into it.
#[test]
fn expressions_read_as_if_the_filter_were_in_each_selector() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    write_tenants(&server)?;
    for (filters, matcher) in [
        (vec![("extra_label", "team=dev")], "{team=\"dev\"}"),
        (
            vec![("extra_filters[]", "{team=\"dev\"}"), ("extra_filters[]", "{team=\"qa\"}")],
            "{team=~\"dev|qa\"}",
        ),
        (
            vec![("extra_label", "team=dev"), ("extra_label", "team=ops")],
            "{team=\"dev\",team=\"ops\"}",
        ),
    ] {
        for expression in [
            "sum(SEL)",
            "SEL + on (team) group_left SEL",
            "sum by (team) (rate(SEL[5m]))",
            "max_over_time(sum(SEL)[10m:1m])",
            "absent(SEL)",
            "count(SEL offset 5m) or vector(0)",
            "topk(1, SEL @ 1709207900)",
            "SEL unless SEL",
        ] {
            for dialect in ["promql", "metricsql"] {
                let ask = |selector: &str, more: &[(&str, &str)]| {
                    let query = expression.replace("SEL", selector);
                    let instant =
                        [("query", query.as_str()), ("time", "1709208000"), ("dialect", dialect)];
                    let range = [
                        ("query", query.as_str()),
                        ("start", "1709207400"),
                        ("end", "1709208000"),
                        ("step", "30"),
                        ("dialect", dialect),
                    ];
                    let one = server.get(&path("/api/v1/query", &[&instant[..], more].concat()))?;
                    let all =
                        server.get(&path("/api/v1/query_range", &[&range[..], more].concat()))?;
                    anyhow::Ok((one.data().context(query.clone())?, all.data().context(query)?))
                };
                let (confined, written) =
                    (ask("xl", &filters)?, ask(&format!("xl{matcher}"), &[])?);
                // `absent` makes labels of the matchers that are written.
                if expression.starts_with("absent") {
                    let len = |data: &serde_json::Value| data["result"].as_array().map(Vec::len);
                    ensure!(
                        len(&confined.0) == len(&written.0),
                        "{expression} {filters:?}: {confined:?}"
                    );
                } else {
                    ensure!(
                        confined == written,
                        "{expression} {filters:?}: {confined:?} {written:?}"
                    );
                }
            }
        }
    }
    server.stop()
}

#[test]
fn cached_steps_are_not_shared_between_tenants() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let mut lines = String::new();
    for time in (NOON - 5400..=NOON).step_by(10) {
        for host in 0..120 {
            let (team, value) = (TENANTS[host % 3], host as i64 * 37 + time % 1009);
            lines += &format!("m,host=h{host},team={team} v={value}.37 {time}\n");
        }
    }
    server.write("/write?precision=s", lines)?;
    // Long enough to evaluate for its answer to be kept.
    let query = "sum by (team) (quantile_over_time(0.9, m_v[10m]))";
    let (start, end) = ((NOON - 3600).to_string(), NOON.to_string());
    let range = [("query", query), ("start", &start), ("end", &end), ("step", "30")];
    for round in 0..2 {
        for filters in
            [vec![("extra_label", "team=dev")], vec![], vec![("extra_filters[]", "{team=\"ops\"}")]]
        {
            let ask = |more: &[(&str, &str)]| {
                server
                    .get(&path("/api/v1/query_range", &[&range[..], &filters, more].concat()))?
                    .data()
            };
            let (cached, fresh) = (ask(&[])?, ask(&[("nocache", "1")])?);
            ensure!(cached == fresh, "round {round} {filters:?}: {cached} is not {fresh}");
        }
    }
    let outcome = |name: &str| {
        server.metric(&format!("quipu_result_cache_queries_total{{outcome=\"{name}\"}}"))
    };
    ensure!((outcome("miss")?, outcome("hit")?) == (3.0, 3.0), "each is kept by itself");
    server.stop()
}

#[test]
fn deletions_are_confined_to_the_tenant() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    write_tenants(&server)?;
    let count = || anyhow::Ok(server.export("xl")?.0.len());
    let delete = |filters: &[(&str, &str)]| {
        let route = "/api/v1/admin/tsdb/delete_series";
        server.post(&path(route, &[&[("match[]", "xl")], filters].concat()), "")
    };
    ensure!(delete(&[("extra_label", "team=nobody")])?.status == 204 && count()? == 3);
    for bad in [("extra_label", ""), ("extra_filters[]", "{}"), ("extra_filters", "{team=")] {
        let response = delete(&[bad])?;
        ensure!(
            response.status == 400 && response.text().contains(bad.0),
            "{}",
            response.excerpt()
        );
        ensure!(count()? == 3, "{bad:?}");
    }
    ensure!(delete(&[("extra_label", "team=dev")])?.status == 204);
    ensure!(server.export("xl{team=\"dev\"}")?.is_empty() && count()? == 2);
    ensure!(server.export("only_dev")?.len() == 20, "another metric");
    let traces = server.get(&path("/api/v1/query_exemplars", &[("query", "xl")]))?.text();
    ensure!(!traces.contains("t-dev") && traces.contains("t-ops"), "{traces}");
    let both = [("extra_filters[]", "{team=\"dev\"}"), ("extra_filters[]", "{host=\"h-ops\"}")];
    ensure!(delete(&both)?.status == 204);
    ensure!(server.export("xl")?.0.keys().eq(["xl{host=\"h-qa\",team=\"qa\"}"]));
    let server = server.restart()?;
    ensure!(server.export("xl")?.0.len() == 1);
    server.stop()
}

#[test]
fn a_filter_in_a_form_does_not_widen_that_of_the_url() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    write_tenants(&server)?;
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let confined = |path: &str, body: &str| {
        let path = format!("{path}?extra_filters[]=%7Bteam=%22dev%22%7D");
        server.post_with(&path, &form, body)
    };
    for own in ["extra_filters[]", "extra_filters"] {
        let body = format!("query=count(xl)&time=1709207900&{own}=%7Bteam=%22ops%22%7D");
        let found = confined("/api/v1/query", &body)?;
        ensure!(found.vector()?.is_empty(), "{own}: {}", found.excerpt());
        let body = format!("match[]=xl&{own}=%7Bteam=%22ops%22%7D");
        ensure!(confined("/api/v1/admin/tsdb/delete_series", &body)?.status == 204);
        ensure!(server.export("xl")?.0.len() == 3, "{own}: series of two tenants are gone");
    }
    server.stop()
}

/// Routes that cannot be confined, with the parameters that they need.
fn unconfined() -> Vec<(&'static str, &'static str)> {
    vec![
        ("GET", "/api/v1/metadata?"),
        ("GET", "/api/v1/status/series/new?"),
        ("GET", "/api/v1/status/active_queries?"),
        ("GET", "/api/v1/status/top_queries?"),
        ("GET", "/api/v1/status/runtimeinfo?"),
        ("GET", "/api/v1/status/damage?"),
        ("GET", "/api/v1/status/config?"),
        ("GET", "/api/v1/status/flags?"),
        ("GET", "/metrics?"),
        ("GET", "/query?q=SHOW+MEASUREMENTS"),
        ("POST", "/query?q=DROP+SERIES+FROM+xl"),
        ("POST", "/influx/query?db=x&q=DROP+MEASUREMENT+log"),
        ("POST", "/api/v2/query?"),
        ("GET", "/api/v2/buckets?"),
        ("POST", "/api/v2/buckets?"),
        ("POST", "/api/v2/delete?bucket=quipu"),
        ("GET", "/api/v2/orgs?"),
        ("GET", "/api/v3/query_influxql?q=SHOW+MEASUREMENTS"),
        ("POST", "/api/v1/admin/tsdb/clean_tombstones?"),
        ("POST", "/api/v1/admin/tsdb/snapshot?"),
        ("POST", "/snapshot/create?"),
        ("POST", "/internal/force_merge?"),
        ("DELETE", "/api/v1/status/active_queries?id=1"),
        ("DELETE", "/metrics/job/j?"),
    ]
}

#[test]
fn requests_that_cannot_be_confined_are_refused() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    write_tenants(&server)?;
    for (method, route) in unconfined() {
        for (name, value) in [
            ("extra_label", "team=dev"),
            ("extra_filters[]", "{team=\"dev\"}"),
            ("extra_filters", "{team=\"dev\"}"),
        ] {
            let path = format!("{route}&{}={}", percent(name), percent(value));
            let response = server.client().send(method, &path, &[], &[])?;
            ensure!(response.status == 400, "{method} {path}: {}", response.excerpt());
            ensure!(response.text().contains(name), "{path}: {}", response.excerpt());
        }
    }
    ensure!(server.export("{team!=\"\"}")?.0.len() == 6);
    ensure!(server.get("/api/v1/status/buildinfo?extra_label=team=dev")?.status == 200);
    server.stop()
}

#[test]
fn no_path_shows_what_the_filters_exclude() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    write_tenants(&server)?;
    for path in paths("team")? {
        for filter in ["extra_label=team=nobody", "extra_filters[]=%7Bteam=%22nobody%22%7D"] {
            let target = format!("{path}?{filter}&date=2024-02-29&{PARAMETERS}");
            for method in ["GET", "POST"] {
                // What an order does is seen in the end.
                let response = server.client().send(method, &target, &[], &[])?;
                let text = response.text();
                for mark in ["h-ops", "only_ops", "t-ops", "\"ops\"", "said by"] {
                    ensure!(!text.contains(mark), "{method} {target} shows {mark}: {text}");
                }
            }
        }
    }
    ensure!(server.export("{team!=\"\"}")?.0.len() == 6);
    server.stop()
}

#[test]
fn stored_samples_get_extra_labels() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let line = format!("xl 1 {NOON}000\n");
    server.write("/api/v1/import/prometheus?extra_label=team=dev", &line)?;
    ensure!(server.export("xl{team=\"dev\"}")?.0.len() == 1);
    let refused =
        server.post("/api/v1/import/prometheus?extra_filters[]=%7Ba=%22b%22%7D", &line)?;
    ensure!(refused.status == 400 && refused.text().contains("extra_filters[]"));
    server.stop()
}
