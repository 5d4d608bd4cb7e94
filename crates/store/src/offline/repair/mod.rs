//! Makes a damaged store one that opens and verifies clean, with all that is whole in it. First it
//! says what it would do; nothing is deleted, what is damaged moves to `DATA/damaged/TIME/`.
//!
//! ```text
//! plan    partitions: manifests from parts' own headers, index from what is whole, parts without bad
//!         pages ─► log: without what cannot be read or taken ─► side files ─► strays
//! apply   REPORT, then step by step; the plan holds the store's lock until it is dropped
//! ```
//!
//! Kill it anywhere and run it again. What a step writes has a new name and is complete and synced
//! before a manifest names it; a manifest, a log segment or a side file is linked to its place
//! under `damaged/` before it is replaced by a rename; a file moves only when nothing names it any
//! more. So between two steps the store is as damaged as before, or less, and what an interrupted
//! run left under new names is unnamed and moves aside with the next. A lost manifest is written
//! first of all, with the damaged files in it, so that what is lost with those is listed again.
//!
//! Read in this order: this file, [`losses`], [`aside`], [`partition`], [`manifest`], [`replay_start`], [`part`],
//! [`log`].

pub mod aside;
pub mod log;
pub mod losses;
pub mod manifest;
pub mod partition;
pub mod part;
pub mod replay_start;

use crate::base::directory::partition_length;
use crate::base::directory::root_manifest::{self, Contents};
use crate::base::file_names::{
    METADATA_COPY, METADATA_FILE, PARTITION_MANIFEST, PARTITIONS_DIR, WAL_DIR, copy_of,
};
use crate::base::period::Period;
use crate::log::metadata::MetadataTable;
use crate::log::metadata_files::{LOST, StoredMetadata};
use crate::log::string_numbers;
use crate::offline::verify::files::size_of_store;
use crate::offline::verify::files::{self, Stray};
use crate::offline::verify::judge::Judge;
use crate::offline::verify::partition_index::PartitionIndex;
use crate::offline::verify::side::{SIDE_FILES, is_converted, lost_file};
use crate::offline::verify::{OnProgress, Progress, Snapshots, check_is_store, is_of};
use crate::partition::dropped::DroppedPartitions;
use crate::{Error, Result};
use aside::Aside;
use log::LogSegmentRewrite;
use losses::{Loss, Losses, LostOf};
use part::PartRewrite;
use partition::PartitionRepair;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::Vfs;

/// The file in the folder of what a repair moved aside that says what it did.
pub const REPORT_FILE: &str = "REPORT";

/// What a repair would do.
pub struct RepairPlan {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    steps: Vec<Step>,
    losses: Losses,
    /// Keeps everybody else out.
    _lock: Box<dyn Send + Sync>,
}

/// One thing to do.
pub(crate) struct Step {
    /// In words.
    pub says: String,
    pub act: Act,
}

/// What a step does.
pub(crate) enum Act {
    /// Moves a file, or a directory.
    MoveAside(PathBuf),
    /// Writes a file of the index under a name that is new.
    WriteSegment { path: PathBuf, bytes: vfs::Bytes },
    /// Writes a part again under a name that is new.
    RewritePart(Box<PartRewrite>),
    /// Replaces a manifest; keeps the old one.
    WriteManifest { dir: PathBuf, manifest: Box<crate::partition::disk::manifest::Manifest> },
    /// Writes a log segment again; keeps the old one.
    RewriteLog(LogSegmentRewrite),
    /// Creates a log segment without records.
    FillGap { dir: PathBuf, segment: u64 },
    /// Writes both files of the table of metadata, as one of them holds it; keeps the damaged one. If
    /// neither does the table is empty: whoever has numbers of strings has one.
    WriteMetadata { dir: PathBuf, damaged: Vec<PathBuf> },
    /// Writes the root manifest as everything is then, without what is known to be lost.
    WriteRoot { dir: PathBuf },
}

