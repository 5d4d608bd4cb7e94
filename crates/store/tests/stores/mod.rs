//! Stores for tests: on a simulated disk, doing nothing but what the test asks for.

#![allow(dead_code, reason = "each test file uses a part")]

use std::path::Path;
use std::sync::Arc;
use store::{Store, StoreConfig};
use vfs::SimVfs;

/// Without threads and whatever room the disk has left, so that the same calls always do the same.
pub fn config() -> StoreConfig {
    StoreConfig {
        background: false,
        committer: wal::Committer::Waiter,
        free_disk_min: 0,
        partitions_per_request_max: usize::MAX,
        // Tests set the clock as they like.
        retention_clock_wait_ns: 0,
        ..StoreConfig::standard()
    }
}

/// The store in the disk's `/data`.
pub fn open(disk: &SimVfs, config: StoreConfig) -> Arc<Store> {
    Store::open(Arc::new(disk.clone()), Path::new("/data"), config).unwrap()
}

/// The same with [`config`], and samples kept for that long, nanoseconds; for ever if that is none.
pub fn open_keeping(disk: &SimVfs, retention_ns: Option<i64>) -> Arc<Store> {
    open(disk, StoreConfig { retention_ns, ..config() })
}
