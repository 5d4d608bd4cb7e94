//! Queries whose rollups of several metrics are grouped by the metric's name.
//!
//! Prometheus has no answer to `max by (__name__) (max_over_time({__name__=~"a|b"}[5m]))`: the rollup
//! drops the names and then two series of one host have equal labels. We answer it with the names
//! kept (`docs/decisions/0006-names-of-rollups.md`), and only then, so whether rows collide has to be
//! known. What will most likely collide is evaluated with its names at once, while the rows are
//! watched; the other way round every such query would be evaluated twice.

use crate::context::Collision;
use crate::error::{QueryError, Result};
use crate::functions;
use crate::options::{NameRemoval, QueryOptions};
use crate::result::QueryResult;
use model::{METRIC_NAME, MatchOp};
use promql::{Aggregate, Expr, Grouping, VectorSelector};

/// Evaluates with names dropped as the options say, and with kept names where that has no answer.
pub(crate) fn with_names_if_needed(
    evaluate: impl Fn(&QueryOptions, Collision) -> Result<(QueryResult, Collision)>,
    expr: &Expr,
    options: &QueryOptions,
) -> Result<QueryResult> {
    let by_name = aggregate_by_name(expr).filter(|_| options.name_removal == NameRemoval::AtOnce);
    let Some(aggregate) = by_name else {
        return Ok(evaluate(options, Collision::Unwatched)?.0);
    };
    let name_removal = NameRemoval::KeepOverTime;
    let keeping = QueryOptions { name_removal, ..options.clone() };
    if will_collide(aggregate)
        && let Ok((result, Collision::Found)) = evaluate(&keeping, Collision::Watched)
    {
        return Ok(result);
    }
    match evaluate(options, Collision::Unwatched) {
        Err(error) if error == QueryError::same_labels() => {
            Ok(evaluate(&keeping, Collision::Unwatched)?.0)
        }
        other => Ok(other?.0),
    }
}

fn aggregate_by_name(expr: &Expr) -> Option<&Aggregate> {
    let Expr::Aggregate(aggregate) = expr.without_parens() else { return None };
    match &aggregate.grouping {
        Grouping::By(names) if names.iter().any(|name| name == METRIC_NAME) => Some(aggregate),
        _ => None,
    }
}

/// A guess that costs nothing when it is wrong but time.
fn will_collide(aggregate: &Aggregate) -> bool {
    let Expr::Call(call) = aggregate.expr.without_parens() else { return false };
    let keeps_scale = functions::rollup(call.function.name)
        .is_some_and(|rollup| rollup.keeps_scale() && !rollup.keeps_name());
    let of_many = call.arguments.iter().any(|argument| match argument.without_parens() {
        Expr::Matrix(matrix) => !demands_one_name(&matrix.selector),
        _ => false,
    });
    keeps_scale && of_many
}

/// Whether all series of a selector have the same metric name.
pub(crate) fn demands_one_name(selector: &VectorSelector) -> bool {
    selector.matchers.iter().any(|matcher| {
        let is_one = match matcher.op {
            MatchOp::Equal => true,
            MatchOp::Regex => is_literal(&matcher.value),
            MatchOp::NotEqual | MatchOp::NotRegex => false,
        };
        matcher.name == METRIC_NAME && is_one && !matcher.value.is_empty()
    })
}

/// Whether a regular expression is one string without alternatives, parentheses apart.
fn is_literal(pattern: &str) -> bool {
    let inner = pattern.trim_end_matches(')');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'(');
    !inner.is_empty() && inner.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_is_seen() {
        for (selector, expected) in [
            ("up", true),
            ("{__name__=~\"cpu_(user)\"}", true),
            ("{__name__=~\"cpu_user\", a=\"b\"}", true),
            ("{__name__=~\"cpu_(user|idle)\"}", false),
            ("{__name__=~\"cpu_.*\"}", false),
            ("{__name__=~\"cpu_[ab]\"}", false),
            ("{__name__=~\"cpu_?\"}", false),
            ("{__name__!=\"up\", a=\"b\"}", false),
            ("{a=\"b\"}", false),
        ] {
            let expr = promql::parse(selector).expect(selector);
            let Expr::Vector(vector) = &expr else { panic!("{selector}") };
            assert_eq!(demands_one_name(vector), expected, "{selector}");
        }
    }
}
