//! Arrays as PostgreSQL has them.

use crate::types::function::function;
use datafusion::arrow::array::{Array as _, AsArray as _, ListArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::sync::Arc;

/// What `ARRAY(query)` is of what the query gathers: of nothing it is an array of none, where an
/// aggregate says null.
pub fn no_null_array() -> ScalarUDF {
    let signature = Signature::any(1, Volatility::Immutable);
    let same = |types: &[DataType]| types.first().cloned().unwrap_or(DataType::Null);
    function(NO_NULL_ARRAY, signature, same, |args, _| {
        let array = &args[0];
        Ok(match array.data_type() {
            DataType::List(_) => {
                // What is null takes no place among the values.
                let (field, offsets, values, _) = array.as_list::<i32>().clone().into_parts();
                Arc::new(ListArray::try_new(field, offsets, values, None)?)
            }
            _ => array.clone(),
        })
    })
}

/// What makes an array of nothing out of none.
pub const NO_NULL_ARRAY: &str = "array_of_query";

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ArrayRef, Int64Builder, ListBuilder};
    use datafusion::arrow::datatypes::Field;
    use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

    #[test]
    fn null_is_an_array_of_none() {
        let mut lists = ListBuilder::new(Int64Builder::new());
        lists.append_value([Some(1), None]);
        lists.append_null();
        let lists: ArrayRef = Arc::new(lists.finish());
        let field = Arc::new(Field::new("a", lists.data_type().clone(), true));
        let args = ScalarFunctionArgs {
            args: vec![ColumnarValue::Array(lists)],
            arg_fields: vec![field.clone()],
            number_rows: 2,
            return_field: field,
            config_options: Arc::default(),
        };
        let made = no_null_array().invoke_with_args(args).unwrap().to_array(2).unwrap();
        let made = made.as_list::<i32>();
        assert_eq!((made.null_count(), made.value_length(0), made.value_length(1)), (0, 2, 0));
    }
}
