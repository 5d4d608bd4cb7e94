//! Rows of hypertables on their way into the store.
//!
//! ```text
//! row ─► the texts of its labels, which are its key ─┐
//!     └► its values ─────────────────────────────────┴─► a row of a batch ─► Store::append
//! ```

use crate::tables::hypertables::shape::{Hypertable, TABLE_LABEL, metric};
use crate::tables::metrics::samples::ReadLimits;
use crate::types::error::SqlError;
use datafusion::execution::memory_pool::MemoryReservation;
use model::limits::BATCH_ROWS_MAX;
use model::sample::NANOS_PER_MICRO;
use model::{
    KeyDecoder, KeyHasher, LabelError, LabelsBuilder, Matcher, Row, Shape, TimeRange, WriteBatch,
};
use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use store::{Durability, Store};
use tables::{Datum, Table};

/// Bytes of one batch, about: memory is taken, and the log written, in such pieces.
const CHUNK_SIZE: usize = 8 << 20;
const _: () = assert!(CHUNK_SIZE / size_of::<Row>() <= BATCH_ROWS_MAX);
/// What stands for the length of a label that is not there.
const NOT_THERE: u32 = u32::MAX;

/// Where the rows of hypertables are.
pub struct Series {
    /// The store.
    pub store: Arc<Store>,
    /// What reading may cost.
    pub limits: ReadLimits,
    /// Held by who adds rows; whoever drops a table waits for them.
    gate: RwLock<()>,
}

impl std::fmt::Debug for Series {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Series")
    }
}

impl Series {
    /// In a store.
    pub fn new(store: Arc<Store>, limits: ReadLimits) -> Series {
        Series { store, limits, gate: RwLock::default() }
    }

    /// The time, in nanoseconds.
    pub fn now(&self) -> i64 {
        self.store.now()
    }

    /// How far the clock has jumped ahead of the time by which what is old may be dropped, nanoseconds.
    pub fn ahead(&self) -> i64 {
        self.store.now().saturating_sub(self.store.trusted_now()).max(0)
    }

