//! A store that is being opened, step by step, so that others can share its log.
//!
//! ```text
//! StoreOpening::look   lock; side files, manifests, headers of parts and segments are read
//!     declare          the consumers of the log whose records are the store's
//!     Log::open        (by the program) replays: each consumer is handed its records, in memory
//!     finish           leftovers go, and the log is told what the store needs
//! ```
//!
//! [`Store::open`] takes the same steps for a program that has no other consumers.

use crate::base::counters::Counters;
use crate::base::damage::DamageList;
use crate::base::directory::named_log::NamedLog;
use crate::base::directory::partition_length;
use crate::base::directory::restoring::refuse_restoring;
use crate::base::directory::root_manifest::RootManifest;
use crate::base::file_names::{PARTITIONS_DIR, WAL_DIR};
use crate::base::ground::{DirectoryLock, Ground};
use crate::base::health::Health;
use crate::base::signals::Signals;
use crate::log::store_log::LogOwner;
use crate::store::Store;
use crate::store::data_directory::inspect_directory;
use crate::store::recover::{Found, Recovery};
use crate::{Error, Result, StoreConfig};
use std::path::Path;
use std::sync::{Arc, Weak};
use vfs::Vfs;
use wal::kinds::{EXEMPLARS, METADATA, SERIES};
use wal::{Consumers, Log, LogRange, NeededFrom, WalConfig};

/// A store that was looked at and is not open yet.
pub struct StoreOpening {
    ground: Ground,
    found: Found,
}

impl Store {
    /// Opens (creating it if need be) the store in `dir` and replays its log, which nobody shares.
    ///
    /// # Errors
    /// When another process has it open, when the log is corrupt, when a newer program wrote any
    /// of it, when its partitions are of another length than is asked for, or on I/O errors. What
    /// else is damaged is noted and left out: see [`Store::damage`].
    pub fn open(vfs: Arc<dyn Vfs>, dir: &Path, config: StoreConfig) -> Result<Arc<Store>> {
        let mut opening = StoreOpening::look(vfs.clone(), dir, config)?;
        let log_config = opening.log_config();
        let mut consumers = Consumers::default();
        opening.declare(&mut consumers);
        let log = Log::open(vfs, &dir.join(WAL_DIR), log_config, consumers)?;
        opening.finish_as(Arc::new(log), LogOwner::Store, &mut refuse_records)
    }
}

impl StoreOpening {
    /// Locks `dir`, which is created if need be, and reads all that says what the store is. Changes
    /// nothing that is there, but for manifests of partitions that are missing or damaged: they are made
    /// again. In a new directory the length of its partitions is written down.
    ///
    /// # Errors
    /// When another process has it open, when a backup is half restored into it, when a newer program
    /// wrote any of it, when its partitions are of another length than is asked for, or on I/O errors.
    pub fn look(vfs: Arc<dyn Vfs>, dir: &Path, config: StoreConfig) -> Result<StoreOpening> {
        refuse_restoring(vfs.as_ref(), dir)?;
        inspect_directory(vfs.as_ref(), dir)?;
        vfs.create_dir_all(&dir.join(PARTITIONS_DIR))?;
        let lock = Arc::from(vfs.lock(dir)?);
        // One may have begun, and been killed, before the lock was had.
        refuse_restoring(vfs.as_ref(), dir)?;
        let damage = Arc::new(DamageList::read(vfs.as_ref(), dir)?);
        let length = config.partition_length.unwrap_or(partition_length::DEFAULT);
        let mut ground = Ground {
            vfs,
            dir: dir.to_path_buf(),
            config,
            length,
            counters: Counters::default(),
            damage,
            health: Health::default(),
            root: RootManifest::default(),
            signals: Signals::default(),
            lock,
        };
        ground.length = Recovery { ground: &ground }.settle_length()?;
        let recovery = Recovery { ground: &ground };
        let mut found = recovery.look()?;
        recovery.rebuild_manifests(&mut found)?;
        recovery.note_damaged(&found)?;
        recovery.sync_names(&found)?;
        Ok(StoreOpening { ground, found })
    }

