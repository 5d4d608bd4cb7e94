//! Constants of an expression worked out, `now()` and dates among them.

use crate::ast::Expr;
use crate::time::{looks_like_time, parse_time};
use crate::token::Op;
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
            other => other,
        }
    }

    fn fold(&self, op: Op, left: Expr, right: Expr) -> Expr {
        let folded = match (&left, &right) {
            (Expr::Duration(a), Expr::Duration(b)) => durations(op, *a, *b),
            (Expr::Duration(a), Expr::Integer(b)) => scaled(op, *a, *b as f64),
            (Expr::Duration(a), Expr::Number(b)) => scaled(op, *a, *b),
            (Expr::Integer(a), Expr::Duration(b)) if op == Op::Mul => scaled(op, *b, *a as f64),
            (Expr::Number(a), Expr::Duration(b)) if op == Op::Mul => scaled(op, *b, *a),
            (Expr::Integer(a), Expr::Duration(b)) => durations(op, *a, *b),
            (Expr::Time(a), Expr::Duration(b)) => moved(op, *a, *b),
            (Expr::Duration(a), Expr::Time(b)) if op == Op::Add => moved(op, *b, *a),
            (Expr::Time(a), Expr::Integer(b)) => moved(op, *a, *b),
            (Expr::Time(a), Expr::Time(b)) => times(op, *a, *b),
            (Expr::Text(a), Expr::Duration(b)) if looks_like_time(a) => {
                parse_time(a, self.zone).and_then(|a| moved(op, a, *b))
            }
            (Expr::Integer(a), Expr::Integer(b)) => integers(op, *a, *b),
            (Expr::Integer(_) | Expr::Number(_), Expr::Integer(_) | Expr::Number(_)) => {
                numbers(op, number(&left), number(&right))
            }
            (Expr::Boolean(a), Expr::Boolean(b)) => booleans(op, *a, *b),
            (Expr::Text(a), Expr::Text(b)) => match op {
                Op::Eq => Some(Expr::Boolean(a == b)),
                Op::NotEq => Some(Expr::Boolean(a != b)),
                _ => None,
            },
            _ => None,
        };
        folded.unwrap_or_else(|| Expr::Binary { op, left: Box::new(left), right: Box::new(right) })
    }
}

fn number(expr: &Expr) -> f64 {
    match expr {
        Expr::Integer(value) => *value as f64,
        Expr::Number(value) => *value,
        _ => 0.0,
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

fn integers(op: Op, a: i64, b: i64) -> Option<Expr> {
    Some(Expr::Integer(match op {
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::Div if b == 0 => return Some(Expr::Number(0.0)),
        Op::Div => return Some(Expr::Number(a as f64 / b as f64)),
        Op::Mod if b == 0 => 0,
        Op::Mod => a.wrapping_rem(b),
        Op::BitAnd => a & b,
        Op::BitOr => a | b,
        Op::BitXor => a ^ b,
        _ => return compared(op, &a, &b),
    }))
}

fn numbers(op: Op, a: f64, b: f64) -> Option<Expr> {
    Some(Expr::Number(match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div if b == 0.0 => 0.0,
        Op::Div => a / b,
        Op::Mod => a % b,
        _ => return compared(op, &a, &b),
    }))
}

fn booleans(op: Op, a: bool, b: bool) -> Option<Expr> {
    Some(Expr::Boolean(match op {
        Op::And | Op::BitAnd => a && b,
        Op::Or | Op::BitOr => a || b,
        Op::BitXor | Op::NotEq => a != b,
        Op::Eq => a == b,
        _ => return None,
    }))
}
