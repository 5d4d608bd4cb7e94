//! A dump of all keys as they are at one moment, while commands go on.
//!
//! ```text
//! keys by hash   written │ cursor │ to be written
//!                                   └ who changes one of these writes it first, as it was
//! ```
//! Keys behind the cursor are written as they are when it comes by; a key ahead of it that is about to
//! change is written at once and remembered, as is a new one, which is not part of the dump. So what is
//! written is what there was when the dump began.

use super::{Keyspace, unreadable};
use crate::cold::Record;
use crate::effects::Effects;
use crate::error::CommandError;
use crate::index::{KeyHash, Place};
use crate::rdb::{LeftOut, Reader, Writer, expires_fields};
use crate::replication::replicate::field_expiry;
use crate::slots::NEVER;
use crate::value::Value;
use std::collections::HashSet;

/// Bytes that may gather of keys that change before the dump has come to them, and of their names.
pub const CHANGED_SIZE_MAX: usize = 256 << 20;
/// Keys of one step.
const STEP_LEN: usize = 64;

/// Expiry of hash fields in a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpFormat {
    /// The dump has it.
    Newest,
    /// Redis 7.0 reads the dump, which has none. Replicas are sent this many bytes of it at most, as
    /// commands beside the dump.
    Redis7 {
        /// Bytes, about.
        expiry_size_max: usize,
    },
}

/// A dump under way.
#[derive(Debug)]
pub(crate) struct Dumping {
    format: DumpFormat,
    /// Bytes of commands that replicas were sent, and hashes that they are about.
    expiry_size: usize,
    expiry_count: u64,
    /// Keys of this database with this hash come next.
    db: u8,
    cursor: u64,
    /// Keys ahead of the cursor that are written, or came later.
    seen: HashSet<(u8, Box<[u8]>)>,
    /// Bytes of those.
    seen_size: usize,
    writer: Writer,
    left_out: LeftOut,
    count: u64,
    /// Why it cannot be finished.
    failure: Option<&'static str>,
}

/// A piece of a dump.
#[derive(Debug)]
pub struct Piece {
    /// Bytes of the file.
    pub bytes: Vec<u8>,
    /// Counts what the dump leaves out for replicas; set with the last piece.
    pub end: Option<LeftOut>,
}

impl Dumping {
    fn new(format: DumpFormat) -> Dumping {
        let reader = match format {
            DumpFormat::Newest => Reader::Newest,
            DumpFormat::Redis7 { .. } => Reader::Redis7,
        };
        Dumping {
            format,
            expiry_size: 0,
            expiry_count: 0,
            db: 0,
            cursor: 0,
            seen: HashSet::new(),
            seen_size: 0,
            writer: Writer::new(reader),
            left_out: LeftOut::default(),
            count: 0,
            failure: None,
        }
    }

    fn is_ahead(&self, db: u8, hash: KeyHash) -> bool {
        (self.db, self.cursor) <= (db, hash.number())
    }

    fn note_seen(&mut self, db: u8, key: &[u8]) -> bool {
        self.seen_size += key.len() + size_of::<(u8, Box<[u8]>)>();
        if CHANGED_SIZE_MAX < self.seen_size + self.writer.len() {
            self.failure = Some(
                "more than 256 MB of keys changed before the dump came to them: try again when \
                 less is written",
            );
        }
        self.seen.insert((db, key.into()))
    }

    fn write(&mut self, effects: &mut Effects, db: u8, key: &[u8], value: &Value, expire_ms: i64) {
        match self.format {
            DumpFormat::Newest if expires_fields(value) => {}
            _ => self.left_out.note(db, key, value),
        }
        self.send_field_expiry(effects, db, key, value);
        let expire_ms = Some(expire_ms).filter(|at| *at != NEVER);
        self.count += u64::from(self.writer.key(db, key, value, expire_ms));
    }

    /// Sends replicas when fields of a hash expire, if the dump has no place for it.
    fn send_field_expiry(&mut self, effects: &mut Effects, db: u8, key: &[u8], value: &Value) {
        let (DumpFormat::Redis7 { expiry_size_max }, Value::Hash(hash)) = (self.format, value)
        else {
            return;
        };
        let size = field_expiry::size(key, hash);
        if size == 0 || expiry_size_max < self.expiry_size + size {
            return;
        }
        self.expiry_size += size;
        self.expiry_count += 1;
        field_expiry::send_hash(db, key, hash, &mut |db, words| {
            effects.push_for_replicas(db, words);
        });
    }

