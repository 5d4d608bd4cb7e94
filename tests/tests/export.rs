//! `quipu export` in the formats of others, read by those others: promtool, Prometheus, VictoriaMetrics,
//! and a second Quipu. Values and names are ugly on purpose.

use anyhow::{Context, Result, ensure};
use e2e::launch::quipu;
use e2e::programs::run;
use e2e::{Client, Launch, Program, Prometheus, Server, free_port, poll};
use rng::Random;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
/// 2026-08-30 00:00:00 UTC in milliseconds.
const START: i64 = 1_788_048_000_000;
/// Series that have one sample.
const SINGLES: i64 = 10_000;

/// What the command said.
struct Said {
    code: i32,
    stdout: Vec<u8>,
    stderr: String,
}

fn export(server: &Server, arguments: &[&str]) -> Result<Said> {
    let mut command = quipu(&["export"])?;
    let output = command.args(arguments).args(["--url", server.url()]).output()?;
    let code = output.status.code().context("a signal")?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(Said { code, stdout: output.stdout, stderr })
}

fn must(server: &Server, arguments: &[&str]) -> Result<Said> {
    let said = export(server, arguments)?;
    ensure!(said.code == 0, "{arguments:?}: {}", said.stderr);
    Ok(said)
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A line of JSON.
fn line(metric: Value, values: Vec<Value>, times: Vec<i64>) -> String {
    format!("{}\n", json!({ "metric": metric, "values": values, "timestamps": times }))
}

/// Numbers, of which some are none.
fn any_value(random: &mut Random) -> Value {
    match random.below(12) {
        0 => json!("Infinity"),
        1 => json!("-Infinity"),
        2 => Value::Null,
        3 => json!("NaN:7ff0000000000002"),
        4 => json!(-0.00125),
        _ => json!(random.below(100_000) as f64 / 100.0),
    }
}

/// Writes history: series of some thousand samples over three days, ugly labels, long texts, one sample a
/// series, times before 1970.
fn fill(server: &Server, seed: u64) -> Result<()> {
    let mut random = Random::seeded(seed);
    let mut lines = String::new();
    let long = "x".repeat(3000);
    let ugly = [
        json!({"__name__": "temp_celsius", "host": "a b,c=d", "quoted": "\"\\x\""}),
        json!({"__name__": "temp_celsius", "host": "é\u{1F600}", "lines": "a\nb"}),
        json!({"__name__": "temp_celsius", "host": "trailing\\", "empty": ""}),
        json!({"__name__": "long:name_total", "long": long}),
        json!({"__name__": "plain"}),
        json!({"__name__": "plain", "a": "\u{1}\u{2}\u{7f}"}),
    ];
    lines += &line(json!({"__name__": "we.ird", "a-b": "c"}), vec![json!(0.1)], vec![START]);
    for metric in ugly {
        let mut at = START - 3 * 86_400_000 + random.below(60_000) as i64;
        let (mut values, mut times) = (Vec::new(), Vec::new());
        for _ in 0..2000 {
            at += 1 + random.below(260_000) as i64;
            values.push(any_value(&mut random));
            times.push(at);
        }
        lines += &line(metric, values, times);
    }
    // Numbers of one size each: VictoriaMetrics has one power of ten for some thousand samples.
    for (name, number) in
        [("huge", 1e300), ("tiny", -1.25e-200), ("large", 4_503_599_627_370_497.0)]
    {
        let times = (0..100).map(|at| START + at * 1000 + 1).collect();
        let values = (0..100).map(|at| json!(number * f64::from(at % 7 + 1))).collect();
        lines += &line(json!({"__name__": name}), values, times);
    }
    for single in 0..SINGLES {
        let metric = json!({"__name__": "single", "id": format!("{single}")});
        lines += &line(metric, vec![json!(single)], vec![START + single]);
    }
    let before = json!({"__name__": "before_1970", "job": "x"});
    lines += &line(before, vec![json!(1), json!(2.5)], vec![-86_400_001, -5]);
    let answer = server.post("/api/v1/import", lines)?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    // What things are is known by exposition text alone.
    let text = "# HELP temp_celsius How \"warm\"\n# TYPE temp_celsius gauge\n# UNIT temp_celsius celsius\n\
                # TYPE long:name counter\n# EOF\n";
    let headers = [("content-type", "application/openmetrics-text; version=1.0.0")];
    let answer = server.post_with("/api/v1/import/prometheus", &headers, text)?;
    ensure!(answer.status < 300, "{}", answer.excerpt());
    Ok(())
}

/// Histograms with whole counts and others, beside numbers of the same series.
fn fill_histograms(server: &Server) -> Result<()> {
    let mut lines = String::new();
    for (name, unit) in [("whole_seconds", 1.0), ("half_seconds", 0.5)] {
        let histogram = |at: i64| {
            let count = |of: i64| json!((of * at) as f64 * unit);
            json!({"schema": 2, "zero_threshold": 0.001, "zero_count": count(1), "count": count(10),
                "sum": at as f64 * 2.5, "positive": [[-1, count(2)], [0, count(3)], [5, count(1)]],
                "negative": [[2, count(3)]]})
        };
        let all: Vec<Value> = (1..400).map(histogram).collect();
        let times: Vec<i64> = (1..400).map(|at| START + at * 15_000).collect();
        let metric = json!({"__name__": name, "job": "h"});
        let line = json!({"metric": metric, "histograms": all, "histogram_timestamps": times});
        lines += &format!("{line}\n");
    }
    let floats = (0..130).map(|at| json!(at)).collect();
    let times = (0..130).map(|at| START - 900_007 + at * 15_000).collect();
    lines += &line(json!({"__name__": "whole_seconds", "job": "h"}), floats, times);
    let answer = server.post("/api/v1/import", lines)?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    Ok(())
}

/// Samples by series and time, as bits of their numbers; NaNs are one but for markers of an end.
type Samples = BTreeMap<(String, i64), u64>;

/// All numbers of an export in JSON lines, of VictoriaMetrics, too, whose infinite numbers are no JSON.
fn samples(text: &str) -> Result<Samples> {
    let mut found = Samples::new();
    for line in text.lines() {
        let (labels, samples) = wire::json_lines::read_line(line.as_bytes())?;
        let pairs = labels.iter().map(|(name, value)| (name.to_string(), json!(value)));
        let labels = e2e::answers::labels(&Value::Object(pairs.collect()));
        for one in samples {
            found.insert((labels.clone(), one.millis), bits(one.value));
        }
    }
    Ok(found)
}

fn bits(value: f64) -> u64 {
    match value.is_nan() && !model::is_stale_marker(value) {
        true => f64::NAN.to_bits(),
        false => value.to_bits(),
    }
}

fn all_of(server: &Server) -> Result<Samples> {
    let answer = server.get("/api/v1/export?match[]=%7B__name__!%3D%22%22%7D&start=-1000000")?;
    let mut found = samples(&answer.text())?;
    // What the server measures of itself goes on while the test runs.
    found.retain(|(labels, _), _| !labels.contains("quipu_"));
    Ok(found)
}

fn start(directory: &Path) -> Result<Server> {
    Launch::new(directory).flag("self-scrape-interval", "0s").start()
}

fn promtool(arguments: &[&str]) -> Result<String> {
    let output = run("promtool", arguments)?;
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "promtool {arguments:?}: {out}{error}");
    Ok(out.into_owned())
}

