//! What is done beside commands: cold keys go to disk, segments are written, emptied and dropped,
//! checkpoints are made, expired keys go, large values are freed.
//!
//! A checkpoint, step by step; commands run in between:
//! ```text
//! rotate the log ─► write every key that is dirty since before ─► copy the index, table by table
//!   ─► wait until the log has what was copied ─► sync ─► manifest ─► cut the log, drop segments
//! ```
//! The copy is of no single moment. What it lacks is in the log from the rotation on, and records
//! carry the number of the last change they have seen, so that no change is made twice.

use super::coding::STEP;
use super::saving::Frozen;
use crate::cold::{ColdStats, Manifest, SnapshotWriter, index_name, record, write_segment};
use crate::error::{Error, Result};
use crate::index::{Address, KeyHash, Place, RECORD_ALIGNMENT};
use crate::keyspace::{Fetch, Keyspace};
use crate::kv::Kv;
use crate::slots::Slot;
use std::time::Instant;

/// How often the hand comes to the end at most before it has found enough to cool: each slot is passed
/// twice then, whatever was used in between.
const ENDS_MAX: u32 = 3;
/// The share of the memory for keys that values always have, one by so many: where the index alone
/// takes more than all of it, every command would otherwise read its values from disk, and those of
/// the command behind it let them go cold again.
const VALUES_SHARE: usize = 8;
/// Expired keys that are taken out under one hold of the lock.
const EXPIRE_STEP: usize = 200;
/// Times that keys are cooled, [`STEP`] of them each, before a checkpoint that is due comes first.
const COOL_TURNS_MIN: u32 = 64;
/// Times that a checkpoint is begun anew because databases were emptied or exchanged meanwhile.
const ATTEMPTS_MAX: u32 = 8;
/// Bytes of segments without anything that counts which are worth a checkpoint of their own, if they are
/// as many times the index that it writes, too.
const EMPTY_SIZE_MIN: u64 = 256 << 20;
const EMPTY_INDEX_TIMES: u64 = 2;
/// Bytes of the log that records of keys may hold back, as many times the index that a checkpoint
/// writes.
const RETAINED_INDEX_TIMES: u64 = 2;
/// The same when there is nothing else to do, if it is half of what counts, too.
const REST_EMPTY_SIZE_MIN: u64 = 16 << 20;
/// Bytes of a key in the index that a checkpoint writes.
const INDEX_KEY_SIZE: u64 = 12;

/// How long the hand rests when all that is left in memory is large and in use: going around takes
/// time, and who has just written would do it each time.
const HAND_REST_MS: i64 = 100;
/// Seconds for which a large value that was used stays in memory.
const LARGE_STAY_S: i64 = 5;
/// Times the memory for keys up to which large values in use may go beyond it. A command that pushes
/// to a list of hundreds of megabytes would read and write all of it otherwise.
const SPARING_TIMES: usize = 4;

fn is_in_use(slot: &Slot, now_s: i64) -> bool {
    (0..LARGE_STAY_S).contains(&(now_s - i64::from(slot.used_at)))
}

impl Keyspace {
    /// Whether keys take more memory than they may, and values more than their least share of it.
    pub(crate) fn is_over_memory(&self) -> bool {
        self.is_over(self.config.memory_max)
    }

    pub(crate) fn is_over(&self, max: usize) -> bool {
        max < self.memory_used() && max / VALUES_SHARE < self.hot_size + self.cold.memory_used()
    }

