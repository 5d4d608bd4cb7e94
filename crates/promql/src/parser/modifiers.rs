//! What follows a selector or an operator and changes its meaning: windows, `offset`, `@`,
//! `anchored`, `smoothed`; `bool`, `on`, `ignoring`, `group_left`, `group_right`, `fill`.

use super::durations::{Duration, Expected};
use super::{Node, Parser, Result};
use crate::ast::*;
use crate::error::{ParseError, Span};
use crate::token::{Keyword, OperatorToken, TokenKind};

impl Parser<'_> {
    /// `[range]`, `[range:]` or `[range:step]`.
    pub(super) fn brackets(&mut self, (expr, depth): Node) -> Result<Node> {
        let open = self.advance();
        let range = self.bracket_duration(Expected {
            context: "subquery or range selector",
            expected: "number, duration, step(), or range()",
        })?;
        let close = self.peek();
        match close.kind {
            TokenKind::RightBracket => {
                self.advance();
                let matrix = self.matrix_selector(expr, range, open.span.to(close.span))?;
                self.node(matrix, depth)
            }
            TokenKind::Colon => {
                self.advance();
                let step = match self.peek().kind {
                    TokenKind::RightBracket => None,
                    _ => Some(self.bracket_duration(Expected {
                        context: "subquery selector",
                        expected: "number, duration, step(), range(), or \"]\"",
                    })?),
                };
                let close = self.peek();
                if close.kind != TokenKind::RightBracket {
                    return Err(self.unexpected("subquery selector", "\"]\""));
                }
                self.advance();
                let span = expr.span().to(close.span);
                let subquery = Subquery {
                    expr,
                    range_ms: range.ms,
                    range_expr: range.expr,
                    step_ms: step.as_ref().map(|step| step.ms),
                    step_expr: step.and_then(|step| step.expr),
                    offset_ms: 0,
                    offset_expr: None,
                    at: None,
                    span,
                };
                self.node(Expr::Subquery(Box::new(subquery)), depth)
            }
            _ => Err(self.unexpected("subquery or range", "\":\" or \"]\"")),
        }
    }

    fn matrix_selector(&self, expr: Expr, range: Duration, brackets: Span) -> Result<Expr> {
        let message = match &expr {
            // Prometheus takes calculated offsets before a range, too.
            Expr::Vector(selector) if selector.offset_ms != 0 => {
                "no offset modifiers allowed before range"
            }
            // Prometheus takes `@ start()` and `@ end()` before a range, too.
            Expr::Vector(selector) if matches!(selector.at, Some(At::Timestamp(_))) => {
                "no @ modifiers allowed before range"
            }
            Expr::Vector(_) => "",
            _ => "ranges only allowed for vector selectors",
        };
        match expr {
            Expr::Vector(selector) if message.is_empty() => {
                let span = selector.span.to(brackets);
                let (range_ms, range_expr) = (range.ms, range.expr);
                Ok(Expr::Matrix(MatrixSelector { selector, range_ms, range_expr, span }))
            }
            _ => Err(self.error(brackets, message)),
        }
    }

    pub(super) fn offset(&mut self, expr: &mut Expr) -> Result<()> {
        self.advance();
        let offset = self.offset_duration()?;
        let span = expr.span();
        let (slot, calculated, end) = match expr {
            Expr::Vector(node) => (&mut node.offset_ms, &mut node.offset_expr, &mut node.span.end),
            Expr::Matrix(node) => {
                let selector = &mut node.selector;
                (&mut selector.offset_ms, &mut selector.offset_expr, &mut node.span.end)
            }
            Expr::Subquery(node) => {
                (&mut node.offset_ms, &mut node.offset_expr, &mut node.span.end)
            }
            _ => {
                return Err(ParseError::new(
                    self.text,
                    span,
                    "offset modifier must be preceded by an instant vector selector or \
                     range vector selector or a subquery",
                ));
            }
        };
        if *slot != 0 || calculated.is_some() {
            let message = "offset may not be set multiple times";
            return Err(ParseError::new(self.text, span, message));
        }
        (*slot, *calculated) = (offset.ms, offset.expr);
        *end = self.last_closing;
        Ok(())
    }

    pub(super) fn at_modifier(&mut self, expr: &mut Expr) -> Result<()> {
        self.advance();
        let token = self.peek();
        let span = expr.span();
        let at = match token.kind {
            TokenKind::Keyword(keyword @ (Keyword::Start | Keyword::End)) => {
                self.advance();
                self.expect(TokenKind::LeftParen)?;
                self.expect(TokenKind::RightParen)?;
                if keyword == Keyword::Start { At::Start } else { At::End }
            }
            TokenKind::Operator(OperatorToken::Add | OperatorToken::Sub)
            | TokenKind::Number
            | TokenKind::Duration => {
                let sign = self.sign().map_or(1.0, |(factor, _)| factor);
                if !matches!(self.peek().kind, TokenKind::Number | TokenKind::Duration) {
                    return Err(self.unexpected("@", "timestamp"));
                }
                At::Timestamp(self.timestamp(sign, span)?)
            }
            _ => return Err(self.unexpected("@", "timestamp")),
        };
        let (slot, end) = match expr {
            Expr::Vector(node) => (&mut node.at, &mut node.span.end),
            Expr::Matrix(node) => (&mut node.selector.at, &mut node.span.end),
            Expr::Subquery(node) => (&mut node.at, &mut node.span.end),
            _ => {
                return Err(ParseError::new(
                    self.text,
                    span,
                    "@ modifier must be preceded by an instant vector selector or range \
                     vector selector or a subquery",
                ));
            }
        };
        if slot.is_some() {
            let message = "@ <timestamp> may not be set multiple times";
            return Err(ParseError::new(self.text, span, message));
        }
        *slot = Some(at);
        *end = self.last_closing;
        Ok(())
    }

    fn timestamp(&mut self, sign: f64, span: Span) -> Result<i64> {
        let seconds = self.number_literal()?.value * sign;
        if seconds.abs() < 9_223_372_036_854_775_000.0 {
            return Ok((seconds * 1000.0).round() as i64);
        }
        let shown = if seconds.is_finite() {
            format!("{seconds:.6}")
        } else {
            crate::number::format_number(seconds)
        };
        Err(self.error(span, format!("timestamp out of bounds for @ modifier: {shown}")))
    }

    /// `anchored` or `smoothed`.
    pub(super) fn edges_modifier(&mut self, expr: &mut Expr, edges: Edges) -> Result<()> {
        let span = expr.span();
        let word = edges.as_str();
        if !self.options.experimental_functions {
            let what = format!("{word} modifier is experimental and not enabled");
            return Err(self.not_enabled(span, &what));
        }
        self.advance();
        let slot = match expr {
            Expr::Vector(selector) => &mut selector.edges,
            Expr::Matrix(matrix) => &mut matrix.selector.edges,
            Expr::Subquery(_) => {
                let message = format!("{word} modifier is not supported for subqueries");
                return Err(self.error(span, message));
            }
            _ => return Err(self.error(span, format!("{word} modifier not implemented"))),
        };
        if !matches!(*slot, Edges::Samples) && *slot != edges {
            let message = "anchored and smoothed modifiers cannot be used together";
            return Err(ParseError::new(self.text, span, message));
        }
        *slot = edges;
        Ok(())
    }

    /// `bool`, `on (...)`, `ignoring (...)`, `group_left (...)`, `group_right (...)`,
    /// `fill (...)`, `fill_left (...)`, `fill_right (...)`.
    pub(super) fn binary_modifier(&mut self) -> Result<(bool, VectorMatching)> {
        let returns_bool = self.skip_keyword(Keyword::Bool);
        let mut matching = VectorMatching {
            cardinality: Cardinality::OneToOne,
            is_on: false,
            labels: Vec::new(),
            include: Vec::new(),
            fill: Fill::default(),
        };
        if self.skip_keyword(Keyword::On) {
            matching.is_on = true;
        } else if !self.skip_keyword(Keyword::Ignoring) {
            matching.fill = self.fill_modifier()?;
            return Ok((returns_bool, matching));
        }
        matching.labels = self.labels()?;
        if self.skip_keyword(Keyword::GroupLeft) {
            matching.cardinality = Cardinality::ManyToOne;
        } else if self.skip_keyword(Keyword::GroupRight) {
            matching.cardinality = Cardinality::OneToMany;
        }
        let is_grouped = matching.cardinality != Cardinality::OneToOne;
        if is_grouped && self.peek().kind == TokenKind::LeftParen {
            matching.include = self.labels()?;
        }
        matching.fill = self.fill_modifier()?;
        Ok((returns_bool, matching))
    }

    /// `fill (v)`, or one or both of `fill_left (v)` and `fill_right (v)`.
    fn fill_modifier(&mut self) -> Result<Fill> {
        let mut fill = Fill::default();
        let start = self.peek().span;
        if self.skip_keyword(Keyword::Fill) {
            let value = self.fill_value()?;
            fill = Fill { left: Some(value), right: Some(value) };
        } else if self.skip_keyword(Keyword::FillLeft) {
            fill.left = Some(self.fill_value()?);
            if self.skip_keyword(Keyword::FillRight) {
                fill.right = Some(self.fill_value()?);
            }
        } else if self.skip_keyword(Keyword::FillRight) {
            fill.right = Some(self.fill_value()?);
            if self.skip_keyword(Keyword::FillLeft) {
                fill.left = Some(self.fill_value()?);
            }
        }
        if fill.is_any() && !self.options.experimental_functions {
            let what = "binop fill modifiers are experimental and not enabled";
            return Err(self.not_enabled(start, what));
        }
        Ok(fill)
    }

    /// `(number)`
    fn fill_value(&mut self) -> Result<f64> {
        self.expect(TokenKind::LeftParen)?;
        let sign = self.sign().map_or(1.0, |(factor, _)| factor);
        if !matches!(self.peek().kind, TokenKind::Number | TokenKind::Duration) {
            return Err(self.unexpected("fill modifier", "number"));
        }
        let value = self.number_literal()?.value * sign;
        self.expect(TokenKind::RightParen)?;
        Ok(value)
    }
}
