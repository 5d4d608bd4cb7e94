//! From a batch of histograms to the log and the arena.
//!
//! A histogram is taken whole or not at all: first the log must have room for its rows, then each
//! of them is given an entity, for which there must be room too, then all are pushed. They are in
//! one record of the log and appended under one lock.

use super::lower::{Lowered, LoweredHistogram};
use super::names::{Piece, hidden_tags};
use super::scratch::HistogramScratch;
use crate::append::{AppendContext, AppendScratch, Taken};
use crate::appender::{Appender, RECORD_ROWS_MAX, RECORD_VALUES_MAX, Request};
use crate::log_record::{rows_size_max, unit_of};
use crate::partition::{Partition, PartitionState};
use crate::period::Period;
use crate::refusal::{Appended, Refusal, Told};
use crate::series_map::{GROUP_ROWS, Target};
use crate::{Durability, Error, Result};
use hashbrown::HashMap;
use histogram::{HistogramBatch, HistogramRow};
use index::NewEntity;
use model::KeyHasher;
use std::collections::BTreeMap;
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
    for (period, rows) in by_period(appender, batch, &mut request.appended) {
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
        let Request { scratch, appended, last, .. } = request;
        let partition = match appender.partition(period) {
            Err(error @ Error::LimitExceeded { .. }) => {
                let left = &scratch.histograms.lowered.histograms[done..];
                let positions = left.iter().map(|one| keys.batch.rows[one.row].position);
                appended.reject_all(positions, &error.to_string());
                return Ok(());
            }
            found => found?,
        };
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

/// Indexes of the rows by partition; those whose time is not accepted are rejected.
fn by_period(
    appender: &Appender,
    batch: &HistogramBatch<'_>,
    appended: &mut Appended,
) -> BTreeMap<Period, Vec<usize>> {
    let (length, accepted) = (appender.ground.length, appender.retention.accepted_span());
    let mut by_period: BTreeMap<Period, Vec<usize>> = BTreeMap::new();
    for (idx, row) in batch.rows.iter().enumerate() {
        match accepted.contains(row.timestamp) {
            true => by_period.entry(length.of(row.timestamp)).or_default().push(idx),
            false => appended.reject_time(row.position, row.timestamp, &accepted),
        }
    }
    by_period
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
        let taken = self.append_lowered(keys, (&lowered, start), context, scratch, appended);
        scratch.histograms.lowered = lowered;
        taken
    }

    fn append_lowered(
        &self,
        keys: &Keys<'_>,
        (lowered, start): (&Lowered, usize),
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
        appended: &mut Appended,
    ) -> Result<Taken> {
        let rows = &keys.batch.rows;
        let times = lowered.histograms[start..].iter().map(|one| rows[one.row].timestamp);
        scratch.encoder.start(unit_of(times));
        let (mut state, mut room) = self.begin_record(context)?;
        let version = context.changes.now();
        let mut taken = Taken::default();
        for one in &lowered.histograms[start..] {
            let row = &rows[one.row];
            scratch.fresh.clear();
            let size = rows_size_max(lowered.value_count(one));
            let found = room.grow(size).map_err(Refusal::Log).and_then(|()| {
                let found = state.find_rows(keys, row, (lowered, one), context, scratch, &mut room);
                found.inspect_err(|_| room.shrink(size))
            });
            match found {
                Ok(()) => {
                    state.push_rows(row.timestamp, lowered, one, context, scratch);
                    state.changed.note(row.timestamp, version);
                    appended.samples += 1;
                }
                Err(refusal) => match refusal.unless_full(scratch.encoder.is_empty()) {
                    Ok(refusal) => appended.refuse(row.position, refusal),
                    Err(error) => {
                        taken.full = Some(error);
                        break;
                    }
                },
            }
            taken.count += 1;
        }
        // A histogram that was refused late may have left registrations, which later rows need.
        self.end_record(state, context, scratch, room, taken)
    }
}

