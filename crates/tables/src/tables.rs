//! Tables on a directory and a log: how they open, change, and close.
//!
//! ```text
//!  apply, commit ─► head (under its lock: checked, merged) ─► log ─► durable ─► published ─► readers
//! ```
//!
//! Writers see the head, which is what the log has taken; readers see what is durable. Between the two
//! nothing is locked, so that statements of several clients become durable with one sync.

use crate::change::{Change, Counts, Transaction};
use crate::config::TablesConfig;
use crate::error::{Error, Result};
use crate::file;
use crate::keeper::{Keeper, Saved};
use crate::manifest::{MANIFEST_NAME, Manifest, StoredManifest, corrupt, is_table_file};
use crate::record::{self, RecordError};
use crate::set::{Origin, TableSet};
use crate::table::Table;
use codec::put_varint;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use vfs::Vfs;
use wal::kinds::{KIND_TABLES, TABLES};
use wal::{Consumer, Consumers, Log, Lsn, RecordRef, ReplayError, Wal};

/// Folder of the tables in a data directory. It is made by the first checkpoint.
pub const TABLES_DIR: &str = "tables";
/// Folder of the log in a data directory, for messages.
const WAL_DIR: &str = "wal";

/// Tables that were looked at and are not open yet.
pub struct TablesOpening {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    config: TablesConfig,
    manifest: Manifest,
    saved: Saved,
    state: Replayed,
    /// Whether both files of the manifest hold it.
    is_manifest_twice: bool,
    /// Damage that the other file makes good.
    manifest_fault: Option<Error>,
    /// The first record of the log that is not taken; none after it is.
    refused: Option<Error>,
}

/// Tables, and what of the log made them.
#[derive(Default)]
pub(crate) struct Replayed {
    pub set: TableSet,
    pub next_table: u64,
    /// Bytes of records that were new.
    pub size: u64,
    /// The segment of the first of them.
    pub from_segment: Option<u64>,
}

/// Why a record of the log is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplayTrouble {
    #[error("a record of tables that is not taken: {0}")]
    Newer(RecordError),
    #[error(
        "a record of tables that is not taken: {0}; `quipu verify --dry-run` says what a repair would do"
    )]
    Record(RecordError),
    #[error(
        "a record of tables that is not taken: {0}; `quipu verify --dry-run` says what a repair would do"
    )]
    Change(#[from] Error),
    #[error(
        "record {found} of tables, where {expected} comes next: those between are lost; \
         `quipu verify --dry-run` says what a repair would do"
    )]
    Gap { expected: u64, found: u64 },
}

impl From<RecordError> for ReplayTrouble {
    fn from(error: RecordError) -> ReplayTrouble {
        match error {
            RecordError::Newer { .. } => ReplayTrouble::Newer(error),
            RecordError::Corrupt(_) => ReplayTrouble::Record(error),
        }
    }
}

/// Open tables. All methods may be called from any thread.
pub struct Tables {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) dir: PathBuf,
    pub(crate) config: TablesConfig,
    pub(crate) log: Arc<Log>,
    pub(crate) wal: Arc<Wal>,
    head: Mutex<Head>,
    /// The newest tables that are durable.
    published: RwLock<Arc<TableSet>>,
    next_table: Arc<AtomicU64>,
    /// What is in files. Held by the one checkpoint that may run; before `head`.
    pub(crate) saved: Mutex<Saved>,
    pub(crate) keeper: Arc<Keeper>,
    /// Why nothing may be written now, if so.
    read_only: RwLock<Option<String>>,
}

/// What writers share.
pub(crate) struct Head {
    /// The newest tables that the log has.
    pub set: Arc<TableSet>,
    /// Bytes that were logged since the last checkpoint began.
    pub logged_size: u64,
    /// The first segment of the log with a record that no checkpoint has or is making.
    pub unsaved_from: Option<u64>,
    /// The same of the checkpoint that is being made.
    pub saving_from: Option<u64>,
}

