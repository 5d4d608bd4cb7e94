//! What can go wrong with files: which operation, on which file, and what the system said.

use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong with files.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {path}: {source}", path = path.display())]
pub struct Error {
    /// The operation, such as `append`.
    pub operation: &'static str,
    /// On which file.
    pub path: PathBuf,
    /// What the operating system said.
    pub source: io::Error,
}

/// `Result` of this room.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `operation` on `path`.
    pub fn new(operation: &'static str, path: &Path, source: io::Error) -> Error {
        Error { operation, path: path.to_path_buf(), source }
    }

    /// Whether there is no such file or directory.
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Whether the name is taken.
    pub fn is_already_there(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }

    /// Whether the disk (or the quota) is full: the one failure that passes when room is made.
    pub fn is_disk_full(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Whether the process, or the system, has as many files open as it may: only opening says so,
    /// so nothing was written and no sync was tried.
    pub fn is_file_limit(&self) -> bool {
        const TOO_MANY_FILES: [i32; 2] = [23, 24];
        self.source.raw_os_error().is_some_and(|number| TOO_MANY_FILES.contains(&number))
    }

    /// Whether the system, and not the file, is the reason: what is short just now may be there
    /// at the next try. Nothing is said about the file.
    pub fn is_passing(&self) -> bool {
        self.is_disk_full()
            || matches!(
                self.source.kind(),
                io::ErrorKind::OutOfMemory
                    | io::ErrorKind::Interrupted
                    | io::ErrorKind::WouldBlock
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::ResourceBusy
            )
            || self.is_file_limit()
    }

    /// Whether somebody else holds the lock of the directory.
    pub fn is_locked(&self) -> bool {
        self.operation == "lock" && self.source.kind() == io::ErrorKind::WouldBlock
    }
}
