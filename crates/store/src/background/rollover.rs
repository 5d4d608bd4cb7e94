//! Rollover to the next partition, prepared ahead: series that are active now are registered in the next
//! partition's index and their keys copied, before its first sample comes. So the first scrape of a
//! partition costs what the last one of the partition before did.
//!
//! ```text
//! last hours of a partition, a tenth of a second in each:
//! blocks of the old index ─ active entities ─► next partition: find or register ─► new id of each
//! slots of the old key map ─ entities with a new id ───────────────────────► key to new id
//! ```
//!
//! An entity of which the next partition knows a metric already, as part of another list of
//! metrics, is left to its first sample: registered as it is, that series would be there twice. As
//! everywhere, the log has room for a registration before it is made.
//!
//! Passes repeat, for who came meanwhile. Nothing depends on it: who was missed is registered with
//! the first sample, as ever. Ids of a pass are checked when they are used, for a merge may have
//! forgotten entities without samples. Ids of a partition that was dropped mean nothing to one made
//! anew: a preparation between others than these two partitions begins again.

use crate::base::ground::Ground;
use crate::base::locks::lock;
use crate::base::narrow::to_u16;
use crate::log::log_record::{RECORD_HEAD_SIZE_MAX, RowsEncoder};
use crate::log::store_log::StoreLog;
use crate::partition::partitions::Partitions;
use crate::partition::series_map::{GROUP_ROWS, Target};
use crate::partition::shared::Shared;
use crate::partition::{Partition, PartitionState};
use crate::{Error, Result};
use index::{BlockRef, EntityId, NewEntity};
use model::{LabelsBuilder, METRIC_NAME, SortedLabels};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use wal::Reservation;

/// Time that one round may take, of a second.
const ROUND_TIME: Duration = Duration::from_millis(100);
/// Slots of a block, or of a key map, that are looked at under one lock.
const STRIDE: usize = 1024;
/// Rounds between the end of a pass and the next one.
const PAUSE_ROUNDS: u32 = 300;
/// No new id.
const NONE: EntityId = EntityId::MAX;

/// What prepares the next partition.
pub(crate) struct Rollover {
    ground: Arc<Ground>,
    log: Arc<StoreLog>,
    partitions: Arc<Partitions>,
    /// The preparation under way, when there is one.
    preparation: Mutex<Option<Preparation>>,
}

/// A preparation under way.
struct Preparation {
    /// The partition that ends.
    old: Weak<Partition>,
    /// The partition to come, once it was seen.
    next: Weak<Partition>,
    stage: Stage,
    /// By entity of the old partition, the new id.
    new_ids: Vec<EntityId>,
}

enum Stage {
    /// Blocks are carried over; the next one.
    Entities(Vec<BlockRef>, usize),
    /// Keys are copied; the next slot, and how many slots the map had.
    Keys(usize, usize),
    /// All done for now; so many rounds are left to wait.
    Pause(u32),
}

/// How much of a block was carried over.
#[derive(PartialEq, Eq)]
enum Carry {
    All,
    Some,
}

/// An entity's labels, on their way from one index to another.
struct Carried {
    entity: EntityId,
    tags: SortedLabels,
}

impl Rollover {
    pub fn new(shared: &Shared) -> Rollover {
        Rollover {
            ground: shared.ground.clone(),
            log: shared.log.clone(),
            partitions: shared.partitions.clone(),
            preparation: Mutex::default(),
        }
    }

    /// Goes on with the preparation, if there is one to do.
    ///
    /// # Errors
    /// When an index is corrupt, or the log fails. One that has no room is asked again later.
    pub fn prepare(&self) -> Result<()> {
        let now = self.ground.vfs.now();
        let mut preparation = lock(&self.preparation);
        let Some(old) = self.ending_partition(now) else {
            *preparation = None;
            return Ok(());
        };
        let preparation = match &mut *preparation {
            Some(known) if known.old.ptr_eq(&Arc::downgrade(&old)) => known,
            other => other.insert(Preparation::new(&old)?),
        };
        // How much is done in a round is a matter of this machine's speed, not of the store's clock.
        let start = Instant::now();
        while start.elapsed() < ROUND_TIME && !matches!(preparation.stage, Stage::Pause(_)) {
            match self.step(preparation, &old) {
                // What there was room for is done; the rest has some later.
                Err(Error::Wal(wal::Error::Busy { .. })) => return Ok(()),
                done => done?,
            }
        }
        if let Stage::Pause(left) = &mut preparation.stage {
            match left.checked_sub(1) {
                Some(fewer) => *left = fewer,
                None => preparation.stage = Stage::of_blocks(&old)?,
            }
        }
        Ok(())
    }

