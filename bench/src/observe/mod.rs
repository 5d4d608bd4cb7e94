//! A server seen from outside: its CPU, memory and I/O from `/proc`, its directory on disk, and
//! the machine under it.

pub mod disk;
pub mod machine;
pub mod process;
mod tree;

use anyhow::{Context, Result};
use std::path::PathBuf;
use std::sync::Arc;
use tree::TreeMemory;

/// The server to watch; without a pid or directory, what needs it is left out of reports.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The server's process.
    pub pid: Option<u32>,
    /// Where it keeps its data.
    pub data_dir: Option<PathBuf>,
    /// Which processes belong to it.
    pub watched: Watched,
}

/// The processes of a server.
#[derive(Clone, Debug, Default)]
pub enum Watched {
    /// Only that of the pid: its memory is `VmRSS` and `VmHWM`, exact at every look.
    #[default]
    One,
    /// That of the pid and all its descendants. Clones share what was seen of their memory.
    Tree(Arc<TreeMemory>),
}

impl Watched {
    /// A tree of which nothing was seen yet.
    pub fn tree() -> Watched {
        Watched::Tree(Arc::new(TreeMemory::default()))
    }
}

impl Observed {
    /// What the process has used until now.
    ///
    /// # Errors
    /// When there is a pid and its process is gone or not ours to read.
    pub fn process(&self) -> Result<Option<process::ProcessUse>> {
        let Some(pid) = self.pid else { return Ok(None) };
        let used = match &self.watched {
            Watched::One => process::read(pid),
            Watched::Tree(memory) => tree::read(pid, memory),
        };
        used.map(Some).with_context(|| format!("cannot watch process {pid}"))
    }

    /// Lets the peak of memory count from now on; of a tree of processes it cannot.
    ///
    /// # Errors
    /// When the process is gone or not ours.
    pub fn forget_peak(&self) -> Result<()> {
        match (self.pid, &self.watched) {
            (Some(pid), Watched::One) => process::forget_peak(pid),
            _ => Ok(()),
        }
    }

    /// What lies on disk now.
    pub fn disk(&self) -> Option<disk::DiskUse> {
        self.data_dir.as_deref().map(disk::measure)
    }
}
