//! Strings of line protocol: written, found again through InfluxQL and Flux, never taken for numbers
//! by PromQL, bounded, and there after a kill.

use crate::backup::backup;
use anyhow::{Context, Result, ensure};
use e2e::answers::percent;
use e2e::launch::quipu;
use e2e::migration::{migrate, must};
use e2e::{Launch, Server, poll};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

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

/// `a` with a field `b_c` and `a_b` with a field `c` would have one metric of strings, too.
#[test]
fn strings_of_another_measurement_are_not_deleted_along() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    server.write("/write?db=x", format!("a b_c=\"one\" {START}000000000\n"))?;
    server.write("/write?db=x", format!("a_b c=\"two\" {}000000000\n", START + 1))?;
    let predicate = r#"{"start":"1970-01-01T00:00:00Z","stop":"2030-01-01T00:00:00Z",
        "predicate":"_measurement=\"a\""}"#;
    let deleted = server.post("/api/v2/delete?org=o&bucket=x", predicate)?;
    ensure!(deleted.status == 204, "{}", deleted.excerpt());
    let left = rows(&server, "SELECT c FROM a_b")?;
    ensure!(left == json!([[START + 1, "two"]]), "{left}");
    let gone = server.get("/query?db=x&q=SELECT+b_c+FROM+a")?.text();
    ensure!(!gone.contains("one"), "{gone}");
    server.stop()
}

fn string_line(metric: &str, (measurement, field): (&str, &str), text: &str) -> Value {
    json!({
        "metric": { "__name__": metric, "db": "x" }, "measurement": measurement, "field": field,
        "strings": [text], "timestamps": [START * 1000],
    })
}

/// JSON allows white space and escapes, and encoders of other languages write them.
#[test]
fn imported_strings_are_fields_however_json_is_written() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let plain = |field: &str| {
        string_line(&format!("door_{field}:text"), ("door", field), "open").to_string()
    };
    let lines = [
        plain("a").replace("\":", "\": ").replace(",\"", ", \""),
        plain("b").replace("\"strings\":[", "\"strings\"\t:\t[ "),
        plain("c").replace("\"strings\"", "\"\\u0073trings\""),
    ];
    for line in lines {
        server.write("/api/v1/import", line)?;
    }
    check(&server, "SELECT a, b, c FROM door", json!([[START, "open", "open", "open"]]));
    let mut other = string_line("gate_a:text", ("gate", "a"), "shut");
    other["metric"] = json!({ "__name__": "gate_a:text" });
    server.write("/api/v1/import?extra_label=db%3Dx", other.to_string())?;
    check(&server, "SELECT a FROM gate", json!([[START, "shut"]]));
    server.stop()
}

/// Two servers may each have given the plain name to another field.
#[test]
fn imported_strings_whose_names_join_to_one_metric_are_two_metrics() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(directory.path()).start()?;
    let one = string_line("sj_a_b:text", ("sj", "a_b"), "open");
    let two = string_line("sj_a_b:text", ("sj_a", "b"), "shut");
    server.write("/api/v1/import", one.to_string())?;
    server.write("/api/v1/import", two.to_string())?;
    let three = string_line("k_a_b:text", ("k", "a_b"), "open");
    let four = string_line("k_a_b:text", ("k_a", "b"), "shut");
    server.write("/api/v1/import", format!("{three}\n\n{four}\n"))?;
    // A name that another server gave, of a field that has one here.
    server.write("/write?db=x", format!("n_a b=\"here\" {}000000000\n", START + 1))?;
    server
        .write("/api/v1/import", string_line("n_a:_b:text", ("n_a", "b"), "there").to_string())?;
    let check_all = |server: &Server| {
        check(server, "SELECT a_b FROM sj", json!([[START, "open"]]));
        check(server, "SELECT b FROM sj_a", json!([[START, "shut"]]));
        check(server, "SELECT a_b FROM k", json!([[START, "open"]]));
        check(server, "SELECT b FROM k_a", json!([[START, "shut"]]));
        check(server, "SELECT b FROM n_a", json!([[START, "there"], [START + 1, "here"]]));
    };
    check_all(&server);
    server.kill()?;
    let server = Launch::new(directory.path()).start()?;
    check_all(&server);
    server.stop()
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

