//! `UPDATE` and `DELETE`: a query says which rows, and what they become.

use crate::catalog::schemas::ROWS_SCHEMA;
use crate::ddl_dml::definitions::defaults;
use crate::ddl_dml::rows::assignments;
use crate::ddl_dml::rows::inserts::{column_at, is_default, value_for};
use crate::ddl_dml::runner::{Parameters, Runner, add_parameters, relation, selecting};
use crate::parse::rewrite::expressions::expression_of;
use crate::parse::rewrite::queries::row_values::{check_columns, column_of_row, row_of};
use crate::parse::rewrite::rules::refuse_in_change;
use crate::plan::ready::Statement;
use crate::tables::heap::scan::ROW;
use crate::tables::heap::view::View;
use crate::tables::heap::{column_defaults, values};
use crate::types::error::SqlError;
use datafusion::arrow::array::{AsArray as _, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::ScalarValue;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::sql::sqlparser::ast::{
    self, Assignment, AssignmentTarget, Expr, SelectItem, TableWithJoins, UpdateTableFromKind,
    Value,
};
use std::collections::HashSet;
use std::sync::Arc;
use tables::{Change, Datum, RowId, Table};

/// A planned `UPDATE` or `DELETE`.
pub struct ChangePlan {
    /// The numbers of rows, and the values of `targets`.
    pub statement: Statement,
    pub targets: Vec<usize>,
}

impl ChangePlan {
    /// Whether the tables that it reads are as they were.
    pub fn is_current(&self, view: &View) -> bool {
        self.statement.is_current(view)
    }
}

/// What a `SET` says.
pub struct Sets {
    /// Columns by their places.
    pub targets: Vec<usize>,
    /// What they become.
    pub items: Vec<SelectItem>,
}

/// Reads the assignments of a `SET`.
///
/// # Errors
/// When a column is not there, or there twice.
pub fn sets_of(
    table: &Table,
    assignments: &[Assignment],
    known: &mut Parameters,
) -> Result<Sets, SqlError> {
    let mut sets = Sets { targets: Vec::new(), items: Vec::new() };
    for one in assignments {
        match (&one.target, &one.value) {
            (AssignmentTarget::ColumnName(name), value) => {
                sets.add(table, column_at(table, name)?, value, known)?;
            }
            (AssignmentTarget::Tuple(names), value) => {
                let all = values_of_row(value, names.len())?;
                if all.len() != names.len() {
                    let words = "number of columns does not match number of values";
                    return Err(SqlError::invalid(words));
                }
                for (name, value) in names.iter().zip(&all) {
                    sets.add(table, column_at(table, name)?, value, known)?;
                }
            }
        }
    }
    Ok(sets)
}

/// The values of a row that is assigned, or those of a query of one row: one query for each column.
fn values_of_row(value: &Expr, count: usize) -> Result<Vec<Expr>, SqlError> {
    if let Some(all) = row_of(value) {
        return Ok(all);
    }
    let Expr::Subquery(row) = value else {
        let words =
            "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
        return Err(SqlError::unsupported(words));
    };
    if check_columns(row, count).is_err() {
        return Err(SqlError::invalid("number of columns does not match number of values"));
    }
    Ok((0..count).map(|at| column_of_row(row, at, count)).collect())
}

impl Sets {
    fn add(
        &mut self,
        table: &Table,
        at: usize,
        value: &Expr,
        known: &mut Parameters,
    ) -> Result<(), SqlError> {
        let (schema, column) = (table.schema(), &table.schema().columns[at]);
        refuse_in_change(value, "UPDATE")?;
        if self.targets.contains(&at) {
            let words = format!("multiple assignments to same column \"{}\"", column.name);
            return Err(SqlError::invalid(words));
        }
        let is_numbered = column_defaults::numbered(schema, &column.name).is_some();
        let value = match (is_default(value), &column.default) {
            (true, _) if is_numbered => {
                let words = format!("column \"{}\" has its number from its row", column.name);
                return Err(SqlError::unsupported(words));
            }
            (true, Some(default)) => column_defaults::expression(default)?,
            (true, None) => Expr::Value(Value::Null.into()),
            (false, _) => value.clone(),
        };
        // What can be seen to be wrong is, even where no row changes.
        if let Some(plain) = defaults::plain(&value) {
            values::assign_written(column, plain)?;
        }
        self.targets.push(at);
        self.items.push(SelectItem::UnnamedExpr(value_for(&value, column, known)));
        Ok(())
    }
}

async fn plan(
    runner: &Runner,
    sets: Sets,
    (table, alias): (&Table, &str),
    others: &[TableWithJoins],
    selection: &Option<Expr>,
    known: &mut Parameters,
) -> Result<ChangePlan, SqlError> {
    let Sets { targets, mut items } = sets;
    items.insert(0, SelectItem::UnnamedExpr(expression_of(&[alias, ROW])));
    let mut from = vec![relation(ROWS_SCHEMA, table.name(), alias)?];
    from.extend_from_slice(others);
    let query = selecting(items, from, selection.clone())?;
    let statement = runner.plan_with(query).await?;
    add_parameters(known, &statement)?;
    for (place, at) in targets.iter().enumerate() {
        assignments::check(&statement, place + 1, &table.schema().columns[*at])?;
    }
    Ok(ChangePlan { statement, targets })
}

/// Plans an `UPDATE`.
///
/// # Errors
/// When it makes no sense.
pub async fn plan_update(
    runner: &Runner,
    said: &ast::Update,
    (table, alias): (&Arc<Table>, &str),
    known: &mut Parameters,
) -> Result<ChangePlan, SqlError> {
    let others = match &said.from {
        Some(UpdateTableFromKind::BeforeSet(all) | UpdateTableFromKind::AfterSet(all)) => {
            all.as_slice()
        }
        None => &[],
    };
    if !said.order_by.is_empty() || said.limit.is_some() {
        return Err(SqlError::invalid("UPDATE has no ORDER BY and no LIMIT"));
    }
    let sets = sets_of(table, &said.assignments, known)?;
    plan(runner, sets, (table, alias), others, &said.selection, known).await
}

/// Plans a `DELETE`.
///
/// # Errors
/// When it makes no sense.
pub async fn plan_delete(
    runner: &Runner,
    said: &ast::Delete,
    (table, alias): (&Arc<Table>, &str),
    known: &mut Parameters,
) -> Result<ChangePlan, SqlError> {
    if !said.order_by.is_empty() || said.limit.is_some() {
        return Err(SqlError::invalid("DELETE has no ORDER BY and no LIMIT"));
    }
    let nothing = Sets { targets: Vec::new(), items: Vec::new() };
    let others = said.using.as_deref().unwrap_or_default();
    plan(runner, nothing, (table, alias), others, &said.selection, known).await
}

/// The numbers of rows in a batch.
fn row_ids(batch: &RecordBatch) -> impl Iterator<Item = RowId> + '_ {
    let numbers = batch.column(0).as_primitive::<Int64Type>().values();
    numbers.iter().map(|number| RowId(number.cast_unsigned()))
}

