//! `now()`: when the statement began, in microseconds as PostgreSQL has it. DataFusion's own counts
//! nanoseconds, which end with the year 2262 and begin with 1677, so that a thousand years ago was an error.

use crate::types::time::zones::ZONE;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The function.
pub fn now() -> ScalarUDF {
    let aliases = vec!["current_timestamp".to_string()];
    ScalarUDF::from(Now { signature: Signature::nullary(Volatility::Stable), aliases })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Now {
    signature: Signature,
    aliases: Vec<String>,
}

impl ScalarUDFImpl for Now {
    fn name(&self) -> &'static str {
        "now"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into())))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("now() is a time before anything runs")
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let Some(began) = info.query_execution_start_time() else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        let micros = began.timestamp_micros();
        let value = ScalarValue::TimestampMicrosecond(Some(micros), Some(ZONE.into()));
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(value, None)))
    }
}
