//! InfluxQL: what InfluxDB's clients, Grafana and TSBS send, and what they must get.

use anyhow::{Context, Result, ensure};
use e2e::answers::percent;
use e2e::influx::{START, cpu_lines};
use e2e::programs::python_with;
use e2e::{Launch, Server, run};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

fn lines() -> String {
    cpu_lines() + &format!("disk_io,path=/ value=1,text=\"left out\" {START}000000000\n")
}

fn start(directory: &std::path::Path) -> Result<Server> {
    let server = Launch::new(directory).start()?;
    server.write("/write?db=x", lines())?;
    Ok(server)
}

fn ask(server: &Server, query: &str, more: &str) -> Result<Value> {
    let path = format!("/query?db=x&q={}{more}", percent(query));
    let response = server.get(&path)?;
    serde_json::from_str(&response.text()).with_context(|| response.excerpt())
}

#[track_caller]
fn check(server: &Server, query: &str, expected: Value) {
    let answer = ask(server, query, "").unwrap_or_else(|error| panic!("{query}: {error:#}"));
    let wanted = json!({ "results": [expected] });
    assert_eq!(answer, wanted, "{query}");
}

fn series(name: &str, columns: Value, values: Value) -> Value {
    json!({ "statement_id": 0, "series": [{ "name": name, "columns": columns, "values": values }] })
}

#[test]
fn types_times_and_names_are_those_that_were_written() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    check(
        &server,
        "SELECT * FROM cpu WHERE host = 'a' LIMIT 2",
        series(
            "cpu",
            json!(["time", "host", "n", "region", "up", "usage"]),
            json!([
                ["2020-09-13T12:26:40Z", "a", 0, "eu", true, 0.5],
                ["2020-09-13T12:26:50Z", "a", 1, "eu", false, 1.5],
            ]),
        ),
    );
    check(
        &server,
        "SHOW FIELD KEYS FROM cpu",
        series(
            "cpu",
            json!(["fieldKey", "fieldType"]),
            json!([["n", "integer"], ["up", "boolean"], ["usage", "float"]]),
        ),
    );
    check(
        &server,
        "SHOW MEASUREMENTS",
        series("measurements", json!(["name"]), json!([["cpu"], ["disk_io"]])),
    );
    check(&server, "SHOW TAG KEYS FROM cpu", {
        series("cpu", json!(["tagKey"]), json!([["host"], ["region"]]))
    });
    // What is remembered survives a kill.
    server.kill()?;
    let server = Launch::new(directory.path()).start()?;
    check(&server, "SELECT last(n), last(up) FROM cpu", {
        let columns = json!(["time", "last", "last_1"]);
        series("cpu", columns, json!([["1970-01-01T00:00:00Z", 159, false]]))
    });
    let metadata = server.get("/api/v1/metadata")?.text();
    ensure!(!metadata.contains("influx"), "notes are no metadata: {metadata}");
    Ok(())
}

#[test]
fn what_grafana_and_tsbs_send() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let grafana = format!(
        "SELECT mean(\"usage\") FROM \"cpu\" WHERE (\"host\"::tag =~ /^(a|b)$/) AND time >= {START}000ms \
         and time <= {}000ms GROUP BY time(5m), \"host\"::tag fill(null)",
        START + 599
    );
    let answer = ask(&server, &grafana, "&epoch=ms")?;
    let found = answer.pointer("/results/0/series").context("series")?;
    ensure!(found.pointer("/1/tags/host") == Some(&json!("b")), "{answer}");
    ensure!(found.pointer("/0/values/0") == Some(&json!([1_599_999_900_000_i64, 10])), "{answer}");
    let high = "SELECT * from cpu where (hostname = 'x') and usage > 90.0 and time >= \
                '2020-09-13T12:00:00Z'";
    ensure!(ask(&server, high, "")? == json!({"results": [{"statement_id": 0}]}), "no such host");
    let double = "SELECT mean(usage), mean(n) from cpu where time >= '2020-09-13T12:00:00Z' and time < \
                  '2020-09-13T13:00:00Z' group by time(1h),host";
    let answer = ask(&server, double, "")?;
    let first = answer.pointer("/results/0/series/0/values/0").context("a row")?;
    ensure!(*first == json!(["2020-09-13T12:00:00Z", 30, 29.5]), "{answer}");
    let newest = "SELECT * from cpu group by \"host\" order by time desc limit 1";
    let answer = ask(&server, newest, "")?;
    ensure!(answer.pointer("/results/0/series/0/tags/host") == Some(&json!("b")), "{answer}");
    ensure!(answer.pointer("/results/0/series/1/values/0/1") == Some(&json!(59)), "{answer}");
    Ok(())
}

