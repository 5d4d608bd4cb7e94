//! The library `cjson`: values of Lua as JSON and back, as Lua CJSON 2.1 does it.

use super::arguments::bytes;
use super::digits::general;
use super::limits::memory_left;
use super::raised::Raised;
use super::time_check::TimeCheck;
use crate::scripting::busy::Busy;
use mlua::{LightUserData, Lua, MultiValue, Table, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Tables within tables, whatever a script asks for: more would not fit the stack.
const DEPTH_MAX: i64 = 1000;

/// Bytes of a text from which on its size is checked before it is written.
const LONG_TEXT_MIN: usize = 64 << 10;

/// What a script can choose.
#[derive(Debug)]
struct Options {
    sparse_convert: AtomicI64,
    sparse_ratio: AtomicI64,
    sparse_safe: AtomicI64,
    encode_depth: AtomicI64,
    decode_depth: AtomicI64,
    precision: AtomicI64,
    keep_buffer: AtomicI64,
    /// 0: an error; 1: as they are; 2: `null`.
    encode_invalid: AtomicI64,
    decode_invalid: AtomicI64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            sparse_convert: AtomicI64::new(0),
            sparse_ratio: AtomicI64::new(2),
            sparse_safe: AtomicI64::new(10),
            encode_depth: AtomicI64::new(DEPTH_MAX),
            decode_depth: AtomicI64::new(DEPTH_MAX),
            precision: AtomicI64::new(14),
            keep_buffer: AtomicI64::new(1),
            encode_invalid: AtomicI64::new(0),
            decode_invalid: AtomicI64::new(1),
        }
    }
}

/// The library.
///
/// # Errors
/// When there is no memory.
pub fn library(lua: &Lua, busy: &Arc<Busy>) -> mlua::Result<Table> {
    let options = Arc::<Options>::default();
    let table = lua.create_table()?;
    let (of, watched) = (options.clone(), busy.clone());
    let encode = move |lua: &Lua, args: MultiValue| encode(lua, &watched, &of, &args);
    table.raw_set("encode", lua.create_function(encode)?)?;
    let (of, watched) = (options.clone(), busy.clone());
    let decode = move |lua: &Lua, args: MultiValue| decode(lua, &watched, &of, &args);
    table.raw_set("decode", lua.create_function(decode)?)?;
    add_options(lua, &table, &options)?;
    let watched = busy.clone();
    let new = lua.create_function(move |lua, _: MultiValue| library(lua, &watched))?;
    table.raw_set("new", new)?;
    table.raw_set("null", Value::LightUserData(null()))?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    Ok(table)
}

/// What stands for `null`, for a table holds no nil.
fn null() -> LightUserData {
    LightUserData(std::ptr::null_mut())
}

fn one_argument(lua: &Lua, args: &MultiValue, of: &str) -> mlua::Result<()> {
    match args.len() {
        1 => Ok(()),
        _ => Err(Raised::argument(lua, 1, of, "expected 1 argument")),
    }
}

fn add_options(lua: &Lua, table: &Table, options: &Arc<Options>) -> mlua::Result<()> {
    let of = options.clone();
    let sparse = lua.create_function(move |lua, args: MultiValue| {
        let name = "encode_sparse_array";
        if 3 < args.len() {
            return Err(Raised::argument(lua, 4, name, "found too many arguments"));
        }
        let convert = choice(lua, &args, 0, name, &of.sparse_convert, &["off", "on"])?;
        let ratio = limit(lua, &args, 1, name, &of.sparse_ratio, 0, i64::from(i32::MAX))?;
        let safe = limit(lua, &args, 2, name, &of.sparse_safe, 0, i64::from(i32::MAX))?;
        Ok((convert, ratio, safe))
    })?;
    table.raw_set("encode_sparse_array", sparse)?;
    type Pick = fn(&Options) -> &AtomicI64;
    let limits: [(&str, Pick, i64); 3] = [
        ("encode_max_depth", |options| &options.encode_depth, i64::from(i32::MAX)),
        ("decode_max_depth", |options| &options.decode_depth, i64::from(i32::MAX)),
        ("encode_number_precision", |options| &options.precision, 14),
    ];
    for (name, pick, max) in limits {
        let of = options.clone();
        let function = lua.create_function(move |lua, args: MultiValue| {
            if 1 < args.len() {
                return Err(Raised::argument(lua, 2, name, "found too many arguments"));
            }
            limit(lua, &args, 0, name, pick(&of), 1, max)
        })?;
        table.raw_set(name, function)?;
    }
    let choices: [(&str, Pick, &[&str]); 3] = [
        ("encode_keep_buffer", |options| &options.keep_buffer, &["off", "on"]),
        ("encode_invalid_numbers", |options| &options.encode_invalid, &["off", "on", "null"]),
        ("decode_invalid_numbers", |options| &options.decode_invalid, &["off", "on"]),
    ];
    for (name, pick, words) in choices {
        let of = options.clone();
        let function = lua.create_function(move |lua, args: MultiValue| {
            if 1 < args.len() {
                return Err(Raised::argument(lua, 2, name, "found too many arguments"));
            }
            choice(lua, &args, 0, name, pick(&of), words)
        })?;
        table.raw_set(name, function)?;
    }
    Ok(())
}

