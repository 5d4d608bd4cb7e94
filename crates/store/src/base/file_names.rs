//! Names of the folders and files of a store, and suffixes of files that are set aside.

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
/// Manifest in a partition's directory.
pub const PARTITION_MANIFEST: &str = "MANIFEST";
/// Table of metadata.
pub const METADATA_FILE: &str = "metadata";
/// Copy of the table of metadata, with the same bytes.
pub const METADATA_COPY: &str = "metadata.copy";
/// Reserved numbers of the string dictionary.
pub const STRINGS_FILE: &str = "strings";
/// Exemplars.
pub const EXEMPLARS_FILE: &str = "exemplars";
/// Partitions that retention has dropped.
pub const DROPPED_FILE: &str = "dropped";
/// What is appended to the name of a side file that is set aside.
pub const CORRUPT_SUFFIX: &str = ".corrupt";

/// Name of the second file with the same content, if a file has one.
pub fn copy_of(name: &str) -> String {
    format!("{name}.copy")
}
