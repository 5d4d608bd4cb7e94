//! `--legacy kind=influxdb`: old samples of a real InfluxDB in answers of a Quipu that has some of them
//! already, compared with a Quipu to which all lines were written.

use crate::legacy::{alike, data, same};
use anyhow::{Context, Result, ensure};
use e2e::influx::start_influx;
use e2e::{Client, Launch, Server, percent};
use rng::Random;
use serde_json::Value;

/// 2026-08-30 00:00:00 UTC in seconds.
const START: i64 = 1_788_048_000;
const ROWS: i64 = 60;
/// The row from which on everything is in Quipu.
const SWITCH: i64 = 40;
const STEP: i64 = 600;
const NANOS: i64 = 1_000_000_000;

/// Where lines go: the database here, and what is said to InfluxDB.
const PLACES: [(&str, &str); 3] =
    [("x", "db=x"), ("x.long", "db=x&rp=long"), ("my db", "db=my%20db")];

/// Tags of the series of a measurement, as line protocol says them.
const TAGS: [&str; 6] = [
    ",host=a,zone=é",
    ",host=b",
    ",host=it's\\ \"q\"\\x,zone=a/b",
    ",host=[a-z]+.*,db=own",
    ",zone=$1\\,\\=",
    "",
];

/// A line of a series at some nanosecond. `cpu` with a field `usage_user` and `cpu_usage` with a field
/// `user` are told apart by the catalog alone.
fn line(row: i64, series: usize, seed: i64) -> String {
    line_at(row, row, series, seed)
}

/// The values of a row at the time of another one.
fn line_at(row: i64, at: i64, series: usize, seed: i64) -> String {
    let (tags, at) = (TAGS[series % TAGS.len()], (START + at * STEP) * NANOS);
    // Some are within the same millisecond, some at whole ones.
    let at = at + [0, 3, 1_000_000, 999][series % 4];
    let (v, n) = (row as f64 * 1.5 + series as f64 / 8.0 + seed as f64, row * 30 + seed);
    match series / TAGS.len() {
        0 => format!(
            "cpu{tags} usage_user={v},n={n}i,on={},s=\"s {}\\\"\\\\\" {at}\n",
            row % 2 == 0,
            row % 5
        ),
        1 => format!("cpu_usage{tags} user={v} {at}\n"),
        _ => format!("we\\ ird\\,\"m{tags} f\\ \"i={v},x={n}i {at}\n"),
    }
}

struct Stage {
    whole: Server,
    half: Server,
    authority: String,
    influx: e2e::Program,
}

fn ask_influx(influx: &mut Client, question: &str) -> Result<()> {
    let answer = influx.post(&format!("/query?q={}", percent(question)), &[], b"")?;
    ensure!(answer.status == 200 && !answer.excerpt().contains("error"), "{}", answer.excerpt());
    Ok(())
}

/// Writes a history to all three; of what is old, `half` has what the dice say.
fn stage(directory: &std::path::Path, random: &mut Random) -> Result<Stage> {
    let (program, authority) = start_influx(directory)?;
    let mut influx = Client::new(&authority);
    for name in ["x", "my db"] {
        ask_influx(&mut influx, &format!("CREATE DATABASE \"{name}\""))?;
    }
    ask_influx(&mut influx, "CREATE RETENTION POLICY long ON x DURATION 0s REPLICATION 1")?;
    let whole = Launch::new(&directory.join("whole")).start()?;
    let until = START + SWITCH * STEP;
    let legacy = format!("url=http://{authority} kind=influxdb until={until}");
    let launch = Launch::new(&directory.join("half")).flag("legacy", &legacy);
    let mut copied_to_half = Vec::new();
    for (seed, (label, place)) in (0..).zip(PLACES) {
        let (mut old, mut all, mut copied) = (String::new(), String::new(), String::new());
        for series in 0..3 * TAGS.len() {
            let share = random.below(3);
            for row in 0..ROWS {
                let text = line(row, series, seed);
                // What the old one still gets after that counts no more.
                let is_old = row < SWITCH;
                let theirs = if is_old { row } else { row + 1000 };
                old += &line_at(theirs, row, series, seed);
                all += &text;
                if !is_old || random.below(2) < share {
                    copied += &text;
                }
            }
        }
        let answer = influx.post(&format!("/write?{place}"), &[], old.as_bytes())?;
        ensure!(answer.status == 204, "{place}: {}", answer.excerpt());
        whole.write(&format!("/write?db={}", percent(label)), all)?;
        copied_to_half.push((label, copied));
    }
    let half = launch.start()?;
    for (label, copied) in copied_to_half {
        half.write(&format!("/write?db={}", percent(label)), copied)?;
    }
    Ok(Stage { whole, half, authority, influx: program })
}

