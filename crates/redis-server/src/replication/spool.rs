//! A dump of the primary: received into a file, checked as a whole, and only then loaded.

use crate::redis::Redis;
use crate::scripting::{Conflict, keep_libraries};
use kv::Kv;
use kv::keyspace::Emptying;
use kv::rdb::{self, Found};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::{AppendFile, Vfs};

/// The file, in the data directory.
const FILE_NAME: &str = "primary.rdb";
/// Bytes that gather before they are written.
const WRITTEN_SIZE: usize = 1 << 20;
/// Keys that are loaded under one hold of the lock.
const BATCH_LEN: u64 = 256;

/// A dump that is received.
pub struct Spool {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    /// Bytes of the disk that are left free for all else (`--free-disk-min`).
    free_min: u64,
    file: Option<Box<dyn AppendFile>>,
    gathered: Vec<u8>,
    size: u64,
}

/// What was loaded.
#[derive(Debug, Default)]
pub struct Counts {
    /// Keys.
    pub keys: u64,
    /// Values of modules, and keys that are time series here.
    pub left_out: u64,
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.file = None;
        // The next dump replaces what cannot be removed.
        let _ = self.vfs.remove(&self.path);
    }
}

impl Spool {
    /// An empty one, for so many bytes if that is known.
    ///
    /// # Errors
    /// In words, when there is no room.
    pub fn create(door: &Redis, size: Option<u64>) -> Result<Spool, String> {
        let config = &door.app.config;
        Spool::create_in(door.app.vfs.clone(), &config.data_dir, config.store.free_disk_min, size)
    }

    fn create_in(
        vfs: Arc<dyn Vfs>,
        data_dir: &Path,
        free_min: u64,
        size: Option<u64>,
    ) -> Result<Spool, String> {
        let path = data_dir.join(FILE_NAME);
        let create = || -> vfs::Result<Box<dyn AppendFile>> {
            if vfs.exists(&path)? {
                vfs.remove(&path)?;
            }
            vfs.create(&path)
        };
        let file = Some(create().map_err(|error| error.to_string())?);
        let spool = Spool { vfs, path, free_min, file, gathered: Vec::new(), size: 0 };
        spool.check_room(size.unwrap_or(0))?;
        Ok(spool)
    }

    /// Whether the disk has room for so many bytes more: the log must never go without.
    fn check_room(&self, more: u64) -> Result<(), String> {
        let folder = self.path.parent().unwrap_or(&self.path);
        let free = self.vfs.free_space(folder).map_err(|error| error.to_string())?;
        match more <= free.saturating_sub(self.free_min) {
            true => Ok(()),
            false => Err(format!(
                "its dump needs {more} bytes more than the {} received, {free} are free on disk and \
                 --free-disk-min keeps {} of them: make room, then it is tried again",
                self.size - self.gathered.len() as u64,
                self.free_min,
            )),
        }
    }

    /// Bytes that it has got.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Takes bytes.
    pub fn gather(&mut self, bytes: impl Iterator<Item = u8>) {
        let before = self.gathered.len();
        self.gathered.extend(bytes);
        self.size += (self.gathered.len() - before) as u64;
    }

    /// Writes what has gathered, if that is much or the last.
    ///
    /// # Errors
    /// In words, when the disk fails or has no room.
    pub async fn write_some(mut self, is_last: bool) -> Result<Spool, String> {
        if !is_last && self.gathered.len() < WRITTEN_SIZE {
            return Ok(self);
        }
        let written = tokio::task::spawn_blocking(move || {
            // Of a dump without a size nobody knows before how much comes.
            self.check_room(self.gathered.len() as u64)?;
            if let Some(file) = &mut self.file {
                file.append(&self.gathered).map_err(|error| error.to_string())?;
            }
            self.gathered.clear();
            Ok(self)
        });
        written.await.map_err(|_| "writing the dump failed".to_owned())?
    }

    /// Replaces all keys by those of the dump, once it is found to be whole.
    ///
    /// # Errors
    /// In words, when it is not, or the log fails.
    pub fn load(mut self, door: &Redis, generation: u64) -> Result<Counts, String> {
        self.file = None;
        let bytes = self.vfs.map(&self.path).map_err(|error| error.to_string())?;
        check(&bytes, door.kv.lock().database_count())?;
        let link = &door.replication.link;
        link.begin_partial(&door.kv, generation)?;
        empty(door)?;
        let counts = load(door, &bytes)?;
        keep_functions(door)?;
        let synced = door.kv.sync_log();
        synced.map_err(|error| error.to_string())?;
        link.set_partial(&door.kv, false)?;
        Ok(counts)
    }
}

fn damaged(error: &dyn std::error::Error) -> String {
    format!("its dump is damaged: {error}")
}

/// Reads all of it, and changes nothing.
fn check(bytes: &[u8], databases: usize) -> Result<(), String> {
    let mut source = bytes;
    let mut beyond = None;
    let walked = rdb::walk(&mut source, |found, _| {
        if let Found::Key { db, .. } = found
            && usize::try_from(db).map_or(true, |db| databases <= db)
        {
            beyond = Some(db);
        }
        Ok::<(), rdb::Failure>(())
    });
    walked.map_err(|error| damaged(&error))?;
    match beyond {
        Some(db) => Err(format!("it has database {db}, and there are {databases} here")),
        None => Ok(()),
    }
}

/// Ends a hold of the lock: logs what was done.
fn commit(door: &Redis, keys: &mut kv::Keyspace) -> Result<(), String> {
    keys.sees_expired = false;
    let mut hub = door.hub();
    // Of no client's doing.
    door.after(0, keys, &mut hub);
    drop(hub);
    door.kv.commit(keys).map(|_| ()).map_err(|error| error.to_string())
}

