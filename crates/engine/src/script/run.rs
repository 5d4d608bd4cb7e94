//! Runs the commands of a script over samples in memory.

use super::load::load;
use super::parse::{
    Command, Eval, Expect, ExpectKind, MessageMatch, Point, ScriptError, Times, parse,
};
use crate::MemorySource;
use crate::error::QueryError;
use crate::query::{QueryOptions, QueryResult, StepRange, instant, range};
use crate::result::{Matrix, Sample, Value};
use crate::vector::compare_labels;
use histogram::Histogram;
use model::Labels;
use model::sample::NANOS_PER_MILLI;
use promql::Dialect;
use regex::Regex;
use std::fmt;

/// Relative difference of values that pass for equal, as in Prometheus' own runner.
const TOLERANCE: f64 = 1e-6;

/// What became of one evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It gave what was expected.
    Passed,
    /// It did not.
    Failed(String),
}

/// What became of a script: an outcome per evaluation, with its line.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Lines, expressions and outcomes.
    pub outcomes: Vec<(usize, String, Outcome)>,
}

impl Report {
    /// How many evaluations passed.
    pub fn passed(&self) -> usize {
        self.outcomes.iter().filter(|(_, _, outcome)| *outcome == Outcome::Passed).count()
    }

    /// The evaluations that did not pass.
    pub fn failures(&self) -> impl Iterator<Item = &(usize, String, Outcome)> {
        self.outcomes.iter().filter(|(_, _, outcome)| *outcome != Outcome::Passed)
    }
}

/// Runs scripts with one set of options.
pub struct Runner {
    options: QueryOptions,
    source: MemorySource,
}

impl Runner {
    /// A runner whose evaluations have these options.
    pub fn new(options: QueryOptions) -> Runner {
        Runner { options, source: MemorySource::new() }
    }

    /// Runs a script from its text, on no samples.
    ///
    /// # Errors
    /// The text is no script, or loads what is no histogram.
    pub fn run(&mut self, text: &str) -> Result<Report, ScriptError> {
        self.source.clear();
        let mut report = Report::default();
        for command in parse(text)? {
            match command {
                Command::Clear => self.source.clear(),
                Command::Load { series, starts, is_with_native, line } => {
                    for (labels, starts) in starts {
                        for (at_ms, start_ms) in starts.into_iter().filter(|one| one.1 != 0) {
                            self.source.append_start(&labels, at_ms * NANOS_PER_MILLI, start_ms);
                        }
                    }
                    load(&mut self.source, series, is_with_native)
                        .map_err(|message| ScriptError { line, message })?;
                }
                Command::Eval(eval) => {
                    let outcome = self.outcome(&eval);
                    report.outcomes.push((eval.line, eval.text, outcome));
                }
            }
        }
        Ok(report)
    }

    fn outcome(&self, eval: &Eval) -> Outcome {
        match self.check(eval) {
            Ok(()) => Outcome::Passed,
            Err(reason) => Outcome::Failed(reason),
        }
    }

    fn check(&self, eval: &Eval) -> Result<(), String> {
        let result = match eval.times {
            Times::Instant(at_ms) => instant(&self.source, &eval.text, at_ms, &self.options),
            Times::Range(start_ms, end_ms, step_ms) => {
                let steps = StepRange { start_ms, end_ms, step_ms };
                range(&self.source, &eval.text, steps, &self.options)
            }
        };
        let fails: Vec<&Expect> =
            eval.expects.iter().filter(|expect| expect.kind == ExpectKind::Fail).collect();
        let result = match result {
            Ok(_) if !fails.is_empty() => return Err("expected a failure".to_string()),
            Ok(result) => result,
            Err(error) if fails.is_empty() => return Err(format!("failed: {error}")),
            Err(error) => return check_failure(&error, &fails),
        };
        check_notes(&result, &eval.expects)?;
        check_value(eval, &result.value)?;
        match eval.times {
            Times::Instant(at_ms) => self.check_as_range(eval, at_ms, &result.value),
            Times::Range(..) => Ok(()),
        }
    }

