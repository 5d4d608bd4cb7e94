//! A table at one moment: rows by their numbers, and for each constraint its rows by key.
//!
//! ```text
//! rows         7 ─► bytes    8 ─► bytes    11 ─► bytes      numbers only grow, and never come again
//! constraint   key ─► 11     key ─► 7                       a row with a null there has none
//! ```
//!
//! A copy costs nothing, see `tree.rs`: what is changed is a copy, and whoever reads the table
//! keeps what it had. A change that fails leaves its copy in pieces; the caller throws it away.

use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::key;
use crate::limits::{ENTRY_OVERHEAD, ROW_OVERHEAD, TABLE_OVERHEAD};
use crate::row;
use crate::schema::{Constraint, Schema};
use crate::tree::{Iter, Tree};
use std::sync::Arc;

/// Numbers of rows are below this, so that none overflows.
pub(crate) const ROW_NUMBER_END: u64 = 1 << 62;

/// The number of a row in its table: given out once, and kept when the row is changed. Rows are in the
/// order of their numbers, which is that of their insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u64);

/// The bytes of a row, or of a key.
pub(crate) type SharedBytes = Arc<[u8]>;

/// A table at one moment.
#[derive(Clone, Debug)]
pub struct Table {
    id: u64,
    name: Arc<str>,
    schema: Arc<Schema>,
    next_row: u64,
    rows: Tree<u64, SharedBytes>,
    /// Of each constraint, the rows by key.
    keys: Vec<Tree<SharedBytes, u64>>,
    size: u64,
}

/// A row of a table.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Its number.
    pub id: RowId,
    schema: &'a Schema,
    bytes: &'a [u8],
}

impl Row<'_> {
    /// Its values, one for each column.
    pub fn values(&self) -> Vec<Datum> {
        row::decode(self.schema, self.bytes).expect("rows are checked when they come")
    }

    /// Its values in some columns, in their order in `columns`, which may name one twice. One that
    /// the table does not have is null.
    pub fn project(&self, columns: &[usize]) -> Vec<Datum> {
        row::project(self.schema, self.bytes, columns).expect("rows are checked when they come")
    }

    /// Bytes that it takes in files.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes
    }
}

/// The rows of a table, by increasing number.
#[derive(Debug)]
pub struct Rows<'a> {
    schema: &'a Schema,
    iter: Iter<'a, u64, SharedBytes>,
}

impl<'a> Iterator for Rows<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        let (id, bytes) = self.iter.next()?;
        Some(Row { id: RowId(*id), schema: self.schema, bytes })
    }
}