/// What `SELECT`, conditions, lists and Flux say of a field that came as numbers and as strings.
fn check_both(server: &Server) -> Result<()> {
    check(server, "SELECT v FROM both", json!([[START, 1], [START + 30, 4]]));
    check(
        server,
        "SELECT v::string FROM both",
        json!([[START + 10, "two"], [START + 20, "three"]]),
    );
    check(
        server,
        "SELECT v, v::string AS text FROM both WHERE time < 1600000015s",
        json!([[START, 1, null], [START + 10, null, "two"]]),
    );
    check(
        server,
        "SELECT v::string FROM both WHERE v::string =~ /^th/",
        json!([[START + 20, "three"]]),
    );
    check(server, "SELECT last(v::string), count(v) FROM both", json!([[0, "three", 2]]));
    check(server, "SHOW FIELD KEYS FROM both", json!([["v", "integer"], ["v", "string"]]));
    check(server, "SHOW MEASUREMENTS", json!([["both"]]));
    let flux = "from(bucket: \"x\") |> range(start: 1600000000, stop: 1600000100) |> filter(fn: (r) => \
                r._field == \"v\")";
    let head = [("Content-Type", "application/vnd.flux")];
    let found = server.client().send("POST", "/api/v2/query", &head, flux.as_bytes())?.text();
    for row in [",1,v,both\r\n", ",4,v,both\r\n", ",two,v,both\r\n", ",three,v,both\r\n"] {
        ensure!(found.contains(row), "{row:?}: {found}");
    }
    Ok(())
}

/// InfluxDB has such fields in shards of different weeks; `::string` says which of them is meant.
#[test]
fn strings_beside_numbers_come_back() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(directory.path());
    let server = launch.start()?;
    for (row, value) in ["1i", "\"two\"", "\"three\"", "4i"].iter().enumerate() {
        let at = START + row as i64 * 10;
        server.write("/write?db=x", format!("both v={value} {at}000000000\n"))?;
    }
    check_both(&server)?;
    server.kill()?;
    let server = launch.start()?;
    check_both(&server)?;
    let drop = format!("/query?db=x&q={}", percent("DROP MEASUREMENT both"));
    server.post(&drop, "")?;
    let named = server.get(&format!("/api/v1/query?time={}&query=both_v:text", START + 30))?;
    ensure!(named.vector()?.is_empty(), "{}", named.excerpt());
    server.write("/write?db=x", format!("both v=7i {START}000000000\n"))?;
    check(&server, "SHOW FIELD KEYS FROM both", json!([["v", "integer"]]));
    server.stop()
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
    server.post("/internal/force_flush", "")?;
    server.stop()?;
    let server = launch.start()?;
    check_all(&server);
    Ok(())
}

/// That every row has the text that came with its number; how many there are.
fn check_rounds(server: &Server) -> Result<usize> {
    let found = rows(server, "SELECT n, text FROM round")?;
    let all = found.as_array().cloned().unwrap_or_default();
    for row in &all {
        let n = row[1].as_i64().context("a number")?;
        ensure!(row[2] == json!(format!("number {n}")), "{row}");
    }
    Ok(all.len())
}

/// Writes lines with texts that nobody knows, until it is told to stop; how many were acknowledged.
fn write_rounds(server: &Server, stop: &AtomicBool, acknowledged: &AtomicI64) -> Result<()> {
    let mut client = server.client();
    for n in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let at = START + n;
        let line = format!("round text=\"number {n}\",n={n}i {at}000000000");
        client.post("/write?db=x", &[], line.as_bytes())?;
        acknowledged.store(n + 1, Ordering::SeqCst);
    }
    Ok(())
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_all(&entry.path(), &to)?,
            false => drop(std::fs::copy(entry.path(), to)?),
        }
    }
    Ok(())
}

