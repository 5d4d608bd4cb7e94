//! `FROM tags t, LATERAL (SELECT .. FROM cpu c WHERE c.tags_id = t.id ORDER BY time DESC LIMIT n)`: the
//! first rows for each row of the left, which DataFusion does not know.
//!
//! ```text
//! join ─┬─ left                                        join on t.id = key ─┬─ left
//!       └─ limit n ─ sort ─ where key = left's   becomes                   └─ first n of each key
//! ```
//! Where those are the newest rows of a hypertable, it is asked for no others.

use crate::plan::runs::node::FirstOfRuns;
use crate::tables::heap::scan::Ordinary;
use datafusion::common::{Column, Result, TableReference};
use datafusion::datasource::{DefaultTableSource, provider_as_source};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, FetchType, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Operator,
    SkipType, Sort as SortStep, SubqueryAlias, lit,
};
use std::sync::Arc;

/// A name that no statement can write.
const KEY: &str = "\0key";

/// What is asked for each row of the left.
struct First {
    /// How many rows.
    count: usize,
    sorts: Vec<Sort>,
    /// What is selected, and what of that is shown.
    columns: Vec<Expr>,
    shown: Vec<String>,
    /// Of rows of the right, and the columns of the left that they are equal to.
    keys: Vec<(Expr, Column)>,
    /// All rows of the right that may be it.
    rows: LogicalPlan,
}

/// A join with such rows in DataFusion's words; none for other joins.
///
/// # Errors
/// When it makes no sense.
pub fn first_of_each(join: &Join) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) = join.right.as_ref() else {
        return Ok(None);
    };
    let LogicalPlan::Subquery(subquery) = input.as_ref() else { return Ok(None) };
    let is_always = |filter: &Expr| *filter == lit(true);
    let is_plain = join.on.is_empty() && join.filter.as_ref().is_none_or(is_always);
    if !is_plain || !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
        return Ok(None);
    }
    match asked(&subquery.subquery, &join.left)? {
        Some(first) if !first.keys.is_empty() => joined(join, alias, first).map(Some),
        _ => Ok(None),
    }
}

fn asked(plan: &LogicalPlan, left: &LogicalPlan) -> Result<Option<First>> {
    let LogicalPlan::Limit(limit) = plan else { return Ok(None) };
    let (SkipType::Literal(0), FetchType::Literal(Some(count))) =
        (limit.get_skip_type()?, limit.get_fetch_type()?)
    else {
        return Ok(None);
    };
    let Some((sort, shown)) = sorted(&limit.input) else { return Ok(None) };
    let LogicalPlan::Projection(projection) = sort.input.as_ref() else { return Ok(None) };
    let LogicalPlan::Filter(filter) = projection.input.as_ref() else { return Ok(None) };
    let (mut keys, mut others) = (Vec::new(), Vec::new());
    for condition in split_conjunction_owned(filter.predicate.clone()) {
        match key_of(&condition, left) {
            Some(key) => keys.push(key),
            None => others.push(condition),
        }
    }
    if others.iter().any(Expr::contains_outer) || projection.expr.iter().any(Expr::contains_outer) {
        return Ok(None);
    }
    let rows = match conjunction(others) {
        Some(rest) => LogicalPlanBuilder::from((*filter.input).clone()).filter(rest)?.build()?,
        None => newest((*filter.input).clone(), (&sort.expr, &projection.expr), &keys, count)?,
    };
    let (sorts, columns) = (sort.expr.clone(), projection.expr.clone());
    Ok(Some(First { count, sorts, columns, shown, keys, rows }))
}

/// What is sorted, and the names of what is shown of it: what it is sorted by need not be.
fn sorted(plan: &LogicalPlan) -> Option<(&SortStep, Vec<String>)> {
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(_));
    let sort = match plan {
        LogicalPlan::Sort(sort) => sort,
        LogicalPlan::Projection(shown) if shown.expr.iter().all(is_column) => {
            let LogicalPlan::Sort(sort) = shown.input.as_ref() else { return None };
            sort
        }
        _ => return None,
    };
    let shown = plan.schema().columns().into_iter().map(|column| column.name);
    Some((sort, shown.collect()))
}

