//! Snapshots: a store of its own made of hard links, in a moment, whatever its size.

use crate::manifest::{FILE_NAME, Manifest};
use crate::partition::{INDEX_DIR, PARTS_DIR, Partition};
use crate::store::{PARTITIONS_DIR, SNAPSHOTS_DIR, Store, lock};
use crate::{Error, Result};
use crate::{exemplars, metadata};
use std::path::Path;

/// What a snapshot being made is called; removed at the next one if a crash leaves it.
const PARTIAL_SUFFIX: &str = ".partial";

impl Store {
    /// Freezes the store's files under `snapshots/<name>`; returns the name, which is made of the
    /// time and a random number. `quipu serve --data-dir` on that directory (or a copy) works.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn create_snapshot(&self) -> Result<String> {
        let _one = lock(&self.flushing);
        self.check_disk_is_trusted()?;
        self.flush_all().map_err(|error| self.latch_if_failed(error))?;
        let root = self.dir.join(SNAPSHOTS_DIR);
        self.vfs.create_dir_all(&root)?;
        let name = format!("{:020}-{:08x}", self.vfs.now().max(0), self.vfs.random() as u32);
        let partial = root.join(format!("{name}{PARTIAL_SUFFIX}"));
        self.vfs.create_dir_all(&partial.join(PARTITIONS_DIR))?;
        for partition in self.all_partitions() {
            let _change = partition.lock_change();
            if !partition.is_dropped() {
                self.link_partition(&partition, &partial)?;
            }
        }
        for name in [metadata::FILE_NAME, exemplars::FILE_NAME] {
            let book = self.dir.join(name);
            if self.vfs.exists(&book)? {
                self.vfs.hard_link(&book, &partial.join(name))?;
            }
        }
        self.vfs.sync_dir(&partial)?;
        self.vfs.rename(&partial, &root.join(&name))?;
        self.vfs.sync_dir(&root)?;
        Ok(name)
    }

    fn link_partition(&self, partition: &Partition, snapshot: &Path) -> Result<()> {
        if !self.vfs.exists(&partition.dir.join(FILE_NAME))? {
            return Ok(());
        }
        let to = snapshot.join(PARTITIONS_DIR).join(partition.month.name());
        let manifest = partition.read().manifest.clone();
        for (folder, names) in [
            (PARTS_DIR, manifest.parts.iter().map(|p| Manifest::part_name(p.file)).collect()),
            (INDEX_DIR, manifest.segments.clone()),
        ] {
            self.vfs.create_dir_all(&to.join(folder))?;
            for name in names {
                let from = partition.dir.join(folder).join(&name);
                self.vfs.hard_link(&from, &to.join(folder).join(&name))?;
            }
            self.vfs.sync_dir(&to.join(folder))?;
        }
        manifest.write(self.vfs.as_ref(), &to)
    }

    /// Names of the snapshots, oldest first.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn snapshots(&self) -> Result<Vec<String>> {
        let root = self.dir.join(SNAPSHOTS_DIR);
        if !self.vfs.exists(&root)? {
            return Ok(Vec::new());
        }
        let mut names = self.vfs.list(&root)?;
        names.retain(|name| !name.ends_with(PARTIAL_SUFFIX));
        Ok(names)
    }

    /// Removes a snapshot.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there is none of that name.
    pub fn delete_snapshot(&self, name: &str) -> Result<()> {
        if !self.snapshots()?.iter().any(|known| known == name) {
            return Err(Error::Invalid(format!("there is no snapshot {name:?}")));
        }
        Ok(self.vfs.remove_dir_all(&self.dir.join(SNAPSHOTS_DIR).join(name))?)
    }
}