/// Snapshots and backups that are made while new texts come, and then a kill: in each there is a text for
/// every sample, and all that was acknowledged before it was made.
#[test]
fn snapshots_and_backups_have_their_texts() -> Result<()> {
    let root = tempfile::tempdir()?;
    let path = |name: &str| root.path().join(name).display().to_string();
    let (data, place) = (path("data"), path("place"));
    let launch = Launch::new(Path::new(&data));
    let server = launch.start()?;
    server.write("/write?db=x", lines())?;
    let (stop, acknowledged) = (AtomicBool::new(false), AtomicI64::new(0));
    let mut made: Vec<(String, i64)> = Vec::new();
    std::thread::scope(|scope| -> Result<()> {
        let writer = scope.spawn(|| write_rounds(&server, &stop, &acknowledged));
        let work = (|| -> Result<()> {
            for _ in 0..4 {
                let before = acknowledged.load(Ordering::SeqCst);
                poll("more texts", PATIENCE, || {
                    ensure!(before + 20 < acknowledged.load(Ordering::SeqCst), "too few");
                    Ok(())
                })?;
                let before = acknowledged.load(Ordering::SeqCst);
                let answer = server.post("/snapshot/create", "")?.json()?;
                made.push((answer["snapshot"].as_str().context("a name")?.to_string(), before));
            }
            let url = server.url();
            let create = ["create", "--url", url, "--data-dir", &data, "--to", &place];
            let said = backup(&create, &[])?;
            ensure!(said.is_ok, "{}", said.error);
            Ok(())
        })();
        stop.store(true, Ordering::SeqCst);
        let written = writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))?;
        work.and(written)
    })?;
    let all = acknowledged.load(Ordering::SeqCst);
    server.kill()?;
    for (name, before) in made {
        let copy = path(&name);
        copy_all(&Path::new(&data).join("snapshots").join(&name), Path::new(&copy))?;
        let server = Launch::new(Path::new(&copy)).start()?;
        let count = i64::try_from(check_rounds(&server)?)?;
        ensure!((before..=all).contains(&count), "{count}, {before} before it");
        check_all(&server);
        server.stop()?;
    }
    let restored = path("restored");
    let said = backup(&["restore", "latest", "--from", &place, "--data-dir", &restored], &[])?;
    ensure!(said.is_ok, "{}", said.error);
    let server = Launch::new(Path::new(&restored)).start()?;
    ensure!(0 < check_rounds(&server)?, "no rounds");
    check_all(&server);
    // Texts that come after it get numbers that nobody has, a kill more or less.
    server.write("/write?db=x", format!("late text=\"late\" {START}000000000"))?;
    server.kill()?;
    let server = Launch::new(Path::new(&restored)).start()?;
    check_rounds(&server)?;
    check_all(&server);
    check(&server, "SELECT text FROM late", json!([[START, "late"]]));
    // The one that was killed has all of it, too.
    let server = launch.start()?;
    ensure!(i64::try_from(check_rounds(&server)?)? == all, "of {all}");
    check_all(&server);
    server.stop()
}

/// What is selected of all strings, wherever they came from.
fn check_strings(server: &Server) {
    check(
        server,
        "SELECT label, state FROM door WHERE host = 'a'",
        json!([
            [START, "x0", "open"],
            [START + 10, "x1", "shut"],
            [START + 20, "x2", "a \"b\\ c"],
            [START + 30, "x3", "open"],
        ]),
    );
    check(server, "SELECT count(label) FROM door WHERE state = 'open'", json!([[0, 2]]));
}