/// What `promtool tsdb dump` prints of a directory: labels, a number and a time in each line.
fn dumped(directory: &Path) -> Result<Samples> {
    let text = promtool(&["tsdb", "dump", &shown(directory)])?;
    let mut found = Samples::new();
    for line in text.lines() {
        let (labels, rest) = line.rsplit_once("} ").with_context(|| line.to_string())?;
        let (value, time) = rest.split_once(' ').with_context(|| line.to_string())?;
        let Ok(number) = value.parse::<f64>() else { continue };
        let labels = format!("{labels}}}");
        let labels = plain(&labels).with_context(|| labels.clone())?;
        let bits = if number.is_nan() { f64::NAN.to_bits() } else { number.to_bits() };
        found.insert((labels, time.parse()?), bits);
    }
    Ok(found)
}

/// Labels as promtool prints them, as the tests' other labels are.
fn plain(text: &str) -> Result<String> {
    let mut map = serde_json::Map::new();
    let mut rest = text.trim_start_matches('{').trim_end_matches('}');
    while !rest.is_empty() {
        let (name, behind) = rest.split_once('=').context("no =")?;
        let end = closing(behind).context("no closing quote")?;
        map.insert(name.trim_start_matches(", ").to_string(), json!(unquoted(&behind[1..end])?));
        rest = &behind[end + 1..];
    }
    Ok(e2e::answers::labels(&Value::Object(map)))
}

