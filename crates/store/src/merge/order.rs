//! The merge order of one list of timestamps: which row of which input comes when.
//!
//! The values of a column are decoded into one buffer for each input; a [`Segment`] is a run of one
//! of them. Gathering the segments in order gives the merged column:
//!
//! ```text
//! buffers     0: slot 0, slot 1, ...      1: slot 0, slot 1, ...
//! segments    (0, 0..5) (1, 0..6)         slot 0
//!             (0, 5..10) (1, 6..12)       slot 1 ...
//! ```
//!
//! Segments that touch in a buffer are one, even across slots, so a lone input is one copy.

use super::deleted::remove_deleted;
use super::track::{Track, clip};
use crate::base::narrow::to_u32;
use index::BLOCK_SLOTS_MAX;
use model::TimeRange;
use roaring::RoaringBitmap;

/// A run of the values of one input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    input: u32,
    start: u32,
    len: u32,
}

/// The timestamps of one input, for one column.
pub struct View<'a> {
    /// The timestamps.
    pub track: &'a Track,
    /// What is deleted of the input, as far as it may concern the column.
    pub tombstones: Vec<&'a (RoaringBitmap, TimeRange)>,
}

/// Rows of one slot from one input.
#[derive(Clone, Copy)]
pub(super) struct List<'a> {
    pub times: &'a [i64],
    /// Where the first row's value is in the input's buffer.
    start: u32,
    /// Which view; the higher one wins.
    input: u32,
}

impl List<'_> {
    fn first(&self) -> i64 {
        self.times[0]
    }

    pub fn skip(&mut self, rows: usize) {
        self.times = &self.times[rows..];
        self.start += to_u32(rows);
    }
}

/// The merge order, and the merged timestamps.
#[derive(Debug, Default)]
pub struct Order {
    segments: Vec<Segment>,
    /// Samples of each slot.
    pub lens: Vec<u32>,
    /// Timestamps of all slots.
    pub times: Vec<i64>,
}

impl Order {
    /// Replaces the order by that of `views`, of which later ones win, for samples in `window`.
    /// `first` is the ordinal of slot 0.
    pub fn compute(&mut self, views: &[View<'_>], first: u32, slots: usize, window: TimeRange) {
        assert!(slots <= BLOCK_SLOTS_MAX, "slots of one block");
        self.segments.clear();
        self.lens.clear();
        self.times.clear();
        let mut lists = Vec::with_capacity(views.len());
        let mut active = Vec::new();
        for slot in 0..slots {
            lists.clear();
            for (input, view) in views.iter().enumerate() {
                let (times, start) = view.track.slot(slot);
                let (times, before) = clip(times, window.start, window.end);
                if times.is_empty() {
                    continue;
                }
                let start = start + to_u32(before);
                lists.push(List { times, start, input: to_u32(input) });
                if !view.tombstones.is_empty() {
                    remove_deleted(&mut lists, view, first + to_u32(slot));
                }
            }
            let before = self.times.len();
            self.merge_slot(&mut lists, &mut active);
            debug_assert!(self.times[before..].is_sorted_by(|a, b| a < b), "timestamps increase");
            self.lens.push(to_u32(self.times.len() - before));
        }
    }

    /// Appends the merged column to `out`, from the values of each view.
    pub fn gather(&self, values: &[&[f64]], out: &mut Vec<f64>) {
        let before = out.len();
        out.reserve(self.times.len());
        for segment in &self.segments {
            let (values, start) = (values[segment.input as usize], segment.start as usize);
            if segment.len == 1 {
                out.push(values[start]);
            } else {
                out.extend_from_slice(&values[start..start + segment.len as usize]);
            }
        }
        assert_eq!(out.len() - before, self.times.len(), "a value for each timestamp");
    }

    /// The view whose values are the merged column as they stand, if there is one.
    pub fn whole_input(&self, values: &[&[f64]]) -> Option<usize> {
        let [only] = self.segments.as_slice() else { return None };
        let input = only.input as usize;
        (only.start == 0 && only.len as usize == values[input].len()).then_some(input)
    }

    /// A number that equal lists of timestamps share, and different ones hardly ever.
    pub fn hash(&self) -> u64 {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
        let hash = self.lens.iter().fold(self.times.len() as u64, |h, &len| mix(h, u64::from(len)));
        self.times.iter().fold(hash, |hash, &timestamp| mix(hash, timestamp as u64))
    }

    fn merge_slot<'a>(&mut self, lists: &mut [List<'a>], active: &mut Vec<List<'a>>) {
        if !lists.is_sorted_by_key(List::first) {
            lists.sort_unstable_by_key(List::first);
        }
        let is_chain = lists.windows(2).all(|pair| pair[0].times.last() < pair[1].times.first());
        if !is_chain {
            return self.merge_overlapping(lists, active);
        }
        for list in lists {
            self.push(list, list.times.len());
        }
    }

    /// Lists sorted by their first timestamps, any of which may overlap.
    fn merge_overlapping<'a>(&mut self, lists: &[List<'a>], active: &mut Vec<List<'a>>) {
        active.clear();
        let mut waiting = lists.iter().copied().peekable();
        loop {
            let heads = active.iter().chain(waiting.peek()).map(List::first);
            let Some(head) = heads.min() else { return };
            while let Some(list) = waiting.next_if(|list| list.first() <= head) {
                active.push(list);
            }
            // Up to the bound, which is not included, the winner is alone.
            let mut bound = waiting.peek().map(List::first);
            let mut winner: Option<List<'a>> = None;
            let mut ties = 0;
            for list in active.iter() {
                if list.first() != head {
                    bound = Some(bound.map_or(list.first(), |bound| bound.min(list.first())));
                    continue;
                }
                ties += 1;
                if winner.is_none_or(|winner| winner.input < list.input) {
                    winner = Some(*list);
                }
            }
            let Some(winner) = winner else { return };
            let rows = match bound {
                _ if 1 < ties => 1,
                None => winner.times.len(),
                Some(bound) => winner.times.partition_point(|&timestamp| timestamp < bound),
            };
            self.push(&winner, rows);
            active.retain_mut(|list| {
                if list.first() == head {
                    list.skip(rows);
                }
                !list.times.is_empty()
            });
        }
    }

    #[inline]
    fn push(&mut self, list: &List<'_>, rows: usize) {
        debug_assert!(0 < rows && rows <= list.times.len(), "some rows of the list");
        self.times.extend_from_slice(&list.times[..rows]);
        let len = to_u32(rows);
        if let Some(last) = self.segments.last_mut()
            && (last.input, last.start + last.len) == (list.input, list.start)
        {
            last.len += len;
            return;
        }
        self.segments.push(Segment { input: list.input, start: list.start, len });
    }
}
