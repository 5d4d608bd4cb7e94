//! The library `cmsgpack`: values of Lua as MessagePack and back.
//! Source: <https://github.com/msgpack/msgpack/blob/master/spec.md>.

use super::arguments::{bytes, integer, integer_or};
use super::limits::memory_left;
use super::raised::Raised;
use super::time_check::TimeCheck;
use crate::scripting::busy::Busy;
use mlua::{Lua, MultiValue, Table, Value};
use std::sync::Arc;

/// Tables within tables that are written; what is deeper becomes nil.
const WRITE_DEPTH_MAX: usize = 16;
/// Tables within tables that are read.
const READ_DEPTH_MAX: usize = 1000;
/// Values that `unpack` gives back at once.
const VALUES_MAX: usize = 7000;

/// The library.
///
/// # Errors
/// When there is no memory.
pub fn library(lua: &Lua, busy: &Arc<Busy>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let watched = busy.clone();
    let packed = move |lua: &Lua, args: MultiValue| pack(lua, &watched, &args);
    table.raw_set("pack", lua.create_function(packed)?)?;
    let watched = busy.clone();
    let all = move |lua: &Lua, args: MultiValue| unpack(lua, &watched, &args, "unpack", 0, 0);
    table.raw_set("unpack", lua.create_function(all)?)?;
    let watched = busy.clone();
    let one = lua.create_function(move |lua, args: MultiValue| {
        let offset = integer_or(lua, &args, 1, "unpack_one", 0)?;
        unpack(lua, &watched, &args, "unpack_one", 1, offset)
    })?;
    table.raw_set("unpack_one", one)?;
    let watched = busy.clone();
    let limited = lua.create_function(move |lua, args: MultiValue| {
        let limit = integer(lua, &args, 1, "unpack_limit")?;
        let offset = integer_or(lua, &args, 2, "unpack_limit", 0)?;
        unpack(lua, &watched, &args, "unpack_limit", limit, offset)
    })?;
    table.raw_set("unpack_limit", limited)?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    Ok(table)
}

// ---- writing ----

fn pack(lua: &Lua, busy: &Arc<Busy>, args: &MultiValue) -> mlua::Result<mlua::LuaString> {
    if args.is_empty() {
        return Err(Raised::argument(lua, 0, "pack", "MessagePack pack needs input."));
    }
    let time = TimeCheck::new(lua, busy);
    let mut out = Packed { bytes: Vec::new(), size_max: memory_left(lua), time };
    for value in args {
        write(lua, &mut out, value, 0)?;
    }
    lua.create_string(&out.bytes)
}

/// Bytes that are made, and how many they may be.
struct Packed<'a> {
    bytes: Vec<u8>,
    size_max: usize,
    time: TimeCheck<'a>,
}

fn write(lua: &Lua, out: &mut Packed<'_>, value: &Value, depth: usize) -> mlua::Result<()> {
    out.time.step()?;
    let size = value.as_string().map_or(0, |text| text.as_bytes().len());
    if out.size_max < out.bytes.len().saturating_add(size) {
        return Err(Raised::placed(lua, "not enough memory"));
    }
    let bytes = &mut out.bytes;
    match value {
        Value::String(text) => write_text(bytes, &text.as_bytes()),
        Value::Boolean(value) => bytes.push(if *value { 0xc3 } else { 0xc2 }),
        Value::Integer(number) => write_integer(bytes, *number),
        Value::Number(number) => write_number(bytes, *number),
        Value::Table(table) if depth < WRITE_DEPTH_MAX => write_table(lua, out, table, depth)?,
        _ => bytes.push(0xc0),
    }
    Ok(())
}

fn write_table(lua: &Lua, out: &mut Packed<'_>, table: &Table, depth: usize) -> mlua::Result<()> {
    // An array has the keys from 1 to its length and no others.
    let (mut count, mut last, mut is_array) = (0_i64, 0_i64, true);
    for pair in table.pairs::<Value, Value>() {
        out.time.step()?;
        match pair?.0 {
            Value::Integer(key) if 0 < key => last = last.max(key),
            _ => is_array = false,
        }
        count += 1;
    }
    if is_array && last == count {
        write_head(&mut out.bytes, count, 0x90, 15, 0xdc);
        for at in 1..=count {
            write(lua, out, &table.raw_get(at)?, depth + 1)?;
        }
        return Ok(());
    }
    write_head(&mut out.bytes, count, 0x80, 15, 0xde);
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        write(lua, out, &key, depth + 1)?;
        write(lua, out, &value, depth + 1)?;
    }
    Ok(())
}

