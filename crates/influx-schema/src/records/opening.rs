//! Schema records that are being opened, step by step, as the other consumers of the log.
//!
//! ```text
//! RecordsOpening::look   the files are read
//!     declare            the consumer of the log
//!     Log::open          (by the program) replays the records that the files lack, in memory
//!     finish             renames or rewrites damaged files; reports the needed segments to the log
//! ```
//!
//! Damage costs the records that it hits and closes nothing: the store lists it.

use super::changes::{ChangesError, decode_record};
use super::files::{
    Contents, FILES, FileFault, LOST, RECORDS_PATH, SCHEMA_DIR, StoredRecords, write_files,
};
use super::record_log::{Head, RecordLog, RecordsConfig};
use super::table::Table;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Damage, DamagePlace, Result};
use vfs::Vfs;
use wal::kinds::{KIND_SCHEMA, SCHEMA};
use wal::{Consumer, Consumers, Log, RecordRef, ReplayError};

/// Suffix that a damaged file gets when it is set aside.
pub(super) const CORRUPT_SUFFIX: &str = ".corrupt";

/// Schema records that were looked at and are not open yet.
pub struct RecordsOpening {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    config: RecordsConfig,
    stored: StoredRecords,
    replayed: Replayed,
}

/// Records, and the log records that were applied to them.
#[derive(Default)]
pub(super) struct Replayed {
    /// The records.
    pub table: Table,
    /// Bytes of log records that the files lack.
    pub size: u64,
    /// Segment of the first of them.
    pub from_segment: Option<u64>,
    /// Lost log records: segment and reason.
    pub lost: Vec<(u64, String)>,
}

impl Replayed {
    /// Takes a record of the log, unless the files have it.
    ///
    /// # Errors
    /// [`ChangesError::Newer`]. Lost records are noted.
    pub fn take(&mut self, record: &RecordRef<'_>) -> std::result::Result<(), ChangesError> {
        let at = |what: &str| format!("the record at byte {}: {what}", record.offset);
        let (number, changes) = match decode_record(record.payload) {
            Ok(decoded) => decoded,
            Err(error @ ChangesError::Newer(_)) => return Err(error),
            Err(error) => {
                self.lost.push((record.segment, at(&error.to_string())));
                return Ok(());
            }
        };
        let known = self.table.number();
        if number <= known {
            return Ok(());
        }
        if known.saturating_add(1) < number {
            let what = format!("changes {} to {} are missing before it", known + 1, number - 1);
            self.lost.push((record.segment, at(&what)));
        }
        changes.iter().for_each(|change| self.table.apply(change));
        self.table.set_number(number);
        self.size += record.payload.len() as u64;
        self.from_segment.get_or_insert(record.segment);
        Ok(())
    }
}

impl RecordsOpening {
    /// Reads the files in the folder [`SCHEMA_DIR`] of a data directory, which the caller has locked.
    /// Changes nothing.
    ///
    /// # Errors
    /// When a newer program wrote a file, or on I/O errors other than unreadable bytes.
    pub fn look(
        vfs: Arc<dyn Vfs>,
        data_dir: &Path,
        config: RecordsConfig,
    ) -> Result<RecordsOpening> {
        let dir = data_dir.join(SCHEMA_DIR);
        let mut stored = StoredRecords::read(vfs.as_ref(), &dir)?;
        let table = stored.contents.as_mut().map(|one| std::mem::take(&mut one.table));
        let replayed = Replayed { table: table.unwrap_or_default(), ..Replayed::default() };
        Ok(RecordsOpening { vfs, dir, config, stored, replayed })
    }

