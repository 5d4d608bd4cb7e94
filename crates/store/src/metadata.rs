//! What metrics are, by name; in the log until the next flush, then in one small file.
//!
//! Beside them stand notes of doors, under names that no metric has: they begin with a zero byte.

use crate::Result;
use crate::locks::lock;
use crate::log_record::{KIND_METADATA, METADATA_SIZE_MAX, decode_metadata, encode_metadata};
use crate::side_file::SideFile;
use model::Metadata;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use vfs::Vfs;
use wal::{Lsn, Wal};

/// The file's name.
pub const FILE_NAME: &str = "metadata";
const MAGIC: &[u8; 8] = b"QPMETAD1";
/// Metrics remembered; beyond it new ones are not. As many notes besides.
pub const METRICS_MAX: usize = 1 << 20;
/// Metrics in one record of the log: with the longest texts it is far from a record's limit.
const RECORD_METRICS_MAX: usize = 64;
const _: () = assert!(RECORD_METRICS_MAX * METADATA_SIZE_MAX <= wal::RECORD_SIZE_MAX);

/// What the names of notes begin with.
pub const NOTE_START: char = '\0';
/// The unit of a note that says that there is none any more; it goes with the next flush.
pub const NOTE_WITHDRAWN: &str = "gone";

/// The table of all metrics.
#[derive(Default)]
pub struct MetadataTable {
    state: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    by_metric: BTreeMap<String, Metadata>,
    /// How many of them are notes.
    notes: usize,
    /// The first log segment with entries that the file lacks.
    dirty_from: Option<u64>,
    /// The same of those that are being written to the file.
    writing_from: Option<u64>,
    /// The last record of the log that made it.
    last: Option<Lsn>,
}

impl MetadataTable {
    /// Reads the table of a store's directory.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<MetadataTable> {
        let table = MetadataTable::default();
        let file = file(dir);
        let Some(body) = file.read(vfs)? else { return Ok(table) };
        let entries = decode_metadata(&body).map_err(|e| file.undecodable(&e))?;
        lock(&table.state).put(&entries);
        Ok(table)
    }

    /// Writes the table if it has changed.
    pub fn write(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        let entries: Vec<Metadata> = {
            let mut state = lock(&self.state);
            if state.dirty_from.is_none() {
                return Ok(());
            }
            state.writing_from = state.dirty_from.take();
            state.by_metric.values().filter(|entry| !is_withdrawn(entry)).cloned().collect()
        };
        let written = file(dir).write(vfs, &encode_metadata(&entries));
        let mut state = lock(&self.state);
        let writing_from = state.writing_from.take();
        if written.is_err() {
            // What came meanwhile is in later segments.
            state.dirty_from = writing_from;
        } else if state.dirty_from.is_none() {
            state.forget_withdrawn();
        }
        written
    }

    /// The first log segment with entries that the file lacks.
    pub fn log_needed_from(&self) -> Option<u64> {
        let state = lock(&self.state);
        state.writing_from.or(state.dirty_from)
    }

    /// Adds or replaces the entries of a log record again.
    ///
    /// # Errors
    /// When the bytes are no such record.
    pub fn replay(&self, segment: u64, payload: &[u8]) -> std::result::Result<(), codec::Error> {
        let entries = decode_metadata(payload)?;
        let mut state = lock(&self.state);
        if state.put(&entries) {
            state.dirty_from.get_or_insert(segment);
        }
        Ok(())
    }

    /// Adds or replaces entries that the log takes; returns what to wait for: what is known may have
    /// been said a moment ago by somebody who still waits. Each record holds what was new when the
    /// log took it, so those that are known cost nothing.
    ///
    /// # Errors
    /// When the log fails or has no room; what it did not take is not in the table.
    pub fn append(&self, wal: &Wal, metadata: &[Metadata]) -> Result<Option<Lsn>> {
        let mut state = lock(&self.state);
        let mut rest = metadata.iter().peekable();
        while rest.peek().is_some() {
            let news: Vec<&Metadata> = rest
                .by_ref()
                .filter(|entry| state.is_news(entry))
                .take(RECORD_METRICS_MAX)
                .collect();
            if news.is_empty() {
                break;
            }
            // First the log, then the table, under one lock: the table is never ahead.
            let segment = wal.stats().segment;
            let lsn = wal.append(KIND_METADATA, &encode_metadata(news.iter().copied()))?;
            state.last = Some(lsn);
            state.dirty_from.get_or_insert(segment);
            news.iter().for_each(|entry| state.insert(entry));
        }
        Ok(state.last)
    }

    /// What is known of `metric`, or of all metrics by name, at most `limit`.
    pub fn get(&self, metric: Option<&str>, limit: usize) -> Vec<Metadata> {
        let state = lock(&self.state);
        let is_metric = |entry: &&Metadata| !entry.metric.starts_with(NOTE_START);
        match metric {
            Some(metric) => {
                let found = state.by_metric.get(metric).filter(is_metric);
                found.cloned().into_iter().take(limit).collect()
            }
            None => state.by_metric.values().filter(is_metric).take(limit).cloned().collect(),
        }
    }

    /// Whether there is a note of that name, behind the zero byte.
    pub fn has_note(&self, name: &str) -> bool {
        lock(&self.state).by_metric.contains_key(&format!("{NOTE_START}{name}"))
    }

    /// The notes whose names begin so, behind the zero byte.
    pub fn notes(&self, start: &str) -> Vec<Metadata> {
        let state = lock(&self.state);
        let start = format!("{NOTE_START}{start}");
        let all = state.by_metric.range(start.clone()..);
        all.take_while(|(name, _)| name.starts_with(&start)).map(|(_, note)| note.clone()).collect()
    }
}

