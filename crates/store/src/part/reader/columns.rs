//! Columns of a part: their timestamps and values, decoded on demand from the (mapped) bytes.

use super::Part;
use super::pages::{Check, Page};
use crate::base::narrow::to_u32;
use crate::part::directory::{ColumnTimes, Slice};
use crate::part::page_headers::{PageHeaders, PageKey, PageOf};
use crate::{Error, Result};
use codec::{Paging, Reader, TimestampsOutline, TimestampsReader, ValuesOutline, ValuesReader};
use std::sync::Arc;

/// A column's bytes and what is known of them.
pub struct KnownColumn<'a, T> {
    /// The bytes, behind their checksum.
    pub bytes: &'a [u8],
    /// Their parsed headers.
    pub header: Arc<T>,
}

impl Part {
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
                (PageOf::OwnTimes(to_u32(column)), offset, times)
            }
            ColumnTimes::Shared if self.slice(idx).times_size == 0 => {
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
        let key = self.page_key(idx, PageOf::Values(to_u32(column)));
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
        PageKey { part: self.number, slice: to_u32(idx), page }
    }

    pub(crate) fn shared_times_with(
        &self,
        idx: usize,
        check: Check,
    ) -> Result<Option<TimestampsReader<'_>>> {
        let slice = &self.slice(idx);
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
        let slice = &self.slice(idx);
        times.clear();
        reader
            .read(0..reader.lens().len(), times)
            .map_err(|error| self.corrupt_page(slice.offset, error))?;
        if !are_in_order(reader.lens(), times, slice) {
            return Err(self.corrupt_slice(idx, "increasing timestamps"));
        }
        Ok(())
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
        if lens.len() != self.slice(idx).slots as usize {
            return Err(self.corrupt(offset, "timestamps of each slot"));
        }
        Ok(())
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
