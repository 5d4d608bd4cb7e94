//! Tests of the query types: what is asked in each language.

use super::*;
use crate::random::stream;

const SCALE: Scale =
    Scale { hosts: 10, interval_ns: 10 * SECOND_NS, start_ns: 0, end_ns: 24 * HOUR_NS, seed: 1 };

const SQL: Language = Language::Sql { minute: "MINUTE", hour: "HOUR" };

fn query(name: &str) -> Query {
    QueryType::parse(name).unwrap().query(&SCALE, &mut stream(1)).unwrap()
}

#[track_caller]
fn check(name: &str, start: &str, end: &str) {
    let query = query(name);
    let text = query.request(Language::PromQl).text;
    assert!(text.starts_with(start), "{text}");
    assert!(text.ends_with(end), "{text}");
    assert!(query.start_ns >= SCALE.start_ns && query.end_ns <= SCALE.end_ns);
}

#[test]
fn expressions_are_those_of_the_suite() {
    let user = "max(max_over_time({__name__=~'cpu_(usage_user)', hostname=~'host_";
    check("single-groupby-1-1-1", user, "'}[1m])) by (__name__)");
    check("single-groupby-1-8-1", user, "'}[1m])) by (__name__)");
    let all = "max(max_over_time({__name__=~'cpu_(usage_user|usage_system|";
    check("cpu-max-all-8", all, "'}[1h])) by (__name__)");
    let average = "avg(avg_over_time({__name__=~'cpu_(usage_user)'}[1h]";
    check("double-groupby-1", average, ")) by (__name__, hostname)");
}

/// Two fields of two hosts in the second minute and hour of 1970.
fn small_query(hosts: &[&str], step_ns: i64) -> Query {
    let hosts = hosts.iter().map(|host| host.to_string()).collect();
    Query { metrics: 2, hosts, start_ns: step_ns, end_ns: 2 * step_ns, step_ns }
}

#[test]
fn largest_values_in_the_other_languages() {
    let query = small_query(&["host_1", "host_2"], MINUTE_NS);
    let influxql = "SELECT max(usage_user), max(usage_system) FROM cpu \
         WHERE (hostname = 'host_1' or hostname = 'host_2') and \
         time >= '1970-01-01T00:01:00Z' and time < '1970-01-01T00:02:00Z' GROUP BY time(1m)";
    assert_eq!(query.request(Language::InfluxQl).text, influxql);
    let sql = "SELECT MINUTE AS bucket, max(usage_user) AS max_usage_user, \
         max(usage_system) AS max_usage_system FROM cpu \
         WHERE tags_id IN (SELECT id FROM tags WHERE hostname IN ('host_1', 'host_2')) \
         AND time >= '1970-01-01T00:01:00Z' AND time < '1970-01-01T00:02:00Z' \
         GROUP BY bucket ORDER BY bucket";
    assert_eq!(query.request(SQL).text, sql);
    assert_eq!(query.request(SQL).form, RequestForm::Statement);
}

#[test]
fn averages_in_the_other_languages() {
    let query = small_query(&[], HOUR_NS);
    let influxql = query.request(Language::InfluxQl);
    let expected = "SELECT mean(usage_user), mean(usage_system) FROM cpu WHERE \
         time >= '1970-01-01T01:00:00Z' and time < '1970-01-01T02:00:00Z' \
         GROUP BY time(1h), hostname";
    assert_eq!(influxql.text, expected);
    let RequestForm::Path(path) = influxql.form else { panic!("{influxql:?}") };
    assert!(path.starts_with("/query?db=benchmark&q=SELECT%20mean"), "{path}");
    let sql = query.request(SQL).text;
    assert!(sql.starts_with("WITH means AS (SELECT HOUR AS bucket, tags_id, avg(usage_user)"));
    assert!(sql.contains("SELECT bucket, hostname, mean_usage_user, mean_usage_system FROM"));
}

#[test]
fn too_small_a_data_set_is_refused() {
    let query_type = QueryType::parse("single-groupby-1-8-1").unwrap();
    assert!(query_type.query(&Scale { hosts: 7, ..SCALE }, &mut stream(1)).is_err());
    let short = Scale { end_ns: HOUR_NS / 2, ..SCALE };
    assert!(query_type.query(&short, &mut stream(1)).is_err());
    assert!(QueryType::parse("lastpoint").is_err());
}

#[test]
fn paths_are_escaped() {
    let query = small_query(&["host_1"], MINUTE_NS);
    let expected = "/api/v1/query_range?query=a%7Bb%3D~%27c%7Cd%27%7D&start=60&end=120&step=60\
                    &nocache=1";
    assert_eq!(promql::path(&query, "a{b=~'c|d'}"), expected);
}