const SELECTORS: [&str; 15] = [
    "{host=~\"it's \\\"q\\\"\\\\\\\\x.*\"}",
    "cpu_usage_user",
    "cpu_usage_user{host=\"a\"}",
    "cpu_n{db=\"x\"}",
    "cpu_n{db=~\"x.*\",host=~\"a|b\"}",
    "cpu_on{host!=\"a\"}",
    "{__name__=~\"cpu.*\",host=~\"it's.*\"}",
    "{__name__=~\"cpu_(n|on)\",zone=\"\"}",
    "{__name__=\"we ird,\\\"m_f \\\"i\"}",
    "{__name__=~\"we ird.+_x\",host=\"it's \\\"q\\\"\\\\x\"}",
    "{host=\"[a-z]+.*\"}",
    "{zone=~\"a/.+|\\\\$1,=\",__name__!=\"cpu_n\"}",
    "cpu_usage_user{host=~\"(?i)A|B\"}",
    "{__name__=~\".*_user\",db=\"my db\",host=\"\"}",
    "{db=~\"my.*\",zone!~\"a.*|é\"}",
];

fn promql(stage: &Stage, random: &mut Random) -> Result<()> {
    let Stage { whole, half, .. } = stage;
    let wraps: [fn(&str) -> String; 5] = [
        |s| s.to_string(),
        |s| format!("sum by (db, host) (last_over_time({s}[1h]))"),
        |s| format!("max by (zone) ({s} offset 30m)"),
        |s| format!("count_over_time({s}[2h])"),
        |s| format!("rate({s}[40m])"),
    ];
    for selector in SELECTORS {
        for _ in 0..2 {
            // Those of several metrics keep their names, or lose them all.
            let count = if selector.starts_with('{') { 3 } else { 5 };
            let query = wraps[random.below(count) as usize](selector);
            let first = random.below(SWITCH as u64) as i64;
            let last = first + 1 + random.below(ROWS as u64) as i64;
            let (start, end) = (START + first * STEP, START + last * STEP);
            let query = percent(&query);
            let path =
                format!("/api/v1/query_range?query={query}&start={start}&end={end}&step=300");
            let (expected, _) = data(&whole.get(&path)?)?;
            let (found, is_partial) = data(&half.get(&path)?)?;
            ensure!(!is_partial && same(&expected, &found), "{path}:\n{expected}\n{found}");
        }
        let time = format!("start={START}&end={}", START + ROWS * STEP);
        alike(whole, half, &format!("/api/v1/series?match[]={}&{time}", percent(selector)))?;
        let names = format!("/api/v1/labels?match[]={}&{time}", percent(selector));
        alike(whole, half, &names)?;
        let values = format!("/api/v1/label/db/values?match[]={}&{time}", percent(selector));
        alike(whole, half, &values)?;
    }
    for path in [
        "labels?",
        "label/host/values?",
        "label/zone/values?",
        "label/__name__/values?",
        "label/db/values?",
    ] {
        alike(whole, half, &format!("/api/v1/{path}&start={START}&end={}", START + ROWS * STEP))?;
    }
    ensure!(whole.export("{__name__!=\"\"}")? == half.export("{__name__!=\"\"}")?, "exports");
    Ok(())
}

const STATEMENTS: [&str; 15] = [
    "SELECT * FROM cpu",
    "SELECT usage_user, n FROM cpu GROUP BY *",
    "SELECT s, \"on\" FROM cpu WHERE host = 'a'",
    "SELECT n FROM cpu WHERE s = 's 3\"\\\\'",
    "SELECT mean(usage_user), count(n) FROM cpu WHERE time >= 1788048000s AND time < 1788084000s GROUP BY time(30m), host",
    "SELECT max(\"user\") FROM cpu_usage WHERE zone =~ /a/ GROUP BY host",
    "SELECT * FROM \"we ird,\\\"m\" WHERE host = 'it\\'s \"q\"\\\\x' OR zone = 'a/b'",
    "SELECT last(s) FROM cpu GROUP BY host",
    "SELECT count(s) FROM cpu",
    "SHOW MEASUREMENTS",
    "SHOW FIELD KEYS",
    "SHOW TAG KEYS FROM cpu",
    "SHOW TAG VALUES FROM cpu_usage WITH KEY = host",
    "SHOW SERIES",
    "SHOW DATABASES",
];

