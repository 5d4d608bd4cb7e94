//! `INSERT`, `UPDATE` and `DELETE` of ordinary tables: what they say, how they are planned, and how they
//! are done.

use crate::catalog::schemas::HANDED_SCHEMA;
use crate::ddl_dml::hypertables::removal::Removal;
use crate::ddl_dml::rows::changes::ChangePlan;
use crate::ddl_dml::rows::inserts::InsertPlan;
use crate::ddl_dml::rows::{changes, inserts};
use crate::ddl_dml::runner::{Parameters, Runner, add_parameters, relation, selecting};
use crate::parse::rewrite::queries::query_forms::check_table;
use crate::parse::rewrite::rules::refuse_in_change;
use crate::parse::table_names::table_name;
use crate::plan::ready::{Statement, in_order};
use crate::tables::heap::prometheus_tables::PrometheusTable;
use crate::tables::heap::scan::{Ordinary, Rows, Slot, put};
use crate::tables::heap::view::{Fate, View, no_such_table};
use crate::tables::hypertables::append::SeriesRows;
use crate::tables::hypertables::shape::Hypertable;
use crate::tables::metrics::metric_tables::METRIC_SCHEMA;
use crate::types::error::SqlError;
use crate::types::hidden::Hidden;
use crate::types::names::folded;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::{
    self, FromTable, ObjectName, SelectItem, TableFactor, TableObject, TableWithJoins,
};
use futures::StreamExt as _;
use std::sync::Arc;
use tables::{Datum, Schema, Table};

/// The table that `RETURNING` reads.
const RETURNED: &str = "returned";

/// A statement that changes rows of an ordinary table, and the queries of its WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct Write(Hidden<Said>, Option<Hidden<ast::With>>);

#[derive(Debug, PartialEq)]
enum Said {
    Insert(Box<ast::Insert>),
    Update(Box<ast::Update>),
    Delete(Box<ast::Delete>),
}

/// The same, planned.
#[derive(Clone)]
pub struct PlannedWrite(Hidden<Planned>);

struct Planned {
    /// The table's name, and what it looked like, if somebody has made it.
    table: String,
    seen: Option<Arc<Schema>>,
    how: How,
    returning: Option<(Statement, Slot)>,
    parameters: Vec<Option<DataType>>,
}

enum How {
    Insert(InsertPlan),
    Update(ChangePlan),
    Delete(ChangePlan),
    /// Of a hypertable, or of samples.
    Remove(Removal),
}

/// What came of it.
pub struct Written {
    /// What is answered, without the number of rows.
    pub tag: &'static str,
    /// Rows that were changed.
    pub rows: u64,
    /// The rows that it returns, if it does.
    pub answer: Option<SendableRecordBatchStream>,
}

impl Write {
    /// Of `INSERT`.
    pub fn insert(said: ast::Insert) -> Write {
        Write(Hidden::new(Said::Insert(Box::new(said))), None)
    }

    /// Of `UPDATE`.
    pub fn update(said: ast::Update) -> Write {
        Write(Hidden::new(Said::Update(Box::new(said))), None)
    }

    /// Of `DELETE`.
    pub fn delete(said: ast::Delete) -> Write {
        Write(Hidden::new(Said::Delete(Box::new(said))), None)
    }

    /// The same, whose queries may read those of a WITH.
    #[must_use]
    pub fn with(self, with: ast::With) -> Write {
        Write(self.0, Some(Hidden::new(with)))
    }

    /// What the statement is called.
    pub fn word(&self) -> &'static str {
        match &*self.0 {
            Said::Insert(_) => "INSERT",
            Said::Update(_) => "UPDATE",
            Said::Delete(_) => "DELETE",
        }
    }

    /// Whether it deletes of a table in the schema of those of metrics.
    fn is_of_metric(&self) -> bool {
        let Said::Delete(said) = &*self.0 else { return false };
        let (FromTable::WithFromKeyword(all) | FromTable::WithoutKeyword(all)) = &said.from;
        let first = all.first().and_then(|one| named(one).ok());
        first.is_some_and(|(name, _)| metric_of(name).is_some())
    }

    /// The table that it changes, and what it is called there.
    ///
    /// # Errors
    /// When it is not clear.
    pub fn target(&self) -> Result<(String, String), SqlError> {
        let (name, alias) = match &*self.0 {
            Said::Insert(said) => return insert_target(said),
            Said::Update(said) => named(&said.table)?,
            Said::Delete(said) => match &said.from {
                FromTable::WithFromKeyword(all) | FromTable::WithoutKeyword(all) => {
                    match all.as_slice() {
                        [one] => named(one)?,
                        _ => return Err(SqlError::invalid("DELETE takes one table")),
                    }
                }
            },
        };
        let table = match (&*self.0, metric_of(name)) {
            (Said::Delete(_), Some(metric)) => metric,
            _ => table_name(name)?,
        };
        let alias = alias.unwrap_or_else(|| table.clone());
        Ok((table, alias))
    }
}