impl Replayed {
    /// Reads what a checkpoint has.
    pub fn load(vfs: &dyn Vfs, dir: &Path, manifest: &Manifest) -> Result<Replayed> {
        let mut state = Replayed { next_table: manifest.next_table, ..Replayed::default() };
        state.set.seq = manifest.seq;
        for info in &manifest.tables {
            state.put(dir, Arc::new(file::read(vfs, dir, info)?))?;
        }
        Ok(state)
    }

    /// Adds a table that was read of a file.
    pub fn put(&mut self, dir: &Path, table: Arc<Table>) -> Result<()> {
        if self.set.get(table.name()).is_some() {
            let reason = format!("two tables are called {:?}", table.name());
            return Err(corrupt(dir.join(MANIFEST_NAME), reason));
        }
        self.set.put_name(table.name(), Some(table.id()));
        self.set.put(table.id(), Some(table));
        Ok(())
    }

    /// Takes a record of the log, unless the checkpoint shows it. When it fails nothing has changed.
    pub fn take(&mut self, record: &RecordRef<'_>) -> std::result::Result<(), ReplayTrouble> {
        // What the checkpoint shows need not decode: a repair may have gone on without it.
        if record::number(record.payload)? <= self.set.seq {
            return Ok(());
        }
        let (seq, effects) = record::decode(record.payload)?;
        let expected = self.set.seq + 1;
        if expected != seq {
            return Err(ReplayTrouble::Gap { expected, found: seq });
        }
        let mut set = self.set.clone();
        let mut next_table = self.next_table;
        for effect in effects {
            next_table = next_table.max(effect.table().saturating_add(1));
            set.apply(effect, Origin::Log)?;
        }
        set.seq = seq;
        (self.set, self.next_table) = (set, next_table);
        self.size += record.payload.len() as u64;
        self.from_segment.get_or_insert(record.segment);
        Ok(())
    }
}

/// The manifest of a directory; an empty one if there is neither it nor a table's file. Then damage
/// to one of its files, and whether both have it.
pub(crate) fn find_manifest(vfs: &dyn Vfs, dir: &Path) -> Result<(Manifest, Option<Error>, bool)> {
    let none = || Ok((Manifest::default(), None, true));
    if !vfs.exists(dir)? {
        return none();
    }
    let stored = StoredManifest::read(vfs, dir)?;
    if let Some(manifest) = stored.manifest {
        return Ok((manifest, stored.fault, stored.is_twice));
    }
    match vfs.list(dir)?.into_iter().find(|name| is_table_file(name)) {
        Some(name) => {
            let reason = format!("is missing, though there is {name}");
            Err(corrupt(dir.join(MANIFEST_NAME), reason))
        }
        None => none(),
    }
}

impl TablesOpening {
    /// Reads what is in the folder [`TABLES_DIR`] of a data directory, which the caller has locked.
    /// Changes nothing.
    ///
    /// # Errors
    /// When a file cannot be read or is damaged, or a newer program wrote it.
    pub fn look(vfs: Arc<dyn Vfs>, data_dir: &Path, config: TablesConfig) -> Result<TablesOpening> {
        let dir = data_dir.join(TABLES_DIR);
        let (manifest, manifest_fault, is_manifest_twice) = find_manifest(vfs.as_ref(), &dir)?;
        let state = Replayed::load(vfs.as_ref(), &dir, &manifest)?;
        let saved = Saved::new(&manifest, &state.set);
        let refused = None;
        Ok(TablesOpening {
            vfs,
            dir,
            config,
            manifest,
            saved,
            state,
            is_manifest_twice,
            manifest_fault,
            refused,
        })
    }

    /// Damage that keeps nothing closed, in words.
    pub fn notes(&self) -> Vec<String> {
        let note = |error: &Error| format!("{error}; the other copy of it is used");
        self.manifest_fault.iter().map(note).collect()
    }

