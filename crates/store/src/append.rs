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

use crate::arena::COLUMNS_MAX;
use crate::changes::ChangeClock;
use crate::histograms::append::HistogramScratch;
use crate::histograms::names;
use crate::log_record::{KIND_ROWS, RECORD_HEAD_SIZE_MAX, RowsEncoder, rows_size_max, unit_of};
use crate::partition::{Partition, SEAL_SIZE, State};
use crate::period::Period;
use crate::series_limits::SeriesGate;
use crate::series_map::{GROUP_ROWS, Target};
use crate::store::Appended;
use crate::{Error, Result};
use index::{EntityId, NewEntity};
use model::limits::Limits;
use model::{
    KeyDecoder, LabelError, Labels, LabelsBuilder, METRIC_NAME, Rejection, Row, WriteBatch,
};
use std::fmt;
use std::sync::RwLockWriteGuard;
use wal::{Lsn, Reservation, Wal};

/// Rejections that are told with their reasons; the rest is only counted.
pub const REJECTIONS_TOLD_MAX: usize = 100;

// The rows of a group always have room in a record of their own.
const _: () =
    assert!(rows_size_max(GROUP_ROWS * COLUMNS_MAX) + RECORD_HEAD_SIZE_MAX <= wal::RECORD_SIZE_MAX);

/// Why a row was not taken.
#[derive(Debug)]
pub enum Refusal {
    /// Its own fault, told to the client: sent again it is refused again.
    Row(String),
    /// Trouble of the store that may pass: the row must come again.
    Store(String),
    /// The log has no room. Nothing of the row was applied.
    Log(wal::Error),
}

/// A result whose error says whose fault it is.
pub type Told<T> = std::result::Result<T, Refusal>;

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Row(text) | Refusal::Store(text) => f.write_str(text),
            Refusal::Log(error) => error.fmt(f),
        }
    }
}

impl From<LabelError> for Refusal {
    fn from(error: LabelError) -> Refusal {
        Refusal::Row(error.to_string())
    }
}

impl From<index::Error> for Refusal {
    fn from(error: index::Error) -> Refusal {
        use index::Error as E;
        match error {
            // Ids that are used up do not come back while the partition lasts.
            E::InvalidMatcher { .. } | E::InvalidEntity(_) | E::Full { .. } => {
                Refusal::Row(error.to_string())
            }
            _ => Refusal::Store(error.to_string()),
        }
    }
}

impl Refusal {
    /// The refusal of what does not fit a record that has nothing else in it.
    pub fn of_one_too_large(error: &wal::Error) -> Refusal {
        Refusal::Row(format!("labels and values are too large: {error}"))
    }
}

/// Where a record ended before the rows did.
struct Stop {
    /// Rows of the group that are done with.
    count: usize,
    /// What the log said to the next one.
    error: wal::Error,
}

/// What one record took.
#[derive(Default)]
pub struct Taken {
    /// What to wait for; none when nothing was logged.
    pub lsn: Option<Lsn>,
    /// How many of the rows are done with. The others need another record.
    pub count: usize,
}

/// Where some values of a row go, when the row is not exactly one entity.
pub enum Piece {
    /// Values of the row, in the order of the entity's columns.
    Entity {
        /// The entity.
        entity: EntityId,
        /// Indexes into the row's values.
        value_idx: Box<[u16]>,
    },
    /// One value, to one column of an entity.
    Single {
        /// The entity.
        entity: EntityId,
        /// The column.
        column: u16,
        /// Index into the row's values.
        value_idx: u16,
    },
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

/// Buffers of one appending thread.
#[derive(Default)]
pub struct AppendScratch {
    /// The record being made.
    pub encoder: RowsEncoder,
    head: Vec<u8>,
    /// Of the row that was decoded last.
    pub tags: LabelsBuilder,
    /// One for each of its fields.
    pub names: Vec<String>,
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
        let mut state = self.write();
        if self.is_dropped() {
            return Err(Error::PartitionDropped);
        }
        let room = context.wal.reserve(RECORD_HEAD_SIZE_MAX)?;
        let mut work = Work { batch, context, scratch, appended, room };
        state.enter_hour(self.period, context.now_ns);
        let version = context.changes.now();
        let mut found = [None; GROUP_ROWS];
        let mut hashes = [0u128; GROUP_ROWS];
        let mut taken = Taken::default();
        let mut stopped = None;
        for group in rows.chunks(GROUP_ROWS) {
            for (hash, row) in hashes.iter_mut().zip(group) {
                *hash = row.hash;
            }
            let known = match work.room.grow(rows_size_max(values_span(batch, group))) {
                Ok(()) => {
                    state.map.find_group(&hashes[..group.len()], &mut found);
                    work.scratch.fresh.clear();
                    state.resolve_unknown(group, &mut found, &mut work)
                }
                Err(error) => Err(Stop { count: 0, error }),
            };
            let count = known.as_ref().map_or_else(|stop| stop.count, |()| group.len());
            state.push_group(&group[..count], &found, &mut work);
            state.note_changed(&group[..count], version);
            taken.count += count;
            if let Err(stop) = known {
                stopped = Some(stop.error);
                break;
            }
        }
        let Work { scratch, room, .. } = work;
        if !scratch.encoder.is_empty() {
            taken.lsn = Some(self.finish_append(state, context, scratch, room)?);
        }
        taken.unless_stopped(stopped)
    }

