//! From a batch of histograms to the log and the arena.
//!
//! A histogram is taken whole or not at all: first the log must have room for its rows, then each
//! of them is given an entity, for which there must be room too, then all are pushed. They are in
//! one record of the log and appended under one lock.

use super::histogram_scratch::HistogramScratch;
use crate::base::period::Period;
use crate::log::log_record::rows_size_max;
use crate::partition::histograms::lower::{Lowered, LoweredHistogram};
use crate::partition::histograms::names::{Piece, hidden_tags};
use crate::partition::series_map::{GROUP_ROWS, Target};
use crate::partition::{Partition, PartitionState};
use crate::write::append::{AppendContext, AppendScratch, Taken};
use crate::write::append_hidden::OneByOne;
use crate::write::appender::{Appender, RECORD_ROWS_MAX, RECORD_VALUES_MAX, Request, by_period};
use crate::write::refusal::{Appended, Refusal, Told};
use crate::{Durability, Error, Result};
use hashbrown::HashMap;
use histogram::{HistogramBatch, HistogramRow};
use index::NewEntity;
use model::KeyHasher;
use wal::Reservation;

/// The one field of a key that is a whole series.
const WHOLE_SERIES: &str = "";
/// Follows a batch's context where keys of hidden rows are hashed.
const HIDDEN_CONTEXT: &[u8] = b"\0hidden";

/// How the keys of a batch are hashed.
struct Keys<'a> {
    batch: &'a HistogramBatch<'a>,
    hasher: KeyHasher,
    plain_shape: u64,
    hidden_context: Vec<u8>,
}

impl Keys<'_> {
    fn new<'a>(batch: &'a HistogramBatch<'a>, hasher: KeyHasher) -> Keys<'a> {
        let mut hidden_context = batch.context.to_vec();
        hidden_context.extend_from_slice(HIDDEN_CONTEXT);
        let plain_shape = hasher.shape(&batch.context, &[WHOLE_SERIES.into()]);
        Keys { batch, hasher, plain_shape, hidden_context }
    }

    fn plain(&self, row: &HistogramRow) -> u128 {
        self.hasher.hash(self.batch.key(row), self.plain_shape)
    }

    fn hidden(&self, row: &HistogramRow, piece: Piece, shapes: &mut HashMap<Piece, u64>) -> u128 {
        let shape = shapes.entry(piece).or_insert_with(|| {
            self.hasher.shape(&self.hidden_context, &[piece.label_value().into()])
        });
        self.hasher.hash(self.batch.key(row), *shape)
    }
}

/// Appends histograms as rows are; each counts as one sample.
pub(crate) fn append(
    appender: &Appender,
    batch: &HistogramBatch<'_>,
    durability: Durability,
) -> Result<Appended> {
    let mut request = appender.begin()?;
    request.scratch.histograms.shapes.clear();
    let keys = Keys::new(batch, appender.hasher);
    let (length, accepted) = (appender.ground.length, appender.retention.accepted_span());
    let timed = batch.rows.iter().enumerate().map(|(idx, row)| (idx, row.timestamp));
    let mut refuse = |idx: usize| {
        let row = &batch.rows[idx];
        request.appended.reject_time(row.position, row.timestamp, &accepted);
    };
    for (period, rows) in by_period(length, timed, &accepted, &mut refuse) {
        let mut rest = rows.as_slice();
        while !rest.is_empty() {
            let Request { scratch, appended, .. } = &mut request;
            rest = lower_some(batch, rest, &mut scratch.histograms, appended);
            append_lowered(appender, period, &keys, &mut request)?;
        }
    }
    appender.end(request, durability)
}

/// Appends what was lowered.
fn append_lowered(
    appender: &Appender,
    period: Period,
    keys: &Keys<'_>,
    request: &mut Request<'_>,
) -> Result<()> {
    let mut done = 0;
    while done < request.scratch.histograms.lowered.histograms.len() {
        let partition = match appender.partition(period, request) {
            Err(error @ Error::LimitExceeded { .. }) => {
                let Request { scratch, appended, .. } = request;
                let left = &scratch.histograms.lowered.histograms[done..];
                let positions = left.iter().map(|one| keys.batch.rows[one.row].position);
                appended.reject_all(positions, &error.to_string());
                return Ok(());
            }
            found => found?,
        };
        let Request { scratch, appended, last, .. } = request;
        let context = appender.context();
        let taken = partition.append_histograms(keys, done, &context, scratch, appended);
        if let Some(Taken { lsn, count, .. }) = appender.check_taken(&partition, taken)? {
            assert!(0 < count, "a record takes a histogram, or says why not");
            done += count;
            *last = lsn.or(*last);
        }
    }
    Ok(())
}

