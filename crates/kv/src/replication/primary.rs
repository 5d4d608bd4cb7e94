//! The file `replica-of`: the primary that the keys follow.
//!
//! ```text
//! HOST PORT whole      a replica
//! HOST PORT partial    a replica that was loading its primary's keys: nobody may see them
//! HOST PORT snapshot   a copy of a replica, which follows nobody
//! (no line)            a primary
//! ```
//! The last line is a checksum, and the list of files with checksums names the file
//! ([`crate::credentials`]), so that a damaged or missing file never makes a replica a primary. Earlier
//! versions wrote no checksum; their files are read.

use crate::credentials;
use crate::credentials::REPLICA_OF;
use crate::kv::Kv;
use std::path::Path;
use vfs::Vfs;

/// Keys of a server that follows a primary, or did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaState {
    /// They are the primary's.
    Whole,
    /// A part of the primary's keys was loaded.
    Partial,
    /// A snapshot of a replica. It follows nobody.
    Snapshot,
}

impl ReplicaState {
    const ALL: [ReplicaState; 3] =
        [ReplicaState::Whole, ReplicaState::Partial, ReplicaState::Snapshot];

    fn word(self) -> &'static str {
        match self {
            ReplicaState::Whole => "whole",
            ReplicaState::Partial => "partial",
            ReplicaState::Snapshot => "snapshot",
        }
    }
}

/// Contents of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryRecord {
    /// Host of the primary.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The keys here.
    pub state: ReplicaState,
}

impl PrimaryRecord {
    fn parse(text: &str) -> Option<PrimaryRecord> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [host, port, word] = words[..] else { return None };
        let state = ReplicaState::ALL.into_iter().find(|state| state.word() == word)?;
        Some(PrimaryRecord { host: host.to_owned(), port: port.parse().ok()?, state })
    }

    /// Whether a server with these keys follows the primary.
    pub fn is_followed(&self) -> bool {
        self.state != ReplicaState::Snapshot
    }
}

/// Reads the file in a folder of keys; none for the keys of a primary.
///
/// # Errors
/// When the file is damaged, lost or unreadable, in words. The keys must take no writes then.
pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<PrimaryRecord>, String> {
    let explain = |reason: String| {
        format!("{reason}; or send REPLICAOF NO ONE or REPLICAOF HOST PORT, which writes it anew")
    };
    let Some(file) = credentials::read(vfs, dir, REPLICA_OF).map_err(explain)? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&file.bytes);
    match PrimaryRecord::parse(&text) {
        None if !text.trim().is_empty() => {
            let path = dir.join(REPLICA_OF);
            Err(explain(format!("{}: names no primary. Restore the file", path.display())))
        }
        record => Ok(record),
    }
}

/// Replaces the file in a folder of keys, durably.
///
/// # Errors
/// As [`credentials::write`].
pub fn write(vfs: &dyn Vfs, dir: &Path, record: Option<&PrimaryRecord>) -> Result<(), String> {
    credentials::write(vfs, dir, REPLICA_OF, line(record).as_bytes())
}

fn line(record: Option<&PrimaryRecord>) -> String {
    record.map_or_else(String::new, |PrimaryRecord { host, port, state }| {
        format!("{host} {port} {}\n", state.word())
    })
}

impl Kv {
    /// Reads the primary that the keys follow; none for the keys of a primary.
    ///
    /// # Errors
    /// As [`read`].
    pub fn read_primary(&self) -> Result<Option<PrimaryRecord>, String> {
        read(self.vfs.as_ref(), &self.dir)
    }

    /// Replaces the primary that the keys follow, durably.
    ///
    /// # Errors
    /// As [`Kv::write_credentials`].
    pub fn write_primary(&self, record: Option<&PrimaryRecord>) -> Result<(), String> {
        self.write_credentials(REPLICA_OF, line(record).as_bytes())
    }

    /// Writes the file of a snapshot, unless a copy of this one does. A copy must not follow the primary,
    /// which may have lost the keys. Returns whether it did.
    pub(crate) fn write_primary_of_snapshot(&self, to: &Path) -> vfs::Result<bool> {
        let record = match self.read_primary() {
            Ok(Some(record)) if record.state == ReplicaState::Whole => record,
            // A copy of keys in part has to get the others. Damage stays damage.
            _ => return Ok(false),
        };
        let record = PrimaryRecord { state: ReplicaState::Snapshot, ..record };
        // The list of the snapshot is that of the keys, and names the file if theirs does.
        let bytes = credentials::seal(line(Some(&record)).as_bytes());
        vfs::write_atomic(self.vfs.as_ref(), &to.join(REPLICA_OF), &bytes)?;
        Ok(true)
    }
}
