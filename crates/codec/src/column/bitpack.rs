//! Integers in blocks of up to 256, each value in as many bits as the block's range needs.
//!
//! ```text
//! block   width (1 byte)   lowest (zigzag varint)   (value - lowest), `width` bits each, low bits first
//! ```
//!
//! Eight values of `W` bits are exactly `W` bytes, so the loops work on groups of eight with `W`
//! known to the compiler: no branch per value, no vector instructions needed.

use crate::bytes::{Reader, put_i64_zigzag, unzigzag, zigzag};
use crate::error::Error;
use std::ops::Range;

/// Values of one block: few enough that an outlier widens few, enough to pay for the header.
pub const BLOCK_LEN: usize = 256;

/// Appends `values` as blocks. How many there are is not stored.
pub fn put_ints(values: &[i64], out: &mut Vec<u8>) {
    for block in values.chunks(BLOCK_LEN) {
        put_block(block, out);
    }
}

/// Appends to `out` the `count` values that [`put_ints`] wrote at the reader's place.
pub fn read_ints(reader: &mut Reader, count: usize, out: &mut Vec<i64>) -> Result<(), Error> {
    let mut left = count;
    while 0 < left {
        let len = left.min(BLOCK_LEN);
        // Grows by a block at a time, after its bytes were found to be there or to be none.
        read_block(reader, len, out)?;
        left -= len;
    }
    Ok(())
}

/// Appends to `out` some of the values that [`put_ints`] wrote at the reader's place, which is then
/// behind the last of them. Blocks before the first are passed over.
pub fn read_some_ints(
    reader: &mut Reader,
    wanted: &Range<usize>,
    out: &mut Vec<i64>,
) -> Result<(), Error> {
    let passed = wanted.start / BLOCK_LEN;
    for _ in 0..passed {
        let (width, _) = read_block_head(reader)?;
        reader.slice(packed_size(BLOCK_LEN, width))?;
    }
    let start = out.len();
    read_ints(reader, wanted.end - passed * BLOCK_LEN, out)?;
    out.drain(start..start + wanted.start - passed * BLOCK_LEN);
    Ok(())
}

/// How many bytes [`put_ints`] would append.
pub fn ints_size(values: &[i64]) -> usize {
    let size = |block: &[i64]| {
        let (lowest, highest) = range(block);
        1 + varint_size(zigzag(lowest)) + packed_size(block.len(), width(lowest, highest))
    };
    values.chunks(BLOCK_LEN).map(size).sum()
}

/// The bits that a value of `lowest..=highest` takes.
pub fn width(lowest: i64, highest: i64) -> u32 {
    64 - (highest.wrapping_sub(lowest) as u64).leading_zeros()
}

/// The least and the greatest of `values`; zeros when there are none.
pub fn range(values: &[i64]) -> (i64, i64) {
    let first = values.first().copied().unwrap_or(0);
    let mut lowest = [first; 4];
    let mut highest = [first; 4];
    let (groups, rest) = values.as_chunks::<4>();
    for group in groups {
        for i in 0..4 {
            lowest[i] = lowest[i].min(group[i]);
            highest[i] = highest[i].max(group[i]);
        }
    }
    for &value in rest {
        lowest[0] = lowest[0].min(value);
        highest[0] = highest[0].max(value);
    }
    let least = lowest[0].min(lowest[1]).min(lowest[2].min(lowest[3]));
    let greatest = highest[0].max(highest[1]).max(highest[2].max(highest[3]));
    (least, greatest)
}