    /// Logs what was appended, for which there is room, and seals what has become large.
    pub fn finish_append(
        &self,
        mut state: RwLockWriteGuard<'_, State>,
        context: &AppendContext<'_>,
        scratch: &mut AppendScratch,
        room: Reservation<'_>,
    ) -> Result<Lsn> {
        let AppendScratch { encoder, head, .. } = scratch;
        let lsn = state.log_rows(self.period, encoder, head, context.wal, room, context.now_ns)?;
        if SEAL_SIZE <= state.arena.rows_size() {
            state.take_arena();
        }
        state.note_index_size();
        self.note_head_size(&state);
        let must_seal = !state.taken.is_empty();
        drop(state);
        if must_seal {
            self.seal_taken()?;
        }
        self.renew_arena(context.arena_words_max)?;
        Ok(lsn)
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
    /// What becomes of a record that `stopped` ended early: a full one is followed by another.
    pub fn unless_stopped(self, stopped: Option<wal::Error>) -> Result<Taken> {
        match stopped {
            Some(wal::Error::RecordTooLarge { .. }) if 0 < self.count => Ok(self),
            Some(error) => Err(Error::Wal(error)),
            None => Ok(self),
        }
    }
}

impl State {
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
        if self.dirty_from.is_none() {
            self.dirty_from = Some(wal.stats().segment);
            self.dirty_since_ns = now_ns;
        }
        Ok(room.append(KIND_ROWS, &record)?)
    }

