//! `array_position` and `array_positions` of a NULL without a type, as in `array_position(NULL, 1)`: NULL, as in
//! PostgreSQL. DataFusion fails.

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::prelude::SessionContext;
use std::sync::Arc;

const FUNCTIONS: [&str; 2] = ["array_position", "array_positions"];

/// Replaces the functions of a session.
pub fn register(context: &SessionContext) {
    let known = context.state();
    for inner in FUNCTIONS.iter().filter_map(|name| known.scalar_functions().get(*name)) {
        context.register_udf(ScalarUDF::from(NullArray { inner: inner.clone() }));
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NullArray {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for NullArray {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.first() {
            Some(array) if array.data_type() == DataType::Null => {
                let null = ScalarValue::try_from(args.return_field.data_type())?;
                Ok(ColumnarValue::Scalar(null))
            }
            _ => self.inner.invoke_with_args(args),
        }
    }
}
