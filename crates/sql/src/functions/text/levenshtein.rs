//! `levenshtein` of texts as long as PostgreSQL's may be: its time grows with the product of both lengths.

use crate::types::error::SqlError;
use crate::types::function::function;
use crate::types::runtime::cancellation;
use datafusion::arrow::array::{ArrayRef, AsArray as _, Int32Builder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::utils::datafusion_strsim;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::sync::Arc;

/// Characters of an argument. PostgreSQL has the same limit.
const LENGTH_MAX: usize = 255;

/// The function.
pub fn levenshtein() -> ScalarUDF {
    let signature = Signature::any(2, Volatility::Immutable);
    function("levenshtein", signature, |_| DataType::Int32, distances)
}

fn distances(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let texts = |array: &ArrayRef| cast(array, &DataType::Utf8View);
    let (left, right) = (texts(&args[0])?, texts(&args[1])?);
    let (mut out, mut buffer) = (Int32Builder::with_capacity(rows), Vec::new());
    for pair in left.as_string_view().iter().zip(right.as_string_view()) {
        cancellation::check()?;
        let (Some(left), Some(right)) = pair else {
            out.append_null();
            continue;
        };
        if [left, right].iter().any(|text| text.chars().nth(LENGTH_MAX).is_some()) {
            let words =
                format!("levenshtein argument exceeds maximum length of {LENGTH_MAX} characters");
            return Err(DataFusionError::External(Box::new(SqlError::wrong_value(words))));
        }
        let distance = datafusion_strsim::levenshtein_with_buffer(left, right, &mut buffer);
        out.append_value(i32::try_from(distance).unwrap_or(i32::MAX));
    }
    Ok(Arc::new(out.finish()))
}
