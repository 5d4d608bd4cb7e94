//! The column of values: which encoding, and back. Every bit comes back, whatever the value.
//!
//! ```text
//! column   kind (low nibble), decimal exponent (high nibble)   body
//! ```
//!
//! A column without samples has no bytes. Lens are not stored: the timestamps' column has them.

use super::Effort;
use super::choose;
use super::decimal;
use super::exceptions::{ExceptionsReader, ExceptionsWriter};
use super::floats::{self, FloatsReader};
use super::format::values as format;
use super::integers::{IntegersReader, PageScratch, put_integers, put_plain_integers};
use super::layout::{Layout, Paging};
use crate::bytes::{Reader, put_i64_zigzag, put_u64};
use crate::error::Error;
use std::ops::Range;
use std::sync::Arc;

/// With more bytes a value, another encoding may be smaller than decimals.
const DECIMAL_SIZE_GOOD: usize = 4;

/// Appends the column of `values` to `out`; slot `i` has the next `lens[i]` of them.
///
/// The lens are not stored: the reader is given them again.
///
/// # Panics
/// When `lens` do not add up to `values`, or exceed [`super::SLOTS_MAX`] or [`super::SAMPLES_MAX`].
pub fn encode_values(values: &[f64], lens: &[u32], effort: Effort, out: &mut Vec<u8>) {
    let layout = Layout::new(lens, Paging::NEWEST).expect("column within its limits");
    assert!(layout.samples() == values.len(), "lens disagree");
    let Some(first) = values.first() else { return };
    if values.iter().all(|value| value.to_bits() == first.to_bits()) {
        return put_constant(*first, out);
    }
    let start = out.len();
    let is_decimal = put_decimals(values, &layout, effort, out);
    if is_decimal && out.len() - start <= values.len() * DECIMAL_SIZE_GOOD {
        return;
    }
    let mut other = Vec::new();
    match effort {
        Effort::Fast => put_bits(values, &layout, effort, &mut other),
        Effort::Dense => put_dense_floats(values, &layout, &mut other),
    }
    if !is_decimal || other.len() < out.len() - start {
        out.truncate(start);
        out.extend_from_slice(&other);
    }
}

/// Appends the column of `values` to `out` as bits in blocks: the form that no choice depends on. For
/// a caller whose column of [`encode_values`] does not decode to its values.
///
/// # Panics
/// As [`encode_values`].
pub fn encode_values_plainly(values: &[f64], lens: &[u32], out: &mut Vec<u8>) {
    let layout = Layout::new(lens, Paging::NEWEST).expect("column within its limits");
    assert!(layout.samples() == values.len(), "lens disagree");
    if values.is_empty() {
        return;
    }
    out.push(format::BITS);
    let bits: Vec<i64> = values.iter().map(|&value| value.to_bits() as i64).collect();
    put_plain_integers(&bits, &layout, out);
}

/// The smaller of bits and modelled floats; of a long column, the one that is smaller for a sample.
fn put_dense_floats(values: &[f64], layout: &Layout, out: &mut Vec<u8>) {
    let (mut bits, mut floats) = (Vec::new(), Vec::new());
    let mut try_both = |values: &[f64], layout: &Layout| {
        put_bits(values, layout, Effort::Dense, &mut bits);
        put_floats(values, layout, &mut floats);
    };
    let Some((sample, lens)) = choose::sample(values, layout) else {
        try_both(values, layout);
        return out.extend_from_slice(if bits.len() <= floats.len() { &bits } else { &floats });
    };
    try_both(&sample, &Layout::new(&lens, Paging::NEWEST).expect("not more than the column has"));
    if bits.len() <= floats.len() {
        put_bits(values, layout, Effort::Dense, out);
    } else {
        put_floats(values, layout, out);
    }
}

fn put_constant(value: f64, out: &mut Vec<u8>) {
    let decimal = choose::exponent(&[value])
        .and_then(|exponent| Some((exponent, decimal::mantissa(value, exponent)?)));
    match decimal {
        Some((exponent, mantissa)) => {
            out.push(format::CONSTANT_DECIMAL | exponent << 4);
            put_i64_zigzag(out, mantissa);
        }
        None => {
            out.push(format::CONSTANT_BITS);
            put_u64(out, value.to_bits());
        }
    }
}

