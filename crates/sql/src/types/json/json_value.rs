//! Values of `jsonb`. Numbers keep all their digits: PostgreSQL has them as `numeric`
//! (<https://www.postgresql.org/docs/15/datatype-json.html>).

use jiter::{Jiter, Peek};
use std::collections::BTreeMap;

/// The keys and values of an object.
pub type Map = BTreeMap<String, Value>;

/// Arrays and objects within each other.
const DEPTH_MAX: usize = 128;
/// Digits of a number before its point, and behind it. A number that is written with an exponent is shown without one.
pub const NUMBER_DIGITS_MAX: usize = 400;

/// A value of `jsonb`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Value>),
    /// An object.
    Object(Map),
}

impl Value {
    /// Reads a JSON text. Returns none if the text is no JSON, or is beyond a limit.
    pub fn parse(text: &str) -> Option<Value> {
        let mut jiter = Jiter::new(text.as_bytes());
        let first = jiter.peek().ok()?;
        let value = read(&mut jiter, first, DEPTH_MAX)?;
        jiter.finish().ok()?;
        Some(value)
    }

    /// Returns a number for the text of a float, and a string for `NaN` and the infinities.
    pub fn from_float(text: &str) -> Value {
        Number::parse(text).map_or_else(|| text.into(), Value::Number)
    }

    /// Returns true for `null`.
    pub fn is_null(&self) -> bool {
        *self == Value::Null
    }

    /// Returns true for an array.
    pub fn is_array(&self) -> bool {
        matches!(self, Value::Array(_))
    }

    /// Returns true for an object.
    pub fn is_object(&self) -> bool {
        matches!(self, Value::Object(_))
    }

    /// Returns the object, or none for another value.
    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Value::Object(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the string, or none for another value.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the boolean, or none for another value.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(one) => Some(*one),
            _ => None,
        }
    }
}

impl From<bool> for Value {
    fn from(one: bool) -> Value {
        Value::Bool(one)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Number(Number(number.to_string()))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.to_string())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::String(text)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Value {
        Value::Object(map)
    }
}

/// A decimal number without an exponent, with the digits behind its point that it was written with.
#[derive(Clone, Debug)]
pub struct Number(String);

impl Number {
    /// Reads a number that may have an exponent. Returns none if it would have more digits than
    /// [`NUMBER_DIGITS_MAX`] on a side of its point.
    pub fn parse(text: &str) -> Option<Number> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (digits, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let both = || whole.bytes().chain(fraction.bytes());
        if both().next().is_none() || !both().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let plain = match exponent {
            0 => mantissa.to_string(),
            exponent => shift_point(whole, fraction, exponent)?,
        };
        let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
        let is_long = NUMBER_DIGITS_MAX < whole.len().max(fraction.len());
        let sign = if both().all(|byte| byte == b'0') { "" } else { sign };
        (!is_long).then(|| Number(format!("{sign}{plain}")))
    }

    /// The digits, with a sign and a point where it has them.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The digits without zeros at the end of a fraction, which have no value.
    fn significant(&self) -> &str {
        match self.0.contains('.') {
            true => self.0.trim_end_matches('0').trim_end_matches('.'),
            false => &self.0,
        }
    }
}

/// Numbers are equal however many zeros stand behind their point.
impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.significant() == other.significant()
    }
}

impl Eq for Number {}

