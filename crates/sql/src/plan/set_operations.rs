//! `EXCEPT ALL` and `INTERSECT ALL`: of alike rows there are as many more, or as many, as on the other side. DataFusion
//! makes joins of them, which leave out all or none of those that are alike. So alike rows are numbered, and joined by
//! their numbers, too:
//!
//! ```text
//! left 1, 1, 2   becomes   1 #1, 1 #2, 2 #1   without   1 #1   is   1, 2
//! right 1                  1 #1
//! ```

use crate::types::traversal::PlanTraversal as _;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, NullEquality, Result};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt as _, Join, JoinType, LogicalPlan, LogicalPlanBuilder,
};
use std::sync::Arc;

/// Names that no statement can write.
const LEFT: &str = "\0nth";
const RIGHT: &str = "\0nth of the right";

/// A plan whose set operations count rows.
///
/// # Errors
/// Those of the plan.
pub fn counted(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_plans_up(|node| match node {
        LogicalPlan::Join(join) if counts(&join) => by_number(join).map(Transformed::yes),
        other => Ok(Transformed::no(other)),
    });
    Ok(changed?.data)
}

/// Whether a join is such an operation; those of statements let no NULL be another. Where each row is there once
/// nothing needs to be counted.
fn counts(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftAnti | JoinType::LeftSemi)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.on.len() == join.left.schema().fields().len()
        && !matches!(*join.left, LogicalPlan::Distinct(Distinct::All(_)))
}

fn by_number(join: Join) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = join.left.schema().iter().map(Expr::from).collect();
    let mut on = join.on;
    on.push((Expr::Column(Column::from_name(LEFT)), Expr::Column(Column::from_name(RIGHT))));
    let made = Join::try_new(
        numbered(&join.left, LEFT)?,
        numbered(&join.right, RIGHT)?,
        on,
        join.filter,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    LogicalPlanBuilder::from(LogicalPlan::Join(made)).project(columns)?.build()
}

/// Rows with their numbers among those that are alike.
fn numbered(rows: &Arc<LogicalPlan>, name: &str) -> Result<Arc<LogicalPlan>> {
    let columns: Vec<Expr> = rows.schema().iter().map(Expr::from).collect();
    let number = row_number().partition_by(columns).build()?.alias(name);
    LogicalPlanBuilder::from(rows.clone()).window([number])?.build().map(Arc::new)
}
