//! Rollups against what a VictoriaMetrics answered: `testdata/metricsql/rollups.txt` has series,
//! questions and the rows of the answers, and says how it is to be read.

use super::*;
use std::collections::HashMap;

/// Where the file's times begin.
const EPOCH_MS: i64 = 1_700_000_000_000;

/// What equal numbers may differ by, as a part of them: additions in another order.
const TOLERANCE: f64 = 1e-12;

#[derive(Default)]
struct Samples {
    timestamps: Vec<i64>,
    values: Vec<f64>,
}

type Known<'a> = HashMap<&'a str, Samples>;

struct Question<'a> {
    series: &'a str,
    name: &'a str,
    windows: Windows,
    arguments: Vec<Argument>,
}

fn milliseconds(text: &str) -> i64 {
    text.parse().unwrap()
}

fn parse_series(text: &str) -> Samples {
    let mut samples = Samples::default();
    for sample in text.split_whitespace() {
        let (at, value) = sample.split_once(':').unwrap();
        samples.timestamps.push(to_ns(EPOCH_MS + milliseconds(at)));
        samples.values.push(match value {
            "stale" => model::sample::stale_marker(),
            number => number.parse().unwrap(),
        });
    }
    samples
}

fn parse_question(text: &str) -> Question<'_> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [series, name, start, end, step, window, lookback, arguments @ ..] = &words[..] else {
        panic!("question of {} words: {text}", words.len());
    };
    let [start_ms, end_ms] = [start, end].map(|at| EPOCH_MS + milliseconds(at));
    let [window_ms, lookback_ms] =
        [window, lookback].map(|length| (**length != *"-").then(|| milliseconds(length)));
    let grid = Grid::span(start_ms, end_ms, milliseconds(step)).unwrap();
    let is_subquery = series.contains(':');
    let windows = Windows { grid, end_ms, window_ms, lookback_ms, is_subquery };
    let number = |text: &str| {
        let value = |step| match text {
            "mod7" => seconds_mod(grid.at_ms(step), 7.0),
            number => number.parse().unwrap(),
        };
        let labels = Labels::default();
        vec![Series { labels, values: (0..grid.len).map(value).collect() }]
    };
    let arguments = arguments.iter().map(|argument| match argument.strip_prefix('"') {
        Some(text) => Argument::text(text.trim_end_matches('"').to_string()),
        None => Argument::Series(number(argument)),
    });
    Question { series, name, windows, arguments: arguments.collect() }
}

fn seconds_mod(at_ms: i64, divisor: f64) -> f64 {
    (at_ms as f64 / 1000.0) % divisor
}

/// The points of `(time() % 37) < 30`.
fn subquery_samples(call: &RollupCall, step_ms: i64) -> Samples {
    let grid = call.subquery_grid(Some(step_ms));
    let mut samples = Samples::default();
    for step in 0..grid.len {
        let value = seconds_mod(grid.at_ms(step), 37.0);
        samples.timestamps.push(to_ns(grid.at_ms(step)));
        samples.values.push(if value < 30.0 { value } else { f64::NAN });
    }
    samples
}

/// The points of a selector as a subquery; a gap is NaN.
fn nested_samples(known: &Known<'_>, outer: &RollupCall, series: &str, step_ms: i64) -> Samples {
    let grid = outer.subquery_grid(Some(step_ms));
    let windows = Windows {
        grid,
        end_ms: grid.at_ms(grid.len - 1),
        window_ms: None,
        is_subquery: false,
        ..outer.windows
    };
    let question = Question { series, name: "default_rollup", windows, arguments: Vec::new() };
    let mut rows = answer(known, &question);
    let timestamps = (0..grid.len).map(|step| to_ns(grid.at_ms(step))).collect();
    rows.pop().map_or(Samples::default(), |(_, values)| Samples { timestamps, values })
}

fn samples_within(samples: &Samples, range: TimeRange) -> Samples {
    let low = samples.timestamps.partition_point(|at| *at < range.start);
    let high = samples.timestamps.partition_point(|at| *at <= range.end);
    Samples {
        timestamps: samples.timestamps[low..high].to_vec(),
        values: samples.values[low..high].to_vec(),
    }
}

/// The rows of an answer as text and values, sorted; rows of nothing but gaps are left out.
fn answer(known: &Known<'_>, question: &Question<'_>) -> Vec<(String, Vec<f64>)> {
    let grid = question.windows.grid;
    let name = question.name;
    let context = CallContext::new(name, grid);
    let arguments = question.arguments.clone();
    let mut call = RollupCall::new(&context, arguments, question.windows).unwrap();
    let samples = match question.series.split_once(':') {
        Some(("sub", step)) => subquery_samples(&call, milliseconds(step)),
        Some((series, step)) => nested_samples(known, &call, series, milliseconds(step)),
        None => samples_within(&known[question.series], call.time_range()),
    };
    let is_named = !question.series.starts_with("sub:");
    let metric: &[(&str, &str)] = if is_named { &[("__name__", "m")] } else { &[] };
    let mut rows = Vec::new();
    if !samples.timestamps.is_empty() {
        let labels = Labels::from_pairs(metric);
        call.run(&labels, &samples.timestamps, &samples.values, &|| Ok(()), &mut rows).unwrap();
    }
    if name == "absent_over_time" {
        rows = vec![Series { labels: Labels::default(), values: join_absent(&rows, grid.len) }];
    }
    rows.retain(|row| row.values.iter().any(|value| !value.is_nan()));
    let text = |labels: &Labels| {
        let pairs: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{{{}}}", pairs.join(";"))
    };
    let mut rows: Vec<_> = rows.into_iter().map(|row| (text(&row.labels), row.values)).collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows
}

