//! `bytea`: strings of bytes, what is read as one and shown of one, and functions that make or take them
//! (<https://www.postgresql.org/docs/15/functions-binarystring.html>).

use crate::functions::bounded::{Growth, bounded};
use crate::functions::text::md5::md5_hex;
use crate::types::error::SqlError;
use crate::types::function::function;
use crate::types::text::bytea_text::{BYTEA_IN, of_escaped, of_hex, push_hex, read};
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, BinaryArray, BinaryBuilder, Int32Builder, StringViewArray,
    StringViewBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

/// The letters of base64.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Letters of a line of base64.
const LINE_LETTERS: usize = 76;

/// All functions.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    let any = |count: usize| Signature::any(count, Volatility::Immutable);
    let binary = |_: &[DataType]| DataType::Binary;
    let text = |_: &[DataType]| DataType::Utf8View;
    let number = |_: &[DataType]| DataType::Int32;
    let parts = Signature::one_of(
        vec![TypeSignature::Any(1), TypeSignature::Any(2)],
        Volatility::Immutable,
    );
    let grown = |inner: ScalarUDF, times: usize| bounded(Arc::new(inner), Growth::Times(times));
    [
        READ.as_ref().clone(),
        JOINED.as_ref().clone(),
        function("md5", any(1), text, md5),
        grown(function("encode", any(2), text, encode), 4),
        function("decode", any(2), binary, decode),
        function("get_byte", any(2), number, get_byte),
        grown(function("set_byte", any(3), binary, set_byte), 1),
        function("convert_from", any(2), text, convert_from),
        function("convert_to", any(2), binary, |args, _| {
            utf8(&args[1])?;
            let texts = cast(&args[0], &DataType::Utf8)?;
            Ok(cast(&texts, &DataType::Binary)?)
        }),
        function("length", parts, number, length),
    ]
    .into_iter()
}

/// The bytes that a text says.
pub static READ: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    let read = |args: &[ArrayRef], _: usize| Ok(Arc::new(bytes(&args[0])?) as ArrayRef);
    Arc::new(function(BYTEA_IN, signature, |_| DataType::Binary, read))
});

/// `||` of bytes.
pub static JOINED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(2, Volatility::Immutable);
    let plain = function("byteacat", signature, |_| DataType::Binary, concat);
    Arc::new(bounded(Arc::new(plain), Growth::Times(1)))
});

fn outside(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn texts(array: &ArrayRef) -> Result<StringViewArray> {
    Ok(cast(array, &DataType::Utf8View)?.as_string_view().clone())
}

/// Whether it is a type of bytes.
pub fn is_bytes(ty: &DataType) -> bool {
    matches!(ty, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// A column of bytes; texts are read as such.
///
/// # Errors
/// When a text says none.
pub fn bytes(array: &ArrayRef) -> Result<BinaryArray> {
    if matches!(array.data_type(), DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
    {
        return Ok(cast(array, &DataType::Binary)?.as_binary::<i32>().clone());
    }
    let mut out = BinaryBuilder::new();
    for text in &texts(array)? {
        out.append_option(text.map(read).transpose().map_err(outside)?);
    }
    Ok(out.finish())
}

fn concat(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (left, right) = (bytes(&args[0])?, bytes(&args[1])?);
    let mut out = BinaryBuilder::new();
    for row in 0..rows {
        match left.is_null(row) || right.is_null(row) {
            true => out.append_null(),
            false => out.append_value([left.value(row), right.value(row)].concat()),
        }
    }
    Ok(Arc::new(out.finish()))
}

/// Of a text its bytes as they are, of bytes those.
fn md5(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let all = match args[0].data_type() {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => bytes(&args[0])?,
        _ => {
            let texts = cast(&args[0], &DataType::Utf8)?;
            cast(&texts, &DataType::Binary)?.as_binary::<i32>().clone()
        }
    };
    let mut out = StringViewBuilder::with_capacity(rows);
    all.iter().for_each(|one| out.append_option(one.map(md5_hex)));
    Ok(Arc::new(out.finish()))
}

fn format_of(name: &str) -> Result<&'static str> {
    let known = ["hex", "base64", "escape"].into_iter();
    let found = known.into_iter().find(|one| name.eq_ignore_ascii_case(one));
    found
        .ok_or_else(|| outside(SqlError::wrong_value(format!("unrecognized encoding: \"{name}\""))))
}

fn encode(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (all, names) = (bytes(&args[0])?, texts(&args[1])?);
    let mut out = StringViewBuilder::with_capacity(rows);
    for (one, name) in all.iter().zip(&names) {
        let (Some(one), Some(name)) = (one, name) else {
            out.append_null();
            continue;
        };
        let mut text = String::new();
        match format_of(name)? {
            "hex" => push_hex(&mut text, one),
            "base64" => push_base64(&mut text, one),
            _ => push_escaped(&mut text, one),
        }
        out.append_value(text);
    }
    Ok(Arc::new(out.finish()))
}

fn push_escaped(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            0 | 0x80.. => {
                let _ = write!(out, "\\{byte:03o}");
            }
            plain => out.push(char::from(*plain)),
        }
    }
}

fn push_base64(out: &mut String, bytes: &[u8]) {
    let mut letters = 0;
    for three in bytes.chunks(3) {
        if letters == LINE_LETTERS {
            out.push('\n');
            letters = 0;
        }
        let at = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let number = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let letter = usize::try_from(number >> (18 - 6 * place) & 63).unwrap_or(0);
            match place <= three.len() {
                true => out.push(char::from(LETTERS[letter])),
                false => out.push('='),
            }
        }
        letters += 4;
    }
}