fn varint_size(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

fn packed_size(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

fn put_block(block: &[i64], out: &mut Vec<u8>) {
    debug_assert!(block.len() <= BLOCK_LEN);
    let (lowest, highest) = range(block);
    let width = width(lowest, highest);
    out.push(width as u8);
    put_i64_zigzag(out, lowest);
    let start = out.len();
    out.resize(start + packed_size(block.len(), width), 0);
    pack(block, lowest, width, &mut out[start..]);
}

fn read_block(reader: &mut Reader, len: usize, out: &mut Vec<i64>) -> Result<(), Error> {
    debug_assert!(len <= BLOCK_LEN);
    let (width, lowest) = read_block_head(reader)?;
    let bytes = reader.slice(packed_size(len, width))?;
    let start = out.len();
    out.resize(start + len, lowest);
    unpack(bytes, lowest, width, &mut out[start..]);
    Ok(())
}

/// The width and the lowest value of a block.
fn read_block_head(reader: &mut Reader) -> Result<(u32, i64), Error> {
    let width = u32::from(reader.u8()?);
    if 64 < width {
        return Err(reader.corrupt("width over 64 bits"));
    }
    Ok((width, unzigzag(reader.varint()?)))
}

/// Calls `function::<W>(arguments)` for the `W` that equals a width of 1 to 64.
macro_rules! with_width {
    ($width:expr, $function:ident $arguments:tt) => {
        with_width!(@match $width, $function $arguments,
            1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
            33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61
            62 63 64)
    };
    (@match $width:expr, $function:ident $arguments:tt, $($literal:literal)*) => {
        match $width {
            $($literal => $function::<$literal> $arguments,)*
            // Nothing to store when the range is a single value.
            _ => debug_assert!($width == 0),
        }
    };
}

fn pack(values: &[i64], lowest: i64, width: u32, out: &mut [u8]) {
    debug_assert!(out.len() == packed_size(values.len(), width));
    with_width!(width, pack_groups(values, lowest, out));
}

/// Fills `out` with the values that [`pack`] wrote; `bytes` has their exact size.
fn unpack(bytes: &[u8], lowest: i64, width: u32, out: &mut [i64]) {
    debug_assert!(bytes.len() == packed_size(out.len(), width));
    with_width!(width, unpack_groups(bytes, lowest, out));
}

fn pack_groups<const W: usize>(values: &[i64], lowest: i64, out: &mut [u8]) {
    let (groups, rest) = values.as_chunks::<8>();
    let (full, tail) = out.split_at_mut(groups.len() * W);
    for (group, bytes) in groups.iter().zip(full.chunks_exact_mut(W)) {
        pack_group::<W>(group, lowest, bytes);
    }
    if !rest.is_empty() {
        let mut group = [lowest; 8];
        group[..rest.len()].copy_from_slice(rest);
        let mut bytes = [0; 64];
        pack_group::<W>(&group, lowest, &mut bytes[..W]);
        tail.copy_from_slice(&bytes[..tail.len()]);
    }
}

fn unpack_groups<const W: usize>(bytes: &[u8], lowest: i64, out: &mut [i64]) {
    let (groups, rest) = out.as_chunks_mut::<8>();
    let (full, tail) = bytes.split_at(groups.len() * W);
    for (group, bytes) in groups.iter_mut().zip(full.chunks_exact(W)) {
        unpack_group::<W>(bytes, lowest, group);
    }
    if !rest.is_empty() {
        let mut padded = [0; 64];
        padded[..tail.len()].copy_from_slice(tail);
        let mut group = [0; 8];
        unpack_group::<W>(&padded[..W], lowest, &mut group);
        rest.copy_from_slice(&group[..rest.len()]);
    }
}

#[inline(always)]
fn pack_group<const W: usize>(group: &[i64; 8], lowest: i64, bytes: &mut [u8]) {
    // One word more than eight values can fill, so that the spill of the last has a place.
    let mut words = [0u64; 9];
    for (i, value) in group.iter().enumerate() {
        let value = value.wrapping_sub(lowest) as u64;
        let (word, shift) = (i * W / 64, i * W % 64);
        words[word] |= value << shift;
        if 64 < shift + W {
            words[word + 1] |= value >> (64 - shift);
        }
    }
    for word in 0..W.div_ceil(8) {
        let size = (W - word * 8).min(8);
        bytes[word * 8..word * 8 + size].copy_from_slice(&words[word].to_le_bytes()[..size]);
    }
}

#[inline(always)]
fn unpack_group<const W: usize>(bytes: &[u8], lowest: i64, group: &mut [i64; 8]) {
    let mut words = [0u64; 9];
    for word in 0..W.div_ceil(8) {
        let size = (W - word * 8).min(8);
        let mut array = [0; 8];
        array[..size].copy_from_slice(&bytes[word * 8..word * 8 + size]);
        words[word] = u64::from_le_bytes(array);
    }
    let mask = u64::MAX >> (64 - W);
    for (i, out) in group.iter_mut().enumerate() {
        let (word, shift) = (i * W / 64, i * W % 64);
        let mut value = words[word] >> shift;
        if 64 < shift + W {
            value |= words[word + 1] << (64 - shift);
        }
        *out = lowest.wrapping_add((value & mask) as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[i64]) {
        let mut bytes = Vec::new();
        put_ints(values, &mut bytes);
        assert_eq!(bytes.len(), ints_size(values));
        let mut reader = Reader::new(&bytes);
        let mut back = Vec::new();
        read_ints(&mut reader, values.len(), &mut back).unwrap();
        assert_eq!(back, values);
        assert!(reader.is_empty());
        for cut in 0..bytes.len().min(40) {
            let mut reader = Reader::new(&bytes[..cut]);
            assert!(read_ints(&mut reader, values.len(), &mut Vec::new()).is_err());
        }
    }

    #[test]
    fn some_of_the_values_come_back() {
        let values: Vec<i64> = (0..700).map(|i| (i * i * 7919) % (1 << (1 + i % 40))).collect();
        let mut bytes = Vec::new();
        put_ints(&values, &mut bytes);
        let places = [0, 1, 255, 256, 257, 511, 512, 600, 699, 700];
        for (start, end) in places.iter().flat_map(|a| places.iter().map(move |b| (*a, *b))) {
            if end < start {
                continue;
            }
            let (mut reader, mut back) = (Reader::new(&bytes), vec![7]);
            read_some_ints(&mut reader, &(start..end), &mut back).unwrap();
            assert_eq!(back[1..], values[start..end]);
            assert_eq!(reader.is_empty(), end == 700, "{start}..{end}");
        }
    }

    #[test]
    fn every_width_and_tail_comes_back() {
        for width in 0..=64u32 {
            for len in [1usize, 2, 7, 8, 9, 255, 256, 257, 520] {
                let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
                let mut state = u64::from(width) * 1000 + len as u64;
                let mut values = Vec::new();
                for i in 0..len {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(99);
                    let value = if i % 2 == 0 { (state >> 7) & mask } else { mask };
                    values.push((value as i64).wrapping_sub(77));
                }
                check(&values);
            }
        }
    }

    #[test]
    fn extremes_come_back() {
        check(&[]);
        check(&[i64::MIN, i64::MAX, 0]);
        check(&[i64::MIN]);
    }
}
