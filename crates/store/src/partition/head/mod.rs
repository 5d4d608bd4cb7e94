//! The head of a partition: its samples that are in no file yet.
//!
//! ```text
//!   rows ──► arena ──take──► taken ──seal──► parts in memory ──flush──► parts on disk
//!            newest ◄──────── who wins on equal timestamps ────────────────── oldest
//! ```
//!
//! - Taken rows and parts in memory are numbered in one order; each list is by number, and all
//!   parts in memory are older than all taken rows.
//! - The oldest taken rows become the newest part in memory, in one step: no reader finds them in
//!   both or in neither.

pub(crate) mod arena;
pub(crate) mod seal;
pub(crate) mod activity;

use crate::part::Part;
use crate::partition::disk::live_part::LivePart;
use crate::partition::head::arena::{Arena, ArenaView, NO_ROW, Single};
use std::sync::Arc;

/// Rows taken out of the arena, on their way to a part in memory.
pub(crate) struct Taken {
    /// Order among taken rows and parts in memory of this partition.
    number: u64,
    /// The rows.
    pub view: Arc<ArenaView>,
}

/// A sealed part of the head.
#[derive(Clone)]
pub(crate) struct MemoryPart {
    /// As of the rows that it was made from.
    pub number: u64,
    /// The part; its bytes are in memory.
    pub part: Arc<LivePart>,
}

/// The samples of a partition that are in no file yet.
pub(crate) struct Head {
    /// The newest rows.
    pub arena: Arena,
    /// Rows being sealed, oldest first.
    taken: Vec<Taken>,
    /// Sealed rows, oldest first.
    memory_parts: Vec<MemoryPart>,
    /// The number of the next rows that are taken.
    taken_next: u64,
}

impl Head {
    /// An empty one, of a partition with so many entities.
    pub fn new(entities: usize) -> Head {
        let mut arena = Arena::new();
        arena.reserve_entities(entities);
        Head { arena, taken: Vec::new(), memory_parts: Vec::new(), taken_next: 0 }
    }

    /// Rows being sealed, oldest first.
    pub fn taken(&self) -> &[Taken] {
        &self.taken
    }

    /// Sealed rows, oldest first.
    pub fn memory_parts(&self) -> &[MemoryPart] {
        &self.memory_parts
    }

    /// The parts in memory, oldest first.
    pub fn parts(&self) -> impl Iterator<Item = &Arc<LivePart>> {
        self.memory_parts.iter().map(|memory| &memory.part)
    }

    /// Values that came alone, of rows that are not sealed yet.
    pub fn singles(&self) -> impl Iterator<Item = &Single> {
        let taken = self.taken.iter().map(|taken| taken.view.singles());
        taken.chain([self.arena.singles()]).flatten()
    }

    /// The number that the next rows will have that are taken.
    pub fn taken_end(&self) -> u64 {
        self.taken_next
    }

    /// Takes the arena's rows out, if there are any, to be sealed.
    pub fn take_arena(&mut self) {
        if self.arena.samples() == 0 {
            return;
        }
        let is_next = self.taken.last().is_none_or(|last| last.number < self.taken_next);
        assert!(is_next, "taken rows are numbered in the order of arrival");
        let view = Arc::new(self.arena.take());
        self.taken.push(Taken { number: self.taken_next, view });
        self.taken_next += 1;
    }

    /// The rows to seal next, and their number.
    pub fn oldest_taken(&self) -> Option<(u64, Arc<ArenaView>)> {
        self.taken.first().map(|taken| (taken.number, Arc::clone(&taken.view)))
    }

    /// Puts a part in the place of the oldest taken rows, from which it was made.
    pub fn put_sealed(&mut self, number: u64, part: Part) {
        let removed = self.taken.remove(0);
        assert!(removed.number == number, "only the holder of `sealing` removes");
        assert!(part.summary().samples <= removed.view.samples(), "sealing makes no samples");
        assert!(self.memory_parts.last().is_none_or(|last| last.number < number), "in order");
        let part = Arc::new(LivePart::in_memory(part));
        self.memory_parts.push(MemoryPart { number, part });
    }

    /// Lets parts go that a file holds now.
    pub fn remove_flushed(&mut self, flushed: &[MemoryPart]) {
        let before = self.memory_parts.len();
        let is_flushed = |number: u64| flushed.iter().any(|one| one.number == number);
        self.memory_parts.retain(|memory| !is_flushed(memory.number));
        assert!(self.memory_parts.len() + flushed.len() == before, "each was here until now");
    }

    /// Bytes of rows and parts in memory.
    pub fn size(&self) -> usize {
        self.arena.rows_size()
            + self.taken.iter().map(|taken| taken.view.size()).sum::<usize>()
            + self.parts().map(|part| part.part.memory_size()).sum::<usize>()
    }

    /// The id of the oldest row that is not sealed yet, or of what would be it: an entity whose
    /// newest row is older has none.
    pub fn first_unsealed_row(&self) -> u32 {
        let taken = self.taken.iter().map(|taken| taken.view.first_row());
        let oldest = taken.chain([self.arena.first_row()]).min();
        oldest.unwrap_or(NO_ROW).max(NO_ROW + 1)
    }

    /// Samples in rows and singles that are not sealed yet.
    pub fn unsealed_samples(&self) -> u64 {
        self.arena.samples() + self.taken.iter().map(|taken| taken.view.samples()).sum::<u64>()
    }

    /// All samples.
    pub fn samples(&self) -> u64 {
        self.unsealed_samples() + self.parts().map(|part| part.part.summary().samples).sum::<u64>()
    }
}
