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
    if lists.is_empty() {
        return Ok(plan);
    }
    // From the top: what is within an expression is another plan once it was looked into.
    let changed = plan.transform_down_with_subqueries(|node| {
        node.map_expressions(|expr| expr.transform_up(|expr| Ok(listed(expr, &lists))))
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
