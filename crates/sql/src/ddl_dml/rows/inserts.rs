//! `INSERT INTO table`: values as they are written, or the rows of a query.

use crate::ddl_dml::definitions::defaults;
use crate::ddl_dml::definitions::defaults::{Default, Numbers};
use crate::ddl_dml::rows::conflicts::OnConflict;
use crate::ddl_dml::rows::{assignments, conflicts};
use crate::ddl_dml::runner::{Parameters, Runner, add_parameters};
use crate::parse::rewrite::expressions::{call, cast, is_placeholder, text_literal};
use crate::parse::rewrite::rules::refuse_in_change;
use crate::plan::ready::Statement;
use crate::tables::heap::column_defaults::Numbered;
use crate::tables::heap::columns::{cast_type, number_of, parameter_type};
use crate::tables::heap::scan::Slot;
use crate::tables::heap::values::row_size;
use crate::tables::heap::view::View;
use crate::tables::heap::{column_defaults, values};
use crate::types::casts::cast_functions::{JSON_IN, JSONB_IN};
use crate::types::error::SqlError;
use crate::types::names::folded;
use crate::types::special_fields::JSON;
use crate::types::uuids::UUID_IN;
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    self, DataType as SqlType, Expr, ObjectName, ObjectNamePart, Query, SetExpr, Value,
    ValueWithSpan,
};
use std::collections::HashMap;
use std::sync::Arc;
use tables::{Change, Column, ColumnType, Datum, RowId, Scalar, Schema, Table};

/// A planned `INSERT`.
pub struct InsertPlan {
    /// The columns of the values of a row, by their places.
    targets: Vec<usize>,
    source: Source,
    defaults: Defaults,
    /// What becomes of rows whose keys are there.
    on_conflict: Option<OnConflict>,
}

enum Source {
    /// `VALUES` that need not be worked out.
    Values(Vec<Vec<Cell>>),
    /// A query; of its rows and places these are known beforehand, none for defaults.
    Query(Statement, HashMap<(usize, usize), Option<Datum>>),
}

/// A value of a row.
enum Cell {
    Value(Datum),
    /// A parameter by its place.
    Parameter(usize),
    Default,
}

/// What columns have where nothing is said.
pub struct Defaults {
    all: Vec<Default>,
    /// Those that are worked out for each row, and the columns they are of.
    planned: Option<((Statement, Slot), Vec<usize>)>,
}

/// A row on its way: what is not said is none.
pub type Row = Vec<Option<Datum>>;

/// A column of a table by its name.
///
/// # Errors
/// When there is none.
pub fn column_at(table: &Table, name: &ObjectName) -> Result<usize, SqlError> {
    // The first part is the column, the next one a field of it.
    let ident = name.0.first().and_then(ObjectNamePart::as_ident);
    let column = ident.map(folded).unwrap_or_default();
    let at = table.schema().column(&column).ok_or_else(|| {
        let words = format!("column \"{column}\" of relation \"{}\" does not exist", table.name());
        SqlError::new("42703", words)
    })?;
    match name.0.get(1) {
        None => Ok(at),
        Some(field) => {
            let words = format!(
                "cannot assign to field {field} of column \"{column}\": its type is not composite"
            );
            Err(SqlError::new("42804", words))
        }
    }
}

/// Plans an `INSERT`.
///
/// # Errors
/// When it makes no sense.
pub async fn plan(
    runner: &Runner,
    said: &ast::Insert,
    (table, alias): (&Arc<Table>, &str),
    known: &mut Parameters,
) -> Result<InsertPlan, SqlError> {
    let mut targets = Vec::with_capacity(said.columns.len());
    for name in &said.columns {
        let at = column_at(table, name)?;
        if targets.contains(&at) {
            let name = &table.schema().columns[at].name;
            return Err(SqlError::new(
                "42701",
                format!("column \"{name}\" specified more than once"),
            ));
        }
        targets.push(at);
    }
    let source = match &said.source {
        Some(source) => {
            source_of(runner, source, table, &mut targets, &said.columns, known).await?
        }
        // DEFAULT VALUES
        None => Source::Values(vec![Vec::new()]),
    };
    refuse_given_numbers(table, &targets, &source)?;
    let defaults = Defaults::of(runner, table.schema()).await?;
    let on_conflict = match &said.on {
        Some(on) => Some(conflicts::plan(runner, on, (table, alias), known).await?),
        None => None,
    };
    Ok(InsertPlan { targets, source, defaults, on_conflict })
}

