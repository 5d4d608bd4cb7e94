//! `||` of texts, and of what has a text.

use crate::functions::bounded::{Growth, bounded};
use crate::types::function::function;
use crate::types::text::shown;
use datafusion::arrow::array::{ArrayRef, AsArray as _, StringViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::sync::{Arc, LazyLock};

/// The function that `||` is.
pub static JOINED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(2, Volatility::Immutable);
    let plain = function(
        "textcat",
        signature,
        |_| DataType::Utf8View,
        |args, rows| {
            let (left, right) = (text_of(&args[0])?, text_of(&args[1])?);
            let (left, right) = (left.as_string_view(), right.as_string_view());
            let (mut out, mut whole) = (StringViewBuilder::with_capacity(rows), String::new());
            for pair in left.iter().zip(right) {
                let (Some(left), Some(right)) = pair else {
                    out.append_null();
                    continue;
                };
                whole.clear();
                whole.push_str(left);
                whole.push_str(right);
                out.append_value(&whole);
            }
            Ok(Arc::new(out.finish()))
        },
    );
    Arc::new(bounded(Arc::new(plain), Growth::Times(1)))
});

/// A column as the texts that PostgreSQL shows.
fn text_of(array: &ArrayRef) -> Result<ArrayRef> {
    if matches!(array.data_type(), DataType::List(_)) {
        return plan_err!("operator does not exist: {} || text", array.data_type());
    }
    match shown::column(array) {
        Some(shown) => Ok(shown),
        None => Ok(cast(array, &DataType::Utf8View)?),
    }
}