fn decode(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (all, names) = (texts(&args[0])?, texts(&args[1])?);
    let mut out = BinaryBuilder::new();
    for row in 0..rows {
        if all.is_null(row) || names.is_null(row) {
            out.append_null();
            continue;
        }
        let text = all.value(row);
        let read = match format_of(names.value(row))? {
            "hex" => of_hex(text),
            "base64" => of_base64(text),
            _ => of_escaped(text),
        };
        out.append_value(read.map_err(outside)?);
    }
    Ok(Arc::new(out.finish()))
}

fn of_base64(text: &str) -> Result<Vec<u8>, SqlError> {
    let wrong = |what: &str| SqlError::wrong_value(format!("invalid base64 {what}"));
    let (mut out, mut number, mut count, mut ends) = (Vec::new(), 0u32, 0, 0);
    for one in text.bytes().filter(|one| !b" \t\r\n".contains(one)) {
        if one == b'=' {
            ends += 1;
            continue;
        }
        let letter = LETTERS.iter().position(|letter| *letter == one);
        let letter = letter.filter(|_| ends == 0).and_then(|letter| u32::try_from(letter).ok());
        let Some(letter) = letter else {
            let words = format!(
                "invalid symbol \"{}\" found while decoding base64 sequence",
                char::from(one)
            );
            return Err(SqlError::wrong_value(words));
        };
        number = number << 6 | letter;
        count += 1;
        if count == 4 {
            out.extend_from_slice(&number.to_be_bytes()[1..]);
            (number, count) = (0, 0);
        }
    }
    match (count, ends) {
        (0, 0) => {}
        (2, 2) => out.push((number >> 4).to_be_bytes()[3]),
        (3, 1) => out.extend_from_slice(&(number >> 2).to_be_bytes()[2..]),
        _ => return Err(wrong("end sequence")),
    }
    Ok(out)
}

fn get_byte(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let all = bytes(&args[0])?;
    let places = cast(&args[1], &DataType::Int64)?;
    let mut out = Int32Builder::with_capacity(rows);
    for (one, place) in all.iter().zip(places.as_primitive::<Int64Type>()) {
        let (Some(one), Some(place)) = (one, place) else {
            out.append_null();
            continue;
        };
        let byte = usize::try_from(place).ok().and_then(|place| one.get(place));
        out.append_value(i32::from(*byte.ok_or_else(|| no_byte(place, one.len()))?));
    }
    Ok(Arc::new(out.finish()))
}

/// The error of a place that a value has no byte at.
fn no_byte(place: i64, length: usize) -> DataFusionError {
    let last = i64::try_from(length).unwrap_or(i64::MAX) - 1;
    outside(SqlError::new("2202E", format!("index {place} out of valid range, 0..{last}")))
}

