//! A simulated file opened for appending.

use super::SimVfs;
use super::disk::Disk;
use super::faults::Call;
use super::namespace::NodeId;
use crate::AppendFile;
use crate::error::{Error, Result};
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
