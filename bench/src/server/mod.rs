//! Servers under test: how each is started, asked whether it is ready, written to, and stopped.
//!
//! ```text
//! Peer (a constant a file) ─► Installed (its binary, its version) ─► RunningServer (a process)
//! account (who may run it)     write_path, unsupported                Place: directory, two ports
//! ```
//!
//! A server is a table entry ([`Peer`]); adding one is a file with a constant. A started one is a
//! [`RunningServer`]: a child process on a free loopback port with everything it writes below one
//! directory, ended when dropped.

mod account;
pub mod count;
mod influxdb;
mod installed;
mod postgresql;
mod prometheus;
mod quipu;
mod redis;
mod running;
#[cfg(test)]
mod tests;
mod victoria_metrics;

pub use influxdb::INFLUXDB;
pub use installed::Installed;
pub use postgresql::{POSTGRESQL, TIMESCALEDB};
pub use prometheus::PROMETHEUS;
pub use quipu::{QUIPU, QUIPU_INFLUXQL};
pub use redis::REDIS;
pub use running::RunningServer;
pub use victoria_metrics::VICTORIA_METRICS;

use crate::load::settle::{Call, Settle};
use crate::payload::Protocol;
use crate::tsbs::queries::Language;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A kind of server.
#[derive(Debug)]
pub struct Peer {
    /// Its name in reports.
    pub name: &'static str,
    /// Its binary's name, where it is on the path.
    pub program: &'static str,
    /// Further places of the binary, for what packages put beside the path.
    pub program_places: &'static [&'static str],
    /// Arguments that print the version.
    pub version_arguments: &'static [&'static str],
    /// What else belongs to its version; fails when a part that it needs is not installed.
    pub extension_version: Option<fn(binary: &Path) -> Result<String>>,
    /// The user to become when we are root and it refuses to run as root; the data directory is
    /// then given to that user.
    pub account: Option<&'static str>,
    /// Makes ready what it needs on disk before each start: nothing when a start before did.
    pub prepare: fn(installed: &Installed, place: &Place) -> Result<()>,
    /// Arguments to serve a place.
    pub serve_arguments: fn(place: &Place) -> Vec<String>,
    /// Environment variables to serve with.
    pub environment: fn(place: &Place) -> Vec<(String, String)>,
    /// How it says that it serves.
    pub ready: Ready,
    /// What must be there before the first write, asked for after each start: a database, tables.
    pub set_up: fn(authority: &str) -> Result<()>,
    /// The processes that it consists of.
    pub processes: Processes,
    /// What asks it to end in good order.
    pub stop_signal: &'static str,
    /// Arguments that check a stopped server's directory, where there is such a command.
    pub verify_arguments: Option<fn(data_dir: &Path) -> Vec<String>>,
    /// Makes what is in memory visible and durable, where it can be asked to.
    pub flush: Option<Call>,
    /// Makes parts into fewer parts, where it can be asked to.
    pub merge: Option<Call>,
    /// Largest relative error of a value that comes back; 0 where values are kept bit by bit.
    pub value_error_max: f64,
    /// What it can be sent, the way its users prefer first.
    pub doors: &'static [WriteDoor],
    /// Why it has no doors, where it has none.
    pub doors_missing: &'static str,
    /// What it is asked in, if the query types can be put to it at all.
    pub language: Option<Language>,
}

/// Where a server takes one protocol.
#[derive(Clone, Copy, Debug)]
pub struct WriteDoor {
    /// What it takes there.
    pub protocol: Protocol,
    /// Where requests are posted; the protocol's own choice for those without HTTP.
    pub path: &'static str,
    /// The first major version that has it.
    pub major_version_min: u32,
}

impl WriteDoor {
    /// A door that every version has.
    pub const fn new(protocol: Protocol, path: &'static str) -> WriteDoor {
        WriteDoor { protocol, path, major_version_min: 0 }
    }
}

/// What one start of a server is given: it writes and listens nowhere else.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its directory.
    pub data_dir: PathBuf,
    /// The port of loopback where clients find it.
    pub port: u16,
    /// One more port, for a second listener that cannot be turned off.
    pub spare_port: u16,
}

impl Place {
    /// A path below the directory, as text.
    pub fn below(&self, name: &str) -> String {
        self.data_dir.join(name).display().to_string()
    }
}

/// How a server says that it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A path that answers with 2xx.
    Http(&'static str),
    /// `SELECT 1` on a connection of PostgreSQL's protocol.
    Sql,
    /// `PING`, answered with `+PONG`.
    RedisPing,
}

/// The processes that a server consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processes {
    /// The one that was started.
    One,
    /// The one that was started and all its descendants.
    Tree,
}

impl Peer {
    /// What to do with it between the last request and the last measurement. A server that cannot
    /// be asked for a flush is at least waited for.
    pub fn settle(&self, idle: Duration) -> Settle {
        let flush = Some(self.flush.unwrap_or(Call::Quiet));
        Settle { idle, flush, merge: self.merge, time_max: None }
    }

    /// Its binary on the path or in one of its own places.
    pub fn find_binary(&self) -> Option<PathBuf> {
        let own = self.program_places.iter().map(PathBuf::from).find(|path| path.is_file());
        own.or_else(|| find_binary(self.program))
    }
}

/// The first place of the path that has the binary.
fn find_binary(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// No preparation.
fn nothing_to_prepare(_: &Installed, _: &Place) -> Result<()> {
    Ok(())
}

/// No variables.
fn no_environment(_: &Place) -> Vec<(String, String)> {
    Vec::new()
}

/// No set-up.
fn nothing_to_set_up(_: &str) -> Result<()> {
    Ok(())
}
