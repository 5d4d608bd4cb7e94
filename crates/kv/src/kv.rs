//! A keyspace on a directory and a log: how it commits, makes snapshots, and closes.

mod opening;
mod replay;

pub use opening::{KvOpening, has_keys, manifest_file};
pub(crate) use replay::{read_record, replay};

use crate::cold::dictionary::{Groups, dictionary_name};
use crate::cold::tail::{TailWriter, tail_name};
use crate::cold::{
    CompressionStats, DictionaryStats, MANIFEST_COPY_NAME, MANIFEST_NAME, Manifest, index_name,
    segment_name,
};
use crate::config::{KvConfig, KvDurability};
use crate::credentials::REPLICA_OF;
use crate::credentials::{self, CredentialFile};
use crate::effects::Effects;
use crate::error::{Error, Result};
use crate::keyspace::Keyspace;
use crate::maintenance::coding::Pace;
use crate::pieces::PieceOwner;
use codec::bytes::put_varint;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vfs::Vfs;
use wal::kinds::KIND_KEYS;
use wal::{Log, Lsn, Wal};

/// Folder of the keys in a data directory.
pub const KEYS_DIR: &str = "keys";
/// Changes that become one record of the log, in bytes: bounds its size.
const RECORD_SIZE: usize = 1 << 20;
const NANOS_PER_MILLI: i64 = 1_000_000;
/// How often who waits for the keys with patience looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// Who is told of what is logged: the effects of one record, in order.
pub type Follower = Box<dyn Fn(&Effects) + Send + Sync>;

/// An open keyspace.
pub struct Kv {
    keys: Mutex<Keyspace>,
    /// Held by the one who has the keys next.
    turn: Mutex<()>,
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) dir: PathBuf,
    log: Arc<Log>,
    wal: Arc<Wal>,
    durability: AtomicU8,
    /// The first segment of the log that may hold what is nowhere else.
    log_from: AtomicU64,
    /// The first segment that the last durable checkpoint needs.
    saved_from: AtomicU64,
    /// Bytes that were logged since the last checkpoint began.
    logged_size: AtomicU64,
    /// The first record that the last checkpoint, which may still be made, does not have.
    unsaved: Mutex<FirstUnsaved>,
    index_file: AtomicU64,
    /// Held by the one checkpoint that may run, and by who writes coded segments.
    checkpointing: Mutex<()>,
    /// Held while a file of credentials is read or written.
    credentials: Mutex<()>,
    /// Whether the manifest records that there is a list of files with checksums. Locked while the manifest
    /// is replaced, after all others.
    has_file_list: Mutex<bool>,
    /// How values are coded. Locked before the keys.
    groups: Mutex<Groups>,
    /// What that has gained, for whoever asks while values are coded.
    compression: Mutex<(CompressionStats, BTreeMap<u64, DictionaryStats>)>,
    /// Bytes of the index file of the last checkpoint.
    index_file_size: AtomicU64,
    /// How much clients ask for, so that values are coded when there is time. Locked after the keys.
    pace: Mutex<Pace>,
    is_compressed: bool,
    is_failed: AtomicBool,
    /// Why clients may change nothing now, if so.
    read_only: Mutex<Option<String>>,
    is_read_only: AtomicBool,
    last_failure: Mutex<Option<String>>,
    keeper: Mutex<Option<JoinHandle<()>>>,
    /// Who else is told of what is logged, and whether they want to be.
    follower: OnceLock<Follower>,
    is_followed: AtomicBool,
    stop: Arc<(Mutex<bool>, Condvar)>,
}

/// Position and time of the first logged record that no checkpoint covers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FirstUnsaved {
    /// Bytes of the log before it since the start. Records of before the start lie below zero, so
    /// this wraps.
    position: u64,
    /// Time since the start.
    time: Duration,
}

/// Whether a file's name is one that manifests name.
pub(crate) fn is_of_checkpoint(name: &str) -> bool {
    [".cold", ".index", ".dict", ".tail"].iter().any(|end| name.ends_with(end))
}

