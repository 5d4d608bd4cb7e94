//! A stream of integers: pages that hold each slot's first values and its residues.
//!
//! ```text
//! stream   form (1 byte)   [base, multiplier]   [model]   directory   pages
//! page     first values (blocks)   [first differences (blocks)]   residues (blocks, or a pco page)
//! ```
//!
//! Values and timestamps both end up here. The stream reaches to the end of its column.

use super::Effort;
use super::bitpack::{ints_size, put_ints, range, read_ints, read_some_ints};
use super::choose;
use super::directory::{PageBytes, Pages, put_directory};
use super::format::integers as format;
use super::layout::Layout;
use super::model::{Extent, MODEL_SIZE, Model, ModelWriter, Modes, PcoScratch, read_model};
use super::order::{Counts, Order, Parts, join};
use super::scale::Scale;
use crate::bytes::Reader;
use crate::error::Error;
use std::ops::Range;
use std::sync::OnceLock;

/// With fewer residues a model does not pay for its table.
const MODEL_RESIDUES_MIN: usize = 192;
/// With fewer residues a model's table of narrow numbers pays; with more, wider ones are faster.
const NARROW_RESIDUES_MAX: usize = 1 << 14;

/// Appends the stream of `ints`; they are used up.
pub fn put_integers(mut ints: Vec<i64>, layout: &Layout, effort: Effort, out: &mut Vec<u8>) {
    assert!(ints.len() == layout.samples(), "lens disagree");
    let scale = Scale::find(&ints);
    let mut form = 0;
    let mut header = Vec::new();
    if 1 < scale.multiplier {
        scale.divide(&mut ints);
        scale.put(&mut header);
        form |= format::SCALED;
    }
    let order = choose::order(&ints, layout, effort);
    form |= order.number();
    let is_long = MODEL_RESIDUES_MIN <= order.counts(layout.lens(&(0..layout.slots()))).residues;
    if effort == Effort::Dense && is_long {
        put_dense(&ints, layout, order, (form, &header), out);
    } else {
        out.push(form | format::PACKED << format::PACKING_SHIFT);
        out.extend_from_slice(&header);
        put_packed(&ints, layout, order, out);
    }
}

/// Appends the stream of `ints` as they are, in blocks.
pub fn put_plain_integers(ints: &[i64], layout: &Layout, out: &mut Vec<u8>) {
    assert!(ints.len() == layout.samples(), "lens disagree");
    out.push(Order::Zero.number() | format::PACKED << format::PACKING_SHIFT);
    put_packed(ints, layout, Order::Zero, out);
}

/// Directory and pages, bit-packed.
fn put_packed(ints: &[i64], layout: &Layout, order: Order, out: &mut Vec<u8>) {
    let mut pages = Vec::with_capacity(ints.len());
    let mut ends = Vec::with_capacity(layout.pages());
    let mut parts = Parts::default();
    for page in 0..layout.pages() {
        let slots = layout.page_slots(page);
        let samples = &ints[layout.samples_of(&slots)];
        if order == Order::Zero {
            // Residues are the values themselves: no need to copy them.
            put_ints(samples, &mut pages);
        } else {
            parts.firsts.clear();
            parts.seconds.clear();
            parts.residues.clear();
            parts.split(samples, layout.lens(&slots), order);
            put_ints(&parts.firsts, &mut pages);
            put_ints(&parts.seconds, &mut pages);
            put_ints(&parts.residues, &mut pages);
        }
        ends.push(pages.len());
    }
    put_directory(&ends, out);
    out.extend_from_slice(&pages);
}