    /// Finds or registers the series of the rows whose hash is unknown, up to the first for which
    /// the log has no room.
    fn resolve_unknown(
        &mut self,
        group: &[Row],
        found: &mut [Option<Target>; GROUP_ROWS],
        work: &mut Work<'_>,
    ) -> std::result::Result<(), Stop> {
        for (count, row) in group.iter().enumerate() {
            if found[count].is_some() {
                continue;
            }
            // An earlier row of this group may have brought the same key.
            let mut again = [None; GROUP_ROWS];
            self.map.find_group(&[row.hash], &mut again);
            found[count] = again[0];
            if found[count].is_some() {
                continue;
            }
            match self.resolve(row, work) {
                Ok(Resolved::Whole(target)) => {
                    self.map.insert(row.hash, target);
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
                Err(Refusal::Log(error)) => {
                    let is_alone = count == 0 && work.scratch.encoder.is_empty();
                    if !is_alone || !matches!(error, wal::Error::RecordTooLarge { .. }) {
                        return Err(Stop { count, error });
                    }
                    work.appended.refuse(row.position, Refusal::of_one_too_large(&error));
                }
                Err(refusal) => work.appended.refuse(row.position, refusal),
            }
        }
        Ok(())
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
            Some(Target::Entity(entity)) => sum.wrapping_add(self.arena.last_row(*entity)),
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
                    self.note_active(*entity, &scratch.fresh, context);
                }
                self.arena.push(*entity, timestamp, values);
                scratch.encoder.row(*entity, timestamp, values);
                values.len() as u64
            }
            Target::Pieces(idx) => {
                // Taken out meanwhile, as the rest of the state changes.
                let pieces = std::mem::take(&mut self.pieces[*idx as usize]);
                let count = self.push_pieces(&pieces, timestamp, values, context, scratch);
                self.pieces[*idx as usize] = pieces;
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
                        self.note_active(*entity, &scratch.fresh, context);
                    }
                    scratch.values.clear();
                    scratch.values.extend(value_idx.iter().map(|idx| values[usize::from(*idx)]));
                    self.arena.push(*entity, timestamp, &scratch.values);
                    scratch.encoder.row(*entity, timestamp, &scratch.values);
                    count += value_idx.len() as u64;
                }
                Piece::Single { entity, column, value_idx } => {
                    self.note_active_single(*entity, *column, &scratch.fresh, context);
                    let value = values[usize::from(*value_idx)];
                    self.arena.push_single(*entity, *column, timestamp, value);
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
        decode_labels(batch.decoder, batch.key(row), fields, context.limits, scratch)?;
        let AppendScratch { names, tags, encoder, fresh, .. } = &mut **scratch;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let tags: Vec<(&str, &str)> = tags.iter().collect();
        let wanted = NewEntity::new(&names, &tags);
        if let Some(entity) = self.index.find_entity(&wanted)? {
            return Ok(Resolved::Whole(Target::Entity(entity)));
        }
        let known = self.find_each(&wanted, &names)?;
        let log = &mut encoder.registrations;
        if known.iter().all(Option::is_none) {
            let entity = self.let_in(&wanted, (&names, &tags), context, room, log)?;
            fresh.push(entity);
            return Ok(Resolved::Whole(Target::Entity(entity)));
        }
        let mut pieces = self.pieces_of_known(&known)?;
        let new: Vec<u16> =
            (0..names.len() as u16).filter(|idx| known[usize::from(*idx)].is_none()).collect();
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
        self.pieces.push(pieces.into());
        Ok(Resolved::Whole(Target::Pieces(self.pieces.len() as u32 - 1)))
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

    /// Where the rows of an entity of one list of columns go, if it is known: to itself, or, of
    /// one metric, to a column of another.
    pub fn find_whole(&mut self, entity: &NewEntity<'_>) -> index::Result<Option<Target>> {
        if let Some(entity) = self.index.find_entity(entity)? {
            return Ok(Some(Target::Entity(entity)));
        }
        let Some((entity, column)) = self.index.find_column(entity)? else { return Ok(None) };
        self.pieces.push([Piece::Single { entity, column, value_idx: 0 }].into());
        Ok(Some(Target::Pieces(self.pieces.len() as u32 - 1)))
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
        let id = self.index.register(entity, log)?;
        self.arena.reserve_entities(self.index.memory().next_entity() as usize);
        self.note_birth(id, series as u64, context.now_ns);
        Ok(id)
    }

    /// Where each metric's series of an unknown entity is, if it is known: alone, or as one column
    /// of another entity.
    pub fn find_each(
        &self,
        entity: &NewEntity<'_>,
        names: &[&str],
    ) -> index::Result<Vec<Option<(EntityId, u16)>>> {
        let find = |name: &&str| {
            let one = [*name];
            let one = entity.with_names(&one);
            // Of an entity of one metric it is known already that it is not there alone.
            let alone = if names.len() == 1 { None } else { self.index.find_entity(&one)? };
            match alone {
                Some(alone) => Ok(Some((alone, 0))),
                None => self.index.find_column(&one),
            }
        };
        names.iter().map(find).collect()
    }

    /// Series that exist already: whole entities where all columns are among them, else singles.
    fn pieces_of_known(&self, known: &[Option<(EntityId, u16)>]) -> index::Result<Vec<Piece>> {
        let mut by_place: Vec<(EntityId, u16, u16)> = known
            .iter()
            .zip(0u16..)
            .filter_map(|(place, idx)| place.map(|(entity, column)| (entity, column, idx)))
            .collect();
        by_place.sort_unstable();
        let mut pieces = Vec::new();
        for same in by_place.chunk_by(|a, b| a.0 == b.0) {
            let entity = same[0].0;
            let columns = self.index.block_of(entity)?.map_or(0, |block| block.columns);
            if same.len() == columns as usize {
                let value_idx = same.iter().map(|(_, _, idx)| *idx).collect();
                pieces.push(Piece::Entity { entity, value_idx });
                continue;
            }
            pieces.extend(same.iter().map(|&(entity, column, value_idx)| Piece::Single {
                entity,
                column,
                value_idx,
            }));
        }
        Ok(pieces)
    }
}

/// Rows that were not taken for trouble of the store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Postponed {
    count: u64,
    /// Why the first one was not.
    reason: String,
}

