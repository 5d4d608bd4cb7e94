//! Tree to text: the canonical form of an expression, which parses to the same tree.
//!
//! Operands that are operations stand in parentheses, so no reader has to know the priorities.

use crate::ast::Grouping;
use crate::metricsql::ast::{Aggregate, Binary, BinaryOp, Call, Expr, Join, Rollup, Selector};
use crate::metricsql::lexer::is_plain_name;
use crate::metricsql::number::{format_duration, format_number, format_signed_duration};
use crate::quote::quote;
use model::{METRIC_NAME, MatchOp, Matcher};
use std::fmt::{Display, Formatter, Result, Write};

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Expr::Number(number) => f.write_str(&format_number(number.value)),
            Expr::String(string) => f.write_str(&quote(&string.value)),
            Expr::Duration(literal) => f.write_str(&format_duration(literal.duration)),
            Expr::Selector(selector) => selector.fmt(f),
            Expr::Rollup(rollup) => rollup.fmt(f),
            Expr::Call(call) => call.fmt(f),
            Expr::Aggregate(aggregate) => aggregate.fmt(f),
            Expr::Binary(binary) => binary.fmt(f),
            Expr::Union(union) => write_list(f, &union.expressions),
        }
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(self.function.name)?;
        write_list(f, &self.arguments)?;
        if self.keep_metric_names {
            f.write_str(" keep_metric_names")?;
        }
        Ok(())
    }
}

impl Display for Aggregate {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(self.function.name)?;
        write_list(f, &self.arguments)?;
        match &self.grouping {
            Some(Grouping::By(labels)) => write_labels(f, " by", labels)?,
            Some(Grouping::Without(labels)) => write_labels(f, " without", labels)?,
            None => {}
        }
        if 0 < self.limit {
            write!(f, " limit {}", self.limit)?;
        }
        Ok(())
    }
}

impl Display for Rollup {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let needs_parens = match &self.expr {
            Expr::Rollup(_) | Expr::Binary(_) => true,
            Expr::Aggregate(aggregate) => aggregate.grouping.is_some() || 0 < aggregate.limit,
            expr => is_negative(expr),
        };
        write_operand(f, &self.expr, needs_parens)?;
        if self.window.is_some() || self.step.is_some() || self.has_colon {
            let window = self.window.map(format_duration).unwrap_or_default();
            let step = self.step.map(format_duration).unwrap_or_default();
            let colon = if self.step.is_some() || self.has_colon { ":" } else { "" };
            write!(f, "[{window}{colon}{step}]")?;
        }
        if let Some(offset) = self.offset {
            write!(f, " offset {}", format_signed_duration(offset))?;
        }
        if let Some(at) = &self.at {
            f.write_str(" @ ")?;
            let needs_parens = matches!(at, Expr::Rollup(_) | Expr::Binary(_));
            write_operand(f, at, needs_parens || is_negative(at))?;
        }
        Ok(())
    }
}

impl Display for Binary {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.keep_metric_names {
            f.write_char('(')?;
        }
        let is_plain_sum = matches!(self.op, BinaryOp::Add | BinaryOp::Sub);
        let left_needs = needs_parens(&self.left) || (is_negative(&self.left) && !is_plain_sum);
        write_operand(f, &self.left, left_needs)?;
        f.write_char(' ')?;
        self.write_operator(f)?;
        f.write_char(' ')?;
        let right_needs = match &self.right {
            // A `keep_metric_names` behind a call is the call's.
            Expr::Call(call) => call.keep_metric_names || self.keep_metric_names,
            right => needs_parens(right),
        };
        write_operand(f, &self.right, right_needs)?;
        if self.keep_metric_names {
            f.write_str(") keep_metric_names")?;
        }
        Ok(())
    }
}

impl Binary {
    fn write_operator(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(self.op.as_str())?;
        if self.returns_bool {
            f.write_str(" bool")?;
        }
        if let Some(matching) = &self.matching {
            write_labels(f, if matching.is_on { " on" } else { " ignoring" }, &matching.labels)?;
        }
        if let Some(join) = &self.join {
            join.fmt(f)?;
        }
        write_fills(f, self.fill_left, self.fill_right)
    }
}

impl Display for Join {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let word = if self.is_left { " group_left" } else { " group_right" };
        if self.labels.len() == 1 && self.labels[0] == "*" {
            write!(f, "{word}(*)")?;
        } else {
            write_labels(f, word, &self.labels)?;
        }
        if !self.prefix.is_empty() {
            write!(f, " prefix {}", quote(&self.prefix))?;
        }
        Ok(())
    }
}

