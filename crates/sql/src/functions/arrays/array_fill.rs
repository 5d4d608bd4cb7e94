//! `array_fill(value, dimensions [, lower bounds])`: an array of one dimension with a value in all places.

use crate::functions::bounded::SIZE_MAX;
use crate::types::error::SqlError;
use crate::types::function::function;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, ListArray, UInt32Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use std::sync::Arc;

/// Elements and dimensions that PostgreSQL's arrays have at most.
const ELEMENTS_MAX: i64 = 134_217_727;
const DIMENSIONS_MAX: usize = 6;
/// Elements that one call makes for the rows of one batch, of values of up to 16 bytes.
const CALL_ELEMENTS_MAX: usize = SIZE_MAX / 16;

/// The function.
pub fn array_fill() -> ScalarUDF {
    let signatures = vec![TypeSignature::Any(2), TypeSignature::Any(3)];
    let signature = Signature::one_of(signatures, Volatility::Immutable);
    let made = |types: &[DataType]| {
        let of = types.first().cloned().unwrap_or(DataType::Null);
        DataType::List(Arc::new(Field::new_list_field(of, true)))
    };
    function("array_fill", signature, made, fill)
}

fn wrong(code: &'static str, words: impl Into<String>) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::new(code, words)))
}

fn fill(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (values, dimensions) = (&args[0], &args[1]);
    let (mut places, mut lengths) = (Vec::new(), Vec::with_capacity(rows));
    for row in 0..rows {
        let sizes = numbers(dimensions, row)?;
        let bounds = args.get(2).map(|bounds| numbers(bounds, row)).transpose()?;
        let length = length_of(&sizes, bounds.as_deref())?;
        if CALL_ELEMENTS_MAX < places.len() + length {
            let words = format!("arrays of more than {CALL_ELEMENTS_MAX} elements in one batch");
            return Err(wrong("54000", words));
        }
        let place = u32::try_from(row).map_err(|_| wrong("54000", "too many rows"))?;
        places.resize(places.len() + length, place);
        lengths.push(length);
    }
    let elements = take(values, &UInt32Array::from(places), None)?;
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(field, offsets, elements, None)?))
}

/// The numbers of an array in a row.
fn numbers(arrays: &ArrayRef, row: usize) -> Result<Vec<i64>> {
    let lists = arrays.as_list_opt::<i32>();
    let Some(lists) = lists.filter(|lists| lists.is_valid(row)) else {
        return Err(wrong("22004", "dimension array or low bound array cannot be null"));
    };
    let all = cast(&lists.value(row), &DataType::Int64)?;
    let all = all.as_primitive::<Int64Type>().iter().collect::<Option<Vec<i64>>>();
    all.ok_or_else(|| wrong("22004", "dimension values cannot be null"))
}

/// The number of elements of an array of these dimensions.
fn length_of(sizes: &[i64], bounds: Option<&[i64]>) -> Result<usize> {
    if DIMENSIONS_MAX < sizes.len() {
        let words = format!(
            "number of array dimensions ({}) exceeds the maximum allowed ({DIMENSIONS_MAX})",
            sizes.len()
        );
        return Err(wrong("54000", words));
    }
    if bounds.is_some_and(|bounds| bounds.len() != sizes.len()) {
        return Err(wrong("2202E", "wrong number of array subscripts"));
    }
    if sizes.iter().any(|size| !(0..=ELEMENTS_MAX).contains(size)) {
        let words = format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})");
        return Err(wrong("54000", words));
    }
    if sizes.contains(&0) {
        return Ok(0);
    }
    match (sizes, bounds) {
        ([], _) => Ok(0),
        ([size], None | Some([1])) => {
            usize::try_from(*size).map_err(|_| wrong("54000", "array size"))
        }
        _ => Err(wrong(
            "0A000",
            "arrays of several dimensions, or that begin elsewhere, are not known here",
        )),
    }
}
