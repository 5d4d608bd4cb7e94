//! Retention policies of InfluxDB: each has samples of its own, in every read and write.

use anyhow::{Context, Result, ensure};
use e2e::launch::quipu;
use e2e::{Launch, Server, percent};
use serde_json::{Value, json};

/// Seconds.
const T: i64 = 1_600_000_000;

/// Statements by POST about a database and more parameters; the results.
fn ask(server: &Server, more: &str, query: &str) -> Result<Value> {
    let path = format!("/query?epoch=s&{more}&q={}", percent(query));
    let response = server.post(&path, "")?;
    let answer: Value =
        serde_json::from_str(&response.text()).with_context(|| response.excerpt())?;
    Ok(answer["results"].clone())
}

/// The rows of the first series of a statement.
#[track_caller]
fn check_rows(server: &Server, more: &str, query: &str, expected: &Value) {
    let answer = ask(server, more, query).unwrap_or_else(|error| panic!("{query}: {error:#}"));
    let rows = answer[0]["series"][0]["values"].as_array().map(|rows| json!(rows));
    assert_eq!(rows.unwrap_or(json!([])), *expected, "{query} ({more}): {answer}");
}

#[track_caller]
fn check_error(server: &Server, query: &str, expected: &str) {
    let answer = ask(server, "db=x", query).unwrap_or_else(|error| panic!("{query}: {error:#}"));
    let error = answer[0]["error"].as_str().unwrap_or_default();
    assert!(!expected.is_empty() && error.contains(expected), "{query}: {answer}");
}

/// Does something that must not fail.
fn must(server: &Server, query: &str) -> Result<Value> {
    let answer = ask(server, "db=x", query)?;
    let results = answer.as_array().context("results")?;
    ensure!(results.iter().all(|result| result.get("error").is_none()), "{query}: {answer}");
    Ok(answer)
}

fn write(server: &Server, place: &str, line: &str) -> Result<()> {
    server.write(&format!("/write?precision=s&{place}"), format!("{line} {T}\n"))
}

fn start(directory: &std::path::Path) -> Result<Server> {
    let server = Launch::new(directory).start()?;
    write(&server, "db=x", "m2,a=b v=1")?;
    must(&server, "CREATE RETENTION POLICY short ON x DURATION 1d REPLICATION 1")?;
    write(&server, "db=x&rp=short", "m2,a=b v=99")?;
    write(&server, "db=x&rp=short", "only,c=d u=5i")?;
    Ok(server)
}

#[test]
fn samples_of_a_policy_are_its_own_in_every_read() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let check = |server: &Server| {
        let (raw, short) = (json!([[T, 1]]), json!([[T, 99]]));
        for from in ["m2", "x..m2", "autogen.m2", "x.autogen.m2", "x.autogen./m2/"] {
            check_rows(server, "db=x", &format!("SELECT v FROM {from}"), &raw);
        }
        for from in ["short.m2", "x.short.m2", "\"x\".\"short\"./m./"] {
            check_rows(server, "db=x", &format!("SELECT v FROM {from}"), &short);
        }
        check_rows(server, "db=x&rp=short", "SELECT v FROM m2", &short);
        check_rows(server, "db=x&rp=short", "SELECT v FROM (SELECT v FROM m2)", &short);
        check_rows(server, "db=x", "SELECT sum(v) FROM autogen.m2, short.m2", &json!([[0, 100]]));
        check_error(server, "SELECT v FROM nope.m2", "retention policy not found: nope");
        check_error(server, "SHOW SERIES FROM nope.m2", "retention policy not found: nope");
        check_rows(server, "db=x", "SHOW MEASUREMENTS", &json!([["m2"], ["only"]]));
        check_rows(server, "db=x", "SHOW SERIES", &json!([["m2,a=b"], ["only,c=d"]]));
        check_rows(server, "db=x", "SHOW TAG KEYS FROM only", &json!([["c"]]));
        check_rows(server, "db=x", "SHOW FIELD KEYS", &json!([["v", "float"]]));
        check_rows(server, "db=x", "SHOW FIELD KEYS FROM only", &json!([]));
        check_rows(server, "db=x", "SHOW FIELD KEYS FROM short.only", &json!([["u", "integer"]]));
        let policies = json!([
            ["autogen", "0s", "168h0m0s", 1, true],
            ["short", "24h0m0s", "1h0m0s", 1, false]
        ]);
        check_rows(server, "db=x", "SHOW RETENTION POLICIES ON x", &policies);
        check_rows(server, "", "SHOW DATABASES", &json!([["quipu"], ["x"]]));
    };
    check(&server);
    // PromQL sees the name of the policy's samples.
    let query = percent("m2_v");
    let found = server.get(&format!("/api/v1/query?query={query}&time={T}"))?.text();
    ensure!(found.contains("\"db\":\"x.short\"") && found.contains("\"db\":\"x\""), "{found}");
    server.kill()?;
    let server = Launch::new(directory.path()).start()?;
    check(&server);
    let refused = server.post("/write?db=x&rp=nope&precision=s", format!("m2 v=3 {T}"))?;
    ensure!(refused.status == 404, "{}", refused.excerpt());
    ensure!(refused.text().contains("retention policy not found: nope"), "{}", refused.excerpt());
    Ok(())
}

