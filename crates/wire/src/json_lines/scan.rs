//! A cursor over JSON text, as much of it as lines need.

use std::borrow::Cow;

/// Depth of nested values that are skipped.
const DEPTH_MAX: usize = 32;

/// What is wrong, and where in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} at byte {offset}")]
pub(crate) struct Fault {
    pub offset: usize,
    pub expected: &'static str,
}

/// Reads JSON from left to right.
pub(crate) struct Scan<'a> {
    pub text: &'a [u8],
    pub at: usize,
}

impl<'a> Scan<'a> {
    pub fn new(text: &'a [u8]) -> Scan<'a> {
        Scan { text, at: 0 }
    }

    pub fn fault<T>(&self, expected: &'static str) -> Result<T, Fault> {
        Err(Fault { offset: self.at, expected })
    }

    /// The next byte that is not white space.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.text.get(self.at) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// Takes `byte` if it is next.
    #[inline]
    pub fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    pub fn need(&mut self, byte: u8, expected: &'static str) -> Result<(), Fault> {
        if self.eat(byte) { Ok(()) } else { self.fault(expected) }
    }

    /// Takes the text between the quotes of a string.
    pub fn raw_string(&mut self) -> Result<&'a [u8], Fault> {
        self.need(b'"', "a string")?;
        let start = self.at;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(found) = memchr::memchr2(b'"', b'\\', rest) else {
                return self.fault("a closing '\"'");
            };
            self.at += found;
            if self.text.get(self.at) == Some(&b'"') {
                self.at += 1;
                return Ok(self.text.get(start..self.at - 1).unwrap_or_default());
            }
            self.at += 2;
        }
    }

    /// Takes a string.
    pub fn string(&mut self) -> Result<Cow<'a, str>, Fault> {
        let start = self.at;
        let raw = self.raw_string()?;
        let Ok(text) = std::str::from_utf8(raw) else {
            return Err(Fault { offset: start, expected: "UTF-8" });
        };
        if !raw.contains(&b'\\') {
            return Ok(Cow::Borrowed(text));
        }
        let fault = Fault { offset: start, expected: "valid escapes in the string" };
        unescape(text).map(Cow::Owned).ok_or(fault)
    }

    /// Calls `take` behind each member's name of an object, which must take the value.
    pub fn members(
        &mut self,
        mut take: impl FnMut(&mut Scan<'a>, &str) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.need(b'{', "'{'")?;
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            let name = self.string()?;
            self.need(b':', "':'")?;
            take(self, &name)?;
            if self.eat(b'}') {
                return Ok(());
            }
            self.need(b',', "',' or '}'")?;
        }
    }

    /// Calls `take` at each element of an array, which must take it.
    #[inline]
    pub fn elements(
        &mut self,
        mut take: impl FnMut(&mut Scan<'a>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.need(b'[', "'['")?;
        if self.eat(b']') {
            return Ok(());
        }
        loop {
            take(self)?;
            if self.eat(b',') {
                continue;
            }
            return self.need(b']', "',' or ']'");
        }
    }

    /// Skips any value.
    pub fn skip(&mut self, depth: usize) -> Result<(), Fault> {
        match self.peek() {
            Some(b'{' | b'[') if DEPTH_MAX <= depth => self.fault("less nesting"),
            Some(b'{') => self.members(|scan, _| scan.skip(depth + 1)),
            Some(b'[') => self.elements(|scan| scan.skip(depth + 1)),
            Some(b'"') => self.raw_string().map(drop),
            Some(b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') => {
                while let Some(b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') =
                    self.text.get(self.at)
                {
                    self.at += 1;
                }
                Ok(())
            }
            _ => self.fault("a value"),
        }
    }
}

/// Replaces a string's escapes; `None` when one is wrong.
fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(backslash) = rest.find('\\') {
        plain.push_str(rest.get(..backslash)?);
        rest = rest.get(backslash + 1..)?;
        let escape = rest.chars().next()?;
        rest = rest.get(escape.len_utf8()..)?;
        match escape {
            '"' | '\\' | '/' => plain.push(escape),
            'b' => plain.push('\u{8}'),
            'f' => plain.push('\u{c}'),
            'n' => plain.push('\n'),
            'r' => plain.push('\r'),
            't' => plain.push('\t'),
            'u' => {
                let (character, tail) = unicode_escape(rest)?;
                plain.push(character);
                rest = tail;
            }
            _ => return None,
        }
    }
    plain.push_str(rest);
    Some(plain)
}

/// The character of `XXXX` or of a pair of surrogates, and what follows.
fn unicode_escape(text: &str) -> Option<(char, &str)> {
    let first = hexadecimal(text.get(..4)?)?;
    let rest = text.get(4..)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, rest));
    }
    let second = hexadecimal(rest.strip_prefix("\\u")?.get(..4)?)?;
    if !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    Some((char::from_u32(code)?, rest.get(6..)?))
}

fn hexadecimal(text: &str) -> Option<u32> {
    let is_hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(text, 16).ok().filter(|_| is_hexadecimal)
}