/// Plans the repair of the store in `dir`, which nobody has open. Changes nothing.
///
/// # Errors
/// When another process has the store open, when a file is of a later version, or when a directory
/// cannot be listed: such a store is not one to repair.
pub fn plan_repair(
    vfs: Arc<dyn Vfs>,
    dir: &Path,
    on_progress: &mut OnProgress<'_>,
) -> Result<RepairPlan> {
    check_is_store(vfs.as_ref(), dir)?;
    let lock = vfs.lock(dir)?;
    let total = size_of_store(vfs.as_ref(), dir, Snapshots::Skip);
    let mut planner = Planner {
        vfs: Arc::clone(&vfs),
        dir: dir.to_path_buf(),
        steps: Vec::new(),
        losses: Vec::new(),
        on_progress,
        done: 0,
        total,
    };
    let partitions = planner.partitions()?;
    planner.side_files()?;
    planner.strays()?;
    planner.root_manifest()?;
    let Planner { steps, losses, .. } = planner;
    let losses = Losses { losses, partitions };
    Ok(RepairPlan { vfs, dir: dir.to_path_buf(), steps, losses, _lock: lock })
}

/// A plan in the making.
pub(crate) struct Planner<'a, 'b> {
    pub vfs: Arc<dyn Vfs>,
    pub dir: PathBuf,
    pub steps: Vec<Step>,
    pub losses: Vec<Loss>,
    on_progress: &'a mut OnProgress<'b>,
    done: u64,
    total: u64,
}

impl Planner<'_, '_> {
    /// Tells that a file is about to be read.
    pub fn reading(&mut self, path: &Path) {
        (self.on_progress)(&Progress { path, done: self.done, total: self.total });
        self.done += self.vfs.size(path).unwrap_or(0);
    }

    pub fn step(&mut self, says: String, act: Act) {
        self.steps.push(Step { says, act });
    }

    pub fn move_aside(&mut self, path: PathBuf, why: &str) {
        self.step(format!("move aside {}: {why}", path.display()), Act::MoveAside(path));
    }

    /// The names in a directory that may not be there.
    pub fn list(&self, dir: &Path) -> Result<Vec<String>> {
        match self.vfs.exists(dir)? {
            true => Ok(self.vfs.list(dir)?),
            false => Ok(Vec::new()),
        }
    }

    fn partitions(&mut self) -> Result<BTreeMap<Period, PartitionIndex>> {
        let root = self.dir.join(PARTITIONS_DIR);
        let length = partition_length::told(self.vfs.as_ref(), &self.dir);
        let mut repairs = Vec::new();
        for name in self.list(&root)? {
            let path = root.join(&name);
            match Period::parse(&name) {
                Some(period) if is_of(period, length) => {
                    repairs.push(PartitionRepair::look(self, path, period)?)
                }
                _ => self.stray(path, files::in_partitions(&name)),
            }
        }
        let wal = self.dir.join(WAL_DIR);
        let rebuilt = repairs.iter().filter(|repair| repair.is_rebuilt());
        let indexes = rebuilt.map(|repair| (repair.period, repair.index_as_found())).collect();
        let starts =
            replay_start::find_replay_starts(self.vfs.as_ref(), &wal, &self.dropped(), indexes)?;
        for repair in &mut repairs {
            if let Some(start) = starts.get(&repair.period) {
                repair.manifest.wal_from = *start;
            }
        }
        let mut partitions = BTreeMap::new();
        for repair in repairs {
            partitions.insert(repair.period, repair.plan(self)?);
        }
        let mut judge = Judge::new(partitions, self.dropped(), length);
        self.log(&wal, &mut judge)?;
        Ok(judge.partitions)
    }

    /// From where on records of dropped partitions count; a file that cannot be read says nothing.
    fn dropped(&self) -> DroppedPartitions {
        DroppedPartitions::read(self.vfs.as_ref(), &self.dir).unwrap_or_default()
    }

