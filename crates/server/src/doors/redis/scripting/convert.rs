//! Answers of commands as values of Lua, and values of Lua as answers.
//!
//! | version 2           | Lua                | version 3 besides    | Lua                         |
//! |---------------------|--------------------|----------------------|-----------------------------|
//! | status, error       | `{ok=}`, `{err=}`  | map, set             | `{map={}}`, `{set={x=true}}` |
//! | integer, bytes      | number, string     | double, big number   | `{double=}`, `{big_number=}` |
//! | array               | table from 1 on    | text with a format   | `{verbatim_string={}}`      |
//! | nothing             | `false`            | nothing, truth value | `nil`, boolean              |

use super::raised::error_table;
use crate::doors::redis::out::Out;
use kv::Reply as _;
use mlua::{Lua, Table, Value};

/// Tables within tables that an answer may have.
const DEPTH_MAX: usize = 1000;
/// Bytes of an answer; tables that hold each other could make one without end.
const ANSWER_SIZE_MAX: usize = 512 << 20;
/// What says that an answer has no end.
const TOO_DEEP: &str = "ERR reached lua stack limit";
/// What says that an answer is too large.
const TOO_LARGE: &str = "ERR the answer of the script is too large";

/// Reads an answer that a command of this server wrote.
pub struct Reader<'a> {
    lua: &'a Lua,
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// From those bytes.
    pub fn new(lua: &'a Lua, bytes: &'a [u8]) -> Reader<'a> {
        Reader { lua, bytes }
    }

    fn line(&mut self) -> &'a [u8] {
        let end = memchr_crlf(self.bytes);
        let line = self.bytes.get(..end).unwrap_or_default();
        self.bytes = self.bytes.get(end + 2..).unwrap_or_default();
        line
    }

    fn number(&mut self) -> i64 {
        std::str::from_utf8(self.line()).ok().and_then(|text| text.parse().ok()).unwrap_or(-1)
    }

    fn bulk(&mut self, size: i64) -> Option<&'a [u8]> {
        let size = usize::try_from(size).ok()?;
        let text = self.bytes.get(..size).unwrap_or_default();
        self.bytes = self.bytes.get(size + 2..).unwrap_or_default();
        Some(text)
    }

    fn field(&self, name: &str, value: impl mlua::IntoLua) -> mlua::Result<Value> {
        let table = self.lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, value)?;
        Ok(Value::Table(table))
    }

    /// The next value.
    pub fn value(&mut self) -> mlua::Result<Value> {
        let kind = self.bytes.first().copied().unwrap_or(b'_');
        self.bytes = self.bytes.get(1..).unwrap_or_default();
        match kind {
            b'+' => {
                let text = self.lua.create_string(self.line())?;
                self.field("ok", text)
            }
            b'-' => error_table(self.lua, self.line()).map(Value::Table),
            b':' => Ok(Value::Number(self.number() as f64)),
            b'$' => {
                let size = self.number();
                match self.bulk(size) {
                    Some(text) => self.lua.create_string(text).map(Value::String),
                    None => Ok(Value::Boolean(false)),
                }
            }
            b'*' | b'>' => self.array(),
            b'%' => self.map(),
            b'~' => self.set(),
            b'#' => Ok(Value::Boolean(self.line() == b"t")),
            b',' => {
                let text = String::from_utf8_lossy(self.line()).into_owned();
                self.field("double", text.parse::<f64>().unwrap_or(f64::NAN))
            }
            b'(' => {
                let text = self.lua.create_string(self.line())?;
                self.field("big_number", text)
            }
            b'=' => self.verbatim(),
            // Attributes of the value that follows are not for scripts.
            b'|' => {
                self.map()?;
                self.value()
            }
            _ => {
                self.line();
                Ok(Value::Nil)
            }
        }
    }

    fn array(&mut self) -> mlua::Result<Value> {
        let Ok(len) = usize::try_from(self.number()) else { return Ok(Value::Boolean(false)) };
        let table = self.lua.create_table_with_capacity(len, 0)?;
        for at in 1..=len {
            table.raw_set(at, self.value()?)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self) -> mlua::Result<Value> {
        let len = usize::try_from(self.number()).unwrap_or(0);
        let table = self.lua.create_table_with_capacity(0, len)?;
        for _ in 0..len {
            let (key, value) = (self.value()?, self.value()?);
            if key != Value::Nil {
                table.raw_set(key, value)?;
            }
        }
        self.field("map", table)
    }

    fn set(&mut self) -> mlua::Result<Value> {
        let len = usize::try_from(self.number()).unwrap_or(0);
        let table = self.lua.create_table_with_capacity(0, len)?;
        for _ in 0..len {
            let member = self.value()?;
            if member != Value::Nil {
                table.raw_set(member, true)?;
            }
        }
        self.field("set", table)
    }

    fn verbatim(&mut self) -> mlua::Result<Value> {
        let size = self.number();
        let text = self.bulk(size).unwrap_or_default();
        let (format, text) = text.split_at(text.len().min(4));
        let table = self.lua.create_table_with_capacity(0, 2)?;
        table.raw_set("string", self.lua.create_string(text)?)?;
        let format = format.strip_suffix(b":").unwrap_or(format);
        table.raw_set("format", self.lua.create_string(format)?)?;
        self.field("verbatim_string", table)
    }
}

