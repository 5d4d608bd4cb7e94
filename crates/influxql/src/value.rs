//! What stands in a cell, and arithmetic with it.

use crate::ast::DataType;
use crate::token::Op;
use std::cmp::Ordering;
use std::sync::Arc;

/// A cell of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Nothing.
    #[default]
    Null,
    /// A number with a point.
    Float(f64),
    /// A whole number.
    Integer(i64),
    /// True or false.
    Boolean(bool),
    /// Text.
    Text(Arc<str>),
    /// Nanoseconds since the epoch.
    Time(i64),
}

impl Value {
    /// A sample as a value of that type.
    pub fn of_sample(sample: f64, kind: DataType) -> Value {
        match kind {
            DataType::Integer | DataType::Unsigned => Value::Integer(sample as i64),
            DataType::Boolean => Value::Boolean(sample != 0.0),
            _ => Value::Float(sample),
        }
    }

    /// Text.
    pub fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    /// Whether there is nothing.
    pub fn is_null(&self) -> bool {
        *self == Value::Null
    }

    /// The number that it is, or as near as a float comes.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Float(value) => Some(*value),
            Value::Integer(value) => Some(*value as f64),
            Value::Boolean(value) => Some(f64::from(u8::from(*value))),
            _ => None,
        }
    }

    /// The order of two values of one type.
    pub fn order(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
            (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
            (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (a, b) => a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)),
        }
    }

    /// A cell of a subquery as one of the type that the query around it takes it for.
    pub(crate) fn of_type(self, to: DataType) -> Value {
        match (self, to) {
            (Value::Integer(value), DataType::Float) => Value::Float(value as f64),
            (Value::Float(value), DataType::Integer | DataType::Unsigned) if !value.is_nan() => {
                Value::Integer(value as i64)
            }
            (value, _) => value,
        }
    }

    /// Whether it is one of that type.
    pub(crate) fn is_of(&self, kind: DataType) -> bool {
        match self {
            Value::Float(_) => kind == DataType::Float,
            Value::Integer(_) => matches!(kind, DataType::Integer | DataType::Unsigned),
            Value::Boolean(_) => kind == DataType::Boolean,
            Value::Text(_) => matches!(kind, DataType::String | DataType::Tag),
            Value::Null | Value::Time(_) => false,
        }
    }

    /// What `::float` and `::integer` make of it, and a mix of measurements; nothing where there is
    /// no such cast.
    pub fn cast(self, from: DataType, to: DataType) -> Value {
        match (self, to) {
            (value, DataType::Unknown | DataType::AnyField) => value,
            (value, to) if from == to => value,
            (Value::Integer(value), DataType::Float) => Value::Float(value as f64),
            (Value::Float(value), DataType::Integer | DataType::Unsigned) => {
                Value::Integer(value as i64)
            }
            (value @ Value::Integer(_), DataType::Integer | DataType::Unsigned) => value,
            _ => Value::Null,
        }
    }
}

/// `left op right`; nothing where the types do not go together, false where they are compared. What
/// stands behind a truth and is none makes it false.
pub fn binary(op: Op, left: &Value, right: &Value) -> Value {
    let value = match (left, right) {
        (Value::Boolean(_), Value::Boolean(_)) => applied(op, left, right),
        (Value::Boolean(_), _) => booleans(op, false, false).map(|_| Value::Boolean(false)),
        _ => applied(op, left, right),
    };
    match value {
        Some(value) => value,
        None if op.precedence() == 3 => Value::Boolean(false),
        None => Value::Null,
    }
}

/// `left op right`; `None` where the types do not go together, or have no such operator.
pub(crate) fn applied(op: Op, left: &Value, right: &Value) -> Option<Value> {
    match (left, right) {
        (Value::Integer(a), Value::Integer(b)) => integers(op, *a, *b),
        (Value::Integer(_) | Value::Float(_), Value::Integer(_) | Value::Float(_)) => {
            let (a, b) = (left.as_f64().unwrap_or(0.0), right.as_f64().unwrap_or(0.0));
            floats(op, a, b)
        }
        (Value::Boolean(a), Value::Boolean(b)) => booleans(op, *a, *b),
        (Value::Text(a), Value::Text(b)) => match op {
            Op::Eq => Some(Value::Boolean(a == b)),
            Op::NotEq => Some(Value::Boolean(a != b)),
            _ => None,
        },
        _ => None,
    }
}

fn compared(op: Op, order: Option<Ordering>) -> Option<Value> {
    let is_true = match (op, order) {
        (Op::NotEq, None) => true,
        (_, None) => false,
        (Op::Eq, Some(order)) => order == Ordering::Equal,
        (Op::NotEq, Some(order)) => order != Ordering::Equal,
        (Op::Less, Some(order)) => order == Ordering::Less,
        (Op::LessEq, Some(order)) => order != Ordering::Greater,
        (Op::Greater, Some(order)) => order == Ordering::Greater,
        (Op::GreaterEq, Some(order)) => order != Ordering::Less,
        _ => return None,
    };
    Some(Value::Boolean(is_true))
}

fn integers(op: Op, a: i64, b: i64) -> Option<Value> {
    Some(Value::Integer(match op {
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::Div if b == 0 => return Some(Value::Float(0.0)),
        Op::Div => return Some(Value::Float(a as f64 / b as f64)),
        Op::Mod if b == 0 => 0,
        Op::Mod => a.wrapping_rem(b),
        Op::BitAnd => a & b,
        Op::BitOr => a | b,
        Op::BitXor => a ^ b,
        _ => return compared(op, Some(a.cmp(&b))),
    }))
}

fn floats(op: Op, a: f64, b: f64) -> Option<Value> {
    Some(Value::Float(match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div if b == 0.0 => 0.0,
        Op::Div => a / b,
        Op::Mod => a % b,
        Op::BitAnd | Op::BitOr | Op::BitXor => return None,
        _ => return compared(op, a.partial_cmp(&b)),
    }))
}

fn booleans(op: Op, a: bool, b: bool) -> Option<Value> {
    Some(Value::Boolean(match op {
        Op::And | Op::BitAnd => a && b,
        Op::Or | Op::BitOr => a || b,
        Op::BitXor | Op::NotEq => a != b,
        Op::Eq => a == b,
        _ => return None,
    }))
}
