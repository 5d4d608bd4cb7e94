//! `parse_ident`, `trim_array` and the removal of nulls from `jsonb`.

use crate::types::error::SqlError;
use crate::types::function::function;
use crate::types::json::json_value::Value;
use crate::types::json::jsonb;
use crate::types::json::jsonb::no_json;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, ListArray, ListBuilder, StringViewArray, StringViewBuilder,
    new_empty_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use std::sync::Arc;

/// Takes members that are null out of the objects of a `jsonb`; its answer is a text.
pub const STRIP_NULLS: &str = "pg_strip_nulls";

/// The functions.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    let counts = vec![TypeSignature::Any(1), TypeSignature::Any(2)];
    let one_or_two = Signature::one_of(counts, Volatility::Immutable);
    let texts =
        |_: &[DataType]| DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true)));
    let first = |types: &[DataType]| types.first().cloned().unwrap_or(DataType::Null);
    let any = |count| Signature::any(count, Volatility::Immutable);
    [
        function("parse_ident", one_or_two, texts, parse_idents),
        function("trim_array", any(2), first, trim_arrays),
        function(STRIP_NULLS, any(1), |_| DataType::Utf8View, strip_nulls),
    ]
    .into_iter()
}

fn outside(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn parse_idents(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let texts = cast(&args[0], &DataType::Utf8View)?;
    let strict = args.get(1).map(|one| cast(one, &DataType::Boolean)).transpose()?;
    let mut out = ListBuilder::new(StringViewBuilder::new());
    for (row, text) in texts.as_string_view().iter().enumerate().take(rows) {
        let is_known = strict.as_ref().is_none_or(|one| one.is_valid(row));
        let Some(text) = text.filter(|_| is_known) else {
            out.append_null();
            continue;
        };
        let is_strict = strict.as_ref().is_none_or(|one| one.as_boolean().value(row));
        let names = parse_ident(text, is_strict).ok_or_else(|| {
            let words = format!("string is not a valid identifier: \"{text}\"");
            outside(SqlError::wrong_value(words))
        })?;
        names.iter().for_each(|name| out.values().append_value(name));
        out.append(true);
    }
    Ok(Arc::new(out.finish()))
}

/// The names of a qualified identifier; none of what is none. What follows one is passed over unless it is strict.
fn parse_ident(text: &str, is_strict: bool) -> Option<Vec<String>> {
    let is_space = |one: char| matches!(one, ' ' | '\t' | '\n' | '\r' | '\u{c}');
    let is_start = |one: char| one.is_ascii_alphabetic() || one == '_' || !one.is_ascii();
    let (mut names, mut rest) = (Vec::new(), text.trim_start_matches(is_space));
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (name, behind) = quoted_name(quoted)?;
            names.push(name);
            rest = behind;
        } else {
            rest.starts_with(is_start).then_some(())?;
            let ends = |one: char| !(is_start(one) || one.is_ascii_digit() || one == '$');
            let (name, behind) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
            names.push(name.to_ascii_lowercase());
            rest = behind;
        }
        rest = rest.trim_start_matches(is_space);
        match rest.strip_prefix('.') {
            Some(behind) => rest = behind.trim_start_matches(is_space),
            None => return (rest.is_empty() || !is_strict).then_some(names),
        }
    }
}

/// A name up to the quote that ends it, and what stands behind.
fn quoted_name(text: &str) -> Option<(String, &str)> {
    let (mut name, mut rest) = (String::new(), text);
    loop {
        let (part, behind) = rest.split_once('"')?;
        name.push_str(part);
        match behind.strip_prefix('"') {
            Some(behind) => {
                name.push('"');
                rest = behind;
            }
            None => return (!name.is_empty()).then_some((name, behind)),
        }
    }
}

fn trim_arrays(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let DataType::List(field) = args[0].data_type() else {
        return match args[0].data_type() {
            DataType::Null => Ok(args[0].clone()),
            other => {
                let words = format!("function trim_array({other}, integer) does not exist");
                Err(outside(SqlError::new("42883", words)))
            }
        };
    };
    let counts = cast(&args[1], &DataType::Int64)?;
    let counts = counts.as_primitive::<Int64Type>();
    let (mut parts, mut lengths, mut is_valid) = (Vec::new(), Vec::new(), Vec::new());
    for (list, count) in args[0].as_list::<i32>().iter().zip(counts).take(rows) {
        let Some((list, count)) = list.zip(count) else {
            lengths.push(0);
            is_valid.push(false);
            continue;
        };
        let kept = usize::try_from(count).ok().and_then(|count| list.len().checked_sub(count));
        let kept = kept.ok_or_else(|| {
            let words = format!("number of elements to trim must be between 0 and {}", list.len());
            outside(SqlError::new("2202E", words))
        })?;
        lengths.push(kept);
        is_valid.push(true);
        parts.push(list.slice(0, kept));
    }
    let values = match parts.is_empty() {
        true => new_empty_array(field.data_type()),
        false => concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())?,
    };
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(field.clone(), offsets, values, Some(is_valid.into()))?))
}

fn strip_nulls(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let texts = cast(&args[0], &DataType::Utf8View)?;
    let made: Result<StringViewArray> = texts
        .as_string_view()
        .iter()
        .map(|text| {
            let Some(text) = text else { return Ok(None) };
            let mut value = jsonb::parse(text).ok_or_else(|| no_json(text))?;
            strip(&mut value);
            Ok(Some(jsonb::shown(&value)))
        })
        .collect();
    Ok(Arc::new(made?))
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, one| !one.is_null());
            members.values_mut().for_each(strip);
        }
        Value::Array(all) => all.iter_mut().for_each(strip),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_parsed_as_postgresql_does() {
        for (text, expected) in [
            ("a", Some(vec!["a"])),
            (" A.\"B c\" . d$1 ", Some(vec!["a", "B c", "d$1"])),
            ("\"a\"\"b\"", Some(vec!["a\"b"])),
            ("c d", None),
            ("", None),
            ("a.", None),
            (".a", None),
            ("\"\"", None),
            ("\"a", None),
            ("1a", None),
        ] {
            let expected =
                expected.map(|names| names.into_iter().map(String::from).collect::<Vec<_>>());
            assert_eq!(parse_ident(text, true), expected, "{text}");
        }
        assert_eq!(parse_ident("a b", false), Some(vec!["a".to_string()]));
    }
}
