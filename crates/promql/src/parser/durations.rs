//! Durations inside brackets and behind `offset`: a grammar of their own, as calculations in them
//! are of numbers only.
//!
//! In brackets the whole grammar is known. Behind `offset` only one term is, so that
//! `a offset 5m + b` goes on to mean a sum of vectors. If it begins with a parenthesis or with two
//! signs it is a whole calculation, as in Prometheus: `a offset (5m) + 1` looks back 301 seconds.

use super::{Parser, Result};
use crate::NESTING_MAX;
use crate::ast::BinaryOp;
use crate::ast::{DurationExpr, DurationKind};
use crate::error::Span;
use crate::number::DURATION_MS_MAX;
use crate::token::{Keyword, OperatorToken, TokenKind};

/// A calculation and its depth.
type Node = (DurationExpr, usize);

/// A duration in milliseconds, or what it is to be calculated from.
pub(super) struct Duration {
    pub ms: i64,
    pub expr: Option<Box<DurationExpr>>,
}

/// What an error says about a place where there is no duration.
#[derive(Clone, Copy)]
pub(super) struct Expected {
    pub context: &'static str,
    pub expected: &'static str,
}

impl Parser<'_> {
    /// A positive duration inside brackets.
    pub(super) fn bracket_duration(&mut self, wanted: Expected) -> Result<Duration> {
        let (expr, _) = self.duration_expr(0, wanted)?;
        if expr.literal().is_some_and(|seconds| seconds <= 0.0) {
            return Err(self.error(expr.span, "duration must be greater than 0"));
        }
        self.duration(expr)
    }

    /// The duration of an `offset`.
    pub(super) fn offset_duration(&mut self) -> Result<Duration> {
        let expected = "number, duration, step(), or range()";
        let wanted = Expected { context: "offset", expected };
        let is_sign =
            |kind| matches!(kind, TokenKind::Operator(OperatorToken::Add | OperatorToken::Sub));
        let (first, second) = (self.peek().kind, self.peek_second());
        let is_calculation = match first {
            TokenKind::LeftParen => true,
            first => is_sign(first) && is_sign(second),
        };
        let (expr, _) = match is_calculation {
            true => self.duration_expr(0, wanted)?,
            false => match self.sign() {
                Some(sign) => {
                    let (operand, depth) = self.duration_term(wanted)?;
                    self.signed(sign, operand, depth)?
                }
                None => self.duration_term(wanted)?,
            },
        };
        self.duration(expr)
    }

    fn duration(&self, expr: DurationExpr) -> Result<Duration> {
        match expr.literal() {
            Some(seconds) => Ok(Duration { ms: self.duration_of(seconds, expr.span)?, expr: None }),
            None => Ok(Duration { ms: 0, expr: Some(Box::new(expr)) }),
        }
    }

    fn duration_of(&self, seconds: f64, span: Span) -> Result<i64> {
        if seconds.is_nan() || DURATION_MS_MAX as f64 <= seconds.abs() * 1000.0 {
            return Err(self.error(span, "duration out of range"));
        }
        // Prometheus rounds to nanoseconds, then cuts to milliseconds.
        Ok((seconds * 1e9).round() as i64 / 1_000_000)
    }

    /// A calculation of operators that bind at least as tightly as `precedence_min`.
    fn duration_expr(&mut self, precedence_min: u8, wanted: Expected) -> Result<Node> {
        self.depth += 1;
        if NESTING_MAX < self.depth {
            return Err(self.too_deep());
        }
        let mut left = match self.sign() {
            Some(sign) => {
                let (operand, depth) = self.duration_expr(BinaryOp::Pow.precedence(), wanted)?;
                self.signed(sign, operand, depth)?
            }
            None => self.duration_term(wanted)?,
        };
        while let Some(op) = self.duration_operator() {
            if op.precedence() < precedence_min {
                break;
            }
            let operator = self.advance();
            let right_min = op.precedence() + u8::from(op != BinaryOp::Pow);
            let right = self.duration_expr(right_min, wanted)?;
            if matches!(op, BinaryOp::Div | BinaryOp::Mod) && right.0.literal() == Some(0.0) {
                let what = if op == BinaryOp::Div { "division" } else { "modulo" };
                return Err(self.error(operator.span, format!("{what} by zero")));
            }
            let span = left.0.span.to(right.0.span);
            let depth = left.1.max(right.1);
            let kind = DurationKind::Binary(op, Box::new([left.0, right.0]));
            left = self.duration_node(kind, span, depth)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn duration_operator(&self) -> Option<BinaryOp> {
        let is_known = |op: &BinaryOp| {
            matches!(
                op,
                BinaryOp::Add
                    | BinaryOp::Sub
                    | BinaryOp::Mul
                    | BinaryOp::Div
                    | BinaryOp::Mod
                    | BinaryOp::Pow
            )
        };
        self.binary_operator().filter(is_known)
    }

    /// A number, `step()`, `range()`, `max_of(...)`, `min_of(...)` or what is in parentheses.
    fn duration_term(&mut self, wanted: Expected) -> Result<Node> {
        let token = self.peek();
        let (kind, depth) = match token.kind {
            TokenKind::Number | TokenKind::Duration => {
                let number = self.number_literal()?;
                (DurationKind::Literal(number), 0)
            }
            TokenKind::LeftParen => {
                self.advance();
                let (inner, depth) = self.duration_expr(0, wanted)?;
                self.expect(TokenKind::RightParen)?;
                (DurationKind::Paren(Box::new(inner)), depth)
            }
            TokenKind::Keyword(keyword @ (Keyword::Step | Keyword::Range)) => {
                self.advance();
                self.expect(TokenKind::LeftParen)?;
                self.expect(TokenKind::RightParen)?;
                let is_step = keyword == Keyword::Step;
                (if is_step { DurationKind::Step } else { DurationKind::Range }, 0)
            }
            TokenKind::Keyword(keyword @ (Keyword::MaxOf | Keyword::MinOf)) => {
                self.advance();
                self.expect(TokenKind::LeftParen)?;
                let (left, left_depth) = self.duration_expr(0, wanted)?;
                self.expect(TokenKind::Comma)?;
                let (right, right_depth) = self.duration_expr(0, wanted)?;
                self.expect(TokenKind::RightParen)?;
                let pair = Box::new([left, right]);
                let is_max = keyword == Keyword::MaxOf;
                let kind = if is_max { DurationKind::Max(pair) } else { DurationKind::Min(pair) };
                (kind, left_depth.max(right_depth))
            }
            _ => return Err(self.unexpected(wanted.context, wanted.expected)),
        };
        let span = Span { start: token.span.start, end: self.last_closing };
        self.duration_node(kind, span, depth)
    }

    /// An operand behind a sign.
    fn signed(&self, (sign, at): (f64, Span), operand: DurationExpr, depth: usize) -> Result<Node> {
        let span = at.to(operand.span);
        if 0.0 < sign {
            return Ok((DurationExpr { span, ..operand }, depth));
        }
        self.duration_node(DurationKind::Negative(Box::new(operand)), span, depth)
    }

    /// Puts a node on top of a calculation of `depth`.
    fn duration_node(&self, kind: DurationKind, span: Span, depth: usize) -> Result<Node> {
        if NESTING_MAX <= depth {
            return Err(self.too_deep());
        }
        Ok((DurationExpr { kind, span }, depth + 1))
    }

    /// Reads a sign, if there is one: the factor that it stands for, and where it stands.
    pub(super) fn sign(&mut self) -> Option<(f64, Span)> {
        let factor = match self.peek().kind {
            TokenKind::Operator(OperatorToken::Add) => 1.0,
            TokenKind::Operator(OperatorToken::Sub) => -1.0,
            _ => return None,
        };
        Some((factor, self.advance().span))
    }
}
