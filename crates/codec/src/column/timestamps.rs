//! The column of timestamps, with the lens of its slots: self-contained.
//!
//! ```text
//! column       mapping and form (1 byte)   slots (varint)   own or shared   body
//! own lists    len of each slot (blocks)
//! shared lists lists (varint)   len of each list (blocks)   list of each slot + 1, or 0 (blocks)
//! body         runs, or a stream of integers; nothing when there are no samples
//! ```
//!
//! A list is stored once however many slots have it. The usual column has one list of one run.

use super::Effort;
use super::bitpack::{put_ints, read_ints};
use super::format::timestamps as format;
use super::integers::{IntegersReader, PageScratch, put_integers, put_plain_integers};
use super::layout::{Layout, Paging, cut_to};
use super::lists::Lists;
use super::runs::{RunsReader, encode_runs};
use super::{SAMPLES_MAX, SLOTS_MAX};
use crate::bytes::{Reader, put_varint};
use crate::error::Error;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Runs that take less than a byte for so many samples are not worth a try at anything else.
const RUNS_GOOD: usize = 32;

/// Appends the column of `timestamps` to `out`; slot `i` has the next `lens[i]` of them.
///
/// # Panics
/// When `lens` do not add up to `timestamps`, or exceed [`SLOTS_MAX`] or [`SAMPLES_MAX`], or the
/// timestamps of a slot are not strictly increasing.
pub fn encode_timestamps(timestamps: &[i64], lens: &[u32], effort: Effort, out: &mut Vec<u8>) {
    let slots = Layout::new(lens, Paging::NEWEST).expect("column within its limits");
    assert!(slots.samples() == timestamps.len(), "lens disagree");
    let lists = Lists::find(timestamps, lens);
    let mut header = Vec::new();
    put_varint(&mut header, lens.len() as u64);
    if !lists.is_shared {
        put_lens(lens, &mut header);
        return put_column(format::OWN_LISTS, &header, timestamps.to_vec(), &slots, effort, out);
    }
    let mut list_lens = Vec::with_capacity(lists.ranges.len());
    let mut distinct = Vec::new();
    for range in &lists.ranges {
        list_lens.push(range.len() as u32);
        distinct.extend_from_slice(&timestamps[range.clone()]);
    }
    put_varint(&mut header, list_lens.len() as u64);
    put_lens(&list_lens, &mut header);
    put_lens(&lists.ids, &mut header);
    let layout = Layout::new(&list_lens, Paging::NEWEST).expect("not more than the column has");
    put_column(format::SHARED_LISTS, &header, distinct, &layout, effort, out);
}

/// Appends the column of `timestamps` to `out`, each slot with its own list and in blocks: the form
/// that no choice depends on. For a caller whose column of [`encode_timestamps`] does not decode to
/// its timestamps.
///
/// # Panics
/// As [`encode_timestamps`].
pub fn encode_timestamps_plainly(timestamps: &[i64], lens: &[u32], out: &mut Vec<u8>) {
    let layout = Layout::new(lens, Paging::NEWEST).expect("column within its limits");
    assert!(layout.samples() == timestamps.len(), "lens disagree");
    out.push(format::OWN_LISTS);
    put_varint(out, lens.len() as u64);
    put_lens(lens, out);
    if !timestamps.is_empty() {
        put_plain_integers(timestamps, &layout, out);
    }
}

fn put_lens(lens: &[u32], out: &mut Vec<u8>) {
    let lens: Vec<i64> = lens.iter().map(|&len| i64::from(len)).collect();
    put_ints(&lens, out);
}

fn put_column(
    mapping: u8,
    header: &[u8],
    lists: Vec<i64>,
    layout: &Layout,
    effort: Effort,
    out: &mut Vec<u8>,
) {
    let runs = encode_runs(&lists, layout);
    let is_good = |runs: &Vec<u8>| runs.len() <= 64 + lists.len() / RUNS_GOOD;
    let mut stream = Vec::new();
    let best = match &runs {
        Some(runs) if is_good(runs) => runs,
        _ => {
            put_integers(lists, layout, effort, &mut stream);
            runs.as_ref().filter(|runs| runs.len() <= stream.len()).unwrap_or(&stream)
        }
    };
    let is_runs = std::ptr::eq(best, &stream);
    out.push(mapping | if is_runs { 0 } else { format::RUNS });
    out.extend_from_slice(header);
    if 0 < layout.samples() {
        out.extend_from_slice(best);
    }
}

/// Reads the slots of a column of timestamps.
#[derive(Debug)]
pub struct TimestampsReader<'a> {
    column: &'a [u8],
    outline: TimestampsOutline,
}

