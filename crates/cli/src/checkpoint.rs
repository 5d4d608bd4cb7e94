//! How far an export or import came: a small JSON file beside the data, written atomically.

use anyhow::Context as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::fs::{OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Who may read and write it: its owner.
const MODE: u32 = 0o600;

/// The file `X.progress` of a file `X`.
pub struct Checkpoint {
    path: PathBuf,
}

impl Checkpoint {
    /// The checkpoint of `file`.
    pub fn of(file: &Path) -> Checkpoint {
        Checkpoint { path: with_suffix(file, ".progress") }
    }

    /// What an earlier run left, if any.
    ///
    /// # Errors
    /// When the file is there and cannot be understood.
    pub fn read<T: DeserializeOwned>(&self) -> anyhow::Result<Option<T>> {
        let shown = self.path.display();
        let text = match std::fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| shown.to_string()),
        };
        let state = serde_json::from_slice(&text).with_context(|| {
            format!("{shown} is damaged; remove it to start from the beginning")
        })?;
        Ok(Some(state))
    }

    /// Remembers how far it is.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write<T: Serialize>(&self, state: &T) -> anyhow::Result<()> {
        let new = with_suffix(&self.path, ".new");
        let write = || -> anyhow::Result<()> {
            // Who copies what from where concerns nobody else.
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create(true).truncate(true).mode(MODE).open(&new)?;
            // That of one which was there already may be another.
            file.set_permissions(Permissions::from_mode(MODE))?;
            file.write_all(&serde_json::to_vec(state)?)?;
            Ok(std::fs::rename(&new, &self.path)?)
        };
        write().with_context(|| self.path.display().to_string())
    }

    /// Forgets it: the work is done.
    pub fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// `path` with more text behind its name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut text = OsString::from(path);
    text.push(suffix);
    PathBuf::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_owner_alone_may_read_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let checkpoint = Checkpoint::of(&directory.path().join("x"));
        // One of an earlier version, or that was cut short.
        std::fs::write(directory.path().join("x.progress.new"), "{").expect("a file");
        for _ in 0..2 {
            checkpoint.write(&[1, 2]).expect("written");
            let found = std::fs::metadata(directory.path().join("x.progress")).expect("a file");
            assert_eq!(found.permissions().mode() & 0o777, MODE);
        }
        assert_eq!(checkpoint.read::<Vec<i32>>().expect("read"), Some(vec![1, 2]));
    }
}
