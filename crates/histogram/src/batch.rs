//! What a door hands to the store: histograms that name their series by the raw bytes they came in.

use crate::native::Histogram;
use model::{KeyDecoder, Timestamp};
use std::borrow::Cow;

/// Histograms decoded from one request. Every key is a whole series: the only field is empty.
pub struct HistogramBatch<'a> {
    /// The bytes that keys point into.
    pub bytes: Cow<'a, [u8]>,
    /// One entry a sample, in the order of the request.
    pub rows: Vec<HistogramRow>,
    /// Tells what labels a key stands for.
    pub decoder: &'a dyn KeyDecoder,
    /// What distinguishes the decoder from others: see [`model::KeyHasher::shape`].
    pub context: Cow<'a, [u8]>,
}

/// One histogram of one series.
#[derive(Clone, Debug)]
pub struct HistogramRow {
    /// Where the key starts in [`HistogramBatch::bytes`].
    pub key_offset: u32,
    /// How many bytes the key has.
    pub key_size: u32,
    /// When.
    pub timestamp: Timestamp,
    /// What a person calls it: the series (from 0) in the request.
    pub position: u32,
    /// What; stale markers included ([`Histogram::is_stale`]).
    pub histogram: Histogram,
}

impl HistogramBatch<'_> {
    /// The raw bytes that name the row's series.
    pub fn key(&self, row: &HistogramRow) -> &[u8] {
        &self.bytes[row.key_offset as usize..row.key_offset as usize + row.key_size as usize]
    }
}
