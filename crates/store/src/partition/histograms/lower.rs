//! From histograms to rows: a marker, and the values of each hidden entity.

use super::marker::Marker;
use super::names::{Piece, RUN_LEN, RUN_STEP};
use crate::base::narrow::{low_half, whole};
use histogram::{Bucket, Histogram};
use model::limits::HISTOGRAM_BUCKETS_MAX;
use std::ops::Range;

/// Histograms on their way into one record of the log.
#[derive(Default)]
pub struct Lowered {
    /// In order.
    pub histograms: Vec<LoweredHistogram>,
    /// Their hidden rows, one histogram after the other.
    pub rows: Vec<HiddenRow>,
    /// The values of all hidden rows.
    pub values: Vec<f64>,
}

/// One of them.
pub struct LoweredHistogram {
    /// Its place in the batch.
    pub row: usize,
    /// What the plain series gets: a marker, or a stale marker.
    pub value: f64,
    /// Its hidden rows; none when it is stale.
    pub rows: Range<usize>,
}

/// A row of a hidden entity.
pub struct HiddenRow {
    /// Which entity.
    pub piece: Piece,
    /// Where its values start; there are as many as the entity has columns.
    pub values_start: usize,
}

impl Lowered {
    /// Empties it, and keeps the memory.
    pub fn clear(&mut self) {
        self.histograms.clear();
        self.rows.clear();
        self.values.clear();
    }

    /// How many values a histogram has, its marker included.
    pub fn value_count(&self, one: &LoweredHistogram) -> usize {
        let hidden = self.rows[one.rows.clone()].iter();
        1 + hidden.map(|row| row.piece.columns().len()).sum::<usize>()
    }

    /// The values of a hidden row.
    pub fn values_of(&self, row: &HiddenRow) -> &[f64] {
        &self.values[row.values_start..row.values_start + row.piece.columns().len()]
    }

    /// Adds row `row` of a batch.
    ///
    /// # Errors
    /// What is wrong with it, in words; nothing is added then.
    pub fn push(&mut self, row: usize, histogram: &Histogram) -> Result<(), String> {
        let start = self.rows.len();
        if histogram.is_stale() {
            let value = model::stale_marker();
            self.histograms.push(LoweredHistogram { row, value, rows: start..start });
            return Ok(());
        }
        check(histogram)?;
        self.push_row(Piece::Base, 0);
        self.push_buckets(&histogram.positive, Piece::Positive);
        self.push_buckets(&histogram.negative, Piece::Negative);
        for (bounds, run) in histogram.custom_bounds.chunks(RUN_LEN).zip(0..) {
            let values = self.push_row(Piece::Bounds(run), mask_of(bounds.len()));
            values[..bounds.len()].copy_from_slice(bounds);
        }
        let layout = self.layout_of(start);
        let marker = Marker { schema: histogram.schema, reset_hint: histogram.reset_hint, layout };
        let value = marker.to_value().expect("the schema was checked");
        for row in &self.rows[start..] {
            let cell = &mut self.values[row.values_start + row.piece.layout_column()];
            *cell = layout_value(layout, whole(*cell).cast_unsigned());
        }
        let base = &mut self.values[self.rows[start].values_start..];
        base[..4].copy_from_slice(&[
            histogram.count,
            histogram.sum,
            histogram.zero_count,
            histogram.zero_threshold,
        ]);
        debug_assert_eq!(Marker::of(value), Some(marker), "it reads back");
        self.histograms.push(LoweredHistogram { row, value, rows: start..self.rows.len() });
        Ok(())
    }

    fn push_buckets(&mut self, buckets: &[Bucket], piece_of: fn(i32) -> Piece) {
        for run in buckets.chunk_by(|a, b| run_of(a.index) == run_of(b.index)) {
            let bit_of = |bucket: &Bucket| bucket.index.rem_euclid(RUN_STEP) as usize;
            let mask = run.iter().fold(0, |mask, bucket| mask | 1 << bit_of(bucket));
            let values = self.push_row(piece_of(run_of(run[0].index)), mask);
            run.iter().for_each(|bucket| values[bit_of(bucket)] = bucket.count);
        }
    }

    /// Adds a row of zeros; until the layout is known its cell has the mask alone.
    fn push_row(&mut self, piece: Piece, mask: u64) -> &mut [f64] {
        debug_assert!(mask < 1 << RUN_LEN, "a bit for each column of a run");
        let values_start = self.values.len();
        self.rows.push(HiddenRow { piece, values_start });
        self.values.resize(values_start + piece.columns().len(), 0.0);
        self.values[values_start + piece.layout_column()] = mask as f64;
        &mut self.values[values_start..]
    }

    /// The hash of the pieces from a row on.
    fn layout_of(&self, start: usize) -> u32 {
        let mut bytes = [0u8; 8 * 64];
        let mut hash = 0;
        for rows in self.rows[start..].chunks(64) {
            for (row, cell) in rows.iter().zip(bytes.chunks_mut(8)) {
                let (kind, run) = match row.piece {
                    Piece::Base => (0u32, 0),
                    Piece::Positive(run) => (1, run),
                    Piece::Negative(run) => (2, run),
                    Piece::Bounds(run) => (3, run),
                };
                cell[..4].copy_from_slice(&kind.to_le_bytes());
                cell[4..].copy_from_slice(&run.to_le_bytes());
            }
            hash = xxhash_rust::xxh3::xxh3_64_with_seed(&bytes[..8 * rows.len()], hash);
        }
        low_half(hash)
    }
}

/// What a layout's column holds: a whole number below 2^48, the hash and which buckets there are.
pub fn layout_value(layout: u32, mask: u64) -> f64 {
    debug_assert!(mask < 1 << RUN_LEN);
    (u64::from(layout) << RUN_LEN | mask) as f64
}

/// The hash and the mask that [`layout_value`] joined; some numbers for what it did not give.
pub fn layout_parts(value: f64) -> (u32, u16) {
    let joined = whole(value).cast_unsigned();
    let [low, high, ..] = joined.to_le_bytes();
    (low_half(joined >> RUN_LEN), u16::from_le_bytes([low, high]))
}

fn mask_of(count: usize) -> u64 {
    (1 << count) - 1
}

fn run_of(index: i32) -> i32 {
    index.div_euclid(RUN_STEP)
}

fn check(histogram: &Histogram) -> Result<(), String> {
    let marker = Marker { schema: histogram.schema, reset_hint: histogram.reset_hint, layout: 0 };
    if marker.to_value().is_none() {
        return Err(format!("histogram of schema {}, which is not known", histogram.schema));
    }
    for (what, count) in [
        ("buckets", histogram.positive.len() + histogram.negative.len()),
        ("custom bounds", histogram.custom_bounds.len()),
    ] {
        if HISTOGRAM_BUCKETS_MAX < count {
            return Err(format!(
                "histogram of {count} {what}, the limit is {HISTOGRAM_BUCKETS_MAX} \
                 (histogram-buckets)"
            ));
        }
    }
    let is_sorted = |buckets: &[Bucket]| buckets.is_sorted_by(|a, b| a.index < b.index);
    match is_sorted(&histogram.positive) && is_sorted(&histogram.negative) {
        true => Ok(()),
        false => Err("buckets of a histogram are not in increasing order".into()),
    }
}