#[test]
fn databases_come_and_go() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let missing = server.get("/query?db=nowhere&q=SELECT+n+FROM+cpu")?.text();
    ensure!(missing.contains("database not found: nowhere"), "{missing}");
    let made = server.post("/query?q=CREATE+DATABASE+%22made%22", "")?;
    ensure!(made.text() == "{\"results\":[{\"statement_id\":0}]}\n", "{}", made.excerpt());
    check(&server, "SHOW DATABASES", {
        series("databases", json!(["name"]), json!([["made"], ["quipu"], ["x"]]))
    });
    // Another database with the same measurement, and its own types.
    server.write("/write?db=y", "cpu,host=z n=1.5 1600000000000000000\n")?;
    let other = server.get("/query?db=y&q=SELECT+n+FROM+cpu")?.text();
    ensure!(other.contains("1.5") && !other.contains("159"), "{other}");
    let by_link = server.get("/query?q=DROP+DATABASE+y")?.text();
    ensure!(by_link.contains("send it by POST"), "{by_link}");
    let foreign = [("Origin", "http://elsewhere.example")];
    let stranger = server.post_with("/query?q=DROP+DATABASE+y", &foreign, "")?;
    ensure!(stranger.status == 403, "{}", stranger.excerpt());
    ensure!(server.post("/query?q=DROP+DATABASE+y", "")?.status == 200, "dropped");
    let gone = server.get("/query?db=y&q=SELECT+n+FROM+cpu")?.text();
    ensure!(gone.contains("database not found"), "{gone}");
    ensure!(server.post("/query?db=x&q=DELETE+FROM+cpu+WHERE+host+%3D+'a'", "")?.status == 200, "");
    let left = server.get("/query?db=x&q=SHOW+SERIES")?.text();
    ensure!(left.contains("cpu,host=b") && !left.contains("host=a"), "{left}");
    // A metric that came otherwise is a measurement with a field `value`.
    server.write("/api/v1/import/prometheus", "plain_total{job=\"j\"} 7 1600000000000\n")?;
    let plain = server.get("/query?db=quipu&q=SELECT+value,job+FROM+plain_total&epoch=s")?.text();
    ensure!(plain.contains("[1600000000,7,\"j\"]"), "{plain}");
    Ok(())
}

#[test]
fn forms_of_answers() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let query = percent("SELECT n FROM cpu GROUP BY host");
    let chunked = server.get(&format!("/query?db=x&q={query}&chunked=true&chunk_size=50"))?.text();
    let pieces: Vec<Value> =
        chunked.lines().map(serde_json::from_str).collect::<Result<_, _>>().context("pieces")?;
    ensure!(pieces.len() == 4, "{chunked}");
    ensure!(pieces[0].pointer("/results/0/series/0/partial") == Some(&json!(true)), "{chunked}");
    ensure!(pieces[3].pointer("/results/0/partial").is_none(), "{chunked}");
    let csv = [("Accept", "application/csv")];
    let limited = percent("SELECT n, up FROM cpu WHERE host = 'a' LIMIT 1");
    let form = server.client().send("GET", &format!("/query?db=x&q={limited}"), &csv, &[])?;
    let expected = format!("name,tags,time,n,up\ncpu,,{START}000000000,0,true\n");
    ensure!(form.text() == expected, "{}", form.excerpt());
    let head = [("Content-Type", "application/x-www-form-urlencoded")];
    let body = format!("db=x&epoch=s&q={limited}&pretty=true");
    let posted = server.post_with("/query", &head, body)?.text();
    ensure!(posted.contains("  1600000000,\n"), "{posted}");
    let bound = percent("{\"host\":\"b\"}");
    let query = percent("SELECT first(n) FROM cpu WHERE host = $host");
    let answer = server.get(&format!("/query?db=x&q={query}&params={bound}"))?.text();
    ensure!(answer.contains("100"), "{answer}");
    let wrong = server.get("/query?db=x&q=SELEKT")?;
    ensure!(wrong.status == 400, "{}", wrong.excerpt());
    ensure!(
        wrong.text().starts_with("{\"error\":\"error parsing query: found SELEKT, expected SELECT")
    );
    let two = percent("SELECT foo(n) FROM cpu; SHOW DATABASES");
    let answer = server.get(&format!("/query?db=x&q={two}"))?.text();
    ensure!(
        answer.contains("undefined function foo()") && answer.contains("not executed"),
        "{answer}"
    );
    Ok(())
}

