//! Rewrites of statements.

use crate::parse::rewrite::rewriter::{Hints, rewrite};
use crate::parse::text::parse_query;
use crate::types::dialect::Postgres;
use crate::types::error::SqlError;
use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, SelectItem, SetExpr, Statement};
use datafusion::sql::sqlparser::parser::Parser;

fn rewritten(text: &str) -> Result<(String, Hints), SqlError> {
    let mut all = Parser::parse_sql(&Postgres::new(0), text).unwrap();
    let hints = rewrite(&mut all[0])?.hints;
    Ok((without_names(&all[0].to_string()), hints))
}

/// Names that were given are another matter.
fn without_names(shown: &str) -> String {
    let mut parts = shown.split(" AS \"");
    let first = parts.next().unwrap_or_default().to_string();
    let rest = parts.filter_map(|part| part.split_once('"').map(|(_, rest)| rest));
    first + &rest.collect::<String>()
}

/// Statements of PostgreSQL, and what they become.
const REWRITES: &[(&str, &str)] = &[
    (
        "SELECT a = ANY('{x,\"y z\"}') FROM pg_class",
        "SELECT a IN ('x', 'y z') FROM pg_catalog.pg_class",
    ),
    ("SELECT 7, 7000000000", "SELECT CAST(7 AS INT), CAST(7000000000 AS BIGINT)"),
    (
        "SELECT -7, 1.50, 1e3",
        "SELECT CAST(-7 AS INT), CAST('1.50' AS NUMERIC), CAST('1e3' AS NUMERIC)",
    ),
    ("SELECT a > 1e3, coalesce(b, 2.5)", "SELECT a > 1000., coalesce(b, CAST('2.5' AS NUMERIC))"),
    ("SELECT 1.5::numeric(4,2)", "SELECT pg_numeric_limits(CAST('1.5' AS NUMERIC), 4, 2)"),
    ("SELECT a = ANY(ARRAY[1, 2.5])", "SELECT a IN (1, 2.5)"),
    ("SELECT a <> ALL(ARRAY['x'])", "SELECT a NOT IN ('x')"),
    ("SELECT a = ANY('{x,NULL}')", "SELECT a IN ('x', NULL)"),
    ("SELECT a = ANY('{}')", "SELECT false"),
    (
        "SELECT time_bucket(ts => t, bucket_width => '1 day', origin => o)",
        "SELECT time_bucket(CAST('1 days' AS INTERVAL), t, o)",
    ),
    (
        "SELECT time_bucket('1 day', t, timezone => 'UTC', \"offset\" => '6 hours')",
        "SELECT time_bucket(CAST('1 days' AS INTERVAL), t, CAST('21600 secs' AS INTERVAL))",
    ),
    ("SELECT time_bucket(5, t, 'utc', NULL, 2)", "SELECT time_bucket(5, t, 2)"),
    ("SELECT s -> stddev('pop'), s -> sum()", "SELECT stats_stddev(s, 'pop'), stats_sum(s)"),
    ("SELECT percentile_agg(DISTINCT v)", "SELECT uddsketch(DISTINCT 200, 0.001, v)"),
    (
        "SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY v DESC) FILTER (WHERE w)",
        "SELECT percentile_descending(v, CAST(0.3 AS DOUBLE PRECISION)) FILTER (WHERE w)",
    ),
    ("SELECT pg_catalog.f(1)", "SELECT f(1)"),
    ("SELECT a OPERATOR(pg_catalog.~) '^x' COLLATE pg_catalog.default", "SELECT a ~ '(?s)^x'"),
    ("SELECT '{\"a\":1}'::jsonb", "SELECT jsonb_in('{\"a\":1}')"),
    ("SELECT '{a,NULL}'::text[]", "SELECT ARRAY['a', NULL]::TEXT[]"),
    ("SELECT ARRAY[1]::int[2000000000]", "SELECT ARRAY[CAST(1 AS INT)]::INT[]"),
    ("SELECT 'm'::regclass", "SELECT to_regclass(to_regclass('m'))"),
    (
        "SELECT polname, array(SELECT 1) FROM pg_catalog.pg_policy p WHERE x = any(y)",
        "SELECT NULL, NULL FROM pg_catalog.pg_policy p WHERE false",
    ),
    ("SELECT to_timestamp(5)", "SELECT timestamp_of_seconds(5)"),
    (
        "SELECT (SELECT d.adbin FROM pg_attrdef d WHERE d.adnum = a.attnum AND a.atthasdef) FROM pg_attribute a",
        "SELECT CASE WHEN a.atthasdef THEN (SELECT first_value(d.adbin) FROM pg_catalog.pg_attrdef d WHERE d.adnum = a.attnum) END FROM pg_catalog.pg_attribute a",
    ),
    (
        "SELECT a AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.b = c.d)",
        "SELECT a AND (SELECT count(*) = 0 FROM pg_catalog.pg_index i WHERE i.b = c.d)",
    ),
    (
        "SELECT CASE WHEN t.typtype = 'c' THEN (SELECT 1 FROM pg_type) ELSE 2 END",
        "SELECT CAST(2 AS INT)",
    ),
    (
        "SELECT i.indkey[n], generate_subscripts(i.indkey, 1), (information_schema._pg_expandarray(i.indkey)).n",
        "SELECT i.indkey[(n) + 1], unnest(vector_places_from_0(i.indkey)), unnest(vector_places(i.indkey))",
    ),
    ("SELECT a IS DISTINCT FROM 1 AND b OR c", "SELECT a IS DISTINCT FROM 1 AND b OR c"),
    ("SELECT (SELECT count(*) FROM pg_trigger), (SELECT tgname FROM pg_trigger)", "SELECT 0, NULL"),
    ("SELECT count(*) + 1 FROM pg_trigger", "SELECT count(*) + 1 FROM pg_catalog.pg_trigger"),
    (
        "SELECT a, max(b) FROM pg_trigger GROUP BY a",
        "SELECT NULL, NULL FROM pg_catalog.pg_trigger WHERE false GROUP BY a",
    ),
    (
        "SELECT a FROM pg_trigger RIGHT JOIN m ON true",
        "SELECT a FROM pg_catalog.pg_trigger RIGHT JOIN m ON true",
    ),
    (
        "SELECT n FROM (SELECT count(*) AS n FROM pg_trigger) AS t",
        "SELECT n FROM (SELECT count(*) AS n FROM pg_catalog.pg_trigger) AS t",
    ),
];

