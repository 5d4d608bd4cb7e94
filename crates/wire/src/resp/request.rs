//! Commands out of what a client sent: arrays of bulk strings, or lines of words.
//!
//! ```text
//! *2\r\n$3\r\nGET\r\n$1\r\na\r\n          GET a\r\n          one command each
//! ```
//!
//! A command that is not whole yet is not read again from its start when more bytes come: where the
//! reading stopped is kept.

use std::ops::Range;

/// Longest line: an inline command, or the head of an array or of a bulk string.
const LINE_SIZE_MAX: usize = 64 << 10;

/// Digits of a length; one with more is beyond all limits.
const DIGITS_MAX: usize = 18;

/// Arguments for which memory is kept between commands.
const KEPT_ARGUMENTS_MAX: usize = 1024;

/// What a client may send.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Arguments of a command.
    pub arguments_max: usize,
    /// Bytes of an argument.
    pub bulk_size_max: usize,
}

/// What was found in the bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A command; [`Requests::arguments`] has its arguments. It takes so many bytes.
    Command(usize),
    /// Nothing, in so many bytes: an empty line or array.
    Nothing(usize),
    /// More bytes are needed; so many, at least, are to come in all.
    Incomplete(usize),
}

/// Why the bytes are no command: in the words of Redis, without its `Protocol error: ` before them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProtocolError(pub String);

/// Reads commands; one for each connection.
#[derive(Debug, Default)]
pub struct Requests {
    /// Where the arguments of the command lie, from its first byte on.
    arguments: Vec<Range<usize>>,
    /// Arguments that are unquoted, and so not in the client's bytes.
    unquoted: Vec<Vec<u8>>,
    /// How many arguments are still to come, while an array is being read.
    missing: Option<usize>,
    /// Where to go on.
    at: usize,
}

impl Requests {
    /// Reads the command that `bytes` begins with. Called again with the same bytes and more when
    /// it was not whole, with those behind it when it was.
    ///
    /// # Errors
    /// When the bytes are no command; nothing that follows can be understood.
    pub fn parse(&mut self, bytes: &[u8], limits: &Limits) -> Result<Parsed, ProtocolError> {
        if self.missing.is_none() {
            self.arguments.clear();
            self.unquoted.clear();
            self.at = 0;
            match bytes.first() {
                None => return Ok(Parsed::Incomplete(1)),
                Some(b'*') => {}
                Some(_) => return self.parse_line(bytes),
            }
            let Some((count, after)) = number_line(bytes, 1, "too big mbulk count string")? else {
                return Ok(Parsed::Incomplete(bytes.len() + 1));
            };
            let count = count.filter(|count| *count <= as_i64(limits.arguments_max));
            let count = count.ok_or(ProtocolError("invalid multibulk length".to_owned()))?;
            let Ok(count) = usize::try_from(count) else { return Ok(Parsed::Nothing(after)) };
            if count == 0 {
                return Ok(Parsed::Nothing(after));
            }
            (self.missing, self.at) = (Some(count), after);
        }
        self.parse_bulks(bytes, limits)
    }

    fn parse_bulks(&mut self, bytes: &[u8], limits: &Limits) -> Result<Parsed, ProtocolError> {
        while let Some(missing) = self.missing.filter(|missing| 0 < *missing) {
            match bytes.get(self.at) {
                None => return Ok(Parsed::Incomplete(bytes.len() + 1)),
                Some(b'$') => {}
                Some(other) => {
                    let got = char::from(*other);
                    return Err(ProtocolError(format!("expected '$', got '{got}'")));
                }
            }
            let line = number_line(bytes, self.at + 1, "too big bulk count string")?;
            let Some((size, start)) = line else {
                return Ok(Parsed::Incomplete(bytes.len() + 1));
            };
            let size = size.and_then(|size| usize::try_from(size).ok());
            let size = size.filter(|size| *size <= limits.bulk_size_max);
            let size = size.ok_or(ProtocolError("invalid bulk length".to_owned()))?;
            let end = start + size;
            if bytes.len() < end + 2 {
                return Ok(Parsed::Incomplete(end + 2));
            }
            self.arguments.push(start..end);
            self.at = end + 2;
            self.missing = Some(missing - 1);
        }
        self.missing = None;
        Ok(Parsed::Command(self.at))
    }

