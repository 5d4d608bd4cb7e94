//! `FROM tags t, LATERAL (SELECT .. FROM cpu c WHERE c.tags_id = t.id ORDER BY time DESC LIMIT n)`: the
//! first rows for each row of the left, which DataFusion does not know.
//!
//! ```text
//! join ─┬─ left                                        join on t.id = key ─┬─ left
//!       └─ limit n ─ sort ─ where key = left's   becomes                   └─ where nth <= n
//!                                                                             ─ number within each key
//! ```
//! Where those are the newest rows of a hypertable, it is asked for no others.

use crate::ordinary::Ordinary;
use datafusion::common::{Column, Result, ScalarValue, TableReference};
use datafusion::datasource::{DefaultTableSource, provider_as_source};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprFunctionExt as _, FetchType, Join, JoinType, LogicalPlan,
    LogicalPlanBuilder, Operator, SkipType, SubqueryAlias, lit,
};
use std::sync::Arc;

/// Names that no statement can write.
const NTH: &str = "\0nth";
const KEY: &str = "\0key";

/// What is asked for each row of the left.
struct First {
    /// How many rows.
    count: usize,
    sorts: Vec<Sort>,
    /// What is selected.
    columns: Vec<Expr>,
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
    let LogicalPlan::Sort(sort) = limit.input.as_ref() else { return Ok(None) };
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
    Ok(Some(First { count, sorts, columns, keys, rows }))
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
    let First { count, sorts, columns, keys, rows } = first;
    let key = |nth: usize| format!("{KEY}{nth}");
    let own = keys.iter().enumerate().map(|(nth, (expr, _))| expr.clone().alias(key(nth)));
    let selected = LogicalPlanBuilder::from(rows).project(columns.into_iter().chain(own))?;
    let outward: Vec<Expr> = {
        let all = selected.schema().columns();
        let shown = all.len() - keys.len();
        all.into_iter()
            .take(shown)
            .map(|column| Expr::Column(Column::new(Some(alias.clone()), column.name)))
            .collect()
    };
    let each: Vec<Expr> =
        (0..keys.len()).map(|nth| Expr::Column(Column::from_name(key(nth)))).collect();
    let nth = row_number().partition_by(each).order_by(sorts).build()?.alias(NTH);
    let most = lit(ScalarValue::UInt64(Some(count as u64)));
    let right = selected
        .window([nth])?
        .filter(Expr::Column(Column::from_name(NTH)).lt_eq(most))?
        .alias(alias.clone())?
        .build()?;
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
