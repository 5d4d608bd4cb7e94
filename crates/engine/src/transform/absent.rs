//! `absent` and `absent_over_time`: one series where there is none.

use crate::error::Result;
use crate::eval::Evaluator;
use crate::gap::{ABSENT, is_absent};
use crate::row::Key;
use crate::time::Grid;
use crate::vector::Vector;
use model::{Labels, LabelsBuilder, METRIC_NAME, MatchOp, Matcher};
use promql::{Call, Expr};
use std::collections::HashSet;

/// Evaluates a call of such a function.
pub(crate) fn call(evaluator: &Evaluator<'_>, call: &Call, grid: Grid) -> Result<Vector> {
    let argument = call.arguments[0].without_parens();
    let mut row = vec![1.0; grid.len];
    let mut take = |values: &[f64]| {
        for (mark, value) in row.iter_mut().zip(values) {
            if !is_absent(*value) {
                *mark = ABSENT;
            }
        }
    };
    if call.function.name == "absent" {
        evaluator.stream(argument, grid, Some(&[]), &mut |row| {
            take(row.values);
            Ok(())
        })?;
    } else {
        evaluator.stream_presence(call, grid, &mut |row| {
            take(row.values);
            Ok(())
        })?;
    }
    let mut vector = Vector::new(evaluator.context, grid.len);
    vector.push(evaluator.context, Key::new(demanded_labels(argument)), &row)?;
    Ok(vector)
}

/// The labels that a selector demands by `=`, each once.
fn demanded_labels(expr: &Expr) -> Labels {
    let matchers: &[Matcher] = match expr {
        Expr::Vector(selector) => &selector.matchers,
        Expr::Matrix(matrix) => &matrix.selector.matchers,
        _ => &[],
    };
    let mut labels = LabelsBuilder::new();
    let mut seen = HashSet::new();
    for matcher in matchers.iter().filter(|matcher| matcher.name != METRIC_NAME) {
        if matcher.op == MatchOp::Equal && seen.insert(&matcher.name) {
            labels.set(&matcher.name, &matcher.value);
        } else {
            labels.remove(&matcher.name);
        }
    }
    labels.finish()
}
