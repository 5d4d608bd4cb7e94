//! From a batch to the log and the arena.
//!
//! Memory changes only by what the log has accepted: before anything of a group is applied, room
//! for its rows is reserved in the log, and before a series is registered, room for that. Where
//! there is none, what was applied before is logged, and the rest was not applied.
//!
//! The hot path of a known row, per group of 32 rows so that cache misses overlap: look the hash up,
//! touch the entity's chain, append the row to the arena and to the log record. No string is read.
//! An unknown key takes the slow path once: decode its labels, find or register its entity, remember
//! the hash.

use crate::base::period::Period;
use crate::log::log_record::{
    KIND_ROWS, RECORD_HEAD_SIZE_MAX, RowsEncoder, rows_size_max, unit_of,
};
use crate::partition::changes::ChangeClock;
use crate::partition::head::arena::COLUMNS_MAX;
use crate::partition::known_series::Piece;
use crate::partition::series_map::{GROUP_ROWS, Target};
use crate::partition::{Partition, PartitionState, SEAL_SIZE};
use crate::write::active_series::ActiveCount;
use crate::write::histogram_scratch::HistogramScratch;
use crate::write::refusal::{Appended, Refusal, Told};
use crate::write::row_labels::RowLabels;
use crate::write::series_limits::SeriesGate;
use crate::{Error, Result};
use index::{EntityId, NewEntity};
use model::limits::Limits;
use model::{Row, WriteBatch};
use std::sync::RwLockWriteGuard;
use wal::{Lsn, Reservation, Wal};

// The rows of a group always have room in a record of their own.
const _: () =
    assert!(rows_size_max(GROUP_ROWS * COLUMNS_MAX) + RECORD_HEAD_SIZE_MAX <= wal::RECORD_SIZE_MAX);

/// What one record took.
#[derive(Default)]
pub struct Taken {
    /// What to wait for; none when nothing was logged.
    pub lsn: Option<Lsn>,
    /// How many of the rows are done with. The others need another record.
    pub count: usize,
    /// What the log said to the next row, where the record ended before the rows did.
    pub full: Option<wal::Error>,
}

/// What a partition needs from the store to append.
pub struct AppendContext<'a> {
    /// The log.
    pub wal: &'a Wal,
    /// Limits on label sets.
    pub limits: &'a Limits,
    /// Lets new series in, or not.
    pub gate: &'a SeriesGate,
    /// Tells readers what changed.
    pub changes: &'a ChangeClock,
    /// Row ids after which the arena is renewed.
    pub arena_words_max: usize,
    /// Wall clock, nanoseconds.
    pub now_ns: i64,
}

impl AppendContext<'_> {
    /// Who counts active series.
    #[inline]
    pub fn active_count(&self) -> ActiveCount<'_> {
        ActiveCount { gate: self.gate, now_ns: self.now_ns }
    }
}

/// Buffers of one appending thread.
#[derive(Default)]
pub struct AppendScratch {
    /// The record being made.
    pub encoder: RowsEncoder,
    head: Vec<u8>,
    /// Of the row that was decoded last.
    pub labels: RowLabels,
    values: Vec<f64>,
    /// Entities registered for the present group of rows.
    pub fresh: Vec<EntityId>,
    /// For those that append histograms.
    pub histograms: HistogramScratch,
}

/// What a row's key stands for.
enum Resolved {
    /// All values have a place.
    Whole(Target),
    /// Some values have one; the others are of new series that were refused, for this reason.
    /// Not to be remembered: next time they may be let in.
    Partial(Vec<Piece>, Refusal),
}

/// What a record is made from and with. Dropped before the partition's lock is given back, so that
/// after a panic nobody logs what needs a registration that the log does not have.
struct Work<'a> {
    batch: &'a WriteBatch<'a>,
    context: &'a AppendContext<'a>,
    scratch: &'a mut AppendScratch,
    appended: &'a mut Appended,
    /// In the log, for what is in the record and for what is about to be.
    room: Reservation<'a>,
}

