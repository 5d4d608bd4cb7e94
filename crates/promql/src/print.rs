//! Tree to text: the canonical form of an expression, which parses to the same tree.

use crate::ast::*;
use crate::number::{format_duration_ms, format_number};
use crate::quote::quote;
use model::{METRIC_NAME, MatchOp, Matcher};
use std::fmt::{Display, Formatter, Result, Write};

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Expr::Number(number) => number.fmt(f),
            Expr::String(string) => f.write_str(&quote(&string.value)),
            Expr::Vector(selector) => {
                write_selector(f, selector)?;
                write_modifiers(f, selector.at, selector.offset_ms)
            }
            Expr::Matrix(matrix) => {
                write_selector(f, &matrix.selector)?;
                write!(f, "[{}]", format_duration_ms(matrix.range_ms))?;
                write_modifiers(f, matrix.selector.at, matrix.selector.offset_ms)
            }
            Expr::Subquery(subquery) => {
                let step = subquery.step_ms.map(format_duration_ms).unwrap_or_default();
                let range = format_duration_ms(subquery.range_ms);
                write!(f, "{}[{range}:{step}]", subquery.expr)?;
                write_modifiers(f, subquery.at, subquery.offset_ms)
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

fn write_modifiers(f: &mut Formatter<'_>, at: Option<At>, offset_ms: i64) -> Result {
    match at {
        Some(At::Timestamp(ms)) => write!(f, " @ {:.3}", ms as f64 / 1000.0)?,
        Some(At::Start) => f.write_str(" @ start()")?,
        Some(At::End) => f.write_str(" @ end()")?,
        None => {}
    }
    if offset_ms != 0 {
        write!(f, " offset {}", format_duration_ms(offset_ms))?;
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
