//! What a partition should be: looks at its files, then plans how it comes to be so.

use super::losses::{Loss, LostOf, visible_labels};
use super::manifest::{next_number, rebuild};
use super::part::{LeftOut, PartRewrite};
use super::{Act, Planner, check_is_known};
use crate::Result;
use crate::base::directory::root_manifest::{Contents, has_content};
use crate::base::file_names::{INDEX_DIR, PARTITION_MANIFEST, PARTS_DIR};
use crate::base::narrow::to_ordinal;
use crate::base::period::Period;
use crate::offline::verify::files;
use crate::offline::verify::part_faults::{BadPage, PartFaults};
use crate::offline::verify::partition::{broken_rules, open_segment, unknown_series};
use crate::offline::verify::partition_index::PartitionIndex;
use crate::part::Part;
use crate::partition::disk::live_part::open_part;
use crate::partition::disk::manifest::{Manifest, PartEntry};
use crate::partition::histograms::names;
use index::{Segment, SegmentEntry, parse_segment_name, salvage};
use model::{LabelsBuilder, TimeRange};
use roaring::RoaringBitmap;
use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A partition on its way to be repaired.
pub struct PartitionRepair {
    /// Which.
    pub period: Period,
    dir: PathBuf,
    /// As it is on disk; `None` when it has to be written in any case.
    on_disk: Option<Manifest>,
    /// As it should be.
    pub manifest: Manifest,
    /// Why it is made again from the files, if it is.
    rebuilt: Option<String>,
    segments: Vec<Arc<Segment>>,
    /// Entities of whom some may be lost.
    lossy: Vec<Range<u32>>,
    /// What has to be done before the manifest is written, and what after.
    before: Vec<(String, Act)>,
    after: Vec<(PathBuf, String)>,
    losses: Vec<Loss>,
}

impl PartitionRepair {
    /// Looks at manifest and index of a partition.
    pub(super) fn look(
        planner: &mut Planner<'_, '_>,
        dir: PathBuf,
        period: Period,
    ) -> Result<PartitionRepair> {
        let mut repair = PartitionRepair {
            period,
            dir,
            on_disk: None,
            manifest: Manifest::default(),
            rebuilt: None,
            segments: Vec::new(),
            lossy: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            losses: Vec::new(),
        };
        repair.read_manifest(planner)?;
        repair.read_segments(planner)?;
        Ok(repair)
    }

    /// Whether the manifest is made again from the files.
    pub fn is_rebuilt(&self) -> bool {
        self.rebuilt.is_some()
    }

    /// What is known of the index, and where nothing is.
    pub fn index_as_found(&self) -> PartitionIndex {
        PartitionIndex::new(self.segments.clone(), self.lossy.clone(), 0)
    }

    fn read_manifest(&mut self, planner: &mut Planner<'_, '_>) -> Result<()> {
        let vfs = planner.vfs.as_ref();
        let entry = Contents::entry_of(vfs, &self.dir, self.period);
        match Manifest::read(vfs, &self.dir) {
            Ok(Some(manifest)) if entry.is_stale(manifest.sequence_next) => {
                self.rebuilt = Some("is an older copy".into());
            }
            Ok(Some(manifest)) => {
                self.manifest = with_rules(manifest.clone());
                if broken_rules(&manifest).is_empty() {
                    self.on_disk = Some(manifest);
                }
                return Ok(());
            }
            Ok(None) if !has_content(vfs, &self.dir)? => {
                self.on_disk = Some(Manifest::default());
                return Ok(());
            }
            Ok(None) => self.rebuilt = Some("is missing".into()),
            Err(error) => {
                check_is_known(&error)?;
                self.rebuilt = Some(error.without_file());
            }
        }
        self.manifest = rebuild(vfs, &self.dir)?;
        self.manifest.sequence_next = self.manifest.sequence_next.max(entry.last_number + 1);
        Ok(())
    }

    /// Opens the segments; makes others of those that are damaged.
    fn read_segments(&mut self, planner: &mut Planner<'_, '_>) -> Result<()> {
        let folder = self.dir.join(INDEX_DIR);
        let taken = planner.list(&folder)?;
        let named = self.manifest.segments.iter().map(|segment| &segment.name);
        let sequences = taken.iter().chain(named);
        let sequences = sequences.filter_map(|name| Some(parse_segment_name(name)?.1));
        let mut next_sequence = sequences.max().unwrap_or(0) + 1;
        let mut kept = Vec::new();
        for entry in std::mem::take(&mut self.manifest.segments) {
            let path = folder.join(&entry.name);
            planner.reading(&path);
            let error = match open_segment(planner.vfs.as_ref(), &path, &entry) {
                Ok(segment) => {
                    kept.push(entry);
                    self.segments.push(segment);
                    continue;
                }
                Err(error) => error,
            };
            check_is_known(&error)?;
            kept.extend(self.salvage(planner, &path, &entry, next_sequence, &error.without_file()));
            next_sequence += 1;
        }
        self.manifest.segments = kept;
        Ok(())
    }

