//! Everything outside the process that a test wants to own: files, clock, randomness.
//!
//! [`Vfs`] is the seam. [`RealVfs`] is the operating system; [`SimVfs`] is a disk in memory that
//! can lose what was not synced, tear writes, fill up and fail a sync.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What can go wrong with files.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {path}: {source}", path = path.display())]
pub struct Error {
    /// The operation, such as `write`.
    pub operation: &'static str,
    /// On which file.
    pub path: PathBuf,
    /// What the operating system said.
    pub source: std::io::Error,
}

/// `Result` of this room.
pub type Result<T> = std::result::Result<T, Error>;

/// A disk, a clock and a source of randomness.
pub trait Vfs: Send + Sync + 'static {
    /// Creates a file that must not exist yet, for appending.
    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>>;
    /// The whole content of a file, for random reading; memory-mapped on a real disk.
    /// Only files that will not change any more may be opened so.
    fn map(&self, path: &Path) -> Result<Bytes>;
    /// Reads a small file whole.
    fn read(&self, path: &Path) -> Result<Vec<u8>>;
    /// Cuts a file to `size` bytes and syncs it.
    fn truncate(&self, path: &Path, size: u64) -> Result<()>;
    /// Creates a directory and its parents.
    fn create_dir_all(&self, path: &Path) -> Result<()>;
    /// Names of the entries of a directory, sorted.
    fn list(&self, path: &Path) -> Result<Vec<String>>;
    /// Whether a file or directory is there.
    fn exists(&self, path: &Path) -> bool;
    /// Size of a file.
    fn size(&self, path: &Path) -> Result<u64>;
    /// Renames a file or directory, replacing a file of the new name atomically.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<()>;
    /// Removes a directory with all it holds.
    fn remove_dir_all(&self, path: &Path) -> Result<()>;
    /// A second name for the same file.
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()>;
    /// Makes creations, renames and removals in the directory durable.
    fn sync_dir(&self, path: &Path) -> Result<()>;
    /// Bytes that may still be written to the disk that holds `path`.
    fn free_space(&self, path: &Path) -> Result<u64>;
    /// Takes the exclusive lock of a directory for the life of the returned value. When another
    /// process has it, the error's text names that process' pid.
    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>>;
    /// Wall clock, nanoseconds since the epoch.
    fn now(&self) -> i64;
    /// 64 random bits.
    fn random(&self) -> u64;
}

/// A file being written, once, from start to end.
pub trait AppendFile: Send {
    /// Appends; the bytes are readable at once and durable after [`AppendFile::sync`].
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
    /// Makes all that was appended durable (data and size).
    fn sync(&mut self) -> Result<()>;
    /// Bytes appended so far.
    fn size(&self) -> u64;
}

/// The bytes of a sealed file (or of memory that plays one). Cheap to clone, `Deref` to `[u8]`.
#[derive(Clone)]
pub struct Bytes {
    holder: Arc<dyn AsRef<[u8]> + Send + Sync>,
}

impl Bytes {
    /// Bytes held in memory.
    pub fn from_vec(bytes: Vec<u8>) -> Bytes {
        Bytes { holder: Arc::new(bytes) }
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        (*self.holder).as_ref()
    }
}
