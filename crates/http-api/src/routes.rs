//! Which path leads to which door: one table, one line each.
//!
//! `{x}` in a pattern stands for one piece of a path, `{x*}` at its end for all that follows.
//! Everything also answers under `/prometheus` and `/graphite`, where clients that were told a path
//! prefix look, and under `/metricsql`, where queries are in MetricsQL.

use super::admin::{cardinality, legacy, orders, running, status};
use super::http::answer::Wording;
use super::http::router::{Access, BriefDoor, Class, Confinement, Door, Route};
use super::influx::{
    buckets, flux as influx_flux, handshakes, query as influx_query, v3, write as influx,
};
use super::prometheus::{
    exemplars, exposition, federate, functions, pushgateway, query, remote_read, remote_write,
    series, syntax,
};
use super::victoriametrics::{csv_import, export, import};
use super::{graphite, page};
use hyper::Method;

const GET: &[Method] = &[Method::GET, Method::HEAD];
const BOTH: &[Method] = &[Method::GET, Method::HEAD, Method::POST];
const POST: &[Method] = &[Method::POST, Method::PUT];
const DELETE: &[Method] = &[Method::DELETE];

const fn insert(pattern: &'static str, wording: Wording, door: Door) -> Route {
    Route {
        pattern,
        methods: POST,
        class: Class::Insert,
        access: Access::Change,
        confinement: Confinement::AddsLabels,
        wording,
        door,
        brief: None,
    }
}

const fn read(pattern: &'static str, door: Door) -> Route {
    let wording = Wording::Prometheus;
    Route {
        pattern,
        methods: BOTH,
        class: Class::Query,
        access: Access::Read,
        confinement: Confinement::Applied,
        wording,
        door,
        brief: None,
    }
}

const fn query(pattern: &'static str, door: Door, brief: BriefDoor) -> Route {
    Route { brief: Some(brief), ..read(pattern, door) }
}

const fn control(pattern: &'static str, door: Door) -> Route {
    let wording = Wording::Prometheus;
    Route {
        pattern,
        methods: BOTH,
        class: Class::Control,
        access: Access::Read,
        confinement: Confinement::Refused,
        wording,
        door,
        brief: None,
    }
}

/// Work that grows with what the client sends or with what the store has.
const fn gated(pattern: &'static str, door: Door) -> Route {
    Route { class: Class::Query, ..control(pattern, door) }
}

const fn change(pattern: &'static str, methods: &'static [Method], door: Door) -> Route {
    let wording = Wording::Prometheus;
    Route {
        pattern,
        methods,
        class: Class::Order,
        access: Access::Change,
        confinement: Confinement::Refused,
        wording,
        door,
        brief: None,
    }
}

const fn open(pattern: &'static str, door: Door) -> Route {
    let wording = Wording::Plain;
    Route {
        pattern,
        methods: GET,
        class: Class::Inline,
        access: Access::Open,
        confinement: Confinement::Harmless,
        wording,
        door,
        brief: None,
    }
}

const fn page(pattern: &'static str, door: Door) -> Route {
    let wording = Wording::Plain;
    Route {
        pattern,
        methods: GET,
        class: Class::Control,
        access: Access::Read,
        confinement: Confinement::Harmless,
        wording,
        door,
        brief: None,
    }
}

/// A route that tells nothing of series.
const fn harmless(route: Route) -> Route {
    Route { confinement: Confinement::Harmless, ..route }
}

/// A route that cannot be confined to some series.
const fn unconfined(route: Route) -> Route {
    Route { confinement: Confinement::Refused, ..route }
}

const fn influxql(pattern: &'static str) -> Route {
    let brief = influx_query::query_brief;
    let route = query(pattern, influx_query::query, brief);
    unconfined(Route { wording: Wording::InfluxV1, ..route })
}

const fn flux(pattern: &'static str) -> Route {
    let route = read(pattern, influx_flux::query);
    unconfined(Route { methods: POST, wording: Wording::InfluxV2, ..route })
}

