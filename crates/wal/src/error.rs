//! What can go wrong with the log, named for what the caller must do.

use std::path::PathBuf;

/// What whoever replays the log says about a record it cannot take.
pub type ReplayError = Box<dyn std::error::Error + Send + Sync>;

/// What can go wrong with the log.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A write or a sync failed: the log takes nothing more until it is opened again.
    #[error("the log is read-only since {reason}; start the server again when that is mended")]
    Latched {
        /// The first failure.
        reason: String,
    },
    /// The disk is slower than the appends: try again later.
    #[error(
        "{pending_size} bytes of log wait for the disk and {record_size} more would exceed the \
         limit of {max}"
    )]
    Busy {
        /// Bytes that wait, or that have room to come.
        pending_size: usize,
        /// Bytes that were refused.
        record_size: usize,
        /// [`crate::WalConfig::pending_size_max`].
        max: usize,
    },
    /// The disk is full, or no file handle is free to begin a segment with. What was appended waits
    /// in memory and is written once that has passed; until then it is not durable.
    #[error("the log waits: {reason}; {}", remedy(*is_disk_full))]
    Stalled {
        /// What the system said.
        reason: String,
        /// Whether the disk is full.
        is_disk_full: bool,
    },
    /// A record over the limit.
    #[error("a log record of {size} bytes, the limit is {max}")]
    RecordTooLarge {
        /// Its payload's size.
        size: usize,
        /// [`crate::WalConfig::record_size_max`].
        max: usize,
    },
    /// The log was closed.
    #[error("the log is closed")]
    Closed,
    /// Bytes that were synced are not what was written.
    #[error("{file} is corrupt at byte {offset}: {what}", file = file.display())]
    Corrupt {
        /// Which segment.
        file: PathBuf,
        /// Where.
        offset: u64,
        /// What was expected.
        what: &'static str,
    },
    /// A segment that must be there is not.
    #[error(
        "{file} is missing, though the log had it (a later segment is there, or `START` names it); \
         `quipu verify --repair` does without it",
        file = file.display()
    )]
    MissingSegment {
        /// Its file.
        file: PathBuf,
    },
    /// What stands beside the log says that it goes on with a segment that there cannot be.
    #[error(
        "the log in {directory} would go on with segment {segment}, and the last that there can be \
         is {max}: a file beside it says what is not true; see quipu verify",
        directory = directory.display()
    )]
    NoSuchSegment {
        /// Where the log is.
        directory: PathBuf,
        /// The segment.
        segment: u64,
        /// The last one.
        max: u64,
    },
    /// A file written by a later version of this program.
    #[error("{file} has format version {version}, this program reads up to {max}", file = file.display())]
    UnknownVersion {
        /// Which one.
        file: PathBuf,
        /// Its version.
        version: u32,
        /// The last one known.
        max: u32,
    },
    /// A record of a kind that is in no table of this program: a later version wrote it. Nothing
    /// was changed.
    #[error(
        "{file} has a record of kind {kind} at byte {offset}, which this program does not know: a \
         newer Quipu wrote it; nothing was changed",
        file = file.display()
    )]
    UnknownKind {
        /// The record's kind.
        kind: u8,
        /// Which segment.
        file: PathBuf,
        /// Where the record starts.
        offset: u64,
    },
    /// Whoever replays the log could not take a record.
    #[error("{file} at byte {offset}: {source}", file = file.display())]
    Replay {
        /// Which segment.
        file: PathBuf,
        /// Where the record starts.
        offset: u64,
        /// What was said about it.
        source: ReplayError,
    },
    /// A file operation failed, while opening or removing.
    #[error(transparent)]
    Io(#[from] vfs::Error),
}

fn remedy(is_disk_full: bool) -> &'static str {
    match is_disk_full {
        true => "free some disk space, and it goes on",
        false => "raise the file limit (ulimit -n)",
    }
}

/// `Result` of this room.
pub type Result<T> = std::result::Result<T, Error>;
