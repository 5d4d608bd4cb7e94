//! What operators of `jsonb` do, as functions, and the name of its type.

use crate::functions::bounded::{Growth, bounded};
use crate::types::casts::cast_functions::{JSON_IN, JSONB_IN};
use crate::types::error::SqlError;
use crate::types::function::special_function;
use crate::types::json::json_value::Value;
use crate::types::json::jsonb::{check_json, no_json};
use crate::types::json::{json_raw, jsonb};
use crate::types::special_fields::{
    JSON, TYPE_KEY, is_json_field, is_jsonb_field, jsonb_field, special_field,
};
use crate::types::text::array_literals::array_of;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray as _, BooleanBuilder, StringViewArray, StringViewBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::cast::as_string_view_array;
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::sync::{Arc, LazyLock};

/// `->>`.
pub const FIELD_TEXT: &str = "jsonb_field_text";
/// `->`.
pub const FIELD: &str = "jsonb_field";
/// `@>`.
pub const CONTAINS: &str = "jsonb_contains";
/// `?`.
pub const HAS_KEY: &str = "jsonb_exists";
/// `?|`.
pub const HAS_ANY: &str = "jsonb_exists_any";
/// `?&`.
pub const HAS_ALL: &str = "jsonb_exists_all";
/// `||`.
pub const CONCAT: &str = "jsonb_concat";
/// `-`.
pub const DELETE: &str = "jsonb_delete";
/// `#>`.
pub const PATH: &str = "jsonb_extract_path_of";
/// `#>>`.
pub const PATH_TEXT: &str = "jsonb_extract_path_text_of";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operation {
    FieldText,
    Field,
    Contains,
    HasKey,
    HasAny,
    HasAll,
    Concat,
    Delete,
    Path,
    PathText,
}

/// What an operation makes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Makes {
    Text,
    Jsonb,
    Truth,
}

impl Operation {
    fn makes(self) -> Makes {
        match self {
            Operation::FieldText | Operation::PathText => Makes::Text,
            Operation::Field | Operation::Concat | Operation::Delete | Operation::Path => {
                Makes::Jsonb
            }
            Operation::Contains | Operation::HasKey | Operation::HasAny | Operation::HasAll => {
                Makes::Truth
            }
        }
    }

    /// Parts of values of `json`, as they were written; none for other operations.
    fn parts_as_written(self, left: &StringViewArray, right: &Right<'_>) -> Option<ArrayRef> {
        use Operation::{Field, FieldText, Path, PathText};
        if !matches!(self, Field | FieldText | Path | PathText) {
            return None;
        }
        let mut out = StringViewBuilder::with_capacity(left.len());
        for (row, text) in left.iter().enumerate() {
            let part = text.and_then(|text| match right.at(row) {
                One::Nothing => None,
                One::Text(key) => json_raw::member(text, key),
                One::At(at) => json_raw::element(text, at),
                One::Keys(keys) => {
                    keys.iter().try_fold(text, |text, key| json_raw::step(text, key))
                }
            });
            match (self.makes(), part) {
                (Makes::Text, Some(part)) if part.starts_with(['"', 'n']) => {
                    out.append_option(jsonb::parse(part).and_then(|value| jsonb::text_of(&value)));
                }
                (_, part) => out.append_option(part),
            }
        }
        Some(Arc::new(out.finish()))
    }

    /// Whether a number to its right is a place of an array.
    fn takes_places(self) -> bool {
        matches!(self, Operation::Field | Operation::FieldText | Operation::Delete)
    }

    /// Whether what stands to its right is keys, and not a text.
    fn takes_keys(self) -> bool {
        use Operation::{Delete, HasAll, HasAny, Path, PathText};
        matches!(self, HasAny | HasAll | Delete | Path | PathText)
    }
}

/// An operator with a `jsonb` to its left, and a text or keys to its right.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonbFunction {
    name: &'static str,
    operation: Operation,
    signature: Signature,
}

