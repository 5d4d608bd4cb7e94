//! What of a partition is on disk: its manifest, and the parts that this names.
//!
//! - `parts` and `lost` are what the manifest names, `parts` in its order: the oldest first.
//! - A number of a file is given out once, and its file is in the manifest's list of those that may
//!   go until the manifest names it or it is removed. What the disk says lags behind by that.
//! - The manifest here changes with the parts, after the one on the disk, under the partition's
//!   lock; so a reader finds both of one moment.

use crate::Result;
use crate::partition::disk::live_part::{LivePart, LostPart};
use crate::partition::disk::manifest::{Manifest, PartEntry, Tombstone};
use crate::partition::disk::strays;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::Vfs;

/// The parts of a partition that are files.
pub(crate) struct DiskParts {
    /// By order.
    parts: Vec<Arc<LivePart>>,
    /// Those that cannot be opened.
    lost: Vec<LostPart>,
    /// What the disk says; numbers that were given out since are taken into account.
    manifest: Manifest,
    /// Whether there is a manifest on the disk, and the folders that it speaks of.
    is_made: bool,
    /// `sequence_next` of the manifest on the disk; 0 without one.
    written: u64,
}

impl DiskParts {
    /// What was found.
    pub fn new(
        manifest: Manifest,
        is_made: bool,
        parts: Vec<Arc<LivePart>>,
        lost: Vec<LostPart>,
    ) -> DiskParts {
        assert!(parts.len() + lost.len() == manifest.parts.len(), "each is one or the other");
        assert!(parts.is_sorted_by(|a, b| a.entry.order < b.entry.order), "parts are by order");
        let written = if is_made { manifest.sequence_next } else { 0 };
        DiskParts { parts, lost, manifest, is_made, written }
    }

    /// Those that can be read, oldest first.
    pub fn parts(&self) -> &[Arc<LivePart>] {
        &self.parts
    }

    /// Those of the manifest that cannot be opened.
    pub fn lost(&self) -> &[LostPart] {
        &self.lost
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Copy of the manifest to be changed and written. Its `sequence_next` is above that of the one on
    /// the disk, by which an older copy is told.
    pub fn next_manifest(&self) -> Manifest {
        let mut manifest = self.manifest.clone();
        let after = self.written.saturating_add(1).min(Manifest::SEQUENCE_MAX);
        manifest.sequence_next = manifest.sequence_next.max(after);
        manifest
    }

    /// Last number that the manifest on the disk has given out; 0 without any.
    pub fn last_number(&self) -> u64 {
        self.written.saturating_sub(1)
    }

    /// Whether the partition's folders and manifest are there.
    pub fn is_made(&self) -> bool {
        self.is_made
    }

    /// Notes that they are, with this `sequence_next`.
    pub fn set_made(&mut self, sequence_next: u64) {
        self.is_made = true;
        self.written = self.written.max(sequence_next);
    }

    /// Whether a part is damaged: what only it holds is still wanted.
    pub fn has_damaged(&self) -> bool {
        !self.lost.is_empty() || self.parts.iter().any(|part| part.is_damaged())
    }

    /// Gives out the number of a part's file, never to be given out again.
    pub fn reserve_part(&mut self) -> u64 {
        let number = self.manifest.sequence_next;
        assert!(
            self.manifest.parts.iter().all(|part| part.file < number),
            "a number is given once"
        );
        self.manifest.sequence_next += 1;
        self.manifest.disown(Manifest::part_file(number));
        number
    }

    /// Lists a file that is about to be written as one that may go.
    pub fn disown(&mut self, file: String) {
        self.manifest.disown(file);
    }

    /// Takes files that are gone from the list of those that may go.
    pub fn unlist(&mut self, files: &[String]) {
        self.manifest.unlist(files);
    }

    /// Takes over what was written to the disk: a manifest, and the part that is new in it. Parts
    /// that it names no more go.
    pub fn install(&mut self, manifest: Manifest, new: Option<Arc<LivePart>>) {
        self.written = manifest.sequence_next;
        self.install_unwritten(manifest, new);
    }

    /// As [`DiskParts::install`], of a manifest that the disk has no room for.
    pub fn install_unwritten(&mut self, manifest: Manifest, new: Option<Arc<LivePart>>) {
        let is_named = |file: u64| manifest.parts.iter().any(|entry| entry.file == file);
        self.parts.retain(|part| is_named(part.entry.file));
        self.parts.extend(new);
        self.parts.sort_by_key(|part| part.entry.order);
        self.lost.retain(|lost| is_named(lost.entry.file));
        assert!(self.parts.len() + self.lost.len() == manifest.parts.len(), "all that is named");
        assert!(
            self.parts.is_sorted_by(|a, b| a.entry.order < b.entry.order),
            "one for each order"
        );
        assert!(
            self.manifest.wal_from <= manifest.wal_from,
            "the log is needed from ever later on"
        );
        self.manifest = manifest;
    }

    /// Removes files that may go; returns those that nobody knows.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn clear_strays(&mut self, vfs: &dyn Vfs, dir: &Path) -> Result<Vec<PathBuf>> {
        strays::clear(vfs, dir, &mut self.manifest)
    }

    /// The tombstones that a part has not applied.
    pub fn tombstones_for(&self, entry: &PartEntry) -> Vec<Tombstone> {
        let applies = |t: &&Tombstone| entry.applied < t.sequence;
        self.manifest.tombstones.iter().filter(applies).cloned().collect()
    }
}
