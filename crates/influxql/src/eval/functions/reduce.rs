//! Constants of an expression worked out, `now()` and dates among them.

use super::math;
use crate::ast::Expr;
use crate::eval::compile::is_math;
use crate::time::{looks_like_time, parse_time};
use crate::token::Op;
use crate::value::{Value, applied};
use jiff::tz::TimeZone;

/// What constants may refer to.
#[derive(Clone, Copy)]
pub struct Constants<'a> {
    /// Nanoseconds since the epoch; none where `now()` may not stand.
    pub now: Option<i64>,
    pub zone: Option<&'a TimeZone>,
}

impl Constants<'_> {
    /// The expression with all that is constant worked out.
    pub fn reduce(&self, expr: Expr) -> Expr {
        match expr {
            Expr::Binary { op, left, right } => {
                let (left, right) = (self.reduce(*left), self.reduce(*right));
                self.fold(op, left, right)
            }
            Expr::Paren(inner) => match self.reduce(*inner) {
                binary @ Expr::Binary { .. } => Expr::Paren(Box::new(binary)),
                other => other,
            },
            Expr::Call { name, args } if name == "now" && args.is_empty() => match self.now {
                Some(now) => Expr::Time(now),
                None => Expr::Call { name, args },
            },
            Expr::Call { name, args } => {
                let args: Vec<Expr> = args.into_iter().map(|arg| self.reduce(arg)).collect();
                called(&name, &args).unwrap_or(Expr::Call { name, args })
            }
            other => other,
        }
    }

    fn fold(&self, op: Op, left: Expr, right: Expr) -> Expr {
        let (left_time, right_time) = self.as_times(op, &left, &right);
        let sides = (left_time.as_ref().unwrap_or(&left), right_time.as_ref().unwrap_or(&right));
        let folded = match sides {
            (Expr::Duration(a), Expr::Duration(b)) => durations(op, *a, *b),
            (Expr::Duration(a), Expr::Integer(b)) => scaled(op, *a, *b as f64),
            (Expr::Duration(a), Expr::Number(b)) => scaled(op, *a, *b),
            (Expr::Integer(a), Expr::Duration(b)) if op == Op::Mul => scaled(op, *b, *a as f64),
            (Expr::Number(a), Expr::Duration(b)) if op == Op::Mul => scaled(op, *b, *a),
            (Expr::Integer(a), Expr::Duration(b)) => durations(op, *a, *b),
            (Expr::Time(a), Expr::Duration(b)) => moved(op, *a, *b),
            (Expr::Duration(a), Expr::Time(b)) if op == Op::Add => moved(op, *b, *a),
            (Expr::Time(a), Expr::Integer(b)) => moved(op, *a, *b),
            (Expr::Integer(a), Expr::Time(b)) if op == Op::Add => moved(op, *b, *a),
            (Expr::Time(a), Expr::Time(b)) => times(op, *a, *b),
            (left, right) => literal(left)
                .zip(literal(right))
                .and_then(|(left, right)| applied(op, &left, &right))
                .and_then(expression),
        };
        folded.unwrap_or_else(|| Expr::Binary { op, left: Box::new(left), right: Box::new(right) })
    }
}

impl Constants<'_> {
    /// Texts that stand for times beside times, spans of time and whole numbers; two texts, unless they
    /// are compared or joined as texts.
    fn as_times(&self, op: Op, left: &Expr, right: &Expr) -> (Option<Expr>, Option<Expr>) {
        let time = |expr: &Expr| match expr {
            Expr::Text(text) if looks_like_time(text) => {
                parse_time(text, self.zone).map(Expr::Time)
            }
            _ => None,
        };
        let is_beside =
            |expr: &Expr| matches!(expr, Expr::Time(_) | Expr::Duration(_) | Expr::Integer(_));
        let is_of_texts = matches!(op, Op::Eq | Op::NotEq | Op::Add);
        match (left, right) {
            (Expr::Text(_), Expr::Text(_)) if !is_of_texts => match (time(left), time(right)) {
                (Some(left), Some(right)) => (Some(left), Some(right)),
                _ => (None, None),
            },
            (Expr::Text(_), right) if is_beside(right) => (time(left), None),
            (left, Expr::Text(_)) if is_beside(left) => (None, time(right)),
            _ => (None, None),
        }
    }
}

/// The value of a function of one row whose arguments are constants.
fn called(name: &str, args: &[Expr]) -> Option<Expr> {
    let values: Option<Vec<Value>> = args.iter().map(literal).collect();
    let values = values.filter(|values| is_math(name) && !values.is_empty())?;
    expression(math::call(name, &values))
}

/// A constant as rows have it, so that both are worked out alike.
fn literal(expr: &Expr) -> Option<Value> {
    match expr {
        Expr::Integer(value) => Some(Value::Integer(*value)),
        Expr::Number(value) => Some(Value::Float(*value)),
        Expr::Unsigned(value) => Some(Value::Float(*value as f64)),
        Expr::Boolean(value) => Some(Value::Boolean(*value)),
        Expr::Text(value) => Some(Value::text(value)),
        _ => None,
    }
}

fn expression(value: Value) -> Option<Expr> {
    match value {
        Value::Integer(value) => Some(Expr::Integer(value)),
        Value::Float(value) => Some(Expr::Number(value)),
        Value::Boolean(value) => Some(Expr::Boolean(value)),
        Value::Text(_) | Value::Time(_) | Value::Null => None,
    }
}

fn compared<T: PartialOrd>(op: Op, a: &T, b: &T) -> Option<Expr> {
    Some(Expr::Boolean(match op {
        Op::Eq => a == b,
        Op::NotEq => a != b,
        Op::Less => a < b,
        Op::LessEq => a <= b,
        Op::Greater => b < a,
        Op::GreaterEq => b <= a,
        _ => return None,
    }))
}

fn durations(op: Op, a: i64, b: i64) -> Option<Expr> {
    match op {
        Op::Add => Some(Expr::Duration(a.wrapping_add(b))),
        Op::Sub => Some(Expr::Duration(a.wrapping_sub(b))),
        _ => compared(op, &a, &b),
    }
}

fn scaled(op: Op, duration: i64, factor: f64) -> Option<Expr> {
    match op {
        Op::Mul => Some(Expr::Duration((duration as f64 * factor) as i64)),
        Op::Div if factor == 0.0 => Some(Expr::Duration(0)),
        Op::Div => Some(Expr::Duration((duration as f64 / factor) as i64)),
        _ => None,
    }
}

fn moved(op: Op, time: i64, by: i64) -> Option<Expr> {
    match op {
        Op::Add => Some(Expr::Time(time.saturating_add(by))),
        Op::Sub => Some(Expr::Time(time.saturating_sub(by))),
        _ => None,
    }
}

fn times(op: Op, a: i64, b: i64) -> Option<Expr> {
    match op {
        Op::Sub => Some(Expr::Duration(a.saturating_sub(b))),
        _ => compared(op, &a, &b),
    }
}
