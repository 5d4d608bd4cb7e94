//! A bloom filter that grows: whether an element was added, or may have been. A chain of filters, each
//! larger and stricter than the one before; elements are added to the last one. Bits and dumps are those
//! of RedisBloom.
//!
//! ```text
//! dump       size u64 │ filters u32 │ options u32 │ growth u32 │ head of each filter
//! head       bytes u64 │ bits u64 │ size u64 │ error f64 │ bits per element f64 │ hashes u32
//!            │ capacity u64 │ power u8
//! encoded    dump varint + bytes │ the bytes of each filter
//! ```

use super::{Stored, boxed_variant, put_bytes, read_bytes};
use crate::murmur::murmur64a;
use codec::bytes::{Reader, put_u32, put_u64};
use std::f64::consts::LN_2;

/// With so many digits the number stands in others' dumps.
const LN_2_SQUARED: f64 = 0.480453013918201;

/// Bits are as many as needed, not a power of two.
const NOT_ROUNDED: u32 = 1;
/// Hashes are of 64 bits.
const WIDE: u32 = 4;
/// No filter follows when the first one is full.
const NOT_SCALING: u32 = 8;
/// The next filter's rate of errors is this part of the last one's.
const TIGHTENING: f64 = 0.5;
const HASH_SEED: u64 = 0xc6a4_a793_5bd1_e995;

/// Bytes of all filters of a chain, at most.
pub const SIZE_MAX: u64 = 512 << 20;
/// Filters of a chain, at most: each one costs a look.
const FILTERS_MAX: usize = 1024;
/// Hashes of an element, at most; the smallest rates of errors need fewer.
const HASHES_MAX: u32 = 1100;
const HEAD_SIZE: usize = 20;
const FILTER_HEAD_SIZE: usize = 53;

/// What a chain costs in RedisBloom, besides bits: its `BF.INFO` counts that.
const CHAIN_COST: usize = 32;
const FILTER_COST: usize = 64;

/// One filter.
#[derive(Clone, Debug)]
struct Filter {
    bytes: Vec<u8>,
    size: u64,
    error: f64,
    bits_per_element: f64,
    hashes: u32,
    capacity: u64,
    /// If not 0, only so many bits as that power of two are used.
    power: u8,
}

/// A chain of filters.
#[derive(Clone, Debug, Default)]
pub struct Bloom {
    filters: Vec<Filter>,
    size: u64,
    options: u32,
    growth: u32,
}

/// How a filter is made.
#[derive(Clone, Copy, Debug)]
pub struct BloomConfig {
    /// Elements of the first filter.
    pub capacity: u64,
    /// How often an element that was not added may seem to be, at most.
    pub error: f64,
    /// How much larger each filter is than the one before; 0 if no other follows.
    pub growth: u32,
}

/// Why an element was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The one filter is full.
    NotScaling,
    /// Another filter would take more memory than may be.
    TooLarge,
}

/// The two hashes of which all others are made.
#[derive(Clone, Copy)]
struct Hash {
    first: u64,
    step: u64,
}

impl Hash {
    fn of(element: &[u8]) -> Hash {
        let first = murmur64a(element, HASH_SEED);
        Hash { first, step: murmur64a(element, first) }
    }
}

impl Filter {
    /// Bytes of a filter; none if it would be too large.
    fn size(capacity: u64, error: f64) -> Option<usize> {
        let bits = capacity as f64 * -(error.ln() / LN_2_SQUARED);
        if !(0.0..(SIZE_MAX * 8) as f64).contains(&bits) || capacity == 0 {
            return None;
        }
        usize::try_from((bits as u64).div_ceil(64).max(1) * 8).ok()
    }

    /// None if it would be too large.
    fn new(capacity: u64, error: f64) -> Option<Filter> {
        let bits_per_element = -(error.ln() / LN_2_SQUARED);
        let size = Filter::size(capacity, error)?;
        let hashes = (LN_2 * bits_per_element).ceil() as u32;
        let bytes = vec![0; size];
        Some(Filter { bytes, size: 0, error, bits_per_element, hashes, capacity, power: 0 })
    }

    /// The places of an element's bits.
    fn places(&self, hash: Hash) -> impl Iterator<Item = (usize, u8)> + use<> {
        let bits = if self.power == 0 { self.bytes.len() as u64 * 8 } else { 1 << self.power };
        (0..u64::from(self.hashes)).map(move |at| {
            let place = hash.first.wrapping_add(at.wrapping_mul(hash.step)) % bits;
            ((place / 8) as usize, 1 << (place % 8))
        })
    }

