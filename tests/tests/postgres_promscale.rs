//! What people do with labels in SQL: functions on `jsonb`, and Promscale's relations, operators and
//! functions.

use anyhow::{Result, ensure};
use e2e::postgres::start;
use e2e::{Launch, Psql, Server};

/// 2024-02-29 12:00:00 UTC in milliseconds.
const NOON: i64 = 1_709_208_000_000;

/// Samples of a metric or two.
fn filled(directory: &tempfile::TempDir) -> Result<(Server, Psql)> {
    let (server, psql) = start(directory.path())?;
    let lines = format!(
        "cpu{{node=\"a\",namespace=\"dev\"}} 1 {NOON}\n\
         cpu{{node=\"a\",namespace=\"dev\"}} 3 {}\n\
         cpu{{node=\"pinky\",namespace=\"prod\"}} 5 {NOON}\n\
         cpu{{namespace=\"prod\",series=\"x\"}} 7 {NOON}\n\
         total{{node=\"a\",namespace=\"dev\"}} 10 {NOON}\n\
         {{\"http.server:Requests\",\"host.name\"=\"h\"}} 1 {NOON}\n\
         lonely 2 {NOON}\n\
         pg_up 1 {NOON}\n",
        NOON + 1000
    );
    psql.ask(&["COPY metrics FROM STDIN"], &lines)?;
    Ok((server, psql))
}

#[track_caller]
fn check(psql: &Psql, all: &[(&str, &str)]) -> Result<()> {
    for (asked, expected) in all {
        let said = psql.ask(&[asked], "")?;
        assert_eq!(said, *expected, "{asked}");
    }
    Ok(())
}

#[track_caller]
fn check_refused(psql: &Psql, all: &[(&str, &str, &str)]) -> Result<()> {
    for (asked, code, words) in all {
        let said = psql.say(&["\\set VERBOSITY verbose", asked], "")?;
        let is_told = said.error.contains(code) && said.error.contains(words);
        ensure!(!said.is_ok && is_told, "{asked}: {said:?}");
    }
    Ok(())
}

#[test]
fn labels_are_taken_apart_and_put_together() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = filled(&directory)?;
    check(
        &psql,
        &[
            (
                "SELECT DISTINCT jsonb_object_keys(labels) FROM metrics ORDER BY 1",
                "host.name\nnamespace\nnode\nseries",
            ),
            (
                "SELECT jsonb_object_keys(labels) AS k, count(*) FROM metrics GROUP BY 1 ORDER BY 1",
                "host.name|1\nnamespace|5\nnode|4\nseries|1",
            ),
            ("SELECT jsonb_object_keys('{}')", ""),
            ("SELECT * FROM jsonb_each_text('{\"b\": null, \"aa\": [1,  2]}')", "b|\naa|[1, 2]"),
            ("SELECT value FROM jsonb_each('{\"a\": {\"b\": \"c\"}}')", "{\"b\": \"c\"}"),
            ("SELECT value->>'b' FROM jsonb_each('{\"a\": {\"b\": \"c\"}}')", "c"),
            ("SELECT k FROM jsonb_object_keys('{\"a\": 1}') AS k", "a"),
            (
                "SELECT m.value, kv.key, kv.value FROM metrics m, jsonb_each_text(m.labels) AS kv \
                 WHERE name = 'total' ORDER BY kv.key",
                "10|namespace|dev\n10|node|a",
            ),
            (
                "SELECT k, v, count(*) FROM metrics CROSS JOIN LATERAL jsonb_each_text(labels) \
                 AS kv(k, v) GROUP BY 1, 2 ORDER BY 1, 2",
                "host.name|h|1\nnamespace|dev|3\nnamespace|prod|2\nnode|a|3\nnode|pinky|1\nseries|x|1",
            ),
            (
                "SELECT name, e.value FROM metrics JOIN LATERAL jsonb_each(labels) AS e \
                 ON e.key = 'node' AND e.value <> '\"a\"'",
                "cpu|\"pinky\"",
            ),
            (
                "SELECT name, k FROM metrics LEFT JOIN LATERAL jsonb_object_keys(labels) AS k ON true \
                 WHERE name IN ('lonely', 'total') ORDER BY 1, 2",
                "lonely|\ntotal|namespace\ntotal|node",
            ),
            (
                "SELECT a.key, b.value FROM metrics m, jsonb_each_text(labels) a, \
                 jsonb_each_text(m.labels) b WHERE name = 'total' AND a.key = b.key ORDER BY 1",
                "namespace|dev\nnode|a",
            ),
            (
                "SELECT jsonb_each_text(labels) FROM metrics WHERE name = 'total' ORDER BY 1",
                "(namespace,dev)\n(node,a)",
            ),
            (
                "SELECT (jsonb_each_text(labels)).key, (jsonb_each(labels)).value FROM metrics \
                 WHERE name = 'total' ORDER BY 1",
                "namespace|\"dev\"\nnode|\"a\"",
            ),
        ],
    )
}