    /// Prepares all there is to prepare, at once.
    ///
    /// # Errors
    /// As [`Rollover::prepare`], and when the log has no room.
    pub fn prepare_fully(&self) -> Result<()> {
        let Some(old) = self.ending_partition(self.ground.vfs.now()) else { return Ok(()) };
        let mut preparation = Preparation::new(&old)?;
        while !matches!(preparation.stage, Stage::Pause(_)) {
            self.step(&mut preparation, &old)?;
        }
        Ok(())
    }

    /// The partition that is about to end, by the clock or by its newest samples.
    fn ending_partition(&self, now: i64) -> Option<Arc<Partition>> {
        let ends_soon = |partition: &Arc<Partition>| {
            let begins = partition.period.range().end - self.ground.length.rollover_ahead_ns();
            let state = partition.read();
            state.active.is_active(now) && begins <= state.newest()
        };
        let present = self.ground.length.of(now);
        let present = self.partitions.get(present);
        let is_ending = |partition: &Arc<Partition>| {
            partition.period.range().end - self.ground.length.rollover_ahead_ns() <= now
        };
        // Later partitions are those of clocks that are ahead; the one before the newest may be it.
        let newest = || self.partitions.all().into_iter().rev().take(2).find(ends_soon);
        present.filter(is_ending).or_else(newest)
    }

    fn step(&self, preparation: &mut Preparation, old: &Partition) -> Result<()> {
        let Some(next) = old.period.next() else {
            // Behind the last partition there is no time.
            preparation.stage = Stage::Pause(PAUSE_ROUNDS);
            return Ok(());
        };
        let next = match self.partitions.get_or_make(next) {
            // A partition that cannot be written to needs no preparation.
            Err(Error::Damaged { .. } | Error::LimitExceeded { .. }) => {
                preparation.stage = Stage::Pause(PAUSE_ROUNDS);
                return Ok(());
            }
            next => next?,
        };
        preparation.meet(old, &next)?;
        self.log.wait_for_room()?;
        match &mut preparation.stage {
            Stage::Pause(_) => Ok(()),
            Stage::Entities(blocks, at) => match blocks.get(*at) {
                None => {
                    preparation.stage = Stage::Keys(0, old.read().series.map.slot_count());
                    Ok(())
                }
                Some(block) => {
                    let (block, after) = (*block, *at + 1);
                    let carried = self.carry_block(&mut preparation.new_ids, old, &next, &block);
                    let carried = match carried {
                        // What cannot be read, here or there, is left out; the scrub says so.
                        Err(error) if error.is_corrupt() => Carry::All,
                        carried => carried?,
                    };
                    // A block that did not fit the log, or one record of it, comes again.
                    if carried == Carry::All
                        && let Stage::Entities(_, at) = &mut preparation.stage
                    {
                        *at = after;
                    }
                    Ok(())
                }
            },
            Stage::Keys(at, slots) => {
                let start = std::mem::replace(at, *at + STRIDE);
                let keys = {
                    let state = old.read();
                    if state.series.map.slot_count() != *slots || *slots <= start {
                        // Grown meanwhile: the next pass has the rest.
                        preparation.stage = Stage::Pause(PAUSE_ROUNDS);
                        return Ok(());
                    }
                    state.series.map.keys_in(start..start + STRIDE)
                };
                copy_keys(&preparation.new_ids, keys, &next)
            }
        }
    }

    /// Finds or registers the active entities of a block in the next partition, as many as one
    /// record of the log takes.
    fn carry_block(
        &self,
        new_ids: &mut Vec<EntityId>,
        old: &Partition,
        next: &Partition,
        block: &BlockRef,
    ) -> Result<Carry> {
        let (names, carried) = active_of(&old.read(), block, new_ids)?;
        if carried.is_empty() {
            return Ok(Carry::All);
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut encoder = RowsEncoder::default();
        encoder.start(0);
        let mut state = next.write();
        if next.is_dropped() {
            return Err(Error::PartitionDropped);
        }
        // Dropped before the partition's lock is given back, also by a panic.
        let mut room = self.log.wal.reserve(RECORD_HEAD_SIZE_MAX)?;
        let log = &mut encoder.registrations;
        let result =
            carried.iter().try_for_each(|one| state.carry(&names, one, new_ids, &mut room, log));
        // Whatever stopped it: what was registered is in the log before anybody uses it.
        let has_some = !encoder.is_empty();
        if has_some {
            let entities = state.series.entities_end();
            state.head.arena.reserve_entities(entities);
            let (wal, now) = (&self.log.wal, self.ground.vfs.now());
            state.log_rows(next.period, &mut encoder, &mut Vec::new(), wal, room, now)?;
            state.series.note_unflushed_size();
            next.note_head_size(&state);
        }
        match result {
            Err(Error::Wal(wal::Error::RecordTooLarge { .. })) if has_some => Ok(Carry::Some),
            result => result.map(|()| Carry::All),
        }
    }
}

impl PartitionState {
    /// Notes the id of an entity of the partition before, which is registered if this one knows
    /// none of its series.
    fn carry(
        &mut self,
        names: &[&str],
        Carried { entity, tags }: &Carried,
        new_ids: &mut Vec<EntityId>,
        room: &mut Reservation<'_>,
        log: &mut Vec<u8>,
    ) -> Result<()> {
        let tags: Vec<(&str, &str)> = tags.iter().collect();
        let wanted = NewEntity::new(names, &tags);
        let id = match self.series.index.find_entity(&wanted)? {
            Some(known) => known,
            None if self.series.find_each(&wanted, names)?.iter().any(Option::is_some) => {
                return Ok(());
            }
            None => {
                room.grow(wanted.registration_size_max())?;
                self.series.index.register(&wanted, log)?
            }
        };
        assert!((id as usize) < self.series.entities_end(), "rows of it can be found");
        let idx = *entity as usize;
        if new_ids.len() <= idx {
            new_ids.resize(idx + 1, NONE);
        }
        new_ids[idx] = id;
        Ok(())
    }
}

impl Preparation {
    fn new(old: &Arc<Partition>) -> Result<Preparation> {
        let stage = Stage::of_blocks(old)?;
        Ok(Preparation { old: Arc::downgrade(old), next: Weak::new(), stage, new_ids: Vec::new() })
    }

