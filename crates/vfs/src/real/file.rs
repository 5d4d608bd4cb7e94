//! A real file opened for appending, and one opened for reading.

use super::{FILE_MODE, cached};
use crate::error::{Error, Result};
use crate::{AppendFile, ReadFile};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A file that this process created and appends to.
pub(super) struct RealFile {
    file: File,
    /// For errors.
    path: PathBuf,
    size: u64,
    /// Set by the first error and never cleared.
    has_failed: bool,
}

impl RealFile {
    pub(super) fn create(path: &Path) -> Result<RealFile> {
        let file = File::options().append(true).create_new(true).mode(FILE_MODE).open(path);
        let file = file.map_err(|error| Error::new("create", path, error))?;
        Ok(RealFile { file, path: path.to_path_buf(), size: 0, has_failed: false })
    }

    /// Runs `act` unless an earlier one failed, and remembers whether it did.
    fn guard(
        &mut self,
        operation: &'static str,
        act: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<()> {
        let result = match self.has_failed {
            true => Err(io::Error::other("an earlier write or sync of this file failed")),
            false => act(&mut self.file),
        };
        result.map_err(|error| {
            self.has_failed = true;
            Error::new(operation, &self.path, error)
        })
    }
}

impl AppendFile for RealFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.guard("append", |file| file.write_all(bytes))?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        // fdatasync: the data and the size, not the times.
        self.guard("sync", |file| file.sync_data())
    }

    fn size(&self) -> u64 {
        self.size
    }
}

/// A sealed file, read with `pread`.
pub(super) struct SealedFile {
    file: File,
    /// For errors.
    path: PathBuf,
}

impl SealedFile {
    pub(super) fn open(path: &Path) -> Result<SealedFile> {
        let file = File::open(path).map_err(|error| Error::new("open", path, error))?;
        Ok(SealedFile { file, path: path.to_path_buf() })
    }
}

impl ReadFile for SealedFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let mut got = 0;
        while got < into.len() {
            match self.file.read_at(&mut into[got..], offset + got as u64) {
                Ok(0) => break,
                Ok(size) => got += size,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::new("read", &self.path, error)),
            }
        }
        Ok(got)
    }

    fn read_cached(&self, offset: u64, into: &mut [u8]) -> Result<Option<usize>> {
        let mut got = 0;
        while got < into.len() {
            match cached::read(&self.file, offset + got as u64, &mut into[got..]) {
                Ok(Some(0)) => break,
                Ok(Some(size)) => got += size,
                Ok(None) => return Ok(None),
                Err(error) => return Err(Error::new("read", &self.path, error)),
            }
        }
        Ok(Some(got))
    }
}
