//! A disk that stands before another one: it does some operations its own way, and hands the others
//! on.
//!
//! A test that wants to come between, or a fault that [`SimVfs`](crate::SimVfs) does not have, says
//! what it changes and nothing else.

use crate::error::Result;
use crate::{AppendFile, Bytes, ReadFile, Vfs};
use std::path::Path;
use std::time::Duration;

/// What stands before another disk; whatever it leaves alone is done by [`Layer::below`].
///
/// Its methods are those of [`Vfs`], which every layer is.
pub trait Layer: Send + Sync + 'static {
    /// The disk that it stands before.
    fn below(&self) -> &dyn Vfs;

    /// Called before everything that [`Layer::below`] is asked to do to a path, by its name in
    /// errors; of two paths it is the first. An error is what the caller gets instead.
    ///
    /// # Errors
    /// As the layer likes.
    fn before(&self, operation: &'static str, path: &Path) -> Result<()> {
        let _ = (operation, path);
        Ok(())
    }

    /// As [`Vfs::create`].
    ///
    /// # Errors
    /// As [`Vfs::create`].
    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        self.before("create", path)?;
        self.below().create(path)
    }

    /// As [`Vfs::map`].
    ///
    /// # Errors
    /// As [`Vfs::map`].
    fn map(&self, path: &Path) -> Result<Bytes> {
        self.before("map", path)?;
        self.below().map(path)
    }

    /// As [`Vfs::open`]. Maps the file unless the layer says otherwise: what it does to a map holds for
    /// both.
    ///
    /// # Errors
    /// As [`Vfs::open`].
    fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>> {
        Ok(Box::new(Layer::map(self, path)?))
    }

    /// As [`Vfs::read`].
    ///
    /// # Errors
    /// As [`Vfs::read`].
    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        self.before("read", path)?;
        self.below().read(path)
    }

    /// As [`Vfs::remove`].
    ///
    /// # Errors
    /// As [`Vfs::remove`].
    fn remove(&self, path: &Path) -> Result<()> {
        self.before("remove", path)?;
        self.below().remove(path)
    }

    /// As [`Vfs::truncate`].
    ///
    /// # Errors
    /// As [`Vfs::truncate`].
    fn truncate(&self, path: &Path, size: u64) -> Result<()> {
        self.before("truncate", path)?;
        self.below().truncate(path, size)
    }

    /// As [`Vfs::rename`].
    ///
    /// # Errors
    /// As [`Vfs::rename`].
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.before("rename", from)?;
        self.below().rename(from, to)
    }
}

impl<L: Layer> Vfs for L {
    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        Layer::create(self, path)
    }

    fn map(&self, path: &Path) -> Result<Bytes> {
        Layer::map(self, path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>> {
        Layer::open(self, path)
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        Layer::read(self, path)
    }

    fn truncate(&self, path: &Path, size: u64) -> Result<()> {
        Layer::truncate(self, path, size)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.before("create directory", path)?;
        self.below().create_dir_all(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>> {
        self.before("list", path)?;
        self.below().list(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.before("look for", path)?;
        self.below().exists(path)
    }

    fn size(&self, path: &Path) -> Result<u64> {
        self.before("size", path)?;
        self.below().size(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        Layer::rename(self, from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        Layer::remove(self, path)
    }

    fn remove_dir_all(&self, path: &Path) -> Result<()> {
        self.before("remove directory", path)?;
        self.below().remove_dir_all(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.before("link", from)?;
        self.below().hard_link(from, to)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.before("sync directory", path)?;
        self.below().sync_dir(path)
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        self.before("free space", path)?;
        self.below().free_space(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.before("lock", path)?;
        self.below().lock(path)
    }

    fn now(&self) -> i64 {
        self.below().now()
    }

    fn elapsed(&self) -> Duration {
        self.below().elapsed()
    }

    fn random(&self) -> u64 {
        self.below().random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimVfs;
    use std::sync::{Mutex, PoisonError};

    /// Notes what it is told of; does not let anything be removed.
    struct Noting {
        disk: SimVfs,
        told: Mutex<Vec<&'static str>>,
    }

    impl Layer for Noting {
        fn below(&self) -> &dyn Vfs {
            &self.disk
        }

        fn before(&self, operation: &'static str, path: &Path) -> Result<()> {
            self.told.lock().unwrap_or_else(PoisonError::into_inner).push(operation);
            match operation {
                "remove" => Err(crate::Error::new(operation, path, std::io::Error::other("kept"))),
                _ => Ok(()),
            }
        }
    }

    #[test]
    fn a_layer_hands_on_what_it_leaves_alone_and_stops_what_it_refuses() {
        let disk = SimVfs::new(1);
        disk.create_dir_all(Path::new("/data")).unwrap();
        let noting = Noting { disk: disk.clone(), told: Mutex::default() };
        let (vfs, path): (&dyn Vfs, _) = (&noting, Path::new("/data/a"));
        vfs.create(path).unwrap().append(b"one").unwrap();
        assert_eq!(disk.read(path).unwrap(), b"one", "the disk below has it");
        assert_eq!(&*vfs.map(path).unwrap(), b"one");
        let mut three = [0; 3];
        assert_eq!(vfs.open(path).unwrap().read_at(0, &mut three).unwrap(), 3);
        assert!(vfs.remove(path).is_err());
        assert!(vfs.exists(path).unwrap(), "a refusal never reaches the disk below");
        let told = noting.told.into_inner().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(told, ["create", "map", "map", "remove", "look for"]);
    }
}
