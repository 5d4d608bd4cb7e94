//! Rows of hypertables on their way into the store.
//!
//! ```text
//! row ─► the texts of its labels, which are its key ─┐
//!     └► its values ─────────────────────────────────┴─► a row of a batch ─► Store::append
//! ```

use super::shape::{Hypertable, TABLE_LABEL, metric};
use crate::error::SqlError;
use crate::samples::ReadLimits;
use datafusion::execution::memory_pool::MemoryReservation;
use model::sample::NANOS_PER_MICRO;
use model::{KeyDecoder, KeyHasher, LabelError, LabelsBuilder, Row, Shape, TimeRange, WriteBatch};
use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use store::{Durability, Store};
use tables::{Datum, Schema};

/// Rows of one batch.
const BATCH_ROWS: usize = 1 << 18;
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

    /// No table is dropped as long as this is held.
    pub fn kept(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes all rows of a table; nobody adds any meanwhile.
    ///
    /// # Errors
    /// When the store cannot.
    pub fn forget(&self, table: &str) -> Result<(), SqlError> {
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        let deleted = self.store.delete(&[vec![Hypertable::matcher(table)]], TimeRange::ALL);
        deleted.map(drop).map_err(|error| of_store(&error))
    }

    /// Adds rows. They are durable when this returns.
    ///
    /// # Errors
    /// When one of them cannot be added: none is, unless the store's own limits refuse it.
    pub fn append(&self, all: &[SeriesRows]) -> Result<(), SqlError> {
        for rows in all {
            for batch in rows.batches() {
                if let Some((_, why)) = self.store.first_refused_time(&batch) {
                    return Err(SqlError::new("22008", why));
                }
            }
        }
        let count = all.iter().map(|rows| rows.chunks.len()).sum::<usize>();
        let batches = all.iter().flat_map(SeriesRows::batches).enumerate();
        for (at, batch) in batches {
            let durability = if at + 1 == count { Durability::Synced } else { Durability::Relaxed };
            let appended = self.store.append(&batch, durability);
            let appended = appended.map_err(|error| of_store(&error))?;
            if let Some(rejection) = appended.rejections.first() {
                let words = format!(
                    "row {}: {}; {} rows were refused, the others are stored",
                    rejection.position + 1,
                    rejection.reason,
                    appended.rejections.len()
                );
                return Err(SqlError::limit(words));
            }
        }
        Ok(())
    }
}

fn of_store(error: &store::Error) -> SqlError {
    SqlError::new("58030", error.to_string())
}

/// Rows of one hypertable.
pub struct SeriesRows {
    table: Arc<Hypertable>,
    keys: TableKeys,
    hasher: KeyHasher,
    /// Of rows with all values first, then of those with one each.
    shapes: Vec<Shape>,
    chunks: Vec<Chunk>,
    count: u32,
    has_nulls: bool,
    memory: MemoryReservation,
}

/// Rows that are given to the store together.
#[derive(Default)]
struct Chunk {
    keys: Vec<u8>,
    rows: Vec<Row>,
    values: Vec<f64>,
}

impl SeriesRows {
    /// None yet; memory for them is taken there.
    pub fn new(table: Arc<Hypertable>, series: &Series, memory: MemoryReservation) -> SeriesRows {
        let name = |at: &usize| table.schema.columns[*at].name.clone();
        let keys = TableKeys {
            table: table.name.clone(),
            labels: table.labels.iter().map(name).collect(),
        };
        let hasher = series.store.hasher();
        let context = keys.context();
        let shape = |fields: Vec<Box<str>>| Shape { hash: hasher.shape(&context, &fields), fields };
        let fields: Vec<Box<str>> = table.values.iter().map(|at| name(at).into()).collect();
        let each = fields.iter().map(|field| shape(vec![field.clone()]));
        let each: Vec<Shape> = each.collect();
        let shapes = std::iter::once(shape(fields)).chain(each).collect();
        let chunks = Vec::new();
        SeriesRows { table, keys, hasher, shapes, chunks, count: 0, has_nulls: false, memory }
    }

