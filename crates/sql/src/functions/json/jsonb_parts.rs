//! Functions that take a `jsonb` apart: its keys and values as lists, of which the planner makes rows,
//! what stands at a path, what kind of value it is, and it with line breaks.

use crate::functions::bounded::{Growth, bounded};
use crate::types::error::SqlError;
use crate::types::json::json_value::Value;
use crate::types::json::jsonb;
use crate::types::json::jsonb::no_json;
use crate::types::special_fields::{is_jsonb_field, jsonb_field};
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Int32Builder, ListBuilder, StringViewArray,
    StringViewBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use model::METRIC_NAME;
use std::sync::Arc;

/// The keys of an object, as a list.
pub const KEYS: &str = "jsonb_key_list";
/// The values of an object as texts, in the order of [`KEYS`].
pub const TEXTS: &str = "jsonb_text_list";
/// The same as `jsonb`, which [`IS_JSONB`] says of each.
pub const VALUES: &str = "jsonb_value_list";
/// Both as rows are shown: `(key,value)`, the values as texts.
pub const TEXT_PAIRS: &str = "jsonb_text_pair_list";
/// The same, the values as `jsonb`.
pub const PAIRS: &str = "jsonb_pair_list";
/// The elements of an array, as `jsonb` and as texts.
pub const ELEMENTS: &str = "jsonb_element_list";
/// See [`ELEMENTS`].
pub const ELEMENT_TEXTS: &str = "jsonb_element_text_list";
/// Says of a text that it is a `jsonb`, which it was before it came out of a list.
pub const IS_JSONB: &str = "jsonb_of_list";
/// An object without the metric's name, shown as `jsonb` is: equal labels are equal texts.
pub const NAMELESS: &str = "labels_without_name";

/// Rows that one value becomes at most: beside each stand all columns of the row that it is of.
const ROWS_MAX: usize = 10_000;

/// What a function makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Work {
    Keys,
    Texts,
    Values,
    TextPairs,
    Pairs,
    Elements,
    ElementTexts,
    IsJsonb,
    Nameless,
    Kind,
    Length,
    Path,
    PathText,
    Pretty,
}

impl Work {
    fn makes_list(self) -> bool {
        use Work::{ElementTexts, Elements, Keys, Pairs, TextPairs, Texts, Values};
        matches!(self, Keys | Texts | Values | TextPairs | Pairs | Elements | ElementTexts)
    }
}

/// All functions, what they make, and how much they may make of what they are given.
const ALL: &[(&str, Work, Growth)] = &[
    // An element takes sixteen bytes more, however short.
    (KEYS, Work::Keys, Growth::Times(20)),
    (TEXTS, Work::Texts, Growth::Times(20)),
    (VALUES, Work::Values, Growth::Times(20)),
    (TEXT_PAIRS, Work::TextPairs, Growth::Times(20)),
    (PAIRS, Work::Pairs, Growth::Times(20)),
    (ELEMENTS, Work::Elements, Growth::Times(20)),
    (ELEMENT_TEXTS, Work::ElementTexts, Growth::Times(20)),
    (IS_JSONB, Work::IsJsonb, Growth::Times(1)),
    (NAMELESS, Work::Nameless, Growth::Times(2)),
    ("jsonb_typeof", Work::Kind, Growth::Times(1)),
    ("jsonb_array_length", Work::Length, Growth::Times(1)),
    ("jsonb_extract_path", Work::Path, Growth::Times(2)),
    ("jsonb_extract_path_text", Work::PathText, Growth::Times(2)),
    // A value stands behind as many spaces as four times its depth, which serde_json bounds by 128.
    ("jsonb_pretty", Work::Pretty, Growth::Times(512)),
];

/// All of them.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    ALL.iter().map(|(name, work, growth)| {
        let takes = match work {
            Work::Path | Work::PathText => TypeSignature::Variadic(vec![DataType::Utf8View]),
            _ => TypeSignature::Exact(vec![DataType::Utf8View]),
        };
        let signature = Signature::new(takes, Volatility::Immutable);
        let plain = ScalarUDF::from(Function { name, work: *work, signature });
        bounded(Arc::new(plain), *growth)
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    name: &'static str,
    work: Work,
    signature: Signature,
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.work {
            work if work.makes_list() => {
                DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true)))
            }
            Work::Length => DataType::Int32,
            _ => DataType::Utf8View,
        })
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(match self.work {
            Work::IsJsonb | Work::Nameless | Work::Path => jsonb_field(self.name, true),
            _ => Field::new(self.name, self.return_type(&[])?, true),
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = args.args.iter().map(|one| one.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let Some((first, path)) = arrays.split_first() else {
            return Err(wrong(format!("{} takes a jsonb", self.name)));
        };
        let texts = first.as_string_view();
        let is_shown = args.arg_fields.first().is_some_and(|field| is_jsonb_field(field));
        Ok(ColumnarValue::Array(match self.work {
            Work::IsJsonb => first.clone(),
            Work::Elements | Work::ElementTexts => elements(self.work, texts)?,
            work if work.makes_list() => lists(work, texts)?,
            Work::Length => lengths(texts)?,
            Work::Nameless => nameless(texts, is_shown)?,
            work => {
                let mut known = Known::default();
                let mut out = StringViewBuilder::with_capacity(rows);
                for row in 0..rows {
                    out.append_option(made(work, known.value(texts, row)?, path, row));
                }
                Arc::new(out.finish())
            }
        }))
    }
}

/// The last value that was parsed: rows of one series follow each other.
#[derive(Default)]
struct Known(Option<(String, Value)>);

impl Known {
    fn value(&mut self, texts: &StringViewArray, row: usize) -> Result<Option<&Value>> {
        if texts.is_null(row) {
            return Ok(None);
        }
        let text = texts.value(row);
        if self.0.as_ref().is_none_or(|(known, _)| known != text) {
            let value = jsonb::parse(text).ok_or_else(|| no_json(text))?;
            self.0 = Some((text.to_string(), value));
        }
        Ok(self.0.as_ref().map(|(_, value)| value))
    }
}

fn wrong(message: String) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::wrong_value(message)))
}

