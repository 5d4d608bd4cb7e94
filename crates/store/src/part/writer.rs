//! Writes a part, slice after slice, into memory or a file.
//!
//! The calls, in order: `begin_slice`, `shared_times` if any column is to use them, then exactly
//! one `column_*` for each column, `end_slice`; after the last slice `finish`.
//! Calls out of order, slices out of order and lists that do not add up are bugs of the caller and
//! panic; only the file system makes errors.
//! Nothing is held but the directory, the liveness and the page being encoded.

use super::directory::{ColumnTimes, ColumnWord, DayEntry, Directory, Slice};
use super::format::{self, CHECKSUM_SIZE, COLUMNS_MAX, Encoding, HEADER_SIZE};
use super::liveness::{DayRuns, Liveness};
use super::read_back::{PagePlace, ReadBack};
use super::reader::{Check, Part, PartSummary};
use super::slices::SliceList;
use crate::base::narrow::to_u32;
use crate::{Error, Result};
use codec::{Effort, Layout, crc32, put_u32, put_u64, put_varint};
use std::sync::Arc;

/// Bytes gathered before they go to the file.
const WRITE_SIZE: usize = 1 << 20;

/// Where the bytes of a part go.
pub enum PartSink {
    /// Into memory, to be appended to this vector, which must be empty.
    Memory(Vec<u8>),
    /// Into a new file.
    File(Box<dyn vfs::AppendFile>),
}

/// What the caller knows about a part and the samples do not say.
#[derive(Clone, Copy, Debug)]
pub struct PartInfo {
    /// Place in the order of writing; the highest of the inputs when parts are merged.
    pub sequence: u64,
}

/// The entity block of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceKey {
    /// Ordinal of the block's first series.
    pub series_start: u32,
    /// Slots the block has room for.
    pub capacity: u32,
    /// Columns of the block.
    pub columns: u32,
    /// Slots that the slice's lists describe, at most `capacity`.
    pub slots: u32,
}

/// What [`PartWriter::finish`] gives.
pub struct FinishedPart {
    /// Counts and sizes.
    pub summary: PartSummary,
    /// The bytes, when the sink was memory.
    pub bytes: Option<Vec<u8>>,
}

/// A part being written.
pub struct PartWriter {
    sink: PartSink,
    effort: Effort,
    /// Bytes on their way to a file; unused for memory.
    buffer: Vec<u8>,
    /// Bytes of the part so far.
    size: u64,
    /// Samples of the finished slices.
    samples: u64,
    slices: SliceList,
    columns: Vec<ColumnWord>,
    liveness: Liveness,
    current: Option<CurrentSlice>,
    /// The page being encoded.
    page: Vec<u8>,
    /// Days of the shared times of the current slice.
    shared_days: DayRuns,
    /// Days of the column that is being written.
    own_days: DayRuns,
    /// Samples of each slot in the shared times, and how they lie.
    shared_lens: Vec<u32>,
    shared_layout: Option<Arc<Layout>>,
    /// Encodes pages, and decodes them before they are written.
    read_back: ReadBack,
}

/// The slice between `begin_slice` and `end_slice`.
struct CurrentSlice {
    slice: Slice,
    /// Samples of one column in the shared times.
    shared_samples: u64,
    shared_span: Option<(i64, i64)>,
    columns_shared: u32,
}

/// Samples of all slots.
fn sum_of(lens: &[u32]) -> usize {
    lens.iter().map(|len| *len as usize).sum()
}

impl PartWriter {
    /// Starts a part.
    pub fn new(sink: PartSink, effort: Effort) -> PartWriter {
        let mut writer = PartWriter {
            sink,
            effort,
            buffer: Vec::new(),
            size: HEADER_SIZE as u64,
            samples: 0,
            slices: SliceList::default(),
            columns: Vec::new(),
            liveness: Liveness::default(),
            current: None,
            page: Vec::new(),
            shared_days: DayRuns::default(),
            own_days: DayRuns::default(),
            shared_lens: Vec::new(),
            shared_layout: None,
            read_back: ReadBack::default(),
        };
        let header = format::header(Encoding::newest(effort));
        match &mut writer.sink {
            PartSink::Memory(bytes) => {
                assert!(bytes.is_empty(), "a part starts at byte 0");
                bytes.extend_from_slice(&header);
            }
            PartSink::File(file) => {
                assert!(file.size() == 0, "a part starts at byte 0");
                writer.buffer.extend_from_slice(&header);
            }
        }
        writer
    }

