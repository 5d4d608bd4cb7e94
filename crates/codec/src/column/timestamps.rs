//! Timestamps of a column, with the lens of its slots.

use super::{Effort, SAMPLES_MAX, SLOTS_MAX};
use crate::bytes::{Reader, put_i64_zigzag, put_varint};
use crate::error::Error;
use std::ops::Range;

/// Appends the column of `timestamps` to `out`; slot `i` has the next `lens[i]` of them.
///
/// # Panics
/// When `lens` do not add up to `timestamps`, or exceed [`SLOTS_MAX`] or [`SAMPLES_MAX`], or the
/// timestamps of a slot are not strictly increasing.
pub fn encode_timestamps(timestamps: &[i64], lens: &[u32], effort: Effort, out: &mut Vec<u8>) {
    let _ = effort;
    assert!(lens.len() <= SLOTS_MAX && timestamps.len() <= SAMPLES_MAX, "column over its limits");
    assert!(
        lens.iter().map(|&len| len as usize).sum::<usize>() == timestamps.len(),
        "lens disagree"
    );
    put_varint(out, lens.len() as u64);
    let mut start = 0;
    for &len in lens {
        put_varint(out, u64::from(len));
        let slot = &timestamps[start..start + len as usize];
        assert!(slot.is_sorted_by(|a, b| a < b), "timestamps do not increase");
        let mut last = 0i64;
        for &timestamp in slot {
            put_i64_zigzag(out, timestamp.wrapping_sub(last));
            last = timestamp;
        }
        start += len as usize;
    }
}

/// Reads the slots of a column of timestamps.
#[derive(Debug)]
pub struct TimestampsReader<'a> {
    bytes: std::marker::PhantomData<&'a [u8]>,
    lens: Vec<u32>,
    timestamps: Vec<i64>,
    grid: Option<Range<usize>>,
}

impl<'a> TimestampsReader<'a> {
    /// Parses the headers.
    ///
    /// # Errors
    /// When the bytes are not a column of timestamps.
    pub fn open(bytes: &'a [u8]) -> Result<TimestampsReader<'a>, Error> {
        let mut reader = Reader::new(bytes);
        let count = reader.varint_size(SLOTS_MAX)?;
        let mut lens = Vec::new();
        let mut timestamps = Vec::new();
        for _ in 0..count {
            let len = reader.varint_size(SAMPLES_MAX)?;
            lens.push(len as u32);
            let mut last = 0i64;
            for _ in 0..len {
                last = last.wrapping_add(reader.i64_zigzag()?);
                timestamps.push(last);
            }
        }
        let grid = shared_grid(&timestamps, &lens);
        Ok(TimestampsReader { bytes: std::marker::PhantomData, lens, timestamps, grid })
    }

    /// How many samples each slot has.
    pub fn lens(&self) -> &[u32] {
        &self.lens
    }

    /// The list of timestamps that every slot with samples has, if they all have the same.
    pub fn grid(&self) -> Option<&[i64]> {
        self.grid.clone().map(|range| &self.timestamps[range])
    }

    /// Appends the timestamps of `slots` to `out`, in slot order.
    ///
    /// # Errors
    /// When the bytes do not decode, or there are no such slots; `out` may then have grown.
    pub fn read(&self, slots: Range<usize>, out: &mut Vec<i64>) -> Result<(), Error> {
        if slots.end < slots.start || self.lens.len() < slots.end {
            return Err(Error { offset: 0, what: "no such slot" });
        }
        let count = |lens: &[u32]| lens.iter().map(|&len| len as usize).sum::<usize>();
        let start = count(&self.lens[..slots.start]);
        let end = start + count(&self.lens[slots]);
        out.extend_from_slice(&self.timestamps[start..end]);
        Ok(())
    }
}

fn shared_grid(timestamps: &[i64], lens: &[u32]) -> Option<Range<usize>> {
    let len = lens.iter().copied().find(|&len| 0 < len)? as usize;
    let same = lens.iter().all(|&other| other == 0 || other as usize == len)
        && timestamps.chunks(len).all(|slot| slot == &timestamps[..len]);
    same.then_some(0..len)
}