    /// Ends the file. Returns what replicas miss.
    fn end(&mut self) -> LeftOut {
        self.left_out.write(&mut self.writer);
        self.writer.end();
        let mut left_out = std::mem::take(&mut self.left_out);
        left_out.field_expiries -= self.expiry_count;
        left_out
    }
}

impl Keyspace {
    /// Begins a dump of all keys as they are now, with notes about it and libraries of functions.
    /// Returns whether it has: there is one at a time.
    pub fn begin_dump(
        &mut self,
        format: DumpFormat,
        notes: &[(&str, &[u8])],
        functions: &[Vec<u8>],
    ) -> bool {
        if self.dumping.is_some() {
            return false;
        }
        let mut dumping = Box::new(Dumping::new(format));
        notes.iter().for_each(|(name, value)| dumping.writer.note(name, value));
        functions.iter().for_each(|code| dumping.writer.function(code));
        self.dumping = Some(dumping);
        true
    }

    /// Gives the dump up.
    pub fn end_dump(&mut self) {
        self.dumping = None;
    }

    /// The next piece of the dump, of so many bytes, about.
    ///
    /// # Errors
    /// When it cannot be finished; then it has ended.
    pub fn dump_some(&mut self, size: usize) -> Result<Piece, CommandError> {
        let Some(mut dumping) = self.dumping.take() else {
            return Err(CommandError::new("ERR no dump is under way"));
        };
        let mut is_whole = false;
        while dumping.writer.len() < size && !is_whole {
            if let Some(reason) = dumping.failure {
                return Err(CommandError::new(format!("ERR {reason}")));
            }
            is_whole = self.dump_step(&mut dumping)?;
        }
        if !is_whole {
            let piece = Piece { bytes: dumping.writer.take(), end: None };
            self.dumping = Some(dumping);
            return Ok(piece);
        }
        let left_out = dumping.end();
        Ok(Piece { bytes: dumping.writer.take(), end: Some(left_out) })
    }

    /// Writes some keys. Returns whether it was the last of them.
    fn dump_step(&mut self, dumping: &mut Dumping) -> Result<bool, CommandError> {
        if self.config.databases <= usize::from(dumping.db) {
            return Ok(true);
        }
        let db = dumping.db;
        let (next, places) = self.dbs[usize::from(db)].scan(dumping.cursor, STEP_LEN);
        for (_, place) in places {
            match place {
                Place::Hot(number) => {
                    let Some(slot) = self.slots.get(number) else { continue };
                    let is_new = !dumping.seen.contains(&(db, slot.key.clone()));
                    if is_new && self.is_dumped(slot.expire_ms) {
                        let effects = &mut self.effects;
                        dumping.write(effects, db, &slot.key, &slot.value, slot.expire_ms);
                    }
                }
                Place::Cold(address) => {
                    let record = self.cold.read(address).map_err(unreadable)?;
                    let is_new = !dumping.seen.contains(&(db, record.key.clone()));
                    if is_new && self.is_dumped(record.expire_ms) {
                        let Record { key, value, expire_ms, .. } = &record;
                        dumping.write(&mut self.effects, db, key, value, *expire_ms);
                    }
                }
            }
        }
        dumping.cursor = next;
        if next == 0 {
            dumping.db += 1;
        }
        Ok(false)
    }

    /// Whether a key that expires then is part of a dump. A replica has no say in what has expired.
    fn is_dumped(&self, expire_ms: i64) -> bool {
        self.leaves_expired || self.now_ms < expire_ms
    }

    /// A key is about to change, or to go.
    #[inline]
    pub(crate) fn before_change(&mut self, number: u32) {
        if self.dumping.is_some() {
            self.dump_before(number);
        }
    }

