//! A server seen from outside: its CPU, memory and I/O from `/proc`, its directory on disk, and
//! the machine under it.

pub mod disk;
pub mod machine;
pub mod process;

use anyhow::{Context, Result};
use std::path::PathBuf;

/// The server to watch; without a pid or directory, what needs it is left out of reports.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The server's process.
    pub pid: Option<u32>,
    /// Where it keeps its data.
    pub data_dir: Option<PathBuf>,
}

impl Observed {
    /// What the process has used until now.
    ///
    /// # Errors
    /// When there is a pid and its process is gone or not ours to read.
    pub fn process(&self) -> Result<Option<process::ProcessUse>> {
        self.pid
            .map(|pid| process::read(pid).with_context(|| format!("cannot watch process {pid}")))
            .transpose()
    }

    /// What lies on disk now.
    pub fn disk(&self) -> Option<disk::DiskUse> {
        self.data_dir.as_deref().map(disk::measure)
    }
}