    fn side_files(&mut self) -> Result<()> {
        let dir = self.dir.clone();
        for side in SIDE_FILES {
            let Some(Err(error)) = side.read.map(|read| read(self.vfs.as_ref(), &dir)) else {
                continue;
            };
            check_is_known(&error)?;
            let path = dir.join(side.path);
            self.losses.push(Loss::unknown(path.clone(), side.lost.to_string()));
            self.move_aside(path, &error.without_file());
        }
        self.metadata()
    }

    /// Restores a file of the table of metadata from the other one. If neither can be read the table is
    /// lost.
    fn metadata(&mut self) -> Result<()> {
        let dir = self.dir.clone();
        let stored = StoredMetadata::read(self.vfs.as_ref(), &dir);
        let stored = stored.or_else(|error| check_is_known(&error).and(Err(error)))?;
        let path = dir.join(METADATA_FILE);
        let damaged = stored.faults.iter().map(|fault| dir.join(fault.file)).collect();
        if stored.contents.is_some() {
            if let Some(fault) = stored.faults.first() {
                let (copy, file) = (dir.join(METADATA_COPY), fault.file);
                let says = format!(
                    "write {} and {} again: {file} {}",
                    path.display(),
                    copy.display(),
                    fault.what
                );
                self.step(says, Act::WriteMetadata { dir, damaged });
            }
            return Ok(());
        }
        if !stored.faults.is_empty() {
            self.losses.push(Loss::unknown(path.clone(), LOST.to_string()));
        }
        for fault in stored.faults.iter().filter(|fault| fault.is_there) {
            self.move_aside(dir.join(fault.file), &fault.what);
        }
        if string_numbers::is_used(self.vfs.as_ref(), &dir)
            && !is_converted(self.vfs.as_ref(), &dir)
        {
            let says = format!("write {}, empty, in place of the lost one", path.display());
            self.step(says, Act::WriteMetadata { dir, damaged: Vec::new() });
        }
        Ok(())
    }

    /// Accepts the loss of what the root manifest names and is not there.
    fn root_manifest(&mut self) -> Result<()> {
        let (vfs, dir) = (Arc::clone(&self.vfs), self.dir.clone());
        // One that is damaged moves aside with the side files, and a start writes another.
        let Ok(Some(contents)) = Contents::read(vfs.as_ref(), &dir) else { return Ok(()) };
        let (partitions, files) = contents.missing(vfs.as_ref(), &dir);
        let log_damage = contents.log_damage(vfs.as_ref(), &dir);
        let is_whole = log_damage.is_empty()
            && contents.lost_partitions.is_empty()
            && contents.lost_files.is_empty()
            && partitions.is_empty()
            && files.is_empty();
        let is_named = |path: &PathBuf| {
            let is_of = |name: &String| [dir.join(name), dir.join(copy_of(name))].contains(path);
            let files_of_log =
                [wal::START_NAME, wal::END_NAME].map(|name| dir.join(WAL_DIR).join(name));
            contents.files.iter().any(is_of) || files_of_log.contains(path)
        };
        let takes_named = |act: &Act| matches!(act, Act::MoveAside(path) if is_named(path));
        if is_whole && !self.steps.iter().any(|step| takes_named(&step.act)) {
            return Ok(());
        }
        for period in partitions.iter().chain(&contents.lost_partitions) {
            let of = LostOf::Unknown("all of the partition, whose directory is missing".into());
            let file = dir.join(PARTITIONS_DIR).join(period.name());
            self.losses.push(Loss { file, period: Some(*period), of, range: period.range() });
        }
        for name in files.iter().chain(&contents.lost_files) {
            self.losses.push(Loss::unknown(dir.join(name), lost_file(name).what));
        }
        for damage in log_damage {
            self.losses.push(Loss::unknown(dir.join(damage.file), damage.what));
        }
        let path = dir.join(root_manifest::FILE_NAME);
        let says = format!("write {}: what is there then", path.display());
        self.step(says, Act::WriteRoot { dir });
        Ok(())
    }

