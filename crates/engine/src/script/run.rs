//! Runs the commands of a script against a [`Subject`].

use super::load::loaded;
use super::parse::{
    Command, Eval, Expect, ExpectKind, MessageMatch, Point, ScriptError, Times, parse,
};
use super::subject::{Answer, Answered, Found, InMemory, Subject, Unanswered};
use crate::options::QueryOptions;
use model::Labels;
use promql::Dialect;

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

/// Runs scripts against one subject.
pub struct Runner<S = InMemory> {
    subject: S,
    dialect: Dialect,
}

impl Runner {
    /// A runner over samples in memory, whose evaluations have these options.
    pub fn new(options: QueryOptions) -> Runner {
        Runner::over(options.dialect, InMemory::new(options))
    }
}

impl<S: Subject> Runner<S> {
    /// A runner of scripts in that dialect.
    pub fn over(dialect: Dialect, subject: S) -> Runner<S> {
        Runner { subject, dialect }
    }

    /// What scripts run against.
    pub fn subject(&self) -> &S {
        &self.subject
    }

    /// Runs a script from its text, on no samples.
    ///
    /// # Errors
    /// The text is no script, or loads what the subject does not take.
    pub fn run(&mut self, text: &str) -> Result<Report, ScriptError> {
        self.subject.clear();
        let mut report = Report::default();
        for command in parse(text)? {
            match command {
                Command::Clear => self.subject.clear(),
                Command::Load { series, starts, is_with_native, line } => {
                    loaded(series, starts, is_with_native)
                        .and_then(|series| self.subject.load(&series))
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

    fn outcome(&mut self, eval: &Eval) -> Outcome {
        match self.check(eval) {
            Ok(()) => Outcome::Passed,
            Err(reason) => Outcome::Failed(reason),
        }
    }

    fn check(&mut self, eval: &Eval) -> Result<(), String> {
        let fails: Vec<&Expect> =
            eval.expects.iter().filter(|expect| expect.kind == ExpectKind::Fail).collect();
        let answer = match self.subject.ask(&eval.text, eval.times) {
            Ok(_) if !fails.is_empty() => return Err("expected a failure".to_string()),
            Ok(answer) => answer,
            Err(Unanswered::Broken(reason)) => return Err(format!("no answer: {reason}")),
            Err(Unanswered::Failed(error)) if fails.is_empty() => {
                return Err(format!("failed: {error}"));
            }
            Err(Unanswered::Failed(error)) => return check_failure(&error, &fails),
        };
        check_notes(&answer, &eval.expects)?;
        check_value(eval, &answer.value)?;
        match eval.times {
            Times::Instant(at_ms) => self.check_as_range(eval, at_ms, &answer.value),
            Times::Range(..) => Ok(()),
        }
    }

    /// An instant evaluation must agree with the middle step of a range around it.
    fn check_as_range(&mut self, eval: &Eval, at_ms: i64, value: &Answered) -> Result<(), String> {
        let is_ordered = eval.expects.iter().any(|expect| expect.kind == ExpectKind::Ordered);
        // MetricsQL's windows depend on whether there is one step or many.
        let is_metricsql = self.dialect == Dialect::MetricsQl;
        if is_metricsql || is_ordered || matches!(value, Answered::String(_) | Answered::Matrix(_))
        {
            return Ok(());
        }
        let uses_the_range = ["start(", "end(", "step(", "range("];
        if uses_the_range.iter().any(|call| eval.text.contains(call)) {
            return Ok(());
        }
        let steps = Times::Range(at_ms - 60_000, at_ms + 60_000, 60_000);
        let answer = self
            .subject
            .ask(&eval.text, steps)
            .map_err(|unanswered| format!("as a range: {unanswered:?}"))?;
        let Answered::Matrix(matrix) = answer.value else {
            return Err("as a range: no matrix".to_string());
        };
        let mut found: Vec<(Labels, Found)> = Vec::new();
        for (labels, points) in matrix {
            let at_step = points.into_iter().find(|(time, _)| *time == at_ms);
            found.extend(at_step.map(|(_, point)| (labels, point)));
        }
        match (value, found.as_slice()) {
            (Answered::Scalar(expected), [(_, Found::Number(value))]) => compare(*expected, *value),
            (Answered::Scalar(_), _) => Err("no scalar".to_string()),
            _ => compare_samples(&eval.series, found),
        }
        .map_err(|reason| format!("as a range: {reason}"))
    }
}

fn check_failure(text: &str, expects: &[&Expect]) -> Result<(), String> {
    match expects.iter().find(|expect| !matches(&expect.message, text)) {
        None => Ok(()),
        Some(expect) => Err(format!("failed with {text:?}, not with {:?}", expect.message)),
    }
}

fn matches(expected: &MessageMatch, text: &str) -> bool {
    match expected {
        MessageMatch::Any => true,
        MessageMatch::Exact(expected) => text == expected,
        MessageMatch::Regex(pattern) => re2::Expression::parse(pattern, false)
            .and_then(|parsed| parsed.compile(re2::Limits::new(promql::REGEX_SIZE_MAX)))
            .is_ok_and(|regexp| regexp.is_match(text)),
    }
}

fn check_notes(answer: &Answer, expects: &[Expect]) -> Result<(), String> {
    let kinds = [
        (ExpectKind::Warn, ExpectKind::NoWarn, &answer.warnings),
        (ExpectKind::Info, ExpectKind::NoInfo, &answer.infos),
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

fn check_value(eval: &Eval, value: &Answered) -> Result<(), String> {
    match value {
        Answered::Scalar(value) => match eval.scalar {
            Some(expected) => compare(expected, *value),
            None if eval.series.is_empty() => Ok(()),
            None => Err(format!("expected series, got the scalar {value}")),
        },
        Answered::String(value) => match &eval.string {
            Some(expected) if expected == value => Ok(()),
            expected => Err(format!("expected {expected:?}, got the string {value:?}")),
        },
        Answered::Vector(samples) => {
            if let Some(expected) = eval.scalar {
                return Err(format!("expected the scalar {expected}, got a vector"));
            }
            if eval.expects.iter().any(|expect| expect.kind == ExpectKind::Ordered) {
                let order = |labels: Vec<&Labels>| format!("{labels:?}");
                let expected = order(eval.series.iter().map(|(labels, _)| labels).collect());
                let got = order(samples.iter().map(|(labels, _)| labels).collect());
                if expected != got {
                    return Err(format!("expected the order {expected}, got {got}"));
                }
            }
            compare_samples(&eval.series, samples.clone())
        }
        Answered::Matrix(matrix) => compare_matrix(eval, matrix),
    }
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
    expected.sort_by(|a, b| a.0.cmp(b.0));
    found.sort_by(|a, b| a.0.cmp(&b.0));
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

fn compare_matrix(eval: &Eval, matrix: &[(Labels, Vec<(i64, Found)>)]) -> Result<(), String> {
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
    expected.sort_by(|a, b| a.0.cmp(b.0));
    if expected.len() != matrix.len() && !is_scalar {
        return Err(format!("expected {expected:?}, got {matrix:?}"));
    }
    let mut matrix: Vec<&(Labels, Vec<(i64, Found)>)> = matrix.iter().collect();
    matrix.sort_by(|a, b| a.0.cmp(&b.0));
    for ((found_labels, found), (labels, points)) in matrix.iter().zip(&expected) {
        let same_times = points.iter().map(|p| p.0).eq(found.iter().map(|p| p.0));
        if *labels != found_labels || !same_times {
            return Err(format!("expected {labels} {points:?}, got {matrix:?}"));
        }
        for ((time, expected), (_, found)) in points.iter().zip(found) {
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
        (Point::Histogram(expected), Found::Shown(found)) if found.shows(&expected.histogram) => {
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
