//! All keys of all databases: find, put, remove, and what must follow a change.
//!
//! What holds: whoever changes a value calls [`Keyspace::modified`] before the command ends, and
//! logs an effect, or the change is lost at the next start. [`crate::Call`] does the second.

mod databases;
mod dumping;
mod expiring;
mod fetching;
mod growing;
mod hearing;
mod nearing;
mod replacing;
mod rotten;
pub(crate) mod series_event;
mod stats;
mod sweeping;
mod trash;

pub use databases::Scan;
pub(crate) use databases::check_corrupt;
pub use dumping::{DumpFormat, Piece};
pub use growing::ROOM_CHECK_MIN;
pub(crate) use growing::may_take;
pub use replacing::Emptying;
pub use stats::KvStats;

use crate::cold::{ColdStore, Record};
use crate::config::KvConfig;
use crate::effects::{Effects, GONE};
use crate::error::{CommandError, WRONG_TYPE};
use crate::expiry::{Expiry, is_earlier};
use crate::index::{Address, Index, KeyHash, Place};
use crate::pieces::Pieces;
use crate::slots::{NEVER, Slot, Slots};
use crate::value::{Stored, Value};
use rng::Random;
use series_event::SeriesEvent;
use std::collections::HashMap;
use trash::Trash;

pub use fetching::Fetch;
pub use nearing::{NEAR_MAX, Nearing};

/// Databases that clients do not see: those of [`crate::series`].
pub(crate) const HIDDEN_DATABASES: usize = 2;
/// Bytes of a hot key besides its name and value.
const SLOT_COST: usize = size_of::<Option<Slot>>() + 16;
/// Expired fields that one effect of the log names.
const EFFECT_FIELDS_MAX: usize = 1000;

/// A change that somebody may wait to hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touched {
    /// Of one key.
    Key(u8, Box<[u8]>),
    /// Of one key, which went because its time had come: of nobody's doing.
    Expired(u8, Box<[u8]>),
    /// A watched key that a change of its whole database touches.
    Watched(u8, Box<[u8]>),
    /// Of all keys of a database.
    Database(u8),
}

/// Something that happened to a key, for `notify-keyspace-events`.
#[derive(Clone, Debug)]
pub struct Event {
    /// The class of such events, as the setting's letters name them: one bit.
    pub class: u32,
    /// What happened.
    pub name: &'static str,
    /// The database.
    pub db: u8,
    /// The key.
    pub key: Box<[u8]>,
}

/// What a time to expire becomes when a value is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expire {
    /// None.
    Never,
    /// What it was.
    Keep,
    /// That one, in milliseconds since the epoch.
    At(i64),
}

/// The keys, under one lock.
pub struct Keyspace {
    pub(crate) config: KvConfig,
    pub(crate) dbs: Vec<Index>,
    /// The first of those that clients do not see.
    pub(crate) hidden_from: usize,
    pub(crate) slots: Slots,
    pub(crate) cold: ColdStore,
    pub(crate) expiry: Expiry,
    pub(crate) effects: Effects,
    pub(crate) hash_seed: u64,
    /// The number of the record of the log that gathers changes now.
    pub(crate) seq: u64,
    /// Milliseconds since the epoch, as of the command that runs.
    now_ms: i64,
    /// While the log is replayed nothing expires by itself.
    pub(crate) is_replaying: bool,
    /// Bytes of the log that were replayed.
    pub(crate) replayed_size: u64,
    /// What was replayed of a record in pieces.
    pub(crate) pieces: Pieces,
    /// Bytes of hot keys.
    pub(crate) hot_size: usize,
    /// Bytes that keys may take while a client's command runs.
    pub(crate) ceiling: usize,
    /// Where the hand of the clock stands.
    pub(crate) hand: u32,
    /// Until when it rests, having found nothing that could go cold.
    pub(crate) hand_rests_until_ms: i64,
    /// Keys that commands wait for, and how many do.
    waited_for: HashMap<(u8, Box<[u8]>), usize>,
    ready: Vec<(u8, Box<[u8]>)>,
    /// Keys that transactions watch, and how many do.
    watched: HashMap<(u8, Box<[u8]>), usize>,
    /// Whether a key that is looked up counts as used.
    pub leaves_trace: bool,
    /// Whether somebody wants to hear of changes.
    is_observed: bool,
    touched: Vec<Touched>,
    /// Whether keys expire that nobody asks for; tests switch it off.
    pub expires_by_itself: bool,
    /// Until when keys whose time has come look gone and stay, in milliseconds since the epoch:
    /// nothing is to change.
    pub keeps_expired_until_ms: i64,
    /// Whether the running command may change keys all the same.
    pub is_writing: bool,
    /// Classes of events that somebody wants.
    pub events_wanted: u32,
    events: Vec<Event>,
    pub(crate) trash: Trash,
    pub(crate) series_events: Vec<SeriesEvent>,
    /// What is counted.
    pub stats: KvStats,
    /// Changes that the running command made.
    pub(crate) changes: u64,
    /// The generator of random picks.
    rng: Random,
    /// A dump that is under way.
    dumping: Option<Box<dumping::Dumping>>,
    rotten: rotten::Rotten,
    /// Whether a checkpoint is being made, which may have seen some keys and not others yet.
    pub(crate) is_being_saved: bool,
    /// Keys that went meanwhile with their last element.
    emptied: Vec<(u8, Box<[u8]>)>,
    /// Whether these keys are a replica's: what expires is hidden from clients and stays until the
    /// primary removes it.
    pub leaves_expired: bool,
    /// Whether a command of the primary runs. Nothing expires for it: the primary has decided by its
    /// own clock.
    pub sees_expired: bool,
}