    /// Begins again when the next partition is another partition than the ids are of.
    fn meet(&mut self, old: &Partition, next: &Arc<Partition>) -> Result<()> {
        let next = Arc::downgrade(next);
        if !self.next.ptr_eq(&next) {
            self.stage = Stage::of_blocks(old)?;
            self.new_ids.clear();
            self.next = next;
        }
        Ok(())
    }
}

impl Stage {
    /// Entities of rotten segments are registered when they come.
    fn of_blocks(old: &Partition) -> Result<Stage> {
        Ok(Stage::Entities(old.read().series.index.blocks_noting(&mut |_, _| Ok(()))?, 0))
    }
}

/// The metric names of a block, and its active entities that have no new id yet.
fn active_of(
    state: &PartitionState,
    block: &BlockRef,
    new_ids: &[EntityId],
) -> Result<(Vec<String>, Vec<Carried>)> {
    let is_wanted = |entity: &EntityId| {
        state.was_active_lately(*entity)
            && new_ids.get(*entity as usize).is_none_or(|id| *id == NONE)
    };
    // It may have grown since it was listed.
    let block = BlockRef { len: block.capacity, ..*block };
    let slots = (0..to_u16(block.len)).map(|slot| block.entity(slot)).filter(is_wanted);
    let (mut names, mut carried) = (Vec::new(), Vec::new());
    let mut reader = state.series.index.label_reader();
    let mut labels = LabelsBuilder::new();
    for entity in slots {
        // As the index has it now: merges cut blocks.
        let Some(block) = state.series.index.block_of(entity)? else { continue };
        let slot = block.slot(entity);
        if names.is_empty() {
            for column in 0..to_u16(block.columns) {
                labels.clear();
                reader.labels(&block, column, slot, &mut labels)?;
                let name = labels.iter().find(|(name, _)| *name == METRIC_NAME);
                names.push(name.map_or(String::new(), |(_, name)| name.to_string()));
            }
        }
        labels.clear();
        reader.labels(&block, 0, slot, &mut labels)?;
        let mut tags = LabelsBuilder::new();
        let others = labels.iter().filter(|(name, _)| *name != METRIC_NAME);
        others.for_each(|(name, value)| tags.push(name, value));
        let tags = tags.sorted().map_err(|error| Error::Invalid(error.to_string()))?;
        carried.push(Carried { entity, tags });
    }
    Ok((names, carried))
}

/// Lets the keys of carried entities lead to their new ids.
fn copy_keys(new_ids: &[EntityId], keys: Vec<(u128, Target)>, next: &Partition) -> Result<()> {
    let new_id = |(hash, target): (u128, Target)| match target {
        Target::Entity(entity) => {
            let id = new_ids.get(entity as usize).copied().filter(|id| *id != NONE);
            id.map(|id| (hash, id))
        }
        // Those are few, and found anew at the first row.
        Target::Pieces(_) => None,
    };
    let keys: Vec<(u128, EntityId)> = keys.into_iter().filter_map(new_id).collect();
    let mut state = next.write();
    let mut found = [None; GROUP_ROWS];
    for group in keys.chunks(GROUP_ROWS) {
        let hashes: Vec<u128> = group.iter().map(|(hash, _)| *hash).collect();
        state.series.map.find_group(&hashes, &mut found);
        for ((hash, id), known) in group.iter().zip(&found) {
            if known.is_none() && state.series.index.block_of(*id)?.is_some() {
                state.series.map.insert(*hash, Target::Entity(*id));
            }
        }
    }
    Ok(())
}
