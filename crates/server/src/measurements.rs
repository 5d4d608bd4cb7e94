//! Which measurements the lines of InfluxDB's protocol had, and which fields of which types: a
//! metric's name does not say where its measurement ends, and a sample does not say that it was a
//! whole number.
//!
//! They are notes among the metadata of the store (decision 38), so that they are in its log, its
//! snapshots and its backups:
//!
//! ```text
//! \0influx \0 database \0 measurement \0 field   unit: float | integer | long | boolean | string | gone
//! \0influx \0 database \0 measurement \0 field:text     unit: string | gone, of one that has numbers, too
//! \0influx \0 database                           unit: empty | gone
//! ```

use crate::texts::TextLimits;
use model::Metadata;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use store::{Asks, Need, Store};
use wire::influx::{FieldType, LONG_SUFFIX, TEXT_SUFFIX, TypedFields};

/// What the names of notes begin with, behind their zero byte.
const START: &str = "influx\0";
/// What stands instead of the type of a field that was dropped.
const GONE: &str = store::NOTE_WITHDRAWN;
/// Fields that are remembered; those beyond are found as metrics of their own.
const FIELDS_MAX: usize = 1 << 19;
/// Databases that are remembered though nothing was written to them.
pub const DATABASES_MAX: usize = 1 << 16;
/// Kinds of lines whose fields are known to be known.
const KINDS_MAX: usize = 1 << 16;

/// Fields and their types.
pub type Fields = BTreeMap<String, FieldType>;
/// Measurements and their fields.
pub type Measurements = BTreeMap<String, Fields>;

/// Measurements of another server, as far as they are known without asking it.
pub trait Lender: Send + Sync {
    /// The measurements of a database.
    fn measurements(&self, database: &str) -> Measurements;

    /// The fields of a measurement.
    fn fields(&self, database: &str, measurement: &str) -> Option<Fields>;
}

#[derive(Default)]
struct State {
    databases: BTreeMap<String, Measurements>,
    fields: usize,
    /// Fields of numbers or booleans that have strings besides: database, measurement, field.
    beside: BTreeSet<(String, String, String)>,
    /// Hashes of kinds of lines all of whose fields are in `databases`.
    kinds: HashSet<u64>,
    /// How often something was forgotten.
    forgotten: u64,
}

/// What a batch of lines has said, for [`MeasurementTable::confirm`].
pub struct Learned {
    lines: Vec<TypedFields>,
    forgotten: u64,
}

/// All that is remembered.
pub struct MeasurementTable {
    state: RwLock<State>,
    /// Whether fields of strings are fields.
    keeps_texts: bool,
    /// Legacy backends that know measurements; said once.
    lenders: OnceLock<Vec<Arc<dyn Lender>>>,
}