    /// A command as a person types it.
    fn parse_line(&mut self, bytes: &[u8]) -> Result<Parsed, ProtocolError> {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            return match LINE_SIZE_MAX < bytes.len() {
                true => Err(ProtocolError("too big inline request".to_owned())),
                false => Ok(Parsed::Incomplete(bytes.len() + 1)),
            };
        };
        let line = bytes.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let words = words(line);
        let words = words.ok_or(ProtocolError("unbalanced quotes in request".to_owned()))?;
        self.unquoted = words;
        match self.unquoted.is_empty() {
            true => Ok(Parsed::Nothing(end + 1)),
            false => Ok(Parsed::Command(end + 1)),
        }
    }

    /// Gives back the memory of a command of very many arguments.
    pub fn shrink(&mut self) {
        if KEPT_ARGUMENTS_MAX < self.arguments.capacity() {
            self.arguments = Vec::new();
        }
        self.unquoted = Vec::new();
    }

    /// The arguments of the command that was just found in `bytes`.
    pub fn arguments<'a>(&'a self, bytes: &'a [u8]) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let count = self.arguments.len().max(self.unquoted.len());
        (0..count).map(move |at| match self.arguments.get(at) {
            Some(range) => bytes.get(range.clone()).unwrap_or_default(),
            None => self.unquoted.get(at).map(Vec::as_slice).unwrap_or_default(),
        })
    }
}

fn as_i64(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The number on the line from `start` on and where the next line begins. The number is none when
/// it is not one; all is none while the line has no end.
#[allow(clippy::type_complexity, reason = "said above")]
fn number_line(
    bytes: &[u8],
    start: usize,
    too_long: &str,
) -> Result<Option<(Option<i64>, usize)>, ProtocolError> {
    let rest = bytes.get(start..).unwrap_or_default();
    let Some(end) = memchr::memchr(b'\r', rest) else {
        return match LINE_SIZE_MAX < rest.len() {
            true => Err(ProtocolError(too_long.to_owned())),
            false => Ok(None),
        };
    };
    if rest.len() < end + 2 {
        return Ok(None);
    }
    let digits = rest.get(..end).unwrap_or_default();
    Ok(Some((integer(digits), start + end + 2)))
}

/// A length in its only spelling: no sign `+`, no zeros before it.
fn integer(digits: &[u8]) -> Option<i64> {
    let (is_negative, magnitude) = match digits {
        [b'-', magnitude @ ..] => (true, magnitude),
        magnitude => (false, magnitude),
    };
    match magnitude {
        [b'0'] if !is_negative => return Some(0),
        [b'1'..=b'9', ..] if magnitude.len() <= DIGITS_MAX => {}
        _ => return None,
    }
    let mut number: i64 = 0;
    for &byte in magnitude {
        let digit = byte.wrapping_sub(b'0');
        if 9 < digit {
            return None;
        }
        number = number * 10 + i64::from(digit);
    }
    Some(if is_negative { -number } else { number })
}

/// The words of a line, quotes and their escapes undone; none when a quote has no end.
fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        let start = rest.iter().position(|byte| !byte.is_ascii_whitespace());
        let Some(start) = start else { return Some(words) };
        rest = rest.get(start..).unwrap_or_default();
        let (word, size) = word(rest)?;
        words.push(word);
        rest = rest.get(size..).unwrap_or_default();
    }
}