#[test]
fn postgresqls_ways_become_others() {
    for &(text, expected) in REWRITES {
        assert_eq!(rewritten(text).unwrap().0, expected, "{text}");
    }
}

#[test]
fn promscales_operators_and_functions() {
    for (text, expected) in [
        ("SELECT labels ? ('a' == 'b')", "SELECT ((labels ->> 'a') = 'b') IS TRUE"),
        ("SELECT labels ? ('a' !== 'b')", "SELECT ((labels ->> 'a') = 'b') IS NOT TRUE"),
        ("SELECT labels ? ('a'==~'b.*')", "SELECT ((labels ->> 'a') ~ '(?s)b.*') IS TRUE"),
        ("SELECT labels ? ('a' !=~ 'b')", "SELECT ((labels ->> 'a') ~ '(?s)b') IS NOT TRUE"),
        ("SELECT labels ? 'a', 1 != ~2", "SELECT labels ? 'a', 1 <> pg_bit_not(CAST(2 AS INT))"),
        ("SELECT val(node_id)", "SELECT node_id"),
        (
            "SELECT eq(labels, '{}')",
            "SELECT labels_without_name(labels) = labels_without_name(jsonb_in('{}'))",
        ),
        ("SELECT prom_api.is_stale_marker(v)", "SELECT is_stale_marker(v)"),
    ] {
        let Ok(query) = parse_query(text) else { panic!("{text}") };
        let shown = query.rephrased().statement.to_string();
        assert_eq!(without_names(&shown), expected, "{text}");
    }
    for text in ["SELECT label_cardinality(node_id) FROM m", "SELECT drop_metric(name) FROM m"] {
        assert_eq!(parse_query(text).map_err(|error| error.code).unwrap_err(), "0A000", "{text}");
    }
}

#[test]
fn what_others_call_otherwise() {
    for (text, expected) in [
        ("SELECT time_bucket('1 hour', t)", "SELECT time_bucket(CAST('3600 secs' AS INTERVAL), t)"),
        (
            "SELECT last(v, t) FROM m",
            "SELECT last_value(v ORDER BY t ASC) FILTER (WHERE t IS NOT NULL) FROM m",
        ),
        ("SELECT a LIKE 'x/_' || '%' ESCAPE '/'", "SELECT a LIKE 'x\\_%'"),
        (
            "SELECT EXISTS (SELECT 1 FROM m)",
            "SELECT (SELECT count(*) <> 0 FROM (SELECT CAST(1 AS INT) FROM m LIMIT 1) AS found)",
        ),
    ] {
        assert_eq!(rewritten(text).unwrap().0, expected, "{text}");
    }
}

#[test]
fn distinct_from_binds_more_tightly_than_and() {
    let text = "SELECT a IS DISTINCT FROM 1 AND b OR c";
    let mut all = Parser::parse_sql(&Postgres::new(0), text).unwrap();
    rewrite(&mut all[0]).unwrap();
    let Statement::Query(query) = &all[0] else { panic!("{text}") };
    let SetExpr::Select(select) = &*query.body else { panic!("{text}") };
    let SelectItem::ExprWithAlias { expr, .. } = &select.projection[0] else { panic!("{text}") };
    let Expr::BinaryOp { left, op: BinaryOperator::Or, .. } = expr else { panic!("{expr:?}") };
    let Expr::BinaryOp { left, op: BinaryOperator::And, .. } = &**left else { panic!("{left:?}") };
    assert!(matches!(**left, Expr::IsDistinctFrom(..)), "{left:?}");
}

#[test]
fn what_means_something_else_is_refused() {
    for text in [
        "SELECT time_bucket('1 day', t, 'Asia/Tokyo')",
        "SELECT time_bucket('1 day', t, origin => o, \"offset\" => p)",
    ] {
        assert_eq!(rewritten(text).map_err(|error| error.code).unwrap_err(), "0A000", "{text}");
    }
    // As deep as that takes a stack as those of statements' threads.
    let deep = std::thread::Builder::new().stack_size(64 << 20).spawn(|| {
        let deep = format!("SELECT 1{}", "+1".repeat(600));
        rewritten(&deep).map_err(|error| error.code).unwrap_err()
    });
    assert_eq!(deep.unwrap().join().unwrap(), "54001");
}

#[test]
fn parameters_say_their_types() {
    let text = "SELECT $1::int, $2::timestamptz FROM m LIMIT $3 OFFSET $4";
    let hints = rewritten(text).unwrap().1;
    assert_eq!(hints["$1"], DataType::Int32);
    assert!(matches!(hints["$2"], DataType::Timestamp(_, Some(_))));
    assert_eq!((&hints["$3"], &hints["$4"]), (&DataType::Int64, &DataType::Int64));
}
