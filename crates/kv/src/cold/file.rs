//! Where a segment's bytes are.

use crate::error::Result;
use std::path::Path;
use std::sync::Arc;
use vfs::{ReadFile, Vfs};

/// Where a segment's bytes are.
pub(crate) enum Source {
    /// In the buffer that is being filled.
    Filling,
    /// In memory, until they are on disk.
    Sealing(Arc<Vec<u8>>),
    /// On disk.
    File(Arc<dyn ReadFile>),
}

impl Source {
    /// A file.
    pub(crate) fn open(vfs: &dyn Vfs, path: &Path) -> Result<Source> {
        Ok(Source::File(vfs.open(path)?.into()))
    }

    /// Reads from `offset` on as far as there are bytes; returns how many.
    pub(crate) fn read_at(&self, filling: &[u8], offset: usize, into: &mut [u8]) -> Result<usize> {
        let bytes: &[u8] = match self {
            Source::Filling => filling,
            Source::Sealing(bytes) => bytes,
            Source::File(file) => return Ok(file.read_at(offset as u64, into)?),
        };
        let rest = bytes.get(offset..).unwrap_or_default();
        let size = rest.len().min(into.len());
        into[..size].copy_from_slice(&rest[..size]);
        Ok(size)
    }
}
