//! A whole query: from text to what leaves the engine.
//!
//! Answers are those of VictoriaMetrics without its two approximations: a range is not shifted to
//! multiples of the step, and the newest points are not replaced by older ones
//! (`docs/decisions/0011-metricsql.md`).

use super::brief::is_brief;
use super::eval::{Evaluator, Steps};
use super::prepare::turn_comparisons;
use super::pushdown::push_down;
use super::{Series, sort_by_name};
use crate::context::Context;
use crate::error::{QueryError, Result};
use crate::gap::ABSENT;
use crate::result::{Matrix, Sample, Value};
use crate::time::{Grid, StepRange, to_ns};
use model::TimeRange;
use promql::metricsql::{BinaryOp, Expr, Rollup};
use std::collections::HashSet;

/// Points that one series of a range may have.
const POINTS_MAX: usize = 30_000;

/// The tree of a text, ready to be evaluated.
///
/// # Errors
/// The text is no expression.
pub(crate) fn parse(text: &str) -> Result<Expr> {
    Ok(prepared(promql::metricsql::parse(text)?))
}

/// The same of a text that is little work.
///
/// # Errors
/// Also when it is not for sure, and for templates: they can make much of few bytes.
pub(crate) fn parse_brief(text: &str) -> Result<Expr> {
    let expr = prepared(promql::metricsql::parse_without_templates(text)?);
    if is_brief(&expr) { Ok(expr) } else { Err(QueryError::NotBrief) }
}

fn prepared(mut expr: Expr) -> Expr {
    push_down(&mut expr);
    turn_comparisons(&mut expr);
    expr
}

/// The value of an expression at one moment.
///
/// # Errors
/// The expression has no value, a limit or the deadline is reached.
pub(crate) fn instant(context: &Context<'_>, expr: &Expr, at_ms: i64) -> Result<Value> {
    let step_ms = context.options.metricsql.step_ms.max(1);
    if let Expr::Rollup(rollup) = expr
        && let Some(window) = rollup.window
        && rollup.at.is_none()
    {
        let step_ms = rollup.step.map_or(step_ms, |step| step.at_step(step_ms)).max(1);
        let offset_ms = rollup.offset.map_or(0, |offset| offset.at_step(step_ms));
        let end_ms = at_ms.saturating_sub(offset_ms);
        return window_of(context, rollup, (window.at_step(step_ms), step_ms), end_ms);
    }
    let grid = Grid { start_ms: at_ms, step_ms, len: 1 };
    let series = evaluate(context, expr, Steps { grid, end_ms: at_ms })?;
    let sample = |series: Series| Sample::number(series.labels, series.values[0]);
    Ok(Value::Vector(series.into_iter().map(sample).collect()))
}

/// `selector[5m]` alone is its samples, `expression[1h:1m]` alone its points.
fn window_of(
    context: &Context<'_>,
    rollup: &Rollup,
    (window_ms, step_ms): (i64, i64),
    end_ms: i64,
) -> Result<Value> {
    let start_ms = end_ms.saturating_sub(window_ms);
    if window_ms < 0 {
        return Err(QueryError::Execution("the window in brackets is negative".to_string()));
    }
    match &rollup.expr {
        Expr::Selector(_) if rollup.step.is_none() && window_ms == 0 => {
            Ok(Value::Matrix(Matrix::of_points(Vec::new())))
        }
        Expr::Selector(selector) if rollup.step.is_none() => {
            let first_ns = to_ns(start_ms.saturating_add(1));
            let range = TimeRange::new(first_ns.min(to_ns(end_ms)), to_ns(end_ms));
            Ok(Value::Matrix(Matrix::of_points(Evaluator::new(context).samples(selector, range)?)))
        }
        expr => range(context, expr, StepRange { start_ms, end_ms, step_ms }),
    }
}

/// The values of an expression at the steps of a range.
///
/// # Errors
/// As [`instant`]; also when the range makes no sense or has too many steps.
pub(crate) fn range(context: &Context<'_>, expr: &Expr, range: StepRange) -> Result<Value> {
    let bad = |message: String| Err(QueryError::BadData(message));
    if range.step_ms <= 0 {
        return bad("invalid parameter \"step\": it must be positive".to_string());
    }
    let grid = match Grid::span(range.start_ms, range.end_ms, range.step_ms) {
        Some(grid) if grid.len <= POINTS_MAX => grid,
        Some(grid) => {
            let len = grid.len;
            return bad(format!(
                "{len} points a series, the limit is {POINTS_MAX}; take a larger step"
            ));
        }
        None => return bad("invalid parameter \"end\": it must not be before start".to_string()),
    };
    let series = evaluate(context, expr, Steps { grid, end_ms: range.end_ms })?;
    let (mut labels, mut values) = (Vec::with_capacity(series.len()), Vec::new());
    for one in series {
        labels.push(one.labels);
        values.extend(one.values.iter().map(|v| if v.is_nan() { ABSENT } else { *v }));
    }
    Ok(Value::Matrix(Matrix::on_grid_as_they_stand(grid, labels, values)))
}

/// The series of an answer: those with points, sorted unless the expression says how, all different.
fn evaluate(context: &Context<'_>, expr: &Expr, steps: Steps) -> Result<Vec<Series>> {
    context.check_steps(steps.grid)?;
    let mut series = Evaluator::new(context).series(expr, steps)?;
    series.retain(|one| one.values.iter().any(|value| !value.is_nan()));
    if !orders_itself(expr) {
        sort_by_name(&mut series);
    }
    let mut seen = HashSet::with_capacity(series.len());
    for one in &series {
        if !seen.insert(&one.labels) {
            let message = format!("the answer has two series with the labels {:?}", one.labels);
            return Err(QueryError::Execution(message));
        }
    }
    Ok(series)
}

/// Whether the order of the answer's series is part of the answer.
fn orders_itself(expr: &Expr) -> bool {
    match expr {
        Expr::Call(call) => {
            call.function.name.starts_with("sort") || call.function.name == "limit_offset"
        }
        Expr::Aggregate(aggregate) => {
            let name = aggregate.function.name;
            name.starts_with("topk") || name.starts_with("bottomk") || name == "outliersk"
        }
        Expr::Binary(binary) => binary.op == BinaryOp::Or,
        _ => false,
    }
}