#[test]
fn what_is_deleted_is_what_was_meant() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    server.write("/write?db=y", "cpu,host=a usage=7 1600000000000000000\n")?;
    server.write(
        "/write?db=x",
        "a,k=1 b_c=1 1600000000000000000\na_b c=2,d=3 1600000000000000000\n",
    )?;
    let change = |query: &str| -> Result<String> {
        Ok(server.post(&format!("/query?db=x&q={}", percent(query)), "")?.text())
    };
    let all = "SELECT count(usage), count(n) FROM cpu";
    let before = ask(&server, all, "")?;
    // The field's metric has that name, but there is no such measurement.
    change("DROP MEASUREMENT cpu_usage")?;
    for refused in [
        "DELETE FROM cpu WHERE usage != 'x'",
        "DELETE FROM y..cpu",
        "DROP SERIES FROM cpu WHERE n = 'a' OR host = 'a'",
    ] {
        let told = change(refused)?;
        ensure!(told.contains("error"), "{refused}: {told}");
    }
    ensure!(ask(&server, all, "")? == before, "{}", ask(&server, all, "")?);
    // Their metrics would have one name, and have two.
    change("DROP MEASUREMENT a")?;
    check(&server, "SELECT c, d FROM a_b WHERE k = ''", {
        series("a_b", json!(["time", "c", "d"]), json!([["2020-09-13T12:26:40Z", 2, 3]]))
    });
    change("DELETE FROM cpu WHERE host = 'a' OR region = 'nowhere'")?;
    let left = ask(&server, "SHOW SERIES FROM cpu", "")?.to_string();
    ensure!(left.contains("host=b") && !left.contains("host=a"), "{left}");
    let other = server.get("/query?db=y&q=SELECT+usage+FROM+cpu&epoch=s")?.text();
    ensure!(other.contains("[1600000000,7]"), "{other}");
    Ok(())
}

#[test]
fn types_that_change_and_the_database_of_nobody() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    // Of one request: the first line alone does not say it.
    server.write(
        "/write?db=x",
        "m v=1i,w=1i 1600000000000000000\nm v=1.5,w=2i 1600000001000000000\n",
    )?;
    let expected = json!([["2020-09-13T12:26:40Z", 1, 1], ["2020-09-13T12:26:41Z", 1.5, 2]]);
    check(&server, "SELECT v, w FROM m", series("m", json!(["time", "v", "w"]), expected));
    let keys = json!([["v", "float"], ["w", "integer"]]);
    let columns = json!(["fieldKey", "fieldType"]);
    check(&server, "SHOW FIELD KEYS FROM m", series("m", columns.clone(), keys));
    // A dropped measurement may have other types.
    server.post("/query?db=x&q=DROP+MEASUREMENT+m", "")?;
    server.write("/write?db=x", "m v=true 1600000000000000000\n")?;
    check(&server, "SHOW FIELD KEYS FROM m", series("m", columns, json!([["v", "boolean"]])));
    // Who says `quipu` and who says nothing mean the same.
    server.write("/write?db=quipu", "named,host=a v=1i,up=t 1600000000000000000\n")?;
    server.write("/write", "named,host=b v=2i,up=f 1600000001000000000\n")?;
    let query = "/query?db=quipu&epoch=s&q=SELECT+v,up,host+FROM+named";
    let found = server.get(query)?.text();
    ensure!(found.contains("[[1600000000,1,true,\"a\"],[1600000001,2,false,\"b\"]]"), "{found}");
    Ok(())
}

