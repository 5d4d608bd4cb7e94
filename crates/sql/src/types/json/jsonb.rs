//! Labels as PostgreSQL's `jsonb` shows them, and what may be asked of such a text.
//!
//! `jsonb` sorts keys by their length, then by their bytes, and puts a space behind `:` and `,`
//! (<https://www.postgresql.org/docs/15/datatype-json.html>).

use crate::types::error::SqlError;
use crate::types::json::json_value::{Map, NUMBER_DIGITS_MAX, Value};
use datafusion::common::{DataFusionError, Result};
use serde::de::IgnoredAny;
use std::fmt::Write as _;

/// Appends labels as `jsonb` shows them; they come sorted by name.
pub fn push_labels<'a>(out: &mut String, labels: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut pairs: Vec<(&str, &str)> = labels.collect();
    // Stable, and names that are equally long stay in the order of their bytes.
    pairs.sort_by_key(|(name, _)| name.len());
    out.push('{');
    for (at, (name, value)) in pairs.into_iter().enumerate() {
        if at != 0 {
            out.push_str(", ");
        }
        push_string(out, name);
        out.push_str(": ");
        push_string(out, value);
    }
    out.push('}');
}

/// Appends a string in quotes, escaped as PostgreSQL does.
fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if u32::from(control) < 0x20 => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
}

/// What PostgreSQL says of a zero character in a `jsonb`: its texts have none.
pub const ZERO_REFUSED: &str =
    "unsupported Unicode escape sequence: \\u0000 cannot be converted to text";

/// Characters of a text that an error shows.
const SHOWN_LEN_MAX: usize = 100;
/// How JSON writes a zero character; it may not stand there as it is.
const ZERO: &str = "\\u0000";

/// A text as a value; none when it is no JSON, has a zero character in it, or is beyond a limit. [`refusal`] tells them
/// apart.
pub fn parse(text: &str) -> Option<Value> {
    let value = Value::parse(text)?;
    // The same letters behind a backslash that is escaped itself are no such character.
    (!text.contains(ZERO) || !has_zero(&value)).then_some(value)
}

/// The error for a text that [`parse`] does not take: its SQLSTATE and its message.
pub fn refusal(text: &str) -> (&'static str, String) {
    if is_refused_for_zero(text) {
        return ("22P05", ZERO_REFUSED.to_string());
    }
    if serde_json::from_str::<serde_json::Value>(text).is_ok() {
        let words = format!(
            "numbers in JSON have at most {NUMBER_DIGITS_MAX} digits before their point here, and as many behind"
        );
        return ("0A000", words);
    }
    let shown: String = text.chars().take(SHOWN_LEN_MAX).collect();
    ("22P02", format!("invalid input syntax for type json: \"{shown}\""))
}

/// Whether a text that is not taken is JSON but for a zero character.
pub fn is_refused_for_zero(text: &str) -> bool {
    text.contains(ZERO) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn has_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(all) => all.iter().any(has_zero),
        Value::Object(map) => map.iter().any(|(key, one)| key.contains('\0') || has_zero(one)),
        _ => false,
    }
}

/// Whether `whole @> part`: all of the part is in the whole, arrays without heed to order.
pub fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        // An array may contain a plain value, PostgreSQL's one exception, not within others.
        (Value::Array(whole), part) if !part.is_object() && !part.is_array() => {
            whole.contains(part)
        }
        _ => contains_within(whole, part),
    }
}

fn contains_within(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, part)| whole.get(key).is_some_and(|one| contains_within(one, part))),
        (Value::Array(whole), Value::Array(part)) => {
            part.iter().all(|part| whole.iter().any(|one| contains_within(one, part)))
        }
        (whole, part) => whole == part,
    }
}

/// Whether `value ? key`: a key of an object, a string of an array, or the string itself.
pub fn has_key(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(map) => map.contains_key(key),
        Value::Array(all) => all.iter().any(|one| one.as_str() == Some(key)),
        Value::String(text) => text == key,
        _ => false,
    }
}

/// `value -> 'key'`: of objects only.
pub fn field<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.as_object()?.get(key)
}

