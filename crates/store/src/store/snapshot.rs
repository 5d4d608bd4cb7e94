//! Snapshots: a store of its own made of hard links, in a moment, whatever its size.

use crate::background::flush::Flusher;
use crate::base::damage::{Damage, DamagePlace};
use crate::base::directory::partition_length;
use crate::base::file_names::{
    DROPPED_FILE, EXEMPLARS_FILE, INDEX_DIR, METADATA_COPY, METADATA_FILE, PARTITION_MANIFEST,
    PARTITIONS_DIR, PARTS_DIR, SNAPSHOTS_DIR, STRINGS_FILE, WAL_DIR,
};
use crate::base::ground::Ground;
use crate::base::narrow::low_half;
use crate::base::period::Period;
use crate::log::store_log::StoreLog;
use crate::partition::Partition;
use crate::partition::disk::manifest::Manifest;
use crate::partition::disk::strays;
use crate::partition::partitions::Partitions;
use crate::partition::shared::Shared;
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// What a snapshot being made is called; if a crash leaves it, the next one or the next start
/// removes it.
const PARTIAL_SUFFIX: &str = ".partial";
/// What a snapshot being removed is called; the same holds.
const DELETED_SUFFIX: &str = ".deleted";

/// Whether a name in the folder of snapshots is of one that was never finished or is being removed.
pub fn is_leftover(name: &str) -> bool {
    name.ends_with(PARTIAL_SUFFIX) || name.ends_with(DELETED_SUFFIX)
}

/// What makes and removes snapshots; no flush meanwhile.
pub(crate) struct Snapshots {
    ground: Arc<Ground>,
    log: Arc<StoreLog>,
    partitions: Arc<Partitions>,
    flusher: Arc<Flusher>,
}

impl Snapshots {
    pub fn new(shared: &Shared, flusher: Arc<Flusher>) -> Snapshots {
        Snapshots {
            ground: shared.ground.clone(),
            log: shared.log.clone(),
            partitions: shared.partitions.clone(),
            flusher,
        }
    }

    /// Freezes the store's files under `snapshots/<name>`; returns the name, which is made of the
    /// time and a random number. `quipu serve --data-dir` on that directory (or a copy) works.
    /// Partitions that are damaged are in it as they are, with their records in the log.
    ///
    /// It has all that was acknowledged before the call and nothing that was deleted before it. What
    /// comes meanwhile may be in it, month by month, also if it is deleted before the call returns;
    /// a deletion is in it whole or not at all.
    ///
    /// What others keep beside the store is added by `also`, which is given the snapshot's directory
    /// before it has its name. The number at the end of the name may be the caller's: who is killed
    /// before the answer comes can be told by it whose snapshot that is.
    ///
    /// # Errors
    /// On I/O errors, those of `also` included: then there is no snapshot.
    pub fn create(
        &self,
        ending: Option<u32>,
        also: &mut dyn FnMut(&Path) -> vfs::Result<()>,
    ) -> Result<String> {
        let _one = self.flusher.lock();
        self.flusher.flush_all()?;
        let root = self.ground.dir.join(SNAPSHOTS_DIR);
        self.ground.vfs.create_dir_all(&root)?;
        strays::clear_directories(self.ground.vfs.as_ref(), &root, is_leftover)?;
        let ending = ending.unwrap_or_else(|| low_half(self.ground.vfs.random()));
        let name = format!("{:020}-{ending:08x}", self.ground.vfs.now().max(0));
        let partial = root.join(format!("{name}{PARTIAL_SUFFIX}"));
        let made = self.link_all(&partial).and_then(|()| {
            also(&partial)?;
            // The last file says what the store has come to need (`needs`): it is at least as new as
            // all others.
            self.link_files(&partial, &[partition_length::FILE_NAME])?;
            self.ground.vfs.rename(&partial, &root.join(&name))?;
            Ok(self.ground.vfs.sync_dir(&root)?)
        });
        match made {
            Ok(()) => Ok(name),
            Err(error) => {
                // No part of the store: it only takes room.
                let _ = self.ground.vfs.remove_dir_all(&partial);
                Err(error)
            }
        }
    }

    fn link_all(&self, partial: &Path) -> Result<()> {
        self.ground.vfs.create_dir_all(&partial.join(PARTITIONS_DIR))?;
        for partition in self.partitions.all() {
            let _change = partition.lock_change();
            if !partition.is_dropped() {
                self.link_partition(&partition, partial)?;
            }
        }
        for damaged in self.partitions.damaged() {
            match self.link_damaged(damaged.period, partial) {
                // What cannot be listed cannot be taken along.
                Err(Error::Io(error)) if error.operation == "list" && !error.is_passing() => {
                    self.note_left_out(damaged.period, partial, &error);
                }
                linked => linked?,
            }
        }
        self.link_log(partial)?;
        let names = [
            // Before the dictionary, which other consumers link: it is there whenever this file is.
            STRINGS_FILE,
            // A write replaces the copy last, so that in a snapshot it is never ahead.
            METADATA_COPY,
            METADATA_FILE,
            EXEMPLARS_FILE,
            DROPPED_FILE,
        ];
        self.link_files(partial, &names)
    }

