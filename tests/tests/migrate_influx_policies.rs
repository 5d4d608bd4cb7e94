//! `quipu migrate influxdb` and `--legacy kind=influxdb`: retention policies beside the default one, answers
//! that end too early, and lists that a server fails to give at first.

use anyhow::{Result, ensure};
use e2e::influx::{fake_influx, influx_piece, influx_table, start_influx};
use e2e::migration::{lines, migrate, must};
use e2e::{Client, Launch, Server, percent};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// 2026-08-30 00:00:00 UTC in seconds.
const START: i64 = 1_788_048_000;
const NANOS: i64 = 1_000_000_000;

fn ask(influx: &mut Client, question: &str) -> Result<()> {
    let answer = influx.post(&format!("/query?q={}", percent(question)), &[], b"")?;
    ensure!(answer.status == 200 && !answer.excerpt().contains("error"), "{}", answer.excerpt());
    Ok(())
}

/// Names and databases of all series that a server has.
fn series(server: &Server, more: &str) -> Result<Vec<String>> {
    let path = format!("/api/v1/series?match[]=%7B__name__!%3D%22%22%7D&start=1700000000{more}");
    let data = server.get(&path)?.data()?;
    let text = |one: &serde_json::Value, name: &str| one[name].as_str().unwrap_or("").to_string();
    let all = data.as_array().into_iter().flatten();
    let mut found: Vec<String> =
        all.map(|one| format!("{} {}", text(one, "db"), text(one, "__name__"))).collect();
    found.sort();
    Ok(found)
}

#[test]
fn fields_of_all_policies_are_copied_and_asked_for() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let (_influx, authority) = start_influx(directory)?;
    let mut influx = Client::new(&authority);
    for text in [
        "CREATE DATABASE d",
        "CREATE RETENTION POLICY year ON d DURATION INF REPLICATION 1",
        "CREATE DATABASE e",
    ] {
        ask(&mut influx, text)?;
    }
    let at = START * NANOS;
    for (place, line) in [
        ("db=d", "cpu v=1"),
        ("db=d&rp=year", "cpu_1h,zone=a mean=1"),
        ("db=d&rp=year", "cpu v=5,w=6"),
        ("db=e", "disk free=7,name=\"sda\""),
    ] {
        let answer =
            influx.post(&format!("/write?{place}"), &[], format!("{line} {at}").as_bytes())?;
        ensure!(answer.status == 204, "{}", answer.excerpt());
    }
    // All that e has is under another policy from now on.
    ask(&mut influx, "CREATE RETENTION POLICY fresh ON e DURATION INF REPLICATION 1 DEFAULT")?;
    let expected = [
        "d cpu_v",
        "d.year cpu_1h_mean",
        "d.year cpu_v",
        "d.year cpu_w",
        "e.autogen disk_free",
        "e.autogen disk_name:text",
    ];
    let url = format!("http://{authority}");
    let server = Launch::new(&directory.join("quipu")).start()?;
    let said = must(&server, directory, &["influxdb", &url])?;
    ensure!(said.contains("6 samples of"), "{said}");
    ensure!(lines(&server)?.len() == 5 && series(&server, "")?.len() == 5, "without strings");
    let all = series(&server, "&match[]=disk_name:text")?;
    ensure!(all == expected, "{all:?}");
    let said = must(&server, directory, &["verify", "influxdb", &url])?;
    ensure!(said.contains("with 6 samples compared; 0 differ"), "{said}");
    server.stop()?;

    let legacy = format!("url={url} kind=influxdb until={}", START + 86_400);
    let server = Launch::new(&directory.join("legacy")).flag("legacy", &legacy).start()?;
    let all = series(&server, "&match[]=disk_name:text")?;
    ensure!(all == expected, "{all:?}");
    let tags = server.get(&format!("/api/v1/label/zone/values?start={START}"))?.data()?;
    ensure!(tags == serde_json::json!(["a"]), "{tags}");
    let path = format!("/api/v1/query?query=cpu_w%7Bdb=%22d.year%22%7D&time={}", START + 60);
    let json = server.get(&path)?.json()?;
    ensure!(json["data"]["result"][0]["value"][1] == "6" && json["isPartial"] != true, "{json}");
    server.stop()
}

