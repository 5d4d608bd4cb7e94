//! Chunks of histograms with float counts, as Prometheus stores them.
//!
//! ```text
//! chunk    u16 samples, u8 flags, then bits: layout, samples
//! flags    10 first after a reset   01 no reset   11 gauges   00 nobody knows       (highest two bits)
//! layout   zero_threshold int(schema) spans(positive) spans(negative), of custom bounds uint(count) bounds
//! spans    uint(count), each uint(length) int(offset)
//! sample 0 int(time) count:64 zero_count:64 sum:64, each bucket :64
//! others   int(delta of delta) xor(count) xor(zero_count) xor(sum), each bucket xor
//! ```
//!
//! All histograms of a chunk have one layout, and behind the first no counter is reset.
//! Bits of varying length, `int` and `uint`, are those of `CLASSES`.

use super::bits::{BitReader, BitWriter, Window};
use crate::Error;
use crate::narrow::{body_offset, low_byte, whole};
use crate::remote_write::encode_histograms::spans;
use histogram::{Bucket, CUSTOM_SCHEMA, Histogram, ResetHint};

/// `FLOAT_HISTOGRAM` of the chunks' encodings.
pub(super) const ENCODING: u64 = 3;
/// `HISTOGRAM` of the chunks' encodings: counts are whole numbers. Prometheus writes it, remote read does not.
pub(super) const WHOLE_ENCODING: u64 = 2;
/// Bytes after which a chunk ends: histograms have up to many thousand buckets.
pub(super) const CHUNK_SIZE_MAX: usize = 32 << 10;
/// Bytes of the number of samples and the flags.
const HEAD_SIZE: usize = 3;
/// Lengths of numbers; the prefix of each is one more 1 than of the one before, then a 0.
const CLASSES: [u32; 7] = [3, 6, 9, 12, 18, 25, 56];
/// Thousandths up to here are written as whole numbers, which may have 25 bits.
const THOUSANDTHS_MAX: f64 = 33_554_430.0;
/// Numbers of the buckets and custom bounds of all histograms of a chunk together: a bound takes none of
/// the chunk's bits and each histogram has its own copy in memory, and a bucket of one bit has 16 bytes there.
const NUMBERS_MAX: usize = 8 << 20;
/// Powers of two that a zero threshold's single byte can say, from 1 to 254.
const EXPONENT_OFFSET: i32 = 243;

/// Appends as many of the histograms as fit into one chunk, and returns how many: at least one of
/// any. Times rise.
pub fn push_chunk(out: &mut Vec<u8>, histograms: &[(i64, &Histogram)], count_max: usize) -> usize {
    let Some(&(millis, first)) = histograms.first() else { return 0 };
    let start = out.len();
    out.extend_from_slice(&[0, 0, flags(first)]);
    let mut bits = BitWriter::new(out);
    put_layout(&mut bits, first);
    put_int(&mut bits, millis);
    for value in values(first) {
        bits.put(value.to_bits(), 64);
    }
    let mut windows: Vec<Option<Window>> = vec![None; values(first).count()];
    let (mut delta, mut count) = (0i64, 1usize);
    for pair in histograms.windows(2) {
        let &[(millis_before, before), (millis, next)] = pair else { continue };
        let is_full = count_max <= count || CHUNK_SIZE_MAX <= bits.size() - start;
        if is_full || !goes_on(before, next) {
            break;
        }
        let next_delta = millis.wrapping_sub(millis_before);
        put_int(&mut bits, next_delta.wrapping_sub(delta));
        delta = next_delta;
        for ((a, b), window) in values(before).zip(values(next)).zip(&mut windows) {
            bits.put_xor(window, a.to_bits() ^ b.to_bits());
        }
        count += 1;
    }
    if let Some(head) = out.get_mut(start..start + 2) {
        head.copy_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
    }
    count
}

