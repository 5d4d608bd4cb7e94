//! The directory: where each slice and each column of a part lies, compact on disk and in memory.
//!
//! On disk it is a run of varints, some 12 bytes for a slice with one column.
//! In memory a column takes four bytes and a slice as [`SliceList`] says; offsets are sums of sizes.
//!
//! Invariants, checked when it is read: slices are sorted by (series, time); slices of one block
//! agree on its capacity and columns and do not overlap in time; blocks do not overlap in ordinals;
//! sizes add up exactly to the bytes before the directory.

use super::format::{COLUMN_SIZE_MAX, COLUMNS_MAX, Encoding, HEADER_SIZE, SLOTS_MAX};
use super::slices::SliceList;
use crate::base::narrow::to_u32;
use codec::{Reader, put_i64_zigzag, put_u32, put_varint};

/// One entity block's samples for one span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Ordinal of the block's first series, which names the block.
    pub series_start: u32,
    /// Slots the block has room for: the distance of one column's ordinals from the next's.
    pub capacity: u32,
    /// Columns of the block.
    pub columns: u32,
    /// Slots this slice knows of; the block may have grown since.
    pub slots: u32,
    /// Timestamp of the earliest sample.
    pub min_ts: i64,
    /// Timestamp of the latest sample.
    pub max_ts: i64,
    /// Samples of all columns.
    pub samples: u64,
    /// Where the slice starts in the file.
    pub(super) offset: u64,
    /// Bytes of the shared times with their checksum; 0 when no column uses them.
    pub(super) times_size: u32,
    /// Index of the first column's [`ColumnWord`] in the directory's list.
    pub(super) first_column: u32,
}

impl Slice {
    /// One past the last ordinal of the block; up to 2^32.
    pub fn series_end(&self) -> u64 {
        u64::from(self.series_start) + u64::from(self.capacity) * u64::from(self.columns)
    }

    /// Where it starts in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The ordinal of the series in `column` and `slot`.
    pub fn ordinal(&self, column: usize, slot: usize) -> u32 {
        debug_assert!(column < self.columns as usize && slot < self.capacity as usize);
        self.series_start + to_u32(column) * self.capacity + to_u32(slot)
    }
}

/// Where a column's timestamps are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnTimes {
    /// The column has no sample in the slice.
    Empty,
    /// Its samples are at the slice's shared timestamps.
    Shared,
    /// It has timestamps of its own.
    Own,
}

/// Size and kind of a column: `size << 2 | kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnWord(u32);

impl ColumnWord {
    /// The word of a column of `size` bytes, checksum included.
    pub fn new(times: ColumnTimes, size: usize) -> ColumnWord {
        assert!(size <= COLUMN_SIZE_MAX, "column of {size} bytes");
        assert!((size == 0) == (times == ColumnTimes::Empty), "only empty columns have no bytes");
        let kind = match times {
            ColumnTimes::Empty => 0,
            ColumnTimes::Shared => 1,
            ColumnTimes::Own => 2,
        };
        ColumnWord(to_u32(size) << 2 | kind)
    }

    fn parse(word: u32) -> Option<ColumnWord> {
        let is_empty = word >> 2 == 0;
        let known = if is_empty { word == 0 } else { matches!(word & 3, 1 | 2) };
        known.then_some(ColumnWord(word))
    }

    /// Bytes in the file, checksum included.
    pub fn size(self) -> usize {
        (self.0 >> 2) as usize
    }

    /// Where the timestamps are.
    pub fn times(self) -> ColumnTimes {
        match self.0 & 3 {
            0 => ColumnTimes::Empty,
            1 => ColumnTimes::Shared,
            _ => ColumnTimes::Own,
        }
    }
}

/// The bitmap of one UTC day: which series have a sample on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayEntry {
    /// Day number since the epoch.
    pub day: i32,
    /// Bytes of the serialised bitmap.
    pub size: u32,
    /// Their checksum.
    pub checksum: u32,
    /// Where they start in the file.
    pub offset: u64,
}

/// Everything about a part but its columns' bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// How columns are encoded.
    pub encoding: Encoding,
    /// Place of the part in the order of writing: among equal timestamps the higher one wins.
    pub sequence: u64,
    /// All slices, sorted by (series, time).
    pub slices: SliceList,
    /// The columns of all slices, in order.
    pub columns: Vec<ColumnWord>,
    /// The days with samples, ascending.
    pub days: Vec<DayEntry>,
}

