//! `pg_sleep`: a statement waits, on no thread, and may be cancelled and timed out meanwhile.

use async_trait::async_trait;
use datafusion::arrow::array::{Array as _, AsArray as _, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use std::time::Duration;

/// The longest that anybody waits: statements end before.
const SECONDS_MAX: f64 = 86_400.0 * 365.0;

/// The function.
pub fn pg_sleep() -> ScalarUDF {
    let signature = Signature::any(1, Volatility::Volatile);
    AsyncScalarUDF::new(Arc::new(Sleep { signature })).into_scalar_udf()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sleep {
    signature: Signature,
}

impl ScalarUDFImpl for Sleep {
    fn name(&self) -> &str {
        "pg_sleep"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// `void`, which clients show as an empty text.
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        datafusion::common::internal_err!("it waits, and is not called otherwise")
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Sleep {
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let seconds = cast(&args.args[0].to_array(rows)?, &DataType::Float64)?;
        let seconds = seconds.as_primitive::<Float64Type>().clone();
        // Row by row, as PostgreSQL does.
        for one in seconds.iter().flatten() {
            let seconds = if one.is_nan() { 0.0 } else { one.clamp(0.0, SECONDS_MAX) };
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        }
        let made: StringViewArray =
            (0..rows).map(|row| seconds.is_valid(row).then_some("")).collect();
        Ok(ColumnarValue::Array(Arc::new(made)))
    }
}
