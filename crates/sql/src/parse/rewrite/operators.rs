//! Operators and patterns.

use crate::functions::text::like_patterns;
use crate::functions::text::like_patterns::DOT_IS_ANY;
use crate::parse::rewrite::expressions::{call, literal, text_literal};
use crate::types::error::SqlError;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value, ValueWithSpan};

pub fn operator_of(text: &str) -> Option<BinaryOperator> {
    Some(match text {
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "||" => BinaryOperator::StringConcat,
        _ => return None,
    })
}

/// In PostgreSQL a dot is any character, a newline, too.
pub fn dot_is_any(pattern: &mut Expr) {
    if let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) = pattern
        && !text.starts_with("(?")
    {
        text.insert_str(0, DOT_IS_ANY);
    }
}

/// Checks that an escape is one character, or none.
///
/// # Errors
/// 22025.
pub fn check_escape(escape: Option<&ValueWithSpan>) -> Result<(), SqlError> {
    let text = escape.and_then(|value| value.value.clone().into_string()).unwrap_or_default();
    match text.chars().nth(1) {
        None => Ok(()),
        Some(_) => Err(SqlError::new("22025", "invalid escape string")),
    }
}

/// A pattern with an escape of its own as one whose escape is a backslash.
pub fn escape_by_backslash(pattern: &mut Expr, escape: Option<ValueWithSpan>) {
    let Some(escape) = escape.and_then(|value| value.value.into_string()) else { return };
    if escape.is_empty() {
        // Nothing escapes.
        *pattern = match joined(pattern) {
            Some(text) => text_literal(text.replace('\\', "\\\\")),
            None => call(
                "replace",
                vec![pattern.clone(), text_literal("\\".into()), text_literal("\\\\".into())],
            ),
        };
        return;
    }
    if let Some(escape) = escape.chars().next().filter(|one| *one != '\\') {
        *pattern = with_backslash(pattern, escape);
    }
}

/// Has the pattern of a `LIKE` checked unless it is a cheap literal.
pub fn bound_pattern(function: &str, text: &Expr, pattern: &mut Expr) {
    let is_cheap = joined(pattern).is_some_and(|literal| like_patterns::is_cheap(&literal));
    if !is_cheap {
        *pattern = call(function, vec![text.clone(), pattern.clone()]);
    }
}

/// `LIKE pattern ESCAPE '/'` as one whose escape is a backslash, the only one that DataFusion knows.
fn with_backslash(pattern: &Expr, escape: char) -> Expr {
    let Some(text) = joined(pattern) else {
        let plain = call(
            "replace",
            vec![pattern.clone(), text_literal("\\".into()), text_literal("\\\\".into())],
        );
        return call(
            "replace",
            vec![plain, text_literal(escape.into()), text_literal("\\".into())],
        );
    };
    let mut made = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            _ if character == escape => {
                made.push('\\');
                made.extend(characters.next());
            }
            '\\' => made.push_str("\\\\"),
            plain => made.push(plain),
        }
    }
    text_literal(made)
}

/// The text of literals that are put together.
pub fn joined(expr: &Expr) -> Option<String> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } => {
            Some(joined(left)? + &joined(right)?)
        }
        Expr::Nested(inner) => joined(inner),
        plain => literal(plain),
    }
}

/// `a IS DISTINCT FROM b AND c` is `(a IS DISTINCT FROM b) AND c`; the parser takes all behind `FROM`.
pub fn bind_tightly(expr: &mut Expr) {
    let (Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right)) = &*expr else {
        return;
    };
    let Expr::BinaryOp { left, op, right: behind } = &**right else { return };
    if !matches!(op, BinaryOperator::And | BinaryOperator::Or) {
        return;
    }
    let (op, behind, inner) = (op.clone(), behind.clone(), left.clone());
    let mut made = match &*expr {
        Expr::IsDistinctFrom(left, _) => Expr::IsDistinctFrom(left.clone(), inner),
        Expr::IsNotDistinctFrom(left, _) => Expr::IsNotDistinctFrom(left.clone(), inner),
        _ => return,
    };
    bind_tightly(&mut made);
    *expr = Expr::BinaryOp { left: Box::new(made), op, right: behind };
}

/// Binds a sign to the first operand of `^`, as PostgreSQL does: `-2 ^ 2` is 4.
pub fn sign_before_power(expr: &mut Expr) {
    let is_power = |one: &Expr| matches!(one, Expr::BinaryOp { op: BinaryOperator::PGExp, .. });
    let Expr::UnaryOp { op: UnaryOperator::Minus, expr: power } = &mut *expr else { return };
    if !is_power(power) {
        return;
    }
    let mut first = &mut **power;
    while let Expr::BinaryOp { left, op: BinaryOperator::PGExp, .. } = first {
        first = &mut **left;
    }
    let operand = Box::new(std::mem::replace(first, Expr::Value(Value::Null.into())));
    let signed = Expr::UnaryOp { op: UnaryOperator::Minus, expr: operand };
    *first = Expr::Nested(Box::new(signed));
    *expr = std::mem::replace(power, Expr::Value(Value::Null.into()));
}