pub(super) fn flags(first: &Histogram) -> u8 {
    match first.reset_hint {
        ResetHint::Unknown => 0b00 << 6,
        ResetHint::Reset => 0b10 << 6,
        ResetHint::NoReset => 0b01 << 6,
        ResetHint::Gauge => 0b11 << 6,
    }
}

/// Whether the second may stand in the chunk of the first.
pub(super) fn goes_on(before: &Histogram, next: &Histogram) -> bool {
    let same_indexes = |a: &[Bucket], b: &[Bucket]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.index == b.index)
    };
    let is_same_layout = before.schema == next.schema
        && before.zero_threshold.to_bits() == next.zero_threshold.to_bits()
        && before.is_gauge() == next.is_gauge()
        && before.custom_bounds == next.custom_bounds
        && same_indexes(&before.positive, &next.positive)
        && same_indexes(&before.negative, &next.negative);
    if !is_same_layout || next.is_gauge() {
        return is_same_layout;
    }
    let counts = |of: &Histogram| [of.count, of.zero_count];
    let fell = |a: &[Bucket], b: &[Bucket]| a.iter().zip(b).any(|(a, b)| b.count < a.count);
    let is_reset = next.reset_hint == ResetHint::Reset
        || counts(before).iter().zip(counts(next)).any(|(a, b)| b < *a)
        || fell(&before.positive, &next.positive)
        || fell(&before.negative, &next.negative);
    !is_reset
}

/// All numbers of a sample in their order.
fn values(of: &Histogram) -> impl Iterator<Item = f64> {
    let buckets = of.positive.iter().chain(&of.negative).map(|bucket| bucket.count);
    [of.count, of.zero_count, of.sum].into_iter().chain(buckets)
}

pub(super) fn put_layout(bits: &mut BitWriter<'_>, of: &Histogram) {
    put_zero_threshold(bits, of.zero_threshold);
    put_int(bits, i64::from(of.schema));
    for side in [&of.positive, &of.negative] {
        put_uint(bits, spans(side).count() as u64);
        for (offset, length) in spans(side) {
            put_uint(bits, u64::from(length));
            put_int(bits, i64::from(offset));
        }
    }
    if of.schema == CUSTOM_SCHEMA {
        put_uint(bits, of.custom_bounds.len() as u64);
        of.custom_bounds.iter().for_each(|&bound| put_bound(bits, bound));
    }
}

/// A byte for zero and for powers of two that are usual, else 255 and all bits.
fn put_zero_threshold(bits: &mut BitWriter<'_>, threshold: f64) {
    let is_usual = |byte: &u8| threshold_of(*byte).to_bits() == threshold.to_bits();
    match (0..=254).find(is_usual) {
        Some(byte) => bits.put(u64::from(byte), 8),
        None => {
            bits.put(255, 8);
            bits.put(threshold.to_bits(), 64);
        }
    }
}

/// What the bytes 0 to 254 stand for.
fn threshold_of(byte: u8) -> f64 {
    match byte {
        0 => 0.0,
        _ => 0.5 * 2f64.powi(i32::from(byte) - EXPONENT_OFFSET),
    }
}

/// Thousandths as whole numbers, others as a 0 and all bits.
fn put_bound(bits: &mut BitWriter<'_>, bound: f64) {
    let thousandths = bound * 1000.0;
    let is_whole = thousandths.round() / 1000.0 == bound;
    if (0.0..=THOUSANDTHS_MAX).contains(&thousandths) && is_whole && bound.is_sign_positive() {
        return put_uint(bits, whole(thousandths.round()).unsigned_abs() + 1);
    }
    bits.put(0, 1);
    bits.put(bound.to_bits(), 64);
}

pub(super) fn put_int(bits: &mut BitWriter<'_>, value: i64) {
    let fits = |len: u32| {
        let half = 1i64 << (len - 1);
        -half < value && value <= half
    };
    put_class(bits, value as u64, value == 0, fits);
}

pub(super) fn put_uint(bits: &mut BitWriter<'_>, value: u64) {
    put_class(bits, value, value == 0, |len| value >> len == 0);
}

