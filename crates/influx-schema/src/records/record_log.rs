//! Schema records as a consumer of the log: a table in memory, log records, and two files that let the log be cut.
//!
//! ```text
//! changes ─► one log record (kind SCHEMA) ─► memory ─► durable ─► acknowledged
//!                                              │
//!                                              └─► checkpoint: both files ─► the log may be cut
//! ```
//!
//! Invariants:
//! - The table changes only by records that the log has accepted.
//! - Records of the log are numbered without gaps; a file says up to which it has them. So a record is
//!   never replayed over a later one.
//! - The files are there before the first record of the log: [`RecordLog::begin`].

use super::changes::{Change, ChangesError, decode_changes, encode_record};
use super::files::{Contents, FILES, StoredRecords, write_files};
use super::key::KeyKind;
use super::opening::harmless;
use super::table::Table;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use store::{Damage, Error, Result};
use vfs::Vfs;
use wal::kinds::{KIND_SCHEMA, SCHEMA};
use wal::{Log, Lsn, Wal};

/// Bytes of changes in one record of the log, unless a single change is larger.
const RECORD_SIZE: usize = 64 << 10;

/// Settings of schema records.
#[derive(Clone, Debug)]
pub struct RecordsConfig {
    /// Bytes that are logged before there is a checkpoint, at least: half of what the records take, if
    /// that is more.
    pub checkpoint_log_size: u64,
    /// Segments of the log that others fill before there is a checkpoint of what little was logged.
    pub checkpoint_segments: u64,
    /// Pause of the keeper before it looks for work again.
    pub keeper_interval: Duration,
    /// Pause of the keeper after a failure.
    pub retry_interval: Duration,
    /// Time after which the files are read again to find damage.
    pub scrub_interval: Duration,
    /// Whether a thread makes checkpoints and scrubs; tests call [`RecordLog::keep`] themselves.
    pub background: bool,
}

impl Default for RecordsConfig {
    fn default() -> RecordsConfig {
        RecordsConfig {
            checkpoint_log_size: 4 << 20,
            checkpoint_segments: 1,
            keeper_interval: Duration::from_secs(1),
            retry_interval: Duration::from_secs(30),
            scrub_interval: Duration::from_secs(24 * 3600),
            background: true,
        }
    }
}

/// Open schema records. All methods may be called from any thread.
pub struct RecordLog {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    config: RecordsConfig,
    log: Arc<Log>,
    wal: Arc<Wal>,
    head: Mutex<Head>,
    /// Generation of the last write of the files. Held while they are written; before `head`.
    saving: Mutex<u64>,
    keeper: Arc<Keeper>,
    /// Damage that [`RecordLog::take_damage`] has not returned yet.
    damage: Mutex<Vec<Damage>>,
}

/// State that writers share.
pub(super) struct Head {
    /// All records that the log has.
    pub table: Table,
    /// Bytes that were logged since the last checkpoint began.
    pub logged_size: u64,
    /// The first segment of the log with a record that no checkpoint has or is making.
    pub unsaved_from: Option<u64>,
    /// The same of the checkpoint that is being made.
    pub saving_from: Option<u64>,
    /// The last record that was appended.
    pub last: Option<Lsn>,
    /// Whether the files are there.
    pub is_begun: bool,
    /// Whether one of the files is damaged or behind the other.
    pub needs_rewrite: bool,
}

/// The thread that makes checkpoints, and the signal that ends it.
#[derive(Default)]
struct Keeper {
    thread: Mutex<Option<JoinHandle<()>>>,
    is_stopped: Mutex<bool>,
    woken: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RecordLog {
    pub(super) fn new(
        vfs: Arc<dyn Vfs>,
        dir: PathBuf,
        config: RecordsConfig,
        log: Arc<Log>,
        generation: u64,
        head: Head,
        damage: Vec<Damage>,
    ) -> RecordLog {
        RecordLog {
            vfs,
            dir,
            config,
            wal: Arc::clone(log.wal()),
            log,
            head: Mutex::new(head),
            saving: Mutex::new(generation),
            keeper: Arc::default(),
            damage: Mutex::new(damage),
        }
    }

    /// Tells the log from now on which of its segments the records need.
    pub(super) fn attach(self: &Arc<RecordLog>) {
        let weak = Arc::downgrade(self);
        let needed_from = move || weak.upgrade().map_or(Some(0), |records| records.needed_from());
        self.log.attach(SCHEMA, Box::new(needed_from));
    }

    fn head(&self) -> MutexGuard<'_, Head> {
        lock(&self.head)
    }