/// Where a text in quotes ends.
fn closing(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().skip(1).find_map(|(at, letter)| {
        let ends = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        ends.then_some(at)
    })
}

/// A text as Go quotes it.
fn unquoted(text: &str) -> Result<String> {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next().context("a backslash at the end")? {
            'n' => out.push('\n'),
            kind @ ('x' | 'u') => {
                let count = if kind == 'x' { 2 } else { 4 };
                let digits: String = letters.by_ref().take(count).collect();
                out.push(char::from_u32(u32::from_str_radix(&digits, 16)?).context("no letter")?);
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

/// Of all samples those that a format has; of NaNs that are no marks there is one.
fn kept(all: &Samples, takes: impl Fn(&str, f64, i64) -> bool) -> Samples {
    let one = |((labels, time), bits): (&(String, i64), &u64)| {
        let value = f64::from_bits(*bits);
        takes(labels, value, *time).then(|| ((labels.clone(), *time), *bits))
    };
    all.iter().filter_map(one).collect()
}

fn ends(value: f64) -> bool {
    model::is_stale_marker(value)
}

fn check_same(what: &str, found: &Samples, expected: &Samples) -> Result<()> {
    for (key, bits) in found {
        let there = expected.get(key);
        ensure!(there == Some(bits), "{what}: {key:?} is {bits:x}, expected {there:x?}");
    }
    let missing = expected.keys().find(|key| !found.contains_key(*key));
    ensure!(missing.is_none(), "{what}: {missing:?} is missing");
    Ok(())
}

#[test]
fn promtool_reads_openmetrics() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory.path().join("data"))?;
    fill(&server, 1)?;
    fill_histograms(&server)?;
    let file = directory.path().join("all.openmetrics");
    let said = must(&server, &["--format", "openmetrics", "-o", &shown(&file)])?;
    ensure!(said.stderr.contains("native histograms, which OpenMetrics has none of: 798"));
    ensure!(said.stderr.contains("marks of a series' end"), "{}", said.stderr);
    ensure!(said.stderr.contains("OpenMetrics 1.0 does not know (--quoted-names): 1"));
    let text = std::fs::read_to_string(&file)?;
    ensure!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1);
    for line in [
        "# HELP temp_celsius How \\\"warm\\\"",
        "# TYPE temp_celsius gauge",
        "# UNIT temp_celsius celsius",
        "# TYPE long:name counter",
        "# TYPE single unknown",
    ] {
        ensure!(text.contains(&format!("{line}\n")), "no {line}");
    }
    let heads = text.lines().filter(|line| line.starts_with("# TYPE")).count();
    let names: BTreeSet<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(['{', ' ']).next().unwrap_or_default())
        .collect();
    ensure!(heads == names.len(), "a family begins once");
    let blocks = directory.path().join("blocks");
    std::fs::create_dir_all(blocks.join("wal"))?;
    promtool(&["tsdb", "create-blocks-from", "openmetrics", &shown(&file), &shown(&blocks)])?;
    // It makes no block of what is before the first two hours before 1970.
    let expected = kept(&all_of(&server)?, |labels, value, time| {
        !ends(value) && -7_200_000 < time && !labels.starts_with("we.ird")
    });
    ensure!(18_000 < expected.len(), "{}", expected.len());
    check_same("promtool", &dumped(&blocks)?, &expected)?;
    // The same on standard output, and names in quotes, which another Quipu reads.
    let quoted = must(&server, &["--format", "openmetrics", "--quoted-names"])?;
    let other = start(&directory.path().join("other"))?;
    let headers = [("content-type", "application/openmetrics-text; version=1.0.0")];
    let answer = other.post_with("/api/v1/import/prometheus", &headers, &quoted.stdout)?;
    ensure!(answer.status < 300, "{}", answer.excerpt());
    let expected = kept(&all_of(&server)?, |_, value, _| !ends(value));
    check_same("a Quipu", &all_of(&other)?, &expected)?;
    other.stop()?;
    server.stop()
}

