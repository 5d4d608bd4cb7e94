//! Integers of 64 bits, most of which float64 has no room for: written, found again through InfluxQL and
//! Flux with every digit, seen by PromQL as the nearest float64, and deleted with their fields.

use anyhow::{Result, ensure};
use e2e::answers::percent;
use e2e::migration::must;
use e2e::{Launch, Server};
use serde_json::{Value, json};

/// 2020-09-13 12:26:40 UTC.
const START: i64 = 1_600_000_000;
/// 2^53 and 2^60.
const BORDER: i64 = 1 << 53;
const LARGE: i64 = 1 << 60;

/// What host `a` has, ten seconds apart, as integers of the field `n`.
const NUMBERS: [i64; 7] = [BORDER + 1, i64::MAX, i64::MIN, -7, BORDER, -BORDER - 1, LARGE + 12_345];

fn lines() -> String {
    let line = |(row, number): (usize, &i64)| {
        let at = START + row as i64 * 10;
        format!("big,host=a n={number}i,x=0.5 {at}000000000\n")
    };
    let other = format!("big,host=b n={}i,m={}i {START}000000000\n", LARGE + 1, i64::MAX - 1);
    NUMBERS.iter().enumerate().map(line).collect::<String>() + &other
}

fn rows(server: &Server, query: &str) -> Result<Value> {
    let path = format!("/query?db=x&epoch=s&q={}", percent(query));
    let answer: Value = serde_json::from_str(&server.get(&path)?.text())?;
    let values = answer.pointer("/results/0/series/0/values").cloned();
    Ok(values.unwrap_or(answer))
}

#[track_caller]
fn check(server: &Server, query: &str, expected: Value) {
    let found = rows(server, query).unwrap_or_else(|error| panic!("{query}: {error:#}"));
    assert_eq!(found, expected, "{query}");
}

fn check_all(server: &Server) {
    let of_a: Vec<Value> =
        NUMBERS.iter().zip(0..).map(|(n, row)| json!([START + row * 10, n])).collect();
    check(server, "SELECT n FROM big WHERE host = 'a'", json!(of_a));
    check(
        server,
        "SELECT * FROM big WHERE host = 'b'",
        json!([[START, "b", i64::MAX - 1, LARGE + 1, null]]),
    );
    let of_one = |function: &str, expected: i64| {
        let query = format!("SELECT {function}(n) FROM big WHERE host = 'a' AND time >= 0");
        let found = rows(server, &query).unwrap_or_else(|error| panic!("{query}: {error:#}"));
        assert_eq!(found[0][1], json!(expected), "{query}");
    };
    of_one("first", BORDER + 1);
    of_one("last", LARGE + 12_345);
    of_one("max", i64::MAX);
    of_one("min", i64::MIN);
    of_one("count", 7);
    let sum = NUMBERS.iter().fold(0i64, |sum, number| sum.wrapping_add(*number));
    of_one("sum", sum);
    check(
        server,
        &format!("SELECT n FROM big WHERE n = {}", LARGE + 1),
        json!([[START, LARGE + 1]]),
    );
    check(
        server,
        &format!("SELECT n FROM big WHERE n = {LARGE}"),
        json!({"results":[{"statement_id":0}]}),
    );
    let windows = format!(
        "SELECT last(n) FROM big WHERE host = 'a' AND time >= {START}s AND time < {}s GROUP BY time(20s)",
        START + 40
    );
    check(server, &windows, json!([[START, i64::MAX], [START + 20, -7]]));
    check(
        server,
        &format!("SELECT difference(n) FROM big WHERE host = 'a' AND time >= {}s", START + 40),
        json!([[START + 50, -2 * BORDER - 1], [START + 60, LARGE + 12_345 + BORDER + 1]]),
    );
    check(server, "SHOW MEASUREMENTS", json!([["big"]]));
    check(
        server,
        "SHOW FIELD KEYS FROM big",
        json!([["m", "integer"], ["n", "integer"], ["x", "float"]]),
    );
}

fn flux(server: &Server, function: &str) -> Result<String> {
    let text = format!(
        "from(bucket: \"x\") |> range(start: {START}, stop: {}) |> filter(fn: (r) => r._field == \"n\" \
         and r.host == \"a\") |> {function} |> keep(columns: [\"_value\"])",
        START + 100
    );
    let head = [("Content-Type", "application/vnd.flux")];
    Ok(server.client().send("POST", "/api/v2/query", &head, text.as_bytes())?.text())
}

