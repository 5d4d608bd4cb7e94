//! `--legacy`: aggregations of an old VictoriaMetrics' samples, whose windows may see both sides of `until`.

use crate::legacy::same;
use anyhow::{Result, ensure};
use e2e::victoria::start_victoria;
use e2e::{Client, Launch, Server, percent};
use rng::Random;
use serde_json::Value;
use std::collections::BTreeMap;
use wire::remote_write::encode::{MillisSample, RequestV1};

/// 2026-08-30 00:00:00 UTC in milliseconds.
const START: i64 = 1_788_048_000_000;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
/// From then on everything is in Quipu.
const UNTIL: i64 = START + 48 * HOUR;
const END: i64 = START + 60 * HOUR;
const HOSTS: u64 = 6;

/// Samples of a host.
type Series = Vec<MillisSample>;

/// Samples every few minutes, on both sides of the border to the millisecond; some are no number, some
/// markers of an end, of which those before the border count nowhere.
fn series(random: &mut Random, host: u64) -> Series {
    let mut samples = BTreeMap::new();
    let mut millis = START + random.below(10 * MINUTE as u64) as i64;
    while millis < END {
        let value = match random.below(40) {
            0 if UNTIL <= millis => f64::NAN,
            1 if UNTIL <= millis => model::stale_marker(),
            _ => random.below(2000) as f64 / 8.0 - 100.0,
        };
        samples.insert(millis, value);
        millis += 1 + random.below(9 * MINUTE as u64) as i64;
    }
    let at_border = [
        (UNTIL - 1, 500.0 + host as f64),
        (UNTIL, if host.is_multiple_of(3) { model::stale_marker() } else { -500.0 - host as f64 }),
        (UNTIL + 1, 7.0 * host as f64),
    ];
    for (idx, (millis, value)) in at_border.into_iter().enumerate() {
        if (host >> idx) & 1 == 0 || host == 5 {
            samples.insert(millis, value);
        }
    }
    samples.into_iter().map(|(millis, value)| MillisSample { millis, value }).collect()
}

fn send(authority: &str, all: &[(u64, Series)]) -> Result<()> {
    let mut request = RequestV1::new();
    for (host, samples) in all {
        let labels = [("host", format!("h{host}")), ("zone", format!("z{}", host % 2))];
        let mut labels: Vec<(&str, &str)> =
            labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
        labels.insert(0, ("__name__", "load"));
        request.series(&labels, samples);
    }
    let body = snap::raw::Encoder::new().compress_vec(request.as_bytes())?;
    let headers = [
        ("content-encoding", "snappy"),
        ("content-type", "application/x-protobuf"),
        ("x-prometheus-remote-write-version", "0.1.0"),
    ];
    let answer = Client::new(authority).post("/api/v1/write", &headers, &body)?;
    ensure!(answer.status == 204 || answer.status == 200, "{}", answer.excerpt());
    Ok(())
}

/// The old server, one that has all, and two that ask: for aggregates, and for samples alone.
struct Stage {
    url: String,
    whole: Server,
    there: Server,
    here: Server,
}

fn write_history(authority: &str, stage: &Stage, random: &mut Random) -> Result<()> {
    let all: Vec<(u64, Series)> = (0..HOSTS).map(|host| (host, series(random, host))).collect();
    let part = |is_wanted: &dyn Fn(&MillisSample) -> bool| -> Vec<(u64, Series)> {
        let some =
            |samples: &Series| samples.iter().filter(|one| is_wanted(one)).copied().collect();
        all.iter().map(|(host, samples)| (*host, some(samples))).collect()
    };
    let old = part(&|one| one.millis < UNTIL);
    send(authority, &old)?;
    // What comes twice is there twice; so are markers of an end, and what comes later and counts no more.
    send(authority, &old[1..2])?;
    let mut more = old.clone();
    for (_, samples) in &mut more {
        let gaps = samples.windows(2).filter(|pair| pair[0].millis + 2 < pair[1].millis);
        let ends: Series = gaps
            .step_by(7)
            .map(|pair| MillisSample { millis: pair[0].millis + 1, value: model::stale_marker() })
            .collect();
        *samples = ends;
        samples.extend(
            (0..200).map(|at| MillisSample { millis: UNTIL + at * 3 * MINUTE, value: 9999.0 }),
        );
    }
    send(authority, &more)?;
    Client::new(authority).get("/internal/force_flush")?;
    send(stage.whole.authority(), &all)?;
    let new = part(&|one| UNTIL <= one.millis);
    send(stage.there.authority(), &new)?;
    send(stage.here.authority(), &new)
}

