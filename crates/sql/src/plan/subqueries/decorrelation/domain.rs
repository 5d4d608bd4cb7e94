//! The domain of a correlated subquery: the distinct combinations of the outer columns that it names.

use crate::plan::subqueries::decorrelation::outer::{outer_columns, refused, subquery_of};
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema as _, JoinType, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit, when};
use std::sync::Arc;

/// Outer rows, and the columns of them that a subquery names.
pub struct Domain {
    /// The rows that the outer query has, or more.
    rows: LogicalPlan,
    /// The columns, as the outer query calls them.
    pub columns: Vec<Column>,
}

impl Domain {
    /// # Errors
    /// `0A000` where a second reading of the rows may have others.
    pub fn new(input: &LogicalPlan, columns: Vec<Column>) -> Result<Domain> {
        let rows = superset(input)?;
        rows.visit_plans(|node| {
            let is_cut = match node {
                LogicalPlan::Limit(_) => true,
                LogicalPlan::Sort(sort) => sort.fetch.is_some(),
                _ => false,
            };
            if is_cut {
                return Err(refused(
                    "a correlated subquery beside rows that LIMIT picks within a join or a group is not known here",
                ));
            }
            check_volatile(node)
        })?;
        Ok(Domain { rows, columns })
    }

    /// The combinations as rows with these columns.
    ///
    /// # Errors
    /// Returns errors of the planner.
    pub fn plan(&self, names: &[String]) -> Result<LogicalPlan> {
        let named = self.columns.iter().zip(names);
        let named = named.map(|(column, name)| Expr::Column(column.clone()).alias(name));
        LogicalPlanBuilder::from(self.rows.clone()).project(named)?.distinct()?.build()
    }
}

/// Refuses a volatile expression of a node.
///
/// # Errors
/// `0A000` if there is one.
pub fn check_volatile(node: &LogicalPlan) -> Result<TreeNodeRecursion> {
    node.visit_expressions(|expr| match expr.is_volatile() {
        true => Err(refused("a volatile function beside a correlated subquery is not known here")),
        false => Ok(TreeNodeRecursion::Continue),
    })
}

/// The rows of a plan without a LIMIT that may pick others at a second reading.
fn superset(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let inner = match plan {
        LogicalPlan::Limit(limit) => return superset(&limit.input),
        LogicalPlan::Sort(sort) => return superset(&sort.input),
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => true,
        LogicalPlan::Join(join) => join.join_type == JoinType::Inner,
        _ => false,
    };
    match inner {
        true => plan.clone().map_children(|child| superset(&child).map(Transformed::yes)).data(),
        false => Ok(plan.clone()),
    }
}

/// An expression of outside as it is within a subquery.
///
/// # Errors
/// When it has a column that is not there.
pub fn outside(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let changed = expr.transform_up(|expr| match expr {
        Expr::Column(column) => {
            let field = schema.field_from_column(&column)?.clone();
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        other => Ok(Transformed::no(other)),
    });
    changed.data()
}

/// The value of a subquery that reads no table, as an expression of outside.
///
/// # Errors
/// Returns errors of the planner.
pub fn inlined(plan: &LogicalPlan, schema: &DFSchema) -> Result<Option<Expr>> {
    let mut condition = None;
    let mut plan = plan;
    while let LogicalPlan::SubqueryAlias(alias) = plan {
        plan = &alias.input;
    }
    let LogicalPlan::Projection(projection) = plan else { return Ok(None) };
    let [value] = projection.expr.as_slice() else { return Ok(None) };
    let mut below = &projection.input;
    if let LogicalPlan::Filter(filter) = &**below {
        condition = Some(filter.predicate.clone());
        below = &filter.input;
    }
    let is_one = matches!(&**below, LogicalPlan::EmptyRelation(empty) if empty.produce_one_row);
    let has_subquery = |expr: &Expr| expr.exists(|one| Ok(subquery_of(one).is_some()));
    let mut is_plain = is_one && !has_subquery(value)?;
    if let Some(condition) = &condition {
        is_plain &= !has_subquery(condition)?;
    }
    let columns = outer_columns(&Arc::unwrap_or_clone(projection.input.clone()))?;
    if !is_plain || columns.iter().any(|column| !schema.has_column(column)) {
        return Ok(None);
    }
    let value = inward(value.clone().unalias(), schema)?;
    match condition {
        Some(condition) => when(inward(condition, schema)?, value).end().map(Some),
        None => Ok(Some(value)),
    }
}

fn inward(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let made = expr.transform_up(|expr| match expr {
        Expr::OuterReferenceColumn(_, column) if schema.has_column(&column) => {
            Ok(Transformed::yes(Expr::Column(column)))
        }
        other => Ok(Transformed::no(other)),
    });
    made.data()
}

/// The columns of all of a plan, and a marker that is true.
///
/// # Errors
/// Returns errors of the planner.
pub fn marked(plan: LogicalPlan, marker: &str) -> Result<LogicalPlan> {
    let columns = plan.schema().columns().into_iter().map(Expr::Column);
    let all: Vec<Expr> = columns.chain([lit(true).alias(marker)]).collect();
    LogicalPlanBuilder::from(plan).project(all)?.build()
}
