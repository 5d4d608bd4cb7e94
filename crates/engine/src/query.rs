//! A query: its options and limits going in, its value, notes and counters coming out.

use crate::brief::is_brief;
use crate::call::Evaluate;
use crate::context::Context;
use crate::error::{QueryError, Result};
use crate::eval::Evaluator;
use crate::histograms::results::{only_histogram, take_points};
use crate::metricsql;
use crate::names_kept::with_names_if_needed;
use crate::options::QueryOptions;
use crate::result::{Matrix, QueryResult, Sample, Value};
use crate::scalar::Scalar;
use crate::source::Source;
use crate::time::{Grid, StepRange};
use crate::vector::Vector;
use model::Labels;
use promql::{Dialect, Expr, QueryTimes, ValueType};
use std::time::{Duration, Instant};

/// Steps that Prometheus' HTTP API allows after the first.
pub const STEPS_MAX: i64 = 11_000;

/// How often a query starts again because series were deleted meanwhile.
const CHANGES_MAX: usize = 3;

/// Evaluates `text` at one moment.
///
/// # Errors
/// The text is no expression, the expression has no value, a limit or the deadline is reached.
pub fn instant(
    source: &dyn Source,
    text: &str,
    at_ms: i64,
    options: &QueryOptions,
) -> Result<QueryResult> {
    if options.dialect == Dialect::MetricsQl {
        return in_metricsql(
            source,
            text,
            options,
            (Grid::instant(at_ms), at_ms),
            &|context, expr| metricsql::instant(context, expr, at_ms),
        );
    }
    let times = QueryTimes { step_ms: 0, range_ms: 0 };
    let (expr, parse) = parse(text, options, times)?;
    let evaluate = |options: &QueryOptions, collision| {
        let grid = Grid::instant(at_ms);
        let context = Context::new(source, text, options, grid, at_ms).watching(collision);
        let result = evaluate_instant(&context, &expr, grid)?;
        Ok((result, context.collision.get()))
    };
    let mut result = again_if_changed(|| with_names_if_needed(evaluate, &expr, options))?;
    result.timings.parse = parse;
    Ok(result)
}

/// Evaluates an expression, parsed from `text`, at one moment.
///
/// # Errors
/// As [`instant`].
pub fn instant_expr(
    source: &dyn Source,
    text: &str,
    expr: &Expr,
    at_ms: i64,
    options: &QueryOptions,
) -> Result<QueryResult> {
    let grid = Grid::instant(at_ms);
    let context = || Context::new(source, text, options, grid, at_ms);
    again_if_changed(|| evaluate_instant(&context(), expr, grid))
}

fn evaluate_instant(context: &Context<'_>, expr: &Expr, grid: Grid) -> Result<QueryResult> {
    let evaluator = Evaluator { context };
    let value = match expr.value_type() {
        ValueType::String => Value::String(evaluator.string(expr)?),
        ValueType::Scalar => Value::Scalar(evaluator.scalar(expr, grid)?.at(0)),
        ValueType::Vector => {
            let vector = evaluator.vector(expr, grid)?.without_late_names()?;
            Value::Vector(context.sorting(|| samples(vector)))
        }
        ValueType::Matrix => Value::Matrix(evaluator.matrix(expr, grid.start_ms)?),
    };
    context.finish(value)
}

/// Evaluates `text` at every step of a range.
///
/// # Errors
/// As [`instant`]; also when the range makes no sense or has too many steps.
pub fn range(
    source: &dyn Source,
    text: &str,
    range: StepRange,
    options: &QueryOptions,
) -> Result<QueryResult> {
    if options.dialect == Dialect::MetricsQl {
        let grid = Grid::span(range.start_ms, range.end_ms, range.step_ms.max(1));
        let grid = grid.unwrap_or(Grid::instant(range.start_ms));
        return in_metricsql(source, text, options, (grid, range.end_ms), &|context, expr| {
            metricsql::range(context, expr, range)
        });
    }
    let StepRange { start_ms, end_ms, step_ms } = range;
    let times = QueryTimes { step_ms, range_ms: end_ms.saturating_sub(start_ms) };
    let (expr, parse) = parse(text, options, times)?;
    let mut result = range_parsed(source, text, &expr, range, options)?;
    result.timings.parse = parse;
    Ok(result)
}

/// As [`range`] in PromQL for what has been parsed already.
pub(crate) fn range_parsed(
    source: &dyn Source,
    text: &str,
    expr: &Expr,
    range: StepRange,
    options: &QueryOptions,
) -> Result<QueryResult> {
    let evaluate = |options: &QueryOptions, collision| {
        let grid = check_range(range)?;
        let context = Context::new(source, text, options, grid, range.end_ms).watching(collision);
        let result = evaluate_range(&context, expr, grid)?;
        Ok((result, context.collision.get()))
    };
    again_if_changed(|| with_names_if_needed(evaluate, expr, options))
}

