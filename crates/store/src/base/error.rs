//! What can go wrong, named for what the reader must do.

use crate::base::period::PartitionLength;
use index::Interruption;
use model::size::format_size;
use std::path::PathBuf;

/// `Result` of the store.
pub type Result<T> = std::result::Result<T, Error>;

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
    #[error(
        "the head holds {}, the limit is {} (head-size); try again shortly, or raise --head-size",
        format_size(*size as u64),
        format_size(*max as u64)
    )]
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
    #[error("{value} {what}, the limit is {max} ({limit}){}", limit.remedy())]
    LimitExceeded {
        /// Which.
        limit: Limit,
        /// What is counted.
        what: &'static str,
        /// How many there would be.
        value: u64,
        /// How many there may be.
        max: u64,
    },
    /// The directory has files and no store. Nothing was changed.
    #[error(
        "{} has files of another program ({names}) and no Quipu data: name an empty or new directory",
        directory.display()
    )]
    ForeignDirectory {
        /// The directory.
        directory: PathBuf,
        /// Some of the files.
        names: String,
    },
    /// The caller asked for something that cannot be.
    #[error("{0}")]
    Invalid(String),
    /// A query ran past its deadline.
    #[error(
        "the query ran into its time limit (query.timeout). Select fewer series or a shorter range, or \
         raise --query.timeout"
    )]
    DeadlineExceeded,
    /// The answer is no longer wanted; see [`crate::SelectLimits::cancelled`].
    #[error("the request was cancelled")]
    Cancelled,
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
    /// An encoded page does not decode to its samples. It was not written.
    #[error(
        "{place}: the encoded {what} do not decode to the samples ({found}); nothing was written, the samples stay in the log or in their parts. This is a fault of Quipu: please report it"
    )]
    Encoder {
        /// Timestamps or values.
        what: &'static str,
        /// Series and column.
        place: String,
        /// Difference between what was written and what was read back.
        found: String,
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
    /// A newer program keeps something in the store that this one would misread.
    #[error("{file} says that the store has `{need}`, which this version of Quipu does not know: a newer Quipu wrote it; nothing was changed", file = file.display())]
    UnknownNeed {
        /// The file that says so.
        file: PathBuf,
        /// What it is called.
        need: String,
    },
    /// The data directory was made with partitions of another length than is asked for.
    #[error(
        "{dir} has partitions of a {has} each, not of a {asked}: that is fixed when a directory is \
         made; leave --partition away, or begin a new directory",
        dir = dir.display()
    )]
    OtherLength {
        /// The directory.
        dir: PathBuf,
        /// How long its partitions are.
        has: PartitionLength,
        /// How long they should be.
        asked: PartitionLength,
    },
    /// What was asked for is damaged on disk; the rest of the store serves on.
    #[error("{what}; see quipu verify")]
    Damaged {
        /// What is, and how.
        what: String,
    },
    /// Another database that has a part of the answer does not give it.
    #[error("the answer would not be whole: {what}")]
    Away {
        /// Which, and why.
        what: String,
    },
    /// The disk has no room for what was asked for. Nothing has changed.
    #[error(
        "a merge takes {} of disk, {} are free and {} must stay (free-disk-min); free some",
        format_size(*size),
        format_size(*free),
        format_size(*min)
    )]
    NoRoom {
        /// Bytes that it takes at most.
        size: u64,
        /// Bytes that are free.
        free: u64,
        /// Bytes that must be.
        min: u64,
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

/// The limits that [`Error::LimitExceeded`] tells of; shown as their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Series of one selection.
    Series,
    /// What a selection may cost, estimated before anything is read; no flag.
    SelectionCost,
    /// Partitions of a store; no flag but their length.
    Partitions,
    /// New partitions of one request.
    RequestPartitions,
    /// Bytes of a list of series or labels.
    ListSize,
    /// Samples from other databases.
    ElsewhereSamples,
    /// Bytes from other databases.
    ElsewhereSize,
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Limit::Series => "query.max-series",
            Limit::SelectionCost => "select.cost",
            Limit::Partitions => "partition",
            Limit::RequestPartitions => "max-partitions-per-request",
            Limit::ListSize => "query.max-memory",
            Limit::ElsewhereSamples => "legacy-max-samples",
            Limit::ElsewhereSize => "legacy-max-size",
        })
    }
}