    fn strays(&mut self) -> Result<()> {
        let dir = self.dir.clone();
        for name in self.list(&dir)? {
            self.stray(dir.join(&name), files::in_store(&name));
        }
        Ok(())
    }

    /// Plans to move aside what should not be there.
    pub fn stray(&mut self, path: PathBuf, stray: Stray) {
        if let Stray::Orphan(what) = stray {
            self.move_aside(path, what);
        }
    }
}

/// What a later version wrote is not damaged, and nothing beside it is to be touched.
pub(crate) fn check_is_known(error: &Error) -> Result<()> {
    match error.is_unknown_version() {
        true => Err(Error::Invalid(format!("{error}; nothing is repaired"))),
        false => Ok(()),
    }
}

impl RepairPlan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// What would be done, in its order.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(|step| step.says.as_str())
    }

    /// What is lost with the damage that is there, by series and time.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Does what the plan says; returns the folder with what was moved aside.
    ///
    /// # Errors
    /// On I/O errors. What was done until then stays; plan again.
    pub fn apply(&self, on_step: &mut dyn FnMut(&str)) -> Result<PathBuf> {
        let aside = Aside::create(Arc::clone(&self.vfs), &self.dir)?;
        self.write_report(&aside)?;
        for step in &self.steps {
            on_step(&step.says);
            self.perform(&step.act, &aside)?;
        }
        Ok(aside.folder().to_path_buf())
    }

    fn perform(&self, act: &Act, aside: &Aside) -> Result<()> {
        let vfs = self.vfs.as_ref();
        match act {
            Act::MoveAside(path) => aside.take(path),
            Act::WriteSegment { path, bytes } => aside::write_new(vfs, path, bytes),
            Act::RewritePart(rewrite) => rewrite.run(vfs),
            Act::WriteManifest { dir, manifest } => {
                aside.keep(&dir.join(PARTITION_MANIFEST))?;
                manifest.write(vfs, dir)
            }
            Act::RewriteLog(rewrite) => rewrite.run(vfs, aside),
            Act::WriteMetadata { dir, damaged } => {
                damaged.iter().try_for_each(|path| aside.keep(path))?;
                let stored = StoredMetadata::read(vfs, dir)?;
                MetadataTable::from_stored(&stored).rewrite_files(vfs, dir)
            }
            Act::WriteRoot { dir } => {
                let mut contents = Contents::read(vfs, dir)?.unwrap_or_default();
                contents.lost_partitions.clear();
                contents.lost_files.clear();
                contents.take_stock(vfs, dir, partition_length::told(vfs, dir))?;
                contents.write(vfs, dir)
            }
            Act::FillGap { dir, segment } => {
                wal::fill_gap(vfs, dir, *segment)?;
                Ok(())
            }
        }
    }

    /// Says in the folder what is done, before anything is.
    fn write_report(&self, aside: &Aside) -> Result<()> {
        let path = aside.folder().join(REPORT_FILE);
        let mut file = self.vfs.create(&path)?;
        let mut text = String::from("done, in this order:\n");
        for says in self.steps() {
            let _ = writeln!(text, "{says}");
        }
        text.push_str("\nlost:\n");
        let mut failed = None;
        self.losses.for_each(&mut |line| {
            let _ = writeln!(text, "{line}");
            if REPORT_WRITE_SIZE <= text.len() && failed.is_none() {
                failed = file.append(text.as_bytes()).err();
                text.clear();
            }
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        file.append(text.as_bytes())?;
        file.sync()?;
        Ok(self.vfs.sync_dir(aside.folder())?)
    }
}

/// Bytes of the report that are gathered before they are written.
const REPORT_WRITE_SIZE: usize = 1 << 20;