#[test]
fn what_is_written_while_it_is_dropped_keeps_its_types() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<()> {
        let writer = scope.spawn(|| -> Result<()> {
            for row in 0.. {
                server
                    .write("/write?db=x", format!("m f=1.5,n=2i,b=t {}\n", 1_600_000_000 + row))?;
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
            Ok(())
        });
        for _ in 0..30 {
            for change in ["DROP+MEASUREMENT+m", "DROP+DATABASE+x", "DELETE+FROM+m"] {
                server.post(&format!("/query?db=x&q={change}"), "")?;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))?
    })?;
    let keys = json!([["b", "boolean"], ["f", "float"], ["n", "integer"]]);
    check(&server, "SHOW FIELD KEYS", series("m", json!(["fieldKey", "fieldType"]), keys));
    Ok(())
}

#[test]
fn a_star_stands_for_all_tag_keys_of_a_measurement() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let lines = "door,host=a,job=x v=1 1590000000000000000\ndoor,host=b v=1 1600000000000000000\n";
    server.write("/write?db=x", lines)?;
    let late = "time >= 1599999000s";
    let columns = json!(["time", "host", "job", "v"]);
    let row = json!([["2020-09-13T12:26:40Z", "b", null, 1]]);
    let star = format!("SELECT * FROM door WHERE {late}");
    check(&server, &star, series("door", columns.clone(), row));
    let grouped = ask(&server, &format!("SELECT v FROM door WHERE {late} GROUP BY *"), "")?;
    let tags = grouped.pointer("/results/0/series/0/tags");
    ensure!(tags == Some(&json!({"host": "b", "job": ""})), "{grouped}");
    server.post("/query?db=x&q=DROP+SERIES+FROM+door+WHERE+job+%3D+'x'", "")?;
    let columns = json!(["time", "host", "v"]);
    check(&server, &star, series("door", columns, json!([["2020-09-13T12:26:40Z", "b", 1]])));
    Ok(())
}

#[test]
fn deep_questions_end() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let wrap = |inner: &str, outer: &str| {
        (0..40).fold(inner.to_string(), |inner, _| format!("{outer} FROM ({inner})"))
    };
    for query in [
        wrap("SELECT nothing + nothing AS v FROM cpu", "SELECT v + v AS v"),
        wrap("SELECT mean(n) AS v, max(n) AS w FROM cpu", "SELECT mean(v) AS v, max(w) AS w"),
    ] {
        let answer = ask(&server, &query, "")?;
        ensure!(answer.pointer("/results/0/error").is_none(), "{answer}");
    }
    Ok(())
}

/// Prints nothing when all is well.
const SCRIPT: &str = r#"
import sys
from influxdb import InfluxDBClient
from influxdb.exceptions import InfluxDBClientError

client = InfluxDBClient(host=sys.argv[1], port=int(sys.argv[2]))
assert client.ping()
client.create_database("made")
client.switch_database("made")
assert {"name": "made"} in client.get_list_database()
points = [{"measurement": "cpu", "tags": {"host": h}, "time": 1600000000 + n,
           "fields": {"usage": n + 0.5, "n": n, "up": n % 2 == 0}} for h in "ab" for n in range(100)]
