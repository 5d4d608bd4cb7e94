//! Names that Quipu adds or joins against the same names from a client: two points never become one.

use anyhow::{Context, Result, ensure};
use e2e::http::connect;
use e2e::{Launch, Server, percent, poll};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// Seconds.
const T: i64 = 1_600_000_000;

/// What Telegraf's `postgresql` sends, of three databases.
fn postgresql() -> String {
    let line = |db, n| format!("postgresql,server=pg1,db={db} numbackends={n}i {T}000000000\n");
    line("shop", 5) + &line("crm", 6) + &line("hr", 7)
}

fn ask(server: &Server, place: &str, query: &str) -> Result<Value> {
    let response = server.post(&format!("/query?epoch=s&{place}&q={}", percent(query)), "")?;
    serde_json::from_str(&response.text()).with_context(|| response.excerpt())
}

#[track_caller]
fn check_rows(server: &Server, place: &str, query: &str, expected: &Value) {
    let answer = ask(server, place, query).unwrap_or_else(|error| panic!("{query}: {error:#}"));
    let rows = answer["results"][0]["series"][0]["values"].as_array().map(|rows| json!(rows));
    assert_eq!(rows.unwrap_or(json!([])), *expected, "{query} ({place}): {answer}");
}

fn flux(server: &Server, text: &str) -> Result<String> {
    let head = [("Content-Type", "application/vnd.flux")];
    Ok(server.post_with("/api/v2/query?org=o", &head, text)?.text())
}

#[test]
fn a_tag_called_db_is_a_tag() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    server.write("/write?db=telegraf", postgresql())?;
    server.write("/api/v2/write?bucket=two&org=o", postgresql())?;
    server.write("/api/v3/write_lp?db=three", postgresql())?;
    for database in ["telegraf", "two", "three"] {
        let place = format!("db={database}");
        let rows = json!([[T, "crm", 6, "pg1"], [T, "hr", 7, "pg1"], [T, "shop", 5, "pg1"]]);
        check_rows(&server, &place, "SELECT * FROM postgresql", &rows);
        check_rows(&server, &place, "SHOW TAG KEYS", &json!([["db"], ["server"]]));
        let values = json!([["db", "crm"], ["db", "hr"], ["db", "shop"]]);
        check_rows(&server, &place, "SHOW TAG VALUES WITH KEY = db", &values);
        let one = "SELECT numbackends FROM postgresql WHERE db = 'hr'";
        check_rows(&server, &place, one, &json!([[T, 7]]));
        let grouped = ask(&server, &place, "SELECT sum(numbackends) FROM postgresql GROUP BY db")?;
        let second = &grouped["results"][0]["series"][1];
        ensure!(second["tags"]["db"] == "hr" && second["values"][0][1] == 7, "{grouped}");
        let query = format!("postgresql_numbackends{{db=\"{database}\",exported_db=\"shop\"}}");
        let found = server.get(&format!("/api/v1/query?query={}&time={T}", percent(&query)))?;
        ensure!(found.text().contains("\"5\""), "{}", found.excerpt());
        let script = format!(
            "from(bucket: \"{database}\") |> range(start: 0) |> filter(fn: (r) => r.db == \"crm\")"
        );
        let found = flux(&server, &script)?;
        ensure!(found.contains(",db,") && found.contains(",crm,pg1"), "{found}");
    }
    // Names that were moved already are moved once more.
    server.write(
        "/write?db=x&precision=s",
        format!("m,db=a v=1 {T}\nm,exported_db=a v=2 {T}\nm,exported_exported_db=a v=3 {T}\n"),
    )?;
    check_rows(&server, "db=x", "SELECT count(v), sum(v) FROM m", &json!([[0, 3, 6]]));
    let keys = json!([["db"], ["exported_db"], ["exported_exported_db"]]);
    check_rows(&server, "db=x", "SHOW TAG KEYS", &keys);
    check_rows(&server, "db=x", "SELECT v FROM m WHERE exported_db = 'a'", &json!([[T, 2]]));
    // What INTO writes keeps the tag, too.
    ask(&server, "db=x", "SELECT v INTO n FROM m GROUP BY *")?;
    check_rows(&server, "db=x", "SELECT v FROM n WHERE db = 'a'", &json!([[T, 1]]));
    ask(&server, "db=x", "DELETE FROM m WHERE db = 'a'")?;
    check_rows(&server, "db=x", "SELECT count(v), sum(v) FROM m", &json!([[0, 2, 5]]));
    // Of a measurement without such a tag the condition would mean everything.
    server.write("/write?db=x&precision=s", format!("plain v=1 {T}\n"))?;
    let refused = ask(&server, "db=x", "DELETE FROM plain WHERE db != 'y'")?;
    ensure!(refused.to_string().contains("has no tag db"), "{refused}");
    check_rows(&server, "db=x", "SELECT v FROM plain", &json!([[T, 1]]));
    Ok(())
}