#[test]
fn prometheus_reads_blocks() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory.path().join("data"))?;
    fill(&server, 2)?;
    fill_histograms(&server)?;
    // Where Prometheus that is started on it keeps its data.
    let blocks = directory.path().join("prometheus");
    let place = shown(&blocks);
    let said = must(&server, &["--format", "prometheus-blocks", "-o", &place])?;
    ensure!(said.stderr.is_empty(), "nothing is left out: {}", said.stderr);
    let listed = promtool(&["tsdb", "list", &place])?;
    ensure!(listed.lines().count() == 8, "{listed}");
    for block in listed.lines().skip(1) {
        let ulid = block.split_whitespace().next().context("no block")?;
        let told = promtool(&["tsdb", "analyze", &place, ulid])?;
        ensure!(told.contains("Series:") && told.contains("Label pairs"), "{told}");
    }
    let one_nan = |all: Samples| -> Samples {
        let one = |bits| if f64::from_bits(bits).is_nan() { f64::NAN.to_bits() } else { bits };
        all.into_iter().map(|(key, bits)| (key, one(bits))).collect()
    };
    // Of a series promtool prints what is before the first histogram.
    let is_mixed = |key: &(String, i64)| key.0.starts_with("whole_seconds");
    let mut expected = one_nan(all_of(&server)?);
    expected.retain(|key, _| !is_mixed(key));
    ensure!(20_000 < expected.len(), "{}", expected.len());
    let mut found = dumped(&blocks)?;
    found.retain(|key, _| !is_mixed(key));
    check_same("promtool", &found, &expected)?;

    // Another Quipu reads them, too: all bits and all histograms.
    let other = start(&directory.path().join("other"))?;
    let mut command = quipu(&["migrate", "prometheus-blocks", &place, "--url", other.url()])?;
    let output = command.current_dir(directory.path()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    check_same("a Quipu", &all_of(&other)?, &all_of(&server)?)?;
    ensure!(histograms(&other)? == histograms(&server)?, "histograms differ");
    other.stop()?;

    let prometheus = Prometheus::start(
        directory.path(),
        &["--storage.tsdb.retention.time=100y", "--enable-feature=native-histograms"],
        |_| "global: {scrape_interval: 1h}\n".to_string(),
    )?;
    check_answers(&server, &prometheus)?;
    server.stop()
}

/// The lines of histograms. Whether a counter was reset is another thing at the beginning of a chunk.
fn histograms(server: &Server) -> Result<Vec<String>> {
    let text = server.get("/api/v1/export?match[]=%7Bjob%3D%22h%22%7D")?.text();
    let lines = text.lines().map(|line| line.replace(",\"reset_hint\":\"no_reset\"", ""));
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    ensure!(lines.len() == 3, "{} lines", lines.len());
    Ok(lines)
}

