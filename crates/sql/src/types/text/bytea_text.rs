//! `bytea` as text (<https://www.postgresql.org/docs/15/datatype-binary.html>).

use crate::types::error::SqlError;
use datafusion::common::Result;
use std::fmt::Write as _;

/// What a text becomes that is cast to `bytea`.
pub const BYTEA_IN: &str = "bytea_in";

/// The bytes that a text says: in hexadecimal digits behind `\x`, or as they are, where a backslash
/// begins three octal digits or is there twice.
///
/// # Errors
/// When it says none.
pub fn read(text: &str) -> Result<Vec<u8>, SqlError> {
    match text.strip_prefix("\\x").or_else(|| text.strip_prefix("\\X")) {
        Some(digits) => of_hex(digits),
        None => of_escaped(text),
    }
}

pub(crate) fn of_hex(digits: &str) -> Result<Vec<u8>, SqlError> {
    let (mut out, mut half) = (Vec::with_capacity(digits.len() / 2), None);
    for one in digits.chars().filter(|one| !one.is_ascii_whitespace()) {
        let digit = one.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let digit = digit.ok_or_else(|| {
            SqlError::wrong_value(format!("invalid hexadecimal digit: \"{one}\""))
        })?;
        match half.take() {
            None => half = Some(digit),
            Some(high) => out.push(high << 4 | digit),
        }
    }
    match half {
        None => Ok(out),
        Some(_) => Err(SqlError::wrong_value("invalid hexadecimal data: odd number of digits")),
    }
}

pub(crate) fn of_escaped(text: &str) -> Result<Vec<u8>, SqlError> {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'\\' {
            out.push(*first);
            continue;
        }
        let octal = |digits: &[u8]| {
            let is_octal = digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
            let number = digits.iter().fold(0u32, |all, digit| all * 8 + u32::from(digit - b'0'));
            u8::try_from(number).ok().filter(|_| is_octal)
        };
        match rest {
            [b'\\', behind @ ..] => {
                out.push(b'\\');
                rest = behind;
            }
            [a @ b'0'..=b'7', b @ b'0'..=b'7', c @ b'0'..=b'7', behind @ ..] => {
                let wrong = || SqlError::new("22P02", "invalid input syntax for type bytea");
                out.push(octal(&[*a, *b, *c]).ok_or_else(wrong)?);
                rest = behind;
            }
            _ => return Err(SqlError::new("22P02", "invalid input syntax for type bytea")),
        }
    }
    Ok(out)
}

/// Bytes as PostgreSQL shows them.
pub fn shown(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 + 2 * bytes.len());
    out.push_str("\\x");
    push_hex(&mut out, bytes);
    out
}

pub(crate) fn push_hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
}
