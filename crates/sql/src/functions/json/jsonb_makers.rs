//! Functions that make a `jsonb` of other values: `jsonb_build_object`, `to_jsonb` and their kin.

use crate::functions::bounded::{Growth, bounded};
use crate::types::error::SqlError;
use crate::types::json::json_value::{Map, Value};
use crate::types::json::jsonb;
use crate::types::json::jsonb::no_json;
use crate::types::special_fields::{
    TYPE_KEY, is_jsonb_field, json_field, jsonb_field, special_field,
};
use crate::types::text::array_literals::array_of;
use crate::types::text::shown;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, Int64Array, ListArray, StringViewArray,
    StringViewBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use std::sync::Arc;

/// How a character may be escaped at most.
const ESCAPED: Growth = Growth::Times(6);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Work {
    /// `key, value, key, value, ..`.
    Object,
    /// `value, value, ..`.
    Array,
    /// One list of keys and values, or one of each.
    ObjectOfTexts,
    /// A value.
    Value,
    /// The same as [`Work::Object`] as a text of `json`: `{"a" : 1}`.
    JsonObject,
    /// The same as [`Work::Array`] as a text of `json`: `[1, 2]`.
    JsonArray,
    /// The same as [`Work::Value`] as a text of `json`, arrays without spaces.
    JsonValue,
    /// A row of a table as a text of `json`: `{"a":1,"b":2}`.
    JsonRow,
}

impl Work {
    fn makes_json(self) -> bool {
        matches!(self, Work::JsonObject | Work::JsonArray | Work::JsonValue | Work::JsonRow)
    }

    fn takes_pairs(self) -> bool {
        matches!(self, Work::Object | Work::JsonObject | Work::JsonRow)
    }
}

/// The function that makes a text of `json` of a row: its arguments are names and values.
pub const JSON_ROW: &str = "pg_json_row";

const ALL: &[(&str, Work)] = &[
    ("jsonb_build_object", Work::Object),
    ("jsonb_build_array", Work::Array),
    ("jsonb_object", Work::ObjectOfTexts),
    ("to_jsonb", Work::Value),
    ("json_build_object", Work::JsonObject),
    ("json_build_array", Work::JsonArray),
    ("to_json", Work::JsonValue),
    (JSON_ROW, Work::JsonRow),
];

