//! A bound on patterns of `LIKE` and `ILIKE` that a statement makes, that have many wildcards or that come as
//! parameters: DataFusion makes a regular expression of each without one.

use crate::types::error::SqlError;
use crate::types::function::function;
use crate::types::runtime::cancellation;
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::arrow::array::{ArrayRef, AsArray as _};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, ScalarUDF, Signature, Volatility};

/// `like_pattern(text, pattern)` is the pattern, if a match with the text has a bound.
pub const LIKE_PATTERN: &str = "like_pattern";
/// The same for `ILIKE`.
pub const ILIKE_PATTERN: &str = "ilike_pattern";
/// Bytes of a pattern that becomes a regular expression.
const LENGTH_MAX: usize = 64 << 10;
/// Wildcards of a pattern times bytes of a text: a match takes some 30 ns for each.
const MATCH_COST_MAX: u64 = 1 << 28;
/// A literal with fewer wildcards needs no check, nor does one that is shorter than this.
const CHEAP_WILDCARDS: usize = 64;
const CHEAP_LENGTH: usize = 4 << 10;

/// The functions.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    let bounded = |name: &'static str, ignores_case: bool| {
        let signature = Signature::any(2, Volatility::Immutable);
        let check = move |args: &[ArrayRef], _: usize| check_all(args, ignores_case);
        function(name, signature, |_| DataType::Utf8View, check)
    };
    [bounded(LIKE_PATTERN, false), bounded(ILIKE_PATTERN, true)].into_iter()
}

/// Tells whether a literal pattern is cheap for every text.
pub fn is_cheap(pattern: &str) -> bool {
    pattern.len() <= CHEAP_LENGTH && wildcards(pattern) <= CHEAP_WILDCARDS
}

/// Takes the check off patterns that are cheap literals once the parameters are known: the store's index
/// answers a literal pattern.
///
/// # Errors
/// Those of the plan.
pub fn without_checks(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_plans_up(|node| {
        let names = NamePreserver::new(&node);
        node.transform_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|expr| Ok(without_check(expr)))?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })
    });
    Ok(changed?.data)
}

fn without_check(expr: Expr) -> Transformed<Expr> {
    let pattern = match &expr {
        Expr::ScalarFunction(called)
            if [LIKE_PATTERN, ILIKE_PATTERN].contains(&called.func.name()) =>
        {
            called.args.get(1)
        }
        _ => None,
    };
    match pattern {
        Some(Expr::Literal(value, _))
            if value.is_null() || value.try_as_str().flatten().is_some_and(is_cheap) =>
        {
            Transformed::yes(Expr::Literal(value.clone(), None))
        }
        _ => Transformed::no(expr),
    }
}

fn wildcards(pattern: &str) -> usize {
    pattern.bytes().filter(|byte| matches!(byte, b'%' | b'_')).count()
}

/// Tells whether a pattern is a plain text, perhaps with `%` at its ends, which is searched for as it is.
fn is_plain(pattern: &str) -> bool {
    let inner = pattern.strip_prefix('%').unwrap_or(pattern);
    let inner = inner.strip_suffix('%').unwrap_or(inner);
    wildcards(inner) == 0 && !inner.contains('\\')
}

fn check_all(args: &[ArrayRef], ignores_case: bool) -> Result<ArrayRef> {
    let (texts, patterns) = (&args[0], cast(&args[1], &DataType::Utf8View)?);
    let texts = cast(texts, &DataType::Utf8View)?;
    for (text, pattern) in texts.as_string_view().iter().zip(patterns.as_string_view()) {
        cancellation::check()?;
        let (Some(text), Some(pattern)) = (text, pattern) else { continue };
        if is_plain(pattern) && !ignores_case {
            continue;
        }
        check(pattern, text.len()).map_err(|error| DataFusionError::External(Box::new(error)))?;
    }
    Ok(patterns)
}

fn check(pattern: &str, text_size: usize) -> Result<(), SqlError> {
    if LENGTH_MAX < pattern.len() {
        let words = format!("a pattern of {} bytes, at most {LENGTH_MAX}", pattern.len());
        return Err(SqlError::limit(words));
    }
    let cost = (wildcards(pattern) as u64).saturating_mul(text_size as u64);
    if MATCH_COST_MAX < cost {
        let count = wildcards(pattern);
        let words = format!("a pattern with {count} wildcards and a text of {text_size} bytes");
        return Err(SqlError::limit(words));
    }
    Ok(())
}

/// What makes a dot match a newline.
pub const DOT_IS_ANY: &str = "(?s)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_patterns_are_refused() {
        let code = |pattern: &str, size| check(pattern, size).map_err(|error| error.code);
        assert_eq!(code("a%b_c", 1 << 20), Ok(()));
        assert_eq!(code(&"_".repeat(70_000), 1), Err("54000"));
        assert_eq!(code(&"%a".repeat(10_000), 1_000_000), Err("54000"));
        assert_eq!(code(&"%a".repeat(10_000), 1_000), Ok(()));
        assert!(is_cheap("%host-_1%") && !is_cheap(&"%a".repeat(100)));
        assert!(is_plain("%a b%") && is_plain("ab") && !is_plain("a%b") && !is_plain("a\\%"));
    }
}
