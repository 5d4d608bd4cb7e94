//! Queries and expressions as texts that are kept: what was read of one is written back, and says the same when it
//! is read again.

use crate::parse::text::STEPS_MAX;
use crate::types::dialect::{Postgres, with_matchers};
use crate::types::error::SqlError;
use crate::types::traversal::walk_mut;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{Expr, Query, UnaryOperator, VisitorMut};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use std::fmt::Display;
use std::ops::ControlFlow;

/// A query as text.
///
/// # Errors
/// When the text would be another query.
pub fn query_text(query: &Query) -> Result<String, SqlError> {
    let mut query = query.clone();
    let _: ControlFlow<()> = walk_mut(&mut query, &mut Apart);
    checked(&query, |parser| parser.parse_query().map(|read| *read))
}

/// An expression as text.
///
/// # Errors
/// When the text would be another expression.
pub fn expression_text(expr: &Expr) -> Result<String, SqlError> {
    let mut expr = expr.clone();
    let _: ControlFlow<()> = walk_mut(&mut expr, &mut Apart);
    checked(&expr, |parser| parser.parse_expr())
}

/// Signs that stand before each other: `- -x` would be written `--x`, which begins a comment, and `~ -x` another
/// operator.
struct Apart;

impl VisitorMut for Apart {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::UnaryOp { op, expr: inner } = expr
            && *op != UnaryOperator::Not
            && matches!(**inner, Expr::UnaryOp { .. })
        {
            let signed = std::mem::replace(&mut **inner, Expr::Wildcard(AttachedToken::empty()));
            **inner = Expr::Nested(Box::new(signed));
        }
        ControlFlow::Continue(())
    }
}

fn checked<T: Display + PartialEq>(
    said: &T,
    read: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<String, SqlError> {
    let text = said.to_string();
    let dialect = Postgres::new(text.len());
    let tokens = Tokenizer::new(&dialect, &text).tokenize().map_err(ParserError::from);
    let again = tokens.and_then(|tokens| {
        let parser = Parser::new(&dialect).with_recursion_limit(STEPS_MAX);
        let mut parser = parser.with_tokens(with_matchers(tokens));
        let again = read(&mut parser)?;
        parser.expect_token(&Token::EOF).map(|_| again)
    });
    match again {
        Ok(again) if again == *said || again.to_string() == text => Ok(text),
        _ => {
            let words = format!("this cannot be kept as text, which would be: {text}");
            Err(SqlError::unsupported(words))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_says_the_same() {
        for (text, expected) in [
            ("- -5", "-(-5)"),
            ("- - -x", "-(-(-x))"),
            ("- (-5)", "-(-5)"),
            ("NOT NOT x", "NOT NOT x"),
            ("1 - -2", "1 - -2"),
            ("~ -1", "~(-1)"),
            ("@ -1", "@(-1)"),
            ("'o''x' || E'a\\nb'", "'o''x' || E'a\\nb'"),
            ("(1 + 2) * 3", "(1 + 2) * 3"),
        ] {
            let dialect = Postgres::new(text.len());
            let expr = Parser::new(&dialect).try_with_sql(text).unwrap().parse_expr().unwrap();
            assert_eq!(expression_text(&expr).unwrap(), expected, "{text}");
        }
    }
}