    /// Lets up to `count` of the keys go cold that were not used since the hand last passed.
    /// Returns how many did.
    pub(crate) fn cool(&mut self, count: usize) -> usize {
        let rest_ms = self.hand_rests_until_ms.saturating_sub(self.now_ms());
        // More than it ever rests is left when the clock was set back.
        if (1..=HAND_REST_MS).contains(&rest_ms) {
            return 0;
        }
        let (mut cooled, mut spared, mut ends) = (0, 0, 0);
        let now_s = self.now_ms() / 1000;
        let large_size = self.config.large_size;
        let spares_large =
            self.memory_used() <= self.config.memory_max.saturating_mul(SPARING_TIMES);
        while cooled < count && self.is_over_memory() && !self.cold.is_behind() {
            let Some(number) = self.slots.next_taken(self.hand) else {
                self.hand = 0;
                ends += 1;
                if ends == ENDS_MAX {
                    break;
                }
                continue;
            };
            self.hand = number + 1;
            if self.slots.is_saving(number) {
                continue;
            }
            let Some(slot) = self.slots.get_mut(number) else { continue };
            if slot.is_referenced {
                slot.is_referenced = false;
                continue;
            }
            let is_spared = spares_large && large_size <= slot.cost;
            if is_spared && is_in_use(slot, now_s) {
                spared += 1;
                continue;
            }
            if is_spared && slot.is_dirty {
                // It takes long to write down: the keeper does, and it goes the next time.
                self.slots.want_saved(number);
                spared += 1;
                continue;
            }
            self.cool_slot(number);
            cooled += 1;
        }
        if cooled == 0 && 0 < spared {
            self.hand_rests_until_ms = self.now_ms() + HAND_REST_MS;
        }
        cooled
    }

    fn cool_slot(&mut self, number: u32) {
        let address = self.save_slot(number);
        let Some(slot) = self.slots.remove(number) else { return };
        let hash = self.hash(&slot.key);
        let index = &mut self.dbs[usize::from(slot.db)];
        index.replace(hash, Place::Hot(number), Place::Cold(address));
        self.hot_size -= slot.cost as usize;
        self.stats.cooled += 1;
        self.discard(slot.value);
    }

    /// Writes a hot key down unless its record is up to date. Returns its address.
    fn save_slot(&mut self, number: u32) -> Address {
        let slot = self.slots.get_mut(number).expect("the caller has seen it");
        if let (Some(home), false) = (slot.home, slot.is_dirty) {
            return home;
        }
        let address = self.cold.put(slot);
        let before = slot.home.replace(address);
        slot.is_dirty = false;
        if let Some(before) = before {
            self.cold.release(before);
        }
        address
    }

    /// Writes the dirty ones down among `count` slots from `from` on, but for large ones, which are
    /// added to `large`. Returns where to go on.
    fn save_slots(&mut self, from: u32, count: u32, large: &mut Vec<Frozen>) -> u32 {
        let end = self.slots.end().min(from.saturating_add(count));
        for number in from..end {
            let Some(slot) = self.slots.get(number).filter(|slot| slot.is_dirty) else { continue };
            let is_large = self.config.large_size <= slot.cost;
            match is_large.then(|| self.freeze_slot(number)).flatten() {
                Some(frozen) => large.push(frozen),
                None => {
                    self.save_slot(number);
                }
            }
        }
        end
    }

    /// Where the records of a table's keys lie, and which expire. A key that has no record yet came
    /// after the checkpoint began and is in the log.
    fn copy_table(&self, db: usize, table: usize) -> TableCopy {
        let mut copy = TableCopy::default();
        for (hash, place) in self.dbs[db].table(table) {
            match place {
                Place::Cold(address) => copy.keys.push((hash, address)),
                Place::Hot(number) => {
                    let Some(slot) = self.slots.get(number) else { continue };
                    copy.keys.extend(slot.home.map(|home| (hash, home)));
                }
            }
        }
        copy
    }

    /// The place of the key whose record lies there, if that record counts.
    pub(crate) fn place_of_record(&self, db: u8, hash: KeyHash, record: Address) -> Option<Place> {
        let slots = &self.slots;
        self.dbs.get(usize::from(db))?.find(hash, |place| match place {
            Place::Cold(address) => address == record,
            Place::Hot(number) => slots.get(number).is_some_and(|slot| slot.home == Some(record)),
        })
    }

    /// Moves those records of a segment that count, among the ones given by offset.
    fn move_records(&mut self, segment: u32, records: &[(usize, &[u8])]) {
        for (offset, raw) in records {
            let Some((db, hash)) = record::place_of(raw, self.hash_seed) else { continue };
            let offset = u32::try_from(offset / RECORD_ALIGNMENT).unwrap_or(u32::MAX);
            let from = Address { segment, offset };
            let Some(place) = self.place_of_record(db, hash, from) else { continue };
            let to = self.cold.put_raw(raw);
            match place {
                Place::Cold(_) => {
                    self.dbs[usize::from(db)].replace(hash, place, Place::Cold(to));
                }
                Place::Hot(number) => {
                    if let Some(slot) = self.slots.get_mut(number) {
                        slot.home = Some(to);
                    }
                }
            }
            self.cold.release(from);
        }
    }
}

