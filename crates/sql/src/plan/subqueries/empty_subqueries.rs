//! Subqueries that are values: NULL where they have no row. DataFusion believes a column that is never NULL within to be
//! so outside, too, as a constant.

use crate::types::special_fields::TYPE_KEY;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Subquery, Volatility,
};
use std::sync::{Arc, LazyLock};

static NULLABLE: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(Nullable { signature: signature() })));

/// Returns the signature. The function counts as volatile: constant folding would make a value of it that is never NULL.
fn signature() -> Signature {
    Signature::any(1, Volatility::Volatile)
}

/// Its argument, which may be NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Nullable {
    signature: Signature,
}

impl ScalarUDFImpl for Nullable {
    fn name(&self) -> &'static str {
        "pg_nullable"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the field says it")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = &args.arg_fields[0];
        let mut made = Field::new("value", field.data_type().clone(), true);
        if let Some(name) = field.metadata().get(TYPE_KEY) {
            made = made.with_metadata([(TYPE_KEY.to_string(), name.clone())].into());
        }
        Ok(Arc::new(made))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args.swap_remove(0))
    }
}

/// Whether a query has a row always.
fn has_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => has_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_row(&alias.input),
        LogicalPlan::Aggregate(groups) => groups.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        _ => false,
    }
}

/// A subquery of no outer columns whose value may be NULL; none where it need not change.
///
/// # Errors
/// Returns errors of the planner.
pub fn nullable(subquery: &Subquery) -> Result<Option<Subquery>> {
    let plan = &subquery.subquery;
    let is_null = plan.schema().fields().first().is_none_or(|field| field.is_nullable());
    if is_null || !subquery.outer_ref_columns.is_empty() || has_row(plan) {
        return Ok(None);
    }
    let columns = plan.schema().iter().map(|(table, field)| {
        let column = Expr::from((table, field));
        NULLABLE.call(vec![column]).alias_qualified(table.cloned(), field.name())
    });
    let columns: Vec<Expr> = columns.collect();
    let made = LogicalPlanBuilder::from(plan.as_ref().clone()).project(columns)?.build()?;
    Ok(Some(subquery.with_plan(Arc::new(made))))
}
