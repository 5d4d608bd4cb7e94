//! Casts of `jsonb` to numbers and booleans: of its numbers and booleans alone.

use crate::types::error::SqlError;
use crate::types::function::map_column;
use crate::types::json::json_value::Value;
use crate::types::json::jsonb;
use crate::types::numeric::conversions::column;
use crate::types::numeric::exact_casts::convert;
use crate::types::numeric::value::{NUMERIC, Numeric};
use datafusion::arrow::array::{ArrayRef, AsArray as _, BooleanArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The function that casts to a type; none where PostgreSQL has no such cast.
pub fn cast_to(to: &DataType) -> Option<ScalarUDF> {
    let is_known =
        to.is_integer() || to.is_floating() || *to == NUMERIC || *to == DataType::Boolean;
    let signature = Signature::any(1, Volatility::Immutable);
    is_known.then(|| ScalarUDF::from(JsonbCast { signature, to: to.clone() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonbCast {
    signature: Signature,
    to: DataType,
}

impl JsonbCast {
    fn cast(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let texts = cast(array, &DataType::Utf8View)?;
        let values = texts
            .as_string_view()
            .iter()
            .map(|text| text.map(|text| jsonb::parse(text).unwrap_or_default()));
        if self.to == DataType::Boolean {
            let truth = |value: Value| value.as_bool().ok_or_else(|| self.refuse(&value));
            let made: Result<BooleanArray, SqlError> =
                values.map(|one| one.map(truth).transpose()).collect();
            let made = made.map_err(|error| DataFusionError::External(Box::new(error)))?;
            return Ok(Arc::new(made));
        }
        let number = |value: Value| match &value {
            Value::Number(number) => Numeric::parse(number.text()),
            other => Err(self.refuse(other)),
        };
        convert(&column(values.map(|one| one.map(number)))?, &self.to)
    }

    fn refuse(&self, value: &Value) -> SqlError {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "numeric",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let name = crate::types::postgres_types::type_name(crate::types::postgres_types::of_arrow(
            &self.to,
        ));
        let words = format!("cannot cast jsonb {kind} to type {}", name.unwrap_or_default());
        SqlError::wrong_value(words)
    }
}

impl ScalarUDFImpl for JsonbCast {
    fn name(&self) -> &str {
        "pg_jsonb_cast"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        map_column(&args.args[0], |array| self.cast(array))
    }
}
