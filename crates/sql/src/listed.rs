//! `x IN (SELECT .. FROM table)` beside samples: the list is worked out before, so that the store is asked
//! for those values alone.
//!
//! ```text
//! FROM cpu WHERE tags_id IN (SELECT id FROM tags WHERE hostname = 'a')
//!       becomes                 tags_id IN (7)
//! ```

use crate::error::SqlError;
use crate::hidden::Hidden;
use crate::ordinary::Ordinary;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::datasource::DefaultTableSource;
use datafusion::logical_expr::expr::{InList, InSubquery};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, lit};
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;
use std::sync::Arc;

/// Values of such a list; one that has more stays a query.
const VALUES_MAX: usize = 20_000;

/// A query, and what it says.
type List = (Arc<LogicalPlan>, Vec<ScalarValue>);

/// What a plan reads.
#[derive(Clone, Copy, Default)]
struct Reads {
    tables: bool,
    others: bool,
}

impl Reads {
    /// Of a plan, and of what is within its expressions.
    fn of(plan: &LogicalPlan) -> Reads {
        let mut reads = Reads::default();
        // What is given to it says nothing but that it goes on.
        let _ = plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                let source = scan.source.downcast_ref::<DefaultTableSource>();
                let table = source.and_then(|one| one.table_provider.downcast_ref::<Ordinary>());
                match table.is_some_and(|table| !table.is_hypertable()) {
                    true => reads.tables = true,
                    false => reads.others = true,
                }
            }
            Ok(TreeNodeRecursion::Continue)
        });
        reads
    }
}

/// A plan whose lists are worked out, as far as they are of ordinary tables.
///
/// # Errors
/// When working one out fails.
pub async fn worked_out(
    context: &Hidden<SessionContext>,
    plan: LogicalPlan,
) -> Result<LogicalPlan, SqlError> {
    let reads = Reads::of(&plan);
    if !(reads.tables && reads.others) {
        return Ok(plan);
    }
    let mut lists: Vec<List> = Vec::new();
    for subquery in subqueries(&plan)? {
        if let Some(values) = values_of(context, &subquery).await? {
            lists.push((subquery, values));
        }
    }
    with_lists(plan, &lists)
}

/// The same where all lists are of rows that are found by a value; none where one is not.
///
/// # Errors
/// When the plan makes no sense.
pub fn found_at_once(plan: LogicalPlan) -> Result<Option<LogicalPlan>, SqlError> {
    let reads = Reads::of(&plan);
    if !(reads.tables && reads.others) {
        return Ok(Some(plan));
    }
    let mut lists: Vec<List> = Vec::new();
    for subquery in subqueries(&plan)? {
        match found(&subquery).filter(|values| values.len() <= VALUES_MAX) {
            Some(values) => lists.push((subquery, values)),
            None => return Ok(None),
        }
    }
    with_lists(plan, &lists).map(Some)
}

fn with_lists(plan: LogicalPlan, lists: &[List]) -> Result<LogicalPlan, SqlError> {
    if lists.is_empty() {
        return Ok(plan);
    }
    // From the top: what is within an expression is another plan once it was looked into.
    let changed = plan.transform_down_with_subqueries(|node| {
        node.map_expressions(|expr| expr.transform_up(|expr| Ok(listed(expr, lists))))
    });
    Ok(changed?.data)
}

/// The queries of all lists that stand by themselves.
fn subqueries(plan: &LogicalPlan) -> Result<Vec<Arc<LogicalPlan>>, SqlError> {
    let mut all = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Filter(filter) = node {
            filter.predicate.apply(|expr| {
                if let Expr::InSubquery(InSubquery { subquery, .. }) = expr
                    && subquery.outer_ref_columns.is_empty()
                    && !Reads::of(&subquery.subquery).others
                {
                    all.push(subquery.subquery.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(all)
}

/// What a query of one column says; none for more than is worth it.
async fn values_of(
    context: &Hidden<SessionContext>,
    subquery: &LogicalPlan,
) -> Result<Option<Vec<ScalarValue>>, SqlError> {
    if let Some(values) = found(subquery) {
        return Ok(Some(values).filter(|values| values.len() <= VALUES_MAX));
    }
    let frame = context.execute_logical_plan(subquery.clone()).await?;
    let mut batches = frame.execute_stream().await?;
    let mut values = Vec::new();
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        if VALUES_MAX < values.len() + batch.num_rows() {
            return Ok(None);
        }
        for row in 0..batch.num_rows() {
            values.push(ScalarValue::try_from_array(batch.column(0), row)?);
        }
    }
    Ok(Some(values))
}

/// What `SELECT column FROM table WHERE ..` says whose rows are found by a value.
fn found(query: &LogicalPlan) -> Option<Vec<ScalarValue>> {
    let LogicalPlan::Projection(projection) = query else { return None };
    let [Expr::Column(column)] = projection.expr.as_slice() else { return None };
    let LogicalPlan::Filter(filter) = &*projection.input else { return None };
    let mut table = &*filter.input;
    while let LogicalPlan::SubqueryAlias(alias) = table {
        table = &alias.input;
    }
    let LogicalPlan::TableScan(scan) = table else { return None };
    let source = scan.source.downcast_ref::<DefaultTableSource>()?;
    let table = source.table_provider.downcast_ref::<Ordinary>()?;
    let is_whole = scan.filters.is_empty() && scan.fetch.is_none();
    is_whole.then(|| table.values_of(&column.name, &split_conjunction(&filter.predicate))).flatten()
}

fn listed(expr: Expr, lists: &[List]) -> Transformed<Expr> {
    let Expr::InSubquery(InSubquery { expr: subject, subquery, negated }) = expr else {
        return Transformed::no(expr);
    };
    let list = lists.iter().find(|(query, _)| Arc::ptr_eq(query, &subquery.subquery));
    match list.map(|(_, values)| values) {
        // Nothing is in an empty list, not even what is not known.
        Some(values) if values.is_empty() => Transformed::yes(lit(negated)),
        Some(values) => {
            let list = values.iter().map(|value| Expr::Literal(value.clone(), None)).collect();
            Transformed::yes(Expr::InList(InList { expr: subject, list, negated }))
        }
        None => Transformed::no(Expr::InSubquery(InSubquery { expr: subject, subquery, negated })),
    }
}
