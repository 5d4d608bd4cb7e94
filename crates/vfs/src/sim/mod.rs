//! A disk in memory that behaves as badly as disks may, from a seed.
//!
//! A test runs on it, calls [`SimVfs::crash`] (or lets the machine die at the n-th change with
//! [`SimVfs::fail_after`]) and opens what is left. What is left obeys [`crate`]'s promises and no
//! more:
//!
//! ```text
//! bytes      |──── synced: kept ────|── unsynced: any prefix, torn at any byte, then perhaps
//!                                      zeros or garbage, or a hole in the middle
//! names      every change waits in a list until sync_dir of its directory (which takes along the
//!            earlier changes it depends on); a crash keeps a random choice of the others such
//!            that within one directory no later change survives an earlier one that is lost
//! ```
//!
//! The same seed and the same calls give the same disk. Handles are cheap clones of one disk; a
//! crash gives a new disk and leaves the old one alone, so that threads of the dead process may
//! go on writing into nothing.

mod crash;
mod disk;
mod file;
mod namespace;

use crate::error::{Error, Result};
use crate::{AppendFile, Bytes, LOCK_FILE, Vfs};
use disk::Disk;
use file::SimFile;
use namespace::NodeId;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// A simulated disk, clock and source of randomness.
#[derive(Clone)]
pub struct SimVfs {
    /// Guards everything; taken for the length of one call, never nested.
    disk: Arc<Mutex<Disk>>,
}

impl SimVfs {
    /// An empty disk with nearly endless room; the clock stands at zero.
    pub fn new(seed: u64) -> SimVfs {
        SimVfs::from_disk(Disk::new(seed))
    }

    /// The disk as found after the power failed now. Everything found is durable; locks, faults
    /// and the count of operations start anew, room and clock stay. Each call throws the dice again.
    pub fn crash(&self) -> SimVfs {
        let after = self.disk().crash();
        SimVfs::from_disk(after)
    }

    /// How many changes (create, append, sync, truncate, make directory, rename, remove, link,
    /// sync directory, lock) were tried so far.
    pub fn operations(&self) -> u64 {
        self.disk().operations
    }

    /// Lets all changes from number `operation` on (counted as in [`SimVfs::operations`], from 0)
    /// fail without effect, as if the machine had died before it. Reads go on.
    pub fn fail_after(&self, operation: u64) {
        self.disk().dead_from = operation;
    }

    /// Lets the next `count` syncs, of files and of directories, fail; what they should have made
    /// durable is not.
    pub fn fail_syncs(&self, count: u64) {
        self.disk().failing_syncs = count;
    }

    /// Sets the room left. Appends take from it, removals give back; an append beyond it writes
    /// what fits and fails.
    pub fn set_free_space(&self, size: u64) {
        self.disk().free_space = size;
    }

    /// Flips bit `bit` (0 to 7) of the byte at `offset`, on the disk and for readers: bit rot.
    /// Maps taken before keep the old byte.
    ///
    /// # Errors
    /// When there is no such file or byte.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) -> Result<()> {
        assert!(bit < 8);
        let mut disk = self.disk();
        disk.flip_bit(path, offset, bit).map_err(|error| Error::new("flip bit", path, error))
    }

    /// Lets time pass: the clock and [`Vfs::elapsed`] go on together.
    pub fn advance(&self, nanoseconds: u64) {
        let mut disk = self.disk();
        disk.now = disk.now.saturating_add_unsigned(nanoseconds);
        disk.elapsed_ns += nanoseconds;
    }

    /// Sets the clock, which jumps there: no time passes.
    pub fn set_now(&self, nanoseconds: i64) {
        self.disk().now = nanoseconds;
    }

    fn from_disk(disk: Disk) -> SimVfs {
        SimVfs { disk: Arc::new(Mutex::new(disk)) }
    }

    /// The disk. A panic of another thread inside a call would be a bug of this file, and shows.
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().expect("the simulated disk does not panic")
    }

    /// Counts one change and performs it, unless the machine is dead.
    fn change<T>(
        &self,
        operation: &'static str,
        path: &Path,
        act: impl FnOnce(&mut Disk) -> io::Result<T>,
    ) -> Result<T> {
        let mut disk = self.disk();
        let result = disk.begin_change().and_then(|()| act(&mut disk));
        result.map_err(|error| Error::new(operation, path, error))
    }
}

impl Vfs for SimVfs {
    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let node = self.change("create", path, |disk| disk.create(path))?;
        Ok(Box::new(SimFile::new(self.clone(), path, node)))
    }

    fn map(&self, path: &Path) -> Result<Bytes> {
        let disk = self.disk();
        let bytes = disk.names.bytes(path).map_err(|error| Error::new("map", path, error))?;
        Ok(Bytes::from_holder(bytes.clone()))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let disk = self.disk();
        let bytes = disk.names.bytes(path).map_err(|error| Error::new("read", path, error))?;
        Ok(bytes.to_vec())
    }

    fn truncate(&self, path: &Path, size: u64) -> Result<()> {
        self.change("truncate", path, |disk| disk.truncate(path, size))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.change("create directory", path, |disk| disk.create_dir_all(path))
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        self.disk().names.list(path).map_err(|error| Error::new("list", path, error))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        match self.disk().names.find(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::new("look for", path, error)),
        }
    }

    fn size(&self, path: &Path) -> Result<u64> {
        let disk = self.disk();
        let bytes = disk.names.bytes(path).map_err(|error| Error::new("size", path, error))?;
        Ok(bytes.len() as u64)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.change("rename", from, |disk| disk.rename(from, to))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.change("remove", path, |disk| disk.remove(path))
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        self.change("remove directory", path, |disk| disk.remove_dir_all(path))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.change("link", to, |disk| disk.hard_link(from, to))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.change("sync directory", path, |disk| disk.sync_dir(path))
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        let disk = self.disk();
        disk.names.find(path).map_err(|error| Error::new("free space", path, error))?;
        Ok(disk.free_space)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        let directory = self.change("lock", path, |disk| disk.lock(path, LOCK_FILE))?;
        Ok(Box::new(SimLock { vfs: self.clone(), directory }))
    }

    fn now(&self) -> i64 {
        self.disk().now
    }

    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.disk().elapsed_ns)
    }

    fn random(&self) -> u64 {
        self.disk().random.next()
    }
}

impl fmt::Debug for SimVfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimVfs({} operations)", self.operations())
    }
}

/// The lock of a directory; given back on drop.
struct SimLock {
    vfs: SimVfs,
    directory: NodeId,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let had_it = self.vfs.disk().locked.remove(&self.directory);
        assert!(had_it || std::thread::panicking());
    }
}
