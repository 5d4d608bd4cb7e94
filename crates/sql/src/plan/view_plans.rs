//! A view in a statement: its query is planned, and takes its place.

use crate::parse::text::parse_query;
use crate::tables::heap::stored_views::View;
use crate::types::error::SqlError;
use datafusion::catalog::TableProvider;
use datafusion::datasource::ViewTable;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::parser;
use std::sync::Arc;
use tables::Table;

/// The query of a view as a table, whose columns are called as they were when it was made.
///
/// # Errors
/// When what it reads is gone, or has other columns.
pub async fn plan_of(
    state: SessionState,
    table: &Table,
    view: &View,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    let query = parse_query(&view.query)?;
    let statement = query.rephrased().statement.clone();
    let statement = parser::Statement::Statement(Box::new(statement));
    let plan = state.statement_to_plan(statement).await?;
    let plan = with_names(plan, table)?;
    Ok(Arc::new(ViewTable::new(plan, Some(view.query.clone()))))
}

/// Columns that came to `SELECT *` since are left out.
fn with_names(plan: LogicalPlan, table: &Table) -> Result<LogicalPlan, SqlError> {
    let columns = &table.schema().columns;
    let fields = plan.schema().fields();
    let place = |(at, name): (usize, &str)| {
        let is_there = |at: usize| {
            fields
                .get(at)
                .is_some_and(|field| crate::types::names::shown_name(field.name()) == name)
        };
        let other = || (0..fields.len()).find(|at| is_there(*at));
        // Where it was given names of its own they are those of its columns, one by one.
        match columns.len() == fields.len() || is_there(at) {
            true => Some(at),
            false => other(),
        }
    };
    let mut exprs = Vec::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        let Some(at) = place((at, column.name.as_str())) else {
            let words = format!("view \"{}\": what it reads has changed", table.name());
            let hint = "Make it again: CREATE OR REPLACE VIEW .. AS, or DROP VIEW it.";
            return Err(SqlError::new("42703", words).with_hint(hint));
        };
        let found = Expr::Column(plan.schema().qualified_field(at).into());
        exprs.push(found.alias(column.name.as_str()));
    }
    Ok(LogicalPlanBuilder::from(plan).project(exprs)?.build()?)
}
