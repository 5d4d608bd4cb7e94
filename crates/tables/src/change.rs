//! Changes of tables, and the statements that they make up: staged on a copy, then committed as one
//! record of the log.

use crate::datum::Datum;
use crate::error::{Error, Result, check_limit};
use crate::limits::{STATEMENT_SIZE_MAX, TABLES_MAX};
use crate::record::Effect;
use crate::row;
use crate::schema::Schema;
use crate::set::{Origin, TableSet};
use crate::table::{RowId, Table};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the number that stands before the effects in a record.
const NUMBER_SIZE_MAX: usize = 10;

/// A change. Tables are called by their names, values stand in the order of the columns.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Makes a table, without rows.
    Create {
        /// Its name.
        table: String,
        /// What it looks like.
        schema: Schema,
    },
    /// Takes a table away, with all that is in it.
    Drop {
        /// Its name.
        table: String,
    },
    /// Gives a table another name, or another schema, or both. Rows keep their numbers.
    Alter {
        /// Its name.
        table: String,
        /// Its name afterwards.
        name: String,
        /// What it looks like afterwards.
        schema: Schema,
        /// Where the values of each column come from.
        from: Vec<Source>,
    },
    /// Adds rows.
    Insert {
        /// The table's name.
        table: String,
        /// The values of each row.
        rows: Vec<Vec<Datum>>,
    },
    /// Gives rows other values. Keys are compared once all of these rows have changed, so rows may
    /// exchange theirs.
    Update {
        /// The table's name.
        table: String,
        /// Rows, none twice, and all values of each.
        rows: Vec<(RowId, Vec<Datum>)>,
    },
    /// Takes rows out.
    Delete {
        /// The table's name.
        table: String,
        /// The rows, none twice.
        rows: Vec<RowId>,
    },
    /// Takes all rows out.
    Truncate {
        /// The table's name.
        table: String,
    },
}

/// Where the values of an altered column come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The column that is at that place so far, and is of the same type.
    Column(usize),
    /// One value for all rows.
    Value(Datum),
}

/// How many rows a statement changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows that were added.
    pub inserted: u64,
    /// Rows that have other values.
    pub updated: u64,
    /// Rows that were taken out, by [`Change::Delete`] and [`Change::Truncate`]; tables that were
    /// dropped do not count.
    pub deleted: u64,
}

/// Changes that are seen here alone until [`crate::Tables::commit`]; dropping it forgets them.
#[derive(Debug)]
pub struct Transaction {
    /// What there was when it began.
    base: Arc<TableSet>,
    /// What there is for it.
    set: TableSet,
    effects: Vec<u8>,
    counts: Counts,
    /// Tables that it has changed, or relies on.
    tables: BTreeSet<u64>,
    /// Names that it has given or taken, or relies on.
    names: BTreeSet<Arc<str>>,
    next_table: Arc<AtomicU64>,
    memory_max: u64,
    /// Bytes that its record may have: [`STATEMENT_SIZE_MAX`], but for tests.
    record_size_max: usize,
}

/// What a transaction had changed at some moment, for [`Transaction::back_to`].
#[derive(Clone, Debug)]
pub struct Savepoint {
    set: TableSet,
    effects_size: usize,
    counts: Counts,
}

impl Transaction {
    pub(crate) fn new(
        base: Arc<TableSet>,
        next_table: Arc<AtomicU64>,
        memory_max: u64,
    ) -> Transaction {
        Transaction {
            set: TableSet::clone(&base),
            base,
            effects: Vec::new(),
            counts: Counts::default(),
            tables: BTreeSet::new(),
            names: BTreeSet::new(),
            next_table,
            memory_max,
            record_size_max: STATEMENT_SIZE_MAX,
        }
    }

    /// The tables as it sees them.
    pub fn tables(&self) -> &TableSet {
        &self.set
    }

    /// What it has changed so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether it has changed nothing.
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    /// Relies on a table: when somebody else changes it, or makes one of that name, there will be
    /// [`Error::Conflict`]. What it changes itself it relies on anyway.
    pub fn rely_on(&mut self, table: &str) {
        self.tables.extend(self.set.names.get(table));
        self.names.insert(table.into());
    }

