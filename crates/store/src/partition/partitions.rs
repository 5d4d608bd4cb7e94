//! The partitions of a store: those that can be read, those that cannot, those that were dropped.
//!
//! - A period is in one of the first two, or in neither; never in both.
//! - Their heads together have a bound; from a share of it on they are flushed.
//! - A partition that is given up is among the damaged before it leaves the others, so who looks at
//!   both, the others first, misses none.
//! - `dropped` is held while a partition is dropped. It may be locked under `by_period`, not the
//!   other way round.

use crate::base::damage::Damage;
use crate::base::file_names::WAL_DIR;
use crate::base::ground::Ground;
use crate::base::locks::lock;
use crate::base::period::Period;
use crate::partition::Partition;
use crate::partition::damaged::DamagedPartition;
use crate::partition::disk::live_part::LostPart;
use crate::partition::dropped::DroppedPartitions;
use crate::{Error, Limit, Result};
use model::TimeRange;
use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};
use wal::Wal;

/// Partitions at most: all months there are, or 22 years of days. Each has its index and parts
/// mapped, of which Linux lets a process have 65,530, and is written by each flush that finds rows
/// in it.
pub const PARTITIONS_MAX: usize = 8192;
/// Partitions of the present that there may be besides: backfill, or one sender whose clock is wrong,
/// must not keep out what everybody sends now. Nearly three years of days.
pub(crate) const PRESENT_PARTITIONS_MAX: usize = 1024;
// Selections count them so.
const _: () = assert!(PARTITIONS_MAX + PRESENT_PARTITIONS_MAX <= u16::MAX as usize);

/// All partitions of a store.
pub(crate) struct Partitions {
    ground: Arc<Ground>,
    /// Those that can be read, oldest first. Locked briefly, to find or add one.
    by_period: RwLock<BTreeMap<Period, Arc<Partition>>>,
    /// Those of which nothing is read.
    damaged: Mutex<BTreeMap<Period, DamagedPartition>>,
    dropped: Mutex<DroppedPartitions>,
    is_memory_tight: AtomicBool,
}

