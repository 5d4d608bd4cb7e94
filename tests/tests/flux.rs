//! Flux: what the client of InfluxDB 2, Grafana and dashboards send, and what they must get.

use anyhow::{Context, Result, ensure};
use e2e::http::Response;
use e2e::influx::{START, cpu_lines};
use e2e::programs::python_with;
use e2e::{Launch, Server, run};
use serde_json::{Value, json};

fn lines() -> String {
    cpu_lines() + &format!("disk,path=/ value=1 {START}000000000\n")
}

fn start(directory: &std::path::Path) -> Result<Server> {
    let server = Launch::new(directory).start()?;
    server.write("/api/v2/write?bucket=x", lines())?;
    Ok(server)
}

/// What Grafana's data source sends: the text with its variables filled in, and all annotations.
fn grafana(server: &Server, text: &str) -> Result<Response> {
    let range = "start: 2020-09-13T12:26:40Z, stop: 2020-09-13T12:36:40Z";
    let text = text
        .replace("start: v.timeRangeStart, stop: v.timeRangeStop", range)
        .replace("v.windowPeriod", "300000ms")
        .replace("v.defaultBucket", "\"x\"");
    let body = json!({
        "query": text, "type": "flux",
        "dialect": {
            "annotations": ["datatype", "group", "default"], "dateTimeFormat": "RFC3339",
            "delimiter": ",", "header": true,
        },
    });
    let head = [("Content-Type", "application/json"), ("Accept", "text/csv")];
    server.client().send("POST", "/api/v2/query?org=o", &head, body.to_string().as_bytes())
}

#[track_caller]
fn check(server: &Server, text: &str, expected: &str) {
    let response = grafana(server, text).unwrap_or_else(|error| panic!("{text}: {error:#}"));
    assert_eq!(response.status, 200, "{text}: {}", response.excerpt());
    assert_eq!(response.text(), expected.replace('\n', "\r\n"), "{text}");
}

/// One column of strings.
fn list(values: &[&str]) -> String {
    let rows: String = values.iter().map(|value| format!(",,0,{value}\n")).collect();
    format!(
        "#datatype,string,long,string\n#group,false,false,false\n#default,_result,,\n,result,table,_value\n{rows}\n"
    )
}

#[test]
fn what_grafana_sends() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    check(
        &server,
        "from(bucket: v.defaultBucket)\n  |> range(start: v.timeRangeStart, stop: v.timeRangeStop)\n  |> \
         filter(fn: (r) => r[\"_measurement\"] == \"cpu\")\n  |> filter(fn: (r) => r[\"_field\"] == \
         \"usage\" or r[\"_field\"] == \"none\")\n  |> filter(fn: (r) => r[\"host\"] =~ /^(?:a|b)$/)\n  |> \
         aggregateWindow(every: v.windowPeriod, fn: mean, createEmpty: false)\n  |> yield(name: \"mean\")",
        "#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,string,string,string
#group,false,false,true,true,false,false,true,true,true,true
#default,mean,,,,,,,,,
,result,table,_start,_stop,_time,_value,_field,_measurement,host,region
,,0,2020-09-13T12:26:40Z,2020-09-13T12:36:40Z,2020-09-13T12:30:00Z,10,usage,cpu,a,eu
,,0,2020-09-13T12:26:40Z,2020-09-13T12:36:40Z,2020-09-13T12:35:00Z,35,usage,cpu,a,eu
,,0,2020-09-13T12:26:40Z,2020-09-13T12:36:40Z,2020-09-13T12:36:40Z,55,usage,cpu,a,eu
,,1,2020-09-13T12:26:40Z,2020-09-13T12:36:40Z,2020-09-13T12:30:00Z,110,usage,cpu,b,eu
,,1,2020-09-13T12:26:40Z,2020-09-13T12:36:40Z,2020-09-13T12:35:00Z,135,usage,cpu,b,eu
,,1,2020-09-13T12:26:40Z,2020-09-13T12:36:40Z,2020-09-13T12:36:40Z,155,usage,cpu,b,eu

",
    );
    let since = "start: 2020-09-01T00:00:00Z";
    let schema = "import \"influxdata/influxdb/schema\"\n";
    check(
        &server,
        &format!("{schema}schema.measurements(bucket: \"x\", {since})"),
        &list(&["cpu", "disk"]),
    );
    check(
        &server,
        &format!(
            "import \"influxdata/influxdb/v1\"\nv1.tagValues(bucket: v.defaultBucket, tag: \"host\", {since})"
        ),
        &list(&["a", "b"]),
    );
    check(
        &server,
        &format!(
            "{schema}schema.tagKeys(bucket: \"x\", {since}, predicate: (r) => r._measurement == \"cpu\")"
        ),
        &list(&["_start", "_stop", "_field", "_measurement", "host", "region"]),
    );
    check(
        &server,
        &format!(
            "{schema}schema.measurementFieldKeys(bucket: \"x\", measurement: \"cpu\", {since})"
        ),
        &list(&["n", "up", "usage"]),
    );
    let buckets = grafana(&server, "buckets()")?.text();
    ensure!(buckets.contains(",x,") && buckets.contains("retentionPeriod"), "{buckets}");
    Ok(())
}

