//! `sort` and its kin: the order of the rows of an instant query.

use crate::call::CallContext;
use crate::error::Result;
use crate::vector::Vector;
use promql::{Call, Expr};
use std::cmp::Ordering;

/// `sort`.
pub(crate) fn ascending(call: &CallContext<'_>) -> Result<Vector> {
    by_value(call, |order| order)
}

/// `sort_desc`.
pub(crate) fn descending(call: &CallContext<'_>) -> Result<Vector> {
    by_value(call, Ordering::reverse)
}

/// `sort_by_label`.
pub(crate) fn by_label(call: &CallContext<'_>) -> Result<Vector> {
    reordered(call, call.vector(0)?, |vector, order| sort_by_labels(call, vector, order))
}

/// `sort_by_label_desc`.
pub(crate) fn by_label_descending(call: &CallContext<'_>) -> Result<Vector> {
    reordered(call, call.vector(0)?, |vector, order| {
        sort_by_labels(call, vector, order)?;
        order.reverse();
        Ok(())
    })
}

fn by_value(call: &CallContext<'_>, direction: fn(Ordering) -> Ordering) -> Result<Vector> {
    reordered(call, call.numbers(0)?, |vector, order| {
        order.sort_by(|a, b| {
            let (a, b) = (vector.row(*a)[0], vector.row(*b)[0]);
            nan_last(a, b)
                .unwrap_or_else(|| direction(a.partial_cmp(&b).unwrap_or(Ordering::Equal)))
        });
        Ok(())
    })
}

/// Puts rows in the order that `sort` makes. Ranges, also of subqueries, are ordered by labels, so
/// they get a warning instead.
fn reordered(
    call: &CallContext<'_>,
    mut vector: Vector,
    sort: impl FnOnce(&Vector, &mut [usize]) -> Result<()>,
) -> Result<Vector> {
    if call.context.is_range.get() && !is_evaluated_once(call.call) {
        let message =
            "sort is ineffective for range queries since results are always ordered by labels";
        call.context.annotations.warn(call.call.span, message.to_string());
        return Ok(vector);
    }
    if call.grid.len != 1 {
        return Ok(vector);
    }
    let mut order: Vec<usize> = (0..vector.len()).collect();
    sort(&vector, &mut order)?;
    vector.reorder(&order);
    vector.is_ordered = true;
    Ok(vector)
}

/// Whether Prometheus evaluates a call once for all steps.
fn is_evaluated_once(call: &Call) -> bool {
    match call.function.name {
        "days_in_month" | "day_of_month" | "day_of_week" | "day_of_year" | "end" | "hour"
        | "minute" | "month" | "year" | "predict_linear" | "range" | "start" | "step" | "time" => {
            false
        }
        "timestamp" => {
            let argument = call.arguments[0].without_parens();
            matches!(argument, Expr::Vector(selector) if selector.at.is_some())
        }
        _ => call.arguments.iter().all(is_invariant),
    }
}

/// Whether Prometheus takes an expression for one whose value does not depend on the step.
fn is_invariant(expr: &Expr) -> bool {
    match expr {
        Expr::Number(_) | Expr::String(_) => true,
        Expr::Vector(selector) => selector.at.is_some(),
        Expr::Matrix(matrix) => matrix.selector.at.is_some(),
        Expr::Subquery(subquery) => subquery.at.is_some(),
        Expr::Paren(paren) => is_invariant(&paren.expr),
        Expr::Unary(unary) => is_invariant(&unary.expr),
        Expr::Binary(binary) => is_invariant(&binary.left) && is_invariant(&binary.right),
        Expr::Aggregate(aggregate) => is_invariant(&aggregate.expr),
        Expr::Call(call) => is_evaluated_once(call),
    }
}

fn sort_by_labels(call: &CallContext<'_>, vector: &Vector, order: &mut [usize]) -> Result<()> {
    let labels = call.strings(1)?;
    order.sort_by(|a, b| by_labels(vector, &labels, *a, *b));
    Ok(())
}

/// Whichever way numbers go, NaN is at the bottom.
fn nan_last(a: f64, b: f64) -> Option<Ordering> {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => None,
        (a, b) => Some(a.cmp(&b)),
    }
}

fn by_labels(vector: &Vector, names: &[String], a: usize, b: usize) -> Ordering {
    let (a, b) = (&vector.key(a).labels, &vector.key(b).labels);
    names
        .iter()
        .map(|name| natural(a.get(name).unwrap_or(""), b.get(name).unwrap_or("")))
        .find(|order| order.is_ne())
        .unwrap_or_else(|| a.cmp(b))
}

/// Compares text as people do: runs of digits by their number, so `x2` is before `x10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    while !a.is_empty() && !b.is_empty() {
        let (head_a, rest_a) = split_run(a);
        let (head_b, rest_b) = split_run(b);
        let are_numbers =
            head_a.as_bytes()[0].is_ascii_digit() && head_b.as_bytes()[0].is_ascii_digit();
        let order = if are_numbers { compare_numbers(head_a, head_b) } else { head_a.cmp(head_b) };
        if order.is_ne() {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
    a.len().cmp(&b.len())
}

/// The leading run of digits or of other characters, and the rest.
fn split_run(text: &str) -> (&str, &str) {
    let is_number = text.as_bytes()[0].is_ascii_digit();
    let end = text.bytes().position(|byte| byte.is_ascii_digit() != is_number);
    text.split_at(end.unwrap_or(text.len()))
}

/// Digits of any length, without making a number of them.
fn compare_numbers(a: &str, b: &str) -> Ordering {
    let (value_a, value_b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    let by_value = value_a.len().cmp(&value_b.len()).then_with(|| value_a.cmp(value_b));
    by_value.then_with(|| a.len().cmp(&b.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn natural_order() {
        let mut names = ["x10", "x2", "x2a", "x", "", "10", "9", "x02", "y1"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["", "9", "10", "x", "x2", "x2a", "x02", "x10", "y1"]);
    }
}