    /// Declares the consumer of the log whose records these are.
    pub fn declare<'a>(&'a mut self, consumers: &mut Consumers<'a>) {
        let replay_from = self.stored.contents.as_ref().map_or(0, |contents| contents.log_from);
        let replayed = &mut self.replayed;
        consumers.declare(Consumer {
            name: SCHEMA,
            kinds: &[KIND_SCHEMA],
            replay_from,
            next_segment_min: replay_from,
            take: Box::new(move |record| replayed.take(record).map_err(ReplayError::from)),
        });
    }

    /// The records, on a log that has handed them over. The program closes the log after them. Work in
    /// the background begins once records of an earlier version are converted ([`super::finish`]).
    ///
    /// # Errors
    /// On I/O errors.
    pub fn finish(self, log: Arc<Log>) -> Result<Arc<RecordLog>> {
        let damage = self.damage();
        let RecordsOpening { vfs, dir, config, stored, replayed } = self;
        let is_begun = stored.contents.is_some();
        let generation = stored.contents.as_ref().map_or(0, |contents| contents.generation);
        if vfs.exists(&dir)? {
            // The file that was read may be one whose writer died before its name was durable.
            vfs.sync_dir(&dir)?;
        }
        if !is_begun {
            for fault in stored.faults.iter().filter(|fault| fault.is_there) {
                let aside = dir.join(format!("{}{CORRUPT_SUFFIX}", fault.file));
                vfs.rename(&dir.join(fault.file), &aside)?;
                vfs.sync_dir(&dir)?;
            }
        }
        let Replayed { table, size, from_segment, .. } = replayed;
        let needs_rewrite = is_begun && !stored.is_twice;
        let head = Head {
            table,
            logged_size: size,
            unsaved_from: from_segment,
            saving_from: None,
            last: None,
            is_begun,
            needs_rewrite,
        };
        let records = Arc::new(RecordLog::new(vfs, dir, config, log, generation, head, damage));
        records.attach();
        if needs_rewrite {
            match records.checkpoint() {
                Err(error) if is_for_want_of_room(&error) => {}
                done => done?,
            }
        }
        Ok(records)
    }

    /// Damage to the files and to records of the log.
    fn damage(&self) -> Vec<Damage> {
        let faults = &self.stored.faults;
        let mut all = Vec::new();
        if self.stored.contents.is_some() {
            all.extend(faults.iter().map(|fault| harmless(fault, "the other copy of it is used")));
        } else if !faults.is_empty() {
            let words: Vec<String> =
                faults.iter().map(|fault| format!("{} {}", fault.file, fault.what)).collect();
            all.push(lost(&words.join(", ")));
        }
        let of_log = |(segment, what): &(u64, String)| {
            lost(&format!("{}/{}: {what}", store::WAL_DIR, wal::segment_name(*segment)))
        };
        all.extend(self.replayed.lost.iter().map(of_log));
        all
    }
}

/// Damage to one file whose content is known all the same, and why it is.
pub(super) fn harmless(fault: &FileFault, why: &str) -> Damage {
    let (file, what) = (format!("{SCHEMA_DIR}/{}", fault.file), format!("{}; {why}", fault.what));
    let damage = Damage::of_store(DamagePlace::SideFile, file, what);
    Damage { series: Some(0), samples: Some(0), ..damage }
}

/// Damage that costs records.
fn lost(what: &str) -> Damage {
    let what = format!("{what}; lost with it: {LOST}");
    Damage::of_store(DamagePlace::SideFile, RECORDS_PATH.to_string(), what)
}

/// The damage of a dictionary that is gone without any file that says so.
pub(super) fn lost_records() -> Damage {
    lost("is missing, though strings are in use")
}

/// Whether any of the files is there.
///
/// # Errors
/// On I/O errors.
pub fn has_records(vfs: &dyn Vfs, data_dir: &Path) -> vfs::Result<bool> {
    for name in FILES {
        if vfs.exists(&data_dir.join(SCHEMA_DIR).join(name))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the disk, or the log for its sake, has no room for a write.
pub(super) fn is_for_want_of_room(error: &store::Error) -> bool {
    match error {
        store::Error::Io(error) => error.is_disk_full(),
        store::Error::Wal(error) => matches!(
            error,
            wal::Error::Latched { .. } | wal::Error::Stalled { is_disk_full: true, .. }
        ),
        _ => false,
    }
}

/// Writes both files of records for a repair.
pub(super) fn write_contents(vfs: &dyn Vfs, dir: &Path, contents: &Contents) -> Result<()> {
    vfs.create_dir_all(dir)?;
    let generation = Contents::generation_after(contents.generation);
    write_files(vfs, dir, &Contents::encode(generation, &contents.table, contents.log_from))
}
