//! Operators that look for a pattern, where DataFusion would find something else than PostgreSQL.

use crate::error::SqlError;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result};
use datafusion::functions::regex::regexp_like;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, lit};

/// Signs within brackets that PostgreSQL has in another way, or not at all.
const OTHER_SIGNS: &[&str] = &["&&", "~~", "--", "[.", "[=", "[:<:]", "[:>:]"];

/// Flags of such an operator, and whether it says so where there is nothing; none of others.
pub fn flags_of(op: Operator) -> Option<(&'static str, bool)> {
    match op {
        Operator::RegexMatch => Some(("s", false)),
        Operator::RegexIMatch => Some(("is", false)),
        Operator::RegexNotMatch => Some(("s", true)),
        Operator::RegexNotIMatch => Some(("is", true)),
        _ => None,
    }
}

/// A pattern that is no literal, or has a backslash, as a call: DataFusion makes `LIKE '%\%'` of
/// `~ '\\'`, where the backslash escapes the percent sign, and lets a dot be no newline.
///
/// # Errors
/// When brackets of a literal mean something else here.
pub fn as_call(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let text = match &*right {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    };
    if let Some(text) = text.filter(|text| text.contains('['))
        && OTHER_SIGNS.iter().any(|sign| text.contains(sign))
    {
        let words =
            format!("brackets of a pattern that have one of {OTHER_SIGNS:?} are not known here");
        return Err(DataFusionError::External(Box::new(SqlError::unsupported(words))));
    }
    let is_plain = text.is_some_and(|text| !text.contains('\\'));
    match flags_of(op).filter(|_| !is_plain) {
        Some((flags, is_negated)) => {
            let call = regexp_like().call(vec![*left, *right, lit(flags)]);
            Ok(Transformed::yes(if is_negated { Expr::Not(Box::new(call)) } else { call }))
        }
        None => Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
    }
}