/// Sets a number if one is given. Returns what it is.
fn limit(
    lua: &Lua,
    args: &MultiValue,
    at: usize,
    of: &str,
    option: &AtomicI64,
    min: i64,
    max: i64,
) -> mlua::Result<i64> {
    if args.get(at).is_some_and(|value| *value != Value::Nil) {
        let value = super::arguments::integer(lua, args, at, of)?;
        if !(min..=max).contains(&value) {
            let words = format!("expected integer between {min} and {max}");
            return Err(Raised::argument(lua, at + 1, of, &words));
        }
        option.store(value, Relaxed);
    }
    Ok(option.load(Relaxed))
}

/// Sets a choice if one is given. Returns what it is.
fn choice(
    lua: &Lua,
    args: &MultiValue,
    at: usize,
    of: &str,
    option: &AtomicI64,
    words: &[&str],
) -> mlua::Result<Value> {
    match args.get(at) {
        None | Some(Value::Nil) => {}
        Some(Value::Boolean(value)) => option.store(i64::from(*value), Relaxed),
        Some(_) => {
            let text = bytes(lua, args, at, of)?;
            let place = words.iter().position(|word| word.as_bytes() == text);
            let place = place.ok_or_else(|| {
                let text = String::from_utf8_lossy(&text);
                Raised::argument(lua, at + 1, of, &format!("invalid option '{text}'"))
            })?;
            option.store(i64::try_from(place).unwrap_or(0), Relaxed);
        }
    }
    match option.load(Relaxed) {
        value @ (0 | 1) => Ok(Value::Boolean(value == 1)),
        value => {
            let word = usize::try_from(value).ok().and_then(|at| words.get(at));
            lua.create_string(word.copied().unwrap_or_default()).map(Value::String)
        }
    }
}

// ---- writing ----

struct Writer<'a> {
    lua: &'a Lua,
    time: TimeCheck<'a>,
    options: &'a Options,
    out: Vec<u8>,
    /// Bytes of text that may be made.
    size_max: usize,
}

fn encode(
    lua: &Lua,
    busy: &Arc<Busy>,
    options: &Options,
    args: &MultiValue,
) -> mlua::Result<mlua::LuaString> {
    one_argument(lua, args, "encode")?;
    let time = TimeCheck::new(lua, busy);
    let mut writer = Writer { lua, time, options, out: Vec::new(), size_max: memory_left(lua) };
    writer.value(args.front().unwrap_or(&Value::Nil), 0)?;
    lua.create_string(&writer.out)
}