#[test]
fn integers_come_back_with_every_digit() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path());
    let server = launch.start()?;
    server.write("/write?db=x", lines())?;
    check_all(&server);
    let found = flux(&server, "min()")?;
    ensure!(found.contains(&format!(",{}\r\n", i64::MIN)), "{found}");
    let found = flux(&server, "limit(n: 2)")?;
    ensure!(
        found.contains(&format!(",0,{}\r\n,_result,0,{}\r\n", BORDER + 1, i64::MAX)),
        "{found}"
    );
    server.kill()?;
    let server = launch.start()?;
    check_all(&server);
    server.post("/internal/force_flush", "")?;
    server.stop()?;
    let server = launch.start()?;
    check_all(&server);
    // The samples are the nearest numbers with a point, and nobody sees the low bits unasked.
    let names =
        server.get(&format!("/api/v1/label/__name__/values?start={START}&end={}", START + 99))?;
    ensure!(names.json()?["data"] == json!(["big_m", "big_n", "big_x"]), "{}", names.excerpt());
    let query = percent("{host=\"b\"}");
    let all = server.get(&format!("/api/v1/query?time={START}&query={query}"))?;
    ensure!(all.vector()?.len() == 2, "{}", all.excerpt());
    let lows = server.get(&format!("/api/v1/query?time={START}&query=big_n:low53"))?;
    ensure!(lows.vector()?.len() == 2, "{}", lows.excerpt());
    server.stop()
}

#[test]
fn what_replaces_an_integer_replaces_all_of_it() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    server.write("/write?db=x", lines())?;
    for (number, expected) in
        [(LARGE, LARGE), (LARGE + 3, LARGE + 3), (5, 5), (-LARGE - 9, -LARGE - 9), (BORDER, BORDER)]
    {
        server.write("/write?db=x", format!("big,host=b n={number}i {START}000000000\n"))?;
        check(&server, "SELECT n FROM big WHERE host = 'b'", json!([[START, expected]]));
    }
    let into = format!("/query?db=x&q={}", percent("SELECT n, x INTO copy FROM big GROUP BY *"));
    server.post(&into, "")?;
    let of = |measurement: &str| rows(&server, &format!("SELECT n, x, host FROM {measurement}"));
    ensure!(of("copy")? == of("big")?, "{}", of("copy")?);
    // A field that was one of numbers with a point, too, is one of these.
    server.write("/write?db=x", format!("copy,host=c n=0.5 {START}000000000\n"))?;
    check(&server, "SELECT n FROM copy WHERE host = 'b'", json!([[START, BORDER]]));
    for statement in ["DELETE FROM big WHERE time > 0", "DROP MEASUREMENT copy"] {
        server.post(&format!("/query?db=x&q={}", percent(statement)), "")?;
    }
    for metric in ["big_n", "big_n:low53", "copy_n", "copy_n:low53"] {
        let left = server.get(&format!("/api/v1/query?time={START}&query={metric}"))?;
        ensure!(left.vector()?.is_empty(), "{metric}: {}", left.excerpt());
    }
    let refused = server.post("/write?db=x", format!("big n:low53=1 {START}000000000\n"))?;
    ensure!(
        refused.status == 400 && refused.text().contains("long integers"),
        "{}",
        refused.text()
    );
    server.stop()
}

#[test]
fn integers_move_in_with_every_digit() -> Result<()> {
    let root = tempfile::tempdir()?;
    let file = root.path().join("all.lp");
    std::fs::write(&file, format!("# DML\n# CONTEXT-DATABASE:x\n{}", lines()))?;
    let server = Launch::new(&root.path().join("data")).start()?;
    must(&server, root.path(), &["influx-lines", &file.display().to_string()])?;
    check_all(&server);
    // Another Quipu is an InfluxDB to who asks it so.
    let other = Launch::new(&root.path().join("other")).start()?;
    let second = root.path().join("second");
    std::fs::create_dir_all(&second)?;
    must(
        &other,
        &second,
        &[
            "influxdb",
            server.url(),
            "--database",
            "x",
            "--start",
            "2020-09-01",
            "--end",
            "2020-10-01",
        ],
    )?;
    check_all(&other);
    other.stop()?;
    server.stop()
}