assert client.write_points(points, time_precision="s")
rows = list(client.query("SELECT * FROM cpu WHERE host = 'a' LIMIT 1").get_points())
assert rows == [{"time": "2020-09-13T12:26:40Z", "host": "a", "n": 0, "up": True, "usage": 0.5}], rows
result = client.query("SELECT mean(usage) FROM cpu GROUP BY host", epoch="s")
assert [key[1] for key in result.keys()] == [{"host": "a"}, {"host": "b"}], result
assert list(result.get_points(tags={"host": "b"}))[0]["mean"] == 50, result
chunks = client.query("SELECT n FROM cpu", chunked=True, chunk_size=30)
assert sum(len(list(chunk.get_points())) for chunk in chunks) == 200
bound = client.query("SELECT count(n) FROM cpu WHERE host = $h", bind_params={"h": "b"})
assert list(bound.get_points())[0]["count"] == 100, bound
assert client.get_list_measurements() == [{"name": "cpu"}]
assert [p["name"] for p in client.get_list_retention_policies("made")] == ["autogen"]
assert len(client.get_list_series("made")) == 2
try:
    client.query("SELECT nonsense(")
    sys.exit("nonsense passed")
except InfluxDBClientError as error:
    assert "error parsing query" in str(error), error
client.delete_series(measurement="cpu", tags={"host": "a"})
assert list(client.query("SELECT count(n) FROM cpu").get_points())[0]["count"] == 100
client.drop_measurement("cpu")
assert client.get_list_measurements() == []
client.drop_database("made")
assert {"name": "made"} not in client.get_list_database()
"#;

#[test]
fn the_python_client_of_the_first_generation() -> Result<()> {
    let python = python_with("influxdb")?;
    let directory = tempfile::tempdir()?;
    let server = Launch::new(&directory.path().join("data")).start()?;
    let script = directory.path().join("client.py");
    std::fs::write(&script, SCRIPT)?;
    let script = script.to_str().context("UTF-8")?;
    let (host, port) = server.authority().rsplit_once(':').context("a port")?;
    let output = run(&python, &[script, host, port])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

#[test]
fn buckets_are_listed_and_made() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let listed = server.get("/api/v2/buckets?name=x")?;
    ensure!(
        listed.status == 200 && listed.text().contains("\"name\":\"x\""),
        "{}",
        listed.excerpt()
    );
    let made = server.post("/api/v2/buckets", r#"{"name":"b","orgID":"o"}"#)?;
    ensure!(made.status == 201 && made.text().contains("\"name\":\"b\""), "{}", made.excerpt());
    let databases = server.get(&format!("/query?q={}", percent("SHOW DATABASES")))?.text();
    ensure!(databases.contains("\"b\""), "{databases}");
    let path = format!("/query?q={}", percent("CREATE USER a WITH PASSWORD 'b'"));
    let said = server.post(&path, "")?.text();
    ensure!(said.contains("--http-user "), "{said}");
    server.stop()
}

/// Rows of one series, their times in seconds.
fn rows(server: &Server, query: &str) -> Result<Value> {
    let answer = ask(server, query, "&epoch=s")?;
    answer
        .pointer("/results/0/series/0/values")
        .cloned()
        .with_context(|| format!("{query}: {answer}"))
}

#[track_caller]
fn check_rows(server: &Server, query: &str, expected: Value) {
    let found = rows(server, query).unwrap_or_else(|error| panic!("{query}: {error:#}"));
    assert_eq!(found, expected, "{query}");
}

#[test]
fn rows_of_one_time_are_in_the_order_of_influxdb() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let (first, last) = (START, START + 590);
    check_rows(&server, "SELECT usage FROM cpu LIMIT 2", json!([[first, 0.5], [first, 100.5]]));
    let newest = "SELECT usage FROM cpu ORDER BY time DESC LIMIT 2";
    check_rows(&server, newest, json!([[last, 159.5], [last, 59.5]]));
    let texts = "SELECT host, n FROM cpu ORDER BY time DESC LIMIT 2";
    check_rows(&server, texts, json!([[last, "b", 159], [last, "a", 59]]));
    // A group of a subquery is behind the other, whichever way time goes.
    let windows = format!(
        "SELECT v FROM (SELECT mean(n) AS v FROM cpu WHERE time >= {START}s AND time < {}s GROUP BY \
         time(1m), host) ORDER BY time DESC LIMIT 4",
        START + 120
    );
    let (one, two) = (START + 80, START + 20);
    check_rows(&server, &windows, json!([[one, 9.5], [one, 109.5], [two, 4.5], [two, 104.5]]));
    server.write(
        "/write?db=x",
        format!("even,host=a f=1,b=true {START}000000000\neven f=2,b=false {START}000000000\n"),
    )?;
    check_rows(&server, "SELECT first(b), last(b) FROM even", json!([[0, false, true]]));
    let within = "SELECT first(b) FROM even GROUP BY time(1h) fill(none)";
    check_rows(&server, within, json!([[START - 1_600, false]]));
    // What a subquery groups by and a series has not is an empty text.
    let missing = "SELECT host, v FROM (SELECT f AS v FROM even GROUP BY host)";
    check_rows(&server, missing, json!([[START, "", 2], [START, "a", 1]]));
    Ok(())
}

