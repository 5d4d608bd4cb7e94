//! Finds the correlated subqueries that DataFusion plans correctly: its plans read the outer rows once, those of
//! [`decorrelate`](super::decorrelate) twice.

use crate::plan::subqueries::correlated::{
    check, check_rows_of_none, contains_limit, has_rows, is_one_row,
};
use crate::plan::subqueries::decorrelation::binding::is_of_outside;
use crate::plan::subqueries::decorrelation::outer::{outer_columns, refused, subquery_of, visible};
use crate::plan::subqueries::first_rows;
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{self, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::{merge_schema, split_conjunction};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprSchemable as _, LogicalPlan,
};
use datafusion::optimizer::decorrelate::PullUpCorrelatedExpr;
use std::collections::HashSet;

/// The place of a subquery in its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A value in a projection or a filter.
    Value,
    /// EXISTS in a filter.
    Exists,
    /// IN as a condition of a filter.
    In,
    /// NOT IN as a condition of a filter.
    NotIn,
    /// At a place for which DataFusion has no plan.
    Other,
}

impl Use {
    /// Whether an expression is a subquery.
    pub fn is_subquery(expr: &Expr) -> bool {
        subquery_of(expr).is_some()
    }

    /// Whether an expression is IN or NOT IN as a condition of a filter would be.
    pub fn is_condition(expr: &Expr) -> bool {
        match expr {
            Expr::InSubquery(_) => true,
            Expr::Not(inner) => matches!(**inner, Expr::InSubquery(_)),
            _ => false,
        }
    }

    /// The conditions of an expression of a filter, with what NOT is of; none for other nodes.
    pub fn conjuncts<'a>(node: &LogicalPlan, expr: &'a Expr) -> Vec<&'a Expr> {
        match node {
            LogicalPlan::Filter(_) => split_conjunction(expr),
            _ => Vec::new(),
        }
    }

    /// The use of a subquery, and its plan; none for other expressions.
    pub fn of<'a>(
        expr: &'a Expr,
        node: &LogicalPlan,
        is_condition: bool,
    ) -> Option<(Use, &'a LogicalPlan)> {
        let is_filter = matches!(node, LogicalPlan::Filter(_));
        Some(match expr {
            Expr::ScalarSubquery(subquery) => {
                let is_known = is_filter || matches!(node, LogicalPlan::Projection(_));
                (if is_known { Use::Value } else { Use::Other }, &subquery.subquery)
            }
            Expr::Exists(exists) => {
                (if is_filter { Use::Exists } else { Use::Other }, &exists.subquery.subquery)
            }
            Expr::InSubquery(list) => {
                let used = match (is_condition, list.negated) {
                    (true, false) => Use::In,
                    (true, true) => Use::NotIn,
                    (false, _) => Use::Other,
                };
                (used, &list.subquery.subquery)
            }
            Expr::SetComparison(compared) => (Use::Other, &compared.subquery.subquery),
            Expr::Not(inner) if is_condition => match &**inner {
                Expr::InSubquery(list) => {
                    let used = if list.negated { Use::In } else { Use::NotIn };
                    (used, &list.subquery.subquery)
                }
                _ => return None,
            },
            _ => return None,
        })
    }
}

/// Whether DataFusion plans a subquery rightly that is used so.
///
/// # Errors
/// Returns errors of the planner.
pub fn has_own_plan(plan: &LogicalPlan, used: Use) -> Result<bool> {
    if outer_columns(plan)?.is_empty() {
        return Ok(true);
    }
    if used == Use::Other || has_names_twice(plan)? || is_hard(plan)? {
        return Ok(false);
    }
    Ok(match used {
        Use::Value => is_pulled_up_value(plan)?,
        Use::Exists => match has_rows(plan)? {
            Some(_) => true,
            None => !has_total(plan) && !skips(plan) && is_pulled_up(plan, true),
        },
        Use::In if is_one_row(plan)? => is_pulled_up_value(plan)?,
        Use::NotIn if is_one_row(plan)? => is_pulled_up_value(plan)?,
        Use::In => !has_total(plan) && is_pulled_up(plan, false),
        Use::NotIn => !contains_limit(plan) && !has_total(plan) && is_pulled_up(plan, true),
        Use::Other => false,
    })
}

/// The same of a query of LATERAL.
///
/// # Errors
/// Returns errors of the planner.
pub fn has_own_plan_as_lateral(plan: &LogicalPlan) -> Result<bool> {
    if outer_columns(plan)?.is_empty() {
        return Ok(true);
    }
    if has_names_twice(plan)?
        || is_hard(plan)?
        || has_filter_above_total(plan)
        || has_groups_of_keys(plan)
    {
        return Ok(false);
    }
    Ok(is_pulled_up(plan, false))
}

