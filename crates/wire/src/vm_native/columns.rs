//! Columns of whole numbers in bytes and back.

use crate::narrow::low_byte;
use crate::protobuf::{Message, put_varint};
use std::ops::Range;

/// All numbers are the first.
pub(super) const ONE: u8 = 3;
/// Each number is the one before and a step, which is told once.
pub(super) const STEPS: u8 = 2;
/// Differences, plain and compressed.
pub(super) const DELTAS: [u8; 2] = [6, 4];
/// Differences of differences, plain and compressed.
pub(super) const SECOND_DELTAS: [u8; 2] = [5, 1];
/// Smaller columns are not compressed.
const COMPRESSED_SIZE_MIN: usize = 128;
/// Fast, as an export has more to do.
const ZSTD_LEVEL: i32 = 1;

/// A number with its sign in its lowest bit.
pub(super) fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// The number of [`zigzag`].
pub(super) fn unzigzag(zigzag: u64) -> i64 {
    (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)
}

/// Appends a number that may be negative.
pub(super) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_varint(out, zigzag(number));
}

/// A column's kind and bytes; the first number stands in the block's head.
pub(super) fn encode(numbers: &[i64]) -> (u8, Vec<u8>) {
    let mut bytes = Vec::new();
    let [first, rest @ ..] = numbers else { return (ONE, bytes) };
    if rest.iter().all(|number| number == first) {
        return (ONE, bytes);
    }
    let deltas: Vec<i64> = numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    let step = deltas.first().copied().unwrap_or(0);
    if deltas.iter().all(|delta| *delta == step) {
        put_signed(&mut bytes, step);
        return (STEPS, bytes);
    }
    let mut seconds = Vec::with_capacity(bytes.len());
    put_signed(&mut seconds, step);
    deltas.windows(2).for_each(|pair| put_signed(&mut seconds, pair[1].wrapping_sub(pair[0])));
    deltas.iter().for_each(|delta| put_signed(&mut bytes, *delta));
    match bytes.len() < seconds.len() {
        true => squeezed(bytes, DELTAS),
        false => squeezed(seconds, SECOND_DELTAS),
    }
}

/// The bytes as they are or compressed, whichever are fewer, and the kind that says so.
fn squeezed(bytes: Vec<u8>, [plain, compressed]: [u8; 2]) -> (u8, Vec<u8>) {
    if bytes.len() < COMPRESSED_SIZE_MIN {
        return (plain, bytes);
    }
    match zstd::bulk::compress(&bytes, ZSTD_LEVEL) {
        Ok(small) if small.len() < bytes.len() => (compressed, small),
        _ => (plain, bytes),
    }
}

/// Takes compressed columns apart, and keeps what it needs for that.
#[derive(Default)]
pub(super) struct Unpacker {
    /// Made for the first column that is compressed.
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    bytes: Vec<u8>,
}

impl Unpacker {
    /// The bytes of so many numbers at most.
    fn unpack(&mut self, bytes: &[u8], count: usize) -> Result<&[u8], &'static str> {
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            None => {
                let made = zstd::bulk::Decompressor::new().map_err(|_| "zstd")?;
                self.zstd.insert(made)
            }
        };
        self.bytes.clear();
        // No number takes more bytes.
        self.bytes.reserve(count * NUMBER_SIZE_MAX);
        zstd.decompress_to_buffer(bytes, &mut self.bytes).map_err(|_| "zstd of so many numbers")?;
        if count * NUMBER_SIZE_MAX < self.bytes.len() {
            return Err("zstd of so many numbers");
        }
        Ok(&self.bytes)
    }
}

/// Differences of a column, one after the other.
struct Steps<'a> {
    bytes: &'a [u8],
}

impl Steps<'_> {
    /// Most have a byte or two.
    #[inline(always)]
    fn next(&mut self) -> Result<i64, &'static str> {
        let (zigzag, rest) = match self.bytes {
            [a, rest @ ..] if *a < 0x80 => (u64::from(*a), rest),
            [a, b, rest @ ..] if *b < 0x80 => (u64::from(*a & 0x7f) | u64::from(*b) << 7, rest),
            bytes => long(bytes)?,
        };
        self.bytes = rest;
        Ok(unzigzag(zigzag))
    }

    /// Whether exactly so many are left; nobody needs to know which.
    fn are(&self, count: usize) -> bool {
        let ends = self.bytes.iter().filter(|byte| **byte < 0x80).count();
        ends == count && self.bytes.last().is_none_or(|byte| *byte < 0x80)
    }
}

/// A number of more bytes, and what stands behind it.
#[cold]
fn long(bytes: &[u8]) -> Result<(u64, &[u8]), &'static str> {
    let mut message = Message::new(bytes);
    let number = message.varint().map_err(|_| FEWER)?;
    Ok((number, bytes.get(message.offset()..).unwrap_or_default()))
}

/// What a column has in its block's head.
#[derive(Clone, Copy)]
pub(super) struct Told {
    /// The first number.
    pub first: i64,
    /// How many there are.
    pub count: usize,
}

/// The numbers of a column at some places; the others are passed over.
///
/// # Errors
/// A kind that is not known, or other bytes than so many numbers have.
pub(super) fn decode(
    kind: u64,
    bytes: &[u8],
    told: Told,
    places: Range<usize>,
    unpacker: &mut Unpacker,
    numbers: &mut Vec<i64>,
) -> Result<(), &'static str> {
    let kind = u8::try_from(kind).map_err(|_| KINDS)?;
    let is_compressed = kind == DELTAS[1] || kind == SECOND_DELTAS[1];
    let bytes = if is_compressed { unpacker.unpack(bytes, told.count)? } else { bytes };
    let mut steps = Steps { bytes };
    numbers.clear();
    let Range { start, end } = places;
    let end = end.min(told.count);
    numbers.reserve(end.saturating_sub(start));
    let mut number = told.first;
    let mut left = told.count.saturating_sub(1);
    if start == 0 && 0 < end {
        numbers.push(number);
    }
    let taken = end.saturating_sub(1);
    match kind {
        ONE | STEPS => {
            let step = if kind == STEPS { steps.next()? } else { 0 };
            let at = |place: usize| number.wrapping_add(step.wrapping_mul(place as i64));
            numbers.extend((start.max(1)..end).map(at));
            left = 0;
        }
        _ if DELTAS.contains(&kind) => {
            for place in 1..end {
                number = number.wrapping_add(steps.next()?);
                if start <= place {
                    numbers.push(number);
                }
            }
            left -= taken;
        }
        _ if SECOND_DELTAS.contains(&kind) => {
            let mut step = 0i64;
            for place in 1..end {
                step = step.wrapping_add(steps.next()?);
                number = number.wrapping_add(step);
                if start <= place {
                    numbers.push(number);
                }
            }
            left -= taken;
        }
        _ => return Err(KINDS),
    }
    if steps.are(left) { Ok(()) } else { Err("as many numbers as it says, and no more") }
}

const FEWER: &str = "as many numbers as it says";
const KINDS: &str = "a kind of column from 1 to 6";
/// Bytes of a varint.
const NUMBER_SIZE_MAX: usize = 10;

/// Appends bytes of a name, of which three have another meaning, and the one that ends it.
pub(super) fn put_name(out: &mut Vec<u8>, text: &str) {
    for &byte in text.as_bytes() {
        match byte {
            0..=2 => out.extend_from_slice(&[0, b'0' + low_byte(u64::from(byte))]),
            _ => out.push(byte),
        }
    }
    out.push(1);
}