fn memchr_crlf(bytes: &[u8]) -> usize {
    bytes.windows(2).position(|pair| pair == b"\r\n").unwrap_or(bytes.len())
}

/// Writes a script's value as an answer. `version` is the one that the script chose: it says what
/// truth values become.
pub fn answer(value: &Value, version: u8, out: &mut Out) -> mlua::Result<()> {
    let start = out.0.bytes().len();
    write(value, version, out, 0, start)?;
    if ANSWER_SIZE_MAX < out.0.bytes().len() - start {
        out.0.bytes_mut().truncate(start);
        out.error(TOO_LARGE);
    }
    Ok(())
}

fn write(
    value: &Value,
    version: u8,
    out: &mut Out,
    depth: usize,
    start: usize,
) -> mlua::Result<()> {
    if DEPTH_MAX < depth {
        out.error(TOO_DEEP);
        return Ok(());
    }
    if ANSWER_SIZE_MAX < out.0.bytes().len() - start {
        return Ok(());
    }
    match value {
        Value::String(text) => out.bulk(&text.as_bytes()),
        Value::Boolean(value) if version < 3 => match value {
            true => out.int(1),
            false => out.null(),
        },
        Value::Boolean(value) => out.bool(*value),
        Value::Integer(number) => out.int(*number),
        Value::Number(number) => out.int(whole(*number)),
        Value::Table(table) => write_table(table, version, out, depth, start)?,
        _ => out.null(),
    }
    Ok(())
}

/// What C makes of a float that is no integer of 64 bits.
fn whole(number: f64) -> i64 {
    let is_within = (-9.3e18..9.223_372_036_854_775e18).contains(&number);
    if is_within { number as i64 } else { i64::MIN }
}

fn write_table(
    table: &Table,
    version: u8,
    out: &mut Out,
    depth: usize,
    start: usize,
) -> mlua::Result<()> {
    if let Value::String(text) = table.raw_get("err")? {
        let text = text.as_bytes();
        out.error(&String::from_utf8_lossy(text.strip_prefix(b"-").unwrap_or(&text)));
        return Ok(());
    }
    if let Value::String(text) = table.raw_get("ok")? {
        out.simple(&text.to_string_lossy());
        return Ok(());
    }
    match table.raw_get("double")? {
        Value::Number(number) => {
            return {
                let _: () = out.double(number);
                Ok(())
            };
        }
        Value::Integer(number) => {
            return {
                out.double(number as f64);
                Ok(())
            };
        }
        _ => {}
    }
    if let Value::String(text) = table.raw_get("big_number")? {
        // A line's end within it would end the answer.
        out.big_number(&text.to_string_lossy().replace(['\r', '\n'], " "));
        return Ok(());
    }
    if let Value::Table(verbatim) = table.raw_get("verbatim_string")? {
        let (format, text) = (verbatim.raw_get("format")?, verbatim.raw_get("string")?);
        if let (Value::String(format), Value::String(text)) = (format, text) {
            out.verbatim(&three_letters(&format.as_bytes()), &text.as_bytes());
            return Ok(());
        }
    }
    if let Value::Table(map) = table.raw_get("map")? {
        out.map(map.pairs::<Value, Value>().count());
        for pair in map.pairs::<Value, Value>() {
            let (key, value) = pair?;
            write(&key, version, out, depth + 1, start)?;
            write(&value, version, out, depth + 1, start)?;
        }
        return Ok(());
    }
    if let Value::Table(set) = table.raw_get("set")? {
        out.set(set.pairs::<Value, Value>().count());
        for pair in set.pairs::<Value, Value>() {
            write(&pair?.0, version, out, depth + 1, start)?;
        }
        return Ok(());
    }
    write_array(table, version, out, depth, start)
}

fn write_array(
    table: &Table,
    version: u8,
    out: &mut Out,
    depth: usize,
    start: usize,
) -> mlua::Result<()> {
    // One at a time: what is held of Lua's takes room of its stack, which has some thousand places.
    let mut len = 0;
    while table.raw_get::<Value>(len + 1)? != Value::Nil {
        len += 1;
    }
    out.array(len);
    for at in 1..=len {
        write(&table.raw_get(at)?, version, out, depth + 1, start)?;
    }
    Ok(())
}

fn three_letters(format: &[u8]) -> String {
    let mut text: String = format.iter().take(3).map(|byte| char::from(*byte)).collect();
    while text.len() < 3 {
        text.push(' ');
    }
    text
}
