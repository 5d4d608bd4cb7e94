//! Series to blocks.

use super::columns::{self, put_name, put_signed, zigzag};
use super::decimal::{DIGITS_MAX, Decimal, ENDED, ENDLESS, ENDLESS_BELOW, Scale, shortest};
use super::{BLOCK_ROWS_MAX, PIECE_SIZE_MAX};
use crate::narrow::body_offset;
use crate::protobuf::put_varint;
use crate::remote_write::encode::MillisSample;
use model::{Labels, METRIC_NAME};

/// Bits of a value that are kept: all.
const PRECISION_BITS: u8 = 64;

/// Appends what a stream begins with: the first and the last time, in milliseconds, of what follows.
pub fn push_head(out: &mut Vec<u8>, first_ms: i64, last_ms: i64) {
    for millis in [first_ms, last_ms] {
        out.extend_from_slice(&zigzag(millis).to_be_bytes());
    }
}

/// What stands before the columns of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heads {
    /// Since VictoriaMetrics 1.82, which looks whether times are between the first and the last.
    Current,
    /// Before that: the last time and the bits of values are not told.
    Older,
}

/// What is not in the blocks of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// NaNs that are no markers of a series' end.
    pub nans: u64,
    /// Samples of series whose labels are larger than VictoriaMetrics takes.
    pub large: u64,
    /// Numbers that are there and lost digits.
    pub rounded: u64,
}

/// Appends the blocks of a series' samples, whose times rise.
pub fn push_series(
    out: &mut Vec<u8>,
    heads: Heads,
    labels: &Labels,
    samples: &[MillisSample],
) -> LeftOut {
    let mut left_out = LeftOut::default();
    let mut name = Vec::new();
    put_name(&mut name, labels.metric_name());
    for (label, value) in labels.iter().filter(|(label, _)| *label != METRIC_NAME) {
        put_name(&mut name, label);
        put_name(&mut name, value);
    }
    if PIECE_SIZE_MAX < name.len() {
        left_out.large = samples.len() as u64;
        return left_out;
    }
    let mut block = Block::default();
    for sample in samples {
        if sample.value.is_nan() && !model::is_stale_marker(sample.value) {
            left_out.nans += 1;
            continue;
        }
        if !block.take(sample) {
            left_out.rounded += block.push(out, heads, &name);
            block = Block::default();
            block.take(sample);
        }
    }
    left_out.rounded += block.push(out, heads, &name);
    left_out
}

/// Rows that have one power of ten.
#[derive(Default)]
struct Block {
    rows: Vec<(MillisSample, Option<Decimal>)>,
    /// The lowest power of ten of a digit, and the power above the highest one.
    powers: Option<(i32, i32)>,
}

impl Block {
    /// Takes a sample unless its number and those that are there have no power of ten in common.
    fn take(&mut self, sample: &MillisSample) -> bool {
        if BLOCK_ROWS_MAX <= self.rows.len() {
            return false;
        }
        let is_plain = sample.value.is_finite() && sample.value != 0.0;
        let decimal = is_plain.then(|| shortest(sample.value));
        if let Some(Decimal { digit_count, exponent, .. }) = decimal {
            let (low, high) = self.powers.unwrap_or((exponent, exponent + digit_count));
            let (low, high) = (low.min(exponent), high.max(exponent + digit_count));
            if DIGITS_MAX < high - low {
                return false;
            }
            self.powers = Some((low, high));
        }
        self.rows.push((*sample, decimal));
        true
    }

    /// Returns how many numbers lost digits.
    fn push(&self, out: &mut Vec<u8>, heads: Heads, name: &[u8]) -> u64 {
        let (Some((first, _)), Some((last, _))) = (self.rows.first(), self.rows.last()) else {
            return 0;
        };
        let scale = Scale::new(self.powers.map_or(0, |(low, _)| low));
        let number = |(sample, decimal): &(MillisSample, Option<Decimal>)| match decimal {
            Some(decimal) => scale.whole_of(sample.value, decimal),
            None if sample.value == 0.0 => 0,
            None if sample.value == f64::INFINITY => ENDLESS,
            None if sample.value == f64::NEG_INFINITY => ENDLESS_BELOW,
            None => ENDED,
        };
        let times: Vec<i64> = self.rows.iter().map(|(sample, _)| sample.millis).collect();
        let numbers: Vec<i64> = self.rows.iter().map(number).collect();
        let changed = |((sample, _), number): &(&(MillisSample, _), &i64)| {
            !sample.value.is_nan() && scale.meaning(**number) != sample.value
        };
        let rounded = self.rows.iter().zip(&numbers).filter(changed).count() as u64;
        let (times_kind, times) = columns::encode(&times);
        let (numbers_kind, columns) = columns::encode(&numbers);
        let mut content = Vec::with_capacity(times.len() + columns.len() + 64);
        put_signed(&mut content, first.millis);
        if heads == Heads::Current {
            put_signed(&mut content, last.millis);
        }
        put_signed(&mut content, numbers.first().copied().unwrap_or(0));
        put_varint(&mut content, self.rows.len() as u64);
        put_signed(&mut content, i64::from(scale.exponent));
        content.extend_from_slice(&[times_kind, numbers_kind]);
        if heads == Heads::Current {
            content.push(PRECISION_BITS);
        }
        for column in [times, columns] {
            put_varint(&mut content, column.len() as u64);
            content.extend_from_slice(&column);
        }
        for piece in [name, &content] {
            out.extend_from_slice(&body_offset(piece.len()).to_be_bytes());
            out.extend_from_slice(piece);
        }
        rounded
    }
}