/// The word that a line begins with, and its size there.
fn word(line: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut word = Vec::new();
    let mut at = 0;
    loop {
        match line.get(at) {
            None => return Some((word, at)),
            Some(byte) if byte.is_ascii_whitespace() => return Some((word, at)),
            Some(b'"') => {
                at = double_quoted(line, at + 1, &mut word)?;
                return ends_word(line, at).then_some((word, at));
            }
            Some(b'\'') => {
                at = single_quoted(line, at + 1, &mut word)?;
                return ends_word(line, at).then_some((word, at));
            }
            Some(byte) => {
                word.push(*byte);
                at += 1;
            }
        }
    }
}

/// A closing quote must be followed by space or nothing.
fn ends_word(line: &[u8], at: usize) -> bool {
    line.get(at).is_none_or(u8::is_ascii_whitespace)
}

fn double_quoted(line: &[u8], mut at: usize, word: &mut Vec<u8>) -> Option<usize> {
    loop {
        match line.get(at..)? {
            [b'"', ..] => return Some(at + 1),
            [b'\\', b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0);
                word.push(u8::try_from(digit(*high) * 16 + digit(*low)).unwrap_or(0));
                at += 4;
            }
            [b'\\', escaped, ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                at += 2;
            }
            [byte, ..] => {
                word.push(*byte);
                at += 1;
            }
            [] => return None,
        }
    }
}

fn single_quoted(line: &[u8], mut at: usize, word: &mut Vec<u8>) -> Option<usize> {
    loop {
        match line.get(at..)? {
            [b'\'', ..] => return Some(at + 1),
            [b'\\', b'\'', ..] => {
                word.push(b'\'');
                at += 2;
            }
            [byte, ..] => {
                word.push(*byte);
                at += 1;
            }
            [] => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { arguments_max: 1 << 20, bulk_size_max: 512 << 20 };

    fn all(bytes: &[u8]) -> Result<Vec<Vec<Vec<u8>>>, ProtocolError> {
        // Byte by byte, as the slowest client sends them.
        let (mut requests, mut commands, mut start) = (Requests::default(), Vec::new(), 0);
        for end in 0..=bytes.len() {
            loop {
                let rest = &bytes[start..end];
                match requests.parse(rest, &LIMITS)? {
                    Parsed::Command(size) => {
                        commands.push(requests.arguments(rest).map(<[u8]>::to_vec).collect());
                        start += size;
                    }
                    Parsed::Nothing(size) => start += size,
                    Parsed::Incomplete(_) => break,
                }
            }
        }
        assert_eq!(start, bytes.len());
        Ok(commands)
    }

    #[test]
    fn commands_are_read_byte_by_byte() {
        let commands = all(
            b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*0\r\n\r\nSET \"a\\x41\\n\" 'b c'\r\n*-1\r\nPING\n",
        );
        let words =
            |words: &[&str]| words.iter().map(|w| w.as_bytes().to_vec()).collect::<Vec<_>>();
        let expected = vec![words(&["GET", "a"]), words(&["SET", "aA\n", "b c"]), words(&["PING"])];
        assert_eq!(commands, Ok(expected));
    }

    #[test]
    fn garbage_is_named() {
        for (bytes, words) in [
            ("*9999999999\r\n", "invalid multibulk length"),
            ("*x\r\n", "invalid multibulk length"),
            ("*1\r\nGET\r\n", "expected '$', got 'G'"),
            ("*1\r\n$9223372036854775807\r\n", "invalid bulk length"),
            ("*1\r\n$-1\r\n", "invalid bulk length"),
            ("SET \"a\r\n", "unbalanced quotes in request"),
            ("SET \"a\"b\r\n", "unbalanced quotes in request"),
        ] {
            assert_eq!(all(bytes.as_bytes()), Err(ProtocolError(words.to_owned())), "{bytes}");
        }
        let long = vec![b'x'; LINE_SIZE_MAX + 1];
        assert_eq!(all(&long), Err(ProtocolError("too big inline request".to_owned())));
    }
}
