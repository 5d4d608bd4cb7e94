//! A part that readers may see, and one that nobody can read.

use crate::Result;
use crate::base::period::Period;
use crate::part::Part;
use crate::partition::disk::manifest::PartEntry;
use model::TimeRange;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vfs::Vfs;

/// A part that readers may see.
pub(crate) struct LivePart {
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
pub(crate) struct LostPart {
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
        assert!(
            entry.order <= entry.applied,
            "what was deleted before it was written is not in it"
        );
        let (weighed, is_damaged) = (AtomicU64::new(0), AtomicBool::new(false));
        LivePart { part, entry, weighed, is_damaged }
    }

    /// A part that no manifest names.
    pub fn in_memory(part: Part) -> LivePart {
        LivePart::new(part, PartEntry { file: 0, order: 0, applied: 0 })
    }

    /// Opens the part of a manifest's entry.
    ///
    /// # Errors
    /// A [`LostPart`] when it is damaged or gone; an error of an unknown version, or when the system
    /// was short of something.
    pub fn open(
        vfs: &dyn Vfs,
        file: PathBuf,
        entry: PartEntry,
        period: Period,
    ) -> Result<std::result::Result<LivePart, LostPart>> {
        let opened = open_part(vfs, &file);
        let fits = |part: Part| part.check_place(entry.order, &period.range()).map(|()| part);
        match opened.and_then(fits) {
            Ok(part) => Ok(Ok(LivePart::new(part, entry))),
            Err(error) if error.is_unknown_version() || error.is_passing() => Err(error),
            Err(error) => Ok(Err(LostPart { entry, file, reason: error.to_string() })),
        }
    }

    /// Whether rotten bytes were met in it.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// Notes that rotten bytes were met in it.
    pub fn set_damaged(&self) {
        self.is_damaged.store(true, Ordering::Relaxed);
    }

    /// From the oldest sample to the newest.
    pub fn span(&self) -> TimeRange {
        let summary = self.part.summary();
        TimeRange::new(summary.min_ts, summary.max_ts)
    }
}

/// Maps a part's file and reads its directory.
pub(crate) fn open_part(vfs: &dyn Vfs, path: &Path) -> Result<Part> {
    Part::open(vfs.map(path)?, path.to_path_buf())
}