    fn has(&self, hash: Hash) -> bool {
        self.places(hash).all(|(at, mask)| self.bytes[at] & mask != 0)
    }

    fn add(&mut self, hash: Hash) {
        for (at, mask) in self.places(hash) {
            self.bytes[at] |= mask;
        }
        self.size += 1;
    }

    fn put_head(&self, out: &mut Vec<u8>) {
        put_u64(out, self.bytes.len() as u64);
        put_u64(out, self.bytes.len() as u64 * 8);
        put_u64(out, self.size);
        put_u64(out, self.error.to_bits());
        put_u64(out, self.bits_per_element.to_bits());
        put_u32(out, self.hashes);
        put_u64(out, self.capacity);
        out.push(self.power);
    }

    /// Reads a head; the bytes are not there yet. Returns how many they are, too.
    fn read_head(reader: &mut Reader<'_>) -> Result<(Filter, u64), codec::Error> {
        let (byte_count, bits, size) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (error, bits_per_element) =
            (f64::from_bits(reader.u64()?), f64::from_bits(reader.u64()?));
        let (hashes, capacity, power) = (reader.u32()?, reader.u64()?, reader.u8()?);
        let is_sound = (1..=SIZE_MAX).contains(&byte_count)
            && byte_count * 8 == bits
            && (1..=HASHES_MAX).contains(&hashes)
            && 0.0 < error
            && error < 1.0
            && bits_per_element.is_finite()
            && power < 64
            && 1_u64 << power <= bits;
        if !is_sound {
            return Err(reader.corrupt("no bloom filter"));
        }
        let bytes = Vec::new();
        let filter = Filter { bytes, size, error, bits_per_element, hashes, capacity, power };
        Ok((filter, byte_count))
    }
}

impl BloomConfig {
    /// Bytes of an empty filter; none if it would be too large.
    pub fn size(&self) -> Option<usize> {
        Filter::size(self.capacity, self.first_error())
    }

    fn first_error(&self) -> f64 {
        if self.growth == 0 { self.error } else { self.error * TIGHTENING }
    }
}

impl Bloom {
    /// An empty one; none if it would be too large.
    pub fn new(config: BloomConfig) -> Option<Bloom> {
        let first_error = config.first_error();
        let BloomConfig { capacity, growth, .. } = config;
        let scaling = if growth == 0 { NOT_SCALING } else { 0 };
        let filters = vec![Filter::new(capacity, first_error)?];
        Some(Bloom { filters, size: 0, options: NOT_ROUNDED | WIDE | scaling, growth })
    }

    /// Whether an element was added, or may have been.
    pub fn has(&self, element: &[u8]) -> bool {
        let hash = Hash::of(element);
        self.filters.iter().rev().any(|filter| filter.has(hash))
    }

    /// Adds an element. Returns whether it was not there.
    pub fn add(&mut self, element: &[u8]) -> Result<bool, Full> {
        let hash = Hash::of(element);
        if self.filters.iter().rev().any(|filter| filter.has(hash)) {
            return Ok(false);
        }
        let is_full = self.filters.last().is_none_or(|last| last.capacity <= last.size);
        if is_full {
            self.grow()?;
        }
        if let Some(last) = self.filters.last_mut() {
            last.add(hash);
            self.size = self.size.saturating_add(1);
        }
        Ok(true)
    }

    fn grow(&mut self) -> Result<(), Full> {
        if !self.is_scaling() {
            return Err(Full::NotScaling);
        }
        let last = self.filters.last().filter(|_| self.filters.len() < FILTERS_MAX);
        let last = last.ok_or(Full::TooLarge)?;
        let capacity = last.capacity.saturating_mul(u64::from(self.growth));
        let next = Filter::new(capacity, last.error * TIGHTENING).ok_or(Full::TooLarge)?;
        if SIZE_MAX < (self.byte_count() + next.bytes.len()) as u64 {
            return Err(Full::TooLarge);
        }
        self.filters.push(next);
        Ok(())
    }

    fn byte_count(&self) -> usize {
        self.filters.iter().map(|filter| filter.bytes.len()).sum()
    }

