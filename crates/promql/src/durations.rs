//! Durations that are calculated: `[2 * step()]`, `offset (range() / 2)`.
//!
//! A tree is parsed before it is known what is asked about which times, so a selector carries the
//! calculation until [`settle_durations`] puts its value where plain durations are.

use crate::ast::{BinaryOp, DurationExpr, DurationKind, Expr, VectorSelector};
use crate::error::ParseError;
use crate::number::DURATION_MS_MAX;
use std::fmt::{Display, Formatter};

/// The times of a query that calculated durations may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryTimes {
    /// Between steps; 0 for an instant.
    pub step_ms: i64,
    /// From the start to the end.
    pub range_ms: i64,
}

/// Calculates the durations in `expr`, which was parsed from `text`.
///
/// # Errors
/// A duration comes out as no number, too long, or not positive where it has to be.
pub fn settle_durations(text: &str, expr: &mut Expr, times: QueryTimes) -> Result<(), ParseError> {
    Settler { text, times }.expr(expr)
}

impl DurationExpr {
    /// The seconds of a plain number or duration with or without signs and parentheses.
    pub(crate) fn literal(&self) -> Option<f64> {
        match &self.kind {
            DurationKind::Literal(number) => Some(number.value),
            DurationKind::Negative(inner) => inner.literal().map(|seconds| -seconds),
            DurationKind::Paren(inner) => inner.literal(),
            _ => None,
        }
    }
}

struct Settler<'a> {
    text: &'a str,
    times: QueryTimes,
}

impl Settler<'_> {
    fn expr(&self, expr: &mut Expr) -> Result<(), ParseError> {
        match expr {
            Expr::Number(_) | Expr::String(_) => Ok(()),
            Expr::Vector(selector) => self.selector(selector),
            Expr::Matrix(matrix) => {
                self.positive(matrix.range_expr.as_deref(), &mut matrix.range_ms)?;
                self.selector(&mut matrix.selector)
            }
            Expr::Subquery(subquery) => {
                self.positive(subquery.range_expr.as_deref(), &mut subquery.range_ms)?;
                self.offset(subquery.offset_expr.as_deref(), &mut subquery.offset_ms)?;
                if let Some(step) = &subquery.step_expr {
                    self.positive(Some(step), subquery.step_ms.insert(0))?;
                }
                self.expr(&mut subquery.expr)
            }
            Expr::Call(call) => {
                call.arguments.iter_mut().try_for_each(|argument| self.expr(argument))
            }
            Expr::Aggregate(aggregate) => {
                aggregate.parameter.iter_mut().try_for_each(|parameter| self.expr(parameter))?;
                self.expr(&mut aggregate.expr)
            }
            Expr::Binary(binary) => {
                self.expr(&mut binary.left)?;
                self.expr(&mut binary.right)
            }
            Expr::Unary(unary) => self.expr(&mut unary.expr),
            Expr::Paren(paren) => self.expr(&mut paren.expr),
        }
    }

    fn selector(&self, selector: &mut VectorSelector) -> Result<(), ParseError> {
        self.offset(selector.offset_expr.as_deref(), &mut selector.offset_ms)
    }

    fn positive(&self, expr: Option<&DurationExpr>, slot: &mut i64) -> Result<(), ParseError> {
        let Some(expr) = expr else { return Ok(()) };
        let seconds = self.seconds(expr)?;
        if seconds <= 0.0 {
            return Err(self.fail(expr, "duration must be greater than 0"));
        }
        *slot = self.milliseconds(expr, seconds)?;
        Ok(())
    }

    fn offset(&self, expr: Option<&DurationExpr>, slot: &mut i64) -> Result<(), ParseError> {
        if let Some(expr) = expr {
            *slot = self.milliseconds(expr, self.seconds(expr)?)?;
        }
        Ok(())
    }

    fn milliseconds(&self, expr: &DurationExpr, seconds: f64) -> Result<i64, ParseError> {
        if !seconds.is_finite() {
            return Err(self.fail(expr, "duration is NaN or infinite"));
        }
        if DURATION_MS_MAX as f64 <= seconds.abs() * 1000.0 {
            return Err(self.fail(expr, "duration is out of range"));
        }
        Ok((seconds * 1000.0) as i64)
    }

    fn seconds(&self, expr: &DurationExpr) -> Result<f64, ParseError> {
        let both = |pair: &[DurationExpr; 2]| -> Result<(f64, f64), ParseError> {
            Ok((self.seconds(&pair[0])?, self.seconds(&pair[1])?))
        };
        Ok(match &expr.kind {
            DurationKind::Literal(number) => number.value,
            DurationKind::Step => self.times.step_ms as f64 / 1000.0,
            DurationKind::Range => self.times.range_ms as f64 / 1000.0,
            DurationKind::Negative(inner) => -self.seconds(inner)?,
            DurationKind::Paren(inner) => self.seconds(inner)?,
            DurationKind::Max(pair) => both(pair).map(|(a, b)| or_nan(a, b, f64::max))?,
            DurationKind::Min(pair) => both(pair).map(|(a, b)| or_nan(a, b, f64::min))?,
            DurationKind::Binary(op, pair) => {
                let (left, right) = both(pair)?;
                match op {
                    BinaryOp::Add => left + right,
                    BinaryOp::Sub => left - right,
                    BinaryOp::Mul => left * right,
                    BinaryOp::Pow => left.powf(right),
                    BinaryOp::Div if right == 0.0 => {
                        return Err(self.fail(expr, "division by zero"));
                    }
                    BinaryOp::Div => left / right,
                    _ if right == 0.0 => return Err(self.fail(expr, "modulo by zero")),
                    _ => left % right,
                }
            }
        })
    }

    fn fail(&self, expr: &DurationExpr, message: &str) -> ParseError {
        ParseError::new(self.text, expr.span, message)
    }
}