/// A list of each array's elements. Of null it is an empty one, which makes no rows.
fn elements(work: Work, texts: &StringViewArray) -> Result<ArrayRef> {
    let mut known = Known::default();
    let mut out = ListBuilder::new(StringViewBuilder::new());
    for row in 0..texts.len() {
        let all = match known.value(texts, row)? {
            None => &[][..],
            Some(Value::Array(all)) => all,
            Some(Value::Object(_)) => {
                return Err(wrong("cannot extract elements from an object".to_string()));
            }
            Some(_) => return Err(wrong("cannot extract elements from a scalar".to_string())),
        };
        if ROWS_MAX < all.len() {
            let words =
                format!("{} elements of one value; {ROWS_MAX} become rows at most", all.len());
            return Err(DataFusionError::External(Box::new(SqlError::limit(words))));
        }
        for value in all {
            out.values().append_option(match work {
                Work::ElementTexts => jsonb::text_of(value),
                _ => Some(jsonb::shown(value)),
            });
        }
        out.append(true);
    }
    Ok(Arc::new(out.finish()))
}

/// A list of each object's keys or values. Of null it is an empty one, which makes no rows.
fn lists(work: Work, texts: &StringViewArray) -> Result<ArrayRef> {
    let mut known = Known::default();
    let mut out = ListBuilder::new(StringViewBuilder::new());
    for row in 0..texts.len() {
        let pairs = match known.value(texts, row)? {
            None => Vec::new(),
            Some(Value::Object(map)) => jsonb::in_order(map),
            Some(Value::Array(_)) => {
                return Err(wrong(format!("cannot call {} on an array", said(work))));
            }
            Some(_) => return Err(wrong(format!("cannot call {} on a scalar", said(work)))),
        };
        if ROWS_MAX < pairs.len() {
            let words =
                format!("{} keys of one value; {ROWS_MAX} become rows at most", pairs.len());
            return Err(DataFusionError::External(Box::new(SqlError::limit(words))));
        }
        for (key, value) in pairs {
            out.values().append_option(match work {
                Work::Keys => Some(key.clone()),
                Work::Texts => jsonb::text_of(value),
                Work::TextPairs => Some(pair(key, jsonb::text_of(value))),
                Work::Pairs => Some(pair(key, Some(jsonb::shown(value)))),
                _ => Some(jsonb::shown(value)),
            });
        }
        out.append(true);
    }
    Ok(Arc::new(out.finish()))
}

/// What PostgreSQL calls it.
fn said(work: Work) -> &'static str {
    match work {
        Work::Keys => "jsonb_object_keys",
        Work::Texts | Work::TextPairs => "jsonb_each_text",
        _ => "jsonb_each",
    }
}

/// A row of two as it is shown: `(key,"a value")`.
fn pair(key: &str, value: Option<String>) -> String {
    let value = value.map_or_else(String::new, |value| in_row(&value));
    format!("({},{value})", in_row(key))
}

fn in_row(text: &str) -> String {
    let means_something = |one: char| "\"\\(),".contains(one) || one.is_ascii_whitespace();
    match text.is_empty() || text.contains(means_something) {
        true => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\"")),
        false => text.to_string(),
    }
}

fn lengths(texts: &StringViewArray) -> Result<ArrayRef> {
    let mut known = Known::default();
    let mut out = Int32Builder::with_capacity(texts.len());
    for row in 0..texts.len() {
        out.append_option(match known.value(texts, row)? {
            None => None,
            Some(Value::Array(all)) => Some(i32::try_from(all.len()).unwrap_or(i32::MAX)),
            Some(Value::Object(_)) => {
                return Err(wrong("cannot get array length of a non-array".into()));
            }
            Some(_) => return Err(wrong("cannot get array length of a scalar".into())),
        });
    }
    Ok(Arc::new(out.finish()))
}