impl Table {
    /// A number that no other table of this data directory has or had.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it looks like.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The same, for who keeps it longer than the table: a table that was altered has another one.
    pub fn shared_schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema)
    }

    /// The number that the next row will have: of rows that are added, the first.
    pub fn next_row(&self) -> u64 {
        self.next_row
    }

    /// How many rows it has.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Bytes that it takes in memory, about.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// All its rows, in the order of their insertion.
    pub fn rows(&self) -> Rows<'_> {
        Rows { schema: &self.schema, iter: self.rows.iter() }
    }

    /// The rows from a number on: who reads in pieces goes on behind the last one.
    pub fn rows_from(&self, id: RowId) -> Rows<'_> {
        Rows { schema: &self.schema, iter: self.rows.iter_from(&id.0) }
    }

    /// A row by its number.
    pub fn row(&self, id: RowId) -> Option<Row<'_>> {
        let bytes = self.rows.get(&id.0)?;
        Some(Row { id, schema: &self.schema, bytes })
    }

    /// The row whose primary key that is; none also if the table has no primary key.
    ///
    /// # Errors
    /// When there are more or fewer values than columns of the key, or of other types.
    pub fn find(&self, key: &[Datum]) -> Result<Option<Row<'_>>> {
        let primary = self.schema.primary_key();
        primary.map_or(Ok(None), |constraint| self.find_by(&constraint.name, key))
    }

    /// The row that has these values in the columns of a constraint; none if one of them is null.
    ///
    /// # Errors
    /// When there is no such constraint, when there are more or fewer values than columns of it, or of
    /// other types.
    pub fn find_by(&self, constraint: &str, key: &[Datum]) -> Result<Option<Row<'_>>> {
        let at = self.schema.constraints.iter().position(|one| one.name == constraint);
        let at = at.ok_or_else(|| Error::InvalidSchema {
            table: self.name.to_string(),
            reason: format!("there is no constraint {constraint:?}"),
        })?;
        let constraint = &self.schema.constraints[at];
        let (expected, found) = (constraint.columns.len(), key.len());
        if expected != found {
            return Err(Error::ColumnCount { table: self.name.to_string(), expected, found });
        }
        let key = key::encode(&self.name, &self.schema, constraint, key)?;
        let id = key.and_then(|key| self.keys[at].get(key.as_slice()));
        Ok(id.and_then(|id| self.row(RowId(*id))))
    }

    /// The row with the greatest key of a constraint, of which rows with a null there have none.
    pub fn greatest_by(&self, constraint: &str) -> Option<Row<'_>> {
        let at = self.schema.constraints.iter().position(|one| one.name == constraint)?;
        let (_, id) = self.keys[at].last()?;
        self.row(RowId(*id))
    }

    // ---- changes ----

    /// An empty table, whose schema was checked.
    pub(crate) fn new(id: u64, name: &str, schema: Schema) -> Table {
        let keys = vec![Tree::default(); schema.constraints.len()];
        let size = TABLE_OVERHEAD + schema.size();
        Table {
            id,
            name: name.into(),
            schema: Arc::new(schema),
            next_row: 0,
            rows: Tree::default(),
            keys,
            size,
        }
    }

    /// The number of the last row.
    pub(crate) fn rows_last(&self) -> Option<u64> {
        self.rows.last().map(|(id, _)| *id)
    }

    /// Numbers below are never given out again.
    pub(crate) fn keep_row_numbers(&mut self, next_row: u64) {
        self.next_row = self.next_row.max(next_row);
    }

    /// Adds rows whose bytes were checked, and whose numbers are free.
    pub(crate) fn add(&mut self, rows: impl IntoIterator<Item = (u64, SharedBytes)>) -> Result<()> {
        let schema = Arc::clone(&self.schema);
        for (id, bytes) in rows {
            for (at, constraint) in schema.constraints.iter().enumerate() {
                let Some((key, values)) = self.key_of(constraint, &bytes)? else { continue };
                self.size += ENTRY_OVERHEAD + key.len() as u64;
                if self.keys[at].insert(key.into(), id).is_some() {
                    return Err(Error::UniqueViolation {
                        table: self.name.to_string(),
                        constraint: constraint.name.clone(),
                        key: key::show(&schema, constraint, &values),
                    });
                }
            }
            assert!(id < ROW_NUMBER_END, "whoever gives out numbers has looked");
            self.next_row = self.next_row.max(id + 1);
            self.size += ROW_OVERHEAD + bytes.len() as u64;
            let before = self.rows.insert(id, bytes);
            assert!(before.is_none(), "a row's number is free, or its row was taken out");
        }
        Ok(())
    }

    /// Takes rows out.
    pub(crate) fn remove(&mut self, rows: impl IntoIterator<Item = u64>) -> Result<()> {
        let schema = Arc::clone(&self.schema);
        for id in rows {
            let bytes = self.rows.remove(&id);
            let bytes =
                bytes.ok_or_else(|| Error::NoSuchRow { table: self.name.to_string(), row: id })?;
            self.size -= ROW_OVERHEAD + bytes.len() as u64;
            for (at, constraint) in schema.constraints.iter().enumerate() {
                let Some((key, _)) = self.key_of(constraint, &bytes)? else { continue };
                let removed = self.keys[at].remove(key.as_slice());
                assert_eq!(removed, Some(id), "each row has its keys");
                self.size -= ENTRY_OVERHEAD + key.len() as u64;
            }
        }
        Ok(())
    }

    /// Gives rows other bytes, which were checked: keys may go around among them.
    pub(crate) fn replace(&mut self, rows: Vec<(u64, SharedBytes)>) -> Result<()> {
        self.remove(rows.iter().map(|(id, _)| *id))?;
        self.add(rows)
    }

    /// The same under another name.
    pub(crate) fn renamed(&self, name: &str) -> Table {
        Table { name: name.into(), ..self.clone() }
    }

    /// Takes all rows out; their numbers do not come again.
    pub(crate) fn truncate(&mut self) {
        let schema = Schema::clone(&self.schema);
        *self = Table { next_row: self.next_row, ..Table::new(self.id, &self.name, schema) };
    }

    /// The same rows under another name and schema, which was checked: of each column it is said from
    /// which column its values come, else they are the one in `fill`.
    pub(crate) fn rebuilt(
        &self,
        name: &str,
        schema: Schema,
        from: &[Option<usize>],
        fill: &[Datum],
    ) -> Result<Table> {
        let mut table = Table::new(self.id, name, schema);
        table.next_row = self.next_row;
        for row in self.rows() {
            let before = row.values();
            let value = |(from, fill): (&Option<usize>, &Datum)| {
                from.and_then(|at| before.get(at)).unwrap_or(fill).clone()
            };
            let values: Vec<Datum> = from.iter().zip(fill).map(value).collect();
            let bytes = row::encode(name, &table.schema, &values)?;
            table.add([(row.id.0, bytes.into())])?;
        }
        Ok(table)
    }

    /// The key of a row, and the values it is made of; none if one of them is null.
    fn key_of(
        &self,
        constraint: &Constraint,
        bytes: &[u8],
    ) -> Result<Option<(Vec<u8>, Vec<Datum>)>> {
        let values = row::project(&self.schema, bytes, &constraint.columns);
        let values = values.expect("rows are checked when they come");
        let key = key::encode(&self.name, &self.schema, constraint, &values)?;
        Ok(key.map(|key| (key, values)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datum::{ColumnType, Scalar};
    use crate::schema::{Column, ConstraintKind};

    /// `id int8 primary key, name text unique`
    fn table() -> Table {
        let schema = Schema {
            columns: vec![
                Column::new("id", ColumnType::One(Scalar::Int8)),
                Column::new("name", ColumnType::One(Scalar::Text)),
            ],
            constraints: vec![
                Constraint {
                    name: "pk".into(),
                    kind: ConstraintKind::PrimaryKey,
                    columns: vec![0],
                },
                Constraint { name: "name".into(), kind: ConstraintKind::Unique, columns: vec![1] },
            ],
            properties: Vec::new(),
        };
        Table::new(3, "t", schema.settled())
    }

    fn row(id: i64, name: &str) -> Vec<Datum> {
        let name = if name.is_empty() { Datum::Null } else { Datum::Text(name.into()) };
        vec![Datum::Int8(id), name]
    }

    fn bytes(id: i64, name: &str) -> SharedBytes {
        row::encode("t", table().schema(), &row(id, name)).unwrap().into()
    }

    #[test]
    fn rows_are_found_by_their_keys() {
        let mut table = table();
        table.add([(0, bytes(7, "a")), (1, bytes(5, "")), (2, bytes(6, ""))]).unwrap();
        let found = table.find(&[Datum::Int8(5)]).unwrap().unwrap();
        assert_eq!((found.id, found.values()), (RowId(1), row(5, "")));
        assert_eq!(found.project(&[1, 0]), [Datum::Null, Datum::Int8(5)]);
        assert!(table.find(&[Datum::Int8(9)]).unwrap().is_none());
        assert!(table.find(&[]).is_err() && table.find(&[Datum::Int4(5)]).is_err());
        let by_name = table.find_by("name", &[Datum::Text("a".into())]).unwrap().unwrap();
        assert_eq!(by_name.id, RowId(0));
        assert!(table.find_by("name", &[Datum::Null]).unwrap().is_none());
        assert!(table.find_by("other", &[]).is_err());
        let ids: Vec<u64> = table.rows_from(RowId(1)).map(|row| row.id.0).collect();
        assert_eq!(ids, [1, 2]);
    }

    #[test]
    fn one_key_is_one_rows() {
        let mut table = table();
        table.add([(0, bytes(1, "a")), (1, bytes(2, "b"))]).unwrap();
        let error = table.clone().add([(2, bytes(3, "a"))]).unwrap_err().to_string();
        assert_eq!(error, "duplicate key of constraint \"name\" of table \"t\": (name)=(a)");
        let size = table.size();
        // Among themselves rows may exchange their keys.
        table.replace(vec![(0, bytes(2, "b")), (1, bytes(1, "a"))]).unwrap();
        assert_eq!(table.find(&[Datum::Int8(1)]).unwrap().unwrap().id, RowId(1));
        assert_eq!(table.size(), size);
        assert!(table.clone().replace(vec![(0, bytes(1, "x"))]).is_err());
        assert!(table.clone().replace(vec![(9, bytes(9, "x"))]).is_err());
        let before = table.clone();
        table.remove([0, 1]).unwrap();
        let empty = TABLE_OVERHEAD + table.schema().size();
        assert_eq!((table.size(), table.row_count()), (empty, 0));
        assert_eq!(before.row_count(), 2);
        let mut emptied = before;
        emptied.truncate();
        assert_eq!((emptied.size(), emptied.next_row()), (empty, 2));
    }
}