/// The head of an array or map: in one byte if few, else a 16- or 32-bit count behind a byte.
fn write_head(out: &mut Vec<u8>, count: i64, few: u8, few_max: i64, many: u8) {
    match count {
        0.. if count <= few_max => out.push(few | (count & 0xf) as u8),
        0..=0xffff => {
            out.push(many);
            out.extend_from_slice(&(count as u16).to_be_bytes());
        }
        _ => {
            out.push(many + 1);
            out.extend_from_slice(&(count as u32).to_be_bytes());
        }
    }
}

fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        size @ 0..32 => out.push(0xa0 | size as u8),
        size @ 0..=0xff => out.extend_from_slice(&[0xd9, size as u8]),
        size @ 0..=0xffff => {
            out.push(0xda);
            out.extend_from_slice(&(size as u16).to_be_bytes());
        }
        size => {
            out.push(0xdb);
            out.extend_from_slice(&(size as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(text);
}

#[allow(clippy::match_overlapping_arm, reason = "the first range that fits is the shortest form")]
fn write_integer(out: &mut Vec<u8>, number: i64) {
    match number {
        0..=0x7f => out.push(number as u8),
        0..=0xff => out.extend_from_slice(&[0xcc, number as u8]),
        0..=0xffff => {
            out.push(0xcd);
            out.extend_from_slice(&(number as u16).to_be_bytes());
        }
        0..=0xffff_ffff => {
            out.push(0xce);
            out.extend_from_slice(&(number as u32).to_be_bytes());
        }
        0.. => {
            out.push(0xcf);
            out.extend_from_slice(&(number as u64).to_be_bytes());
        }
        -32..0 => out.push(number as u8),
        -128..0 => out.extend_from_slice(&[0xd0, number as u8]),
        -0x8000..0 => {
            out.push(0xd1);
            out.extend_from_slice(&(number as i16).to_be_bytes());
        }
        -0x8000_0000..0 => {
            out.push(0xd2);
            out.extend_from_slice(&(number as i32).to_be_bytes());
        }
        _ => {
            out.push(0xd3);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

fn write_number(out: &mut Vec<u8>, number: f64) {
    let whole = number as i64;
    if whole as f64 == number && whole != i64::MAX {
        return write_integer(out, whole);
    }
    if f64::from(number as f32) == number {
        out.push(0xca);
        out.extend_from_slice(&(number as f32).to_be_bytes());
    } else {
        out.push(0xcb);
        out.extend_from_slice(&number.to_be_bytes());
    }
}

// ---- reading ----

/// Why bytes are no MessagePack.
enum Wrong {
    /// There are too few.
    Missing,
    /// They say what cannot be.
    Format,
    /// There is no memory for them.
    Lua(mlua::Error),
}

impl From<mlua::Error> for Wrong {
    fn from(error: mlua::Error) -> Wrong {
        Wrong::Lua(error)
    }
}

fn unpack(
    lua: &Lua,
    busy: &Arc<Busy>,
    args: &MultiValue,
    name: &str,
    limit: i64,
    offset: i64,
) -> mlua::Result<MultiValue> {
    let data = bytes(lua, args, 0, name)?;
    let start = match (usize::try_from(offset), usize::try_from(limit)) {
        (Ok(start), Ok(_)) => start,
        _ => {
            let size = data.len();
            return Err(Raised::placed(
                lua,
                &format!("Invalid request to unpack with offset of {offset} and limit of {size}."),
            ));
        }
    };
    let Some(rest) = data.get(start..) else {
        let size = data.len();
        let words = format!("Start offset {offset} greater than input length {size}.");
        return Err(Raised::placed(lua, &words));
    };
    let is_all = limit == 0 && offset == 0;
    let count_max = if is_all { usize::MAX } else { usize::try_from(limit).unwrap_or(usize::MAX) };
    let mut reader = Reader { lua, rest, time: TimeCheck::new(lua, busy) };
    let mut values = Vec::new();
    while !reader.rest.is_empty() && values.len() < count_max {
        if VALUES_MAX <= values.len() {
            let words = "too many return values at once; use unpack_one or unpack_limit instead.";
            return Err(Raised::placed(lua, words));
        }
        values.push(reader.value(0).map_err(|wrong| match wrong {
            Wrong::Missing => Raised::placed(lua, "Missing bytes in input."),
            Wrong::Format => Raised::placed(lua, "Bad data format in input."),
            Wrong::Lua(error) => error,
        })?);
    }
    if !is_all {
        let next = match reader.rest.len() {
            0 => -1.0,
            left => (data.len() - left) as f64,
        };
        values.insert(0, Value::Number(next));
    }
    Ok(values.into_iter().collect())
}

struct Reader<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
    time: TimeCheck<'a>,
}

impl Reader<'_> {
    fn take<const SIZE: usize>(&mut self) -> Result<[u8; SIZE], Wrong> {
        let (bytes, rest) = self.rest.split_first_chunk::<SIZE>().ok_or(Wrong::Missing)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn value(&mut self, depth: usize) -> Result<Value, Wrong> {
        self.time.step()?;
        let [kind] = self.take::<1>()?;
        let number = match kind {
            0xc0 => return Ok(Value::Nil),
            0xc2 | 0xc3 => return Ok(Value::Boolean(kind == 0xc3)),
            0x00..=0x7f => f64::from(kind),
            0xe0.. => f64::from(kind.cast_signed()),
            0xcc => f64::from(u8::from_be_bytes(self.take()?)),
            0xcd => f64::from(u16::from_be_bytes(self.take()?)),
            0xce => f64::from(u32::from_be_bytes(self.take()?)),
            0xcf => u64::from_be_bytes(self.take()?) as f64,
            0xd0 => f64::from(i8::from_be_bytes(self.take()?)),
            0xd1 => f64::from(i16::from_be_bytes(self.take()?)),
            0xd2 => f64::from(i32::from_be_bytes(self.take()?)),
            0xd3 => i64::from_be_bytes(self.take()?) as f64,
            0xca => f64::from(f32::from_be_bytes(self.take()?)),
            0xcb => f64::from_be_bytes(self.take()?),
            _ => return self.long(kind, depth),
        };
        Ok(Value::Number(number))
    }

    /// A value with a size before it.
    fn long(&mut self, kind: u8, depth: usize) -> Result<Value, Wrong> {
        match kind {
            0xa0..=0xbf => self.text(u32::from(kind & 0x1f)),
            0xd9 | 0xc4 => {
                let size = u8::from_be_bytes(self.take()?);
                self.text(u32::from(size))
            }
            0xda | 0xc5 => {
                let size = u16::from_be_bytes(self.take()?);
                self.text(u32::from(size))
            }
            0xdb | 0xc6 => {
                let size = u32::from_be_bytes(self.take()?);
                self.text(size)
            }
            0x90..=0x9f => self.array(u32::from(kind & 0xf), depth),
            0xdc => {
                let len = u16::from_be_bytes(self.take()?);
                self.array(u32::from(len), depth)
            }
            0xdd => {
                let len = u32::from_be_bytes(self.take()?);
                self.array(len, depth)
            }
            0x80..=0x8f => self.map(u32::from(kind & 0xf), depth),
            0xde => {
                let len = u16::from_be_bytes(self.take()?);
                self.map(u32::from(len), depth)
            }
            0xdf => {
                let len = u32::from_be_bytes(self.take()?);
                self.map(len, depth)
            }
            _ => Err(Wrong::Format),
        }
    }

    fn text(&mut self, size: u32) -> Result<Value, Wrong> {
        let (text, rest) = self.rest.split_at_checked(size as usize).ok_or(Wrong::Missing)?;
        self.rest = rest;
        Ok(Value::String(self.lua.create_string(text)?))
    }

    fn array(&mut self, len: u32, depth: usize) -> Result<Value, Wrong> {
        if READ_DEPTH_MAX < depth {
            return Err(Wrong::Format);
        }
        let table = self.lua.create_table()?;
        for at in 1..=len {
            table.raw_set(at, self.value(depth + 1)?)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, len: u32, depth: usize) -> Result<Value, Wrong> {
        if READ_DEPTH_MAX < depth {
            return Err(Wrong::Format);
        }
        let table = self.lua.create_table()?;
        for _ in 0..len {
            let (key, value) = (self.value(depth + 1)?, self.value(depth + 1)?);
            table.raw_set(key, value)?;
        }
        Ok(Value::Table(table))
    }
}