impl MeasurementTable {
    /// What the store has noted.
    pub fn read(store: &Store, texts: TextLimits) -> MeasurementTable {
        let mut state = State::default();
        let mut has_longs = store.has(Need::Integers);
        for note in store.notes(START) {
            let mut parts = note.metric.split('\0').skip(2);
            let (Some(database), measurement, field) = (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            match (measurement, field, type_of(&note.unit)) {
                (Some(measurement), Some(field), Some(FieldType::String))
                    if field.ends_with(TEXT_SUFFIX) =>
                {
                    state.put_beside(database, measurement, field);
                }
                (Some(measurement), Some(field), Some(kind)) => {
                    has_longs |= kind == FieldType::Long;
                    state.put(database, measurement, field, kind);
                }
                (None, None, _) if note.unit != GONE => {
                    state.databases.entry(database.to_string()).or_default();
                }
                _ => {}
            }
        }
        if has_longs && let Err(error) = expect_longs(store) {
            tracing::warn!("an older version could open this store and misread it: {error}");
        }
        MeasurementTable {
            state: RwLock::new(state),
            keeps_texts: texts.count_max != 0,
            lenders: OnceLock::new(),
        }
    }

    /// Names those whose measurements count, too, where they are asked. Only the first call counts.
    pub fn borrow_from(&self, lenders: Vec<Arc<dyn Lender>>) {
        let _ = self.lenders.set(lenders);
    }

    fn lenders(&self, asks: Asks) -> impl Iterator<Item = &Arc<dyn Lender>> {
        let lenders = self.lenders.get().filter(|_| asks == Asks::All);
        lenders.into_iter().flatten()
    }

    fn shared(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the fields of the kinds of lines of a batch; what is new is durable on return.
    ///
    /// # Errors
    /// When the store takes no notes.
    pub fn learn(
        &self,
        store: &Store,
        database: &str,
        lines: Vec<TypedFields>,
    ) -> store::Result<Learned> {
        let forgotten = self.shared().forgotten;
        self.remember_all(store, database, &lines)?;
        Ok(Learned { lines, forgotten })
    }

    /// To be called when the lines are stored: what somebody has dropped meanwhile, thinking of older
    /// lines, is remembered again.
    ///
    /// # Errors
    /// When the store takes no notes.
    pub fn confirm(&self, store: &Store, database: &str, learned: &Learned) -> store::Result<()> {
        // Not in the condition of a `match`, which would hold the lock that it waits for.
        let is_all_there = self.shared().forgotten == learned.forgotten;
        if is_all_there { Ok(()) } else { self.remember_all(store, database, &learned.lines) }
    }

    /// Remembers fields that somebody names; what is new is durable on return.
    ///
    /// # Errors
    /// When the store takes no notes.
    pub fn note(&self, store: &Store, database: &str, lines: &[TypedFields]) -> store::Result<()> {
        self.remember_all(store, database, lines)
    }

    fn remember_all(
        &self,
        store: &Store,
        database: &str,
        lines: &[TypedFields],
    ) -> store::Result<()> {
        for line in lines {
            let kind = kind_of(database, line);
            if !self.shared().kinds.contains(&kind) {
                self.remember(store, database, line, kind)?;
            }
        }
        Ok(())
    }

    fn remember(
        &self,
        store: &Store,
        database: &str,
        line: &TypedFields,
        kind: u64,
    ) -> store::Result<()> {
        if line.fields.iter().any(|(_, kind)| *kind == FieldType::Long) {
            expect_longs(store)?;
        }
        let mut state = self.exclusive();
        let News { fields, beside } = state.news_of(database, line, self.keeps_texts);
        if !fields.is_empty() || !beside.is_empty() {
            let name = |field: &str, word| note(&[database, &line.measurement, field], word);
            let of_fields = fields.iter().map(|(field, kind)| name(field, word_of(*kind)));
            let of_texts = beside.iter().map(|field| name(field, word_of(FieldType::String)));
            store.put_metadata(&of_fields.chain(of_texts).collect::<Vec<Metadata>>())?;
            for (field, kind) in fields {
                state.put(database, &line.measurement, &field, kind);
            }
            for field in beside {
                state.put_beside(database, &line.measurement, &field);
            }
        }
        if KINDS_MAX <= state.kinds.len() {
            state.kinds.clear();
        }
        state.kinds.insert(kind);
        Ok(())
    }

    /// Remembers a database that somebody wants, if there is room; durable on return.
    ///
    /// # Errors
    /// When the store takes no notes.
    pub fn create(&self, store: &Store, database: &str) -> store::Result<bool> {
        if self.has(database) || database.contains('\0') {
            return Ok(true);
        }
        if DATABASES_MAX <= self.shared().databases.len() {
            return Ok(false);
        }
        store.put_metadata(&[note(&[database], "")])?;
        self.exclusive().databases.entry(database.to_string()).or_default();
        Ok(true)
    }

    /// Forgets a measurement, or a whole database; durable on return.
    ///
    /// # Errors
    /// When the store takes no notes.
    pub fn forget(
        &self,
        store: &Store,
        database: &str,
        measurement: Option<&str>,
    ) -> store::Result<()> {
        let mut state = self.exclusive();
        let Some(known) = state.databases.get(database) else { return Ok(()) };
        let mut notes = Vec::new();
        for (name, fields) in
            known.iter().filter(|(name, _)| measurement.is_none_or(|m| m == *name))
        {
            notes.extend(fields.keys().map(|field| note(&[database, name, field], GONE)));
        }
        let is_gone = |(of, name, _): &(String, String, String)| {
            of == database && measurement.is_none_or(|m| m == name)
        };
        for (_, name, field) in state.beside.iter().filter(|field| is_gone(field)) {
            notes.push(note(&[database, name, &text_name(field)], GONE));
        }
        if measurement.is_none() {
            notes.push(note(&[database], GONE));
        }
        store.put_metadata(&notes)?;
        let gone = match measurement {
            Some(name) => {
                let known = state.databases.get_mut(database);
                known.and_then(|known| known.remove(name)).map_or(0, |fields| fields.len())
            }
            None => {
                let gone = state.databases.remove(database).unwrap_or_default();
                gone.values().map(BTreeMap::len).sum()
            }
        };
        state.beside.retain(|field| !is_gone(field));
        state.fields = state.fields.saturating_sub(gone);
        state.forgotten += 1;
        state.kinds.clear();
        Ok(())
    }

    /// The databases that lines were written to, or that were created.
    pub fn databases(&self) -> Vec<String> {
        self.shared().databases.keys().cloned().collect()
    }

    /// Whether there is such a database.
    pub fn has(&self, database: &str) -> bool {
        self.shared().databases.contains_key(database)
    }

    /// The measurements of a database; with those of legacy backends, where they are asked.
    pub fn measurements(&self, database: &str, asks: Asks) -> Measurements {
        let mut all = self.shared().databases.get(database).cloned().unwrap_or_default();
        for lender in self.lenders(asks) {
            for (measurement, fields) in lender.measurements(database) {
                join_fields(all.entry(measurement).or_default(), fields, self.keeps_texts);
            }
        }
        all.retain(|_, fields| !fields.is_empty());
        all
    }

    /// The type of a field of a measurement; with what legacy backends say, where they are asked.
    pub fn field(
        &self,
        database: &str,
        measurement: &str,
        field: &str,
        asks: Asks,
    ) -> Option<FieldType> {
        if self.lenders(asks).next().is_some() {
            return self.fields(database, measurement, asks)?.get(field).copied();
        }
        self.shared().databases.get(database)?.get(measurement)?.get(field).copied()
    }

    /// Whether a field that is one of numbers or booleans, to who asks, has strings besides, here.
    pub fn has_texts_beside(
        &self,
        database: &str,
        measurement: &str,
        field: &str,
        asks: Asks,
    ) -> bool {
        let own = || self.field(database, measurement, field, Asks::Own);
        if self.lenders(asks).next().is_some() && own() == Some(FieldType::String) {
            return self.field(database, measurement, field, asks) != Some(FieldType::String);
        }
        let state = self.shared();
        // Hardly any has, and three strings are made to look for one.
        if state.beside.is_empty() {
            return false;
        }
        let key = (database.to_string(), measurement.to_string(), field.to_string());
        state.beside.contains(&key)
    }

    /// The fields of a measurement; with those of legacy backends, where they are asked.
    pub fn fields(&self, database: &str, measurement: &str, asks: Asks) -> Option<Fields> {
        let of_database = |state: &State| state.databases.get(database)?.get(measurement).cloned();
        let mut found = of_database(&self.shared());
        for lender in self.lenders(asks) {
            if let Some(fields) = lender.fields(database, measurement) {
                join_fields(found.get_or_insert_default(), fields, self.keeps_texts);
            }
        }
        found.filter(|fields| !fields.is_empty())
    }
}

/// The metric of a field.
pub fn metric_of(measurement: &str, field: &str, kind: FieldType) -> String {
    match kind {
        FieldType::String => format!("{measurement}_{field}{TEXT_SUFFIX}"),
        _ => format!("{measurement}_{field}"),
    }
}

/// The metric of the low bits of a field of long integers (decision 49).
pub fn low_metric_of(measurement: &str, field: &str) -> String {
    format!("{measurement}_{field}{LONG_SUFFIX}")
}

/// To be called before the first low bits are stored.
fn expect_longs(store: &Store) -> store::Result<()> {
    store.hide_names(LONG_SUFFIX);
    store.need(Need::Integers)
}

/// Adds somebody else's fields.
fn join_fields(fields: &mut Fields, others: Fields, keeps_texts: bool) {
    for (name, kind) in others {
        if kind == FieldType::String && !keeps_texts {
            continue;
        }
        let together = fields.get(&name).map_or(kind, |before| joined(*before, kind));
        fields.insert(name, together);
    }
}

/// What a line says that was not known.
#[derive(Default)]
struct News {
    fields: Vec<(String, FieldType)>,
    /// Names of strings beside numbers, as notes have them.
    beside: Vec<String>,
}

/// What the strings of a field of numbers are called among the notes: no field of numbers is called so.
fn text_name(field: &str) -> String {
    format!("{field}{TEXT_SUFFIX}")
}

impl State {
    /// What there is to be noted of a line.
    fn news_of(&self, database: &str, line: &TypedFields, keeps_texts: bool) -> News {
        let known = self.databases.get(database).and_then(|all| all.get(&line.measurement));
        let mut news = News::default();
        let mut left = FIELDS_MAX.saturating_sub(self.fields);
        let is_kept = |kind: FieldType| kind != FieldType::String || keeps_texts;
        for (field, written) in line.fields.iter().filter(|(_, kind)| is_kept(*kind)) {
            let has_zero = [database, &line.measurement, field].iter().any(|n| n.contains('\0'));
            if has_zero {
                continue;
            }
            let before = known.and_then(|fields| fields.get(field)).copied();
            let is_both = before.is_some_and(|before| {
                (before == FieldType::String) != (*written == FieldType::String)
            });
            let key = || (database.to_string(), line.measurement.clone(), field.clone());
            if is_both && !self.beside.contains(&key()) {
                news.beside.push(text_name(field));
            }
            let together = before.map_or(*written, |before| joined(before, *written));
            match (before, left) {
                (Some(before), _) if before == together => continue,
                (None, 0) => continue,
                (None, _) => left -= 1,
                // Another type takes no room.
                (Some(_), _) => {}
            }
            news.fields.push((field.clone(), together));
        }
        news
    }

    /// Remembers strings beside numbers, under their name among the notes.
    fn put_beside(&mut self, database: &str, measurement: &str, name: &str) {
        let field = name.strip_suffix(TEXT_SUFFIX).unwrap_or(name);
        self.beside.insert((database.to_string(), measurement.to_string(), field.to_string()));
    }

    fn put(&mut self, database: &str, measurement: &str, field: &str, kind: FieldType) {
        let measurements = self.databases.entry(database.to_string()).or_default();
        let fields = measurements.entry(measurement.to_string()).or_default();
        if fields.insert(field.to_string(), kind).is_none() {
            self.fields += 1;
        }
    }
}

fn note(parts: &[&str], unit: &str) -> Metadata {
    let metric = format!("\0{START}{}", parts.join("\0"));
    Metadata { metric, unit: unit.to_string(), ..Metadata::default() }
}

fn kind_of(database: &str, line: &TypedFields) -> u64 {
    let mut hasher = DefaultHasher::new();
    (database, &line.measurement, &line.fields).hash(&mut hasher);
    hasher.finish()
}

/// The type of a field that came with two: one of numbers, if it was one of them.
pub fn joined(a: FieldType, b: FieldType) -> FieldType {
    match (a, b) {
        (FieldType::String, other) | (other, FieldType::String) => other,
        (a, b) if a == b => a,
        (FieldType::Integer, FieldType::Long) | (FieldType::Long, FieldType::Integer) => {
            FieldType::Long
        }
        _ => FieldType::Float,
    }
}

fn word_of(kind: FieldType) -> &'static str {
    match kind {
        FieldType::Float => "float",
        FieldType::Integer => "integer",
        FieldType::Long => "long",
        FieldType::Boolean => "boolean",
        FieldType::String => "string",
    }
}

fn type_of(word: &str) -> Option<FieldType> {
    Some(match word {
        "float" => FieldType::Float,
        "integer" => FieldType::Integer,
        "long" => FieldType::Long,
        "boolean" => FieldType::Boolean,
        "string" => FieldType::String,
        _ => return None,
    })
}
