//! One partition: its manifest, its index, its parts, and whatever else is in its directory.

use super::Walk;
use super::files;
use super::part_faults::PartFaults;
use super::partition_index::PartitionIndex;
use crate::Result;
use crate::base::damage::rfc3339;
use crate::base::directory::root_manifest::{Contents, has_content};
use crate::base::file_names::{INDEX_DIR, PARTITION_MANIFEST, PARTS_DIR};
use crate::base::narrow::to_ordinal;
use crate::base::period::Period;
use crate::part::Part;
use crate::partition::disk::live_part::open_part;
use crate::partition::disk::manifest::{Manifest, PartEntry};
use index::{Segment, SegmentEntry, parse_segment_name};
use model::TimeRange;
use roaring::RoaringBitmap;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use vfs::Vfs;

impl Walk<'_, '_> {
    /// Checks a partition's directory; returns what its index knows.
    pub(super) fn partition(&mut self, dir: &Path, period: Period) -> PartitionIndex {
        if !self.has_changed(dir) {
            return PartitionIndex::unknown();
        }
        for name in self.list(dir) {
            self.stray(&dir.join(&name), files::in_partition(&name));
        }
        let path = dir.join(PARTITION_MANIFEST);
        let manifest = match Manifest::read(self.vfs.as_ref(), dir) {
            Ok(Some(manifest)) => {
                self.reading(&path);
                manifest
            }
            Ok(None) => return self.partition_without_manifest(dir, period),
            Err(error) => {
                self.report.error(&path, &error);
                return self.files_alone(dir, period);
            }
        };
        for broken in broken_rules(&manifest) {
            self.report.problem(&path, broken);
        }
        if Contents::entry_of(self.vfs.as_ref(), dir, period).is_stale(manifest.sequence_next) {
            self.report.problem(
                &path,
                "is an older copy: MANIFEST of the data directory names a newer one",
            );
        }
        let index = self.index(dir, &manifest);
        self.report.series += index.series_count();
        for entry in &manifest.parts {
            self.part(&dir.join(PARTS_DIR).join(Manifest::part_name(entry.file)), |walk, path| {
                walk.check_part(path, period, Some(entry), &index)
            });
        }
        for name in self.list(&dir.join(PARTS_DIR)) {
            self.stray(&dir.join(PARTS_DIR).join(&name), files::in_parts(&name, &manifest));
        }
        for name in self.list(&dir.join(INDEX_DIR)) {
            self.stray(&dir.join(INDEX_DIR).join(&name), files::in_index(&name, &manifest));
        }
        index
    }

    /// Whether any file of a partition has changed.
    fn has_changed(&mut self, dir: &Path) -> bool {
        // A walk over everything lists no folder twice.
        if (self.is_changed)(&dir.join(PARTITION_MANIFEST)) {
            return true;
        }
        [PARTS_DIR, INDEX_DIR].into_iter().any(|folder| {
            let folder = dir.join(folder);
            let names = self.list(&folder);
            names.iter().any(|name| (self.is_changed)(&folder.join(name)))
        })
    }

    /// An empty partition has no manifest; one that is not empty has lost it.
    fn partition_without_manifest(&mut self, dir: &Path, period: Period) -> PartitionIndex {
        match has_content(self.vfs.as_ref(), dir) {
            Ok(false) => return PartitionIndex::empty(),
            Ok(true) => {
                let what = "is missing, though there are parts or index segments";
                self.report.problem(&dir.join(PARTITION_MANIFEST), what);
            }
            Err(error) => self.report.error(dir, &error),
        }
        self.files_alone(dir, period)
    }

    /// Checks parts and segments each for itself, where no manifest says how they belong together.
    fn files_alone(&mut self, dir: &Path, period: Period) -> PartitionIndex {
        let unknown = PartitionIndex::unknown();
        for name in self.list(&dir.join(PARTS_DIR)) {
            if Manifest::part_number(&name).is_some() {
                self.part(&dir.join(PARTS_DIR).join(&name), |walk, path| {
                    walk.check_part(path, period, None, &unknown)
                });
            }
        }
        for name in self.list(&dir.join(INDEX_DIR)) {
            let path = dir.join(INDEX_DIR).join(&name);
            if parse_segment_name(&name).is_some() {
                self.reading(&path);
                let entry = SegmentEntry::unchecked(name);
                if let Err(error) = open_segment(self.vfs.as_ref(), &path, &entry) {
                    self.report.error(&path, &error);
                }
            }
        }
        unknown
    }

    fn index(&mut self, dir: &Path, manifest: &Manifest) -> PartitionIndex {
        let (mut sound, mut unreadable) = (Vec::new(), Vec::new());
        let mut last_end = 0;
        for entry in &manifest.segments {
            let path = dir.join(INDEX_DIR).join(&entry.name);
            self.reading(&path);
            match open_segment(self.vfs.as_ref(), &path, entry) {
                Ok(segment) => {
                    if segment.entities().start < last_end {
                        self.report.problem(&path, "overlaps the segment before it");
                    }
                    last_end = segment.entities().end;
                    sound.push(segment);
                }
                Err(error) => {
                    self.report.error(&path, &error);
                    let named = parse_segment_name(&entry.name);
                    unreadable.extend(named.map(|(entities, _)| entities));
                }
            }
        }
        PartitionIndex::new(sound, unreadable, manifest.wal_from)
    }

