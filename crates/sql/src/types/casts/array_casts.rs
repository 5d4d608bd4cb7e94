//! Casts of arrays to arrays of another type, and of texts to arrays: each element is cast by itself.

use crate::types::casts::text_casts::cast_texts;
use crate::types::error::SqlError;
use crate::types::function::function;
use crate::types::numeric::exact_casts;
use crate::types::numeric::value::NUMERIC;
use crate::types::text::array_literals::array_of;
use crate::types::text::shown;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Float64Array, ListArray, ListBuilder, StringViewBuilder,
};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, ScalarUDF, Signature, Volatility};
use std::sync::Arc;

/// Casts an array or a text to an array with this element type; returns none for other values.
pub fn cast_to_list(value: Expr, from: &DataType, of: &DataType) -> Option<Expr> {
    let is_known = matches!(from, DataType::List(_)) || from.is_string();
    is_known.then(|| Arc::new(to_list(of.clone())).call(vec![value]))
}

/// Makes the function for one element type. Its name contains the type: functions are compared by name.
fn to_list(of: DataType) -> ScalarUDF {
    let name: &'static str = match &of {
        DataType::Boolean => "pg_bool_array",
        DataType::Int16 => "pg_int2_array",
        DataType::Int32 => "pg_int4_array",
        DataType::Int64 => "pg_int8_array",
        DataType::Float32 => "pg_float4_array",
        DataType::Float64 => "pg_float8_array",
        DataType::Date32 => "pg_date_array",
        DataType::Timestamp(_, None) => "pg_timestamp_array",
        DataType::Timestamp(_, Some(_)) => "pg_timestamptz_array",
        DataType::Interval(_) => "pg_interval_array",
        DataType::Time64(_) => "pg_time_array",
        DataType::Binary => "pg_bytea_array",
        of if *of == NUMERIC => "pg_numeric_array",
        _ => "pg_text_array",
    };
    let field = Arc::new(Field::new_list_field(of, true));
    let made = DataType::List(field.clone());
    let signature = Signature::any(1, Volatility::Immutable);
    function(
        name,
        signature,
        move |_| made.clone(),
        move |args, _| {
            let lists = match args[0].data_type().is_string() {
                true => read_texts(&args[0])?,
                false => args[0].clone(),
            };
            let (_, offsets, values, nulls) = lists.as_list::<i32>().clone().into_parts();
            let values = convert(&values, field.data_type())?;
            Ok(Arc::new(ListArray::try_new(field.clone(), offsets, values, nulls)?))
        },
    )
}

/// Arrays of the texts of elements.
///
/// # Errors
/// As [`read_text`].
pub fn read_texts(array: &ArrayRef) -> Result<ArrayRef> {
    let texts = cast(array, &DataType::Utf8View)?;
    let mut out = ListBuilder::new(StringViewBuilder::new());
    for text in texts.as_string_view() {
        match text {
            None => out.append_null(),
            Some(text) => out.append_value(read_text(text).map_err(outside)?),
        }
    }
    Ok(Arc::new(out.finish()))
}

/// The elements of a literal of an array.
///
/// # Errors
/// `22P02` when it is none, and `0A000` of arrays of arrays.
pub fn read_text(text: &str) -> Result<Vec<Option<String>>, SqlError> {
    array_of(text).ok_or_else(|| match is_nested(text) {
        true => SqlError::unsupported("arrays of arrays are not known here"),
        false => malformed(text),
    })
}

/// Whether a literal has arrays within it, or says at which place its elements begin.
fn is_nested(text: &str) -> bool {
    let text = text.trim();
    let inner = text.strip_prefix('{').map(str::trim_start);
    inner.is_some_and(|inner| inner.starts_with('{')) || text.starts_with('[')
}

/// Makes the error for a malformed array literal.
pub fn malformed(text: &str) -> SqlError {
    SqlError::new("22P02", format!("malformed array literal: \"{text}\""))
}

fn outside(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Elements as those of another type.
///
/// # Errors
/// When an element has no value of that type.
pub fn convert(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = values.data_type();
    if from == to || from.is_null() {
        return Ok(cast(values, to)?);
    }
    if from.is_decimal() || *to == NUMERIC {
        return exact_casts::convert(values, to);
    }
    if from.is_string()
        && let Some(read) = cast_texts(values, to)
    {
        return read;
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    if to.is_string() {
        let texts = shown::column(values).unwrap_or_else(|| values.clone());
        return Ok(cast_with_options(&texts, to, &strict)?);
    }
    if from.is_floating() && to.is_integer() {
        let wide = cast(values, &DataType::Float64)?;
        let rounded: Float64Array = wide.as_primitive::<Float64Type>().unary(f64::round_ties_even);
        return Ok(cast_with_options(&rounded, to, &strict)?);
    }
    Ok(cast_with_options(values, to, &strict)?)
}