    /// No table is dropped as long as this is held.
    pub fn kept(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes all rows of some tables, after a crash those of all or of none; nobody adds any
    /// meanwhile.
    ///
    /// # Errors
    /// When the store cannot.
    pub fn forget(&self, tables: &[String]) -> Result<(), SqlError> {
        let sets: Vec<Vec<Matcher>> =
            tables.iter().map(|table| vec![Hypertable::matcher(table)]).collect();
        if sets.is_empty() { Ok(()) } else { self.delete_sets(&sets, TimeRange::ALL) }
    }

    /// Deletes samples of a time of the series that all matchers match; nobody adds any meanwhile.
    ///
    /// # Errors
    /// When the store cannot.
    pub fn delete(&self, matchers: Vec<Matcher>, range: TimeRange) -> Result<(), SqlError> {
        self.delete_sets(&[matchers], range)
    }

    fn delete_sets(&self, sets: &[Vec<Matcher>], range: TimeRange) -> Result<(), SqlError> {
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        let deleted = self.store.delete(sets, range);
        deleted.map(drop).map_err(|error| of_store(&error))
    }

    /// Whether the store takes rows of these times.
    ///
    /// # Errors
    /// When it does not.
    pub fn check(&self, all: &[SeriesRows]) -> Result<(), SqlError> {
        for rows in all {
            let all = || rows.chunks.iter().flat_map(|chunk| &chunk.rows);
            let (first, last) =
                (all().min_by_key(|row| row.timestamp), all().max_by_key(|row| row.timestamp));
            let ends = WriteBatch {
                bytes: Cow::Borrowed(&[]),
                shapes: Vec::new(),
                rows: first.into_iter().chain(last).cloned().collect(),
                values: Vec::new(),
                decoder: &rows.keys,
            };
            if let Some((_, why)) = self.store.first_refused_time(&ends) {
                return Err(SqlError::new("22008", why));
            }
        }
        Ok(())
    }

    /// Adds rows. They are durable when this returns.
    ///
    /// # Errors
    /// When one of them cannot be added: none is, unless the store's own limits refuse it.
    pub fn append(&self, all: Vec<SeriesRows>) -> Result<(), SqlError> {
        let mut left = all.iter().map(|rows| rows.chunks.len()).sum::<usize>();
        for rows in all {
            let SeriesRows { keys, shape, chunks, .. } = rows;
            for chunk in chunks {
                left -= 1;
                let batch = WriteBatch {
                    bytes: Cow::Owned(chunk.keys),
                    shapes: vec![shape.clone()],
                    rows: chunk.rows,
                    values: chunk.values,
                    decoder: &keys,
                };
                let durability = if left == 0 { Durability::Synced } else { Durability::Relaxed };
                check_appended(self.store.append(&batch, durability))?;
            }
        }
        Ok(())
    }
}

fn check_appended(appended: store::Result<store::Appended>) -> Result<(), SqlError> {
    let appended = appended.map_err(|error| of_store(&error))?;
    let Some(rejection) = appended.rejections.first() else { return Ok(()) };
    let words = format!(
        "row {}: {}; {} rows were refused, the others are stored",
        rejection.position + 1,
        rejection.reason,
        appended.rejections.len()
    );
    Err(SqlError::limit(words))
}

fn of_store(error: &store::Error) -> SqlError {
    SqlError::new("58030", error.to_string())
}

/// Bytes that what is known of a column takes, about.
const COLUMN_SIZE: usize = 256;

/// Rows of one hypertable.
pub struct SeriesRows {
    table: Arc<Hypertable>,
    table_id: u64,
    keys: TableKeys,
    hasher: KeyHasher,
    shape: Shape,
    chunks: Vec<Chunk>,
    count: u32,
    memory: MemoryReservation,
}

/// Rows that are given to the store together.
#[derive(Default)]
struct Chunk {
    keys: Vec<u8>,
    rows: Vec<Row>,
    values: Vec<f64>,
}

impl Chunk {
    /// Bytes that it takes.
    fn size(&self) -> usize {
        self.keys.capacity()
            + self.rows.capacity() * size_of::<Row>()
            + self.values.capacity() * size_of::<f64>()
    }
}

impl SeriesRows {
    /// None yet; memory for them is taken there. Of a table that is no hypertable none at all.
    pub fn new(table: &Table, series: &Series, memory: MemoryReservation) -> Option<SeriesRows> {
        let table_id = table.id();
        let table = Arc::new(Hypertable::of(table.name(), table.schema())?);
        let name = |at: &usize| table.schema.columns[*at].name.clone();
        let keys = TableKeys {
            table: table.name.clone(),
            labels: table.labels.iter().map(name).collect(),
        };
        let hasher = series.store.hasher();
        let context = keys.context();
        let fields: Vec<Box<str>> = table.values.iter().map(|at| name(at).into()).collect();
        let shape = Shape { hash: hasher.shape(&context, &fields), fields };
        let chunks = Vec::new();
        Some(SeriesRows { table, table_id, keys, hasher, shape, chunks, count: 0, memory })
    }

    /// The table.
    pub fn table(&self) -> &str {
        &self.table.name
    }

    /// Whether a table is the one that they are for, and looks as it did.
    pub fn fits(&self, table: &Table) -> bool {
        table.id() == self.table_id && *table.schema() == self.table.schema
    }

