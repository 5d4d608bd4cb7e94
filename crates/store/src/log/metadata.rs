//! What metrics are, by name; in the log until the next flush, then in a small file and its copy
//! ([`crate::log::metadata_files`]).
//!
//! Earlier versions kept the schema of InfluxDB data here, under names that begin with a zero byte. It is
//! read and kept apart until its consumer has converted it ([`MetadataTable::drop_legacy_schema`]); new
//! entries have no such names.

use crate::Result;
use crate::base::locks::lock;
use crate::log::log_record::{KIND_METADATA, METADATA_SIZE_MAX, decode_metadata, encode_metadata};
use crate::log::metadata_files::{Contents, NAMES, StoredMetadata};
use model::Metadata;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Mutex;
use vfs::Vfs;
use wal::{Lsn, Wal};

/// Metrics remembered; beyond it new ones are not.
pub const METRICS_MAX: usize = 1 << 20;
/// Maximum size of the texts of metrics, in bytes. Beyond it the store keeps no new
/// metrics and no longer texts of known ones. A million metrics have some 100 bytes each.
pub const METRICS_SIZE_MAX: usize = 128 << 20;
/// Metrics in one record of the log: with the longest texts it is far from a record's limit.
pub const RECORD_METRICS_MAX: usize = 64;
const _: () = assert!(RECORD_METRICS_MAX * METADATA_SIZE_MAX <= wal::RECORD_SIZE_MAX);

/// Start of the names of legacy schema entries.
const LEGACY_START: char = '\0';

/// The table of all metrics.
#[derive(Default)]
pub struct MetadataTable {
    state: Mutex<Table>,
    /// Generation of the last write of the files. Held while they are written.
    generation: Mutex<u64>,
}

#[derive(Default)]
struct Table {
    by_metric: BTreeMap<String, Metadata>,
    /// Bytes of their texts.
    size: usize,
    /// Schema of InfluxDB data, as an earlier version wrote it.
    legacy_schema: BTreeMap<String, Metadata>,
    /// The first log segment with entries that the files lack.
    dirty_from: Option<u64>,
    /// The same of those that are being written to the files.
    writing_from: Option<u64>,
    /// Whether one of the files is damaged or behind the other.
    needs_rewrite: bool,
    /// The last record of the log that made it.
    last: Option<Lsn>,
}

impl MetadataTable {
    /// The table as its files have it, empty if neither can be read.
    pub fn from_stored(stored: &StoredMetadata) -> MetadataTable {
        let table = MetadataTable::default();
        if let Some(contents) = &stored.contents {
            *lock(&table.generation) = contents.generation;
            let mut state = lock(&table.state);
            state.read(&contents.entries);
            state.needs_rewrite = !stored.is_twice;
        }
        table
    }

    /// Writes the files if the table has changed, or one of them is not as it was written.
    pub fn write(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        let mut generation = lock(&self.generation);
        let is_missing = 0 < *generation && count_files(vfs, dir)? < NAMES.len();
        let (entries, needed_rewrite) = {
            let mut state = lock(&self.state);
            if state.dirty_from.is_none() && !state.needs_rewrite && !is_missing {
                return Ok(());
            }
            state.writing_from = state.dirty_from.take();
            (state.entries_to_write(), std::mem::take(&mut state.needs_rewrite))
        };
        let written = write_files(&mut generation, entries, vfs, dir);
        let mut state = lock(&self.state);
        let writing_from = state.writing_from.take();
        if written.is_err() {
            // What came meanwhile is in later segments.
            state.dirty_from = writing_from.or(state.dirty_from);
            state.needs_rewrite |= needed_rewrite;
        }
        written
    }

    /// Writes both files, whatever they hold.
    ///
    /// # Errors
    /// On I/O errors.
    pub fn rewrite_files(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        let mut generation = lock(&self.generation);
        let entries = lock(&self.state).entries_to_write();
        write_files(&mut generation, entries, vfs, dir)
    }

    /// Lets the next flush write the files, one of which is damaged.
    pub fn request_rewrite(&self) {
        lock(&self.state).needs_rewrite = true;
    }

    /// Whether one of the files is damaged or behind the other.
    pub fn needs_rewrite(&self) -> bool {
        lock(&self.state).needs_rewrite
    }

    /// The first log segment with entries that the files lack.
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
        if state.read(&entries) {
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
        match metric {
            Some(metric) => state.by_metric.get(metric).cloned().into_iter().take(limit).collect(),
            None => state.by_metric.values().take(limit).cloned().collect(),
        }
    }

    /// At most `limit` metrics whose names come after `name`, in order.
    pub fn get_after(&self, name: &str, limit: usize) -> Vec<Metadata> {
        let state = lock(&self.state);
        let after = (Bound::Excluded(name), Bound::Unbounded);
        let entries = state.by_metric.range::<str, _>(after).map(|(_, entry)| entry);
        entries.take(limit).cloned().collect()
    }

    /// Schema of InfluxDB data, as an earlier version wrote it.
    pub fn legacy_schema(&self) -> Vec<Metadata> {
        lock(&self.state).legacy_schema.values().cloned().collect()
    }

    /// Adds legacy schema entries that an unfinished deletion of an earlier version changes. They go
    /// through the log, which may hold older ones of the same names.
    ///
    /// # Errors
    /// When the log fails or has no room.
    pub fn append_legacy_schema(&self, wal: &Wal, entries: &[Metadata]) -> Result<()> {
        let mut state = lock(&self.state);
        let segment = wal.stats().segment;
        state.last = Some(wal.append(KIND_METADATA, &encode_metadata(entries))?);
        state.dirty_from.get_or_insert(segment);
        state.read(entries);
        Ok(())
    }