#[test]
fn labels_become_other_values() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = filled(&directory)?;
    check(
        &psql,
        &[
            (
                "SELECT jsonb_build_object('n', name, 'v', value, 'l', labels, 't', time) \
                 FROM metrics WHERE name = 'total'",
                "{\"l\": {\"node\": \"a\", \"namespace\": \"dev\"}, \"n\": \"total\", \
                 \"t\": \"2024-02-29T12:00:00+00:00\", \"v\": 10}",
            ),
            ("SELECT jsonb_build_object(), jsonb_build_array(1, 'a', NULL)", "{}|[1, \"a\", null]"),
            (
                "SELECT jsonb_object('{a,1,b,2}'), jsonb_object(ARRAY['k'], ARRAY['v'])",
                "{\"a\": \"1\", \"b\": \"2\"}|{\"k\": \"v\"}",
            ),
            (
                "SELECT jsonb_typeof(labels), jsonb_typeof('1.5'), jsonb_typeof(NULL) IS NULL FROM metrics WHERE name = 'lonely'",
                "object|number|t",
            ),
            (
                "SELECT jsonb_array_length('[1,[2]]'), to_jsonb('x'::text), to_jsonb(1.5)",
                "2|\"x\"|1.5",
            ),
            (
                "SELECT jsonb_extract_path_text(labels, 'node') FROM metrics WHERE name = 'total'",
                "a",
            ),
            ("SELECT jsonb_extract_path('{\"a\":[{\"b\":1}]}', 'a', '0')->'b'", "1"),
            ("SELECT jsonb_pretty('{\"a\":[1]}')", "{\n    \"a\": [\n        1\n    ]\n}"),
            (
                "SELECT jsonb(labels)->>'node', jsonb('{\"a\":  1}') FROM metrics WHERE name = 'total'",
                "a|{\"a\": 1}",
            ),
            ("SELECT count(*) FROM jsonb_object_keys('{\"a\":1,\"b\":2}')", "2"),
            ("SELECT * FROM unnest(ARRAY[1], ARRAY[2]) WITH ORDINALITY", "1|2|1"),
        ],
    )?;
    check_refused(
        &psql,
        &[
            ("SELECT jsonb_object_keys('[1]')", "22023", "array"),
            ("SELECT jsonb_build_object('a')", "22023", "even number"),
            ("SELECT jsonb_array_length('{}')", "22023", "non-array"),
            ("SELECT jsonb_typeof('{')", "22P02", "json"),
            ("SELECT * FROM jsonb_each((SELECT labels FROM metrics LIMIT 1))", "0A000", "WITH"),
        ],
    )
}

#[test]
fn a_metric_is_a_table() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = filled(&directory)?;
    check(
        &psql,
        &[
            (
                "SELECT time, value, labels, namespace_id, node_id FROM cpu ORDER BY time, value",
                "2024-02-29 12:00:00+00|1|{\"node\": \"a\", \"namespace\": \"dev\"}|dev|a\n\
                 2024-02-29 12:00:00+00|5|{\"node\": \"pinky\", \"namespace\": \"prod\"}|prod|pinky\n\
                 2024-02-29 12:00:00+00|7|{\"series\": \"x\", \"namespace\": \"prod\"}|prod|\n\
                 2024-02-29 12:00:01+00|3|{\"node\": \"a\", \"namespace\": \"dev\"}|dev|a",
            ),
            (
                "SELECT val(node_id) AS node, avg(value) FROM cpu GROUP BY 1 ORDER BY 1",
                "a|2\npinky|5\n|7",
            ),
            (
                "SELECT val(node_id), max(value) FROM cpu GROUP BY node_id ORDER BY 2",
                "a|3\npinky|5\n|7",
            ),
            (
                "SELECT jsonb(labels), value FROM cpu WHERE time > timestamptz '2024-02-29 12:00:00+00'",
                "{\"node\": \"a\", \"namespace\": \"dev\"}|3",
            ),
            ("SELECT count(*) FROM cpu WHERE time > now() - interval '1 h'", "0"),
            ("SELECT sum(value) FROM cpu WHERE labels @> jsonb '{\"namespace\":\"dev\"}'", "4"),
            ("SELECT sum(value) FROM cpu WHERE labels ? ('namespace' == 'dev')", "4"),
            ("SELECT sum(value) FROM cpu WHERE labels ? ('node' !== 'a')", "12"),
            ("SELECT sum(value) FROM cpu WHERE labels ? ('node' ==~ 'in')", "5"),
            ("SELECT sum(value) FROM cpu WHERE labels ? ('node' !=~ '^pin.*')", "11"),
            (
                "SELECT sum(value) FROM cpu WHERE labels ? ('namespace' == 'prod') AND labels ? ('node' ==~ 'pin.*')",
                "5",
            ),
            ("SELECT sum(value) FROM cpu WHERE NOT labels ? ('node' == 'a')", "12"),
            ("SELECT labels ? ('x' == 'a'), labels ? ('x' !== 'a') FROM total", "f|t"),
            ("SELECT sum(value) FROM cpu WHERE node_id = 'a' AND namespace_id LIKE 'd%'", "4"),
            ("SELECT sum(value) FROM cpu WHERE node_id IS NULL", "7"),
            (
                "SELECT sum(value) FROM cpu WHERE eq(labels, jsonb '{\"namespace\":\"dev\",\"node\":\"a\",\"__name__\":\"cpu\"}')",
                "4",
            ),
            ("SELECT count(*) FROM cpu WHERE eq(labels, '{\"namespace\":\"dev\"}')", "0"),
            (
                "SELECT u.value, t.value FROM cpu u JOIN total t ON u.time = t.time AND eq(u.labels, t.labels)",
                "1|10",
            ),
        ],
    )
}