    /// Declares the consumer of the log whose records are the tables'.
    pub fn declare<'a>(&'a mut self, consumers: &mut Consumers<'a>) {
        let replay_from = self.manifest.log_from;
        let (state, refused) = (&mut self.state, &mut self.refused);
        consumers.declare(Consumer {
            name: TABLES,
            kinds: &[KIND_TABLES],
            replay_from,
            next_segment_min: replay_from,
            take: Box::new(move |record| match refused {
                // Later records build on it.
                Some(_) => Ok(()),
                None => match state.take(record) {
                    Err(trouble @ ReplayTrouble::Newer(_)) => Err(ReplayError::from(trouble)),
                    Err(trouble) => {
                        let file = wal::segment_name(record.segment);
                        let reason = format!("the record at byte {}: {trouble}", record.offset);
                        *refused = Some(corrupt(Path::new(WAL_DIR).join(file), reason));
                        Ok(())
                    }
                    Ok(()) => Ok(()),
                },
            }),
        });
    }

    /// The tables, on a log that has handed them its records. The program closes the log after them.
    ///
    /// # Errors
    /// When a record of the log was not taken, and when what an interrupted checkpoint left cannot be
    /// removed. The log keeps all that it has of the tables then.
    pub fn finish(self, log: Arc<Log>) -> Result<Arc<Tables>> {
        let is_manifest_twice = self.is_manifest_twice;
        let TablesOpening { vfs, dir, config, manifest, saved, state, refused, .. } = self;
        if let Some(error) = refused {
            return Err(error);
        }
        let set = Arc::new(state.set);
        let head = Head {
            set: Arc::clone(&set),
            logged_size: state.size,
            unsaved_from: state.from_segment,
            saving_from: None,
        };
        let is_background = config.background;
        let tables = Arc::new(Tables {
            vfs,
            dir,
            config,
            wal: Arc::clone(log.wal()),
            log,
            head: Mutex::new(head),
            published: RwLock::new(set),
            next_table: Arc::new(AtomicU64::new(state.next_table)),
            saved: Mutex::new(saved),
            keeper: Arc::default(),
            read_only: RwLock::default(),
        });
        if tables.vfs.exists(&tables.dir)? {
            // The manifest that was found may be one whose writer died before its name was durable.
            tables.vfs.sync_dir(&tables.dir)?;
            // No file goes that an older manifest in the other file names.
            if is_manifest_twice || manifest.write(&*tables.vfs, &tables.dir).is_ok() {
                tables.remove_unnamed(&manifest)?;
            }
        }
        let weak = Arc::downgrade(&tables);
        let needed_from = move || weak.upgrade().map_or(Some(0), |tables| tables.needed_from());
        tables.log.attach(TABLES, Box::new(needed_from));
        if is_background {
            tables.start_keeper()?;
        }
        Ok(tables)
    }
}