/// Evaluates an expression, parsed from `text`, at every step of a range.
///
/// # Errors
/// As [`range`].
pub fn range_expr(
    source: &dyn Source,
    text: &str,
    expr: &Expr,
    range: StepRange,
    options: &QueryOptions,
) -> Result<QueryResult> {
    let grid = check_range(range)?;
    let context = || Context::new(source, text, options, grid, range.end_ms);
    again_if_changed(|| evaluate_range(&context(), expr, grid))
}

/// Evaluates a text in the other dialect over a grid and its end.
fn in_metricsql(
    source: &dyn Source,
    text: &str,
    options: &QueryOptions,
    (grid, end_ms): (Grid, i64),
    evaluate: &dyn Fn(&Context<'_>, &promql::metricsql::Expr) -> Result<Value>,
) -> Result<QueryResult> {
    let started = Instant::now();
    let expr = match options.is_try() {
        true => metricsql::parse_brief(text)?,
        false => metricsql::parse(text)?,
    };
    let parse = started.elapsed();
    let mut result = again_if_changed(|| {
        let context = Context::new(source, text, options, grid, end_ms);
        let value = evaluate(&context, &expr)?;
        context.finish(value)
    })?;
    result.timings.parse = parse;
    Ok(result)
}

/// A merge may drop deleted series between their selection and their reading.
fn again_if_changed(evaluate: impl Fn() -> Result<QueryResult>) -> Result<QueryResult> {
    for _ in 0..CHANGES_MAX {
        match evaluate() {
            Err(QueryError::Changed) => {}
            other => return other,
        }
    }
    evaluate()
}

fn evaluate_range(context: &Context<'_>, expr: &Expr, grid: Grid) -> Result<QueryResult> {
    let evaluator = Evaluator { context };
    let value = match expr.value_type() {
        ValueType::Scalar => {
            let values = match evaluator.scalar(expr, grid)? {
                Scalar::Constant(value) => vec![value; grid.len],
                Scalar::Steps(values) => values,
            };
            Matrix::on_grid(grid, vec![Labels::default()], values)
        }
        ValueType::Vector => {
            let vector = evaluator.vector(expr, grid)?.without_late_names()?;
            let (keys, mut values, histograms) = vector.into_parts();
            let histograms = take_points(grid, &mut values, histograms);
            let labels = keys.into_iter().map(|key| key.labels).collect();
            context.sorting(|| Matrix::on_grid(grid, labels, values).with_histograms(histograms))
        }
        other => {
            return Err(QueryError::BadData(format!(
                "invalid expression type \"{}\" for range query, must be Scalar or instant Vector",
                other.documented()
            )));
        }
    };
    context.finish(Value::Matrix(value))
}

/// The tree, and how long it took to make it.
pub(crate) fn parse(
    text: &str,
    options: &QueryOptions,
    times: QueryTimes,
) -> Result<(Expr, Duration)> {
    let started = Instant::now();
    let known = promql::Options { experimental_functions: options.experimental_functions };
    let mut expr = promql::parse_with(text, &known)?;
    if options.is_try() && !is_brief(&expr) {
        return Err(QueryError::NotBrief);
    }
    promql::settle_durations(text, &mut expr, times)?;
    Ok((expr, started.elapsed()))
}

/// The grid of a range, whose errors are those of Prometheus' HTTP API.
pub(crate) fn check_range(range: StepRange) -> Result<Grid> {
    let bad = |message: &str| Err(QueryError::BadData(message.to_string()));
    if range.end_ms < range.start_ms {
        return bad("invalid parameter \"end\": end timestamp must not be before start time");
    }
    if range.step_ms <= 0 {
        return bad(
            "invalid parameter \"step\": zero or negative query resolution step widths are not \
             accepted. Try a positive integer",
        );
    }
    match Grid::span(range.start_ms, range.end_ms, range.step_ms) {
        Some(grid) if grid.len as i64 - 1 <= STEPS_MAX => Ok(grid),
        _ => {
            bad("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the \
             query resolution (?step=XX)")
        }
    }
}

/// The samples of a vector of one step, in order.
fn samples(vector: Vector) -> Vec<Sample> {
    let is_ordered = vector.is_ordered;
    let (keys, values, histograms) = vector.into_parts();
    let mut samples: Vec<Sample> = keys
        .into_iter()
        .zip(values)
        .map(|(key, value)| Sample::number(key.labels, value))
        .collect();
    if let Some(rows) = histograms {
        for (idx, sample) in samples.iter_mut().enumerate() {
            sample.histogram = only_histogram(&rows, idx);
        }
    }
    if !is_ordered {
        samples.sort_by(|a, b| a.labels.cmp(&b.labels));
    }
    samples
}
