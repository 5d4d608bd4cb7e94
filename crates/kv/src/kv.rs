//! A keyspace on a directory and a log: how it opens, commits, and closes.

use crate::call::{Call, Mode};
use crate::coding::Pace;
use crate::cold::dictionary::{self, Groups, dictionary_name};
use crate::cold::tail::{self, TailWriter, tail_name};
use crate::cold::{
    ColdStore, CompressionStats, IndexSnapshot, MANIFEST_NAME, Manifest, index_name, segment_name,
};
use crate::commands;
use crate::config::{KvConfig, KvDurability};
use crate::effects::{Effect, Effects, decode};
use crate::error::{Error, Result};
use crate::index::Place;
use crate::keyspace::{HIDDEN_DATABASES, Keyspace};
use crate::pieces::{self, Pieces};
use crate::reply::Discard;
use codec::bytes::put_varint;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vfs::Vfs;
use wal::kinds::{KEYS, KIND_KEYS};
use wal::{Consumer, Consumers, Log, Lsn, ReplayError, Wal};

/// Folder of the keys in a data directory.
pub const KEYS_DIR: &str = "keys";
/// Changes that become one record of the log, in bytes: bounds its size.
const RECORD_SIZE: usize = 1 << 20;
const NANOS_PER_MILLI: i64 = 1_000_000;
/// How often who waits for the keys with patience looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// A keyspace that was looked at and is not open yet.
pub struct KvOpening {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    keys: Keyspace,
    manifest: Manifest,
}

/// Who is told of what is logged: the effects of one record, in order, and the keys after them.
pub type Follower = Box<dyn Fn(&mut Keyspace, &Effects) + Send + Sync>;

/// An open keyspace.
pub struct Kv {
    keys: Mutex<Keyspace>,
    /// Held by the one who has the keys next.
    turn: Mutex<()>,
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    log: Arc<Log>,
    wal: Arc<Wal>,
    durability: AtomicU8,
    /// The first segment of the log that may hold what is nowhere else.
    log_from: AtomicU64,
    /// The first segment that the last durable checkpoint needs.
    saved_from: AtomicU64,
    /// Bytes that were logged since the last checkpoint began.
    logged_size: AtomicU64,
    index_file: AtomicU64,
    /// Held by the one checkpoint that may run, and by who writes coded segments.
    checkpointing: Mutex<()>,
    /// How values are coded. Locked before the keys.
    groups: Mutex<Groups>,
    /// What that has gained, for whoever asks while values are coded.
    compression: Mutex<CompressionStats>,
    /// How much clients ask for, so that values are coded when there is time. Locked after the keys.
    pace: Mutex<Pace>,
    is_compressed: bool,
    is_failed: AtomicBool,
    last_failure: Mutex<Option<String>>,
    keeper: Mutex<Option<JoinHandle<()>>>,
    /// Who else is told of what is logged, and whether they want to be.
    follower: OnceLock<Follower>,
    is_followed: AtomicBool,
    stop: Arc<(Mutex<bool>, Condvar)>,
}

impl KvOpening {
    /// Reads what is in the folder [`KEYS_DIR`] of a data directory, which the caller has locked.
    ///
    /// # Errors
    /// When a file cannot be read or is damaged, or a newer program wrote it.
    pub fn look(vfs: Arc<dyn Vfs>, data_dir: &Path, config: KvConfig) -> Result<KvOpening> {
        let dir = data_dir.join(KEYS_DIR);
        vfs.create_dir_all(&dir)?;
        let manifest = match Manifest::read(vfs.as_ref(), &dir)? {
            Some(manifest) => manifest,
            None => first_manifest(vfs.as_ref(), &dir, &config)?,
        };
        crate::value::entries::set_seed(manifest.hash_seed);
        let cold = ColdStore::new(vfs.clone(), &dir, &config, manifest.next_segment);
        let mut keys = Keyspace::new(config, cold, manifest.hash_seed);
        load(vfs.as_ref(), &dir, &mut keys, &manifest)?;
        Ok(KvOpening { vfs, dir, keys, manifest })
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
    /// When what an interrupted checkpoint left cannot be removed.
    pub fn finish(self, log: Arc<Log>) -> Result<Arc<Kv>> {
        let KvOpening { vfs, dir, mut keys, manifest } = self;
        keys.is_replaying = false;
        keys.pieces = Pieces::default();
        let replayed_size = keys.replayed_size;
        let config = keys.config.clone();
        let next_dictionary = manifest.dictionaries.iter().max().map_or(0, |last| last + 1);
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
            index_file: AtomicU64::new(manifest.index_file),
            checkpointing: Mutex::new(()),
            groups: Mutex::new(Groups::new(next_dictionary, config.dictionary_samples)),
            compression: Mutex::default(),
            pace: Mutex::default(),
            is_compressed: config.is_compressed,
            is_failed: AtomicBool::new(false),
            last_failure: Mutex::new(None),
            keeper: Mutex::new(None),
            follower: OnceLock::new(),
            is_followed: AtomicBool::new(false),
            stop: Arc::default(),
        });
        // The manifest that was found may be one whose writer died before its name was durable.
        kv.vfs.sync_dir(&kv.dir)?;
        kv.remove_unnamed(&manifest)?;
        let weak = Arc::downgrade(&kv);
        let needed_from = move || weak.upgrade().map_or(Some(0), |kv| kv.needed_from());
        kv.log.attach(KEYS, Box::new(needed_from));
        if config.background {
            kv.start_keeper(config)?;
        }
        Ok(kv)
    }
}