fn put_class(bits: &mut BitWriter<'_>, value: u64, is_zero: bool, fits: impl Fn(u32) -> bool) {
    if is_zero {
        return bits.put(0, 1);
    }
    for (idx, len) in CLASSES.into_iter().enumerate() {
        if fits(len) {
            let ones = body_offset(idx) + 1;
            bits.put((1 << (ones + 1)) - 2, ones + 1);
            return bits.put(value, len);
        }
    }
    bits.put(0xff, 8);
    bits.put(value, 64);
}

/// The histograms of a chunk with their times in milliseconds.
///
/// # Errors
/// The bytes end before the histograms do, or are no layout.
pub fn decode_chunk(bytes: &[u8]) -> Result<Vec<(i64, Histogram)>, Error> {
    let short = || too_short(bytes);
    let (count, flags, mut reader) = head(bytes).ok_or_else(short)?;
    let mut found: Vec<(i64, Histogram)> = Vec::new();
    let (mut windows, mut delta) = (Vec::new(), 0i64);
    while found.len() < count {
        let sample = match found.last() {
            None => reader.first(flags).filter(|(_, first)| check_room(first, count).is_some()),
            Some(last) => {
                windows.resize(values(&last.1).count(), None);
                reader.next(last, &mut delta, &mut windows)
            }
        };
        found.push(sample.ok_or_else(short)?);
    }
    Ok(found)
}

/// The histograms of a chunk whose counts are whole numbers, with their times in milliseconds.
///
/// Counts are told by how much their difference to the one before differs from the difference before
/// that, and those of buckets by how they differ from the bucket before in the same way.
///
/// # Errors
/// As [`decode_chunk`].
pub fn decode_whole_chunk(bytes: &[u8]) -> Result<Vec<(i64, Histogram)>, Error> {
    let short = || too_short(bytes);
    let (count, flags, mut reader) = head(bytes).ok_or_else(short)?;
    let mut found = Vec::new();
    let mut whole = None;
    while found.len() < count {
        let sample = match &mut whole {
            None => {
                let first = Whole::first(&mut reader, flags).ok_or_else(short)?;
                check_room(&first.layout, count).ok_or_else(short)?;
                whole.insert(first).sample()
            }
            Some(whole) => {
                whole.next(&mut reader).ok_or_else(short)?;
                whole.sample()
            }
        };
        found.push(sample);
    }
    Ok(found)
}

fn too_short(bytes: &[u8]) -> Error {
    Error::malformed("histogram chunk", bytes.len(), "as many samples as it says")
}

/// How many samples a chunk says that it has, its flags, and what reads them; none where there are fewer
/// bits than samples.
fn head(bytes: &[u8]) -> Option<(usize, u8, Reader<'_>)> {
    let (&[high, low, flags], body) = bytes.split_first_chunk::<HEAD_SIZE>()?;
    let count = usize::from(u16::from_be_bytes([high, low]));
    let bit_count = body.len() * 8;
    let reader = Reader { bits: BitReader::new(body), bit_count };
    (count <= bit_count).then_some((count, flags, reader))
}

/// Nothing where there is no room for so many histograms of this layout.
fn check_room(first: &Histogram, count: usize) -> Option<()> {
    let Histogram { positive, negative, custom_bounds, .. } = first;
    let numbers = 2 * (positive.len() + negative.len()) + custom_bounds.len();
    (numbers.saturating_mul(count) <= NUMBERS_MAX).then_some(())
}

/// A number and how it last changed.
#[derive(Clone, Copy, Default)]
struct Moving {
    value: i64,
    delta: i64,
}

impl Moving {
    fn at(value: i64) -> Moving {
        Moving { value, delta: 0 }
    }

    fn step(&mut self, change: i64) {
        self.delta = self.delta.wrapping_add(change);
        self.value = self.value.wrapping_add(self.delta);
    }
}