/// The table of an `INSERT`, and what it is called there.
///
/// # Errors
/// When it is not clear.
pub fn insert_target(said: &ast::Insert) -> Result<(String, String), SqlError> {
    let TableObject::TableName(name) = &said.table else {
        return Err(SqlError::unsupported("INSERT takes a table"));
    };
    let table = table_name(name)?;
    let alias = said.table_alias.as_ref().map(|one| folded(&one.alias));
    let alias = alias.unwrap_or_else(|| table.clone());
    Ok((table, alias))
}

/// The metric that a table of the schema of those is of.
fn metric_of(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [.., schema, table] if folded(schema.as_ident()?) == METRIC_SCHEMA => {
            Some(folded(table.as_ident()?))
        }
        _ => None,
    }
}

/// A table and its alias.
fn named(table: &TableWithJoins) -> Result<(&ObjectName, Option<String>), SqlError> {
    check_table(&table.relation)?;
    match &table.relation {
        TableFactor::Table { name, alias, args: None, .. } if table.joins.is_empty() => {
            Ok((name, alias.as_ref().map(|one| folded(&one.name))))
        }
        _ => Err(SqlError::invalid("a statement changes one table")),
    }
}

/// Plans a statement that changes rows.
///
/// # Errors
/// When it makes no sense.
pub async fn plan_write(runner: &Runner, write: &Write) -> Result<PlannedWrite, SqlError> {
    check_words(&write.0)?;
    let (name, alias) = write.target()?;
    let runner = &Runner { with: write.1.clone(), ..runner.clone() };
    if write.1.is_some() {
        // Its queries make sense, even if none is read.
        let nothing = selecting(Vec::new(), Vec::new(), None)?;
        runner.plan_with(nothing).await?;
    }
    if write.1.is_some()
        && matches!(*write.0, Said::Delete(_))
        && runner.view.get(&name).is_none_or(|table| is_of_series(table.schema()))
    {
        return Err(SqlError::unsupported("WITH before a change of samples is not known here"));
    }
    if let Said::Delete(said) = &*write.0
        && (is_of_samples(&runner.view, &name) || write.is_of_metric())
    {
        return plan_removal(runner, said, name).await;
    }
    let table = runner.view.expect(&name)?;
    let is_hypertable = Hypertable::is_one(table.schema());
    if is_hypertable {
        check_hypertable(&write.0)?;
    }
    let mut known = Parameters::new(&runner.declared);
    let (how, returning) = match &*write.0 {
        Said::Insert(said) => {
            let plan = inserts::plan(runner, said, (&table, &alias), &mut known).await?;
            (How::Insert(plan), &said.returning)
        }
        Said::Update(said) => {
            let plan = changes::plan_update(runner, said, (&table, &alias), &mut known).await?;
            (How::Update(plan), &said.returning)
        }
        Said::Delete(said) if is_hypertable => {
            (How::Remove(Removal::plan(runner, said, &mut known).await?), &None)
        }
        Said::Delete(said) => {
            let plan = changes::plan_delete(runner, said, (&table, &alias), &mut known).await?;
            (How::Delete(plan), &said.returning)
        }
    };
    let returning = match returning {
        Some(items) => {
            let (statement, slot) = plan_returning(runner, items, &table, &alias).await?;
            add_parameters(&mut known, &statement)?;
            Some((statement, slot))
        }
        None => None,
    };
    let parameters = in_order(known.known)?;
    let seen = Some(table.shared_schema());
    Ok(PlannedWrite(Hidden::new(Planned { table: name, seen, how, returning, parameters })))
}

/// Whether the rows of a table are in the store of samples.
fn is_of_series(schema: &Schema) -> bool {
    Hypertable::is_one(schema) || PrometheusTable::of(schema).is_some()
}

/// Whether nobody has made a table of that name, or one of samples.
fn is_of_samples(view: &View, name: &str) -> bool {
    view.get(name).is_none_or(|table| PrometheusTable::of(table.schema()).is_some())
}

/// Plans a `DELETE` of samples, of a table that nobody has made.
async fn plan_removal(
    runner: &Runner,
    said: &ast::Delete,
    table: String,
) -> Result<PlannedWrite, SqlError> {
    let mut known = Parameters::new(&runner.declared);
    let how = How::Remove(Removal::plan(runner, said, &mut known).await?);
    let (seen, parameters) = (None, in_order(known.known)?);
    Ok(PlannedWrite(Hidden::new(Planned { table, seen, how, returning: None, parameters })))
}

