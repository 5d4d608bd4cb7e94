//! `format('Hello %s', ..)` (<https://www.postgresql.org/docs/15/functions-string.html#FUNCTIONS-STRING-FORMAT>).

use crate::functions::bounded::{Growth, SIZE_MAX, bounded};
use crate::types::error::SqlError;
use crate::types::function::function;
use crate::types::keywords::quoted_ident;
use crate::types::names::quoted_literal;
use crate::types::text::shown;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, StringViewArray, StringViewBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use std::sync::Arc;

/// Columns that a value is filled up to.
const WIDTH_MAX: usize = 1 << 20;

/// The function.
pub fn format() -> ScalarUDF {
    let signature = Signature::new(TypeSignature::VariadicAny, Volatility::Immutable);
    let plain = function("format", signature, |_| DataType::Utf8View, formatted);
    bounded(Arc::new(plain), Growth::Times(4))
}

fn outside(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn formatted(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let text = |array: &ArrayRef| -> Result<StringViewArray> {
        let shown = shown::column(array);
        let plain = shown.as_ref().unwrap_or(array);
        // A truth is one letter here.
        let all = cast(plain, &DataType::Utf8View)?.as_string_view().clone();
        Ok(match array.data_type() {
            DataType::Boolean => {
                all.iter().map(|one| one.map(|one| &one[..1])).collect::<StringViewArray>()
            }
            _ => all,
        })
    };
    let all = args.iter().map(text).collect::<Result<Vec<_>>>()?;
    let Some((templates, values)) = all.split_first() else {
        return Err(outside(SqlError::new("42883", "function format() does not exist")));
    };
    let (mut out, mut size) = (StringViewBuilder::with_capacity(rows), 0usize);
    for row in 0..rows {
        if templates.is_null(row) {
            out.append_null();
            continue;
        }
        let values: Vec<Option<&str>> =
            values.iter().map(|one| one.is_valid(row).then(|| one.value(row))).collect();
        let made = one(templates.value(row), &values, SIZE_MAX - size).map_err(outside)?;
        size += made.len();
        out.append_value(made);
    }
    Ok(Arc::new(out.finish()))
}

fn wrong(words: &str) -> SqlError {
    SqlError::wrong_value(words)
}

/// What stands behind a `%`.
#[derive(Default)]
struct Place {
    /// The number of its value.
    position: Option<usize>,
    is_left: bool,
    width: usize,
    /// Whether the width is a value, and which one.
    starred: Option<Option<usize>>,
}

/// A template with its values, of at most `size_max` bytes.
fn one(template: &str, values: &[Option<&str>], size_max: usize) -> Result<String, SqlError> {
    let (mut out, mut rest, mut next) = (String::with_capacity(template.len()), template, 0);
    while let Some((before, behind)) = rest.split_once('%') {
        out.push_str(before);
        if let Some(plain) = behind.strip_prefix('%') {
            out.push('%');
            rest = plain;
            continue;
        }
        let (mut place, kind, behind) = place_of(behind)?;
        rest = behind;
        if let Some(which) = place.starred {
            let width = taken(values, which, &mut next)?.unwrap_or("0");
            let width: i64 = width.parse().map_err(|_| wrong("a width that is no number"))?;
            place.is_left |= width < 0;
            place.width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        }
        if WIDTH_MAX < place.width {
            return Err(SqlError::limit(format!("a width of more than {WIDTH_MAX}")));
        }
        let value = taken(values, place.position, &mut next)?;
        let shown = match (kind, value) {
            ('s', value) => value.unwrap_or_default().to_string(),
            ('I', None) => {
                return Err(SqlError::new(
                    "22004",
                    "null values cannot be formatted as an SQL identifier",
                ));
            }
            ('I', Some(value)) => quoted_ident(value),
            ('L', None) => "NULL".to_string(),
            ('L', Some(value)) => quoted_literal(value),
            (other, _) => {
                let words = format!("unrecognized format() type specifier \"{other}\"");
                return Err(wrong(&words).with_hint("For a single \"%\" use \"%%\"."));
            }
        };
        let blanks = place.width.saturating_sub(shown.chars().count());
        if size_max < out.len().saturating_add(shown.len()).saturating_add(blanks) {
            return Err(SqlError::limit(format!("format would make more than {SIZE_MAX} bytes")));
        }
        let blanks = " ".repeat(blanks);
        match place.is_left {
            true => out.extend([shown, blanks]),
            false => out.extend([blanks, shown]),
        }
    }
    out.push_str(rest);
    match out.len() <= size_max {
        true => Ok(out),
        false => Err(SqlError::limit(format!("format would make more than {SIZE_MAX} bytes"))),
    }
}

/// The next value, or the one of that number.
fn taken<'a>(
    values: &[Option<&'a str>],
    position: Option<usize>,
    next: &mut usize,
) -> Result<Option<&'a str>, SqlError> {
    let at = match position {
        Some(0) => {
            return Err(wrong("format specifies argument 0, but arguments are numbered from 1"));
        }
        Some(number) => number - 1,
        None => *next,
    };
    *next = at + 1;
    values.get(at).copied().ok_or_else(|| wrong("too few arguments for format()"))
}

