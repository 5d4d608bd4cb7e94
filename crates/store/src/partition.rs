//! One partition, all there is of one period: its index, its head, its parts, its manifest.
//!
//! ```text
//!   rows ──► arena ──take──► taken ──seal──► parts in memory ──flush──► parts on disk ──merge──► fewer
//!            newest ◄────────────── who wins on equal timestamps ───────────────────── oldest
//! ```
//!
//! Locks, in the order in which they may be taken: `merging`, `change`, `sealing`, `state`.
//!
//! Numbers of files are given out under the lock and never twice; a file whose number was given out
//! is in the manifest's list of those that may go until the manifest names it or it is removed.

use crate::activity::ActiveHour;
use crate::append::Piece;
use crate::arena::{Arena, ArenaView, NO_ROW};
use crate::backoff::Backoff;
use crate::births::Births;
use crate::changes::ChangedTimes;
use crate::damage::DamageBook;
use crate::histograms::names;
use crate::manifest::{self, Manifest, PartEntry, Tombstone};
use crate::part::Part;
use crate::period::Period;
use crate::seal::sort_rows;
use crate::series_map::SeriesMap;
use crate::store::lock;
use crate::{Error, Result, strays};
use index::{BlockMatch, Index};
use roaring::RoaringBitmap;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};
use vfs::Vfs;

/// Bytes of rows that make a part in memory. Larger parts compress better, but the rows are kept
/// twice while they are sealed.
pub const SEAL_SIZE: usize = 24 << 20;
/// Folder of the parts in a partition's directory.
pub const PARTS_DIR: &str = "parts";
/// Folder of the index segments in a partition's directory.
pub const INDEX_DIR: &str = "index";
/// What is appended to the name of a side file that is set aside.
pub const CORRUPT_SUFFIX: &str = ".corrupt";

/// Whether all of a partition is older than the retention keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryState {
    /// Something of it is kept.
    Kept,
    /// Nothing is.
    Expired,
}

/// A part that readers may see.
pub struct LivePart {
    /// The part.
    pub part: Part,
    /// Its place in the manifest; meaningless for a part in memory.
    pub entry: PartEntry,
    /// The newest deletion that was weighed against the cost of rewriting the part.
    pub weighed: AtomicU64,
    /// Whether damage was met in it. It is read as far as it is whole, and merged no more: a merge
    /// would make what is lost look as if it never was.
    is_damaged: AtomicBool,
}

/// A part of the manifest that cannot be opened. It stays where it is, under its name, in the
/// manifest; it is never merged, and goes only with its partition.
#[derive(Clone, Debug)]
pub struct LostPart {
    /// Its place in the manifest.
    pub entry: PartEntry,
    /// Its file.
    pub file: PathBuf,
    /// Why it cannot be opened, in words.
    pub reason: String,
}

impl LivePart {
    /// A part at its place in the manifest.
    pub fn new(part: Part, entry: PartEntry) -> LivePart {
        let (weighed, is_damaged) = (AtomicU64::new(0), AtomicBool::new(false));
        LivePart { part, entry, weighed, is_damaged }
    }

    /// Whether rotten bytes were met in it.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// Notes that rotten bytes were met in it.
    pub fn set_damaged(&self) {
        self.is_damaged.store(true, Ordering::Relaxed);
    }
}

/// Rows taken out of the arena, on their way to a part in memory.
pub struct Taken {
    /// Order among taken rows and parts in memory of this partition.
    pub number: u64,
    /// The rows.
    pub view: Arc<ArenaView>,
}

/// A sealed part of the head.
#[derive(Clone)]
pub struct MemoryPart {
    /// As [`Taken::number`].
    pub number: u64,
    /// The part; its bytes are in memory.
    pub part: Arc<LivePart>,
}

/// What a partition holds; guarded by [`Partition::read`] and [`Partition::write`].
pub struct State {
    /// Label sets to ordinals and back.
    pub index: Index,
    /// Raw keys to entities; forgotten when the partition is flushed and idle.
    pub map: SeriesMap,
    /// What [`crate::series_map::Target::Pieces`] points to.
    pub pieces: Vec<Box<[Piece]>>,
    /// The newest rows.
    pub arena: Arena,
    /// Rows being sealed, oldest first.
    pub taken: Vec<Taken>,
    /// Sealed rows, oldest first.
    pub memory_parts: Vec<MemoryPart>,
    /// Parts on disk, by order.
    pub parts: Vec<Arc<LivePart>>,
    /// Parts of the manifest that cannot be opened.
    pub lost_parts: Vec<LostPart>,
    /// Who was registered in the last hours.
    pub births: VecDeque<Births>,
    /// The series counted as active.
    pub active: ActiveHour,
    /// When the samples of which times last changed.
    pub changed: ChangedTimes,
    /// What the disk says; numbers that were given out since are taken into account.
    pub manifest: Manifest,
    /// Whether there is a manifest on the disk, and the folders that it speaks of.
    pub is_on_disk: bool,
    /// Log segment of the oldest record that no part holds yet.
    pub dirty_from: Option<u64>,
    /// Log segment from which a flush in progress protects the log.
    pub flushing_from: Option<u64>,
    /// Log segment that the manifest of the flush in progress will start from.
    pub wal_next: u64,
    /// Rows taken from this number on are not for the flush in progress.
    pub flush_end: u64,
    /// Wall clock of the arrival of the oldest record that no part holds.
    pub dirty_since_ns: i64,
    /// Unflushed entities when their size was last measured, and that size in bytes.
    index_size: (u64, usize),
    /// The next [`Taken::number`].
    taken_next: u64,
}

