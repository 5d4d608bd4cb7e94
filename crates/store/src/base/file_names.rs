//! Names of the folders of a store, and of what is set aside in them.

/// Folder of the log.
pub const WAL_DIR: &str = "wal";
/// Folder of the partitions.
pub const PARTITIONS_DIR: &str = "partitions";
/// Folder of the snapshots.
pub const SNAPSHOTS_DIR: &str = "snapshots";
/// Folder of the parts in a partition's directory.
pub const PARTS_DIR: &str = "parts";
/// Folder of the index segments in a partition's directory.
pub const INDEX_DIR: &str = "index";
/// What is appended to the name of a side file that is set aside.
pub const CORRUPT_SUFFIX: &str = ".corrupt";

/// Name of the second file with the same content, if a file has one.
pub fn copy_of(name: &str) -> String {
    format!("{name}.copy")
}
