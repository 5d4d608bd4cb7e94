//! `is_stale_marker(value)` and `is_normal_nan(value)`: what kind of NaN a value is. Rows are never
//! marks of a series' end, and SQL knows one NaN, so that the first is true of no row here.

use datafusion::arrow::array::{AsArray as _, BooleanArray};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use model::is_stale_marker;
use std::sync::Arc;

const STALE: &str = "is_stale_marker";
const NORMAL: &str = "is_normal_nan";

/// Both.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    [STALE, NORMAL].into_iter().map(|name| {
        let signature = Signature::exact(vec![DataType::Float64], Volatility::Immutable);
        ScalarUDF::from(Function { name, signature })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let holds = |value: f64| match self.name {
            STALE => is_stale_marker(value),
            _ => value.is_nan() && !is_stale_marker(value),
        };
        let values = arrays.iter().flat_map(|array| array.as_primitive::<Float64Type>());
        let made: BooleanArray = values.map(|value| value.map(holds)).collect();
        Ok(ColumnarValue::Array(Arc::new(made)))
    }
}