impl PartitionState {
    /// Finds or registers the entities of a histogram's rows.
    fn find_rows(
        &mut self,
        keys: &Keys<'_>,
        row: &HistogramRow,
        (lowered, one): (&Lowered, &LoweredHistogram),
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
        room: &mut Reservation<'_>,
    ) -> Told<()> {
        let hidden = &lowered.rows[one.rows.clone()];
        let HistogramScratch { shapes, hashes, targets, .. } = &mut scratch.histograms;
        hashes.clear();
        hashes.push(keys.plain(row));
        hashes.extend(hidden.iter().map(|hidden| keys.hidden(row, hidden.piece, shapes)));
        targets.clear();
        let mut found = [None; GROUP_ROWS];
        for group in hashes.chunks(GROUP_ROWS) {
            self.series.map.find_group(group, &mut found);
            targets.extend_from_slice(&found[..group.len()]);
        }
        if targets.iter().all(Option::is_some) {
            return Ok(());
        }
        let pieces: Vec<Piece> = hidden.iter().map(|hidden| hidden.piece).collect();
        let fields = [WHOLE_SERIES.into()];
        let batch = keys.batch;
        scratch.labels.decode(batch.decoder, batch.key(row), &fields, context.limits)?;
        self.resolve_rows(&pieces, context, scratch, room)
    }

    /// The slow path: the labels of the plain series are in `scratch`, some targets are missing.
    fn resolve_rows(
        &mut self,
        pieces: &[Piece],
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
        room: &mut Reservation<'_>,
    ) -> Told<()> {
        let AppendScratch { histograms, labels, encoder, fresh, .. } = scratch;
        let HistogramScratch { hashes, targets, .. } = histograms;
        let metric = labels.names[0].as_str();
        let tags: Vec<(&str, &str)> = labels.tags.iter().collect();
        let plain_names = [metric];
        let plain = NewEntity::new(&plain_names, &tags);
        let runs: Vec<String> = pieces.iter().map(|piece| piece.label_value()).collect();
        let hidden: Vec<Vec<(&str, &str)>> =
            runs.iter().map(|run| hidden_tags(&tags, metric, run)).collect();
        let entity_of = |idx: usize| match idx {
            0 => plain,
            _ => NewEntity::new(pieces[idx - 1].columns(), &hidden[idx - 1]),
        };
        let mut new = Vec::new();
        for idx in (0..targets.len()).filter(|idx| targets[*idx].is_none()).collect::<Vec<_>>() {
            match self.series.find_whole(&entity_of(idx))? {
                Some(target) => {
                    self.series.map.insert(hashes[idx], target);
                    targets[idx] = Some(target);
                }
                None => new.push(idx),
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        let size = new.iter().map(|idx| entity_of(*idx).registration_size_max()).sum();
        room.grow(size).map_err(Refusal::Log)?;
        let is_new_series = new[0] == 0;
        let hidden_count = new.len() as u64 - u64::from(is_new_series);
        let (now_ns, gate) = (context.now_ns, context.gate);
        let admitted = gate.admit_histogram(now_ns, metric, &tags, is_new_series, hidden_count);
        admitted.inspect_err(|_| room.shrink(size))?;
        for idx in new {
            let counted = usize::from(idx == 0);
            let log = &mut encoder.registrations;
            let id = self.register(&entity_of(idx), counted, context, log)?;
            fresh.push(id);
            self.series.map.insert(hashes[idx], Target::Entity(id));
            targets[idx] = Some(Target::Entity(id));
        }
        Ok(())
    }

    /// Appends a histogram's rows, whose entities are known.
    fn push_rows(
        &mut self,
        timestamp: i64,
        lowered: &Lowered,
        one: &LoweredHistogram,
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
    ) {
        let targets = std::mem::take(&mut scratch.histograms.targets);
        let found = |idx: usize| targets[idx].expect("every row was found");
        self.push_target(&found(0), timestamp, &[one.value], context, scratch);
        for (hidden, idx) in lowered.rows[one.rows.clone()].iter().zip(1..) {
            let Target::Entity(entity) = found(idx) else {
                unreachable!("hidden entities are registered whole");
            };
            if self.is_first_of_hour(entity) && !scratch.fresh.contains(&entity) {
                self.note_active_hidden(entity, context.active_count());
            }
            let values = lowered.values_of(hidden);
            self.head.arena.push(entity, timestamp, values);
            scratch.encoder.row(entity, timestamp, values);
        }
        scratch.histograms.targets = targets;
    }
}