/// What the parser takes of other databases' words would change other rows, or others besides.
fn check_words(said: &Said) -> Result<(), SqlError> {
    check_returned(said)?;
    let is_plain = match said {
        Said::Insert(said) => {
            let is_of_others = said.ignore || said.overwrite || said.replace_into || !said.into;
            !is_of_others
                && said.or.is_none()
                && said.assignments.is_empty()
                && said.partitioned.is_none()
                && said.after_columns.is_empty()
                && said.output.is_none()
                && said.insert_alias.is_none()
                && said.settings.is_none()
                && said.format_clause.is_none()
                && said.multi_table_insert_type.is_none()
                && said.multi_table_into_clauses.is_empty()
        }
        Said::Update(said) => {
            let is_before = matches!(said.from, Some(ast::UpdateTableFromKind::BeforeSet(_)));
            said.output.is_none() && said.or.is_none() && !is_before
        }
        Said::Delete(said) => {
            let has_from = matches!(said.from, FromTable::WithFromKeyword(_));
            said.tables.is_empty() && said.output.is_none() && has_from
        }
    };
    match is_plain {
        true => Ok(()),
        false => Err(SqlError::invalid("a word that PostgreSQL does not have in such a statement")),
    }
}

/// `RETURNING *` has the columns of the tables beside, too, which are not known there.
fn check_returned(said: &Said) -> Result<(), SqlError> {
    let (returning, has_others) = match said {
        Said::Insert(_) => return Ok(()),
        Said::Update(said) => (&said.returning, said.from.is_some()),
        Said::Delete(said) => (&said.returning, said.using.is_some()),
    };
    let is_all = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_));
    match has_others && returning.iter().flatten().any(is_all) {
        true => {
            let words = "RETURNING * with columns of another table is not known here";
            Err(SqlError::unsupported(words).with_hint("Name the columns, or say table.*."))
        }
        false => Ok(()),
    }
}

/// What can be done to a hypertable: rows are inserted, and deleted by time and labels.
fn check_hypertable(said: &Said) -> Result<(), SqlError> {
    let (what, hint) = match said {
        Said::Insert(said) if said.on.is_some() => (
            "INSERT .. ON CONFLICT into",
            "A row takes the place of the one with the same time and labels: leave it out.",
        ),
        Said::Insert(said) if said.returning.is_none() => return Ok(()),
        Said::Insert(_) => ("INSERT .. RETURNING into", "Leave RETURNING out, and ask afterwards."),
        Said::Update(_) => (
            "UPDATE of",
            "INSERT a row with the same time and labels: it takes the place of the other.",
        ),
        Said::Delete(_) => return Ok(()),
    };
    Err(SqlError::unsupported(format!("{what} a hypertable is not known here")).with_hint(hint))
}

async fn plan_returning(
    runner: &Runner,
    items: &[SelectItem],
    table: &Table,
    alias: &str,
) -> Result<(Statement, Slot), SqlError> {
    for item in items {
        refuse_in_change(item, "RETURNING")?;
    }
    let slot = Slot::default();
    let query = selecting(items.to_vec(), vec![relation(HANDED_SCHEMA, RETURNED, alias)?], None)?;
    let rows = Ordinary::of_slot(&slot, table.shared_schema(), false);
    runner.view.hand(RETURNED, Arc::new(rows));
    let planned = runner.plan_with(query).await;
    runner.view.take_back(RETURNED);
    Ok((planned?, slot))
}

impl PlannedWrite {
    /// What the statement is called.
    pub fn word(&self) -> &'static str {
        match self.0.how {
            How::Insert(_) => "INSERT",
            How::Update(_) => "UPDATE",
            How::Delete(_) | How::Remove(_) => "DELETE",
        }
    }

    /// The columns that it returns; none where it returns nothing.
    pub fn returned(&self) -> Option<SchemaRef> {
        self.0.returning.as_ref().map(|(statement, _)| statement.schema())
    }

    /// The types of its parameters, as far as they are known.
    pub fn parameters(&self) -> Vec<Option<DataType>> {
        self.0.parameters.clone()
    }

    /// Whether its table is still as it was planned for, and with it the tables that it reads.
    pub fn is_current(&self, view: &View) -> bool {
        let Planned { table, seen, how, .. } = &*self.0;
        let is_same = match seen {
            Some(seen) => view.get(table).is_some_and(|table| *table.schema() == **seen),
            None => is_of_samples(view, table),
        };
        is_same
            && match how {
                How::Insert(plan) => plan.is_current(view),
                How::Update(plan) | How::Delete(plan) => plan.is_current(view),
                How::Remove(removal) => removal.is_current(view),
            }
    }
}

/// Waits until it may change tables: what is no part of a transaction takes turns.
pub async fn its_turn<'t>(
    view: &View,
    turn: &'t tokio::sync::Mutex<()>,
) -> Option<tokio::sync::MutexGuard<'t, ()>> {
    match view.has_begun() {
        true => None,
        false => Some(turn.lock().await),
    }
}