/// Both answer alike.
fn check_answers(server: &Server, prometheus: &Prometheus) -> Result<()> {
    // Prometheus 2 takes a sample that is five minutes old, which no sample is then.
    let late = START / 1000 + 13;
    for query in [
        "count({__name__!=\"\"})",
        "count by (__name__) ({__name__!=\"\"})",
        "sum(single)",
        "plain",
        "temp_celsius",
        "max_over_time({long!=\"\"}[3h])",
        "count_over_time({a=\"\\u0001\\u0002\\x7f\"}[1d])",
        "histogram_fraction(0, 1, whole_seconds)",
        // Of half_seconds, as of all float counts, Prometheus 2.42 has no right rates.
        "histogram_sum(rate(whole_seconds[5m]))",
        "histogram_count(whole_seconds) + histogram_sum(half_seconds)",
    ] {
        for (start, end, step) in [(late - 250_000, late + 8000, 1700), (late, late + 600, 60)] {
            let path = format!(
                "/api/v1/query_range?query={}&start={start}&end={end}&step={step}",
                e2e::answers::percent(query)
            );
            let (here, there) = (server.get(&path)?.matrix()?, prometheus.get(&path)?.matrix()?);
            ensure!(here == there, "{query} from {start}: {here:?}\n{there:?}");
            // Numbers and histograms have no rate together.
            let is_late = start == late && !query.contains("rate");
            ensure!(!is_late || !here.is_empty() || query.contains("long"), "{query}: nothing");
        }
    }
    let before = "/api/v1/query?query=before_1970&time=0";
    ensure!(prometheus.get(before)?.vector()?.len() == 1, "before 1970");
    ensure!(server.get(before)?.vector()? == prometheus.get(before)?.vector()?);
    let series = "/api/v1/series?match[]=single&start=0";
    let count = |data: &Value| data.as_array().map(Vec::len);
    let all = usize::try_from(SINGLES)?;
    ensure!(count(&prometheus.get(series)?.data()?) == Some(all), "series");
    let values = "/api/v1/label/host/values?start=0";
    ensure!(server.get(values)?.data()? == prometheus.get(values)?.data()?, "values");
    Ok(())
}

