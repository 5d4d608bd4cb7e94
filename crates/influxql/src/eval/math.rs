//! Functions of one row.

use crate::value::Value;

/// The value of a function; nothing where it has none.
pub fn call(name: &str, args: &[Value]) -> Value {
    match args {
        [value] => unary(name, value),
        [first, second] => match (first.as_f64(), second.as_f64()) {
            (Some(a), Some(b)) => two(name, (first, a), (second, b)),
            _ => Value::Null,
        },
        _ => Value::Null,
    }
}

fn two(name: &str, (first, a): (&Value, f64), (second, b): (&Value, f64)) -> Value {
    match name {
        "atan2" => Value::Float(a.atan2(b)),
        "log" => Value::Float(a.ln() / b.ln()),
        "pow" => match (first, second) {
            (Value::Integer(_), Value::Integer(_)) => Value::Integer(a.powf(b) as i64),
            _ => Value::Float(a.powf(b)),
        },
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
    if !matches!(value, Value::Integer(_) | Value::Float(_)) {
        return Value::Null;
    }
    let Some(x) = value.as_f64() else { return Value::Null };
    Value::Float(match name {
        "abs" => x.abs(),
        "acos" | "asin" if !(-1.0..=1.0).contains(&x) => return Value::Null,
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
