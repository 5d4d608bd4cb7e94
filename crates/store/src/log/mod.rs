//! Log of the store: its records, and the state that lives in the log until the next flush.
//!
//! [`store_log`] appends, syncs and truncates; [`log_record`] encodes. Metadata and exemplars have
//! records of their own and one file each, which a flush writes.

pub(crate) mod log_record;
pub(crate) mod store_log;
pub(crate) mod unflushed;
pub(crate) mod metadata;
pub(crate) mod metadata_files;
pub(crate) mod exemplar_record;
pub(crate) mod exemplars;
pub(crate) mod string_numbers;
