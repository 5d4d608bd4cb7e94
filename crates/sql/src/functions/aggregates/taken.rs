//! Which values of a column an aggregate takes.

use datafusion::arrow::array::{Array as _, BooleanArray, PrimitiveArray};
use datafusion::arrow::datatypes::ArrowPrimitiveType;

/// Hands on the values that are there and that a filter lets through, with the rows that they stand in.
pub fn each_taken<T: ArrowPrimitiveType>(
    values: &PrimitiveArray<T>,
    filter: Option<&BooleanArray>,
    mut take: impl FnMut(usize, T::Native),
) {
    for (row, value) in values.iter().enumerate() {
        // What is not known is not taken.
        let is_taken = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        if let Some(value) = value.filter(|_| is_taken) {
            take(row, value);
        }
    }
}