impl Display for Selector {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let name = self.metric_name().filter(|name| is_plain_name(name) && !is_reserved(name));
        // A set that is only a name would leave nothing beside an `or`.
        let has_bare = self.sets.iter().any(|set| set.len() == 1);
        let Some(name) = name.filter(|_| self.sets.len() == 1 || !has_bare) else {
            return write_sets(f, &self.sets, 0);
        };
        f.write_str(name)?;
        if has_bare { Ok(()) } else { write_sets(f, &self.sets, 1) }
    }
}

/// Writes the matchers of each set but the first `skipped`.
fn write_sets(f: &mut Formatter<'_>, sets: &[Vec<Matcher>], skipped: usize) -> Result {
    f.write_char('{')?;
    for (idx, set) in sets.iter().enumerate() {
        f.write_str(if idx == 0 { "" } else { " or " })?;
        for (idx, matcher) in set.iter().skip(skipped).enumerate() {
            f.write_str(if idx == 0 { "" } else { "," })?;
            write_matcher(f, matcher)?;
        }
    }
    f.write_char('}')
}

fn write_matcher(f: &mut Formatter<'_>, matcher: &Matcher) -> Result {
    let is_name = matcher.name == METRIC_NAME && matcher.op == MatchOp::Equal;
    if is_name && !matcher.value.is_empty() {
        return f.write_str(&quote(&matcher.value));
    }
    write_name(f, &matcher.name)?;
    write!(f, "{}{}", matcher.op, quote(&matcher.value))
}

/// What stands for a missing side, on the left and on the right.
pub(super) fn write_fills(f: &mut dyn Write, left: Option<f64>, right: Option<f64>) -> Result {
    match (left, right) {
        (Some(left), Some(right)) if left.to_bits() == right.to_bits() => {
            write_fill(f, "fill", Some(left))
        }
        (left, right) => {
            write_fill(f, "fill_left", left)?;
            write_fill(f, "fill_right", right)
        }
    }
}

fn write_fill(f: &mut dyn Write, word: &str, value: Option<f64>) -> Result {
    match value {
        None => Ok(()),
        Some(value) if value == 0.0 && value.is_sign_negative() => write!(f, " {word}(-0)"),
        Some(value) => write!(f, " {word}({})", format_number(value)),
    }
}

fn write_list(f: &mut Formatter<'_>, expressions: &[Expr]) -> Result {
    f.write_char('(')?;
    for (idx, expr) in expressions.iter().enumerate() {
        let separator = if idx == 0 { "" } else { ", " };
        write!(f, "{separator}{expr}")?;
    }
    f.write_char(')')
}

pub(super) fn write_labels(f: &mut dyn Write, word: &str, labels: &[String]) -> Result {
    write!(f, "{word}(")?;
    for (idx, label) in labels.iter().enumerate() {
        f.write_str(if idx == 0 { "" } else { "," })?;
        write_name(f, label)?;
    }
    f.write_char(')')
}

/// A label's name, in quotes if it has to be.
pub(super) fn write_name(f: &mut dyn Write, name: &str) -> Result {
    if is_plain_name(name) { f.write_str(name) } else { f.write_str(&quote(name)) }
}

fn write_operand(f: &mut Formatter<'_>, expr: &Expr, in_parens: bool) -> Result {
    if in_parens { write!(f, "({expr})") } else { expr.fmt(f) }
}

/// Whether an operand would be taken apart by the operator beside it, or its suffix misread.
fn needs_parens(expr: &Expr) -> bool {
    match expr {
        // One that keeps names has its own.
        Expr::Binary(binary) => !binary.keep_metric_names,
        Expr::Rollup(rollup) => rollup.offset.is_some() || rollup.at.is_some(),
        _ => false,
    }
}

/// Whether an expression is written with a minus sign before it.
fn is_negative(expr: &Expr) -> bool {
    matches!(expr, Expr::Number(number) if number.value < 0.0)
}

/// Words that are no metric's name where an operator, a modifier or a number may stand.
pub(super) fn is_reserved(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "bool",
        "by",
        "fill",
        "fill_left",
        "fill_right",
        "group_left",
        "group_right",
        "ignoring",
        "inf",
        "keep_metric_names",
        "limit",
        "nan",
        "offset",
        "on",
        "prefix",
        "with",
        "without",
    ];
    BinaryOp::from_word(name).is_some() || WORDS.iter().any(|word| word.eq_ignore_ascii_case(name))
}
