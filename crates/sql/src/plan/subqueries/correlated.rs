//! Correlated subqueries that DataFusion answers wrongly: in a form that it answers right, or refused. The
//! decision "Wrong answers of DataFusion" lists them.
//!
//! ```text
//! x NOT IN (SELECT c FROM t WHERE t.a = o.a)
//!     becomes   NOT EXISTS (SELECT c FROM t WHERE t.a = o.a AND (c = x OR c IS NULL OR x IS NULL))
//! EXISTS (SELECT count(*) FROM t WHERE ..)            becomes   true
//! EXISTS (SELECT .. FROM t WHERE .. OFFSET 2)         becomes   (SELECT count(*) FROM t WHERE ..) > 2
//! ```

use crate::parse::rewrite::queries::row_values::LOOKED_AT;
use crate::types::error::SqlError;
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNodeRecursion};
use datafusion::common::{DFSchema, ExprSchema as _, JoinType, Result};
use datafusion::functions_aggregate::count::count_all;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::{FetchType, SkipType};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, Filter, Join, Limit, LogicalPlan, LogicalPlanBuilder, Operator,
    Subquery, binary_expr, lit,
};
use std::sync::Arc;

/// A plan whose correlated subqueries mean what PostgreSQL makes of them.
///
/// # Errors
/// `0A000` where no form is known that DataFusion answers right.
pub fn rewrite_subqueries(plan: LogicalPlan) -> Result<LogicalPlan, SqlError> {
    let mut refused = None;
    plan.visit_plans(|node| {
        each_subquery(node, &mut |subquery| {
            let plan = &subquery.subquery;
            if let Err(error) = check(plan, false).and_then(|()| check_rows_of_none(plan)) {
                refused = Some(error);
            }
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if let Some(error) = refused {
        return Err(error);
    }
    let changed = plan.transform_plans_up(|node| {
        let node = match node {
            LogicalPlan::Filter(filter) => conditions(filter)?,
            other => Transformed::no(other),
        };
        node.transform_data(|node| {
            let names = NamePreserver::new(&node);
            node.transform_expressions(|expr| {
                let name = names.save(&expr);
                let changed = expr.transform_up(value)?;
                Ok(changed.update_data(|expr| name.restore(expr)))
            })
        })
    })?;
    Ok(changed.data)
}

/// Looks at the queries in the expressions of a node, and at those of `LATERAL`.
fn each_subquery(node: &LogicalPlan, look: &mut dyn FnMut(&Subquery)) -> Result<()> {
    if let LogicalPlan::Subquery(subquery) = node {
        look(subquery);
    }
    node.visit_expressions(|expr| {
        expr.apply(|expr| {
            match expr {
                Expr::ScalarSubquery(subquery) => look(subquery),
                Expr::Exists(exists) => look(&exists.subquery),
                Expr::InSubquery(list) => look(&list.subquery),
                Expr::SetComparison(compared) => look(&compared.subquery),
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
}

/// Refuses columns of outside at places from which DataFusion takes them up although that changes the rows.
pub fn check(plan: &LogicalPlan, is_hidden: bool) -> Result<(), SqlError> {
    let names_outside = plan.contains_outer_reference();
    if names_outside && is_hidden {
        let words = "a column of the query outside below the optional side of an outer join, below a window \
                     function, or in WITH RECURSIVE, is not supported";
        return Err(SqlError::unsupported(words).with_hint(HINT));
    }
    let (is_left_hidden, is_right_hidden) = match plan {
        LogicalPlan::Join(join) => {
            let is = |types: [JoinType; 2]| types.contains(&join.join_type);
            let (left, right) =
                (is([JoinType::Right, JoinType::Full]), is([JoinType::Left, JoinType::Full]));
            if names_outside && (left || right) {
                let words =
                    "a column of the query outside in ON of an outer join is not known here";
                return Err(SqlError::unsupported(words).with_hint(HINT));
            }
            (left, right)
        }
        LogicalPlan::Window(_) | LogicalPlan::RecursiveQuery(_) => (true, true),
        _ => (false, false),
    };
    for (at, input) in plan.inputs().into_iter().enumerate() {
        let below = if at == 0 { is_left_hidden } else { is_right_hidden };
        // Queries within `LATERAL` are checked separately.
        if !matches!(input, LogicalPlan::Subquery(_)) {
            check(input, is_hidden || below)?;
        }
    }
    Ok(())
}

/// Refuses nodes above rows that a column of outside picks, where DataFusion loses an answer for no rows or a
/// limit.
pub fn check_rows_of_none(plan: &LogicalPlan) -> Result<(), SqlError> {
    let mut refused = None;
    plan.apply(|node| {
        let checked = match node {
            LogicalPlan::Aggregate(aggregate) if names_outside(plan)? => check_aggregate(aggregate),
            LogicalPlan::Join(join) => check_limits_beside(join),
            _ => Ok(()),
        };
        refused = checked.err();
        Ok(if refused.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    refused.map_or(Ok(()), Err)
}

/// Whether a node of a plan names a column of outside.
fn names_outside(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| Ok(node.contains_outer_reference()))
}

/// Refuses an aggregate whose answer for no rows DataFusion loses: the total of grouping sets
/// (apache/datafusion#25519), and counts other than `count` (apache/datafusion#22317).
fn check_aggregate(aggregate: &Aggregate) -> Result<(), SqlError> {
    if aggregate.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
        let words =
            "grouping sets over rows that a column of the query outside picks are not known here";
        return Err(SqlError::unsupported(words).with_hint(HINT));
    }
    for expr in &aggregate.aggr_expr {
        if let Expr::AggregateFunction(call) = expr.clone().unalias()
            && ZERO_OF_NO_ROWS.contains(&call.func.name())
        {
            let words = format!(
                "{} of rows that a column of the query outside picks is not known here",
                call.func.name()
            );
            return Err(SqlError::unsupported(words).with_hint(HINT));
        }
    }
    Ok(())
}

/// Aggregates that are 0 for no rows, which DataFusion answers with NULL in a correlated subquery.
const ZERO_OF_NO_ROWS: [&str; 2] = ["regr_count", "approx_distinct"];

/// Refuses LIMIT in an input of a join whose other input names a column of outside: DataFusion drops it
/// (apache/datafusion#25283).
fn check_limits_beside(join: &Join) -> Result<(), SqlError> {
    let is_left_outside = names_outside(&join.left)?;
    let beside = if is_left_outside { &join.right } else { &join.left };
    if (is_left_outside || names_outside(&join.right)?)
        && !names_outside(beside)?
        && has_limit(beside)?
    {
        let words = "LIMIT within a join beside rows that a column of the query outside picks is not known here";
        return Err(SqlError::unsupported(words).with_hint(HINT));
    }
    Ok(())
}

fn has_limit(plan: &LogicalPlan) -> Result<bool, SqlError> {
    let is_limit = |node: &LogicalPlan| match node {
        LogicalPlan::Limit(_) => true,
        LogicalPlan::Sort(sort) => sort.fetch.is_some(),
        _ => false,
    };
    Ok(plan.exists(|node| Ok(is_limit(node)))?)
}

const HINT: &str =
    "Join the outside table within the subquery, or compute the rows in WITH or FROM first.";

/// The conditions of a filter that are subqueries.
fn conditions(filter: Filter) -> Result<Transformed<LogicalPlan>> {
    let Filter { predicate, input, .. } = filter;
    let mut is_changed = false;
    let mut all = Vec::new();
    for condition in split_conjunction_owned(predicate) {
        let changed = match as_list(condition) {
            Ok((list, negated)) => among(list, negated, input.schema())?,
            Err(other) => Transformed::no(other),
        };
        is_changed |= changed.transformed;
        all.push(changed.data);
    }
    let predicate = conjunction(all).unwrap_or_else(|| lit(true));
    let plan = LogicalPlan::Filter(Filter::try_new(predicate, input)?);
    Ok(Transformed::new_transformed(plan, is_changed))
}

/// `x IN (SELECT ..)`, and whether it is negated; others as they are.
fn as_list(condition: Expr) -> std::result::Result<(InSubquery, bool), Expr> {
    match condition {
        Expr::InSubquery(list) => {
            let negated = list.negated;
            Ok((list, negated))
        }
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(list) => {
                let negated = !list.negated;
                Ok((list, negated))
            }
            other => Err(Expr::Not(Box::new(other))),
        },
        other => Err(other),
    }
}

/// `x IN (SELECT ..)` as a condition of its own, where what is not known is as false.
fn among(list: InSubquery, negated: bool, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_correlated = !list.subquery.outer_ref_columns.is_empty();
    if !is_correlated || !negated || is_one_row(&list.subquery.subquery)? {
        let list = InSubquery { negated, ..list };
        return Ok(Transformed::no(Expr::InSubquery(list)));
    }
    let InSubquery { expr, subquery, .. } = list;
    let (value, columns) = outside(*expr, schema)?;
    let plan = with_condition(without_order(Arc::unwrap_or_clone(subquery.subquery)), &value)?;
    let mut outer_ref_columns = subquery.outer_ref_columns;
    for column in columns {
        if !outer_ref_columns.contains(&column) {
            outer_ref_columns.push(column);
        }
    }
    let subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: subquery.spans };
    Ok(Transformed::yes(Expr::Exists(Exists { subquery, negated: true })))
}

/// An expression as it is within a subquery, and its columns there.
fn outside(expr: Expr, schema: &DFSchema) -> Result<(Expr, Vec<Expr>)> {
    let mut columns = Vec::new();
    let changed = expr.transform_up(|expr| match expr {
        Expr::Column(column) => {
            let field = schema.field_from_column(&column)?.clone();
            let outer = Expr::OuterReferenceColumn(field, column);
            columns.push(outer.clone());
            Ok(Transformed::yes(outer))
        }
        other => Ok(Transformed::no(other)),
    });
    Ok((changed.data()?, columns))
}

/// A query without what says nothing of which rows there are.
fn without_order(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
            without_order(Arc::unwrap_or_clone(sort.input))
        }
        LogicalPlan::Distinct(Distinct::All(input)) => without_order(Arc::unwrap_or_clone(input)),
        other => other,
    }
}

/// The rows of a query that are equal to a value, or may be.
fn with_condition(plan: LogicalPlan, value: &Expr) -> Result<LogicalPlan> {
    if contains_limit(&plan) {
        return Err(refused(
            "NOT IN (SELECT .. LIMIT ..) about columns of outside is not known here",
        ));
    }
    let may_be = |column: Expr| {
        let is_null = column.clone().is_null().or(value.clone().is_null());
        binary_expr(column, Operator::Eq, value.clone()).or(is_null)
    };
    match plan {
        LogicalPlan::Projection(projection)
            if projection.expr.len() == 1
                && !matches!(&*projection.input, LogicalPlan::Window(_)) =>
        {
            let shown = projection.expr[0].clone().unalias();
            // In one filter: DataFusion takes up the columns of one.
            let (input, condition) = match Arc::unwrap_or_clone(projection.input) {
                LogicalPlan::Filter(filter) => {
                    (Arc::unwrap_or_clone(filter.input), filter.predicate.and(may_be(shown)))
                }
                other => (other, may_be(shown)),
            };
            let filtered = LogicalPlanBuilder::from(input).filter(condition)?;
            filtered.project(projection.expr)?.build()
        }
        other => {
            let named = LogicalPlanBuilder::from(other).alias(LOOKED_AT)?;
            let column = Expr::from(named.schema().columns().swap_remove(0));
            named.filter(may_be(column))?.build()
        }
    }
}

pub fn contains_limit(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Limit(_) => true,
        LogicalPlan::Sort(sort) if sort.fetch.is_some() => true,
        LogicalPlan::Projection(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Filter(_) => plan.inputs().into_iter().any(contains_limit),
        _ => false,
    }
}

/// Subqueries as values.
fn value(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Exists(exists) => exists_value(exists),
        Expr::InSubquery(list)
            if !list.subquery.outer_ref_columns.is_empty()
                && is_one_row(&list.subquery.subquery)? =>
        {
            let InSubquery { expr, subquery, negated } = list;
            let one = Expr::ScalarSubquery(without_limit(subquery)?);
            let equal = binary_expr(*expr, Operator::Eq, one);
            Ok(Transformed::yes(if negated { Expr::Not(Box::new(equal)) } else { equal }))
        }
        Expr::ScalarSubquery(subquery)
            if !subquery.outer_ref_columns.is_empty() && is_one_row(&subquery.subquery)? =>
        {
            Ok(Transformed::yes(Expr::ScalarSubquery(without_limit(subquery)?)))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn exists_value(exists: Exists) -> Result<Transformed<Expr>> {
    let Exists { subquery, negated } = exists;
    let is_correlated = !subquery.outer_ref_columns.is_empty();
    if let Some(is_there) = has_rows(&subquery.subquery)? {
        return Ok(Transformed::yes(lit(is_there != negated)));
    }
    if is_correlated && let Some(found) = skipped(&subquery)? {
        let found = if negated { Expr::Not(Box::new(found)) } else { found };
        return Ok(Transformed::yes(found));
    }
    if is_correlated && let Some(found) = having(&subquery)? {
        let found = match negated {
            true => Expr::IsNotTrue(Box::new(found)),
            false => Expr::IsTrue(Box::new(found)),
        };
        return Ok(Transformed::yes(found));
    }
    Ok(Transformed::no(Expr::Exists(Exists { subquery, negated })))
}

/// Whether a query has rows, if it says so by itself.
pub fn has_rows(plan: &LogicalPlan) -> Result<Option<bool>> {
    Ok(match plan {
        LogicalPlan::Limit(limit) => match (skip_of(limit)?, fetch_of(limit)?) {
            (_, Some(0)) => Some(false),
            (Some(0), Some(_) | None) => has_rows(&limit.input)?,
            (Some(_), _) if is_one_row(&limit.input)? => Some(false),
            _ => None,
        },
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty().then_some(true),
        LogicalPlan::Projection(projection) => has_rows(&projection.input)?,
        LogicalPlan::SubqueryAlias(alias) => has_rows(&alias.input)?,
        LogicalPlan::Sort(sort) => has_rows(&sort.input)?,
        LogicalPlan::Distinct(Distinct::All(input)) => has_rows(input)?,
        _ => None,
    })
}

/// Whether a query has one row, whatever its tables have.
pub fn is_one_row(plan: &LogicalPlan) -> Result<bool> {
    Ok(has_rows(plan)? == Some(true))
}

fn skip_of(limit: &Limit) -> Result<Option<usize>> {
    Ok(match limit.get_skip_type()? {
        SkipType::Literal(count) => Some(count),
        SkipType::UnsupportedExpr => None,
    })
}

/// None of all rows, too.
fn fetch_of(limit: &Limit) -> Result<Option<usize>> {
    Ok(match limit.get_fetch_type()? {
        FetchType::Literal(count) => count,
        FetchType::UnsupportedExpr => None,
    })
}

/// A query of one row without a limit that leaves it.
fn without_limit(subquery: Subquery) -> Result<Subquery> {
    let plan = Arc::unwrap_or_clone(subquery.subquery).transform_down(|node| match node {
        LogicalPlan::Limit(limit) => Ok(Transformed::yes(Arc::unwrap_or_clone(limit.input))),
        // The input of an aggregate of one row may have limits of its own.
        other @ LogicalPlan::Aggregate(_) => {
            Ok(Transformed::new(other, false, TreeNodeRecursion::Jump))
        }
        other => Ok(Transformed::no(other)),
    });
    Ok(Subquery { subquery: Arc::new(plan.data()?), ..subquery })
}

/// `EXISTS (.. OFFSET n)`: whether there are more than n rows.
fn skipped(subquery: &Subquery) -> Result<Option<Expr>> {
    let mut plan = &*subquery.subquery;
    let limit = loop {
        match plan {
            LogicalPlan::Limit(limit) => break limit,
            LogicalPlan::Projection(projection) => plan = &projection.input,
            LogicalPlan::SubqueryAlias(alias) => plan = &alias.input,
            LogicalPlan::Sort(sort) => plan = &sort.input,
            _ => return Ok(None),
        }
    };
    let Some(skip) = skip_of(limit)? else {
        return Err(refused(
            "EXISTS (SELECT .. OFFSET ..) by a parameter, about columns of outside, is not known here",
        ));
    };
    if skip == 0 {
        return Ok(None);
    }
    let rows = without_sort(Arc::unwrap_or_clone(limit.input.clone()));
    let counted =
        LogicalPlanBuilder::from(rows).aggregate(Vec::<Expr>::new(), vec![count_all()])?.build()?;
    let count = Subquery { subquery: Arc::new(counted), ..subquery.clone() };
    Ok(Some(Expr::ScalarSubquery(count).gt(lit(skip as i64))))
}

fn without_sort(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
            without_sort(Arc::unwrap_or_clone(sort.input))
        }
        other => other,
    }
}

/// `EXISTS (SELECT .. HAVING condition)` of one row: whether the condition holds.
fn having(subquery: &Subquery) -> Result<Option<Expr>> {
    let mut plan = &*subquery.subquery;
    let filter = loop {
        match plan {
            LogicalPlan::Filter(filter) => break filter,
            LogicalPlan::Projection(projection) => plan = &projection.input,
            LogicalPlan::SubqueryAlias(alias) => plan = &alias.input,
            LogicalPlan::Sort(sort) => plan = &sort.input,
            _ => return Ok(None),
        }
    };
    if !is_one_row(&filter.input)? || filter.predicate.contains_outer() {
        return Ok(None);
    }
    let shown = LogicalPlanBuilder::from(filter.input.clone())
        .project(vec![filter.predicate.clone().alias("having")])?
        .build()?;
    let found = Subquery { subquery: Arc::new(shown), ..subquery.clone() };
    Ok(Some(Expr::ScalarSubquery(found)))
}

fn refused(words: &str) -> datafusion::common::DataFusionError {
    let error = SqlError::unsupported(words).with_hint("Say NOT EXISTS, or use WITH.");
    datafusion::common::DataFusionError::External(Box::new(error))
}