/// Columns that are always numbered take no number.
fn refuse_given_numbers(table: &Table, targets: &[usize], source: &Source) -> Result<(), SqlError> {
    for (place, at) in targets.iter().enumerate() {
        let column = &table.schema().columns[*at];
        let is_given = match source {
            Source::Values(rows) => {
                rows.iter().any(|row| !matches!(row.get(place), Some(Cell::Default) | None))
            }
            Source::Query(..) => true,
        };
        if is_given
            && column_defaults::numbered(table.schema(), &column.name) == Some(Numbered::Always)
        {
            let words =
                format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name);
            return Err(SqlError::new("428C9", words));
        }
    }
    Ok(())
}

/// How many values a row may have: those that are named, or as many as come.
fn fit(
    table: &Table,
    targets: &mut Vec<usize>,
    is_named: bool,
    count: usize,
) -> Result<(), SqlError> {
    let most = if is_named { targets.len() } else { table.schema().columns.len() };
    if most < count {
        return Err(SqlError::invalid("INSERT has more expressions than target columns"));
    }
    if is_named && count < most {
        return Err(SqlError::invalid("INSERT has more target columns than expressions"));
    }
    if !is_named {
        *targets = (0..count.max(targets.len())).collect();
    }
    Ok(())
}

async fn source_of(
    runner: &Runner,
    source: &Query,
    table: &Table,
    targets: &mut Vec<usize>,
    named: &[ObjectName],
    known: &mut Parameters,
) -> Result<Source, SqlError> {
    let is_plain =
        source.with.is_none() && source.order_by.is_none() && source.limit_clause.is_none();
    if let (true, SetExpr::Values(values)) = (is_plain, &*source.body) {
        for row in &values.rows {
            for expr in &row.content {
                refuse_in_change(expr, "VALUES")?;
            }
            fit(table, targets, !named.is_empty(), row.content.len())?;
        }
        let columns: Vec<&Column> = targets.iter().map(|at| &table.schema().columns[*at]).collect();
        let cells: Option<Vec<Vec<Cell>>> =
            values.rows.iter().map(|row| cells_of(&row.content, known, &columns)).collect();
        if let Some(rows) = cells {
            return Ok(Source::Values(rows));
        }
    }
    let mut source = source.clone();
    let mut known_cells = HashMap::new();
    if let (true, SetExpr::Values(values)) = (is_plain, &mut *source.body) {
        let columns: Vec<&Column> = targets.iter().map(|at| &table.schema().columns[*at]).collect();
        let has_rows = 1 < values.rows.len();
        for (at, row) in values.rows.iter_mut().enumerate() {
            for (place, (expr, column)) in row.content.iter_mut().zip(&columns).enumerate() {
                let plain = match is_default(expr) {
                    true => Some(None),
                    false => defaults::plain(expr)
                        .map(|one| values::assign_written(column, one))
                        .transpose()?
                        .map(Some),
                };
                // What is no expression has no type that those in other rows would have to have.
                match plain {
                    Some(value) => {
                        known_cells.insert((at, place), value);
                        *expr = Expr::Value(Value::Null.into());
                    }
                    None => *expr = value_for(expr, column, known),
                }
                // All rows of VALUES have one type.
                if let (true, Some(function)) = (has_rows, reader_of(column)) {
                    *expr = call(function, vec![expr.clone()]);
                }
            }
        }
    }
    let planned = runner.plan_with(Box::new(source)).await?;
    fit(table, targets, !named.is_empty(), planned.schema().fields().len())?;
    add_parameters(known, &planned)?;
    for (place, at) in targets.iter().enumerate() {
        let is_known = (0..).map_while(|row| known_cells.get(&(row, place))).next().is_some();
        if !is_known {
            assignments::check(&planned, place, &table.schema().columns[*at])?;
        }
    }
    Ok(Source::Query(planned, known_cells))
}

/// The function that reads a text as the type of a column which arrow has as a text.
fn reader_of(column: &Column) -> Option<&'static str> {
    match column.ty {
        ColumnType::One(Scalar::Jsonb) if column.declared == JSON => Some(JSON_IN),
        ColumnType::One(Scalar::Jsonb) => Some(JSONB_IN),
        ColumnType::One(Scalar::Uuid) => Some(UUID_IN),
        _ => None,
    }
}

/// Whether it is the word `DEFAULT`.
pub fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(ident)
        if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