/// Appends the column as decimals, unless too few values are; tells whether it did.
fn put_decimals(values: &[f64], layout: &Layout, effort: Effort, out: &mut Vec<u8>) -> bool {
    let Some(exponent) = choose::exponent(values) else { return false };
    let (mut mantissas, mut misses) = (Vec::new(), Vec::new());
    decimal::mantissas(values, exponent, &mut mantissas, &mut misses);
    if misses.is_empty() {
        out.push(format::DECIMALS | exponent << 4);
    } else {
        let Some(exceptions) = ExceptionsWriter::collect(values, &misses) else { return false };
        out.push(format::DECIMALS | format::WITH_EXCEPTIONS | exponent << 4);
        exceptions.put(&misses, layout, out);
    }
    put_integers(mantissas, layout, effort, out);
    true
}

fn put_bits(values: &[f64], layout: &Layout, effort: Effort, out: &mut Vec<u8>) {
    out.push(format::BITS);
    let bits = values.iter().map(|&value| value.to_bits() as i64).collect();
    put_integers(bits, layout, effort, out);
}

fn put_floats(values: &[f64], layout: &Layout, out: &mut Vec<u8>) {
    out.push(format::MODELLED_FLOATS);
    floats::put_floats(values, layout, out);
}

/// Reads the slots of a column of values; decodes only the pages that are asked for.
#[derive(Debug)]
pub struct ValuesReader<'a> {
    column: &'a [u8],
    outline: ValuesOutline,
}

impl<'a> ValuesReader<'a> {
    /// Parses the headers of a column that was encoded with the same `lens`, in such pages.
    ///
    /// # Errors
    /// When the bytes are not such a column.
    pub fn open(column: &'a [u8], lens: &[u32], paging: Paging) -> Result<ValuesReader<'a>, Error> {
        let outline = ValuesOutline::open(column, Arc::new(Layout::new(lens, paging)?))?;
        Ok(ValuesReader { column, outline })
    }

    /// Appends the values of `slots` to `out`, in slot order.
    ///
    /// # Errors
    /// When the bytes do not decode, or there are no such slots; `out` may then have grown.
    pub fn read(&self, slots: Range<usize>, out: &mut Vec<f64>) -> Result<(), Error> {
        self.outline.read(self.column, slots, &mut ColumnScratch::default(), out)
    }
}

/// What the headers of a column of values say, without its bytes: worth keeping for the next
/// reader, since parsing them and building a model takes longer than decoding a page.
///
/// Each read is given the bytes again; they must be those that it was opened with.
#[derive(Debug)]
pub struct ValuesOutline {
    layout: Arc<Layout>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Constant(f64),
    Decimals { exponent: u8, mantissas: IntegersReader, exceptions: Option<ExceptionsReader> },
    Bits(IntegersReader),
    Floats(FloatsReader),
}

/// Buffers that reads share.
#[derive(Default)]
pub struct ColumnScratch {
    page: PageScratch,
    integers: Vec<i64>,
}

impl ValuesOutline {
    /// Parses the headers of a column whose slots lie as `layout` says.
    ///
    /// # Errors
    /// When the bytes are not such a column.
    pub fn open(column: &[u8], layout: Arc<Layout>) -> Result<ValuesOutline, Error> {
        let mut reader = Reader::new(column);
        let body = if layout.samples() == 0 {
            Body::Constant(0.0)
        } else {
            Body::open(&mut reader, &layout)?
        };
        if !reader.is_empty() {
            return Err(reader.corrupt("bytes after the column's end"));
        }
        Ok(ValuesOutline { layout, body })
    }

    /// Bytes of memory that it takes, about, the layout apart, which others share.
    pub fn memory_size(&self) -> usize {
        let body_size = match &self.body {
            Body::Constant(_) => 0,
            Body::Decimals { mantissas, exceptions, .. } => {
                mantissas.memory_size()
                    + exceptions.as_ref().map_or(0, ExceptionsReader::memory_size)
            }
            Body::Bits(bits) => bits.memory_size(),
            Body::Floats(floats) => floats.memory_size(),
        };
        size_of::<ValuesOutline>() + body_size
    }

    /// Appends the values of `slots` to `out`, in slot order.
    ///
    /// # Errors
    /// As [`ValuesReader::read`].
    pub fn read(
        &self,
        column: &[u8],
        slots: Range<usize>,
        scratch: &mut ColumnScratch,
        out: &mut Vec<f64>,
    ) -> Result<(), Error> {
        self.layout.check(&slots)?;
        let count = self.layout.samples_of(&slots).len();
        if count == 0 {
            return Ok(());
        }
        if let Body::Constant(value) = self.body {
            out.resize(out.len() + count, value);
            return Ok(());
        }
        for page in self.layout.pages_of(&slots) {
            let page_slots = self.layout.page_slots(page);
            let wanted = slots.start.max(page_slots.start)..slots.end.min(page_slots.end);
            self.read_page(column, page, &wanted, scratch, out)?;
        }
        Ok(())
    }

