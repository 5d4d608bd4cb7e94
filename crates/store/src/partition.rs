//! One calendar month: its index, its head, its parts, its manifest.
//!
//! ```text
//!   rows ──► arena ──take──► taken ──seal──► parts in memory ──flush──► parts on disk ──merge──► fewer
//!            newest ◄────────────── who wins on equal timestamps ───────────────────── oldest
//! ```
//!
//! Locks, in the order in which they may be taken: `change`, `sealing`, `state`.

use crate::activity::ActiveHour;
use crate::append::Piece;
use crate::arena::{Arena, ArenaView, NO_ROW};
use crate::births::Births;
use crate::changes::{ChangeClock, ChangedTimes};
use crate::histograms::names;
use crate::manifest::{Manifest, PartEntry, Tombstone};
use crate::part::Part;
use crate::seal::sort_rows;
use crate::series_map::SeriesMap;
use crate::span::Month;
use crate::store::lock;
use crate::{Error, Result};
use index::{BlockMatch, Index};
use model::TimeRange;
use roaring::RoaringBitmap;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use vfs::Vfs;

/// Bytes of rows that make a part in memory. Larger parts compress better, but the rows are kept
/// twice while they are sealed.
pub const SEAL_SIZE: usize = 24 << 20;
/// Folder of the parts in a partition's directory.
pub const PARTS_DIR: &str = "parts";
/// Folder of the index segments in a partition's directory.
pub const INDEX_DIR: &str = "index";
/// What is appended to the name of a file that is set aside.
pub const CORRUPT_SUFFIX: &str = ".corrupt";

/// A part that readers may see.
pub struct LivePart {
    /// The part.
    pub part: Part,
    /// Its place in the manifest; meaningless for a part in memory.
    pub entry: PartEntry,
    /// The newest deletion that was weighed against the cost of rewriting the part.
    pub weighed: AtomicU64,
    /// Whether rotten bytes were met in it: it is read, and never merged.
    is_damaged: AtomicBool,
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
    /// Who was registered in the last hours.
    pub births: VecDeque<Births>,
    /// The series counted as active.
    pub active: ActiveHour,
    /// When the samples of which times last changed.
    pub changed: ChangedTimes,
    /// What the disk says.
    pub manifest: Manifest,
    /// Log segment of the oldest record that no part holds yet.
    pub dirty_from: Option<u64>,
    /// Log segment from which a flush in progress protects the log.
    pub flushing_from: Option<u64>,
    /// Log segment that the manifest of the flush in progress will start from.
    pub wal_next: u64,
    /// Wall clock of that record's arrival.
    pub dirty_since_ns: i64,
    /// Unflushed entities when their size was last measured, and that size in bytes.
    index_size: (u64, usize),
    /// The next [`Taken::number`].
    taken_next: u64,
}

/// A partition.
pub struct Partition {
    /// The month.
    pub month: Month,
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
    /// Whether samples went by deletion or retention since entities without any were looked for.
    may_have_dead: AtomicBool,
    /// Whether the partition has been dropped by retention; nothing may be written any more.
    dropped: AtomicBool,
    /// Bytes of the head, as of the last change; kept apart to be read without the lock.
    head_size: AtomicUsize,
}