    /// The oldest segment of the log that the records need. Appending holds the same lock, so no appended
    /// record is missed.
    fn needed_from(&self) -> Option<u64> {
        let head = self.head();
        head.saving_from.or(head.unsaved_from)
    }

    /// Whether the files are there, so that changes may be appended.
    pub fn is_begun(&self) -> bool {
        self.head().is_begun
    }

    /// Whether there is a record with a key.
    pub fn has(&self, key: &str) -> bool {
        self.head().table.get(key).is_some()
    }

    /// Calls a function with each record of a kind, by key.
    pub fn for_each(&self, kind: KeyKind, on_record: &mut dyn FnMut(&str, &Arc<str>)) {
        let head = self.head();
        let prefix = format!("{}\0", kind.word());
        head.table.with_prefix(&prefix).for_each(|(key, value)| on_record(key, value));
    }

    /// Takes the damage that was found since the last call.
    pub fn take_damage(&self) -> Vec<Damage> {
        std::mem::take(&mut lock(&self.damage))
    }

    /// Adds records that are in no file and not in the log, where a key has none yet:
    /// [`RecordLog::begin`] makes them durable.
    pub(super) fn add_converted(&self, records: &[Change]) {
        let mut head = self.head();
        for record in records {
            if head.table.get(&record.key).is_none() {
                head.table.apply(record);
            }
        }
    }

    /// Writes the files, with all records that are there; changes may be appended from then on.
    ///
    /// # Errors
    /// On I/O errors; it may be tried again.
    pub fn begin(&self) -> Result<()> {
        let mut generation = lock(&self.saving);
        let bytes = {
            let head = self.head();
            if head.is_begun {
                return Ok(());
            }
            *generation = Contents::generation_after(*generation);
            Contents::encode(*generation, &head.table, self.wal.stats().segment)
        };
        self.vfs.create_dir_all(&self.dir)?;
        write_files(self.vfs.as_ref(), &self.dir, &bytes)?;
        self.head().is_begun = true;
        Ok(())
    }

    /// Makes changes, those apart that change nothing or that there is no room for; durable on return.
    ///
    /// # Errors
    /// When the log fails. Changes that it did not accept are not made.
    pub fn append(&self, changes: &[Change]) -> Result<()> {
        let last = {
            let mut head = self.head();
            let mut rest = changes;
            while !rest.is_empty() {
                let (some, others) = rest.split_at(record_end(rest));
                self.append_record(&mut head, some)?;
                rest = others;
            }
            // Another thread may have appended an equal change that is not durable yet.
            head.last
        };
        match last {
            Some(lsn) => Ok(self.wal.wait_durable(lsn)?),
            None => Ok(()),
        }
    }

    /// Makes the changes of an interrupted deletion, as [`super::encode_changes`] wrote them.
    ///
    /// # Errors
    /// When they cannot be decoded, or the log fails.
    pub fn apply_encoded(&self, bytes: &[u8]) -> Result<()> {
        let changes = decode_changes(bytes).map_err(|error| match error {
            ChangesError::Newer(format) => Error::UnknownVersion {
                file: self.dir.with_file_name("deletion"),
                version: format.to_string(),
                known: "up to 1".to_string(),
            },
            ChangesError::Corrupt(error) => Error::Corrupt {
                file: self.dir.with_file_name("deletion"),
                offset: error.offset as u64,
                what: error.what.to_string(),
            },
        })?;
        self.append(&changes)
    }

