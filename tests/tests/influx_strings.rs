//! Strings of line protocol: written, found again through InfluxQL and Flux, never taken for numbers
//! by PromQL, bounded, and there after a kill.

use anyhow::{Context, Result, ensure};
use e2e::answers::percent;
use e2e::{Launch, Server};
use serde_json::{Value, json};

/// 2020-09-13 12:26:40 UTC.
const START: i64 = 1_600_000_000;

fn lines() -> String {
    let states = ["open", "shut", "a \\\"b\\\\ c", "open"];
    let line = |(row, state): (usize, &&str)| {
        let at = START + row as i64 * 10;
        format!("door,host=a state=\"{state}\",count={row}i,label=\"x{row}\" {at}000000000\n")
    };
    states.iter().enumerate().map(line).collect()
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
    check(
        server,
        "SELECT * FROM door",
        json!([
            [START, 0, "a", "x0", "open"],
            [START + 10, 1, "a", "x1", "shut"],
            [START + 20, 2, "a", "x2", "a \"b\\ c"],
            [START + 30, 3, "a", "x3", "open"],
        ]),
    );
    check(
        server,
        "SELECT count FROM door WHERE state = 'open'",
        json!([[START, 0], [START + 30, 3]]),
    );
    check(server, "SELECT label FROM door WHERE state =~ /^s/", json!([[START + 10, "x1"]]));
    check(server, "SELECT last(state), first(label) FROM door", json!([[0, "open", "x0"]]));
    check(
        server,
        "SELECT distinct(state) FROM door",
        json!([[0, "open"], [0, "shut"], [0, "a \"b\\ c"]]),
    );
    check(server, "SELECT mode(state), count(state) FROM door", json!([[0, "open", 4]]));
    check(
        server,
        "SHOW FIELD KEYS FROM door",
        json!([["count", "integer"], ["label", "string"], ["state", "string"]]),
    );
}

#[test]
fn strings_come_back() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    server.write("/write?db=x", lines())?;
    server.write("/write?db=x", format!("only text=\"alone\" {START}000000000"))?;
    check_all(&server);
    check(&server, "SHOW MEASUREMENTS", json!([["door"], ["only"]]));
    check(&server, "SELECT text FROM only", json!([[START, "alone"]]));
    let flux = "from(bucket: \"x\") |> range(start: 1600000000, stop: 1600000100) |> filter(fn: (r) => \
                r._field == \"state\" and r._value != \"open\") |> keep(columns: [\"_value\"])";
    let head = [("Content-Type", "application/vnd.flux")];
    let found = server.client().send("POST", "/api/v2/query", &head, flux.as_bytes())?.text();
    let expected = ",result,table,_value\r\n,_result,0,shut\r\n,_result,0,\"a \"\"b\\ c\"\r\n\r\n";
    ensure!(found == expected, "{found}");

    // PromQL does not see numbers of texts unless it asks for them by name.
    let names =
        server.get(&format!("/api/v1/label/__name__/values?start={START}&end={}", START + 99))?;
    ensure!(names.json()?["data"] == json!(["door_count"]), "{}", names.excerpt());
    let at = START + 30;
    let all = server.get(&format!("/api/v1/query?time={at}&query={}", percent("{host=\"a\"}")))?;
    ensure!(all.vector()?.len() == 1, "{}", all.excerpt());
    let named = server.get(&format!("/api/v1/query?time={at}&query=door_state:text"))?;
    ensure!(named.vector()?.len() == 1, "{}", named.excerpt());
    // A measurement is dropped with its strings.
    let drop = format!("/query?db=x&q={}", percent("DROP MEASUREMENT door"));
    server.client().send("POST", &drop, &[], &[])?;
    check(&server, "SHOW MEASUREMENTS", json!([["only"]]));
    let named = server.get(&format!("/api/v1/query?time={at}&query=door_state:text"))?;
    ensure!(named.vector()?.is_empty(), "{}", named.excerpt());
    Ok(())
}

#[test]
fn strings_survive_kills() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path());
    let server = launch.start()?;
    server.write("/write?db=x", lines())?;
    server.kill()?;
    let server = launch.start()?;
    check_all(&server);
    // New texts get numbers of their own.
    for round in 0..20 {
        let at = START + 1000 + round;
        server.write(
            "/write?db=x",
            format!("round text=\"number {round}\",n={round}i {at}000000000"),
        )?;
    }
    server.kill()?;
    let server = launch.start()?;
    check_all(&server);
    let found = rows(&server, "SELECT n, text FROM round")?;
    let expected: Vec<Value> =
        (0..20).map(|n| json!([START + 1000 + n, n, format!("number {n}")])).collect();
    ensure!(found == json!(expected), "{found}");
    server.get("/internal/force_flush")?;
    server.stop()?;
    let server = launch.start()?;
    check_all(&server);
    Ok(())
}

#[test]
fn limits_name_line_and_field() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path());
    let launch = launch.flag("influx.max-strings", "2").flag("influx.max-string-size", "8");
    let server = launch.start()?;
    let body = "m v=1,s=\"one\" 1600000000000000000\nm v=2,s=\"two\" 1600000001000000000\n\
                m v=3,s=\"three\" 1600000002000000000\nm v=4,s=\"much too long\" 1600000003000000000";
    let answer = server.client().send("POST", "/api/v3/write_lp?db=x", &[], body.as_bytes())?;
    let error = answer.json()?;
    let told = |at: usize| -> Result<(Value, String)> {
        let line = error.pointer(&format!("/data/{at}")).context("a line")?;
        Ok((line["line_number"].clone(), line["error_message"].as_str().unwrap_or("").to_string()))
    };
    ensure!(answer.status == 400, "{error}");
    let expected =
        "field \"s\" is left out: there are 2 different strings already (influx.max-strings)";
    ensure!(told(0)? == (json!(3), expected.to_string()), "{error}");
    let expected =
        "field \"s\" is left out: a string of 13 bytes, the limit is 8 (influx.max-string-size)";
    ensure!(told(1)? == (json!(4), expected.to_string()), "{error}");
    let found = rows(&server, "SELECT v, s FROM m")?;
    let expected = json!([
        [START, 1, "one"],
        [START + 1, 2, "two"],
        [START + 2, 3, null],
        [START + 3, 4, null],
    ]);
    ensure!(found == expected, "{found}");
    server.stop()?;
    // Without room for any they are left out, as they always were.
    let other = tempfile::tempdir()?;
    let server = Launch::new(other.path()).flag("influx.max-strings", "0").start()?;
    let answer = server.client().send("POST", "/write?db=x", &[], body.as_bytes())?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    check(&server, "SHOW FIELD KEYS FROM m", json!([["v", "float"]]));
    Ok(())
}