    /// Leaves the legacy schema out from now on, in the files, too; whether there is any. Its consumer
    /// has all of it.
    pub fn drop_legacy_schema(&self) -> bool {
        let mut state = lock(&self.state);
        let is_there = !std::mem::take(&mut state.legacy_schema).is_empty();
        state.needs_rewrite |= is_there;
        is_there
    }
}

impl Table {
    /// Entries of the files.
    fn entries_to_write(&self) -> Vec<Metadata> {
        self.legacy_schema.values().chain(self.by_metric.values()).cloned().collect()
    }

    /// Whether an entry says something that is not known, and there is room for it.
    fn is_news(&self, entry: &Metadata) -> bool {
        let known = self.by_metric.get(&entry.metric);
        let is_metric = !entry.metric.is_empty() && !is_legacy_schema(entry);
        is_metric && known != Some(entry) && self.has_room(entry, known)
    }

    fn has_room(&self, entry: &Metadata, known: Option<&Metadata>) -> bool {
        let (more, less) = (size_of(entry), known.map_or(0, size_of));
        let fits = more <= less || self.size + more - less <= METRICS_SIZE_MAX;
        fits && (known.is_some() || self.by_metric.len() < METRICS_MAX)
    }

    /// Adds or replaces entries of a file or a log record; whether any of them is news.
    fn read(&mut self, entries: &[Metadata]) -> bool {
        let mut has_news = self.put(entries);
        for entry in entries.iter().filter(|entry| is_legacy_schema(entry)) {
            let before = self.legacy_schema.insert(entry.metric.clone(), entry.clone());
            has_news |= before.as_ref() != Some(entry);
        }
        has_news
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
        self.size = self.size + size_of(entry) - before.as_ref().map_or(0, size_of);
    }
}

/// Bytes of an entry's texts; its name is there twice.
fn size_of(entry: &Metadata) -> usize {
    2 * entry.metric.len() + entry.help.len() + entry.unit.len()
}

fn is_legacy_schema(entry: &Metadata) -> bool {
    entry.metric.starts_with(LEGACY_START)
}

/// Number of the files that are there.
fn count_files(vfs: &dyn Vfs, dir: &Path) -> Result<usize> {
    let mut count = 0;
    for name in NAMES {
        count += usize::from(vfs.exists(&dir.join(name))?);
    }
    Ok(count)
}

/// Writes both files. A generation is used once, also if the write fails.
fn write_files(
    generation: &mut u64,
    entries: Vec<Metadata>,
    vfs: &dyn Vfs,
    dir: &Path,
) -> Result<()> {
    *generation = Contents::generation_after(*generation);
    Contents { generation: *generation, entries }.write(vfs, dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_metrics_is_bounded() {
        let mut table = Table::default();
        let entry = |metric: String| Metadata { metric, ..Metadata::default() };
        let metrics: Vec<Metadata> = (0..METRICS_MAX).map(|n| entry(format!("m{n}"))).collect();
        assert!(table.put(&metrics));
        assert!(!table.put(&[entry("one too many".to_string())]));
        assert_eq!(table.by_metric.len(), METRICS_MAX);
        assert!(table.read(&[entry("\0legacy".to_string())]), "the legacy schema is not bounded");
    }

    #[test]
    fn legacy_schema_is_read_apart_and_kept_until_it_is_dropped() {
        let table = MetadataTable::default();
        let entry = |metric: &str| Metadata { metric: metric.to_string(), ..Metadata::default() };
        let all = ["\0influx\0d", "cpu"].map(entry);
        assert!(lock(&table.state).read(&all));
        assert_eq!(table.get(None, 9), all[1..]);
        assert_eq!(table.get_after("", 9), all[1..]);
        assert_eq!(table.legacy_schema(), all[..1]);
        assert_eq!(lock(&table.state).entries_to_write(), all);
        assert!(!lock(&table.state).put(&[entry("\0sent by a client")]));
        assert!(table.drop_legacy_schema() && table.needs_rewrite());
        assert!(!table.drop_legacy_schema());
        assert_eq!(lock(&table.state).entries_to_write(), all[1..]);
    }

    #[test]
    fn texts_have_a_bound_in_bytes() {
        let mut table = Table::default();
        let entry = |metric: String, help: &str| {
            let help = help.to_string();
            Metadata { metric, help, ..Metadata::default() }
        };
        let long = "x".repeat(1 << 20);
        let count = (0..1000).take_while(|n| table.put(&[entry(format!("m{n}"), &long)])).count();
        assert_eq!(count, 127, "each has its name besides");
        assert!(!table.put(&[entry("m0".to_string(), &long.repeat(2))]), "no room to grow");
        assert!(table.put(&[entry("m0".to_string(), "short")]));
        assert!(table.put(&[entry("another".to_string(), &long)]), "the room of the first");
        assert_eq!(table.size, table.by_metric.values().map(size_of).sum());
    }

    #[test]
    fn pages_of_metrics_follow_each_other() {
        let table = MetadataTable::default();
        let entry = |metric: &str| Metadata { metric: metric.to_string(), ..Metadata::default() };
        lock(&table.state).put(&["a", "b", "c"].map(entry));
        let names = |after: &str, limit: usize| -> Vec<String> {
            table.get_after(after, limit).into_iter().map(|entry| entry.metric).collect()
        };
        assert_eq!(names("", 2), ["a", "b"]);
        assert_eq!(names("b", 2), ["c"]);
        assert!(names("c", 2).is_empty());
    }
}