impl Partition {
    /// Opens a partition's directory, or makes an empty partition that has none yet.
    ///
    /// Files the manifest does not name are removed; parts that do not open are set aside and
    /// their names pushed to `set_aside`.
    pub fn open(
        vfs: &Arc<dyn Vfs>,
        dir: PathBuf,
        month: Month,
        set_aside: &mut Vec<PathBuf>,
    ) -> Result<Partition> {
        let mut manifest = match Manifest::read(vfs.as_ref(), &dir)? {
            Some(manifest) => {
                // A process that was killed may have left its name in the system's cache alone, and
                // files that only the one before it names are about to go.
                vfs.sync_dir(&dir)?;
                manifest
            }
            None => Manifest::default(),
        };
        manifest.sequence_next = manifest.sequence_next.max(1);
        remove_unnamed_files(vfs.as_ref(), &dir, &manifest)?;
        let parts = open_parts(vfs.as_ref(), &dir, &mut manifest, set_aside)?;
        let index = Index::open(Arc::clone(vfs), &dir.join(INDEX_DIR), &manifest.segments)?;
        let mut arena = Arena::new();
        arena.reserve_entities(index.memory().next_entity() as usize);
        let state = State {
            index,
            map: SeriesMap::new(),
            pieces: Vec::new(),
            arena,
            taken: Vec::new(),
            memory_parts: Vec::new(),
            parts,
            births: VecDeque::new(),
            active: ActiveHour::default(),
            changed: ChangedTimes::new(month.range()),
            manifest,
            dirty_from: None,
            flushing_from: None,
            wal_next: 0,
            dirty_since_ns: 0,
            index_size: (0, 0),
            taken_next: 0,
        };
        Ok(Partition {
            month,
            dir,
            state: RwLock::new(state),
            change: Mutex::new(()),
            sealing: Mutex::new(()),
            merging: Mutex::new(()),
            queried: Mutex::new(RoaringBitmap::new()),
            may_have_dead: AtomicBool::new(false),
            dropped: AtomicBool::new(false),
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

    /// Whether retention has dropped the partition.
    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Marks the partition as dropped.
    pub fn set_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
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
            plan.cut_by_block(&self.read().index)?;
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
        state.seal_taken()?;
        state.arena.renew();
        state.active.restart();
        self.note_head_size(&state);
        Ok(())
    }

    /// Exclusive access with all taken rows sealed: for who needs both at one moment.
    pub fn write_sealed(&self) -> Result<RwLockWriteGuard<'_, State>> {
        let _order = lock(&self.sealing);
        let mut state = self.write();
        state.seal_taken()?;
        self.note_head_size(&state);
        Ok(state)
    }

    /// Where a part's file is.
    pub fn part_path(&self, file: u64) -> PathBuf {
        self.dir.join(PARTS_DIR).join(Manifest::part_name(file))
    }

    /// Removes a corrupt part from the partition and renames its file.
    pub fn set_aside(&self, vfs: &dyn Vfs, changes: &ChangeClock, file: u64) -> Result<()> {
        let _change = self.lock_change();
        let mut manifest = self.read().manifest.clone();
        let count = manifest.parts.len();
        manifest.parts.retain(|entry| entry.file != file);
        if manifest.parts.len() == count {
            return Ok(());
        }
        manifest.write(vfs, &self.dir)?;
        rename_aside(vfs, &self.part_path(file))?;
        let mut state = self.write();
        let lost = state.parts.iter().find(|part| part.entry.file == file);
        let lost = lost.map(|part| part.part.summary()).map(|s| TimeRange::new(s.min_ts, s.max_ts));
        state.changed.note_range(&lost.unwrap_or(TimeRange::ALL), changes.now());
        state.parts.retain(|part| part.entry.file != file);
        state.manifest = manifest;
        Ok(())
    }
}

impl State {
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

    /// Puts a part in the place of the oldest taken rows, from which it was made.
    fn put_sealed(&mut self, number: u64, part: Part) {
        let removed = self.taken.remove(0);
        assert!(removed.number == number, "only the holder of `sealing` removes");
        let entry = PartEntry { file: 0, order: 0, applied: 0 };
        let part = Arc::new(LivePart::new(part, entry));
        self.memory_parts.push(MemoryPart { number, part });
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

fn open_parts(
    vfs: &dyn Vfs,
    dir: &Path,
    manifest: &mut Manifest,
    set_aside: &mut Vec<PathBuf>,
) -> Result<Vec<Arc<LivePart>>> {
    let mut parts = Vec::new();
    let mut good = Vec::new();
    for entry in &manifest.parts {
        let path = dir.join(PARTS_DIR).join(Manifest::part_name(entry.file));
        match open_part(vfs, &path) {
            Ok(part) => {
                parts.push(Arc::new(LivePart::new(part, *entry)));
                good.push(*entry);
            }
            Err(Error::Corrupt { .. }) => {
                rename_aside(vfs, &path)?;
                set_aside.push(path);
            }
            Err(error) => return Err(error),
        }
    }
    if good.len() < manifest.parts.len() {
        manifest.parts = good;
        manifest.write(vfs, dir)?;
    }
    Ok(parts)
}

/// Maps a part's file and reads its directory.
pub fn open_part(vfs: &dyn Vfs, path: &Path) -> Result<Part> {
    Part::open(vfs.map(path)?, path.to_path_buf())
}

fn rename_aside(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(CORRUPT_SUFFIX);
    vfs.rename(path, Path::new(&aside))?;
    Ok(vfs.sync_dir(path.parent().expect("a part is in a directory"))?)
}

/// Removes what a crash left: parts and segments that no manifest came to name.
fn remove_unnamed_files(vfs: &dyn Vfs, dir: &Path, manifest: &Manifest) -> Result<()> {
    for (folder, named) in [
        (PARTS_DIR, manifest.parts.iter().map(|p| Manifest::part_name(p.file)).collect()),
        (INDEX_DIR, manifest.segments.clone()),
    ] {
        let folder = dir.join(folder);
        if !vfs.exists(&folder)? {
            continue;
        }
        for name in vfs.list(&folder)? {
            if !named.contains(&name) && !name.ends_with(CORRUPT_SUFFIX) {
                vfs.remove(&folder.join(name))?;
            }
        }
    }
    Ok(())
}
