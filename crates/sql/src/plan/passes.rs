//! Passes over a logical plan, in the order in which they run: each gives DataFusion a plan with PostgreSQL's answer.

use crate::parse::query::Query;
use crate::plan::context::Context;
use crate::plan::gapfill::plan::fill_gaps;
use crate::plan::nested_rows::check_rows;
use crate::plan::subqueries::{correlated, decorrelation, first_rows, laterals};
use crate::plan::typing::typed;
use crate::plan::volatile::check_volatile;
use crate::plan::{declared, guards, kept_order, runs, set_operations, ties, whole_rows};
use crate::types::error::SqlError;
use crate::types::hidden::Hidden;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::LogicalPlan;

/// The name of a pass, and its function.
type Pass = (&'static str, fn(LogicalPlan) -> Result<LogicalPlan, SqlError>);

/// All passes, in order:
///
/// 1. `whole rows` is first: later passes add columns to relations, which are no columns of the client's rows.
/// 2. `limits with ties` replaces limits by conditions, and leaves their sorts to `unseen orders`.
/// 3. `unseen orders` drops sorts of subqueries before `decorrelation` moves the subqueries into joins.
/// 4. `decorrelation` replaces the correlated subqueries that DataFusion cannot plan.
/// 5. `correlated subqueries` looks at those that are left, and refuses those that DataFusion answers wrongly.
/// 6. `set operations`, `lateral lists` and `DISTINCT ON` replace nodes by others, which have types to be changed.
/// 7. `types` changes the expressions of all nodes, and `guards` surrounds conditions with their final expressions.
/// 8. `gap filling` inserts nodes of its own, once the expressions are final.
/// 9. `first rows` makes aggregates of the limits in subqueries that are still correlated.
/// 10. `kept orders` is last: its nodes require an order of their input, which no pass may move.
const PASSES: &[Pass] = &[
    ("whole rows", |plan| Ok(whole_rows::write_out_rows(plan)?)),
    ("limits with ties", |plan| Ok(ties::with_ties(plan)?)),
    ("unseen orders", |plan| Ok(kept_order::drop_orders(plan)?)),
    ("decorrelation", |plan| Ok(decorrelation::decorrelate(plan)?)),
    ("correlated subqueries", correlated::rewrite_subqueries),
    ("set operations", |plan| Ok(set_operations::counted(plan)?)),
    ("lateral lists", |plan| Ok(laterals::unnested(plan)?)),
    ("DISTINCT ON", |plan| Ok(runs::distinct_rows(plan)?)),
    ("types", |plan| Ok(typed::as_postgres_does(plan)?)),
    ("guards", |plan| Ok(guards::guard(plan)?)),
    ("gap filling", |plan| Ok(fill_gaps(plan)?)),
    ("first rows", |plan| Ok(first_rows::as_aggregates(plan)?)),
    ("kept orders", |plan| Ok(kept_order::keep_orders(plan)?)),
];

/// Plans a statement that only reads, and runs all passes.
///
/// # Errors
/// Those of the planner, of the checks and of the passes.
pub(crate) async fn logical(
    context: &Hidden<Context>,
    query: &Query,
) -> Result<LogicalPlan, SqlError> {
    let plan = declared::planned(context, query).await?;
    let reads =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    reads.verify_plan(&plan)?;
    check_rows(plan.schema())?;
    check_volatile(&plan)?;
    PASSES.iter().try_fold(plan, |plan, (_, pass)| pass(plan))
}
