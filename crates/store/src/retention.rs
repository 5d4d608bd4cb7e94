//! What is older than the retention goes: whole partitions by their directory, parts by their file.
//! Samples in between are invisible to queries at once and go with the next merge.
//! Exemplars leave the book. What is old is told by [`crate::retention_clock`].
//!
//! ```text
//! a partition is dropped:  rotate the log ► write DATA/dropped ► rename the directory ► sync
//!                      ► forget the partition ► remove the directory
//! ```
//!
//! The rename is what drops it: before, a crash leaves the partition as it was but for records of
//! the log; after, a leftover that goes when the store opens. A partition made anew starts from the
//! rotated log, so that numbers in older records are never taken for its own.

use crate::damaged::DamagedPartition;
use crate::manifest::Manifest;
use crate::partition::{ExpiryState, Partition};
use crate::period::Period;
use crate::store::{PARTITIONS_DIR, Store, WAL_DIR, lock};
use crate::strays::DROPPED_INFIX;
use crate::{Error, Result};
use std::path::PathBuf;
use std::sync::{Arc, TryLockError};

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
        if self.clock.is_write_due(self.vfs.as_ref()) {
            self.write_clock()?;
        }
        let oldest = self.kept_span().start;
        self.exemplars.drop_before(oldest);
        let mut first_error = None;
        for partition in self.all_partitions() {
            let done = match partition.period.range().end < oldest {
                true => self.drop_partition(&partition),
                false => self.drop_parts(&partition, oldest),
            };
            self.note_expired(done, &mut first_error)?;
        }
        let damaged = self.damaged_partitions();
        for damaged in damaged.iter().filter(|damaged| damaged.period.range().end < oldest) {
            self.note_expired(self.drop_damaged(damaged), &mut first_error)?;
        }
        first_error.map_or(Ok(()), Err)
    }

    /// A partition that cannot go does not keep the others, unless the disk cannot be trusted any
    /// more.
    fn note_expired(&self, done: Result<()>, first_error: &mut Option<Error>) -> Result<()> {
        if let Err(error) = done {
            let error = self.latch_if_failed(error);
            first_error.get_or_insert(error);
        }
        match self.is_latched() {
            true => first_error.take().map_or(Ok(()), Err),
            false => Ok(()),
        }
    }

    /// Keeps what the retention trusts over a restart.
    pub(crate) fn write_clock(&self) -> Result<()> {
        if self.config.retention_ns.is_none() {
            return Ok(());
        }
        let written = self.clock.write(self.vfs.as_ref(), &self.dir);
        written.map_err(|error| self.latch_if_failed(error))
    }

    /// How far the wall clock is ahead of the time that the retention goes by, and how long it will
    /// be until it is believed, nanoseconds; `None` when it is.
    pub fn retention_clock_waits(&self) -> Option<(i64, i64)> {
        self.config.retention_ns?;
        self.clock.waiting(self.vfs.as_ref())
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
                if !error.leaves_disk_in_doubt() && !self.is_latched() {
                    partition.keep();
                }
                return Err(error);
            }
        };
        {
            let mut state = partition.write();
            state.dirty_from = None;
            state.flushing_from = None;
        }
        let mut partitions = self.partitions.write().unwrap_or_else(|p| p.into_inner());
        partitions.remove(&partition.period);
        drop(partitions);
        self.remove_dropped(dropped);
        Ok(())
    }

    fn drop_damaged(&self, damaged: &DamagedPartition) -> Result<()> {
        let dropped = self.drop_directory(damaged.period)?;
        lock(&self.damaged).remove(&damaged.period);
        self.remove_dropped(dropped);
        Ok(())
    }

    /// Drops a partition from the disk; returns its directory's new name, if it had one.
    fn drop_directory(&self, period: Period) -> Result<Option<PathBuf>> {
        let mut dropped = lock(&self.dropped);
        let vfs = self.vfs.as_ref();
        let segment = self.wal.rotate();
        // Without a file records may still wait to be written to one.
        let first = wal::first_segment(vfs, &self.dir.join(WAL_DIR))?.unwrap_or(0);
        dropped.add(vfs, &self.dir, period, segment, first)?;
        let root = self.dir.join(PARTITIONS_DIR);
        let from = root.join(period.name());
        if !vfs.exists(&from).map_err(|error| self.in_doubt(error))? {
            return Ok(None);
        }
        let to = root.join(format!("{}{DROPPED_INFIX}{segment}", period.name()));
        vfs.rename(&from, &to)?;
        vfs.sync_dir(&root)?;
        Ok(Some(to))
    }

    /// The error of a look at the disk without which a drop cannot go on that has begun.
    fn in_doubt(&self, error: vfs::Error) -> Error {
        self.latch(&error.to_string());
        Error::ReadOnly { reason: error.to_string() }
    }

    /// Removes a dropped partition's directory; what is left of it goes when the store opens.
    fn remove_dropped(&self, dir: Option<PathBuf>) {
        if let Some(dir) = dir
            && let Err(error) = self.vfs.remove_dir_all(&dir)
        {
            self.note_failure("Expire", &error.into());
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
            let is_old = |p: &&Arc<crate::partition::LivePart>| p.part.summary().max_ts < oldest;
            state.parts.iter().filter(is_old).map(|part| part.entry.file).collect()
        };
        if expired.is_empty() {
            return Ok(());
        }
        let mut manifest = partition.read().manifest.clone();
        manifest.parts.retain(|part| !expired.contains(&part.file));
        manifest.forget_applied_tombstones();
        let done: Vec<String> = expired.iter().map(|file| Manifest::part_file(*file)).collect();
        done.iter().for_each(|file| manifest.disown(file.clone()));
        manifest.write(self.vfs.as_ref(), &partition.dir)?;
        {
            let mut state = partition.write();
            state.parts.retain(|part| !expired.contains(&part.entry.file));
            state.manifest = manifest;
        }
        partition.note_loss();
        self.remove_done(partition, &done)
    }
}
