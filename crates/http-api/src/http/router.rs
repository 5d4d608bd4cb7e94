//! Finds the door of a path in a table of routes.

use super::answer::{Answer, Wording};
use super::request::Request;
use app::App;
use hyper::Method;
use model::similar_name::edit_distance;
use net::failure::{Failure, Kind};
use std::sync::Arc;

/// What bounds a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Brings samples: large bodies, the gate of inserts.
    Insert,
    /// Reads samples or label sets: the gate of queries.
    Query,
    /// Short work on a worker thread: the gate of controls.
    Control,
    /// Changes or makes something, on a worker thread.
    Order,
    /// Answered at once from memory.
    Inline,
}

/// Who may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody: says only that the server is there.
    Open,
    /// Who has credentials.
    Read,
    /// Who has credentials, and no page of another site.
    Change,
}

/// Handling of label filters, with which a proxy confines a tenant to its own series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// It shows and changes series that match alone.
    Applied,
    /// It stores series, to which `extra_label` adds labels.
    AddsLabels,
    /// It tells nothing of series: the filters change nothing.
    Harmless,
    /// It refuses them by name.
    Refused,
}

/// Does the work of one route.
pub type Door = fn(&Arc<App>, &Request) -> Result<Answer, Failure>;

/// Does the work of one route where it takes well under a millisecond; `None` when it would not, or
/// failed: then the route's door finds out why.
pub type BriefDoor = fn(&Arc<App>, &Request) -> Option<Answer>;

/// One row of the table.
pub struct Route {
    /// The path.
    pub pattern: &'static str,
    /// The methods.
    pub methods: &'static [Method],
    /// What bounds it.
    pub class: Class,
    /// Who may come.
    pub access: Access,
    /// Handling of label filters.
    pub confinement: Confinement,
    /// How failures are worded.
    pub wording: Wording,
    /// What does the work.
    pub door: Door,
    /// What does it without a worker thread when it is little.
    pub brief: Option<BriefDoor>,
}

/// The route's index in `routes` and what its pattern captured.
///
/// # Errors
/// 404 for an unknown path, 405 for a known one with another method.
pub fn find<'a>(
    routes: &'static [Route],
    method: &Method,
    path: &'a str,
) -> Result<(usize, &'a str), Failure> {
    let path = without_prefix(path);
    for (index, route) in routes.iter().enumerate() {
        let Some(captured) = capture(route.pattern, path) else { continue };
        if route.methods.contains(method) {
            return Ok((index, captured));
        }
    }
    let allowed = methods_of(routes, path);
    if !allowed.is_empty() {
        let failure = Failure::new(Kind::WrongMethod, format!("{method} is not possible here"));
        return Err(failure.advised(format!("use {}", allowed.join(" or "))));
    }
    let failure = Failure::not_found(format!("there is nothing at {path}"));
    if let Some(remedy) = remedy_for(path) {
        return Err(failure.advised(remedy));
    }
    Err(match similar_path(routes, path) {
        Some(known) => failure.advised(format!("did you mean {known}?")),
        None if is_web_page(path) => failure.advised("the web UI is at /"),
        None => failure,
    })
}

/// Names of the methods that a path takes.
pub fn methods_of(routes: &[Route], path: &str) -> Vec<&'static str> {
    let path = without_prefix(path);
    let of_path = routes.iter().filter(|route| capture(route.pattern, path).is_some());
    of_path.flat_map(|route| route.methods.iter().map(Method::as_str)).collect()
}

/// Longest unknown path, in bytes, that is compared with the known ones.
const COMPARED_SIZE_MAX: usize = 256;

/// Finds the known path that is closest to an unknown one: the path without a prefix, such as that of a
/// VictoriaMetrics cluster, else a path with at most two other letters.
fn similar_path<'a>(routes: &[Route], path: &'a str) -> Option<&'a str> {
    if COMPARED_SIZE_MAX < path.len() {
        return None;
    }
    let is_known = |path: &&str| routes.iter().any(|route| capture(route.pattern, path).is_some());
    let mut ends = path.match_indices('/').map(|(at, _)| &path[at..]);
    if let Some(end) = ends.find(|end| *end != "/" && is_known(end)) {
        return Some(end);
    }
    let plain = routes.iter().map(|route| route.pattern).filter(|pattern| !pattern.contains('{'));
    let nearest = plain.min_by_key(|pattern| edit_distance(path, pattern))?;
    // Short paths are all alike.
    (edit_distance(path, nearest) <= 2 && 6 < path.len()).then_some(nearest)
}

/// Whether a path is one of the web UIs of Prometheus, VictoriaMetrics, InfluxDB or Grafana.
fn is_web_page(path: &str) -> bool {
    const PAGES: [&str; 17] = [
        "agent",
        "alerts",
        "classic",
        "config",
        "consoles",
        "dashboard",
        "explore",
        "flags",
        "graph",
        "orgs",
        "query",
        "rules",
        "service-discovery",
        "status",
        "targets",
        "tsdb-status",
        "ui",
    ];
    let mut words = path.split('/').filter(|word| !word.is_empty());
    let is_vmui = path.split('/').any(|word| word == "vmui");
    is_vmui || words.next().is_some_and(|word| PAGES.contains(&word) && words.next().is_none())
}