impl JsonbFunction {
    fn udf(name: &'static str, operation: Operation) -> Arc<ScalarUDF> {
        let signature = match operation.takes_keys() || operation.takes_places() {
            true => Signature::user_defined(Volatility::Immutable),
            false => Signature::exact(
                vec![DataType::Utf8View, DataType::Utf8View],
                Volatility::Immutable,
            ),
        };
        Arc::new(ScalarUDF::from(JsonbFunction { name, operation, signature }))
    }
}

static FUNCTIONS: LazyLock<Vec<Arc<ScalarUDF>>> = LazyLock::new(|| {
    let all = [
        (FIELD_TEXT, Operation::FieldText),
        (FIELD, Operation::Field),
        (CONTAINS, Operation::Contains),
        (HAS_KEY, Operation::HasKey),
        (HAS_ANY, Operation::HasAny),
        (HAS_ALL, Operation::HasAll),
        (CONCAT, Operation::Concat),
        (DELETE, Operation::Delete),
        (PATH, Operation::Path),
        (PATH_TEXT, Operation::PathText),
    ];
    let all = all.into_iter().map(|(name, operation)| match operation {
        Operation::Concat => {
            Arc::new(bounded(JsonbFunction::udf(name, operation), Growth::Times(2)))
        }
        _ => JsonbFunction::udf(name, operation),
    });
    all.chain([JsonbIn::udf(), json_in()]).collect()
});

/// A call of one of them.
///
/// # Panics
/// When there is none of that name.
pub fn call(name: &str, args: Vec<Expr>) -> Expr {
    let function = functions().find(|function| function.name() == name);
    function.expect("each operator has its function").call(args)
}

/// The functions that operators become.
pub fn functions() -> impl Iterator<Item = Arc<ScalarUDF>> {
    FUNCTIONS.iter().cloned()
}

