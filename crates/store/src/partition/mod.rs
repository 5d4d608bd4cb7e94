//! One partition, all there is of one period: its index, its head, its parts, its manifest.
//!
//! ```text
//! [`PartitionState`], under one lock:
//!   series      label sets, keys             active, changed   what was written to lately
//!   head        rows, parts in memory        unflushed         where the log has what no part has
//!   disk        manifest, parts on disk
//! ```
//!
//! Locks, in the order in which they may be taken: `merging`, `change`, `sealing`, `state`.

pub(crate) mod partitions;
pub(crate) mod shared;
pub(crate) mod head;
pub(crate) mod known_series;
pub(crate) mod new_series;
pub(crate) mod series_map;
pub(crate) mod disk;
pub(crate) mod changes;
pub(crate) mod dropped;
pub(crate) mod damaged;
pub(crate) mod retention;
pub(crate) mod unfinished_deletion;
pub(crate) mod histograms;

use crate::base::backoff::Backoff;
use crate::base::damage::DamageList;
use crate::base::directory::root_manifest::has_content;
use crate::base::file_names::{INDEX_DIR, PARTITION_MANIFEST, PARTS_DIR};
use crate::base::locks::lock;
use crate::base::narrow::to_u32;
use crate::base::period::Period;
use crate::log::unflushed::Unflushed;
use crate::partition::changes::ChangedTimes;
use crate::partition::disk::disk_parts::DiskParts;
use crate::partition::disk::live_part::{LivePart, LostPart};
use crate::partition::disk::manifest::Manifest;
use crate::partition::head::Head;
use crate::partition::head::activity::ActiveHour;
use crate::partition::head::seal::Sealing;
use crate::partition::known_series::KnownSeries;
use crate::{Error, Result};
use index::{BlockMatch, Index, OnRot, Search, Step};
use roaring::RoaringBitmap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};
use vfs::Vfs;

/// Bytes of rows that make a part in memory. Larger parts compress better, but the rows are kept
/// twice while they are sealed.
pub(crate) const SEAL_SIZE: usize = 24 << 20;
/// Whether all of a partition is older than the retention keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpiryState {
    /// Something of it is kept.
    Kept,
    /// Nothing is.
    Expired,
}

/// What a partition holds; guarded by [`Partition::read`] and [`Partition::write`].
pub(crate) struct PartitionState {
    /// The series that it knows.
    pub series: KnownSeries,
    /// Samples that are in no file.
    pub head: Head,
    /// Samples that are, and the manifest.
    pub disk: DiskParts,
    /// What the log has that no file has.
    pub unflushed: Unflushed,
    /// The series counted as active.
    pub active: ActiveHour,
    /// When the samples of which times last changed.
    pub changed: ChangedTimes,
}

/// A partition.
pub(crate) struct Partition {
    /// The partition.
    pub period: Period,
    /// Its directory, which may not be there until the first flush.
    pub dir: PathBuf,
    state: RwLock<PartitionState>,
    /// Held while the manifest changes: flush, end of a merge, deletion, snapshot.
    change: Mutex<()>,
    /// Held while taken rows are sealed, so that parts in memory appear in order.
    sealing: Mutex<()>,
    /// Held by the one merge that may run.
    pub merging: Mutex<()>,
    /// Ordinals of the series whose samples somebody asked for since start.
    queried: Mutex<RoaringBitmap>,
    /// When merges are tried again after one failed.
    pub backoff: Backoff,
    /// Whether the last merge was left out for want of room.
    pub lacks_room: AtomicBool,
    /// Whether samples went by deletion or retention since entities without any were looked for.
    may_have_dead: AtomicBool,
    /// Whether retention wants to drop the partition and waits for a merge to give up.
    expiring: AtomicBool,
    /// Whether the partition has been dropped by retention; nothing may be written any more.
    dropped: AtomicBool,
    /// Why rows cannot be sealed, if they cannot: the index that they are of is rotten.
    unsealable: OnceLock<String>,
    /// Bytes of the head, as of the last change; kept apart to be read without the lock.
    head_size: AtomicUsize,
}

