//! `x IN (SELECT .. FROM table)` whose list is worked out before.
//!
//! Beside samples, so that the store is asked for those values alone:
//!
//! ```text
//! FROM cpu WHERE tags_id IN (SELECT id FROM tags WHERE hostname = 'a')
//!       becomes                 tags_id IN (7)
//! ```
//!
//! And wherever it is not a condition of its own: `NOT (x IN (SELECT ..) AND y)` and its like are not known
//! where the list has NULL, and DataFusion's joins would take that for false.

use crate::plan::context::Context;
use crate::tables::heap::scan::Ordinary;
use crate::types::error::SqlError;
use crate::types::hidden::Hidden;
use crate::types::traversal::{PlanTraversal as _, Traversal as _};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::DefaultTableSource;
use datafusion::logical_expr::expr::{InList, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, ExprSchemable as _, LogicalPlan, lit};
use futures::StreamExt as _;
use std::sync::Arc;

/// Values of such a list; one that has more stays a query.
const VALUES_MAX: usize = 20_000;
/// Bytes of them.
const SIZE_MAX: usize = 32 << 20;

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
        let _ = plan.visit_plans(|node| {
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

/// A list that is worked out before.
struct Wanted {
    subquery: Arc<LogicalPlan>,
    /// Whether rows are left out by it alone, as DataFusion joins them: NULL is as false then.
    is_condition: bool,
}

/// A plan whose lists are worked out, as far as that is worth it, or it would go wrong otherwise.
///
/// # Errors
/// When working one out fails, and when one that must be is too long, or is another for each row.
pub async fn worked_out(
    context: &Hidden<Context>,
    plan: LogicalPlan,
) -> Result<LogicalPlan, SqlError> {
    let mut lists: Vec<List> = Vec::new();
    for Wanted { subquery, is_condition } in wanted(&plan)? {
        // Within it there may be others.
        let within = Box::pin(worked_out(context, LogicalPlan::clone(&subquery))).await?;
        match values_of(context, within).await? {
            Some(values) => lists.push((subquery, values)),
            None if is_condition => {}
            None => {
                let words = format!(
                    "IN (SELECT ..) within OR, NOT or a value has more than {VALUES_MAX} values, or {SIZE_MAX} bytes of them"
                );
                return Err(SqlError::limit(words).with_hint(EXISTS));
            }
        }
    }
    with_lists(plan, &lists)
}

const EXISTS: &str = "Say EXISTS (SELECT 1 FROM .. WHERE ..) instead.";

/// The same where all lists are of rows that are found by a value; none where one is not.
///
/// # Errors
/// When the plan makes no sense, or a list cannot be worked out.
pub fn found_at_once(plan: LogicalPlan) -> Result<Option<LogicalPlan>, SqlError> {
    let mut lists: Vec<List> = Vec::new();
    for Wanted { subquery, .. } in wanted(&plan)? {
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
    let changed = plan.transform_plans_down(|node| {
        let names = NamePreserver::new(&node);
        node.transform_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|expr| Ok(listed(expr, lists)))?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })
    })?;
    // A list may have NULL where its query's rows had none to compare with.
    let schemas = |node: LogicalPlan| node.recompute_schema().map(Transformed::yes);
    Ok(changed.data.transform_plans_up(schemas)?.data)
}

/// The lists of a plan that are worked out before; not those within them.
fn wanted(plan: &LogicalPlan) -> Result<Vec<Wanted>, SqlError> {
    let (reads, mut all, mut refused) = (Reads::of(plan), Vec::new(), None);
    collect(plan, reads.tables && reads.others, &mut all, &mut refused)?;
    refused.map_or(Ok(all), Err)
}

fn collect(
    plan: &LogicalPlan,
    is_mixed: bool,
    all: &mut Vec<Wanted>,
    refused: &mut Option<SqlError>,
) -> Result<(), SqlError> {
    plan.apply(|node| {
        let conditions = match node {
            LogicalPlan::Filter(filter) => split_conjunction(&filter.predicate),
            _ => Vec::new(),
        };
        node.visit_expressions(|expr| {
            expr.apply(|expr| {
                let within = match expr {
                    Expr::InSubquery(list) => {
                        let is_condition = conditions.iter().any(|one| std::ptr::eq(*one, expr));
                        match is_wanted(list, node, is_condition, is_mixed) {
                            Ok(true) => {
                                let subquery = list.subquery.subquery.clone();
                                let is_condition = is_condition && !is_constant(list);
                                all.push(Wanted { subquery, is_condition });
                                return Ok(TreeNodeRecursion::Continue);
                            }
                            Ok(false) => {}
                            Err(error) => *refused = Some(error),
                        }
                        &list.subquery
                    }
                    Expr::ScalarSubquery(subquery) => subquery,
                    Expr::Exists(exists) => &exists.subquery,
                    Expr::SetComparison(compared) => &compared.subquery,
                    _ => return Ok(TreeNodeRecursion::Continue),
                };
                if let Err(error) = collect(&within.subquery, is_mixed, all, refused) {
                    *refused = Some(error);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

/// Whether what is looked for is the same for all rows.
fn is_constant(list: &InSubquery) -> bool {
    list.expr.column_refs().is_empty() && !list.expr.contains_outer()
}

/// Whether a list is worked out before.
///
/// # Errors
/// When it must be, and cannot.
fn is_wanted(
    list: &InSubquery,
    node: &LogicalPlan,
    is_condition: bool,
    is_mixed: bool,
) -> Result<bool, SqlError> {
    let is_alone = list.subquery.outer_ref_columns.is_empty();
    // DataFusion's join of no column takes NULL in the list for another value.
    if is_condition && !(is_alone && is_constant(list)) {
        return Ok(is_alone && is_mixed && !Reads::of(&list.subquery.subquery).others);
    }
    let is_always_known = match node {
        LogicalPlan::Filter(filter) => {
            let values = list.subquery.subquery.schema();
            !list.expr.nullable(filter.input.schema())?
                && values.fields().iter().all(|field| !field.is_nullable())
        }
        _ => false,
    };
    match (is_always_known, is_alone) {
        (true, _) => Ok(false),
        (false, true) => Ok(true),
        (false, false) => {
            let words = "IN (SELECT ..) within OR, NOT or a value, whose query names columns outside, is not known here";
            Err(SqlError::unsupported(words).with_hint(EXISTS))
        }
    }
}

/// What a query of one column says; none for more than is worth it.
async fn values_of(
    context: &Hidden<Context>,
    subquery: LogicalPlan,
) -> Result<Option<Vec<ScalarValue>>, SqlError> {
    if let Some(values) = found(&subquery) {
        return Ok(Some(values).filter(|values| values.len() <= VALUES_MAX));
    }
    let mut batches = context.stream(&subquery).await?;
    let (mut values, mut size) = (Vec::new(), 0);
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        if VALUES_MAX < values.len() + batch.num_rows() {
            return Ok(None);
        }
        for row in 0..batch.num_rows() {
            let value = ScalarValue::try_from_array(batch.column(0), row)?;
            size += value.size();
            if SIZE_MAX < size {
                return Ok(None);
            }
            values.push(value);
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
