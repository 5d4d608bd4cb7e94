//! Columns of outer queries in a subquery, those in queries within it too.
//!
//! An outer reference has no depth: as the planner, it belongs to the nearest query that has its column.

use crate::types::error::SqlError;
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DataFusionError, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Subquery, SubqueryAlias};
use std::sync::Arc;

/// The columns of outer queries that a subquery names.
///
/// # Errors
/// Returns errors of the planner.
pub fn outer_columns(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    collect(plan, &mut Vec::new(), &mut |column: &Column| {
        if !columns.contains(column) {
            columns.push(column.clone());
        }
    })?;
    Ok(columns)
}

/// The schema that queries within the expressions of a node see.
pub fn visible(node: &LogicalPlan) -> DFSchema {
    merge_schema(&node.inputs())
}

/// The query within an expression.
pub fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::Exists(exists) => Some(&exists.subquery),
        Expr::InSubquery(list) => Some(&list.subquery),
        Expr::SetComparison(compared) => Some(&compared.subquery),
        _ => None,
    }
}

/// The query of LATERAL that an input of a join is.
pub fn lateral_of(plan: &LogicalPlan) -> Option<&Subquery> {
    match plan {
        LogicalPlan::Subquery(subquery) => Some(subquery),
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => lateral_of(input),
        _ => None,
    }
}

fn collect(
    plan: &LogicalPlan,
    nearer: &mut Vec<DFSchema>,
    take: &mut dyn FnMut(&Column),
) -> Result<()> {
    plan.visit_expressions(|expr| {
        expr.apply(|expr| {
            if let Expr::OuterReferenceColumn(_, column) = expr
                && !nearer.iter().any(|schema| schema.has_column(column))
            {
                take(column);
            }
            if let Some(subquery) = subquery_of(expr) {
                nearer.push(visible(plan));
                let done = collect(&subquery.subquery, nearer, take);
                nearer.pop();
                done?;
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    for (at, input) in plan.inputs().into_iter().enumerate() {
        match plan {
            LogicalPlan::Join(join) if at == 1 && lateral_of(input).is_some() => {
                nearer.push((*join.left.schema()).as_ref().clone());
                let done = collect(input, nearer, take);
                nearer.pop();
                done?;
            }
            _ => collect(input, nearer, take)?,
        }
    }
    Ok(())
}

/// A query within another one, whose outer columns are called otherwise.
///
/// # Errors
/// Returns errors of the planner.
pub fn renamed(subquery: Subquery, names: Names<'_>, seen: DFSchema) -> Result<Subquery> {
    let plan = rename(Arc::unwrap_or_clone(subquery.subquery), names, &mut vec![seen])?;
    with_outer_columns(Subquery { subquery: Arc::new(plan), ..subquery })
}

/// The new name of a column of outside; none if it stays.
pub type Names<'a> = &'a dyn Fn(&Column) -> Option<Column>;

/// A query that knows the columns of outside that it names.
fn with_outer_columns(subquery: Subquery) -> Result<Subquery> {
    let mut columns = Vec::new();
    subquery.subquery.visit_plans(|node| {
        node.visit_expressions(|expr| {
            expr.apply(|expr| {
                if matches!(expr, Expr::OuterReferenceColumn(..)) && !columns.contains(expr) {
                    columns.push(expr.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    let named = outer_columns(&subquery.subquery)?;
    columns.retain(|expr| match expr {
        Expr::OuterReferenceColumn(_, column) => named.contains(column),
        _ => false,
    });
    Ok(Subquery { outer_ref_columns: columns, ..subquery })
}

/// An expression with the query within it changed.
pub fn map_subquery(
    expr: Expr,
    change: impl FnOnce(Subquery) -> Result<Subquery>,
) -> Result<Transformed<Expr>> {
    use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
    Ok(Transformed::yes(match expr {
        Expr::ScalarSubquery(subquery) => Expr::ScalarSubquery(change(subquery)?),
        Expr::Exists(Exists { subquery, negated }) => {
            Expr::Exists(Exists { subquery: change(subquery)?, negated })
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            Expr::InSubquery(InSubquery { expr, subquery: change(subquery)?, negated })
        }
        Expr::SetComparison(compared) => {
            let subquery = change(compared.subquery)?;
            Expr::SetComparison(SetComparison { subquery, ..compared })
        }
        other => return Ok(Transformed::no(other)),
    }))
}

fn rename(plan: LogicalPlan, names: Names<'_>, nearer: &mut Vec<DFSchema>) -> Result<LogicalPlan> {
    let plan = match plan {
        LogicalPlan::Join(join) if lateral_of(&join.right).is_some() => {
            let Join { left, right, .. } = &join;
            let left = rename(LogicalPlan::clone(left), names, nearer)?;
            nearer.push((*join.left.schema()).as_ref().clone());
            let right = rename(LogicalPlan::clone(right), names, nearer);
            nearer.pop();
            let exprs = LogicalPlan::Join(join.clone()).expressions();
            LogicalPlan::Join(join).with_new_exprs(exprs, vec![left, right?])?
        }
        LogicalPlan::Subquery(subquery) => {
            let plan = rename(Arc::unwrap_or_clone(subquery.subquery), names, nearer)?;
            let subquery = Subquery { subquery: Arc::new(plan), ..subquery };
            return with_outer_columns(subquery).map(LogicalPlan::Subquery);
        }
        other => {
            other.map_children(|child| rename(child, names, nearer).map(Transformed::yes)).data()?
        }
    };
    let (seen, saver) = (visible(&plan), NamePreserver::new(&plan));
    plan.transform_expressions(|expr| {
        let name = saver.save(&expr);
        let made = expr.transform_down(|expr| match expr {
            Expr::OuterReferenceColumn(field, column)
                if !nearer.iter().any(|schema| schema.has_column(&column)) =>
            {
                let column = names(&column).unwrap_or(column);
                Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
            }
            expr if subquery_of(&expr).is_some() => map_subquery(expr, |subquery| {
                nearer.push(seen.clone());
                let made = rename(Arc::unwrap_or_clone(subquery.subquery), names, nearer);
                nearer.pop();
                with_outer_columns(Subquery { subquery: Arc::new(made?), ..subquery })
            }),
            other => Ok(Transformed::no(other)),
        })?;
        Ok(made.update_data(|expr| name.restore(expr)))
    })
    .data()
}

/// A refusal of a subquery, as an error of DataFusion.
pub(crate) fn refused(words: &str) -> DataFusionError {
    let hint =
        "Join the outer table within the subquery, or compute the rows in WITH or FROM first.";
    DataFusionError::External(Box::new(SqlError::unsupported(words).with_hint(hint)))
}

/// A column by its place in a schema.
pub(crate) fn columns_of(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}