/// Applies an operation to two numbers; NaN if either is NaN.
fn or_nan(a: f64, b: f64, operation: fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { operation(a, b) }
}

impl Display for DurationExpr {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            DurationKind::Literal(number) => number.fmt(f),
            DurationKind::Step => f.write_str("step()"),
            DurationKind::Range => f.write_str("range()"),
            DurationKind::Negative(inner) => write!(f, "-{inner}"),
            DurationKind::Paren(inner) => write!(f, "({inner})"),
            DurationKind::Max(pair) => write!(f, "max_of({}, {})", pair[0], pair[1]),
            DurationKind::Min(pair) => write!(f, "min_of({}, {})", pair[0], pair[1]),
            DurationKind::Binary(op, pair) => {
                write!(f, "{} {} {}", pair[0], op.as_str(), pair[1])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, parse_with};

    fn settled(text: &str) -> Result<Expr, ParseError> {
        let mut expr = parse_with(text, &Options { experimental_functions: true })?;
        assert_eq!(expr.to_string(), text);
        let times = QueryTimes { step_ms: 10_000, range_ms: 3_600_000 };
        settle_durations(text, &mut expr, times)?;
        Ok(expr)
    }

    #[track_caller]
    fn offset(text: &str, expected_ms: i64) {
        match settled(text).unwrap_or_else(|error| panic!("{error}")) {
            Expr::Vector(selector) => assert_eq!(selector.offset_ms, expected_ms, "{text}"),
            other => panic!("{other}"),
        }
    }

    #[track_caller]
    fn range(text: &str, expected_ms: i64) {
        match settled(text).unwrap_or_else(|error| panic!("{error}")) {
            Expr::Matrix(matrix) => assert_eq!(matrix.range_ms, expected_ms, "{text}"),
            other => panic!("{other}"),
        }
    }

    #[track_caller]
    fn bad(text: &str, expected: &str) {
        assert_eq!(settled(text).map_err(|error| error.to_string()), Err(expected.to_string()));
    }

    #[test]
    fn durations_are_calculated() {
        range("a[step()]", 10_000);
        range("a[range() / 4 + 1m]", 960_000);
        range("a[-1m + 2 ^ 3 ^ 2]", 452_000);
        range("a[-2 ^ 2 + 5]", 1_000);
        range("a[10 - 2 - 3]", 5_000);
        range("a[max_of(step(), 20s)]", 20_000);
        range("a[min_of(step(), 20s) * (1 + 1)]", 20_000);
        range("a[7 % 4]", 3_000);
        offset("a offset step()", 10_000);
        offset("a offset -step()", -10_000);
        offset("a offset (3 * -step())", -30_000);
        offset("a offset -(1m + 5)", -65_000);
        offset("a offset min_of(1m, 2m)", 60_000);
        offset("a offset (1m) + 5", 65_000);
        offset("a offset --step() * 2", 20_000);
    }

    #[test]
    fn signs_and_parentheses_of_an_offset_are_folded() {
        for (text, expected) in [
            ("a offset --2m", "a offset 2m"),
            ("a offset -+2m", "a offset -2m"),
            ("a offset ---(2m)", "a offset -2m"),
            ("a offset -(2m) + b", "a offset -2m + b"),
            ("a offset (0s) offset 3m", "a offset 3m"),
            ("a offset --2m == b", "a offset 2m == b"),
            ("a @ end() [5m]", "a[5m] @ end()"),
            ("a offset step() [5m]", "a[5m] offset step()"),
        ] {
            let parsed = crate::parse(text).map(|expr| expr.to_string());
            assert_eq!(parsed.as_deref(), Ok(expected), "{text}");
        }
        for text in ["a offset (2m) + b", "a offset --2m + b", "a @ --5"] {
            assert!(crate::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        bad("a[step() - 10]", "1:3: parse error: duration must be greater than 0");
        bad("a offset (1 / (5 - 5))", "1:11: parse error: division by zero");
        bad("a offset (1 % (5 - 5))", "1:11: parse error: modulo by zero");
        bad("a[1 / 0]", "1:5: parse error: division by zero");
        bad("a[1 % 0]", "1:5: parse error: modulo by zero");
        bad("a[10 ^ 15 * 1]", "1:3: parse error: duration is out of range");
        bad("a[10 ^ 999]", "1:3: parse error: duration is NaN or infinite");
    }
}