    /// An instant evaluation must agree with the middle step of a range around it.
    fn check_as_range(&self, eval: &Eval, at_ms: i64, value: &Value) -> Result<(), String> {
        let is_ordered = eval.expects.iter().any(|expect| expect.kind == ExpectKind::Ordered);
        // MetricsQL's windows depend on whether there is one step or many.
        let is_metricsql = self.options.dialect == Dialect::MetricsQl;
        if is_metricsql || is_ordered || matches!(value, Value::String(_) | Value::Matrix(_)) {
            return Ok(());
        }
        let steps = StepRange { start_ms: at_ms - 60_000, end_ms: at_ms + 60_000, step_ms: 60_000 };
        let uses_the_range = ["start(", "end(", "step(", "range("];
        if uses_the_range.iter().any(|call| eval.text.contains(call)) {
            return Ok(());
        }
        let result = range(&self.source, &eval.text, steps, &self.options)
            .map_err(|error| format!("as a range: {error}"))?;
        let Value::Matrix(matrix) = result.value else {
            return Err("as a range: no matrix".to_string());
        };
        let mut found: Vec<(Labels, Found)> = Vec::new();
        for idx in 0..matrix.len() {
            let at_step = points_of(&matrix, idx).into_iter().find(|(time, _)| *time == at_ms);
            found.extend(at_step.map(|(_, point)| (matrix.labels(idx).clone(), point)));
        }
        match (value, found.as_slice()) {
            (Value::Scalar(expected), [(_, Found::Number(value))]) => compare(*expected, *value),
            (Value::Scalar(_), _) => Err("no scalar".to_string()),
            _ => compare_samples(&eval.series, found),
        }
        .map_err(|reason| format!("as a range: {reason}"))
    }
}

fn check_failure(error: &QueryError, expects: &[&Expect]) -> Result<(), String> {
    let text = error.to_string();
    match expects.iter().find(|expect| !matches(&expect.message, &text)) {
        None => Ok(()),
        Some(expect) => Err(format!("failed with {text:?}, not with {:?}", expect.message)),
    }
}

fn matches(expected: &MessageMatch, text: &str) -> bool {
    match expected {
        MessageMatch::Any => true,
        MessageMatch::Exact(expected) => text == expected,
        MessageMatch::Regex(regex) => Regex::new(regex).is_ok_and(|regex| regex.is_match(text)),
    }
}

fn check_notes(result: &QueryResult, expects: &[Expect]) -> Result<(), String> {
    let kinds = [
        (ExpectKind::Warn, ExpectKind::NoWarn, &result.warnings),
        (ExpectKind::Info, ExpectKind::NoInfo, &result.infos),
    ];
    for (some, none, notes) in kinds {
        if expects.iter().any(|expect| expect.kind == none) && !notes.is_empty() {
            return Err(format!("unexpected notes: {notes:?}"));
        }
        let wanted: Vec<&Expect> = expects.iter().filter(|expect| expect.kind == some).collect();
        let missing = wanted.iter().find(|w| !notes.iter().any(|n| matches(&w.message, n)));
        if let Some(missing) = missing {
            return Err(format!("expected {missing:?} among {notes:?}"));
        }
        let surplus = notes.iter().find(|n| !wanted.iter().any(|w| matches(&w.message, n)));
        if let (Some(surplus), false) = (surplus, wanted.is_empty()) {
            return Err(format!("unexpected note {surplus:?}"));
        }
    }
    Ok(())
}

fn check_value(eval: &Eval, value: &Value) -> Result<(), String> {
    match value {
        Value::Scalar(value) => match eval.scalar {
            Some(expected) => compare(expected, *value),
            None if eval.series.is_empty() => Ok(()),
            None => Err(format!("expected series, got the scalar {value}")),
        },
        Value::String(value) => match &eval.string {
            Some(expected) if expected == value => Ok(()),
            expected => Err(format!("expected {expected:?}, got the string {value:?}")),
        },
        Value::Vector(samples) => {
            if let Some(expected) = eval.scalar {
                return Err(format!("expected the scalar {expected}, got a vector"));
            }
            let found: Vec<(Labels, Found)> =
                samples.iter().map(|sample| (sample.labels.clone(), found_of(sample))).collect();
            if eval.expects.iter().any(|expect| expect.kind == ExpectKind::Ordered) {
                let order = |labels: Vec<&Labels>| format!("{labels:?}");
                let expected = order(eval.series.iter().map(|(labels, _)| labels).collect());
                let got = order(found.iter().map(|(labels, _)| labels).collect());
                if expected != got {
                    return Err(format!("expected the order {expected}, got {got}"));
                }
            }
            compare_samples(&eval.series, found)
        }
        Value::Matrix(matrix) => compare_matrix(eval, matrix),
    }
}

/// A sample of an answer.
#[derive(Clone)]
enum Found {
    Number(f64),
    Histogram(Box<Histogram>),
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Number(value) => write!(f, "{value}"),
            Found::Histogram(histogram) => f.write_str(&histogram.to_notation()),
        }
    }
}

fn found_of(sample: &Sample) -> Found {
    match &sample.histogram {
        Some(histogram) => Found::Histogram(histogram.clone()),
        None => Found::Number(sample.value),
    }
}

