//! The slices of a part in memory.
//!
//! A part of a million odd series has a million slices of one sample each: as a plain list they would
//! take more than their samples do, in every part that is open. Short lists are plain all the same,
//! so that a look costs nothing; longer ones are packed:
//!
//! ```text
//! marks    first slice of each group of eight, as it is
//! bytes    the other seven of each group, by what differs from the one before
//! ```
//!
//! What is packed is of this process only; on disk [`super::directory`] is the format.

use super::directory::Slice;
use codec::{Reader, put_i64_zigzag, put_varint};
use model::sample::NANOS_PER_MILLI;
use std::ops::Range;

/// Slices up to which a list is plain: 224 KiB.
const PLAIN_MAX: usize = 4096;
/// Slices of a group: one is found by reading three or four others on average.
const GROUP: usize = 8;

/// Bits of what a packed slice begins with.
mod differs {
    /// The series start elsewhere than where those of the slice before end.
    pub const START: u8 = 1;
    /// Another capacity, other columns or slots.
    pub const SHAPE: u8 = 1 << 1;
    /// Another span of time.
    pub const SPAN: u8 = 1 << 2;
    /// That span is in whole milliseconds from the one before.
    pub const MILLIS: u8 = 1 << 3;
    /// Another number of samples.
    pub const SAMPLES: u8 = 1 << 4;
    /// Shared times of another size.
    pub const TIMES_SIZE: u8 = 1 << 5;
    /// The block of the slice before.
    pub const SAME_BLOCK: u8 = 1 << 6;
}

/// Slices, sorted by (series, time).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SliceList {
    /// A short list.
    Plain(Vec<Slice>),
    /// A long one.
    Packed(PackedSlices),
}

/// A long list of slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedSlices {
    marks: Vec<Mark>,
    bytes: Vec<u8>,
    len: usize,
    last: Slice,
}

/// Where a group begins.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark {
    first: Slice,
    /// Where the others of the group begin in the bytes.
    at: usize,
}

impl Default for SliceList {
    fn default() -> SliceList {
        SliceList::Plain(Vec::new())
    }
}

impl SliceList {
    /// An empty list that will get about so many.
    pub fn with_capacity(count: usize) -> SliceList {
        SliceList::Plain(Vec::with_capacity(count.min(PLAIN_MAX)))
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            SliceList::Plain(list) => list.len(),
            SliceList::Packed(packed) => packed.len,
        }
    }

    /// The last one.
    #[inline]
    pub fn last(&self) -> Option<&Slice> {
        match self {
            SliceList::Plain(list) => list.last(),
            SliceList::Packed(packed) => Some(&packed.last),
        }
    }

    /// Appends one, whose columns follow those of the last.
    pub fn push(&mut self, slice: Slice) {
        match self {
            SliceList::Plain(list) if list.len() < PLAIN_MAX => list.push(slice),
            SliceList::Plain(list) => {
                let mut packed = PackedSlices::new(&list[0]);
                list[1..].iter().chain([&slice]).for_each(|slice| packed.push(slice));
                *self = SliceList::Packed(packed);
            }
            SliceList::Packed(packed) => packed.push(&slice),
        }
    }

    /// The slice of that index, which must be below the length.
    #[inline]
    pub fn get(&self, idx: usize) -> Slice {
        match self {
            SliceList::Plain(list) => list[idx],
            SliceList::Packed(packed) => packed.get(idx),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Slice> + '_ {
        self.iter_from(0)
    }

    /// Those from that index on.
    pub fn iter_from(&self, start: usize) -> SliceIter<'_> {
        SliceIter { list: self, next: start, last: None, at: 0 }
    }

    /// How many come first of which this holds; it holds for none behind one for which it does not.
    pub fn partition_point(&self, is_before: impl Fn(&Slice) -> bool) -> usize {
        let packed = match self {
            SliceList::Plain(list) => return list.partition_point(is_before),
            SliceList::Packed(packed) => packed,
        };
        let groups = packed.marks.partition_point(|mark| is_before(&mark.first));
        // The last group that begins before is the one where it ends.
        let Some(group) = groups.checked_sub(1) else { return 0 };
        let slices = self.iter_from(group * GROUP).take(GROUP);
        group * GROUP + slices.take_while(|slice| is_before(slice)).count()
    }

    /// The indexes of the slices of the block that starts at `series_start`.
    #[inline]
    pub fn find(&self, series_start: u32) -> Range<usize> {
        if let SliceList::Plain(list) = self {
            let start = list.partition_point(|slice| slice.series_start < series_start);
            let count = list[start..].partition_point(|slice| slice.series_start == series_start);
            return start..start + count;
        }
        let start = self.partition_point(|slice| slice.series_start < series_start);
        let same = self.iter_from(start).take_while(|slice| slice.series_start == series_start);
        start..start + same.count()
    }

    /// Gives memory back that was kept for more slices.
    pub fn shrink(&mut self) {
        match self {
            SliceList::Plain(list) => list.shrink_to_fit(),
            SliceList::Packed(packed) => {
                packed.marks.shrink_to_fit();
                packed.bytes.shrink_to_fit();
            }
        }
    }

    /// Bytes of memory held.
    pub fn memory_size(&self) -> usize {
        match self {
            SliceList::Plain(list) => size_of::<Slice>() * list.capacity(),
            SliceList::Packed(packed) => {
                size_of::<Mark>() * packed.marks.capacity() + packed.bytes.capacity()
            }
        }
    }
}

