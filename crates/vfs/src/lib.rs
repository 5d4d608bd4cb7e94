//! Everything outside the process that a test wants to own: files, clock, randomness.
//!
//! [`Vfs`] is the seam. [`RealVfs`] is the operating system; [`SimVfs`] is a disk in memory that
//! loses what was not synced, tears writes, fills up, stalls, rots, and fails whatever it is told to.
//! A [`Layer`] before either changes a few operations and hands on the others.
//!
//! ```text
//!  create ──► append ──► append ──► sync ──► append       rename / remove / hard_link
//!                                     │                              │
//!             readable at once        └─ survives a crash            └─ survive a crash
//!                                        (the bytes)                    after sync_dir
//! ```
//!
//! What holds on both: a file is written once from start to end, then never again but for
//! [`Vfs::truncate`]; a name (new, changed or gone) is durable only after [`Vfs::sync_dir`] of its
//! directory, and a file's bytes only after [`AppendFile::sync`], in whatever order the two come;
//! after a failed append or sync the handle refuses everything, so that no sync is ever retried.

#![allow(clippy::disallowed_methods, reason = "what the others call instead")]

pub mod atomic;
pub mod bytes;
pub mod error;
pub mod exchange;
pub mod file;
pub mod layer;
pub mod metered;
pub mod new_dir;
pub mod real;
pub mod sim;

#[cfg(test)]
mod tests;

pub use atomic::write_atomic;
pub use bytes::Bytes;
pub use error::{Error, Result};
pub use file::{AppendFile, ReadFile};
pub use layer::Layer;
pub use metered::{FileCounters, MeteredVfs};
pub use new_dir::create_new_dir;
pub use real::{RealVfs, give_way};
pub use sim::SimVfs;

use std::path::Path;
use std::time::Duration;

/// The file that [`Vfs::lock`] makes in a directory; it holds the pid of the process that has it.
pub const LOCK_FILE: &str = "quipu.lock";

/// What [`Vfs::read`] reads at most: it is for manifests and settings, not for data.
pub const READ_SIZE_MAX: u64 = 1 << 30;

/// A disk, a clock and a source of randomness.
pub trait Vfs: Send + Sync + 'static {
    /// Creates a file that must not exist yet, for appending.
    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>>;

    /// The whole content of a file, for random reading; memory-mapped on a real disk.
    /// Only files that will not change any more may be opened so; removing them is fine.
    fn map(&self, path: &Path) -> Result<Bytes>;

    /// The same file to be read here and there, without a map. Files that are mapped do as well.
    fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>> {
        Ok(Box::new(self.map(path)?))
    }

    /// Reads a small file whole, at most [`READ_SIZE_MAX`].
    fn read(&self, path: &Path) -> Result<Vec<u8>>;

    /// Cuts a file to `size` bytes, at most its present size, and syncs it.
    fn truncate(&self, path: &Path, size: u64) -> Result<()>;

    /// Creates a directory and its parents, durably: it syncs the parent of each that it creates,
    /// and of the one that it finds, which somebody may have made without.
    fn create_dir_all(&self, path: &Path) -> Result<()>;

    /// Names of the entries of a directory, sorted; names that are not UTF-8 are not ours and
    /// left out.
    fn list(&self, path: &Path) -> Result<Vec<String>>;

    /// Whether a file or directory is there. That it cannot be told is an error, never a no: what
    /// counts as absent may be made anew or have its neighbours removed.
    fn exists(&self, path: &Path) -> Result<bool>;

    /// Size of a file.
    fn size(&self, path: &Path) -> Result<u64>;

    /// Renames a file or directory, replacing a file of the new name atomically. A directory
    /// replaces nothing.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Removes a directory with all it holds. A crash may leave any part of it, so what must
    /// vanish at once is renamed first.
    fn remove_dir_all(&self, path: &Path) -> Result<()>;

    /// A second name for the same file.
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()>;

    /// Makes creations, renames and removals in the directory durable.
    fn sync_dir(&self, path: &Path) -> Result<()>;

    /// Bytes that may still be written to the disk that holds `path`, which must exist.
    fn free_space(&self, path: &Path) -> Result<u64>;

    /// Takes the exclusive lock of a directory for the life of the returned value. When another
    /// process (or this one) has it, [`Error::is_locked`] holds and the error's text names the
    /// owner's pid.
    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>>;

    /// Wall clock, nanoseconds since the epoch. It may jump either way.
    fn now(&self) -> i64;

    /// Time since some moment before the store was opened; it never jumps and never goes back.
    fn elapsed(&self) -> Duration;

    /// 64 random bits that a client cannot guess.
    fn random(&self) -> u64;
}