fn query(random: &mut Random) -> String {
    let mut one = |list: &[&'static str]| list[random.below(list.len() as u64) as usize];
    let series = one(&["sum", "min", "max", "avg", "count", "group"]);
    let by = one(&["", " by (host)", " by (zone)", " by (__name__, host, nope)"]);
    let window = one(&["10m", "1h", "90m", "5h", "1d"]);
    let function = one(&["min", "max", "last", "avg"]);
    let samples =
        one(&["load", "load{host=~\"h[0-3]\"}", "load{zone=\"z1\"}", "load{host=\"h5\"}"]);
    // What came twice weighs twice in a mean.
    let samples = if function == "avg" { "load{host!=\"h1\"}" } else { samples };
    let text = format!("{series}({function}_over_time({samples}[{window}])){by}");
    match one(&["plain", "plain", "plain", "offset", "subquery", "both"]) {
        "offset" => text.replace(&format!("[{window}]"), &format!("[{window}] offset 50m")),
        "subquery" => format!("max_over_time(({text})[3h:11m])"),
        "both" => format!("{text} + {text} / 2"),
        _ => text,
    }
}

/// Rows by their labels.
fn rows(server: &Server, path: &str) -> Result<BTreeMap<String, Value>> {
    let answer = server.get(path)?;
    let json: Value = serde_json::from_slice(&answer.body)?;
    ensure!(json["status"] == "success" && json["isPartial"] != true, "{path}: {json}");
    let rows = json["data"]["result"].as_array().cloned().unwrap_or_default();
    Ok(rows.into_iter().map(|row| (row["metric"].to_string(), row["values"].clone())).collect())
}

fn compare(stage: &Stage, random: &mut Random) -> Result<()> {
    let query = query(random);
    let step = [60, 300, 1800, 3600, 7777][random.below(5) as usize];
    let first = START / 1000 + random.below(40 * 3600) as i64;
    let last = UNTIL / 1000 + random.below(10 * 3600) as i64;
    for dialect in ["promql", "metricsql"] {
        let path = format!(
            "/api/v1/query_range?query={}&start={first}&end={last}&step={step}&dialect={dialect}&nocache=1",
            percent(&query)
        );
        let expected = rows(&stage.whole, &path)?;
        ensure!(!expected.is_empty(), "{path} tells nothing");
        for server in [&stage.there, &stage.here] {
            let found = rows(server, &path)?;
            let is_same = found.len() == expected.len()
                && found.iter().zip(&expected).all(|(a, b)| a.0 == b.0 && same(a.1, b.1));
            ensure!(is_same, "{dialect} {query} {first} {last} {step}:\n{expected:?}\n{found:?}");
        }
    }
    Ok(())
}

fn counts(stage: &Stage) -> Result<(f64, f64)> {
    let of = |name: &str| {
        stage.there.metric(&format!("quipu_legacy_{name}_total{{backend=\"{}\"}}", stage.url))
    };
    Ok((of("aggregates")?, of("samples")?))
}

/// Where no window is over the border all steps before it are made there; with one that is, samples come.
fn check_what_comes(stage: &Stage) -> Result<()> {
    let ask = |first: i64| -> Result<(f64, f64)> {
        let before = counts(stage)?;
        let path = format!(
            "/api/v1/query_range?query={}&start={}&end={}&step=3600&nocache=1",
            percent("max(max_over_time(load[20m])) by (host)"),
            first / 1000,
            (UNTIL + 4 * HOUR) / 1000
        );
        ensure!(stage.there.get(&path)?.status == 200, "{path}");
        let after = counts(stage)?;
        Ok((after.0 - before.0, after.1 - before.1))
    };
    let (made, samples) = ask(START + 40 * HOUR + 30 * MINUTE)?;
    ensure!(made == 1.0 && samples == 0.0, "{made} made, {samples} samples");
    let (made, samples) = ask(START + 40 * HOUR + 10 * MINUTE)?;
    ensure!(made == 0.0 && 100.0 < samples, "one question is enough: {made} {samples}");
    Ok(())
}

#[test]
fn windows_over_the_border_see_both_sides() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (_victoria, authority) = start_victoria(directory.path())?;
    let url = format!("http://{authority}");
    let launch = |name: &str, more: &str| {
        let legacy = format!("url={url} kind=victoriametrics until={}{more}", UNTIL / 1000);
        Launch::new(&directory.path().join(name)).flag("legacy", &legacy).start()
    };
    let whole = Launch::new(&directory.path().join("whole")).start()?;
    let (there, here) = (launch("there", "")?, launch("here", " aggregates=here")?);
    let stage = Stage { url: url.clone(), whole, there, here };
    for seed in rng::seeds(1..2) {
        println!("SEED={seed}");
        let random = &mut Random(seed);
        write_history(&authority, &stage, random)?;
        let before = counts(&stage)?;
        (0..150).try_for_each(|_| compare(&stage, random))?;
        let made = counts(&stage)?.0 - before.0;
        ensure!(5.0 < made, "{made} were made there");
    }
    check_what_comes(&stage)
}
