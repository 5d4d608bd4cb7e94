//! The check that a scalar subquery has one row.

use crate::types::error::SqlError;
use crate::types::function::function;
use datafusion::arrow::array::{ArrayRef, AsArray as _, BooleanArray};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::sync::{Arc, LazyLock};

/// True of counts up to 1; `21000` for others.
pub static CHECK: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(function(
        "pg_one_row",
        signature,
        |_| DataType::Boolean,
        |args, rows| {
            if args[0].as_primitive::<Int64Type>().iter().flatten().any(|count| 1 < count) {
                let words = "more than one row returned by a subquery used as an expression";
                return Err(DataFusionError::External(Box::new(SqlError::new("21000", words))));
            }
            Ok(Arc::new(BooleanArray::from(vec![true; rows])) as ArrayRef)
        },
    ))
});
