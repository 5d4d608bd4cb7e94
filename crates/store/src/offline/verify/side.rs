//! The small files beside partitions and log: where they are, how they are read, what goes with
//! them.

use super::Walk;
use crate::Result;
use crate::base::damage::{self, Damage, DamageList, DamagePlace};
use crate::base::directory::identity;
use crate::base::directory::needs::{Need, Needs};
use crate::base::directory::partition_length;
use crate::base::directory::root_manifest::{self, Contents};
use crate::base::file_names::{
    DROPPED_FILE, EXEMPLARS_FILE, METADATA_COPY, METADATA_FILE, STRINGS_FILE, WAL_DIR,
};
use crate::base::period::Period;
use crate::log::exemplars::ExemplarQueue;
use crate::log::metadata_files::{self, LOST, OTHER_IS_USED, StoredMetadata};
use crate::log::string_numbers;
use crate::partition::dropped::DroppedPartitions;
use crate::partition::retention::retention_clock::{self, ClockRecord};
use crate::partition::unfinished_deletion::{self, UnfinishedDeletion};
use crate::read::elsewhere::moved::{self, MovedUntil};
use std::path::Path;
use vfs::Vfs;

/// Reads the file of a data directory.
type ReadFile = fn(&dyn Vfs, &Path) -> Result<()>;

/// One of them.
pub struct SideFile {
    /// Where it is in the data directory.
    pub path: &'static str,
    /// Reads it as opening does. `None` of a file that is read together with its copy
    /// ([`StoredMetadata`]).
    pub read: Option<ReadFile>,
    /// What is lost with it.
    pub lost: &'static str,
}

/// All there are.
pub const SIDE_FILES: &[SideFile] = &[
    SideFile {
        path: root_manifest::FILE_NAME,
        read: Some(|vfs, dir| Contents::read(vfs, dir).map(drop)),
        lost: "which partitions and files there were, and which segments of the log: one that is \
               missing is not noticed",
    },
    SideFile {
        path: partition_length::FILE_NAME,
        read: Some(|vfs, dir| partition_length::read(vfs, dir).map(drop)),
        lost: "how long partitions are, which their names say",
    },
    SideFile { path: METADATA_FILE, read: None, lost: LOST },
    SideFile { path: METADATA_COPY, read: None, lost: LOST },
    SideFile {
        path: STRINGS_FILE,
        read: Some(|vfs, dir| string_numbers::read(vfs, dir).map(drop)),
        lost: "which numbers of strings are in use, which the dictionary says as long as it is whole",
    },
    SideFile {
        path: EXEMPLARS_FILE,
        read: Some(|vfs, dir| ExemplarQueue::read(vfs, dir, usize::MAX).map(drop)),
        lost: "all exemplars but those in the log, of which some that were deleted may be back",
    },
    SideFile {
        path: damage::FILE_NAME,
        read: Some(|vfs, dir| DamageList::read(vfs, dir).map(drop)),
        lost: "the list of the damage that was noticed before",
    },
    SideFile {
        path: DROPPED_FILE,
        read: Some(|vfs, dir| DroppedPartitions::read(vfs, dir).map(drop)),
        lost: "from where on the log's records of dropped partitions count: they may come back",
    },
    SideFile {
        path: unfinished_deletion::FILE_NAME,
        read: Some(|vfs, dir| UnfinishedDeletion::read(vfs, dir).map(drop)),
        lost: "which deletion a crash has interrupted: some of what it deletes may be there",
    },
    SideFile {
        path: retention_clock::FILE_NAME,
        read: Some(|vfs, dir| ClockRecord::read(vfs, dir).map(drop)),
        lost: "the time that retention trusted",
    },
    SideFile {
        path: moved::FILE_NAME,
        read: Some(|vfs, dir| MovedUntil::read_all(vfs, dir).map(drop)),
        lost: "how far the until of legacy backends was moved: they are asked up to their flags",
    },
    SideFile {
        path: identity::FILE_NAME,
        read: Some(|vfs, dir| identity::read(vfs, dir).map(drop)),
        lost: "which store this is: copies and imports that go on begin anew",
    },
    SideFile {
        path: "wal/END",
        read: Some(|vfs, dir| Ok(wal::check_end(vfs, &dir.join(WAL_DIR))?)),
        lost: "where the log ends; so it is not known whether its last records are there",
    },
    SideFile {
        path: "wal/START",
        read: Some(|vfs, dir| Ok(wal::check_start(vfs, &dir.join(WAL_DIR))?)),
        lost: "where the log starts; so it is not known whether its first segments are there",
    },
];

