//! From the start timestamps of a request to the log and the arena.
//!
//! They follow their samples, so that a limit refuses the former and not the latter: a sample
//! without its start timestamp is one as it always was.

use crate::append::{AppendContext, AppendScratch, Refusal, Taken, Told, decode_labels};
use crate::histograms::names::{START_COLUMNS, START_RUN, hidden_tags};
use crate::log_record::{RECORD_HEAD_SIZE_MAX, rows_size_max, unit_of};
use crate::partition::{Partition, State};
use crate::period::Period;
use crate::series_map::{GROUP_ROWS, Target};
use crate::store::{Appended, RECORD_ROWS_MAX, Store};
use crate::{Durability, Error, Result};
use index::{EntityId, NewEntity};
use model::{KeyDecoder, StartRow};
use std::collections::BTreeMap;
use wal::Reservation;

/// The one field of a key that is a whole series.
const WHOLE_SERIES: &str = "";
/// Follows a batch's context where keys of start timestamps are hashed.
const STARTS_CONTEXT: &[u8] = b"\0starts";

/// The start timestamps of a request.
pub struct StartBatch<'a> {
    /// What the keys point into.
    pub bytes: &'a [u8],
    /// One for each sample that has one, in the order of the request.
    pub rows: &'a [StartRow],
    /// Tells what labels a key stands for.
    pub decoder: &'a dyn KeyDecoder,
    /// What tells keys of this decoder from others'.
    pub context: &'a [u8],
}

impl StartBatch<'_> {
    fn key(&self, row: &StartRow) -> &[u8] {
        &self.bytes[row.key_offset as usize..row.key_offset as usize + row.key_size as usize]
    }
}

/// What became of a request's start timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppendedStarts {
    /// Those that are kept.
    pub written: u64,
    /// Those that are not: their time is not accepted, or a limit is reached.
    pub refused: u64,
}

/// How the keys of a batch are hashed.
struct Keys<'a> {
    batch: &'a StartBatch<'a>,
    hasher: model::KeyHasher,
    shape: u64,
}

impl Store {
    /// Takes the start timestamps of samples that were appended; blocks until both are as durable
    /// as asked.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn append_starts(
        &self,
        batch: &StartBatch<'_>,
        durability: Durability,
    ) -> Result<AppendedStarts> {
        let mut starts = AppendedStarts::default();
        self.append_with(Durability::Relaxed, |scratch| {
            let context = [batch.context, STARTS_CONTEXT].concat();
            let hasher = self.hasher();
            let shape = hasher.shape(&context, &[WHOLE_SERIES.into()]);
            let keys = Keys { batch, hasher, shape };
            let (mut appended, mut last) = (Appended::default(), None);
            for (period, rows) in self.starts_by_period(batch, &mut starts) {
                let mut rest = rows.as_slice();
                while !rest.is_empty() {
                    let some = &rest[..rest.len().min(RECORD_ROWS_MAX)];
                    let taken = self.append_in_turn(period, |partition, context| {
                        let told = (&mut starts, &mut appended);
                        partition.append_starts(&keys, some, context, scratch, told)
                    });
                    let taken = match taken {
                        // Their samples were refused, too, and told of.
                        Err(Error::LimitExceeded { .. }) => {
                            starts.refused += rest.len() as u64;
                            break;
                        }
                        taken => taken?,
                    };
                    rest = &rest[taken.count..];
                    last = taken.lsn.or(last);
                }
            }
            Ok((appended, last))
        })?;
        if durability == Durability::Synced {
            // Also what the same request brought before.
            self.wait_durable(self.wal.end())?;
        }
        Ok(starts)
    }

    /// The rows by partition; those whose time is not accepted are refused.
    fn starts_by_period(
        &self,
        batch: &StartBatch<'_>,
        starts: &mut AppendedStarts,
    ) -> BTreeMap<Period, Vec<StartRow>> {
        let accepted = self.accepted_span();
        let mut by_period: BTreeMap<Period, Vec<StartRow>> = BTreeMap::new();
        for row in batch.rows {
            match accepted.contains(row.timestamp) {
                true => by_period.entry(self.length.of(row.timestamp)).or_default().push(*row),
                false => starts.refused += 1,
            }
        }
        by_period
    }
}