#[test]
fn types_of_arithmetic_are_those_of_influxdb() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let answer = ask(&server, "SELECT usage & 1 FROM cpu", "")?;
    let error = "type error: usage::float & 1: incompatible types: float and integer";
    ensure!(answer.pointer("/results/0/error") == Some(&json!(error)), "{answer}");
    check_rows(&server, "SELECT n / 2 FROM cpu WHERE host = 'a' LIMIT 2", {
        json!([[START, 0], [START + 10, 0.5]])
    });
    // A division of whole numbers is taken for one by a query around it.
    let inner = "SELECT v FROM (SELECT n / 2 AS v FROM cpu WHERE host = 'a' LIMIT 2)";
    check_rows(&server, inner, json!([[START, 0], [START + 10, 0]]));
    check_rows(
        &server,
        "SELECT up & true, up | false FROM cpu LIMIT 1",
        json!([[START, true, true]]),
    );
    Ok(())
}

#[test]
fn series_are_carried_on() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let within = format!("time >= {START}s AND time < {}s", START + 600);
    let seasons = format!(
        "SELECT holt_winters(mean(usage), 2, 4) FROM cpu WHERE host = 'a' AND {within} GROUP BY time(10s)"
    );
    // Answers of InfluxDB 1.6.7.
    check_rows(&server, &seasons, {
        json!([[START + 600, 67.0477686906607], [START + 610, 48.556513765333634]])
    });
    let fit = format!(
        "SELECT holt_winters_with_fit(max(n), 1, 0) FROM cpu WHERE time >= {START}s AND time < {}s \
         GROUP BY time(10s)",
        START + 50
    );
    let values = rows(&server, &fit)?;
    ensure!(values.as_array().is_some_and(|values| values.len() == 6), "{values}");
    ensure!(values.pointer("/1") == Some(&json!([START + 10, 100.89698558962398])), "{values}");
    ensure!(values.pointer("/5") == Some(&json!([START + 50, 104.7209493875788])), "{values}");
    let huge = "SELECT holt_winters(mean(n), 1000000000000, 0) FROM cpu GROUP BY time(10s)";
    let answer = ask(&server, huge, "")?.to_string();
    ensure!(answer.contains("max-select-point limit exceeded"), "{answer}");
    for (query, error) in [
        ("holt_winters(mean(n), 0, 1)", "second arg to holt_winters must be greater than 0, got 0"),
        ("holt_winters(n, 1, 1)", "must use aggregate function with holt_winters"),
        ("holt_winters(mean(n), 1, -1)", "third arg to holt_winters cannot be negative, got -1"),
    ] {
        let query = format!("SELECT {query} FROM cpu GROUP BY time(1m)");
        let answer = ask(&server, &query, "")?;
        ensure!(answer.pointer("/results/0/error") == Some(&json!(error)), "{answer}");
    }
    Ok(())
}