#[test]
fn measurement_and_field_are_told_apart_where_they_join_to_one_name() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let lines = format!(
        "docker,h=a container_mem=1,text=\"x\" {T}\ndocker_container,h=a mem=2,s=\"one\" {T}\n\
         docker,h=a container_s=\"two\" {T}\n"
    );
    let lines = lines.replace(&format!(" {T}"), &format!(" {T}000000000"));
    let check = |server: &Server, place: &str| {
        let of = |field: &str, measurement: &str, value: Value| {
            let query = format!("SELECT {field} FROM {measurement}");
            check_rows(server, place, &query, &json!([[T, value]]));
        };
        of("container_mem", "docker", json!(1));
        of("mem", "docker_container", json!(2));
        of("s", "docker_container", json!("one"));
        of("container_s", "docker", json!("two"));
        check_rows(server, place, "SHOW MEASUREMENTS", &json!([["docker"], ["docker_container"]]));
    };
    for path in ["/write?db=x", "/api/v2/write?bucket=y&org=o"] {
        server.write(path, lines.clone())?;
    }
    check(&server, "db=x");
    check(&server, "db=y");
    // One after the other, dropped and written again in another order.
    let halves: Vec<&str> = lines.lines().collect();
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        for measurement in ["docker", "docker_container"] {
            ask(&server, "db=x", &format!("DROP MEASUREMENT {measurement}"))?;
        }
        for half in order {
            server.write("/write?db=x", halves[half].to_string() + "\n")?;
        }
        check(&server, "db=x");
    }
    server.kill()?;
    let server = Launch::new(directory.path()).start()?;
    check(&server, "db=x");
    check(&server, "db=y");
    server.write("/write?db=x", lines.clone())?;
    check(&server, "db=x");
    let plain = server.get(&format!("/api/v1/query?query=docker_container_mem&time={T}"))?.text();
    let other = percent("docker_container:_mem");
    let other = server.get(&format!("/api/v1/query?query={other}&time={T}"))?.text();
    ensure!(plain.contains("\"1\"]") && other.contains("\"2\"]"), "{plain} {other}");
    ask(&server, "db=x", "DROP MEASUREMENT docker")?;
    check_rows(&server, "db=x", "SELECT mem FROM docker_container", &json!([[T, 2]]));
    Ok(())
}

#[test]
fn an_extra_label_of_the_database_is_the_database() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let line = format!("m v=1 {T}000000000\n");
    let refused = server.post("/write?db=x&extra_label=db%3Dy", line.clone())?;
    ensure!(
        refused.status == 400 && refused.text().contains("contradicts"),
        "{}",
        refused.excerpt()
    );
    server.write("/write?db=x&extra_label=db%3Dx", line.clone())?;
    server.write("/write?extra_label=db%3Dy", line.clone())?;
    for place in ["db=x", "db=y"] {
        check_rows(&server, place, "SELECT v FROM m", &json!([[T, 1]]));
        check_rows(&server, place, "SHOW MEASUREMENTS", &json!([["m"]]));
    }
    ask(&server, "", "CREATE RETENTION POLICY p ON x DURATION 1d REPLICATION 1")?;
    let refused = server.post("/write?extra_label=db%3Dx.p", line)?;
    ensure!(refused.status == 400, "{}", refused.excerpt());
    Ok(())
}

