//! Answers that InfluxDB gives, where a field has had values of several types.

use anyhow::{Result, ensure};
use e2e::answers::percent;
use e2e::{Launch, Server};
use serde_json::{Value, json};

/// 2020-09-13 12:26:40 UTC.
const START: i64 = 1_600_000_000;

/// The rows of a statement, or the whole answer.
fn rows(server: &Server, query: &str) -> Result<Value> {
    let path = format!("/query?db=x&epoch=s&q={}", percent(query));
    let answer: Value = serde_json::from_str(&server.get(&path)?.text())?;
    let values = answer.pointer("/results/0/series/0/values").cloned();
    Ok(values.unwrap_or(answer))
}

fn write(server: &Server, line: &str) -> Result<()> {
    let answer = server.post("/write?db=x&precision=s", line)?;
    ensure!(answer.status == 204, "{line}: {}", answer.excerpt());
    Ok(())
}

/// InfluxDB refuses such a line. Here its last value counts.
#[test]
fn the_last_value_of_a_field_in_a_line_counts() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    for (measurement, line, expected) in [
        ("a", "x=9i,x=\"s\"", json!("s")),
        ("b", "x=\"s\",x=9i", json!(9)),
        ("c", "x=1,x=2", json!(2)),
        ("d", "x=\"s\",x=\"t\"", json!("t")),
        ("e", "x=t,x=\"s\"", json!("s")),
        ("f", "x=9007199254740993i,x=\"s\"", json!("s")),
        ("g", "x=\"s\",x=9007199254740993i", json!(9_007_199_254_740_993_i64)),
    ] {
        write(&server, &format!("{measurement} {line} {START}"))?;
        let found = rows(&server, &format!("SELECT * FROM {measurement}"))?;
        assert_eq!(found, json!([[START, expected]]), "{line}");
    }
    // A value that the sender overrode does not come back beside another line's.
    write(&server, &format!("m x=7i {START}"))?;
    write(&server, &format!("m x=9i,x=\"s\" {}", START + 10))?;
    assert_eq!(rows(&server, "SELECT x FROM m")?, json!([[START, 7]]));
    server.stop()
}

/// One float makes the field a field of floats; its integers keep their digits for who asks for them.
#[test]
fn integers_keep_their_digits_beside_floats() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut server = Launch::new(directory.path()).start()?;
    let large = 9_007_199_254_740_993_i64;
    write(&server, &format!("m,t=a x={large}i {START}"))?;
    write(&server, &format!("m,t=a x=2.5 {}", START + 10))?;
    write(&server, &format!("m,t=b x={}i {}", large + 2, START + 20))?;
    for _ in 0..2 {
        for (query, expected) in [
            (
                "SELECT x::integer FROM m",
                json!([[START, large], [START + 10, 2], [START + 20, large + 2]]),
            ),
            ("SELECT max(x::integer) FROM m", json!([[START + 20, large + 2]])),
            ("SELECT sum(x::integer) FROM m", json!([[0, 2 * large + 4]])),
            (
                "SELECT x::integer + 1 FROM m WHERE t = 'a'",
                json!([[START, large + 1], [START + 10, 3]]),
            ),
            (
                "SELECT x::integer, x FROM m WHERE t = 'b'",
                json!([[START + 20, large + 2, (large + 2) as f64]]),
            ),
            ("SELECT x FROM m WHERE t = 'a'", json!([[START, large as f64], [START + 10, 2.5]])),
        ] {
            let found = rows(&server, query)?;
            assert_eq!(
                found.to_string().replace(".0", ""),
                expected.to_string().replace(".0", ""),
                "{query}"
            );
        }
        server = server.restart()?;
    }
    server.stop()
}

/// Fill values, medians and windows over subqueries of large integers, with InfluxDB's answers.
#[test]
fn integers_beyond_floats_have_influxdbs_answers() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let large = 9_007_199_254_740_993_i64;
    write(&server, &format!("m6 v={large}i {START}\nm6 v={}i {}", large - 3, START + 20))?;
    let window = format!("WHERE time >= {START}s AND time < {}s GROUP BY time(10s)", START + 30);
    for (query, expected) in [
        (
            format!("SELECT max(v) FROM m6 {window} fill({large})"),
            json!([[START, large], [START + 10, large], [START + 20, large - 3]]),
        ),
        (
            format!("SELECT max(v) FROM m6 {window} fill(linear)"),
            json!([[START, large], [START + 10, large - 3], [START + 20, large - 3]]),
        ),
        ("SELECT median(v) FROM m6".to_string(), json!([[0, large - 1]])),
        (
            format!("SELECT max(a) FROM (SELECT abs(v) AS a FROM m6) {window} fill(none)"),
            json!([[START, large], [START + 20, large - 3]]),
        ),
    ] {
        let found = rows(&server, &query)?;
        assert_eq!(found.to_string().replace(".0", ""), expected.to_string(), "{query}");
    }
    server.stop()
}