/// Whether a file in the keys' directory is no part of a checkpoint: functions, users, settings. Each is
/// replaced as a whole.
pub(crate) fn is_beside(name: &str) -> bool {
    let is_manifest = [MANIFEST_NAME, MANIFEST_COPY_NAME].contains(&name);
    !is_of_checkpoint(name) && !name.ends_with(".tmp") && !is_manifest
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
            if !keys.effects.for_replicas().is_empty() {
                self.tell_follower(keys);
            }
            return Ok(None);
        }
        if self.logged_size() == 0 {
            let unsaved =
                FirstUnsaved { position: self.wal.end().size(), time: self.vfs.elapsed() };
            self.set_first_unsaved(unsaved);
        }
        let mut head = Vec::with_capacity(10);
        put_varint(&mut head, keys.seq);
        let effects = keys.effects.bytes();
        let lsn = match head.len() + effects.len() <= keys.config.piece_size {
            true => self.append(&[&head, effects])?,
            false => self.append_pieces(keys.seq, &head, effects, keys.config.piece_size)?,
        };
        self.logged_size.fetch_add(keys.effects.bytes().len() as u64, Ordering::Relaxed);
        self.tell_follower(keys);
        keys.seq += 1;
        Ok(Some(lsn))
    }

    /// Hands the effects to the observers and clears them.
    fn tell_follower(&self, keys: &mut Keyspace) {
        if self.is_followed.load(Ordering::Relaxed)
            && let Some(follower) = self.follower.get()
        {
            follower(&keys.effects);
        }
        keys.effects.clear();
    }

    /// Appends a record too large for one.
    fn append_pieces(
        &self,
        seq: u64,
        head: &[u8],
        effects: &[u8],
        piece_size: usize,
    ) -> Result<Lsn> {
        let count = effects.len().div_ceil(piece_size);
        let owner = PieceOwner::new(seq, &[head, effects], count);
        let mut lsn = self.wal.end();
        for (at, bytes) in effects.chunks(piece_size).enumerate() {
            let head = if at == 0 { head } else { &[] };
            lsn = self.append(&[&owner.head(at), head, bytes])?;
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

    /// Waits until that place of the log is on disk, and for room or a file handle if that takes it:
    /// what commands changed is seen already, so there is no way back.
    ///
    /// # Errors
    /// When it never will be.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        loop {
            match self.wal.wait_durable(lsn) {
                Err(wal::Error::Stalled { is_disk_full, .. })
                    if !is_disk_full || self.wal.has_commit_thread() => {}
                // It is written once there is room.
                Err(error @ wal::Error::Stalled { .. }) => return Err(error.into()),
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

    /// Refuses changes by clients from now on, with that reason, or takes them again.
    pub fn set_read_only(&self, reason: Option<String>) {
        let is_read_only = reason.is_some();
        *self.read_only.lock().unwrap_or_else(PoisonError::into_inner) = reason;
        self.is_read_only.store(is_read_only, Ordering::Relaxed);
    }

    /// Why a command that changes keys is to be refused before it does anything, with what to do.
    #[inline]
    pub fn write_refusal(&self) -> Option<String> {
        if self.is_read_only.load(Ordering::Relaxed) {
            return self.read_only.lock().unwrap_or_else(PoisonError::into_inner).clone();
        }
        match self.failure() {
            Some(reason) => Some(format!("the log failed: {reason}; restart the server")),
            None => self.wal.refusal(),
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
        // The list and the files that it names are copied as of one moment.
        let _credentials = self.lock_credentials();
        let listed = self.vfs.list(&self.dir)?;
        let beside = listed.into_iter().filter(|name| is_beside(name));
        let is_primary_written = self.write_primary_of_snapshot(&to)?;
        let beside = beside.filter(|name| !is_primary_written || name != REPLICA_OF);
        for name in segments.chain(dictionaries).chain(index).chain(beside) {
            self.vfs.hard_link(&self.dir.join(&name), &to.join(&name))?;
        }
        let has_tail = self.write_tail(&manifest, &to)?;
        Manifest { has_tail, ..manifest }.write(self.vfs.as_ref(), &to)
    }

    /// Writes down what was logged since a checkpoint began, for a copy of it without a log. Returns
    /// whether there was anything.
    fn write_tail(&self, manifest: &Manifest, to: &Path) -> Result<bool> {
        // Under the lock no record is there by half.
        let end = {
            let _keys = self.lock();
            self.has_unsaved().then(|| self.wal.rotate())
        };
        let Some(end) = end else { return Ok(false) };
        self.sync_log()?;
        let path = to.join(tail_name(manifest.index_file));
        let mut tail = TailWriter::new(self.vfs.as_ref(), &path)?;
        self.wal.read_segments(manifest.log_from..end, &mut |record| match record.kind {
            KIND_KEYS => Ok(tail.record(record.payload)?),
            _ => Ok(()),
        })?;
        tail.finish()?;
        Ok(true)
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

    /// Held by who changes or copies credential files, or the file of functions.
    pub(crate) fn lock_credentials(&self) -> MutexGuard<'_, ()> {
        self.credentials.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces a credential file, durably and with a checksum.
    ///
    /// # Errors
    /// As [`credentials::write`].
    pub fn write_credentials(&self, name: &str, bytes: &[u8]) -> std::result::Result<(), String> {
        let _one = self.lock_credentials();
        credentials::write(self.vfs.as_ref(), &self.dir, name, bytes)?;
        self.record_file_list().map_err(|error| error.to_string())
    }

    /// Makes the manifest record that there is a list of files with checksums.
    pub(crate) fn record_file_list(&self) -> Result<()> {
        let mut is_recorded = self.has_file_list.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_recorded && let Some(manifest) = Manifest::read(self.vfs.as_ref(), &self.dir)? {
            let manifest = Manifest { has_file_list: true, ..manifest };
            manifest.write(self.vfs.as_ref(), &self.dir)?;
            *is_recorded = true;
        }
        Ok(())
    }

    /// Replaces the manifest by one of a new checkpoint, which records the list of files as well.
    pub(crate) fn write_manifest(&self, manifest: &mut Manifest) -> Result<()> {
        let mut is_recorded = self.has_file_list.lock().unwrap_or_else(PoisonError::into_inner);
        *is_recorded |= self.vfs.exists(&self.dir.join(credentials::LIST_NAME))?;
        manifest.has_file_list = *is_recorded;
        manifest.write(self.vfs.as_ref(), &self.dir)
    }

    /// Reads a credential file; none if it never was.
    ///
    /// # Errors
    /// As [`credentials::read`].
    pub fn read_credentials(
        &self,
        name: &str,
    ) -> std::result::Result<Option<CredentialFile>, String> {
        let _one = self.lock_credentials();
        credentials::read(self.vfs.as_ref(), &self.dir, name)
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
        self.compression.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// The same of each dictionary that was used since the start, by its number.
    pub fn compression_by_dictionary(&self) -> BTreeMap<u64, DictionaryStats> {
        self.compression.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    pub(crate) fn note_compression(
        &self,
        stats: CompressionStats,
        by_dictionary: BTreeMap<u64, DictionaryStats>,
    ) {
        let mut noted = self.compression.lock().unwrap_or_else(PoisonError::into_inner);
        *noted = (stats, by_dictionary);
    }

    /// Bytes of the index file of the last durable checkpoint.
    pub fn index_file_size(&self) -> u64 {
        self.index_file_size.load(Ordering::Relaxed)
    }

    pub(crate) fn set_index_file_size(&self, size: u64) {
        self.index_file_size.store(size, Ordering::Relaxed);
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

    pub(crate) fn first_unsaved(&self) -> FirstUnsaved {
        *self.unsaved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_first_unsaved(&self, unsaved: FirstUnsaved) {
        *self.unsaved.lock().unwrap_or_else(PoisonError::into_inner) = unsaved;
    }

    /// Bytes of the log since the first record that no checkpoint has, those of other consumers
    /// included, and its age; `None` when all is in a checkpoint.
    pub(crate) fn retained_log(&self) -> Option<(u64, Duration)> {
        if !self.has_unsaved() {
            return None;
        }
        let FirstUnsaved { position, time } = self.first_unsaved();
        let size = self.wal.end().size().wrapping_sub(position);
        Some((size, self.vfs.elapsed().saturating_sub(time)))
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
        named.insert(MANIFEST_COPY_NAME.to_owned());
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
