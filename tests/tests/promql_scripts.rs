//! The scripts of `testdata/promql` and `testdata/metricsql` against the binary: loaded by remote
//! write, asked over HTTP.
//!
//! The runner is the engine's. Each data set of a script (what follows a `clear`) has a server of
//! its own: samples must lie where the script says, as `time()`, `@` and the calendar functions
//! tell, so data sets cannot be kept apart by their time; and after a deletion a script would try
//! tombstones too. A server starts in a tenth of a second. One whose data set has start timestamps
//! is told to keep and use them; the others run as they come.
//!
//! All that a script asks can be asked over HTTP, and is. Two things are not compared, and counted:
//! the reset hint of an expected histogram, which JSON does not show (as little as its schema, of
//! which the buckets' bounds tell), and what the door adds to the message of a parser when the
//! text would do as MetricsQL.

use anyhow::{Context, Result, bail, ensure};
use e2e::{Client, Launch, Response, Server, percent};
use engine::StartTimestamps;
use engine::script::{
    Answer, Answered, Command, Found, Loaded, LoadedSample, LoadedSeries, Point, Runner,
    ShownHistogram, Subject, Times, Unanswered, parse, scripts_in,
};
use histogram::{BucketRange, Histogram};
use model::Labels;
use promql::Dialect;
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;
use wire::remote_write::encode::{MillisSample, RequestV1, RequestV2, Started};
use wire::remote_write::encode_histograms::{CountForm, MillisHistogram};

const V1: &str = "application/x-protobuf";
const V2: &str = "application/x-protobuf;proto=io.prometheus.write.v2.Request";
/// What stands before the message of a parser, as in Prometheus' API.
const QUERY_IS_INVALID: &str = "invalid parameter \"query\": ";
/// Stands behind it when MetricsQL evaluates the text.
const OTHER_DIALECT: &str = "; MetricsQL accepts this: ask with dialect=metricsql or below the path \
                             /metricsql, or start the server with --query.dialect=metricsql";
/// Begins the advice for an expression without a range, which stands before the other one.
const WITH_RANGE: &str = "; say ";

/// What is left out of the comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Uncompared {
    /// Reset hints of expected histograms.
    reset_hints: usize,
    /// Messages that end with [`OTHER_DIALECT`].
    dialect_hints: usize,
}

/// A server with one data set.
struct Running {
    client: Client,
    server: Server,
    /// What it was told to do with start timestamps.
    starts: StartTimestamps,
    _data_dir: TempDir,
}

/// Servers, one after the other.
struct OverHttp {
    running: Option<Running>,
    dialect: Dialect,
    /// Parameters of each query.
    parameters: &'static str,
    /// Messages so far that ended with [`OTHER_DIALECT`].
    dialect_hints: usize,
}

impl OverHttp {
    fn new(dialect: Dialect, parameters: &'static str) -> OverHttp {
        OverHttp { running: None, dialect, parameters, dialect_hints: 0 }
    }

    /// The server of the present data set; if there is none yet, one that does this with start
    /// timestamps.
    fn running(&mut self, starts: StartTimestamps) -> Result<&mut Running> {
        if self.running.is_none() {
            let data_dir = tempfile::tempdir()?;
            let mut launch = Launch::new(data_dir.path());
            launch = launch.flag("query.experimental-functions", "true");
            if starts == StartTimestamps::Used {
                launch = launch.flag("start-timestamps", "true");
                launch = launch.flag("query.start-timestamps", "true");
            }
            let server = launch.start()?;
            let client = server.client();
            self.running = Some(Running { client, server, starts, _data_dir: data_dir });
        }
        self.running.as_mut().context("started above")
    }

