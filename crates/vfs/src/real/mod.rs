//! The operating system's files, clock and randomness.
//!
//! Every method is one system call or a few; all policy is above. Its `unsafe` is in
//! `cached.rs`, `files.rs`, `map.rs`, `guard.rs`, `priority.rs` and in `space.rs`.

mod cached;
mod file;
mod files;
mod guard;
mod lock;
mod map;
mod priority;
mod space;

pub use priority::give_way;

use crate::error::{Error, Result};
use crate::{AppendFile, Bytes, READ_SIZE_MAX, ReadFile, Vfs};
use file::{RealFile, SealedFile};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The operating system.
#[derive(Debug)]
pub struct RealVfs {
    /// Keyed by the system with 128 secret random bits; makes a stream out of the counter.
    keys: RandomState,
    /// How many random numbers were given out.
    count: AtomicU64,
    /// Where [`Vfs::elapsed`] counts from.
    start: Instant,
}

impl RealVfs {
    /// A handle on the operating system.
    pub fn new() -> RealVfs {
        RealVfs { keys: RandomState::new(), count: AtomicU64::new(0), start: Instant::now() }
    }

    /// Has this process open as many files and sockets as it could be allowed to.
    ///
    /// # Errors
    /// When the system says no; the limit stays what it was.
    pub fn raise_open_files() -> io::Result<()> {
        files::raise_open_files()
    }
}

impl Default for RealVfs {
    fn default() -> RealVfs {
        RealVfs::new()
    }
}

/// Rights of new files: their owner's alone. They hold samples, keys and passwords.
const FILE_MODE: u32 = 0o600;
/// Rights of new directories.
const DIRECTORY_MODE: u32 = 0o700;

impl Vfs for RealVfs {
    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        Ok(Box::new(RealFile::create(path)?))
    }

    fn map(&self, path: &Path) -> Result<Bytes> {
        map::map(path).map_err(|error| Error::new("map", path, error))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>> {
        Ok(Box::new(SealedFile::open(path)?))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        read_limited(path).map_err(|error| Error::new("read", path, error))
    }

    fn truncate(&self, path: &Path, size: u64) -> Result<()> {
        truncate(path, size).map_err(|error| Error::new("truncate", path, error))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let parent = crate::atomic::directory_of(path);
        if path.is_dir() {
            // Whoever made it may have died, or failed, before its name was durable. Who may not
            // even read the parent did not make it.
            return match sync_dir(parent) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
                synced => synced.map_err(|error| Error::new("sync directory", parent, error)),
            };
        }
        if parent != path {
            self.create_dir_all(parent)?;
        }
        match fs::DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
            // Somebody else was faster; whether it is durable is not known, so sync as well.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            other => other.map_err(|error| Error::new("create directory", path, error))?,
        }
        self.sync_dir(parent)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        list(path).map_err(|error| Error::new("list", path, error))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        path.try_exists().map_err(|error| Error::new("look for", path, error))
    }

    fn size(&self, path: &Path) -> Result<u64> {
        let metadata = fs::metadata(path).map_err(|error| Error::new("size", path, error))?;
        Ok(metadata.len())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        rename(from, to).map_err(|error| Error::new("rename", from, error))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|error| Error::new("remove", path, error))
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        fs::remove_dir_all(path).map_err(|error| Error::new("remove directory", path, error))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        fs::hard_link(from, to).map_err(|error| Error::new("link", to, error))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        sync_dir(path).map_err(|error| Error::new("sync directory", path, error))
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        space::free_space(path).map_err(|error| Error::new("free space", path, error))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        lock::lock(path).map_err(|error| Error::new("lock", path, error))
    }

    fn now(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn random(&self) -> u64 {
        self.keys.hash_one(self.count.fetch_add(1, Ordering::Relaxed))
    }
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    // The system would let a directory replace an empty one.
    if from != to && from.is_dir() && to.try_exists()? {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)
}

fn sync_dir(path: &Path) -> io::Result<()> {
    let directory = File::open(path)?;
    if !directory.metadata()?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    directory.sync_all()
}

fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    if READ_SIZE_MAX < size {
        let text = format!("{size} bytes, at most {READ_SIZE_MAX} are read whole");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    let mut bytes = Vec::with_capacity(size as usize);
    file.take(READ_SIZE_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn truncate(path: &Path, size: u64) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    let before = file.metadata()?.len();
    if before < size {
        let text = format!("to {size} bytes, the file has {before}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    file.set_len(size)?;
    file.sync_all()
}

fn list(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        if let Ok(name) = entry?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}
