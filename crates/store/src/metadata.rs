//! What metrics are, by name; in the log until the next flush, then in one small file.

use crate::Result;
use crate::book_file::BookFile;
use crate::log_record::{decode_metadata, encode_metadata};
use crate::store::lock;
use model::Metadata;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use vfs::Vfs;

/// The file's name.
pub const FILE_NAME: &str = "metadata";
const MAGIC: &[u8; 8] = b"QPMETAD1";
/// Metrics remembered; beyond it new ones are not.
pub const METRICS_MAX: usize = 1 << 20;

/// The book of all metrics.
#[derive(Default)]
pub struct MetadataBook {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    by_metric: BTreeMap<String, Metadata>,
    /// Whether the file lacks something.
    dirty: bool,
}

impl MetadataBook {
    /// Reads the book of a store's directory.
    pub fn read(vfs: &dyn Vfs, dir: &Path) -> Result<MetadataBook> {
        let book = MetadataBook::default();
        let file = file(dir);
        let Some(body) = file.read(vfs)? else { return Ok(book) };
        book.put(&decode_metadata(&body).map_err(|e| file.undecodable(&e))?);
        lock(&book.state).dirty = false;
        Ok(book)
    }

    /// Writes the book if it has changed.
    pub fn write(&self, vfs: &dyn Vfs, dir: &Path) -> Result<()> {
        let entries: Vec<Metadata> = {
            let mut state = lock(&self.state);
            if !state.dirty {
                return Ok(());
            }
            state.dirty = false;
            state.by_metric.values().cloned().collect()
        };
        let written = file(dir).write(vfs, &encode_metadata(&entries));
        if written.is_err() {
            lock(&self.state).dirty = true;
        }
        written
    }

    /// Adds or replaces entries; returns those that said something new.
    pub fn put(&self, metadata: &[Metadata]) -> Vec<Metadata> {
        let mut state = lock(&self.state);
        let mut news = Vec::new();
        for entry in metadata {
            let known = state.by_metric.get(&entry.metric);
            let has_room = known.is_some() || state.by_metric.len() < METRICS_MAX;
            if known != Some(entry) && has_room && !entry.metric.is_empty() {
                state.by_metric.insert(entry.metric.clone(), entry.clone());
                state.dirty = true;
                news.push(entry.clone());
            }
        }
        news
    }

    /// What is known of `metric`, or of all metrics by name, at most `limit`.
    pub fn get(&self, metric: Option<&str>, limit: usize) -> Vec<Metadata> {
        let state = lock(&self.state);
        match metric {
            Some(metric) => state.by_metric.get(metric).cloned().into_iter().take(limit).collect(),
            None => state.by_metric.values().take(limit).cloned().collect(),
        }
    }
}

fn file(dir: &Path) -> BookFile {
    BookFile { path: dir.join(FILE_NAME), magic: MAGIC }
}