    /// Every other sample is flushed, the others stay in the head. The latter come by version 2.0,
    /// the former by 1.0 unless there are start timestamps, of which it knows nothing.
    fn write(&mut self, series: &[LoadedSeries]) -> Result<()> {
        let mut samples = series.iter().flat_map(|(_, samples)| samples);
        let starts = match samples.any(|sample| sample.start_ms.is_some()) {
            true => StartTimestamps::Used,
            false => StartTimestamps::Ignored,
        };
        let running = self.running(starts)?;
        match starts {
            StartTimestamps::Ignored => running.send(V1, half_by_v1(series).as_bytes())?,
            StartTimestamps::Used => {
                let is_told = running.starts == StartTimestamps::Used;
                ensure!(is_told, "the first load of the data set has no start timestamps");
                running.send(V2, &half_by_v2(series, 0).to_bytes())?;
            }
        }
        let answer = running.client.post("/internal/force_flush", &[], &[])?;
        ensure!(answer.status == 200, "{}", answer.excerpt());
        running.send(V2, &half_by_v2(series, 1).to_bytes())
    }

    fn get(&mut self, text: &str, times: Times) -> Result<Response> {
        let query = percent(text);
        let seconds = |ms: i64| format!("{:.3}", ms as f64 / 1e3);
        let path = match times {
            Times::Instant(at) => {
                // The step of an instant is asked for by MetricsQL alone.
                let step = if self.dialect == Dialect::MetricsQl { "&step=300" } else { "" };
                format!("/api/v1/query?query={query}&time={}{step}", seconds(at))
            }
            Times::Range(start, end, step) => format!(
                "/api/v1/query_range?query={query}&start={}&end={}&step={}",
                seconds(start),
                seconds(end),
                seconds(step)
            ),
        };
        let path = path + self.parameters;
        self.running(StartTimestamps::Ignored)?.client.get(&path)
    }
}

impl Running {
    fn send(&mut self, content_type: &str, message: &[u8]) -> Result<()> {
        let body = snap::raw::Encoder::new().compress_vec(message)?;
        let headers = [("Content-Type", content_type), ("Content-Encoding", "snappy")];
        let answer = self.client.post("/api/v1/write", &headers, &body)?;
        ensure!(answer.status == 204, "{}\n{}", answer.excerpt(), self.server.log());
        Ok(())
    }
}

/// Every other sample of each series, from the first on; without start timestamps.
fn half_by_v1(series: &[LoadedSeries]) -> RequestV1 {
    let mut request = RequestV1::new();
    for (labels, samples) in series {
        let (numbers, histograms) = encoded(samples.iter().step_by(2));
        let numbers: Vec<_> = numbers.into_iter().map(|started| started.sample).collect();
        let histograms: Vec<_> = histograms.into_iter().map(|started| started.sample).collect();
        let labels: Vec<_> = labels.iter().collect();
        request.mixed_series(&labels, &numbers, &histograms);
    }
    request
}

/// Every other sample of each series, from this one on.
fn half_by_v2(series: &[LoadedSeries], first: usize) -> RequestV2 {
    let mut request = RequestV2::new();
    for (labels, samples) in series {
        let (numbers, histograms) = encoded(samples.iter().skip(first).step_by(2));
        let labels: Vec<_> = labels.iter().collect();
        request.started_series(&labels, &numbers, &histograms);
    }
    request
}

/// The samples of one series as remote write has them.
fn encoded<'s>(
    samples: impl Iterator<Item = &'s LoadedSample>,
) -> (Vec<Started<MillisSample>>, Vec<Started<MillisHistogram>>) {
    let (mut numbers, mut histograms) = (Vec::new(), Vec::new());
    for LoadedSample { at_ms, start_ms, loaded } in samples {
        let (millis, start_millis) = (*at_ms, start_ms.unwrap_or(0));
        match loaded {
            Loaded::Number(value) => {
                let sample = MillisSample { millis, value: *value };
                numbers.push(Started { sample, start_millis });
            }
            Loaded::Histogram(histogram) => {
                let histogram = Histogram::clone(histogram);
                let form = form_of(&histogram);
                let sample = MillisHistogram { millis, histogram, form };
                histograms.push(Started { sample, start_millis });
            }
        }
    }
    (numbers, histograms)
}