    /// Adds a row: a value for each column of the table.
    ///
    /// # Errors
    /// When it cannot be stored, and when there is no memory for it.
    pub fn push(&mut self, row: &[Datum]) -> Result<(), SqlError> {
        self.check_nulls(row)?;
        let timestamp = self.time_of(&row[self.table.time])?;
        if self.chunks.last().is_none_or(|chunk| CHUNK_SIZE <= chunk.size()) {
            self.account()?;
            self.chunks.push(Chunk::default());
        }
        let Some(chunk) = self.chunks.last_mut() else { return Ok(()) };
        let key_start = chunk.keys.len();
        for at in &self.table.labels {
            let text = self.table.label_text(*at, &row[*at])?;
            let size = text.as_ref().and_then(|text| u32::try_from(text.len()).ok());
            chunk.keys.extend_from_slice(&size.unwrap_or(NOT_THERE).to_le_bytes());
            chunk.keys.extend_from_slice(text.as_deref().unwrap_or_default().as_bytes());
        }
        let key = &chunk.keys[key_start..];
        let values_start = chunk.values.len();
        for at in &self.table.values {
            chunk.values.push(self.table.number(*at, &row[*at])?);
        }
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        chunk.rows.push(Row {
            hash: self.hasher.hash(key, self.shape.hash),
            timestamp,
            key_offset: place(key_start),
            key_size: place(key.len()),
            shape: 0,
            values_start: place(values_start),
            position: self.count,
        });
        self.count = self.count.checked_add(1).ok_or_else(|| SqlError::limit("too many rows"))?;
        Ok(())
    }

    fn check_nulls(&self, row: &[Datum]) -> Result<(), SqlError> {
        let columns = self.table.schema.columns.iter().zip(row);
        let is_missing = |(column, value): &(&tables::Column, &Datum)| {
            !column.is_nullable && matches!(value, Datum::Null)
        };
        let Some((column, _)) = columns.into_iter().find(is_missing) else { return Ok(()) };
        let words = format!(
            "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
            column.name, self.table.name
        );
        Err(SqlError::new("23502", words))
    }

    fn time_of(&self, value: &Datum) -> Result<i64, SqlError> {
        let name = &self.table.schema.columns[self.table.time].name;
        let micros = match value {
            Datum::Timestamptz(micros) | Datum::Timestamp(micros) => *micros,
            other => return Err(SqlError::unexpected(format!("{other:?} as a time"))),
        };
        micros.checked_mul(NANOS_PER_MICRO).ok_or_else(|| {
            SqlError::new("22008", format!("a time in column \"{name}\" is out of range"))
        })
    }

    /// Takes memory for what there is so far.
    ///
    /// # Errors
    /// When there is none.
    pub fn account(&mut self) -> Result<(), SqlError> {
        let columns = self.table.schema.columns.len() * COLUMN_SIZE;
        let chunks: usize = self.chunks.iter().map(Chunk::size).sum();
        Ok(self.memory.try_resize(columns + chunks)?)
    }
}

/// Keys that are the texts of a row's labels, each after its length.
struct TableKeys {
    table: String,
    labels: Vec<String>,
}

impl TableKeys {
    /// What tells its keys from those of others.
    fn context(&self) -> Vec<u8> {
        let mut context = b"hypertable".to_vec();
        for name in std::iter::once(&self.table).chain(&self.labels) {
            context.push(0);
            context.extend_from_slice(name.as_bytes());
        }
        context
    }
}

impl KeyDecoder for TableKeys {
    fn tags(&self, key: &[u8], tags: &mut LabelsBuilder) -> Result<(), LabelError> {
        tags.push(TABLE_LABEL, &self.table);
        let mut rest = key;
        for name in &self.labels {
            let Some((size, after)) = rest.split_first_chunk() else { break };
            rest = after;
            let size = u32::from_le_bytes(*size);
            if size == NOT_THERE {
                continue;
            }
            let Some((text, after)) = rest.split_at_checked(size as usize) else { break };
            rest = after;
            tags.push(name, &String::from_utf8_lossy(text));
        }
        Ok(())
    }

    fn metric_name(&self, _: &[u8], field: &str, name: &mut String) -> Result<(), LabelError> {
        name.push_str(&metric(&self.table, field));
        Ok(())
    }
}
