//! A stream of integers: pages that hold each slot's first values and its residues.
//!
//! ```text
//! stream   form (1 byte)   [base, multiplier]   [model]   directory   pages
//! page     first values (blocks)   [first differences (blocks)]   residues (blocks, or a pco page)
//! ```
//!
//! Values and timestamps both end up here. The stream reaches to the end of its column.

use super::Effort;
use super::bitpack::{ints_size, put_ints, read_ints};
use super::choose;
use super::directory::{PageBytes, Pages, put_directory};
use super::format::integers as format;
use super::layout::{Layout, cut_to};
use super::model::{Model, ModelWriter, Modes, PcoScratch, read_model};
use super::order::{Order, Parts, join};
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
    let mut residue_ends = Vec::with_capacity(layout.pages());
    let mut packed_size = 0;
    let mut parts = Parts::default();
    for page in 0..layout.pages() {
        let slots = layout.page_slots(page);
        let start = parts.residues.len();
        parts.firsts.clear();
        parts.seconds.clear();
        parts.split(&ints[layout.samples_of(&slots)], layout.lens(&slots), order);
        put_ints(&parts.firsts, &mut firsts);
        put_ints(&parts.seconds, &mut firsts);
        first_ends.push(firsts.len());
        residue_ends.push(parts.residues.len());
        packed_size += ints_size(&parts.residues[start..]);
    }
    let start = out.len();
    let (packing, writer) = fit(&parts.residues, &residue_ends);
    out.push(form | packing << format::PACKING_SHIFT);
    out.extend_from_slice(header);
    put_modelled_pages(writer, &firsts, &first_ends, &residue_ends, out);
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
    residue_ends: &[usize],
    out: &mut Vec<u8>,
) {
    let mut pages = Vec::with_capacity(firsts.len() + residue_ends.last().map_or(0, |end| end / 2));
    let mut ends = Vec::with_capacity(first_ends.len());
    let (mut first_start, mut residue_start) = (0, 0);
    for (&first_end, &residue_end) in first_ends.iter().zip(residue_ends) {
        pages.extend_from_slice(&firsts[first_start..first_end]);
        if residue_start < residue_end {
            writer.put_page(&mut pages);
        }
        (first_start, residue_start) = (first_end, residue_end);
        ends.push(pages.len());
    }
    writer.put_model(out);
    put_directory(&ends, out);
    out.extend_from_slice(&pages);
}

/// A model of the residues, as numbers that are as narrow as pays, and its packing.
fn fit(residues: &[i64], ends: &[usize]) -> (u8, ModelWriter) {
    let mut lens = Vec::with_capacity(ends.len());
    let mut start = 0;
    for &end in ends {
        if start < end {
            lens.push(end - start);
        }
        start = end;
    }
    let (lowest, highest) = super::bitpack::range(residues);
    let is_short = residues.len() <= NARROW_RESIDUES_MAX;
    let fits = |min: i64, max: i64| min <= lowest && highest <= max;
    if is_short && fits(i8::MIN.into(), i8::MAX.into()) {
        let narrow: Vec<i8> = residues.iter().map(|&residue| residue as i8).collect();
        (format::MODELLED_8, ModelWriter::fit(&narrow, lens, Modes::Plain))
    } else if is_short && fits(i16::MIN.into(), i16::MAX.into()) {
        let narrow: Vec<i16> = residues.iter().map(|&residue| residue as i16).collect();
        (format::MODELLED_16, ModelWriter::fit(&narrow, lens, Modes::Plain))
    } else if fits(i32::MIN.into(), i32::MAX.into()) {
        let narrow: Vec<i32> = residues.iter().map(|&residue| residue as i32).collect();
        (format::MODELLED_32, ModelWriter::fit(&narrow, lens, Modes::Plain))
    } else {
        (format::MODELLED_64, ModelWriter::fit(residues, lens, Modes::Plain))
    }
}