/// Without the name; `is_shown` where the texts are as `jsonb` is shown.
fn nameless(texts: &StringViewArray, is_shown: bool) -> Result<ArrayRef> {
    let mut out = StringViewBuilder::with_capacity(texts.len());
    for text in texts {
        match text {
            Some(text) if is_shown && !text.contains(METRIC_NAME) => out.append_value(text),
            Some(text) => {
                let value = jsonb::parse(text).ok_or_else(|| no_json(text))?;
                out.append_value(jsonb::shown(&jsonb::without(&value, &[METRIC_NAME])));
            }
            None => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

/// The text that a function makes of a row.
fn made(work: Work, value: Option<&Value>, path: &[ArrayRef], row: usize) -> Option<String> {
    let value = value?;
    match work {
        Work::Kind => Some(
            match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            }
            .to_string(),
        ),
        Work::Pretty => Some(jsonb::pretty(value)),
        _ => {
            let mut found = value;
            for keys in path {
                let keys = keys.as_string_view();
                if keys.is_null(row) {
                    return None;
                }
                found = jsonb::step(found, keys.value(row))?;
            }
            match work {
                Work::PathText => jsonb::text_of(found),
                _ => Some(jsonb::shown(found)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::compute::cast;
    use datafusion::common::ScalarValue;

    fn of(name: &str, texts: &[&str]) -> Result<String> {
        let function = functions().find(|one| one.name() == name).unwrap();
        let text = |text: &&str| ColumnarValue::Scalar(ScalarValue::Utf8View(Some((*text).into())));
        let field = Arc::new(Field::new("a", DataType::Utf8View, true));
        let returns = function.inner().return_type(&[])?;
        let made = function.invoke_with_args(ScalarFunctionArgs {
            args: texts.iter().map(text).collect(),
            arg_fields: vec![field.clone(); texts.len()],
            number_rows: 1,
            return_field: Arc::new(Field::new("r", returns, true)),
            config_options: Arc::default(),
        })?;
        let made = made.to_array(1)?;
        let list = match made.data_type() {
            DataType::List(_) => made.as_list::<i32>().value(0),
            _ => cast(&made, &DataType::Utf8View)?,
        };
        let shown = |one: Option<&str>| one.unwrap_or("NULL").to_string();
        Ok(list.as_string_view().iter().map(shown).collect::<Vec<_>>().join("|"))
    }

    #[test]
    fn what_is_taken_is_that_of_postgresql() {
        let value = r#"{"bb": null, "a": "x, y", "ccc": [1, {"d": true}], "e": ""}"#;
        for (name, path, expected) in [
            (KEYS, &[][..], "a|e|bb|ccc"),
            (TEXTS, &[], r#"x, y||NULL|[1, {"d": true}]"#),
            (VALUES, &[], r#""x, y"|""|null|[1, {"d": true}]"#),
            (TEXT_PAIRS, &[], r#"(a,"x, y")|(e,"")|(bb,)|(ccc,"[1, {""d"": true}]")"#),
            ("jsonb_typeof", &[], "object"),
            ("jsonb_extract_path", &["ccc", "1"], r#"{"d": true}"#),
            ("jsonb_extract_path_text", &["ccc", "-1", "d"], "true"),
            ("jsonb_extract_path_text", &["bb"], "NULL"),
            ("jsonb_extract_path", &["bb"], "null"),
            ("jsonb_extract_path", &["nothing"], "NULL"),
        ] {
            let all: Vec<&str> = [value].into_iter().chain(path.iter().copied()).collect();
            assert_eq!(of(name, &all).unwrap(), expected, "{name} {path:?}");
        }
        assert_eq!(of("jsonb_array_length", &["[1, [2, 3]]"]).unwrap(), "2");
        let named = r#"{"__name__":"up","job":"a"}"#;
        assert_eq!(of(NAMELESS, &[named]).unwrap(), r#"{"job": "a"}"#);
        let pretty =
            "{\n    \"a\": [\n        1,\n        {\n        }\n    ],\n    \"bb\": \"x\"\n}";
        assert_eq!(of("jsonb_pretty", &[r#"{"bb": "x", "a": [1, {}]}"#]).unwrap(), pretty);
    }

    #[test]
    fn what_cannot_be_taken_apart_is_an_error() {
        let keys: Vec<String> = (0..=ROWS_MAX).map(|at| format!("\"{at}\":0")).collect();
        let many = format!("{{{}}}", keys.join(","));
        assert_eq!(SqlError::from(of(KEYS, &[&many]).unwrap_err()).code, "54000");
        for (name, value, code) in [
            (KEYS, "[1]", "22023"),
            (TEXTS, "1", "22023"),
            (KEYS, "{", "22P02"),
            ("jsonb_array_length", "{}", "22023"),
            ("jsonb_array_length", "7", "22023"),
            ("jsonb_typeof", "nothing", "22P02"),
        ] {
            let failure = SqlError::from(of(name, &[value]).unwrap_err());
            assert_eq!(failure.code, code, "{name} {value}: {failure}");
        }
    }
}
