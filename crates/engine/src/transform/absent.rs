//! `absent` and `absent_over_time`: one series where there is none.

use crate::call::CallContext;
use crate::error::Result;
use crate::gap::{ABSENT, is_absent};
use crate::names::Key;
use crate::row::RowSink;
use crate::vector::Vector;
use model::{Labels, LabelsBuilder, METRIC_NAME, MatchOp, Matcher};
use promql::Expr;
use std::collections::HashSet;

/// `absent`.
pub(crate) fn absent(call: &CallContext<'_>) -> Result<Vector> {
    let argument = call.argument(0).without_parens();
    missing(call, |sink| call.evaluator.stream(argument, call.grid, Some(&[]), sink))
}

/// `absent_over_time`.
pub(crate) fn absent_over_time(call: &CallContext<'_>) -> Result<Vector> {
    missing(call, |sink| call.evaluator.stream_presence(call.call, call.grid, sink))
}

/// A row of ones at the steps at which no row that `stream` hands over has a value.
fn missing(
    call: &CallContext<'_>,
    stream: impl FnOnce(&mut RowSink<'_>) -> Result<()>,
) -> Result<Vector> {
    let mut marks = vec![1.0; call.grid.len];
    stream(&mut |row| {
        for (mark, value) in marks.iter_mut().zip(row.values) {
            if !is_absent(*value) {
                *mark = ABSENT;
            }
        }
        Ok(())
    })?;
    let labels = demanded_labels(call.argument(0).without_parens());
    let mut vector = Vector::new(call.context, call.grid.len);
    vector.push(call.context, Key::new(labels), &marks)?;
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
