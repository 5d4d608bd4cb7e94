//! `(array)[2:3]`: bounds outside of an array are those of the array, where DataFusion counts negative ones from the
//! end.

use crate::types::error::SqlError;
use crate::types::function::function;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Int64Array, ListArray, StringViewArray, UInt64Array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::sync::Arc;

/// The function's name.
pub const SLICE: &str = "pg_array_slice";
/// The function that `array_dims` becomes.
pub const DIMENSIONS: &str = "pg_array_dims";

/// `pg_array_slice(array, lower, upper)`; a bound that is left out is the type's least or greatest number.
pub fn slice() -> ScalarUDF {
    let signature = Signature::any(3, Volatility::Immutable);
    let returns = |types: &[DataType]| types.first().cloned().unwrap_or(DataType::Null);
    function(SLICE, signature, returns, |args, _| slices(args))
}

fn slices(args: &[ArrayRef]) -> Result<ArrayRef> {
    let [array, lower, upper] = args else { return Err(no_array()) };
    let DataType::List(field) = array.data_type() else { return Err(no_array()) };
    let list = array.as_list::<i32>();
    let (lower, upper) = (whole(lower)?, whole(upper)?);
    let (mut places, mut lengths, mut known) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..list.len() {
        let is_known = !(list.is_null(row) || lower.is_null(row) || upper.is_null(row));
        known.push(is_known);
        let before = places.len();
        if is_known {
            let offsets = list.value_offsets();
            let (start, end) = (i64::from(offsets[row]), i64::from(offsets[row + 1]));
            let first = start + lower.value(row).max(1) - 1;
            let last = start + upper.value(row).clamp(0, end - start);
            places.extend((first..last).map(i64::cast_unsigned));
        }
        lengths.push(places.len() - before);
    }
    let values = take(list.values(), &UInt64Array::from(places), None)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(field.clone(), offsets, values, Some(NullBuffer::from(known)))?))
}

/// `array_dims(array)`: the bounds of each dimension, as in `[1:2][1:3]`.
pub fn dimensions() -> ScalarUDF {
    let signature = Signature::any(1, Volatility::Immutable);
    function(
        DIMENSIONS,
        signature,
        |_| DataType::Utf8View,
        |args, _| {
            let Some(lists) = args[0].as_list_opt::<i32>() else { return Err(no_array()) };
            let each = lists.iter().map(|list| list.and_then(bounds_of));
            Ok(Arc::new(each.collect::<StringViewArray>()))
        },
    )
}

fn bounds_of(list: ArrayRef) -> Option<String> {
    let (mut list, mut text) = (list, String::new());
    loop {
        if list.is_empty() {
            return (!text.is_empty()).then_some(text);
        }
        text.push_str(&format!("[1:{}]", list.len()));
        match list.as_list_opt::<i32>().map(|lists| lists.value(0)) {
            Some(inner) => list = inner,
            None => return Some(text),
        }
    }
}

fn whole(bounds: &ArrayRef) -> Result<Int64Array> {
    Ok(cast(bounds, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

fn no_array() -> DataFusionError {
    let words = "cannot subscript a value that is no array";
    DataFusionError::External(Box::new(SqlError::new("42804", words)))
}