#[test]
fn a_down_sampling_query_leaves_raw_samples_alone() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let start = T - T % 60;
    let lines: String = (0..60).map(|n| format!("m3 v={n} {}\n", start + n * 10)).collect();
    server.write("/write?db=x&precision=s", lines)?;
    let during = format!("time >= {start}s AND time < {}s", start + 600);
    for into in ["x.short.m3", "short.m3", "x.short.:MEASUREMENT", "short.:MEASUREMENT"] {
        let down = format!(
            "SELECT mean(v) AS v INTO {into} FROM x.autogen.m3 WHERE {during} GROUP BY time(1m)"
        );
        check_rows(&server, "db=x", &down, &json!([[0, 10]]));
    }
    check_rows(&server, "db=x", "SELECT count(v), sum(v) FROM m3", &json!([[0, 60, 1770]]));
    check_rows(&server, "db=x", "SELECT count(v), sum(v) FROM short.m3", &json!([[0, 10, 295]]));
    check_error(&server, "SELECT v INTO nope.m3 FROM m3", "retention policy not found: nope");
    check_error(&server, "SELECT v INTO x.nope.m3 FROM m3", "retention policy not found: nope");
    check_rows(&server, "db=x", "SELECT count(v), sum(v) FROM m3", &json!([[0, 60, 1770]]));
    Ok(())
}

#[test]
fn the_default_policy_changes_and_samples_stay() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    must(&server, "ALTER RETENTION POLICY short ON x DEFAULT")?;
    check_rows(&server, "db=x", "SELECT v FROM m2", &json!([[T, 99]]));
    check_rows(&server, "db=x", "SELECT v FROM autogen.m2", &json!([[T, 1]]));
    write(&server, "db=x", "m2,a=b v=98")?;
    check_rows(&server, "db=x", "SELECT v FROM short.m2", &json!([[T, 98]]));
    check_rows(&server, "db=x", "SELECT v FROM x.autogen.m2", &json!([[T, 1]]));
    must(&server, "ALTER RETENTION POLICY autogen ON x DEFAULT")?;
    check_rows(&server, "db=x", "SELECT v FROM m2", &json!([[T, 1]]));
    // Without its default policy a database takes and gives nothing that names none.
    must(&server, "CREATE RETENTION POLICY year ON x DURATION 52w REPLICATION 1 DEFAULT")?;
    write(&server, "db=x", "m2,a=b v=7")?;
    must(&server, "DROP RETENTION POLICY year ON x")?;
    check_error(&server, "SELECT v FROM m2", "retention policy not found: year");
    check_error(&server, "SHOW SERIES", "retention policy not found: year");
    let refused = server.post("/write?db=x&precision=s", format!("m2,a=b v=3 {T}"))?;
    ensure!(refused.status == 404, "{}", refused.excerpt());
    must(&server, "CREATE RETENTION POLICY year ON x DURATION 52w REPLICATION 1")?;
    check_rows(&server, "db=x", "SELECT v FROM m2", &json!([]));
    check_rows(&server, "db=x", "SELECT v FROM autogen.m2", &json!([[T, 1]]));
    Ok(())
}