/// `right = left's`, or the other way round.
fn key_of(condition: &Expr, left: &LogicalPlan) -> Option<(Expr, Column)> {
    let Expr::BinaryExpr(BinaryExpr { left: one, op: Operator::Eq, right: other }) = condition
    else {
        return None;
    };
    match (&**one, &**other) {
        (own, Expr::OuterReferenceColumn(_, column))
        | (Expr::OuterReferenceColumn(_, column), own)
            if !own.contains_outer() && left.schema().has_column(column) =>
        {
            Some((own.clone(), column.clone()))
        }
        _ => None,
    }
}

fn joined(join: &Join, alias: &TableReference, first: First) -> Result<LogicalPlan> {
    let First { count, sorts, columns, shown, keys, rows } = first;
    let key = |nth: usize| format!("{KEY}{nth}");
    let own = keys.iter().enumerate().map(|(nth, (expr, _))| expr.clone().alias(key(nth)));
    let selected = LogicalPlanBuilder::from(rows).project(columns.into_iter().chain(own))?;
    let outward =
        shown.into_iter().map(|name| Expr::Column(Column::new(Some(alias.clone()), name)));
    let each = (0..keys.len())
        .map(|nth| Sort::new(Expr::Column(Column::from_name(key(nth))), true, false));
    let order = each.chain(sorts).collect();
    let firsts = FirstOfRuns::new(selected.build()?, order, keys.len(), count);
    let right = LogicalPlanBuilder::from(firsts.into_plan()).alias(alias.clone())?.build()?;
    let left_keys: Vec<Column> = keys.into_iter().map(|(_, column)| column).collect();
    let right_keys: Vec<Column> =
        (0..left_keys.len()).map(|nth| Column::new(Some(alias.clone()), key(nth))).collect();
    let lefts = join.left.schema().columns().into_iter().map(Expr::Column);
    let wanted: Vec<Expr> = lefts.chain(outward).collect();
    LogicalPlanBuilder::from((*join.left).clone())
        .join(right, join.join_type, (left_keys, right_keys), None)?
        .project(wanted)?
        .build()
}

/// Rows of a hypertable without those that are surely not among the newest so many of each key.
fn newest(
    rows: LogicalPlan,
    (sorts, columns): (&[Sort], &[Expr]),
    keys: &[(Expr, Column)],
    count: usize,
) -> Result<LogicalPlan> {
    let [Sort { expr: Expr::Column(sorted), asc: false, .. }] = sorts else { return Ok(rows) };
    // What is sorted is what is selected: another column may be called so there.
    let is_it = |one: &&Expr| one.qualified_name().1 == sorted.name;
    let Some(Expr::Column(Column { name: time, .. })) = columns.iter().find(is_it) else {
        return Ok(rows);
    };
    let names: Option<Vec<&str>> = keys
        .iter()
        .map(|(expr, _)| match expr {
            Expr::Column(column) => Some(column.name.as_str()),
            _ => None,
        })
        .collect();
    let Some(names) = names else { return Ok(rows) };
    narrowed(rows, &|table| table.newest(time, &names, count))
}

/// A bare table in another way; anything else stays as it is, since what is above the table may leave rows out.
fn narrowed(
    rows: LogicalPlan,
    narrow: &dyn Fn(&Ordinary) -> Option<Ordinary>,
) -> Result<LogicalPlan> {
    match rows {
        LogicalPlan::SubqueryAlias(alias) => {
            let inner = narrowed(Arc::unwrap_or_clone(alias.input), narrow)?;
            Ok(LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(inner), alias.alias)?))
        }
        LogicalPlan::TableScan(mut scan) if scan.filters.is_empty() && scan.fetch.is_none() => {
            let source = scan.source.downcast_ref::<DefaultTableSource>();
            let table = source.and_then(|one| one.table_provider.downcast_ref::<Ordinary>());
            if let Some(newest) = table.and_then(narrow) {
                scan.source = provider_as_source(Arc::new(newest));
            }
            Ok(LogicalPlan::TableScan(scan))
        }
        other => Ok(other),
    }
}