    /// Makes a new segment of what is whole in a damaged one; returns its entry if there is any.
    fn salvage(
        &mut self,
        planner: &Planner<'_, '_>,
        path: &Path,
        entry: &SegmentEntry,
        sequence: u32,
        why: &str,
    ) -> Option<SegmentEntry> {
        let name = &entry.name;
        let is_there = !matches!(planner.vfs.exists(path), Ok(false));
        let saved = planner.vfs.map(path).ok().and_then(|bytes| salvage(entry, bytes, sequence));
        if is_there {
            self.after.push((path.to_path_buf(), why.to_string()));
        }
        let lost = match &saved {
            Some(saved) if saved.lost == 0 => None,
            Some(saved) => Some(format!("the labels of {} entities", saved.lost)),
            None => Some("the labels of all entities in the segment".to_string()),
        };
        if let Some(lost) = lost {
            self.lossy.extend(parse_segment_name(name).map(|(entities, _)| entities));
            let period = Some(self.period);
            let range = self.period.range();
            let of = LostOf::Unknown(lost);
            self.losses.push(Loss { file: path.to_path_buf(), period, of, range });
        }
        let saved = saved?;
        let bytes = vfs::Bytes::from_vec(saved.bytes);
        let segment = Segment::open(&saved.name, bytes.clone()).ok()?;
        let entry = segment.entry();
        self.segments.push(Arc::new(segment));
        let path = self.dir.join(INDEX_DIR).join(&saved.name);
        let says = format!("write {}: {} entities of {name}", path.display(), saved.kept);
        self.before.push((says, Act::WriteSegment { path, bytes }));
        Some(entry)
    }

    /// Plans what is to be done; returns the index as it will be.
    pub(super) fn plan(mut self, planner: &mut Planner<'_, '_>) -> Result<PartitionIndex> {
        let found = self.found_first(planner);
        let index = PartitionIndex::new(self.segments.clone(), Vec::new(), self.manifest.wal_from);
        let names = planner.list(&self.dir.join(PARTS_DIR))?;
        let mut next = next_number(&self.manifest, &names);
        for entry in std::mem::take(&mut self.manifest.parts) {
            let path = self.dir.join(PARTS_DIR).join(Manifest::part_name(entry.file));
            planner.reading(&path);
            if let Some(kept) = self.part(planner, &path, entry, next, &index)? {
                next = next.max(kept.file + 1);
                self.manifest.parts.push(kept);
            }
        }
        self.manifest.parts.sort_by_key(|part| part.order);
        let last = self.manifest.parts.iter().map(|part| part.file + 1).max().unwrap_or(0);
        self.manifest.sequence_next = self.manifest.sequence_next.max(last);
        let is_changed = Some(&self.manifest) != found.as_ref().or(self.on_disk.as_ref());
        for (says, act) in std::mem::take(&mut self.before) {
            planner.step(says, act);
        }
        if is_changed {
            self.write_manifest(planner, self.manifest.clone(), "its files as they are then");
        }
        for (path, why) in std::mem::take(&mut self.after) {
            planner.move_aside(path, &why);
        }
        self.strays(planner)?;
        planner.losses.append(&mut self.losses);
        Ok(index)
    }

    /// Of a lost manifest, first of all one that names the files as they are: so a repair that is
    /// interrupted finds them again. Returns it.
    fn found_first(&mut self, planner: &mut Planner<'_, '_>) -> Option<Manifest> {
        let why = self.rebuilt.clone()?;
        let mut found = self.manifest.clone();
        // Those that take the place of damaged ones are not there yet.
        let is_new = |segment: &SegmentEntry| {
            let is_it = |path: &Path| path.ends_with(&segment.name);
            let mut acts = self.before.iter().map(|(_, act)| act);
            acts.any(|act| matches!(act, Act::WriteSegment { path, .. } if is_it(path)))
        };
        found.segments.retain(|segment| !is_new(segment));
        for (path, _) in &self.after {
            let name = path.file_name().and_then(|name| name.to_str());
            found.segments.extend(name.map(|name| SegmentEntry::unchecked(name.to_string())));
        }
        found.segments.sort();
        let of = "deletions that no merge had applied, or whose merge left its inputs behind: those \
                  samples come back";
        self.losses.push(Loss {
            file: self.dir.join(PARTITION_MANIFEST),
            period: Some(self.period),
            of: LostOf::Unknown(of.into()),
            range: self.period.range(),
        });
        let why = format!("it {why}; made from what the files say");
        self.write_manifest(planner, found.clone(), &why);
        Some(found)
    }