#[test]
fn policies_are_dropped_with_their_samples() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    must(&server, "DROP RETENTION POLICY nope ON x; DROP RETENTION POLICY nope ON nope")?;
    must(&server, "DROP RETENTION POLICY short ON x")?;
    check_error(&server, "SELECT v FROM short.m2", "retention policy not found: short");
    check_rows(&server, "db=x", "SELECT v FROM m2", &json!([[T, 1]]));
    must(&server, "CREATE RETENTION POLICY short ON x DURATION 2d REPLICATION 1")?;
    check_rows(&server, "db=x", "SELECT v FROM short.m2", &json!([]));
    check_rows(&server, "db=x", "SHOW MEASUREMENTS", &json!([["m2"]]));
    for policy in ["", "&rp=short"] {
        write(&server, &format!("db=x{policy}"), "gone v=1")?;
        write(&server, &format!("db=x{policy}"), "part,t=a v=1")?;
        write(&server, &format!("db=x{policy}"), "part,t=b v=1")?;
    }
    // As in InfluxDB these are about all policies.
    must(&server, "DROP MEASUREMENT gone; DELETE FROM part WHERE t = 'a'")?;
    check_rows(&server, "db=x", "SHOW SERIES", &json!([["m2,a=b"], ["part,t=b"]]));
    check_rows(&server, "db=x", "SELECT count(v) FROM short.part", &json!([[0, 1]]));
    // The first policy, whose samples have the database's own name.
    must(&server, "DROP RETENTION POLICY autogen ON x")?;
    check_rows(&server, "db=x", "SELECT count(v) FROM short.part", &json!([[0, 1]]));
    must(&server, "CREATE RETENTION POLICY autogen ON x DURATION INF REPLICATION 1")?;
    check_rows(&server, "db=x", "SELECT v FROM m2", &json!([]));
    must(&server, "DROP DATABASE x")?;
    check_error(&server, "SELECT v FROM short.part", "database not found: x");
    must(&server, "CREATE DATABASE x")?;
    check_rows(
        &server,
        "db=x",
        "SHOW RETENTION POLICIES",
        &json!([["autogen", "0s", "168h0m0s", 1, true]]),
    );
    must(&server, "CREATE RETENTION POLICY short ON x DURATION 2d REPLICATION 1")?;
    check_rows(&server, "db=x", "SELECT * FROM short./.*/", &json!([]));
    Ok(())
}

