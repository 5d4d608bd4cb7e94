//! Reads a part: the directory is in memory, columns are decoded from the (mapped) bytes on demand.
//!
//! A page's checksum is computed the first time the page is read and remembered as one bit, so that
//! a query for one series does not pay for the whole column again and again. Merge computes it
//! every time, because what it writes replaces what it read.

use super::directory::{ColumnWord, Directory, Slice};
use super::format::{self, CHECKSUM_SIZE, Encoding, HEADER_SIZE, TRAILER_SIZE};
use crate::page_headers::{PageHeaders, PageKey, PageOf};
use crate::{Error, Result};
use codec::{
    Paging, Reader, TimestampsOutline, TimestampsReader, ValuesOutline, ValuesReader, crc32,
};
use index::BlockRef;
use model::TimeRange;
use roaring::RoaringBitmap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use super::directory::ColumnTimes;

/// Counts and sizes of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSummary {
    /// Place in the order of writing: among equal timestamps the higher one wins.
    pub sequence: u64,
    /// How columns are encoded.
    pub encoding: Encoding,
    /// Slices.
    pub slices: usize,
    /// Samples of all series.
    pub samples: u64,
    /// Timestamp of the earliest sample; 0 in a part without samples.
    pub min_ts: i64,
    /// Timestamp of the latest sample; 0 in a part without samples.
    pub max_ts: i64,
    /// Bytes in all.
    pub size: u64,
}

impl PartSummary {
    pub(super) fn of(directory: &Directory, size: u64) -> PartSummary {
        let (min_ts, max_ts) = directory.span().unwrap_or((0, 0));
        PartSummary {
            sequence: directory.sequence,
            encoding: directory.encoding,
            slices: directory.slices.len(),
            samples: directory.samples(),
            min_ts,
            max_ts,
            size,
        }
    }
}

/// When a page's checksum is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The first time the page is read.
    Once,
    /// Every time.
    Always,
}

/// The next [`Part::number`].
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// A page of a slice.
#[derive(Clone, Copy)]
enum Page {
    SharedTimes,
    Column(usize),
}

/// A column's bytes and what is known of them.
pub struct KnownColumn<'a, T> {
    /// The bytes, behind their checksum.
    pub bytes: &'a [u8],
    /// Their parsed headers.
    pub header: Arc<T>,
}

/// An open part. Cheap to share, safe to read from many threads.
pub struct Part {
    /// What no other part of this process has.
    number: u64,
    name: PathBuf,
    bytes: vfs::Bytes,
    directory: Directory,
    summary: PartSummary,
    /// A bit for each page, set once its checksum was found right.
    checked: Box<[AtomicU64]>,
    /// Whether the header, on which nothing depends, is as it was written.
    has_sound_header: bool,
}

impl Part {
    /// Opens the part in `bytes`; errors call it `name`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when trailer or directory are not as they were written,
    /// [`Error::UnknownVersion`].
    pub fn open(bytes: vfs::Bytes, name: PathBuf) -> Result<Part> {
        let directory = open_directory(&bytes, &name)?;
        if bytes.has_faulted() {
            return Err(corrupt(&name, 0, "bytes that the disk gives"));
        }
        let has_sound_header = bytes[..HEADER_SIZE] == format::header(directory.encoding);
        let summary = PartSummary::of(&directory, bytes.len() as u64);
        let pages = directory.slices.len() + directory.columns.len();
        let checked = (0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(Part { number, name, bytes, directory, summary, checked, has_sound_header })
    }

    /// Fails when it is not the part that is meant: that of this place in the order of writing, with
    /// samples of this span only. No two parts that were ever there share both.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn check_place(&self, order: u64, span: &TimeRange) -> Result<()> {
        let PartSummary { sequence, min_ts, max_ts, samples, .. } = self.summary;
        if sequence != order {
            let what = format!("it is the part of order {sequence}, where {order} should be");
            return Err(self.corrupt(0, &what));
        }
        match samples == 0 || span.covers(&TimeRange::new(min_ts, max_ts)) {
            true => Ok(()),
            false => Err(self.corrupt(0, "it is a part of another partition")),
        }
    }

    /// What errors call the part.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Whether the header, on which nothing depends, is as it was written.
    pub fn has_sound_header(&self) -> bool {
        self.has_sound_header
    }

    /// How many pieces of the file the disk did not give; see [`vfs::Bytes::faults`].
    pub fn faults(&self) -> u32 {
        self.bytes.faults()
    }