    /// Elements that were added.
    pub fn count(&self) -> u64 {
        self.size
    }

    /// Elements that fit into the filters that there are.
    pub fn capacity(&self) -> u64 {
        self.filters.iter().fold(0, |sum, filter| sum.saturating_add(filter.capacity))
    }

    /// How many filters there are.
    pub fn filter_count(&self) -> usize {
        self.filters.len()
    }

    /// How much larger each filter is than the one before.
    pub fn growth(&self) -> u32 {
        self.growth
    }

    /// Whether filters follow when one is full.
    pub fn is_scaling(&self) -> bool {
        self.options & NOT_SCALING == 0
    }

    /// Bytes that `BF.INFO` shows.
    pub fn shown_size(&self) -> usize {
        CHAIN_COST + self.filters.len() * FILTER_COST + self.byte_count()
    }

    // ---- dumps ----

    /// The head of a dump: all but the bits.
    pub fn head(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD_SIZE + self.filters.len() * FILTER_HEAD_SIZE);
        put_u64(&mut out, self.size);
        put_u32(&mut out, u32::try_from(self.filters.len()).unwrap_or(u32::MAX));
        put_u32(&mut out, self.options);
        put_u32(&mut out, self.growth);
        self.filters.iter().for_each(|filter| filter.put_head(&mut out));
        out
    }

    /// A chain without its filters' bytes, and how many those are.
    fn read_head(bytes: &[u8]) -> Result<(Bloom, Vec<u64>), codec::Error> {
        let mut reader = Reader::new(bytes);
        let (size, count) = (reader.u64()?, reader.u32()? as usize);
        let (options, growth) = (reader.u32()?, reader.u32()?);
        if count == 0 || FILTERS_MAX < count || reader.remaining() != count * FILTER_HEAD_SIZE {
            return Err(reader.corrupt("no bloom filters"));
        }
        let mut bloom = Bloom { filters: Vec::with_capacity(count), size, options, growth };
        let mut byte_counts = Vec::with_capacity(count);
        for _ in 0..count {
            let (filter, byte_count) = Filter::read_head(&mut reader)?;
            bloom.filters.push(filter);
            byte_counts.push(byte_count);
        }
        // Each is below the most, and they are few.
        match byte_counts.iter().sum::<u64>() <= SIZE_MAX {
            true => Ok((bloom, byte_counts)),
            false => Err(reader.corrupt("too large a bloom filter")),
        }
    }

    /// The chain of a dump whose bits are to follow.
    ///
    /// # Errors
    /// When the bytes are no head.
    pub fn of_head(bytes: &[u8]) -> Result<Bloom, codec::Error> {
        let (mut bloom, byte_counts) = Bloom::read_head(bytes)?;
        for (filter, byte_count) in bloom.filters.iter_mut().zip(byte_counts) {
            filter.bytes = vec![0; usize::try_from(byte_count).unwrap_or(0)];
        }
        Ok(bloom)
    }

    /// The filter with that byte of all, and where in it that is.
    fn find(&self, mut offset: usize) -> Option<(usize, usize)> {
        for (at, filter) in self.filters.iter().enumerate() {
            if offset < filter.bytes.len() {
                return Some((at, offset));
            }
            offset -= filter.bytes.len();
        }
        None
    }

    /// Bytes from that one on, of one filter, at most so many; none at the end.
    pub fn chunk(&self, offset: usize, size_max: usize) -> Option<&[u8]> {
        let (at, offset) = self.find(offset)?;
        let bytes = &self.filters[at].bytes[offset..];
        Some(&bytes[..bytes.len().min(size_max)])
    }

    /// Sets bytes as [`Bloom::chunk`] gives them.
    ///
    /// # Errors
    /// The words of the refusal.
    pub fn set_chunk(&mut self, offset: usize, chunk: &[u8]) -> Result<(), &'static str> {
        let found = self.find(offset).ok_or("ERR invalid offset - no link found")?;
        let bytes = &mut self.filters[found.0].bytes[found.1..];
        let room = bytes.get_mut(..chunk.len());
        let room = room.ok_or("ERR invalid chunk - Too big for current filter")?;
        room.copy_from_slice(chunk);
        Ok(())
    }
}