#[test]
fn policies_are_checked_as_influxdb_checks_them() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let create = |rest: &str| format!("CREATE RETENTION POLICY {rest}");
    must(&server, &create("short ON x DURATION 1d REPLICATION 1"))?;
    for (query, error) in [
        (create("short ON x DURATION 2d REPLICATION 1"), "retention policy already exists"),
        (
            create("short ON x DURATION 1d REPLICATION 1 DEFAULT"),
            "retention policy conflicts with an existing policy",
        ),
        (
            create("p ON x DURATION 30m REPLICATION 1"),
            "retention policy duration must be at least 1h0m0s",
        ),
        (
            create("p ON x DURATION 1h REPLICATION 1 SHARD DURATION 2h"),
            "retention policy duration must be greater than the shard duration",
        ),
        (create("p ON nope DURATION 1d REPLICATION 1"), "database not found: nope"),
        (create("\"\" ON x DURATION 1d REPLICATION 1"), "invalid name"),
        (create("\"a/b\" ON x DURATION 1d REPLICATION 1"), "invalid name"),
        (
            "ALTER RETENTION POLICY nope ON x DURATION 2d".to_string(),
            "retention policy not found: nope",
        ),
        (
            "ALTER RETENTION POLICY short ON x DURATION 5m".to_string(),
            "retention policy duration must be at least 1h0m0s",
        ),
        ("CREATE DATABASE z WITH DURATION 30m".to_string(), "at least 1h0m0s"),
    ] {
        check_error(&server, &query, error);
    }
    let warned = must(&server, &create("p ON x DURATION 3d REPLICATION 2"))?;
    ensure!(warned[0]["messages"][0]["level"] == "warning", "{warned}");
    must(&server, "ALTER RETENTION POLICY p ON x DURATION INF SHARD DURATION 3h")?;
    let policies = json!([
        ["autogen", "0s", "168h0m0s", 1, true],
        ["short", "24h0m0s", "1h0m0s", 1, false],
        ["p", "0s", "3h0m0s", 2, false]
    ]);
    check_rows(&server, "db=x", "SHOW RETENTION POLICIES", &policies);
    let week = "CREATE DATABASE y WITH DURATION 7d REPLICATION 1 NAME week";
    must(&server, &format!("{week}; {week}; CREATE DATABASE y"))?;
    check_error(&server, "CREATE DATABASE y WITH NAME other", "conflicts with an existing policy");
    let week = json!([["week", "168h0m0s", "24h0m0s", 1, true]]);
    check_rows(&server, "db=y", "SHOW RETENTION POLICIES", &week);
    write(&server, "db=y", "m v=1")?;
    check_rows(&server, "db=y", "SELECT v FROM week.m", &json!([[T, 1]]));
    Ok(())
}

#[test]
fn a_database_with_a_dot_is_no_policy_of_another() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let bad = server.post("/write?db=x.short&precision=s", format!("m2,a=b v=3 {T}"))?;
    ensure!(bad.status == 400 && bad.text().contains("retention policy"), "{}", bad.excerpt());
    check_error(&server, "CREATE DATABASE \"x.short\"", "retention policy");
    check_error(&server, "DROP DATABASE \"x.short\"", "retention policy");
    let bucket = server.post("/api/v2/buckets", "{\"name\":\"x.short\"}")?;
    ensure!(bucket.status == 400, "{}", bucket.excerpt());
    check_rows(&server, "db=x", "SELECT v FROM short.m2", &json!([[T, 99]]));
    write(&server, "db=x.year", "m2,a=b v=5")?;
    let year = "CREATE RETENTION POLICY year ON x DURATION 52w REPLICATION 1";
    check_error(&server, year, "there is a database \"x.year\"");
    let refused = server.post("/write?db=x&rp=year&precision=s", format!("m2,a=b v=6 {T}"))?;
    ensure!(refused.status == 404, "{}", refused.excerpt());
    check_rows(&server, "db=x.year", "SELECT v FROM m2", &json!([[T, 5]]));
    // `x.a.b` would be the policies `a.b` of `x` and `b` of `x.a`.
    must(&server, "CREATE DATABASE \"x.a\"")?;
    must(&server, "CREATE RETENTION POLICY \"a.b\" ON x DURATION 1d REPLICATION 1")?;
    let other = "CREATE RETENTION POLICY b ON \"x.a\" DURATION 1d REPLICATION 1";
    check_error(&server, other, "retention policy \"a.b\" of database \"x\"");
    Ok(())
}