    /// Fails when there are more than before something was read: it may have read zeros.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn check_faults(&self, before: u32, offset: u64) -> Result<()> {
        match self.bytes.faults() == before {
            true => Ok(()),
            false => Err(self.corrupt(offset, "bytes that the disk gives")),
        }
    }

    /// Counts and sizes.
    pub fn summary(&self) -> &PartSummary {
        &self.summary
    }

    /// Bytes of memory that the directory takes, beside the part's own bytes.
    #[cfg(test)]
    pub fn directory_size(&self) -> usize {
        size_of_val(self.directory.slices.as_slice())
            + size_of_val(self.directory.columns.as_slice())
            + size_of_val(self.directory.days.as_slice())
            + size_of_val(&*self.checked)
    }

    /// Lets the system take the part's pages out of memory; see [`vfs::Bytes::release`].
    pub fn release(&self) {
        self.bytes.release();
    }

    /// All slices, sorted by (series, time).
    pub fn slices(&self) -> &[Slice] {
        &self.directory.slices
    }

    /// The indexes of the slices of the block that starts at `series_start`.
    pub fn find(&self, series_start: u32) -> Range<usize> {
        let slices = self.slices();
        let start = slices.partition_point(|slice| slice.series_start < series_start);
        let count = slices[start..].partition_point(|slice| slice.series_start == series_start);
        start..start + count
    }

    /// Fails when a slice does not have the shape of its block: then the part was written beside
    /// another index, and its series are others.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn check_block(&self, idx: usize, block: &BlockRef) -> Result<()> {
        let slice = &self.slices()[idx];
        match (slice.capacity, slice.columns) == (block.capacity, block.columns) {
            true => Ok(()),
            false => Err(self.corrupt_slice(idx, "the block that the index knows")),
        }
    }

    /// Where the timestamps of a column are.
    pub fn column_times(&self, idx: usize, column: usize) -> ColumnTimes {
        self.column_words(idx)[column].times()
    }

    /// Whether the column's samples are at the slice's shared timestamps.
    #[cfg(test)]
    pub fn is_shared(&self, idx: usize, column: usize) -> bool {
        self.column_times(idx, column) == ColumnTimes::Shared
    }

    /// The slice's shared timestamps; `None` when no column uses any.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn shared_times(&self, idx: usize) -> Result<Option<TimestampsReader<'_>>> {
        self.shared_times_with(idx, Check::Once)
    }

    /// The timestamps of a column, shared or its own; `None` when the column is empty.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn times(&self, idx: usize, column: usize) -> Result<Option<TimestampsReader<'_>>> {
        match self.column_times(idx, column) {
            ColumnTimes::Empty => Ok(None),
            ColumnTimes::Own => self.own_times_with(idx, column, Check::Once).map(Some),
            ColumnTimes::Shared => match self.shared_times(idx)? {
                Some(times) => Ok(Some(times)),
                None => Err(self.corrupt_slice(idx, "shared times")),
            },
        }
    }

    /// The values of a column whose timestamps have the lengths `lens`; of an empty column there
    /// are none to read, which is an error.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn values(&self, idx: usize, column: usize, lens: &[u32]) -> Result<ValuesReader<'_>> {
        self.values_with(idx, column, lens, Check::Once)
    }

    /// The timestamps of a column as [`Part::times`], their headers kept in `headers`; `None` when
    /// the column is empty.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn known_times(
        &self,
        idx: usize,
        column: usize,
        headers: &PageHeaders,
    ) -> Result<Option<KnownColumn<'_, TimestampsOutline>>> {
        let (page, offset, bytes) = match self.column_times(idx, column) {
            ColumnTimes::Empty => return Ok(None),
            ColumnTimes::Own => {
                let (offset, bytes) = self.page(idx, Page::Column(column), Check::Once)?;
                let (times, _) =
                    split_own(bytes).map_err(|error| self.corrupt_page(offset, error))?;
                (PageOf::OwnTimes(column as u32), offset, times)
            }
            ColumnTimes::Shared if self.slices()[idx].times_size == 0 => {
                return Err(self.corrupt_slice(idx, "shared times"));
            }
            ColumnTimes::Shared => {
                let (offset, bytes) = self.page(idx, Page::SharedTimes, Check::Once)?;
                (PageOf::SharedTimes, offset, bytes)
            }
        };
        let header = headers.times(self.page_key(idx, page), || {
            let header = TimestampsOutline::open(bytes, self.paging())
                .map_err(|error| self.corrupt_page(offset, error))?;
            self.check_slots(idx, offset, header.lens())?;
            Ok::<_, Error>(header)
        })?;
        Ok(Some(KnownColumn { bytes, header }))
    }

    /// The values of a column at `times`, as [`Part::values`], their headers kept in `headers`.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn known_values(
        &self,
        idx: usize,
        column: usize,
        times: &TimestampsOutline,
        headers: &PageHeaders,
    ) -> Result<KnownColumn<'_, ValuesOutline>> {
        let (offset, mut bytes) = self.page(idx, Page::Column(column), Check::Once)?;
        if self.column_times(idx, column) == ColumnTimes::Own {
            (_, bytes) = split_own(bytes).map_err(|error| self.corrupt_page(offset, error))?;
        }
        let key = self.page_key(idx, PageOf::Values(column as u32));
        let header = headers.values(key, || {
            ValuesOutline::open(bytes, Arc::clone(times.layout()))
                .map_err(|error| self.corrupt_page(offset, error))
        })?;
        Ok(KnownColumn { bytes, header })
    }

    fn paging(&self) -> Paging {
        self.directory.encoding.paging
    }

    fn page_key(&self, idx: usize, page: PageOf) -> PageKey {
        PageKey { part: self.number, slice: idx as u32, page }
    }

    /// The UTC days with samples, ascending, each with the set of series that have one.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn live_days(&self) -> Result<Vec<(i32, RoaringBitmap)>> {
        let days = 0..self.directory.days.len();
        days.map(|idx| Ok((self.directory.days[idx].day, self.live_day(idx)?))).collect()
    }

    /// The series that have a sample on a UTC day from `first_day` to `last_day`, both included.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn live_on(&self, first_day: i32, last_day: i32) -> Result<RoaringBitmap> {
        let mut live = RoaringBitmap::new();
        for (idx, entry) in self.directory.days.iter().enumerate() {
            if first_day <= entry.day && entry.day <= last_day {
                live |= self.live_day(idx)?;
            }
        }
        Ok(live)
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    pub(crate) fn live_day(&self, idx: usize) -> Result<RoaringBitmap> {
        let (entry, faults) = (&self.directory.days[idx], self.faults());
        let bytes = self.range(entry.offset, entry.size as usize)?;
        if crc32(bytes) != entry.checksum {
            return Err(self.corrupt(entry.offset, "checksum of a day"));
        }
        let mut rest = bytes;
        let set = RoaringBitmap::deserialize_from(&mut rest);
        self.check_faults(faults, entry.offset)?;
        match set {
            Ok(set) if rest.is_empty() => Ok(set),
            _ => Err(self.corrupt(entry.offset, "a set of ordinals")),
        }
    }

    pub(crate) fn shared_times_with(
        &self,
        idx: usize,
        check: Check,
    ) -> Result<Option<TimestampsReader<'_>>> {
        let slice = &self.slices()[idx];
        if slice.times_size == 0 {
            return Ok(None);
        }
        let (offset, bytes) = self.page(idx, Page::SharedTimes, check)?;
        self.open_times(idx, offset, bytes).map(Some)
    }

    pub(crate) fn own_times_with(
        &self,
        idx: usize,
        column: usize,
        check: Check,
    ) -> Result<TimestampsReader<'_>> {
        let (offset, bytes) = self.page(idx, Page::Column(column), check)?;
        let (times, _) = split_own(bytes).map_err(|error| self.corrupt_page(offset, error))?;
        self.open_times(idx, offset, times)
    }

    pub(crate) fn values_with(
        &self,
        idx: usize,
        column: usize,
        lens: &[u32],
        check: Check,
    ) -> Result<ValuesReader<'_>> {
        if self.column_times(idx, column) == ColumnTimes::Empty {
            return Err(self.corrupt_slice(idx, "a column with samples"));
        }
        let (offset, mut bytes) = self.page(idx, Page::Column(column), check)?;
        if self.column_times(idx, column) == ColumnTimes::Own {
            (_, bytes) = split_own(bytes).map_err(|error| self.corrupt_page(offset, error))?;
        }
        ValuesReader::open(bytes, lens, self.paging())
            .map_err(|error| self.corrupt_page(offset, error))
    }

    /// Replaces `times` by all timestamps of a list of the slice, after checking that they increase
    /// within each slot and lie within the slice's span.
    pub(crate) fn read_all_times(
        &self,
        idx: usize,
        reader: &TimestampsReader<'_>,
        times: &mut Vec<i64>,
    ) -> Result<()> {
        let slice = &self.slices()[idx];
        times.clear();
        reader
            .read(0..reader.lens().len(), times)
            .map_err(|error| self.corrupt_page(slice.offset, error))?;
        if !are_in_order(reader.lens(), times, slice) {
            return Err(self.corrupt_slice(idx, "increasing timestamps"));
        }
        Ok(())
    }

    /// The error for bytes of the slice that decode to nonsense.
    pub(crate) fn corrupt_slice(&self, idx: usize, what: &str) -> Error {
        self.corrupt(self.slices()[idx].offset, what)
    }

    /// The error of a decoder at work on the page at `offset`.
    pub(crate) fn corrupt_page(&self, offset: u64, error: codec::Error) -> Error {
        self.corrupt(offset + error.offset as u64, error.what)
    }

    pub(super) fn corrupt(&self, offset: u64, what: &str) -> Error {
        corrupt(&self.name, offset, what)
    }

    /// Bytes of a column in the file; 0 if it is empty.
    pub(crate) fn column_size(&self, idx: usize, column: usize) -> usize {
        self.column_words(idx)[column].size()
    }

    pub(super) fn column_words(&self, idx: usize) -> &[ColumnWord] {
        let slice = &self.slices()[idx];
        let first = slice.first_column as usize;
        &self.directory.columns[first..first + slice.columns as usize]
    }

    /// Bytes that each column of a slice takes, with its share of the shared timestamps.
    pub fn column_sizes(&self, idx: usize) -> impl Iterator<Item = u64> + '_ {
        let words = self.column_words(idx);
        let times_size = u64::from(self.slices()[idx].times_size);
        let is_shared = |word: &&ColumnWord| word.times() == ColumnTimes::Shared;
        let share = times_size / words.iter().filter(is_shared).count().max(1) as u64;
        let share_of = move |word: &ColumnWord| if is_shared(&word) { share } else { 0 };
        words.iter().map(move |word| word.size() as u64 + share_of(word))
    }

    /// All bytes of a slice, with every checksum checked.
    pub(super) fn checked_slice_bytes(&self, idx: usize) -> Result<&[u8]> {
        self.check_slice(idx, &mut Err)?;
        let slice = &self.slices()[idx];
        self.range(slice.offset, self.slice_size(idx) as usize)
    }

    /// Bytes of a slice.
    pub(crate) fn slice_size(&self, idx: usize) -> u64 {
        let columns: u64 = self.column_words(idx).iter().map(|word| word.size() as u64).sum();
        u64::from(self.slices()[idx].times_size) + columns
    }

    /// Checks every page of a slice, whatever is known of it; of those that are rotten `on_rot`
    /// decides.
    pub(crate) fn check_slice(
        &self,
        idx: usize,
        on_rot: &mut dyn FnMut(Error) -> Result<()>,
    ) -> Result<()> {
        if 0 < self.slices()[idx].times_size {
            self.page(idx, Page::SharedTimes, Check::Always).map(drop).or_else(&mut *on_rot)?;
        }
        for (column, word) in self.column_words(idx).iter().enumerate() {
            if 0 < word.size() {
                self.page(idx, Page::Column(column), Check::Always)
                    .map(drop)
                    .or_else(&mut *on_rot)?;
            }
        }
        Ok(())
    }

    /// How many days have a set of series.
    pub(crate) fn day_count(&self) -> usize {
        self.directory.days.len()
    }

    /// A page behind its checksum, and where that starts in the file.
    fn page(&self, idx: usize, page: Page, check: Check) -> Result<(u64, &[u8])> {
        let slice = &self.slices()[idx];
        let (place, offset, size) = match page {
            Page::SharedTimes => (0, slice.offset, slice.times_size as usize),
            Page::Column(column) => {
                let words = self.column_words(idx);
                let before: u64 = words[..column].iter().map(|word| word.size() as u64).sum();
                let offset = slice.offset + u64::from(slice.times_size) + before;
                (1 + column, offset, words[column].size())
            }
        };
        let bytes = self.range(offset, size)?;
        let (checksum, bytes) = bytes
            .split_first_chunk::<CHECKSUM_SIZE>()
            .ok_or_else(|| self.corrupt(offset, "a checksum"))?;
        let bit = idx + slice.first_column as usize + place;
        let (word, mask) = (&self.checked[bit / 64], 1 << (bit % 64));
        let is_known = word.load(Ordering::Relaxed) & mask != 0;
        // Once the disk did not give a page, zeros may stand anywhere.
        if check == Check::Always || !is_known || self.bytes.has_faulted() {
            if crc32(bytes) != u32::from_le_bytes(*checksum) {
                word.fetch_and(!mask, Ordering::Relaxed);
                return Err(self.corrupt(offset, "checksum of a page"));
            }
            word.fetch_or(mask, Ordering::Relaxed);
        }
        Ok((offset + CHECKSUM_SIZE as u64, bytes))
    }

    fn open_times<'a>(
        &self,
        idx: usize,
        offset: u64,
        bytes: &'a [u8],
    ) -> Result<TimestampsReader<'a>> {
        let reader = TimestampsReader::open(bytes, self.paging())
            .map_err(|error| self.corrupt_page(offset, error))?;
        self.check_slots(idx, offset, reader.lens())?;
        Ok(reader)
    }

    fn check_slots(&self, idx: usize, offset: u64, lens: &[u32]) -> Result<()> {
        if lens.len() != self.slices()[idx].slots as usize {
            return Err(self.corrupt(offset, "timestamps of each slot"));
        }
        Ok(())
    }

    fn range(&self, offset: u64, size: usize) -> Result<&[u8]> {
        let start = usize::try_from(offset).ok();
        let range = start.and_then(|start| Some(start..start.checked_add(size)?));
        range
            .and_then(|range| self.bytes.get(range))
            .ok_or_else(|| self.corrupt(offset, "bytes inside the file"))
    }
}