impl Table {
    /// Whether an entry says something that is not known, and there is room for it.
    fn is_news(&self, entry: &Metadata) -> bool {
        let known = self.by_metric.get(&entry.metric);
        let kin = if is_note(entry) { self.notes } else { self.by_metric.len() - self.notes };
        let has_room = known.is_some() || kin < METRICS_MAX;
        known != Some(entry) && has_room && !entry.metric.is_empty()
    }

    /// Adds or replaces entries; whether any of them is news.
    fn put(&mut self, metadata: &[Metadata]) -> bool {
        let mut has_news = false;
        for entry in metadata {
            if self.is_news(entry) {
                self.insert(entry);
                has_news = true;
            }
        }
        has_news
    }

    fn insert(&mut self, entry: &Metadata) {
        let before = self.by_metric.insert(entry.metric.clone(), entry.clone());
        self.notes += usize::from(before.is_none() && is_note(entry));
    }

    /// Leaves out what the file, which has just been written, leaves out. What the log may still have
    /// of it comes again when the log is read, and then goes the same way.
    fn forget_withdrawn(&mut self) {
        self.by_metric.retain(|_, entry| !is_withdrawn(entry));
        self.notes = self.by_metric.values().filter(|entry| is_note(entry)).count();
    }
}

fn is_note(entry: &Metadata) -> bool {
    entry.metric.starts_with(NOTE_START)
}

fn is_withdrawn(entry: &Metadata) -> bool {
    is_note(entry) && entry.unit == NOTE_WITHDRAWN
}

fn file(dir: &Path) -> SideFile {
    SideFile { path: dir.join(FILE_NAME), magic: MAGIC }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_full_of_metrics_has_room_for_notes() {
        let mut table = Table::default();
        let entry = |metric: String| Metadata { metric, ..Metadata::default() };
        let metrics: Vec<Metadata> = (0..METRICS_MAX).map(|n| entry(format!("m{n}"))).collect();
        assert!(table.put(&metrics));
        assert!(!table.put(&[entry("one too many".to_string())]));
        assert!(table.put(&[entry(format!("{NOTE_START}note"))]));
        assert_eq!(table.by_metric.len(), METRICS_MAX + 1);
    }
}