impl Limit {
    /// Advice behind the message; none for a limit of Quipu's own.
    fn remedy(self) -> &'static str {
        match self {
            Limit::Series => ". Select fewer series, or raise --query.max-series",
            Limit::RequestPartitions => {
                ". Send a shorter time range at once, or raise --max-partitions-per-request"
            }
            Limit::ListSize => {
                ". Ask with a selector, a shorter range or a limit, or raise --query.max-memory"
            }
            Limit::ElsewhereSamples => {
                ". Select fewer series or a shorter range, or raise --legacy-max-samples"
            }
            Limit::ElsewhereSize => {
                ". Select fewer series or a shorter range, or raise --legacy-max-size"
            }
            Limit::SelectionCost | Limit::Partitions => "",
        }
    }
}

impl From<index::Error> for Error {
    fn from(error: index::Error) -> Error {
        match error {
            index::Error::Dropped => Error::SeriesDropped,
            index::Error::Interrupted(Interruption::DeadlineExceeded) => Error::DeadlineExceeded,
            index::Error::Interrupted(Interruption::Cancelled) => Error::Cancelled,
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

    /// Whether the file is one of a newer program: it must not be touched, and nothing beside it.
    pub fn is_unknown_version(&self) -> bool {
        matches!(
            self,
            Error::UnknownVersion { .. }
                | Error::UnknownNeed { .. }
                | Error::Wal(wal::Error::UnknownVersion { .. } | wal::Error::UnknownKind { .. })
                | Error::Index(index::Error::UnknownVersion { .. })
        )
    }

    /// Whether the system was short of something when a file was asked for: no damage, and no news
    /// of the file at all.
    pub fn is_passing(&self) -> bool {
        match self {
            Error::Io(error)
            | Error::Index(index::Error::Io(error))
            | Error::Wal(wal::Error::Io(error)) => error.is_passing(),
            Error::Wal(wal::Error::Stalled { .. }) => true,
            _ => false,
        }
    }

    /// Whether a file that is there cannot be read, as where a sector is lost.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Error::Io(error) if error.operation == "read" && !error.is_passing())
    }

    /// Whether, after this error, nobody knows what the disk holds; see the function `is_in_doubt`.
    pub fn leaves_disk_in_doubt(&self) -> bool {
        match self {
            Error::Wal(wal::Error::Latched { .. } | wal::Error::Closed) => true,
            Error::Io(error) | Error::Index(index::Error::Io(error)) => is_in_doubt(error),
            _ => false,
        }
    }

    /// Message without the name of the file, for callers that print the name themselves.
    pub(crate) fn without_file(&self) -> String {
        match self {
            Error::Corrupt { offset, what, .. } => corrupt_words(*offset, what),
            Error::Index(index::Error::Corrupt { offset, what, .. }) => {
                corrupt_words(*offset, what)
            }
            Error::Wal(wal::Error::Corrupt { offset, what, .. }) => corrupt_words(*offset, what),
            Error::Io(error) | Error::Index(index::Error::Io(error)) => {
                format!("cannot be read ({}): {}", error.operation, error.source)
            }
            other => other.to_string(),
        }
    }
}

fn corrupt_words(offset: u64, what: &str) -> String {
    format!("is corrupt at byte {offset}: {what}")
}

/// Whether a failure leaves it open what the disk holds. That something could not be read does not;
/// nor does a full disk, while a file is written that nothing names yet; nor
/// does a name that was taken. But whether a name was
/// changed, and whether that is durable, nobody knows when it failed, whatever the reason.
fn is_in_doubt(error: &vfs::Error) -> bool {
    match error.operation {
        "map" | "read" | "list" | "size" | "look for" | "free space" => false,
        "create" if error.is_already_there() => false,
        "create" if error.is_file_limit() => false,
        "create" | "append" | "sync" | "create directory" | "link" => !error.is_disk_full(),
        _ => true,
    }
}