/// Splits a column with own times into times and values.
fn split_own(bytes: &[u8]) -> std::result::Result<(&[u8], &[u8]), codec::Error> {
    let mut reader = Reader::new(bytes);
    let size = reader.varint_size(bytes.len())?;
    let times = reader.slice(size)?;
    Ok((times, reader.slice(reader.remaining())?))
}

fn are_in_order(lens: &[u32], times: &[i64], slice: &Slice) -> bool {
    let mut rest = times;
    for &len in lens {
        let Some((slot, after)) = rest.split_at_checked(len as usize) else { return false };
        rest = after;
        let (Some(&first), Some(&last)) = (slot.first(), slot.last()) else { continue };
        if first < slice.min_ts || slice.max_ts < last || !slot.is_sorted_by(|a, b| a < b) {
            return false;
        }
    }
    rest.is_empty()
}

/// The directory of a part. It has a checksum and all that the header says, so the header only counts
/// where there is no directory: what a newer program wrote is not taken for rot.
fn open_directory(bytes: &[u8], name: &Path) -> Result<Directory> {
    let unknown = |version: String| Error::UnknownVersion {
        file: name.to_path_buf(),
        version,
        known: format!("{} with flags {:#x}", format::VERSION, Encoding::KNOWN_FLAGS),
    };
    let (offset, directory) = match directory_bytes(bytes) {
        Ok(found) => found,
        Err(error) => {
            return Err(match version_of(bytes) {
                Some(version) if version != format::VERSION => unknown(version.to_string()),
                _ => corrupt(name, error.offset as u64, error.what),
            });
        }
    };
    if let Some(flags) = directory.first_chunk().map(|flags| u32::from_le_bytes(*flags))
        && Encoding::from_flags(flags).is_none()
    {
        return Err(unknown(format!("{} with flags {flags:#x}", format::VERSION)));
    }
    Directory::decode(directory, offset)
        .map_err(|error| corrupt(name, offset + error.offset as u64, error.what))
}

