//! Tree to text: the canonical form of an expression, which parses to the same tree.

use crate::ast::DurationExpr;
use crate::ast::*;
use crate::number::{format_duration_ms, format_number};
use crate::quote::quote;
use model::{METRIC_NAME, MatchOp, Matcher};
use std::fmt::{Display, Formatter, Result, Write};

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Expr::Number(number) => number.fmt(f),
            Expr::String(string) => f.write_str(&string.quoted()),
            Expr::Vector(selector) => {
                write_selector(f, selector)?;
                write_selector_modifiers(f, selector)
            }
            Expr::Matrix(matrix) => {
                write_selector(f, &matrix.selector)?;
                let range = duration(matrix.range_expr.as_deref(), matrix.range_ms);
                write!(f, "[{range}]")?;
                write_selector_modifiers(f, &matrix.selector)
            }
            Expr::Subquery(subquery) => {
                let step = subquery.step_ms.map(|ms| duration(subquery.step_expr.as_deref(), ms));
                let step = step.unwrap_or_default();
                let range = duration(subquery.range_expr.as_deref(), subquery.range_ms);
                write!(f, "{}[{range}:{step}]", subquery.expr)?;
                write_modifiers(f, subquery.at, subquery.offset_expr.as_deref(), subquery.offset_ms)
            }
            Expr::Call(call) => {
                f.write_str(call.function.name)?;
                f.write_char('(')?;
                for (idx, argument) in call.arguments.iter().enumerate() {
                    let separator = if idx == 0 { "" } else { ", " };
                    write!(f, "{separator}{argument}")?;
                }
                f.write_char(')')
            }
            Expr::Aggregate(aggregate) => aggregate.fmt(f),
            Expr::Binary(binary) => binary.fmt(f),
            Expr::Unary(unary) => {
                let sign = if unary.op == UnaryOp::Minus { "-" } else { "+" };
                write!(f, "{sign}{}", unary.expr)
            }
            Expr::Paren(paren) => write!(f, "({})", paren.expr),
        }
    }
}

impl Display for NumberLiteral {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.is_duration {
            f.write_str(&format_duration_ms((self.value * 1000.0).round() as i64))
        } else if self.value == f64::INFINITY {
            // A sign would bind looser than the operators that the literal may be an operand of.
            f.write_str("Inf")
        } else {
            f.write_str(&format_number(self.value))
        }
    }
}

impl Display for Aggregate {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(self.op.as_str())?;
        match &self.grouping {
            Grouping::By(labels) if labels.is_empty() => {}
            Grouping::By(labels) => write!(f, " by ({}) ", join_labels(labels))?,
            Grouping::Without(labels) => write!(f, " without ({}) ", join_labels(labels))?,
        }
        match &self.parameter {
            Some(parameter) => write!(f, "({parameter}, {})", self.expr),
            None => write!(f, "({})", self.expr),
        }
    }
}

impl Display for Binary {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} {}", self.left, self.op.as_str())?;
        if self.returns_bool {
            f.write_str(" bool")?;
        }
        if let Some(matching) = &self.matching {
            let side = match matching.cardinality {
                Cardinality::ManyToOne => Some("left"),
                Cardinality::OneToMany => Some("right"),
                _ => None,
            };
            if matching.is_on || !matching.labels.is_empty() || side.is_some() {
                let word = if matching.is_on { "on" } else { "ignoring" };
                write!(f, " {word} ({})", join_labels(&matching.labels))?;
            }
            if let Some(side) = side {
                write!(f, " group_{side} ({})", join_labels(&matching.include))?;
            }
            write_fill(f, matching.fill)?;
        }
        write!(f, " {}", self.right)
    }
}

fn write_selector(f: &mut Formatter<'_>, selector: &VectorSelector) -> Result {
    let name = selector.name.as_deref().unwrap_or("");
    let mut conditions: Vec<String> = selector
        .matchers
        .iter()
        .filter(|matcher| !is_name(matcher, name))
        .map(format_matcher)
        .collect();
    conditions.sort();
    f.write_str(name)?;
    if conditions.is_empty() && !name.is_empty() {
        return Ok(());
    }
    write!(f, "{{{}}}", conditions.join(","))
}

/// Whether the matcher is the one that stands for the name before the braces.
fn is_name(matcher: &Matcher, name: &str) -> bool {
    !name.is_empty()
        && matcher.name == METRIC_NAME
        && matcher.op == MatchOp::Equal
        && matcher.value == name
}

fn format_matcher(matcher: &Matcher) -> String {
    format!("{}{}{}", label_name(&matcher.name), matcher.op, quote(&matcher.value))
}

fn write_fill(f: &mut Formatter<'_>, fill: Fill) -> Result {
    if let Fill { left: Some(left), right: Some(right) } = fill
        && left.to_bits() == right.to_bits()
    {
        return write!(f, " fill ({})", format_number(left));
    }
    for (side, value) in [("left", fill.left), ("right", fill.right)] {
        if let Some(value) = value {
            write!(f, " fill_{side} ({})", format_number(value))?;
        }
    }
    Ok(())
}

/// A duration as it was written, if it was a calculation.
fn duration(expr: Option<&DurationExpr>, ms: i64) -> String {
    expr.map_or_else(|| format_duration_ms(ms), DurationExpr::to_string)
}

fn write_selector_modifiers(f: &mut Formatter<'_>, selector: &VectorSelector) -> Result {
    if selector.edges != Edges::Samples {
        write!(f, " {}", selector.edges.as_str())?;
    }
    write_modifiers(f, selector.at, selector.offset_expr.as_deref(), selector.offset_ms)
}

fn write_modifiers(
    f: &mut Formatter<'_>,
    at: Option<At>,
    offset_expr: Option<&DurationExpr>,
    offset_ms: i64,
) -> Result {
    match at {
        Some(At::Timestamp(ms)) => write!(f, " @ {:.3}", ms as f64 / 1000.0)?,
        Some(At::Start) => f.write_str(" @ start()")?,
        Some(At::End) => f.write_str(" @ end()")?,
        None => {}
    }
    if offset_ms != 0 || offset_expr.is_some() {
        write!(f, " offset {}", duration(offset_expr, offset_ms))?;
    }
    Ok(())
}

fn join_labels(labels: &[String]) -> String {
    labels.iter().map(|label| label_name(label)).collect::<Vec<_>>().join(", ")
}

/// The name as it must be written: in quotes unless it is a plain identifier.
fn label_name(name: &str) -> String {
    let mut bytes = name.bytes();
    let is_plain = bytes.next().is_some_and(|b| b == b'_' || b.is_ascii_alphabetic())
        && bytes.all(|b| b == b'_' || b.is_ascii_alphanumeric());
    if is_plain { name.to_string() } else { quote(name) }
}
