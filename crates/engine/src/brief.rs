//! Which PromQL is little work when its selectors find little; for MetricsQL see
//! `metricsql/brief`.
//!
//! A query that is tried where it arrived (`docs/decisions/0007`) is bounded by what its selectors
//! read. Subqueries evaluate at steps of their own, and what sorts the samples of each window or
//! group takes long for few samples: both are left to a worker thread.

use crate::functions;
use promql::{AggregateOp, Call, Expr};

/// Whether an expression costs about what its selectors read.
pub(crate) fn is_brief(expr: &Expr) -> bool {
    match expr {
        Expr::Number(_) | Expr::String(_) | Expr::Vector(_) | Expr::Matrix(_) => true,
        Expr::Subquery(_) => false,
        Expr::Call(call) => !sorts(call) && call.arguments.iter().all(is_brief),
        Expr::Aggregate(aggregate) => {
            aggregate.op != AggregateOp::Quantile
                && aggregate.parameter.as_ref().is_none_or(is_brief)
                && is_brief(&aggregate.expr)
        }
        Expr::Binary(binary) => is_brief(&binary.left) && is_brief(&binary.right),
        Expr::Unary(unary) => is_brief(&unary.expr),
        Expr::Paren(paren) => is_brief(&paren.expr),
    }
}

/// Whether a function sorts what it looks at, at each step.
fn sorts(call: &Call) -> bool {
    functions::find(call.function.name).is_none_or(|function| function.sorts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_brief() {
        for (text, expected) in [
            ("1 + 2", true),
            ("up", true),
            ("sum by (job) (rate(a[5m])) / -(sum(b) * 100)", true),
            ("topk(5, a)", true),
            // Names and values may look like anything.
            ("job:up:sum", true),
            ("up{instance=\"localhost:9100\"}", true),
            ("task_quantile_seconds{x=\"[1h:5m]\"}", true),
            ("max_over_time(a[1h:1m])", false),
            ("max_over_time(a[1h:])", false),
            ("1 + max_over_time(rate(a[5m])[1h:1m])", false),
            ("-(a + rate(a[1h:1m]))", false),
            ("quantile(0.5, a)", false),
            ("sum(quantile by (x) (0.5, a))", false),
            ("topk(scalar(quantile(0.5, a)), b)", false),
            ("quantile_over_time(0.5, a[5m])", false),
            ("histogram_quantile(0.9, rate(a_bucket[5m]))", false),
            ("abs(mad_over_time(a[5m]))", false),
        ] {
            let options = promql::Options { experimental_functions: true };
            let expr = promql::parse_with(text, &options).expect(text);
            assert_eq!(is_brief(&expr), expected, "{text}");
        }
    }
}