/// What the header says, if it is one.
fn version_of(bytes: &[u8]) -> Option<u32> {
    let rest = bytes.strip_prefix(&format::MAGIC)?;
    rest.first_chunk().map(|version| u32::from_le_bytes(*version))
}

/// Where the directory is, and its bytes, which are as they were written.
fn directory_bytes(bytes: &[u8]) -> std::result::Result<(u64, &[u8]), codec::Error> {
    let fail = |offset, what| codec::Error { offset, what };
    let end = bytes.len();
    if end < HEADER_SIZE + TRAILER_SIZE {
        return Err(fail(end, "a header and a trailer"));
    }
    let trailer_start = end - TRAILER_SIZE;
    let mut trailer = Reader::new(&bytes[trailer_start..]);
    let (offset, size, checksum) = (trailer.u64()?, trailer.u64()?, trailer.u32()?);
    if trailer.slice(8)? != format::END_MAGIC {
        return Err(fail(trailer_start, "a trailer's magic number"));
    }
    let sizes_agree = HEADER_SIZE as u64 <= offset
        && offset.checked_add(size).is_some_and(|sum| sum == trailer_start as u64);
    if !sizes_agree {
        return Err(fail(trailer_start, "a directory before the trailer"));
    }
    let directory = &bytes[offset as usize..trailer_start];
    if crc32(directory) != checksum {
        return Err(fail(offset as usize, "checksum of the directory"));
    }
    Ok((offset, directory))
}

fn corrupt(name: &Path, offset: u64, what: &str) -> Error {
    Error::Corrupt { file: name.to_path_buf(), offset, what: what.to_string() }
}
