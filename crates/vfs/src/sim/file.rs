//! A simulated file opened for appending, or to be read here and there.

use super::SimVfs;
use super::disk::Disk;
use super::faults::Call;
use super::namespace::NodeId;
use crate::error::{Error, Result};
use crate::{AppendFile, ReadFile};
use std::io;
use std::path::{Path, PathBuf};

/// A handle on a file that was created; works on when the file lost its name.
pub(super) struct SimFile {
    vfs: SimVfs,
    path: PathBuf,
    node: NodeId,
    size: u64,
    /// Set by the first error and never cleared.
    has_failed: bool,
}

impl SimFile {
    pub(super) fn new(vfs: SimVfs, path: &Path, node: NodeId) -> SimFile {
        SimFile { vfs, path: path.to_path_buf(), node, size: 0, has_failed: false }
    }

    fn guard(&mut self, call: Call, act: impl FnOnce(&mut Disk) -> io::Result<()>) -> Result<()> {
        if self.has_failed {
            let source = io::Error::other("an earlier write or sync of this file failed");
            return Err(Error::new(call.name(), &self.path, source));
        }
        let result = self.vfs.call(call, &self.path, act);
        self.has_failed = result.is_err();
        result
    }
}

impl AppendFile for SimFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let node = self.node;
        self.guard(Call::Append, |disk| disk.append(node, bytes))?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        let node = self.node;
        self.guard(Call::Sync, |disk| disk.sync(node))
    }

    fn size(&self) -> u64 {
        self.size
    }
}

/// A handle on a file that is read; works on when the file lost its name. It sees what rots meanwhile.
pub(super) struct SimReader {
    vfs: SimVfs,
    path: PathBuf,
    node: NodeId,
}

impl SimReader {
    pub(super) fn new(vfs: SimVfs, path: &Path, node: NodeId) -> SimReader {
        SimReader { vfs, path: path.to_path_buf(), node }
    }
}

impl ReadFile for SimReader {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.vfs.call(Call::ReadAt, &self.path, |disk| {
            let bytes = &disk.names.file(self.node)?.bytes;
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let rest = bytes.get(start..).unwrap_or_default();
            let size = rest.len().min(into.len());
            into[..size].copy_from_slice(&rest[..size]);
            Ok(size)
        })
    }
}
