//! What can go wrong in the index, named for what the caller must do about it.

use crate::interrupt::Interruption;

/// `Result` of this room.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the index refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A matcher whose regular expression does not compile: tell the client.
    #[error("invalid matcher {matcher}: {reason}")]
    InvalidMatcher {
        /// The matcher as text.
        matcher: String,
        /// What the regular expression's parser said.
        reason: String,
    },
    /// Names or tags that break the rules of [`crate::NewEntity`]: a bug of the caller or a bad row.
    #[error("invalid entity: {0}")]
    InvalidEntity(&'static str),
    /// The memory index has no room until it is frozen: by the next flush.
    #[error("{what} are used up until the next flush, the limit is {max}")]
    MemoryFull {
        /// Of what there is none left.
        what: &'static str,
        /// How many there may be.
        max: u64,
    },
    /// The partition has no ids left, or a segment no room.
    #[error("{what} are used up, the limit is {max}")]
    Full {
        /// Of what there is none left.
        what: &'static str,
        /// How many there may be.
        max: u64,
    },
    /// A search would cost more than [`crate::CompiledMatchers::costing_at_most`] allows.
    #[error("the search would look at {cost} blocks or strings, the limit is {max}")]
    TooCostly {
        /// What it would look at.
        cost: u64,
        /// What it may.
        max: u64,
    },
    /// The deadline of the search passed, or another thread cancelled it.
    #[error("the search was interrupted: {0:?}")]
    Interrupted(Interruption),
    /// Bytes that no writer of ours left behind.
    #[error("{file} is corrupt at byte {offset}: {what}")]
    Corrupt {
        /// The file's name, or `registrations`.
        file: String,
        /// Where in the file.
        offset: u64,
        /// What was expected.
        what: &'static str,
    },
    /// A newer program wrote the file: neither read nor changed.
    #[error(
        "{file} has format version {version}, this program reads up to {max}: a newer Quipu wrote \
         it; nothing was changed"
    )]
    UnknownVersion {
        /// The file's name.
        file: String,
        /// Its version.
        version: u32,
        /// The newest that is known.
        max: u32,
    },
    /// What a new segment was written from is not in the index any more: see
    /// [`crate::Index::install`].
    #[error("the index changed since the segment was written")]
    Changed,
    /// The labels of a series were asked for that a merge left out, see [`crate::MergeJob::run`].
    #[error("a series was deleted while it was read; ask again")]
    Dropped,
    /// The disk failed.
    #[error(transparent)]
    Io(#[from] vfs::Error),
}

/// A place in a segment's sections, before the file's name is known.
pub(crate) fn corrupt(what: &'static str) -> Error {
    Error::Corrupt { file: String::new(), offset: 0, what }
}

impl From<codec::Error> for Error {
    fn from(error: codec::Error) -> Error {
        Error::Corrupt { file: String::new(), offset: error.offset as u64, what: error.what }
    }
}

impl Error {
    /// The same error with the file's name filled in.
    pub(crate) fn in_file(self, name: &str) -> Error {
        match self {
            Error::Corrupt { file, offset, what } if file.is_empty() => {
                Error::Corrupt { file: name.to_string(), offset, what }
            }
            Error::UnknownVersion { file, version, max } if file.is_empty() => {
                Error::UnknownVersion { file: name.to_string(), version, max }
            }
            other => other,
        }
    }

    /// Whether bytes are not as they were written.
    pub fn is_corrupt(&self) -> bool {
        matches!(self, Error::Corrupt { .. })
    }
}