impl Partition {
    /// Opens a partition's directory, or makes an empty partition that has none yet. Changes
    /// nothing. Records of log segments before `wal_from` do not count, whatever the manifest says.
    ///
    /// # Errors
    /// When the manifest is missing beside content or cannot be read, or the index cannot: then
    /// the partition is damaged. A part that cannot be opened is noted and left out. Of a file of
    /// an unknown version: [`Error::is_unknown_version`].
    pub fn open(
        vfs: &Arc<dyn Vfs>,
        dir: PathBuf,
        period: Period,
        wal_from: u64,
        damage_list: &DamageList,
    ) -> Result<Partition> {
        let found = read_manifest(vfs.as_ref(), &dir)?;
        // A copy may have come without its empty folders.
        let has_folders = vfs.exists(&dir.join(PARTS_DIR))? && vfs.exists(&dir.join(INDEX_DIR))?;
        let is_on_disk = found.is_some() && has_folders;
        let mut manifest = found.unwrap_or_default();
        manifest.sequence_next = manifest.sequence_next.max(1);
        manifest.wal_from = manifest.wal_from.max(wal_from);
        let (parts, lost_parts) = open_parts(vfs.as_ref(), &dir, period, &manifest)?;
        for lost in &lost_parts {
            damage_list.note(lost.damage(period, damage_list.relative(&lost.file)), vfs.now());
        }
        let index = Index::open(Arc::clone(vfs), &dir.join(INDEX_DIR), &manifest.segments)?;
        // Version 1 did not say which footers they have.
        manifest.segments = index.segments().iter().map(|segment| segment.entry()).collect();
        let series = KnownSeries::new(index);
        let state = PartitionState {
            head: Head::new(series.entities_end()),
            series,
            disk: DiskParts::new(manifest, is_on_disk, parts, lost_parts),
            unflushed: Unflushed::default(),
            active: ActiveHour::default(),
            changed: ChangedTimes::new(period.range()),
        };
        Ok(Partition {
            period,
            dir,
            state: RwLock::new(state),
            change: Mutex::new(()),
            sealing: Mutex::new(()),
            merging: Mutex::new(()),
            queried: Mutex::new(RoaringBitmap::new()),
            backoff: Backoff::default(),
            lacks_room: AtomicBool::new(false),
            may_have_dead: AtomicBool::new(false),
            expiring: AtomicBool::new(false),
            dropped: AtomicBool::new(false),
            unsealable: OnceLock::new(),
            head_size: AtomicUsize::new(0),
        })
    }

    /// Last number that the manifest on disk has given out, 0 without any; `None` if there is no manifest.
    pub fn last_number(&self) -> Option<(Period, u64)> {
        let state = self.read();
        let is_there = state.disk.is_made() && !self.is_dropped();
        is_there.then(|| (self.period, state.disk.last_number()))
    }