/// A partition.
pub struct Partition {
    /// The partition.
    pub period: Period,
    /// Its directory, which may not be there until the first flush.
    pub dir: PathBuf,
    state: RwLock<State>,
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
        book: &DamageBook,
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
            book.note(lost.damage(period, book.relative(&lost.file)), vfs.now());
        }
        let index = Index::open(Arc::clone(vfs), &dir.join(INDEX_DIR), &manifest.segments)?;
        // Version 1 did not say which footers they have.
        manifest.segments = index.segments().iter().map(|segment| segment.entry()).collect();
        let state = State::new(period, manifest, is_on_disk, index, parts, lost_parts);
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

    /// Shared access. A panic of another thread while it wrote leaves nothing half-done that a
    /// reader could not bear, so poisoning is ignored.
    pub fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Exclusive access.
    pub fn write(&self) -> RwLockWriteGuard<'_, State> {
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
                    queried.insert_range(first..=first + (group.slots.len() - 1) as u32);
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
    pub fn note_head_size(&self, state: &State) {
        self.head_size.store(state.head_size(), Ordering::Relaxed);
    }

    /// Seals all taken rows, oldest first. Called by whoever took rows, and by a flush.
    pub fn seal_taken(&self) -> Result<()> {
        let _order = lock(&self.sealing);
        loop {
            let oldest = self.read().taken.first().map(|t| (t.number, Arc::clone(&t.view)));
            let Some((number, view)) = oldest else { return Ok(()) };
            let mut plan = sort_rows(&view);
            let cut = plan.cut_by_block(&self.read().index);
            cut.map_err(|error| self.note_unsealable(error))?;
            let part = plan.encode(&view)?;
            let mut state = self.write();
            state.put_sealed(number, part);
            self.note_head_size(&state);
        }
    }

    /// Starts the arena's row ids again before they run out, some hours of full load after the last
    /// time. Rows that are not sealed could not be found by their new ids, so all are sealed first,
    /// under the lock.
    pub fn renew_arena(&self, words_max: usize) -> Result<()> {
        if !self.read().arena.is_worn(words_max) {
            return Ok(());
        }
        let _order = lock(&self.sealing);
        let mut state = self.write();
        state.take_arena();
        state.seal_taken().map_err(|error| self.note_unsealable(error))?;
        state.arena.renew();
        state.active.restart();
        self.note_head_size(&state);
        Ok(())
    }

    /// Exclusive access with all taken rows sealed: for who needs both at one moment.
    pub fn write_sealed(&self) -> Result<RwLockWriteGuard<'_, State>> {
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

impl State {
    fn new(
        period: Period,
        manifest: Manifest,
        is_on_disk: bool,
        index: Index,
        parts: Vec<Arc<LivePart>>,
        lost_parts: Vec<LostPart>,
    ) -> State {
        let mut arena = Arena::new();
        arena.reserve_entities(index.memory().next_entity() as usize);
        State {
            index,
            map: SeriesMap::new(),
            pieces: Vec::new(),
            arena,
            taken: Vec::new(),
            memory_parts: Vec::new(),
            parts,
            lost_parts,
            births: VecDeque::new(),
            active: ActiveHour::default(),
            changed: ChangedTimes::new(period.range()),
            manifest,
            is_on_disk,
            dirty_from: None,
            flushing_from: None,
            wal_next: 0,
            flush_end: 0,
            dirty_since_ns: 0,
            index_size: (0, 0),
            taken_next: 0,
        }
    }

    /// Seals all taken rows, oldest first; for the holder of `sealing`.
    fn seal_taken(&mut self) -> Result<()> {
        while let Some(oldest) = self.taken.first() {
            let (number, view) = (oldest.number, Arc::clone(&oldest.view));
            let mut plan = sort_rows(&view);
            plan.cut_by_block(&self.index)?;
            self.put_sealed(number, plan.encode(&view)?);
        }
        Ok(())
    }