#[test]
fn tables_of_metrics_have_names_and_kin() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = filled(&directory)?;
    check(
        &psql,
        &[
            ("SELECT value FROM prom_metric.total", "10"),
            ("SELECT value FROM pg_up", "1"),
            ("SELECT value FROM public.total", "10"),
            ("SELECT value, \"host.name_id\" FROM \"http.server:Requests\"", "1|h"),
            ("SELECT value FROM CPU WHERE value = 7", "7"),
            ("SELECT time, value, labels FROM lonely", "2024-02-29 12:00:00+00|2|{}"),
            (
                "SELECT labels, namespace, node, series FROM prom_series.cpu ORDER BY node",
                "{\"node\": \"a\", \"namespace\": \"dev\"}|dev|a|\n\
                 {\"node\": \"pinky\", \"namespace\": \"prod\"}|prod|pinky|\n\
                 {\"series\": \"x\", \"namespace\": \"prod\"}|prod||x",
            ),
            (
                "SELECT s.node, max(c.value) FROM cpu c JOIN prom_series.cpu s USING (series_id) \
                 GROUP BY 1 ORDER BY 1",
                "a|3\npinky|5\n|7",
            ),
            ("SELECT count(*) FROM prom_series.cpu WHERE namespace = 'prod'", "2"),
            (
                "SELECT count(*) FROM metrics_labels l JOIN prom_series.cpu s ON l.id = s.series_id",
                "3",
            ),
            (
                "SELECT count(*) FROM lonely WHERE NOT is_stale_marker(value) AND NOT is_normal_nan(value)",
                "1",
            ),
            ("SELECT is_normal_nan('NaN'::float8), is_stale_marker(NULL) IS NULL", "t|t"),
            ("WITH cpu AS (SELECT 1 AS one) SELECT * FROM cpu", "1"),
        ],
    )?;
    check_refused(
        &psql,
        &[
            ("SELECT * FROM nowhere", "42P01", "relation \"nowhere\" does not exist"),
            ("SELECT * FROM prom_metric.nowhere", "42P01", "prom_metric.nowhere"),
            ("SELECT * FROM \"CPU\"", "42P01", "CPU"),
            ("SELECT nothing_id FROM cpu", "42703", "nothing_id"),
            ("SELECT 1 == 1", "0A000", "=="),
        ],
    )
}

