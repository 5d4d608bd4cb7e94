//! The order of arrays (<https://www.postgresql.org/docs/15/functions-array.html>): by their elements, then
//! by their length. NULL is the largest element.
//!
//! A key of bytes has the order: it is what is sorted and compared.

use crate::functions::arrays::null_arrays::comparable;
use crate::types::function::function;
use datafusion::arrow::array::{Array as _, ArrayRef, BinaryArray};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, ExprSchemable as _, ScalarUDF, Signature, Volatility};
use std::sync::{Arc, LazyLock};

/// Returns sort keys of arrays: bytes that order as PostgreSQL orders the arrays.
pub static ARRAY_ORDER: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(function("pg_array_order", signature, |_| DataType::Binary, |args, _| keys(&args[0])))
});

fn keys(arrays: &ArrayRef) -> Result<ArrayRef> {
    let arrays = &comparable(arrays)?;
    let options = SortOptions { descending: false, nulls_first: false };
    let field = SortField::new_with_options(arrays.data_type().clone(), options);
    let rows = RowConverter::new(vec![field])?.convert_columns(std::slice::from_ref(arrays))?;
    let keys =
        rows.iter().enumerate().map(|(at, row)| arrays.is_valid(at).then(|| row.data().to_vec()));
    Ok(Arc::new(keys.collect::<BinaryArray>()))
}

/// Whether an expression is an array of one dimension.
pub fn is_array(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::List(of)) if !of.data_type().is_nested())
}

/// Whether all expressions are arrays of one type.
pub fn are_arrays(exprs: &[Expr], schema: &DFSchema) -> bool {
    let types = exprs.iter().map(|one| one.get_type(schema).ok());
    let first = exprs.first().and_then(|one| one.get_type(schema).ok());
    exprs.iter().all(|one| is_array(one, schema)) && types.into_iter().all(|one| one == first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{AsArray as _, ListArray};
    use datafusion::arrow::datatypes::Int32Type;

    #[test]
    fn null_is_the_largest_element_and_a_beginning_is_less() {
        let ordered = [
            vec![],
            vec![Some(-1)],
            vec![Some(1)],
            vec![Some(1), Some(2)],
            vec![Some(1), None],
            vec![Some(2)],
            vec![None],
            vec![None, Some(0)],
        ];
        let all = ordered.into_iter().map(Some).chain([None]);
        let arrays = ListArray::from_iter_primitive::<Int32Type, _, _>(all);
        let made = keys(&(Arc::new(arrays) as ArrayRef)).unwrap();
        let made: Vec<Option<&[u8]>> = made.as_binary::<i32>().iter().collect();
        assert_eq!(made.last(), Some(&None));
        assert!(made[..8].windows(2).all(|pair| pair[0] < pair[1]), "{made:?}");
    }
}
