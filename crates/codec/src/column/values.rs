//! Values of a column, every bit kept.

use super::{Effort, SAMPLES_MAX, SLOTS_MAX};
use crate::bytes::Reader;
use crate::error::Error;
use std::ops::Range;

/// Appends the column of `values` to `out`; slot `i` has the next `lens[i]` of them.
///
/// The lens are not stored: the reader is given them again.
///
/// # Panics
/// When `lens` do not add up to `values`, or exceed [`SLOTS_MAX`] or [`SAMPLES_MAX`].
pub fn encode_values(values: &[f64], lens: &[u32], effort: Effort, out: &mut Vec<u8>) {
    let _ = effort;
    assert!(lens.len() <= SLOTS_MAX && values.len() <= SAMPLES_MAX, "column over its limits");
    assert!(lens.iter().map(|&len| len as usize).sum::<usize>() == values.len(), "lens disagree");
    for value in values {
        out.extend_from_slice(&value.to_bits().to_le_bytes());
    }
}

/// Reads the slots of a column of values; decodes only the pages that are asked for.
#[derive(Debug)]
pub struct ValuesReader<'a> {
    bytes: &'a [u8],
    /// Where each slot's values start, and after them the total.
    starts: Vec<u32>,
}

impl<'a> ValuesReader<'a> {
    /// Parses the headers of a column that was encoded with the same `lens`.
    ///
    /// # Errors
    /// When the bytes are not such a column.
    pub fn open(bytes: &'a [u8], lens: &[u32]) -> Result<ValuesReader<'a>, Error> {
        let mut starts = Vec::with_capacity(lens.len() + 1);
        let mut total = 0u64;
        for &len in lens {
            starts.push(total as u32);
            total += u64::from(len);
            if (SAMPLES_MAX as u64) < total {
                return Err(Error { offset: 0, what: "column over its limits" });
            }
        }
        starts.push(total as u32);
        if bytes.len() as u64 != total * 8 {
            return Err(Error { offset: 0, what: "size and lens disagree" });
        }
        Ok(ValuesReader { bytes, starts })
    }

    /// Appends the values of `slots` to `out`, in slot order.
    ///
    /// # Errors
    /// When the bytes do not decode, or there are no such slots; `out` may then have grown.
    pub fn read(&self, slots: Range<usize>, out: &mut Vec<f64>) -> Result<(), Error> {
        let none = Error { offset: 0, what: "no such slot" };
        let (Some(&start), Some(&end)) = (self.starts.get(slots.start), self.starts.get(slots.end))
        else {
            return Err(none);
        };
        let mut reader = Reader::new(self.bytes);
        reader.slice(start as usize * 8)?;
        for _ in start..end {
            out.push(f64::from_bits(reader.u64()?));
        }
        Ok(())
    }
}