    fn part(&mut self, path: &Path, check: impl FnOnce(&mut Self, &Path) -> Result<()>) {
        if !(self.is_changed)(path) {
            return;
        }
        self.reading(path);
        if let Err(error) = check(self, path) {
            self.report.error(path, &error);
        }
    }

    fn check_part(
        &mut self,
        path: &Path,
        period: Period,
        entry: Option<&PartEntry>,
        index: &PartitionIndex,
    ) -> Result<()> {
        let part = open_part(self.vfs.as_ref(), path)?;
        let sequence = part.summary().sequence;
        if let Some(entry) = entry.filter(|entry| entry.order != sequence) {
            let what = format!("says that its order is {sequence}, the manifest {}", entry.order);
            self.report.problem(path, what);
        }
        let faults = PartFaults::of(&part);
        self.report.samples += faults.samples;
        for page in &faults.pages {
            let (count, range) = (page.series.len(), page.range);
            let what = format!(
                "{}: lost with it are samples of {count} series from {} to {}",
                page.what,
                rfc3339(range.start),
                rfc3339(range.end)
            );
            self.report.problem(path, what);
        }
        faults.others.iter().for_each(|what| self.report.problem(path, what.clone()));
        if let Some(what) = outside_words(&part, period) {
            self.report.problem(path, what);
        }
        let unknown = unknown_series(&part, &faults.live, index)?;
        if !unknown.is_empty() && !index.is_partly_unreadable() {
            let first = unknown.min().unwrap_or(0);
            let what = format!(
                "has samples of {} series that the index does not know, from ordinal {first} on",
                unknown.len()
            );
            self.report.problem(path, what);
        }
        Ok(())
    }
}

/// Opens the segment that a manifest names and checks all of it.
pub(crate) fn open_segment(
    vfs: &dyn Vfs,
    path: &Path,
    entry: &SegmentEntry,
) -> Result<Arc<Segment>> {
    let segment = Segment::open(&entry.name, vfs.map(path)?)?;
    segment.check_entry(entry)?;
    segment.verify()?;
    Ok(Arc::new(segment))
}

/// The series with samples in a part that the index does not have, or has elsewhere.
pub(crate) fn unknown_series(
    part: &Part,
    live: &RoaringBitmap,
    index: &PartitionIndex,
) -> Result<RoaringBitmap> {
    let mut unknown = live - &index.live;
    let mut last = None;
    for slice in part.slices().iter() {
        let key = (slice.series_start, slice.capacity, slice.columns);
        if last == Some(key) {
            continue;
        }
        last = Some(key);
        // Dead blocks are out of the index as a whole; their series are not alive.
        let Some((_, block)) = index.block_of_ordinal(slice.series_start)? else { continue };
        if (block.series_start, block.capacity, block.columns) != key {
            let series = slice.series_start..=to_ordinal(slice.series_end() - 1);
            unknown |= live & RoaringBitmap::from_sorted_iter(series).unwrap_or_default();
        }
    }
    Ok(unknown)
}

/// What is to be said of samples that another partition should have.
fn outside_words(part: &Part, period: Period) -> Option<String> {
    let (range, summary) = (period.range(), part.summary());
    let span = TimeRange::new(summary.min_ts, summary.max_ts);
    let is_outside = 0 < summary.samples && !range.covers(&span);
    is_outside.then(|| {
        let name = period.name();
        let (start, end) = (rfc3339(span.start), rfc3339(span.end));
        format!("has samples outside of {name}: from {start} to {end}")
    })
}

/// The rules of a manifest that this one breaks.
pub(crate) fn broken_rules(manifest: &Manifest) -> Vec<String> {
    let mut broken = Vec::new();
    let mut files = HashSet::new();
    for part in &manifest.parts {
        if !files.insert(part.file) {
            broken.push(format!("names the part {} twice", Manifest::part_name(part.file)));
        }
        if manifest.sequence_next <= part.file.max(part.order) {
            broken.push(format!("gives out number {} again", part.file.max(part.order)));
        }
        if part.applied < part.order {
            let name = Manifest::part_name(part.file);
            broken.push(format!("says that {name} has applied less than its order"));
        }
    }
    if !manifest.parts.is_sorted_by(|a, b| a.order < b.order) {
        broken.push("does not have its parts by increasing order".into());
    }
    for tombstone in &manifest.tombstones {
        if manifest.sequence_next <= tombstone.sequence {
            broken.push(format!("has a deletion of later number {}", tombstone.sequence));
        }
    }
    broken
}