/// A number at the beginning of a text.
fn number_at(text: &str) -> Result<Option<(usize, &str)>, SqlError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Ok(None);
    }
    let number =
        text[..digits].parse().map_err(|_| SqlError::new("22003", "number is out of range"))?;
    Ok(Some((number, &text[digits..])))
}

/// `[position$][-][width]type`.
fn place_of(text: &str) -> Result<(Place, char, &str), SqlError> {
    let (mut place, mut rest) = (Place::default(), text);
    if let Some((number, behind)) = number_at(rest)?
        && let Some(behind) = behind.strip_prefix('$')
    {
        place.position = Some(number);
        rest = behind;
    }
    while let Some(behind) = rest.strip_prefix('-') {
        place.is_left = true;
        rest = behind;
    }
    if let Some(behind) = rest.strip_prefix('*') {
        let which = match number_at(behind)? {
            Some((number, behind)) => {
                let behind = behind.strip_prefix('$');
                rest = behind
                    .ok_or_else(|| wrong("width argument position must be ended by \"$\""))?;
                Some(number)
            }
            None => {
                rest = behind;
                None
            }
        };
        place.starred = Some(which);
    } else if let Some((number, behind)) = number_at(rest)? {
        (place.width, rest) = (number, behind);
    }
    let mut characters = rest.chars();
    let unfinished = || {
        wrong("unterminated format() type specifier").with_hint("For a single \"%\" use \"%%\".")
    };
    let kind = characters.next().ok_or_else(unfinished)?;
    Ok((place, kind, characters.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled() {
        let check = |template: &str, values: &[Option<&str>], expected: &str| {
            let made =
                one(template, values, SIZE_MAX).unwrap_or_else(|error| error.code.to_string());
            assert_eq!(made, expected, "{template}");
        };
        check("Hello %s, %1$s %%", &[Some("you")], "Hello you, you %");
        check("%I.%L", &[Some("My table"), Some("it's")], "\"My table\".'it''s'");
        check("|%-5s|%5s|", &[Some("a"), Some("b")], "|a    |    b|");
        check("|%*s|%-*s|", &[Some("3"), Some("a"), Some("3"), Some("b")], "|  a|b  |");
        check("%2$s %s", &[Some("a"), Some("b"), Some("c")], "b c");
        check("%L %s.", &[None, None], "NULL .");
        check("%L", &[Some("a\\b")], "E'a\\\\b'");
        check("%s %s", &[Some("a")], "22023");
        check("%I", &[None], "22004");
        check("%x", &[Some("a")], "22023");
        check("%", &[], "22023");
        check("%0$s", &[Some("a")], "22023");
        check("%99999999s", &[Some("a")], "54000");
    }
}
