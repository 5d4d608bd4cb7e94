//! Makes the manifest of a partition again at a start that finds it missing or damaged.
//!
//! Without a manifest nothing of a partition can be read, and no sample of its time be written. The
//! files say what the manifest said ([`crate::offline::repair::manifest`]), but for deletions that no merge had
//! applied. So the start writes another manifest if all index segments are sound. The damaged one is
//! set aside as `MANIFEST.corrupt`. As long as that is there, `quipu verify` reports it and answers name
//! the partition. Whatever else is damaged is left to `quipu verify --repair`.

use crate::base::damage::{Damage, DamagePlace};
use crate::base::directory::root_manifest::has_content;
use crate::base::file_names::{CORRUPT_SUFFIX, INDEX_DIR, PARTITION_MANIFEST, PARTS_DIR, WAL_DIR};
use crate::base::period::Period;
use crate::offline::repair::manifest::rebuild;
use crate::offline::repair::replay_start::find_replay_starts;
use crate::offline::verify::partition::{open_segment, unknown_series};
use crate::offline::verify::partition_index::PartitionIndex;
use crate::partition::disk::live_part::open_part;
use crate::partition::disk::manifest::Manifest;
use crate::store::recover::{Found, Recovery};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

impl Recovery<'_> {
    /// Makes the manifests again that are missing or damaged, and opens their partitions.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn rebuild_manifests(&self, found: &mut Found) -> Result<()> {
        let periods: Vec<Period> = found.damaged.keys().copied().collect();
        let (mut rebuilt, mut indexes) = (BTreeMap::new(), BTreeMap::new());
        for period in periods {
            if let Some((manifest, index)) = self.rebuild_manifest(period)? {
                rebuilt.insert(period, manifest);
                indexes.insert(period, index);
            }
        }
        if rebuilt.is_empty() {
            return Ok(());
        }
        let wal = self.ground.dir.join(WAL_DIR);
        let starts = find_replay_starts(self.ground.vfs.as_ref(), &wal, &found.dropped, indexes);
        // Opening the log says what is wrong with it; nothing is written until then.
        let Ok(starts) = starts else { return Ok(()) };
        for (period, mut manifest) in rebuilt {
            manifest.wal_from = starts.get(&period).copied().unwrap_or(0);
            self.replace_manifest(period, &manifest)?;
            found.damaged.remove(&period);
            self.look_at_partition(period, found)?;
        }
        Ok(())
    }

    /// The manifest of a partition as its files say it, with its index; `None` when the manifest is not
    /// what is damaged, or an index segment is damaged, too.
    fn rebuild_manifest(&self, period: Period) -> Result<Option<(Manifest, PartitionIndex)>> {
        let vfs = self.ground.vfs.as_ref();
        let dir = self.ground.partition_dir(period);
        let entry = self.ground.root.entry(period);
        match Manifest::read(vfs, &dir) {
            Ok(None) if has_content(vfs, &dir)? => {}
            Ok(Some(found)) if entry.is_stale(found.sequence_next) => {}
            Err(Error::Corrupt { .. }) => {}
            // Something else is damaged, or the disk does not give it now: it may the next time.
            _ => return Ok(None),
        }
        let mut manifest = rebuild(vfs, &dir)?;
        manifest.sequence_next = manifest.sequence_next.max(entry.last_number + 1);
        let mut segments = Vec::with_capacity(manifest.segments.len());
        for entry in &manifest.segments {
            match open_segment(vfs, &dir.join(INDEX_DIR).join(&entry.name), entry) {
                Ok(segment) => segments.push(segment),
                Err(error) if error.is_passing() || error.is_unknown_version() => {
                    return Err(error);
                }
                Err(_) => return Ok(None),
            }
        }
        let index = PartitionIndex::new(segments, Vec::new(), 0);
        for entry in &manifest.parts {
            let path = dir.join(PARTS_DIR).join(Manifest::part_name(entry.file));
            if !self.has_known_series(&path, &index)? {
                return Ok(None);
            }
        }
        Ok(Some((manifest, index)))
    }

    /// Whether the index has all series of a part. If a segment of the index is gone, new series would
    /// get the numbers of those that it had, and their samples. A part that cannot be opened has none.
    fn has_known_series(&self, path: &Path, index: &PartitionIndex) -> Result<bool> {
        let part = match open_part(self.ground.vfs.as_ref(), path) {
            Ok(part) => part,
            Err(error) if error.is_passing() || error.is_unknown_version() => return Err(error),
            Err(_) => return Ok(true),
        };
        let Ok(live) = part.live_on(i32::MIN, i32::MAX) else { return Ok(false) };
        Ok(unknown_series(&part, &live, index)?.is_empty())
    }

    /// Sets a damaged manifest aside and writes another one.
    fn replace_manifest(&self, period: Period, manifest: &Manifest) -> Result<()> {
        let vfs = self.ground.vfs.as_ref();
        let dir = self.ground.partition_dir(period);
        for folder in [PARTS_DIR, INDEX_DIR] {
            vfs.create_dir_all(&dir.join(folder))?;
        }
        let (path, aside) = (dir.join(PARTITION_MANIFEST), aside(&dir));
        // A start that dies behind this finds no manifest, and does the same again.
        if vfs.exists(&path)? {
            vfs.rename(&path, &aside)?;
        } else if !vfs.exists(&aside)? {
            vfs.create(&aside)?.sync()?;
        }
        manifest.write(vfs, &dir)
    }

    /// The damage of a partition whose manifest was made again and not repaired since, if it was.
    pub fn rebuilt_manifest(&self, period: Period) -> Result<Option<Damage>> {
        let dir = self.ground.partition_dir(period);
        if !self.ground.vfs.exists(&aside(&dir))? {
            return Ok(None);
        }
        let what = "it was made again from the partition's files: samples may be back that were \
                    deleted since the last merge";
        let file = self.ground.damage.relative(&dir.join(PARTITION_MANIFEST));
        Ok(Some(Damage::of_partition(period, DamagePlace::Partition, file, what.to_string())))
    }
}

/// The path of a manifest that is set aside. It is empty if there was none.
fn aside(dir: &Path) -> PathBuf {
    dir.join(format!("{}{CORRUPT_SUFFIX}", PARTITION_MANIFEST))
}