/// The smaller of modelled and bit-packed.
fn put_dense(
    ints: &[i64],
    layout: &Layout,
    order: Order,
    (form, header): (u8, &[u8]),
    out: &mut Vec<u8>,
) {
    let mut firsts = Vec::new();
    let mut first_ends = Vec::with_capacity(layout.pages());
    let mut residues = Residues::default();
    let mut packed_size = 0;
    let mut parts = Parts::default();
    for page in 0..layout.pages() {
        let slots = layout.page_slots(page);
        parts.firsts.clear();
        parts.seconds.clear();
        parts.residues.clear();
        parts.split(&ints[layout.samples_of(&slots)], layout.lens(&slots), order);
        put_ints(&parts.firsts, &mut firsts);
        put_ints(&parts.seconds, &mut firsts);
        first_ends.push(firsts.len());
        packed_size += ints_size(&parts.residues);
        residues.push_page(&parts.residues);
    }
    let start = out.len();
    let (packing, writer) = residues.fit();
    out.push(form | packing << format::PACKING_SHIFT);
    out.extend_from_slice(header);
    put_modelled_pages(writer, &firsts, &first_ends, &residues.page_lens, out);
    let modelled_size = out.len() - start - 1 - header.len() - firsts.len();
    if packed_size <= modelled_size {
        out.truncate(start);
        out.push(form | format::PACKED << format::PACKING_SHIFT);
        out.extend_from_slice(header);
        put_packed(ints, layout, order, out);
    }
}

fn put_modelled_pages(
    mut writer: ModelWriter,
    firsts: &[u8],
    first_ends: &[usize],
    page_lens: &[usize],
    out: &mut Vec<u8>,
) {
    let mut pages = Vec::new();
    let mut ends = Vec::with_capacity(first_ends.len());
    let mut first_start = 0;
    for (&first_end, &len) in first_ends.iter().zip(page_lens) {
        pages.extend_from_slice(&firsts[first_start..first_end]);
        if 0 < len {
            writer.put_page(&mut pages);
        }
        first_start = first_end;
        ends.push(pages.len());
    }
    writer.put_model(out);
    put_directory(&ends, out);
    out.extend_from_slice(&pages);
}

/// All residues of a column, in half the memory as long as they fit.
#[derive(Default)]
struct Residues {
    narrow: Vec<i32>,
    /// Empty, or all of them.
    wide: Vec<i64>,
    lowest: i64,
    highest: i64,
    /// How many each page has.
    page_lens: Vec<usize>,
}

impl Residues {
    fn push_page(&mut self, residues: &[i64]) {
        let (lowest, highest) = range(residues);
        self.lowest = self.lowest.min(lowest);
        self.highest = self.highest.max(highest);
        self.page_lens.push(residues.len());
        if self.wide.is_empty() && self.fits(i32::MIN.into(), i32::MAX.into()) {
            self.narrow.extend(residues.iter().map(|&residue| residue as i32));
        } else {
            self.wide.extend(self.narrow.drain(..).map(i64::from));
            self.wide.extend_from_slice(residues);
        }
    }

    fn fits(&self, lowest: i64, highest: i64) -> bool {
        lowest <= self.lowest && self.highest <= highest
    }

    /// A model of the residues, as numbers that are as narrow as pays, and its packing.
    fn fit(&self) -> (u8, ModelWriter) {
        let lens = self.page_lens.iter().copied().filter(|&len| 0 < len).collect();
        let is_short = self.narrow.len() <= NARROW_RESIDUES_MAX;
        if !self.wide.is_empty() {
            (format::MODELLED_64, ModelWriter::fit(&self.wide, lens, Modes::Plain))
        } else if is_short && self.fits(i8::MIN.into(), i8::MAX.into()) {
            let narrow: Vec<i8> = self.narrow.iter().map(|&residue| residue as i8).collect();
            (format::MODELLED_8, ModelWriter::fit(&narrow, lens, Modes::Plain))
        } else if is_short && self.fits(i16::MIN.into(), i16::MAX.into()) {
            let narrow: Vec<i16> = self.narrow.iter().map(|&residue| residue as i16).collect();
            (format::MODELLED_16, ModelWriter::fit(&narrow, lens, Modes::Plain))
        } else {
            (format::MODELLED_32, ModelWriter::fit(&self.narrow, lens, Modes::Plain))
        }
    }
}

/// Reads the pages of a stream. It owns what the headers say and is given the column's bytes with
/// each read, so that it can be kept for the next query.
#[derive(Debug)]
pub struct IntegersReader {
    order: Order,
    scale: Option<Scale>,
    packing: Packing,
    pages: Pages,
}

