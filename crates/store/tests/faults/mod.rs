//! What a simulated disk does not do by itself: a process that is killed while the machine stays
//! up, and a disk that forgets a failed sync.
//!
//! ```text
//! killed     every change from the n-th on fails, reads go on; the disk beneath keeps its cache,
//!            so the next process sees bytes that were never synced
//! forgetful  a sync that failed dropped the bytes it should have written: readers still see them,
//!            every later sync of that file succeeds, and a crash takes them all the same
//! ```

#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use vfs::{AppendFile, Layer, SimVfs, Vfs};

/// A simulated disk behind these faults.
#[derive(Clone)]
pub struct FaultyVfs {
    inner: SimVfs,
    /// Changes until the process is killed.
    left: Arc<AtomicI64>,
    /// Files of which a sync failed. Shared by all processes of one machine.
    forgotten: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl FaultyVfs {
    pub fn new(inner: &SimVfs) -> FaultyVfs {
        FaultyVfs {
            inner: inner.clone(),
            left: Arc::new(AtomicI64::new(i64::MAX)),
            forgotten: Arc::default(),
        }
    }

    /// The same machine for another process, which is killed after so many changes.
    pub fn process(&self, changes: i64) -> FaultyVfs {
        FaultyVfs { left: Arc::new(AtomicI64::new(changes)), ..self.clone() }
    }

    fn step(&self, what: &'static str, path: &Path) -> vfs::Result<()> {
        if self.left.fetch_sub(1, Ordering::SeqCst) <= 0 {
            return Err(vfs::Error::new(what, path, std::io::Error::other("killed")));
        }
        Ok(())
    }

    fn is_forgotten(&self, path: &Path) -> bool {
        self.forgotten.lock().unwrap().contains(path)
    }
}

struct FaultyFile {
    inner: Box<dyn AppendFile>,
    vfs: FaultyVfs,
    path: PathBuf,
}

impl AppendFile for FaultyFile {
    fn append(&mut self, bytes: &[u8]) -> vfs::Result<()> {
        self.vfs.step("append", &self.path)?;
        self.inner.append(bytes)
    }

    fn sync(&mut self) -> vfs::Result<()> {
        self.vfs.step("sync", &self.path)?;
        let result = self.inner.sync();
        if result.is_err() {
            self.vfs.forgotten.lock().unwrap().insert(self.path.clone());
        }
        result
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }
}

impl Layer for FaultyVfs {
    fn below(&self) -> &dyn Vfs {
        &self.inner
    }

    /// A process that was killed changes nothing more; what it could still read harms nobody.
    fn before(&self, operation: &'static str, path: &Path) -> vfs::Result<()> {
        match operation {
            "map" | "read" | "list" | "look for" | "size" | "free space" | "lock" => Ok(()),
            _ => self.step(operation, path),
        }
    }

    fn create(&self, path: &Path) -> vfs::Result<Box<dyn AppendFile>> {
        self.step("create", path)?;
        let inner = self.inner.create(path)?;
        self.forgotten.lock().unwrap().remove(path);
        Ok(Box::new(FaultyFile { inner, vfs: self.clone(), path: path.to_path_buf() }))
    }

    fn truncate(&self, path: &Path, size: u64) -> vfs::Result<()> {
        self.step("truncate", path)?;
        if self.is_forgotten(path) && self.inner.size(path)? == size {
            // Nothing to cut, and nothing left to sync as far as the system knows.
            return Ok(());
        }
        self.inner.truncate(path, size)
    }

    fn rename(&self, from: &Path, to: &Path) -> vfs::Result<()> {
        self.step("rename", from)?;
        self.inner.rename(from, to)?;
        let mut forgotten = self.forgotten.lock().unwrap();
        let is_forgotten = forgotten.remove(from);
        forgotten.remove(to);
        if is_forgotten {
            forgotten.insert(to.to_path_buf());
        }
        Ok(())
    }
}