    /// How columns are encoded.
    pub fn encoding(&self) -> Encoding {
        Encoding::newest(self.effort)
    }

    /// Bytes written so far, without directory and liveness.
    #[cfg(test)]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Samples of the finished slices.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Starts a slice; blocks come in ascending order and each block's slices by time.
    pub fn begin_slice(&mut self, key: SliceKey) {
        assert!(self.current.is_none(), "a slice begins before the last one ends");
        assert!(0 < key.columns && key.columns as usize <= COLUMNS_MAX, "columns {}", key.columns);
        assert!(0 < key.slots && key.slots <= key.capacity, "slots {}", key.slots);
        let slice = Slice {
            series_start: key.series_start,
            capacity: key.capacity,
            columns: key.columns,
            slots: key.slots,
            min_ts: i64::MAX,
            max_ts: i64::MIN,
            samples: 0,
            offset: self.size,
            times_size: 0,
            first_column: to_u32(self.columns.len()),
        };
        assert!(slice.series_end() <= 1 << 32, "ordinals are below 2^32");
        if let Some(last) = self.slices.last() {
            let follows = last.series_start == key.series_start
                || last.series_end() <= u64::from(key.series_start);
            assert!(follows, "block {} after {}", key.series_start, last.series_start);
        }
        self.current =
            Some(CurrentSlice { slice, shared_samples: 0, shared_span: None, columns_shared: 0 });
    }

    /// The timestamps that [`PartWriter::column_shared`] refers to: `lens[slot]` for each slot, one
    /// slot after the other, strictly increasing within a slot.
    ///
    /// # Errors
    /// When the file cannot be written; [`crate::Error::Encoder`].
    pub fn shared_times(&mut self, lens: &[u32], times: &[i64]) -> Result<()> {
        let current = self.current.as_mut().expect("inside a slice");
        assert!(self.columns.len() == current.slice.first_column as usize, "times come first");
        assert!(current.slice.times_size == 0 && !times.is_empty(), "shared times come once");
        assert!(lens.len() == current.slice.slots as usize, "a length for each slot");
        debug_assert_eq!(sum_of(lens), times.len(), "the slots have all the times");
        current.shared_samples = times.len() as u64;
        current.shared_span = Some(span(times));
        self.shared_lens.clear();
        self.shared_lens.extend_from_slice(lens);
        self.shared_days.compute(lens, times);
        self.begin_page();
        let place = self.page_place();
        let (effort, page) = (self.effort, &mut self.page);
        self.shared_layout = Some(self.read_back.put_times(times, lens, effort, page, &place)?);
        let size = self.end_page()?;
        self.current.as_mut().expect("inside a slice").slice.times_size = to_u32(size);
        Ok(())
    }

    /// The next column, with a value for each of the shared times.
    ///
    /// # Errors
    /// When the file cannot be written; [`crate::Error::Encoder`].
    pub fn column_shared(&mut self, values: &[f64]) -> Result<()> {
        let first = self.next_ordinal();
        let current = self.current.as_mut().expect("inside a slice");
        assert!(values.len() as u64 == current.shared_samples, "a value for each shared time");
        let span = current.shared_span.expect("shared times were given");
        current.columns_shared += 1;
        current.slice.add(values.len(), span);
        self.liveness.add(first, &self.shared_days);
        self.begin_page();
        let place = self.page_place();
        let layout = self.shared_layout.as_ref().expect("shared times were written");
        let (effort, page) = (self.effort, &mut self.page);
        self.read_back.put_values(values, &self.shared_lens, layout, effort, page, &place)?;
        self.end_column(ColumnTimes::Shared)
    }

