//! Where each page of a stream lies: the pages' sizes, bit-packed, before the first page.
//!
//! A stream of at most one page has no directory: the page is all that is left.

use super::bitpack;
use crate::bytes::Reader;
use crate::error::Error;

/// Appends the directory of pages that end at `ends` (offsets from the first page's start).
pub fn put_directory(ends: &[usize], out: &mut Vec<u8>) {
    if ends.len() < 2 {
        return;
    }
    let mut start = 0;
    let mut sizes = Vec::with_capacity(ends.len());
    for &end in ends {
        sizes.push((end - start) as i64);
        start = end;
    }
    bitpack::put_ints(&sizes, out);
}

/// Where the pages of a stream are among its column's bytes, which are given again to each read.
#[derive(Clone, Debug)]
pub struct Pages {
    /// Where each page starts in the column, and after them the end of the last.
    offsets: Vec<u32>,
}

impl Pages {
    /// Reads the directory of `count` pages and takes everything that is left as the pages. The
    /// reader must have started at the column's first byte, or `origin` bytes behind it.
    pub fn read(reader: &mut Reader<'_>, count: usize, origin: usize) -> Result<Pages, Error> {
        let mut sizes = Vec::new();
        if 2 <= count {
            bitpack::read_ints(reader, count, &mut sizes)?;
        } else if count == 1 {
            sizes.push(reader.remaining() as i64);
        }
        let column_end = u32::try_from(origin + reader.offset() + reader.remaining())
            .map_err(|_| reader.corrupt("column of 4 GiB or more"))?;
        let mut offsets = Vec::with_capacity(count + 1);
        let mut end = column_end - reader.remaining() as u32;
        offsets.push(end);
        for size in sizes {
            end = u32::try_from(size)
                .ok()
                .and_then(|size| end.checked_add(size))
                .filter(|&end| end <= column_end)
                .ok_or_else(|| reader.corrupt("pages reach beyond the column"))?;
            offsets.push(end);
        }
        if end != column_end {
            return Err(reader.corrupt("bytes after the last page"));
        }
        reader.slice(reader.remaining())?;
        Ok(Pages { offsets })
    }

    /// The bytes of one page.
    pub fn page<'a>(&self, column: &'a [u8], page: usize) -> &'a [u8] {
        debug_assert!(self.end() <= column.len(), "the column that was opened");
        &column[self.offsets[page] as usize..self.offsets[page + 1] as usize]
    }

    /// The bytes of one page without its first `skip`, for a decoder that reads ahead.
    pub fn around<'a>(&self, column: &'a [u8], page: usize, skip: usize) -> PageBytes<'a> {
        let start = self.offsets[page] as usize + skip;
        let end = self.offsets[page + 1] as usize;
        PageBytes { and_beyond: &column[start..self.end()], size: end - start }
    }

    /// Bytes of memory that the offsets take.
    pub fn memory_size(&self) -> usize {
        size_of_val(self.offsets.as_slice())
    }

    fn end(&self) -> usize {
        self.offsets.last().map_or(0, |end| *end as usize)
    }
}

/// The rest of a page, and what follows it: a decoder that reads ahead is spared a padded copy.
#[derive(Clone, Copy, Debug)]
pub struct PageBytes<'a> {
    /// From the page's bytes to the end of the last page.
    pub and_beyond: &'a [u8],
    /// How many of these are the page's.
    pub size: usize,
}