fn go_on(door: &Redis) -> Result<(), String> {
    door.kv.make_room_if_crowded();
    match door.replication.link.is_ended() {
        true => Err("the server stops".to_owned()),
        false => Ok(()),
    }
}

fn empty(door: &Redis) -> Result<(), String> {
    let mut at = Emptying::default();
    loop {
        go_on(door)?;
        let mut keys = door.kv.lock();
        keys.set_now(door.kv.now_ms());
        keys.sees_expired = true;
        let mut has_more = true;
        while has_more && !Kv::is_record_full(&keys) {
            has_more = keys.empty_some(&mut at).map_err(|error| error.0.into_owned())?;
        }
        commit(door, &mut keys)?;
        if !has_more {
            break;
        }
    }
    door.scripting.engine().flush_libraries();
    Ok(())
}

/// Writes the libraries of the dump to disk.
fn keep_functions(door: &Redis) -> Result<(), String> {
    let given_up = door.scripting.give_libraries_up(&door.kv);
    given_up.map_err(|error| error.0.into_owned())?;
    let number = {
        let engine = door.scripting.engine();
        door.scripting.note_libraries(&engine)
    };
    let kept = keep_libraries(&door.scripting.keeping, &door.kv, number);
    kept.map_err(|error| error.0.into_owned())
}

/// What ends a walk early.
enum Broken {
    File(rdb::Failure),
    Here(String),
}

impl From<rdb::Failure> for Broken {
    fn from(failure: rdb::Failure) -> Broken {
        Broken::File(failure)
    }
}

fn load(door: &Redis, bytes: &[u8]) -> Result<Counts, String> {
    let mut counts = Counts::default();
    let mut batch: Vec<Found> = Vec::new();
    let (mut source, mut start) = (bytes, 0);
    let walked = rdb::walk(&mut source, |found, offset| {
        batch.push(found);
        if BATCH_LEN <= batch.len() as u64 || WRITTEN_SIZE as u64 <= offset - start {
            start = offset;
            load_batch(door, std::mem::take(&mut batch), &mut counts).map_err(Broken::Here)?;
        }
        Ok::<(), Broken>(())
    });
    match walked {
        Ok(()) => load_batch(door, batch, &mut counts).map(|()| counts),
        Err(Broken::File(failure)) => Err(damaged(&failure)),
        Err(Broken::Here(reason)) => Err(reason),
    }
}

fn load_batch(door: &Redis, batch: Vec<Found>, counts: &mut Counts) -> Result<(), String> {
    go_on(door)?;
    let mut keys = door.kv.lock();
    keys.set_now(door.kv.now_ms());
    keys.sees_expired = true;
    for found in batch {
        match found {
            Found::Key { db, key, value: Some(value), expire_ms } if !value.is_empty() => {
                let db = u8::try_from(db).map_err(|_| format!("it has database {db}"))?;
                let loaded = keys.load_key(db, &key, value, expire_ms);
                match loaded.map_err(|error| error.0.into_owned())? {
                    true => counts.keys += 1,
                    false => counts.left_out += 1,
                }
                if Kv::is_record_full(&keys) {
                    commit(door, &mut keys)?;
                    keys.sees_expired = true;
                }
            }
            Found::Key { .. } => counts.left_out += 1,
            Found::Function(code) => add_library(door, &code)?,
            Found::Note(..) => {}
        }
    }
    commit(door, &mut keys)
}

fn add_library(door: &Redis, code: &[u8]) -> Result<(), String> {
    let mut engine = door.scripting.engine();
    let seed = door.app.vfs.random();
    let added = engine.add_library(&door.scripting.busy, seed, code, Conflict::Replace);
    added.map(|_| ()).map_err(|error| error.0.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use vfs::SimVfs;

    const DIR: &str = "/data";

    fn disk(free: u64) -> (SimVfs, Arc<dyn Vfs>) {
        let disk = SimVfs::new(1);
        let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
        vfs.create_dir_all(Path::new(DIR)).expect("a good disk");
        disk.set_free_space(free);
        (disk, vfs)
    }

    #[test]
    fn a_dump_that_does_not_fit_is_refused_before_it_comes() {
        let (disk, vfs) = disk(1000);
        let create = |size| Spool::create_in(vfs.clone(), Path::new(DIR), 100, size);
        drop(create(Some(900)).expect("it fits"));
        let refused = create(Some(901)).err().expect("it does not");
        assert!(refused.contains("901 bytes") && refused.contains("--free-disk-min"), "{refused}");
        assert!(disk.files().is_empty());
    }

    #[tokio::test]
    async fn a_dump_of_unknown_size_leaves_room_for_the_log() {
        let (disk, vfs) = disk(3 * WRITTEN_SIZE as u64);
        let free_min = WRITTEN_SIZE as u64 / 2;
        let mut spool =
            Spool::create_in(vfs, Path::new(DIR), free_min, None).expect("there is room");
        for _ in 0..2 {
            spool.gather(std::iter::repeat_n(b'x', WRITTEN_SIZE));
            spool = spool.write_some(false).await.expect("there is room");
        }
        spool.gather(std::iter::repeat_n(b'x', WRITTEN_SIZE));
        let refused = spool.write_some(false).await.err().expect("there is none");
        assert!(refused.contains("--free-disk-min"), "{refused}");
        assert!(disk.files().is_empty(), "what came is removed");
    }
}
