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

    /// Checks that exactly so many are left; nobody needs to know which.
    fn end_after(&self, count: usize) -> Result<(), &'static str> {
        let ends = self.bytes.iter().filter(|byte| **byte < 0x80).count();
        let is_whole = ends == count && self.bytes.last().is_none_or(|byte| *byte < 0x80);
        if is_whole { Ok(()) } else { Err("as many numbers as it says, and no more") }
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

/// A column whose numbers rise by one step each, or are all the same.
pub(super) struct Line {
    told: Told,
    step: i64,
}

/// The column as a line, where it is a rising one of numbers that are there.
pub(super) fn rising_line(kind: u64, bytes: &[u8], told: Told) -> Option<Line> {
    let mut steps = Steps { bytes };
    let step = match u8::try_from(kind).ok()? {
        ONE => 0,
        STEPS => steps.next().ok()?,
        _ => return None,
    };
    let length = i64::try_from(told.count.checked_sub(1)?).ok()?;
    step.checked_mul(length)?.checked_add(told.first)?;
    (0 <= step && steps.bytes.is_empty()).then_some(Line { told, step })
}

impl Line {
    /// The number at a place.
    pub fn at(&self, place: usize) -> i64 {
        self.told.first.wrapping_add(self.step.wrapping_mul(place as i64))
    }

    /// The places of the numbers from a first to a last one.
    pub fn places(&self, (first, last): (i64, i64)) -> Range<usize> {
        let places =
            self.places_until(|number| number < first)..self.places_until(|number| number <= last);
        if places.is_empty() { 0..0 } else { places }
    }

    /// How many numbers there are from the start for which that holds.
    fn places_until(&self, holds: impl Fn(i64) -> bool) -> usize {
        let (mut done, mut end) = (0, self.told.count);
        while done < end {
            let middle = done + (end - done) / 2;
            match holds(self.at(middle)) {
                true => done = middle + 1,
                false => end = middle,
            }
        }
        done
    }
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
    numbers.clear();
    let Range { start, end } = places;
    let end = end.min(told.count);
    numbers.reserve(end.saturating_sub(start));
    let (first, left) = (told.first, told.count.saturating_sub(1));
    let wanted = Wanted { first, left, start, end };
    // Most numbers are near the ones before: then each difference is a byte.
    let is_short = bytes.len() == left && bytes.is_ascii();
    match kind {
        ONE | STEPS => wanted.line(kind, bytes, numbers),
        _ if DELTAS.contains(&kind) => {
            let next = |_, difference| difference;
            if is_short {
                wanted.short(bytes, next, numbers)
            } else {
                wanted.any(bytes, next, numbers)
            }
        }
        _ if SECOND_DELTAS.contains(&kind) => {
            let next = i64::wrapping_add;
            if is_short {
                wanted.short(bytes, next, numbers)
            } else {
                wanted.any(bytes, next, numbers)
            }
        }
        _ => Err(KINDS),
    }
}

/// Which numbers of a column are wanted.
struct Wanted {
    /// The column's first number.
    first: i64,
    /// How many stand behind it.
    left: usize,
    /// The place of the first that is wanted ...
    start: usize,
    /// ... and the one behind the last.
    end: usize,
}

