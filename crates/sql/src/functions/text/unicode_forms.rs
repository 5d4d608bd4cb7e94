//! Unicode's normal forms, and escapes of its characters: `normalize`, `IS NORMALIZED`, `unistr`
//! (<https://www.postgresql.org/docs/15/functions-string.html>).

use crate::functions::bounded::{Growth, bounded};
use crate::types::error::SqlError;
use crate::types::function::function;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::sync::Arc;
use unicode_normalization::UnicodeNormalization as _;

/// `normalize(text, form)`.
pub const NORMALIZE: &str = "normalize";
/// `text IS form NORMALIZED`.
pub const IS_NORMALIZED: &str = "is_normalized";
/// Normal forms by their names.
pub const FORMS: [&str; 4] = ["NFC", "NFD", "NFKC", "NFKD"];

/// The functions.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    let any = |count| Signature::any(count, Volatility::Immutable);
    let text = |_: &[DataType]| DataType::Utf8View;
    let normalize = function(NORMALIZE, any(2), text, |args, _| {
        Ok(Arc::new(map_texts(&args[0], |one| normalized(one, form_of(&args[1])))?))
    });
    let unistr =
        function("unistr", any(1), text, |args, _| Ok(Arc::new(map_texts(&args[0], unescaped)?)));
    [
        // A character becomes eighteen at most.
        bounded(Arc::new(normalize), Growth::Times(18)),
        function(IS_NORMALIZED, any(2), |_| DataType::Boolean, is_normalized),
        bounded(Arc::new(unistr), Growth::Times(1)),
    ]
    .into_iter()
}

fn outside(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn map_texts(
    array: &ArrayRef,
    work: impl Fn(&str) -> Result<String, SqlError>,
) -> Result<StringViewArray> {
    let texts = cast(array, &DataType::Utf8View)?;
    texts.as_string_view().iter().map(|one| one.map(&work).transpose().map_err(outside)).collect()
}

/// The name of a form, which is written down.
fn form_of(array: &ArrayRef) -> String {
    let names = cast(array, &DataType::Utf8View).ok();
    let name = names.filter(|names| !names.is_empty() && names.is_valid(0));
    name.map_or_else(String::new, |names| names.as_string_view().value(0).to_string())
}

fn normalized(text: &str, form: String) -> Result<String, SqlError> {
    Ok(match form.as_str() {
        "NFC" => text.nfc().collect(),
        "NFD" => text.nfd().collect(),
        "NFKC" => text.nfkc().collect(),
        "NFKD" => text.nfkd().collect(),
        other => {
            return Err(SqlError::wrong_value(format!("invalid normalization form: {other}")));
        }
    })
}

fn is_normalized(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let texts = cast(&args[0], &DataType::Utf8View)?;
    let form = form_of(&args[1]);
    let each = |text: &str| normalized(text, form.clone()).map(|made| made == text);
    let all: Result<BooleanArray, SqlError> =
        texts.as_string_view().iter().map(|one| one.map(each).transpose()).collect();
    Ok(Arc::new(all.map_err(outside)?))
}

/// A text whose escapes `\XXXX`, `\+XXXXXX`, `\uXXXX` and `\UXXXXXXXX` are characters.
fn unescaped(text: &str) -> Result<String, SqlError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // The first half of a character of two.
    let mut high: Option<u32> = None;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        if high.is_some() && !plain.is_empty() {
            return Err(half_pair());
        }
        out.push_str(plain);
        if let Some(behind) = escape.strip_prefix("\\\\") {
            if high.is_some() {
                return Err(half_pair());
            }
            out.push('\\');
            rest = behind;
            continue;
        }
        let (code, behind) = escape_of(escape).ok_or_else(wrong_escape)?;
        rest = behind;
        match (high.take(), code) {
            (None, 0xD800..=0xDBFF) => high = Some(code),
            (Some(first), 0xDC00..=0xDFFF) => {
                let both = 0x10000 + ((first - 0xD800) << 10) + (code - 0xDC00);
                out.extend(char::from_u32(both));
            }
            (Some(_), _) | (None, 0xDC00..=0xDFFF) => return Err(half_pair()),
            (None, code) => {
                let one = char::from_u32(code).filter(|one| *one != '\0');
                out.push(one.ok_or_else(|| wrong_code(code))?);
            }
        }
    }
    if high.is_some() {
        return Err(half_pair());
    }
    out.push_str(rest);
    Ok(out)
}

/// The number that an escape says, and the text behind it.
fn escape_of(text: &str) -> Option<(u32, &str)> {
    let (start, length) = match text.as_bytes().get(1)? {
        b'+' => (2, 6),
        b'u' => (2, 4),
        b'U' => (2, 8),
        _ => (1, 4),
    };
    let digits = text.get(start..start + length)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
    Some((code, &text[start + length..]))
}

fn wrong_escape() -> SqlError {
    SqlError::invalid("invalid Unicode escape")
        .with_hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
}

fn half_pair() -> SqlError {
    SqlError::invalid("invalid Unicode surrogate pair")
}

fn wrong_code(code: u32) -> SqlError {
    SqlError::wrong_value(format!("invalid Unicode code point: {code:04X}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_characters() {
        let read = |text: &str| unescaped(text).map_err(|error| error.code);
        assert_eq!(read(r"d\0061t\+000061 \u0061\U00000061\\x").as_deref(), Ok(r"data aa\x"));
        assert_eq!(read(r"\d83d\de00").as_deref(), Ok("😀"));
        for text in [r"\006", r"a\", r"\+12", r"\d83d", r"\d83dx", r"\de00", r"\00é"] {
            assert_eq!(read(text), Err("42601"), "{text}");
        }
        assert_eq!(read(r"\0000"), Err("22023"));
        assert_eq!(read(r"\U00110000"), Err("22023"));
    }
}