/// Whether the dictionary of strings is in schema records, whose consumer checks them.
pub fn is_converted(vfs: &dyn Vfs, dir: &Path) -> bool {
    Needs::read(vfs, dir).is_ok_and(|needs| needs.has(Need::Schema))
}

/// The damage of a file that is missing.
pub fn lost_file(name: &str) -> Damage {
    let side = SIDE_FILES.iter().find(|side| side.path == name);
    let lost = side.map_or(String::new(), |side| format!("; lost with it: {}", side.lost));
    let what = format!("the file is missing, though MANIFEST names it{lost}");
    Damage::of_store(DamagePlace::SideFile, name.to_string(), what)
}

impl Walk<'_, '_> {
    /// Checks both files of the table of metadata.
    fn metadata_files(&mut self, dir: &Path) {
        for name in metadata_files::NAMES {
            let path = dir.join(name);
            if self.vfs.exists(&path).unwrap_or(false) {
                self.reading(&path);
            }
        }
        let stored = match StoredMetadata::read(self.vfs.as_ref(), dir) {
            Ok(stored) => stored,
            Err(error) => return self.report.error(&dir.join(METADATA_FILE), &error),
        };
        let end = match stored.contents {
            Some(_) => format!(": {OTHER_IS_USED}"),
            None => format!("; {}", metadata_files::lost_words()),
        };
        for fault in &stored.faults {
            self.report.problem(&dir.join(fault.file), format!("{}{end}", fault.what));
        }
        let copy = dir.join(METADATA_COPY);
        if stored.is_copy_behind() && self.vfs.exists(&copy).unwrap_or(false) {
            self.report.note(&copy, "is older, as after a crash; the next start writes it again");
        }
        match stored.contents {
            Some(_) if stored.faults.is_empty() => self.note_rewritten_metadata(dir),
            None if stored.faults.is_empty() => self.check_dictionary(dir),
            _ => {}
        }
    }

    /// Notes which file a start or a flush has written again, as the list of damage tells.
    fn note_rewritten_metadata(&mut self, dir: &Path) {
        let Ok(list) = DamageList::read(self.vfs.as_ref(), dir) else { return };
        for damage in list.list() {
            let is_of = metadata_files::NAMES.contains(&damage.file.as_str());
            if is_of && damage.place == DamagePlace::SideFile && damage.samples == Some(0) {
                let what = format!("was damaged and has been written again: it {}", damage.what);
                self.report.note(&dir.join(damage.file), what);
            }
        }
    }

    /// Reports a missing dictionary of a store that has numbers of strings.
    fn check_dictionary(&mut self, dir: &Path) {
        let is_named = Contents::read(self.vfs.as_ref(), dir)
            .is_ok_and(|contents| contents.is_some_and(|one| one.files.contains(METADATA_FILE)));
        if is_named {
            // Reported with all that is missing.
            return;
        }
        if string_numbers::is_used(self.vfs.as_ref(), dir) && !is_converted(self.vfs.as_ref(), dir)
        {
            let lost = metadata_files::lost_dictionary();
            self.report.problem(&dir.join(lost.file), lost.what);
        }
    }

    /// Reports what the root manifest names and is not there, or was not when the store was opened.
    fn check_contents(&mut self, dir: &Path) {
        let Ok(Some(contents)) = Contents::read(self.vfs.as_ref(), dir) else { return };
        let (partitions, files) = contents.missing(self.vfs.as_ref(), dir);
        let lost = |period: &Period| root_manifest::lost_partition(*period);
        let partitions = partitions.iter().map(lost);
        let missing = partitions.chain(files.iter().map(|name| lost_file(name)));
        for damage in missing.chain(contents.log_damage(self.vfs.as_ref(), dir)) {
            self.report.problem(&dir.join(damage.file), damage.what);
        }
        let known = contents.lost_partitions.iter().map(lost);
        for damage in known.chain(contents.lost_files.iter().map(|one| lost_file(one))) {
            let what = "was missing when the store was opened; a repair accepts the loss";
            self.report.problem(&dir.join(damage.file), what);
        }
    }

    pub(super) fn side_files(&mut self, dir: &Path) {
        self.check_contents(dir);
        self.metadata_files(dir);
        for side in SIDE_FILES {
            let Some(read) = side.read else { continue };
            let path = dir.join(side.path);
            match self.vfs.exists(&path) {
                Ok(false) => continue,
                Ok(true) => self.reading(&path),
                Err(_) => {}
            }
            if let Err(error) = read(self.vfs.as_ref(), dir) {
                self.report.error(&path, &error);
            }
        }
    }
}