impl Directory {
    /// Samples of all slices.
    pub fn samples(&self) -> u64 {
        self.slices.iter().map(|slice| slice.samples).sum()
    }

    /// Earliest and latest timestamp; `None` without slices.
    pub fn span(&self) -> Option<(i64, i64)> {
        let min = self.slices.iter().map(|slice| slice.min_ts).min()?;
        let max = self.slices.iter().map(|slice| slice.max_ts).max()?;
        Some((min, max))
    }

    /// Appends the directory's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let base = self.span().map_or(0, |(min, _)| min);
        let unit = self.time_unit(base);
        put_u32(out, self.encoding.flags());
        put_varint(out, self.sequence);
        put_varint(out, self.slices.len() as u64);
        put_varint(out, self.columns.len() as u64);
        put_varint(out, self.samples());
        put_i64_zigzag(out, base);
        put_varint(out, unit);
        put_varint(out, self.days.len() as u64);
        let mut last_day = 0;
        for day in &self.days {
            put_i64_zigzag(out, i64::from(day.day) - last_day);
            put_varint(out, u64::from(day.size));
            put_u32(out, day.checksum);
            last_day = i64::from(day.day);
        }
        let mut last: Option<Slice> = None;
        for slice in self.slices.iter() {
            self.encode_slice(&slice, last.as_ref(), TimeScale { base, unit }, out);
            last = Some(slice);
        }
    }

    fn encode_slice(
        &self,
        slice: &Slice,
        last: Option<&Slice>,
        scale: TimeScale,
        out: &mut Vec<u8>,
    ) {
        let last_start = last.map_or(0, |last| last.series_start);
        put_varint(out, u64::from(slice.series_start - last_start));
        let since = match last.filter(|last| last.series_start == slice.series_start) {
            Some(last) => last.max_ts,
            None => {
                put_varint(out, u64::from(slice.capacity));
                put_varint(out, u64::from(slice.columns));
                scale.base
            }
        };
        put_varint(out, u64::from(slice.slots));
        put_varint(out, distance(since, slice.min_ts) / scale.unit);
        put_varint(out, distance(slice.min_ts, slice.max_ts) / scale.unit);
        put_varint(out, slice.samples);
        put_varint(out, u64::from(slice.times_size));
        let first = slice.first_column as usize;
        for word in &self.columns[first..first + slice.columns as usize] {
            put_varint(out, u64::from(word.0));
        }
    }

    /// The greatest common divisor of all distances from `base`: a second in data of whole seconds.
    fn time_unit(&self, base: i64) -> u64 {
        let divisor = self.slices.iter().fold(0, |unit, slice| {
            let unit = greatest_common_divisor(distance(base, slice.min_ts), unit);
            greatest_common_divisor(distance(base, slice.max_ts), unit)
        });
        divisor.max(1)
    }

    /// Reads a directory whose pages end at `pages_end`, where the directory itself starts.
    ///
    /// # Errors
    /// When a byte is not as [`Directory::encode`] writes it, or an invariant does not hold.
    pub fn decode(bytes: &[u8], pages_end: u64) -> Result<Directory, codec::Error> {
        let mut reader = Reader::new(bytes);
        let flags = reader.u32()?;
        let encoding = Encoding::from_flags(flags).ok_or_else(|| reader.corrupt("known flags"))?;
        let sequence = reader.varint()?;
        // A slice takes seven bytes or more and a column one, so the counts cannot lie by much.
        let slice_count = reader.varint_size(bytes.len() / 7)?;
        let column_count = reader.varint_size(bytes.len())?;
        let samples = reader.varint()?;
        let scale = TimeScale { base: reader.i64_zigzag()?, unit: reader.varint()?.max(1) };
        let mut days = decode_days(&mut reader)?;
        let mut directory = Directory {
            encoding,
            sequence,
            slices: SliceList::with_capacity(slice_count),
            columns: Vec::with_capacity(column_count),
            days: Vec::new(),
        };
        let mut offset = HEADER_SIZE as u64;
        for _ in 0..slice_count {
            offset = directory.decode_slice(&mut reader, scale, offset)?;
        }
        for day in &mut days {
            day.offset = offset;
            offset += u64::from(day.size);
        }
        directory.days = days;
        directory.slices.shrink();
        let holds = reader.is_empty()
            && offset == pages_end
            && directory.columns.len() == column_count
            && directory.samples() == samples;
        if holds { Ok(directory) } else { Err(reader.corrupt("sums that agree")) }
    }

    fn decode_slice(
        &mut self,
        reader: &mut Reader<'_>,
        scale: TimeScale,
        offset: u64,
    ) -> Result<u64, codec::Error> {
        let step = reader.varint_u32()?;
        let last = self.slices.last();
        let last_start = last.map_or(0, |last| last.series_start);
        let series_start = last_start
            .checked_add(step)
            .ok_or_else(|| reader.corrupt("series ordinal below 2^32"))?;
        let same_block = last.filter(|last| last.series_start == series_start);
        let (capacity, columns, since) = match same_block {
            Some(last) => (last.capacity, last.columns, last.max_ts),
            None => (reader.varint_u32()?, to_u32(reader.varint_size(COLUMNS_MAX)?), scale.base),
        };
        let slots = to_u32(reader.varint_size(SLOTS_MAX)?);
        let start = reader.varint()?;
        let min_ts = scale.after(since, start).ok_or_else(|| reader.corrupt("a timestamp"))?;
        let length = reader.varint()?;
        let max_ts = scale.after(min_ts, length).ok_or_else(|| reader.corrupt("a timestamp"))?;
        let samples = reader.varint()?;
        let times_size = to_u32(reader.varint_size(COLUMN_SIZE_MAX)?);
        let first_column = to_u32(self.columns.len());
        let slice = Slice {
            series_start,
            capacity,
            columns,
            slots,
            min_ts,
            max_ts,
            samples,
            offset,
            times_size,
            first_column,
        };
        let block_end = last.map_or(0, Slice::series_end);
        let in_order = match same_block {
            Some(_) => 0 < start,
            None => block_end <= u64::from(series_start),
        };
        let cells = u64::from(slots) * u64::from(columns);
        let holds = in_order
            && 0 < cells
            && slots <= capacity
            && 0 < samples
            && slice.series_end() <= 1 << 32
            && samples <= cells.saturating_mul(codec_samples_max());
        if !holds {
            return Err(reader.corrupt("a slice in order"));
        }
        self.slices.push(slice);
        self.decode_columns(reader, columns, times_size, offset)
    }

    fn decode_columns(
        &mut self,
        reader: &mut Reader<'_>,
        columns: u32,
        times_size: u32,
        offset: u64,
    ) -> Result<u64, codec::Error> {
        let mut end = offset + u64::from(times_size);
        let (mut has_shared, mut has_own) = (false, false);
        for _ in 0..columns {
            let word = ColumnWord::parse(reader.varint_u32()?)
                .ok_or_else(|| reader.corrupt("a known kind of column"))?;
            has_shared |= word.times() == ColumnTimes::Shared;
            has_own |= word.times() == ColumnTimes::Own;
            end += word.size() as u64;
            self.columns.push(word);
        }
        let holds = has_shared == (0 < times_size) && (has_shared || has_own);
        if holds { Ok(end) } else { Err(reader.corrupt("columns that use the shared times")) }
    }
}