/// All of them.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    ALL.iter().map(|(name, work)| {
        let takes = match work {
            Work::Object | Work::Array | Work::JsonObject | Work::JsonArray | Work::JsonRow => {
                TypeSignature::OneOf(vec![TypeSignature::VariadicAny, TypeSignature::Nullary])
            }
            Work::ObjectOfTexts => {
                TypeSignature::OneOf(vec![TypeSignature::Any(1), TypeSignature::Any(2)])
            }
            Work::Value | Work::JsonValue => TypeSignature::Any(1),
        };
        let signature = Signature::new(takes, Volatility::Immutable);
        bounded(Arc::new(ScalarUDF::from(Function { name, work: *work, signature })), ESCAPED)
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
        Ok(DataType::Utf8View)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        if self.work.takes_pairs() && args.arg_fields.len() % 2 == 1 {
            return Err(wrong("22023", "argument list must have even number of elements"));
        }
        Ok(Arc::new(match self.work.makes_json() {
            true => json_field(self.name, true),
            false => jsonb_field(self.name, true),
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let given = args.args.iter().zip(&args.arg_fields);
        let given = given.map(|(arg, field)| Given::of(&arg.to_array(rows)?, field));
        let given = given.collect::<Result<Vec<_>>>()?;
        let mut out = StringViewBuilder::with_capacity(rows);
        if self.work.makes_json() {
            for row in 0..rows {
                out.append_option(json_text(self.work, &given, row)?);
            }
            return Ok(ColumnarValue::Array(Arc::new(out.finish())));
        }
        for row in 0..rows {
            let value = match self.work {
                Work::Object => Some(object(&given, row)?),
                Work::Array => {
                    let all = given.iter().map(|one| one.value(row)).collect::<Result<_>>()?;
                    Some(Value::Array(all))
                }
                Work::ObjectOfTexts => object_of_texts(&given, row)?,
                // What is null is null, and not a null of JSON.
                Work::Value => match given.first() {
                    Some(one) if !one.is_null(row) => Some(one.value(row)?),
                    _ => None,
                },
                Work::JsonObject | Work::JsonArray | Work::JsonValue | Work::JsonRow => None,
            };
            out.append_option(value.map(|value| jsonb::shown(&value)));
        }
        Ok(ColumnarValue::Array(Arc::new(out.finish())))
    }
}

fn wrong(code: &'static str, message: &str) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::new(code, message)))
}

/// An argument.
enum Given {
    Nothing,
    Jsonb(StringViewArray),
    Text(StringViewArray),
    Time(StringViewArray),
    Truth(BooleanArray),
    Whole(Int64Array),
    /// The digits of `numeric` values, and the shortest ones of floats.
    Number(StringViewArray),
    List(ListArray, FieldRef),
}

impl Given {
    fn of(array: &ArrayRef, field: &Field) -> Result<Given> {
        let texts = |array: &ArrayRef| -> Result<StringViewArray> {
            Ok(cast(array, &DataType::Utf8View)?.as_string_view().clone())
        };
        Ok(match array.data_type() {
            DataType::Null => Given::Nothing,
            kind if kind.is_string() && is_jsonb_field(field) => Given::Jsonb(texts(array)?),
            DataType::Boolean => Given::Truth(array.as_boolean().clone()),
            kind if kind.is_integer() => {
                Given::Whole(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
            }
            kind if kind.is_numeric() => {
                Given::Number(texts(&shown::column(array).unwrap_or_else(|| array.clone()))?)
            }
            DataType::Timestamp(..) => match shown::column(array) {
                Some(shown) => Given::Time(texts(&shown)?),
                None => Given::Text(texts(array)?),
            },
            DataType::Binary | DataType::Interval(_) | DataType::Duration(_) => {
                Given::Text(texts(&shown::column(array).unwrap_or_else(|| array.clone()))?)
            }
            DataType::List(inner) => {
                let of = field.metadata().get(TYPE_KEY).and_then(|name| name.strip_suffix("[]"));
                let inner = match of {
                    Some(of) => special_field(of, of, inner.data_type().clone(), true).into(),
                    None => inner.clone(),
                };
                Given::List(array.as_list::<i32>().clone(), inner)
            }
            _ => Given::Text(texts(array)?),
        })
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Given::Nothing => true,
            Given::Jsonb(array)
            | Given::Text(array)
            | Given::Time(array)
            | Given::Number(array) => array.is_null(row),
            Given::Truth(array) => array.is_null(row),
            Given::Whole(array) => array.is_null(row),
            Given::List(array, _) => array.is_null(row),
        }
    }

    fn value(&self, row: usize) -> Result<Value> {
        if self.is_null(row) {
            return Ok(Value::Null);
        }
        Ok(match self {
            Given::Nothing => Value::Null,
            Given::Jsonb(array) => {
                let text = array.value(row);
                jsonb::parse(text).ok_or_else(|| no_json(text))?
            }
            Given::Text(array) => array.value(row).into(),
            Given::Time(array) => iso(array.value(row)).into(),
            Given::Truth(array) => array.value(row).into(),
            Given::Whole(array) => array.value(row).into(),
            Given::Number(array) => Value::from_float(array.value(row)),
            Given::List(array, field) => {
                let values = array.value(row);
                let inner = Given::of(&values, field)?;
                Value::Array((0..values.len()).map(|at| inner.value(at)).collect::<Result<_>>()?)
            }
        })
    }

    /// Writes a value of `json`. Values that are JSON stay as they are.
    fn write_json(&self, row: usize, out: &mut String) -> Result<()> {
        match self {
            Given::Jsonb(array) if !self.is_null(row) => out.push_str(array.value(row)),
            Given::List(array, field) if !self.is_null(row) => {
                let values = array.value(row);
                let inner = Given::of(&values, field)?;
                out.push('[');
                for at in 0..values.len() {
                    out.push_str(if at == 0 { "" } else { "," });
                    inner.write_json(at, out)?;
                }
                out.push(']');
            }
            _ => out.push_str(&jsonb::shown(&self.value(row)?)),
        }
        Ok(())
    }

    /// What stands there as a key.
    fn key(&self, row: usize) -> Result<Option<String>> {
        Ok(match self {
            Given::Jsonb(_) | Given::List(..) => {
                let words = "key value must be scalar, not array, composite, or json";
                return Err(wrong("22023", words));
            }
            Given::Time(array) if !self.is_null(row) => Some(array.value(row).to_string()),
            other => jsonb::text_of(&other.value(row)?),
        })
    }

    /// Texts of a list, or of a list's literal.
    fn texts(&self, row: usize) -> Result<Option<Vec<Option<String>>>> {
        if self.is_null(row) {
            return Ok(None);
        }
        match self {
            Given::List(array, _) => {
                let values = cast(&array.value(row), &DataType::Utf8View)?;
                let texts = values.as_string_view().iter();
                Ok(Some(texts.map(|one| one.map(str::to_string)).collect()))
            }
            Given::Text(array) => {
                let words = format!("malformed array literal: \"{}\"", array.value(row));
                array_of(array.value(row)).map(Some).ok_or_else(|| wrong("22P02", &words))
            }
            _ => Err(wrong("42883", "jsonb_object takes arrays of texts")),
        }
    }
}

/// `2024-02-29 12:00:00+00` as JSON has it.
fn iso(shown: &str) -> String {
    let whole = shown.replacen(' ', "T", 1);
    match whole.strip_suffix("+00") {
        Some(plain) => format!("{plain}+00:00"),
        None => whole,
    }
}

/// A row as a text of `json`, with PostgreSQL's spaces; none for NULL.
fn json_text(work: Work, given: &[Given], row: usize) -> Result<Option<String>> {
    let mut out = String::new();
    if work == Work::JsonValue {
        let Some(one) = given.first().filter(|one| !one.is_null(row)) else { return Ok(None) };
        one.write_json(row, &mut out)?;
        return Ok(Some(out));
    }
    let (colon, comma) = if work == Work::JsonRow { (":", ",") } else { (" : ", ", ") };
    out.push(if work.takes_pairs() { '{' } else { '[' });
    for (at, one) in given.iter().enumerate() {
        let is_key = work.takes_pairs() && at % 2 == 0;
        if 0 < at && (is_key || !work.takes_pairs()) {
            out.push_str(comma);
        }
        if is_key {
            let key = one.key(row)?.ok_or_else(|| {
                wrong("22023", &format!("argument {}: key must not be null", at + 1))
            })?;
            out.push_str(&jsonb::shown(&Value::String(key)));
            out.push_str(colon);
        } else {
            one.write_json(row, &mut out)?;
        }
    }
    out.push(if work.takes_pairs() { '}' } else { ']' });
    Ok(Some(out))
}

fn object(given: &[Given], row: usize) -> Result<Value> {
    let mut map = Map::new();
    for (at, two) in given.chunks(2).enumerate() {
        let [key, value] = two else { continue };
        let key = key.key(row)?.ok_or_else(|| {
            wrong("22023", &format!("argument {}: key must not be null", 2 * at + 1))
        })?;
        map.insert(key, value.value(row)?);
    }
    Ok(Value::Object(map))
}

fn object_of_texts(given: &[Given], row: usize) -> Result<Option<Value>> {
    let mut lists = Vec::with_capacity(given.len());
    for one in given {
        let Some(texts) = one.texts(row)? else { return Ok(None) };
        lists.push(texts);
    }
    let pairs: Vec<(Option<String>, Option<String>)> = match <[_; 2]>::try_from(lists) {
        Ok([keys, values]) if keys.len() == values.len() => keys.into_iter().zip(values).collect(),
        Ok(_) => return Err(wrong("2202E", "mismatched array dimensions")),
        Err(lists) => {
            let mut all = lists.into_iter().flatten();
            let mut pairs = Vec::new();
            while let Some(key) = all.next() {
                let words = "array must have even number of elements";
                pairs.push((key, all.next().ok_or_else(|| wrong("2202E", words))?));
            }
            pairs
        }
    };
    let mut map = Map::new();
    for (key, value) in pairs {
        let key = key.ok_or_else(|| wrong("22004", "null value not allowed for object key"))?;
        map.insert(key, value.map_or(Value::Null, Value::String));
    }
    Ok(Some(Value::Object(map)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::common::ScalarValue;

    fn of(name: &str, values: &[ScalarValue]) -> Result<Option<String>> {
        let function = functions().find(|one| one.name() == name).unwrap();
        let field = |value: &ScalarValue| Arc::new(Field::new("a", value.data_type(), true));
        let made = function.invoke_with_args(ScalarFunctionArgs {
            args: values.iter().cloned().map(ColumnarValue::Scalar).collect(),
            arg_fields: values.iter().map(|value| field(value) as FieldRef).collect(),
            number_rows: 1,
            return_field: Arc::new(jsonb_field("r", true)),
            config_options: Arc::default(),
        })?;
        let made = made.to_array(1)?;
        let texts = made.as_string_view();
        Ok(texts.is_valid(0).then(|| texts.value(0).to_string()))
    }

    fn text(text: &str) -> ScalarValue {
        ScalarValue::Utf8View(Some(text.to_string()))
    }

    #[test]
    fn objects_are_those_of_postgresql() {
        let micros = Some(1_709_208_000_123_456);
        let time = ScalarValue::TimestampMicrosecond(micros, Some("+00:00".into()));
        let all = [
            text("job"),
            text("a\"b"),
            text("v"),
            ScalarValue::Float64(Some(7.0)),
            text("nan"),
            ScalarValue::Float64(Some(f64::NAN)),
            ScalarValue::Int64(Some(5)),
            ScalarValue::Null,
            text("at"),
            time,
        ];
        let expected = r#"{"5": null, "v": 7, "at": "2024-02-29T12:00:00.123456+00:00", "job": "a\"b", "nan": "NaN"}"#;
        assert_eq!(of("jsonb_build_object", &all).unwrap().unwrap(), expected);
        assert_eq!(
            of("jsonb_object", &[text("{a,1,b,NULL}")]).unwrap().unwrap(),
            r#"{"a": "1", "b": null}"#
        );
        let two = [text("{a,b}"), text("{1,\"x y\"}")];
        assert_eq!(of("jsonb_object", &two).unwrap().unwrap(), r#"{"a": "1", "b": "x y"}"#);
        assert_eq!(of("to_jsonb", &[text("a\nb")]).unwrap().unwrap(), r#""a\nb""#);
        assert_eq!(of("to_jsonb", &[ScalarValue::Float64(Some(0.5))]).unwrap().unwrap(), "0.5");
        assert_eq!(of("to_jsonb", &[ScalarValue::Null]).unwrap(), None);
        assert_eq!(of("jsonb_build_array", &[]).unwrap().unwrap(), "[]");
    }

    #[test]
    fn texts_of_json_have_the_spaces_of_postgresql() {
        let all = [text("b"), text("x"), text("a"), ScalarValue::Null, text("b"), text("y")];
        let expected = r#"{"b" : "x", "a" : null, "b" : "y"}"#;
        assert_eq!(of("json_build_object", &all).unwrap().unwrap(), expected);
        assert_eq!(of(JSON_ROW, &all).unwrap().unwrap(), r#"{"b":"x","a":null,"b":"y"}"#);
        let array = ["[\"b\", \"x\"]", "[]"];
        assert_eq!(of("json_build_array", &all[..2]).unwrap().unwrap(), array[0]);
        assert_eq!(of("json_build_array", &[]).unwrap().unwrap(), array[1]);
        assert_eq!(of("to_json", &[ScalarValue::Null]).unwrap(), None);
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for (name, values, code) in [
            ("jsonb_build_object", vec![ScalarValue::Null, text("a")], "22023"),
            ("jsonb_object", vec![text("{a}")], "2202E"),
            ("jsonb_object", vec![text("{a}"), text("{}")], "2202E"),
            ("jsonb_object", vec![text("{NULL,a}")], "22004"),
            ("jsonb_object", vec![text("a")], "22P02"),
        ] {
            let failure = SqlError::from(of(name, &values).unwrap_err());
            assert_eq!(failure.code, code, "{name}: {failure}");
        }
        let long = text(&"\u{1}".repeat(12 << 20));
        assert_eq!(SqlError::from(of("to_jsonb", &[long]).unwrap_err()).code, "54000");
    }
}
