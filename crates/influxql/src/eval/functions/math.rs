//! Functions of one row.

use crate::value::Value;

/// The value of a function; nothing where it has none.
pub fn call(name: &str, args: &[Value]) -> Value {
    match args {
        [value] => unary(name, value),
        [first, second] => match (number(first), number(second)) {
            (Some(a), Some(b)) => two(name, a, b),
            _ => Value::Null,
        },
        _ => Value::Null,
    }
}

/// Truths are none.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(_) | Value::Float(_) => value.as_f64(),
        _ => None,
    }
}

fn two(name: &str, a: f64, b: f64) -> Value {
    match name {
        "atan2" => Value::Float(a.atan2(b)),
        "log" => Value::Float(a.ln() / b.ln()),
        "pow" => Value::Float(a.powf(b)),
        _ => Value::Null,
    }
}

fn unary(name: &str, value: &Value) -> Value {
    if let Value::Integer(whole) = value {
        match name {
            "abs" => return Value::Integer(whole.wrapping_abs()),
            "ceil" | "floor" | "round" => return value.clone(),
            _ => {}
        }
    }
    let Some(x) = number(value) else { return Value::Null };
    Value::Float(match name {
        "abs" => x.abs(),
        "acos" => x.acos(),
        "asin" => x.asin(),
        "atan" => x.atan(),
        "ceil" => x.ceil(),
        "cos" => x.cos(),
        "exp" => x.exp(),
        "floor" => x.floor(),
        "ln" => x.ln(),
        "log2" => x.log2(),
        "log10" => x.log10(),
        "round" => x.round(),
        "sin" => x.sin(),
        "sqrt" => x.sqrt(),
        "tan" => x.tan(),
        _ => return Value::Null,
    })
}