/// Where the reading of a chunk of whole numbers is.
struct Whole {
    layout: Histogram,
    millis: Moving,
    count: Moving,
    zero_count: Moving,
    sum: f64,
    window: Option<Window>,
    /// Of all buckets, the negative ones behind the positive ones: how each differs from the one before.
    buckets: Vec<Moving>,
}

impl Whole {
    fn first(reader: &mut Reader<'_>, flags: u8) -> Option<Whole> {
        let layout = reader.layout(flags)?;
        let millis = Moving::at(reader.int()?);
        let (count, zero_count) = (reader.uint()? as i64, reader.uint()? as i64);
        let sum = f64::from_bits(reader.bits.take(64)?);
        let mut buckets = Vec::new();
        for _ in 0..layout.positive.len() + layout.negative.len() {
            buckets.push(Moving::at(reader.int()?));
        }
        let (count, zero_count) = (Moving::at(count), Moving::at(zero_count));
        Some(Whole { layout, millis, count, zero_count, sum, window: None, buckets })
    }

    fn next(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        self.millis.step(reader.int()?);
        self.count.step(reader.int()?);
        self.zero_count.step(reader.int()?);
        self.sum = f64::from_bits(self.sum.to_bits() ^ reader.bits.xor(&mut self.window)?);
        // A series that has ended has no buckets.
        if !model::is_stale_marker(self.sum) {
            for bucket in &mut self.buckets {
                bucket.step(reader.int()?);
            }
        }
        if !self.layout.is_gauge() {
            self.layout.reset_hint = ResetHint::NoReset;
        }
        Some(())
    }

    fn sample(&self) -> (i64, Histogram) {
        if model::is_stale_marker(self.sum) {
            // Its buckets stand nowhere, and may be many more than the chunk has bits.
            let Histogram { schema, reset_hint, zero_threshold, .. } = self.layout;
            let ended = Histogram {
                schema,
                reset_hint,
                zero_threshold,
                zero_count: 0.0,
                count: 0.0,
                sum: self.sum,
                positive: Vec::new(),
                negative: Vec::new(),
                custom_bounds: Vec::new(),
            };
            return (self.millis.value, ended);
        }
        let mut histogram = self.layout.clone();
        histogram.count = self.count.value as u64 as f64;
        histogram.zero_count = self.zero_count.value as u64 as f64;
        histogram.sum = self.sum;
        let (positive, negative) = self.buckets.split_at(histogram.positive.len());
        let sides = [(&mut histogram.positive, positive), (&mut histogram.negative, negative)];
        for (side, buckets) in sides {
            let mut sum = 0i64;
            for (bucket, moving) in side.iter_mut().zip(buckets) {
                sum = sum.wrapping_add(moving.value);
                bucket.count = sum as f64;
            }
        }
        (self.millis.value, histogram)
    }
}

/// Reads samples one after the other.
struct Reader<'a> {
    bits: BitReader<'a>,
    /// How many bits there are: nothing has more elements.
    bit_count: usize,
}