impl Partition {
    /// Appends rows of this partition, as many as one record of the log takes.
    ///
    /// # Errors
    /// When the log has no room for the next row: those before it are appended.
    pub fn append(
        &self,
        batch: &WriteBatch<'_>,
        rows: &[Row],
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
        appended: &mut Appended,
    ) -> Result<Taken> {
        scratch.encoder.start(unit_of(rows.iter().map(|row| row.timestamp)));
        let (mut state, room) = self.begin_record(context)?;
        let version = context.changes.now();
        let mut work = Work { batch, context, scratch, appended, room };
        let mut found = [None; GROUP_ROWS];
        let mut hashes = [0u128; GROUP_ROWS];
        let mut taken = Taken::default();
        for group in rows.chunks(GROUP_ROWS) {
            for (hash, row) in hashes.iter_mut().zip(group) {
                *hash = row.hash;
            }
            let (count, full) = match work.room.grow(rows_size_max(values_span(batch, group))) {
                Ok(()) => {
                    state.series.map.find_group(&hashes[..group.len()], &mut found);
                    work.scratch.fresh.clear();
                    state.resolve_unknown(group, &mut found, &mut work)
                }
                Err(error) => (0, Some(error)),
            };
            state.push_group(&group[..count], &found, &mut work);
            state.changed.note_rows(&group[..count], version);
            taken.count += count;
            taken.full = full;
            if taken.full.is_some() {
                break;
            }
        }
        assert!(taken.count == rows.len() || taken.full.is_some(), "what is left has no room");
        let Work { scratch, room, .. } = work;
        self.end_record(state, context, scratch, room, taken)
    }

    /// Locks the partition for a record, for whose head the log has room.
    ///
    /// The reservation must be dropped before the lock, also by a panic: it comes second.
    pub fn begin_record<'a>(
        &'a self,
        context: &AppendContext<'a>,
    ) -> Result<(RwLockWriteGuard<'a, PartitionState>, Reservation<'a>)> {
        let mut state = self.write();
        if self.is_dropped() {
            return Err(Error::PartitionDropped);
        }
        let room = context.wal.reserve(RECORD_HEAD_SIZE_MAX)?;
        let next_row = state.head.arena.next_row();
        state.active.enter(self.period, context.now_ns, next_row);
        Ok((state, room))
    }

    /// Logs what was appended, for which there is room, and seals what has become large.
    pub fn end_record(
        &self,
        mut state: RwLockWriteGuard<'_, PartitionState>,
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
        room: Reservation<'_>,
        mut taken: Taken,
    ) -> Result<Taken> {
        let AppendScratch { encoder, head, .. } = scratch;
        if encoder.is_empty() {
            drop(room);
            return taken.unless_refused();
        }
        let lsn = state.log_rows(self.period, encoder, head, context.wal, room, context.now_ns)?;
        taken.lsn = Some(lsn);
        if SEAL_SIZE <= state.head.arena.rows_size() {
            state.head.take_arena();
        }
        state.series.note_unflushed_size();
        self.note_head_size(&state);
        let must_seal = !state.head.taken().is_empty();
        drop(state);
        if must_seal {
            self.seal_taken()?;
        }
        self.renew_arena(context.arena_words_max)?;
        taken.unless_refused()
    }
}

/// At most how many values a group has: rows have theirs one after the other, in their order, so
/// looking at the first and the last will do. Rows of other partitions between them count too, but
/// no value counts for two groups.
fn values_span(batch: &WriteBatch<'_>, group: &[Row]) -> usize {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return 0 };
    let end = last.values_start as usize + batch.shapes[last.shape as usize].fields.len();
    end.saturating_sub(first.values_start as usize)
}

impl Taken {
    /// The error of a log that has no room; a record that is full is followed by another.
    fn unless_refused(mut self) -> Result<Taken> {
        match self.full.take() {
            Some(wal::Error::RecordTooLarge { .. }) if 0 < self.count => Ok(self),
            Some(error) => Err(Error::Wal(error)),
            None => Ok(self),
        }
    }
}