    fn read_page(
        &self,
        column: &[u8],
        page: usize,
        slots: &Range<usize>,
        scratch: &mut ColumnScratch,
        out: &mut Vec<f64>,
    ) -> Result<(), Error> {
        let layout = &*self.layout;
        let samples = layout.samples_of(slots);
        let integers = &mut scratch.integers;
        integers.clear();
        match &self.body {
            Body::Constant(_) => {}
            Body::Decimals { exponent, mantissas, exceptions } => {
                mantissas.read(column, layout, page, slots, &mut scratch.page, integers)?;
                let start = out.len();
                decimal::decimals(integers, *exponent, out);
                if let Some(exceptions) = exceptions {
                    exceptions.apply(column, layout, page, &samples, &mut out[start..])?;
                }
            }
            Body::Bits(bits) => {
                bits.read(column, layout, page, slots, &mut scratch.page, integers)?;
                out.extend(integers.iter().map(|&bits| f64::from_bits(bits as u64)));
            }
            Body::Floats(floats) => {
                floats.read(column, layout, page, &samples, &mut scratch.page.pco, out)?;
            }
        }
        Ok(())
    }

    /// Appends the values `wanted` of one slot to `out`, counted from the slot's first. Decodes
    /// its page only as far as that takes.
    ///
    /// # Errors
    /// As [`ValuesReader::read`].
    pub fn read_slot(
        &self,
        column: &[u8],
        slot: usize,
        wanted: Range<usize>,
        scratch: &mut ColumnScratch,
        out: &mut Vec<f64>,
    ) -> Result<(), Error> {
        let layout = &*self.layout;
        layout.check(&(slot..slot.saturating_add(1)))?;
        if layout.len(slot) < wanted.end || wanted.end < wanted.start {
            return Err(Error { offset: 0, what: "no such sample" });
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let page = layout.pages_of(&(slot..slot + 1)).start;
        let start = layout.samples_of(&(slot..slot + 1)).start;
        let samples = start + wanted.start..start + wanted.end;
        let (place, count) = ((page, slot), wanted.end);
        let integers = &mut scratch.integers;
        integers.clear();
        match &self.body {
            Body::Constant(value) => out.resize(out.len() + wanted.len(), *value),
            Body::Decimals { exponent, mantissas, exceptions } => {
                let page_scratch = &mut scratch.page;
                mantissas.read_slot_start(column, layout, place, count, page_scratch, integers)?;
                let out_start = out.len();
                decimal::decimals(&integers[wanted.start..], *exponent, out);
                if let Some(exceptions) = exceptions {
                    exceptions.apply(column, layout, page, &samples, &mut out[out_start..])?;
                }
            }
            Body::Bits(bits) => {
                let page_scratch = &mut scratch.page;
                bits.read_slot_start(column, layout, place, count, page_scratch, integers)?;
                let wanted = &integers[wanted.start..];
                out.extend(wanted.iter().map(|&bits| f64::from_bits(bits as u64)));
            }
            Body::Floats(floats) => {
                floats.read(column, layout, page, &samples, &mut scratch.page.pco, out)?;
            }
        }
        Ok(())
    }
}

impl Body {
    fn open(reader: &mut Reader<'_>, layout: &Layout) -> Result<Body, Error> {
        let byte = reader.u8()?;
        let exponent = byte >> 4;
        let has_exceptions = byte & format::WITH_EXCEPTIONS != 0;
        let kind = byte & format::KIND_MASK;
        if kind != format::DECIMALS && has_exceptions {
            return Err(reader.corrupt("exceptions to what has none"));
        }
        Ok(match kind {
            format::CONSTANT_DECIMAL => {
                let mut value = Vec::with_capacity(1);
                decimal::decimals(&[reader.i64_zigzag()?], exponent, &mut value);
                Body::Constant(value[0])
            }
            format::CONSTANT_BITS => Body::Constant(f64::from_bits(reader.u64()?)),
            format::DECIMALS => {
                let exceptions = match has_exceptions {
                    true => Some(ExceptionsReader::open(reader, layout)?),
                    false => None,
                };
                let mantissas = IntegersReader::open(reader, layout)?;
                Body::Decimals { exponent, mantissas, exceptions }
            }
            format::BITS => Body::Bits(IntegersReader::open(reader, layout)?),
            format::MODELLED_FLOATS => Body::Floats(FloatsReader::open(reader, layout)?),
            _ => return Err(reader.corrupt("kind of values that is not known")),
        })
    }
}
