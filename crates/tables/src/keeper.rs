//! What is done beside statements: checkpoints, so that the log can be cut, and snapshots.
//!
//! A checkpoint, step by step; statements go on meanwhile, for tables of one moment never change:
//! ```text
//! take the head, and the segment that is current ─► wait until the log has all of it on disk
//!   ─► a file for each table that has changed since the last checkpoint, synced ─► sync the directory
//!   ─► manifest ─► files that it does not name go ─► cut the log
//! ```

use crate::error::Result;
use crate::file;
use crate::manifest::{FileInfo, Manifest, file_name, is_manifest, is_table_file};
use crate::set::TableSet;
use crate::table::Table;
use crate::tables::{TABLES_DIR, Tables};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use vfs::atomic::TEMPORARY_SUFFIX;

/// What is in files.
#[derive(Debug)]
pub(crate) struct Saved {
    /// The manifest that was last known to be durable.
    pub manifest: Manifest,
    /// The number of the next file. Never one that was given out before: a manifest whose writing
    /// failed may be the one on disk all the same.
    next_file: u64,
    /// Of each table's file, the table that it has. Weak: what was changed since need not stay.
    tables: BTreeMap<u64, (Weak<Table>, FileInfo)>,
}

/// The thread that makes checkpoints, and how it is told to end.
#[derive(Default)]
pub(crate) struct Keeper {
    thread: Mutex<Option<JoinHandle<()>>>,
    is_stopped: Mutex<bool>,
    woken: Condvar,
    /// What last went wrong, for people.
    trouble: Mutex<Option<String>>,
}

impl Saved {
    pub fn new(manifest: &Manifest, set: &TableSet) -> Saved {
        let mut saved = Saved {
            next_file: manifest.next_file,
            manifest: manifest.clone(),
            tables: BTreeMap::new(),
        };
        for info in &manifest.tables {
            if let Some(table) = set.tables.get(&info.table) {
                saved.tables.insert(info.table, (Arc::downgrade(table), *info));
            }
        }
        saved
    }

