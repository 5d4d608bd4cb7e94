//! Small files of a data directory, read and written whole.
//!
//! [`root_manifest`] names partitions and files, [`partition_length`] holds the length of partitions
//! and the feature flags ([`needs`]), [`identity`] the identity of the store, [`restoring`] the mark
//! of an unfinished restore.

pub(crate) mod side_file;
pub(crate) mod root_manifest;
pub(crate) mod named_log;
pub(crate) mod partition_length;
pub(crate) mod needs;
pub(crate) mod identity;
pub(crate) mod restoring;
