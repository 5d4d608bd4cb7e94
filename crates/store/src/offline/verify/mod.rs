//! Walks every checksum and invariant of a store that is not open. Changes nothing.
//!
//! ```text
//! data directory ─► partitions ─► manifest, index segments, parts, files that no manifest names
//!                └► side files ─► log (against the partitions' indexes) ─► snapshots
//! ```
//!
//! What is wrong is a *problem*: an answer lacks something, or may. What is odd but costs nothing
//! (a torn end of the log, records of another consumer of it, files that a crash left) is a *note*.
//! A file that cannot be read is a problem, not the end of the walk; memory holds one slice of a
//! part, one log segment's map and the registrations that the log has.
//!
//! Read in this order: [`report`], this file, [`files`], [`side`], [`partition`], [`part_faults`],
//! [`partition_index`], [`judge`], [`log`].

pub mod files;
pub mod judge;
pub mod log;
pub mod partition;
pub mod partition_index;
pub mod part_faults;
pub mod report;
pub mod side;

use crate::base::directory::partition_length;
use crate::base::directory::restoring::refuse_restoring;
use crate::base::file_names::{PARTITIONS_DIR, SNAPSHOTS_DIR, WAL_DIR};
use crate::base::period::{PartitionLength, Period};
use crate::partition::dropped::DroppedPartitions;
use crate::{Error, Result};
use files::Stray;
use judge::Judge;
use report::VerifyReport;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use vfs::Vfs;

/// How far a walk has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The file that is about to be read.
    pub path: &'a Path,
    /// Bytes read before it.
    pub done: u64,
    /// Bytes to read in all.
    pub total: u64,
}

/// Is told each file before it is read.
pub type OnProgress<'a> = dyn FnMut(&Progress<'_>) + 'a;

/// Whether snapshots are walked, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Snapshots {
    /// They are not.
    #[default]
    Skip,
    /// Each of them, as the store of its own that it is.
    Check,
}

/// Checks the store in `dir`, without its snapshots.
///
/// # Errors
/// When another process has the store open, or there is none. What is wrong with the data is in the
/// report.
pub fn verify(
    vfs: Arc<dyn Vfs>,
    dir: &Path,
    on_progress: &mut OnProgress<'_>,
) -> Result<VerifyReport> {
    verify_with(vfs, dir, Snapshots::Skip, on_progress)
}

/// Checks the store in `dir`.
///
/// # Errors
/// As [`verify()`].
pub fn verify_with(
    vfs: Arc<dyn Vfs>,
    dir: &Path,
    snapshots: Snapshots,
    on_progress: &mut OnProgress<'_>,
) -> Result<VerifyReport> {
    check_is_store(vfs.as_ref(), dir)?;
    let _lock = vfs.lock(dir)?;
    let mut walk = Walk::new(&vfs, on_progress);
    walk.total = files::size_of_store(vfs.as_ref(), dir, snapshots);
    walk.store(dir);
    if snapshots == Snapshots::Check {
        walk.snapshots(&dir.join(SNAPSHOTS_DIR));
    }
    Ok(walk.report)
}

/// Checks the files of a snapshot that have changed since another walk. Partitions without a changed
/// file are passed over. Takes no lock: snapshots are read-only.
///
/// # Errors
/// When `dir` holds no store. What is wrong with the data is in the report.
pub fn verify_changed(
    vfs: Arc<dyn Vfs>,
    dir: &Path,
    is_changed: &dyn Fn(&Path) -> bool,
) -> Result<VerifyReport> {
    check_is_store(vfs.as_ref(), dir)?;
    let mut ignore_progress = |_: &Progress<'_>| {};
    let mut walk = Walk { is_changed, ..Walk::new(&vfs, &mut ignore_progress) };
    walk.store(dir);
    Ok(walk.report)
}

/// A directory without that of the partitions is no store.
pub(crate) fn check_is_store(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    refuse_restoring(vfs, dir)?;
    match vfs.exists(&dir.join(PARTITIONS_DIR))? {
        true => Ok(()),
        false => Err(Error::Invalid(format!("{} holds no store", dir.display()))),
    }
}

/// Whether a directory of that name is a partition where all have that length.
pub(crate) fn is_of(period: Period, length: Option<PartitionLength>) -> bool {
    length.is_none_or(|length| period.length() == length)
}

/// A walk on its way.
pub(crate) struct Walk<'a, 'b> {
    pub vfs: &'a Arc<dyn Vfs>,
    pub report: VerifyReport,
    on_progress: &'a mut OnProgress<'b>,
    /// Whether a part, or a file that decides about a partition, is to be looked at.
    is_changed: &'a dyn Fn(&Path) -> bool,
    done: u64,
    total: u64,
}

impl<'a, 'b> Walk<'a, 'b> {
    pub fn new(vfs: &'a Arc<dyn Vfs>, on_progress: &'a mut OnProgress<'b>) -> Walk<'a, 'b> {
        let report = VerifyReport::default();
        Walk { vfs, report, on_progress, is_changed: &|_| true, done: 0, total: 0 }
    }

    /// Tells that a file is about to be read.
    pub fn reading(&mut self, path: &Path) {
        (self.on_progress)(&Progress { path, done: self.done, total: self.total });
        let size = self.vfs.size(path).unwrap_or(0);
        self.done += size;
        self.report.bytes += size;
        self.report.files += 1;
    }

    /// The names in a directory, none if it is not there; that it cannot be listed is a problem.
    pub fn list(&mut self, dir: &Path) -> Vec<String> {
        let listed = match self.vfs.exists(dir) {
            Ok(false) => Ok(Vec::new()),
            Ok(true) => self.vfs.list(dir),
            Err(error) => Err(error),
        };
        listed.unwrap_or_else(|error| {
            self.report.error(dir, &error.into());
            Vec::new()
        })
    }

    fn store(&mut self, dir: &Path) {
        for name in self.list(dir) {
            self.stray(&dir.join(&name), files::in_store(&name));
        }
        let root = dir.join(PARTITIONS_DIR);
        let length = partition_length::told(self.vfs.as_ref(), dir);
        self.report.partition_length = self.report.partition_length.or(length);
        let mut partitions = BTreeMap::new();
        for name in self.list(&root) {
            let path = root.join(&name);
            match Period::parse(&name) {
                Some(period) if is_of(period, length) => {
                    drop(partitions.insert(period, self.partition(&path, period)));
                }
                _ => self.stray(&path, files::in_partitions(&name)),
            }
        }
        self.side_files(dir);
        // One that cannot be read is a problem already.
        let dropped = DroppedPartitions::read(self.vfs.as_ref(), dir).unwrap_or_default();
        self.log(&dir.join(WAL_DIR), Judge::new(partitions, dropped, length));
    }

    fn snapshots(&mut self, root: &Path) {
        for name in self.list(root) {
            match files::in_snapshots(&name) {
                Stray::Known => self.snapshot(&root.join(&name)),
                stray => self.stray(&root.join(&name), stray),
            }
        }
    }

    fn snapshot(&mut self, dir: &Path) {
        match check_is_store(self.vfs.as_ref(), dir) {
            Ok(()) => self.store(dir),
            Err(_) => self.report.problem(dir, "holds no store"),
        }
    }

    /// Reports a file that belongs to nothing.
    pub fn stray(&mut self, path: &Path, stray: Stray) {
        match stray {
            Stray::Known => {}
            Stray::Leftover(what) => self.report.note(path, what),
            Stray::Orphan(what) => self.report.problem(path, what),
        }
    }
}