#[test]
fn forms_of_requests_and_answers() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let text = "from(bucket: \"x\") |> range(start: 1600000000, stop: 1600000001) |> filter(fn: (r) => \
                r._field == \"up\" and r.host == \"a\")";
    let head = [("Content-Type", "application/vnd.flux"), ("Accept", "application/csv")];
    let plain = server.client().send("POST", "/api/v2/query?org=o", &head, text.as_bytes())?;
    let expected = ",result,table,_start,_stop,_time,_value,_field,_measurement,host,region\r\n\
                    ,_result,0,2020-09-13T12:26:40Z,2020-09-13T12:26:41Z,2020-09-13T12:26:40Z,true,up,cpu,a,eu\r\n\r\n";
    ensure!(plain.text() == expected, "{}", plain.excerpt());
    let kind = plain.header("content-type");
    ensure!(kind.starts_with("text/csv"), "{kind}");
    let packed = [("Content-Type", "application/vnd.flux"), ("Accept-Encoding", "gzip")];
    let packed = server.client().send("POST", "/api/v2/query", &packed, text.as_bytes())?;
    ensure!(packed.header("content-encoding") == "gzip", "{}", packed.excerpt());

    let refused = |text: &str| -> Result<(u16, Value)> {
        let response = grafana(&server, text)?;
        Ok((response.status, serde_json::from_str(&response.text()).context("JSON")?))
    };
    let (status, error) = refused("from(bucket: \"x\")\n  |> holtWinters(n: 1)")?;
    ensure!(status == 400 && error["code"] == "invalid", "{error}");
    ensure!(error["message"] == "error @2:6-2:17: undefined identifier \"holtWinters\"", "{error}");
    let (status, error) = refused("from(bucket: \"nowhere\") |> range(start: -1h)")?;
    ensure!(status == 404 && error["code"] == "not found", "{error}");
    let (status, error) = refused("from(bucket: ")?;
    ensure!(
        status == 400
            && error["message"].as_str().is_some_and(|m| m.starts_with("compilation failed")),
        "{error}"
    );
    let get = server.get("/api/v2/query?query=buckets()")?;
    ensure!(get.status == 405, "{}", get.excerpt());
    Ok(())
}

/// Prints nothing when all is well.
const SCRIPT: &str = r#"
import sys
from datetime import datetime, timedelta, timezone
from influxdb_client import InfluxDBClient, Dialect
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client.rest import ApiException