impl Stored for Bloom {
    boxed_variant!(Bloom);

    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, &self.head());
        self.filters.iter().for_each(|filter| out.extend_from_slice(&filter.bytes));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Bloom, codec::Error> {
        let (mut bloom, byte_counts) = Bloom::read_head(read_bytes(reader)?)?;
        for (filter, byte_count) in bloom.filters.iter_mut().zip(byte_counts) {
            let byte_count = usize::try_from(byte_count).unwrap_or(usize::MAX);
            filter.bytes = reader.slice(byte_count)?.to_vec();
        }
        Ok(bloom)
    }

    fn heap_size(&self) -> usize {
        // Filters are few: each is larger than the one before, or the rate of errors soon too small.
        size_of::<Bloom>() + self.filters.capacity() * size_of::<Filter>() + self.byte_count()
    }

    fn is_empty(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    /// What RedisBloom's documentation shows of `BF.RESERVE bf 0.1 10`, `BF.ADD bf item1`.
    #[test]
    fn bits_and_dumps_are_those_of_others() {
        let config = BloomConfig { capacity: 10, error: 0.1, growth: 2 };
        let mut bloom = Bloom::new(config).expect("a small one");
        assert_eq!(bloom.add(b"item1"), Ok(true));
        assert_eq!(bloom.add(b"item1"), Ok(false));
        let head = b"\x01\0\0\0\0\0\0\0\x01\0\0\0\x05\0\0\0\x02\0\0\0\x08\0\0\0\0\0\0\0@\0\0\0\0\0\0\0\
            \x01\0\0\0\0\0\0\0\x9a\x99\x99\x99\x99\x99\xa9?J\xf7\xd4\x9e\xde\xf0\x18@\x05\0\0\0\n\0\0\0\0\0\0\0\0";
        assert_eq!(bloom.head(), head);
        assert_eq!(bloom.chunk(0, 100), Some(&b"\x01\x08\0\x80\0\x04 \0"[..]));
        assert_eq!(bloom.chunk(8, 100), None);
        let mut loaded = Bloom::of_head(head).expect("a head");
        loaded.set_chunk(0, b"\x01\x08\0\x80\0\x04 \0").expect("its bytes");
        assert!(loaded.has(b"item1") && !loaded.has(b"item2"));
        assert!(loaded.set_chunk(1, &[0; 8]).is_err());
        assert!(loaded.set_chunk(8, &[0]).is_err());
    }

    #[test]
    fn it_grows_and_is_seldom_wrong() {
        let config = BloomConfig { capacity: 50, error: 0.01, growth: 2 };
        let mut bloom = Bloom::new(config).expect("a small one");
        let added = (0..5_000_u32).filter(|one| bloom.add(&one.to_le_bytes()) == Ok(true)).count();
        assert_eq!(bloom.count(), added as u64);
        assert!((0..5_000_u32).all(|one| bloom.has(&one.to_le_bytes())));
        let wrong = (5_000..25_000_u32).filter(|one| bloom.has(&one.to_le_bytes())).count();
        assert!(wrong < 300, "{wrong}");
        let mut encoded = Vec::new();
        bloom.clone().into_value().encode(&mut encoded);
        let decoded = Value::decode(&encoded).expect("own encoding");
        let decoded = Bloom::of(&decoded).expect("a filter");
        assert_eq!(decoded.head(), bloom.head());
        assert!((0..5_000_u32).all(|one| decoded.has(&one.to_le_bytes())));
        for size in 0..encoded.len().min(700) {
            assert!(Value::decode(&encoded[..size]).is_err());
        }
    }

    #[test]
    fn what_is_too_large_is_refused() {
        for (capacity, error, growth) in
            [(1 << 40, 0.01, 2), (u64::MAX, 0.5, 2), (1 << 29, 1e-9, 2)]
        {
            assert!(Bloom::new(BloomConfig { capacity, error, growth }).is_none());
        }
        let config = BloomConfig { capacity: 2, error: 0.01, growth: 0 };
        let mut bloom = Bloom::new(config).expect("a small one");
        assert_eq!([b"a", b"b"].map(|one| bloom.add(one)), [Ok(true), Ok(true)]);
        assert_eq!(bloom.add(b"c"), Err(Full::NotScaling));
        let config = BloomConfig { capacity: 1, error: 0.01, growth: u32::MAX };
        let mut bloom = Bloom::new(config).expect("a small one");
        assert_eq!(bloom.add(b"a"), Ok(true));
        assert_eq!(bloom.add(b"b"), Err(Full::TooLarge));
    }
}