/// The same for who adds rows to a table; those of a hypertable are added side by side.
pub async fn its_turn_to_add<'t>(
    view: &View,
    turn: &'t tokio::sync::Mutex<()>,
    seen: &Schema,
) -> Option<tokio::sync::MutexGuard<'t, ()>> {
    match Hypertable::is_one(seen) {
        true => None,
        false => its_turn(view, turn).await,
    }
}

/// A table that looks as it did when values were made for its columns.
///
/// # Errors
/// When it does not, or is gone.
pub fn unaltered(view: &View, name: &str, seen: &Schema) -> Result<Arc<Table>, SqlError> {
    let table = view.expect(name)?;
    match *table.schema() == *seen {
        true => Ok(table),
        false => {
            let words = format!("table \"{name}\" was altered meanwhile");
            Err(SqlError::new("40001", words).with_hint("Do it again."))
        }
    }
}

/// Adds rows to a hypertable once the transaction under way is committed.
///
/// # Errors
/// When one of them cannot be stored.
pub fn add_rows(runner: &Runner, table: &Table, rows: Vec<inserts::Row>) -> Result<(), SqlError> {
    let memory = runner.memory("rows of a hypertable");
    let Some(mut into) = SeriesRows::new(table, runner.view.series(), memory) else {
        return Err(SqlError::unexpected(format!("\"{}\" is no hypertable", table.name())));
    };
    let mut values = Vec::new();
    for row in rows {
        values.clear();
        values.extend(row.into_iter().map(|value| value.unwrap_or(Datum::Null)));
        into.push(&values)?;
    }
    runner.view.add(into)
}

/// All rows that are returned.
async fn returned(
    runner: &Runner,
    statement: &Statement,
    parameters: &[ScalarValue],
) -> Result<SendableRecordBatchStream, SqlError> {
    let memory = runner.memory("rows to return");
    let mut batches = Vec::new();
    let read = runner.each(statement, parameters, |batch| {
        memory.try_grow(batch.get_array_memory_size())?;
        batches.push(Ok(batch.clone()));
        Ok(())
    });
    read.await?;
    let rows = futures::stream::iter(batches).map(move |batch| {
        let _ = &memory;
        batch
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(statement.schema(), rows)))
}

/// Does what was planned: all of it or nothing, durably unless a transaction is under way.
///
/// # Errors
/// What is wrong with it; nothing is changed then.
pub async fn write(
    runner: &Runner,
    planned: &PlannedWrite,
    turn: &tokio::sync::Mutex<()>,
    parameters: &[ScalarValue],
    fate: &Fate,
) -> Result<Written, SqlError> {
    let Planned { table: name, seen, how, returning, .. } = &*planned.0;
    if let How::Remove(removal) = how {
        let rows = removal.run(runner, parameters, fate).await?;
        return Ok(Written { tag: "DELETE", rows, answer: None });
    }
    let seen = seen.as_ref().ok_or_else(|| no_such_table(name))?;
    // What is inserted is worked out before anybody else is kept waiting.
    let given = match how {
        How::Insert(plan) => Some(inserts::rows(runner, plan, seen, parameters).await?),
        How::Update(_) | How::Delete(_) | How::Remove(_) => None,
    };
    let _turn = its_turn_to_add(&runner.view, turn, seen).await;
    let changing = runner.view.changing()?;
    let before = unaltered(&runner.view, name, seen)?;
    let (tag, ids) = match how {
        How::Insert(plan) => {
            // Their memory is held until they are in the table.
            let (rows, _held) = given.unwrap_or_default();
            if Hypertable::is_one(seen) {
                let count = rows.len() as u64;
                add_rows(runner, &before, rows)?;
                tokio::task::block_in_place(|| changing.done(fate))?;
                return Ok(Written { tag: "INSERT", rows: count, answer: None });
            }
            ("INSERT", inserts::insert(runner, plan, &before, rows, parameters).await?)
        }
        How::Update(plan) => ("UPDATE", changes::update(runner, plan, &before, parameters).await?),
        How::Delete(plan) => ("DELETE", changes::delete(runner, plan, &before, parameters).await?),
        How::Remove(_) => return Err(SqlError::unexpected("a hypertable that is done already")),
    };
    let count = ids.len() as u64;
    let after = match how {
        How::Delete(_) | How::Remove(_) => before,
        How::Insert(_) | How::Update(_) => runner.view.expect(name)?,
    };
    // What cannot be returned is not done.
    let answer = match returning {
        Some((statement, slot)) => {
            let _handed = put(slot, Rows::Of(after, ids.into()));
            Some(returned(runner, statement, parameters).await?)
        }
        None => None,
    };
    tokio::task::block_in_place(|| changing.done(fate))?;
    Ok(Written { tag, rows: count, answer })
}
