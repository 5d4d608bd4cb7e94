//! Checks schema records that are not open, and their records in the log. Changes nothing.

use super::changes::ChangesError;
use super::files::{FILES, LOST, RECORDS_FILE, SCHEMA_DIR, StoredRecords};
use super::opening::{CORRUPT_SUFFIX, Replayed};
use std::path::{Path, PathBuf};
use store::{Error, Result};
use vfs::Vfs;
use vfs::atomic::TEMPORARY_SUFFIX;
use wal::Found;
use wal::kinds::KIND_SCHEMA;

/// Result of a check.
#[derive(Clone, Debug, Default)]
pub struct SchemaReport {
    /// Files read, those of the log apart.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Schema records, with those of the log.
    pub records: u64,
    /// Damage: file and description.
    pub problems: Vec<(PathBuf, String)>,
    /// Harmless findings: file and description.
    pub notes: Vec<(PathBuf, String)>,
}

/// Schema records as they would open.
pub(super) struct Walk {
    pub report: SchemaReport,
    pub stored: StoredRecords,
    pub replayed: Replayed,
    /// Files that were set aside as corrupt.
    pub set_aside: Vec<String>,
    /// One past the last segment with a record, or the first that the files lack.
    pub log_end: u64,
}

/// Checks the schema records of a data directory that the caller has locked, and their records in its
/// log. `None` if it has neither.
///
/// # Errors
/// When a folder cannot be listed, or a newer program wrote a file or a record.
pub fn verify(vfs: &dyn Vfs, data_dir: &Path, log_dir: &Path) -> Result<Option<SchemaReport>> {
    Ok(walk(vfs, data_dir, log_dir)?.map(|walk| walk.report))
}

pub(super) fn walk(vfs: &dyn Vfs, data_dir: &Path, log_dir: &Path) -> Result<Option<Walk>> {
    let dir = data_dir.join(SCHEMA_DIR);
    let mut stored = StoredRecords::read(vfs, &dir)?;
    let log_from = stored.contents.as_ref().map_or(0, |contents| contents.log_from);
    let table = stored.contents.as_mut().map(|contents| std::mem::take(&mut contents.table));
    let is_whole = table.is_some();
    let mut walk = Walk {
        report: SchemaReport::default(),
        stored,
        replayed: Replayed { table: table.unwrap_or_default(), ..Replayed::default() },
        set_aside: Vec::new(),
        log_end: log_from,
    };
    let is_there = vfs.exists(&dir)?;
    if is_there {
        walk.names(vfs, &dir)?;
    }
    for fault in &walk.stored.faults {
        let what = match is_whole {
            true => format!("{}: the other copy of it is used", fault.what),
            false => format!("{}; lost with it: {LOST}", fault.what),
        };
        walk.report.problems.push((dir.join(fault.file), what));
    }
    if is_whole && walk.stored.faults.is_empty() && !walk.stored.is_twice {
        let what =
            "is not as new as the other file, as after a crash; the next start writes it again";
        walk.report.notes.push((dir.join(super::files::RECORDS_COPY), what.to_string()));
    }
    let has_records = walk.log(vfs, log_dir, log_from)?;
    for (segment, what) in &walk.replayed.lost {
        let path = log_dir.join(wal::segment_name(*segment));
        walk.report.problems.push((path, format!("{what}; lost with it: {LOST}")));
    }
    walk.report.records = walk.replayed.table.len() as u64;
    Ok((is_there || has_records).then_some(walk))
}

impl Walk {
    /// Checks the names in the folder.
    fn names(&mut self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        for name in vfs.list(dir)? {
            let path = dir.join(&name);
            if FILES.contains(&name.as_str()) {
                self.report.files += 1;
                self.report.bytes += vfs.size(&path).unwrap_or(0);
            } else if name.ends_with(CORRUPT_SUFFIX) {
                let what = format!("was set aside as corrupt; lost with it: {LOST}");
                self.report.problems.push((path, what));
                self.set_aside.push(name);
            } else if name.ends_with(TEMPORARY_SUFFIX) {
                let what =
                    "was being written when the process ended; the next checkpoint replaces it";
                self.report.notes.push((path, what.to_string()));
            } else {
                self.report.notes.push((path, "is not of the schema records".to_string()));
            }
        }
        Ok(())
    }

    /// Applies the records of the log; returns whether it has any. The store reports other damage of the log.
    fn log(&mut self, vfs: &dyn Vfs, log_dir: &Path, log_from: u64) -> Result<bool> {
        let (mut has_records, mut newer) = (false, None);
        wal::inspect(vfs, log_dir, &mut |found| {
            let Found::Record(record) = found else { return };
            if record.kind != KIND_SCHEMA {
                return;
            }
            has_records = true;
            if log_from <= record.segment {
                self.log_end = self.log_end.max(record.segment + 1);
                if let Err(ChangesError::Newer(format)) = self.replayed.take(&record) {
                    newer.get_or_insert((record.segment, format));
                }
            }
        })?;
        match newer {
            None => Ok(has_records),
            Some((segment, format)) => Err(Error::UnknownVersion {
                file: log_dir.join(wal::segment_name(segment)),
                version: format.to_string(),
                known: "up to 1".to_string(),
            }),
        }
    }

    /// The path of the file of records.
    pub fn file(data_dir: &Path) -> PathBuf {
        data_dir.join(SCHEMA_DIR).join(RECORDS_FILE)
    }
}
