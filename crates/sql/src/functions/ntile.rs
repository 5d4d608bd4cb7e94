//! `ntile`, whose result is an `integer` to PostgreSQL's clients.

use crate::types::error::SqlError;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, WindowUDF, WindowUDFImpl};
use datafusion::prelude::SessionContext;
use std::sync::Arc;

/// Gives it the type that PostgreSQL has.
pub fn register(context: &SessionContext) {
    let inner = context.state().window_functions().get("ntile").cloned();
    if let Some(inner) = inner {
        context.register_udwf(WindowUDF::from(Ntile { inner }));
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Ntile {
    inner: Arc<WindowUDF>,
}

impl WindowUDFImpl for Ntile {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs<'_>,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        let inner = self.inner.partition_evaluator_factory(args).map_err(|_| {
            let words = "argument of ntile must be greater than zero";
            DataFusionError::External(Box::new(SqlError::new("22014", words)))
        })?;
        Ok(Box::new(Numbers(inner)))
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(args.name(), DataType::Int32, false)))
    }
}

#[derive(Debug)]
struct Numbers(Box<dyn PartitionEvaluator>);

impl PartitionEvaluator for Numbers {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        Ok(cast(&self.0.evaluate_all(values, rows)?, &DataType::Int32)?)
    }
}