/// The manifest of a folder without any, which is written at once: where there are other files and
/// it is missing, it was lost, and they are not to be taken for leftovers.
fn first_manifest(vfs: &dyn Vfs, dir: &Path, config: &KvConfig) -> Result<Manifest> {
    if let Some(name) = vfs.list(dir)?.into_iter().find(|name| is_of_checkpoint(name)) {
        let reason = format!("is missing, though there is {name}");
        return Err(Error::Corrupt { path: dir.join(MANIFEST_NAME), reason });
    }
    let databases = u32::try_from(config.databases + HIDDEN_DATABASES).unwrap_or(u32::MAX);
    let manifest = Manifest { hash_seed: vfs.random(), databases, ..Manifest::default() };
    manifest.write(vfs, dir)?;
    Ok(manifest)
}

/// Whether a file's name is one that manifests name.
pub(crate) fn is_of_checkpoint(name: &str) -> bool {
    [".cold", ".index", ".dict", ".tail"].iter().any(|end| name.ends_with(end))
}

/// Whether a file in the keys' directory is no part of a checkpoint: functions, users, settings. Each is
/// replaced as a whole.
pub(crate) fn is_beside(name: &str) -> bool {
    !is_of_checkpoint(name) && !name.ends_with(".tmp") && name != MANIFEST_NAME
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
    tail::read(vfs, dir, manifest.index_file, &mut |record| replay(keys, record))?;
    keys.pieces = Pieces::default();
    Ok(())
}