    /// Makes the folders of a partition that has none yet, and a manifest before anything is in
    /// them: content without one is damage.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn create_on_disk(&self, vfs: &dyn Vfs) -> Result<()> {
        let manifest = {
            let state = self.read();
            if state.disk.is_made() {
                return Ok(());
            }
            state.disk.manifest().clone()
        };
        for folder in [PARTS_DIR, INDEX_DIR] {
            vfs.create_dir_all(&self.dir.join(folder))?;
        }
        manifest.write(vfs, &self.dir)?;
        self.write().disk.set_made(manifest.sequence_next);
        Ok(())
    }

    /// Shared access. A panic of another thread while it wrote leaves nothing half-done that a
    /// reader could not bear, so poisoning is ignored.
    pub fn read(&self) -> RwLockReadGuard<'_, PartitionState> {
        self.state.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Exclusive access.
    pub fn write(&self) -> RwLockWriteGuard<'_, PartitionState> {
        self.state.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The right to change the manifest.
    pub fn lock_change(&self) -> MutexGuard<'_, ()> {
        lock(&self.change)
    }

    /// Asks a merge under way to give up, or takes that back.
    pub fn set_expiring(&self, is_expiring: ExpiryState) {
        self.expiring.store(is_expiring == ExpiryState::Expired, Ordering::Release);
    }

    /// Whether retention wants to drop the partition.
    pub fn is_expiring(&self) -> bool {
        self.expiring.load(Ordering::Acquire)
    }

    /// Whether retention has dropped the partition.
    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Marks the partition as dropped: who comes for it looks for another.
    pub fn set_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// Takes [`Partition::set_dropped`] back, before anything was written because of it.
    pub fn keep(&self) {
        self.dropped.store(false, Ordering::Release);
    }

    /// Notes that the samples of these series are about to be read.
    pub fn note_queried(&self, groups: &[BlockMatch]) {
        let mut queried = lock(&self.queried);
        for group in groups {
            for column in &group.columns {
                if group.slots.is_all() {
                    let first = group.block.ordinal(column, 0);
                    queried.insert_range(first..=first + to_u32(group.slots.len() - 1));
                } else {
                    queried
                        .extend(group.slots.iter().map(|slot| group.block.ordinal(column, slot)));
                }
            }
        }
    }

    /// The series noted by [`Partition::note_queried`].
    pub fn queried(&self) -> RoaringBitmap {
        lock(&self.queried).clone()
    }

    /// Notes that samples went by deletion or retention.
    pub fn note_loss(&self) {
        self.may_have_dead.store(true, Ordering::Release);
    }

    /// Whether [`Partition::note_loss`] was called since the last call of this.
    pub fn take_loss(&self) -> bool {
        self.may_have_dead.swap(false, Ordering::AcqRel)
    }

    /// Bytes of memory that wait to be flushed.
    pub fn head_size(&self) -> usize {
        self.head_size.load(Ordering::Relaxed)
    }

    /// Recomputes [`Partition::head_size`].
    pub fn note_head_size(&self, state: &PartitionState) {
        self.head_size.store(state.head_size(), Ordering::Relaxed);
    }

    /// Seals all taken rows, oldest first. Called by whoever took rows, and by a flush.
    pub fn seal_taken(&self) -> Result<()> {
        let _order = lock(&self.sealing);
        loop {
            let oldest = self.read().head.oldest_taken();
            let Some((number, view)) = oldest else { return Ok(()) };
            let mut sealing = Sealing::new(&view);
            let cut = |sealing: &mut Sealing<'_>| {
                let cut = sealing.cut_by_block(&self.read().series.index);
                cut.map_err(|error| self.note_unsealable(error))
            };
            while cut(&mut sealing)? {
                sealing.encode()?;
            }
            let part = sealing.finish()?;
            let mut state = self.write();
            state.head.put_sealed(number, part);
            self.note_head_size(&state);
        }
    }

    /// Starts the arena's row ids again before they run out, some hours of full load after the last
    /// time. Rows that are not sealed could not be found by their new ids, so all are sealed first,
    /// under the lock.
    pub fn renew_arena(&self, words_max: usize) -> Result<()> {
        if !self.read().head.arena.is_worn(words_max) {
            return Ok(());
        }
        let _order = lock(&self.sealing);
        let mut state = self.write();
        state.head.take_arena();
        state.seal_taken().map_err(|error| self.note_unsealable(error))?;
        state.head.arena.renew();
        state.active.restart();
        self.note_head_size(&state);
        Ok(())
    }

    /// Ends a search of the index, which keeps writers out for short steps only.
    pub fn search(
        &self,
        mut search: Search<'_>,
        on_rot: &mut OnRot<'_>,
    ) -> index::Result<Vec<BlockMatch>> {
        loop {
            let step = search.step(&self.read().series.index, on_rot)?;
            if step == Step::Done {
                return Ok(search.take());
            }
            search.run(on_rot)?;
        }
    }

    /// Exclusive access with all taken rows sealed: for who needs both at one moment.
    pub fn write_sealed(&self) -> Result<RwLockWriteGuard<'_, PartitionState>> {
        let _order = lock(&self.sealing);
        let mut state = self.write();
        state.seal_taken().map_err(|error| self.note_unsealable(error))?;
        self.note_head_size(&state);
        Ok(state)
    }

    /// Why rows that were taken cannot be sealed, if they cannot: see `Store::give_up`.
    pub fn unsealable(&self) -> Option<&str> {
        self.unsealable.get().map(String::as_str)
    }

    #[cold]
    fn note_unsealable(&self, error: Error) -> Error {
        if error.is_corrupt() {
            self.unsealable.get_or_init(|| format!("rows cannot be sealed: {error}"));
        }
        error
    }

    /// Where a part's file is.
    pub fn part_path(&self, file: u64) -> PathBuf {
        self.dir.join(PARTS_DIR).join(Manifest::part_name(file))
    }
}

