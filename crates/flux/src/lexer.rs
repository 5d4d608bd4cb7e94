//! Text to pieces, one at a time: only the parser knows whether `/` begins a pattern.

use crate::error::{Error, Result, Span};
use crate::time::{self, Duration};
use crate::token::{KEYWORDS, SIGNS, Token};

/// Reads pieces of a text.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    /// Reads from byte `at`.
    pub(crate) fn new(text: &'t str, at: usize) -> Lexer<'t> {
        Lexer { text, at }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            if !self.rest().starts_with("//") {
                return;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    /// The next piece and its place.
    pub(crate) fn next(&mut self) -> Result<(Token, Span)> {
        self.skip_blanks();
        let start = self.at;
        let token = self.token(start)?;
        Ok((token, Span { start, end: self.at }))
    }

    fn token(&mut self, start: usize) -> Result<Token> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Token::End) };
        if first == '"' {
            return self.string(start);
        }
        let is_fraction = first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit());
        if first.is_ascii_digit() || is_fraction {
            return self.number(start);
        }
        if first == '_' || first.is_alphabetic() {
            let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
            self.at += end;
            let name = &rest[..end];
            let keyword = KEYWORDS.iter().find(|keyword| **keyword == name);
            return Ok(keyword.map_or_else(|| Token::Name(name.into()), |word| Token::Sign(word)));
        }
        let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).ok_or_else(|| {
            let span = Span { start, end: start + first.len_utf8() };
            Error::syntax(span, format!("unexpected character {first:?}"))
        })?;
        self.at += sign.len();
        Ok(Token::Sign(sign))
    }

    fn string(&mut self, start: usize) -> Result<Token> {
        let end = string_end(self.text, start + 1);
        let Some(end) = end else {
            let span = Span { start, end: self.text.len() };
            return Err(Error::syntax(span, "this string does not end"));
        };
        self.at = end + 1;
        Ok(Token::Text { start: start + 1, end })
    }

    fn number(&mut self, start: usize) -> Result<Token> {
        let rest = self.rest();
        if let Some(length) = time_length(rest) {
            self.at += length;
            let span = Span { start, end: self.at };
            let moment = time::parse_time(&rest[..length]);
            return moment
                .map(Token::Time)
                .ok_or_else(|| Error::syntax(span, format!("{:?} is no time", &rest[..length])));
        }
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let tail = &rest[digits..];
        if tail.starts_with('.') && !tail[1..].starts_with(|c: char| c.is_alphabetic()) {
            let fraction = &tail[1..];
            let more = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
            let length = digits + 1 + more;
            self.at += length;
            let span = Span { start, end: self.at };
            let value = rest[..length].parse();
            return value.map(Token::Float).map_err(|_| Error::syntax(span, "this is no number"));
        }
        if tail.starts_with(|c: char| c.is_alphabetic()) {
            let length = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            self.at += length;
            let span = Span { start, end: self.at };
            let duration = Duration::parse(&rest[..length]);
            return duration.map(Token::Duration).ok_or_else(|| {
                Error::syntax(span, format!("{:?} is no duration", &rest[..length]))
            });
        }
        self.at += digits;
        let span = Span { start, end: self.at };
        let value = rest[..digits].parse();
        value.map(Token::Integer).map_err(|_| {
            Error::syntax(span, format!("the integer {} does not fit 64 bits", &rest[..digits]))
        })
    }

    /// The pattern whose first slash is at byte `start`.
    pub(crate) fn regex(&mut self, start: usize) -> Result<String> {
        let body = self.text.get(start + 1..).unwrap_or("");
        let mut pattern = String::new();
        let mut chars = body.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '/' => {
                    self.at = start + 1 + at + 1;
                    return Ok(pattern);
                }
                '\n' => break,
                '\\' if chars.peek().is_some_and(|(_, next)| *next == '/') => {
                    chars.next();
                    pattern.push('/');
                }
                '\\' => {
                    pattern.push('\\');
                    pattern.extend(chars.next().map(|(_, next)| next));
                }
                c => pattern.push(c),
            }
        }
        let span = Span { start, end: start + 1 };
        Err(Error::syntax(span, "this regular expression does not end"))
    }
}

/// The byte of the quote that ends the string that begins at `start`.
fn string_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = start;
    // How many braces of `${` are open; a quote within them begins a string of its own.
    let mut braces = 0_usize;
    let mut is_inner = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' if braces == 0 => return Some(at),
            b'"' => is_inner = !is_inner,
            b'$' if braces == 0 && bytes.get(at + 1) == Some(&b'{') => {
                braces = 1;
                at += 1;
            }
            b'{' if braces != 0 && !is_inner => braces += 1,
            b'}' if braces != 0 && !is_inner => braces -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

/// How many bytes of a text that begins with a digit are a date, with or without a time.
fn time_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let matches = |shape: &str, from: usize| {
        shape.bytes().enumerate().all(|(at, wanted)| match (wanted, bytes.get(from + at)) {
            (b'0', Some(byte)) => byte.is_ascii_digit(),
            (wanted, Some(byte)) => *byte == wanted,
            (_, None) => false,
        })
    };
    if !matches("0000-00-00", 0) {
        return None;
    }
    if !matches("T00:00:00", 10) {
        return Some(10);
    }
    let mut length = 19;
    if bytes.get(length) == Some(&b'.') {
        let digits = bytes[length + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        length += 1 + digits;
    }
    match bytes.get(length) {
        Some(b'Z') => Some(length + 1),
        Some(b'+' | b'-') if matches("00:00", length + 1) => Some(length + 6),
        _ => Some(length),
    }
}
