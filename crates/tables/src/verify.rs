//! Walks every checksum of tables that are not open, and looks whether they would open. Changes nothing.

use crate::error::Result;
use crate::file;
use crate::keeper::is_ours;
use crate::manifest::{Manifest, file_name};
use crate::tables::{Replayed, TABLES_DIR, find_manifest};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::Vfs;
use wal::kinds::KIND_TABLES;
use wal::{Found, RecordRef};

/// What a walk found.
#[derive(Clone, Debug, Default)]
pub struct TablesReport {
    /// Files read, those of the log apart.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Tables, with what the log has of them.
    pub tables: u64,
    /// Their rows.
    pub rows: u64,
    /// What is wrong, file by file.
    pub problems: Vec<(PathBuf, String)>,
    /// Files that no checkpoint names: a process that died left them, and the next start removes
    /// them.
    pub leftovers: Vec<PathBuf>,
}

/// Checks the tables of a data directory that the caller has locked, and their records in its log. None
/// if it has neither.
///
/// Records are looked into only as long as all before is sound: they build on it.
///
/// # Errors
/// When a folder cannot be listed. What is wrong with a file is in the report.
pub fn verify(vfs: &dyn Vfs, data_dir: &Path, log_dir: &Path) -> Result<Option<TablesReport>> {
    let mut walk = Walk {
        vfs,
        dir: data_dir.join(TABLES_DIR),
        report: TablesReport::default(),
        state: Replayed::default(),
        faults: Vec::new(),
    };
    let is_there = vfs.exists(&walk.dir)?;
    let mut log_from = 0;
    match find_manifest(vfs, &walk.dir) {
        Ok((manifest, fault, _)) => {
            if let Some(error) = fault {
                // The copy replaces it: records of the log are checked as well.
                let (path, what) = error.into_finding(walk.dir.clone());
                walk.faults.push((path, format!("{what}: the other copy of it is used")));
            }
            log_from = manifest.log_from;
            walk.files(&manifest)?;
        }
        Err(error) => walk.report.problems.push(error.into_finding(walk.dir.clone())),
    }
    let has_records = walk.log(log_dir, log_from)?;
    let Walk { mut report, state, faults, .. } = walk;
    report.problems.splice(0..0, faults);
    let tables = state.set.list();
    report.tables = tables.len() as u64;
    report.rows = tables.iter().map(|table| table.row_count() as u64).sum();
    Ok((is_there || has_records).then_some(report))
}

struct Walk<'a> {
    vfs: &'a dyn Vfs,
    dir: PathBuf,
    report: TablesReport,
    state: Replayed,
    /// Problem of one of the manifest's two files.
    faults: Vec<(PathBuf, String)>,
}

impl Walk<'_> {
    fn files(&mut self, manifest: &Manifest) -> Result<()> {
        self.state.set.seq = manifest.seq;
        for info in &manifest.tables {
            let path = self.dir.join(file_name(info.file));
            self.report.files += 1;
            self.report.bytes += self.vfs.size(&path).unwrap_or(0);
            let read = file::read(self.vfs, &self.dir, info);
            if let Err(error) = read.and_then(|table| self.state.put(&self.dir, Arc::new(table))) {
                self.report.problems.push(error.into_finding(path));
            }
        }
        if !self.vfs.exists(&self.dir)? {
            return Ok(());
        }
        for name in self.vfs.list(&self.dir)? {
            if !manifest.names(&name) && is_ours(&name) {
                self.report.leftovers.push(self.dir.join(name));
            }
        }
        Ok(())
    }

    /// Looks into the records of a log; whether it has any. What else is wrong with a log is for the
    /// store to say.
    fn log(&mut self, log_dir: &Path, log_from: u64) -> Result<bool> {
        let mut has_records = false;
        wal::inspect(self.vfs, log_dir, &mut |found| {
            if let Found::Record(record) = found
                && record.kind == KIND_TABLES
            {
                has_records = true;
                if log_from <= record.segment {
                    self.record(log_dir, &record);
                }
            }
        })?;
        Ok(has_records)
    }

    fn record(&mut self, log_dir: &Path, record: &RecordRef<'_>) {
        if !self.report.problems.is_empty() {
            return;
        }
        if let Err(trouble) = self.state.take(record) {
            let path = log_dir.join(wal::segment_name(record.segment));
            let what = format!("the record at byte {}: {trouble}", record.offset);
            self.report.problems.push((path, what));
        }
    }
}
