//! Reads a part: the directory is in memory, columns are decoded from the (mapped) bytes on demand.
//!
//! ```text
//! opening ──► Part: directory, slices ──► pages: where, checksums ──► columns: timestamps, values
//!                                   └───► days: who has a sample on a day
//! ```

mod columns;
mod days;
mod opening;
mod pages;

use super::directory::{Directory, Slice};
use super::format::{self, Encoding, HEADER_SIZE};
use super::slices::SliceList;
use crate::{Error, Result};
use index::BlockRef;
use model::TimeRange;
use opening::open_directory;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub use super::directory::ColumnTimes;
pub use columns::KnownColumn;
pub use pages::Check;

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

/// The next [`Part::number`].
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

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
    pub fn directory_size(&self) -> usize {
        self.directory.slices.memory_size()
            + size_of_val(self.directory.columns.as_slice())
            + size_of_val(self.directory.days.as_slice())
            + size_of_val(&*self.checked)
    }

    /// Bytes of memory that a part in memory takes.
    pub fn memory_size(&self) -> usize {
        self.bytes.len() + self.directory_size()
    }

    /// Lets the system take the part's pages out of memory; see [`vfs::Bytes::release`].
    pub fn release(&self) {
        self.bytes.release();
    }

    /// All slices, sorted by (series, time).
    pub fn slices(&self) -> &SliceList {
        &self.directory.slices
    }

    /// The slice of that index.
    #[inline]
    pub fn slice(&self, idx: usize) -> Slice {
        self.directory.slices.get(idx)
    }

    /// The slices of the block that starts at `series_start`, by time.
    pub fn slices_of(&self, series_start: u32) -> impl Iterator<Item = Slice> {
        let range = self.find(series_start);
        self.directory.slices.iter_from(range.start).take(range.len())
    }

    /// The indexes of the slices of the block that starts at `series_start`.
    pub fn find(&self, series_start: u32) -> Range<usize> {
        self.directory.slices.find(series_start)
    }

    /// Fails when a slice does not have the shape of its block: then the part was written beside
    /// another index, and its series are others.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn check_block(&self, idx: usize, block: &BlockRef) -> Result<()> {
        let slice = &self.slice(idx);
        match (slice.capacity, slice.columns) == (block.capacity, block.columns) {
            true => Ok(()),
            false => Err(self.corrupt_slice(idx, "the block that the index knows")),
        }
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The error for bytes of the slice that decode to nonsense.
    pub(crate) fn corrupt_slice(&self, idx: usize, what: &str) -> Error {
        self.corrupt(self.slice(idx).offset, what)
    }

    /// The error of a decoder at work on the page at `offset`.
    pub(crate) fn corrupt_page(&self, offset: u64, error: codec::Error) -> Error {
        self.corrupt(offset + error.offset as u64, error.what)
    }

    pub(super) fn corrupt(&self, offset: u64, what: &str) -> Error {
        corrupt(&self.name, offset, what)
    }
}

fn corrupt(name: &Path, offset: u64, what: &str) -> Error {
    Error::Corrupt { file: name.to_path_buf(), offset, what: what.to_string() }
}
