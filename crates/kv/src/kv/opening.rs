//! Opening of a keyspace: inspect its files, replay the log, take over.

use super::replay::replay;
use super::{FirstUnsaved, KEYS_DIR, Kv, is_of_checkpoint};
use crate::cold::dictionary::{self, Groups};
use crate::cold::tail;
use crate::cold::{
    ColdStore, IndexSnapshot, MANIFEST_COPY_NAME, MANIFEST_NAME, Manifest, StoredManifest,
    index_name,
};
use crate::config::{DATABASES_AS_THERE, EarlierKeys, KvConfig};
use crate::credentials::LIST_NAME;
use crate::error::{Error, Result};
use crate::index::Place;
use crate::keyspace::{HIDDEN_DATABASES, Keyspace};
use crate::pieces::Pieces;
use crate::replication::replicate::is_replica;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use vfs::Vfs;
use wal::kinds::{KEYS, KIND_KEYS};
use wal::{Consumer, Consumers, Log};

/// A keyspace that was looked at and is not open yet.
pub struct KvOpening {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    keys: Keyspace,
    manifest: Manifest,
    /// Whether both files of the manifest hold it.
    is_manifest_twice: bool,
    notes: Vec<String>,
}

impl KvOpening {
    /// Reads what is in the folder [`KEYS_DIR`] of a data directory, which the caller has locked.
    ///
    /// # Errors
    /// When a file cannot be read or is damaged, or a newer program wrote it.
    pub fn look(vfs: Arc<dyn Vfs>, data_dir: &Path, config: KvConfig) -> Result<KvOpening> {
        let dir = data_dir.join(KEYS_DIR);
        vfs.create_dir_all(&dir)?;
        let stored = StoredManifest::read(vfs.as_ref(), &dir)?;
        let notes = stored.fault.map(|(name, what)| {
            format!("{}: {what}; the other copy of it is used", dir.join(name).display())
        });
        let (manifest, is_manifest_twice) = match stored.manifest {
            Some(manifest) => (manifest, stored.is_twice),
            None => (first_manifest(vfs.as_ref(), &dir, &config)?, true),
        };
        crate::value::entries::set_seed(manifest.hash_seed);
        let cold = ColdStore::new(vfs.clone(), &dir, &config, manifest.next_segment);
        let mut keys = Keyspace::new(config, cold, manifest.hash_seed);
        keys.place_hidden(manifest.hidden as usize);
        load(vfs.as_ref(), &dir, &mut keys, &manifest)?;
        let notes = notes.into_iter().collect();
        Ok(KvOpening { vfs, dir, keys, manifest, is_manifest_twice, notes })
    }

    /// Damage that keeps nothing closed, in words. Complete once the log is open.
    pub fn notes(&self) -> impl Iterator<Item = &String> {
        self.notes.iter().chain(self.keys.left_out())
    }