    /// Links files of the data directory that are there.
    fn link_files(&self, partial: &Path, names: &[&str]) -> Result<()> {
        for name in names {
            let file = self.ground.dir.join(name);
            if self.ground.vfs.exists(&file)? {
                self.ground.vfs.hard_link(&file, &partial.join(name))?;
            }
        }
        Ok(self.ground.vfs.sync_dir(partial)?)
    }

    /// Notes that a snapshot has not all of a damaged partition.
    fn note_left_out(&self, period: Period, snapshot: &Path, error: &vfs::Error) {
        let file = self.ground.damage.relative(snapshot);
        let what = format!("not all of a damaged partition is in this snapshot: {error}");
        let damage = Damage::of_partition(period, DamagePlace::Partition, file, what);
        self.ground.damage.note(damage, self.ground.vfs.now());
    }

    /// Links the log from the oldest record of a damaged partition on: nothing else has it. Of
    /// other partitions their manifests say what counts, of dropped ones the file of those.
    fn link_log(&self, snapshot: &Path) -> Result<()> {
        let damaged = self.partitions.damaged();
        let Some(first) = damaged.iter().filter_map(|damaged| damaged.log_from).min() else {
            return Ok(());
        };
        let next = self.log.wal.rotate();
        self.log.wait_for_all()?;
        let (from, to) = (self.ground.dir.join(WAL_DIR), snapshot.join(WAL_DIR));
        self.ground.vfs.create_dir_all(&to)?;
        for segment in first..next {
            let name = wal::segment_name(segment);
            self.ground.vfs.hard_link(&from.join(&name), &to.join(&name))?;
        }
        Ok(self.ground.vfs.sync_dir(&to)?)
    }

    fn link_partition(&self, partition: &Partition, snapshot: &Path) -> Result<()> {
        let (mut manifest, lost) = {
            let state = partition.read();
            if !state.disk.is_made() {
                return Ok(());
            }
            (state.disk.manifest().clone(), state.disk.lost().to_vec())
        };
        // Nothing of theirs is in the snapshot.
        manifest.unvouched = Vec::new();
        let to = snapshot.join(PARTITIONS_DIR).join(partition.period.name());
        let is_lost = |file: &String| lost.iter().any(|lost| partition.dir.join(file) == lost.file);
        let parts = manifest.parts.iter().map(|part| Manifest::part_file(part.file));
        let segments =
            manifest.segments.iter().map(|segment| Manifest::segment_file(&segment.name));
        for folder in [PARTS_DIR, INDEX_DIR] {
            self.ground.vfs.create_dir_all(&to.join(folder))?;
        }
        for file in parts.chain(segments) {
            let linked = self.ground.vfs.hard_link(&partition.dir.join(&file), &to.join(&file));
            match linked {
                // As lost there as it is here.
                Err(_) if is_lost(&file) => {}
                linked => linked?,
            }
        }
        for folder in [PARTS_DIR, INDEX_DIR] {
            self.ground.vfs.sync_dir(&to.join(folder))?;
        }
        manifest.write(self.ground.vfs.as_ref(), &to)
    }

    /// Links all files of a partition that cannot be read, for who repairs it.
    fn link_damaged(&self, period: Period, snapshot: &Path) -> Result<()> {
        let from = self.ground.partition_dir(period);
        if !self.ground.vfs.exists(&from)? {
            return Ok(());
        }
        let to = snapshot.join(PARTITIONS_DIR).join(period.name());
        for folder in [PARTS_DIR, INDEX_DIR] {
            self.ground.vfs.create_dir_all(&to.join(folder))?;
            if self.ground.vfs.exists(&from.join(folder))? {
                for name in self.ground.vfs.list(&from.join(folder))? {
                    let file = Path::new(folder).join(name);
                    self.ground.vfs.hard_link(&from.join(&file), &to.join(&file))?;
                }
            }
            self.ground.vfs.sync_dir(&to.join(folder))?;
        }
        if self.ground.vfs.exists(&from.join(PARTITION_MANIFEST))? {
            self.ground
                .vfs
                .hard_link(&from.join(PARTITION_MANIFEST), &to.join(PARTITION_MANIFEST))?;
        }
        Ok(self.ground.vfs.sync_dir(&to)?)
    }

    /// Names of the snapshots, oldest first.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn names(&self) -> Result<Vec<String>> {
        let root = self.ground.dir.join(SNAPSHOTS_DIR);
        if !self.ground.vfs.exists(&root)? {
            return Ok(Vec::new());
        }
        let mut names = self.ground.vfs.list(&root)?;
        names.retain(|name| !is_leftover(name));
        Ok(names)
    }

    /// Removes a snapshot: it is gone, or it is whole.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there is none of that name.
    pub fn delete(&self, name: &str) -> Result<()> {
        let _one = self.flusher.lock();
        if !self.names()?.iter().any(|known| known == name) {
            return Err(Error::Invalid(format!("there is no snapshot {name:?}")));
        }
        let root = self.ground.dir.join(SNAPSHOTS_DIR);
        let deleted = root.join(format!("{name}{DELETED_SUFFIX}"));
        self.ground.vfs.rename(&root.join(name), &deleted)?;
        self.ground.vfs.sync_dir(&root)?;
        Ok(self.ground.vfs.remove_dir_all(&deleted)?)
    }
}