impl Keyspace {
    /// An empty one.
    pub(crate) fn new(config: KvConfig, cold: ColdStore, hash_seed: u64) -> Keyspace {
        Keyspace {
            dbs: (0..config.databases + HIDDEN_DATABASES).map(|_| Index::default()).collect(),
            hidden_from: config.databases,
            config,
            slots: Slots::default(),
            cold,
            expiry: Expiry::default(),
            effects: Effects::default(),
            hash_seed,
            seq: 1,
            now_ms: 0,
            is_replaying: false,
            ceiling: usize::MAX,
            replayed_size: 0,
            pieces: Pieces::default(),
            hot_size: 0,
            hand: 0,
            hand_rests_until_ms: 0,
            waited_for: HashMap::new(),
            ready: Vec::new(),
            watched: HashMap::new(),
            leaves_trace: true,
            is_observed: false,
            touched: Vec::new(),
            expires_by_itself: true,
            keeps_expired_until_ms: 0,
            is_writing: false,
            events_wanted: 0,
            events: Vec::new(),
            trash: Trash::default(),
            series_events: Vec::new(),
            stats: KvStats::default(),
            changes: 0,
            rng: Random(hash_seed),
            dumping: None,
            rotten: rotten::Rotten::default(),
            is_being_saved: false,
            emptied: Vec::new(),
            leaves_expired: false,
            sees_expired: false,
        }
    }

    /// The time of the running command, in milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// Sets the time for the commands that follow.
    pub fn set_now(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
    }

    /// How it is kept.
    pub fn config(&self) -> &KvConfig {
        &self.config
    }

    /// Sets where blocks of streams' entries end from now on.
    pub fn set_stream_blocks(&mut self, limits: crate::value::stream::BlockLimits) {
        self.config.stream_blocks = limits;
    }

    /// Sets how many bytes the index and hot keys may take; the keeper sees to it.
    pub fn set_memory_max(&mut self, bytes: usize) {
        self.config.memory_max = bytes;
    }

    /// How many databases there are.
    pub fn database_count(&self) -> usize {
        self.config.databases
    }

    /// How many keys a database has, those included that are due to expire.
    pub fn len(&self, db: u8) -> usize {
        self.dbs[usize::from(db)].len()
    }

    /// Whether a database has no key.
    pub fn is_empty(&self, db: u8) -> bool {
        self.len(db) == 0
    }

    /// Bytes of memory that keys take.
    pub fn memory_used(&self) -> usize {
        let index: usize = self.dbs.iter().map(Index::size).sum();
        index + self.hot_size + self.expiry.size() + self.cold.memory_used()
    }

    /// Keys with a time to expire, about: times that were changed count until they pass.
    pub fn expiring(&self, db: u8) -> usize {
        self.expiry.count_of(db).min(self.len(db))
    }

    /// Keys that are in memory with their values.
    pub fn hot_len(&self) -> usize {
        self.slots.len()
    }

    /// Seconds until keys expire, of all keys together that do; about, as [`Keyspace::expiring`].
    pub fn expiry_seconds(&self) -> f64 {
        self.expiry.left_ms(self.now_ms) / 1000.0
    }

    /// Number of the record of the log that the next changes become.
    pub fn log_sequence(&self) -> u64 {
        self.seq
    }