/// Lowers rows until a record is full; returns those that are left.
fn lower_some<'r>(
    batch: &HistogramBatch<'_>,
    rows: &'r [usize],
    scratch: &mut HistogramScratch,
    appended: &mut Appended,
) -> &'r [usize] {
    let lowered = &mut scratch.lowered;
    lowered.clear();
    for (count, idx) in rows.iter().enumerate() {
        let is_full = RECORD_VALUES_MAX <= lowered.values.len()
            || RECORD_ROWS_MAX <= lowered.rows.len() + lowered.histograms.len();
        if is_full {
            return &rows[count..];
        }
        let row = &batch.rows[*idx];
        if let Err(reason) = lowered.push(*idx, &row.histogram) {
            appended.reject(row.position, reason);
        }
    }
    &[]
}

/// What was lowered, and where it is told what became of it.
struct Histograms<'a> {
    keys: &'a Keys<'a>,
    lowered: &'a Lowered,
    appended: &'a mut Appended,
}

impl OneByOne for Histograms<'_> {
    type One = LoweredHistogram;

    fn timestamp(&self, one: &LoweredHistogram) -> i64 {
        self.keys.batch.rows[one.row].timestamp
    }

    fn take(
        &mut self,
        one: &LoweredHistogram,
        state: &mut PartitionState,
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
        room: &mut Reservation<'_>,
    ) -> Told<()> {
        let row = &self.keys.batch.rows[one.row];
        let size = rows_size_max(self.lowered.value_count(one));
        room.grow(size).map_err(Refusal::Log)?;
        let found = state.find_rows(self.keys, row, (self.lowered, one), context, scratch, room);
        let plain = found.inspect_err(|_| room.shrink(size))?;
        state.push_rows(plain, row.timestamp, (self.lowered, one), context, scratch);
        self.appended.samples += 1;
        Ok(())
    }

    fn refuse(&mut self, one: &LoweredHistogram, refusal: Refusal) {
        self.appended.refuse(self.keys.batch.rows[one.row].position, refusal);
    }
}

impl Partition {
    /// Appends what was lowered, all of this partition, from the histogram `start` on; as
    /// many as one record takes.
    fn append_histograms(
        &self,
        keys: &Keys<'_>,
        start: usize,
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
        appended: &mut Appended,
    ) -> Result<Taken> {
        // Taken out meanwhile, as the rest of the buffers changes.
        let lowered = std::mem::take(&mut scratch.histograms.lowered);
        let mut how = Histograms { keys, lowered: &lowered, appended };
        let taken = self.append_each(&lowered.histograms[start..], &mut how, context, scratch);
        scratch.histograms.lowered = lowered;
        taken
    }
}

impl PartitionState {
    /// Finds or registers the entities of a histogram's rows; returns where the plain one goes. The
    /// hidden ones' are left in `scratch`.
    fn find_rows(
        &mut self,
        keys: &Keys<'_>,
        row: &HistogramRow,
        (lowered, one): (&Lowered, &LoweredHistogram),
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
        room: &mut Reservation<'_>,
    ) -> Told<Target> {
        let hidden = &lowered.rows[one.rows.clone()];
        let HistogramScratch { shapes, hashes, found, .. } = &mut scratch.histograms;
        hashes.clear();
        hashes.push(keys.plain(row));
        hashes.extend(hidden.iter().map(|hidden| keys.hidden(row, hidden.piece, shapes)));
        found.clear();
        let mut group_found = [None; GROUP_ROWS];
        for group in hashes.chunks(GROUP_ROWS) {
            self.series.map.find_group(group, &mut group_found);
            found.extend_from_slice(&group_found[..group.len()]);
        }
        let plain = found[0];
        scratch.histograms.note_found();
        if let (Some(plain), []) = (plain, scratch.histograms.unknown.as_slice()) {
            return Ok(plain);
        }
        let pieces: Vec<Piece> = hidden.iter().map(|hidden| hidden.piece).collect();
        let fields = [WHOLE_SERIES.into()];
        let batch = keys.batch;
        scratch.labels.decode(batch.decoder, batch.key(row), &fields, context.limits)?;
        self.resolve_rows(plain, &pieces, context, scratch, room)
    }