impl PackedSlices {
    fn new(first: &Slice) -> PackedSlices {
        let mark = Mark { first: *first, at: 0 };
        PackedSlices { marks: vec![mark], bytes: Vec::new(), len: 1, last: *first }
    }

    fn push(&mut self, slice: &Slice) {
        let last = self.last;
        assert!(
            slice.first_column == last.first_column + last.columns,
            "columns follow each other"
        );
        match self.len.is_multiple_of(GROUP) {
            true => self.marks.push(Mark { first: *slice, at: self.bytes.len() }),
            false => put(&mut self.bytes, &last, slice),
        }
        self.last = *slice;
        self.len += 1;
    }

    fn get(&self, idx: usize) -> Slice {
        assert!(idx < self.len, "slice {idx} of {}", self.len);
        let mark = &self.marks[idx / GROUP];
        let mut reader = Reader::new(&self.bytes[mark.at..]);
        (0..idx % GROUP).fold(mark.first, |last, _| read_own(&mut reader, &last))
    }
}

/// Slices one after the other.
pub struct SliceIter<'a> {
    list: &'a SliceList,
    next: usize,
    /// The slice before the next, unless that begins a group.
    last: Option<Slice>,
    /// Where the next one is in the bytes.
    at: usize,
}

impl Iterator for SliceIter<'_> {
    type Item = Slice;

    #[inline]
    fn next(&mut self) -> Option<Slice> {
        let packed = match self.list {
            SliceList::Plain(list) => {
                let slice = list.get(self.next)?;
                self.next += 1;
                return Some(*slice);
            }
            SliceList::Packed(packed) => packed,
        };
        if packed.len <= self.next {
            return None;
        }
        let slice = match self.last {
            Some(last) if !self.next.is_multiple_of(GROUP) => {
                let mut reader = Reader::new(&packed.bytes[self.at..]);
                let slice = read_own(&mut reader, &last);
                self.at += reader.offset();
                slice
            }
            _ => {
                // At the begin of a group, or of the walk.
                let mark = &packed.marks[self.next / GROUP];
                let mut reader = Reader::new(&packed.bytes[mark.at..]);
                let before = self.next % GROUP;
                let slice = (0..before).fold(mark.first, |last, _| read_own(&mut reader, &last));
                self.at = mark.at + reader.offset();
                slice
            }
        };
        self.next += 1;
        self.last = Some(slice);
        Some(slice)
    }
}

