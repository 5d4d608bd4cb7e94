//! `COPY table FROM STDIN`: rows of values into an ordinary table, all of them or none.

use crate::copy::copy_values::{BadRow, RowError, Values, ValuesReader};
use crate::copy::statement::{RowFormat, TableRows};
use crate::ddl_dml::rows::inserts::{Defaults, Row, insert_rows, size_of_row};
use crate::ddl_dml::rows::writes::{add_rows, its_turn_to_add, unaltered};
use crate::ddl_dml::runner::Runner;
use crate::tables::heap::view::Fate;
use crate::tables::heap::{binary, values};
use crate::tables::hypertables::shape::Hypertable;
use crate::types::error::SqlError;
use std::str::from_utf8;
use std::sync::Arc;
use tables::{Column, Datum, Table};

/// Rows on their way into a table.
pub struct RowsInto {
    table: Arc<Table>,
    /// The columns of the values of a row, by their places.
    targets: Vec<usize>,
    is_binary: bool,
    reader: ValuesReader,
    rows: Vec<Row>,
    size: usize,
}

impl RowsInto {
    /// Into a table that a session sees.
    ///
    /// # Errors
    /// When it has no such columns.
    pub(crate) fn new(table: Arc<Table>, said: &TableRows) -> Result<RowsInto, SqlError> {
        let columns = &table.schema().columns;
        let place = |name: &String| {
            table.schema().column(name).ok_or_else(|| {
                let words =
                    format!("column \"{name}\" of relation \"{}\" does not exist", table.name());
                SqlError::new("42703", words)
            })
        };
        let targets = match &said.columns {
            Some(names) => names.iter().map(place).collect::<Result<Vec<_>, _>>()?,
            None => (0..columns.len()).collect(),
        };
        let names = targets.iter().map(|at| columns[*at].name.clone()).collect();
        let reader = ValuesReader::new(said.format.clone(), names);
        let is_binary = said.format == RowFormat::Binary;
        Ok(RowsInto { table, targets, is_binary, reader, rows: Vec::new(), size: 0 })
    }

    /// How many values a row has.
    pub fn column_count(&self) -> usize {
        self.targets.len()
    }

    /// Whether values come in binary.
    pub fn is_binary(&self) -> bool {
        self.is_binary
    }

    /// The table's name.
    pub fn table(&self) -> &str {
        self.table.name()
    }

    /// Bytes that it takes in memory, about.
    pub fn size(&self) -> usize {
        self.size + self.reader.waiting_size()
    }

    /// Takes a piece. Bad rows are left out where `skips`; returns how many.
    ///
    /// # Errors
    /// Of a bad row, and of one that does not end.
    pub fn push(&mut self, piece: &[u8], skips: bool) -> Result<u64, RowError> {
        let RowsInto { table, targets, is_binary, reader, rows, size } = self;
        let mut take = |values| take_row(table, targets, *is_binary, (rows, size), values);
        reader.push(piece, skips, &mut take)
    }

    /// Takes the last row, which may lack its end.
    ///
    /// # Errors
    /// As [`RowsInto::push`], and when what came ends within a row.
    pub fn finish(&mut self, skips: bool) -> Result<u64, RowError> {
        let RowsInto { table, targets, is_binary, reader, rows, size } = self;
        let mut take = |values| take_row(table, targets, *is_binary, (rows, size), values);
        reader.finish(skips, &mut take)
    }
}

/// Keeps a row that came.
fn take_row(
    table: &Table,
    targets: &[usize],
    is_binary: bool,
    (rows, size): (&mut Vec<Row>, &mut usize),
    values: Values,
) -> Result<(), BadRow> {
    let row = row_of(&table.schema().columns, targets, values, is_binary)?;
    *size += size_of_row(&row);
    rows.push(row);
    Ok(())
}

fn row_of(
    columns: &[Column],
    targets: &[usize],
    values: Values,
    is_binary: bool,
) -> Result<Row, BadRow> {
    let mut row: Row = vec![None; columns.len()];
    for (at, value) in targets.iter().zip(values) {
        let column = &columns[*at];
        let read = match &value {
            None => Ok(Datum::Null),
            Some(bytes) if is_binary => binary::read(column, bytes),
            Some(bytes) => match from_utf8(bytes) {
                Ok(text) => values::read(column, text),
                Err(error) => Err(SqlError::not_text(error.to_string())),
            },
        };
        row[*at] = Some(read.map_err(|error| BadRow::from(error).of_column(&column.name))?);
    }
    Ok(row)
}

/// Adds the rows that came: durably, unless a transaction is under way. Returns how many.
///
/// # Errors
/// When one cannot be; none is added then.
pub(crate) async fn store(
    runner: &Runner,
    into: RowsInto,
    turn: &tokio::sync::Mutex<()>,
) -> Result<u64, SqlError> {
    let RowsInto { table, mut rows, .. } = into;
    let defaults = Defaults::of(runner, table.schema()).await?;
    defaults.fill(runner, table.schema(), &mut rows).await?;
    let _turn = its_turn_to_add(&runner.view, turn, table.schema()).await;
    let changing = runner.view.changing()?;
    let now = unaltered(&runner.view, table.name(), table.schema())?;
    let count = rows.len() as u64;
    match Hypertable::is_one(now.schema()) {
        true => add_rows(runner, &now, rows)?,
        false => drop(insert_rows(runner, &now, rows)?),
    }
    tokio::task::block_in_place(|| changing.done(&Fate::default()))?;
    Ok(count)
}
