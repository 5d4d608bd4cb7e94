//! Whether two answers are the same.

use serde_json::Value;

/// Sums may be added up in another order.
const TOLERANCE: f64 = 1e-12;

/// Whether two answers are the same.
pub fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => match (x.as_i64(), y.as_i64()) {
            (Some(x), Some(y)) => x == y,
            _ => {
                let (x, y) = (x.as_f64().unwrap_or(f64::NAN), y.as_f64().unwrap_or(f64::NAN));
                (x - y).abs() <= TOLERANCE * x.abs().max(y.abs()).max(1.0)
            }
        },
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| is_same(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            let same = |(name, x)| y.get(name).is_some_and(|y| is_same(x, y));
            x.len() == y.len() && x.iter().all(same)
        }
        (a, b) => a == b,
    }
}

/// CSV as rows of cells; what looks like a number is one. Errors of statements, which InfluxDB does not
/// tell in CSV, are left out.
pub fn of_csv(text: &str) -> Value {
    let cell = |cell: &str| match cell.parse::<serde_json::Number>() {
        Ok(number) => Value::Number(number),
        Err(_) => Value::String(cell.to_string()),
    };
    let text = if text.starts_with("error\n") { "" } else { text };
    let text = text.split_once("\nerror\n").map_or(text, |(before, _)| before);
    text.trim_end().lines().map(|line| line.split(',').map(cell).collect::<Value>()).collect()
}
