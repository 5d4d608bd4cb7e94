//! A restored copy of a replica becomes a primary: it is restored for the keys that it has, and its primary
//! may have lost them.

use kv::kv::KEYS_DIR;
use kv::primary::{self, PrimaryRecord, ReplicaState};
use std::path::Path;
use vfs::RealVfs;

/// Takes the primary away from a restored data directory; returns what to say about it. Keys that were
/// loaded by half stay hidden, with the primary.
///
/// # Errors
/// When the file cannot be replaced.
pub fn forget_primary(target: &Path) -> anyhow::Result<Option<String>> {
    let (vfs, dir) = (RealVfs::new(), target.join(KEYS_DIR));
    let record = match primary::read(&vfs, &dir) {
        Ok(Some(record)) => record,
        Ok(None) => return Ok(None),
        Err(reason) => {
            return Ok(Some(format!("the keys take no writes until a person decides: {reason}")));
        }
    };
    let PrimaryRecord { host, port, state } = record;
    if state == ReplicaState::Partial {
        return Ok(Some(format!(
            "the backup is of a replica of {host}:{port} that had loaded a part of its keys: it stays a \
             replica and gets the others from there; REPLICAOF NO ONE shows the part"
        )));
    }
    primary::write(&vfs, &dir, None).map_err(anyhow::Error::msg)?;
    Ok(Some(format!(
        "the backup is of a replica of {host}:{port}: it starts as a primary, with the keys of the backup"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_replica_becomes_a_primary() {
        let directory = tempfile::tempdir().expect("a directory");
        let keys = directory.path().join(KEYS_DIR);
        assert_eq!(forget_primary(directory.path()).expect("no keys"), None);
        std::fs::create_dir(&keys).expect("made");
        for (state, stays) in [
            (ReplicaState::Whole, false),
            (ReplicaState::Snapshot, false),
            (ReplicaState::Partial, true),
        ] {
            let record = PrimaryRecord { host: "10.0.0.7".to_owned(), port: 6379, state };
            primary::write(&RealVfs::new(), &keys, Some(&record)).expect("written");
            let words = forget_primary(directory.path()).expect("read").expect("words");
            assert!(words.contains("of a replica of 10.0.0.7:6379"), "{words}");
            let left = primary::read(&RealVfs::new(), &keys).expect("whole");
            assert_eq!(left.is_some(), stays, "{state:?}");
        }
        std::fs::remove_file(keys.join("replica-of")).expect("removed");
        let words = forget_primary(directory.path()).expect("read").expect("words");
        assert!(words.contains("the file is missing"), "{words}");
    }
}
