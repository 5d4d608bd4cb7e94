//! All tables at one moment.

use crate::error::{Error, Result, check_limit};
use crate::limits::TABLES_MAX;
use crate::record::Effect;
use crate::row;
use crate::table::{ROW_NUMBER_END, SharedBytes, Table};
use crate::tree::Tree;
use std::sync::Arc;

/// All tables at one moment. It never changes: whoever has it reads what was then.
#[derive(Clone, Debug, Default)]
pub struct TableSet {
    /// The number of the last record of the log that it shows.
    pub(crate) seq: u64,
    pub(crate) tables: Tree<u64, Arc<Table>>,
    pub(crate) names: Tree<Arc<str>, u64>,
    pub(crate) size: u64,
}

/// Where an effect's bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// This process has made them of values that it checked.
    Statement,
    /// A file.
    Log,
}

impl TableSet {
    /// A table by its name.
    pub fn get(&self, name: &str) -> Option<Arc<Table>> {
        self.tables.get(self.names.get(name)?).cloned()
    }

    /// All tables, by name.
    pub fn list(&self) -> Vec<Arc<Table>> {
        self.names.iter().filter_map(|(_, id)| self.tables.get(id).cloned()).collect()
    }

    /// Bytes that they take in memory, about.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// How many statements have changed tables since the data directory was new.
    pub fn statement_count(&self) -> u64 {
        self.seq
    }

    /// A table by its name, that must be there.
    pub(crate) fn expect(&self, name: &str) -> Result<Arc<Table>> {
        self.get(name).ok_or_else(|| Error::NoSuchTable { table: name.to_owned() })
    }

    /// Puts a table in the place of the one with its number, or takes that out.
    pub(crate) fn put(&mut self, id: u64, table: Option<Arc<Table>>) {
        let added = table.as_ref().map_or(0, |table| table.size());
        let before = match table {
            Some(table) => self.tables.insert(id, table),
            None => self.tables.remove(&id),
        };
        self.size = self.size + added - before.map_or(0, |before| before.size());
    }

    /// Gives a name to a table, or takes it away.
    pub(crate) fn put_name(&mut self, name: &str, id: Option<u64>) {
        match id {
            Some(id) => self.names.insert(name.into(), id),
            None => self.names.remove(name),
        };
    }

    /// Applies an effect; when it fails, some of it may be there.
    pub(crate) fn apply(&mut self, effect: Effect<'_>, origin: Origin) -> Result<()> {
        match effect {
            Effect::Create { id, name, schema } => {
                schema.check(name)?;
                self.check_free(name)?;
                check_limit("tables", self.tables.len() + 1, TABLES_MAX)?;
                if self.tables.get(&id).is_some() {
                    return Err(Error::DuplicateTable { table: format!("number {id}") });
                }
                self.put_name(name, Some(id));
                self.put(id, Some(Arc::new(Table::new(id, name, schema))));
                Ok(())
            }
            Effect::Drop { id } => {
                let table = self.of_number(id)?;
                self.put_name(table.name(), None);
                self.put(id, None);
                Ok(())
            }
            Effect::Alter { id, name, schema, from, fill } => {
                schema.check(name)?;
                let table = self.of_number(id)?;
                if table.name() != name {
                    self.check_free(name)?;
                }
                let rebuilt = table.rebuilt(name, schema, &from, &fill)?;
                if table.name() != name {
                    self.put_name(table.name(), None);
                    self.put_name(name, Some(id));
                }
                self.put(id, Some(Arc::new(rebuilt)));
                Ok(())
            }
            of_rows => self.apply_to_rows(of_rows, origin),
        }
    }

    fn apply_to_rows(&mut self, effect: Effect<'_>, origin: Origin) -> Result<()> {
        let id = effect.table();
        let mut table = Table::clone(self.of_number(id)?.as_ref());
        let shared = |bytes: &[u8]| checked(&table, bytes, origin);
        match effect {
            Effect::Insert { first_row, rows, .. } => {
                let rows: Vec<_> = rows.into_iter().map(shared).collect::<Result<_>>()?;
                check_row_numbers(&table, first_row, rows.len())?;
                table.add((first_row..).zip(rows))?;
            }
            Effect::Update { rows, .. } => {
                let shared = |(id, bytes): (u64, &[u8])| Ok((id, shared(bytes)?));
                let rows = rows.into_iter().map(shared).collect::<Result<_>>()?;
                table.replace(rows)?;
            }
            Effect::Delete { rows, .. } => table.remove(rows)?,
            Effect::Truncate { .. } => table.truncate(),
            Effect::Create { .. } | Effect::Drop { .. } | Effect::Alter { .. } => {
                unreachable!("they are of no rows")
            }
        }
        self.put(id, Some(Arc::new(table)));
        Ok(())
    }

    /// Adds rows of a table that lost them, with the numbers that they had.
    pub(crate) fn restore_rows(&mut self, id: u64, rows: Vec<(u64, &[u8])>) -> Result<()> {
        let mut table = Table::clone(self.of_number(id)?.as_ref());
        for (row, bytes) in rows {
            let bytes = checked(&table, bytes, Origin::Log)?;
            table.add([(row, bytes)])?;
        }
        self.put(id, Some(Arc::new(table)));
        Ok(())
    }

    fn of_number(&self, id: u64) -> Result<Arc<Table>> {
        let table = self.tables.get(&id).cloned();
        table.ok_or_else(|| Error::NoSuchTable { table: format!("number {id}") })
    }

    fn check_free(&self, name: &str) -> Result<()> {
        match self.names.get(name) {
            None => Ok(()),
            Some(_) => Err(Error::DuplicateTable { table: name.to_owned() }),
        }
    }
}

/// A row's bytes; those of a file are looked at.
fn checked(table: &Table, bytes: &[u8], origin: Origin) -> Result<SharedBytes> {
    if origin == Origin::Log {
        check_row(table, bytes)?;
    }
    Ok(bytes.into())
}

/// Whether bytes are a row of a table.
pub(crate) fn check_row(table: &Table, bytes: &[u8]) -> Result<()> {
    check_limit("bytes of a row", bytes.len(), crate::limits::ROW_SIZE_MAX)?;
    row::check(table.schema(), bytes).map_err(|error| Error::InvalidSchema {
        table: table.name().to_owned(),
        reason: format!("a row that is none of it: {error}"),
    })
}

/// Whether so many rows may have the numbers from the first one on.
fn check_row_numbers(table: &Table, first_row: u64, count: usize) -> Result<()> {
    let end = first_row.saturating_add(count as u64);
    match table.next_row() <= first_row && end <= ROW_NUMBER_END {
        true => Ok(()),
        false => {
            let reason = format!("rows from number {first_row} on, after {}", table.next_row());
            Err(Error::InvalidSchema { table: table.name().to_owned(), reason })
        }
    }
}