/// `a.b.c` is the policy `b.c` of `a`: neither a database nor the policy `c` of `a.b`.
#[test]
fn reads_and_deletes_reach_no_policy_of_another_database() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    must(&server, "CREATE DATABASE a; CREATE DATABASE \"a.b\"")?;
    must(&server, "CREATE RETENTION POLICY \"b.c\" ON a DURATION 1d REPLICATION 1")?;
    write(&server, "db=a&rp=b.c", "m,t=u v=1")?;
    let is_refused = |more: &str, query: &str| -> Result<()> {
        let answer = ask(&server, more, query)?;
        let error = answer[0]["error"].as_str().unwrap_or_default();
        let is_named = ["not found", "retention policy"].iter().any(|words| error.contains(words));
        ensure!(is_named, "{query} ({more}): {answer}");
        Ok(())
    };
    for query in ["DELETE FROM m", "DROP SERIES FROM m", "SELECT v FROM m", "SHOW SERIES"] {
        is_refused("db=a.b.c", query)?;
    }
    is_refused("db=a.b.c", "DROP MEASUREMENT m")?;
    for query in ["DELETE FROM m", "DROP SERIES FROM m", "SELECT v FROM m"] {
        is_refused("db=a.b&rp=c", query)?;
    }
    for from in ["\"a.b\".c.m", "\"a.b.c\"..m", "\"a.b.c\".autogen.m"] {
        is_refused("db=a", &format!("SELECT v FROM {from}"))?;
        is_refused("db=a", &format!("SELECT v INTO n FROM {from}"))?;
    }
    let head = [("Content-Type", "application/vnd.flux")];
    for bucket in ["a.b.c", "a.b/c", "a.b.c/autogen"] {
        let text = format!("from(bucket: \"{bucket}\") |> range(start: 0)");
        let found = server.post_with("/api/v2/query?org=o", &head, text)?.text();
        ensure!(found.contains("could not find bucket"), "{bucket}: {found}");
    }
    check_rows(&server, "db=a&rp=b.c", "SELECT v FROM m", &json!([[T, 1]]));
    let text = "from(bucket: \"a/b.c\") |> range(start: 0) |> keep(columns: [\"_value\"])";
    let found = server.post_with("/api/v2/query?org=o", &head, text)?.text();
    ensure!(found.contains(",1"), "{found}");
    // A database that only looks like a policy of another one.
    must(&server, "CREATE DATABASE \"a.d\"")?;
    write(&server, "db=a.d", "m v=2")?;
    is_refused("db=a&rp=d", "DELETE FROM m")?;
    check_rows(&server, "db=a.d", "SELECT v FROM m", &json!([[T, 2]]));
    check_rows(&server, "db=a&rp=b.c", "DELETE FROM m", &json!([]));
    check_rows(&server, "db=a&rp=b.c", "SELECT v FROM m", &json!([]));
    Ok(())
}

#[test]
fn buckets_are_databases_and_policies() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(directory.path())?;
    let line = format!("m2,a=b v=50 {T}\n");
    for (bucket, status) in
        [("x%2Fshort", 204), ("x%2Fnope", 404), ("x%2Fautogen", 204), ("x", 204)]
    {
        let path = format!("/api/v2/write?bucket={bucket}&precision=s&org=o");
        let line = line.replace("50", if bucket == "x%2Fshort" { "50" } else { "40" });
        let answer = server.post(&path, line)?;
        ensure!(answer.status == status, "{bucket}: {}", answer.excerpt());
    }
    check_rows(&server, "db=x", "SELECT v FROM m2", &json!([[T, 40]]));
    check_rows(&server, "db=x", "SELECT v FROM short.m2", &json!([[T, 50]]));
    let buckets = server.get("/api/v2/buckets")?.text();
    ensure!(buckets.contains("\"x\"") && buckets.contains("\"x/short\""), "{buckets}");
    let flux = |bucket: &str| -> Result<String> {
        let text = format!(
            "from(bucket: \"{bucket}\") |> range(start: 0) |> filter(fn: (r) => r._field == \"v\") \
             |> keep(columns: [\"_value\"])"
        );
        let head = [("Content-Type", "application/vnd.flux")];
        Ok(server.post_with("/api/v2/query?org=o", &head, text)?.text())
    };
    for (bucket, value) in [("x", ",40"), ("x/autogen", ",40"), ("x/short", ",50")] {
        let found = flux(bucket)?;
        ensure!(found.contains(value), "{bucket}: {found}");
    }
    ensure!(flux("x/nope")?.contains("could not find bucket"), "{}", flux("x/nope")?);
    // A bucket is one policy: the other's samples stay.
    let all = r#"{"start":"1970-01-01T00:00:00Z","stop":"2100-01-01T00:00:00Z"}"#;
    let deleted = server.post("/api/v2/delete?bucket=x", all)?;
    ensure!(deleted.status == 204, "{}", deleted.excerpt());
    check_rows(&server, "db=x", "SELECT v FROM m2", &json!([]));
    check_rows(&server, "db=x", "SELECT v FROM short.m2", &json!([[T, 50]]));
    let deleted = server.post("/api/v2/delete?bucket=x%2Fshort", all)?;
    ensure!(deleted.status == 204, "{}", deleted.excerpt());
    check_rows(&server, "db=x", "SELECT v FROM short.m2", &json!([]));
    Ok(())
}

