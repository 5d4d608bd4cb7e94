//! What is older than the retention goes: whole partitions by their directory, parts by their file.
//! Samples in between are invisible to queries at once and go with the next merge.
//! Exemplars leave the book.

use crate::manifest::FILE_NAME;
use crate::partition::Partition;
use crate::store::Store;
use crate::{Error, Result};
use std::sync::Arc;

impl Store {
    /// Drops partitions and parts that hold nothing the retention keeps.
    ///
    /// # Errors
    /// On I/O errors; what could not be removed is tried again next time.
    pub fn expire(&self) -> Result<()> {
        if self.config.retention_ns.is_none() {
            return Ok(());
        }
        self.check_disk_is_trusted()?;
        let oldest = self.kept_span().start;
        self.exemplars.drop_before(oldest);
        for partition in self.all_partitions() {
            let done = match partition.month.range().end < oldest {
                true => self.drop_partition(&partition),
                false => self.drop_parts(&partition, oldest),
            };
            done.map_err(|error| self.latch_if_failed(error))?;
        }
        Ok(())
    }

    fn drop_partition(&self, partition: &Arc<Partition>) -> Result<()> {
        let _change = partition.lock_change();
        {
            let mut state = partition.write();
            partition.set_dropped();
            state.dirty_from = None;
            state.flushing_from = None;
        }
        if self.vfs.exists(&partition.dir)? {
            // Without its manifest a half-removed directory is an empty partition.
            let manifest = partition.dir.join(FILE_NAME);
            if self.vfs.exists(&manifest)? {
                self.vfs.remove(&manifest)?;
                self.vfs.sync_dir(&partition.dir)?;
            }
            self.vfs.remove_dir_all(&partition.dir)?;
            let parent = partition.dir.parent().expect("partitions are in a directory");
            self.vfs.sync_dir(parent)?;
        }
        let mut partitions = self.partitions.write().unwrap_or_else(|p| p.into_inner());
        partitions.remove(&partition.month);
        Ok(())
    }

    fn drop_parts(&self, partition: &Partition, oldest: i64) -> Result<()> {
        let _change = partition.lock_change();
        let expired: Vec<u64> = {
            let state = partition.read();
            let is_old = |p: &&Arc<crate::partition::LivePart>| p.part.summary().max_ts < oldest;
            state.parts.iter().filter(is_old).map(|part| part.entry.file).collect()
        };
        if expired.is_empty() {
            return Ok(());
        }
        let mut manifest = partition.read().manifest.clone();
        manifest.parts.retain(|part| !expired.contains(&part.file));
        manifest.forget_applied_tombstones();
        manifest.write(self.vfs.as_ref(), &partition.dir)?;
        {
            let mut state = partition.write();
            state.parts.retain(|part| !expired.contains(&part.entry.file));
            state.manifest = manifest;
        }
        partition.note_loss();
        for file in expired {
            self.vfs.remove(&partition.part_path(file)).map_err(Error::from)?;
        }
        Ok(())
    }
}
