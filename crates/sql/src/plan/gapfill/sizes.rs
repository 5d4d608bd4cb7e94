//! Bytes that rows take where they are copied.

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _};
use datafusion::arrow::datatypes::DataType;

/// What a value takes beside what it is made of.
const VALUE_SIZE: usize = 16;

/// The type that a column has in rows that are made: texts are looked at where they are, so that one
/// that stands in many rows is there once.
pub fn shared(of: &DataType) -> DataType {
    match of {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        other => other.clone(),
    }
}

/// The bytes of a copy of a value.
pub fn size_of(array: &ArrayRef, row: usize) -> usize {
    if array.is_null(row) {
        return VALUE_SIZE;
    }
    let of_all = |values: &ArrayRef| match is_even(values.data_type()) {
        true => values.len() * VALUE_SIZE,
        false => (0..values.len()).map(|at| size_of(values, at)).sum(),
    };
    VALUE_SIZE
        + match array.data_type() {
            DataType::Utf8 => array.as_string::<i32>().value(row).len(),
            DataType::LargeUtf8 => array.as_string::<i64>().value(row).len(),
            DataType::Binary => array.as_binary::<i32>().value(row).len(),
            DataType::LargeBinary => array.as_binary::<i64>().value(row).len(),
            DataType::List(_) => of_all(&array.as_list::<i32>().value(row)),
            DataType::LargeList(_) => of_all(&array.as_list::<i64>().value(row)),
            DataType::FixedSizeList(..) => of_all(&array.as_fixed_size_list().value(row)),
            DataType::Struct(_) => {
                array.as_struct().columns().iter().map(|column| size_of(column, row)).sum()
            }
            _ => 0,
        }
}

/// Whether all values of a type take the same.
fn is_even(of: &DataType) -> bool {
    of.is_primitive() || matches!(of, DataType::Boolean | DataType::Utf8View | DataType::BinaryView)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Int64Array, StringArray, StructArray};
    use datafusion::arrow::datatypes::Field;
    use datafusion::common::utils::SingleRowListArrayBuilder;
    use std::sync::Arc;

    #[test]
    fn what_is_in_a_value_counts() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("x".repeat(100)), None]));
        let list = |of: &ArrayRef| -> ArrayRef {
            Arc::new(SingleRowListArrayBuilder::new(of.clone()).build_list_array())
        };
        assert_eq!((size_of(&numbers, 0), size_of(&texts, 0), size_of(&texts, 1)), (16, 116, 16));
        assert_eq!((size_of(&list(&numbers), 0), size_of(&list(&texts), 0)), (64, 148));
        let field =
            |name: &str, of: &ArrayRef| Arc::new(Field::new(name, of.data_type().clone(), true));
        let both = vec![
            (field("a", &list(&numbers)), list(&numbers)),
            (field("b", &list(&texts)), list(&texts)),
        ];
        let both: ArrayRef = Arc::new(StructArray::from(both));
        assert_eq!(size_of(&both, 0), 16 + 64 + 148);
    }
}