/// Runs a command of the binary; what it printed, and whether it ended well.
fn run(server: &Server, arguments: &[&str]) -> Result<(bool, String)> {
    let output = quipu(arguments)?.args(["--url", server.url()]).output()?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

#[test]
fn strings_move_out_and_in() -> Result<()> {
    let root = tempfile::tempdir()?;
    let path = |name: &str| root.path().join(name).display().to_string();
    let old = Launch::new(Path::new(&path("old"))).start()?;
    old.write("/write?db=x", lines())?;
    // A recording rule may be called so, too: its numbers are no texts.
    old.write("/api/v1/import/prometheus", format!("rule:text 1 {START}000\n"))?;
    let file = path("all.jsonl");
    let (is_ok, said) = run(&old, &["export", "-o", &file])?;
    ensure!(is_ok, "{said}");
    let text = std::fs::read_to_string(&file)?;
    ensure!(text.lines().filter(|line| line.contains("\"strings\":[")).count() == 2, "{text}");
    ensure!(!text.contains("rule:text"), "{text}");
    let (is_ok, named) = run(&old, &["export", "--match", "{__name__=~\".*:text\"}"])?;
    ensure!(is_ok && named.matches("\"strings\":[").count() == 2, "{named}");
    ensure!(named.contains("\"rule:text\"") && named.matches("\"values\"").count() == 1, "{named}");

    // Another server has other numbers for the same texts.
    let new = Launch::new(Path::new(&path("new"))).start()?;
    new.write("/write?db=y", format!("other s=\"first of all\" {START}000000000"))?;
    let (is_ok, said) = run(&new, &["import", &file])?;
    ensure!(is_ok, "{said}");
    check_strings(&new);
    new.kill()?;
    let new = Launch::new(Path::new(&path("new"))).start()?;
    check_strings(&new);
    let all = "{__name__!=\"\",job!=\"quipu\"}";
    ensure!(new.export(all)? == old.export(all)?, "numbers");
    let refuses = Launch::new(Path::new(&path("none"))).flag("influx.max-strings", "0").start()?;
    let (is_ok, said) = run(&refuses, &["import", &file])?;
    ensure!(!is_ok && said.contains("not where influx.max-strings is 0"), "{said}");

    let lines_file = path("all.lp");
    let arguments = ["export", "--format", "influx", "--influx-split", "-o", &lines_file];
    let (is_ok, said) = run(&old, &arguments)?;
    ensure!(is_ok && !said.contains("none of"), "{said}");
    let written = Launch::new(Path::new(&path("written"))).start()?;
    written.write("/write?db=x", std::fs::read(&lines_file)?)?;
    check_strings(&written);
    for format in ["openmetrics", "prometheus-blocks", "victoriametrics-native"] {
        let (is_ok, said) = run(&old, &["export", "--format", format, "-o", &path(format)])?;
        let words = format!(
            "metrics of strings, which {format} has none of: 3: door_label:text, door_state:text, rule:text"
        );
        ensure!(is_ok && said.contains(&words), "{said}");
    }
    check_moving(root.path(), &old)
}

/// From one Quipu to another.
fn check_moving(root: &Path, old: &Server) -> Result<()> {
    let new = Launch::new(&root.join("moved")).start()?;
    new.write("/write?db=y", format!("other s=\"first of all\" {START}000000000"))?;
    let copy = ["quipu", old.url(), "--start", "1600000000", "--end", "1600000100"];
    let said = must(&new, root, &copy)?;
    ensure!(said.contains("12 samples of ") && !said.contains("left out"), "{said}");
    check_strings(&new);
    let verify = [&["verify"], &copy[..]].concat();
    let said = must(&new, root, &verify)?;
    ensure!(said.contains("with 12 samples compared; 0 differ"), "{said}");
    // A text that is another, and one that is not there.
    let other = format!("door,host=a state=\"shut\" {START}000000000\n");
    new.write("/write?db=x", other)?;
    let gone = "/api/v1/admin/tsdb/delete_series?match[]=door_label:text";
    new.post(gone, "")?;
    let said = migrate(&new, root, &verify)?;
    ensure!(said.code == 1 && said.text.contains("; 2 differ"), "{}", said.text);
    ensure!(
        said.text.contains("door_label:text{") && said.text.contains("4 samples there, 0 here"),
        "{}",
        said.text
    );
    // A part of it, under other labels.
    let some = Launch::new(&root.join("some")).start()?;
    let chosen =
        [&copy[..], &["--match", "door_state:text", "--rename-label", "host=box"]].concat();
    must(&some, root, &chosen)?;
    check(&some, "SELECT state FROM door WHERE box = 'a' LIMIT 1", json!([[START, "open"]]));
    check(&some, "SHOW FIELD KEYS FROM door", json!([["state", "string"]]));
    must(&some, root, &[&["verify"], &chosen[..]].concat())?;
    let named = [&copy[..], &["--set-label", "__name__=other"]].concat();
    let said = must(&some, root, &named)?;
    ensure!(said.contains("left out: 8 strings, which have no other names"), "{said}");
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
    check_import_limits(&server)?;
    server.stop()?;
    // Without room for any they are left out, as they always were.
    let other = tempfile::tempdir()?;
    let server = Launch::new(other.path()).flag("influx.max-strings", "0").start()?;
    let answer = server.client().send("POST", "/write?db=x", &[], body.as_bytes())?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    check(&server, "SHOW FIELD KEYS FROM m", json!([["v", "float"]]));
    Ok(())
}

/// The same of JSON lines, on a server whose dictionary is full of "one" and "two".
fn check_import_limits(server: &Server) -> Result<()> {
    let line = |field: &str, strings: &[&str]| {
        let times: Vec<i64> =
            (0..).take(strings.len()).map(|at| (START + 100 + at) * 1000).collect();
        let metric = json!({ "__name__": format!("n_{field}:text"), "db": "x", "host": "a" });
        // Only what is written so is a line of strings.
        format!(
            "{{\"metric\":{metric},\"measurement\":\"n\",\"field\":\"{field}\",\"strings\":{},\"timestamps\":{}}}\n",
            json!(strings),
            json!(times)
        )
    };
    let body = [
        line("s", &["two", "much too long", "three", "one", "also too long", "two"]),
        line("all", &["three", "four"]),
        line("good", &["one"]),
        "{\"metric\":{\"__name__\":\"v\",\"db\":\"x\"},\"values\":[7],\"timestamps\":[1600000100000]}\n".to_string(),
    ];
    let answer = server.post("/api/v1/import", body.concat())?;
    let expected = "5 samples stored, 5 lines or samples refused:\n\
        line 1: field \"s\" of \"n\": 3 of 6 strings are left out: \
        2: a string of 13 bytes, the limit is 8 (influx.max-string-size); \
        1: there are 2 different strings already (influx.max-strings)\n\
        line 2: field \"all\" of \"n\": 2 of 2 strings are left out: \
        2: there are 2 different strings already (influx.max-strings)\n";
    ensure!(answer.status == 400 && answer.text() == expected, "{}", answer.text());
    let found = rows(server, "SELECT good, s FROM n")?;
    let expected = json!([
        [START + 100, "one", "two"],
        [START + 103, null, "one"],
        [START + 105, null, "two"]
    ]);
    ensure!(found == expected, "{found}");
    check(server, "SELECT value FROM v", json!([[START + 100, 7]]));
    let left_out = server.metric("quipu_insert_lossy_total{kind=\"influx_string_dropped\"}")?;
    ensure!(left_out == 7.0, "two of line protocol and five of these, not {left_out}");
    // Who sends a file learns it, and what is there stays.
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), line("s", &["three"]))?;
    let path = file.path().display().to_string();
    let (is_ok, said) = run(server, &["import", &path])?;
    let words = "1 of 1 strings are left out";
    ensure!(!is_ok && said.contains(words) && said.contains("1 request had lines"), "{said}");
    Ok(())
}

