//! What can go wrong, named for what the reader must do.

use std::path::PathBuf;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Writes are off until the reason is gone (a restart, or free disk space); reads go on.
    #[error("the store is read-only: {reason}")]
    ReadOnly {
        /// Why.
        reason: String,
    },
    /// The head is full because flushing cannot keep up. Nothing of the batch was taken: try again.
    #[error("the head holds {size} bytes, the limit is {max} (head-size); try again shortly")]
    HeadFull {
        /// Bytes in use.
        size: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// Some series are new, or could not be looked up, and the store can take or find none just
    /// now. The rows of the others were taken: send all again later.
    #[error("{count} rows wait for series that cannot be taken or found now: {reason}")]
    NewSeriesRefused {
        /// Rows of such series, exemplars too.
        count: u64,
        /// Why the first of them was not taken.
        reason: String,
    },
    /// A limit was reached.
    #[error("{value} {what}, the limit is {max} ({limit})")]
    LimitExceeded {
        /// The limit's name, a flag where there is one.
        limit: &'static str,
        /// What is counted.
        what: &'static str,
        /// How many there would be.
        value: u64,
        /// How many there may be.
        max: u64,
    },
    /// The caller asked for something that cannot be.
    #[error("{0}")]
    Invalid(String),
    /// A query ran past its deadline.
    #[error("the query ran into its time limit")]
    DeadlineExceeded,
    /// Bytes on disk are not what was written.
    #[error("{file} is corrupt at byte {offset}: {what}", file = file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Where in it.
        offset: u64,
        /// What was expected.
        what: String,
    },
    /// A newer program wrote the file: neither read nor changed.
    #[error("{file} has format version {version}, this program reads {known}: a newer Quipu wrote it; nothing was changed", file = file.display())]
    UnknownVersion {
        /// The file.
        file: PathBuf,
        /// Its version.
        version: String,
        /// What is known.
        known: String,
    },
    /// Retention removed the partition while it was about to be used; the store tries again.
    #[error("the partition was just dropped by retention")]
    PartitionDropped,
    /// A selected series was deleted, and a merge left it out of the index: select again.
    #[error("a series was deleted while it was read; ask again")]
    SeriesDropped,
    /// The index refused or could not be read.
    #[error(transparent)]
    Index(index::Error),
    /// The log failed.
    #[error(transparent)]
    Wal(#[from] wal::Error),
    /// The file system failed.
    #[error(transparent)]
    Io(#[from] vfs::Error),
}

impl From<index::Error> for Error {
    fn from(error: index::Error) -> Error {
        match error {
            index::Error::Dropped => Error::SeriesDropped,
            index::Error::UnknownVersion { file, version, max } => Error::UnknownVersion {
                file: file.into(),
                version: version.to_string(),
                known: format!("up to {max}"),
            },
            other => Error::Index(other),
        }
    }
}

impl Error {
    /// Whether bytes on disk are not what was written.
    pub fn is_corrupt(&self) -> bool {
        match self {
            Error::Corrupt { .. } => true,
            Error::Index(error) => error.is_corrupt(),
            _ => false,
        }
    }
}