fn influxql(stage: &Stage) -> Result<()> {
    for statement in STATEMENTS {
        for (database, _) in PLACES {
            let path = format!("/query?db={}&epoch=ns&q={}", percent(database), percent(statement));
            let read = |server: &Server| -> Result<Value> {
                let response = server.get(&path)?;
                serde_json::from_slice(&response.body).context(response.excerpt())
            };
            let (expected, found) = (read(&stage.whole)?, read(&stage.half)?);
            ensure!(same(&expected, &found), "{database} {statement}:\n{expected}\n{found}");
            ensure!(
                expected.to_string().contains("values"),
                "{statement} tells nothing: {expected}"
            );
        }
    }
    Ok(())
}

#[test]
fn old_samples_of_an_influxdb_are_in_every_answer() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut random = Random::seeded(7);
    let stage = stage(directory.path(), &mut random)?;
    promql(&stage, &mut random)?;
    influxql(&stage)?;
    let url = format!("http://{}", stage.authority);
    let Stage { whole, half, influx, .. } = stage;
    let ok = format!("quipu_legacy_requests_total{{backend=\"{url}\",outcome=\"ok\"}}");
    let before = half.metric(&ok)?;
    ensure!(0.0 < before, "it was asked");
    for path in [
        format!("/api/v1/query?query=cpu_n&time={}", START + (SWITCH + 1) * STEP),
        format!("/api/v1/query?query=cpu_n&time={START}&nolegacy=1"),
        format!("/query?db=x&q={}", percent("SELECT n FROM cpu WHERE time >= 1788072000s")),
    ] {
        half.get(&path)?;
    }
    ensure!(half.metric(&ok)? == before, "what is new asks nobody");
    drop(influx);
    // What is here is told, and that it is not all.
    let path =
        format!("/api/v1/query?query=count_over_time(cpu_n%5B12h%5D)&time={}", START + ROWS * STEP);
    let (found, is_partial) = data(&half.get(&path)?)?;
    ensure!(is_partial && found["result"].as_array().is_some_and(|all| !all.is_empty()), "{found}");
    let answer = half.get(&format!("/query?db=x&q={}", percent("SELECT count(n) FROM cpu")))?;
    let text = String::from_utf8_lossy(&answer.body);
    ensure!(text.contains("gave no whole answer"), "{text}");
    half.get(&format!("{path}&nolegacy=1"))?;
    // A start without it.
    let half = half.restart()?;
    let end = START + (ROWS - 1) * STEP + 60;
    alike(&whole, &half, &format!("/api/v1/query?query=cpu_n&time={end}"))?;
    half.stop()
}

/// A server that wants a token, as a version 2; here a Quipu, which answers the same.
#[test]
fn a_server_with_a_token_is_asked_for_some_of_its_databases() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let old = Launch::new(&directory.join("old")).flag("bearer-token", "secret").start()?;
    let token = ("authorization", "Token secret");
    let text: String = (0..SWITCH).map(|row| line(row, 0, 0) + &line(row, 8, 0)).collect();
    for database in ["x", "my%20db", "other"] {
        let written = old.post_with(&format!("/write?db={database}"), &[token], text.clone())?;
        ensure!(written.status == 204, "{}", written.excerpt());
    }
    let file = directory.join("token");
    std::fs::write(&file, "secret\n")?;
    let rule =
        format!("url={} kind=influxdb until={} database=x", old.url(), START + SWITCH * STEP);
    let with = |name: &str, more: &str| {
        let rule = format!("{rule} {more}");
        Launch::new(&directory.join(name)).flag("legacy", &rule).start()
    };
    let query = format!(
        "/api/v1/query?query=sum(count_over_time(cpu_n%5B12h%5D))+by+(db)&time={}",
        START + ROWS * STEP
    );
    let server = with("good", &format!("database=my%20db bearer-token-file={}", file.display()))?;
    let (found, is_partial) = data(&server.get(&query)?)?;
    let text = found["result"].to_string();
    ensure!(!is_partial && text.contains("\"my db\"") && text.contains("\"x\""), "{text}");
    ensure!(text.matches("\"40\"").count() == 2 && !text.contains("other"), "{text}");
    server.stop()?;
    for (more, words) in [
        (String::new(), "401"),
        (
            format!("bearer-token-file={} retention-policy=nope", file.display()),
            "no retention policy is called",
        ),
    ] {
        let server = with("bad", &more)?;
        let answer = server.get(&query)?;
        let text = String::from_utf8_lossy(&answer.body);
        ensure!(
            answer.status == 200 && text.contains("isPartial") && text.contains(words),
            "{text}"
        );
        ensure!(!text.contains("secret"), "{text}");
        server.stop()?;
    }
    Ok(())
}