url = sys.argv[1]
start = datetime.fromtimestamp(1600000000, timezone.utc)
stop = start + timedelta(minutes=10)
source = 'from(bucket: "x") |> range(start: 2020-09-13T12:26:40Z, stop: 2020-09-13T12:36:40Z) '
for gzip in (False, True):
    with InfluxDBClient(url=url, token="t", org="o", enable_gzip=gzip) as client:
        api = client.query_api()
        tables = api.query(source + '|> filter(fn: (r) => r._measurement == "cpu" and r._field == "n")')
        assert len(tables) == 2, tables
        record = tables[1].records[3]
        assert record.get_value() == 103 and record.get_field() == "n", record
        assert record.get_measurement() == "cpu" and record.values["host"] == "b", record
        assert record.get_time() == start + timedelta(seconds=30), record
        assert record.get_start() == start and record.get_stop() == stop, record
        assert {c.label for c in tables[0].columns if c.group} == {"_start", "_stop", "_field", "_measurement", "host", "region"}
        ups = api.query(source + '|> filter(fn: (r) => r._field == "up" and r.host == "a") |> limit(n: 2)')
        assert [r.get_value() for r in ups[0]] == [True, False], ups
        two = api.query(source + '|> filter(fn: (r) => r._field == "usage") |> max() |> yield(name: "max")\n'
                        + source + '|> filter(fn: (r) => r._field == "usage") |> min() |> yield(name: "min")')
        assert [(r["result"], r["_value"]) for t in two for r in t] == \
            [("max", 59.5), ("max", 159.5), ("min", 0.5), ("min", 100.5)], two
        rows = list(api.query_stream(source + '|> filter(fn: (r) => r._field == "n") |> group() |> count()'))
        assert [r.get_value() for r in rows] == [120], rows
        params = {"_start": timedelta(seconds=-10), "bucket": "x", "floor": 158.5, "_hosts": ["b", "c"], "_from": start}
        bound = api.query('from(bucket: bucket) |> range(start: _from) |> filter(fn: (r) => r._field == "usage"'
                          ' and r._value > floor and contains(value: r.host, set: _hosts))', params=params)
        assert [r.get_value() for t in bound for r in t] == [159.5], bound
        csv = list(api.query_csv(source + '|> filter(fn: (r) => r._field == "n") |> last() |> keep(columns: ["host", "_value"])',
                                 dialect=Dialect(header=True, annotations=[])))
        assert [row for row in csv if row] == [["", "result", "table", "_value", "host"],
                                               ["", "_result", "0", "59", "a"], ["", "_result", "1", "159", "b"]], csv
        raw = api.query_raw(source + '|> filter(fn: (r) => r._field == "n") |> last()')
        assert '#datatype' in str(raw.data), raw.data[:100]
        frame = api.query_data_frame(source + '|> filter(fn: (r) => r._measurement == "cpu" and r._field != "up")'
                                     ' |> toFloat() |> pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")'
                                     ' |> drop(columns: ["_start", "_stop"])')
        assert list(frame.columns) == ["result", "table", "_time", "_measurement", "host", "region", "n", "usage"], frame.columns
        assert len(frame) == 120 and frame["usage"].max() == 159.5, frame
        assert str(frame["_time"].dtype).startswith("datetime64"), frame.dtypes
        empty = api.query(source + '|> filter(fn: (r) => r._measurement == "nothing")')
        assert len(empty) == 0, empty
        try:
            api.query(source + '|> nonsense()')
            sys.exit("nonsense passed")
        except ApiException as error:
            assert error.status == 400 and "nonsense" in str(error.body), error.body
        names = [b.name for b in client.buckets_api().find_buckets().buckets]
        assert "x" in names, names