impl PartitionState {
    /// Oldest and newest timestamp of all parts and rows; `None` when there is none.
    pub fn time_min_max(&self) -> Option<(i64, i64)> {
        let parts = self.disk.parts().iter().chain(self.head.parts()).map(|part| part.span());
        let parts = parts.map(|span| Some((span.start, span.end)));
        let taken = self.head.taken().iter().flat_map(|taken| taken.view.rows());
        let taken = taken.map(|row| Some((row.timestamp, row.timestamp)));
        parts.chain(taken).fold(self.head.arena.time_min_max(), join_spans)
    }

    /// Seals all taken rows, oldest first; for the holder of `sealing`.
    fn seal_taken(&mut self) -> Result<()> {
        while let Some((number, view)) = self.head.oldest_taken() {
            let mut sealing = Sealing::new(&view);
            while sealing.cut_by_block(&self.series.index)? {
                sealing.encode()?;
            }
            self.head.put_sealed(number, sealing.finish()?);
        }
        Ok(())
    }

    /// Bytes of memory that wait to be flushed: rows, and label sets that no segment holds yet.
    pub fn head_size(&self) -> usize {
        self.series.unflushed_size() + self.head.size()
    }

    /// Timestamp of the newest sample; [`i64::MIN`] without any.
    pub fn newest(&self) -> i64 {
        let in_parts = self.disk.parts().iter().chain(self.head.parts());
        let in_parts = in_parts.map(|part| part.part.summary().max_ts);
        let in_rows = self.head.arena.time_min_max().map(|(_, max)| max);
        in_parts.chain(in_rows).max().unwrap_or(i64::MIN)
    }

    /// The oldest log segment with a record that is not in a part.
    pub fn log_needed_from(&self) -> Option<u64> {
        self.unflushed.log_needed_from()
    }
}

/// The manifest, or `None` in a partition that is only about to be. One that is missing beside what
/// it should name is damage, and no reason to think that nothing is there.
fn read_manifest(vfs: &dyn Vfs, dir: &Path) -> Result<Option<Manifest>> {
    let found = Manifest::read(vfs, dir)?;
    if found.is_none() && has_content(vfs, dir)? {
        let what = "it is missing, but there are parts or index segments".to_string();
        return Err(Error::Corrupt { file: dir.join(PARTITION_MANIFEST), offset: 0, what });
    }
    Ok(found)
}

fn open_parts(
    vfs: &dyn Vfs,
    dir: &Path,
    period: Period,
    manifest: &Manifest,
) -> Result<(Vec<Arc<LivePart>>, Vec<LostPart>)> {
    let (mut parts, mut lost) = (Vec::new(), Vec::new());
    for entry in &manifest.parts {
        let file = dir.join(PARTS_DIR).join(Manifest::part_name(entry.file));
        match LivePart::open(vfs, file, *entry, period)? {
            Ok(part) => parts.push(Arc::new(part)),
            Err(part) => lost.push(part),
        }
    }
    Ok((parts, lost))
}

/// Smallest span that covers both.
pub(crate) fn join_spans(a: Option<(i64, i64)>, b: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}