/// How residues are packed.
#[derive(Debug)]
enum Packing {
    Blocks,
    Model {
        /// Where the model is in the column.
        bytes: Range<usize>,
        number: u8,
        /// Built when the first page is read: it takes some microseconds.
        model: OnceLock<Result<Box<AnyModel>, Error>>,
    },
}

#[derive(Debug)]
enum AnyModel {
    Narrow8(Model<i8>),
    Narrow16(Model<i16>),
    Narrow32(Model<i32>),
    Wide(Model<i64>),
}

/// Buffers that are reused from page to page.
#[derive(Default)]
pub struct PageScratch {
    /// A page taken apart.
    parts: Parts,
    /// What pco decodes a batch in.
    pub pco: PcoScratch,
}

impl IntegersReader {
    /// Parses the headers of the stream, which reaches to the reader's end.
    pub fn open(reader: &mut Reader<'_>, layout: &Layout) -> Result<IntegersReader, Error> {
        let form = reader.u8()?;
        let order = Order::from_number(form & format::ORDER_MASK)
            .ok_or_else(|| reader.corrupt("order of differences over 2"))?;
        let number = form >> format::PACKING_SHIFT & format::PACKING_MASK;
        if format::MODELLED_64 < number || form & !0x3f != 0 {
            return Err(reader.corrupt("packing of integers that is not known"));
        }
        let is_scaled = form & format::SCALED != 0;
        let scale = if is_scaled { Some(Scale::read(reader)?) } else { None };
        let packing = match number {
            format::PACKED => Packing::Blocks,
            _ => Packing::Model { bytes: read_model(reader)?, number, model: OnceLock::new() },
        };
        let pages = Pages::read(reader, layout.pages(), 0)?;
        Ok(IntegersReader { order, scale, packing, pages })
    }

    /// Bytes of memory that the parsed headers and the model take.
    pub fn memory_size(&self) -> usize {
        let model_size = match &self.packing {
            Packing::Blocks => 0,
            Packing::Model { .. } => MODEL_SIZE,
        };
        self.pages.memory_size() + model_size
    }

    /// Appends the first `count` integers of a slot of `page` to `out`; decodes no more of the
    /// page than that takes.
    pub fn read_slot_start(
        &self,
        column: &[u8],
        layout: &Layout,
        (page, slot): (usize, usize),
        count: usize,
        scratch: &mut PageScratch,
        out: &mut Vec<i64>,
    ) -> Result<(), Error> {
        debug_assert!(0 < count && count <= layout.len(slot));
        let page_slots = layout.page_slots(page);
        let counts = self.order.counts(layout.lens(&page_slots));
        let before = self.order.counts(layout.lens(&(page_slots.start..slot)));
        let own = self.order.counts([count].into_iter());
        let place = PagePlace { column, page, counts, wanted: wanted(before, own) };
        self.read_parts(&place, scratch)?;
        let Parts { firsts, seconds, residues } = &scratch.parts;
        let parts = (
            &firsts[before.firsts..before.firsts + own.firsts],
            &seconds[before.seconds..before.seconds + own.seconds],
            &residues[..],
        );
        let start = out.len();
        join(parts, [count].into_iter(), self.order, out);
        if let Some(scale) = &self.scale {
            scale.multiply(&mut out[start..]);
        }
        Ok(())
    }

    /// Appends the integers of `slots`, which are all of `page`, to `out`; decodes no more of the
    /// page than up to the last of them.
    pub fn read(
        &self,
        column: &[u8],
        layout: &Layout,
        page: usize,
        slots: &Range<usize>,
        scratch: &mut PageScratch,
        out: &mut Vec<i64>,
    ) -> Result<(), Error> {
        let page_slots = layout.page_slots(page);
        debug_assert!(page_slots.start <= slots.start && slots.end <= page_slots.end);
        let counts = self.order.counts(layout.lens(&page_slots));
        let before = self.order.counts(layout.lens(&(page_slots.start..slots.start)));
        let own = self.order.counts(layout.lens(slots));
        let place = PagePlace { column, page, counts, wanted: wanted(before, own) };
        let start = out.len();
        if self.order == Order::Zero {
            // Residues are the integers: no detour through the parts.
            let mut reader = Reader::new(self.pages.page(column, page));
            self.read_residues(&place, &mut reader, &mut scratch.pco, out)?;
        } else {
            self.read_parts(&place, scratch)?;
            let Parts { firsts, seconds, residues } = &scratch.parts;
            let parts = (
                &firsts[before.firsts..before.firsts + own.firsts],
                &seconds[before.seconds..before.seconds + own.seconds],
                &residues[..],
            );
            join(parts, layout.lens(slots), self.order, out);
        }
        if let Some(scale) = &self.scale {
            scale.multiply(&mut out[start..]);
        }
        Ok(())
    }

