//! Keys that are in memory with their values, by number.

use crate::index::Address;
use crate::value::Value;
use std::collections::BTreeSet;

/// Slots of one chunk: chunks never move, so growing copies nothing.
const CHUNK: usize = 4096;

/// No expiry.
pub const NEVER: i64 = i64::MAX;
/// The last moment at which a key can expire, which is not [`NEVER`].
pub const LAST_EXPIRY: i64 = NEVER - 1;

/// A hot key.
#[derive(Debug)]
pub struct Slot {
    /// The key.
    pub key: Box<[u8]>,
    /// Its value.
    pub value: Value,
    /// When it expires, in milliseconds since the epoch; [`NEVER`].
    pub expire_ms: i64,
    /// The number of the last record of the log that changed it.
    pub seq: u64,
    /// Its record on disk: the same value, or an older one of which checkpoints know.
    pub home: Option<Address>,
    /// Bytes that are accounted for it.
    pub cost: u32,
    /// When it was last used, in seconds of the keyspace's clock.
    pub used_at: u32,
    /// Its database.
    pub db: u8,
    /// How often it was used, on a scale that grows slowly.
    pub frequency: u8,
    /// Whether it differs from what is on disk.
    pub is_dirty: bool,
    /// Whether it was used since the hand of the clock passed.
    pub is_referenced: bool,
}

/// All hot keys.
///
/// New ones go to the first chunk that has room, and a chunk that is empty holds no memory: when many
/// go cold the others draw together, and who goes around passes few places for nothing.
#[derive(Debug, Default)]
pub struct Slots {
    chunks: Vec<Chunk>,
    /// Those of `chunks` that have room.
    roomy: BTreeSet<usize>,
    len: usize,
    /// Those whose values are being written down as they were (`saving`): few. They are neither up to
    /// date on disk nor to be written again.
    saving: BTreeSet<u32>,
    /// Those that are to be, since they are large and about to go cold.
    wanted: BTreeSet<u32>,
}

#[derive(Debug, Default)]
struct Chunk {
    slots: Vec<Option<Slot>>,
    /// Which of `slots` are free.
    free: Vec<u16>,
}

impl Chunk {
    fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }

    fn has_room(&self) -> bool {
        self.slots.len() < CHUNK || !self.free.is_empty()
    }

    /// Takes a place. Returns which.
    fn insert(&mut self, slot: Slot) -> usize {
        if let Some(at) = self.free.pop() {
            let at = usize::from(at);
            self.slots[at] = Some(slot);
            return at;
        }
        if self.slots.is_empty() {
            self.slots.reserve_exact(CHUNK);
        }
        self.slots.push(Some(slot));
        self.slots.len() - 1
    }

    fn remove(&mut self, at: usize) -> Option<Slot> {
        let slot = self.slots.get_mut(at)?.take()?;
        self.free.push(u16::try_from(at).expect("a chunk has few places"));
        if self.is_empty() {
            *self = Chunk::default();
        }
        Some(slot)
    }
}

impl Slots {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Numbers are below it.
    pub fn end(&self) -> u32 {
        u32::try_from(self.chunks.len() * CHUNK).unwrap_or(u32::MAX)
    }

    /// The first number from `from` on that is taken.
    pub fn next_taken(&self, from: u32) -> Option<u32> {
        let (first, mut at) = place(from);
        for (idx, chunk) in self.chunks.iter().enumerate().skip(first) {
            let rest = chunk.slots.get(at..).unwrap_or_default();
            let found = if chunk.is_empty() { None } else { rest.iter().position(Option::is_some) };
            if let Some(next) = found {
                return u32::try_from(idx * CHUNK + at + next).ok();
            }
            at = 0;
        }
        None
    }

    /// The slot of that number, if it is taken.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&Slot> {
        let (chunk, at) = place(number);
        self.chunks.get(chunk)?.slots.get(at)?.as_ref()
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Slot> {
        let (chunk, at) = place(number);
        self.chunks.get_mut(chunk)?.slots.get_mut(at)?.as_mut()
    }

    /// Takes a slot. Returns its number.
    pub fn insert(&mut self, slot: Slot) -> u32 {
        let idx = match self.roomy.first() {
            Some(idx) => *idx,
            None => {
                self.chunks.push(Chunk::default());
                self.roomy.insert(self.chunks.len() - 1);
                self.chunks.len() - 1
            }
        };
        let chunk = &mut self.chunks[idx];
        let at = chunk.insert(slot);
        if !chunk.has_room() {
            self.roomy.remove(&idx);
        }
        self.len += 1;
        u32::try_from(idx * CHUNK + at).expect("memory is bounded far below so many hot keys")
    }

    /// Frees a slot.
    pub fn remove(&mut self, number: u32) -> Option<Slot> {
        let (idx, at) = place(number);
        let chunk = self.chunks.get_mut(idx)?;
        let was_full = !chunk.has_room();
        let slot = chunk.remove(at)?;
        self.saving.remove(&number);
        self.wanted.remove(&number);
        if was_full {
            self.roomy.insert(idx);
        }
        self.len -= 1;
        Some(slot)
    }

    /// Notes that a value is being written down as it is now.
    pub fn begin_saving(&mut self, number: u32) {
        self.saving.insert(number);
    }

    /// Whether it is.
    pub fn is_saving(&self, number: u32) -> bool {
        !self.saving.is_empty() && self.saving.contains(&number)
    }

    /// Notes that it is not any more. Returns whether it was: the slot may be another key's by now.
    pub fn end_saving(&mut self, number: u32) -> bool {
        self.saving.remove(&number)
    }

    /// Has a large value be written down before it goes cold.
    pub fn want_saved(&mut self, number: u32) {
        self.wanted.insert(number);
    }

    /// Takes those; a slot may be another key's by now.
    pub fn take_wanted(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.wanted)
    }

    /// Frees all of them.
    pub fn clear(&mut self) {
        *self = Slots::default();
    }
}

fn place(number: u32) -> (usize, usize) {
    let number = number as usize;
    (number / CHUNK, number % CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Stored as _, Str};

    fn slot() -> Slot {
        Slot {
            key: Box::default(),
            value: Str::default().into_value(),
            expire_ms: NEVER,
            seq: 0,
            home: None,
            cost: 0,
            used_at: 0,
            db: 0,
            frequency: 0,
            is_dirty: false,
            is_referenced: false,
        }
    }

    #[test]
    fn the_others_draw_together_when_many_go() {
        let mut slots = Slots::default();
        let count = u32::try_from(3 * CHUNK).unwrap();
        for number in 0..count {
            assert_eq!(slots.insert(slot()), number);
        }
        // All of the second chunk, and one of the first.
        let second = u32::try_from(CHUNK).unwrap();
        for number in (second..2 * second).chain([7]) {
            assert!(slots.remove(number).is_some());
            assert!(slots.remove(number).is_none());
        }
        assert_eq!(slots.len(), 2 * CHUNK - 1);
        assert_eq!(slots.chunks[1].slots.capacity(), 0, "it holds no memory");
        assert_eq!(slots.next_taken(6), Some(6));
        assert_eq!(slots.next_taken(7), Some(8));
        assert_eq!(slots.next_taken(second), Some(2 * second));
        assert_eq!(slots.next_taken(count), None);
        assert_eq!(slots.insert(slot()), 7, "the first place that is free");
        assert_eq!(slots.insert(slot()), second);
        assert_eq!(slots.end(), count);
        slots.clear();
        assert!(slots.is_empty() && slots.next_taken(0).is_none());
    }
}