const NO_OTLP: &str = "OpenTelemetry's protocol (OTLP) is not spoken: let an OpenTelemetry collector \
                       send with its exporter prometheusremotewrite to /api/v1/write";

/// Paths of protocols that are not spoken, by a part of them, and advice.
const FOREIGN_PATHS: &[(&str, &str)] = &[
    ("/v1/traces", "traces of OpenTelemetry (OTLP) are not stored: Quipu stores metrics"),
    ("/v1/logs", "logs of OpenTelemetry (OTLP) are not stored: Quipu stores metrics"),
    ("/opentelemetry/", NO_OTLP),
    ("/otlp/", NO_OTLP),
    ("/loki/", "Loki's protocol is not spoken: Quipu stores metrics, and no logs"),
    ("/insert/loki", "Loki's protocol is not spoken: Quipu stores metrics, and no logs"),
    (
        "/datadog/",
        "Datadog's protocol is not spoken: let Telegraf or an OpenTelemetry collector send to \
         /api/v1/write, or line protocol to /api/v2/write",
    ),
    (
        "/newrelic/",
        "New Relic's protocol is not spoken: send remote write to /api/v1/write, or line protocol to \
         /api/v2/write",
    ),
    (
        "/zabbixconnector/",
        "Zabbix's protocol is not spoken: send remote write to /api/v1/write, or line protocol to \
         /api/v2/write",
    ),
    (
        "/elasticsearch/",
        "Elasticsearch's protocol is not spoken: Quipu stores metrics, and no logs",
    ),
    ("/_bulk", "Elasticsearch's protocol is not spoken: Quipu stores metrics, and no logs"),
];

/// Remedy for a client of another product that asks for a path which Quipu does not have.
fn remedy_for(path: &str) -> Option<&'static str> {
    let foreign = FOREIGN_PATHS.iter().find(|(part, _)| path.contains(part));
    if let Some((_, remedy)) = foreign {
        return Some(remedy);
    }
    let paths = [
        ("/v1/metrics", NO_OTLP),
        (
            "/api/v2/",
            "of InfluxDB 2 there are /api/v2/write, query, buckets, delete and orgs; tasks and checks \
             are not run",
        ),
        ("/api/v3/", "of InfluxDB 3 there are /api/v3/write_lp and /api/v3/query_influxql"),
        (
            "/arrow.flight.protocol.FlightService/",
            "Flight SQL is not spoken: send InfluxQL to /api/v3/query_influxql, or SQL to the port of \
             --postgres-listen",
        ),
    ];
    paths.iter().find(|(prefix, _)| path.starts_with(prefix)).map(|(_, remedy)| *remedy)
}

/// How to tell of an unknown path: as the client that would ask there expects.
pub fn wording_of(path: &str) -> Wording {
    match without_prefix(path) {
        path if path.starts_with("/api/v2/") => Wording::InfluxV2,
        path if path.starts_with("/api/v3/") => Wording::InfluxV3,
        path if path.starts_with("/api/") => Wording::Prometheus,
        path if path.starts_with("/influx/") => Wording::InfluxV1,
        _ => Wording::Plain,
    }
}

/// A path without all but one of the slashes that it begins with: clients join an address that ends in
/// one with a path that begins with one.
pub fn without_empty_start(path: &str) -> &str {
    match path.starts_with("//") {
        true => &path[path.len() - path.trim_start_matches('/').len() - 1..],
        false => path,
    }
}

/// Prefix of paths whose queries and selectors are in MetricsQL: for clients such as vmalert, which are
/// given an address and no parameter.
const METRICSQL_PREFIX: &str = "/metricsql";

/// Whether a path says that queries are in MetricsQL.
pub fn is_metricsql(path: &str) -> bool {
    path.strip_prefix(METRICSQL_PREFIX).is_some_and(|rest| rest.starts_with('/'))
}

fn without_prefix(path: &str) -> &str {
    let path = path.strip_prefix(METRICSQL_PREFIX).filter(|_| is_metricsql(path)).unwrap_or(path);
    let path = without_empty_start(path);
    match path.strip_prefix("/prometheus").or_else(|| path.strip_prefix("/graphite")) {
        Some("") => "/",
        Some(rest) if rest.starts_with('/') => without_empty_start(rest),
        _ => path,
    }
}

/// What `{x}` or `{x*}` stands for in `path`, or nothing for a plain pattern; `None` if it differs.
fn capture<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    // Most patterns differ in what follows the slash.
    let second = |text: &str| text.as_bytes().get(1).copied();
    if let (Some(wanted), Some(found)) = (second(pattern), second(path))
        && wanted != found
        && wanted != b'{'
    {
        return None;
    }
    let Some(brace) = pattern.bytes().position(|byte| byte == b'{') else {
        // A slash too many at the end is forgiven.
        let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path);
        return (pattern == path).then_some("");
    };
    let (before, rest) = pattern.split_at(brace);
    let captured = path.strip_prefix(before)?;
    let (name, after) = rest.split_once('}')?;
    if name.ends_with('*') {
        return Some(captured).filter(|text| !text.is_empty());
    }
    let captured = captured.strip_suffix(after)?;
    Some(captured).filter(|text| !text.is_empty() && !text.contains('/'))
}
