//! Keys that are in memory with their values, by number.

use crate::index::Address;
use crate::value::Value;

/// Slots of one chunk: chunks never move, so growing copies nothing.
const CHUNK: usize = 4096;

/// No expiry.
pub const NEVER: i64 = i64::MAX;

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
#[derive(Debug, Default)]
pub struct Slots {
    chunks: Vec<Vec<Option<Slot>>>,
    free: Vec<u32>,
    len: usize,
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

    /// Numbers that were ever given out.
    pub fn end(&self) -> u32 {
        let full = self.chunks.len().saturating_sub(1) * CHUNK;
        let last = self.chunks.last().map_or(0, Vec::len);
        u32::try_from(full + last).unwrap_or(u32::MAX)
    }

    /// The slot of that number, if it is taken.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&Slot> {
        let (chunk, at) = place(number);
        self.chunks.get(chunk)?.get(at)?.as_ref()
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Slot> {
        let (chunk, at) = place(number);
        self.chunks.get_mut(chunk)?.get_mut(at)?.as_mut()
    }

    /// Takes a slot. Returns its number.
    pub fn insert(&mut self, slot: Slot) -> u32 {
        self.len += 1;
        if let Some(number) = self.free.pop() {
            let (chunk, at) = place(number);
            self.chunks[chunk][at] = Some(slot);
            return number;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let number = self.end();
        assert!(number < u32::MAX, "memory is bounded far below so many hot keys");
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(Some(slot));
        }
        number
    }

    /// Frees a slot.
    pub fn remove(&mut self, number: u32) -> Option<Slot> {
        let (chunk, at) = place(number);
        let slot = self.chunks.get_mut(chunk)?.get_mut(at)?.take()?;
        self.len -= 1;
        self.free.push(number);
        Some(slot)
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