    /// Reads all first values and differences of a page, and the residues that are wanted.
    fn read_parts(&self, place: &PagePlace<'_>, scratch: &mut PageScratch) -> Result<(), Error> {
        let mut reader = Reader::new(self.pages.page(place.column, place.page));
        let Parts { firsts, seconds, residues } = &mut scratch.parts;
        firsts.clear();
        seconds.clear();
        residues.clear();
        read_ints(&mut reader, place.counts.firsts, firsts)?;
        read_ints(&mut reader, place.counts.seconds, seconds)?;
        self.read_residues(place, &mut reader, &mut scratch.pco, residues)
    }

    fn read_residues(
        &self,
        place: &PagePlace<'_>,
        reader: &mut Reader,
        scratch: &mut PcoScratch,
        out: &mut Vec<i64>,
    ) -> Result<(), Error> {
        let PagePlace { column, page, .. } = *place;
        match &self.packing {
            Packing::Blocks => {
                read_some_ints(reader, &place.wanted, out)?;
                if place.wanted.end == place.counts.residues && !reader.is_empty() {
                    return Err(reader.corrupt("bytes after a page's last block"));
                }
                Ok(())
            }
            Packing::Model { bytes, number, model } => {
                let read_model = || AnyModel::read(&column[bytes.clone()], *number).map(Box::new);
                let model = model.get_or_init(read_model);
                let bytes = self.pages.around(column, page, reader.offset());
                let extent = Extent { len: place.counts.residues, wanted: place.wanted.clone() };
                model.as_ref().map_err(Clone::clone)?.read_page(bytes, extent, scratch, out)
            }
        }
    }
}

/// Which page of a column to read, and which of its residues.
struct PagePlace<'a> {
    column: &'a [u8],
    page: usize,
    /// What the page has in all.
    counts: Counts,
    /// Residues of the page.
    wanted: Range<usize>,
}

/// The residues of slots that have `own` counts and stand behind slots that have `before`.
fn wanted(before: Counts, own: Counts) -> Range<usize> {
    before.residues..before.residues + own.residues
}

impl AnyModel {
    fn read(bytes: &[u8], number: u8) -> Result<AnyModel, Error> {
        Ok(match number {
            format::MODELLED_8 => AnyModel::Narrow8(Model::read(bytes, Modes::Plain)?),
            format::MODELLED_16 => AnyModel::Narrow16(Model::read(bytes, Modes::Plain)?),
            format::MODELLED_32 => AnyModel::Narrow32(Model::read(bytes, Modes::Plain)?),
            _ => AnyModel::Wide(Model::read(bytes, Modes::Plain)?),
        })
    }

    fn read_page(
        &self,
        bytes: PageBytes,
        extent: Extent,
        scratch: &mut PcoScratch,
        out: &mut Vec<i64>,
    ) -> Result<(), Error> {
        match self {
            AnyModel::Narrow8(model) => model.read_page(bytes, extent, scratch, &mut |window| {
                out.extend(window.iter().map(|&residue| i64::from(residue)));
            }),
            AnyModel::Narrow16(model) => model.read_page(bytes, extent, scratch, &mut |window| {
                out.extend(window.iter().map(|&residue| i64::from(residue)));
            }),
            AnyModel::Narrow32(model) => model.read_page(bytes, extent, scratch, &mut |window| {
                out.extend(window.iter().map(|&residue| i64::from(residue)));
            }),
            AnyModel::Wide(model) => model.read_page(bytes, extent, scratch, &mut |window| {
                out.extend_from_slice(window);
            }),
        }
    }
}