    /// Declares the consumer of the log whose records are the keyspace's.
    pub fn declare<'a>(&'a mut self, consumers: &mut Consumers<'a>) {
        let replay_from = self.manifest.log_from;
        let keys = &mut self.keys;
        keys.is_replaying = true;
        consumers.declare(Consumer {
            name: KEYS,
            kinds: &[KIND_KEYS],
            replay_from,
            next_segment_min: replay_from,
            take: Box::new(move |record| replay(keys, record.payload)),
        });
    }

    /// The keyspace, on a log that has handed it its records. The program closes the log after it.
    ///
    /// # Errors
    /// When clients had more databases and left keys in them, and when what an interrupted checkpoint
    /// left cannot be removed.
    pub fn finish(self, log: Arc<Log>) -> Result<Arc<Kv>> {
        let KvOpening { vfs, dir, mut keys, mut manifest, is_manifest_twice, .. } = self;
        settle_databases(&mut keys, &dir)?;
        let has_moved = keys.hidden_from != manifest.hidden as usize;
        end_replay(&mut keys);
        let index_file_size = index_file_size(vfs.as_ref(), &dir, &manifest);
        let replayed_size = keys.replayed_size;
        let config = keys.config.clone();
        let next_dictionary = manifest.dictionaries.iter().max().map_or(0, |last| last + 1);
        let retained_size = log.wal().size_from(manifest.log_from);
        let position = 0u64.wrapping_sub(retained_size);
        let unsaved = FirstUnsaved { position, time: vfs.elapsed() };
        let kv = Arc::new(Kv {
            keys: Mutex::new(keys),
            turn: Mutex::default(),
            vfs,
            dir,
            wal: Arc::clone(log.wal()),
            log,
            durability: AtomicU8::new(config.durability as u8),
            log_from: AtomicU64::new(manifest.log_from),
            saved_from: AtomicU64::new(manifest.log_from),
            logged_size: AtomicU64::new(replayed_size),
            unsaved: Mutex::new(unsaved),
            index_file: AtomicU64::new(manifest.index_file),
            checkpointing: Mutex::new(()),
            credentials: Mutex::new(()),
            has_file_list: Mutex::new(manifest.has_file_list),
            groups: Mutex::new(Groups::new(next_dictionary, config.dictionary_samples)),
            compression: Mutex::default(),
            index_file_size: AtomicU64::new(index_file_size),
            pace: Mutex::default(),
            is_compressed: config.is_compressed,
            is_failed: AtomicBool::new(false),
            read_only: Mutex::default(),
            is_read_only: AtomicBool::new(false),
            last_failure: Mutex::new(None),
            keeper: Mutex::new(None),
            follower: OnceLock::new(),
            is_followed: AtomicBool::new(false),
            stop: Arc::default(),
        });
        // The manifest that was found may be one whose writer died before its name was durable.
        kv.vfs.sync_dir(&kv.dir)?;
        // An earlier version wrote the list of files.
        let is_list_new = !manifest.has_file_list && kv.vfs.exists(&kv.dir.join(LIST_NAME))?;
        // No file goes that an older manifest in the other file names.
        let twice = match is_manifest_twice && !is_list_new {
            true => Ok(()),
            false => kv.write_manifest(&mut manifest),
        };
        match twice {
            Ok(()) => kv.remove_unnamed(&manifest)?,
            Err(error) => kv.note_trouble(&error),
        }
        let weak = Arc::downgrade(&kv);
        let needed_from = move || weak.upgrade().map_or(Some(0), |kv| kv.needed_from());
        kv.log.attach(KEYS, Box::new(needed_from));
        // A replica's keeper decides nothing, not even before the server follows its primary again.
        kv.lock().leaves_expired = is_replica(&kv);
        if has_moved {
            // Before clients use databases where the manifest has hidden ones.
            kv.checkpoint()?;
        }
        if config.background {
            kv.start_keeper(config)?;
        }
        Ok(kv)
    }
}

/// Makes keys ready for clients after the log was replayed.
fn end_replay(keys: &mut Keyspace) {
    keys.is_replaying = false;
    keys.pieces = Pieces::default();
    // Keys of before the start are not added by clients.
    keys.stats.added = 0;
}

/// Bytes of the index file of a checkpoint; 0 where there is none.
fn index_file_size(vfs: &dyn Vfs, dir: &Path, manifest: &Manifest) -> u64 {
    match manifest.index_file {
        0 => 0,
        number => vfs.size(&dir.join(index_name(number))).unwrap_or(0),
    }
}

/// Whether a data directory has keys, damaged or not.
///
/// # Errors
/// When its folder cannot be listed.
pub fn has_keys(vfs: &dyn Vfs, data_dir: &Path) -> Result<bool> {
    let dir = data_dir.join(KEYS_DIR);
    let is_of_keys = |name: &String| {
        is_of_checkpoint(name) || [MANIFEST_NAME, MANIFEST_COPY_NAME].contains(&name.as_str())
    };
    Ok(vfs.exists(&dir)? && vfs.list(&dir)?.iter().any(is_of_keys))
}

/// The manifest's path in a data directory, as the store's root manifest names it.
pub fn manifest_file() -> String {
    format!("{KEYS_DIR}/{MANIFEST_NAME}")
}

