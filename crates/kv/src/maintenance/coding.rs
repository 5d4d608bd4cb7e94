//! Values on disk get shorter: segments that have rested are copied with their values coded.
//!
//! ```text
//! segment, as it was sealed ─► rests ─► what counts of it, coded, in another segment ─► index points there
//!                                └ its keys are overwritten meanwhile: compacted instead, never coded
//! ```
//! Coding takes about as much CPU as all else that a `SET` costs. So it is done when clients leave time
//! for it, on the keeper's thread; while they do not, now and then ([`Pace`]), or always once much is
//! left to do. The segment that was copied stays until a checkpoint does not name it.

use crate::cold::{dictionary, record, write_segment};
use crate::error::{Error, Result};
use crate::index::{Address, KeyHash, Place, RECORD_ALIGNMENT};
use crate::keyspace::Keyspace;
use crate::kv::Kv;

/// Keys that are handled under one hold of the lock.
pub(crate) const STEP: usize = 256;
/// A copy of a segment is kept if it is smaller by so much of itself, one by so many.
const GAIN_SHARE: usize = 16;
/// Bytes at the beginning of a segment that tell how the rest of it is coded.
const BEGINNING_SIZE: usize = 64 << 10;
/// Commands in a second from which on clients are busy.
const BUSY_COMMANDS: u64 = 10_000;
/// How long commands are counted at least, in milliseconds.
const COUNT_MS: i64 = 100;
/// How often a segment is coded while clients are busy, in milliseconds.
const BUSY_INTERVAL_MS: i64 = 4000;
/// Bytes of values that may wait to be coded while clients are busy, and a share of all, one by so
/// many, if that is more.
const WAITING_SIZE_MAX: u64 = 1 << 30;
const WAITING_SHARE: u64 = 4;
/// Bytes of segments that are coded before the keeper looks for other work.
const TURN_SIZE: usize = 16 << 20;
/// Bytes of a segment above which it stays as it is: it and its copy are in memory meanwhile. Only one
/// value of that size makes such a segment.
const CODED_SIZE_MAX: u64 = 64 << 20;

/// How much clients ask for.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Commands on keys when they were last counted.
    commands: u64,
    /// When that was, in milliseconds since the epoch.
    counted_ms: i64,
    /// When a segment was last coded.
    coded_ms: i64,
    is_busy: bool,
}

impl Pace {
    /// Counts what clients have asked for up to now.
    fn count(&mut self, commands: u64, now_ms: i64) {
        let elapsed_ms = now_ms - self.counted_ms;
        // A clock that was set back begins anew.
        if (0..COUNT_MS).contains(&elapsed_ms) {
            return;
        }
        let asked = commands.saturating_sub(self.commands).saturating_mul(1000);
        self.is_busy = match u64::try_from(elapsed_ms) {
            Ok(elapsed_ms) => BUSY_COMMANDS < asked / elapsed_ms.max(1),
            Err(_) => false,
        };
        (self.commands, self.counted_ms) = (commands, now_ms);
    }

    /// Whether clients ask for much.
    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Whether a segment may be coded now.
    fn has_time(&self, now_ms: i64) -> bool {
        !self.is_busy || !(0..BUSY_INTERVAL_MS).contains(&(now_ms - self.coded_ms))
    }
}

/// A record that was copied.
struct Copied {
    db: u8,
    hash: KeyHash,
    from: Address,
    to: Address,
}

impl Kv {
    /// Codes the values of segments that have rested, as far as there is time for it. Not while the
    /// index is copied: what a checkpoint names must stay.
    pub(crate) fn code_rested(&self) -> Result<()> {
        let mut size = 0;
        while size < TURN_SIZE
            && let Some(number) = self.next_to_code()
        {
            size += self.code_segment(number)?;
        }
        Ok(())
    }

    /// The next segment to be coded, if there is time for it now.
    fn next_to_code(&self) -> Option<u32> {
        if !self.is_compressed() {
            return None;
        }
        let now_ms = self.now_ms();
        let keys = self.lock_behind();
        let stats = keys.cold.stats();
        let asked = keys.stats.hits + keys.stats.misses + keys.stats.changes;
        let mut pace = self.pace();
        pace.count(asked, now_ms);
        let is_much = WAITING_SIZE_MAX.max(stats.live_size / WAITING_SHARE) < stats.plain_size;
        let next = keys.cold.to_code(now_ms).filter(|_| is_much || pace.has_time(now_ms));
        if next.is_some() {
            pace.coded_ms = now_ms;
        }
        next
    }

    /// Copies what counts of a segment into another, the values coded, if that is worth it. Returns how
    /// many bytes it looked at.
    fn code_segment(&self, number: u32) -> Result<usize> {
        let beginning = self.read_segment(number, BEGINNING_SIZE)?;
        let size = self.lock_behind().cold.file_of(number).map_or(0, |(_, size)| size);
        if CODED_SIZE_MAX < size || !record::is_mostly_plain(&beginning) {
            self.lock_behind().cold.note_coded(number);
            return Ok(beginning.len());
        }
        let bytes = self.bytes_of(number)?;
        let live = self.live_records(number, &bytes);
        let to_segment = self.lock_behind().cold.number_for_copy();
        let (copy, copied) = self.copy_coded(&live, to_segment)?;
        let live_size: usize = live.iter().map(|(_, _, raw)| raw.len()).sum();
        // Else it is not worth it that every key is pointed to another place.
        if copy.len() + copy.len() / GAIN_SHARE < live_size {
            let path = self.lock_behind().cold.path_of(to_segment);
            let source = write_segment(self.vfs().as_ref(), &path, &copy)?;
            let count = u32::try_from(copied.len()).unwrap_or(u32::MAX);
            let mut keys = self.lock_behind();
            keys.stats.coded += 1;
            keys.cold.add_copy(to_segment, source, copy.len() as u64, count);
            drop(keys);
            for step in copied.chunks(STEP) {
                self.lock_behind().relocate(step);
            }
        }
        // What is still pointed to after that is rotten, and stays.
        self.lock_behind().cold.note_coded(number);
        Ok(bytes.len())
    }

