//! `chr(number)`: the character of a number, which PostgreSQL has none of for zero and for half of a pair.

use crate::types::error::SqlError;
use crate::types::function::function;
use datafusion::arrow::array::{ArrayRef, AsArray as _, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::sync::Arc;

/// The function.
pub fn chr() -> ScalarUDF {
    let signature = Signature::any(1, Volatility::Immutable);
    function(
        "chr",
        signature,
        |_| DataType::Utf8View,
        |args, _| {
            let numbers = cast(&args[0], &DataType::Int64)?;
            let each = |number: Option<i64>| number.map(character).transpose();
            let all: Result<StringViewArray> =
                numbers.as_primitive::<Int64Type>().iter().map(each).collect();
            Ok(Arc::new(all?) as ArrayRef)
        },
    )
}

fn character(number: i64) -> Result<String> {
    let wrong =
        |code, words: String| DataFusionError::External(Box::new(SqlError::new(code, words)));
    match u32::try_from(number) {
        Err(_) if number < 0 => Err(wrong("22023", "character number must be positive".into())),
        Ok(0) => Err(wrong("54000", "null character not permitted".into())),
        Ok(code) if 0x10FFFF < code => {
            Err(wrong("54000", format!("requested character too large for encoding: {code}")))
        }
        Ok(code) => char::from_u32(code).map(String::from).ok_or_else(|| {
            wrong("54000", format!("requested character not valid for encoding: {code}"))
        }),
        Err(_) => {
            Err(wrong("54000", format!("requested character too large for encoding: {number}")))
        }
    }
}
