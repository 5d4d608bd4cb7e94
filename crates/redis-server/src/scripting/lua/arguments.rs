//! Arguments of library functions, with the errors of Lua's own library.

use super::raised::Raised;
use mlua::{BorrowedBytes, Lua, MultiValue, Value};
use std::ops::Deref;

/// The name of a value's type as Lua says it.
pub fn type_name(value: Option<&Value>) -> &'static str {
    match value {
        None => "no value",
        Some(Value::Error(_)) => "userdata",
        Some(Value::Integer(_)) => "number",
        Some(value) => value.type_name(),
    }
}

/// Text of an argument: borrowed from Lua, or the digits of a number.
pub enum Text {
    /// A string of Lua.
    Borrowed(BorrowedBytes),
    /// Digits.
    Digits(Vec<u8>),
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Text::Borrowed(text) => text,
            Text::Digits(digits) => digits,
        }
    }
}

/// Text, or a number's digits, without a copy. `at` counts from 0.
///
/// # Errors
/// When it is something else.
pub fn text(lua: &Lua, args: &MultiValue, at: usize, of: &str) -> mlua::Result<Text> {
    match args.get(at) {
        Some(Value::String(text)) => Ok(Text::Borrowed(text.as_bytes())),
        _ => Ok(Text::Digits(bytes(lua, args, at, of)?)),
    }
}

/// Integer that C makes of a float; the least one for those out of range, as on x86-64.
pub fn c_integer(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

/// Bytes, or a number's digits. `at` counts from 0.
///
/// # Errors
/// When it is something else.
pub fn bytes(lua: &Lua, args: &MultiValue, at: usize, of: &str) -> mlua::Result<Vec<u8>> {
    match args.get(at) {
        Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
        Some(Value::Integer(_) | Value::Number(_)) => {
            Ok(super::digits::general(number(lua, args, at, of)?, 14).into_bytes())
        }
        other => {
            let words = format!("string expected, got {}", type_name(other));
            Err(Raised::argument(lua, at + 1, of, &words))
        }
    }
}

/// A number, or text that is one.
///
/// # Errors
/// When it is something else.
pub fn number(lua: &Lua, args: &MultiValue, at: usize, of: &str) -> mlua::Result<f64> {
    let value = args.get(at);
    let found = match value {
        Some(Value::Integer(number)) => Some(*number as f64),
        Some(Value::Number(number)) => Some(*number),
        Some(text @ Value::String(_)) => lua.coerce_number(text.clone())?,
        _ => None,
    };
    found.ok_or_else(|| {
        let words = format!("number expected, got {}", type_name(value));
        Raised::argument(lua, at + 1, of, &words)
    })
}

/// A number without what is behind its point.
///
/// # Errors
/// As [`number`].
pub fn integer(lua: &Lua, args: &MultiValue, at: usize, of: &str) -> mlua::Result<i64> {
    Ok(c_integer(number(lua, args, at, of)?))
}

/// The same, another if it is missing.
///
/// # Errors
/// As [`number`].
pub fn integer_or(
    lua: &Lua,
    args: &MultiValue,
    at: usize,
    of: &str,
    otherwise: i64,
) -> mlua::Result<i64> {
    match args.get(at) {
        None | Some(Value::Nil) => Ok(otherwise),
        Some(_) => integer(lua, args, at, of),
    }
}
