//! The library `struct`: numbers and text as bytes, as a format of letters says.

use super::arguments::{bytes, integer_or, number};
use super::limits::memory_left;
use super::raised::Raised;
use mlua::{Lua, MultiValue, Table, Value};

/// Bytes that an integer may have.
const INTEGER_SIZE_MAX: usize = 32;
/// What `!` aligns to when it says no number.
const ALIGN_DEFAULT: usize = 8;

/// The library.
///
/// # Errors
/// When there is no memory.
pub fn library(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("pack", lua.create_function(pack)?)?;
    table.raw_set("unpack", lua.create_function(unpack)?)?;
    table.raw_set("size", lua.create_function(size)?)?;
    Ok(table)
}

/// A format under way.
struct Format<'a> {
    letters: &'a [u8],
    is_little: bool,
    align: usize,
}

/// A letter of a format, with its size.
struct Item {
    letter: u8,
    size: usize,
    /// Bytes that come before it to align it.
    padding: usize,
}

impl<'a> Format<'a> {
    fn new(letters: &'a [u8]) -> Format<'a> {
        Format { letters, is_little: cfg!(target_endian = "little"), align: 1 }
    }

    /// The number that the rest begins with.
    fn digits(&mut self, lua: &Lua) -> mlua::Result<Option<usize>> {
        let end = self.letters.iter().position(|byte| !byte.is_ascii_digit());
        let (digits, rest) = self.letters.split_at(end.unwrap_or(self.letters.len()));
        if digits.is_empty() {
            return Ok(None);
        }
        self.letters = rest;
        let number = std::str::from_utf8(digits).ok().and_then(|text| text.parse::<i32>().ok());
        let number = number.and_then(|number| usize::try_from(number).ok());
        match number {
            Some(number) => Ok(Some(number)),
            None => Err(Raised::placed(lua, "integral size overflow")),
        }
    }

    /// The next item that is about bytes at `total`; modes on the way are noted.
    fn next(&mut self, lua: &Lua, total: usize, of: &str) -> mlua::Result<Option<Item>> {
        loop {
            let Some((letter, rest)) = self.letters.split_first() else { return Ok(None) };
            self.letters = rest;
            let size = match letter {
                b'b' | b'B' | b'x' => 1,
                b'h' | b'H' => 2,
                b'l' | b'L' | b'T' | b'd' => 8,
                b'f' => 4,
                b's' => 0,
                b'i' | b'I' => {
                    let size = self.digits(lua)?.unwrap_or(4);
                    if INTEGER_SIZE_MAX < size {
                        let words = format!(
                            "integral size {size} is larger than limit of {INTEGER_SIZE_MAX}"
                        );
                        return Err(Raised::placed(lua, &words));
                    }
                    size
                }
                b'c' => self.digits(lua)?.unwrap_or(1),
                b' ' => continue,
                b'>' => {
                    self.is_little = false;
                    continue;
                }
                b'<' => {
                    self.is_little = true;
                    continue;
                }
                b'!' => {
                    let align = self.digits(lua)?.unwrap_or(ALIGN_DEFAULT);
                    if align == 0 || !align.is_power_of_two() {
                        return Err(Raised::placed(
                            lua,
                            &format!("alignment {align} is not a power of 2"),
                        ));
                    }
                    self.align = align;
                    continue;
                }
                other => {
                    let words = format!("invalid format option '{}'", char::from(*other));
                    return Err(Raised::argument(lua, 1, of, &words));
                }
            };
            let padding = self.padding(*letter, size, total);
            return Ok(Some(Item { letter: *letter, size, padding }));
        }
    }

    fn padding(&self, letter: u8, size: usize, total: usize) -> usize {
        if size == 0 || letter == b'c' {
            return 0;
        }
        let align = size.min(self.align);
        match align {
            0 | 1 => 0,
            _ => (align - (total & (align - 1))) & (align - 1),
        }
    }
}

/// An integer's lowest bytes, extended by its sign.
fn put_integer(out: &mut Vec<u8>, value: f64, size: usize, is_little: bool) {
    // Beyond what an integer with sign can be, C takes it as one without.
    let bits = if value < 0.0 { (value as i64).cast_unsigned() } else { value as u64 };
    let fill = if value < 0.0 { 0xff } else { 0 };
    let mut bytes = [fill; INTEGER_SIZE_MAX];
    bytes[..8].copy_from_slice(&bits.to_le_bytes());
    let bytes = &mut bytes[..size];
    if !is_little {
        bytes.reverse();
    }
    out.extend_from_slice(bytes);
}

fn take_integer(bytes: &[u8], is_little: bool, is_signed: bool) -> f64 {
    let mut value = 0_u64;
    let shift = |value: u64, byte: &u8| (value << 8) | u64::from(*byte);
    value = match is_little {
        true => bytes.iter().rev().fold(value, shift),
        false => bytes.iter().fold(value, shift),
    };
    if !is_signed {
        return value as f64;
    }
    let bits = (bytes.len() * 8).min(64);
    if bits == 0 {
        return 0.0;
    }
    let unused = 64 - bits;
    ((value << unused).cast_signed() >> unused) as f64
}

fn pack(lua: &Lua, args: MultiValue) -> mlua::Result<Value> {
    let letters = bytes(lua, &args, 0, "pack")?;
    let mut format = Format::new(&letters);
    let (mut out, mut at, size_max) = (Vec::new(), 1, memory_left(lua));
    while let Some(item) = format.next(lua, out.len(), "pack")? {
        out.resize(out.len() + item.padding, 0);
        let is_text = matches!(item.letter, b's' | b'c');
        let text_size = args.get(at).filter(|_| is_text).and_then(Value::as_string);
        let text_size = text_size.map_or(0, |text| text.as_bytes().len());
        if size_max < out.len().saturating_add(item.size.max(text_size)) {
            return Err(Raised::placed(lua, "format result too large"));
        }
        match item.letter {
            b'x' => {
                out.push(0);
                continue;
            }
            b's' => {
                out.extend_from_slice(&bytes(lua, &args, at, "pack")?);
                out.push(0);
            }
            b'c' => {
                let text = bytes(lua, &args, at, "pack")?;
                let size = if item.size == 0 { text.len() } else { item.size };
                let part = text.get(..size);
                let part =
                    part.ok_or_else(|| Raised::argument(lua, at + 2, "pack", "string too short"))?;
                out.extend_from_slice(part);
            }
            b'f' | b'd' => {
                let value = number(lua, &args, at, "pack")?;
                let mut raw = match item.letter {
                    b'f' => (value as f32).to_le_bytes().to_vec(),
                    _ => value.to_le_bytes().to_vec(),
                };
                if !format.is_little {
                    raw.reverse();
                }
                out.extend_from_slice(&raw);
            }
            _ => {
                let value = number(lua, &args, at, "pack")?;
                put_integer(&mut out, value, item.size, format.is_little);
            }
        }
        at += 1;
    }
    lua.create_string(&out).map(Value::String)
}

fn unpack(lua: &Lua, args: MultiValue) -> mlua::Result<MultiValue> {
    let (letters, data) = (bytes(lua, &args, 0, "unpack")?, bytes(lua, &args, 1, "unpack")?);
    let start = integer_or(lua, &args, 2, "unpack", 1)?;
    let Some(mut at) = start.checked_sub(1).and_then(|start| usize::try_from(start).ok()) else {
        return Err(Raised::argument(lua, 3, "unpack", "offset must be 1 or greater"));
    };
    let mut format = Format::new(&letters);
    let mut values: Vec<Value> = Vec::new();
    let too_short = || Raised::argument(lua, 2, "unpack", "data string too short");
    while let Some(item) = format.next(lua, at, "unpack")? {
        at = at.saturating_add(item.padding);
        let end = at.saturating_add(item.size);
        let mut part = data.get(at..end).ok_or_else(too_short)?;
        match item.letter {
            b'x' => {}
            b's' => {
                let rest = data.get(at..).ok_or_else(too_short)?;
                let zero = rest.iter().position(|byte| *byte == 0);
                let zero = zero.ok_or_else(|| Raised::placed(lua, "unfinished string in data"))?;
                values
                    .push(Value::String(lua.create_string(rest.get(..zero).unwrap_or_default())?));
                at += zero + 1;
                continue;
            }
            b'c' => {
                if item.size == 0 {
                    let size = match values.pop() {
                        Some(Value::Number(size)) => size as i64,
                        _ => return Err(Raised::placed(lua, "format 'c0' needs a previous size")),
                    };
                    let end = usize::try_from(size).ok().and_then(|size| at.checked_add(size));
                    part = end.and_then(|end| data.get(at..end)).ok_or_else(too_short)?;
                }
                values.push(Value::String(lua.create_string(part)?));
                at += part.len();
                continue;
            }
            b'f' | b'd' => {
                let mut raw = part.to_vec();
                if !format.is_little {
                    raw.reverse();
                }
                values.push(Value::Number(match raw.as_slice() {
                    [a, b, c, d] => f64::from(f32::from_le_bytes([*a, *b, *c, *d])),
                    other => f64::from_le_bytes(other.try_into().unwrap_or_default()),
                }));
            }
            letter => {
                let is_signed = letter.is_ascii_lowercase();
                values.push(Value::Number(take_integer(part, format.is_little, is_signed)));
            }
        }
        at = end;
    }
    values.push(Value::Number((at + 1) as f64));
    Ok(values.into_iter().collect())
}

fn size(lua: &Lua, args: MultiValue) -> mlua::Result<f64> {
    let letters = bytes(lua, &args, 0, "size")?;
    let mut format = Format::new(&letters);
    let mut total = 0_usize;
    while let Some(item) = format.next(lua, total, "size")? {
        total = total.saturating_add(item.padding);
        if item.letter == b's' {
            return Err(Raised::argument(lua, 1, "size", "option 's' has no fixed size"));
        }
        if item.letter == b'c' && item.size == 0 {
            return Err(Raised::argument(lua, 1, "size", "option 'c0' has no fixed size"));
        }
        total = total.saturating_add(item.size);
    }
    Ok(total as f64)
}