/// `value -> at`: of arrays only, from their ends below zero. A plain value is to PostgreSQL an array
/// of itself.
pub fn element(value: &Value, at: i64) -> Option<&Value> {
    let all = match value {
        Value::Array(all) => all.as_slice(),
        Value::Object(_) => return None,
        plain => std::slice::from_ref(plain),
    };
    let len = i64::try_from(all.len()).ok()?;
    all.get(usize::try_from(if at < 0 { len + at } else { at }).ok()?)
}

/// A step of a path, as of `value #> '{key}'`: a key of an object, a place of an array.
pub fn step<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => map.get(key),
        Value::Array(_) => element(value, key.trim_ascii().parse().ok()?),
        _ => None,
    }
}

/// `left || right`: the keys of both, those to the right winning; what is no object is an array, or
/// becomes one.
pub fn joined(left: &Value, right: &Value) -> Value {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let both = left.iter().chain(right);
            Value::Object(both.map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        (left, right) => {
            let all = |one: &Value| match one {
                Value::Array(all) => all.clone(),
                plain => vec![plain.clone()],
            };
            Value::Array(all(left).into_iter().chain(all(right)).collect())
        }
    }
}

/// `value - keys`: without those keys, or those strings of an array.
pub fn without<K: AsRef<str>>(value: &Value, keys: &[K]) -> Value {
    let is_kept = |key: &str| keys.iter().all(|one| one.as_ref() != key);
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| is_kept(key));
            Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        Value::Array(all) => {
            let kept = all.iter().filter(|one| one.as_str().is_none_or(is_kept));
            Value::Array(kept.cloned().collect())
        }
        plain => plain.clone(),
    }
}

/// `value - at`: an array without one of its values, counted from its end if that is below zero.
pub fn without_at(value: &Value, at: i64) -> Value {
    let Value::Array(all) = value else { return value.clone() };
    let len = i64::try_from(all.len()).unwrap_or(i64::MAX);
    let at = usize::try_from(if at < 0 { len.saturating_add(at) } else { at }).ok();
    let kept = all.iter().enumerate().filter(|(place, _)| Some(*place) != at);
    Value::Array(kept.map(|(_, one)| one.clone()).collect())
}

/// A value as text: strings without their quotes, none for null.
pub fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(shown(other)),
    }
}

/// A value as `jsonb` shows it.
pub fn shown(value: &Value) -> String {
    let mut out = String::new();
    push(&mut out, value);
    out
}

fn push(out: &mut String, value: &Value) {
    match value {
        Value::Object(map) => push_object(out, map),
        Value::Array(all) => {
            out.push('[');
            for (at, one) in all.iter().enumerate() {
                if at != 0 {
                    out.push_str(", ");
                }
                push(out, one);
            }
            out.push(']');
        }
        Value::String(text) => push_string(out, text),
        Value::Number(number) => out.push_str(number.text()),
        Value::Bool(one) => out.push_str(if *one { "true" } else { "false" }),
        Value::Null => out.push_str("null"),
    }
}

/// The keys and values of an object as `jsonb` keeps them.
pub fn in_order(map: &Map) -> Vec<(&String, &Value)> {
    let mut pairs: Vec<(&String, &Value)> = map.iter().collect();
    pairs.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then(a.cmp(b)));
    pairs
}

/// A value with a line for each key and each value of an array, as `jsonb_pretty` shows it.
pub fn pretty(value: &Value) -> String {
    let mut out = String::new();
    push_pretty(&mut out, value, 0);
    out
}

fn push_pretty(out: &mut String, value: &Value, depth: usize) {
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        (0..depth).for_each(|_| out.push_str("    "));
    };
    match value {
        Value::Object(map) => {
            out.push('{');
            for (at, (key, value)) in in_order(map).into_iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                line(out, depth + 1);
                push_string(out, key);
                out.push_str(": ");
                push_pretty(out, value, depth + 1);
            }
            line(out, depth);
            out.push('}');
        }
        Value::Array(all) => {
            out.push('[');
            for (at, one) in all.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                line(out, depth + 1);
                push_pretty(out, one, depth + 1);
            }
            line(out, depth);
            out.push(']');
        }
        plain => push(out, plain),
    }
}

fn push_object(out: &mut String, map: &Map) {
    out.push('{');
    for (at, (key, value)) in in_order(map).into_iter().enumerate() {
        if at != 0 {
            out.push_str(", ");
        }
        push_string(out, key);
        out.push_str(": ");
        push(out, value);
    }
    out.push('}');
}