impl<'a> TimestampsReader<'a> {
    /// Parses the headers, and decodes the list of timestamps if there is only one.
    ///
    /// # Errors
    /// When the bytes are not a column of timestamps in such pages.
    pub fn open(column: &'a [u8], paging: Paging) -> Result<TimestampsReader<'a>, Error> {
        Ok(TimestampsReader { column, outline: TimestampsOutline::open(column, paging)? })
    }

    /// How many samples each slot has.
    pub fn lens(&self) -> &[u32] {
        self.outline.lens()
    }

    /// The list of timestamps that every slot with samples has, if they all have the same.
    pub fn grid(&self) -> Option<&[i64]> {
        self.outline.grid()
    }

    /// Appends the timestamps of `slots` to `out`, in slot order.
    ///
    /// # Errors
    /// When the bytes do not decode, or there are no such slots; `out` may then have grown.
    pub fn read(&self, slots: Range<usize>, out: &mut Vec<i64>) -> Result<(), Error> {
        self.outline.read(self.column, slots, out)
    }
}

/// What the headers of a column of timestamps say, without its bytes: worth keeping for the next
/// reader. Each read is given the bytes again; they must be those that it was opened with.
#[derive(Debug)]
pub struct TimestampsOutline {
    paging: Paging,
    lens: Vec<u32>,
    /// How `lens` lie; shared with the columns of values at these timestamps.
    slots: OnceLock<Arc<Layout>>,
    /// The lists, as if they were slots.
    layout: Layout,
    /// The list of each slot, if it is not the slot's own: 0 for none, else 1 + its index.
    ids: Option<Vec<u32>>,
    body: Body,
    /// The list that all slots with samples have, when there is only one.
    grid: Option<Vec<i64>>,
}

#[derive(Debug)]
enum Body {
    Empty,
    Runs(RunsReader),
    Integers(IntegersReader),
}

impl TimestampsOutline {
    /// Parses the headers, and decodes the list of timestamps if there is only one.
    ///
    /// # Errors
    /// When the bytes are not a column of timestamps in such pages.
    pub fn open(column: &[u8], paging: Paging) -> Result<TimestampsOutline, Error> {
        let mut reader = Reader::new(column);
        let form = reader.u8()?;
        if form & !(format::MAPPING_MASK | format::RUNS) != 0 {
            return Err(reader.corrupt("form of timestamps that is not known"));
        }
        let slots = reader.varint_size(SLOTS_MAX)?;
        let (layout, ids, lens) = match form & format::MAPPING_MASK {
            format::OWN_LISTS => {
                let lens = read_lens(&mut reader, slots)?;
                (Layout::new(&lens, paging)?, None, lens)
            }
            _ => {
                let lists = reader.varint_size(slots)?;
                let list_lens = read_lens(&mut reader, lists)?;
                let ids = read_lens(&mut reader, slots)?;
                let lens = slot_lens(&list_lens, &ids, &reader)?;
                (Layout::new(&list_lens, paging)?, Some(ids), lens)
            }
        };
        let body = match form & format::RUNS {
            _ if layout.samples() == 0 => Body::Empty,
            0 => Body::Integers(IntegersReader::open(&mut reader, &layout)?),
            _ => Body::Runs(RunsReader::open(&mut reader, &layout)?),
        };
        if !reader.is_empty() {
            return Err(reader.corrupt("bytes after the column's end"));
        }
        let slots = OnceLock::new();
        let mut outline = TimestampsOutline { paging, lens, slots, layout, ids, body, grid: None };
        outline.grid = outline.read_grid(column)?;
        Ok(outline)
    }

    /// Bytes of memory that it takes, about, with the layout that it shares.
    pub fn memory_size(&self) -> usize {
        let body_size = match &self.body {
            Body::Empty => 0,
            Body::Runs(runs) => runs.memory_size(),
            Body::Integers(integers) => integers.memory_size(),
        };
        // Lens, ids, and starts in two layouts: a number a slot each.
        size_of::<TimestampsOutline>()
            + self.lens.len() * 4 * size_of::<u32>()
            + self.grid.as_ref().map_or(0, |grid| size_of_val(grid.as_slice()))
            + body_size
    }

    /// How the slots' samples lie in columns of values at these timestamps.
    pub fn layout(&self) -> &Arc<Layout> {
        self.slots.get_or_init(|| {
            // Opening has checked what a layout demands of lens.
            Arc::new(Layout::new(&self.lens, self.paging).expect("a column within its limits"))
        })
    }

    /// How many samples each slot has.
    pub fn lens(&self) -> &[u32] {
        &self.lens
    }

    /// The list of timestamps that every slot with samples has, if they all have the same.
    pub fn grid(&self) -> Option<&[i64]> {
        self.grid.as_deref()
    }