/// The rows that a plan says, with their values afterwards, and the memory that they are held in; of several
/// values for one row the first is taken.
///
/// # Errors
/// When a value does not fit.
pub async fn changed_rows(
    runner: &Runner,
    plan: &ChangePlan,
    table: &Table,
    parameters: &[ScalarValue],
) -> Result<(Vec<(RowId, Vec<Datum>)>, MemoryReservation), SqlError> {
    let columns = &table.schema().columns;
    let memory = runner.memory("rows to update");
    let (mut seen, mut rows) = (HashSet::new(), Vec::new());
    let read = runner.each(&plan.statement, parameters, |batch| {
        for (at, id) in row_ids(batch).enumerate() {
            let Some(row) = table.row(id).filter(|_| seen.insert(id)) else { continue };
            let mut row = row.values();
            for (nth, target) in plan.targets.iter().enumerate() {
                let value = values::of_array(batch.column(nth + 1), at)?;
                row[*target] = values::assign(&columns[*target], value)?;
            }
            memory.try_grow(values::row_size(&row))?;
            rows.push((id, row));
        }
        Ok(())
    });
    read.await?;
    Ok((rows, memory))
}

/// Changes rows, within the transaction under way; of several values for one row the first is taken.
///
/// # Errors
/// When a value does not fit; nothing is changed then.
pub async fn update(
    runner: &Runner,
    plan: &ChangePlan,
    table: &Table,
    parameters: &[ScalarValue],
) -> Result<Vec<RowId>, SqlError> {
    let (rows, _held) = changed_rows(runner, plan, table, parameters).await?;
    let ids = rows.iter().map(|(id, _)| *id).collect();
    runner.view.apply(vec![Change::Update { table: table.name().to_string(), rows }])?;
    Ok(ids)
}

/// Takes rows out, within the transaction under way.
///
/// # Errors
/// When they cannot be found.
pub async fn delete(
    runner: &Runner,
    plan: &ChangePlan,
    table: &Table,
    parameters: &[ScalarValue],
) -> Result<Vec<RowId>, SqlError> {
    let (mut seen, mut rows) = (HashSet::new(), Vec::new());
    let read = runner.each(&plan.statement, parameters, |batch| {
        rows.extend(row_ids(batch).filter(|id| seen.insert(*id)));
        Ok(())
    });
    read.await?;
    runner
        .view
        .apply(vec![Change::Delete { table: table.name().to_string(), rows: rows.clone() }])?;
    Ok(rows)
}