    fn write_manifest(&self, planner: &mut Planner<'_, '_>, manifest: Manifest, why: &str) {
        let says = format!(
            "write {} (parts: {}, index segments: {}): {why}",
            self.dir.join(PARTITION_MANIFEST).display(),
            manifest.parts.len(),
            manifest.segments.len(),
        );
        let act = Act::WriteManifest { dir: self.dir.clone(), manifest: Box::new(manifest) };
        planner.step(says, act);
    }

    /// Checks a part; returns its entry as it should be, if anything of it is left.
    fn part(
        &mut self,
        planner: &Planner<'_, '_>,
        path: &Path,
        entry: PartEntry,
        next: u64,
        index: &PartitionIndex,
    ) -> Result<Option<PartEntry>> {
        let part = match open_part(planner.vfs.as_ref(), path) {
            Ok(part) => part,
            Err(error) if error.is_passing() => return Err(error),
            Err(error) => {
                check_is_known(&error)?;
                let of = LostOf::Unknown("all samples of the part".into());
                let (period, range) = (Some(self.period), self.period.range());
                self.losses.push(Loss { file: path.to_path_buf(), period, of, range });
                if !matches!(planner.vfs.exists(path), Ok(false)) {
                    self.after.push((path.to_path_buf(), error.without_file()));
                }
                return Ok(None);
            }
        };
        let order = part.summary().sequence;
        if self.manifest.parts.iter().any(|other| other.order == order) {
            self.after.push((path.to_path_buf(), "another part has its order".into()));
            return Ok(None);
        }
        // Of another file than it was, what has been deleted is deleted once more.
        let applied = if entry.order == order { entry.applied } else { order };
        let entry = PartEntry { order, applied, ..entry };
        let faults = PartFaults::of(&part);
        let unknown = unknown_series(&part, &faults.live, index)?;
        let span = TimeRange::new(part.summary().min_ts, part.summary().max_ts);
        let is_outside = 0 < part.summary().samples && !self.period.range().covers(&span);
        if faults.is_empty() && unknown.is_empty() && !is_outside {
            return Ok(Some(entry));
        }
        let without = self.left_out(path, &part, &faults, unknown, index);
        if is_outside {
            let of = LostOf::Unknown("samples of another partition than the directory's".into());
            let period = Some(self.period);
            self.losses.push(Loss { file: path.to_path_buf(), period, of, range: span });
        }
        let to = self.dir.join(PARTS_DIR).join(Manifest::part_name(next));
        let says = format!(
            "write {}: {} without bad pages ({}) and series that the index does not know ({})",
            to.display(),
            path.display(),
            faults.pages.len(),
            without.series.len(),
        );
        let keep = self.period.range();
        let from = path.to_path_buf();
        let rewrite = PartRewrite { from: from.clone(), to, order, keep, without };
        if !rewrite.leaves_samples(&part)? {
            self.after.push((from, "nothing is left of it".into()));
            return Ok(None);
        }
        self.before.push((says, Act::RewritePart(Box::new(rewrite))));
        self.after.push((from, "written again without what is damaged".into()));
        Ok(Some(PartEntry { file: next, ..entry }))
    }

    /// What a part is written again without; notes what is lost.
    fn left_out(
        &mut self,
        path: &Path,
        part: &Part,
        faults: &PartFaults,
        unknown: RoaringBitmap,
        index: &PartitionIndex,
    ) -> LeftOut {
        let mut without = LeftOut::default();
        let mut hidden_slices = HashSet::new();
        for page in &faults.pages {
            match is_hidden(part, page.slice, index) {
                // With one column of a histogram all go, and with them the markers.
                true => drop(hidden_slices.insert(page.slice)),
                false => {
                    without.columns.extend(page.columns.iter().map(|c| (page.slice, *c)));
                    self.lose(path, page);
                }
            }
        }
        for idx in hidden_slices {
            self.lose_histograms(path, part, idx, index, &mut without);
        }
        if !unknown.is_empty() {
            self.lose_unknown(path, part, &unknown, &mut without);
        }
        without.series = unknown;
        without
    }