impl Writer<'_> {
    fn refuse(&self, value: &Value, why: &str) -> mlua::Error {
        let kind = match value {
            Value::LightUserData(_) => "userdata",
            value => super::arguments::type_name(Some(value)),
        };
        Raised::placed(self.lua, &format!("Cannot serialise {kind}: {why}"))
    }

    fn value(&mut self, value: &Value, depth: i64) -> mlua::Result<()> {
        self.time.step()?;
        if self.size_max < self.out.len() {
            return Err(Raised::placed(self.lua, "not enough memory"));
        }
        match value {
            Value::String(text) => self.text(&text.as_bytes())?,
            Value::Integer(number) => self.number(*number as f64, value)?,
            Value::Number(number) => self.number(*number, value)?,
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Table(table) => self.table(table, depth + 1)?,
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::LightUserData(pointer) if *pointer == null() => {
                self.out.extend_from_slice(b"null");
            }
            other => return Err(self.refuse(other, "type not supported")),
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: i64) -> mlua::Result<()> {
        if self.options.encode_depth.load(Relaxed).min(DEPTH_MAX) < depth {
            let words = format!("Cannot serialise, excessive nesting ({depth})");
            return Err(Raised::placed(self.lua, &words));
        }
        match self.array_len(table)? {
            Some(len) if 0 < len => {
                for at in 1..=len {
                    self.out.push(if at == 1 { b'[' } else { b',' });
                    self.value(&table.raw_get(at)?, depth)?;
                }
                self.out.push(b']');
            }
            _ => self.object(table, depth)?,
        }
        Ok(())
    }

    fn object(&mut self, table: &Table, depth: i64) -> mlua::Result<()> {
        self.out.push(b'{');
        let mut is_first = true;
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            if !std::mem::take(&mut is_first) {
                self.out.push(b',');
            }
            match &key {
                Value::String(text) => self.text(&text.as_bytes())?,
                Value::Integer(_) | Value::Number(_) => {
                    self.out.push(b'"');
                    self.value(&key, depth)?;
                    self.out.push(b'"');
                }
                other => return Err(self.refuse(other, "table key must be a number or string")),
            }
            self.out.push(b':');
            self.value(&value, depth)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// The length of a table whose keys are integers from 1 on; none if it is no array.
    fn array_len(&mut self, table: &Table) -> mlua::Result<Option<i64>> {
        let (mut last, mut count) = (0_i64, 0_i64);
        for pair in table.pairs::<Value, Value>() {
            self.time.step()?;
            match pair?.0 {
                Value::Integer(key) if 1 <= key => last = last.max(key),
                _ => return Ok(None),
            }
            count += 1;
        }
        let ratio = self.options.sparse_ratio.load(Relaxed);
        let is_sparse = 0 < ratio
            && count.saturating_mul(ratio) < last
            && self.options.sparse_safe.load(Relaxed) < last;
        match (is_sparse, self.options.sparse_convert.load(Relaxed)) {
            (false, _) => Ok(Some(last)),
            (true, 0) => Err(self.refuse(&Value::Table(table.clone()), "excessively sparse array")),
            (true, _) => Ok(None),
        }
    }

    fn number(&mut self, number: f64, value: &Value) -> mlua::Result<()> {
        if !number.is_finite() {
            match self.options.encode_invalid.load(Relaxed) {
                0 => return Err(self.refuse(value, "must not be NaN or Inf")),
                1 if number.is_nan() => {
                    self.out.extend_from_slice(b"nan");
                    return Ok(());
                }
                1 => {}
                _ => {
                    self.out.extend_from_slice(b"null");
                    return Ok(());
                }
            }
        }
        let precision = usize::try_from(self.options.precision.load(Relaxed)).unwrap_or(14);
        self.out.extend_from_slice(general(number, precision).as_bytes());
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> mlua::Result<()> {
        let is_long = LONG_TEXT_MIN < text.len();
        if is_long && self.size_max < self.out.len().saturating_add(escaped_len(text)) {
            return Err(Raised::placed(self.lua, "not enough memory"));
        }
        self.out.push(b'"');
        for byte in text {
            match byte {
                b'"' => self.out.extend_from_slice(b"\\\""),
                b'\\' => self.out.extend_from_slice(b"\\\\"),
                b'/' => self.out.extend_from_slice(b"\\/"),
                8 => self.out.extend_from_slice(b"\\b"),
                9 => self.out.extend_from_slice(b"\\t"),
                10 => self.out.extend_from_slice(b"\\n"),
                12 => self.out.extend_from_slice(b"\\f"),
                13 => self.out.extend_from_slice(b"\\r"),
                0..32 | 127 => self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                byte => self.out.push(*byte),
            }
        }
        self.out.push(b'"');
        Ok(())
    }
}

/// Bytes of text with its escapes, at most.
fn escaped_len(text: &[u8]) -> usize {
    let escapes = text.iter().filter(|byte| !matches!(byte, 32..=126 | 128..));
    text.len() * 2 + escapes.count() * 4
}

// ---- reading ----

/// A word of JSON.
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Text(Vec<u8>),
    Number(f64),
    Truth(bool),
    Null,
    Colon,
    Comma,
    End,
    Wrong(&'static str),
}

impl Token {
    fn name(&self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::Text(_) => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Truth(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Wrong(what) => what,
        }
    }
}

struct Parser<'a> {
    lua: &'a Lua,
    time: TimeCheck<'a>,
    text: &'a [u8],
    at: usize,
    /// Where the last token began, or was wrong.
    token_at: usize,
    depth: i64,
    depth_max: i64,
    takes_invalid: bool,
}

fn decode(
    lua: &Lua,
    busy: &Arc<Busy>,
    options: &Options,
    args: &MultiValue,
) -> mlua::Result<Value> {
    one_argument(lua, args, "decode")?;
    let text = bytes(lua, args, 0, "decode")?;
    if let [0, _, ..] | [_, 0, ..] = text.as_slice() {
        return Err(Raised::placed(lua, "JSON parser does not support UTF-16 or UTF-32"));
    }
    let depth_max = options.decode_depth.load(Relaxed).min(DEPTH_MAX);
    let takes_invalid = options.decode_invalid.load(Relaxed) != 0;
    let time = TimeCheck::new(lua, busy);
    let mut parser =
        Parser { lua, time, text: &text, at: 0, token_at: 0, depth: 0, depth_max, takes_invalid };
    let token = parser.token();
    let value = parser.value(token)?;
    match parser.token() {
        Token::End => Ok(value),
        other => Err(parser.expected("the end", &other)),
    }
}

impl Parser<'_> {
    fn expected(&self, what: &str, found: &Token) -> mlua::Error {
        let (found, at) = (found.name(), self.token_at + 1);
        Raised::placed(self.lua, &format!("Expected {what} but found {found} at character {at}"))
    }

    /// The byte there; 0 at the end.
    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn token(&mut self) -> Token {
        while let b' ' | b'\t' | b'\n' | b'\r' = self.byte(0) {
            self.at += 1;
        }
        self.token_at = self.at;
        let one = match self.byte(0) {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b':' => Token::Colon,
            b',' => Token::Comma,
            0 => return Token::End,
            b'"' => return self.string(),
            b'-' | b'0'..=b'9' => return self.number(),
            _ => return self.word(),
        };
        self.at += 1;
        one
    }

    fn word(&mut self) -> Token {
        let rest = self.text.get(self.at..).unwrap_or_default();
        for (word, token) in [
            (&b"true"[..], Token::Truth(true)),
            (b"false", Token::Truth(false)),
            (b"null", Token::Null),
        ] {
            if rest.starts_with(word) {
                self.at += word.len();
                return token;
            }
        }
        let begins = |word: &[u8]| rest.get(..3).is_some_and(|one| one.eq_ignore_ascii_case(word));
        match self.takes_invalid && (begins(b"inf") || begins(b"nan")) {
            true => self.number(),
            false => Token::Wrong("invalid token"),
        }
    }

    fn number(&mut self) -> Token {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let unsigned = rest.strip_prefix(b"-").unwrap_or(rest);
        let is_invalid = match unsigned {
            [b'0', second, ..] => *second == b'x' || *second == b'X' || second.is_ascii_digit(),
            [first, ..] => !first.is_ascii_digit() && *first != b'.',
            [] => false,
        };
        if is_invalid && !self.takes_invalid {
            return Token::Wrong("invalid number");
        }
        match float(rest) {
            Some((number, size)) => {
                self.at += size;
                Token::Number(number)
            }
            None => Token::Wrong("invalid number"),
        }
    }

    fn wrong(&mut self, what: &'static str) -> Token {
        self.token_at = self.at;
        Token::Wrong(what)
    }

    fn string(&mut self) -> Token {
        self.at += 1;
        let mut text = Vec::new();
        loop {
            match self.byte(0) {
                b'"' => {
                    self.at += 1;
                    return Token::Text(text);
                }
                0 => return self.wrong("unexpected end of string"),
                b'\\' => {
                    let escaped = match self.byte(1) {
                        same @ (b'"' | b'\\' | b'/') => same,
                        b'b' => 8,
                        b't' => 9,
                        b'n' => 10,
                        b'f' => 12,
                        b'r' => 13,
                        b'u' => match self.unicode() {
                            Some((letter, size)) => {
                                let mut utf8 = [0; 4];
                                text.extend_from_slice(letter.encode_utf8(&mut utf8).as_bytes());
                                self.at += size;
                                continue;
                            }
                            None => return self.wrong("invalid unicode escape code"),
                        },
                        _ => return self.wrong("invalid escape code"),
                    };
                    text.push(escaped);
                    self.at += 2;
                }
                byte => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    /// Four hexadecimal digits.
    fn hex(&self, ahead: usize) -> Option<u32> {
        let mut value = 0;
        for at in ahead..ahead + 4 {
            value = value * 16 + char::from(self.byte(at)).to_digit(16)?;
        }
        Some(value)
    }

    /// The letter of an escape and its size there: one unit, or two that make a pair.
    fn unicode(&self) -> Option<(char, usize)> {
        let first = self.hex(2)?;
        if first & 0xf800 != 0xd800 {
            return Some((char::from_u32(first)?, 6));
        }
        let has_second = first & 0x400 == 0 && self.byte(6) == b'\\' && self.byte(7) == b'u';
        let second = if has_second { self.hex(8)? } else { return None };
        if second & 0xfc00 != 0xdc00 {
            return None;
        }
        let letter = (((first & 0x3ff) << 10) | (second & 0x3ff)) + 0x1_0000;
        Some((char::from_u32(letter)?, 12))
    }

    fn value(&mut self, token: Token) -> mlua::Result<Value> {
        self.time.step()?;
        match token {
            Token::Text(text) => self.lua.create_string(&text).map(Value::String),
            Token::Number(number) => Ok(Value::Number(number)),
            Token::Truth(value) => Ok(Value::Boolean(value)),
            Token::Null => Ok(Value::LightUserData(null())),
            Token::ObjectBegin => self.within(Parser::object),
            Token::ArrayBegin => self.within(Parser::array),
            other => Err(self.expected("value", &other)),
        }
    }

    fn within(&mut self, read: fn(&mut Self) -> mlua::Result<Table>) -> mlua::Result<Value> {
        self.depth += 1;
        if self.depth_max < self.depth {
            let (depth, at) = (self.depth, self.at);
            let words =
                format!("Found too many nested data structures ({depth}) at character {at}");
            return Err(Raised::placed(self.lua, &words));
        }
        let table = read(self)?;
        self.depth -= 1;
        Ok(Value::Table(table))
    }

    fn object(&mut self) -> mlua::Result<Table> {
        let table = self.lua.create_table()?;
        let mut token = self.token();
        if let Token::ObjectEnd = token {
            return Ok(table);
        }
        loop {
            let key = match token {
                Token::Text(key) => self.lua.create_string(&key)?,
                other => return Err(self.expected("object key string", &other)),
            };
            match self.token() {
                Token::Colon => {}
                other => return Err(self.expected("colon", &other)),
            }
            let token_of_value = self.token();
            table.raw_set(key, self.value(token_of_value)?)?;
            match self.token() {
                Token::ObjectEnd => return Ok(table),
                Token::Comma => token = self.token(),
                other => return Err(self.expected("comma or object end", &other)),
            }
        }
    }

    fn array(&mut self) -> mlua::Result<Table> {
        let table = self.lua.create_table()?;
        let mut token = self.token();
        if let Token::ArrayEnd = token {
            return Ok(table);
        }
        for at in 1.. {
            table.raw_set(at, self.value(token)?)?;
            match self.token() {
                Token::ArrayEnd => break,
                Token::Comma => token = self.token(),
                other => return Err(self.expected("comma or array end", &other)),
            }
        }
        Ok(table)
    }
}

/// The float that text begins with and its size there, as C's `strtod` reads it.
fn float(text: &[u8]) -> Option<(f64, usize)> {
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    let sign_size = text.len() - unsigned.len();
    let signed = |value: f64| if sign_size == 0 { value } else { -value };
    let begins =
        |word: &[u8]| unsigned.get(..word.len()).is_some_and(|one| one.eq_ignore_ascii_case(word));
    if begins(b"0x") {
        let digits = unsigned.iter().skip(2).take_while(|byte| byte.is_ascii_hexdigit());
        let (mut value, mut count) = (0.0, 0);
        for digit in digits {
            value = value * 16.0 + f64::from(char::from(*digit).to_digit(16).unwrap_or(0));
            count += 1;
        }
        // Without digits only the zero is one.
        return Some((signed(value), sign_size + if count == 0 { 1 } else { 2 + count }));
    }
    for word in [&b"infinity"[..], b"inf"] {
        if begins(word) {
            return Some((signed(f64::INFINITY), sign_size + word.len()));
        }
    }
    if begins(b"nan") {
        return Some((f64::NAN, sign_size + 3));
    }
    let digits = |from: usize| {
        unsigned.get(from..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count()
    };
    let whole = digits(0);
    let mut end = whole;
    if unsigned.get(end) == Some(&b'.') {
        let part = digits(end + 1);
        if whole + part == 0 {
            return None;
        }
        end += 1 + part;
    } else if whole == 0 {
        return None;
    }
    if let Some(b'e' | b'E') = unsigned.get(end) {
        let sign = usize::from(matches!(unsigned.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if 0 < exponent {
            end += 1 + sign + exponent;
        }
    }
    let number = std::str::from_utf8(unsigned.get(..end)?).ok()?.parse::<f64>().ok()?;
    Some((signed(number), sign_size + end))
}