/// Every route.
#[rustfmt::skip] // one route, one line
pub const ROUTES: &[Route] = &[
    // Samples in; the busiest first.
    insert("/api/v1/write", Wording::Plain, remote_write::write),
    insert("/api/v1/push", Wording::Plain, remote_write::write),
    insert("/write", Wording::InfluxV1, influx::write_v1),
    insert("/influx/write", Wording::InfluxV1, influx::write_v1),
    insert("/api/v2/write", Wording::InfluxV2, influx::write_v2),
    insert("/influx/api/v2/write", Wording::InfluxV2, influx::write_v2),
    insert("/api/v3/write_lp", Wording::InfluxV3, v3::write),
    insert("/api/v1/import", Wording::Plain, import::json_lines),
    insert("/api/v1/import/native", Wording::Plain, import::native),
    insert("/api/v1/import/csv", Wording::Plain, csv_import::import),
    insert("/api/v1/import/prometheus", Wording::Plain, exposition::import),
    insert("/api/v1/import/prometheus/metrics/job{labels*}", Wording::Plain, exposition::import),
    insert("/metrics/job{labels*}", Wording::Plain, pushgateway::push),
    // Samples out.
    query("/api/v1/query", query::instant, query::instant_brief),
    query("/api/v1/query_range", query::range, query::range_brief),
    read("/api/v1/query_exemplars", exemplars::query),
    read("/api/v1/series", series::series),
    read("/api/v1/labels", series::labels),
    read("/api/v1/label/{name}/values", series::label_values),
    Route { methods: POST, wording: Wording::Plain, ..read("/api/v1/read", remote_read::read) },
    read("/api/v1/export", export::export),
    read("/api/v1/export/csv", export::csv),
    read("/api/v1/export/native", export::native),
    read("/federate", federate::federate),
    read("/api/v1/status/tsdb", cardinality::tsdb),
    read("/api/v1/series/count", cardinality::series_count),
    unconfined(read("/api/v1/status/series/new", cardinality::new_series)),
    read("/api/v1/status/series/unqueried", cardinality::unqueried),
    read("/metrics/find", graphite::find),
    read("/metrics/expand", graphite::expand),
    read("/metrics/index.json", graphite::index),
    read("/tags", graphite::tags),
    read("/tags/findSeries", graphite::find_series),
    read("/tags/autoComplete/tags", graphite::complete_tags),
    read("/tags/autoComplete/values", graphite::complete_values),
    read("/tags/{name}", graphite::values),
    gated("/api/v1/metadata", series::metadata),
    harmless(control("/api/v1/functions", functions::list)),
    harmless(gated("/api/v1/format_query", syntax::format_query)),
    harmless(gated("/api/v1/parse_query", syntax::parse_query)),
    harmless(gated("/prettify-query", syntax::prettify)),
    harmless(gated("/expand-with-exprs", syntax::expand_with)),
    control("/api/v1/status/active_queries", running::active),
    control("/api/v1/status/top_queries", running::top),
    harmless(control("/api/v1/status/buildinfo", status::build)),
    control("/api/v1/status/runtimeinfo", status::runtime),
    control("/api/v1/status/flags", status::flags),
    control("/api/v1/status/damage", status::damage),
    control("/api/v1/status/store", status::store),
    control("/api/v1/status/config", status::config),
    control("/api/v1/status/legacy", legacy::status),
    harmless(control("/version", status::version)),
    harmless(control("/api/v1/rules", status::no_rules)),
    harmless(control("/api/v1/alerts", status::no_alerts)),
    harmless(control("/api/v1/notifiers", status::no_notifiers)),
    harmless(control("/api/v1/alertmanagers", status::no_alertmanagers)),
    harmless(control("/api/v1/targets", status::no_targets)),
    harmless(control("/api/v1/targets/metadata", status::empty_list)),
    harmless(control("/api/v1/scrape_pools", status::no_scrape_pools)),
    harmless(control("/api/v1/notifications", status::empty_list)),
    harmless(control("/api/v1/status/walreplay", status::wal_replay)),
    harmless(control("/api/v1/status/tsdb/blocks", status::no_blocks)),
    control("/metrics", status::metrics),
    // Orders.
    Route { confinement: Confinement::Applied, ..change("/api/v1/admin/tsdb/delete_series", POST, orders::delete_series) },
    change("/api/v1/admin/tsdb/clean_tombstones", POST, orders::clean_tombstones),
    change("/api/v1/admin/tsdb/snapshot", POST, orders::snapshot),
    change("/api/v1/admin/legacy/until", POST, legacy::move_until),
    change("/api/v1/status/active_queries", DELETE, running::kill_by_parameter),
    change("/api/v1/status/active_queries/{id}/kill", POST, running::kill),
    Route { wording: Wording::Plain, ..change("/metrics/job{labels*}", DELETE, pushgateway::delete) },
    change("/snapshot/create", POST, orders::snapshot_create),
    control("/snapshot/list", orders::snapshot_list),
    change("/snapshot/delete", POST, orders::snapshot_delete),
    change("/snapshot/delete_all", POST, orders::snapshot_delete_all),
    change("/internal/force_flush", POST, orders::force_flush),
    change("/internal/force_merge", POST, orders::force_merge),
    // InfluxDB's handshakes.
    influxql("/query"),
    influxql("/influx/query"),
    unconfined(Route { wording: Wording::InfluxV3, ..read("/api/v3/query_influxql", v3::query) }),
    unconfined(Route { methods: GET, wording: Wording::InfluxV2, ..read("/api/v2/buckets", handshakes::buckets) }),
    Route { wording: Wording::InfluxV2, ..change("/api/v2/buckets", POST, buckets::create) },
    Route { wording: Wording::InfluxV2, ..change("/api/v2/delete", POST, buckets::delete) },
    Route { wording: Wording::InfluxV2, ..control("/api/v2/orgs", handshakes::organisations) },
    flux("/api/v2/query"),
    flux("/influx/api/v2/query"),
    open("/ping", handshakes::ping),
    open("/influx/ping", handshakes::ping),
    open("/health", handshakes::health),
    open("/influx/health", handshakes::health),
    open("/ready", handshakes::ready),
    // The page and signs of life.
    open("/-/healthy", status::healthy),
    open("/-/ready", status::ready),
    page("/", page::index),
    page("/ui/{file*}", page::file),
    page("/favicon.ico", page::icon),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::router::find;
    use net::failure::Kind;

    #[track_caller]
    fn check(method: &Method, path: &str, expected: Option<(&str, &str)>) {
        let found = find(ROUTES, method, path).ok();
        let found = found.map(|(index, captured)| (ROUTES[index].pattern, captured));
        assert_eq!(found, expected, "{method} {path}");
    }

    #[test]
    fn paths() {
        let (get, post) = (&Method::GET, &Method::POST);
        check(get, "/", Some(("/", "")));
        check(get, "/prometheus", Some(("/", "")));
        check(get, "/prometheus/api/v1/query", Some(("/api/v1/query", "")));
        check(post, "/api/v1/query/", Some(("/api/v1/query", "")));
        check(get, "/prometheusx", None);
        check(get, "/metricsql/api/v1/query", Some(("/api/v1/query", "")));
        check(get, "/metricsql/prometheus/api/v1/query", Some(("/api/v1/query", "")));
        check(get, "/metricsqlx/api/v1/query", None);
        check(get, "/metricsql", None);
        check(get, "/graphite/metrics/find/", Some(("/metrics/find", "")));
        check(post, "/metrics/expand", Some(("/metrics/expand", "")));
        check(get, "/tags/findSeries", Some(("/tags/findSeries", "")));
        check(get, "/tags/host", Some(("/tags/{name}", "host")));
        check(get, "/api/v1/label/a%2Fb/values", Some(("/api/v1/label/{name}/values", "a%2Fb")));
        check(get, "/api/v1/label//values", None);
        check(get, "/api/v1/label/a/b/values", None);
        check(post, "/metrics/job/j/a/b", Some(("/metrics/job{labels*}", "/j/a/b")));
        check(post, "/metrics/job@base64/x", Some(("/metrics/job{labels*}", "@base64/x")));
        check(&Method::DELETE, "/metrics/job/j", Some(("/metrics/job{labels*}", "/j")));
        check(get, "/metrics", Some(("/metrics", "")));
        check(post, "/write", Some(("/write", "")));
        check(get, "/nowhere", None);
    }

    #[test]
    fn wrong_methods_learn_the_right_ones() {
        let failure = find(ROUTES, &Method::GET, "/api/v1/write").expect_err("GET");
        assert_eq!(failure.kind, Kind::WrongMethod);
        assert!(failure.to_string().contains("POST"), "{failure}");
        let failure = find(ROUTES, &Method::GET, "/metrics/job/j").expect_err("GET");
        assert!(failure.to_string().ends_with("use POST or PUT or DELETE"), "{failure}");
        assert_eq!(find(ROUTES, &Method::GET, "/x").expect_err("unknown").kind, Kind::NotFound);
    }

    #[test]
    fn unknown_paths_learn_of_similar_ones() {
        for (path, similar) in [
            ("/api/v1/api/v1/query", Some("/api/v1/query")),
            ("/select/0/prometheus/api/v1/label/a/values", Some("/api/v1/label/a/values")),
            ("/insert/0/prometheus/api/v1/write", Some("/api/v1/write")),
            ("/api/v1/querys", Some("/api/v1/query")),
            ("/api/v1/query-range", Some("/api/v1/query_range")),
            ("/api/v1/lables", Some("/api/v1/labels")),
            ("/x", None),
            ("//", None),
        ] {
            let failure = find(ROUTES, &Method::GET, path).err();
            let remedy = failure.and_then(|failure| failure.remedy);
            assert_eq!(remedy, similar.map(|path| format!("did you mean {path}?")), "{path}");
        }
        for (path, words) in [
            ("/opentelemetry/v1/metrics", "OpenTelemetry"),
            ("/api/v1/otlp/v1/metrics", "OpenTelemetry"),
            ("/v1/metrics", "OpenTelemetry"),
            ("/loki/api/v1/push", "Loki"),
            ("/datadog/api/v1/series", "Datadog"),
            ("/datadog/api/v2/series", "Datadog"),
            ("/newrelic/infra/v2/metrics/events/bulk", "New Relic"),
            ("/elasticsearch/_bulk", "Elasticsearch"),
            ("/graph", "the web UI is at /"),
            ("/vmui/", "the web UI is at /"),
            ("/select/0/vmui/", "the web UI is at /"),
            ("/targets", "the web UI is at /"),
        ] {
            let failure = find(ROUTES, &Method::GET, path).expect_err(path);
            let remedy = failure.remedy.unwrap_or_default();
            assert!(remedy.contains(words) && !remedy.contains("did you mean"), "{path}: {remedy}");
        }
        let long = "/a".repeat(5000);
        assert!(find(ROUTES, &Method::GET, &long).is_err());
    }

    #[test]
    fn nothing_that_changes_data_is_open_to_everybody() {
        for route in ROUTES {
            let changes = matches!(route.class, Class::Insert | Class::Order)
                || route.methods.contains(&Method::DELETE);
            assert!(!changes || route.access == Access::Change, "{}", route.pattern);
            let is_link = route.methods.contains(&Method::GET);
            assert!(!is_link || route.access != Access::Change, "a link to {}", route.pattern);
            assert!(route.pattern.starts_with('/'), "{}", route.pattern);
        }
    }
}
