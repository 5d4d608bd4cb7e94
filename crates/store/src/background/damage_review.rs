//! What is known to be damaged, held against what is there: entries of what is gone go, and parts
//! that are known to be rotten are told so.

use crate::base::damage::{Damage, DamagePlace};
use crate::base::file_names::{CORRUPT_SUFFIX, copy_of};
use crate::base::ground::Ground;
use crate::partition::Partition;
use crate::partition::disk::live_part::LivePart;
use crate::partition::disk::manifest::Manifest;
use crate::partition::partitions::Partitions;
use crate::partition::shared::Shared;
use crate::read::read_column::page_damage;
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// Who looks the list of damage through.
pub(crate) struct DamageReview {
    ground: Arc<Ground>,
    partitions: Arc<Partitions>,
}

impl DamageReview {
    pub fn new(shared: &Shared) -> DamageReview {
        DamageReview { ground: shared.ground.clone(), partitions: shared.partitions.clone() }
    }

    /// Takes over what the list says of earlier runs, and notes what the start came across.
    pub fn settle(&self) {
        let known = self.ground.damage.list();
        for partition in self.partitions.all() {
            for part in partition.read().disk.parts() {
                let file = self.ground.damage.relative(part.part.name());
                // One that could not be opened and can be now has no rotten page; a header on which
                // nothing depends costs no sample.
                let is_page = |one: &Damage| {
                    one.place == DamagePlace::Page && one.file == file && one.samples != Some(0)
                };
                if known.iter().any(is_page) {
                    part.set_damaged();
                }
                if !part.part.has_sound_header() {
                    note_header(&self.ground, &partition, DamagePlace::Page, part.part.name());
                }
            }
        }
        self.remove_old();
    }

    /// Whether a side file, or a copy of it, stands there as it was set aside: a repair moves it away.
    /// Nobody knows is yes.
    pub fn is_set_aside(&self, file: &str) -> bool {
        [file, &copy_of(file)].iter().any(|name| {
            let aside = self.ground.dir.join(format!("{name}{CORRUPT_SUFFIX}"));
            self.ground.vfs.exists(&aside).unwrap_or(true)
        })
    }

    /// Takes entries of partitions and files that are gone out of the list of damage. The list is not
    /// held meanwhile: readers note what they meet under locks that are needed here.
    fn remove_old(&self) {
        let mut old = self.ground.damage.list_met();
        old.retain(|(damage, is_met)| !self.is_still_damaged(damage, *is_met));
        if !old.is_empty() {
            let is_old = |one: &Damage, met| old.iter().any(|(old, was)| old == one && *was == met);
            self.ground.damage.retain(|damage, is_met| !is_old(damage, is_met));
        }
    }

    fn is_still_damaged(&self, damage: &Damage, is_met: bool) -> bool {
        let Some(period) = damage.period else {
            // What the log had lost when it was opened is made up for by the next start.
            return is_met || self.is_set_aside(&damage.file);
        };
        if self.ground.root.doubtful().iter().any(|one| one.file == damage.file) {
            return true;
        }
        let dir = self.ground.partition_dir(period);
        if !self.ground.vfs.exists(&dir).unwrap_or(true) {
            return false;
        }
        let Some(partition) = self.partitions.get(period) else {
            return true;
        };
        match damage.place {
            DamagePlace::Page | DamagePlace::Index => {
                let state = partition.read();
                let manifest = state.disk.manifest();
                let ends = |name: &str| damage.file.ends_with(name);
                manifest.parts.iter().any(|part| ends(&Manifest::part_name(part.file)))
                    || manifest.segments.iter().any(|segment| ends(&segment.name))
            }
            // Met by each start, as long as it is so.
            DamagePlace::Part | DamagePlace::Partition => is_met,
            DamagePlace::SideFile | DamagePlace::Log => true,
        }
    }

    /// Writes the list of damage without what is gone, if it has changed; a flush does.
    ///
    /// # Errors
    /// On I/O errors; it is tried again next time.
    pub fn write(&self) -> Result<()> {
        self.remove_old();
        self.ground.damage.write(self.ground.vfs.as_ref())
    }
}

/// Notes a rotten header, on which nothing depends.
pub(crate) fn note_header(ground: &Ground, partition: &Partition, place: DamagePlace, path: &Path) {
    let what = "header, on which nothing depends".to_string();
    let damage = Damage::of_partition(partition.period, place, ground.damage.relative(path), what);
    let (samples, series) = (Some(0), Some(0));
    ground.damage.note(Damage { samples, series, ..damage }, ground.vfs.now());
}

/// Notes that a page of a part is rotten, and that the part is.
pub(crate) fn note_page(
    ground: &Ground,
    partition: &Partition,
    part: &LivePart,
    slice: usize,
    error: &Error,
) {
    part.set_damaged();
    let damage = page_damage(&ground.damage, partition, part, slice, error);
    ground.damage.note(damage, ground.vfs.now());
}

/// Notes that a merge met rot in a part. Which slice it is in the error's place tells.
pub(crate) fn note_damaged_part(
    ground: &Ground,
    partition: &Partition,
    part: &LivePart,
    error: &Error,
) {
    let slices = part.part.slices();
    let at = match error {
        Error::Corrupt { offset, .. } => *offset,
        _ => 0,
    };
    let slice = slices.partition_point(|slice| slice.offset() <= at).saturating_sub(1);
    part.set_damaged();
    if slice < slices.len() {
        note_page(ground, partition, part, slice, error);
    }
}