impl Postponed {
    pub(crate) fn add(&mut self, reason: String) {
        if self.count == 0 {
            self.reason = reason;
        }
        self.count += 1;
    }

    /// The error that makes the client send all again, if there is need.
    pub(crate) fn check(self) -> Result<()> {
        let Postponed { count, reason } = self;
        match count {
            0 => Ok(()),
            _ => Err(Error::NewSeriesRefused { count, reason }),
        }
    }
}

impl Appended {
    /// Counts a row as refused, or as one that must come again.
    pub(crate) fn refuse(&mut self, position: u32, refusal: Refusal) {
        match refusal {
            Refusal::Row(reason) => self.reject(position, reason),
            Refusal::Store(reason) => self.postponed.add(reason),
            Refusal::Log(error) => self.postponed.add(error.to_string()),
        }
    }

    /// Counts a row as refused, and tells why if there is room for it.
    /// Rejects rows that have nothing wrong with them but what the reason says of all.
    pub(crate) fn reject_all(&mut self, positions: impl Iterator<Item = u32>, reason: &str) {
        positions.for_each(|position| self.reject(position, reason.to_string()));
    }

    pub(crate) fn reject(&mut self, position: u32, reason: String) {
        self.rejected += 1;
        if self.rejections.len() < REJECTIONS_TOLD_MAX {
            self.rejections.push(Rejection { position, reason });
        }
    }
}

/// The labels of the one series that a row is of, checked.
pub(crate) fn series_labels(
    batch: &WriteBatch<'_>,
    row: &Row,
    limits: &Limits,
    scratch: &mut AppendScratch,
) -> std::result::Result<Labels, LabelError> {
    let fields = &batch.shapes[row.shape as usize].fields;
    decode_labels(batch.decoder, batch.key(row), fields, limits, scratch)?;
    let [name] = scratch.names.as_slice() else {
        return Err(LabelError::Refused("exemplars belong to one series".into()));
    };
    scratch.tags.push(METRIC_NAME, name);
    Ok(scratch.tags.finish())
}

/// Decodes and checks the labels of a key into `scratch.tags` (sorted) and `scratch.names`.
pub fn decode_labels(
    decoder: &dyn KeyDecoder,
    key: &[u8],
    fields: &[Box<str>],
    limits: &Limits,
    scratch: &mut AppendScratch,
) -> std::result::Result<(), LabelError> {
    assert!(!fields.is_empty() && fields.len() <= COLUMNS_MAX, "doors limit the fields of a line");
    scratch.tags.clear();
    decoder.tags(key, &mut scratch.tags)?;
    scratch.tags.sort()?;
    check_tags(&scratch.tags, limits)?;
    scratch.names.resize_with(fields.len(), String::new);
    for (name, field) in scratch.names.iter_mut().zip(fields) {
        name.clear();
        decoder.metric_name(key, field, name)?;
        check_value(METRIC_NAME, name, limits)?;
        if name.is_empty() {
            return Err(LabelError::MissingMetricName);
        }
    }
    check_distinct(&scratch.names)
}

fn check_tags(tags: &LabelsBuilder, limits: &Limits) -> std::result::Result<(), LabelError> {
    let (count, max) = (tags.len() + 1, limits.labels_per_series_max);
    if max < count {
        return Err(LabelError::TooMany { count, max });
    }
    for (name, value) in tags.iter() {
        let max = limits.label_name_size_max;
        if max < name.len() {
            let start = name.chars().take(32).collect();
            return Err(LabelError::NameTooLong { size: name.len(), max, start });
        }
        if name == METRIC_NAME {
            return Err(LabelError::Duplicate(METRIC_NAME.into()));
        }
        names::check_name(name)?;
        check_value(name, value, limits)?;
    }
    Ok(())
}

fn check_value(name: &str, value: &str, limits: &Limits) -> std::result::Result<(), LabelError> {
    let (size, max) = (value.len(), limits.label_value_size_max);
    if max < size {
        return Err(LabelError::ValueTooLong { name: name.into(), size, max });
    }
    Ok(())
}

/// Two fields of a line that give one metric would be two values of one series at one instant.
fn check_distinct(names: &[String]) -> std::result::Result<(), LabelError> {
    if names.len() < 2 {
        return Ok(());
    }
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(LabelError::Duplicate(format!("{METRIC_NAME}={}", pair[0]))),
        None => Ok(()),
    }
}