fn load_index(vfs: &dyn Vfs, dir: &Path, keys: &mut Keyspace, manifest: &Manifest) -> Result<()> {
    let path = dir.join(MANIFEST_NAME);
    let total: usize = manifest.segments.iter().map(|one| one.record_count as usize).sum();
    let mut reserved = false;
    IndexSnapshot::read(vfs, &dir.join(index_name(manifest.index_file)), |block| {
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

/// Takes a record of the log, or a piece of one.
pub(crate) fn replay(keys: &mut Keyspace, payload: &[u8]) -> std::result::Result<(), ReplayError> {
    keys.replayed_size += payload.len() as u64;
    let mut pieces = std::mem::take(&mut keys.pieces);
    let replayed = match pieces.take(payload) {
        Some(whole) => replay_record(keys, whole.bytes()),
        None => Ok(()),
    };
    keys.pieces = pieces;
    replayed
}

fn replay_record(keys: &mut Keyspace, payload: &[u8]) -> std::result::Result<(), ReplayError> {
    let (seq, effects) = decode(payload)?;
    keys.seq = keys.seq.max(seq);
    let saved_seq = keys.seq;
    let record_seq = seq;
    let mut news = News::of(seq, &effects);
    keys.seq = record_seq;
    for effect in &effects {
        replay_effect(keys, effect, &mut news)?;
    }
    keys.seq = saved_seq.max(record_seq + 1);
    keys.take_ready();
    keys.take_touched();
    keys.take_series_events();
    while keys.is_over_memory() && 0 < keys.cool(256) {}
    drop(keys.trash.take());
    Ok(())
}

/// Which effects of one record are new: on one key all of them, or none.
struct News {
    /// The record's number.
    seq: u64,
    /// Whether all are. No checkpoint has seen anything of a record that empties or exchanges
    /// databases, for one that was under way then began anew; and what is exchanged has its number.
    is_all: bool,
    /// Keys on which there was one already.
    keys: HashSet<(u8, Vec<u8>)>,
}

impl News {
    fn of(seq: u64, effects: &[Effect<'_>]) -> News {
        let of_databases = [commands::internal::FLUSH, commands::internal::SWAP];
        let mut names = effects.iter().filter_map(|effect| effect.arguments.first().copied());
        let is_all = names.any(|name| of_databases.contains(&name));
        News { seq, is_all, keys: HashSet::new() }
    }

    /// Whether an effect is new to a key that has seen the record of that number.
    fn has(&mut self, place: (u8, Vec<u8>), seen: u64) -> bool {
        let is_new = self.is_all || seen < self.seq || self.keys.contains(&place);
        if is_new {
            self.keys.insert(place);
        }
        is_new
    }
}

fn replay_effect(
    keys: &mut Keyspace,
    effect: &Effect<'_>,
    news: &mut News,
) -> std::result::Result<(), ReplayError> {
    let name = effect.arguments.first().copied().unwrap_or_default();
    let command = commands::find(name).or_else(|| commands::internal::find(name));
    let command = command.ok_or_else(|| {
        format!("an effect of a newer program: {}", String::from_utf8_lossy(name))
    })?;
    if keys.dbs.len() <= usize::from(effect.db) {
        return Err(format!("an effect on database {}", effect.db).into());
    }
    if !command.info.takes(effect.arguments.len()) {
        return Err(format!("{} has other arguments", String::from_utf8_lossy(name)).into());
    }
    let key = command.info.first_key_place(&effect.arguments);
    if let Some(key) = key.and_then(|place| effect.arguments.get(place)) {
        let place = (effect.db, key.to_vec());
        let seen = keys.slot(effect.db, key).map(|slot| slot.map_or(0, |slot| slot.seq));
        let seen = match seen {
            Ok(seen) => seen,
            // A record that rotted costs its key, not the start. What replaces the value needs none.
            Err(_) if is_whole(name) && keys.forget_unreadable(effect.db, key) => 0,
            Err(_) => return Ok(()),
        };
        if !news.has(place, seen) {
            keys.list_series_of(effect.db, key)?;
            return Ok(());
        }
    }
    // An effect that cannot be applied was applied already, and the key has changed since.
    let (args, mut out) = (&effect.arguments, Discard);
    Call::run(keys, effect.db, command, args, &mut out, Mode::Replay);
    Ok(())
}

/// Whether an effect says all of what a key is afterwards.
fn is_whole(name: &[u8]) -> bool {
    [commands::internal::PUT, commands::internal::GONE, b"set", b"del"].contains(&name)
}

impl Kv {
    /// The keys. Whoever changes them calls [`Kv::commit`] before giving them back.
    pub fn lock(&self) -> MutexGuard<'_, Keyspace> {
        match self.keys.try_lock() {
            Ok(keys) => keys,
            Err(TryLockError::Poisoned(keys)) => keys.into_inner(),
            Err(TryLockError::WouldBlock) => self.lock_behind(),
        }
    }

    /// The same for who takes them again and again, behind whoever waits for them: a mutex that is free
    /// goes to who is awake, and who waits is not.
    pub(crate) fn lock_behind(&self) -> MutexGuard<'_, Keyspace> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same for who would rather do without: none if somebody has them for so long.
    pub fn lock_within(&self, patience: Duration) -> Option<MutexGuard<'_, Keyspace>> {
        let until = Instant::now() + patience;
        loop {
            match self.keys.try_lock() {
                Ok(keys) => return Some(keys),
                Err(TryLockError::Poisoned(keys)) => return Some(keys.into_inner()),
                Err(TryLockError::WouldBlock) if until < Instant::now() => return None,
                Err(TryLockError::WouldBlock) => std::thread::park_timeout(LOOK_INTERVAL),
            }
        }
    }

    /// When a write is acknowledged.
    pub fn durability(&self) -> KvDurability {
        match self.durability.load(Ordering::Relaxed) {
            always if always == KvDurability::Always as u8 => KvDurability::Always,
            no if no == KvDurability::No as u8 => KvDurability::No,
            _ => KvDurability::EverySecond,
        }
    }

    /// Sets when a write is acknowledged.
    pub fn set_durability(&self, durability: KvDurability) {
        self.durability.store(durability as u8, Ordering::Relaxed);
    }

    /// The time, in milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        self.vfs.now() / NANOS_PER_MILLI
    }

    /// Logs what commands changed since the last call. Returns the place in the log that must be
    /// durable before the change is, if there was any.
    ///
    /// # Errors
    /// When the log takes nothing more: then nothing is to be acknowledged, now or later.
    pub fn commit(&self, keys: &mut Keyspace) -> Result<Option<Lsn>> {
        if keys.effects.is_empty() {
            return Ok(None);
        }
        let mut head = Vec::with_capacity(10);
        put_varint(&mut head, keys.seq);
        let effects = keys.effects.bytes();
        let lsn = match head.len() + effects.len() <= keys.config.piece_size {
            true => self.append(&[&head, effects])?,
            false => self.append_pieces(&head, effects, keys.config.piece_size)?,
        };
        self.logged_size.fetch_add(keys.effects.bytes().len() as u64, Ordering::Relaxed);
        if self.is_followed.load(Ordering::Relaxed)
            && let Some(follower) = self.follower.get()
        {
            let effects = std::mem::take(&mut keys.effects);
            follower(keys, &effects);
            keys.effects = effects;
        }
        keys.effects.clear();
        keys.seq += 1;
        Ok(Some(lsn))
    }

    /// Appends a record too large for one.
    fn append_pieces(&self, head: &[u8], effects: &[u8], piece_size: usize) -> Result<Lsn> {
        let count = effects.len().div_ceil(piece_size);
        let mut lsn = self.wal.end();
        for (at, bytes) in effects.chunks(piece_size).enumerate() {
            let head = if at == 0 { head } else { &[] };
            lsn = self.append(&[&pieces::head(at, count), head, bytes])?;
        }
        Ok(lsn)
    }

    fn append(&self, parts: &[&[u8]]) -> Result<Lsn> {
        loop {
            // Who waits for it has it written.
            match self.wal.append_lazily(KIND_KEYS, parts) {
                Ok(lsn) => return Ok(lsn),
                // Nobody else can write either until the disk has caught up.
                Err(wal::Error::Busy { .. }) => self.sync_log()?,
                Err(error) => {
                    self.fail(&error);
                    return Err(error.into());
                }
            }
        }
    }

    /// Has somebody told of what is logged, once [`Kv::follow`] says so; the first one counts.
    pub fn set_follower(&self, follower: Follower) {
        let _ = self.follower.set(follower);
    }

    /// Whether the follower is told. Under the lock of the keys nothing is missed.
    pub fn follow(&self, is_followed: bool) {
        self.is_followed.store(is_followed, Ordering::Relaxed);
    }

    /// Whether changes have gathered that should become a record before more come.
    pub fn is_record_full(keys: &Keyspace) -> bool {
        RECORD_SIZE <= keys.effects.bytes().len()
    }

    /// Waits until that place of the log is on disk, and for a file handle if that takes one: what
    /// commands changed is seen already, so there is no way back.
    ///
    /// # Errors
    /// When it never will be.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        loop {
            match self.wal.wait_durable(lsn) {
                Err(wal::Error::Stalled { .. }) => {}
                waited => return Ok(waited.inspect_err(|error| self.fail(error))?),
            }
        }
    }

    /// Waits until all that was logged so far is on disk.
    ///
    /// # Errors
    /// When it never will be.
    pub fn sync_log(&self) -> Result<()> {
        self.wait_durable(self.wal.end())
    }

    /// The end of the log: when that place is durable, all is that was logged before, by whomever.
    pub fn log_end(&self) -> Lsn {
        self.wal.end()
    }

    /// Why nothing can be written any more, if so.
    pub fn failure(&self) -> Option<String> {
        match self.is_failed.load(Ordering::Relaxed) {
            true => self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            false => None,
        }
    }

    fn fail(&self, error: &wal::Error) {
        let mut last = self.last_failure.lock().unwrap_or_else(PoisonError::into_inner);
        last.get_or_insert_with(|| error.to_string());
        self.is_failed.store(true, Ordering::Relaxed);
    }

    /// Makes room at once when the keeper is far behind. For who has just written much.
    pub fn make_room(&self) {
        if !self.is_disk_behind() {
            self.cool_some(64);
        }
        self.wake_keeper();
    }

    /// The same for who has just written some, if there is need. Not under the lock.
    pub fn make_room_if_crowded(&self) {
        if self.lock().is_crowded() {
            self.make_room();
        }
    }

    /// Makes a keyspace of its own of hard links in another data directory, as it was at one moment
    /// from now on.
    ///
    /// # Errors
    /// When the disk or the log fails; what was linked so far is the caller's to remove.
    pub fn snapshot(&self, data_dir: &Path) -> Result<()> {
        self.checkpoint()?;
        // No checkpoint may remove what is being linked.
        let _one = self.checkpointing();
        let Some(manifest) = Manifest::read(self.vfs.as_ref(), &self.dir)? else { return Ok(()) };
        let to = data_dir.join(KEYS_DIR);
        self.vfs.create_dir_all(&to)?;
        let segments = manifest.segments.iter().map(|one| segment_name(one.number));
        let dictionaries = manifest.dictionaries.iter().map(|one| dictionary_name(*one));
        let index = (manifest.index_file != 0).then(|| index_name(manifest.index_file));
        let listed = self.vfs.list(&self.dir)?;
        let beside = listed.into_iter().filter(|name| is_beside(name));
        for name in segments.chain(dictionaries).chain(index).chain(beside) {
            self.vfs.hard_link(&self.dir.join(&name), &to.join(&name))?;
        }
        self.write_tail(&manifest, &to)?;
        manifest.write(self.vfs.as_ref(), &to)
    }

    /// Writes down what was logged since a checkpoint began, for a copy of it without a log.
    fn write_tail(&self, manifest: &Manifest, to: &Path) -> Result<()> {
        // Under the lock no record is there by half.
        let end = {
            let _keys = self.lock();
            self.has_unsaved().then(|| self.wal.rotate())
        };
        let Some(end) = end else { return Ok(()) };
        self.sync_log()?;
        let path = to.join(tail_name(manifest.index_file));
        let mut tail = TailWriter::new(self.vfs.as_ref(), &path)?;
        self.wal.read_segments(manifest.log_from..end, &mut |record| match record.kind {
            KIND_KEYS => Ok(tail.record(record.payload)?),
            _ => Ok(()),
        })?;
        tail.finish()
    }

    /// Replaces a small file in the keys' directory as a whole, durably: state beside the keys.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_beside(&self, name: &str, bytes: &[u8]) -> Result<()> {
        vfs::write_atomic(self.vfs.as_ref(), &self.dir.join(name), bytes)?;
        Ok(())
    }

    /// Such a file, if it was ever written.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_beside(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.dir.join(name);
        match self.vfs.exists(&path)? {
            true => Ok(Some(self.vfs.read(&path)?)),
            false => Ok(None),
        }
    }

    // ---- what the keeper uses ----

    pub(crate) fn wal(&self) -> &Wal {
        &self.wal
    }

    pub(crate) fn vfs(&self) -> &Arc<dyn Vfs> {
        &self.vfs
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn checkpointing(&self) -> MutexGuard<'_, ()> {
        self.checkpointing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn groups(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    /// What coding values has gained since the start.
    pub fn compression(&self) -> CompressionStats {
        *self.compression.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note_compression(&self, stats: CompressionStats) {
        *self.compression.lock().unwrap_or_else(PoisonError::into_inner) = stats;
    }

    /// What coding gains group by group, as `(name, bytes before, bytes after)`; nothing while values
    /// are being coded, for that takes long.
    pub fn compression_by_group(&self) -> Vec<(Vec<u8>, u64, u64)> {
        self.groups.try_lock().map(|groups| groups.sizes()).unwrap_or_default()
    }

    /// Bytes that were logged since the last checkpoint began.
    pub fn logged_size(&self) -> u64 {
        self.logged_size.load(Ordering::Relaxed)
    }

    pub(crate) fn log_from(&self) -> u64 {
        self.log_from.load(Ordering::Relaxed)
    }

    /// Notes where the records begin that come after the checkpoint which begins. Under the lock.
    pub(crate) fn note_rotation(&self, segment: u64) {
        self.log_from.store(segment, Ordering::Relaxed);
        self.logged_size.store(0, Ordering::Relaxed);
    }

    /// Notes bytes of the log that a checkpoint did not save after all.
    pub(crate) fn note_logged(&self, size: u64) {
        self.logged_size.fetch_add(size, Ordering::Relaxed);
    }

    /// The number of a new file. Never one that was given out before: a manifest whose writing failed
    /// may be the one on disk all the same.
    pub(crate) fn next_index_file(&self) -> u64 {
        self.index_file.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes that a checkpoint is durable.
    pub(crate) fn note_saved(&self, log_from: u64) {
        self.saved_from.store(log_from, Ordering::Relaxed);
    }

    pub(crate) fn cut_log(&self) -> Result<()> {
        self.log.cut()?;
        Ok(())
    }

    /// The oldest segment of the log that the keyspace needs.
    fn needed_from(&self) -> Option<u64> {
        // What was appended is seen: appending holds this lock. Who holds it now may be the one that
        // asks: then the log is kept a bit longer than needed.
        let is_unsaved = match self.keys.try_lock() {
            Ok(_keys) => self.has_unsaved(),
            Err(_) => true,
        };
        is_unsaved.then(|| self.saved_from.load(Ordering::Relaxed))
    }

    /// Whether the log has what no checkpoint has.
    pub(crate) fn has_unsaved(&self) -> bool {
        let is_saved = self.saved_from.load(Ordering::Relaxed) == self.log_from();
        !is_saved || 0 < self.logged_size()
    }

    /// Removes files that a manifest does not name and no segment in memory will be.
    pub(crate) fn remove_unnamed(&self, manifest: &Manifest) -> Result<()> {
        let mut named: HashSet<String> = HashSet::new();
        named.insert(index_name(manifest.index_file));
        named.insert(tail_name(manifest.index_file));
        named.insert(MANIFEST_NAME.to_owned());
        {
            let keys = self.lock();
            named.extend(manifest.segments.iter().map(|one| segment_name(one.number)));
            named.extend(keys.cold.segment_infos(&[]).iter().map(|one| segment_name(one.number)));
            named.extend(keys.cold.dictionaries.numbers().iter().map(|one| dictionary_name(*one)));
            named.extend(keys.cold.sealing().iter().map(|(number, _)| segment_name(*number)));
        }
        for name in self.vfs.list(&self.dir)? {
            if !is_beside(&name) && !named.contains(&name) {
                self.vfs.remove(&self.dir.join(&name))?;
            }
        }
        Ok(())
    }

    // ---- the keeper's thread ----

    fn start_keeper(self: &Arc<Kv>, config: KvConfig) -> Result<()> {
        let (weak, stop) = (Arc::downgrade(self), Arc::clone(&self.stop));
        let builder = std::thread::Builder::new().name("kv-keeper".to_owned());
        let spawned = builder.spawn(move || {
            vfs::give_way();
            loop {
                let (stopped, woken) = &*stop;
                let guard = stopped.lock().unwrap_or_else(PoisonError::into_inner);
                if *guard {
                    return;
                }
                let waited = woken.wait_timeout(guard, config.keeper_interval);
                if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                    return;
                }
                let Some(kv) = weak.upgrade() else { return };
                if let Err(error) = kv.keep() {
                    kv.note_trouble(&error);
                }
            }
        });
        let thread = spawned.map_err(|error| vfs::Error::new("spawn keeper", &self.dir, error))?;
        *self.keeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    fn wake_keeper(&self) {
        self.stop.1.notify_one();
    }

    fn note_trouble(&self, error: &Error) {
        let mut last = self.last_failure.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(error.to_string());
    }

    /// What last went wrong beside commands, for people.
    pub fn trouble(&self) -> Option<String> {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the keeper and makes a last checkpoint, so that the next start replays nothing. The log
    /// is the program's to close, afterwards.
    ///
    /// # Errors
    /// When the checkpoint fails; the log then has what was acknowledged.
    pub fn close(&self) -> Result<()> {
        *self.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.1.notify_all();
        let thread = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the keeper has been printed; what it left undone is in the log.
            let _ = thread.join();
        }
        match self.has_unsaved() {
            true => self.checkpoint(),
            false => Ok(()),
        }
    }
}