fn put(out: &mut Vec<u8>, last: &Slice, slice: &Slice) {
    let shape = |slice: &Slice| (slice.capacity, slice.columns, slice.slots);
    let is_same_block = slice.series_start == last.series_start;
    let (start, length) = span_from(last, slice);
    let in_millis = start % NANOS_PER_MILLI == 0 && length.is_multiple_of(MILLI);
    let flags = [
        (differs::SAME_BLOCK, is_same_block),
        (differs::START, !is_same_block && u64::from(slice.series_start) != last.series_end()),
        (differs::SHAPE, shape(slice) != shape(last)),
        (differs::SPAN, (slice.min_ts, slice.max_ts) != (last.min_ts, last.max_ts)),
        (differs::MILLIS, in_millis),
        (differs::SAMPLES, slice.samples != last.samples),
        (differs::TIMES_SIZE, slice.times_size != last.times_size),
    ];
    let flags = flags.iter().filter(|(_, is_set)| *is_set).fold(0, |sum, (flag, _)| sum | flag);
    out.push(flags);
    put_varint(out, slice.offset - last.offset);
    if flags & differs::START != 0 {
        put_varint(out, u64::from(slice.series_start));
    }
    if flags & differs::SHAPE != 0 {
        for number in [slice.capacity, slice.columns, slice.slots] {
            put_varint(out, u64::from(number));
        }
    }
    if flags & differs::SPAN != 0 {
        let (start_unit, unit) = units(flags);
        put_i64_zigzag(out, start / start_unit);
        put_varint(out, length / unit);
    }
    if flags & differs::SAMPLES != 0 {
        put_varint(out, slice.samples);
    }
    if flags & differs::TIMES_SIZE != 0 {
        put_varint(out, u64::from(slice.times_size));
    }
}

const MILLI: u64 = NANOS_PER_MILLI.unsigned_abs();

/// From the begin of one span to that of the next, and how long that is. Either may wrap around, and
/// does so again on the way back.
fn span_from(last: &Slice, slice: &Slice) -> (i64, u64) {
    (slice.min_ts.wrapping_sub(last.min_ts), slice.max_ts.abs_diff(slice.min_ts))
}

fn units(flags: u8) -> (i64, u64) {
    if flags & differs::MILLIS != 0 { (NANOS_PER_MILLI, MILLI) } else { (1, 1) }
}

/// What [`put`] wrote.
#[inline]
fn read_own(reader: &mut Reader<'_>, last: &Slice) -> Slice {
    read(reader, last).expect("written by this process, and in memory since")
}