#[test]
fn samples_in_the_future_are_named() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_influx, authority) = start_influx(directory.path())?;
    let mut influx = Client::new(&authority);
    ask(&mut influx, "CREATE DATABASE d")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64;
    let line = |hours: i64| format!("price v={hours} {}\n", (now + hours * 3600) * NANOS);
    let lines: String = [-1, 12, 24, 36, 48].map(line).concat();
    influx.post("/write?db=d", &[], lines.as_bytes())?;
    let server = Launch::new(&directory.path().join("quipu")).start()?;
    let url = format!("http://{authority}");
    for command in [&["influxdb", &url][..], &["verify", "influxdb", &url]] {
        let said = must(&server, directory.path(), command)?;
        ensure!(said.contains("not copied: 4 samples after "), "{said}");
        ensure!(said.contains("of price_v; say a later --end"), "{said}");
    }
    ensure!(server.export("price_v")?.len() == 1, "up to now");
    let end = (now + 50 * 3600).to_string();
    let said = must(&server, directory.path(), &["influxdb", &url, "--end", &end])?;
    ensure!(said.contains("5 samples of") && !said.contains("not copied"), "{said}");
    server.stop()
}

/// Totals of the source do not come from the lists and readers of the copy.
#[test]
fn what_the_source_counts_and_does_not_give_is_a_difference() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let url = fake_influx(|question| {
        let samples = || influx_table(0, "m", &["time", "c0"], &rows(2));
        (200, names(question, &["d"]).unwrap_or_else(samples))
    })?;
    let server = Launch::new(&directory.path().join("quipu")).start()?;
    must(&server, directory.path(), &["influxdb", &url])?;
    let said = migrate(&server, directory.path(), &["verify", "influxdb", &url])?;
    let words = "d/autogen/2026-08-30: the source counts 3 samples and gave 2";
    ensure!(said.code == 1 && said.text.contains(words), "{}", said.text);
    server.stop()
}

/// Telegraf's `postgresql` has a tag of the name that the label of databases has.
#[test]
fn a_tag_called_db_keeps_series_apart() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_influx, authority) = start_influx(directory.path())?;
    let mut influx = Client::new(&authority);
    ask(&mut influx, "CREATE DATABASE telegraf")?;
    let line = |(number, db): (usize, &str)| {
        format!("postgresql,server=pg1,db={db} numbackends={number}i {}\n", START * NANOS)
    };
    let lines: String = ["shop", "crm", "hr"].into_iter().enumerate().map(line).collect();
    influx.post("/write?db=telegraf", &[], lines.as_bytes())?;
    let url = format!("http://{authority}");
    let copied = Launch::new(&directory.path().join("quipu")).start()?;
    let said = must(&copied, directory.path(), &["influxdb", &url])?;
    ensure!(said.contains("3 samples of"), "{said}");
    let said = must(&copied, directory.path(), &["verify", "influxdb", &url])?;
    ensure!(said.contains("with 3 samples compared; 0 differ"), "{said}");
    let legacy = format!("url={url} kind=influxdb until={}", START + 86_400);
    let asked = Launch::new(&directory.path().join("legacy")).flag("legacy", &legacy).start()?;
    for server in [copied, asked] {
        let path = format!("/api/v1/series?match[]=postgresql_numbackends&start={START}");
        let data = server.get(&path)?.data()?;
        let series = data.as_array().map(Vec::len);
        ensure!(series == Some(3), "{data}");
        for db in ["shop", "crm", "hr"] {
            ensure!(data.to_string().contains(&format!("\"exported_db\":\"{db}\"")), "{data}");
        }
        server.stop()?;
    }
    Ok(())
}

/// What an InfluxDB with one measurement answers to a question, but for its samples.
fn names(question: &str, databases: &[&str]) -> Option<String> {
    let row = |text: &str| format!("[\"{text}\"]");
    if question.starts_with("SHOW DATABASES") {
        let rows: Vec<String> = databases.iter().map(|name| row(name)).collect();
        return Some(influx_table(0, "databases", &["name"], &rows));
    }
    if question.starts_with("SHOW SHARDS") {
        let columns = ["database", "retention_policy", "start_time", "end_time"];
        let times = "\"2026-08-30T00:00:00Z\",\"2026-08-31T00:00:00Z\"";
        let shard = |name: &&str| format!("[\"{name}\",\"autogen\",{times}]");
        let rows: Vec<String> = databases.iter().map(shard).collect();
        return Some(influx_table(0, "d", &columns, &rows));
    }
    let policies = match question.contains("\"d\"") && databases.len() == 2 {
        true => vec!["[\"autogen\",true]".to_string(), "[\"year\",false]".to_string()],
        false => vec!["[\"autogen\",true]".to_string()],
    };
    let field = ["[\"value\",\"float\"]".to_string()];
    let fields = |at| influx_table(at, "m", &["fieldKey", "fieldType"], &field);
    if question.starts_with("SHOW RETENTION POLICIES") {
        let policies = influx_table(0, "", &["name", "default"], &policies);
        let more = if question.contains(';') { fields(1) } else { String::new() };
        return Some(policies + &more);
    }
    if question.starts_with("SELECT count(*)") {
        return Some(influx_table(0, "m", &["time", "count_value"], &["[1,3]".to_string()]));
    }
    question.starts_with("SHOW FIELD KEYS").then(|| fields(0))
}