fn place_of(expr: &Expr) -> Option<(&str, usize)> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Placeholder(name), .. }) => {
            let number: usize = name.strip_prefix('$')?.parse().ok()?;
            Some((name, number.checked_sub(1)?))
        }
        _ => None,
    }
}

/// A row of values that need not be worked out; none of others.
fn cells_of(row: &[Expr], known: &mut Parameters, columns: &[&Column]) -> Option<Vec<Cell>> {
    let cell = |(expr, column): (&Expr, &&Column)| {
        if is_default(expr) {
            return Some(Cell::Default);
        }
        if let Some((name, place)) = place_of(expr) {
            known.insert(name, parameter_type(column));
            return Some(Cell::Parameter(place));
        }
        defaults::plain(expr).map(Cell::Value)
    };
    row.iter().zip(columns).map(cell).collect()
}

/// A value as its column wants it, where it has no type by itself.
pub fn value_for(expr: &Expr, column: &Column, known: &mut Parameters) -> Expr {
    let wanted = cast_type(column.ty);
    if is_placeholder(expr) {
        if let Some((name, _)) = place_of(expr) {
            // What it becomes is looked at when it is there.
            if known.is_declared(name) {
                return expr.clone();
            }
            if wanted.is_none() {
                known.insert(name, parameter_type(column));
            }
        }
        return cast(expr.clone(), wanted.unwrap_or(SqlType::Text));
    }
    let is_numeric = column.ty.scalar() == Scalar::Numeric;
    match (defaults::plain(expr), wanted) {
        (Some(Datum::Text(_) | Datum::Null), Some(wanted)) => cast(expr.clone(), wanted),
        // As many digits as were written.
        (Some(Datum::Int8(_) | Datum::Numeric(_)), _) if is_numeric => {
            number_of(expr).map_or_else(|| expr.clone(), text_literal)
        }
        // As PostgreSQL rounds what is written, and not as floats are.
        (Some(Datum::Numeric(digits)), Some(_)) => {
            match values::assign_written(column, Datum::Numeric(digits)) {
                Ok(Datum::Int2(number)) => whole(i64::from(number)),
                Ok(Datum::Int4(number)) => whole(i64::from(number)),
                Ok(Datum::Int8(number)) => whole(number),
                _ => expr.clone(),
            }
        }
        _ => expr.clone(),
    }
}

fn whole(number: i64) -> Expr {
    Expr::Value(Value::Number(number.to_string(), false).into())
}

impl Defaults {
    /// Of a table's columns.
    ///
    /// # Errors
    /// When one cannot be worked out.
    pub async fn of(runner: &Runner, schema: &Schema) -> Result<Defaults, SqlError> {
        let columns = schema.columns.iter();
        let all =
            columns.map(|one| defaults::of_column(schema, one)).collect::<Result<Vec<_>, _>>()?;
        let (mut places, mut exprs) = (Vec::new(), Vec::new());
        for (at, default) in all.iter().enumerate() {
            if let Default::Expression(expr) = default {
                places.push(at);
                exprs.push((**expr).clone());
            }
        }
        let planned = match exprs.is_empty() {
            true => None,
            false => Some((defaults::plan(runner, exprs).await?, places)),
        };
        Ok(Defaults { all, planned })
    }

    /// Fills in what rows do not say, but for numbers.
    ///
    /// # Errors
    /// When a default cannot be worked out.
    pub async fn fill(
        &self,
        runner: &Runner,
        table: &Schema,
        rows: &mut [Row],
    ) -> Result<(), SqlError> {
        for row in rows.iter_mut() {
            for (value, default) in row.iter_mut().zip(&self.all) {
                if let (None, Default::Value(default)) = (&value, default) {
                    *value = Some(default.clone());
                }
            }
        }
        let Some((planned, places)) = &self.planned else { return Ok(()) };
        let is_open = |row: &Row| places.iter().any(|at| row[*at].is_none());
        let open: Vec<usize> = (0..rows.len()).filter(|at| is_open(&rows[*at])).collect();
        let columns: Vec<&Column> = places.iter().map(|at| &table.columns[*at]).collect();
        let made = defaults::values_of(runner, planned, open.len(), &columns).await?;
        for (at, values) in open.into_iter().zip(made) {
            for (place, value) in places.iter().zip(values) {
                rows[at][*place].get_or_insert(value);
            }
        }
        Ok(())
    }
}

