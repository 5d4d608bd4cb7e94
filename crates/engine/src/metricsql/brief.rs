//! Which expressions are little work when their selectors find little.
//!
//! A query that is tried where it arrived (`docs/decisions/0007`) is bounded by what its selectors
//! read. Subqueries evaluate at steps of their own, and some functions take long for few samples:
//! what is not on the lists here is left to a worker thread.

use super::aggregate;
use super::rollup::{is_plain_rollup, series_argument};
use promql::metricsql::{Call, Expr, FunctionKind, Rollup};

/// Whether an expression costs about what its selectors read.
pub(crate) fn is_brief(expr: &Expr) -> bool {
    match expr {
        Expr::Number(_) | Expr::Duration(_) | Expr::String(_) | Expr::Selector(_) => true,
        Expr::Rollup(rollup) => is_window_of_selector(rollup),
        Expr::Call(call) => match call.function.kind {
            FunctionKind::Rollup => is_brief_rollup(call),
            _ => is_brief_transform(call.function.name) && call.arguments.iter().all(is_brief),
        },
        Expr::Aggregate(aggregate) => {
            aggregate::is_fold(aggregate.function.name) && aggregate.arguments.iter().all(is_brief)
        }
        Expr::Binary(binary) => is_brief(&binary.left) && is_brief(&binary.right),
        Expr::Union(_) => false,
    }
}

/// Brackets behind a selector that make no subquery, without `@`, which is evaluated first.
fn is_window_of_selector(rollup: &Rollup) -> bool {
    let is_subquery = rollup.has_colon || rollup.step.is_some();
    matches!(rollup.expr, Expr::Selector(_)) && !is_subquery && rollup.at.is_none()
}

fn is_brief_rollup(call: &Call) -> bool {
    let looked_at = series_argument(call.function.name, call.arguments.len());
    is_plain_rollup(call.function.name)
        && call.arguments.iter().enumerate().all(|(idx, argument)| match argument {
            Expr::Selector(_) => idx == looked_at,
            Expr::Rollup(rollup) => idx == looked_at && is_window_of_selector(rollup),
            argument => idx != looked_at && matches!(argument, Expr::Number(_)),
        })
}

/// Functions that do a step of arithmetic at each point.
fn is_brief_transform(name: &str) -> bool {
    matches!(
        name,
        "abs"
            | "ceil"
            | "clamp"
            | "clamp_max"
            | "clamp_min"
            | "exp"
            | "floor"
            | "ln"
            | "log10"
            | "log2"
            | "round"
            | "scalar"
            | "sgn"
            | "sqrt"
            | "time"
            | "vector"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_brief() {
        for (text, expected) in [
            ("1 + 2", true),
            ("up", true),
            ("up offset 5m", true),
            ("max(max_over_time({__name__=~'a|b', host='c'}[1m])) by (__name__)", true),
            ("sum(rate(a[5m])) / sum(rate(b[5m])) * 100", true),
            ("rate(a)", true),
            ("round(a, 0.1)", true),
            ("clamp_min(avg_over_time(a[5m] offset 1h), 0)", true),
            ("max_over_time(a[1h:1m])", false),
            ("max_over_time(rate(a[5m])[1h])", false),
            ("rate(sum(a))", false),
            ("rate(a + b)", false),
            ("a[1h:1m]", false),
            ("a @ 5", false),
            ("rate(a[5m] @ end())", false),
            ("median_over_time(a[5m])", false),
            ("quantile_over_time(0.5, a[5m])", false),
            ("mode_over_time(a[5m])", false),
            ("topk(5, a)", false),
            ("sum(topk(5, a))", false),
            ("sort(a)", false),
            ("range_median(a)", false),
            ("label_replace(a, 'b', '$1', 'c', '(.*)')", false),
            ("(a, b)", false),
        ] {
            let expr = promql::metricsql::parse(text).expect(text);
            assert_eq!(is_brief(&expr), expected, "{text}");
        }
    }
}
