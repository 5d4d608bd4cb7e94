//! What all parts of an open store stand on: where it is, how it is configured, what is counted,
//! what is damaged, and whether it is well.
//!
//! Made first, before anything of the store is read, and never replaced; every part holds it. It
//! knows none of them.

use crate::StoreConfig;
use crate::base::counters::Counters;
use crate::base::damage::DamageList;
use crate::base::directory::root_manifest::RootManifest;
use crate::base::file_names::PARTITIONS_DIR;
use crate::base::health::Health;
use crate::base::period::{PartitionLength, Period};
use crate::base::signals::Signals;
use std::path::PathBuf;
use std::sync::Arc;
use vfs::Vfs;

/// What keeps other processes out of a store's directory while it is held.
pub(crate) type DirectoryLock = Arc<dyn Send + Sync>;

/// What a store stands on.
pub(crate) struct Ground {
    pub vfs: Arc<dyn Vfs>,
    pub dir: PathBuf,
    pub config: StoreConfig,
    /// Of all partitions.
    pub length: PartitionLength,
    pub counters: Counters,
    /// What is known to be missing or rotten.
    pub damage: Arc<DamageList>,
    pub health: Health,
    /// The partitions and files that there are.
    pub root: RootManifest,
    pub signals: Signals,
    /// Keeps other processes out.
    pub lock: DirectoryLock,
}

impl Ground {
    /// Where a partition is, or would be.
    pub fn partition_dir(&self, period: Period) -> PathBuf {
        self.dir.join(PARTITIONS_DIR).join(period.name())
    }

    /// Bytes that are free on the disk; as many as there can be when nobody knows.
    pub fn free_space(&self) -> u64 {
        self.vfs.free_space(&self.dir).unwrap_or(u64::MAX)
    }
}
