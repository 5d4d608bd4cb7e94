//! Large values, written down while commands go on.
//!
//! ```text
//! freeze (under the lock: counts of pieces) ─► encode, write a segment ─► settle (under the lock)
//! ```
//! To encode a hash of a million fields takes hundreds of milliseconds, in which nobody would be
//! served. So a checkpoint takes the value as it is at one moment (`Value::freeze`), lets the keys go,
//! and points to the record once it is on disk. What changes meanwhile is in the log, whose records
//! carry numbers: the record has the number that the key had when it was frozen.

use crate::cold::{record, write_segment};
use crate::error::Result;
use crate::index::{Address, RECORD_ALIGNMENT};
use crate::keyspace::Keyspace;
use crate::kv::Kv;
use crate::slots::Slot;

/// A key with its value as it was.
pub(crate) struct Frozen {
    /// The number of its slot.
    number: u32,
    /// The key, and of its value only what is encoded.
    slot: Slot,
}

/// A record of a frozen key that was written.
struct Written {
    number: u32,
    address: Address,
}

impl Keyspace {
    /// Takes a dirty slot as it is, to be written down later. None if that would take as long as to
    /// write it down.
    pub(crate) fn freeze_slot(&mut self, number: u32) -> Option<Frozen> {
        let slot = self.slots.get_mut(number)?;
        let value = slot.value.freeze()?;
        let Slot { expire_ms, seq, cost, used_at, db, frequency, .. } = *slot;
        let copy = Slot {
            key: slot.key.clone(),
            value,
            expire_ms,
            seq,
            home: None,
            cost,
            used_at,
            db,
            frequency,
            is_dirty: false,
            is_referenced: false,
        };
        // Who changes it from here on makes it dirty again.
        slot.is_dirty = false;
        self.slots.begin_saving(number);
        Some(Frozen { number, slot: copy })
    }

    /// Points to the records of frozen keys, as far as those are still there.
    fn settle_frozen(&mut self, written: &[Written]) {
        for Written { number, address } in written {
            if !self.slots.end_saving(*number) {
                continue;
            }
            let Some(slot) = self.slots.get_mut(*number) else { continue };
            let before = slot.home.replace(*address);
            self.cold.count_live(*address);
            if let Some(before) = before {
                self.cold.release(before);
            }
        }
    }

    /// Notes that keys which were frozen have not been written down.
    fn thaw(&mut self, numbers: &[u32]) {
        for number in numbers {
            if self.slots.end_saving(*number)
                && let Some(slot) = self.slots.get_mut(*number)
            {
                slot.is_dirty = true;
            }
        }
    }
}

impl Kv {
    /// Writes frozen keys to segments of their own, and points to them. Not while the index is copied:
    /// what a checkpoint names must stay.
    pub(crate) fn save_frozen(&self, frozen: Vec<Frozen>) -> Result<()> {
        let segment_size = self.lock_behind().config().segment_size;
        let mut rest = frozen.into_iter().peekable();
        loop {
            let (mut bytes, mut places, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
            let is_alone = |one: &Frozen| segment_size <= one.slot.cost as usize;
            while bytes.len() < segment_size
                && let Some(Frozen { number, slot }) =
                    rest.next_if(|one| places.is_empty() || !is_alone(one))
            {
                let start = bytes.len();
                places.push((number, start));
                record::put(&mut bytes, &slot);
                sizes.push(bytes.len() - start);
                bytes.resize(bytes.len().next_multiple_of(RECORD_ALIGNMENT), 0);
            }
            if places.is_empty() {
                return Ok(());
            }
            if let Err(error) = self.write_frozen(&bytes, &places, &sizes) {
                let written = places.iter().map(|(number, _)| *number);
                let numbers: Vec<u32> = written.chain(rest.map(|one| one.number)).collect();
                self.lock_behind().thaw(&numbers);
                return Err(error);
            }
        }
    }

    fn write_frozen(&self, bytes: &[u8], places: &[(u32, usize)], sizes: &[usize]) -> Result<()> {
        let segment = self.lock_behind().cold.number_for_copy();
        let path = self.lock_behind().cold.path_of(segment);
        let source = write_segment(self.vfs().as_ref(), &path, bytes)?;
        let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
        let written = places.iter().map(|(number, offset)| {
            let offset = u32::try_from(offset / RECORD_ALIGNMENT).expect("segments are bounded");
            Written { number: *number, address: Address { segment, offset } }
        });
        let written: Vec<Written> = written.collect();
        let now_ms = self.now_ms();
        let mut keys = self.lock_behind();
        keys.stats.frozen += places.len() as u64;
        sizes.iter().for_each(|size| keys.cold.sizes.add(*size));
        keys.cold.add_plain(segment, source, bytes.len() as u64, count, now_ms);
        keys.settle_frozen(&written);
        Ok(())
    }
}