/// All samples of a series, oldest first.
fn points_of(matrix: &Matrix, idx: usize) -> Vec<(i64, Found)> {
    let numbers = matrix.points(idx).map(|(time, value)| (time, Found::Number(value)));
    let histograms = matrix.histograms(idx);
    let histograms = histograms.map(|(time, one)| (time, Found::Histogram(Box::new(one.clone()))));
    let mut points: Vec<(i64, Found)> = numbers.chain(histograms).collect();
    points.sort_by_key(|(time, _)| *time);
    points
}

/// Compares one sample per series, in any order.
fn compare_samples(
    expected: &[(Labels, Vec<Option<Point>>)],
    mut found: Vec<(Labels, Found)>,
) -> Result<(), String> {
    let mut expected: Vec<(&Labels, &Point)> = expected
        .iter()
        .filter_map(|(labels, points)| Some((labels, points.first()?.as_ref()?)))
        .collect();
    expected.sort_by(|a, b| compare_labels(a.0, b.0));
    found.sort_by(|a, b| compare_labels(&a.0, &b.0));
    if expected.len() != found.len() {
        return Err(format!("expected {expected:?}, got {found:?}"));
    }
    for ((expected, point), (labels, found)) in expected.iter().zip(&found) {
        if *expected != labels {
            return Err(format!("expected {expected}, got {labels}"));
        }
        compare_points(point, found).map_err(|reason| format!("{labels}: {reason}"))?;
    }
    Ok(())
}

fn compare_matrix(eval: &Eval, matrix: &Matrix) -> Result<(), String> {
    let (start_ms, step_ms) = match (eval.times, eval.vector_times) {
        (Times::Range(start, _, step), _) => (start, step),
        (Times::Instant(_), Some((start, _, step))) => (start, step),
        (Times::Instant(_), None) => return Err("got a range vector".to_string()),
    };
    let mut expected: Vec<(&Labels, Vec<(i64, &Point)>)> = Vec::new();
    for (labels, values) in &eval.series {
        let times = (0i64..).map(|idx| start_ms + idx * step_ms);
        let there = times.zip(values).filter_map(|(time, v)| v.as_ref().map(|v| (time, v)));
        expected.push((labels, there.collect()));
    }
    // A scalar over a range is a series without labels.
    let is_scalar = eval.scalar.is_some();
    expected.retain(|(_, points)| !points.is_empty());
    expected.sort_by(|a, b| compare_labels(a.0, b.0));
    let shown = || -> Vec<(&Labels, Vec<(i64, Found)>)> {
        (0..matrix.len()).map(|idx| (matrix.labels(idx), points_of(matrix, idx))).collect()
    };
    if expected.len() != matrix.len() && !is_scalar {
        return Err(format!("expected {expected:?}, got {:?}", shown()));
    }
    let mut order: Vec<usize> = (0..matrix.len()).collect();
    order.sort_by(|a, b| compare_labels(matrix.labels(*a), matrix.labels(*b)));
    for (idx, (labels, points)) in order.into_iter().zip(&expected) {
        let found = points_of(matrix, idx);
        let same_times = points.iter().map(|p| p.0).eq(found.iter().map(|p| p.0));
        if *labels != matrix.labels(idx) || !same_times {
            return Err(format!("expected {labels} {points:?}, got {:?}", shown()));
        }
        for ((time, expected), (_, found)) in points.iter().zip(&found) {
            compare_points(expected, found)
                .map_err(|reason| format!("{labels} at {time} ms: {reason}"))?;
        }
    }
    Ok(())
}

fn compare_points(expected: &Point, found: &Found) -> Result<(), String> {
    match (expected, found) {
        (Point::Number(expected), Found::Number(found)) => compare(*expected, *found),
        (Point::Histogram(expected), Found::Histogram(found))
            if expected.histogram.is_nearly(found, expected.hint) =>
        {
            Ok(())
        }
        (Point::Histogram(expected), found) => {
            Err(format!("expected {}, got {found:?}", expected.histogram.to_notation()))
        }
        (Point::Number(expected), found) => Err(format!("expected {expected}, got {found:?}")),
    }
}

fn compare(expected: f64, found: f64) -> Result<(), String> {
    let is_equal = expected == found || (expected.is_nan() && found.is_nan()) || {
        let sum = expected.abs() + found.abs();
        let difference = (expected - found).abs();
        if expected == 0.0 || found == 0.0 || sum < f64::MIN_POSITIVE {
            difference < TOLERANCE * f64::MIN_POSITIVE
        } else {
            difference / sum.min(f64::MAX) < TOLERANCE
        }
    };
    if is_equal { Ok(()) } else { Err(format!("expected {expected}, got {found}")) }
}
