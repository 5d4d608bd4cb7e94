//! The small files beside partitions and log: where they are, how they are read, what goes with
//! them.

use super::Walk;
use crate::Result;
use crate::damage::{self, DamageList};
use crate::dropped::{self, DroppedPartitions};
use crate::elsewhere::moved::{self, MovedUntil};
use crate::exemplars::{self, ExemplarQueue};
use crate::file_names::WAL_DIR;
use crate::metadata::{self, MetadataTable};
use crate::partition_length;
use crate::retention_clock::{self, ClockRecord};
use std::path::Path;
use vfs::Vfs;

/// One of them.
pub struct SideFile {
    /// Where it is in the data directory.
    pub path: &'static str,
    /// Reads it as opening does.
    pub read: fn(&dyn Vfs, &Path) -> Result<()>,
    /// What is lost with it.
    pub lost: &'static str,
}

/// All there are.
pub const SIDE_FILES: &[SideFile] = &[
    SideFile {
        path: partition_length::FILE_NAME,
        read: |vfs, dir| partition_length::read(vfs, dir).map(drop),
        lost: "how long partitions are, which their names say",
    },
    SideFile {
        path: metadata::FILE_NAME,
        read: |vfs, dir| MetadataTable::read(vfs, dir).map(drop),
        lost: "types, help and units of metrics, until they are sent again",
    },
    SideFile {
        path: exemplars::FILE_NAME,
        read: |vfs, dir| ExemplarQueue::read(vfs, dir, usize::MAX).map(drop),
        lost: "all exemplars but those in the log, of which some that were deleted may be back",
    },
    SideFile {
        path: damage::FILE_NAME,
        read: |vfs, dir| DamageList::read(vfs, dir).map(drop),
        lost: "the list of the damage that was noticed before",
    },
    SideFile {
        path: dropped::FILE_NAME,
        read: |vfs, dir| DroppedPartitions::read(vfs, dir).map(drop),
        lost: "from where on the log's records of dropped partitions count: they may come back",
    },
    SideFile {
        path: retention_clock::FILE_NAME,
        read: |vfs, dir| ClockRecord::read(vfs, dir).map(drop),
        lost: "the time that retention trusted",
    },
    SideFile {
        path: moved::FILE_NAME,
        read: |vfs, dir| MovedUntil::read_all(vfs, dir).map(drop),
        lost: "how far the until of legacy backends was moved: they are asked up to their flags",
    },
    SideFile {
        path: "wal/START",
        read: |vfs, dir| Ok(wal::check_start(vfs, &dir.join(WAL_DIR))?),
        lost: "where the log starts; so it is not known whether its first segments are there",
    },
];

impl Walk<'_, '_> {
    pub(super) fn side_files(&mut self, dir: &Path) {
        for side in SIDE_FILES {
            let path = dir.join(side.path);
            match self.vfs.exists(&path) {
                Ok(false) => continue,
                Ok(true) => self.reading(&path),
                Err(_) => {}
            }
            if let Err(error) = (side.read)(self.vfs.as_ref(), dir) {
                self.report.error(&path, &error);
            }
        }
    }
}
