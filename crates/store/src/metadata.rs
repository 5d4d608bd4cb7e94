//! What metrics are, by name; in the log until the next flush, then in one small file.

use crate::log_record::{decode_metadata, encode_metadata};
use crate::store::lock;
use crate::{Error, Result};
use codec::{crc32, put_u32};
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
        let path = dir.join(FILE_NAME);
        let book = MetadataBook::default();
        if !vfs.exists(&path) {
            return Ok(book);
        }
        let bytes = vfs.read(&path)?;
        let corrupt = |offset: usize, what: &str| Error::Corrupt {
            file: path.clone(),
            offset: offset as u64,
            what: what.into(),
        };
        let body = bytes.strip_prefix(MAGIC).ok_or_else(|| corrupt(0, "unknown version"))?;
        let (body, checksum) =
            body.split_last_chunk::<4>().ok_or_else(|| corrupt(bytes.len(), "cut short"))?;
        if crc32(body) != u32::from_le_bytes(*checksum) {
            return Err(corrupt(bytes.len() - 4, "checksum mismatch"));
        }
        book.put(&decode_metadata(body).map_err(|e| corrupt(e.offset, e.what))?);
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
        let body = encode_metadata(&entries);
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&body);
        put_u32(&mut bytes, crc32(&body));
        let written = vfs::write_atomic(vfs, &dir.join(FILE_NAME), &bytes);
        if written.is_err() {
            lock(&self.state).dirty = true;
        }
        Ok(written?)
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