fn decode_days(reader: &mut Reader<'_>) -> Result<Vec<DayEntry>, codec::Error> {
    let count = reader.varint_size(reader.remaining() / 6)?;
    let mut days: Vec<DayEntry> = Vec::with_capacity(count);
    let mut last = 0i64;
    for idx in 0..count {
        let step = reader.i64_zigzag()?;
        let day = last.checked_add(step).and_then(|day| i32::try_from(day).ok());
        let day = day.filter(|_| idx == 0 || 0 < step);
        let day = day.ok_or_else(|| reader.corrupt("ascending days"))?;
        let size = reader.varint_u32()?;
        days.push(DayEntry { day, size, checksum: reader.u32()?, offset: 0 });
        last = i64::from(day);
    }
    Ok(days)
}

fn codec_samples_max() -> u64 {
    codec::column::SAMPLES_MAX as u64
}

/// How the directory writes timestamps: multiples of `unit` since `base` or another timestamp.
#[derive(Clone, Copy)]
struct TimeScale {
    base: i64,
    unit: u64,
}

impl TimeScale {
    /// The timestamp `steps` units after `since`, if there is one.
    fn after(self, since: i64, steps: u64) -> Option<i64> {
        since.checked_add_unsigned(steps.checked_mul(self.unit)?)
    }
}

/// Nanoseconds from `start` to `end`, which is not before it.
fn distance(start: i64, end: i64) -> u64 {
    debug_assert!(start <= end);
    end.abs_diff(start)
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
