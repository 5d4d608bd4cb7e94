//! Schema records: what InfluxDB's clients have declared, by key, durable beside the samples.
//!
//! ```text
//! schema, strings, retention_policies ─► SchemaRecords ─► RecordLog ─► the shared log, two files
//!                                            └─► Store: may be written? feature flag, damage
//! ```
//!
//! Earlier versions kept them among the metadata of the store; they are converted when such a store
//! opens ([`conversion`]). Format: `docs/format/schema.md`. Decision:
//! `docs/decisions/0054-schema-records.md`.

mod changes;
pub mod conversion;
mod files;
mod key;
mod opening;
mod record_log;
pub mod repair;
mod table;
pub mod verify;

pub use changes::{Change, encode_changes};
pub use files::{RECORDS_PATH, SCHEMA_DIR};
pub use key::{Key, KeyKind};
pub use opening::{RecordsOpening, has_records};
pub use record_log::{RecordLog, RecordsConfig};
pub use table::{RECORDS_MAX, RECORDS_SIZE_MAX};

use std::path::Path;
use std::sync::Arc;
use store::{Need, Result, Store, StoreConfig, StoreOpening};
use vfs::Vfs;
use wal::{Consumers, Log};

/// Schema records of an open store.
pub struct SchemaRecords {
    log: Arc<RecordLog>,
    store: Arc<Store>,
}

impl std::fmt::Debug for SchemaRecords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.log.fmt(f)
    }
}

impl SchemaRecords {
    /// The store with the samples.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Calls a function with each record of a kind, by key.
    pub fn for_each(&self, kind: KeyKind, on_record: &mut dyn FnMut(&str, &Arc<str>)) {
        self.log.for_each(kind, on_record);
    }

    /// Whether there is a record with a key.
    pub fn has(&self, key: Key<'_>) -> bool {
        self.log.has(&key.encode())
    }

    /// Makes changes, those apart that change nothing or that there is no room for; durable on return.
    ///
    /// # Errors
    /// When the store may not be written, or the log or the disk fails.
    pub fn put(&self, changes: &[Change]) -> Result<()> {
        self.store.check_writable()?;
        self.begin()?;
        self.log.append(changes)
    }

    /// As [`SchemaRecords::put`], for a deletion that has begun: a disk that is nearly full does not
    /// stop it.
    ///
    /// # Errors
    /// When the log or the disk fails.
    pub fn apply_deletion(&self, changes: &[Change]) -> Result<()> {
        self.begin()?;
        self.log.append(changes)
    }

    /// Makes the files and the feature flag durable, before the first record or number of a string.
    ///
    /// # Errors
    /// On I/O errors; it may be tried again.
    pub fn begin(&self) -> Result<()> {
        if self.log.is_begun() {
            return Ok(());
        }
        self.store.need(Need::Schema)?;
        self.log.begin()
    }

    /// Links the files into another data directory, with all that was acknowledged before the call.
    ///
    /// # Errors
    /// When the disk or the log fails; what was linked so far is the caller's to remove.
    pub fn snapshot(&self, data_dir: &Path) -> Result<()> {
        self.log.snapshot(data_dir)
    }

    /// Ends the background work and writes the files. The log is the program's to close, afterwards.
    /// Calling again is fine.
    ///
    /// # Errors
    /// When the disk or the log fails; the log then has what was acknowledged.
    pub fn close(&self) -> Result<()> {
        self.log.close()
    }

    /// Has the store list the damage that was found.
    pub fn report_damage(&self) {
        self.log.take_damage().into_iter().for_each(|damage| self.store.note_damage(damage));
    }
}

/// A store with its schema records and their log, without other consumers.
pub struct OpenedStore {
    /// The store.
    pub store: Arc<Store>,
    /// Its schema records.
    pub schema: Arc<SchemaRecords>,
    /// Their log.
    pub log: Arc<Log>,
}

impl OpenedStore {
    /// Opens (creating it if need be) the store in `dir`.
    ///
    /// # Errors
    /// As [`Store::open`] and [`RecordsOpening`].
    pub fn open(vfs: Arc<dyn Vfs>, dir: &Path, config: StoreConfig) -> Result<OpenedStore> {
        let records = RecordsConfig { background: config.background, ..RecordsConfig::default() };
        OpenedStore::open_with(vfs, dir, config, records)
    }

    /// The same with other settings of the records.
    ///
    /// # Errors
    /// As [`OpenedStore::open`].
    pub fn open_with(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        config: StoreConfig,
        records: RecordsConfig,
    ) -> Result<OpenedStore> {
        let mut opening = StoreOpening::look(vfs.clone(), dir, config)?;
        let mut records = RecordsOpening::look(vfs.clone(), dir, records)?;
        let log_config = opening.log_config();
        let mut consumers = Consumers::default();
        opening.declare(&mut consumers);
        records.declare(&mut consumers);
        let log = Arc::new(Log::open(vfs, &dir.join(store::WAL_DIR), log_config, consumers)?);
        let (store, schema) = finish(opening, records, &log)?;
        Ok(OpenedStore { store, schema, log })
    }

    /// Closes all of it.
    ///
    /// # Errors
    /// When the disk or the log fails; what was acknowledged is in the log.
    pub fn close(&self) -> Result<()> {
        let saved = self.schema.close();
        self.store.close()?;
        saved?;
        Ok(self.log.close()?)
    }
}

/// Opens a store and its schema records on a log that has handed them its records, and converts what an
/// earlier version has left.
///
/// # Errors
/// On I/O errors.
pub fn finish(
    store: StoreOpening,
    records: RecordsOpening,
    log: &Arc<Log>,
) -> Result<(Arc<Store>, Arc<SchemaRecords>)> {
    let records = records.finish(Arc::clone(log))?;
    let store = store.finish_with(Arc::clone(log), &mut |bytes| records.apply_encoded(bytes))?;
    let schema = SchemaRecords { log: records, store: Arc::clone(&store) };
    schema.report_damage();
    conversion::convert(&schema)?;
    // Not before: a checkpoint must not write the files without the converted records.
    schema.log.start_keeper()?;
    Ok((store, Arc::new(schema)))
}

/// Decodes any bytes as each kind of bytes that is on disk.
///
/// # Panics
/// When what decodes is not the same after it was encoded: a mistake of the program.
#[doc(hidden)]
pub fn fuzz_decoders(bytes: &[u8]) {
    if let Ok(changes) = changes::decode_changes(bytes) {
        assert_eq!(changes::decode_changes(&encode_changes(&changes)), Ok(changes));
    }
    if let Ok((number, changes)) = changes::decode_record(bytes) {
        let encoded = changes::encode_record(number, changes.iter());
        assert_eq!(changes::decode_record(&encoded), Ok((number, changes)));
    }
    // As a file with a right checksum, which no change by chance has.
    let whole = [bytes, &codec::crc32(bytes).to_le_bytes()].concat();
    if let Ok(contents) = files::Contents::decode(Path::new("records"), &whole) {
        let encoded =
            files::Contents::encode(contents.generation, &contents.table, contents.log_from);
        let again = files::Contents::decode(Path::new("records"), &encoded);
        assert_eq!(again.ok(), Some(contents));
    }
}
