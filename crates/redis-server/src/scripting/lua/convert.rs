//! Answers of commands as values of Lua, and values of Lua as answers.
//!
//! | version 2           | Lua                | version 3 besides    | Lua                         |
//! |---------------------|--------------------|----------------------|-----------------------------|
//! | status, error       | `{ok=}`, `{err=}`  | map, set             | `{map={}}`, `{set={x=true}}` |
//! | integer, bytes      | number, string     | double, big number   | `{double=}`, `{big_number=}` |
//! | array               | table from 1 on    | text with a format   | `{verbatim_string={}}`      |
//! | nothing             | `false`            | nothing, truth value | `nil`, boolean              |

use super::raised::error_table;
use super::time_check::TimeCheck;
use crate::out::{Out, answer_size_max};
use crate::scripting::busy::Busy;
use kv::Reply as _;
use mlua::{Lua, Table, Value};
use std::sync::Arc;

/// Tables within tables that an answer may have.
const DEPTH_MAX: usize = 1000;
/// Bytes of an answer; tables that hold each other could make one without end.
const ANSWER_SIZE_MAX: usize = 512 << 20;
/// What says that an answer has no end.
const TOO_DEEP: &str = "ERR reached lua stack limit";

/// Reads an answer that a command of this server wrote.
pub struct Reader<'a> {
    lua: &'a Lua,
    time: TimeCheck<'a>,
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// From those bytes.
    pub fn new(lua: &'a Lua, busy: &'a Arc<Busy>, bytes: &'a [u8]) -> Reader<'a> {
        Reader { lua, time: TimeCheck::new(lua, busy), bytes }
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
    ///
    /// # Errors
    /// When the script is killed meanwhile, or Lua has no memory.
    pub fn value(&mut self) -> mlua::Result<Value> {
        self.time.step()?;
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
///
/// # Errors
/// When the script is killed meanwhile, or Lua has no memory.
pub fn answer(
    lua: &Lua,
    busy: &Arc<Busy>,
    value: &Value,
    version: u8,
    out: &mut Out,
) -> mlua::Result<()> {
    let size_max = ANSWER_SIZE_MAX.min(answer_size_max());
    answer_within(&mut TimeCheck::new(lua, busy), value, version, out, size_max)
}

fn answer_within(
    time: &mut TimeCheck<'_>,
    value: &Value,
    version: u8,
    out: &mut Out,
    size_max: usize,
) -> mlua::Result<()> {
    let start = out.0.bytes().len();
    let end = start.saturating_add(size_max);
    match (Writer { time, out: &mut *out, version, end }).write(value, 0) {
        Ok(()) => Ok(()),
        Err(Stop::Lua(error)) => Err(error),
        Err(Stop::TooLarge) => {
            out.0.bytes_mut().truncate(start);
            out.0.bytes_mut().shrink_to(start);
            out.error(&format!("ERR the answer of the script is larger than {size_max} bytes"));
            Ok(())
        }
    }
}

/// Why no more of an answer is written.
enum Stop {
    /// It has more bytes than it may.
    TooLarge,
    /// The script was killed, or Lua has no memory.
    Lua(mlua::Error),
}

impl From<mlua::Error> for Stop {
    fn from(error: mlua::Error) -> Stop {
        Stop::Lua(error)
    }
}

/// Writes values one by one.
struct Writer<'a, 'b> {
    time: &'a mut TimeCheck<'b>,
    out: &'a mut Out,
    version: u8,
    /// Bytes that `out` may have.
    end: usize,
}

impl Writer<'_, '_> {
    fn write(&mut self, value: &Value, depth: usize) -> Result<(), Stop> {
        self.time.step()?;
        self.check_size(0)?;
        if DEPTH_MAX < depth {
            self.out.error(TOO_DEEP);
            return Ok(());
        }
        match value {
            Value::String(text) => {
                let text = text.as_bytes();
                self.check_size(text.len())?;
                self.out.bulk(&text);
            }
            Value::Boolean(value) if self.version < 3 => match value {
                true => self.out.int(1),
                false => self.out.null(),
            },
            Value::Boolean(value) => self.out.bool(*value),
            Value::Integer(number) => self.out.int(*number),
            Value::Number(number) => self.out.int(whole(*number)),
            Value::Table(table) => self.write_table(table, depth)?,
            _ => self.out.null(),
        }
        Ok(())
    }

    /// Whether so many bytes more are allowed: checked before they are made.
    fn check_size(&self, size: usize) -> Result<(), Stop> {
        match self.out.0.bytes().len().saturating_add(size) <= self.end {
            true => Ok(()),
            false => Err(Stop::TooLarge),
        }
    }

    fn write_table(&mut self, table: &Table, depth: usize) -> Result<(), Stop> {
        if self.write_scalar(table)? {
            return Ok(());
        }
        if let Value::Table(map) = table.raw_get("map")? {
            let len = self.count(&map)?;
            self.out.map(len);
            for pair in map.pairs::<Value, Value>() {
                let (key, value) = pair?;
                self.write(&key, depth + 1)?;
                self.write(&value, depth + 1)?;
            }
            return Ok(());
        }
        if let Value::Table(set) = table.raw_get("set")? {
            let len = self.count(&set)?;
            self.out.set(len);
            for pair in set.pairs::<Value, Value>() {
                self.write(&pair?.0, depth + 1)?;
            }
            return Ok(());
        }
        self.write_array(table, depth)
    }

    /// Writes a table that stands for one value. Returns whether it does.
    fn write_scalar(&mut self, table: &Table) -> Result<bool, Stop> {
        if let Value::String(text) = table.raw_get("err")? {
            let text = text.as_bytes();
            self.check_size(text.len())?;
            self.out.error(&String::from_utf8_lossy(text.strip_prefix(b"-").unwrap_or(&text)));
            return Ok(true);
        }
        if let Value::String(text) = table.raw_get("ok")? {
            self.check_size(text.as_bytes().len())?;
            self.out.simple(&text.to_string_lossy());
            return Ok(true);
        }
        match table.raw_get("double")? {
            Value::Number(number) => {
                self.out.double(number);
                return Ok(true);
            }
            Value::Integer(number) => {
                self.out.double(number as f64);
                return Ok(true);
            }
            _ => {}
        }
        if let Value::String(text) = table.raw_get("big_number")? {
            self.check_size(text.as_bytes().len())?;
            // A line's end within it would end the answer.
            self.out.big_number(&text.to_string_lossy().replace(['\r', '\n'], " "));
            return Ok(true);
        }
        if let Value::Table(verbatim) = table.raw_get("verbatim_string")? {
            let (format, text) = (verbatim.raw_get("format")?, verbatim.raw_get("string")?);
            if let (Value::String(format), Value::String(text)) = (format, text) {
                self.check_size(text.as_bytes().len())?;
                self.out.verbatim(&three_letters(&format.as_bytes()), &text.as_bytes());
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn count(&mut self, table: &Table) -> Result<usize, Stop> {
        let mut len = 0;
        for pair in table.pairs::<Value, Value>() {
            pair?;
            self.time.step()?;
            len += 1;
        }
        Ok(len)
    }

    fn write_array(&mut self, table: &Table, depth: usize) -> Result<(), Stop> {
        // One at a time: what is held of Lua's takes room of its stack, which has some thousand places.
        let mut len = 0;
        while table.raw_get::<Value>(len + 1)? != Value::Nil {
            self.time.step()?;
            len += 1;
        }
        self.out.array(len);
        for at in 1..=len {
            self.write(&table.raw_get(at)?, depth + 1)?;
        }
        Ok(())
    }
}

/// Converts a float to an integer as C does on x86-64: floats outside of 64 bits become the smallest integer.
fn whole(number: f64) -> i64 {
    let is_within = (-9.3e18..9.223_372_036_854_775e18).contains(&number);
    if is_within { number as i64 } else { i64::MIN }
}

fn three_letters(format: &[u8]) -> String {
    let mut text: String = format.iter().take(3).map(|byte| char::from(*byte)).collect();
    while text.len() < 3 {
        text.push(' ');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_too_large_becomes_an_error_before_it_is_made() {
        let (lua, busy) = (Lua::new(), Arc::new(Busy::default()));
        for (script, size_max, expected) in [
            ("return {1, 'ab'}", 18, "*2\r\n:1\r\n$2\r\nab\r\n"),
            ("return ('x'):rep(100000)", 1000, ""),
            ("return {ok = ('x'):rep(100000)}", 1000, ""),
            ("return {err = ('x'):rep(100000)}", 1000, ""),
            ("return {big_number = ('1'):rep(100000)}", 1000, ""),
            ("return {verbatim_string = {format = 'txt', string = ('x'):rep(100000)}}", 1000, ""),
            ("local t = {} for i = 1, 100000 do t[i] = {} end return t", 1000, ""),
            ("local t = {} for i = 1, 100000 do t[i] = true end return {set = t}", 1000, ""),
            ("local t = {} t[1] = t return t", 1000, ""),
        ] {
            let value: Value = lua.load(script).call(()).unwrap();
            let mut out = Out::new(3);
            out.ok();
            let mut time = TimeCheck::new(&lua, &busy);
            answer_within(&mut time, &value, 3, &mut out, size_max).unwrap();
            let text = String::from_utf8_lossy(out.0.bytes()).into_owned();
            assert!(out.0.bytes_mut().capacity() < 5000, "{script}: all of it was made");
            let error = "-ERR the answer of the script is larger than 1000 bytes\r\n";
            let expected = if expected.is_empty() { error } else { expected };
            assert_eq!(text, format!("+OK\r\n{expected}"), "{script}");
        }
    }
}