impl Partition {
    /// Appends rows of this partition's time, as many as one record takes.
    fn append_starts(
        &self,
        keys: &Keys<'_>,
        rows: &[StartRow],
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
        (starts, appended): (&mut AppendedStarts, &mut Appended),
    ) -> Result<Taken> {
        scratch.encoder.start(unit_of(rows.iter().map(|row| row.timestamp)));
        let mut state = self.write();
        if self.is_dropped() {
            return Err(Error::PartitionDropped);
        }
        // Dropped before the partition's lock is given back, also by a panic.
        let mut room = context.wal.reserve(RECORD_HEAD_SIZE_MAX)?;
        state.enter_hour(self.period, context.now_ns);
        let version = context.changes.now();
        let (mut taken, mut stopped) = (Taken::default(), None);
        for row in rows {
            scratch.fresh.clear();
            match state.find_start(keys, row, context, scratch, &mut room) {
                Ok(entity) => {
                    state.push_start(entity, row, context, scratch);
                    state.changed.note(row.timestamp, version);
                    starts.written += 1;
                }
                Err(Refusal::Log(error)) => {
                    let is_alone = scratch.encoder.is_empty();
                    if !is_alone || !matches!(error, wal::Error::RecordTooLarge { .. }) {
                        stopped = Some(error);
                        break;
                    }
                    starts.refused += 1;
                }
                Err(Refusal::Row(_)) => starts.refused += 1,
                Err(refusal) => appended.refuse(row.position, refusal),
            }
            taken.count += 1;
        }
        if !scratch.encoder.is_empty() {
            taken.lsn = Some(self.finish_append(state, context, scratch, room)?);
        }
        taken.unless_stopped(stopped)
    }
}

impl State {
    /// Finds or registers the entity of a row, for which the log has room then.
    fn find_start(
        &mut self,
        keys: &Keys<'_>,
        row: &StartRow,
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
        room: &mut Reservation<'_>,
    ) -> Told<EntityId> {
        let size = rows_size_max(START_COLUMNS.len());
        room.grow(size).map_err(Refusal::Log)?;
        let hash = keys.hasher.hash(keys.batch.key(row), keys.shape);
        let mut found = [None; GROUP_ROWS];
        self.map.find_group(&[hash], &mut found);
        if let Some(Target::Entity(entity)) = found[0] {
            return Ok(entity);
        }
        let registered = self.register_start(keys.batch, row, context, scratch, room);
        let entity = registered.inspect_err(|_| room.shrink(size))?;
        self.map.insert(hash, Target::Entity(entity));
        Ok(entity)
    }

    /// The slow path: from the key to labels to the hidden entity.
    fn register_start(
        &mut self,
        batch: &StartBatch<'_>,
        row: &StartRow,
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
        room: &mut Reservation<'_>,
    ) -> Told<EntityId> {
        let fields = [WHOLE_SERIES.into()];
        decode_labels(batch.decoder, batch.key(row), &fields, context.limits, scratch)?;
        let AppendScratch { names, tags, encoder, fresh, .. } = scratch;
        let metric = names[0].as_str();
        let tags: Vec<(&str, &str)> = tags.iter().collect();
        let hidden = hidden_tags(&tags, metric, START_RUN);
        let entity = NewEntity::new(&START_COLUMNS, &hidden);
        if let Some(known) = self.index.find_entity(&entity)? {
            return Ok(known);
        }
        let size = entity.registration_size_max();
        room.grow(size).map_err(Refusal::Log)?;
        let admitted = context.gate.admit_hidden(context.now_ns, metric, &tags);
        let log = &mut encoder.registrations;
        // To people it is no series.
        let id = admitted.and_then(|()| self.register(&entity, 0, context, log));
        let id = id.inspect_err(|_| room.shrink(size))?;
        fresh.push(id);
        Ok(id)
    }

    fn push_start(
        &mut self,
        entity: EntityId,
        row: &StartRow,
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
    ) {
        if self.is_first_of_hour(entity) && !scratch.fresh.contains(&entity) {
            self.note_active_hidden(entity, context);
        }
        let values = [row.start_ms as f64];
        self.arena.push(entity, row.timestamp, &values);
        scratch.encoder.row(entity, row.timestamp, &values);
    }
}
