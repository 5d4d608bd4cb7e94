//! From the start timestamps of a request to the log and the arena.
//!
//! They follow their samples, so that a limit refuses the former and not the latter: a sample
//! without its start timestamp is one as it always was. They are columns beside their samples
//! (decision 23):
//!
//! ```text
//! m{job="a"}                                value     an ordinary series, float or histogram
//! {job="a", LABEL="m", RUN_LABEL="start"}   start     since when it counts, at the same time
//! ```
//!
//! A hidden series, as those of histograms ([`crate::partition::histograms`]): no selection finds it, no
//! client can write it, and it goes the way of all rows. A sample without a start timestamp has no
//! row, and a store without any has no such series; nobody looks for one who does not ask. The
//! value is in milliseconds, exact as float64, and constant over long runs.

use crate::log::log_record::rows_size_max;
use crate::partition::PartitionState;
use crate::partition::histograms::names::{START_COLUMNS, START_RUN, hidden_tags};
use crate::partition::series_map::{GROUP_ROWS, Target};
use crate::write::append::{AppendContext, AppendScratch};
use crate::write::append_hidden::OneByOne;
use crate::write::appender::{Appender, RECORD_ROWS_MAX, Request, by_period};
use crate::write::refusal::{Appended, Refusal, Told};
use crate::{Durability, Error, Result};
use index::{EntityId, NewEntity};
use model::{KeyDecoder, StartRow};
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
    let (length, accepted) = (appender.ground.length, appender.retention.accepted_span());
    let timed = batch.rows.iter().map(|row| (*row, row.timestamp));
    for (period, rows) in by_period(length, timed, &accepted, &mut |_| starts.refused += 1) {
        let mut rest = rows.as_slice();
        while !rest.is_empty() {
            let partition = match appender.partition(period, &mut request) {
                // Their samples were refused, too, and told of.
                Err(Error::LimitExceeded { .. }) => {
                    starts.refused += rest.len() as u64;
                    break;
                }
                found => found?,
            };
            let some = &rest[..rest.len().min(RECORD_ROWS_MAX)];
            let Request { scratch, appended, .. } = &mut request;
            let mut how = Starts { keys: &keys, starts: &mut starts, appended };
            let taken = partition.append_each(some, &mut how, &appender.context(), scratch);
            if let Some(taken) = appender.check_taken(&partition, taken)? {
                assert!(0 < taken.count, "a record takes a row, or says why not");
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

/// The start timestamps of a partition, and where it is told what became of them.
struct Starts<'a> {
    keys: &'a Keys<'a>,
    starts: &'a mut AppendedStarts,
    appended: &'a mut Appended,
}

impl OneByOne for Starts<'_> {
    type One = StartRow;

    fn timestamp(&self, row: &StartRow) -> i64 {
        row.timestamp
    }

    fn take(
        &mut self,
        row: &StartRow,
        state: &mut PartitionState,
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
        room: &mut Reservation<'_>,
    ) -> Told<()> {
        let entity = state.find_start(self.keys, row, context, scratch, room)?;
        state.push_hidden(entity, row.timestamp, &[row.start_ms as f64], context, scratch);
        self.starts.written += 1;
        Ok(())
    }

    fn refuse(&mut self, row: &StartRow, refusal: Refusal) {
        match refusal {
            Refusal::Row(_) => self.starts.refused += 1,
            refusal => self.appended.refuse(row.position, refusal),
        }
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
}