/// Reads the pages of a stream.
#[derive(Debug)]
pub struct IntegersReader<'a> {
    order: Order,
    scale: Option<Scale>,
    packing: Packing<'a>,
    pages: Pages<'a>,
}

/// How residues are packed.
#[derive(Debug)]
enum Packing<'a> {
    Blocks,
    Model {
        bytes: &'a [u8],
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

impl<'a> IntegersReader<'a> {
    /// Parses the headers of the stream, which reaches to the reader's end.
    pub fn open(reader: &mut Reader<'a>, layout: &Layout) -> Result<IntegersReader<'a>, Error> {
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
        let pages = Pages::read(reader, layout.pages())?;
        Ok(IntegersReader { order, scale, packing, pages })
    }

    /// Appends the integers of `slots`, which are all of `page`, to `out`.
    pub fn read(
        &self,
        layout: &Layout,
        page: usize,
        slots: &Range<usize>,
        scratch: &mut PageScratch,
        out: &mut Vec<i64>,
    ) -> Result<(), Error> {
        let page_slots = layout.page_slots(page);
        debug_assert!(page_slots.start <= slots.start && slots.end <= page_slots.end);
        let counts = self.order.counts(layout.lens(&page_slots));
        let mut reader = Reader::new(self.pages.page(page));
        let start = out.len();
        if self.order == Order::Zero {
            // Residues are the integers: no detour through the parts.
            self.read_residues(page, &mut reader, counts.residues, &mut scratch.pco, out)?;
            cut_to(layout.samples_of(slots), layout.samples_of(&page_slots), start, out);
        } else {
            let Parts { firsts, seconds, residues } = &mut scratch.parts;
            firsts.clear();
            seconds.clear();
            residues.clear();
            read_ints(&mut reader, counts.firsts, firsts)?;
            read_ints(&mut reader, counts.seconds, seconds)?;
            self.read_residues(page, &mut reader, counts.residues, &mut scratch.pco, residues)?;
            let before = self.order.counts(layout.lens(&(page_slots.start..slots.start)));
            let parts = (
                &firsts[before.firsts..],
                &seconds[before.seconds..],
                &residues[before.residues..],
            );
            join(parts, layout.lens(slots), self.order, out);
        }
        if let Some(scale) = &self.scale {
            scale.multiply(&mut out[start..]);
        }
        Ok(())
    }

    fn read_residues(
        &self,
        page: usize,
        reader: &mut Reader,
        count: usize,
        scratch: &mut PcoScratch,
        out: &mut Vec<i64>,
    ) -> Result<(), Error> {
        match &self.packing {
            Packing::Blocks => {
                read_ints(reader, count, out)?;
                if !reader.is_empty() {
                    return Err(reader.corrupt("bytes after a page's last block"));
                }
                Ok(())
            }
            Packing::Model { bytes, number, model } => {
                let model = model.get_or_init(|| AnyModel::read(bytes, *number).map(Box::new));
                let bytes = self.pages.around(page, reader.offset());
                model.as_ref().map_err(Clone::clone)?.read_page(bytes, count, scratch, out)
            }
        }
    }
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
        len: usize,
        scratch: &mut PcoScratch,
        out: &mut Vec<i64>,
    ) -> Result<(), Error> {
        match self {
            AnyModel::Narrow8(model) => model.read_page(bytes, len, scratch, &mut |window| {
                out.extend(window.iter().map(|&residue| i64::from(residue)));
            }),
            AnyModel::Narrow16(model) => model.read_page(bytes, len, scratch, &mut |window| {
                out.extend(window.iter().map(|&residue| i64::from(residue)));
            }),
            AnyModel::Narrow32(model) => model.read_page(bytes, len, scratch, &mut |window| {
                out.extend(window.iter().map(|&residue| i64::from(residue)));
            }),
            AnyModel::Wide(model) => model.read_page(bytes, len, scratch, &mut |window| {
                out.extend_from_slice(window);
            }),
        }
    }
}