    /// How the store wants its log, which is in the folder [`WAL_DIR`] of its directory.
    pub fn log_config(&self) -> WalConfig {
        let config = &self.ground.config;
        WalConfig {
            committer: config.committer,
            pending_size_max: config.wal_pending_max,
            record_size_max: config.wal_record_max,
            ..WalConfig::default()
        }
    }

    /// Declares the consumers whose records are the store's.
    pub fn declare<'a>(&'a mut self, consumers: &mut Consumers<'a>) {
        self.found.declare(Recovery { ground: &self.ground }, consumers);
    }

    /// The store on a log that others share, and that has handed it its records. The log's directory
    /// stays locked until both are gone.
    ///
    /// The program closes the log, after all that share it: [`Store::close`] leaves it open.
    ///
    /// # Errors
    /// On I/O errors; the log must be dropped then.
    pub fn finish(self, log: Arc<Log>) -> Result<Arc<Store>> {
        self.finish_as(log, LogOwner::Program, &mut refuse_records)
    }

    /// As [`StoreOpening::finish`], with the consumer of schema records, which are open already:
    /// `apply_records` makes the changes durable that a deletion encoded which a crash has interrupted.
    ///
    /// # Errors
    /// As [`StoreOpening::finish`], and those of `apply_records`.
    pub fn finish_with(
        self,
        log: Arc<Log>,
        apply_records: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<Arc<Store>> {
        self.finish_as(log, LogOwner::Program, apply_records)
    }

    fn finish_as(
        self,
        log: Arc<Log>,
        owner: LogOwner,
        apply_records: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<Arc<Store>> {
        let StoreOpening { ground, found } = self;
        let mut recovered = Recovery { ground: &ground }.recover(found, log.wal())?;
        let (lock, clock) = (ground.lock.clone(), recovered.clock);
        let deletion = recovered.deletion.take();
        let store = Store::assemble(ground, recovered, log, owner)?;
        attach(&store, &lock);
        if let Some(deletion) = &deletion {
            store.finish_deletion(deletion, apply_records)?;
        }
        store.start(clock)?;
        Ok(store)
    }
}

/// Refuses to open a store whose unfinished deletion changes schema records, without their consumer.
fn refuse_records(_: &[u8]) -> Result<()> {
    let what = "a deletion that was interrupted changes schema records: open them with the store";
    Err(Error::Invalid(what.to_string()))
}

/// What one of the store's consumers needs of the log.
type Need = fn(&Store) -> Option<u64>;

/// Tells the log what the store needs of it, and has new segments named by the root manifest.
fn attach(store: &Arc<Store>, lock: &DirectoryLock) {
    let needs: [(&str, Need); 3] = [
        (SERIES, |store| store.shared.partitions.log_needed_from()),
        (METADATA, |store| store.shared.metadata.log_needed_from()),
        (EXEMPLARS, |store| store.shared.exemplars.log_needed_from()),
    ];
    for (name, need) in needs {
        let needed_from = needed_from(Arc::downgrade(store), need, Arc::clone(lock));
        store.shared.log.shared().attach(name, needed_from);
    }
    // Not the store: the commit thread must not be the last who holds it.
    let ground = Arc::clone(&store.shared.ground);
    store.shared.log.wal.set_on_segment_begun(Box::new(move |LogRange { first, end }| {
        let log = NamedLog { first, end, has_end: false };
        // On failure the file names less than there is, until the next flush writes it.
        let _ = ground.root.name_log(ground.vfs.as_ref(), &ground.dir, log);
    }));
}

/// The need of a store; everything, once the store is gone: nobody can say any more.
fn needed_from(store: Weak<Store>, need: Need, lock: DirectoryLock) -> NeededFrom {
    Box::new(move || {
        // Held as long as the log, which writes to the directory.
        let _held = &lock;
        store.upgrade().map_or(Some(0), |store| need(&store))
    })
}
