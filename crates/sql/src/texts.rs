//! `||` of texts, and of what has a text.

use crate::bounded::{Growth, bounded};
use crate::shown;
use datafusion::arrow::array::{ArrayRef, AsArray as _, StringViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

/// The function that `||` is.
pub static JOINED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(2, Volatility::Immutable);
    let plain = Arc::new(ScalarUDF::from(Joined { signature }));
    Arc::new(bounded(plain, Growth::Times(1)))
});

#[derive(Debug, PartialEq, Eq, Hash)]
struct Joined {
    signature: Signature,
}

impl ScalarUDFImpl for Joined {
    fn name(&self) -> &str {
        "textcat"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|one| matches!(one, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let [left, right] = args.args.as_slice() else { return plan_err!("|| takes two sides") };
        let (left, right) = (text_of(&left.to_array(rows)?)?, text_of(&right.to_array(rows)?)?);
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
        let made: ArrayRef = Arc::new(out.finish());
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&made, 0)?),
            false => ColumnarValue::Array(made),
        })
    }
}

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