/// Whole numbers where the histogram has no others and they add up.
fn form_of(histogram: &Histogram) -> CountForm {
    let buckets = histogram.negative.iter().chain(&histogram.positive).map(|bucket| bucket.count);
    let mut counts = buckets.chain([histogram.count, histogram.zero_count]);
    let is_whole = counts.all(|count| count.fract() == 0.0 && 0.0 <= count);
    match is_whole && histogram.validate_whole().is_ok() {
        true => CountForm::Whole,
        false => CountForm::Float,
    }
}

impl Subject for OverHttp {
    fn clear(&mut self) {
        self.running = None;
    }

    fn load(&mut self, series: &[LoadedSeries]) -> Result<(), String> {
        self.write(series).map_err(|error| format!("{error:#}"))
    }

    fn ask(&mut self, text: &str, times: Times) -> Result<Answer, Unanswered> {
        let broken = |error: anyhow::Error| Unanswered::Broken(format!("{error:#}"));
        let response = self.get(text, times).map_err(broken)?;
        match response.status {
            200 => answer(&response).map_err(broken),
            400 | 422 => {
                let message = failure(&response).map_err(broken)?;
                let without = message.strip_suffix(OTHER_DIALECT);
                self.dialect_hints += usize::from(without.is_some());
                let without = without.unwrap_or(&message);
                let (without, _) = without.split_once(WITH_RANGE).unwrap_or((without, ""));
                Err(Unanswered::Failed(without.to_string()))
            }
            _ => Err(Unanswered::Broken(response.excerpt())),
        }
    }
}

/// The message of a failed query, as the engine has it.
fn failure(response: &Response) -> Result<String> {
    let json = response.json()?;
    ensure!(json["status"] == "error", "{}", response.excerpt());
    let expected_type = if response.status == 400 { "bad_data" } else { "execution" };
    ensure!(json["errorType"] == expected_type, "{}", response.excerpt());
    let message = text(&json["error"])?;
    Ok(message.strip_prefix(QUERY_IS_INVALID).unwrap_or(message).to_string())
}

fn answer(response: &Response) -> Result<Answer> {
    let json = response.json()?;
    ensure!(json["status"] == "success", "{}", response.excerpt());
    let result = &json["data"]["result"];
    let value = match text(&json["data"]["resultType"])? {
        "scalar" => Answered::Scalar(number(&result[1])?),
        "string" => Answered::String(text(&result[1])?.to_string()),
        "vector" => Answered::Vector(all(result, sample)?),
        "matrix" => Answered::Matrix(all(result, series)?),
        other => bail!("result type {other:?}"),
    };
    let notes = |name: &str| match &json[name] {
        Value::Null => Ok(Vec::new()),
        notes => all(notes, |note| Ok(text(note)?.to_string())),
    };
    Ok(Answer { value, warnings: notes("warnings")?, infos: notes("infos")? })
}

/// A series and its sample in a vector.
fn sample(json: &Value) -> Result<(Labels, Found)> {
    let found = match &json["histogram"] {
        Value::Null => Found::Number(number(&json["value"][1])?),
        histogram => Found::Shown(Box::new(shown(&histogram[1])?)),
    };
    Ok((labels(&json["metric"])?, found))
}

/// A series and its samples in a matrix.
fn series(json: &Value) -> Result<(Labels, Vec<(i64, Found)>)> {
    let values = |name: &str| match &json[name] {
        Value::Null => Ok(Vec::new()),
        list => all(list, |point| Ok((millis(&point[0])?, point[1].clone()))),
    };
    let mut points = Vec::new();
    for (at, value) in values("values")? {
        points.push((at, Found::Number(number(&value)?)));
    }
    for (at, histogram) in values("histograms")? {
        points.push((at, Found::Shown(Box::new(shown(&histogram)?))));
    }
    points.sort_by_key(|(at, _)| *at);
    Ok((labels(&json["metric"])?, points))
}

fn shown(json: &Value) -> Result<ShownHistogram> {
    let buckets = match &json["buckets"] {
        Value::Null => Vec::new(),
        buckets => all(buckets, bucket)?,
    };
    Ok(ShownHistogram { count: number(&json["count"])?, sum: number(&json["sum"])?, buckets })
}

