//! What is older than the retention goes: whole partitions by their directory, parts by their file.
//! Samples in between are invisible to queries at once and go with the next merge.
//! Exemplars leave their queue. What is old is told by [`crate::partition::retention::retention_clock`].
//!
//! ```text
//! a partition is dropped:  rotate the log ► write DATA/dropped ► rename the directory ► sync
//!                      ► take it out of the partitions ► remove the directory
//! ```
//!
//! The rename is what drops it: before, a crash leaves the partition as it was but for records of
//! the log; after, a leftover that goes when the store opens. A partition made anew starts from the
//! rotated log, so that numbers in older records are never taken for its own.

use crate::background::partition_files::remove_done;
use crate::base::file_names::PARTITIONS_DIR;
use crate::base::ground::Ground;
use crate::base::period::Period;
use crate::log::exemplars::ExemplarQueue;
use crate::log::store_log::StoreLog;
use crate::partition::damaged::DamagedPartition;
use crate::partition::disk::manifest::Manifest;
use crate::partition::disk::strays::DROPPED_INFIX;
use crate::partition::partitions::Partitions;
use crate::partition::retention::Retention;
use crate::partition::shared::Shared;
use crate::partition::{ExpiryState, Partition};
use crate::{Error, Result};
use std::path::PathBuf;
use std::sync::{Arc, TryLockError};

/// What drops what the retention does not keep.
pub(crate) struct Expirer {
    ground: Arc<Ground>,
    log: Arc<StoreLog>,
    partitions: Arc<Partitions>,
    retention: Arc<Retention>,
    exemplars: Arc<ExemplarQueue>,
}

impl Expirer {
    pub fn new(shared: &Shared) -> Expirer {
        Expirer {
            ground: shared.ground.clone(),
            log: shared.log.clone(),
            partitions: shared.partitions.clone(),
            retention: shared.retention.clone(),
            exemplars: shared.exemplars.clone(),
        }
    }

    /// Drops partitions and parts that hold nothing the retention keeps.
    ///
    /// # Errors
    /// On I/O errors; what could not be removed is tried again next time.
    pub fn expire(&self) -> Result<()> {
        if !self.retention.is_on() {
            return Ok(());
        }
        self.ground.health.check_disk_is_trusted()?;
        self.retention.write_clock_if_due()?;
        let oldest = self.retention.kept_span().start;
        self.exemplars.drop_before(oldest);
        let mut first_error = None;
        for partition in self.partitions.all() {
            let done = match partition.period.range().end < oldest {
                true => self.drop_partition(&partition),
                false => self.drop_parts(&partition, oldest),
            };
            self.note_expired(done, &mut first_error)?;
        }
        let damaged = self.partitions.damaged();
        for damaged in damaged.iter().filter(|damaged| damaged.period.range().end < oldest) {
            self.note_expired(self.drop_damaged(damaged), &mut first_error)?;
        }
        self.note_expired(self.partitions.name_manifests(), &mut first_error)?;
        first_error.map_or(Ok(()), Err)
    }

    /// A partition that cannot go does not keep the others, unless the disk cannot be trusted any
    /// more.
    fn note_expired(&self, done: Result<()>, first_error: &mut Option<Error>) -> Result<()> {
        if let Err(error) = done {
            let error = self.ground.health.latch_if_failed(error);
            first_error.get_or_insert(error);
        }
        match self.ground.health.is_latched() {
            true => first_error.take().map_or(Ok(()), Err),
            false => Ok(()),
        }
    }

    fn drop_partition(&self, partition: &Arc<Partition>) -> Result<()> {
        partition.set_expiring(ExpiryState::Expired);
        // A merge gives up soon, and the next round finds it gone.
        let _no_merge = match partition.merging.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        let _change = partition.lock_change();
        if partition.is_dropped() {
            return Ok(());
        }
        {
            // Under the lock, so that no record comes after the rotation.
            let _state = partition.write();
            partition.set_dropped();
        }
        let dropped = match self.drop_directory(partition.period) {
            Ok(dropped) => dropped,
            Err(error) => {
                if !error.leaves_disk_in_doubt() && !self.ground.health.is_latched() {
                    partition.keep();
                }
                return Err(error);
            }
        };
        partition.write().unflushed.clear();
        self.partitions.remove(partition.period);
        self.remove_dropped(dropped);
        Ok(())
    }

    fn drop_damaged(&self, damaged: &DamagedPartition) -> Result<()> {
        let dropped = self.drop_directory(damaged.period)?;
        self.partitions.remove_damaged(damaged.period);
        self.remove_dropped(dropped);
        Ok(())
    }

    /// Drops a partition from the disk; returns its directory's new name, if it had one.
    fn drop_directory(&self, period: Period) -> Result<Option<PathBuf>> {
        let vfs = self.ground.vfs.as_ref();
        self.partitions.drop_with(period, &self.log.wal, |segment| {
            let from = self.ground.partition_dir(period);
            if !vfs.exists(&from).map_err(|error| self.in_doubt(error))? {
                return Ok(None);
            }
            let root = self.ground.dir.join(PARTITIONS_DIR);
            let to = root.join(format!("{}{DROPPED_INFIX}{segment}", period.name()));
            self.ground.root.remove_with(vfs, &self.ground.dir, period, || {
                vfs.rename(&from, &to)?;
                Ok(vfs.sync_dir(&root)?)
            })?;
            Ok(Some(to))
        })
    }

    /// The error of a look at the disk without which a drop cannot go on that has begun.
    fn in_doubt(&self, error: vfs::Error) -> Error {
        self.ground.health.latch(&error.to_string());
        Error::ReadOnly { reason: error.to_string() }
    }

    /// Removes a dropped partition's directory; what is left of it goes when the store opens.
    fn remove_dropped(&self, dir: Option<PathBuf>) {
        if let Some(dir) = dir
            && let Err(error) = self.ground.vfs.remove_dir_all(&dir)
        {
            self.ground.health.note_failure("Expire", &error.into());
        }
    }

    fn drop_parts(&self, partition: &Partition, oldest: i64) -> Result<()> {
        // The clock may have gone back.
        partition.set_expiring(ExpiryState::Kept);
        let _change = partition.lock_change();
        if partition.is_dropped() {
            return Ok(());
        }
        let expired: Vec<u64> = {
            let state = partition.read();
            let old = state.disk.parts().iter().filter(|part| part.span().end < oldest);
            old.map(|part| part.entry.file).collect()
        };
        if expired.is_empty() {
            return Ok(());
        }
        let mut manifest = partition.read().disk.next_manifest();
        manifest.parts.retain(|part| !expired.contains(&part.file));
        manifest.remove_applied_tombstones();
        let done: Vec<String> = expired.iter().map(|file| Manifest::part_file(*file)).collect();
        done.iter().for_each(|file| manifest.disown(file.clone()));
        manifest.write(self.ground.vfs.as_ref(), &partition.dir)?;
        partition.write().disk.install(manifest, None);
        partition.note_loss();
        remove_done(&self.ground, partition, &done)
    }
}