/// Moves the point of a number to the right, or to the left if the exponent is below zero.
fn shift_point(whole: &str, fraction: &str, exponent: i64) -> Option<String> {
    let point = i64::try_from(whole.len()).ok()?.checked_add(exponent)?;
    let digits = format!("{whole}{fraction}");
    let limit = i64::try_from(NUMBER_DIGITS_MAX).ok()?;
    if digits.bytes().all(|byte| byte == b'0') && limit < point {
        return Some("0".to_string());
    }
    if point < -limit || limit < point {
        return None;
    }
    let made = match usize::try_from(point) {
        Ok(point) if digits.len() <= point => {
            format!("{digits}{}", "0".repeat(point - digits.len()))
        }
        Ok(point) => format!("{}.{}", &digits[..point], &digits[point..]),
        Err(_) => {
            let zeros = usize::try_from(point.unsigned_abs()).ok()?;
            format!("0.{}{digits}", "0".repeat(zeros))
        }
    };
    let (whole, fraction) = made.split_once('.').unwrap_or((&made, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(if fraction.is_empty() { whole.to_string() } else { format!("{whole}.{fraction}") })
}

fn read(jiter: &mut Jiter<'_>, first: Peek, depth: usize) -> Option<Value> {
    Some(match first {
        Peek::Null => {
            jiter.known_null().ok()?;
            Value::Null
        }
        Peek::True | Peek::False => Value::Bool(jiter.known_bool(first).ok()?),
        Peek::String => Value::String(jiter.known_str().ok()?.to_string()),
        Peek::Array => {
            let depth = depth.checked_sub(1)?;
            let mut all = Vec::new();
            let mut next = jiter.known_array().ok()?;
            while let Some(first) = next {
                all.push(read(jiter, first, depth)?);
                next = jiter.array_step().ok()?;
            }
            Value::Array(all)
        }
        Peek::Object => {
            let depth = depth.checked_sub(1)?;
            let mut map = Map::new();
            let mut next = jiter.known_object().ok()?.map(str::to_string);
            while let Some(key) = next {
                let first = jiter.peek().ok()?;
                map.insert(key, read(jiter, first, depth)?);
                next = jiter.next_key().ok()?.map(str::to_string);
            }
            Value::Object(map)
        }
        number if number.is_num() => {
            let bytes = jiter.known_number_bytes(number).ok()?;
            Value::Number(Number::parse(std::str::from_utf8(bytes).ok()?)?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        for (text, expected) in [
            ("12345678901234567890.123", "12345678901234567890.123"),
            ("0.10", "0.10"),
            ("1e3", "1000"),
            ("1.50e1", "15.0"),
            ("1E-3", "0.001"),
            ("-0", "0"),
            ("-0.0", "0.0"),
            ("-1.5e-2", "-0.015"),
            ("0.1e1", "1"),
            ("0.00e1", "0.0"),
            ("0e999999999", "0"),
            ("1e+20", "100000000000000000000"),
            ("10e-1", "1.0"),
        ] {
            assert_eq!(Number::parse(text).map(|one| one.0).as_deref(), Some(expected), "{text}");
        }
        for text in ["1e401", "1e-401", "1e99999999999999999999", "", "-", "1.x"] {
            assert!(Number::parse(text).is_none(), "{text}");
        }
        assert_eq!(Number::parse("1.0"), Number::parse("1"));
        assert_ne!(Number::parse("10"), Number::parse("1"));
    }

    #[test]
    fn only_json_is_read() {
        for text in [
            "",
            " ",
            "01",
            "1.",
            ".5",
            "+1",
            "-",
            "1e",
            "NaN",
            "Infinity",
            "-Infinity",
            "nul",
            "[1,]",
            "{\"a\":1,}",
            "{a:1}",
            "[1 2]",
            "\"a",
            "'a'",
            "1 2",
            "\"\u{1}\"",
            "\"\\x\"",
            "\"\\ud800\"",
            "{\"a\"}",
            "[",
            "{",
            "]",
            "truex",
        ] {
            assert!(Value::parse(text).is_none(), "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_err(), "{text}");
        }
        for text in [
            " 1 ",
            "{}",
            "[]",
            "\"\\ud83d\\ude00\"",
            "{\"a\": {\"b\": [1, \"x\", null]}}",
            "-1.5E+3",
        ] {
            assert!(Value::parse(text).is_some(), "{text}");
        }
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Value::parse(&nested(DEPTH_MAX)).is_some());
        assert!(Value::parse(&nested(DEPTH_MAX + 1)).is_none());
        let last = Value::parse("{\"a\": 1, \"a\": 2}").unwrap();
        assert_eq!(last.as_object().unwrap()["a"], Value::from(2));
    }
}
