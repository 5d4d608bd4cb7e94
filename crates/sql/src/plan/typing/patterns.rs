//! Operators that look for a pattern, where DataFusion would find something else than PostgreSQL.

use crate::functions::text::regexps::LIKE;
use crate::types::error::SqlError;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result};
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

/// Whether one of them stands within brackets of a pattern.
fn has_other_signs(pattern: &str) -> bool {
    let (mut is_open, mut begins, mut at) = (false, 0, 0);
    while let Some(rest) = pattern.get(at..).filter(|rest| !rest.is_empty()) {
        if is_open && OTHER_SIGNS.iter().any(|sign| rest.starts_with(sign)) {
            return true;
        }
        let mut characters = rest.chars();
        match characters.next() {
            Some('\\') => at += characters.next().map_or(0, char::len_utf8),
            Some('[') if !is_open => {
                // The first bracket behind these closes nothing.
                let signs = usize::from(rest.starts_with("[^"));
                (is_open, begins) = (true, at + 1 + signs);
            }
            Some(']') if is_open && at != begins => is_open = false,
            _ => {}
        }
        at += rest.chars().next().map_or(1, char::len_utf8);
    }
    false
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
    if text.is_some_and(has_other_signs) {
        let words =
            format!("brackets of a pattern that have one of {OTHER_SIGNS:?} are not known here");
        return Err(DataFusionError::External(Box::new(SqlError::unsupported(words))));
    }
    let is_plain = text.is_some_and(|text| !text.contains('\\'));
    match flags_of(op).filter(|_| !is_plain) {
        Some((flags, is_negated)) => {
            let call = LIKE.call(vec![*left, *right, lit(flags)]);
            Ok(Transformed::yes(if is_negated { Expr::Not(Box::new(call)) } else { call }))
        }
        None => Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
    }
}

#[cfg(test)]
mod tests {
    use super::has_other_signs;

    #[test]
    fn signs_are_others_within_brackets_alone() {
        for pattern in ["[a&&b]", "x[^]~~]", "[[.a.]]", "[[=a=]]", "[[:<:]]", "[]--z]", "[\\]a&&]"]
        {
            assert!(has_other_signs(pattern), "{pattern}");
        }
        for pattern in ["[a-z]--x", "a&&b", "[[:alpha:]]", "\\[a&&b\\]", "[é]~~", "[", "[a\\"] {
            assert!(!has_other_signs(pattern), "{pattern}");
        }
    }
}