    /// Sizes of records that were written since the start.
    pub fn record_sizes(&self) -> crate::cold::RecordSizes {
        self.cold.sizes
    }

    /// Reads of records since the start, and decompressed values.
    pub fn cold_reads(&self) -> (&crate::cold::ReadMeter, crate::cold::Totals) {
        (&self.cold.reads, self.cold.dictionaries.decompressed())
    }

    /// Bytes of the index.
    pub fn index_size(&self) -> usize {
        self.dbs.iter().map(Index::size).sum()
    }

    /// Bytes of hot keys and their values.
    pub fn hot_size(&self) -> usize {
        self.hot_size
    }

    /// What is on disk.
    pub fn cold_stats(&self) -> crate::cold::ColdStats {
        self.cold.stats()
    }

    /// Whether keys take more memory than they may by so much that commands should make room.
    pub fn is_crowded(&self) -> bool {
        self.is_over(self.config.memory_max + self.config.memory_max / 8)
    }

    /// A random number; not for secrets.
    pub fn random(&mut self) -> u64 {
        self.rng.next()
    }

    /// An independent generator, for commands that pick while they borrow a value.
    pub fn fork_rng(&mut self) -> Random {
        Random(self.rng.next())
    }

    // ---- looking keys up ----

    /// The slot of a key, which is read from disk if need be; none if it is not there or expired.
    ///
    /// # Errors
    /// When its record cannot be read.
    #[inline]
    pub(crate) fn find(&mut self, db: u8, key: &[u8]) -> Result<Option<u32>, CommandError> {
        let hash = self.hash(key);
        let Some(number) = self.find_as(db, key, hash)? else { return Ok(None) };
        let (now_ms, sees_all) = (self.now_ms, self.sees_all());
        let Some(slot) = self.slots.get_mut(number) else { return Ok(None) };
        if slot.expire_ms <= now_ms && !sees_all {
            if !self.keeps_expired() {
                self.expire_slot(number, hash);
            }
            return Ok(None);
        }
        if expiring::has_due_fields(slot, now_ms) {
            return Ok(self.settle_fields(number, hash).then_some(number));
        }
        slot.is_referenced = true;
        if self.leaves_trace {
            slot.used_at = u32::try_from(now_ms / 1000).unwrap_or(0);
        }
        Ok(Some(number))
    }

    /// The same, expired or not, without a trace of use.
    fn find_as(&mut self, db: u8, key: &[u8], hash: KeyHash) -> Result<Option<u32>, CommandError> {
        let slots = &self.slots;
        let mut cold: Option<Address> = None;
        let found = self.dbs[usize::from(db)].find(hash, |place| match place {
            Place::Hot(number) => slots.get(number).is_some_and(|slot| *slot.key == *key),
            Place::Cold(address) => {
                cold = Some(address);
                false
            }
        });
        match (found, cold) {
            (Some(Place::Hot(number)), _) => Ok(Some(number)),
            (_, None) => Ok(None),
            (_, Some(_)) => self.warm(db, key, hash),
        }
    }

    /// Reads a cold key into a slot.
    #[cold]
    fn warm(&mut self, db: u8, key: &[u8], hash: KeyHash) -> Result<Option<u32>, CommandError> {
        let mut candidates = Vec::new();
        self.dbs[usize::from(db)].find(hash, |place| {
            if let Place::Cold(address) = place {
                candidates.push(address);
            }
            false
        });
        for address in candidates {
            self.stats.cold_reads += 1;
            let read = self.cold.read(address);
            let record = read.map_err(|error| self.unreadable_at(address, error))?;
            if *record.key == *key && record.db == db {
                return Ok(Some(self.admit(record, address, hash)));
            }
        }
        Ok(None)
    }

    /// Makes a record that was read a hot key.
    fn admit(&mut self, record: Record, address: Address, hash: KeyHash) -> u32 {
        let Record { key, value, expire_ms, seq, db } = record;
        let slot = Slot {
            key,
            value,
            expire_ms,
            seq,
            home: Some(address),
            cost: 0,
            used_at: 0,
            db,
            frequency: 5,
            is_dirty: false,
            // Read once, it goes before what is read twice.
            is_referenced: false,
        };
        let number = self.slots.insert(slot);
        self.dbs[usize::from(db)].replace(hash, Place::Cold(address), Place::Hot(number));
        self.account(number);
        number
    }