/// The manifest of a folder without any, which is written at once: where there are other files and
/// it is missing, it was lost, and they are not to be taken for leftovers.
fn first_manifest(vfs: &dyn Vfs, dir: &Path, config: &KvConfig) -> Result<Manifest> {
    if let Some(name) = vfs.list(dir)?.into_iter().find(|name| is_of_checkpoint(name)) {
        let reason = format!("is missing, though there is {name}");
        return Err(Error::Corrupt { path: dir.join(MANIFEST_NAME), reason });
    }
    if config.earlier_keys == EarlierKeys::Lost {
        // The log has changes of keys that are lost: made to nothing they give wrong values.
        let reason = "is missing, though the data directory had keys: restore the folder, or accept \
                      the loss with `quipu verify --repair`";
        return Err(Error::Corrupt { path: dir.join(MANIFEST_NAME), reason: reason.to_owned() });
    }
    let number = |databases: usize| u32::try_from(databases).unwrap_or(u32::MAX);
    let manifest = Manifest {
        hash_seed: vfs.random(),
        databases: number(config.databases + HIDDEN_DATABASES),
        hidden: number(config.databases),
        ..Manifest::default()
    };
    manifest.write(vfs, dir)?;
    Ok(manifest)
}

/// Gives clients as many databases as they are to have: the hidden ones make room, and none with keys is
/// taken away.
fn settle_databases(keys: &mut Keyspace, dir: &Path) -> Result<()> {
    let wanted = keys.config.databases;
    if wanted == DATABASES_AS_THERE {
        keys.config.databases = keys.hidden_from;
        keys.expires_by_itself = false;
        return Ok(());
    }
    if keys.hidden_from < wanted {
        move_hidden(keys, wanted, dir)?;
    }
    match keys.last_used(wanted) {
        Some(used) => Err(Error::DatabaseInUse { wanted, used }),
        None => Ok(()),
    }
}

fn move_hidden(keys: &mut Keyspace, to: usize, dir: &Path) -> Result<()> {
    keys.move_hidden(to).map_err(|error| {
        let reason = format!("hidden databases cannot move to {to}: {error}");
        Error::Corrupt { path: dir.to_path_buf(), reason }
    })
}

/// Fills the index from a checkpoint.
fn load(vfs: &dyn Vfs, dir: &Path, keys: &mut Keyspace, manifest: &Manifest) -> Result<()> {
    keys.seq = manifest.seq + 1;
    if keys.dbs.len() < manifest.databases as usize {
        keys.dbs.resize_with(manifest.databases as usize, Default::default);
    }
    for number in &manifest.dictionaries {
        let bytes = dictionary::read(vfs, dir, *number)?;
        let inserted = keys.cold.insert_dictionary(*number, &bytes);
        inserted.map_err(|error| vfs::Error::new("load dictionary", dir, error))?;
    }
    for segment in &manifest.segments {
        keys.cold.open_segment(segment)?;
    }
    if manifest.index_file == 0 {
        return Ok(());
    }
    load_index(vfs, dir, keys, manifest)?;
    keys.is_replaying = true;
    let tail = tail::read(vfs, dir, manifest.index_file, &mut |record| replay(keys, record))?;
    if manifest.has_tail && tail.is_none() {
        let path = dir.join(tail::tail_name(manifest.index_file));
        return Err(Error::Corrupt { path, reason: "is missing".to_owned() });
    }
    keys.pieces = Pieces::default();
    Ok(())
}

fn load_index(vfs: &dyn Vfs, dir: &Path, keys: &mut Keyspace, manifest: &Manifest) -> Result<()> {
    let path = dir.join(index_name(manifest.index_file));
    let total: usize = manifest.segments.iter().map(|one| one.record_count as usize).sum();
    let mut reserved = false;
    IndexSnapshot::read(vfs, &path, |block| {
        let corrupt =
            |reason: &str| Error::Corrupt { path: path.clone(), reason: reason.to_owned() };
        match block {
            IndexSnapshot::Keys(db, entries) => {
                let index = keys.dbs.get_mut(usize::from(db));
                let index = index.ok_or_else(|| corrupt("a database beyond all"))?;
                if !reserved && db == 0 {
                    index.reserve(total);
                    reserved = true;
                }
                for (hash, address) in entries {
                    index.insert(hash, Place::Cold(address));
                    if !keys.cold.count_live(address) {
                        return Err(corrupt("a key in a segment that is not named"));
                    }
                }
            }
            IndexSnapshot::Expiry(db, entries) => {
                for (expire_ms, hash) in entries {
                    keys.expiry.add(expire_ms, db, hash);
                }
            }
        }
        Ok(())
    })
}