#[test]
fn victoriametrics_takes_the_native_format() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory.path().join("data"))?;
    fill(&server, 3)?;
    let authority = format!("127.0.0.1:{}", free_port()?);
    let arguments = [
        format!("-storageDataPath={}", directory.path().join("victoria").display()),
        format!("-httpListenAddr={authority}"),
        "-retentionPeriod=100y".to_string(),
    ];
    let log = directory.path().join("victoria.log");
    let _program = Program::start("victoria-metrics", &arguments, &log)?;
    let mut victoria = Client::new(&authority);
    poll("victoria-metrics", PATIENCE, || {
        ensure!(Client::new(&authority).get("/health")?.status == 200, "not ready");
        Ok(())
    })?;
    let file = directory.path().join("all.native");
    // Debian's is of 1.79.
    let format = ["--format", "victoriametrics-native", "--older-victoriametrics"];
    let said = must(&server, &[&format[..], &["-o", &shown(&file)]].concat())?;
    ensure!(said.stderr.contains("samples before 1970, which VictoriaMetrics does not take: 2"));
    let bytes = std::fs::read(&file)?;
    let answer = victoria.post("/api/v1/import/native", &[], &bytes)?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    victoria.get("/internal/force_flush")?;
    let answer = victoria.get("/api/v1/export?match[]=%7B__name__!%3D%22%22%7D&start=0")?;
    // Its export has neither marks nor infinite numbers, and keeps some 15 digits.
    let rounded = |all: Samples| -> BTreeMap<(String, i64), String> {
        let text = |bits| format!("{:.11e}", f64::from_bits(bits));
        all.into_iter().map(|(key, bits)| (key, text(bits))).collect()
    };
    let takes = |_: &str, value: f64, time: i64| value.is_finite() && 0 <= time;
    let found = rounded(kept(&samples(&answer.text())?, takes));
    let expected = rounded(kept(&all_of(&server)?, takes));
    ensure!(18_000 < expected.len(), "{}", expected.len());
    for (key, value) in &expected {
        ensure!(found.get(key) == Some(value), "{key:?}: {value}, there {:?}", found.get(key));
    }
    ensure!(found.len() == expected.len());
    let ended = victoria.get(&e2e::answers::instant_path(
        "count(count_over_time({__name__!=\"\"}[30d]))",
        START as f64 / 1e3 + 100.0,
    ))?;
    ensure!(ended.vector()?.values().next() == Some(&format!("{}", SINGLES + 10)));
    // What VictoriaMetrics exports comes back, and so does what the server answers itself.
    let ask = "/api/v1/export/native?match[]=%7B__name__!%3D%22%22%7D&start=0";
    for (kind, bytes) in [
        ("a VictoriaMetrics", victoria.get(ask)?.body),
        ("a Quipu", server.get(ask)?.body),
        ("an older Quipu", server.get(&format!("{ask}&format=older"))?.body),
    ] {
        let other = start(&directory.path().join(kind.replace(' ', "-")))?;
        let answer = other.post("/api/v1/import/native", &bytes)?;
        ensure!(answer.status == 204, "{kind}: {}", answer.excerpt());
        let found = rounded(kept(&all_of(&other)?, takes));
        ensure!(found == expected, "{kind}: {} and {}", found.len(), expected.len());
        let bad = other.post("/api/v1/import/native", &bytes[..bytes.len() - 3])?;
        ensure!(bad.status == 400 && bad.text().contains("ends within"), "{}", bad.excerpt());
        other.stop()?;
    }
    let answer = victoria.post(
        "/api/v1/import/native",
        &[],
        &server.get(&format!("{ask}&format=older"))?.body,
    )?;
    ensure!(answer.status == 204, "{}", answer.excerpt());
    server.stop()
}

#[test]
fn line_protocol_goes_back_in() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory.path().join("data"))?;
    fill(&server, 4)?;
    let file = directory.path().join("all.influx");
    let said = must(&server, &["--format", "influx", "--influx-split", "-o", &shown(&file)])?;
    for words in [
        "NaNs, which line protocol",
        "infinite numbers",
        "marks of a series' end",
        "a newline in a name or label: 2000",
        "a name or label that ends in \\, or has one before , = or a space: 2000",
    ] {
        ensure!(said.stderr.contains(words), "{}", said.stderr);
    }
    let other = start(&directory.path().join("other"))?;
    other.write("/write", std::fs::read(&file)?)?;
    let takes = |labels: &str, value: f64, _: i64| {
        value.is_finite() && !labels.contains("lines=") && !labels.contains("trailing")
    };
    let expected: Samples = kept(&all_of(&server)?, takes)
        .into_iter()
        .map(|((labels, time), bits)| {
            // A name without _ has no place for a field but behind it.
            let (name, rest) = labels.split_once('{').unwrap_or_default();
            let field = if name.contains('_') { "" } else { "_value" };
            ((format!("{name}{field}{{{rest}"), time), bits)
        })
        .collect();
    check_same("a Quipu", &all_of(&other)?, &expected)?;
    let said = must(&server, &["--format", "influx", "--match", "plain", "--end", "now"])?;
    let text = String::from_utf8(said.stdout)?;
    ensure!(text.lines().all(|line| line.starts_with("plain") && line.contains(" value=")));
    other.stop()?;
    server.stop()
}