    /// The hash of a key.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> KeyHash {
        KeyHash::new(key, self.hash_seed)
    }

    /// A key's value.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub fn value(&mut self, db: u8, key: &[u8]) -> Result<Option<&Value>, CommandError> {
        let found = self.find(db, key)?;
        match found {
            Some(_) => self.stats.hits += 1,
            None => self.stats.misses += 1,
        }
        Ok(found.and_then(|number| self.slots.get(number)).map(|slot| &slot.value))
    }

    /// Whether there is such a key.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub fn exists(&mut self, db: u8, key: &[u8]) -> Result<bool, CommandError> {
        Ok(self.find(db, key)?.is_some())
    }

    /// A key's value of that type.
    ///
    /// # Errors
    /// [`WRONG_TYPE`] when it has another; when its record cannot be read.
    pub fn get<T: Stored>(&mut self, db: u8, key: &[u8]) -> Result<Option<&T>, CommandError> {
        match self.value(db, key)? {
            Some(value) => T::of(value).map(Some).ok_or(WRONG_TYPE),
            None => Ok(None),
        }
    }

    /// The same, to be changed. Who does calls [`Keyspace::modified`] afterwards.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn get_mut<T: Stored>(
        &mut self,
        db: u8,
        key: &[u8],
    ) -> Result<Option<&mut T>, CommandError> {
        let found = self.find(db, key)?;
        if let Some(number) = found {
            self.before_change(number);
        }
        let Some(slot) = found.and_then(|number| self.slots.get_mut(number)) else {
            return Ok(None);
        };
        T::of_mut(&mut slot.value).map(Some).ok_or(WRONG_TYPE)
    }

    /// The same, made empty if it is not there; see [`Keyspace::remove_if_empty`].
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn get_or_insert<T: Stored + Default>(
        &mut self,
        db: u8,
        key: &[u8],
    ) -> Result<&mut T, CommandError> {
        let number = match self.find(db, key)? {
            Some(number) => {
                self.may_grow(number)?;
                self.before_change(number);
                number
            }
            None => {
                self.event(EVENT_NEW, "new", db, key);
                self.insert(db, key, T::default().into_value(), NEVER)
            }
        };
        let slot = self.slots.get_mut(number).ok_or_else(vanished)?;
        T::of_mut(&mut slot.value).ok_or(WRONG_TYPE)
    }

    // ---- changing keys ----

    /// Gives a key a value, whatever it had.
    ///
    /// # Errors
    /// When its record cannot be read, or the value is larger than any may become.
    pub fn put(
        &mut self,
        db: u8,
        key: &[u8],
        value: Value,
        expire: Expire,
    ) -> Result<(), CommandError> {
        self.may_be_put(key, &value)?;
        self.place(db, key, value, expire)
    }

    /// The same with a value that was there under another name: it is not lost for its size.
    ///
    /// # Errors
    /// When the record of what it replaces cannot be read.
    pub(crate) fn place(
        &mut self,
        db: u8,
        key: &[u8],
        value: Value,
        expire: Expire,
    ) -> Result<(), CommandError> {
        let expire_ms = match expire {
            Expire::At(at) => at,
            Expire::Never | Expire::Keep => NEVER,
        };
        let has_fields = matches!(value, Value::Hash(_));
        let is_series = matches!(value, Value::Series(_));
        let number = match self.find_to_replace(db, key)? {
            Some(number) => {
                self.before_change(number);
                let Some(slot) = self.slots.get_mut(number) else { return Err(vanished()) };
                let old = std::mem::replace(&mut slot.value, value);
                if expire != Expire::Keep && slot.expire_ms != expire_ms {
                    self.set_slot_expire(number, expire_ms);
                }
                self.note_series_gone(db, key, &old);
                self.discard(old);
                number
            }
            None => {
                self.event(EVENT_NEW, "new", db, key);
                self.insert(db, key, value, expire_ms)
            }
        };
        if has_fields {
            self.note_field_expiry(db, key);
        }
        self.changes += 1;
        self.touch_slot(number);
        self.tell(db, key);
        if is_series {
            self.note_series_come(db, key)?;
        }
        Ok(())
    }

    /// The slot of a key whose value is not needed: one that cannot be read is forgotten.
    fn find_to_replace(&mut self, db: u8, key: &[u8]) -> Result<Option<u32>, CommandError> {
        match self.find(db, key) {
            Err(_) if self.forget_unreadable(db, key) => self.find(db, key),
            found => found,
        }
    }

    /// Adds a key that is not there.
    pub(crate) fn insert(&mut self, db: u8, key: &[u8], value: Value, expire_ms: i64) -> u32 {
        let hash = self.hash(key);
        self.before_insert(db, key, hash);
        self.stats.added += 1;
        let slot = Slot {
            key: key.into(),
            value,
            expire_ms: NEVER,
            seq: self.seq,
            home: None,
            cost: 0,
            used_at: u32::try_from(self.now_ms / 1000).unwrap_or(0),
            db,
            frequency: 5,
            is_dirty: true,
            is_referenced: true,
        };
        let number = self.slots.insert(slot);
        self.dbs[usize::from(db)].insert(hash, Place::Hot(number));
        if expire_ms != NEVER {
            self.set_slot_expire(number, expire_ms);
        }
        self.account(number);
        number
    }

    /// Notes that a key's value or expiry changed: it is written again, who watches it is told, and
    /// who waits for it is served.
    pub fn modified(&mut self, db: u8, key: &[u8]) {
        self.changes += 1;
        self.touch(db, key);
    }

    /// The same for what is no doing of the running command: what changed is logged already.
    pub(crate) fn touch(&mut self, db: u8, key: &[u8]) {
        let hash = self.hash(key);
        let slots = &self.slots;
        let place = self.dbs[usize::from(db)].find(hash, |place| match place {
            Place::Hot(number) => slots.get(number).is_some_and(|slot| *slot.key == *key),
            Place::Cold(_) => false,
        });
        if let Some(Place::Hot(number)) = place {
            self.touch_slot(number);
        }
        self.tell(db, key);
    }

    /// Notes that a hot key is to be written again.
    fn touch_slot(&mut self, number: u32) {
        let seq = self.seq;
        if let Some(slot) = self.slots.get_mut(number) {
            slot.is_dirty = true;
            slot.seq = seq;
        }
        self.account(number);
        self.list_series(number);
    }

    /// Tells who watches or waits for a key that what belongs to it changed, and its value did not.
    pub fn touched(&mut self, db: u8, key: &[u8]) {
        self.tell(db, key);
    }

    /// Tells who watches or waits for a key.
    fn tell(&mut self, db: u8, key: &[u8]) {
        self.tell_as(db, key, Touched::Key);
    }

    fn tell_as(&mut self, db: u8, key: &[u8], touched: fn(u8, Box<[u8]>) -> Touched) {
        if self.is_observed {
            self.touched.push(touched(db, key.into()));
        }
        if !self.waited_for.is_empty() && self.waited_for.contains_key(&(db, key.into())) {
            self.ready.push((db, key.into()));
        }
    }

    /// Takes a key out. Returns whether it was there.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub fn remove(&mut self, db: u8, key: &[u8]) -> Result<bool, CommandError> {
        Ok(self.take(db, key)?.is_some())
    }

    /// Takes a key out and returns its value and when it would have expired.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub fn take(&mut self, db: u8, key: &[u8]) -> Result<Option<(Value, i64)>, CommandError> {
        let Some(number) = self.find(db, key)? else { return Ok(None) };
        let hash = self.hash(key);
        let Some(slot) = self.drop_slot(number, hash) else { return Ok(None) };
        self.changes += 1;
        self.tell(db, key);
        Ok(Some((slot.value, slot.expire_ms)))
    }

    /// Takes a key out whose collection has become empty. Returns whether it had.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub fn remove_if_empty(&mut self, db: u8, key: &[u8]) -> Result<bool, CommandError> {
        let is_empty = self.value(db, key)?.is_some_and(Value::is_empty);
        if is_empty {
            self.remove(db, key)?;
            if self.is_being_saved && !self.is_replaying {
                self.emptied.push((db, key.into()));
            }
        }
        Ok(is_empty)
    }

    /// Logs which keys went with their last element, after what took that. A checkpoint that came by
    /// too late to see such a key has nothing of it: effects on its elements, replayed over nothing,
    /// may leave some that were not there.
    #[inline]
    pub(crate) fn log_emptied(&mut self) {
        for (db, key) in std::mem::take(&mut self.emptied) {
            let hash = self.hash(&key);
            // One that cannot be read is another's, or none.
            if !matches!(self.find_as(db, &key, hash), Ok(Some(_))) {
                self.effects.push(db, &[GONE, &key]);
            }
        }
    }

    pub(crate) fn drop_slot(&mut self, number: u32, hash: KeyHash) -> Option<Slot> {
        self.before_change(number);
        let slot = self.slots.remove(number)?;
        self.hot_size -= slot.cost as usize;
        self.dbs[usize::from(slot.db)].remove(hash, Place::Hot(number));
        if let Some(home) = slot.home {
            self.cold.release(home);
        }
        self.note_series_gone(slot.db, &slot.key, &slot.value);
        Some(slot)
    }

    /// Frees a value, elsewhere if that takes long.
    pub(crate) fn discard(&mut self, value: Value) {
        self.trash.add(value);
    }

    /// When a key expires, in milliseconds since the epoch; [`NEVER`]. None if it is not there.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub fn expire_of(&mut self, db: u8, key: &[u8]) -> Result<Option<i64>, CommandError> {
        let found = self.find(db, key)?;
        Ok(found.and_then(|number| self.slots.get(number)).map(|slot| slot.expire_ms))
    }

    /// Sets when a key expires; [`NEVER`] for never. Returns whether it is there.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub fn set_expire(&mut self, db: u8, key: &[u8], expire_ms: i64) -> Result<bool, CommandError> {
        let Some(number) = self.find(db, key)? else { return Ok(false) };
        self.before_change(number);
        self.set_slot_expire(number, expire_ms);
        self.modified(db, key);
        Ok(true)
    }

    fn set_slot_expire(&mut self, number: u32, expire_ms: i64) {
        let Some(slot) = self.slots.get_mut(number) else { return };
        let before = std::mem::replace(&mut slot.expire_ms, expire_ms);
        if expire_ms != NEVER && (before == NEVER || is_earlier(expire_ms, before)) {
            let hash = KeyHash::new(&slot.key, self.hash_seed);
            self.expiry.add(expire_ms, slot.db, hash);
        }
    }

    /// The key's slot, for `OBJECT` and its like.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub fn slot(&mut self, db: u8, key: &[u8]) -> Result<Option<&Slot>, CommandError> {
        let hash = self.hash(key);
        let found = self.find_as(db, key, hash)?;
        let slot = found.and_then(|number| self.slots.get(number));
        Ok(slot.filter(|slot| !self.has_passed(slot.expire_ms)))
    }

    /// Has a key look as if it was not used for so many seconds.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub fn set_idle(&mut self, db: u8, key: &[u8], seconds: i64) -> Result<(), CommandError> {
        let used_at = u32::try_from((self.now_ms / 1000).saturating_sub(seconds)).unwrap_or(0);
        let found = self.find(db, key)?;
        if let Some(slot) = found.and_then(|number| self.slots.get_mut(number)) {
            slot.used_at = used_at;
        }
        Ok(())
    }

    // ---- memory ----

    /// Brings the bytes that are accounted for a hot key up to date.
    fn account(&mut self, number: u32) {
        let Some(slot) = self.slots.get_mut(number) else { return };
        let size = SLOT_COST + slot.key.len() + slot.value.heap_size();
        // Above 4 GiB a key counts as 4 GiB.
        let cost = u32::try_from(size).unwrap_or(u32::MAX);
        self.hot_size = self.hot_size + cost as usize - slot.cost as usize;
        slot.cost = cost;
    }
}