#[test]
fn conditions_on_a_metric_reach_the_index() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path()).flag("postgres-listen", "127.0.0.1:0");
    let launch = launch.flag("self-scrape-interval", "0").flag("query.max-series", "3");
    let server = launch.start()?;
    let psql = Psql::of(&server)?;
    let line = |at: usize| format!("many{{n=\"{at}\",half=\"{}\"}} {at} {NOON}\n", at % 2);
    let lines: String = (0..40).map(line).chain([format!("few 1 {NOON}\n")]).collect();
    psql.ask(&["COPY metrics FROM STDIN"], &lines)?;
    // More than three series are refused: what is answered was found by the index.
    check(
        &psql,
        &[
            ("SELECT value FROM few", "1"),
            ("SELECT value FROM many WHERE n_id = '7'", "7"),
            ("SELECT value FROM many WHERE val(n_id) = '7'", "7"),
            ("SELECT sum(value) FROM many WHERE n_id IN ('7', '8') ", "15"),
            ("SELECT sum(value) FROM many WHERE labels ? ('n' == '7')", "7"),
            ("SELECT sum(value) FROM many WHERE labels ? ('n' ==~ '^1[01]$')", "21"),
            ("SELECT sum(value) FROM many WHERE labels ? ('n' !=~ '[0-8]')", "9"),
            (
                "SELECT sum(value) FROM many WHERE labels ? ('half' !== '0') AND labels ? ('n' ==~ '^[12]$')",
                "1",
            ),
            (
                "SELECT sum(value) FROM many WHERE eq(labels, jsonb '{\"n\":\"7\",\"half\":\"1\"}')",
                "7",
            ),
            ("SELECT sum(value) FROM many WHERE jsonb(labels) @> '{\"n\":\"7\"}'", "7"),
            (
                "SELECT labels FROM prom_series.many WHERE n = '7'",
                "{\"n\": \"7\", \"half\": \"1\"}",
            ),
            ("SELECT count(*) FROM many WHERE time < timestamptz '2020-01-01'", "0"),
        ],
    )?;
    check_refused(&psql, &[("SELECT count(*) FROM many", "54000", "series")])
}

#[test]
fn what_there_is_can_be_asked() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_server, psql) = filled(&directory)?;
    psql.ask(
        &["COPY metrics FROM STDIN"],
        "# TYPE known counter\n# HELP known What it is.\nknown 1\n",
    )?;
    check(
        &psql,
        &[
            (
                "SELECT metric_name, table_name, label_keys FROM prom_info.metric ORDER BY 1",
                "cpu|cpu|{namespace,node,series}\n\
                 http.server:Requests|http.server:Requests|{host.name}\n\
                 known|known|{}\n\
                 lonely|lonely|{}\n\
                 pg_up|pg_up|{}\n\
                 total|total|{namespace,node}",
            ),
            (
                "SELECT label_keys FROM prom_info.metric WHERE metric_name = 'total'",
                "{namespace,node}",
            ),
            ("SELECT count(*), count(DISTINCT id) FROM prom_info.metric", "6|6"),
            (
                "SELECT key, value_column_name, id_column_name, values FROM prom_info.label ORDER BY key",
                "host.name|host.name|host.name_id|{h}\n\
                 namespace|namespace|namespace_id|{dev,prod}\n\
                 node|node|node_id|{a,pinky}\n\
                 series|series|series_id|{x}",
            ),
            ("SELECT values FROM prom_info.label WHERE key = 'node'", "{a,pinky}"),
            ("SELECT num_metric, num_label_keys FROM prom_info.system_stats", "6|4"),
            ("SELECT type, help FROM get_metric_metadata('known')", "counter|What it is."),
            ("SELECT count(*) FROM prom_api.get_metric_metadata('cpu')", "0"),
        ],
    )?;
    check_refused(
        &psql,
        &[
            ("SELECT label_cardinality(node_id) FROM cpu", "0A000", "metrics_labels"),
            ("SELECT * FROM get_metric_metadata(1)", "22023", "name"),
        ],
    )
}

#[test]
fn a_metric_is_dropped_for_good() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (server, psql) = filled(&directory)?;
    let read_only = "BEGIN READ ONLY";
    let said =
        psql.say(&["\\set VERBOSITY verbose", read_only, "SELECT drop_metric('cpu')"], "")?;
    ensure!(said.error.contains("25006"), "{said:?}");
    check_refused(
        &psql,
        &[("SELECT drop_metric(table_name) FROM prom_info.metric", "0A000", "alone")],
    )?;
    check(
        &psql,
        &[
            ("SELECT count(*) FROM cpu", "4"),
            ("SELECT prom_api.drop_metric('cpu')", "t"),
            ("SELECT drop_metric('cpu')", "f"),
            ("SELECT drop_metric('nowhere')", "f"),
            ("SELECT count(*) FROM metrics WHERE name = 'cpu'", "0"),
            ("SELECT count(*) FROM metrics WHERE name = 'total'", "1"),
        ],
    )?;
    let said = psql.say(&["BEGIN", "SELECT drop_metric('total')", "ROLLBACK"], "")?;
    ensure!(said.error.contains("WARNING") && said.error.contains("gone"), "{said:?}");
    server.kill()?;
    let (_server, psql) = start(directory.path())?;
    let left = "SELECT name FROM metrics ORDER BY 1";
    assert_eq!(psql.ask(&[left], "")?, "http.server:Requests\nlonely\npg_up");
    Ok(())
}
