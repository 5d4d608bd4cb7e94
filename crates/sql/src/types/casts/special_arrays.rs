//! Casts to arrays of types that arrow has as texts: `uuid[]`, `jsonb[]`, `json[]`, `varchar(n)[]` and `char(n)[]`.

use crate::types::casts::array_casts::{convert, read_texts};
use crate::types::error::SqlError;
use crate::types::function::special_list_function;
use crate::types::json::jsonb;
use crate::types::json::jsonb::{check_json, no_json};
use crate::types::uuids;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, ListArray, StringViewArray, new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

type Read = fn(&str, Option<usize>) -> Result<String, SqlError>;

pub(crate) const UUIDS: &str = "uuid_array_in";
pub(crate) const JSONBS: &str = "jsonb_array_in";
pub(crate) const JSONS: &str = "json_array_in";
pub(crate) const VARCHARS: &str = "varchar_array_in";
pub(crate) const BPCHARS: &str = "bpchar_array_in";

/// The functions that do the casts.
pub fn functions() -> [ScalarUDF; 5] {
    [
        array_in(UUIDS, "uuid[]", |text, _| uuids::read(text)),
        array_in(JSONBS, "jsonb[]", read_json),
        array_in(JSONS, "json[]", |text, _| check_json(text, false).map(|()| text.to_string())),
        array_in(VARCHARS, "varchar[]", |text, length| Ok(first(text, length).to_string())),
        array_in(BPCHARS, "bpchar[]", |text, length| {
            Ok(first(text, length).trim_end_matches(' ').to_string())
        }),
    ]
}

/// Returns the function that reads arrays of a type by its name, such as `uuid[]`.
pub fn array_reader(of: &str) -> Option<ScalarUDF> {
    static READERS: LazyLock<BTreeMap<&str, ScalarUDF>> = LazyLock::new(|| {
        let names = ["uuid[]", "jsonb[]", "json[]", "varchar[]", "bpchar[]"];
        names.into_iter().zip(functions()).collect()
    });
    READERS.get(of).cloned()
}

fn array_in(name: &'static str, of: &'static str, read: Read) -> ScalarUDF {
    let signature = Signature::variadic_any(Volatility::Immutable);
    let list = DataType::new_list(DataType::Utf8View, true);
    special_list_function(name, of, list, signature, move |args, rows| {
        let Some(values) = args.first() else {
            return Err(outside(SqlError::unexpected("a cast to an array without a value")));
        };
        let length = args.get(1).map(|lengths| cast(lengths, &DataType::Int64)).transpose()?;
        let length = length.as_ref().filter(|lengths| !lengths.is_empty());
        let length = length.map(|lengths| lengths.as_primitive::<Int64Type>().value(0));
        cast_elements(values, rows, of, |text| read(text, length.and_then(|n| n.try_into().ok())))
    })
}

fn cast_elements(
    values: &ArrayRef,
    rows: usize,
    to: &str,
    read: impl Fn(&str) -> Result<String, SqlError>,
) -> Result<ArrayRef> {
    let field = Arc::new(Field::new_list_field(DataType::Utf8View, true));
    let lists = match values.data_type() {
        DataType::Null => return Ok(new_null_array(&DataType::List(field), rows)),
        ty if ty.is_string() => read_texts(values)?,
        DataType::List(_) => values.clone(),
        other => {
            let words = format!("cannot cast type {other} to {to}");
            return Err(outside(SqlError::new("42846", words)));
        }
    };
    let (_, offsets, elements, nulls) = lists.as_list::<i32>().clone().into_parts();
    let of_texts = matches!(to, "varchar[]" | "bpchar[]");
    if !of_texts && !elements.data_type().is_string() && !elements.data_type().is_null() {
        let words = format!("cannot cast an array of {} to {to}", elements.data_type());
        return Err(outside(SqlError::new("42846", words)));
    }
    let texts = convert(&elements, &DataType::Utf8View)?;
    let each = |text: Option<&str>| text.map(|text| read(text).map_err(outside)).transpose();
    let made = texts.as_string_view().iter().map(each).collect::<Result<StringViewArray>>()?;
    Ok(Arc::new(ListArray::try_new(field, offsets, Arc::new(made), nulls)?))
}

fn read_json(text: &str, _: Option<usize>) -> Result<String, SqlError> {
    read_jsonb(text)
}

/// Reads a text, and returns it as a `jsonb` is shown.
///
/// # Errors
/// 22P02, 22P05 and 0A000 when the text is none, or beyond a limit.
pub fn read_jsonb(text: &str) -> Result<String, SqlError> {
    let value = jsonb::parse(text).ok_or_else(|| no_json(text))?;
    Ok(jsonb::shown(&value))
}

/// The first characters of a text.
fn first(text: &str, length: Option<usize>) -> &str {
    let end = length.and_then(|length| text.char_indices().nth(length));
    end.map_or(text, |(end, _)| &text[..end])
}

fn outside(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