/// Classes of events.
pub const EVENT_GENERIC: u32 = 1 << 2;
/// Of strings.
pub const EVENT_STRING: u32 = 1 << 3;
/// Of lists.
pub const EVENT_LIST: u32 = 1 << 4;
/// Of sets.
pub const EVENT_SET: u32 = 1 << 5;
/// Of hashes.
pub const EVENT_HASH: u32 = 1 << 6;
/// Of sorted sets.
pub const EVENT_ZSET: u32 = 1 << 7;
/// Expired keys.
pub const EVENT_EXPIRED: u32 = 1 << 8;
/// Evicted keys.
pub const EVENT_EVICTED: u32 = 1 << 9;
/// Of streams.
pub const EVENT_STREAM: u32 = 1 << 10;
/// Keys that were asked for and not there.
pub const EVENT_KEY_MISS: u32 = 1 << 11;
/// Of modules' types, as time series are to clients.
pub const EVENT_MODULE: u32 = 1 << 13;
/// New keys.
pub const EVENT_NEW: u32 = 1 << 14;

fn unreadable(error: crate::Error) -> CommandError {
    CommandError::new(format!("ERR the value cannot be read from disk: {error}"))
}

fn vanished() -> CommandError {
    CommandError::new("ERR the key vanished while the command ran")
}