    /// The slow path: the labels of the plain series are in `scratch`; it, or some hidden ones, are
    /// unknown.
    fn resolve_rows(
        &mut self,
        plain: Option<Target>,
        pieces: &[Piece],
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
        room: &mut Reservation<'_>,
    ) -> Told<Target> {
        let AppendScratch { histograms, labels, encoder, fresh, .. } = scratch;
        let HistogramScratch { hashes, hidden, unknown, .. } = histograms;
        let metric = labels.names[0].as_str();
        let tags: Vec<(&str, &str)> = labels.tags.iter().collect();
        let plain_names = [metric];
        let plain_entity = NewEntity::new(&plain_names, &tags);
        let runs: Vec<String> = pieces.iter().map(|piece| piece.label_value()).collect();
        let labels: Vec<Vec<(&str, &str)>> =
            runs.iter().map(|run| hidden_tags(&tags, metric, run)).collect();
        let hidden_entity = |idx: usize| NewEntity::new(pieces[idx].columns(), &labels[idx]);

        let mut plain = plain;
        if plain.is_none() {
            plain = self.series.find_whole(&plain_entity)?;
            plain.inspect(|target| self.series.map.insert(hashes[0], *target));
        }
        let mut new = Vec::new();
        for &idx in &*unknown {
            match self.series.index.find_entity(&hidden_entity(idx))? {
                Some(entity) => {
                    self.series.map.insert(hashes[1 + idx], Target::Entity(entity));
                    hidden[idx] = entity;
                }
                None => new.push(idx),
            }
        }
        if let (Some(plain), []) = (plain, new.as_slice()) {
            return Ok(plain);
        }
        let is_new_series = plain.is_none();
        let plain_size = if is_new_series { plain_entity.registration_size_max() } else { 0 };
        let sizes = new.iter().map(|idx| hidden_entity(*idx).registration_size_max());
        let size = plain_size + sizes.sum::<usize>();
        room.grow(size).map_err(Refusal::Log)?;
        let (now_ns, gate, new_count) = (context.now_ns, context.gate, new.len() as u64);
        let admitted = gate.admit_histogram(now_ns, metric, &tags, is_new_series, new_count);
        admitted.inspect_err(|_| room.shrink(size))?;
        let mut register = |hash: u128, entity: &NewEntity<'_>, counted: usize| {
            let id = self.register(entity, counted, context, &mut encoder.registrations)?;
            fresh.push(id);
            self.series.map.insert(hash, Target::Entity(id));
            Told::Ok(id)
        };
        let plain = match plain {
            Some(plain) => plain,
            None => Target::Entity(register(hashes[0], &plain_entity, 1)?),
        };
        for idx in new {
            // To people it is no series.
            hidden[idx] = register(hashes[1 + idx], &hidden_entity(idx), 0)?;
        }
        Ok(plain)
    }

    /// Appends a histogram's rows, whose entities are known: the hidden ones' are in `scratch`.
    fn push_rows(
        &mut self,
        plain: Target,
        timestamp: i64,
        (lowered, one): (&Lowered, &LoweredHistogram),
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
    ) {
        let entities = std::mem::take(&mut scratch.histograms.hidden);
        let rows = &lowered.rows[one.rows.clone()];
        assert_eq!(rows.len(), entities.len(), "an entity for each row");
        self.push_target(&plain, timestamp, &[one.value], context, scratch);
        for (hidden, entity) in rows.iter().zip(&entities) {
            self.push_hidden(*entity, timestamp, lowered.values_of(hidden), context, scratch);
        }
        scratch.histograms.hidden = entities;
    }
}
