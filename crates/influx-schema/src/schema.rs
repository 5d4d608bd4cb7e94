//! Which measurements the lines of InfluxDB's protocol had, and which fields of which types: a
//! metric's name does not say where its measurement ends, and a sample does not say that it was a
//! whole number.
//!
//! They are schema records ([`crate::records`]): a field's type, with the colons in its metric's name if
//! it has some; fields of numbers that have strings, too; databases that were created.

use crate::metric_names::{MetricNames, joined as joined_name};
use crate::records::{Change, Key, KeyKind, SchemaRecords};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use store::{Asks, Need, Store};
use wire::influx::{FieldNames, FieldType, LONG_SUFFIX, TEXT_SUFFIX, TypedFields};

/// Fields that are remembered; those beyond are found as metrics of their own.
const FIELDS_MAX: usize = 1 << 19;
/// Bytes of the names of fields, each with its measurement and database.
const FIELDS_SIZE_MAX: usize = 64 << 20;
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
    /// Bytes of their names, by [`size_of_field`].
    fields_size: usize,
    /// Fields of numbers or booleans that have strings besides: database, measurement, field.
    beside: BTreeSet<(String, String, String)>,
    /// Hashes of kinds of lines all of whose fields are in `databases`.
    kinds: HashSet<u64>,
    /// How often something was forgotten.
    forgotten: u64,
    names: MetricNames,
}

/// What a batch of lines has said, for [`MeasurementTable::confirm`].
pub struct Learned {
    lines: Vec<TypedFields>,
    forgotten: u64,
}

/// Which fields are remembered.
#[derive(Clone, Copy, Debug)]
pub struct FieldRules {
    /// Whether fields of strings are fields.
    pub keeps_texts: bool,
    /// Bytes of a metric's name; the store refuses the samples of longer ones.
    pub name_size_max: usize,
}

/// All that is remembered.
pub struct MeasurementTable {
    records: Arc<SchemaRecords>,
    state: RwLock<State>,
    rules: FieldRules,
    /// Legacy backends that know measurements; said once.
    lenders: OnceLock<Vec<Arc<dyn Lender>>>,
}

impl MeasurementTable {
    /// Reads the schema records.
    pub fn read(records: &Arc<SchemaRecords>, rules: FieldRules) -> MeasurementTable {
        let mut state = State::default();
        let mut has_longs = records.store().has(Need::Integers);
        records.for_each(KeyKind::Field, &mut |key, value| {
            let Some(Key::Field { database, measurement, field }) = Key::parse(key) else { return };
            let Some((kind, colons)) = parse_field_value(value) else { return };
            has_longs |= kind == FieldType::Long;
            state.put((database, measurement, field), kind, colons);
        });
        records.for_each(KeyKind::AlsoString, &mut |key, _| {
            if let Some(Key::AlsoString { database, measurement, field }) = Key::parse(key) {
                state.put_beside(database, measurement, field);
            }
        });
        records.for_each(KeyKind::Database, &mut |key, _| {
            if let Some(Key::Database { database }) = Key::parse(key) {
                state.databases.entry(database.to_string()).or_default();
            }
        });
        if has_longs && let Err(error) = expect_longs(records.store()) {
            tracing::warn!("an older version could open this store and misread it: {error}");
        }
        let (records, state) = (Arc::clone(records), RwLock::new(state));
        MeasurementTable { records, state, rules, lenders: OnceLock::new() }
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

    /// Remembers the fields of the kinds of lines of a batch; what is new is durable on return. A new kind
    /// of which no line is valid, as `has_valid_row` tells by its number, is not remembered.
    ///
    /// # Errors
    /// When the records cannot be written.
    pub fn learn(
        &self,
        database: &str,
        mut lines: Vec<TypedFields>,
        has_valid_row: &dyn Fn(usize) -> bool,
    ) -> store::Result<Learned> {
        let forgotten = self.shared().forgotten;
        let mut refused = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            let kind = kind_of(database, line);
            if self.shared().kinds.contains(&kind) {
                continue;
            }
            match has_valid_row(number) {
                true => self.remember(database, line, kind)?,
                false => refused.push(number),
            }
        }
        for number in refused.into_iter().rev() {
            lines.remove(number);
        }
        Ok(Learned { lines, forgotten })
    }