impl Reader<'_> {
    fn first(&mut self, flags: u8) -> Option<(i64, Histogram)> {
        let mut histogram = self.layout(flags)?;
        let millis = self.int()?;
        let mut number = || self.bits.take(64).map(f64::from_bits);
        histogram.count = number()?;
        histogram.zero_count = number()?;
        histogram.sum = number()?;
        let Histogram { positive, negative, .. } = &mut histogram;
        for bucket in positive.iter_mut().chain(negative) {
            bucket.count = number()?;
        }
        Some((millis, histogram))
    }

    /// A histogram without its numbers.
    fn layout(&mut self, flags: u8) -> Option<Histogram> {
        let zero_threshold = match low_byte(self.bits.take(8)?) {
            255 => f64::from_bits(self.bits.take(64)?),
            byte => threshold_of(byte),
        };
        let schema = i8::try_from(self.int()?).ok()?;
        let mut sides = [Vec::new(), Vec::new()];
        for side in &mut sides {
            self.indexes(side)?;
        }
        let mut custom_bounds = Vec::new();
        if schema == CUSTOM_SCHEMA {
            for _ in 0..self.uint()? {
                custom_bounds.push(match self.uint()? {
                    0 => f64::from_bits(self.bits.take(64)?),
                    thousandths => (thousandths - 1) as f64 / 1000.0,
                });
            }
        }
        let [positive, negative] = sides;
        let reset_hint = match flags >> 6 {
            0b10 => ResetHint::Reset,
            0b01 => ResetHint::NoReset,
            0b11 => ResetHint::Gauge,
            _ => ResetHint::Unknown,
        };
        Some(Histogram {
            schema,
            reset_hint,
            zero_threshold,
            zero_count: 0.0,
            count: 0.0,
            sum: 0.0,
            positive,
            negative,
            custom_bounds,
        })
    }

    /// Buckets without their counts, of which each takes bits later on.
    fn indexes(&mut self, side: &mut Vec<Bucket>) -> Option<()> {
        let mut next = 0i64;
        for _ in 0..self.uint()? {
            let (length, offset) = (self.uint()?, self.int()?);
            if (self.bit_count as u64) < length.checked_add(side.len() as u64)? {
                return None;
            }
            next = next.checked_add(offset)?;
            for _ in 0..length {
                side.push(Bucket { index: i32::try_from(next).ok()?, count: 0.0 });
                next += 1;
            }
        }
        Some(())
    }

    fn next(
        &mut self,
        before: &(i64, Histogram),
        delta: &mut i64,
        windows: &mut [Option<Window>],
    ) -> Option<(i64, Histogram)> {
        *delta = delta.wrapping_add(self.int()?);
        let mut histogram = before.1.clone();
        if !histogram.is_gauge() {
            histogram.reset_hint = ResetHint::NoReset;
        }
        let Histogram { count, zero_count, sum, positive, negative, .. } = &mut histogram;
        let buckets = positive.iter_mut().chain(negative).map(|bucket| &mut bucket.count);
        for (value, window) in [count, zero_count, sum].into_iter().chain(buckets).zip(windows) {
            *value = f64::from_bits(value.to_bits() ^ self.bits.xor(window)?);
        }
        Some((before.0.wrapping_add(*delta), histogram))
    }

    /// The length of the next number; `None` inside for zero.
    fn class(&mut self) -> Option<Option<u32>> {
        let mut ones = 0;
        while ones < 8 && self.bits.take(1)? == 1 {
            ones += 1;
        }
        Some(match ones {
            0 => None,
            8 => Some(64),
            ones => CLASSES.get(ones - 1).copied(),
        })
    }

    fn uint(&mut self) -> Option<u64> {
        match self.class()? {
            None => Some(0),
            Some(len) => self.bits.take(len),
        }
    }

    fn int(&mut self) -> Option<i64> {
        let Some(len) = self.class()? else { return Some(0) };
        let found = self.bits.take(len)?;
        if len < 64 && 1u64 << (len - 1) < found {
            return Some(found.wrapping_sub(1 << len) as i64);
        }
        Some(found as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_would_be_copied_for_ever_are_refused() {
        let custom_bounds: Vec<f64> = (0..20_000).map(f64::from).collect();
        let schema = CUSTOM_SCHEMA;
        let first = Histogram { schema, custom_bounds, ..Histogram::default() };
        let chunk = |count: u16| {
            let [high, low] = count.to_be_bytes();
            let mut bytes = vec![high, low, 0];
            put_layout(&mut BitWriter::new(&mut bytes), &first);
            // Of what follows every bit is zero: a time and numbers that stay as they are.
            bytes.resize(bytes.len() + 64 + usize::from(count), 0);
            bytes
        };
        for decode in [decode_chunk, decode_whole_chunk] {
            assert_eq!(decode(&chunk(100)).map(|all| all.len()), Ok(100));
            assert!(decode(&chunk(1000)).is_err(), "twenty million bounds");
        }
    }
}