    /// The next column, with timestamps of its own.
    ///
    /// # Errors
    /// When the file cannot be written; [`crate::Error::Encoder`].
    pub fn column_own(&mut self, lens: &[u32], times: &[i64], values: &[f64]) -> Result<()> {
        if times.is_empty() {
            assert!(values.is_empty(), "values without timestamps");
            self.column_empty();
            return Ok(());
        }
        let first = self.next_ordinal();
        let current = self.current.as_mut().expect("inside a slice");
        assert!(lens.len() == current.slice.slots as usize, "a length for each slot");
        assert!(values.len() == times.len(), "a value for each timestamp");
        debug_assert_eq!(sum_of(lens), times.len(), "the slots have all the times");
        current.slice.add(values.len(), span(times));
        self.own_days.compute(lens, times);
        self.liveness.add(first, &self.own_days);
        let mut times_page = Vec::new();
        let (place, effort) = (self.page_place(), self.effort);
        let layout = self.read_back.put_times(times, lens, effort, &mut times_page, &place)?;
        self.begin_page();
        put_varint(&mut self.page, times_page.len() as u64);
        self.page.extend_from_slice(&times_page);
        self.read_back.put_values(values, lens, &layout, effort, &mut self.page, &place)?;
        self.end_column(ColumnTimes::Own)
    }

    /// The next column, without samples.
    pub fn column_empty(&mut self) {
        self.next_ordinal();
        self.columns.push(ColumnWord::new(ColumnTimes::Empty, 0));
    }

    /// Ends the slice. A slice without samples leaves no trace.
    pub fn end_slice(&mut self) {
        let current = self.current.take().expect("inside a slice");
        let slice = current.slice;
        let columns = self.columns.len() - slice.first_column as usize;
        assert!(columns == slice.columns as usize, "a call for each column");
        let is_used = 0 < current.columns_shared;
        assert!(is_used == (0 < slice.times_size), "shared times are used");
        if slice.samples == 0 {
            self.columns.truncate(slice.first_column as usize);
            return;
        }
        if let Some(last) = self.slices.last().filter(|s| s.series_start == slice.series_start) {
            let same = last.capacity == slice.capacity && last.columns == slice.columns;
            assert!(same, "a block keeps its capacity and columns");
            assert!(last.max_ts < slice.min_ts, "slices of a block do not overlap");
        }
        self.samples += slice.samples;
        self.slices.push(slice);
    }

    /// Takes over a slice of another part, byte for byte; both parts have the same encoding.
    ///
    /// # Errors
    /// When the slice is corrupt or the file cannot be written.
    pub fn copy_slice(&mut self, part: &Part, idx: usize) -> Result<()> {
        assert!(part.summary().encoding == self.encoding(), "bytes of another encoding");
        let source = part.slice(idx);
        let (series_start, capacity) = (source.series_start, source.capacity);
        let (columns, slots) = (source.columns, source.slots);
        self.begin_slice(SliceKey { series_start, capacity, columns, slots });
        let mut times = Vec::new();
        if let Some(reader) = part.shared_times_with(idx, Check::Always)? {
            part.read_all_times(idx, &reader, &mut times)?;
            self.shared_days.compute(reader.lens(), &times);
        }
        for column in 0..columns as usize {
            let first = source.ordinal(column, 0);
            match part.column_times(idx, column) {
                ColumnTimes::Empty => {}
                ColumnTimes::Shared => self.liveness.add(first, &self.shared_days),
                ColumnTimes::Own => {
                    let reader = part.own_times_with(idx, column, Check::Always)?;
                    part.read_all_times(idx, &reader, &mut times)?;
                    self.own_days.compute(reader.lens(), &times);
                    self.liveness.add(first, &self.own_days);
                }
            }
        }
        self.columns.extend_from_slice(part.column_words(idx));
        self.write(part.checked_slice_bytes(idx)?)?;
        let current = self.current.as_mut().expect("inside a slice");
        current.columns_shared = u32::from(0 < source.times_size);
        let (offset, first_column) = (current.slice.offset, current.slice.first_column);
        current.slice = Slice { offset, first_column, ..source };
        self.end_slice();
        Ok(())
    }

