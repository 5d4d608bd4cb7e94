//! Plans of queries: from a statement that was read to the rows that it returns.

use crate::catalog::system_catalog;
use crate::parse::query::Query;
use crate::parse::table_names::table_name;
use crate::plan::context::Context;
use crate::plan::passes::logical;
use crate::plan::pushdown::direct;
use crate::plan::pushdown::direct::Direct;
use crate::plan::ready::{Statement, with_parameters};
use crate::plan::{expansion, listed};
use crate::tables::heap::view::View;
use crate::types::error::SqlError;
use crate::types::hidden::Hidden;
use crate::types::runtime::memory;
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::LogicalPlan;

pub(crate) async fn plan(
    context: Hidden<Context>,
    view: &View,
    query: Query,
) -> Result<Statement, SqlError> {
    let statement = &query.rephrased().statement;
    let nodes = expansion::check(statement, &|name| view.stored_view(name))?;
    let memory = plan_memory(nodes)?;
    let plan = logical(&context, &query).await?;
    // A view may be another one when the plan is used again, and a catalog has other rows.
    let is_other = |name: &_| {
        system_catalog::is_catalog_name(name)
            || table_name(name).is_ok_and(|name| view.is_view(&name))
    };
    let rephrased = query.rephrased();
    let is_short = nodes < LONG_PLAN_NODES;
    let is_reusable = is_short && rephrased.is_reusable && !query.names(is_other);
    Ok(Statement::planned(plan, rephrased, is_reusable, memory))
}

/// Expression nodes of plans that are neither charged nor bounded in number.
pub(crate) const LONG_PLAN_NODES: u64 = 1_000;

/// Bytes that a plan takes for each expression node while it is made and run.
pub(crate) const PLAN_NODE_SIZE: u64 = 2 << 10;

/// Charges a long plan, for as long as it is there.
pub(crate) fn plan_memory(nodes: u64) -> Result<Option<MemoryReservation>, SqlError> {
    if nodes < LONG_PLAN_NODES {
        return Ok(None);
    }
    let memory = memory::reservation("plan");
    if let Some(memory) = &memory {
        memory.try_grow(usize::try_from(nodes * PLAN_NODE_SIZE).unwrap_or(usize::MAX))?;
    }
    Ok(memory)
}

/// What was planned, with its parameters, as it would be run.
pub(crate) async fn optimized(
    context: &Hidden<Context>,
    statement: &Statement,
    parameters: &[ScalarValue],
) -> Result<LogicalPlan, SqlError> {
    let plan = with_parameters(context, statement, parameters.to_vec()).await?;
    let plan = listed::worked_out(context, plan).await?;
    Ok(context.optimize(&plan)?)
}

/// Begins to run what was planned.
pub(crate) async fn begin(
    context: Hidden<Context>,
    statement: Statement,
    parameters: Vec<ScalarValue>,
) -> Result<SendableRecordBatchStream, SqlError> {
    let plan = with_parameters(&context, &statement, parameters).await?;
    execute(context, plan).await
}

pub(crate) async fn execute(
    context: Hidden<Context>,
    plan: LogicalPlan,
) -> Result<SendableRecordBatchStream, SqlError> {
    let plan = listed::worked_out(&context, plan).await?;
    if let Some(direct) = Direct::of(&plan) {
        return Ok(direct.rows(context.task().clone()));
    }
    let plan = direct::grouped(plan)?;
    Ok(context.stream(&plan).await?)
}