/// Names that one protocol or another gives a meaning, as names of a client's tags and labels.
#[test]
fn names_with_a_meaning_elsewhere_are_ordinary_labels() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let names = ["le", "job", "instance", "__table__", "a:b", "exported_job", "quantile"];
    for name in names {
        for value in ["1", "2"] {
            let line = format!("m,{name}={value} v={value} {T}000000000\n");
            server.write("/write?db=x", line)?;
            let sample = format!("p{{\"{name}\"=\"{value}\"}} {value} {T}000\n");
            server.write("/api/v1/import/prometheus", sample)?;
            let json = json!({
                "metric": { "__name__": "j", name: value }, "values": [1], "timestamps": [T * 1000],
            });
            server.write("/api/v1/import", format!("{json}\n"))?;
        }
    }
    for metric in ["m_v", "p", "j"] {
        let query = percent(&format!("count({metric})"));
        let found = server.get(&format!("/api/v1/query?query={query}&time={T}"))?.text();
        let count = format!("\"{}\"]", 2 * names.len());
        ensure!(found.contains(&count), "{metric}: {found}");
    }
    check_rows(&server, "db=x", "SELECT count(v) FROM m", &json!([[0, 2 * names.len()]]));
    for (path, body) in [
        ("/write?db=x", format!("n,__name__=a v=1 {T}000000000\n")),
        ("/api/v1/import/prometheus", format!("n{{__name__=\"a\"}} 1 {T}000\n")),
    ] {
        let refused = server.post(path, body)?;
        ensure!(refused.status == 400, "{path}: {}", refused.excerpt());
    }
    // A label of a Pushgateway's path beside the body's own.
    let body = "runs 0\nruns{job=\"a\"} 1\nruns{job=\"b\"} 2\nruns{exported_job=\"a\"} 3\n\
                alone{job=\"nightly\"} 4\n";
    let pushed = server.post("/metrics/job/nightly", body)?;
    ensure!(pushed.status == 200, "{}", pushed.excerpt());
    ensure!(server.export("runs{job=\"nightly\"}")?.0.len() == 4);
    ensure!(server.export("runs{exported_job=\"b\"}")?.0.len() == 1);
    ensure!(server.export("runs{exported_exported_job=\"a\"}")?.0.len() == 1);
    ensure!(server.export("alone{job=\"nightly\",exported_job=\"\"}")?.0.len() == 1);
    Ok(())
}

#[test]
fn where_no_database_is_added_a_tag_called_db_is_the_label() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).flag("influx-listen", "127.0.0.1:0").start()?;
    server.write("/write", postgresql())?;
    let address = poll("the address of the listener", PATIENCE, || {
        let log = server.log();
        let (_, rest) = log.rsplit_once("over TCP and UDP at ").context("not said")?;
        Ok(rest.split_once(' ').context("not whole")?.0.to_string())
    })?;
    connect(&address)?.write_all(postgresql().replace("postgresql", "over_tcp").as_bytes())?;
    for metric in ["postgresql", "over_tcp"] {
        for (database, value) in [("shop", 5), ("crm", 6), ("hr", 7)] {
            let query = percent(&format!("{metric}_numbackends{{db=\"{database}\"}}"));
            poll("a series", PATIENCE, || {
                let found = server.get(&format!("/api/v1/query?query={query}&time={T}"))?.text();
                ensure!(found.contains(&format!("\"{value}\"]")), "{found}");
                Ok(())
            })?;
        }
    }
    Ok(())
}