    /// Writes liveness and directory, and syncs the file.
    ///
    /// # Errors
    /// When the file cannot be written or synced.
    pub fn finish(mut self, info: PartInfo) -> Result<FinishedPart> {
        assert!(self.current.is_none(), "the last slice has not ended");
        let days = self.write_liveness()?;
        let directory = Directory {
            encoding: self.encoding(),
            sequence: info.sequence,
            slices: std::mem::take(&mut self.slices),
            columns: std::mem::take(&mut self.columns),
            days,
        };
        let offset = self.size;
        let mut tail = Vec::new();
        directory.encode(&mut tail);
        if Directory::decode(&tail, offset).as_ref() != Ok(&directory) {
            let (what, found) = ("directory", "another directory".to_string());
            let place = format!("a part of {} samples", directory.samples());
            return Err(Error::Encoder { what, place, found });
        }
        let (size, checksum) = (tail.len() as u64, crc32(&tail));
        put_u64(&mut tail, offset);
        put_u64(&mut tail, size);
        put_u32(&mut tail, checksum);
        tail.extend_from_slice(&format::END_MAGIC);
        self.write(&tail)?;
        let summary = PartSummary::of(&directory, self.size);
        match self.sink {
            PartSink::Memory(mut bytes) => {
                bytes.shrink_to_fit();
                Ok(FinishedPart { summary, bytes: Some(bytes) })
            }
            PartSink::File(mut file) => {
                file.append(&self.buffer)?;
                file.sync()?;
                assert!(file.size() == summary.size, "every byte is in the file");
                Ok(FinishedPart { summary, bytes: None })
            }
        }
    }

    fn write_liveness(&mut self) -> Result<Vec<DayEntry>> {
        let mut days = Vec::new();
        let mut bytes = Vec::new();
        for (day, set) in self.liveness.finish() {
            bytes.clear();
            set.serialize_into(&mut bytes).expect("a vector takes every byte");
            let size = to_u32(bytes.len());
            days.push(DayEntry { day, size, checksum: crc32(&bytes), offset: self.size });
            self.write(&bytes)?;
        }
        Ok(days)
    }

    /// The ordinal of slot 0 in the column that is about to be written.
    fn next_ordinal(&self) -> u32 {
        let slice = &self.current.as_ref().expect("inside a slice").slice;
        let column = self.columns.len() - slice.first_column as usize;
        assert!(column < slice.columns as usize, "one call for each column");
        slice.ordinal(column, 0)
    }

    /// The page that is about to be written, for errors.
    fn page_place(&self) -> PagePlace {
        let slice = &self.current.as_ref().expect("inside a slice").slice;
        let column = to_u32(self.columns.len()) - slice.first_column;
        PagePlace { series_start: slice.series_start, column }
    }

    fn begin_page(&mut self) {
        self.page.clear();
        self.page.extend_from_slice(&[0; CHECKSUM_SIZE]);
    }

    fn end_page(&mut self) -> Result<usize> {
        let checksum = crc32(&self.page[CHECKSUM_SIZE..]);
        self.page[..CHECKSUM_SIZE].copy_from_slice(&checksum.to_le_bytes());
        let page = std::mem::take(&mut self.page);
        self.write(&page)?;
        self.page = page;
        Ok(self.page.len())
    }

    fn end_column(&mut self, times: ColumnTimes) -> Result<()> {
        let size = self.end_page()?;
        self.columns.push(ColumnWord::new(times, size));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.size += bytes.len() as u64;
        match &mut self.sink {
            PartSink::Memory(part) => part.extend_from_slice(bytes),
            PartSink::File(file) => {
                self.buffer.extend_from_slice(bytes);
                if WRITE_SIZE <= self.buffer.len() {
                    file.append(&self.buffer)?;
                    self.buffer.clear();
                }
            }
        }
        Ok(())
    }
}

impl Slice {
    fn add(&mut self, samples: usize, (min, max): (i64, i64)) {
        self.samples += samples as u64;
        self.min_ts = self.min_ts.min(min);
        self.max_ts = self.max_ts.max(max);
    }
}

/// Earliest and latest of some timestamps; there is at least one.
fn span(times: &[i64]) -> (i64, i64) {
    let first = times[0];
    times.iter().fold((first, first), |(min, max), &t| (min.min(t), max.max(t)))
}