    /// Appends the changes among `changes` that are news, as one record.
    fn append_record(&self, head: &mut Head, changes: &[Change]) -> Result<()> {
        let news: Vec<&Change> =
            changes.iter().filter(|change| head.table.is_news(change)).collect();
        if news.is_empty() {
            return Ok(());
        }
        // First the log, then the table, under one lock: the table is never ahead.
        let number = head.table.number() + 1;
        let payload = encode_record(number, news.iter().copied());
        let segment = self.wal.stats().segment;
        let lsn = loop {
            match self.wal.append(KIND_SCHEMA, &payload) {
                Ok(lsn) => break lsn,
                // No other thread can append before the disk has caught up.
                Err(wal::Error::Busy { .. }) => self.wal.wait_durable(self.wal.end())?,
                Err(error) => return Err(error.into()),
            }
        };
        head.last = Some(lsn);
        head.unsaved_from.get_or_insert(segment);
        head.logged_size += payload.len() as u64;
        news.iter().for_each(|change| head.table.apply(change));
        head.table.set_number(number);
        Ok(())
    }
}

/// Number of the first changes that go into one record.
fn record_end(changes: &[Change]) -> usize {
    let mut size = 0;
    let fits = |change: &&Change| {
        size += change.size();
        size <= RECORD_SIZE
    };
    changes.iter().take_while(fits).count().max(1)
}

/// Checkpoints and snapshots.
impl RecordLog {
    /// Makes a checkpoint if it is time.
    ///
    /// # Errors
    /// When the disk or the log fails; it may be tried again.
    pub fn keep(&self) -> Result<()> {
        let is_due = {
            let current = self.wal.stats().segment;
            let head = self.head();
            let due = self.config.checkpoint_log_size.max(head.table.size() as u64 / 2);
            let is_in_the_way = head.unsaved_from.is_some_and(|segment| {
                segment.saturating_add(self.config.checkpoint_segments) <= current
            });
            due <= head.logged_size || is_in_the_way || head.needs_rewrite
        };
        if is_due { self.checkpoint() } else { Ok(()) }
    }

    /// Writes all records to both files, so that the log can be cut. Without anything new it does
    /// nothing.
    ///
    /// # Errors
    /// When the disk or the log fails; nothing is lost, and it may be tried again.
    pub fn checkpoint(&self) -> Result<()> {
        let mut generation = lock(&self.saving);
        let is_saved = self.save(&mut generation)?;
        drop(generation);
        if is_saved {
            self.log.cut()?;
        }
        Ok(())
    }

    /// Writes the files if they lack something. A generation is used once, also if the write fails.
    fn save(&self, generation: &mut u64) -> Result<bool> {
        let (bytes, logged_size) = {
            let mut head = self.head();
            if head.unsaved_from.is_none() && !head.needs_rewrite {
                return Ok(false);
            }
            head.saving_from = head.unsaved_from.take();
            // Later records go to this segment or a later one. Replay skips earlier records of this
            // segment by their numbers.
            *generation = Contents::generation_after(*generation);
            let bytes = Contents::encode(*generation, &head.table, self.wal.stats().segment);
            (bytes, std::mem::take(&mut head.logged_size))
        };
        let saved = self.write_durable(&bytes);
        let mut head = self.head();
        let saving_from = head.saving_from.take();
        match saved {
            Ok(()) => {
                (head.is_begun, head.needs_rewrite) = (true, false);
                Ok(true)
            }
            Err(error) => {
                // Records that were appended during the write are in this segment or later ones.
                head.unsaved_from = saving_from.or(head.unsaved_from);
                head.logged_size += logged_size;
                Err(error)
            }
        }
    }

    fn write_durable(&self, bytes: &[u8]) -> Result<()> {
        // The files are never ahead of the log.
        self.wal.wait_durable(self.wal.end())?;
        self.vfs.create_dir_all(&self.dir)?;
        write_files(self.vfs.as_ref(), &self.dir, bytes)
    }