impl PartitionState {
    /// Logs what the encoder holds of this partition. Under its lock, so that the log has the
    /// records of a partition in the order applied.
    pub fn log_rows(
        &mut self,
        period: Period,
        encoder: &mut RowsEncoder,
        head: &mut Vec<u8>,
        wal: &Wal,
        room: Reservation<'_>,
        now_ns: i64,
    ) -> Result<Lsn> {
        let pieces = encoder.finish(period, head);
        let record = [head.as_slice(), pieces[0], pieces[1]];
        self.unflushed.note_record(wal, now_ns);
        Ok(room.append(KIND_ROWS, &record)?)
    }

    /// Finds or registers the series of the rows whose hash is unknown. Tells how many rows of the
    /// group are done with, and what the log said to the next one where it had no room.
    fn resolve_unknown(
        &mut self,
        group: &[Row],
        found: &mut [Option<Target>; GROUP_ROWS],
        work: &mut Work<'_>,
    ) -> (usize, Option<wal::Error>) {
        for (count, row) in group.iter().enumerate() {
            if found[count].is_some() {
                continue;
            }
            // An earlier row of this group may have brought the same key.
            let mut again = [None; GROUP_ROWS];
            self.series.map.find_group(&[row.hash], &mut again);
            found[count] = again[0];
            if found[count].is_some() {
                continue;
            }
            match self.resolve(row, work) {
                Ok(Resolved::Whole(target)) => {
                    self.series.map.insert(row.hash, target);
                    found[count] = Some(target);
                }
                Ok(Resolved::Partial(pieces, refusal)) => {
                    // Ahead of its group, which only matters to a row of the same instant in it.
                    let values = work.batch.row_values(row);
                    let Work { context, scratch, appended, .. } = work;
                    appended.samples +=
                        self.push_pieces(&pieces, row.timestamp, values, context, scratch);
                    appended.refuse(row.position, refusal);
                }
                Err(refusal) => {
                    let is_empty = count == 0 && work.scratch.encoder.is_empty();
                    match refusal.unless_full(is_empty) {
                        Ok(refusal) => work.appended.refuse(row.position, refusal),
                        Err(error) => return (count, Some(error)),
                    }
                }
            }
        }
        (group.len(), None)
    }

    /// Appends a group of resolved rows to arena and log record.
    fn push_group(
        &mut self,
        group: &[Row],
        found: &[Option<Target>; GROUP_ROWS],
        work: &mut Work<'_>,
    ) {
        // Loads that do not depend on each other: the misses of the group overlap.
        let warmed = found[..group.len()].iter().fold(0u32, |sum, target| match target {
            Some(Target::Entity(entity)) => sum.wrapping_add(self.head.arena.last_row(*entity)),
            _ => sum,
        });
        std::hint::black_box(warmed);
        let Work { batch, context, scratch, appended, .. } = work;
        for (target, row) in found.iter().zip(group) {
            if let Some(target) = target {
                let values = batch.row_values(row);
                appended.samples +=
                    self.push_target(target, row.timestamp, values, context, scratch);
            }
        }
    }

    /// Appends a row to where its key leads; returns how many values it has.
    #[inline(always)]
    pub fn push_target(
        &mut self,
        target: &Target,
        timestamp: i64,
        values: &[f64],
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
    ) -> u64 {
        match target {
            Target::Entity(entity) => {
                if self.is_first_of_hour(*entity) {
                    self.note_active(*entity, &scratch.fresh, context.active_count());
                }
                self.head.arena.push(*entity, timestamp, values);
                scratch.encoder.row(*entity, timestamp, values);
                values.len() as u64
            }
            Target::Pieces(idx) => {
                // Taken out meanwhile, as the rest of the state changes.
                let pieces = self.series.take_pieces(*idx);
                let count = self.push_pieces(&pieces, timestamp, values, context, scratch);
                self.series.put_pieces(*idx, pieces);
                count
            }
        }
    }