/// Whether the room of segments without anything that counts is worth a checkpoint of its own.
fn is_worth_checkpoint(empty_size: u64, stats: &ColdStats) -> bool {
    let index_size = stats.live_records * INDEX_KEY_SIZE;
    EMPTY_SIZE_MIN.max(EMPTY_INDEX_TIMES * index_size) <= empty_size
}

/// Whether it is when there is nothing else to do.
fn is_worth_rest(empty_size: u64, stats: &ColdStats) -> bool {
    REST_EMPTY_SIZE_MIN.max(stats.live_size / 2) <= empty_size
}

/// What became of a checkpoint.
enum Made {
    /// It is durable.
    Whole,
    /// Databases were emptied or exchanged meanwhile: what was copied is of two worlds, and of no use.
    OfTwoWorlds,
}

/// A table of the index as a checkpoint keeps it.
#[derive(Default)]
struct TableCopy {
    keys: Vec<(KeyHash, Address)>,
}

impl Kv {
    /// Does what there is to do now.
    ///
    /// # Errors
    /// When the disk fails; it is tried again the next time.
    pub fn keep(&self) -> Result<()> {
        self.wal().hurry();
        self.expire();
        self.empty_trash();
        let tidied = self.tidy_cold();
        // Whatever fails above: without checkpoints the log grows for ever.
        let saved = if self.is_checkpoint_due() { self.checkpoint() } else { Ok(()) };
        tidied.and(saved)
    }

    /// Lets keys go cold, and has what is cold take less room.
    fn tidy_cold(&self) -> Result<()> {
        let _one = self.checkpointing();
        let mut turns = 0;
        // While clients write more than may stay, there is no end to it.
        while (turns < COOL_TURNS_MIN || !self.is_log_long()) && 0 < self.cool_some(STEP) {
            self.write_sealed()?;
            turns += 1;
        }
        self.save_wanted()?;
        self.write_sealed()?;
        let compacted = self.compact();
        self.code_rested().and(compacted)
    }

    /// Lets keys go cold if there are too many. Returns how many did.
    pub(crate) fn cool_some(&self, count: usize) -> usize {
        let mut keys = self.lock_behind();
        if !keys.is_over_memory() {
            return 0;
        }
        keys.cool(count)
    }

    fn expire(&self) {
        // Clients do not find expired keys either way.
        if self.write_refusal().is_some() {
            return;
        }
        let mut fetches = Vec::new();
        loop {
            let now_ms = self.now_ms();
            {
                let mut keys = self.lock_behind();
                keys.set_now(now_ms);
                keys.fetch_due(EXPIRE_STEP, &mut fetches);
            }
            fetches.iter_mut().for_each(Fetch::read);
            let mut keys = self.lock_behind();
            keys.set_now(now_ms);
            keys.settle(&mut fetches);
            let looked_at = keys.expire_due(EXPIRE_STEP);
            let committed = self.commit(&mut keys);
            if committed.is_err() || looked_at.is_ok_and(|count| count < EXPIRE_STEP) {
                return;
            }
        }
    }

    fn empty_trash(&self) {
        let trash = self.lock_behind().trash.take();
        drop(trash);
    }

    /// Writes the sealed segments to their files.
    fn write_sealed(&self) -> Result<()> {
        let sealing = self.lock_behind().cold.sealing();
        for (number, bytes) in sealing {
            let path = self.lock_behind().cold.path_of(number);
            let source = write_segment(self.vfs().as_ref(), &path, &bytes)?;
            self.lock_behind().cold.sealed(number, source, self.now_ms());
        }
        Ok(())
    }

    /// Writes large values down that are about to go cold.
    fn save_wanted(&self) -> Result<()> {
        let mut large = Vec::new();
        {
            let mut keys = self.lock_behind();
            for number in keys.slots.take_wanted() {
                if keys.slots.get(number).is_none_or(|slot| !slot.is_dirty) {
                    continue;
                }
                match keys.freeze_slot(number) {
                    Some(frozen) => large.push(frozen),
                    None => {
                        keys.save_slot(number);
                    }
                }
            }
        }
        self.save_frozen(large)
    }