    /// The file that has a table as it is, if there is one.
    fn file_of(&self, table: &Arc<Table>) -> Option<FileInfo> {
        let (saved, info) = self.tables.get(&table.id())?;
        // The place of a table is not given to another as long as somebody has a weak reference.
        std::ptr::eq(saved.as_ptr(), Arc::as_ptr(table)).then_some(*info)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tables {
    /// Does what there is to do now.
    ///
    /// # Errors
    /// When the disk or the log fails; it may be tried again.
    pub fn keep(&self) -> Result<()> {
        if self.is_checkpoint_due() { self.checkpoint() } else { Ok(()) }
    }

    fn is_checkpoint_due(&self) -> bool {
        let current = self.wal.stats().segment;
        let head = self.head();
        let due = self.config.checkpoint_log_size.max(head.set.size() / 2);
        let is_in_the_way = head.unsaved_from.is_some_and(|segment| {
            segment.saturating_add(self.config.checkpoint_segments) <= current
        });
        due <= head.logged_size || is_in_the_way
    }

    /// Makes all tables durable outside of the log, so that it can be cut. Without anything new it does
    /// nothing.
    ///
    /// # Errors
    /// When the disk or the log fails; nothing is lost, and it may be tried again.
    pub fn checkpoint(&self) -> Result<()> {
        let mut saved = lock(&self.saved);
        self.checkpoint_into(&mut saved)
    }

    fn checkpoint_into(&self, saved: &mut Saved) -> Result<()> {
        let (set, log_from, logged_size) = {
            let mut head = self.head();
            if head.unsaved_from.is_none() {
                return Ok(());
            }
            head.saving_from = head.unsaved_from.take();
            // Records from here on go to this segment or a later one. Those before that are in it,
            // too, are known by their numbers.
            let log_from = self.wal.stats().segment;
            (Arc::clone(&head.set), log_from, std::mem::take(&mut head.logged_size))
        };
        let made = self.save(saved, &set, log_from);
        {
            let mut head = self.head();
            let saving_from = head.saving_from.take();
            if made.is_err() {
                head.unsaved_from = saving_from;
                head.logged_size += logged_size;
            }
        }
        made?;
        self.log.cut()?;
        Ok(())
    }

    fn save(&self, saved: &mut Saved, set: &TableSet, log_from: u64) -> Result<()> {
        // What is in files is never newer than the log.
        self.wait_durable(self.wal.end())?;
        self.vfs.create_dir_all(&self.dir)?;
        if saved.manifest == Manifest::default() {
            // Before there is any file: files without a manifest mean that it was lost.
            saved.manifest.write(self.vfs.as_ref(), &self.dir)?;
        }
        let first_new = saved.next_file;
        let infos = match self.write_changed(saved, set) {
            Ok(infos) => infos,
            Err(error) => {
                // No manifest names them yet: they only take room, which may be what is short.
                for number in first_new..saved.next_file {
                    let _ = self.vfs.remove(&self.dir.join(file_name(number)));
                }
                return Err(error);
            }
        };
        let manifest = Manifest {
            seq: set.seq,
            log_from,
            next_table: self.next_table(),
            next_file: saved.next_file,
            tables: infos,
        };
        manifest.write(self.vfs.as_ref(), &self.dir)?;
        *saved = Saved::new(&manifest, set);
        // What stays is tried again the next time, and goes at the next start at the latest.
        let _ = self.remove_unnamed(&manifest);
        Ok(())
    }

    /// Writes files of the tables that have none, and makes them durable.
    fn write_changed(&self, saved: &mut Saved, set: &TableSet) -> Result<Vec<FileInfo>> {
        let mut infos = Vec::with_capacity(set.tables.len());
        for (_, table) in set.tables.iter() {
            infos.push(match saved.file_of(table) {
                Some(info) => info,
                None => {
                    let number = saved.next_file;
                    saved.next_file += 1;
                    file::write(self.vfs.as_ref(), &self.dir, number, set.seq, table)?
                }
            });
        }
        self.vfs.sync_dir(&self.dir)?;
        Ok(infos)
    }

    /// Removes files that a manifest does not name.
    pub(crate) fn remove_unnamed(&self, manifest: &Manifest) -> Result<()> {
        for name in self.vfs.list(&self.dir)? {
            if is_ours(&name) && !manifest.names(&name) {
                self.vfs.remove(&self.dir.join(&name))?;
            }
        }
        Ok(())
    }

    /// Makes tables of their own of hard links in another data directory, as they are at one moment from
    /// now on.
    ///
    /// # Errors
    /// When the disk or the log fails; what was linked so far is the caller's to remove.
    pub fn snapshot(&self, data_dir: &Path) -> Result<()> {
        // No other checkpoint may remove what is being linked.
        let mut saved = lock(&self.saved);
        self.checkpoint_into(&mut saved)?;
        let manifest = saved.manifest.clone();
        if manifest == Manifest::default() {
            return Ok(());
        }
        let to = data_dir.join(TABLES_DIR);
        self.vfs.create_dir_all(&to)?;
        for info in &manifest.tables {
            let name = file_name(info.file);
            self.vfs.hard_link(&self.dir.join(&name), &to.join(&name))?;
        }
        self.vfs.sync_dir(&to)?;
        manifest.write(self.vfs.as_ref(), &to)
    }

    // ---- the thread ----

    pub(crate) fn start_keeper(self: &Arc<Tables>) -> Result<()> {
        let (weak, keeper) = (Arc::downgrade(self), Arc::clone(&self.keeper));
        let builder = std::thread::Builder::new().name("tables-keeper".to_owned());
        let spawned = builder.spawn(move || {
            loop {
                let Some(tables) = weak.upgrade() else { return };
                let pause = match tables.keep() {
                    Ok(()) => tables.config.keeper_interval,
                    Err(error) => {
                        *lock(&keeper.trouble) = Some(error.to_string());
                        tables.config.retry_interval
                    }
                };
                // Who waits keeps nothing open.
                drop(tables);
                if keeper.is_stopped_within(pause) {
                    return;
                }
            }
        });
        let thread = spawned.map_err(|error| vfs::Error::new("spawn keeper", &self.dir, error))?;
        *lock(&self.keeper.thread) = Some(thread);
        Ok(())
    }

    /// What last went wrong beside statements, for people.
    pub fn trouble(&self) -> Option<String> {
        lock(&self.keeper.trouble).clone()
    }

    /// Ends the keeper and makes a last checkpoint, so that the next start replays nothing. The log is
    /// the program's to close, afterwards. Calling again is fine.
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

impl Keeper {
    /// Waits so long at most; whether it is to end.
    fn is_stopped_within(&self, pause: Duration) -> bool {
        let is_to_go_on = |is_stopped: &mut bool| !*is_stopped;
        let guard = lock(&self.is_stopped);
        let waited = self.woken.wait_timeout_while(guard, pause, is_to_go_on);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Whether a name is one of those that checkpoints make; others are left alone.
pub(crate) fn is_ours(name: &str) -> bool {
    let whole = name.strip_suffix(TEMPORARY_SUFFIX).unwrap_or(name);
    is_manifest(whole) || is_table_file(whole)
}