/// A text that is no JSON, or has what PostgreSQL's has not.
pub fn no_json(text: &str) -> DataFusionError {
    let (code, message) = refusal(text);
    DataFusionError::External(Box::new(SqlError::new(code, message)))
}

/// Checks that a text is JSON; a zero character may stand in `json` alone.
///
/// # Errors
/// `22P02` and `22P05`.
pub fn check_json(text: &str, is_jsonb: bool) -> Result<(), SqlError> {
    let is_kept = !is_jsonb && is_refused_for_zero(text);
    match is_kept || parse(text).is_some() {
        true => Ok(()),
        false => Err(no_json(text).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_by_length_first() {
        let mut out = String::new();
        let labels = [("handler", "/"), ("job", "a\"b\\c\nd"), ("le", "0.1"), ("up", "\u{1}")];
        push_labels(&mut out, labels.into_iter());
        let expected = r#"{"le": "0.1", "up": "\u0001", "job": "a\"b\\c\nd", "handler": "/"}"#;
        assert_eq!(out, expected);
        assert_eq!(shown(&parse(expected).unwrap()), expected);
    }

    #[test]
    fn containment_is_that_of_postgresql() {
        let whole = parse(r#"{"a": 1, "b": [1, "x", {"c": 2}], "d": {"e": null}}"#).unwrap();
        for (part, expected) in [
            (r#"{}"#, true),
            (r#"{"a": 1}"#, true),
            (r#"{"a": 2}"#, false),
            (r#"{"b": [{"c": 2}, "x"]}"#, true),
            (r#"{"b": ["y"]}"#, false),
            (r#"{"d": {"e": null}}"#, true),
            (r#"{"d": {}}"#, true),
            (r#"[]"#, false),
        ] {
            assert_eq!(contains(&whole, &parse(part).unwrap()), expected, "{part}");
        }
        for (whole, part, expected) in [
            (r#"{"a": [1]}"#, r#"{"a": 1}"#, false),
            (r#"["foo", ["bar"]]"#, r#"["bar"]"#, false),
            (r#"{"a": 1.0}"#, r#"{"a": 1}"#, true),
            (r#"[1, 2]"#, "2.0", true),
        ] {
            let (whole, part) = (parse(whole).unwrap(), parse(part).unwrap());
            assert_eq!(contains(&whole, &part), expected, "{whole:?} @> {part:?}");
        }
        let array = parse(r#"["a", "b"]"#).unwrap();
        assert!(contains(&array, &parse(r#""a""#).unwrap()));
        assert!(!contains(&parse(r#""a""#).unwrap(), &array));
        assert!(has_key(&array, "b") && has_key(&whole, "d") && !has_key(&whole, "x"));
        assert_eq!(text_of(step(&array, "-1").unwrap()).as_deref(), Some("b"));
    }

    #[test]
    fn keys_are_of_objects_and_places_of_arrays() {
        let (array, object) = (parse("[1, [2]]").unwrap(), parse(r#"{"1": "x"}"#).unwrap());
        assert_eq!(field(&array, "0"), None);
        assert_eq!(element(&object, 1), None);
        assert_eq!(field(&object, "1").and_then(text_of).as_deref(), Some("x"));
        assert_eq!(element(&array, -1).map(shown).as_deref(), Some("[2]"));
        assert_eq!(element(&array, 2), None);
        assert_eq!(element(&array, i64::MIN), None);
        assert_eq!(element(&Value::from(7), 0), Some(&Value::from(7)));
        assert_eq!(step(&array, " 0"), Some(&Value::from(1)));
        assert_eq!(step(&object, "1"), Some(&Value::from("x")));
        assert_eq!(step(&Value::from(7), "0"), None);
    }

    #[test]
    fn zero_characters_are_refused() {
        for text in [r#""\u0000""#, r#"{"a\u0000": 1}"#, r#"[{"a": ["\\\u0000"]}]"#] {
            assert!(parse(text).is_none() && is_refused_for_zero(text), "{text}");
        }
        assert_eq!(parse(r#""\\u0000""#), Some(Value::from("\\u0000")));
        assert!(!is_refused_for_zero(r#""\u0000"#));
    }
}