    #[cold]
    fn dump_before(&mut self, number: u32) {
        let Some(slot) = self.slots.get(number) else { return };
        let Some(dumping) = &mut self.dumping else { return };
        let hash = KeyHash::new(&slot.key, self.hash_seed);
        let is_client = usize::from(slot.db) < self.config.databases;
        let is_due = is_client && dumping.failure.is_none() && dumping.is_ahead(slot.db, hash);
        let is_dumped = self.leaves_expired || self.now_ms < slot.expire_ms;
        if is_due && dumping.note_seen(slot.db, &slot.key) && is_dumped {
            let effects = &mut self.effects;
            dumping.write(effects, slot.db, &slot.key, &slot.value, slot.expire_ms);
        }
    }

    /// A key comes that was not there.
    #[inline]
    pub(crate) fn before_insert(&mut self, db: u8, key: &[u8], hash: KeyHash) {
        if let Some(dumping) = &mut self.dumping
            && dumping.failure.is_none()
            && usize::from(db) < self.config.databases
            && dumping.is_ahead(db, hash)
        {
            dumping.note_seen(db, key);
        }
    }

    /// A whole database changes: what was not written yet is not to be had any more.
    pub(crate) fn spoil_dump(&mut self) {
        if let Some(dumping) = &mut self.dumping {
            dumping.failure = Some("a database was emptied or exchanged while it was dumped");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::KvConfig;
    use crate::keyspace::{DumpFormat, Expire, Keyspace};
    use crate::rdb::{Found, walk};
    use crate::value::{Stored as _, Str};
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::Arc;

    fn keyspace() -> Keyspace {
        let config = KvConfig::default();
        let vfs: Arc<dyn vfs::Vfs> = Arc::new(vfs::RealVfs::new());
        let cold = crate::cold::ColdStore::new(vfs, Path::new("nowhere"), &config, 0);
        Keyspace::new(config, cold, 7)
    }

    fn set(keys: &mut Keyspace, db: u8, key: &str, value: &str) {
        let value = Str::new(value.as_bytes()).into_value();
        keys.put(db, key.as_bytes(), value, Expire::Never).expect("hot");
    }

    fn contents(bytes: &[u8]) -> BTreeMap<(u64, String), String> {
        let mut found = BTreeMap::new();
        let mut source = bytes;
        walk(&mut source, |one, _| {
            if let Found::Key { db, key, value: Some(crate::Value::Str(text)), .. } = one {
                let text = text.with_bytes(|bytes| String::from_utf8_lossy(bytes).into_owned());
                let key = String::from_utf8_lossy(&key).into_owned();
                assert!(found.insert((db, key), text).is_none(), "a key twice");
            }
            Ok::<(), crate::rdb::Failure>(())
        })
        .expect("a whole file");
        found
    }

    #[test]
    fn what_changes_meanwhile_is_dumped_as_it_was() {
        let mut keys = keyspace();
        let mut expected = BTreeMap::new();
        for number in 0..2000_u16 {
            let (db, name) = ((number % 3) as u8, format!("key {number}"));
            set(&mut keys, db, &name, "old");
            expected.insert((u64::from(db), name), "old".to_owned());
        }
        assert!(keys.begin_dump(DumpFormat::Newest, &[("a", b"note")], &[]));
        assert!(!keys.begin_dump(DumpFormat::Newest, &[], &[]), "one at a time");
        let mut bytes = Vec::new();
        let mut dice = rng::Random::seeded(5);
        loop {
            let piece = keys.dump_some(100).expect("a piece");
            bytes.extend_from_slice(&piece.bytes);
            if piece.end.is_some() {
                break;
            }
            for _ in 0..30 {
                let number = dice.below(2500);
                let (db, name) = ((number % 3) as u8, format!("key {number}"));
                match dice.below(3) {
                    0 => drop(keys.remove(db, name.as_bytes()).expect("hot")),
                    _ => set(&mut keys, db, &name, "new"),
                }
            }
        }
        assert_eq!(contents(&bytes), expected);
    }

    #[test]
    fn a_flush_spoils_it() {
        let mut keys = keyspace();
        set(&mut keys, 0, "a", "b");
        keys.begin_dump(DumpFormat::Newest, &[], &[]);
        keys.flush(0);
        assert!(keys.dump_some(100).is_err());
        assert!(keys.begin_dump(DumpFormat::Newest, &[], &[]), "it has ended");
    }
}