#[test]
fn a_selection_is_written() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let statement = |text: &str| server.post(&format!("/query?db=x&q={}", percent(text)), "");
    let by_link = ask(&server, "SELECT n INTO copies FROM cpu", "")?.to_string();
    ensure!(by_link.contains("send it by POST"), "{by_link}");
    let whole = statement("SELECT * INTO copies FROM cpu GROUP BY *")?.text();
    let written = "{\"results\":[{\"statement_id\":0,\"series\":[{\"name\":\"result\",\"columns\":\
                   [\"time\",\"written\"],\"values\":[[\"1970-01-01T00:00:00Z\",120]]}]}]}\n";
    ensure!(whole == written, "{whole}");
    let counted = format!(
        "SELECT count(n) AS c INTO y..counts FROM cpu WHERE time >= {START}s AND time < {}s GROUP BY \
         time(1m), host",
        START + 120
    );
    let missing = statement(&counted)?.text();
    ensure!(missing.contains("database not found: y"), "{missing}");
    statement("CREATE DATABASE y")?;
    let counts = statement(&counted)?.text();
    ensure!(counts.contains("\"written\"],\"values\":[[\"1970-01-01T00:00:00Z\",6]]"), "{counts}");
    statement("SELECT top(n, host, 2) INTO tops FROM cpu")?;
    // What is acknowledged survives a kill.
    server.kill()?;
    let server = Launch::new(directory.path()).start()?;
    let (ours, copies) =
        (rows(&server, "SELECT * FROM cpu")?, rows(&server, "SELECT * FROM copies")?);
    ensure!(ours == copies, "{copies}");
    check(&server, "SHOW FIELD KEYS FROM copies", {
        let fields = json!([["n", "integer"], ["up", "boolean"], ["usage", "float"]]);
        series("copies", json!(["fieldKey", "fieldType"]), fields)
    });
    check_rows(&server, "SELECT host, top FROM tops", {
        json!([[START + 590, "a", 59], [START + 590, "b", 159]])
    });
    check_rows(&server, "SELECT c FROM y..counts WHERE host = 'b'", {
        json!([[START - 40, 2], [START + 20, 6], [START + 80, 4]])
    });
    Ok(())
}

#[test]
fn names_that_no_line_can_have_are_written_too() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let into = |text: &str| -> Result<String> {
        Ok(server.post(&format!("/query?db=x&q={}", percent(text)), "")?.text())
    };
    let written = |text: String, count: u32| {
        let is_it =
            text.contains(&format!("\"written\"],\"values\":[[\"1970-01-01T00:00:00Z\",{count}]]"));
        ensure!(is_it, "{text}");
        Ok(())
    };
    // What rows are grouped by may stand beside what was picked, too; asked for twice it is one tag.
    written(into("SELECT top(n, host, 2) INTO tops FROM cpu GROUP BY host")?, 2)?;
    written(into("SELECT top(n, host, host, 2) INTO twice FROM cpu")?, 2)?;
    for name in ["tops", "twice"] {
        check_rows(&server, &format!("SELECT top FROM {name} WHERE host = 'a'"), {
            json!([[START + 590, 59]])
        });
        check(&server, &format!("SHOW TAG KEYS FROM {name}"), {
            series(name, json!(["tagKey"]), json!([["host"]]))
        });
    }
    // A value that came otherwise.
    let line = format!("plain{{db=\"x\",path=\"c:\\\\\"}} 7 {START}000\n");
    server.post("/api/v1/import/prometheus", &line)?;
    written(into("SELECT value INTO \" \tcopy\\\\\" FROM plain GROUP BY *")?, 1)?;
    let back = "SELECT \"value\" FROM \" \tcopy\\\\\" WHERE path = 'c:\\\\' GROUP BY *";
    let copy = json!({
        "name": " \tcopy\\", "tags": { "path": "c:\\" }, "columns": ["time", "value"],
        "values": [["2020-09-13T12:26:40Z", 7]],
    });
    check(&server, back, json!({ "statement_id": 0, "series": [copy] }));
    let refused = into("SELECT n INTO \"a\0b\" FROM cpu")?;
    ensure!(refused.contains("cannot be written: it has a zero byte"), "{refused}");
    Ok(())
}