    /// Whether so many segments wait for the disk that commands should, too.
    pub(crate) fn is_disk_behind(&self) -> bool {
        self.lock_behind().cold.is_behind()
    }

    /// Moves what counts out of the segment with the least of it.
    fn compact(&self) -> Result<()> {
        let now_ms = self.now_ms();
        let Some(number) = self.lock_behind().cold.to_compact(now_ms) else { return Ok(()) };
        let bytes = self.bytes_of(number)?;
        let records: Vec<(usize, &[u8])> = record::walk(&bytes).collect();
        for step in records.chunks(STEP) {
            self.lock_behind().move_records(number, step);
            self.write_sealed()?;
        }
        let mut keys = self.lock_behind();
        keys.stats.compacted += 1;
        let left = keys.cold.note_compacted(number);
        if 0 < left {
            let path = keys.cold.path_of(number);
            keys.note_rotten_segment(&path, left);
        }
        Ok(())
    }

    /// Whether so much was logged since the last checkpoint that another one is due.
    fn is_log_long(&self) -> bool {
        self.lock_behind().config.checkpoint_log_size <= self.logged_size()
    }

    /// Whether records of keys hold back a log that others have filled, or have been in it for long.
    fn is_log_retained(&self) -> bool {
        let Some((size, age)) = self.retained_log() else { return false };
        let keys = self.lock_behind();
        let index_size = keys.cold.stats().live_records * INDEX_KEY_SIZE;
        keys.config.retained_log_size.max(RETAINED_INDEX_TIMES * index_size) <= size
            || keys.config.retained_log_age <= age
    }

    fn is_checkpoint_due(&self) -> bool {
        if self.is_log_long() || self.is_log_retained() {
            return true;
        }
        let keys = self.lock_behind();
        let (empty_size, stats) = (keys.cold.empty_size(), keys.cold.stats());
        let is_at_rest = !self.pace().is_busy() && keys.cold.to_code(self.now_ms()).is_none();
        is_worth_checkpoint(empty_size, &stats) || is_at_rest && is_worth_rest(empty_size, &stats)
    }

    /// Makes all keys durable outside of the log, so that it can be cut.
    ///
    /// # Errors
    /// When the disk or the log fails, or databases were emptied or exchanged all the while; nothing
    /// is lost, and it may be tried again.
    pub fn checkpoint(&self) -> Result<()> {
        let _one = self.checkpointing();
        let started = Instant::now();
        for _ in 0..ATTEMPTS_MAX {
            let unsaved = self.first_unsaved();
            let changes = self.lock_behind().stats.changes;
            let (log_from, logged_size) = self.begin_checkpoint();
            let made = self.make_checkpoint(log_from);
            self.lock_behind().is_being_saved = false;
            if !matches!(made, Ok(Made::Whole)) {
                // What was logged before is still to be saved.
                self.note_logged(logged_size);
                self.set_first_unsaved(unsaved);
            }
            if let Made::Whole = made? {
                let stats = &mut self.lock_behind().stats;
                stats.saved_changes = changes;
                stats.checkpoints += 1;
                let ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
                stats.checkpoint_ns = stats.checkpoint_ns.saturating_add(ns);
                return Ok(());
            }
        }
        Err(Error::Unsettled)
    }

    fn make_checkpoint(&self, log_from: u64) -> Result<Made> {
        let mut from = 0;
        loop {
            let mut large = Vec::new();
            let (next, end) = {
                let mut keys = self.lock_behind();
                (keys.save_slots(from, STEP as u32, &mut large), keys.slots.end())
            };
            self.save_frozen(large)?;
            if end <= next {
                break;
            }
            from = next;
            self.write_sealed()?;
        }
        self.lock_behind().cold.seal();
        self.write_sealed()?;
        let doomed = self.lock_behind().cold.empty_segments();
        let index_file = self.next_index_file();
        let path = self.dir().join(index_name(index_file));
        let mut writer = SnapshotWriter::new(self.vfs().as_ref(), &path)?;
        if let Made::OfTwoWorlds = self.copy_index(&mut writer)? {
            self.vfs().remove(&path)?;
            return Ok(Made::OfTwoWorlds);
        }
        writer.finish()?;
        self.finish_checkpoint(log_from, index_file, doomed)
    }