    /// Appends the values of a row that are in pieces; returns how many they are.
    fn push_pieces(
        &mut self,
        pieces: &[Piece],
        timestamp: i64,
        values: &[f64],
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
    ) -> u64 {
        let mut count = 0;
        for piece in pieces {
            match piece {
                Piece::Entity { entity, value_idx } => {
                    if self.is_first_of_hour(*entity) {
                        self.note_active(*entity, &scratch.fresh, context.active_count());
                    }
                    scratch.values.clear();
                    scratch.values.extend(value_idx.iter().map(|idx| values[usize::from(*idx)]));
                    self.head.arena.push(*entity, timestamp, &scratch.values);
                    scratch.encoder.row(*entity, timestamp, &scratch.values);
                    count += value_idx.len() as u64;
                }
                Piece::Single { entity, column, value_idx } => {
                    self.note_active_single(
                        *entity,
                        *column,
                        &scratch.fresh,
                        context.active_count(),
                    );
                    let value = values[usize::from(*value_idx)];
                    self.head.arena.push_single(*entity, *column, timestamp, value);
                    scratch.encoder.single(*entity, *column, timestamp, value);
                    count += 1;
                }
            }
        }
        count
    }

    /// The slow path: from raw key to labels to entity, which is registered if it is new.
    fn resolve(&mut self, row: &Row, work: &mut Work<'_>) -> Told<Resolved> {
        let Work { batch, context, scratch, room, .. } = work;
        let fields = &batch.shapes[row.shape as usize].fields;
        scratch.labels.decode(batch.decoder, batch.key(row), fields, context.limits)?;
        let AppendScratch { labels, encoder, fresh, .. } = &mut **scratch;
        let names: Vec<&str> = labels.names.iter().map(String::as_str).collect();
        let tags: Vec<(&str, &str)> = labels.tags.iter().collect();
        let wanted = NewEntity::new(&names, &tags);
        if let Some(entity) = self.series.index.find_entity(&wanted)? {
            return Ok(Resolved::Whole(Target::Entity(entity)));
        }
        let known = self.series.find_each(&wanted, &names)?;
        let log = &mut encoder.registrations;
        if known.iter().all(Option::is_none) {
            let entity = self.let_in(&wanted, (&names, &tags), context, room, log)?;
            fresh.push(entity);
            return Ok(Resolved::Whole(Target::Entity(entity)));
        }
        let mut pieces = self.series.pieces_of_known(&known)?;
        let new: Vec<u16> =
            known.iter().zip(0..).filter_map(|(one, idx)| one.is_none().then_some(idx)).collect();
        if !new.is_empty() {
            let names: Vec<&str> = new.iter().map(|idx| names[usize::from(*idx)]).collect();
            let rest = wanted.with_names(&names);
            match self.let_in(&rest, (&names, &tags), context, room, log) {
                Ok(entity) => {
                    fresh.push(entity);
                    pieces.push(Piece::Entity { entity, value_idx: new.into() });
                }
                Err(Refusal::Log(error)) => return Err(Refusal::Log(error)),
                Err(refusal) => return Ok(Resolved::Partial(pieces, refusal)),
            }
        }
        Ok(Resolved::Whole(self.series.add_pieces(pieces.into())))
    }

    /// Registers an entity of these names and tags, if the log has room for it and the gate lets it
    /// in.
    fn let_in(
        &mut self,
        entity: &NewEntity<'_>,
        (names, tags): (&[&str], &[(&str, &str)]),
        context: &AppendContext<'_>,
        room: &mut Reservation<'_>,
        log: &mut Vec<u8>,
    ) -> Told<EntityId> {
        let size = entity.registration_size_max();
        room.grow(size).map_err(Refusal::Log)?;
        let admitted = context.gate.admit(context.now_ns, names, tags);
        let id = admitted.and_then(|()| self.register(entity, names.len(), context, log));
        if id.is_err() {
            room.shrink(size);
        }
        id
    }

    /// Registers an entity of so many series that was let in, and for which the log has room; rows
    /// of it can be pushed at once.
    pub fn register(
        &mut self,
        entity: &NewEntity<'_>,
        series: usize,
        context: &AppendContext<'_>,
        log: &mut Vec<u8>,
    ) -> Told<EntityId> {
        let id = self.series.index.register(entity, log)?;
        self.head.arena.reserve_entities(self.series.entities_end());
        self.series.new.note(id, series as u64, context.now_ns);
        Ok(id)
    }
}
