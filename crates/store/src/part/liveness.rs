//! Liveness: for each UTC day, the set of series with a sample on that day.
//!
//! The writer learns it from the timestamps it is given anyway: once for the shared times of a
//! slice, as ranges of slots, then one insertion of a range for each column and day.

use crate::base::narrow::to_u32;
use model::sample::NANOS_PER_DAY;
use model::time_range::day_of;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;

/// Slots `start..end` each have a sample on `day`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayRun {
    /// UTC day number since the epoch.
    pub day: i32,
    /// First slot.
    pub start: u32,
    /// One past the last slot.
    pub end: u32,
}

/// The runs of one list of timestamps.
#[derive(Debug, Default)]
pub struct DayRuns {
    runs: Vec<DayRun>,
    /// Per day, ascending, the index of its last run: the one that may still grow.
    growing: Vec<(i32, usize)>,
}

impl DayRuns {
    /// Replaces the runs by those of the slots whose `lens` timestamps lie one after the other.
    pub fn compute(&mut self, lens: &[u32], times: &[i64]) {
        self.runs.clear();
        self.growing.clear();
        let mut rest = times;
        for (slot, &len) in lens.iter().enumerate() {
            let (slot_times, after) = rest.split_at(len as usize);
            self.add_slot(to_u32(slot), slot_times);
            rest = after;
        }
        debug_assert!(rest.is_empty());
    }

    fn add_slot(&mut self, slot: u32, mut times: &[i64]) {
        let Some(&last) = times.last() else { return };
        let last_day = day_of(last);
        while let Some(&first) = times.first() {
            let day = day_of(first);
            self.add(day, slot);
            if day == last_day {
                return;
            }
            let next_day = (i64::from(day) + 1) * NANOS_PER_DAY;
            times = &times[times.partition_point(|&timestamp| timestamp < next_day)..];
        }
    }

    fn add(&mut self, day: i32, slot: u32) {
        let run = DayRun { day, start: slot, end: slot + 1 };
        match self.growing.binary_search_by_key(&day, |&(day, _)| day) {
            Ok(at) => {
                let last = &mut self.runs[self.growing[at].1];
                if last.end == slot {
                    last.end += 1;
                } else {
                    self.growing[at].1 = self.runs.len();
                    self.runs.push(run);
                }
            }
            Err(at) => {
                self.growing.insert(at, (day, self.runs.len()));
                self.runs.push(run);
            }
        }
    }

    /// The runs, in no particular order.
    pub fn runs(&self) -> &[DayRun] {
        &self.runs
    }
}

/// The sets of a part being written.
#[derive(Debug, Default)]
pub struct Liveness {
    days: BTreeMap<i32, RoaringBitmap>,
}

impl Liveness {
    /// Adds the series of one column, whose slot 0 has the ordinal `first`.
    pub fn add(&mut self, first: u32, runs: &DayRuns) {
        for run in runs.runs() {
            // The last ordinal is inclusive: one past it may not fit.
            let range = first + run.start..=first + (run.end - 1);
            self.days.entry(run.day).or_default().insert_range(range);
        }
    }

    /// The sets by day, in their smallest form.
    pub fn finish(&mut self) -> BTreeMap<i32, RoaringBitmap> {
        let mut days = std::mem::take(&mut self.days);
        for set in days.values_mut() {
            set.optimize();
        }
        days
    }
}