/// Old samples name strings that nobody knows any more: answers say so, and no later string takes
/// their place.
#[test]
fn a_lost_dictionary_is_said_and_its_numbers_are_not_given_out_again() -> Result<()> {
    for is_removed in [false, true] {
        let directory = tempfile::tempdir()?;
        let launch = Launch::new(directory.path());
        let server = launch.start()?;
        let old: String = (0..3).map(|row| format!("valve state=\"S{row}\" {row}\n")).collect();
        server.write("/write?db=x&precision=s", old)?;
        server.post("/internal/force_flush", "")?;
        server.stop()?;
        for name in ["schema/records", "schema/records.copy"] {
            let file = directory.path().join(name);
            match is_removed {
                true => std::fs::remove_file(&file)?,
                false => {
                    let mut bytes = std::fs::read(&file)?;
                    bytes[30] ^= 1;
                    std::fs::write(&file, bytes)?;
                }
            }
        }
        let data_dir = format!("--data-dir={}", directory.path().display());
        ensure!(!quipu(&["verify", &data_dir])?.output()?.status.success(), "verify misses it");
        let mut server = launch.start()?;
        server.write("/write?db=x&precision=s", "valve state=\"OK\" 10\n")?;
        // After another start, too: it is said until a repair accepts the loss.
        for _ in 0..2 {
            let path = format!("/query?db=x&epoch=s&q={}", percent("SELECT * FROM valve"));
            let answer = server.get(&path)?;
            assert_eq!(answer.header("x-quipu-partial"), "true", "{}", answer.excerpt());
            let text = answer.text();
            ensure!(text.contains("schema/records") && text.contains("OK"), "{text}");
            let json: Value = serde_json::from_str(&text)?;
            let values = json.pointer("/results/0/series/0/values").context("rows")?;
            let states = values.as_array().context("rows")?.iter().map(|row| row[1].clone());
            let known: Vec<Value> = states.filter(|state| !state.is_null()).collect();
            assert_eq!(known, [json!("OK")], "{text}");
            server = server.restart()?;
        }
        server.stop()?;
    }
    Ok(())
}