impl ScalarUDFImpl for JsonbFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [_, right] = types else { return plan_err!("{} takes two arguments", self.name) };
        let right = match right {
            DataType::List(_) if self.operation.takes_keys() => {
                DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true)))
            }
            DataType::List(_) => return plan_err!("{} does not take {right}", self.name),
            whole if whole.is_integer() => DataType::Int64,
            _ => DataType::Utf8View,
        };
        Ok(vec![DataType::Utf8View, right])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.operation.makes() {
            Makes::Text | Makes::Jsonb => DataType::Utf8View,
            Makes::Truth => DataType::Boolean,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let of = args.arg_fields.first().and_then(|field| field.metadata().get(TYPE_KEY));
        let is_part = matches!(self.operation, Operation::Field | Operation::Path);
        Ok(Arc::new(match self.operation.makes() {
            // A part of a `json` is one, too.
            Makes::Jsonb if is_part && of.is_some_and(|name| name == JSON) => {
                special_field(self.name, JSON, DataType::Utf8View, true)
            }
            Makes::Text => Field::new(self.name, DataType::Utf8View, true),
            Makes::Jsonb => jsonb_field(self.name, true),
            Makes::Truth => Field::new(self.name, DataType::Boolean, true),
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = arrays.as_slice() else {
            return plan_err!("{} takes two arguments", self.name);
        };
        let left = as_string_view_array(left)?;
        let right = Right::of(self.operation, right)?;
        let is_written = args.arg_fields.first().is_some_and(|field| is_json_field(field));
        if is_written && let Some(parts) = self.operation.parts_as_written(left, &right) {
            return Ok(ColumnarValue::Array(parts));
        }
        let mut memory = Memory::default();
        let array: ArrayRef = match self.operation.makes() {
            Makes::Text | Makes::Jsonb => {
                let mut out = StringViewBuilder::with_capacity(left.len());
                for (row, left) in left.iter().enumerate() {
                    out.append_option(memory.made(left, &right.at(row), self.operation)?);
                }
                Arc::new(out.finish())
            }
            Makes::Truth => {
                let mut out = BooleanBuilder::with_capacity(left.len());
                for (row, left) in left.iter().enumerate() {
                    out.append_option(memory.test(left, &right.at(row), self.operation)?);
                }
                Arc::new(out.finish())
            }
        };
        Ok(ColumnarValue::Array(array))
    }
}

/// What stands to the right, row by row.
struct Right<'a> {
    array: &'a ArrayRef,
    /// Whether a text is an array's literal.
    is_array: bool,
    /// Whether its keys are steps: a null among them leads nowhere, and is passed over elsewhere.
    is_path: bool,
}

/// One of it.
enum One<'a> {
    Nothing,
    Text(&'a str),
    Keys(Vec<String>),
    At(i64),
}

impl<'a> Right<'a> {
    fn of(operation: Operation, array: &'a ArrayRef) -> Result<Right<'a>> {
        let is_known = match array.data_type() {
            DataType::Utf8View => true,
            DataType::List(_) => operation.takes_keys(),
            DataType::Int64 => operation.takes_keys() || operation.takes_places(),
            _ => false,
        };
        match is_known {
            true => {
                let is_array = operation.takes_keys() && operation != Operation::Delete;
                let is_path = matches!(operation, Operation::Path | Operation::PathText);
                Ok(Right { array, is_array, is_path })
            }
            false => plan_err!("an operator of jsonb does not take {}", array.data_type()),
        }
    }

    fn at(&self, row: usize) -> One<'a> {
        if self.array.is_null(row) {
            return One::Nothing;
        }
        match self.array.data_type() {
            DataType::Int64 => One::At(self.array.as_primitive::<Int64Type>().value(row)),
            DataType::List(_) => {
                let list = self.array.as_list::<i32>().value(row);
                cast(&list, &DataType::Utf8View).map_or(One::Nothing, |texts| {
                    let texts = texts.as_string_view();
                    self.keys(texts.iter().map(|text| text.map(str::to_string)).collect())
                })
            }
            _ => {
                let text = self.array.as_string_view().value(row);
                match self.is_array {
                    true => array_of(text).map_or(One::Nothing, |all| self.keys(all)),
                    false => One::Text(text),
                }
            }
        }
    }

    fn keys(&self, all: Vec<Option<String>>) -> One<'a> {
        match self.is_path && all.contains(&None) {
            true => One::Nothing,
            false => One::Keys(all.into_iter().flatten().collect()),
        }
    }
}

/// The last value that was parsed: rows of one series follow each other.
#[derive(Default)]
struct Memory {
    left: Option<(String, Option<Value>)>,
    right: Option<(String, Option<Value>)>,
}

fn parsed<'m>(memory: &'m mut Option<(String, Option<Value>)>, text: &str) -> Option<&'m Value> {
    if memory.as_ref().is_none_or(|(known, _)| known != text) {
        *memory = Some((text.to_string(), jsonb::parse(text)));
    }
    memory.as_ref()?.1.as_ref()
}

impl Memory {
    fn made(
        &mut self,
        left: Option<&str>,
        right: &One<'_>,
        operation: Operation,
    ) -> Result<Option<String>> {
        let Some(left) = left else { return Ok(None) };
        match right {
            One::Nothing => return Ok(None),
            One::Text(part) if operation == Operation::Concat => {
                let right = parsed(&mut self.right, part).ok_or_else(|| no_json(part))?;
                let left = parsed(&mut self.left, left).ok_or_else(|| no_json(left))?;
                return Ok(Some(jsonb::shown(&jsonb::joined(left, right))));
            }
            _ => {}
        }
        let Some(value) = parsed(&mut self.left, left) else { return Ok(None) };
        if operation == Operation::Delete {
            return deleted(value, right).map(|value| Some(jsonb::shown(&value)));
        }
        let found = match right {
            One::Text(key) => jsonb::field(value, key),
            One::Keys(keys) => keys.iter().try_fold(value, |value, key| jsonb::step(value, key)),
            One::At(at) if operation.takes_places() => jsonb::element(value, *at),
            One::At(_) | One::Nothing => None,
        };
        Ok(match operation.makes() {
            Makes::Text => found.and_then(jsonb::text_of),
            _ => found.map(jsonb::shown),
        })
    }

