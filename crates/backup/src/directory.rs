//! A directory as a place of backups: a file for each name, whole from the moment that it has its name.

use super::place::{Entry, Place};
use anyhow::Context as _;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;
use vfs::{RealVfs, Vfs as _};

/// What stands behind the name of a file that is being written; random digits follow.
pub const NEW_SUFFIX: &str = ".new-";

/// The directory.
pub struct Directory {
    root: PathBuf,
    name: String,
    /// Folders with names that a power cut might take.
    unsettled: Mutex<BTreeSet<PathBuf>>,
}

impl Directory {
    /// The directory of that path, which is made when the first name is put.
    ///
    /// # Errors
    /// When something else is there.
    pub fn new(root: &Path) -> anyhow::Result<Directory> {
        let name = root.display().to_string();
        match fs::metadata(root) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => anyhow::bail!("{name} is no directory"),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).context(name),
        }
        Ok(Directory { root: root.to_path_buf(), name, unsettled: Mutex::default() })
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        let mut new = path.as_os_str().to_owned();
        new.push(format!("{NEW_SUFFIX}{:016x}", RealVfs::new().random()));
        let written = (|| {
            let mut file = File::create_new(&new)?;
            file.write_all(bytes)?;
            file.sync_data()?;
            fs::rename(&new, path)
        })();
        if written.is_err() {
            // It only takes room, which may be what is short.
            let _ = fs::remove_file(&new);
        }
        written
    }

    fn walk(&self, folder: &Path, key: &str, found: &mut Vec<Entry>) -> std::io::Result<()> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let key = format!("{key}/{name}");
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                // Whoever wrote it has given it its name, or taken it away.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if metadata.is_dir() {
                self.walk(&entry.path(), &key, found)?;
            } else {
                found.push(Entry { key, size: metadata.len(), modified: modified(&metadata) });
            }
        }
        Ok(())
    }
}

/// When a file was last changed, in nanoseconds since 1970.
pub fn modified(metadata: &fs::Metadata) -> i64 {
    let Ok(time) = metadata.modified() else {
        return metadata.mtime().saturating_mul(1_000_000_000);
    };
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(error) => i64::try_from(error.duration().as_nanos()).map_or(i64::MIN, |before| -before),
    }
}

/// An error of a file, with what may be done about it.
pub fn of_file(error: std::io::Error, path: &Path) -> anyhow::Error {
    let shown = path.display();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            anyhow::anyhow!("{shown}: {error}: make room there and run the same again, it goes on")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            anyhow::anyhow!("{shown}: {error}: this user must be able to read and write there")
        }
        _ => anyhow::Error::new(error).context(shown.to_string()),
    }
}

impl Place for Directory {
    fn name(&self) -> &str {
        &self.name
    }

    fn put(&self, key: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.root.join(key);
        let folder = path.parent().context("a name has a folder")?;
        if !folder.is_dir() {
            RealVfs::new().create_dir_all(folder)?;
        }
        self.write(&path, bytes).map_err(|error| of_file(error, &path))?;
        let mut unsettled = self.unsettled.lock().unwrap_or_else(PoisonError::into_inner);
        unsettled.insert(folder.to_path_buf());
        Ok(())
    }

    fn get(&self, key: &str, size_max: u64) -> anyhow::Result<Option<Vec<u8>>> {
        let path = self.root.join(key);
        let read = || {
            let mut bytes = Vec::new();
            File::open(&path)?.take(size_max.saturating_add(1)).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if ErrorKind::NotFound == std::io::Error::kind(&error) => Ok(None),
            Err(error) => Err(of_file(error, &path)),
        }
    }

    fn list(&self, folder: &str) -> anyhow::Result<Vec<Entry>> {
        let mut found = Vec::new();
        let path = self.root.join(folder);
        self.walk(&path, folder, &mut found).map_err(|error| of_file(error, &path))?;
        Ok(found)
    }

    fn remove(&self, key: &str) -> anyhow::Result<()> {
        let path = self.root.join(key);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(of_file(error, &path)),
            _ => Ok(()),
        }
    }

    fn settle(&self) -> anyhow::Result<()> {
        let mut unsettled = self.unsettled.lock().unwrap_or_else(PoisonError::into_inner);
        for folder in unsettled.iter() {
            RealVfs::new().sync_dir(folder)?;
        }
        unsettled.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_put_listed_read_and_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = Directory::new(&directory.path().join("not/yet")).expect("a place");
        assert_eq!(place.list("blobs").expect("nothing"), []);
        assert_eq!(place.get("blobs/a/b", 9).expect("nothing"), None);
        place.remove("blobs/a/b").expect("gone already");
        place.put("blobs/a/b", b"first").expect("put");
        place.put("blobs/a/b", b"second").expect("put again");
        place.settle().expect("settled");
        assert_eq!(place.get("blobs/a/b", 9).expect("read"), Some(b"second".to_vec()));
        assert_eq!(place.get("blobs/a/b", 2).expect("read"), Some(b"sec".to_vec()));
        let listed = place.list("blobs").expect("listed");
        let [entry] = listed.as_slice() else { panic!("{listed:?}") };
        assert_eq!((entry.key.as_str(), entry.size), ("blobs/a/b", 6));
        place.remove("blobs/a/b").expect("removed");
        assert_eq!(place.list("blobs").expect("listed"), []);
    }

    #[test]
    fn what_cannot_get_its_name_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = Directory::new(directory.path()).expect("a place");
        // A folder that is not empty is where the name should be.
        fs::create_dir_all(directory.path().join("blobs/a/b")).expect("a folder");
        assert!(place.put("blobs/a", b"bytes").is_err());
        let left: Vec<_> =
            fs::read_dir(directory.path().join("blobs")).expect("a folder").collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn errors_say_what_to_do() {
        let path = Path::new("/p/x");
        let full = of_file(ErrorKind::StorageFull.into(), path).to_string();
        assert!(
            full.starts_with("/p/x: ")
                && full.ends_with("make room there and run the same again, it goes on"),
            "{full}"
        );
        let denied = of_file(ErrorKind::PermissionDenied.into(), path).to_string();
        assert!(denied.contains("must be able to read and write"), "{denied}");
    }
}