impl InsertPlan {
    /// Whether the tables that it reads are as they were.
    pub fn is_current(&self, view: &View) -> bool {
        let source = match &self.source {
            Source::Values(_) => true,
            Source::Query(statement, _) => statement.is_current(view),
        };
        source && self.on_conflict.as_ref().is_none_or(|one| one.is_current(view))
    }
}

/// The rows that a statement inserts, with all but their numbers.
///
/// # Errors
/// When a value does not fit, and when they are too many for the memory.
pub async fn rows(
    runner: &Runner,
    plan: &InsertPlan,
    schema: &Schema,
    parameters: &[ScalarValue],
) -> Result<(Vec<Row>, Option<Held>), SqlError> {
    let columns = &schema.columns;
    let mut memory = Held { memory: runner.memory("rows to insert"), size: 0 };
    let mut rows: Vec<Row> = Vec::new();
    match &plan.source {
        Source::Values(all) => {
            for cells in all {
                let mut row = vec![None; columns.len()];
                for (at, cell) in plan.targets.iter().zip(cells) {
                    row[*at] = match cell {
                        Cell::Value(value) => {
                            Some(values::assign_written(&columns[*at], value.clone())?)
                        }
                        Cell::Parameter(place) => Some(bound(&columns[*at], parameters, *place)?),
                        Cell::Default => None,
                    };
                }
                memory.add(&row)?;
                rows.push(row);
            }
        }
        Source::Query(statement, known_cells) => {
            let read = runner.each(statement, parameters, |batch| {
                for at in 0..batch.num_rows() {
                    let mut row = vec![None; columns.len()];
                    for (place, target) in plan.targets.iter().enumerate() {
                        row[*target] = match known_cells.get(&(rows.len(), place)) {
                            Some(known) => known.clone(),
                            None => {
                                let value = values::of_array(batch.column(place), at)?;
                                Some(values::assign(&columns[*target], value)?)
                            }
                        };
                    }
                    memory.add(&row)?;
                    rows.push(row);
                }
                Ok(())
            });
            read.await?;
        }
    }
    plan.defaults.fill(runner, schema, &mut rows).await?;
    Ok((rows, Some(memory)))
}

/// Bytes that a row on its way takes in memory, about.
pub fn size_of_row(row: &Row) -> usize {
    let values: usize = row.iter().flatten().map(|one| row_size(std::slice::from_ref(one))).sum();
    values + size_of_val(row.as_slice())
}

/// Memory for rows, taken as they come; it is given back when this is dropped.
pub struct Held {
    memory: datafusion::execution::memory_pool::MemoryReservation,
    size: usize,
}

impl Held {
    fn add(&mut self, row: &Row) -> Result<(), SqlError> {
        self.size += size_of_row(row);
        // Not in pieces that are too small.
        if self.memory.size() < self.size {
            self.memory.try_grow(self.size - self.memory.size() + (1 << 20))?;
        }
        Ok(())
    }
}

fn bound(column: &Column, parameters: &[ScalarValue], place: usize) -> Result<Datum, SqlError> {
    let value = parameters.get(place);
    let value =
        value.ok_or_else(|| SqlError::new("08P01", format!("no parameter ${}", place + 1)))?;
    values::assign_written(column, values::of_scalar(value)?)
}

/// Inserts rows, within the transaction under way. Returns the rows that came, or were changed instead.
///
/// # Errors
/// When one cannot be; nothing is inserted then.
pub async fn insert(
    runner: &Runner,
    plan: &InsertPlan,
    table: &Table,
    rows: Vec<Row>,
    parameters: &[ScalarValue],
) -> Result<Vec<RowId>, SqlError> {
    if let Some(on_conflict) = &plan.on_conflict {
        return conflicts::insert(runner, on_conflict, table, rows, parameters).await;
    }
    insert_rows(runner, table, rows)
}

/// The same, whatever is there already.
///
/// # Errors
/// As [`insert`].
pub fn insert_rows(runner: &Runner, table: &Table, rows: Vec<Row>) -> Result<Vec<RowId>, SqlError> {
    let (mut numbers, first) = (Numbers::of(table.schema()), table.next_row());
    let count = rows.len() as u64;
    let filled =
        rows.into_iter().zip(first..).map(|(row, number)| numbers.fill(table, row, number));
    let rows = filled.collect::<Result<Vec<_>, _>>()?;
    runner.view.apply(vec![Change::Insert { table: table.name().to_string(), rows }])?;
    Ok((first..first + count).map(RowId).collect())
}