/// `[code, lower, upper, count]`: code 0 has the upper bound, 1 the lower, 2 none, 3 both.
fn bucket(json: &Value) -> Result<BucketRange> {
    let code = json[0].as_u64().with_context(|| format!("no bucket: {json}"))?;
    ensure!(code < 4, "no bucket: {json}");
    Ok(BucketRange {
        lower: number(&json[1])?,
        upper: number(&json[2])?,
        has_lower: code == 1 || code == 3,
        has_upper: code == 0 || code == 3,
        count: number(&json[3])?,
    })
}

fn labels(json: &Value) -> Result<Labels> {
    let pairs = json.as_object().with_context(|| format!("no labels: {json}"))?;
    let pairs: Result<Vec<(&str, &str)>> =
        pairs.iter().map(|(name, value)| Ok((name.as_str(), text(value)?))).collect();
    Ok(Labels::from_pairs(&pairs?))
}

fn all<T>(list: &Value, one: impl Fn(&Value) -> Result<T>) -> Result<Vec<T>> {
    let list = list.as_array().with_context(|| format!("no list: {list}"))?;
    list.iter().map(one).collect()
}

fn text(json: &Value) -> Result<&str> {
    json.as_str().with_context(|| format!("no text: {json}"))
}

/// A number as the API has them: text.
fn number(json: &Value) -> Result<f64> {
    text(json)?.parse().with_context(|| format!("no number: {json}"))
}

fn millis(json: &Value) -> Result<i64> {
    let seconds = json.as_f64().with_context(|| format!("no time: {json}"))?;
    Ok((seconds * 1e3).round() as i64)
}

/// Runs all scripts of a directory, each of whose evaluations must pass.
fn check(directory: &str, dialect: Dialect, parameters: &'static str) -> Result<Uncompared> {
    let mut runner = Runner::over(dialect, OverHttp::new(dialect, parameters));
    let (mut asked, mut passed, mut reset_hints) = (0, 0, 0);
    let mut failures = Vec::new();
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    for (path, text) in scripts_in(&testdata.join(directory))? {
        for command in parse(&text)? {
            let Command::Eval(eval) = command else { continue };
            let points = eval.series.iter().flat_map(|(_, points)| points);
            asked += 1;
            reset_hints += points.filter(|point| has_reset_hint(point)).count();
        }
        let report = runner.run(&text).with_context(|| path.display().to_string())?;
        let told = report
            .failures()
            .map(|(line, text, outcome)| format!("{}:{line}: {text}: {outcome:?}", path.display()));
        failures.extend(told);
        passed += report.passed();
    }
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    ensure!(0 < asked && passed == asked, "{passed} of {asked} in {directory}");
    Ok(Uncompared { reset_hints, dialect_hints: runner.subject().dialect_hints })
}

fn has_reset_hint(point: &Option<Point>) -> bool {
    matches!(point, Some(Point::Histogram(noted)) if noted.hint.is_some())
}

#[test]
fn scripts() -> Result<()> {
    let uncompared = check("promql", Dialect::PromQl, "")?;
    assert_eq!(uncompared, Uncompared { reset_hints: 21, dialect_hints: 2 });
    Ok(())
}

#[test]
fn scripts_with_late_name_removal() -> Result<()> {
    let uncompared = check("promql/late_names", Dialect::PromQl, "&name_removal=late")?;
    assert_eq!(uncompared, Uncompared::default());
    Ok(())
}

#[test]
fn scripts_that_keep_names_over_time() -> Result<()> {
    let uncompared = check("promql/kept_names", Dialect::PromQl, "&name_removal=keep_over_time")?;
    assert_eq!(uncompared, Uncompared::default());
    Ok(())
}

#[test]
fn scripts_in_metricsql() -> Result<()> {
    let uncompared = check("metricsql", Dialect::MetricsQl, "&dialect=metricsql")?;
    assert_eq!(uncompared, Uncompared::default());
    Ok(())
}