fn rows(count: i64) -> Vec<String> {
    (0..count).map(|n| format!("[{},{n}]", START * NANOS + n)).collect()
}

#[test]
fn an_answer_that_ends_too_early_is_no_copy() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let whole = Arc::new(AtomicUsize::new(0));
    let shared = Arc::clone(&whole);
    let url = fake_influx(move |question| {
        let is_whole = shared.load(Ordering::SeqCst) == 1;
        let body = names(question, &["d"]).unwrap_or_else(|| {
            let piece = |rows: &[String], more| influx_piece(0, "m", &["time", "c0"], rows, more);
            let all = rows(12_000);
            let (first, rest) = all.split_at(5000);
            let end = if is_whole { piece(rest, "") } else { String::new() };
            piece(first, ",\"partial\":true") + &end
        });
        (200, body)
    })?;
    let server = Launch::new(&directory.path().join("quipu")).start()?;
    let said = migrate(&server, directory.path(), &["influxdb", &url])?;
    ensure!(said.code == 1 && said.text.contains("ends before its end"), "{}", said.text);
    let said = migrate(&server, directory.path(), &["verify", "influxdb", &url])?;
    ensure!(said.code == 2, "{}", said.text);
    whole.store(1, Ordering::SeqCst);
    let said = must(&server, directory.path(), &["influxdb", &url])?;
    ensure!(said.contains("12000 samples of 1 window"), "{said}");
    must(&server, directory.path(), &["verify", "influxdb", &url])?;
    server.stop()
}

#[test]
fn lists_are_asked_for_again() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(&directory.path().join("quipu")).start()?;
    // Each list once: an error, an answer that is cut, one that is empty.
    for bad in [(500, "<html>"), (200, "{\"results\":[{"), (200, "")] {
        let count = AtomicUsize::new(0);
        let url = fake_influx(move |question| {
            let Some(names) = names(question, &["d"]) else {
                return (200, influx_table(0, "m", &["time", "c0"], &rows(3)));
            };
            match count.fetch_add(1, Ordering::SeqCst) % 2 {
                0 => (bad.0, bad.1.to_string()),
                _ => (200, names),
            }
        })?;
        let said = must(&server, directory.path(), &["influxdb", &url])?;
        ensure!(said.contains("3 samples of 1 window"), "{bad:?}: {said}");
        ensure!(said.matches("asking again").count() == 4, "{bad:?}: {said}");
        ensure!(bad.0 == 200 || said.contains("/query: 500"), "{bad:?}: {said}");
    }
    let url = fake_influx(|_| (500, "away for ever".to_string()))?;
    let said = migrate(&server, directory.path(), &["influxdb", &url])?;
    let words = ["SHOW DATABASES", "/query: 500", "away for ever"];
    ensure!(said.code == 1 && words.iter().all(|one| said.text.contains(one)), "{}", said.text);
    server.stop()
}

#[test]
fn two_policies_of_one_name_are_refused() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let url = fake_influx(|question| {
        let names = names(question, &["d", "d.year"]);
        (200, names.unwrap_or_else(|| influx_table(0, "m", &["time", "c0"], &rows(3))))
    })?;
    let server = Launch::new(&directory.path().join("quipu")).start()?;
    let said = migrate(&server, directory.path(), &["influxdb", &url])?;
    let words = "retention policy \"year\" of database \"d\" and retention policy \"autogen\" of \
                 database \"d.year\" would both be the database \"d.year\"";
    ensure!(said.code == 1 && said.text.contains(words), "{}", said.text);
    ensure!(lines(&server)?.is_empty(), "nothing was copied");
    must(&server, directory.path(), &["influxdb", &url, "--database", "d.year"])?;
    server.stop()?;
    let legacy = format!("url={url} kind=influxdb until={}", START + 86_400);
    let server = Launch::new(&directory.path().join("legacy")).flag("legacy", &legacy).start()?;
    let json = server.get(&format!("/api/v1/query?query=m_value&time={}", START + 60))?.json()?;
    let warning = json["warnings"][0].as_str().unwrap_or_default();
    ensure!(json["isPartial"] == true && warning.contains("would both be"), "{json}");
    server.stop()
}