#[test]
fn what_breaks_off_has_no_name_and_goes_on() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory.path().join("data"))?;
    fill(&server, 5)?;
    let full = quipu(&["export", "--format", "openmetrics", "--url", server.url()])?
        .stdout(std::fs::File::create("/dev/full")?)
        .output()?;
    let words = String::from_utf8_lossy(&full.stderr).into_owned();
    ensure!(!full.status.success() && words.contains("No space left"), "{words}");
    // A file may have no more than some kilobytes: whoever writes more is killed.
    for (format, name) in [
        ("openmetrics", "a"),
        ("influx", "b"),
        ("victoriametrics-native", "c"),
        ("prometheus-blocks", "d"),
    ] {
        let path = directory.path().join(name);
        cut_off(&server, &format!("--format {format} -o {}", path.display()))?;
        let whole: Vec<String> = blocks_in(&path);
        ensure!(!path.is_file() && whole.len() < 7, "{format}: {whole:?}");
        must(&server, &["--format", format, "-o", &shown(&path)])?;
        ensure!(!path.with_extension("progress").exists());
        if format == "prometheus-blocks" {
            ensure!(blocks_in(&path).len() == 7);
            let left = std::fs::read_dir(&path)?.count();
            ensure!(left == 8, "blocks and an empty log, {left}");
        } else {
            let straight = must(&server, &["--format", format])?;
            let cut = std::fs::read(&path)?;
            // Series stand as the store has them, which a flush may change meanwhile. The head of the
            // native format says until when, which is later then.
            let (straight, cut) = (sorted_lines(&straight.stdout), sorted_lines(&cut));
            let (one, other) = (straight.len(), cut.len());
            let is_same = straight == cut;
            ensure!(
                is_same || format == "victoriametrics-native",
                "{format} differs: {one} lines, {other} of the one that was cut"
            );
        }
    }
    let used = export(&server, &["--format", "prometheus-blocks", "-o", &shown(directory.path())])?;
    ensure!(used.code == 1 && used.stderr.contains("not empty"), "{}", used.stderr);
    let odd = ["--format", "prometheus-blocks", "-o", "x", "--block-duration", "3h"];
    let odd = export(&server, &odd)?;
    ensure!(odd.code == 1 && odd.stderr.contains("a multiple of 2h"), "{}", odd.stderr);
    server.stop()
}

fn sorted_lines(text: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

fn joined<'a>(some: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [some, more].concat()
}

/// Cuts an export off after a hundred kilobytes.
fn cut_off(server: &Server, arguments: &str) -> Result<()> {
    let binary = e2e::launch::binary()?;
    let (binary, url) = (binary.display(), server.url());
    let script =
        format!("ulimit -c 0; ulimit -f 100; exec {binary} export --url {url} {arguments}");
    ensure!(!run("bash", &["-c", &script])?.status.success(), "{arguments}: it fits in");
    Ok(())
}

#[test]
fn another_run_goes_on_with_what_was_asked_for_alone() -> Result<()> {
    const TIME: [&str; 4] = ["--start", "2026-08-27", "--end", "2026-09-02"];
    let directory = tempfile::tempdir()?;
    let server = start(&directory.path().join("data"))?;
    fill(&server, 6)?;
    for (format, name) in [("jsonl", "a"), ("influx", "b"), ("prometheus-blocks", "c")] {
        let path = shown(&directory.path().join(name));
        let begin = ["--format", format, "-o", path.as_str()];
        // Windows of an hour, of which some are whole before the cut.
        cut_off(&server, &format!("{} {} --window 1h", begin.join(" "), TIME.join(" ")))?;
        ensure!(Path::new(&format!("{path}.progress")).exists(), "{format}: nothing is done");
        for (more, flag) in [
            (&["--start", "2026-08-26", TIME[2], TIME[3]][..], "another --start"),
            (&TIME[2..], "another --start"),
            (&TIME[..2], "another --end"),
            (&[TIME[0], TIME[1], TIME[2], TIME[3], "--match", "up"], "other --match"),
        ] {
            let said = export(&server, &joined(&begin, more))?;
            ensure!(said.code == 1 && said.stderr.contains(flag), "{flag}: {}", said.stderr);
        }
        if format == "prometheus-blocks" {
            let said =
                export(&server, &joined(&begin, &joined(&TIME, &["--block-duration", "2h"])))?;
            ensure!(said.code == 1 && said.stderr.contains("--block-duration"), "{}", said.stderr);
        }
        must(&server, &joined(&begin, &joined(&TIME, &["--window", "2d", "--allow-partial"])))?;
        if format == "influx" {
            let straight = must(&server, &joined(&["--format", format], &TIME))?;
            ensure!(straight.stdout.len() == std::fs::read(&path)?.len(), "{format} differs");
        }
    }
    server.stop()
}