/// Whether columns of outside stand at places from which DataFusion does not take them up, or not rightly.
fn is_hard(plan: &LogicalPlan) -> Result<bool> {
    let of_outside = plan.exists(|node| match node {
        LogicalPlan::Aggregate(aggregate) => Ok(aggregate.aggr_expr.iter().any(is_of_outside)),
        _ => Ok(false),
    })?;
    if of_outside {
        return Err(refused("an aggregate of columns of the query outside is not known here"));
    }
    if check(plan, false).is_err() || check_rows_of_none(plan).is_err() {
        return Ok(true);
    }
    let mut is_hard = false;
    plan.apply(|node| {
        let seen = visible(node);
        let is_conjunct =
            |expr: &Expr, all: &[&Expr]| all.iter().any(|one| std::ptr::eq(*one, expr));
        node.visit_expressions(|top| {
            let conjuncts = Use::conjuncts(node, top);
            top.apply(|expr| {
                let Some((used, within)) = Use::of(expr, node, is_conjunct(expr, &conjuncts))
                else {
                    return Ok(TreeNodeRecursion::Continue);
                };
                let columns = outer_columns(within)?;
                is_hard |= columns.iter().any(|column| !seen.has_column(column));
                is_hard |= !has_own_plan(within, used)?;
                Ok(if is_hard { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Jump })
            })
        })?;
        // DataFusion leaves LATERAL out, and DISTINCT ON becomes a step of ours.
        is_hard |=
            matches!(node, LogicalPlan::Subquery(_) | LogicalPlan::Distinct(Distinct::On(_)));
        Ok(if is_hard { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(is_hard)
}

/// Whether DataFusion takes the conditions about columns of outside out of a subquery.
fn is_pulled_up(plan: &LogicalPlan, is_exists: bool) -> bool {
    let mut puller = PullUpCorrelatedExpr::new()
        .with_need_handle_count_bug(!is_exists)
        .with_exists_sub_query(is_exists);
    tree_node::TreeNode::rewrite(plan.clone(), &mut puller).is_ok() && puller.can_pull_up
}

fn is_pulled_up_value(plan: &LogicalPlan) -> Result<bool> {
    let first = first_rows::aggregate(plan)?;
    let plan = first.as_ref().unwrap_or(plan);
    let is_total =
        |aggregate: &Aggregate| aggregate.group_expr.is_empty() && !aggregate.aggr_expr.is_empty();
    let is_one = match below_names(plan) {
        LogicalPlan::Aggregate(aggregate) => is_total(aggregate),
        LogicalPlan::Filter(filter) => match &*filter.input {
            LogicalPlan::Aggregate(aggregate) => is_total(aggregate),
            _ => false,
        },
        LogicalPlan::Limit(limit) => is_one_row(&limit.input)?,
        _ => false,
    };
    Ok(is_one && !compares_by_keys(plan)? && is_pulled_up(&without_limits(plan), false))
}

/// Whether conditions with columns of outside, and the rows shown, have columns of one name from two relations:
/// DataFusion gives all of them the same relation.
fn has_names_twice(plan: &LogicalPlan) -> Result<bool> {
    let mut columns: HashSet<Column> = plan.schema().columns().into_iter().collect();
    plan.apply(|node| {
        if let LogicalPlan::Filter(filter) = node {
            let all = split_conjunction(&filter.predicate);
            let outer = all.into_iter().filter(|one| one.contains_outer());
            columns.extend(outer.flat_map(Expr::column_refs).cloned());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let names: HashSet<&str> = columns.iter().map(Column::name).collect();
    Ok(names.len() < columns.len())
}

/// Whether a column of outside is compared by a key that a function makes: DataFusion takes columns alone out of an
/// aggregate.
fn compares_by_keys(plan: &LogicalPlan) -> Result<bool> {
    let mut is_found = false;
    plan.visit_plans(|node| {
        let schema = merge_schema(&node.inputs());
        let has_key = |side: &Expr| {
            let ty = side.get_type(&schema);
            ty.is_ok_and(|ty| ty.is_decimal() || matches!(ty, DataType::Interval(_)))
        };
        node.visit_expressions(|expr| {
            is_found |= expr.exists(|one| match one {
                Expr::BinaryExpr(BinaryExpr { left, right, .. }) => {
                    Ok(one.contains_outer() && (has_key(left) || has_key(right)))
                }
                _ => Ok(false),
            })?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(is_found)
}

/// The plan below projections and aliases.
fn below_names(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Projection(projection) => below_names(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => below_names(&alias.input),
        other => other,
    }
}

fn without_limits(plan: &LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::Limit(limit) => without_limits(&limit.input),
        other => other.clone(),
    }
}

/// Whether there is an aggregate of all rows.
fn has_total(plan: &LogicalPlan) -> bool {
    let is_total = |node: &LogicalPlan| match node {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    };
    plan.exists(|node| Ok(is_total(node))).unwrap_or(true)
}

/// Whether rows are made distinct: DataFusion adds the columns of conditions to their keys.
fn has_groups_of_keys(plan: &LogicalPlan) -> bool {
    let is_one = |node: &LogicalPlan| match node {
        LogicalPlan::Aggregate(aggregate) => aggregate.aggr_expr.is_empty(),
        LogicalPlan::Distinct(_) => true,
        _ => false,
    };
    plan.exists(|node| Ok(is_one(node))).unwrap_or(true)
}

fn has_filter_above_total(plan: &LogicalPlan) -> bool {
    let is_one = |node: &LogicalPlan| match node {
        LogicalPlan::Filter(filter) => has_total(&filter.input),
        _ => false,
    };
    plan.exists(|node| Ok(is_one(node))).unwrap_or(true)
}

/// Whether rows are left out by OFFSET.
fn skips(plan: &LogicalPlan) -> bool {
    let is_one = |node: &LogicalPlan| match node {
        LogicalPlan::Limit(limit) => limit.skip.is_some(),
        _ => false,
    };
    plan.exists(|node| Ok(is_one(node))).unwrap_or(true)
}