with InfluxDBClient(url=url, token="t", org="o") as client:
    api = client.buckets_api()
    made = api.create_bucket(bucket_name="made here", org="o")
    assert made.name == "made here" and len(made.id) == 16, made
    assert api.find_bucket_by_name("made here").id == made.id
    assert api.find_bucket_by_name("nowhere") is None
    try:
        api.create_bucket(bucket_name="made here", org="o")
        sys.exit("a bucket was made twice")
    except ApiException as error:
        assert error.status == 422 or error.status == 400, error
    writes = client.write_api(write_options=SYNCHRONOUS)
    lines = [f"{m},host={h} value={i} {1600000000 + i}" for m in ("cpu", "cpu_value", "disk") for h in ("a", "b") for i in range(4)]
    writes.write(bucket="made here", record=lines, write_precision="s")
    def left():
        text = 'from(bucket: "made here") |> range(start: 0) |> group(columns: ["_measurement", "host"]) |> count()'
        return {(r["_measurement"], r["host"]): r.get_value() for t in client.query_api().query(text) for r in t}
    deletes = client.delete_api()
    second = start + timedelta(seconds=1)
    deletes.delete(second, start + timedelta(seconds=2), '_measurement="cpu" AND host="a"', bucket="made here", org="o")
    assert left() == {("cpu", "a"): 2, ("cpu", "b"): 4, ("cpu_value", "a"): 4, ("cpu_value", "b"): 4, ("disk", "a"): 4, ("disk", "b"): 4}, left()
    deletes.delete(second, stop, '_measurement="disk"', bucket=made.id, org="o")
    assert left()[("disk", "b")] == 1 and left()[("cpu", "b")] == 4, left()
    for predicate, bucket in (('_field="value"', "made here"), ('host="a" OR host="b"', "made here"), ("", "nowhere")):
        try:
            deletes.delete(start, stop, predicate, bucket=bucket, org="o")
            sys.exit("deleted: " + predicate)
        except ApiException as error:
            assert error.status in (400, 404), error
    deletes.delete(start, stop, 'host="b"', bucket="made here", org="o")
    assert {host for _, host in left()} == {"a"}, left()
"#;

#[test]
fn the_python_client_of_the_second_generation() -> Result<()> {
    let python = python_with("pandas, influxdb_client")?;
    let directory = tempfile::tempdir()?;
    let server = start(&directory.path().join("data"))?;
    let script = directory.path().join("client.py");
    std::fs::write(&script, SCRIPT)?;
    let script = script.to_str().context("UTF-8")?;
    let output = run(&python, &[script, server.url()])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Values of `_value` in the answer to a query, apart by commas.
fn values(server: &Server, text: &str) -> Result<String> {
    let response = grafana(server, text)?;
    ensure!(response.status == 200, "{text}: {}", response.excerpt());
    let answer = response.text();
    let mut lines = answer.lines().skip_while(|line| !line.starts_with(",result,"));
    let head = lines.next().context("no table")?;
    let at = head.split(',').position(|name| name == "_value").context("no _value")?;
    let cells = lines.filter(|line| !line.is_empty()).filter_map(|line| line.split(',').nth(at));
    Ok(cells.collect::<Vec<_>>().join(","))
}

#[test]
fn packages_of_public_templates() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let bounds = "start: v.timeRangeStart, stop: v.timeRangeStop";
    let cpu = format!(
        "from(bucket: \"x\") |> range({bounds}) |> filter(fn: (r) => r._measurement == \"cpu\" and \
         r._field == \"usage\" and r.host == \"a\")"
    );
    server.write(
        "/api/v2/write?bucket=x",
        format!(
            "h,le=0.1 n=1 {START}000000000\nh,le=1 n=3 {START}000000000\nh,le=+Inf n=4 {START}000000000\n\
             place,s2_cell_id=1 lat=0.5,lon=0 {START}000000000\n"
        ),
    )?;
    let from = |measurement: &str| {
        format!(
            "from(bucket: \"x\") |> range({bounds}) |> filter(fn: (r) => r._measurement == \"{measurement}\")"
        )
    };
    for (text, expected) in [
        (
            format!(
                "import \"dict\"\n{cpu} |> limit(n: 1) |> map(fn: (r) => ({{r with _value: dict.get(dict: [\"a\": 7], key: r.host, default: 0)}}))"
            ),
            "7",
        ),
        (
            format!(
                "import \"join\"\njoin.inner(left: {cpu} |> limit(n: 2), right: {cpu} |> limit(n: 2), on: (l, r) => l._time == r._time, as: (l, r) => ({{l with _value: l._value + r._value}}))"
            ),
            "1,3",
        ),
        (
            format!(
                "import \"experimental/prometheus\"\n{} |> prometheus.histogramQuantile(quantile: 0.5)",
                from("h")
            ),
            "0.55",
        ),
        (
            format!(
                "import \"experimental/geo\" import \"influxdata/influxdb/schema\"\noption geo.units = {{distance: \"mile\"}}\n{} |> schema.fieldsAsCols() |> geo.strictFilter(region: {{lat: 0.0, lon: 0.0, radius: 35.0}}) |> rename(columns: {{lat: \"_value\"}})",
                from("place")
            ),
            "0.5",
        ),
        (
            format!(
                "import \"experimental/json\"\n{cpu} |> limit(n: 1) |> map(fn: (r) => ({{r with _value: (json.parse(data: bytes(v: \"[1, 2.5]\")))[1]}}))"
            ),
            "2.5",
        ),
        (
            format!(
                "import \"interpolate\"\n{cpu} |> limit(n: 2) |> interpolate.linear(every: 5s)"
            ),
            "0.5,1,1.5",
        ),
    ] {
        let found = values(&server, &text)?;
        ensure!(found == expected, "{text}: {found}");
    }
    Ok(())
}