#[test]
fn two_runs_do_not_write_one_file() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = start(&directory.path().join("data"))?;
    server.write("/write", "a,b=c d=1 1788048000000000000\na,b=c d=2 1788048000000400000\n")?;
    let said = must(&server, &["--format", "openmetrics"])?;
    ensure!(said.stderr.contains("Prometheus keeps that: 1"), "{}", said.stderr);
    let path = directory.path().join("all");
    let part = std::fs::File::create(directory.path().join("all.part"))?;
    part.lock()?;
    let blocks = directory.path().join("blocks");
    std::fs::create_dir(&blocks)?;
    let held = std::fs::File::open(&blocks)?;
    held.lock()?;
    let all = [("jsonl", &path), ("openmetrics", &path), ("prometheus-blocks", &blocks)];
    for (format, path) in all {
        let said = export(&server, &["--format", format, "-o", &shown(path)])?;
        let is_told = said.stderr.contains("another export to it is under way");
        ensure!(said.code == 1 && is_told, "{format}: {}", said.stderr);
    }
    drop((part, held));
    for (format, path) in [all[0], all[2]] {
        must(&server, &["--format", format, "-o", &shown(path)])?;
    }
    server.stop()
}

/// Names of whole blocks.
fn blocks_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.len() == 26).collect()
}

#[test]
fn what_matches_nothing_and_what_is_no_export_is_said() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(&directory.path().join("quipu")).start()?;
    server.write("/write?precision=s", format!("m v=1 {}\n", 1_600_000_000))?;
    let file = shown(&directory.path().join("none"));
    for format in ["jsonl", "openmetrics"] {
        let mut command = quipu(&["export", "--format", format, "--match", "nothing{a=\"b\"}"])?;
        let output = command.args(["-o", &file, "--url", server.url()]).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.code() == Some(3), "{said}");
        let words = "matches --match nothing{a=\"b\"}";
        ensure!(said.contains("quipu: no series from 20") && said.contains(words), "{said}");
    }
    let found = quipu(&["export", "--match", "m_v", "--url", server.url()])?.output()?;
    ensure!(!String::from_utf8_lossy(&found.stderr).contains("no series"), "there is one");
    // More than a request of what is no export: only the first is sent.
    let import = |name: &str, text: &[u8]| -> Result<String> {
        let file = directory.path().join(name);
        std::fs::write(&file, text)?;
        let output = quipu(&["import", &shown(&file), "--url", server.url()])?.output()?;
        ensure!(!output.status.success(), "{name}");
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let lines = "cpu,host=a v=1 1600000000000000000\n".repeat(200_000);
    let said = import("lines", lines.as_bytes())?;
    ensure!(said.contains("nothing of the first 4.0 MiB is a JSON line"), "{said}");
    ensure!(said.contains("line 1: cannot parse JSON line"), "{said}");
    ensure!(said.contains("`quipu migrate influx-lines FILE`"), "{said}");
    ensure!(said.matches("the rest was not sent").count() == 1, "{said}");
    let said = import("packed", &[0x1f, 0x8b, 8, 0, 1, 2, 3])?;
    ensure!(said.contains("gunzip -c FILE | quipu import -"), "{said}");
    let half = "{\"metric\":{\"__name__\":\"a\"},\"values\":[1],\"timestamps\":[1600000000000]}\nnot a line\n";
    let output = import("half", half.as_bytes())?;
    ensure!(output.contains("line 2: cannot parse"), "one is stored: {output}");
    ensure!(server.export("a")?.len() == 1, "one is stored");
    Ok(())
}