    /// Gives out the number of a part's file, never to be given out again.
    pub fn reserve_part(&mut self) -> u64 {
        let number = self.manifest.sequence_next;
        self.manifest.sequence_next += 1;
        self.manifest.disown(Manifest::part_file(number));
        number
    }

    /// Whether a part of the partition is damaged: what only it holds is still wanted.
    pub fn has_damaged_parts(&self) -> bool {
        !self.lost_parts.is_empty() || self.parts.iter().any(|part| part.is_damaged())
    }

    /// Puts a part in the place of the oldest taken rows, from which it was made.
    fn put_sealed(&mut self, number: u64, part: Part) {
        let removed = self.taken.remove(0);
        assert!(removed.number == number, "only the holder of `sealing` removes");
        let entry = PartEntry { file: 0, order: 0, applied: 0 };
        let part = Arc::new(LivePart::new(part, entry));
        self.memory_parts.push(MemoryPart { number, part });
    }

    /// The number that the next rows will have that are taken.
    pub fn taken_end(&self) -> u64 {
        self.taken_next
    }

    /// Takes the arena's rows out, if there are any, to be sealed.
    pub fn take_arena(&mut self) {
        if self.arena.samples() == 0 {
            return;
        }
        let view = Arc::new(self.arena.take());
        self.taken.push(Taken { number: self.taken_next, view });
        self.taken_next += 1;
    }

    /// Bytes of memory that wait to be flushed: rows, and label sets that no segment holds yet.
    pub fn head_size(&self) -> usize {
        self.index_size.1
            + self.arena.rows_size()
            + self.taken.iter().map(|taken| taken.view.size()).sum::<usize>()
            + self.memory_parts.iter().map(|m| m.part.part.summary().size as usize).sum::<usize>()
    }

    /// Measures the unflushed label sets again once they have grown noticeably; measuring looks at
    /// every label name, which is too much for every batch.
    pub fn note_index_size(&mut self) {
        let count = self.index.unfrozen_entity_count();
        let (known, _) = self.index_size;
        if count < known || known + known / 16 + 256 < count {
            self.index_size = (count, self.index.memory_size());
        }
    }

    /// The id of the oldest row that is not sealed yet, or of what would be it: an entity whose
    /// newest row is older has none.
    pub fn first_unsealed_row(&self) -> u32 {
        let taken = self.taken.iter().map(|taken| taken.view.first_row());
        let oldest = taken.chain([self.arena.first_row()]).min();
        oldest.unwrap_or(NO_ROW).max(NO_ROW + 1)
    }

    /// Samples in rows and singles that are not sealed yet.
    pub fn unsealed_samples(&self) -> u64 {
        self.arena.samples() + self.taken.iter().map(|taken| taken.view.samples()).sum::<u64>()
    }

    /// The series that people see: those that hold histograms are not among them.
    pub fn visible_series(&self) -> u64 {
        // A rotten index is for those to report who read it on purpose.
        let hidden = self.index.series_with_tag(names::LABEL).unwrap_or(0);
        self.index.series_count().saturating_sub(hidden)
    }

    /// Samples that wait to be flushed.
    pub fn head_samples(&self) -> u64 {
        self.unsealed_samples()
            + self.memory_parts.iter().map(|m| m.part.part.summary().samples).sum::<u64>()
    }

    /// The tombstones that a part has not applied.
    pub fn tombstones_for(&self, entry: &PartEntry) -> Vec<Tombstone> {
        let applies = |t: &&Tombstone| entry.applied < t.sequence;
        self.manifest.tombstones.iter().filter(applies).cloned().collect()
    }
}

/// The manifest, or `None` in a partition that is only about to be. One that is missing beside what
/// it should name is damage, and no reason to think that nothing is there.
fn read_manifest(vfs: &dyn Vfs, dir: &Path) -> Result<Option<Manifest>> {
    let found = Manifest::read(vfs, dir)?;
    if found.is_none() && strays::has_content(vfs, dir)? {
        let what = "it is missing, but there are parts or index segments".to_string();
        return Err(Error::Corrupt { file: dir.join(manifest::FILE_NAME), offset: 0, what });
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
        let opened = open_part(vfs, &file);
        match opened.and_then(|part| part.check_place(entry.order, &period.range()).map(|()| part))
        {
            Ok(part) => parts.push(Arc::new(LivePart::new(part, *entry))),
            Err(error) if error.is_unknown_version() || error.is_passing() => return Err(error),
            Err(error) => lost.push(LostPart { entry: *entry, file, reason: error.to_string() }),
        }
    }
    Ok((parts, lost))
}

/// Maps a part's file and reads its directory.
pub fn open_part(vfs: &dyn Vfs, path: &Path) -> Result<Part> {
    Part::open(vfs.map(path)?, path.to_path_buf())
}
