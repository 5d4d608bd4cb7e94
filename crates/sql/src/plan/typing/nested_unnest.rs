//! `unnest` of an array of arrays: PostgreSQL returns a row for each element of the inner arrays
//! (<https://www.postgresql.org/docs/15/functions-array.html>), DataFusion one for each inner array.

use crate::functions::text::regexps::MATCHES;
use crate::types::function::function;
use crate::types::traversal::Traversal as _;
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, ListArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, ExprSchema as _, Result};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, ScalarUDF, Signature, Unnest, Volatility,
};
use std::sync::{Arc, LazyLock};

static FLATTEN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    let inner = |types: &[DataType]| match types.first() {
        Some(DataType::List(of)) => of.data_type().clone(),
        _ => DataType::Null,
    };
    Arc::new(function("pg_flatten", signature, inner, |args, _| flatten(&args[0])))
});

/// The inner arrays of each array as one.
fn flatten(array: &ArrayRef) -> Result<ArrayRef> {
    let outer = array.as_list::<i32>();
    let (field, inner_offsets, values, _) = outer.values().as_list::<i32>().clone().into_parts();
    let offsets = outer.offsets().iter().map(|at| inner_offsets[usize::try_from(*at).unwrap_or(0)]);
    let offsets = OffsetBuffer::new(offsets.collect());
    Ok(Arc::new(ListArray::try_new(field, offsets, values, outer.nulls().cloned())?))
}

fn is_nested(ty: &DataType) -> bool {
    matches!(ty, DataType::List(of) if matches!(of.data_type(), DataType::List(_)))
}

/// Whether a column has the rows of a function that returns a set of arrays.
fn are_rows(plan: &LogicalPlan, column: &Column) -> bool {
    let LogicalPlan::Projection(made) = plan else { return false };
    let Some(at) = made.schema.maybe_index_of_column(column) else { return false };
    made.expr[at]
        .exists(|one| {
            Ok(matches!(one, Expr::ScalarFunction(called) if called.func.name() == MATCHES))
        })
        .unwrap_or(true)
}

/// Flattens the arrays of arrays below a step that makes rows of arrays.
///
/// # Errors
/// Returns errors of the planner.
pub fn unnest_elements(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Unnest(unnest) = &node else { return Ok(Transformed::no(node)) };
    let schema = unnest.input.schema();
    let is_flat = |column: &Column| {
        let is_one = schema.field_from_column(column).is_ok_and(|of| !is_nested(of.data_type()));
        is_one || are_rows(&unnest.input, column)
    };
    if unnest.exec_columns.iter().all(is_flat) {
        return Ok(Transformed::no(node));
    }
    let columns = schema.iter().map(|(table, field)| {
        let column = Column::from((table, field));
        if !unnest.exec_columns.contains(&column) || is_flat(&column) {
            return Expr::Column(column);
        }
        let flat = FLATTEN.call(vec![Expr::Column(column)]);
        flat.alias_qualified(table.cloned(), field.name())
    });
    let columns: Vec<Expr> = columns.collect();
    let input =
        LogicalPlanBuilder::from(unnest.input.as_ref().clone()).project(columns)?.build()?;
    let made =
        Unnest::try_new(Arc::new(input), unnest.exec_columns.clone(), unnest.options.clone())?;
    // Arrays of arrays of arrays have another step.
    unnest_elements(LogicalPlan::Unnest(made)).map(|made| Transformed::yes(made.data))
}