#[inline]
fn read(reader: &mut Reader<'_>, last: &Slice) -> Result<Slice, codec::Error> {
    let flags = reader.u8()?;
    let mut slice = *last;
    slice.first_column = last.first_column + last.columns;
    slice.offset = last.offset + reader.varint()?;
    if flags & differs::START != 0 {
        slice.series_start = reader.varint_u32()?;
    } else if flags & differs::SAME_BLOCK == 0 {
        // Another slice follows, so the end has 32 bits.
        slice.series_start = last.series_start + last.capacity * last.columns;
    }
    if flags & differs::SHAPE != 0 {
        slice.capacity = reader.varint_u32()?;
        slice.columns = reader.varint_u32()?;
        slice.slots = reader.varint_u32()?;
    }
    if flags & differs::SPAN != 0 {
        let (start_unit, unit) = units(flags);
        let start = reader.i64_zigzag()?.wrapping_mul(start_unit);
        slice.min_ts = last.min_ts.wrapping_add(start);
        slice.max_ts = slice.min_ts.wrapping_add_unsigned(reader.varint()?.wrapping_mul(unit));
    }
    if flags & differs::SAMPLES != 0 {
        slice.samples = reader.varint()?;
    }
    if flags & differs::TIMES_SIZE != 0 {
        slice.times_size = reader.varint_u32()?;
    }
    Ok(slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slices of blocks of many shapes, times from the first instant to the last.
    fn history(count: usize, seed: u64) -> Vec<Slice> {
        let mut random = rng::Random::seeded(seed);
        let mut list: Vec<Slice> = Vec::new();
        while list.len() < count {
            let last = list.last().copied();
            let is_same = last.is_some() && random.below(4) == 0;
            let shape = [(1, 1, 1), (1024, 1, 700), (16, 10, 16), (1, 300, 1)];
            let (capacity, columns, slots) = match last {
                Some(last) if is_same => (last.capacity, last.columns, last.slots),
                _ => shape[random.below(4) as usize * random.below(2) as usize],
            };
            let end = last.map_or(0, |last| u32::try_from(last.series_end()).unwrap());
            let gap = if random.below(3) == 0 { random.below(50) as u32 } else { 0 };
            let series_start = match last {
                Some(last) if is_same => last.series_start,
                _ => end + gap,
            };
            let unit = [1, NANOS_PER_MILLI, i64::MAX / 2][random.below(3) as usize];
            let min_ts = (random.below(1000) as i64).wrapping_mul(unit);
            let max_ts = min_ts.saturating_add(random.below(9) as i64 * (unit / 9));
            list.push(Slice {
                series_start,
                capacity,
                columns,
                slots,
                min_ts,
                max_ts: max_ts.max(min_ts),
                samples: 1 + random.below(3),
                offset: last.map_or(32, |last| last.offset + 1 + random.below(1 << 20)),
                times_size: random.below(2) as u32 * 20,
                first_column: last.map_or(0, |last| last.first_column + last.columns),
            });
        }
        list
    }

    #[test]
    fn packed_lists_are_the_plain_ones() {
        for count in [0, 1, PLAIN_MAX - 1, PLAIN_MAX, PLAIN_MAX + 1, PLAIN_MAX + GROUP + 3, 20_000]
        {
            let plain = history(count, 7 + count as u64);
            let mut list = SliceList::default();
            plain.iter().for_each(|slice| list.push(*slice));
            list.shrink();
            assert_eq!(matches!(list, SliceList::Packed(_)), PLAIN_MAX < count);
            assert_eq!((list.len(), list.last()), (count, plain.last()));
            assert!(list.iter().eq(plain.iter().copied()), "{count}");
            assert!((0..count).all(|idx| list.get(idx) == plain[idx]));
            for start in [0, 1, 7, 8, 9, count / 2, count] {
                assert!(list.iter_from(start).eq(plain.iter().skip(start).copied()), "{start}");
            }
            let ends = plain.iter().map(|slice| slice.series_end() as u32);
            for start in plain.iter().map(|slice| slice.series_start).chain(ends) {
                let first = plain.partition_point(|slice| slice.series_start < start);
                let same = plain[first..].partition_point(|slice| slice.series_start == start);
                assert_eq!(list.find(start), first..first + same);
            }
        }
    }

    #[test]
    fn a_slice_of_a_series_alone_takes_few_bytes() {
        let mut list = SliceList::default();
        let count = 100_000;
        for idx in 0..count {
            let min_ts = 1_700_000_000_000_000_000 + i64::from(idx % 3) * 60_000 * NANOS_PER_MILLI;
            list.push(Slice {
                series_start: idx,
                capacity: 1,
                columns: 1,
                slots: 1,
                min_ts,
                max_ts: min_ts + 60_000 * NANOS_PER_MILLI,
                samples: 2,
                offset: 32 + u64::from(idx) * 40,
                times_size: 20,
                first_column: idx,
            });
        }
        list.shrink();
        assert!(list.memory_size() < 16 * count as usize, "{}", list.memory_size());
    }
}