impl Wanted {
    /// Those of a column whose numbers have one distance.
    fn line(&self, kind: u8, bytes: &[u8], numbers: &mut Vec<i64>) -> Result<(), &'static str> {
        let mut steps = Steps { bytes };
        let step = if kind == STEPS { steps.next()? } else { 0 };
        let at = |place: usize| self.first.wrapping_add(step.wrapping_mul(place as i64));
        numbers.extend((self.start..self.end).map(at));
        steps.end_after(0)
    }

    /// Those of a column of differences of a byte each, where `step` makes a step of the one before
    /// and of what is told.
    fn short(
        &self,
        bytes: &[u8],
        step: impl Fn(i64, i64) -> i64,
        numbers: &mut Vec<i64>,
    ) -> Result<(), &'static str> {
        if self.end <= self.start {
            return Ok(());
        }
        if self.start == 0 {
            numbers.push(self.first);
        }
        let (mut number, mut last) = (self.first, 0i64);
        let mut next = |byte: &u8| {
            last = step(last, unzigzag(u64::from(*byte)));
            number = number.wrapping_add(last);
            number
        };
        let passed = self.start.saturating_sub(1);
        let (passed, rest) = bytes.split_at(passed);
        for byte in passed {
            next(byte);
        }
        numbers.extend(rest[..self.end - self.start.max(1)].iter().map(next));
        Ok(())
    }

    /// The same of differences of any size.
    fn any(
        &self,
        bytes: &[u8],
        step: impl Fn(i64, i64) -> i64,
        numbers: &mut Vec<i64>,
    ) -> Result<(), &'static str> {
        let mut steps = Steps { bytes };
        let (mut number, mut last) = (self.first, 0i64);
        if self.start == 0 && 0 < self.end {
            numbers.push(number);
        }
        for place in 1..self.end {
            last = step(last, steps.next()?);
            number = number.wrapping_add(last);
            if self.start <= place {
                numbers.push(number);
            }
        }
        steps.end_after(self.left - self.end.saturating_sub(1))
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use rng::Random;

    /// Numbers whose differences have a byte, or more; a line; one number.
    fn column(random: &mut Random, shape: u64) -> Vec<i64> {
        let count = 1 + random.below(400) as usize;
        let mut number = random.next() as i64 >> random.below(64);
        let (mut step, reach) = (0i64, [1, 60, 1000, i64::MAX][shape as usize % 4]);
        let mut next = |_| {
            let change = random.next() as i64 % reach;
            step = if shape < 4 { change } else { step.wrapping_add(change % 8) };
            number = number.wrapping_add(step);
            number
        };
        (0..count).map(&mut next).collect()
    }

    #[test]
    fn numbers_at_some_places_are_those_of_the_whole_column() {
        let (mut random, mut unpacker) = (Random::seeded(3), Unpacker::default());
        let mut kinds = [0; 7];
        for round in 0..2000 {
            let numbers = column(&mut random, round % 8);
            let (kind, bytes) = encode(&numbers);
            kinds[usize::from(kind)] += 1;
            let told = Told { first: numbers[0], count: numbers.len() };
            let mut places = [0; 2].map(|_| random.below(numbers.len() as u64 + 1) as usize);
            places.sort_unstable();
            let mut found = Vec::new();
            for places in [places[0]..places[1], 0..numbers.len(), 0..0] {
                let kind = u64::from(kind);
                decode(kind, &bytes, told, places.clone(), &mut unpacker, &mut found).unwrap();
                assert_eq!(found, numbers[places.clone()], "{kind} {places:?}");
            }
            if let Some(line) = rising_line(u64::from(kind), &bytes, told) {
                assert!((0..numbers.len()).all(|place| line.at(place) == numbers[place]));
                let span = (numbers[places[0].min(numbers.len() - 1)], random.next() as i64 >> 8);
                let within = |number: &&i64| span.0 <= **number && **number <= span.1;
                let expected = numbers.iter().filter(within).count();
                assert_eq!(line.places(span).len(), expected, "{numbers:?} {span:?}");
            }
            let fewer = Told { count: numbers.len() + 1, ..told };
            let is_line = kind == ONE || kind == STEPS;
            let read = decode(u64::from(kind), &bytes, fewer, 0..0, &mut unpacker, &mut found);
            assert_eq!(read.is_ok(), is_line, "a number is missing");
        }
        assert!([ONE, STEPS].iter().chain(&DELTAS).all(|kind| 0 < kinds[usize::from(*kind)]));
        assert!(SECOND_DELTAS.iter().any(|kind| 0 < kinds[usize::from(*kind)]), "{kinds:?}");
    }
}
