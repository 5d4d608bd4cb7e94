//! Arguments of library functions, with the errors of Lua's own library.

use super::raised::Raised;
use mlua::{Lua, MultiValue, Value};

/// The name of a value's type as Lua says it.
pub fn type_name(value: Option<&Value>) -> &'static str {
    match value {
        None => "no value",
        Some(Value::Error(_)) => "userdata",
        Some(Value::Integer(_)) => "number",
        Some(value) => value.type_name(),
    }
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
    Ok(number(lua, args, at, of)? as i64)
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
