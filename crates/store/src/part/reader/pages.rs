//! Pages of a part: where they are, and whether they are what was written.
//!
//! A page's checksum is computed the first time the page is read and remembered as one bit, so that
//! a query for one series does not pay for the whole column again and again. Merge computes it
//! every time, because what it writes replaces what it read.

use super::Part;
use crate::base::narrow::to_usize;
use crate::part::directory::{ColumnTimes, ColumnWord};
use crate::part::format::CHECKSUM_SIZE;
use crate::{Error, Result};
use codec::crc32;
use std::sync::atomic::Ordering;

/// When a page's checksum is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The first time the page is read.
    Once,
    /// Every time.
    Always,
}

/// A page of a slice.
#[derive(Clone, Copy)]
pub(super) enum Page {
    SharedTimes,
    Column(usize),
}

impl Part {
    /// Bytes of a column in the file; 0 if it is empty.
    pub(crate) fn column_size(&self, idx: usize, column: usize) -> usize {
        self.column_words(idx)[column].size()
    }

    pub(in crate::part) fn column_words(&self, idx: usize) -> &[ColumnWord] {
        let slice = &self.slice(idx);
        let first = slice.first_column as usize;
        &self.directory.columns[first..first + slice.columns as usize]
    }

    /// Bytes that each column of a slice takes, with its share of the shared timestamps.
    pub fn column_sizes(&self, idx: usize) -> impl Iterator<Item = u64> + '_ {
        let words = self.column_words(idx);
        let times_size = u64::from(self.slice(idx).times_size);
        let is_shared = |word: &&ColumnWord| word.times() == ColumnTimes::Shared;
        let share = times_size / words.iter().filter(is_shared).count().max(1) as u64;
        let share_of = move |word: &ColumnWord| if is_shared(&word) { share } else { 0 };
        words.iter().map(move |word| word.size() as u64 + share_of(word))
    }

    /// All bytes of a slice, with every checksum checked.
    pub(in crate::part) fn checked_slice_bytes(&self, idx: usize) -> Result<&[u8]> {
        self.check_slice(idx, &mut Err)?;
        let slice = &self.slice(idx);
        self.range(slice.offset, to_usize(self.slice_size(idx)))
    }

    /// Bytes of a slice.
    pub(crate) fn slice_size(&self, idx: usize) -> u64 {
        let columns: u64 = self.column_words(idx).iter().map(|word| word.size() as u64).sum();
        u64::from(self.slice(idx).times_size) + columns
    }

    /// Checks every page of a slice, whatever is known of it; of those that are rotten `on_rot`
    /// decides.
    pub(crate) fn check_slice(
        &self,
        idx: usize,
        on_rot: &mut dyn FnMut(Error) -> Result<()>,
    ) -> Result<()> {
        if 0 < self.slice(idx).times_size {
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

    /// A page behind its checksum, and where that starts in the file.
    pub(super) fn page(&self, idx: usize, page: Page, check: Check) -> Result<(u64, &[u8])> {
        let slice = &self.slice(idx);
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

    pub(super) fn range(&self, offset: u64, size: usize) -> Result<&[u8]> {
        let start = usize::try_from(offset).ok();
        let range = start.and_then(|start| Some(start..start.checked_add(size)?));
        range
            .and_then(|range| self.bytes.get(range))
            .ok_or_else(|| self.corrupt(offset, "bytes inside the file"))
    }
}