    /// Links the files into another data directory, with all that was acknowledged before the call.
    ///
    /// # Errors
    /// When the disk or the log fails; what was linked so far is the caller's to remove.
    pub fn snapshot(&self, data_dir: &std::path::Path) -> Result<()> {
        // No checkpoint may replace a file between the two links.
        let mut generation = lock(&self.saving);
        self.save(&mut generation)?;
        if !self.is_begun() {
            return Ok(());
        }
        let to = data_dir.join(super::files::SCHEMA_DIR);
        self.vfs.create_dir_all(&to)?;
        for name in FILES {
            let file = self.dir.join(name);
            if self.vfs.exists(&file)? {
                self.vfs.hard_link(&file, &to.join(name))?;
            }
        }
        Ok(self.vfs.sync_dir(&to)?)
    }

    /// Reads both files again. If one is damaged or gone it is noted, and the next checkpoint writes
    /// both: memory and log have all records.
    ///
    /// # Errors
    /// On I/O errors other than unreadable bytes.
    pub fn scrub(&self) -> Result<()> {
        let _one = lock(&self.saving);
        if !self.is_begun() {
            return Ok(());
        }
        let stored = StoredRecords::read(self.vfs.as_ref(), &self.dir)?;
        if stored.is_twice {
            return Ok(());
        }
        let found = stored.faults.iter().map(|fault| harmless(fault, "it is written again"));
        lock(&self.damage).extend(found);
        self.head().needs_rewrite = true;
        Ok(())
    }

    pub(super) fn start_keeper(self: &Arc<RecordLog>) -> Result<()> {
        if !self.config.background {
            return Ok(());
        }
        let (weak, keeper) = (Arc::downgrade(self), Arc::clone(&self.keeper));
        let builder = std::thread::Builder::new().name("schema-keeper".to_owned());
        let spawned = builder.spawn(move || run_keeper(&weak, &keeper));
        let thread = spawned.map_err(|error| vfs::Error::new("spawn keeper", &self.dir, error))?;
        *lock(&self.keeper.thread) = Some(thread);
        Ok(())
    }

    /// Ends the keeper and makes a last checkpoint. The log is the program's to close, afterwards.
    /// Calling again is fine.
    ///
    /// # Errors
    /// When the checkpoint fails; the log then has what was acknowledged.
    pub fn close(&self) -> Result<()> {
        *lock(&self.keeper.is_stopped) = true;
        self.keeper.woken.notify_all();
        let thread = lock(&self.keeper.thread).take();
        if let Some(thread) = thread {
            // A panic of the keeper has been printed; what it left undone is in the log.
            let _ = thread.join();
        }
        self.checkpoint()
    }
}

/// Makes checkpoints and scrubs until the records are closed or gone.
fn run_keeper(weak: &Weak<RecordLog>, keeper: &Keeper) {
    let mut scrub_in = None;
    loop {
        let Some(records) = weak.upgrade() else { return };
        let config = &records.config;
        let mut done = records.keep();
        let left = scrub_in.unwrap_or(config.scrub_interval);
        scrub_in = Some(left.saturating_sub(config.keeper_interval));
        if left.is_zero() {
            scrub_in = None;
            done = done.and_then(|()| records.scrub());
        }
        let pause = match &done {
            Ok(()) => config.keeper_interval,
            Err(error) => {
                tracing::warn!("schema records are not saved, and will be tried again: {error}");
                config.retry_interval
            }
        };
        // The pause keeps no reference: the records may close.
        drop(records);
        if keeper.is_stopped_within(pause) {
            return;
        }
    }
}

impl Keeper {
    /// Waits for `pause`, or until it is stopped; whether it is.
    fn is_stopped_within(&self, pause: Duration) -> bool {
        let guard = lock(&self.is_stopped);
        let waited = self.woken.wait_timeout_while(guard, pause, |is_stopped| !*is_stopped);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl std::fmt::Debug for RecordLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RecordLog({}, {} records)", self.dir.display(), self.head().table.len())
    }
}