impl Partitions {
    /// What recovery found.
    pub fn new(
        ground: Arc<Ground>,
        by_period: BTreeMap<Period, Arc<Partition>>,
        damaged: BTreeMap<Period, DamagedPartition>,
        dropped: DroppedPartitions,
    ) -> Partitions {
        assert!(damaged.keys().all(|period| !by_period.contains_key(period)), "one or the other");
        let (by_period, damaged) = (RwLock::new(by_period), Mutex::new(damaged));
        let (dropped, is_memory_tight) = (Mutex::new(dropped), AtomicBool::new(false));
        Partitions { ground, by_period, damaged, dropped, is_memory_tight }
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Period, Arc<Partition>>> {
        self.by_period.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The partition of a period, if there is one that can be read.
    pub fn get(&self, period: Period) -> Option<Arc<Partition>> {
        self.read().get(&period).map(Arc::clone)
    }

    /// The partition of a period, made if it is not there.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::LimitExceeded`] when there are [`PARTITIONS_MAX`] of others, and
    /// [`PRESENT_PARTITIONS_MAX`] more for one of the present.
    pub fn get_or_make(&self, period: Period) -> Result<Arc<Partition>> {
        if let Some(partition) = self.get(period) {
            return Ok(partition);
        }
        let mut by_period = self.by_period.write().unwrap_or_else(|p| p.into_inner());
        if let Some(partition) = by_period.get(&period) {
            return Ok(Arc::clone(partition));
        }
        if let Some(damaged) = lock(&self.damaged).get(&period) {
            return Err(damaged.error());
        }
        let Ground { vfs, damage, length, .. } = &*self.ground;
        let is_present = length.of(vfs.now()).is_near(period);
        let reserve = if is_present { PRESENT_PARTITIONS_MAX } else { 0 };
        check_partition_count(by_period.len() + 1, PARTITIONS_MAX + reserve)?;
        let from = lock(&self.dropped).from(period);
        let dir = self.ground.partition_dir(period);
        let partition = Arc::new(Partition::open(vfs, dir, period, from, damage)?);
        if 0 < from {
            // Two manifests say, too, which records of the log count: without the file `dropped` they
            // would be replayed as samples of the new series.
            partition.create_on_disk(vfs.as_ref())?;
            self.ground.root.note_made(vfs.as_ref(), &self.ground.dir, period, from)?;
        }
        by_period.insert(period, Arc::clone(&partition));
        Ok(partition)
    }

    /// All that can be read, oldest first.
    pub fn all(&self) -> Vec<Arc<Partition>> {
        self.read().values().cloned().collect()
    }

    /// Those of some periods, oldest first.
    pub fn of_periods(&self, periods: impl RangeBounds<Period>) -> Vec<Arc<Partition>> {
        self.read().range(periods).map(|(_, partition)| Arc::clone(partition)).collect()
    }

    /// Those that overlap the range, oldest first.
    pub fn overlapping(&self, range: &TimeRange) -> Vec<Arc<Partition>> {
        if range.is_empty() {
            return Vec::new();
        }
        let length = self.ground.length;
        self.of_periods(length.of(range.start)..=length.of(range.end))
    }

    /// Bytes of all heads.
    pub fn head_size(&self) -> usize {
        self.read().values().map(|partition| partition.head_size()).sum()
    }

    /// Head size that starts a flush: while it runs, as much again may come in.
    pub fn flush_size(&self) -> usize {
        let share = if self.is_memory_tight.load(Ordering::Relaxed) { 8 } else { 2 };
        self.ground.config.head_size_max / share
    }

    /// Lets heads grow less from now on, or as much as configured again.
    pub fn set_memory_tight(&self, is_tight: bool) {
        self.is_memory_tight.store(is_tight, Ordering::Relaxed);
        if is_tight {
            self.ground.signals.wake();
        }
    }

    /// The partitions with a manifest that have not been dropped, each with the last number that its
    /// manifest on disk has given out, as the root manifest names them.
    pub fn made(&self) -> impl Fn() -> Vec<(Period, u64)> {
        let all = self.all().into_iter();
        let made: Vec<_> = all.filter_map(|one| Some((one.last_number()?.1, one))).collect();
        move || {
            let kept = made.iter().filter(|(_, partition)| !partition.is_dropped());
            kept.map(|(number, partition)| (partition.period, *number)).collect()
        }
    }

    /// Names the manifests of all partitions in the root manifest, so that an older copy of one is
    /// noticed from now on.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn name_manifests(&self) -> Result<()> {
        let Ground { vfs, dir, root, health, .. } = &*self.ground;
        let named = root.name_partitions(vfs.as_ref(), dir, &self.made());
        named.map_err(|error| health.latch_if_failed(error))
    }

    /// Timestamp of the newest sample; `None` without any.
    pub fn newest_sample(&self) -> Option<i64> {
        let newest = self.read().values().map(|partition| partition.read().newest()).max();
        newest.filter(|newest| *newest != i64::MIN)
    }

    /// The oldest log segment with rows that are in no part, those of partitions of which nothing
    /// is read included.
    pub fn log_needed_from(&self) -> Option<u64> {
        let needed = self.all().into_iter().filter_map(|p| p.read().log_needed_from()).min();
        // One that is given up is among these before it leaves the others.
        let damaged = self.damaged().into_iter().filter_map(|damaged| damaged.log_from);
        needed.into_iter().chain(damaged).min()
    }

    /// The partitions of which nothing is read, oldest first.
    pub fn damaged(&self) -> Vec<DamagedPartition> {
        lock(&self.damaged).values().cloned().collect()
    }

    pub fn damaged_count(&self) -> usize {
        lock(&self.damaged).len()
    }

    /// What nobody reads of a range, because it cannot be opened: partitions, and parts of others.
    pub fn lost_in(&self, range: &TimeRange) -> Vec<Damage> {
        let damaged = self.damaged().into_iter();
        let overlapping = damaged.filter(|one| one.period.range().overlaps(range));
        let mut lost: Vec<Damage> = overlapping.map(|one| one.damage()).collect();
        let missing = self.ground.root.doubtful().iter();
        lost.extend(missing.filter(|one| one.span.overlaps(range)).cloned());
        for partition in self.overlapping(range) {
            let relative = |part: &LostPart| self.ground.damage.relative(&part.file);
            let state = partition.read();
            let parts = state.disk.lost().iter();
            lost.extend(parts.map(|part| part.damage(partition.period, relative(part))));
        }
        lost
    }

    /// Fails when something of these times is in a partition that cannot be read.
    pub fn check_whole(&self, range: &TimeRange) -> Result<()> {
        let damaged = lock(&self.damaged);
        let hit = damaged.values().find(|damaged| damaged.period.range().overlaps(range));
        hit.map_or(Ok(()), |damaged| Err(damaged.error()))
    }

    /// Takes a partition out of use whose rows cannot be sealed, as a start would that meets their
    /// records: so memory and log do not grow with what can never be flushed. Nothing of it is read
    /// or changed from now on, its records stay in the log, and whoever appends is told to come again.
    /// The caller holds its `change` lock.
    pub fn give_up(&self, partition: &Partition, reason: &str) {
        let (wal_from, log_from) = {
            // Under the lock, so that no record comes after the look.
            let state = partition.write();
            if partition.is_dropped() {
                return;
            }
            partition.set_dropped();
            (state.disk.manifest().wal_from, state.log_needed_from())
        };
        let (period, reason) = (partition.period, reason.to_string());
        let damaged = DamagedPartition { period, reason, wal_from, log_from };
        self.ground.damage.note(damaged.damage(), self.ground.vfs.now());
        let before = lock(&self.damaged).insert(period, damaged);
        assert!(before.is_none(), "a partition is given up once");
        self.remove(period);
    }

    /// Takes a partition out that is dropped: the next row of its time makes a new one.
    pub fn remove(&self, period: Period) {
        self.by_period.write().unwrap_or_else(|p| p.into_inner()).remove(&period);
    }

    /// As [`Partitions::remove`], of one of which nothing is read.
    pub fn remove_damaged(&self, period: Period) {
        lock(&self.damaged).remove(&period);
    }

    /// Rotates the log, writes down that records of a partition count only from there on, then does
    /// what drops it, which is told that segment. No partition is made meanwhile.
    pub fn drop_with<T>(
        &self,
        period: Period,
        wal: &Wal,
        drop: impl FnOnce(u64) -> Result<T>,
    ) -> Result<T> {
        let Ground { vfs, dir, .. } = &*self.ground;
        let mut dropped = lock(&self.dropped);
        let segment = wal.rotate();
        // Without a file records may still wait to be written to one.
        let first = wal::first_segment(vfs.as_ref(), &dir.join(WAL_DIR))?.unwrap_or(0);
        assert!(first <= segment, "the log goes on behind what it has");
        dropped.add(vfs.as_ref(), dir, period, segment, first)?;
        drop(segment)
    }
}

/// Whether a store may have so many partitions.
pub(crate) fn check_partition_count(count: usize, max: usize) -> Result<()> {
    let (value, max) = (count as u64, max as u64);
    let (limit, what) = (Limit::Partitions, "partitions");
    match value <= max {
        true => Ok(()),
        false => Err(Error::LimitExceeded { limit, what, value, max }),
    }
}