    /// The table.
    pub fn table(&self) -> &str {
        &self.table.name
    }

    /// How many rows there are.
    pub fn count(&self) -> u64 {
        u64::from(self.count)
    }

    /// Whether a table looks as the one that they are for; others may have added rows that lack values.
    pub fn fits(&self, schema: &Schema) -> bool {
        Hypertable::is_alike(&self.table.name, schema, &self.table.schema)
    }

    /// What the table looks like with these rows in it, where that is to be said: they lack values.
    pub fn sparse_schema(&self, schema: &Schema) -> Option<Schema> {
        let now = Hypertable::of(&self.table.name, schema)?;
        (self.has_nulls && now.is_dense).then(|| {
            let mut schema = now.schema;
            Hypertable::say_sparse(&mut schema);
            schema
        })
    }

    /// Adds a row: a value for each column of the table.
    ///
    /// # Errors
    /// When it cannot be stored, and when there is no memory for it.
    pub fn push(&mut self, row: &[Datum]) -> Result<(), SqlError> {
        let timestamp = self.time_of(&row[self.table.time])?;
        let has_room = |chunk: &Chunk| chunk.rows.len() + self.table.values.len() <= BATCH_ROWS;
        if !self.chunks.last().is_some_and(has_room) {
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
        let (values_start, wanted) = (chunk.values.len(), self.table.values.len());
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let stored = |shape: usize, values_start: usize| Row {
            hash: self.hasher.hash(key, self.shapes[shape].hash),
            timestamp,
            key_offset: place(key_start),
            key_size: place(key.len()),
            shape: place(shape),
            values_start: place(values_start),
            position: self.count,
        };
        let mut alone = Vec::new();
        for (nth, at) in self.table.values.iter().enumerate() {
            if let Some(number) = self.table.number(*at, &row[*at])? {
                alone.push((1 + nth, chunk.values.len()));
                chunk.values.push(number);
            }
        }
        match alone.len() {
            0 => {
                let words = format!("a row of \"{}\" without any value", self.table.name);
                let hint = "Its columns of numbers are all NULL: give one of them.";
                return Err(SqlError::new("23502", words).with_hint(hint));
            }
            all if all == wanted => chunk.rows.push(stored(0, values_start)),
            _ => {
                self.has_nulls = true;
                let rows: Vec<Row> = alone.iter().map(|(shape, at)| stored(*shape, *at)).collect();
                chunk.rows.extend(rows);
            }
        }
        self.count = self.count.checked_add(1).ok_or_else(|| SqlError::limit("too many rows"))?;
        Ok(())
    }

    fn time_of(&self, value: &Datum) -> Result<i64, SqlError> {
        let name = &self.table.schema.columns[self.table.time].name;
        let micros = match value {
            Datum::Timestamptz(micros) | Datum::Timestamp(micros) => *micros,
            _ => {
                let words = format!(
                    "null value in column \"{name}\" of relation \"{}\" violates not-null constraint",
                    self.table.name
                );
                return Err(SqlError::new("23502", words));
            }
        };
        micros.checked_mul(NANOS_PER_MICRO).ok_or_else(|| {
            SqlError::new("22008", format!("a time in column \"{name}\" is out of range"))
        })
    }

    /// Takes memory for another chunk, and for what those before have grown to.
    fn account(&mut self) -> Result<(), SqlError> {
        let size = |chunk: &Chunk| {
            chunk.keys.capacity()
                + chunk.rows.capacity() * size_of::<Row>()
                + chunk.values.capacity() * size_of::<f64>()
        };
        let all = self.chunks.iter().map(size).sum();
        Ok(self.memory.try_resize(all)?)
    }

    fn batches(&self) -> impl Iterator<Item = WriteBatch<'_>> {
        self.chunks.iter().map(|chunk| WriteBatch {
            bytes: Cow::Borrowed(&chunk.keys),
            shapes: self.shapes.clone(),
            rows: chunk.rows.clone(),
            values: chunk.values.clone(),
            decoder: &self.keys,
        })
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
