//! Lists of timestamps as runs of constant step: a few bytes for any number of samples.
//!
//! ```text
//! runs   base, multiplier   directory   pages
//! page   for each list that is not empty: first, relative to the list before (zigzag varint);
//!        until all are there: step (varint), how many times (varint)
//! ```

use super::directory::{Pages, put_directory};
use super::layout::Layout;
use super::scale::Scale;
use crate::bytes::{Reader, put_i64_zigzag, put_varint};
use crate::error::Error;

/// The runs of the lists, unless they are so short that a stream of integers will be smaller.
pub fn encode_runs(timestamps: &[i64], layout: &Layout) -> Option<Vec<u8>> {
    let scale = Scale::find(timestamps);
    let mut pages = Vec::new();
    let mut ends = Vec::with_capacity(layout.pages());
    let mut scaled = Vec::new();
    for page in 0..layout.pages() {
        let slots = layout.page_slots(page);
        let samples = layout.samples_of(&slots);
        let size_max = pages.len() + samples.len() / 4 + 8 * slots.len();
        let mut before = 0;
        for slot in slots {
            let list = &timestamps[layout.samples_of(&(slot..slot + 1))];
            scaled.clear();
            scaled.extend_from_slice(list);
            scale.divide(&mut scaled);
            if let Some(&first) = scaled.first() {
                put_i64_zigzag(&mut pages, first.wrapping_sub(before));
                before = first;
                put_steps(&scaled, size_max, &mut pages);
            }
            if size_max < pages.len() {
                return None;
            }
        }
        ends.push(pages.len());
    }
    let mut out = Vec::with_capacity(pages.len() + 16);
    scale.put(&mut out);
    put_directory(&ends, &mut out);
    out.extend_from_slice(&pages);
    Some(out)
}

/// Appends the runs of a list; may stop early beyond `size_max`.
fn put_steps(list: &[i64], size_max: usize, out: &mut Vec<u8>) {
    let step_at = |i: usize| list[i].wrapping_sub(list[i - 1]) as u64;
    let mut start = 1;
    while start < list.len() && out.len() <= size_max {
        let step = step_at(start);
        let mut end = start + 1;
        while end < list.len() && step_at(end) == step {
            end += 1;
        }
        put_varint(out, step);
        put_varint(out, (end - start) as u64);
        start = end;
    }
}

/// Reads the pages of runs.
#[derive(Debug)]
pub struct RunsReader {
    scale: Scale,
    pages: Pages,
}

impl RunsReader {
    /// Parses the headers; the pages reach to the reader's end.
    pub fn open(reader: &mut Reader<'_>, layout: &Layout) -> Result<RunsReader, Error> {
        let scale = Scale::read(reader)?;
        Ok(RunsReader { scale, pages: Pages::read(reader, layout.pages(), 0)? })
    }

    /// Bytes of memory that the parsed headers take.
    pub fn memory_size(&self) -> usize {
        self.pages.memory_size()
    }

    /// Appends all lists of a page to `out`.
    pub fn read_page(
        &self,
        column: &[u8],
        layout: &Layout,
        page: usize,
        out: &mut Vec<i64>,
    ) -> Result<(), Error> {
        let mut reader = Reader::new(self.pages.page(column, page));
        let start = out.len();
        let mut first = 0i64;
        for len in layout.lens(&layout.page_slots(page)).filter(|&len| 0 < len) {
            first = first.wrapping_add(reader.i64_zigzag()?);
            let mut value = first;
            out.push(value);
            let mut left = len - 1;
            while 0 < left {
                let step = reader.varint()? as i64;
                let count = reader.varint_size(left)?;
                if count == 0 {
                    return Err(reader.corrupt("run of no samples"));
                }
                out.extend((0..count).map(|_| {
                    value = value.wrapping_add(step);
                    value
                }));
                left -= count;
            }
        }
        if !reader.is_empty() {
            return Err(reader.corrupt("bytes after a page's last run"));
        }
        self.scale.multiply(&mut out[start..]);
        Ok(())
    }
}