    fn lose(&mut self, path: &Path, page: &BadPage) {
        let (period, range) = (Some(self.period), page.range);
        let of = LostOf::Series(page.series.clone());
        self.losses.push(Loss { file: path.to_path_buf(), period, of, range });
    }

    fn lose_histograms(
        &mut self,
        path: &Path,
        part: &Part,
        idx: usize,
        index: &PartitionIndex,
        without: &mut LeftOut,
    ) {
        let slice = &part.slice(idx);
        without.columns.extend((0..slice.columns).map(|column| (idx, column)));
        let range = TimeRange::new(slice.min_ts, slice.max_ts);
        let (mut markers, mut lost) = (RoaringBitmap::new(), RoaringBitmap::new());
        for slot in 0..slice.slots as usize {
            let ordinal = slice.ordinal(0, slot);
            // The dead have nothing to lose.
            let Some(labels) = visible_labels(index, ordinal) else { continue };
            markers |= index.series_of(&labels);
            lost.insert(ordinal);
        }
        without.markers.push((range, Some(markers)));
        let period = Some(self.period);
        let of = LostOf::Series(lost);
        self.losses.push(Loss { file: path.to_path_buf(), period, of, range });
    }

    /// Series without labels: one of them may have been a part of any histogram of its time.
    fn lose_unknown(
        &mut self,
        path: &Path,
        part: &Part,
        unknown: &RoaringBitmap,
        without: &mut LeftOut,
    ) {
        for slice in part.slices().iter() {
            let last = to_ordinal(slice.series_end() - 1);
            let mut series = unknown.clone();
            series.remove_range(..slice.series_start);
            if last < u32::MAX {
                series.remove_range(last + 1..);
            }
            if series.is_empty() {
                continue;
            }
            let range = TimeRange::new(slice.min_ts, slice.max_ts);
            without.markers.push((range, None));
            let period = Some(self.period);
            let file = path.to_path_buf();
            self.losses.push(Loss { file, period, of: LostOf::Series(series), range });
        }
        let of = LostOf::Unknown("histograms of which such a series may have been a part".into());
        let (period, span) = (Some(self.period), part.summary());
        let range = TimeRange::new(span.min_ts, span.max_ts);
        self.losses.push(Loss { file: path.to_path_buf(), period, of, range });
    }

    /// Files that the manifest, as it will be, does not name.
    fn strays(&self, planner: &mut Planner<'_, '_>) -> Result<()> {
        let goes_anyway = |path: &PathBuf, planner: &Planner<'_, '_>| {
            let moves = |act: &Act| matches!(act, Act::MoveAside(moved) if moved == path);
            planner.steps.iter().any(|step| moves(&step.act))
        };
        for folder in [PARTS_DIR, INDEX_DIR] {
            for name in planner.list(&self.dir.join(folder))? {
                let path = self.dir.join(folder).join(&name);
                let stray = match folder {
                    PARTS_DIR => files::in_parts(&name, &self.manifest),
                    _ => files::in_index(&name, &self.manifest),
                };
                if !goes_anyway(&path, planner) {
                    planner.stray(path, stray);
                }
            }
        }
        for name in planner.list(&self.dir)? {
            planner.stray(self.dir.join(&name), files::in_partition(&name));
        }
        Ok(())
    }
}

/// Whether the series of a slice are parts of histograms; start timestamps are lost alone.
fn is_hidden(part: &Part, idx: usize, index: &PartitionIndex) -> bool {
    let slice = &part.slice(idx);
    let mut labels = LabelsBuilder::new();
    (0..slice.slots as usize).any(|slot| {
        labels.clear();
        let known = index.labels(slice.ordinal(0, slot), &mut labels);
        matches!(known, Ok(Some(())))
            && labels.get(names::LABEL).is_some()
            && labels.get(names::RUN_LABEL) != Some(names::START_RUN)
    })
}

/// A manifest that keeps the rules again.
fn with_rules(mut manifest: Manifest) -> Manifest {
    let mut files = HashSet::new();
    manifest.parts.retain(|part| files.insert(part.file));
    for part in &mut manifest.parts {
        part.applied = part.applied.max(part.order);
    }
    manifest.parts.sort_by_key(|part| part.order);
    manifest.sequence_next = next_number(&manifest, &[]);
    manifest
}
