//! From the start timestamps of a request to the log and the arena.
//!
//! They follow their samples, so that a limit refuses the former and not the latter: a sample
//! without its start timestamp is one as it always was.

use crate::append::{AppendContext, AppendScratch, Taken};
use crate::appender::{Appender, RECORD_ROWS_MAX, Request};
use crate::histograms::names::{START_COLUMNS, START_RUN, hidden_tags};
use crate::log_record::{rows_size_max, unit_of};
use crate::partition::{Partition, PartitionState};
use crate::period::Period;
use crate::refusal::{Appended, Refusal, Told};
use crate::series_map::{GROUP_ROWS, Target};
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

/// Takes the start timestamps of samples that were appended; blocks until both are as durable as
/// asked.
pub(crate) fn append(
    appender: &Appender,
    batch: &StartBatch<'_>,
    durability: Durability,
) -> Result<AppendedStarts> {
    let mut request = appender.begin()?;
    let mut starts = AppendedStarts::default();
    let context = [batch.context, STARTS_CONTEXT].concat();
    let hasher = appender.hasher;
    let keys = Keys { batch, hasher, shape: hasher.shape(&context, &[WHOLE_SERIES.into()]) };
    for (period, rows) in by_period(appender, batch, &mut starts) {
        let mut rest = rows.as_slice();
        while !rest.is_empty() {
            let partition = match appender.partition(period) {
                // Their samples were refused, too, and told of.
                Err(Error::LimitExceeded { .. }) => {
                    starts.refused += rest.len() as u64;
                    break;
                }
                found => found?,
            };
            let some = &rest[..rest.len().min(RECORD_ROWS_MAX)];
            let Request { scratch, appended, .. } = &mut request;
            let (context, told) = (appender.context(), (&mut starts, appended));
            let taken = partition.append_starts(&keys, some, &context, scratch, told);
            if let Some(taken) = appender.check_taken(&partition, taken)? {
                rest = &rest[taken.count..];
            }
        }
    }
    appender.end(request, Durability::Relaxed)?;
    if durability == Durability::Synced {
        // Also what the same request brought before.
        appender.log.wait_for_all()?;
    }
    Ok(starts)
}

/// The rows by partition; those whose time is not accepted are refused.
fn by_period(
    appender: &Appender,
    batch: &StartBatch<'_>,
    starts: &mut AppendedStarts,
) -> BTreeMap<Period, Vec<StartRow>> {
    let (length, accepted) = (appender.ground.length, appender.retention.accepted_span());
    let mut by_period: BTreeMap<Period, Vec<StartRow>> = BTreeMap::new();
    for row in batch.rows {
        match accepted.contains(row.timestamp) {
            true => by_period.entry(length.of(row.timestamp)).or_default().push(*row),
            false => starts.refused += 1,
        }
    }
    by_period
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
        let (mut state, mut room) = self.begin_record(context)?;
        let version = context.changes.now();
        let mut taken = Taken::default();
        for row in rows {
            scratch.fresh.clear();
            match state.find_start(keys, row, context, scratch, &mut room) {
                Ok(entity) => {
                    state.push_start(entity, row, context, scratch);
                    state.changed.note(row.timestamp, version);
                    starts.written += 1;
                }
                Err(refusal) => match refusal.unless_full(scratch.encoder.is_empty()) {
                    Ok(Refusal::Row(_)) => starts.refused += 1,
                    Ok(refusal) => appended.refuse(row.position, refusal),
                    Err(error) => {
                        taken.full = Some(error);
                        break;
                    }
                },
            }
            taken.count += 1;
        }
        self.end_record(state, context, scratch, room, taken)
    }
}

impl PartitionState {
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
        self.series.map.find_group(&[hash], &mut found);
        if let Some(Target::Entity(entity)) = found[0] {
            return Ok(entity);
        }
        let registered = self.register_start(keys.batch, row, context, scratch, room);
        let entity = registered.inspect_err(|_| room.shrink(size))?;
        self.series.map.insert(hash, Target::Entity(entity));
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
        scratch.labels.decode(batch.decoder, batch.key(row), &fields, context.limits)?;
        let AppendScratch { labels, encoder, fresh, .. } = scratch;
        let metric = labels.names[0].as_str();
        let tags: Vec<(&str, &str)> = labels.tags.iter().collect();
        let hidden = hidden_tags(&tags, metric, START_RUN);
        let entity = NewEntity::new(&START_COLUMNS, &hidden);
        if let Some(known) = self.series.index.find_entity(&entity)? {
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
            self.note_active_hidden(entity, context.active_count());
        }
        let values = [row.start_ms as f64];
        self.head.arena.push(entity, row.timestamp, &values);
        scratch.encoder.row(entity, row.timestamp, &values);
    }
}