    /// Returns where the records begin that come after it, and how many bytes were logged before.
    fn begin_checkpoint(&self) -> (u64, u64) {
        let mut keys = self.lock_behind();
        keys.cold.is_snapshot_stale = false;
        keys.is_being_saved = true;
        let logged_size = self.logged_size();
        // All that is logged from here on is replayed, and all before it is saved below.
        self.note_rotation(self.wal().rotate());
        (self.log_from(), logged_size)
    }

    /// Copies the index into a file.
    fn copy_index(&self, writer: &mut SnapshotWriter) -> Result<Made> {
        let databases = self.lock_behind().dbs.len();
        for db in 0..databases {
            let number = u8::try_from(db).unwrap_or(u8::MAX);
            let tables = self.lock_behind().dbs[db].table_count();
            for table in 0..tables {
                let copy = {
                    let keys = self.lock_behind();
                    if keys.cold.is_snapshot_stale {
                        return Ok(Made::OfTwoWorlds);
                    }
                    keys.copy_table(db, table)
                };
                if !copy.keys.is_empty() {
                    writer.keys(number, &copy.keys)?;
                }
            }
        }
        let expiry = self.lock_behind().expiry.all();
        for (db, entries) in expiry {
            writer.expiry(db, &entries)?;
        }
        match self.lock_behind().cold.is_snapshot_stale {
            true => Ok(Made::OfTwoWorlds),
            false => Ok(Made::Whole),
        }
    }

    fn finish_checkpoint(&self, log_from: u64, index_file: u64, doomed: Vec<u32>) -> Result<Made> {
        let seq = {
            let mut keys = self.lock_behind();
            keys.cold.seal();
            keys.seq
        };
        self.write_sealed()?;
        self.vfs().sync_dir(self.dir())?;
        // The index may show changes that the log has not on disk yet.
        self.wal().wait_durable(self.wal().end())?;
        let mut manifest = {
            let keys = self.lock_behind();
            if keys.cold.is_snapshot_stale {
                return Ok(Made::OfTwoWorlds);
            }
            Manifest {
                hash_seed: keys.hash_seed,
                seq,
                log_from,
                next_segment: keys.cold.next_segment(),
                index_file,
                databases: u32::try_from(keys.dbs.len()).unwrap_or(u32::MAX),
                hidden: u32::try_from(keys.hidden_from).unwrap_or(u32::MAX),
                has_tail: false,
                has_file_list: false,
                segments: keys.cold.segment_infos(&doomed),
                dictionaries: keys.cold.dictionaries.numbers(),
            }
        };
        self.write_manifest(&mut manifest)?;
        self.note_saved(log_from);
        if let Ok(size) = self.vfs().size(&self.dir().join(index_name(index_file))) {
            self.set_index_file_size(size);
        }
        {
            let mut keys = self.lock_behind();
            keys.stats.removed_segments += doomed.len() as u64;
            keys.stats.removed_size += keys.cold.drop_segments(&doomed);
        }
        self.remove_unnamed(&manifest)?;
        self.cut_log()?;
        Ok(Made::Whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_for_room_gives_back_more_than_it_writes() {
        const MIB: u64 = 1 << 20;
        let few = ColdStats { live_size: 600 * MIB, live_records: 1_000_000, ..Default::default() };
        assert!(is_worth_checkpoint(256 * MIB, &few));
        assert!(!is_worth_checkpoint(255 * MIB, &few), "whatever does not count elsewhere");
        let many = ColdStats { live_records: 40_000_000, ..few };
        assert!(!is_worth_checkpoint(256 * MIB, &many), "the index alone is 458 MiB");
        assert!(is_worth_checkpoint(916 * MIB, &many));
        assert!(is_worth_rest(300 * MIB, &few) && !is_worth_rest(299 * MIB, &few));
        let none = ColdStats::default();
        assert!(is_worth_rest(16 * MIB, &none) && !is_worth_rest(15 * MIB, &none));
    }
}