/// `set_byte(bytes, place, byte)`: sets a byte to the lowest eight bits of a number.
fn set_byte(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let all = bytes(&args[0])?;
    let (places, numbers) = (cast(&args[1], &DataType::Int64)?, cast(&args[2], &DataType::Int64)?);
    let (places, numbers) =
        (places.as_primitive::<Int64Type>(), numbers.as_primitive::<Int64Type>());
    let mut out = BinaryBuilder::new();
    for ((one, place), number) in all.iter().zip(places).zip(numbers) {
        let (Some(one), Some(place), Some(number)) = (one, place, number) else {
            out.append_null();
            continue;
        };
        let mut made = one.to_vec();
        let byte = usize::try_from(place).ok().and_then(|place| made.get_mut(place));
        *byte.ok_or_else(|| no_byte(place, one.len()))? = number.to_le_bytes()[0];
        out.append_value(made);
    }
    Ok(Arc::new(out.finish()))
}

/// Whether an encoding is the one that there is.
fn utf8(names: &ArrayRef) -> Result<()> {
    let is_utf8 =
        |name: &str| ["utf8", "utf-8", "unicode"].iter().any(|one| name.eq_ignore_ascii_case(one));
    match texts(names)?.iter().flatten().find(|name| !is_utf8(name)) {
        None => Ok(()),
        Some(name) => {
            let words = format!("encoding \"{name}\" is not known here: texts are UTF8");
            Err(outside(SqlError::unsupported(words)))
        }
    }
}

fn convert_from(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    utf8(&args[1])?;
    let mut out = StringViewBuilder::with_capacity(rows);
    for one in &bytes(&args[0])? {
        let text = one.map(std::str::from_utf8).transpose();
        let text = text.map_err(|error| outside(SqlError::not_text(error.to_string())))?;
        if text.is_some_and(|text| text.contains('\0')) {
            return Err(outside(SqlError::not_text(
                "invalid byte sequence for encoding \"UTF8\": 0x00",
            )));
        }
        out.append_option(text);
    }
    Ok(Arc::new(out.finish()))
}

/// Characters of a text, bytes of bytes.
fn length(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut out = Int32Builder::with_capacity(rows);
    let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    match args[0].data_type() {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            bytes(&args[0])?
                .iter()
                .for_each(|one| out.append_option(one.map(|one| count(one.len()))));
        }
        kind if kind.is_string() || kind.is_null() => {
            if let Some(names) = args.get(1) {
                utf8(names)?;
            }
            let texts = texts(&args[0])?;
            texts
                .iter()
                .for_each(|one| out.append_option(one.map(|one| count(one.chars().count()))));
        }
        other => {
            let words = format!("function length({other}) does not exist");
            return Err(outside(SqlError::new("42883", words)));
        }
    }
    Ok(Arc::new(out.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::text::bytea_text::shown;

    #[test]
    fn bytes_are_read_and_shown() {
        for (text, expected) in [
            ("\\xdeadBEEF", Ok("\\xdeadbeef")),
            ("\\x de ad", Ok("\\xdead")),
            ("abc", Ok("\\x616263")),
            ("a\\000\\\\", Ok("\\x61005c")),
            ("", Ok("\\x")),
            ("é", Ok("\\xc3a9")),
            ("\\xabc", Err("22023")),
            ("\\xzz", Err("22023")),
            ("\\9", Err("22P02")),
            ("\\777", Err("22P02")),
        ] {
            let read = read(text).map(|bytes| shown(&bytes)).map_err(|error| error.code);
            assert_eq!(read.as_deref().map_err(|code| *code), expected, "{text}");
        }
    }

    #[test]
    fn base64_there_and_back() {
        for bytes in [&b""[..], b"a", b"ab", b"abc", &[0, 255, 254, 253], &[7; 100]] {
            let mut text = String::new();
            push_base64(&mut text, bytes);
            assert_eq!(of_base64(&text).unwrap(), bytes, "{text}");
        }
        for text in ["YQ", "Y", "YQ=", "YQ==YQ==", "Y?=="] {
            assert_eq!(of_base64(text).map_err(|error| error.code), Err("22023"), "{text}");
        }
    }
}
