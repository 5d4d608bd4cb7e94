//! Servers under test: how each is started, asked whether it is ready, and stopped.
//!
//! A server is a table entry ([`Peer`]); adding one is a file with a constant. A started one is a
//! [`RunningServer`]: a child process on a free loopback port, killed when dropped.

mod quipu;
mod running;
mod victoria_metrics;

pub use quipu::QUIPU;
pub use running::RunningServer;
pub use victoria_metrics::VICTORIA_METRICS;

use crate::payload::Protocol;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kind of server.
#[derive(Debug)]
pub struct Peer {
    /// Its name in reports.
    pub name: &'static str,
    /// Arguments to serve `data_dir` at a port of loopback.
    pub serve_arguments: fn(data_dir: &Path, port: u16) -> Vec<String>,
    /// Environment variables to serve with.
    pub environment: &'static [(&'static str, &'static str)],
    /// Arguments that print the version.
    pub version_arguments: &'static [&'static str],
    /// Arguments that check a stopped server's directory, where there is such a command.
    pub verify_arguments: Option<fn(data_dir: &Path) -> Vec<String>>,
    /// Answers 200 once the server serves.
    pub ready_path: &'static str,
    /// Makes what is in memory visible and durable.
    pub flush_path: &'static str,
    /// Makes parts into fewer parts.
    pub merge_path: &'static str,
    /// Largest relative error of a value that comes back; 0 where values are kept bit by bit.
    pub value_error_max: f64,
    /// What it can be sent.
    pub protocols: &'static [Protocol],
}

/// A peer and the binary to run it from.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Which kind of server.
    pub peer: &'static Peer,
    /// Its binary.
    pub binary: PathBuf,
    /// What it says of its version.
    pub version: String,
}

impl Installed {
    /// Asks the binary for its version.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn new(peer: &'static Peer, binary: &Path) -> Result<Installed> {
        let output = Command::new(binary)
            .args(peer.version_arguments)
            .output()
            .with_context(|| format!("cannot run {}", binary.display()))?;
        let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        let printed = String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_string();
        let version = Some(printed)
            .filter(|version| !version.is_empty())
            .or_else(|| package_version(binary))
            .unwrap_or_else(|| "unknown version".to_string());
        Ok(Installed { peer, binary: binary.to_path_buf(), version })
    }

    /// The command that serves, for reports: without this machine's paths.
    pub fn shown_command(&self) -> String {
        let name = self.binary.file_name().unwrap_or_default().to_string_lossy();
        let arguments = (self.peer.serve_arguments)(Path::new("DIR"), 0).join(" ");
        let variables =
            self.peer.environment.iter().map(|(name, value)| format!("{name}={value} "));
        format!("{}{name} {arguments}", variables.collect::<String>())
    }
}

/// What Debian's package manager says of the binary's package: some builds print no version.
fn package_version(binary: &Path) -> Option<String> {
    let output = Command::new("dpkg-query")
        .args(["--show", "--showformat=Debian ${Package} ${Version}"])
        .arg(binary.file_name()?)
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The first of the usual places that has the binary.
pub fn find_binary(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.is_file())
}
