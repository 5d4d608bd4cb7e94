//! Joins that end with their statement. A join tries its condition on the product of two batches, and on the next
//! product while no pair fits, without yielding in between: so the condition itself checks for cancellation.

use crate::types::runtime::cancellation;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, HashJoinExecBuilder, NestedLoopJoinExec, NestedLoopJoinExecBuilder,
};
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A join whose condition checks for cancellation; other steps as they are.
///
/// # Errors
/// Those of the plan.
pub fn cancellable_join(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>()
        && let Some(filter) = join.filter()
    {
        let builder = NestedLoopJoinExecBuilder::from(join);
        return Ok(Arc::new(builder.with_filter(Some(checked(filter))).build()?));
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>()
        && let Some(filter) = join.filter()
    {
        let builder = HashJoinExecBuilder::from(join);
        return Ok(Arc::new(builder.with_filter(Some(checked(filter))).build()?));
    }
    Ok(plan)
}

fn checked(filter: &JoinFilter) -> JoinFilter {
    let inner = filter.expression().clone();
    let expression = Arc::new(CheckedCondition { inner });
    JoinFilter::new(expression, filter.column_indices().to_vec(), filter.schema().clone())
}

/// A condition that fails once its statement is cancelled.
#[derive(Debug)]
struct CheckedCondition {
    inner: Arc<dyn PhysicalExpr>,
}

impl PartialEq for CheckedCondition {
    fn eq(&self, other: &CheckedCondition) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for CheckedCondition {}

impl Hash for CheckedCondition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl fmt::Display for CheckedCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PhysicalExpr for CheckedCondition {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.inner.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.inner.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.inner.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        cancellation::check()?;
        self.inner.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match children.into_iter().next() {
            Some(inner) => Ok(Arc::new(CheckedCondition { inner })),
            None => internal_err!("a condition of nothing"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::error::SqlError;
    use crate::types::runtime::statement_scope::StatementScope;
    use datafusion::physical_plan::expressions::lit;

    #[test]
    fn the_condition_of_a_cancelled_join_fails() {
        let condition = CheckedCondition { inner: lit(true) };
        let batch = RecordBatch::new_empty(Arc::new(Schema::empty()));
        assert!(condition.evaluate(&batch).is_ok());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let scope = StatementScope::default();
        let cancellation = scope.cancellation.clone();
        runtime.block_on(scope.run(async {
            assert!(condition.evaluate(&batch).is_ok());
            cancellation.cancel();
            let error = SqlError::from(condition.evaluate(&batch).unwrap_err());
            assert_eq!(error.code, "57014");
        }));
    }
}
