//! InfluxDB 3's paths: lines in, InfluxQL out, errors in its form; and its Python client, which
//! writes.

use anyhow::{Context, Result, ensure};
use e2e::answers::percent;
use e2e::http::Response;
use e2e::programs::python_with;
use e2e::{Launch, Server, run};
use serde_json::{Value, json};

fn post(server: &Server, path: &str, body: &str) -> Result<Response> {
    server.client().send("POST", path, &[], body.as_bytes())
}

fn ask(server: &Server, query: &str, format: &str) -> Result<Response> {
    let query = percent(query);
    server.get(&format!("/api/v3/query_influxql?db=x&format={format}&q={query}"))
}

#[test]
fn lines_in() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let good =
        post(&server, "/api/v3/write_lp?db=x&precision=second", "cpu,host=a v=1,n=2i 1600000000")?;
    ensure!(good.status == 204, "{}", good.excerpt());
    let by_guess =
        post(&server, "/api/v3/write_lp?db=x&no_sync=true", "cpu,host=a v=2 1600000001000")?;
    ensure!(by_guess.status == 204, "{}", by_guess.excerpt());
    let lines =
        "cpu,host=b v=3 1600000000000000000\ncpu,host=b\ncpu,host=c v=4 1600000000000000000";
    let partial = post(&server, "/api/v3/write_lp?db=x", lines)?;
    let expected = json!({
        "error": "partial write of line protocol occurred",
        "data": [{ "original_line": "cpu,host=b", "line_number": 2, "error_message": "missing fields" }],
    });
    ensure!(partial.status == 400 && partial.json()? == expected, "{}", partial.excerpt());
    let lines = lines.replace("host=c", "host=d").replace("v=3", "v=33");
    let none = post(&server, "/api/v3/write_lp?db=x&accept_partial=false", &lines)?;
    let expected = json!({
        "error": "parsing failed for write_lp endpoint",
        "data": { "original_line": "cpu,host=b", "line_number": 2, "error_message": "missing fields" },
    });
    ensure!(none.status == 400 && none.json()? == expected, "{}", none.excerpt());
    let found = ask(&server, "SELECT v FROM cpu", "csv")?.text();
    // Of equal times in the order of InfluxDB 1, which is not that of the series.
    let expected = "iox::measurement,time,v\ncpu,2020-09-13T12:26:40,1.0\ncpu,2020-09-13T12:26:40,4.0\n\
                    cpu,2020-09-13T12:26:40,3.0\ncpu,2020-09-13T12:26:41,2.0\n";
    ensure!(found == expected, "{found}");
    let nameless = post(&server, "/api/v3/write_lp", "cpu v=1")?;
    let error = nameless.json()?;
    ensure!(nameless.status == 400 && error["data"] == Value::Null, "{error}");
    ensure!(error["error"] == "missing query parameter 'db'", "{error}");
    Ok(())
}

#[test]
fn rows_out() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let lines = "cpu,host=a v=1,n=2i,up=true 1600000000\ncpu,host=b v=1.5,n=3i 1600000010";
    post(&server, "/api/v3/write_lp?db=x&precision=second", lines)?;
    let rows = ask(&server, "SELECT n, up, v FROM cpu GROUP BY host", "json")?;
    let expected = json!([
        { "iox::measurement": "cpu", "time": "2020-09-13T12:26:40", "host": "a", "n": 2, "up": true, "v": 1.0 },
        { "iox::measurement": "cpu", "time": "2020-09-13T12:26:50", "host": "b", "n": 3, "v": 1.5 },
    ]);
    ensure!(rows.status == 200 && rows.json()? == expected, "{}", rows.excerpt());
    let lines = ask(&server, "SHOW MEASUREMENTS", "jsonl")?.text();
    ensure!(lines == "{\"iox::measurement\":\"measurements\",\"name\":\"cpu\"}\n", "{lines}");
    let databases = ask(&server, "SHOW DATABASES", "json")?.json()?;
    ensure!(
        databases == json!([{ "iox::database": "quipu" }, { "iox::database": "x" }]),
        "{databases}"
    );
    let pretty = ask(&server, "SELECT v FROM cpu LIMIT 1", "pretty")?.text();
    ensure!(pretty.contains("| cpu              | 2020-09-13T12:26:40 | 1.0 |\n"), "{pretty}");
    let head = [("Content-Type", "application/json")];
    let body = json!({ "db": "x", "q": "SELECT n FROM cpu WHERE host = $h", "params": { "h": "b" }, "format": "csv" });
    let posted = server.client().send(
        "POST",
        "/api/v3/query_influxql",
        &head,
        body.to_string().as_bytes(),
    )?;
    ensure!(
        posted.text() == "iox::measurement,time,n\ncpu,2020-09-13T12:26:50,3\n",
        "{}",
        posted.excerpt()
    );
    for (query, words) in
        [("SELEKT", "error parsing query"), ("SELECT foo(n) FROM cpu", "undefined function")]
    {
        let refused = ask(&server, query, "json")?;
        let error = refused.json()?;
        let text = error["error"].as_str().context("words")?;
        ensure!(refused.status == 400 && text.contains(words), "{error}");
    }
    ensure!(ask(&server, "SHOW MEASUREMENTS", "parquet")?.status == 400, "parquet");
    Ok(())
}

/// Prints nothing when all is well.
const SCRIPT: &str = r#"
import sys
from influxdb_client_3 import InfluxDBClient3, Point, WriteOptions, write_client_options
from influxdb_client_3.exceptions import InfluxDBError

url = sys.argv[1]
for v2 in (False, True):
    name = "v2" if v2 else "v3"
    client = InfluxDBClient3(host=url, token="t", database="x", write_use_v2_api=v2)
    client.write(Point("py").tag("path", name).field("v", 1.5).field("n", 2).field("up", True).time(1600000000, "s"), write_precision="s")
    client.write([f"py,path={name} v=2 1600000001000000000"])
    try:
        client.write(f"py,path={name} v=3 1600000002000000000\npy,path={name} 3")
        sys.exit("a bad line passed")
    except InfluxDBError as error:
        assert error.response.status == 400, error
    client.close()
"#;

#[test]
fn the_python_client_of_the_third_generation_writes() -> Result<()> {
    let python = python_with("influxdb_client_3")?;
    let directory = tempfile::tempdir()?;
    let server = Launch::new(&directory.path().join("data")).start()?;
    let script = directory.path().join("client.py");
    std::fs::write(&script, SCRIPT)?;
    let script = script.to_str().context("UTF-8")?;
    let output = run(&python, &[script, server.url()])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = ask(&server, "SELECT n, path, v FROM py", "csv")?.text();
    let expected = "iox::measurement,time,n,path,v\npy,2020-09-13T12:26:40,2,v2,1.5\npy,2020-09-13T12:26:40,2,v3,1.5\n\
                    py,2020-09-13T12:26:41,,v2,2.0\npy,2020-09-13T12:26:41,,v3,2.0\n\
                    py,2020-09-13T12:26:42,,v2,3.0\npy,2020-09-13T12:26:42,,v3,3.0\n";
    ensure!(found == expected, "{found}");
    Ok(())
}
