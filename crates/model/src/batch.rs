//! What every door hands to the store: rows that name their series by the raw bytes they came in.
//!
//! A row is one line of line protocol (many fields at one instant) or one sample of a
//! remote-write series. Its *key* is a slice of the request; the store maps the key's hash to a
//! series it has seen before and touches no string. Only for an unknown key does it ask the
//! batch's [`KeyDecoder`] what labels the bytes stand for.
//!
//! ```text
//! cpu,host=a,region=eu usage_user=58i,usage_system=2i 1451606400000000000
//! └───────key────────┘ └──────────shape: [usage_user, usage_system]──────┘ values: 58, 2
//! ```

use crate::labels::{LabelError, LabelsBuilder};
use crate::sample::Timestamp;
use std::borrow::Cow;

/// Rows decoded from one request.
pub struct WriteBatch<'a> {
    /// The bytes that keys point into: the request's body, or what the decoder assembled.
    pub bytes: Cow<'a, [u8]>,
    /// The field lists that occur; few, whatever the number of rows.
    pub shapes: Vec<Shape>,
    /// One entry per line or sample, in the order of the request.
    pub rows: Vec<Row>,
    /// The rows' values, one after the other in the order of the rows.
    pub values: Vec<f64>,
    /// Tells what labels a key stands for.
    pub decoder: &'a dyn KeyDecoder,
}

impl WriteBatch<'_> {
    /// The raw bytes that name the row's series.
    pub fn key(&self, row: &Row) -> &[u8] {
        &self.bytes[row.key_offset as usize..row.key_offset as usize + row.key_size as usize]
    }

    /// The row's values, one per field of its shape.
    pub fn row_values(&self, row: &Row) -> &[f64] {
        let start = row.values_start as usize;
        &self.values[start..start + self.shapes[row.shape as usize].fields.len()]
    }
}

/// One line, or one sample of one series.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// [`KeyHasher::hash`] of key and shape.
    pub hash: u128,
    /// When.
    pub timestamp: Timestamp,
    /// Where the key starts in [`WriteBatch::bytes`].
    pub key_offset: u32,
    /// How many bytes the key has.
    pub key_size: u32,
    /// Index into [`WriteBatch::shapes`].
    pub shape: u32,
    /// Where the row's values start in [`WriteBatch::values`].
    pub values_start: u32,
    /// What a person calls it: the line (from 1) or the series (from 0) in the request.
    pub position: u32,
}

/// The ordered list of fields that rows of one kind have.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Field names as the decoder understands them; a single empty one when a key is a whole series.
    pub fields: Vec<Box<str>>,
    /// Distinguishes shapes in [`KeyHasher::hash`]: see [`KeyHasher::shape`].
    pub hash: u64,
}

/// Turns a key back into labels; each protocol (with its request's extra labels) has one.
pub trait KeyDecoder: Sync {
    /// Appends the labels of `key` (unsorted, without the metric's name) to `tags`, which is empty.
    ///
    /// # Errors
    /// When the bytes are no label set; the row is then rejected, the others are not.
    fn tags(&self, key: &[u8], tags: &mut LabelsBuilder) -> Result<(), LabelError>;

    /// Writes the metric's name of `field` of `key` to `name`, which is empty.
    ///
    /// # Errors
    /// As [`KeyDecoder::tags`].
    fn metric_name(&self, key: &[u8], field: &str, name: &mut String) -> Result<(), LabelError>;
}

/// Hashes keys with a secret of the process, so that no client can make two series one.
#[derive(Clone, Copy, Debug)]
pub struct KeyHasher {
    seed: u64,
}

impl KeyHasher {
    /// A hasher with a seed that clients do not know.
    pub fn new(seed: u64) -> KeyHasher {
        KeyHasher { seed }
    }

    /// The hash of a shape in a context: protocol, extra labels and the list of field names.
    /// `context` must differ whenever the decoder would decode the same key differently.
    pub fn shape(&self, context: &[u8], fields: &[Box<str>]) -> u64 {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(&(context.len() as u64).to_le_bytes());
        bytes.extend_from_slice(context);
        for field in fields {
            bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
            bytes.extend_from_slice(field.as_bytes());
        }
        xxhash_rust::xxh3::xxh3_64_with_seed(&bytes, self.seed)
    }

    /// The hash of a key under a shape's hash; 128 bits, so equal hashes are equal series.
    #[inline]
    pub fn hash(&self, key: &[u8], shape_hash: u64) -> u128 {
        xxhash_rust::xxh3::xxh3_128_with_seed(key, self.seed ^ shape_hash)
    }
}

/// A row that the store refused while it took the others.
#[derive(Clone, Debug)]
pub struct Rejection {
    /// [`Row::position`].
    pub position: u32,
    /// Why, with the limit and the value in it.
    pub reason: String,
}
