//! Errors that scripts raise and catch. What Rust raises travels as a userdata; the globals that catch
//! errors turn it into what scripts know: text with a place, or a table with `err`.

use mlua::{Error, Lua, Table, Value};

/// Frames that are searched for the script's own.
const FRAMES_MAX: usize = 32;

/// What was raised.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", String::from_utf8_lossy(text))]
pub struct Raised {
    /// The words.
    text: Vec<u8>,
    /// Whether scripts see a table with these words as `err`.
    is_table: bool,
    /// Value that scripts see instead of the words.
    value: Option<Value>,
}

impl Raised {
    /// An error of `redis`, which is a table; its words follow `ERR`.
    pub fn error(words: &str) -> Error {
        Raised::table(format!("ERR {words}").into_bytes())
    }

    /// The same with its code.
    pub fn table(text: Vec<u8>) -> Error {
        Error::external(Raised { text, is_table: true, value: None })
    }

    /// An error of a library: its words behind the place where it was called.
    pub fn placed(lua: &Lua, words: &str) -> Error {
        let text = caller_place(lua) + words;
        Error::external(Raised { text: text.into_bytes(), is_table: false, value: None })
    }

    /// A value that a function of the script raised.
    pub fn value(value: Value) -> Error {
        match value {
            Value::Error(error) => *error,
            value => {
                let text = value.to_string().unwrap_or_default().into_bytes();
                Error::external(Raised { text, is_table: false, value: Some(value) })
            }
        }
    }

    /// An error about an argument, counted from 1.
    pub fn argument(lua: &Lua, at: usize, function: &str, words: &str) -> Error {
        let (name, is_method) = called_as(lua, function);
        let at = at - usize::from(is_method && 0 < at);
        let text = match is_method && at == 0 {
            true => format!("calling '{name}' on bad self ({words})"),
            false => format!("bad argument #{at} to '{name}' ({words})"),
        };
        Raised::placed(lua, &text)
    }
}

/// Source of the functions of `prelude.lua`, which scripts do not see.
const PRELUDE: &str = "=prelude";

fn is_prelude(lua: &Lua, level: usize) -> bool {
    let is = |frame: &mlua::debug::Debug<'_>| frame.source().source.as_deref() == Some(PRELUDE);
    lua.inspect_stack(level, is).unwrap_or(false)
}

/// Place in the script that called the running function: `user_script:1: `, or nothing.
fn caller_place(lua: &Lua) -> String {
    let level = (1..FRAMES_MAX).find(|level| !is_prelude(lua, *level)).unwrap_or(1);
    let place = lua.inspect_stack(level, |frame| {
        let line = frame.current_line()?;
        let source = frame.source().short_src?.into_owned();
        Some(format!("{source}:{line}: "))
    });
    place.flatten().unwrap_or_default()
}

/// Name by which the script called the running function, and whether it did so with a colon.
fn called_as(lua: &Lua, function: &str) -> (String, bool) {
    if is_prelude(lua, 1) {
        return (function.to_owned(), false);
    }
    let called = lua.inspect_stack(0, |frame| {
        let names = frame.names();
        let name = names.name.map_or_else(|| "?".to_owned(), |name| name.into_owned());
        (name, names.name_what == Some("method"))
    });
    called.unwrap_or_else(|| (function.to_owned(), false))
}

/// A table with an error's text.
pub fn error_table(lua: &Lua, text: &[u8]) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set("err", lua.create_string(text)?)?;
    Ok(table)
}

/// What scripts see of an error.
pub fn unwrap(lua: &Lua, value: Value) -> mlua::Result<Value> {
    let Value::Error(error) = value else { return Ok(value) };
    of_error(lua, &error)
}

fn of_error(lua: &Lua, mut error: &Error) -> mlua::Result<Value> {
    loop {
        match error {
            Error::CallbackError { cause, .. } => error = cause,
            Error::WithContext { cause, .. } => error = cause,
            Error::BadArgument { cause, .. } => error = cause,
            Error::ExternalError(cause) => {
                return match cause.downcast_ref::<Raised>() {
                    Some(Raised { value: Some(value), .. }) => Ok(value.clone()),
                    Some(Raised { text, is_table: true, .. }) => {
                        error_table(lua, text).map(Value::Table)
                    }
                    Some(Raised { text, .. }) => lua.create_string(text).map(Value::String),
                    None => lua.create_string(cause.to_string()).map(Value::String),
                };
            }
            Error::CallbackDestructed => {
                let text = b"ERR redis.call/pcall can only be called inside a script invocation";
                return error_table(lua, text).map(Value::Table);
            }
            Error::MemoryError(_) => {
                return lua.create_string("not enough memory").map(Value::String);
            }
            Error::RuntimeError(text) => return lua.create_string(text).map(Value::String),
            other => return lua.create_string(other.to_string()).map(Value::String),
        }
    }
}

/// The text of an error, for an answer.
pub fn text_of(error: &Error) -> Vec<u8> {
    match error {
        Error::CallbackError { cause, .. } | Error::WithContext { cause, .. } => text_of(cause),
        Error::ExternalError(cause) => match cause.downcast_ref::<Raised>() {
            Some(raised) => raised.text.clone(),
            None => cause.to_string().into_bytes(),
        },
        Error::SyntaxError { message, .. } => message.clone().into_bytes(),
        Error::RuntimeError(text) => text.clone().into_bytes(),
        Error::MemoryError(_) => b"not enough memory".to_vec(),
        other => other.to_string().into_bytes(),
    }
}

/// An error's text without a place in the prelude, which scripts do not see.
fn without_prelude(text: &[u8]) -> &[u8] {
    let line = text.strip_prefix(b"prelude:").unwrap_or_default();
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    line[digits..].strip_prefix(b": ").filter(|_| 0 < digits).unwrap_or(text)
}

/// Makes what nobody caught a table with its words and the place where it was raised.
pub fn handler(lua: &Lua, value: Value) -> mlua::Result<Value> {
    let value = unwrap(lua, value)?;
    let table = match value {
        Value::Table(table) => table,
        other => {
            let text = match &other {
                Value::String(text) => without_prelude(&text.as_bytes()).to_vec(),
                other => other.to_string().unwrap_or_default().into_bytes(),
            };
            error_table(lua, &[b"ERR ", text.as_slice()].concat())?
        }
    };
    for level in 1..FRAMES_MAX {
        let found = lua.inspect_stack(level, |frame| {
            let source = frame.source();
            let of_script = source.what != "C" && source.source.as_deref() != Some(PRELUDE);
            of_script.then(|| {
                let line = frame.current_line().map_or(-1, |line| line as i64);
                (source.source.unwrap_or_default().into_owned(), line)
            })
        });
        match found {
            None => break,
            Some(None) => {}
            Some(Some((source, line))) => {
                table.raw_set("source", source)?;
                table.raw_set("line", line)?;
                break;
            }
        }
    }
    Ok(Value::Table(table))
}
