//! A disk that tells a test of what is about to be done, so that it can come between.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use vfs::{AppendFile, Bytes, SimVfs, Vfs};

/// What happens before an operation on a path, by the operation's name.
pub type Hook = Box<dyn FnMut(&str, &Path) -> vfs::Result<()> + Send>;

/// A disk that tells a test of every change, and of maps and reads, before it makes them.
#[derive(Clone)]
pub struct HookVfs {
    inner: SimVfs,
    hook: Arc<Mutex<Option<Hook>>>,
}

impl HookVfs {
    /// A disk that tells nobody yet.
    pub fn new(inner: &SimVfs) -> HookVfs {
        HookVfs { inner: inner.clone(), hook: Arc::default() }
    }

    /// Tells `hook` from now on.
    pub fn set(&self, hook: impl FnMut(&str, &Path) -> vfs::Result<()> + Send + 'static) {
        *self.hook.lock().unwrap() = Some(Box::new(hook));
    }

    /// Not held while the hook runs, so that it may use the store; not called again meanwhile.
    fn tell(&self, operation: &str, path: &Path) -> vfs::Result<()> {
        let Some(mut hook) = self.hook.lock().unwrap().take() else { return Ok(()) };
        let told = hook(operation, path);
        self.hook.lock().unwrap().get_or_insert(hook);
        told
    }
}

impl Vfs for HookVfs {
    fn create(&self, path: &Path) -> vfs::Result<Box<dyn AppendFile>> {
        self.tell("create", path)?;
        self.inner.create(path)
    }
    fn map(&self, path: &Path) -> vfs::Result<Bytes> {
        self.tell("map", path)?;
        self.inner.map(path)
    }
    fn read(&self, path: &Path) -> vfs::Result<Vec<u8>> {
        self.tell("read", path)?;
        self.inner.read(path)
    }
    fn truncate(&self, path: &Path, size: u64) -> vfs::Result<()> {
        self.inner.truncate(path, size)
    }
    fn create_dir_all(&self, path: &Path) -> vfs::Result<()> {
        self.inner.create_dir_all(path)
    }
    fn list(&self, path: &Path) -> vfs::Result<Vec<String>> {
        self.inner.list(path)
    }
    fn exists(&self, path: &Path) -> vfs::Result<bool> {
        self.tell("look for", path)?;
        self.inner.exists(path)
    }
    fn size(&self, path: &Path) -> vfs::Result<u64> {
        self.inner.size(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> vfs::Result<()> {
        self.tell("rename", from)?;
        self.inner.rename(from, to)
    }
    fn remove(&self, path: &Path) -> vfs::Result<()> {
        self.tell("remove", path)?;
        self.inner.remove(path)
    }
    fn remove_dir_all(&self, path: &Path) -> vfs::Result<()> {
        self.tell("remove directory", path)?;
        self.inner.remove_dir_all(path)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> vfs::Result<()> {
        self.tell("link", from)?;
        self.inner.hard_link(from, to)
    }
    fn sync_dir(&self, path: &Path) -> vfs::Result<()> {
        self.tell("sync directory", path)?;
        self.inner.sync_dir(path)
    }
    fn free_space(&self, path: &Path) -> vfs::Result<u64> {
        self.inner.free_space(path)
    }
    fn lock(&self, path: &Path) -> vfs::Result<Box<dyn Send + Sync>> {
        self.inner.lock(path)
    }
    fn now(&self) -> i64 {
        self.inner.now()
    }
    fn elapsed(&self) -> Duration {
        self.inner.elapsed()
    }
    fn random(&self) -> u64 {
        self.inner.random()
    }
}

/// An error as the disk would give it.
#[allow(dead_code, reason = "not all tests let calls fail")]
pub fn io_error(operation: &'static str, path: &Path, kind: std::io::ErrorKind) -> vfs::Error {
    vfs::Error::new(operation, path, kind.into())
}