    fn test(
        &mut self,
        left: Option<&str>,
        right: &One<'_>,
        operation: Operation,
    ) -> Result<Option<bool>> {
        let Some(left) = left else { return Ok(None) };
        let value = parsed(&mut self.left, left).ok_or_else(|| no_json(left))?;
        Ok(match right {
            One::Text(key) if operation == Operation::HasKey => Some(jsonb::has_key(value, key)),
            One::Text(part) => {
                let part = parsed(&mut self.right, part).ok_or_else(|| no_json(part))?;
                Some(jsonb::contains(value, part))
            }
            One::Keys(keys) => {
                let mut has = keys.iter().map(|key| jsonb::has_key(value, key));
                Some(match operation {
                    Operation::HasAll => has.all(|one| one),
                    _ => has.any(|one| one),
                })
            }
            One::At(_) | One::Nothing => None,
        })
    }
}

/// `value - right`.
fn deleted(value: &Value, right: &One<'_>) -> Result<Value> {
    let wrong =
        |words: &str| Err(DataFusionError::External(Box::new(SqlError::wrong_value(words))));
    match (value, right) {
        (value, _) if !value.is_object() && !value.is_array() => wrong("cannot delete from scalar"),
        (value, One::At(_)) if value.is_object() => {
            wrong("cannot delete from object using integer index")
        }
        (value, One::At(at)) => Ok(jsonb::without_at(value, *at)),
        (value, One::Text(key)) => Ok(jsonb::without(value, &[key])),
        (value, One::Keys(keys)) => Ok(jsonb::without(value, keys)),
        (value, One::Nothing) => Ok(value.clone()),
    }
}

/// A text as `json`: checked, and kept as it was written.
fn json_in() -> Arc<ScalarUDF> {
    let signature = Signature::exact(vec![DataType::Utf8View], Volatility::Immutable);
    Arc::new(special_function(JSON_IN, JSON, signature, |args, _| {
        for text in as_string_view_array(&args[0])?.iter().flatten() {
            let checked = check_json(text, false);
            checked.map_err(|error| DataFusionError::External(Box::new(error)))?;
        }
        Ok(args[0].clone())
    }))
}

/// A text as `jsonb`: read, and shown as PostgreSQL shows it, which makes equal values equal texts.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonbIn {
    signature: Signature,
}

impl JsonbIn {
    fn udf() -> Arc<ScalarUDF> {
        let signature = Signature::exact(vec![DataType::Utf8View], Volatility::Immutable);
        Arc::new(ScalarUDF::from(JsonbIn { signature }))
    }
}

impl ScalarUDFImpl for JsonbIn {
    fn name(&self) -> &str {
        JSONB_IN
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(jsonb_field(JSONB_IN, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_known = |field: &FieldRef| is_jsonb_field(field) && !is_json_field(field);
        if args.arg_fields.first().is_some_and(is_known) {
            return args.args.into_iter().next().map_or_else(|| plan_err!("a text"), Ok);
        }
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [texts] = arrays.as_slice() else { return plan_err!("{JSONB_IN} takes a text") };
        let texts = as_string_view_array(texts)?;
        let mut out = StringViewBuilder::with_capacity(texts.len());
        for text in texts {
            let value = text.map(|text| jsonb::parse(text).ok_or_else(|| no_json(text)));
            out.append_option(value.transpose()?.map(|value| jsonb::shown(&value)));
        }
        Ok(ColumnarValue::Array(Arc::new(out.finish())))
    }
}