    /// To be called when the lines are stored: what somebody has dropped meanwhile, thinking of older
    /// lines, is remembered again.
    ///
    /// # Errors
    /// When the records cannot be written.
    pub fn confirm(&self, database: &str, learned: &Learned) -> store::Result<()> {
        // Not in the condition of a `match`, which would hold the lock that it waits for.
        let is_all_there = self.shared().forgotten == learned.forgotten;
        if is_all_there { Ok(()) } else { self.remember_all(database, &learned.lines) }
    }

    /// Remembers fields that somebody names; what is new is durable on return.
    ///
    /// # Errors
    /// When the records cannot be written.
    pub fn note(&self, database: &str, lines: &[TypedFields]) -> store::Result<()> {
        self.remember_all(database, lines)
    }

    fn remember_all(&self, database: &str, lines: &[TypedFields]) -> store::Result<()> {
        for line in lines {
            let kind = kind_of(database, line);
            if !self.shared().kinds.contains(&kind) {
                self.remember(database, line, kind)?;
            }
        }
        Ok(())
    }

    fn remember(&self, database: &str, line: &TypedFields, kind: u64) -> store::Result<()> {
        if line.fields.iter().any(|(_, kind)| *kind == FieldType::Long) {
            expect_longs(self.records.store())?;
        }
        let mut state = self.exclusive();
        if state.names.is_full() {
            state.forget_dropped_names();
        }
        let News { fields, beside } = state.news_of(database, line, self.rules);
        if !fields.is_empty() || !beside.is_empty() {
            let measurement = line.measurement.as_str();
            let named = fields.into_iter().map(|(field, kind)| {
                let colons = state.colons_of(database, measurement, &field);
                (field, kind, colons)
            });
            let named: Vec<(String, FieldType, u8)> = named.collect();
            let of_fields = named.iter().map(|(field, kind, colons)| {
                let key = Key::Field { database, measurement, field };
                Change::put(key, field_value(*kind, *colons))
            });
            let of_texts = beside
                .iter()
                .map(|field| Change::put(Key::AlsoString { database, measurement, field }, ""));
            self.records.put(&of_fields.chain(of_texts).collect::<Vec<Change>>())?;
            for (field, kind, colons) in named {
                state.put((database, measurement, &field), kind, colons);
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

    /// Chooses the metric name of a field that comes with one: the name that the field has, or the one that
    /// it comes with, or another where that one belongs to another field. Returns the colons in the name.
    pub fn claim_name(&self, database: &str, measurement: &str, field: &str, colons: u8) -> u8 {
        let mut state = self.exclusive();
        let known = state.databases.get(database).and_then(|all| all.get(measurement));
        if known.is_some_and(|fields| fields.contains_key(field)) {
            return state.names.colons(database, measurement, field);
        }
        if state.names.is_full() {
            state.forget_dropped_names();
        }
        state.names.claim((database, measurement, field), colons)
    }

    /// Gives names to fields of a legacy backend that have none, so that no two share one.
    pub fn claim_names(&self, database: &str, measurement: &str, fields: &Fields) {
        let mut state = self.exclusive();
        for field in fields.keys() {
            if state.names.is_full() {
                return;
            }
            let colons = state.colons_of(database, measurement, field);
            state.names.give((database, measurement, field), colons);
        }
    }

    /// Whether the names of all metrics follow from measurement and field alone.
    pub fn has_plain_names(&self) -> bool {
        self.shared().names.is_plain()
    }

    /// Remembers a database that somebody wants, if there is room; durable on return.
    ///
    /// # Errors
    /// When the records cannot be written.
    pub fn create(&self, database: &str) -> store::Result<bool> {
        let Some(record) = record_of_database(database).filter(|_| !self.has(database)) else {
            return Ok(true);
        };
        if DATABASES_MAX <= self.shared().databases.len() {
            return Ok(false);
        }
        self.records.put(&[record])?;
        self.add_created(database);
        Ok(true)
    }

    /// The changes that [`MeasurementTable::forget`] would make now.
    pub fn changes_of_forgetting(&self, database: &str, measurement: Option<&str>) -> Vec<Change> {
        self.shared().changes_of_forgetting(database, measurement)
    }

    /// Forgets a measurement, or a whole database; durable on return. Part of a deletion.
    ///
    /// # Errors
    /// When the records cannot be written.
    pub fn forget(&self, database: &str, measurement: Option<&str>) -> store::Result<()> {
        let mut state = self.exclusive();
        if !state.databases.contains_key(database) {
            return Ok(());
        }
        self.records.apply_deletion(&state.changes_of_forgetting(database, measurement))?;
        state.forget(database, measurement);
        Ok(())
    }

    /// Remembers a database whose record is there.
    pub fn add_created(&self, database: &str) {
        self.exclusive().databases.entry(database.to_string()).or_default();
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
                join_fields(all.entry(measurement).or_default(), fields, self.rules.keeps_texts);
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

    /// Names of the fields of a database, for the decoder of lines.
    pub fn names_of(self: &Arc<Self>, database: &str) -> Arc<dyn FieldNames> {
        Arc::new(DatabaseNames { table: self.clone(), database: database.to_string() })
    }

    /// The metric of a field, without a suffix.
    fn plain_metric(&self, database: &str, measurement: &str, field: &str) -> String {
        let state = self.shared();
        let colons = match state.names.is_plain() {
            true => 0,
            false => state.names.colons(database, measurement, field),
        };
        joined_name(measurement, colons, field)
    }

    /// The metric of a field.
    pub fn metric(
        &self,
        database: &str,
        measurement: &str,
        field: &str,
        kind: FieldType,
    ) -> String {
        let mut metric = self.plain_metric(database, measurement, field);
        if kind == FieldType::String {
            metric.push_str(TEXT_SUFFIX);
        }
        metric
    }

    /// The metric of the low bits of a field of long integers (decision 49).
    pub fn low_metric(&self, database: &str, measurement: &str, field: &str) -> String {
        self.plain_metric(database, measurement, field) + LONG_SUFFIX
    }

    /// The fields of a measurement; with those of legacy backends, where they are asked.
    pub fn fields(&self, database: &str, measurement: &str, asks: Asks) -> Option<Fields> {
        let of_database = |state: &State| state.databases.get(database)?.get(measurement).cloned();
        let mut found = of_database(&self.shared());
        for lender in self.lenders(asks) {
            if let Some(fields) = lender.fields(database, measurement) {
                join_fields(found.get_or_insert_default(), fields, self.rules.keeps_texts);
            }
        }
        found.filter(|fields| !fields.is_empty())
    }
}

impl fmt::Debug for MeasurementTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeasurementTable").finish_non_exhaustive()
    }
}

/// Names of the fields of one database, for the decoder of lines.
#[derive(Debug)]
struct DatabaseNames {
    table: Arc<MeasurementTable>,
    database: String,
}

impl FieldNames for DatabaseNames {
    fn colons(&self, measurement: &str, field: &str) -> u8 {
        // Fields beyond the limits are not remembered; they still get no other field's name.
        self.table.shared().colons_of(&self.database, measurement, field)
    }
}

/// The metric of a field whose name is plain.
pub fn metric_of(measurement: &str, field: &str, kind: FieldType) -> String {
    match kind {
        FieldType::String => format!("{measurement}_{field}{TEXT_SUFFIX}"),
        _ => format!("{measurement}_{field}"),
    }
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
    /// Fields of numbers that have strings, too.
    beside: Vec<String>,
}

impl State {
    /// Fields that a line adds to the schema.
    fn news_of(&self, database: &str, line: &TypedFields, rules: FieldRules) -> News {
        let known = self.databases.get(database).and_then(|all| all.get(&line.measurement));
        let mut news = News::default();
        let mut left = FIELDS_MAX.saturating_sub(self.fields);
        let mut size_left = FIELDS_SIZE_MAX.saturating_sub(self.fields_size);
        let is_kept = |kind: FieldType| kind != FieldType::String || rules.keeps_texts;
        for (field, written) in line.fields.iter().filter(|(_, kind)| is_kept(*kind)) {
            let has_zero = [database, &line.measurement, field].iter().any(|n| n.contains('\0'));
            let is_long = rules.name_size_max < line.measurement.len() + field.len() + 1;
            if has_zero || is_long {
                continue;
            }
            let before = known.and_then(|fields| fields.get(field)).copied();
            let is_both = before.is_some_and(|before| {
                (before == FieldType::String) != (*written == FieldType::String)
            });
            let key = || (database.to_string(), line.measurement.clone(), field.clone());
            if is_both && !self.beside.contains(&key()) {
                news.beside.push(field.clone());
            }
            let together = before.map_or(*written, |before| joined(before, *written));
            match (before, left) {
                (Some(before), _) if before == together => continue,
                (None, 0) => continue,
                (None, _) => {
                    let size = size_of_field(database, &line.measurement, field);
                    let Some(rest) = size_left.checked_sub(size) else { continue };
                    (left, size_left) = (left - 1, rest);
                }
                // Another type takes no room.
                (Some(_), _) => {}
            }
            news.fields.push((field.clone(), together));
        }
        news
    }

    /// Changes that remove a measurement, or a whole database.
    fn changes_of_forgetting(&self, database: &str, measurement: Option<&str>) -> Vec<Change> {
        let Some(known) = self.databases.get(database) else { return Vec::new() };
        let is_meant = |name: &str| measurement.is_none_or(|one| one == name);
        let mut changes = Vec::new();
        for (measurement, fields) in known.iter().filter(|(name, _)| is_meant(name)) {
            let key = |field| Key::Field { database, measurement, field };
            changes.extend(fields.keys().map(|field| Change::remove(key(field))));
        }
        for (_, measurement, field) in
            self.beside.iter().filter(|(of, name, _)| of == database && is_meant(name))
        {
            changes.push(Change::remove(Key::AlsoString { database, measurement, field }));
        }
        if measurement.is_none() {
            changes.push(Change::remove(Key::Database { database }));
        }
        changes
    }

    fn forget(&mut self, database: &str, measurement: Option<&str>) {
        let gone = match measurement {
            Some(name) => {
                let known = self.databases.get_mut(database);
                let fields = known.and_then(|known| known.remove(name)).unwrap_or_default();
                Measurements::from([(name.to_string(), fields)])
            }
            None => self.databases.remove(database).unwrap_or_default(),
        };
        self.beside
            .retain(|(of, name, _)| of != database || measurement.is_some_and(|one| one != name));
        for (name, fields) in &gone {
            let size = fields.keys().map(|field| size_of_field(database, name, field));
            self.fields_size = self.fields_size.saturating_sub(size.sum());
            self.fields = self.fields.saturating_sub(fields.len());
        }
        self.forgotten += 1;
        self.kinds.clear();
    }

    /// Remembers that a field of numbers has strings, too.
    fn put_beside(&mut self, database: &str, measurement: &str, field: &str) {
        self.beside.insert((database.to_string(), measurement.to_string(), field.to_string()));
    }

    /// Colons in the name of a field's metric: those that it has, or those that it will get.
    fn colons_of(&self, database: &str, measurement: &str, field: &str) -> u8 {
        let known = self.databases.get(database).and_then(|all| all.get(measurement));
        match known.is_some_and(|fields| fields.contains_key(field)) {
            true => self.names.colons(database, measurement, field),
            false => self.names.choose(database, measurement, field),
        }
    }

    fn forget_dropped_names(&mut self) {
        let mut names = MetricNames::default();
        for (database, measurements) in &self.databases {
            for (measurement, fields) in measurements {
                for field in fields.keys() {
                    let colons = self.names.colons(database, measurement, field);
                    names.give((database, measurement, field), colons);
                }
            }
        }
        self.names = names;
    }

    fn put(
        &mut self,
        (database, measurement, field): (&str, &str, &str),
        kind: FieldType,
        colons: u8,
    ) {
        self.names.give((database, measurement, field), colons);
        let measurements = self.databases.entry(database.to_string()).or_default();
        let fields = measurements.entry(measurement.to_string()).or_default();
        if fields.insert(field.to_string(), kind).is_none() {
            self.fields += 1;
            self.fields_size += size_of_field(database, measurement, field);
        }
    }
}

/// Bytes that a field counts: its record has all three names.
fn size_of_field(database: &str, measurement: &str, field: &str) -> usize {
    database.len() + measurement.len() + field.len()
}

/// The record of a database that was created; there is none for a name with a zero byte.
pub fn record_of_database(database: &str) -> Option<Change> {
    (!database.contains('\0')).then(|| Change::put(Key::Database { database }, ""))
}

/// Value of a field's record: the type, and the colons in its metric's name unless there are none.
pub(crate) fn field_value(kind: FieldType, colons: u8) -> String {
    match colons {
        0 => word_of(kind).to_string(),
        colons => format!("{} {colons}", word_of(kind)),
    }
}

fn parse_field_value(value: &str) -> Option<(FieldType, u8)> {
    match value.split_once(' ') {
        None => Some((type_of(value)?, 0)),
        Some((word, colons)) => Some((type_of(word)?, colons.parse().unwrap_or(0))),
    }
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

pub(crate) fn type_of(word: &str) -> Option<FieldType> {
    Some(match word {
        "float" => FieldType::Float,
        "integer" => FieldType::Integer,
        "long" => FieldType::Long,
        "boolean" => FieldType::Boolean,
        "string" => FieldType::String,
        _ => return None,
    })
}
