//! A disk that tells a test of what is about to be done, so that it can come between.

use std::path::Path;
use std::sync::{Arc, Mutex};
use vfs::{Layer, SimVfs, Vfs};

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

impl Layer for HookVfs {
    fn below(&self) -> &dyn Vfs {
        &self.inner
    }

    fn before(&self, operation: &'static str, path: &Path) -> vfs::Result<()> {
        match operation {
            // Of these no test wants to hear.
            "truncate" | "create directory" | "list" | "size" | "free space" | "lock" => Ok(()),
            _ => self.tell(operation, path),
        }
    }
}

/// An error as the disk would give it.
#[allow(dead_code, reason = "not all tests let calls fail")]
pub fn io_error(operation: &'static str, path: &Path, kind: std::io::ErrorKind) -> vfs::Error {
    vfs::Error::new(operation, path, kind.into())
}