impl Tables {
    /// All tables as they are now: all that was acknowledged, and nothing that is not durable.
    pub fn now(&self) -> Arc<TableSet> {
        Arc::clone(&self.published.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// All tables, by name.
    pub fn list(&self) -> Vec<Arc<Table>> {
        self.now().list()
    }

    /// A table by its name.
    pub fn get(&self, name: &str) -> Option<Arc<Table>> {
        self.now().get(name)
    }

    /// Does changes, one after the other, as one statement: all of them, durably, or none and an error.
    ///
    /// # Errors
    /// As [`Transaction::apply`] and [`Tables::commit`], but for [`Error::Conflict`].
    pub fn apply(&self, changes: Vec<Change>) -> Result<Counts> {
        let (lsn, set, counts) = {
            let mut head = self.head();
            let mut transaction = self.begin_at(Arc::clone(&head.set));
            let counts = transaction.apply(changes)?;
            if transaction.is_empty() {
                return Ok(counts);
            }
            let (lsn, set) = self.append(&mut head, &transaction)?;
            (lsn, set, counts)
        };
        self.settle(lsn, set)?;
        Ok(counts)
    }

    /// Begins changes that are seen by who makes them alone, until they are committed. Nothing is locked.
    pub fn begin(&self) -> Transaction {
        self.begin_at(self.now())
    }

    /// Commits what a transaction has changed: all of it is durable when this returns. One that changed
    /// nothing always goes well.
    ///
    /// # Errors
    /// [`Error::Conflict`] when a table that it has changed, or relies on, was changed since it began;
    /// [`Error::Full`]; [`Error::TooLarge`] when it is more than a record of the log may be;
    /// [`Error::Wal`] when the log does not take it.
    pub fn commit(&self, transaction: Transaction) -> Result<Counts> {
        let counts = transaction.counts();
        if transaction.is_empty() {
            return Ok(counts);
        }
        let appended = {
            let mut head = self.head();
            match self.append(&mut head, &transaction) {
                // Whoever tries again at once is to see what is in the way.
                Err(Error::Conflict { table }) => {
                    Err((self.wal.end(), Arc::clone(&head.set), Error::Conflict { table }))
                }
                appended => Ok(appended?),
            }
        };
        match appended {
            Ok((lsn, set)) => self.settle(lsn, set).map(|()| counts),
            Err((lsn, set, conflict)) => self.settle(lsn, set).and(Err(conflict)),
        }
    }

    fn begin_at(&self, set: Arc<TableSet>) -> Transaction {
        Transaction::new(set, Arc::clone(&self.next_table), self.config.memory_max)
    }

    /// Logs a transaction, and makes its tables the head.
    fn append(&self, head: &mut Head, transaction: &Transaction) -> Result<(Lsn, Arc<TableSet>)> {
        self.check_writable()?;
        let set = Arc::new(transaction.merge(&head.set)?);
        let mut number = Vec::with_capacity(10);
        put_varint(&mut number, set.seq);
        let segment = self.wal.stats().segment;
        let lsn = self.append_record(&[&number, transaction.effects()])?;
        head.unsaved_from.get_or_insert(segment);
        head.logged_size += transaction.effects().len() as u64;
        head.set = Arc::clone(&set);
        Ok((lsn, set))
    }

    /// Refuses changes from now on, with that reason, or takes them again.
    pub fn set_read_only(&self, reason: Option<String>) {
        *self.read_only.write().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// Refuses a change before anything of it is done: nothing may be written, or would not be durable.
    fn check_writable(&self) -> Result<()> {
        let set = self.read_only.read().unwrap_or_else(PoisonError::into_inner).clone();
        match set.or_else(|| self.wal.refusal()) {
            Some(reason) => Err(Error::ReadOnly { reason }),
            None => Ok(()),
        }
    }

    fn append_record(&self, parts: &[&[u8]]) -> Result<Lsn> {
        loop {
            match self.wal.append_parts(KIND_TABLES, parts) {
                Ok(lsn) => return Ok(lsn),
                // Nobody else can write either until the disk has caught up.
                Err(wal::Error::Busy { .. }) => self.wal.wait_durable(self.wal.end())?,
                Err(wal::Error::RecordTooLarge { size, max }) => {
                    let (size, max) = (size as u64, max as u64);
                    return Err(Error::TooLarge { what: "bytes of a statement", size, max });
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until a place of the log is durable, then shows the tables of that place.
    fn settle(&self, lsn: Lsn, set: Arc<TableSet>) -> Result<()> {
        self.wait_durable(lsn)?;
        let before = {
            let mut published = self.published.write().unwrap_or_else(PoisonError::into_inner);
            if set.seq <= published.seq {
                return Ok(());
            }
            std::mem::replace(&mut *published, set)
        };
        // It may be the last that has rows which are gone since: freeing them takes time.
        drop(before);
        Ok(())
    }

    /// Waits until that place of the log is on disk, and for room or a file handle if that takes it: what
    /// is in the log comes to be, so there is no way back.
    pub(crate) fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        loop {
            match self.wal.wait_durable(lsn) {
                Err(wal::Error::Stalled { is_disk_full, .. })
                    if !is_disk_full || self.wal.has_commit_thread() => {}
                waited => return Ok(waited?),
            }
        }
    }

    pub(crate) fn head(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number that the next table has.
    pub(crate) fn next_table(&self) -> u64 {
        self.next_table.load(Ordering::Relaxed)
    }

    /// The oldest segment of the log that the tables need. What was appended is seen: appending holds
    /// this lock. No checkpoint holds it while it cuts the log.
    fn needed_from(&self) -> Option<u64> {
        let head = self.head();
        head.saving_from.or(head.unsaved_from)
    }

    /// Bytes that were logged since the last checkpoint began.
    pub fn logged_size(&self) -> u64 {
        self.head().logged_size
    }
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tables({}, {:?})", self.dir.display(), self.now())
    }
}
