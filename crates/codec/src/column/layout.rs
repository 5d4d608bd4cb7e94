//! Which samples belong to which slot and which slots to which page.
//!
//! A page is a group of whole slots of about as many samples as the [`Paging`] says. The split is a
//! pure function of the lens and the paging, so it is never stored; changing it changes the format.

use super::{SAMPLES_MAX, SLOTS_MAX};
use crate::error::Error;
use std::ops::Range;

/// How many samples a page aims at. Columns do not say it: who keeps them does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paging {
    /// 2,048, as all columns had at first.
    Wide,
    /// 768: a read of one slot decodes less that it does not want, for 2 % more bytes.
    Narrow,
}

impl Paging {
    /// That of all columns that are encoded today.
    pub const NEWEST: Paging = Paging::Narrow;

    /// Samples a page aims at: enough to pay for its header, few enough to decode for one slot.
    fn aim(self) -> u64 {
        match self {
            Paging::Wide => 2048,
            Paging::Narrow => 768,
        }
    }
}

/// The lens of a column, prepared for look-ups.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Where each slot's samples start, and after them the total: one more than there are slots.
    starts: Vec<u32>,
    /// The first slot of each page, and after them the count of slots.
    pages: Vec<u32>,
}

impl Layout {
    /// The layout of a column with these lens; fails when they exceed the limits of a column.
    ///
    /// # Errors
    /// As said.
    pub fn new(lens: &[u32], paging: Paging) -> Result<Layout, Error> {
        if SLOTS_MAX < lens.len() {
            return Err(Error { offset: 0, what: "more slots than a column may have" });
        }
        let mut starts = Vec::with_capacity(lens.len() + 1);
        let mut pages = Vec::new();
        starts.push(0);
        let (mut total, mut page_start) = (0u64, 0u64);
        for (slot, &len) in lens.iter().enumerate() {
            // The page ends before the slot that would carry it further over the aim than the
            // page without it is under it.
            let is_full = paging.aim() <= total - page_start + u64::from(len / 2);
            if slot == 0 || (is_full && page_start < total) {
                pages.push(slot as u32);
                page_start = total;
            }
            total += u64::from(len);
            starts.push(total as u32);
        }
        pages.push(lens.len() as u32);
        // The sum of lens cannot overflow: 2^16 slots of less than 2^32.
        if (SAMPLES_MAX as u64) < total {
            return Err(Error { offset: 0, what: "more samples than a column may have" });
        }
        Ok(Layout { starts, pages })
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many samples there are in all.
    pub fn samples(&self) -> usize {
        self.starts[self.slots()] as usize
    }

    /// How many pages there are.
    pub fn pages(&self) -> usize {
        self.pages.len() - 1
    }

    /// The slots of a page.
    pub fn page_slots(&self, page: usize) -> Range<usize> {
        self.pages[page] as usize..self.pages[page + 1] as usize
    }

    /// The pages that hold `slots`, of which there is at least one.
    pub fn pages_of(&self, slots: &Range<usize>) -> Range<usize> {
        debug_assert!(slots.start < slots.end && slots.end <= self.slots());
        let page_of = |slot: usize| self.pages.partition_point(|&first| first as usize <= slot) - 1;
        page_of(slots.start)..page_of(slots.end - 1) + 1
    }

    /// Where the samples of `slots` lie among all samples.
    pub fn samples_of(&self, slots: &Range<usize>) -> Range<usize> {
        self.starts[slots.start] as usize..self.starts[slots.end] as usize
    }

    /// How many samples a slot has.
    pub fn len(&self, slot: usize) -> usize {
        (self.starts[slot + 1] - self.starts[slot]) as usize
    }

    /// The lens of `slots`, one after the other.
    pub fn lens(&self, slots: &Range<usize>) -> impl Iterator<Item = usize> {
        self.starts[slots.start..=slots.end].windows(2).map(|pair| (pair[1] - pair[0]) as usize)
    }

    /// Fails unless `slots` is a range of slots of this column.
    ///
    /// # Errors
    /// As said.
    pub fn check(&self, slots: &Range<usize>) -> Result<(), Error> {
        if slots.start <= slots.end && slots.end <= self.slots() {
            Ok(())
        } else {
            Err(Error { offset: 0, what: "no such slot" })
        }
    }
}

/// Keeps of `out`, which from `start` on has the samples `page`, only the samples `wanted`.
pub fn cut_to(wanted: Range<usize>, page: Range<usize>, start: usize, out: &mut Vec<i64>) {
    debug_assert!(page.start <= wanted.start && wanted.end <= page.end);
    out.truncate(start + wanted.end - page.start);
    out.drain(start..start + wanted.start - page.start);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(paging: Paging, lens: &[u32], page_ends: &[usize]) {
        let layout = Layout::new(lens, paging).unwrap();
        assert_eq!(layout.pages(), page_ends.len());
        let mut start = 0;
        for (page, &end) in page_ends.iter().enumerate() {
            assert_eq!(layout.page_slots(page), start..end);
            for slot in start..end {
                assert_eq!(layout.pages_of(&(slot..slot + 1)), page..page + 1);
            }
            start = end;
        }
    }

    #[test]
    fn pages_are_whole_slots_of_about_the_aim() {
        for paging in [Paging::Wide, Paging::Narrow] {
            check(paging, &[], &[]);
            check(paging, &[0], &[1]);
            check(paging, &[0, 0, 5], &[3]);
            check(paging, &[5000, 5000, 1], &[1, 2, 3]);
            check(paging, &[0, 5000, 0, 0, 3], &[2, 5]);
        }
        check(Paging::Wide, &[1080; 5], &[2, 4, 5]);
        check(Paging::Wide, &[1024; 3], &[2, 3]);
        check(Paging::Narrow, &[1080; 3], &[1, 2, 3]);
        check(Paging::Narrow, &[400; 5], &[2, 4, 5]);
        check(Paging::Narrow, &[384; 3], &[2, 3]);
    }

    #[test]
    fn limits_hold() {
        assert!(Layout::new(&[SAMPLES_MAX as u32], Paging::NEWEST).is_ok());
        assert!(Layout::new(&[SAMPLES_MAX as u32, 1], Paging::NEWEST).is_err());
        assert!(Layout::new(&vec![u32::MAX; SLOTS_MAX], Paging::NEWEST).is_err());
        assert!(Layout::new(&vec![0; SLOTS_MAX + 1], Paging::NEWEST).is_err());
    }
}