/// Points that name no policy go to the default one, and fields stay with their measurement, although one of
/// the two files that say so is damaged.
#[test]
fn default_policy_and_fields_survive_damage_to_one_file() -> Result<()> {
    for (name, is_removed, is_repaired) in [
        ("schema/records", true, false),
        ("schema/records", false, true),
        ("schema/records.copy", true, true),
        ("schema/records.copy", false, false),
    ] {
        let directory = tempfile::tempdir()?;
        let server = start(directory.path())?;
        must(&server, "ALTER RETENTION POLICY short ON x DEFAULT")?;
        server.post("/internal/force_flush", "")?;
        // Both join to one name. The second write makes no file the first of its kind.
        write(&server, "db=x", "docker,h=a container_mem=1")?;
        write(&server, "db=x", "docker_container,h=a mem=2")?;
        server.stop()?;
        let file = directory.path().join(name);
        match is_removed {
            true => std::fs::remove_file(&file)?,
            false => {
                let mut bytes = std::fs::read(&file)?;
                bytes[30] ^= 1;
                std::fs::write(&file, bytes)?;
            }
        }
        let data_dir = format!("--data-dir={}", directory.path().display());
        let found = quipu(&["verify", &data_dir])?.output()?;
        let text = String::from_utf8_lossy(&found.stdout);
        ensure!(found.status.code() == Some(1) && text.contains(name), "{found:?}");
        if is_repaired {
            let repaired = quipu(&["verify", &data_dir, "--repair", "--yes"])?.output()?;
            ensure!(repaired.status.success(), "{repaired:?}");
        }
        let server = Launch::new(directory.path()).start()?;
        write(&server, "db=x", "m2,a=b v=9")?;
        check_rows(&server, "db=x", "SELECT v FROM short.m2", &json!([[T, 9]]));
        check_rows(&server, "db=x", "SELECT v FROM autogen.m2", &json!([[T, 1]]));
        check_rows(&server, "db=x", "SELECT container_mem FROM docker", &json!([[T, 1]]));
        check_rows(&server, "db=x", "SELECT mem FROM docker_container", &json!([[T, 2]]));
        let answer = server.get(&format!("/query?db=x&q={}", percent("SHOW MEASUREMENTS")))?;
        ensure!(
            answer.header("x-quipu-partial") != "true",
            "nothing is missing: {}",
            answer.text()
        );
        let damage = server.get("/api/v1/status/damage")?.text();
        ensure!(damage.contains(name) != is_repaired, "{damage}");
        server.stop()?;
        let found = quipu(&["verify", &data_dir])?.output()?;
        ensure!(found.status.success(), "{found:?}");
    }
    Ok(())
}