    /// Appends the timestamps of `slots` to `out`, in slot order.
    ///
    /// # Errors
    /// When the bytes do not decode, or there are no such slots; `out` may then have grown.
    pub fn read(
        &self,
        column: &[u8],
        slots: Range<usize>,
        out: &mut Vec<i64>,
    ) -> Result<(), Error> {
        let Some(lens) = self.lens.get(slots.clone()) else {
            return Err(Error { offset: 0, what: "no such slot" });
        };
        if let Some(grid) = &self.grid {
            for _ in lens.iter().filter(|&&len| 0 < len) {
                out.extend_from_slice(grid);
            }
            return Ok(());
        }
        match &self.ids {
            None => self.read_lists(column, &slots, out),
            Some(ids) => self.read_shared(column, &ids[slots], out),
        }
    }

    /// The lists of slots that share them: each page is decoded once, and of the page of a single
    /// slot's list no more than lies before its end.
    fn read_shared(&self, column: &[u8], ids: &[u32], out: &mut Vec<i64>) -> Result<(), Error> {
        if let &[id] = ids {
            let Some(list) = (id as usize).checked_sub(1) else { return Ok(()) };
            return self.read_lists(column, &(list..list + 1), out);
        }
        let mut pages: Vec<Option<Vec<i64>>> = vec![None; self.layout.pages()];
        for &id in ids.iter().filter(|&&id| 0 < id) {
            let list = id as usize - 1;
            let page = self.layout.pages_of(&(list..list + 1)).start;
            let lists = self.layout.page_slots(page);
            let decoded = match &mut pages[page] {
                Some(decoded) => decoded,
                empty => {
                    let mut decoded = Vec::new();
                    self.read_lists(column, &lists, &mut decoded)?;
                    empty.insert(decoded)
                }
            };
            let page_start = self.layout.samples_of(&lists).start;
            let samples = self.layout.samples_of(&(list..list + 1));
            out.extend_from_slice(&decoded[samples.start - page_start..samples.end - page_start]);
        }
        Ok(())
    }

    /// Appends the lists of a range of lists.
    fn read_lists(
        &self,
        column: &[u8],
        lists: &Range<usize>,
        out: &mut Vec<i64>,
    ) -> Result<(), Error> {
        if lists.is_empty() {
            return Ok(());
        }
        let layout = &self.layout;
        let mut scratch = PageScratch::default();
        for page in layout.pages_of(lists) {
            let page_lists = layout.page_slots(page);
            let wanted = lists.start.max(page_lists.start)..lists.end.min(page_lists.end);
            let start = out.len();
            match &self.body {
                Body::Empty => {}
                Body::Integers(integers) if wanted.len() == 1 => {
                    let (list, count) = (wanted.start, layout.len(wanted.start));
                    if 0 < count {
                        let place = (page, list);
                        integers.read_slot_start(
                            column,
                            layout,
                            place,
                            count,
                            &mut scratch,
                            out,
                        )?;
                    }
                }
                Body::Integers(integers) => {
                    integers.read(column, layout, page, &wanted, &mut scratch, out)?;
                }
                Body::Runs(runs) => {
                    runs.read_page(column, layout, page, out)?;
                    let samples = layout.samples_of(&wanted);
                    cut_to(samples, layout.samples_of(&page_lists), start, out);
                }
            }
            check_increasing(&out[start..], layout.lens(&wanted))?;
        }
        Ok(())
    }

    fn read_grid(&self, column: &[u8]) -> Result<Option<Vec<i64>>, Error> {
        let mut lists = (0..self.layout.slots()).filter(|&list| 0 < self.layout.len(list));
        let (Some(list), None) = (lists.next(), lists.next()) else { return Ok(None) };
        let mut grid = Vec::new();
        self.read_lists(column, &(list..list + 1), &mut grid)?;
        Ok(Some(grid))
    }
}

fn read_lens(reader: &mut Reader, count: usize) -> Result<Vec<u32>, Error> {
    let mut ints = Vec::new();
    read_ints(reader, count, &mut ints)?;
    let len = |int: i64| u32::try_from(int).map_err(|_| reader.corrupt("len over its limit"));
    ints.into_iter().map(len).collect()
}

/// The lens of slots that share lists.
fn slot_lens(list_lens: &[u32], ids: &[u32], reader: &Reader) -> Result<Vec<u32>, Error> {
    let mut total = 0;
    let mut lens = Vec::with_capacity(ids.len());
    for &id in ids {
        let len = match id.checked_sub(1) {
            None => 0,
            Some(list) => *list_lens
                .get(list as usize)
                .ok_or_else(|| reader.corrupt("slot of a list that is not there"))?,
        };
        total += u64::from(len);
        lens.push(len);
    }
    if (SAMPLES_MAX as u64) < total {
        return Err(reader.corrupt("more samples than a column may have"));
    }
    Ok(lens)
}

fn check_increasing(timestamps: &[i64], lens: impl Iterator<Item = usize>) -> Result<(), Error> {
    let mut start = 0;
    for len in lens {
        if !timestamps[start..start + len].is_sorted_by(|a, b| a < b) {
            return Err(Error { offset: 0, what: "timestamps of a slot do not increase" });
        }
        start += len;
    }
    Ok(())
}
