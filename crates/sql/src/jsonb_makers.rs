//! Functions that make a `jsonb` of other values: `jsonb_build_object`, `to_jsonb` and their kin.

use crate::bounded::{Growth, bounded};
use crate::error::SqlError;
use crate::json_value::{Map, Value};
use crate::jsonb;
use crate::jsonb_functions::{TYPE_KEY, is_jsonb_field, jsonb_field, no_json};
use crate::rewrite::array_of;
use crate::shown;
use crate::special_types::special_field;
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
}

const ALL: &[(&str, Work)] = &[
    ("jsonb_build_object", Work::Object),
    ("jsonb_build_array", Work::Array),
    ("jsonb_object", Work::ObjectOfTexts),
    ("to_jsonb", Work::Value),
];

/// All of them.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    ALL.iter().map(|(name, work)| {
        let takes = match work {
            Work::Object | Work::Array => {
                TypeSignature::OneOf(vec![TypeSignature::VariadicAny, TypeSignature::Nullary])
            }
            Work::ObjectOfTexts => {
                TypeSignature::OneOf(vec![TypeSignature::Any(1), TypeSignature::Any(2)])
            }
            Work::Value => TypeSignature::Any(1),
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
        if self.work == Work::Object && args.arg_fields.len() % 2 == 1 {
            return Err(wrong("22023", "argument list must have even number of elements"));
        }
        Ok(Arc::new(jsonb_field(self.name, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let given = args.args.iter().zip(&args.arg_fields);
        let given = given.map(|(arg, field)| Given::of(&arg.to_array(rows)?, field));
        let given = given.collect::<Result<Vec<_>>>()?;
        let mut out = StringViewBuilder::with_capacity(rows);
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
