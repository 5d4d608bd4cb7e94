//! Memory that commands are about to read, fetched for several of them at a time.
//!
//! With a million keys each step of a look-up (index, slot, key, value) waits for memory, some 100 ns,
//! and needs what the one before it found. The steps of different keys need nothing of each other: taken
//! side by side, key after key, the processor waits for all of them at once. What is fetched so is
//! only near: each command still looks its keys up by itself.

use super::Keyspace;
use crate::index::Place;
use crate::slots::Slot;
use crate::value::Value;
use std::hint::black_box;

/// Keys that are looked at together: as many loads as a processor has under way, and some.
pub const NEAR_MAX: usize = 16;
/// Bytes that come from memory at a time.
const LINE_SIZE: usize = 64;
/// Bytes of a value that are fetched: the processor foresees the rest.
const VALUE_SIZE_MAX: usize = 512;

/// What a command will do with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nearing {
    /// It reads the value.
    Reads,
    /// It replaces or changes it.
    Writes,
}

impl Keyspace {
    /// Fetches what look-ups of these keys will read, of the first [`NEAR_MAX`] of them.
    pub fn bring_near<'a>(&self, db: u8, keys: impl Iterator<Item = (&'a [u8], Nearing)>) {
        let Some(index) = self.dbs.get(usize::from(db)) else { return };
        // Each step is a loop of its own, short enough that the loads of many keys are under way.
        let mut wanted = [(self.hash(&[]), Nearing::Writes); NEAR_MAX];
        let mut wanted_count = 0;
        for (free, (key, nearing)) in wanted.iter_mut().zip(keys) {
            *free = (self.hash(key), nearing);
            wanted_count += 1;
        }
        let mut found = [(0, Nearing::Writes); NEAR_MAX];
        let mut count = 0;
        for (hash, nearing) in wanted.get(..wanted_count).unwrap_or_default() {
            index.find(*hash, |place| {
                if let (Place::Hot(number), Some(free)) = (place, found.get_mut(count)) {
                    *free = (number, *nearing);
                    count += 1;
                }
                false
            });
        }
        let found = found.get(..count).unwrap_or_default();
        let slots = || {
            let slot =
                |(number, nearing): &(u32, Nearing)| Some((self.slots.get(*number)?, *nearing));
            found.iter().filter_map(slot)
        };
        let fetched: usize = slots().map(|(slot, _)| head_of(slot)).sum();
        let fetched: u64 = slots().map(|(slot, nearing)| body_of(slot, nearing)).sum::<u64>()
            + u64::try_from(fetched).unwrap_or(0);
        black_box(fetched);
    }
}

/// Reads of both ends of a slot.
fn head_of(slot: &Slot) -> usize {
    slot.key.len().wrapping_add(slot.cost as usize)
}

/// Reads of what a slot points to: its key, and its value if that will be read.
fn body_of(slot: &Slot, nearing: Nearing) -> u64 {
    let key = u64::from(slot.key.first().copied().unwrap_or_default());
    match (&slot.value, nearing) {
        (Value::Str(text), Nearing::Reads) => key + text.with_bytes(lines_of),
        _ => key,
    }
}

/// Reads a byte of each line.
fn lines_of(bytes: &[u8]) -> u64 {
    let bytes = bytes.get(..VALUE_SIZE_MAX).unwrap_or(bytes);
    bytes.iter().step_by(LINE_SIZE).map(|byte| u64::from(*byte)).sum()
}