#[test]
fn refusals_of_flux_name_the_reason() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    for (text, expected) in [
        ("import \"slack\"", "queries send no notifications"),
        ("import \"influxdata/influxdb/monitor\"", "checks and tasks are not run"),
        ("import \"experimental/http\"", "queries open no connections to other servers"),
        (
            "from(bucket: \"x\") |> range(start: -1h) |> to(bucket: \"y\")",
            "a Flux query writes nothing here",
        ),
        ("from(bucket: \"nowhere\") |> range(start: -1h)", "buckets() lists those that exist"),
    ] {
        let response = grafana(&server, text)?;
        ensure!((400..500).contains(&response.status), "{text}: {}", response.excerpt());
        ensure!(response.text().contains(expected), "{text}: {}", response.excerpt());
    }
    Ok(())
}

#[test]
fn wrong_and_missing_credentials_are_told_apart() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("bearer-token", "secret").start()?;
    let wrong = [("Authorization", "Token nonsense")];
    for (path, start) in [
        ("/api/v2/query", "unauthorized access: "),
        ("/api/v2/write?bucket=x", "unauthorized access: "),
        ("/write?db=x", "authorization failed: "),
        ("/query?q=SHOW+DATABASES", "authorization failed: "),
    ] {
        for (head, cause) in [
            (&wrong[..], "wrong user name, password or token"),
            (&[][..], "the request has no credentials"),
        ] {
            let response = server.client().send("POST", path, head, b"m v=1")?;
            let text = response.text();
            ensure!(response.status == 401, "{path}: {}", response.excerpt());
            ensure!(text.contains(&format!("{start}{cause}")), "{path}: {text}");
        }
    }
    Ok(())
}

#[test]
fn languages_and_paths_of_others_get_the_right_place() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let continuous =
        "CREATE CONTINUOUS QUERY c ON x BEGIN SELECT mean(v) INTO y FROM m GROUP BY time(1m) END";
    let flux = "from(bucket: \"x\") |> range(start: -1h)";
    let form = |text: &str| format!("q={}", e2e::answers::percent(text));
    for (path, body, expected) in [
        ("/api/v2/query", "SELECT * FROM cpu", "this is InfluxQL: send it to /query"),
        ("/api/v2/tasks", "{}", "tasks and checks are not run"),
        ("/api/v3/query_sql", "{}", "/api/v3/query_influxql"),
        ("/arrow.flight.protocol.FlightService/DoGet", "", "Flight SQL is not spoken"),
        ("/query", form(flux).as_str(), "Flux is sent to /api/v2/query"),
        ("/query", form(continuous).as_str(), "use recording rules of vmalert"),
    ] {
        let kind = if path == "/query" {
            "application/x-www-form-urlencoded"
        } else {
            "application/vnd.flux"
        };
        let head = [("Content-Type", kind)];
        let response = server.client().send("POST", path, &head, body.as_bytes())?;
        ensure!(response.text().contains(expected), "{path} {body}: {}", response.excerpt());
    }
    Ok(())
}