    /// Remembers what it has changed so far. Costs nothing, however much that is.
    pub fn savepoint(&self) -> Savepoint {
        let (set, effects_size, counts) = (self.set.clone(), self.effects.len(), self.counts);
        Savepoint { set, effects_size, counts }
    }

    /// Forgets what it has changed since a savepoint of its own, but for what it relies on.
    pub fn back_to(&mut self, savepoint: Savepoint) {
        debug_assert!(savepoint.effects_size <= self.effects.len(), "one of another transaction");
        self.set = savepoint.set;
        self.effects.truncate(savepoint.effects_size);
        self.counts = savepoint.counts;
    }

    /// Does changes, one after the other: all of them, or none and an error. Returns what they did.
    ///
    /// # Errors
    /// Those of [`Error`] that say what is wrong with a change; [`Error::TooLarge`] when all that it has
    /// done is more than a record of the log may be. The log and files are not touched.
    pub fn apply(&mut self, changes: Vec<Change>) -> Result<Counts> {
        let before = self.savepoint();
        let counts = before.counts;
        let done = changes.into_iter().try_for_each(|change| self.apply_one(change));
        let done = done.and_then(|()| check_memory(&before.set, &self.set, self.memory_max));
        if let Err(error) = done {
            self.back_to(before);
            return Err(error);
        }
        Ok(Counts {
            inserted: self.counts.inserted - counts.inserted,
            updated: self.counts.updated - counts.updated,
            deleted: self.counts.deleted - counts.deleted,
        })
    }

    fn apply_one(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Create { table, schema } => {
                let id = self.next_table.fetch_add(1, Ordering::Relaxed);
                let effect = Effect::Create { id, name: &table, schema: schema.settled() };
                self.names.insert(table.as_str().into());
                self.take(effect)
            }
            Change::Drop { table } => {
                let id = self.set.expect(&table)?.id();
                self.names.insert(table.as_str().into());
                self.take(Effect::Drop { id })
            }
            Change::Alter { table, name, schema, from } => {
                let altered = self.set.expect(&table)?;
                self.names.insert(table.as_str().into());
                self.names.insert(name.as_str().into());
                self.take(alter(&altered, &name, schema.settled(), from)?)
            }
            Change::Insert { table, rows } => {
                let table = self.set.expect(&table)?;
                let rows = encode_all(&table, rows.iter())?;
                let (id, first_row) = (table.id(), table.next_row());
                self.counts.inserted += rows.len() as u64;
                let rows = rows.iter().map(Vec::as_slice).collect();
                self.take(Effect::Insert { id, first_row, rows })
            }
            Change::Update { table, rows } => {
                let table = self.set.expect(&table)?;
                let encoded = encode_all(&table, rows.iter().map(|(_, values)| values))?;
                self.counts.updated += rows.len() as u64;
                let ids = rows.iter().map(|(id, _)| id.0);
                let rows = ids.zip(encoded.iter().map(Vec::as_slice)).collect();
                self.take(Effect::Update { id: table.id(), rows })
            }
            Change::Delete { table, rows } => {
                let id = self.set.expect(&table)?.id();
                self.counts.deleted += rows.len() as u64;
                self.take(Effect::Delete { id, rows: rows.into_iter().map(|id| id.0).collect() })
            }
            Change::Truncate { table } => {
                let table = self.set.expect(&table)?;
                self.counts.deleted += table.row_count() as u64;
                self.take(Effect::Truncate { id: table.id() })
            }
        }
    }

    fn take(&mut self, effect: Effect<'_>) -> Result<()> {
        if effect.is_of_no_row() {
            return Ok(());
        }
        self.tables.insert(effect.table());
        effect.put(&mut self.effects)?;
        // Here, or a transaction would grow until a commit that cannot go well.
        let size = self.effects.len() + NUMBER_SIZE_MAX;
        check_limit("bytes of a statement", size, self.record_size_max)?;
        self.set.apply(effect, Origin::Statement)
    }

    /// What is logged of it, without its number.
    pub(crate) fn effects(&self) -> &[u8] {
        &self.effects
    }

    /// The tables after it, where `head` are those of now.
    ///
    /// # Errors
    /// [`Error::Conflict`], and when all together are too much.
    pub(crate) fn merge(&self, head: &TableSet) -> Result<TableSet> {
        let mut merged = head.clone();
        for id in &self.tables {
            let (base, now) = (self.base.tables.get(id), head.tables.get(id));
            let is_same = base.map(Arc::as_ptr) == now.map(Arc::as_ptr);
            if !is_same {
                let name = now.or(base).map_or("", |table| table.name());
                return Err(Error::Conflict { table: name.to_owned() });
            }
            merged.put(*id, self.set.tables.get(id).cloned());
        }
        for name in &self.names {
            if self.base.names.get(name) != head.names.get(name) {
                return Err(Error::Conflict { table: name.to_string() });
            }
            merged.put_name(name, self.set.names.get(name).copied());
        }
        check_limit("tables", merged.tables.len(), TABLES_MAX.max(head.tables.len()))?;
        check_memory(head, &merged, self.memory_max)?;
        merged.seq = head.seq + 1;
        Ok(merged)
    }
}

