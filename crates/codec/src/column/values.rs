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
use super::integers::{IntegersReader, PageScratch, put_integers};
use super::layout::Layout;
use crate::bytes::{Reader, put_i64_zigzag, put_u64};
use crate::error::Error;
use std::ops::Range;

/// With more bytes a value, another encoding may be smaller than decimals.
const DECIMAL_SIZE_GOOD: usize = 4;

/// Appends the column of `values` to `out`; slot `i` has the next `lens[i]` of them.
///
/// The lens are not stored: the reader is given them again.
///
/// # Panics
/// When `lens` do not add up to `values`, or exceed [`super::SLOTS_MAX`] or [`super::SAMPLES_MAX`].
pub fn encode_values(values: &[f64], lens: &[u32], effort: Effort, out: &mut Vec<u8>) {
    let layout = Layout::new(lens).expect("column within its limits");
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
    try_both(&sample, &Layout::new(&lens).expect("not more than the column has"));
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
    layout: Layout,
    body: Body<'a>,
}

#[derive(Debug)]
enum Body<'a> {
    Constant(f64),
    Decimals {
        exponent: u8,
        mantissas: IntegersReader<'a>,
        exceptions: Option<ExceptionsReader<'a>>,
    },
    Bits(IntegersReader<'a>),
    Floats(FloatsReader<'a>),
}

impl<'a> ValuesReader<'a> {
    /// Parses the headers of a column that was encoded with the same `lens`.
    ///
    /// # Errors
    /// When the bytes are not such a column.
    pub fn open(bytes: &'a [u8], lens: &[u32]) -> Result<ValuesReader<'a>, Error> {
        let layout = Layout::new(lens)?;
        let mut reader = Reader::new(bytes);
        let body = if layout.samples() == 0 {
            Body::Constant(0.0)
        } else {
            Body::open(&mut reader, &layout)?
        };
        if !reader.is_empty() {
            return Err(reader.corrupt("bytes after the column's end"));
        }
        Ok(ValuesReader { layout, body })
    }

    /// Appends the values of `slots` to `out`, in slot order.
    ///
    /// # Errors
    /// When the bytes do not decode, or there are no such slots; `out` may then have grown.
    pub fn read(&self, slots: Range<usize>, out: &mut Vec<f64>) -> Result<(), Error> {
        self.layout.check(&slots)?;
        let count = self.layout.samples_of(&slots).len();
        if count == 0 {
            return Ok(());
        }
        if let Body::Constant(value) = self.body {
            out.resize(out.len() + count, value);
            return Ok(());
        }
        let mut scratch = Scratch::default();
        for page in self.layout.pages_of(&slots) {
            let page_slots = self.layout.page_slots(page);
            let wanted = slots.start.max(page_slots.start)..slots.end.min(page_slots.end);
            self.read_page(page, &wanted, &mut scratch, out)?;
        }
        Ok(())
    }

    fn read_page(
        &self,
        page: usize,
        slots: &Range<usize>,
        scratch: &mut Scratch,
        out: &mut Vec<f64>,
    ) -> Result<(), Error> {
        let layout = &self.layout;
        let integers = &mut scratch.integers;
        integers.clear();
        match &self.body {
            Body::Constant(_) => {}
            Body::Decimals { exponent, mantissas, exceptions } => {
                mantissas.read(layout, page, slots, &mut scratch.page, integers)?;
                let start = out.len();
                decimal::decimals(integers, *exponent, out);
                if let Some(exceptions) = exceptions {
                    exceptions.apply(layout, page, slots, &mut out[start..])?;
                }
            }
            Body::Bits(bits) => {
                bits.read(layout, page, slots, &mut scratch.page, integers)?;
                out.extend(integers.iter().map(|&bits| f64::from_bits(bits as u64)));
            }
            Body::Floats(floats) => {
                floats.read(layout, page, slots, &mut scratch.page.pco, out)?;
            }
        }
        Ok(())
    }
}

/// Buffers of one read, reused from page to page.
#[derive(Default)]
struct Scratch {
    page: PageScratch,
    integers: Vec<i64>,
}

impl<'a> Body<'a> {
    fn open(reader: &mut Reader<'a>, layout: &Layout) -> Result<Body<'a>, Error> {
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
