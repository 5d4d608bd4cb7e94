//! A track: one list of timestamps of an input slice, decoded.

use super::input::SliceLimits;
use crate::Result;
use crate::base::narrow::to_u32;
use crate::part::Part;
use codec::TimestampsReader;

/// The timestamps of each slot. When all slots have the same ones, they are held once.
#[derive(Debug, Default)]
pub struct Track {
    lens: Vec<u32>,
    /// Where each slot's samples start in the column, and after them the total.
    starts: Vec<u32>,
    /// All slots' timestamps one after the other, or the grid.
    times: Vec<i64>,
    is_grid: bool,
}

/// How much there is to merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Samples of one column.
    pub samples: usize,
    /// Rows of the slot that has most, or an upper bound.
    pub rows: usize,
}

impl Count {
    /// The sum; rows of different slots may be added, so they become an upper bound.
    pub fn plus(self, other: Count) -> Count {
        Count { samples: self.samples + other.samples, rows: self.rows + other.rows }
    }

    /// Whether one slice may hold it.
    pub fn fits(self, limits: &SliceLimits) -> bool {
        self.samples <= limits.samples_max && self.rows <= limits.rows_max
    }

    /// Whether it is worth a slice of its own.
    pub fn is_ample(self, limits: &SliceLimits) -> bool {
        limits.samples_max <= 2 * self.samples || limits.rows_max <= 2 * self.rows
    }
}

impl Track {
    /// Decodes a list of the slice, replacing what the track held.
    pub fn load(&mut self, part: &Part, idx: usize, reader: &TimestampsReader<'_>) -> Result<()> {
        self.lens.clear();
        self.lens.extend_from_slice(reader.lens());
        self.starts.clear();
        self.starts.push(0);
        let mut total = 0u32;
        for &len in &self.lens {
            let sum = total.checked_add(len);
            total = sum.ok_or_else(|| part.corrupt_slice(idx, "fewer than 2^32 samples"))?;
            self.starts.push(total);
        }
        assert_eq!(self.starts.len(), self.lens.len() + 1, "where each slot starts, and the end");
        match reader.grid() {
            None => {
                self.is_grid = false;
                part.read_all_times(idx, reader, &mut self.times)
            }
            Some(grid) => {
                self.is_grid = true;
                self.times.clear();
                self.times.extend_from_slice(grid);
                let slice = &part.slice(idx);
                let len = to_u32(grid.len());
                let holds = grid.is_sorted_by(|a, b| a < b)
                    && grid.first().is_some_and(|&first| slice.min_ts <= first)
                    && grid.last().is_some_and(|&last| last <= slice.max_ts)
                    && self.lens.iter().all(|&other| other == 0 || other == len);
                if holds { Ok(()) } else { Err(part.corrupt_slice(idx, "increasing timestamps")) }
            }
        }
    }

    /// Samples of each slot.
    pub fn lens(&self) -> &[u32] {
        &self.lens
    }

    /// Samples of all slots.
    pub fn samples(&self) -> usize {
        self.starts.last().map_or(0, |&total| total as usize)
    }

    /// The timestamps of a slot, and where its samples start in the column. Slots beyond the
    /// slice's are empty.
    #[inline]
    pub fn slot(&self, slot: usize) -> (&[i64], u32) {
        let (Some(&start), Some(&end)) = (self.starts.get(slot), self.starts.get(slot + 1)) else {
            return (&[], 0);
        };
        let times = match self.is_grid {
            true if start == end => &[],
            true => self.times.as_slice(),
            false => &self.times[start as usize..end as usize],
        };
        (times, start)
    }

    /// The samples from `start` to `end`, both included.
    pub fn count(&self, start: i64, end: i64) -> Count {
        let mut count = Count::default();
        if self.is_grid {
            count.rows = clip(&self.times, start, end).0.len();
            count.samples = count.rows * self.lens.iter().filter(|&&len| 0 < len).count();
            return count;
        }
        for slot in 0..self.lens.len() {
            let rows = clip(self.slot(slot).0, start, end).0.len();
            count.samples += rows;
            count.rows = count.rows.max(rows);
        }
        count
    }

    /// Appends about `share` of the timestamps from `start` to `end`, evenly spread.
    pub fn draw(&self, start: i64, end: i64, share: usize, drawn: &mut Vec<i64>) {
        assert!(0 < share, "some of them are asked for");
        let step = self.count(start, end).samples.div_ceil(share).max(1);
        let mut skip = step / 2;
        for slot in 0..self.lens.len() {
            let times = clip(self.slot(slot).0, start, end).0;
            drawn.extend(times.iter().skip(skip).step_by(step));
            // How far into the next slot the next pick lies.
            skip = match skip < times.len() {
                true => (step - (times.len() - skip) % step) % step,
                false => skip - times.len(),
            };
        }
    }
}

/// The timestamps from `start` to `end`, and how many come before them.
#[inline]
pub fn clip(times: &[i64], start: i64, end: i64) -> (&[i64], usize) {
    let (Some(&first), Some(&last)) = (times.first(), times.last()) else { return (times, 0) };
    if start <= first && last <= end {
        return (times, 0);
    }
    let before = times.partition_point(|&timestamp| timestamp < start);
    let upto = times.partition_point(|&timestamp| timestamp <= end);
    (&times[before..upto.max(before)], before)
}