/// Fails when tables have grown beyond the limit; what takes less than before is always taken.
fn check_memory(before: &TableSet, after: &TableSet, max: u64) -> Result<()> {
    match max < after.size && before.size < after.size {
        true => Err(Error::Full { size: after.size, max }),
        false => Ok(()),
    }
}

fn encode_all<'v>(
    table: &Table,
    rows: impl Iterator<Item = &'v Vec<Datum>>,
) -> Result<Vec<Vec<u8>>> {
    rows.map(|values| row::encode(table.name(), table.schema(), values)).collect()
}

fn alter<'a>(
    table: &Table,
    name: &'a str,
    schema: Schema,
    sources: Vec<Source>,
) -> Result<Effect<'a>> {
    let (expected, found) = (schema.columns.len(), sources.len());
    if expected != found {
        return Err(Error::ColumnCount { table: name.to_owned(), expected, found });
    }
    let (mut from, mut fill) = (Vec::new(), Vec::new());
    for (column, source) in schema.columns.iter().zip(sources) {
        let (at, value) = match source {
            Source::Column(at) => (Some(at), Datum::Null),
            Source::Value(value) => (None, value),
        };
        if let Some(at) = at
            && table.schema().columns.get(at).map(|before| before.ty) != Some(column.ty)
        {
            let reason = format!("column {:?} does not come from one of its type", column.name);
            return Err(Error::InvalidSchema { table: name.to_owned(), reason });
        }
        from.push(at);
        fill.push(value);
    }
    Ok(Effect::Alter { id: table.id(), name, schema, from, fill })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datum::{ColumnType, Scalar};
    use crate::schema::Column;

    fn update(text: &str) -> Vec<Change> {
        let rows = vec![(RowId(0), vec![Datum::Text(text.into())])];
        vec![Change::Update { table: "t".into(), rows }]
    }

    #[test]
    fn a_transaction_takes_no_more_than_a_record_can_have() {
        let base = Arc::new(TableSet::default());
        let mut transaction = Transaction::new(base, Arc::new(AtomicU64::new(0)), u64::MAX);
        transaction.record_size_max = 5000;
        let columns = vec![Column::new("text", ColumnType::One(Scalar::Text))];
        let schema = Schema { columns, ..Schema::default() };
        let rows = vec![vec![Datum::Text("first".into())]];
        let insert = Change::Insert { table: "t".into(), rows };
        transaction.apply(vec![Change::Create { table: "t".into(), schema }, insert]).unwrap();
        let text = "x".repeat(1000);
        // Its tables take no more memory for it: the row is one and the same.
        let taken = (0..100).take_while(|_| transaction.apply(update(&text)).is_ok()).count();
        assert_eq!(taken, 4);
        let (size, effects) = (transaction.set.size(), transaction.effects.clone());
        let error = transaction.apply([update("y"), update(&text)].concat()).unwrap_err();
        assert!(matches!(error, Error::TooLarge { max: 5000, .. }), "{error}");
        assert!(error.to_string().starts_with("bytes of a statement: "), "{error}");
        // It is as before, and goes on with what is small enough.
        let table = transaction.tables().get("t").unwrap();
        let row = table.row(RowId(0)).unwrap().values();
        assert_eq!(row, [Datum::Text(text)]);
        assert_eq!((transaction.set.size(), &transaction.effects), (size, &effects));
        assert_eq!(transaction.counts(), Counts { inserted: 1, updated: 4, deleted: 0 });
        transaction.apply(update("small")).unwrap();
    }
}