fn is_close(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= TOLERANCE * a.abs().max(b.abs())
}

/// What is wrong with an answer, if anything.
fn difference(expected: &[(String, Vec<f64>)], rows: &[(String, Vec<f64>)]) -> Option<String> {
    let is_same = expected.len() == rows.len()
        && expected.iter().zip(rows).all(|((labels, values), (found, row))| {
            labels == found && values.iter().zip(row).all(|(a, b)| is_close(*a, *b))
        });
    (!is_same).then(|| format!("expected {expected:?}\n   found {rows:?}"))
}

fn check(text: &str) {
    let mut known = HashMap::new();
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).peekable();
    let (mut asked, mut wrong) = (0, Vec::new());
    while let Some(line) = lines.next() {
        if let Some(series) = line.strip_prefix("series ") {
            let (name, samples) = series.split_once(' ').unwrap();
            known.insert(name, parse_series(samples));
            continue;
        }
        let question = parse_question(line.strip_prefix("ask ").unwrap());
        let mut expected = Vec::new();
        while let Some(row) = lines.next_if(|line| line.starts_with("row ")) {
            let (labels, values) = row["row ".len()..].split_once("} ").unwrap();
            let value = |text: &str| if text == "-" { f64::NAN } else { text.parse().unwrap() };
            expected.push((format!("{labels}}}"), values.split(' ').map(value).collect()));
        }
        expected.sort_by(|a: &(String, _), b| a.0.cmp(&b.0));
        asked += 1;
        if let Some(difference) = difference(&expected, &answer(&known, &question)) {
            wrong.push(format!("{line}\n{difference}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {asked} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn answers_are_those_of_victoriametrics() {
    check(include_str!("../../../../../testdata/metricsql/rollups.txt"));
}

/// A call on a grid of three minutes.
fn call(name: &str, keep_metric_names: bool, texts: &[&str]) -> Result<RollupCall> {
    let grid = Grid { start_ms: 600_000, step_ms: 60_000, len: 3 };
    let context = CallContext { keep_metric_names, ..CallContext::new(name, grid) };
    let arguments = texts.iter().map(|text| Argument::text(text.to_string())).collect();
    let windows =
        Windows { grid, end_ms: 730_000, window_ms: None, lookback_ms: None, is_subquery: false };
    RollupCall::new(&context, arguments, windows)
}

#[test]
fn names() {
    let labels = Labels::from_pairs(&[("__name__", "m"), ("a", "b")]);
    let mut rows = Vec::new();
    for (name, keep_metric_names) in
        [("max_over_time", false), ("sum_over_time", true), ("sum_over_time", false)]
    {
        let mut call = call(name, keep_metric_names, &[]).unwrap();
        call.run(&labels, &[], &[], &|| Ok(()), &mut rows).unwrap();
    }
    let kept: Vec<&str> = rows.iter().map(|row| row.labels.metric_name()).collect();
    assert_eq!(kept, ["m", "m", ""]);
}

#[test]
fn wrong_arguments() {
    for (name, texts) in [
        ("no_such_rollup", &[][..]),
        ("iqr_over_time", &[]),
        ("sum_over_time", &["more"]),
        ("rollup", &["open"]),
        ("rollup", &[""]),
        ("rollup_candlestick", &["min"]),
        ("aggr_over_time", &[]),
        ("aggr_over_time", &["rate_prometheus"]),
        ("aggr_over_time", &["outlier_iqr_over_time"]),
        ("quantiles_over_time", &["label"]),
        ("count_values_over_time", &[]),
    ] {
        assert!(call(name, false, texts).is_err(), "{name} {texts:?}");
    }
    // A string is a series without points.
    assert!(call("predict_linear", false, &["text"]).is_ok());
}

#[test]
fn times_that_are_needed() {
    let range = |name| {
        let TimeRange { start, end } = call(name, false, &[]).unwrap().time_range();
        (start / NANOS_PER_MILLI, end)
    };
    assert_eq!(range("sum_over_time"), (540_000, 730_000_999_999));
    assert_eq!(range("rate"), (240_000, 730_000_999_999));
    assert_eq!(range("rollup_candlestick"), (300_000, 790_000_999_999));
    let call = call("sum_over_time", false, &[]).unwrap();
    assert_eq!(call.subquery_grid(None), Grid { start_ms: 240_000, step_ms: 60_000, len: 11 });
    assert_eq!(
        call.subquery_grid(Some(7_000)),
        Grid { start_ms: 287_000, step_ms: 7_000, len: 66 }
    );
}

#[test]
fn absence_is_that_of_all_series() {
    let row = |values: &[f64]| Series { labels: Labels::default(), values: values.to_vec() };
    let joined = join_absent(&[row(&[1.0, f64::NAN, 1.0]), row(&[1.0, 1.0, f64::NAN])], 3);
    assert_eq!(joined[0], 1.0);
    assert!(joined[1].is_nan() && joined[2].is_nan());
    assert_eq!(join_absent(&[], 2), [1.0, 1.0]);
}

#[test]
fn a_check_comes_between_long_windows() {
    let bounds = vec![(0, 1_000_000); 5];
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < bounds.len() {
        let piece = piece_of_work(&bounds, start);
        start = piece.end;
        pieces.push(piece);
    }
    assert_eq!(pieces, [0..2, 2..4, 4..5]);
    assert_eq!(piece_of_work(&[(3, 3); 100], 0), 0..100, "short ones go together");
}
