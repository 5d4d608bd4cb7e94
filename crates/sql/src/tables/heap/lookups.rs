//! Rows of a table by the value of a column: made when a column is asked for by value again, and kept as long as the
//! table is as it was. A table that changes with every statement is read from one end to the other instead.
//!
//! ```text
//! column ─► (hash of its value, row's number), sorted: 16 bytes for a row
//! ```

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use tables::{Datum, RowId, Table};

/// Tables of fewer rows are read.
const ROWS_MIN: usize = 64;
/// Those of more would take too much memory and time.
const ROWS_MAX: usize = 1_000_000;
/// Columns of which it is kept, in all tables: 16 MiB each at most.
const COLUMNS_MAX: usize = 8;

/// What is kept of the columns that were asked for last.
#[derive(Debug, Default)]
pub struct Lookups(Mutex<Vec<Lookup>>);

/// Hashes of values, and the numbers of their rows.
type Sorted = Box<[(u64, RowId)]>;

#[derive(Debug)]
struct Lookup {
    /// The table as it was, which is another one once it has changed.
    table: Weak<Table>,
    column: usize,
    /// Made when it is asked for a second time, by who asks first; others wait for those rows alone.
    rows: Arc<OnceLock<Sorted>>,
}

impl Lookups {
    /// Rows among which all are whose column has one of some values, in their order, and some others perhaps. None
    /// where the table is better read.
    pub fn find(&self, table: &Arc<Table>, column: usize, values: &[Datum]) -> Option<Vec<RowId>> {
        if !(ROWS_MIN..ROWS_MAX).contains(&table.row_count()) {
            return None;
        }
        let hashes = values.iter().map(hash_of).collect::<Option<Vec<u64>>>()?;
        let rows = self.rows(table, column)?;
        let rows = rows.get_or_init(|| made(table, column));
        let mut found: Vec<RowId> = Vec::with_capacity(hashes.len());
        for hash in hashes {
            let first = rows.partition_point(|(one, _)| *one < hash);
            let own = rows[first..].iter().take_while(|(one, _)| *one == hash);
            found.extend(own.map(|(_, id)| *id));
        }
        found.sort_unstable();
        found.dedup();
        Some(found)
    }

    fn rows(&self, table: &Arc<Table>, column: usize) -> Option<Arc<OnceLock<Sorted>>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.table.strong_count() != 0);
        let own = Arc::downgrade(table);
        let is_it = |one: &Lookup| one.column == column && one.table.ptr_eq(&own);
        let Some(at) = all.iter().position(is_it) else {
            all.truncate(COLUMNS_MAX - 1);
            all.insert(0, Lookup { table: own, column, rows: Arc::default() });
            return None;
        };
        all[..=at].rotate_right(1);
        Some(all[0].rows.clone())
    }
}

fn made(table: &Table, column: usize) -> Sorted {
    let value = |row: tables::Row<'_>| {
        let value = row.project(&[column]).into_iter().next()?;
        Some((hash_of(&value)?, row.id))
    };
    let mut rows: Vec<(u64, RowId)> = table.rows().filter_map(value).collect();
    rows.sort_unstable();
    rows.into()
}

/// The hash of a value; none of NULL, and of types whose values are equal in several ways.
fn hash_of(value: &Datum) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    match value {
        Datum::Bool(one) => one.hash(&mut hasher),
        Datum::Int2(one) => i64::from(*one).hash(&mut hasher),
        Datum::Int4(one) => i64::from(*one).hash(&mut hasher),
        Datum::Int8(one) => one.hash(&mut hasher),
        Datum::Text(one) | Datum::Uuid(one) => one.hash(&mut hasher),
        _ => return None,
    }
    Some(hasher.finish())
}