    /// The bytes of a segment on disk; none if there is none.
    pub(crate) fn bytes_of(&self, number: u32) -> Result<Vec<u8>> {
        self.read_segment(number, usize::MAX)
    }

    fn read_segment(&self, number: u32, size_max: usize) -> Result<Vec<u8>> {
        // Others have the keys while the disk is waited for.
        let file = self.lock_behind().cold.file_of(number);
        let Some((file, size)) = file else { return Ok(Vec::new()) };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let mut bytes = vec![0; size.min(size_max)];
        let got = file.read_at(0, &mut bytes).inspect_err(|_| {
            self.lock_behind().cold.note_failed(number, self.now_ms());
        })?;
        bytes.truncate(got);
        Ok(bytes)
    }

    /// The records of a segment that count, each with where it lies and the hash of its key.
    fn live_records<'a>(
        &self,
        number: u32,
        bytes: &'a [u8],
    ) -> Vec<(Address, (u8, KeyHash), &'a [u8])> {
        let hash_seed = self.lock_behind().hash_seed;
        let all = record::walk(bytes).filter_map(|(offset, raw)| {
            let at = Address { segment: number, offset: units(offset) };
            Some((at, record::place_of(raw, hash_seed)?, raw))
        });
        let all: Vec<_> = all.collect();
        let mut live = Vec::with_capacity(all.len());
        for step in all.chunks(STEP) {
            let keys = self.lock_behind();
            let counts = |(at, (db, hash), _): &&(Address, (u8, KeyHash), &[u8])| {
                keys.place_of_record(*db, *hash, *at).is_some()
            };
            live.extend(step.iter().filter(counts).copied());
        }
        live
    }

    /// The bytes of a segment with those records, their values coded, and where each record went.
    fn copy_coded(
        &self,
        records: &[(Address, (u8, KeyHash), &[u8])],
        to_segment: u32,
    ) -> Result<(Vec<u8>, Vec<Copied>)> {
        let mut groups = self.groups();
        let mut dictionaries = self.lock_behind().cold.dictionaries.clone();
        let (mut copy, mut copied) = (Vec::new(), Vec::with_capacity(records.len()));
        for (from, (db, hash), raw) in records {
            let start = copy.len();
            let to = Address { segment: to_segment, offset: units(start) };
            copied.push(Copied { db: *db, hash: *hash, from: *from, to });
            record::put_coded(&mut copy, raw, &mut groups);
            // The segment that has the plain value goes.
            if !record::is_same(copy.get(start..).unwrap_or_default(), raw, &dictionaries) {
                copy.truncate(start);
                copy.extend_from_slice(raw);
            }
            copy.resize(copy.len().next_multiple_of(RECORD_ALIGNMENT), 0);
            while let Some(trained) = groups.train() {
                dictionary::write(self.vfs().as_ref(), self.dir(), &trained)?;
                let inserted =
                    self.lock_behind().cold.insert_dictionary(trained.number, &trained.bytes);
                inserted.map_err(|error| {
                    Error::from(vfs::Error::new("load dictionary", self.dir(), error))
                })?;
                groups.adopt(trained);
                dictionaries = self.lock_behind().cold.dictionaries.clone();
            }
        }
        self.note_compression(groups.stats, groups.by_dictionary.clone());
        Ok((copy, copied))
    }
}

/// An offset in a segment, as addresses have it.
fn units(offset: usize) -> u32 {
    u32::try_from(offset / RECORD_ALIGNMENT).expect("segments are bounded")
}

impl Keyspace {
    /// Points to the copies of records instead, as far as they count.
    fn relocate(&mut self, copies: &[Copied]) {
        for Copied { db, hash, from, to } in copies {
            let Some(place) = self.place_of_record(*db, *hash, *from) else { continue };
            match place {
                Place::Cold(_) => {
                    self.dbs[usize::from(*db)].replace(*hash, place, Place::Cold(*to));
                }
                Place::Hot(number) => {
                    if let Some(slot) = self.slots.get_mut(number) {
                        slot.home = Some(*to);
                    }
                }
            }
            self.cold.relocate(*from, *to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_clients_are_busy_segments_are_coded_now_and_then() {
        let mut pace = Pace::default();
        pace.count(0, 1000);
        assert!(pace.has_time(1000));
        pace.count(5000, 1050);
        assert!(pace.has_time(1050), "too short to tell");
        pace.count(5000, 1100);
        pace.coded_ms = 1100;
        assert!(!pace.has_time(1200), "50,000 commands in a second");
        assert!(pace.has_time(1100 + BUSY_INTERVAL_MS));
        assert!(pace.has_time(500), "the clock was set back");
        pace.count(5100, 1300);
        assert!(pace.has_time(1300), "500 commands in a second");
    }
}
