//! The store: open, append, select, close.

use crate::{
    Cardinality, CardinalityRequest, Durability, Result, SelectLimits, Selection, StoreConfig,
    StoreStats, VerifyReport,
};
use model::{KeyHasher, Labels, Matcher, Metadata, Rejection, TimeRange, WriteBatch};
use std::path::Path;
use std::sync::Arc;
use vfs::Vfs;

/// What became of a batch.
#[derive(Clone, Debug, Default)]
pub struct Appended {
    /// Samples taken.
    pub samples: u64,
    /// Rows refused, all of them counted.
    pub rejected: u64,
    /// The first refused rows, with reasons.
    pub rejections: Vec<Rejection>,
}

/// A store on one directory.
pub struct Store {}

impl Store {
    /// Opens (creating it if need be) the store in `dir` and replays its log.
    pub fn open(_vfs: Arc<dyn Vfs>, _dir: &Path, _config: StoreConfig) -> Result<Arc<Store>> {
        todo!()
    }
    /// The hasher that batches for [`Store::append`] must be built with.
    pub fn hasher(&self) -> KeyHasher {
        todo!()
    }
    /// Appends a batch; blocks until it is as durable as asked.
    pub fn append(&self, _batch: &WriteBatch<'_>, _durability: Durability) -> Result<Appended> {
        todo!()
    }
    /// The series that match any of `sets` (each a conjunction) and may have samples in `range`.
    pub fn select(
        &self,
        _sets: &[Vec<Matcher>],
        _range: TimeRange,
        _limits: &SelectLimits,
    ) -> Result<Selection> {
        todo!()
    }
    /// Label sets live in `range`, exact to the UTC day. No sets: all.
    pub fn series(
        &self,
        _sets: &[Vec<Matcher>],
        _range: TimeRange,
        _limits: &SelectLimits,
    ) -> Result<Vec<Labels>> {
        todo!()
    }
    /// Sorted label names, as [`Store::series`].
    pub fn label_names(
        &self,
        _sets: &[Vec<Matcher>],
        _range: TimeRange,
        _limits: &SelectLimits,
    ) -> Result<Vec<String>> {
        todo!()
    }
    /// Sorted values of one label, as [`Store::series`].
    pub fn label_values(
        &self,
        _name: &str,
        _sets: &[Vec<Matcher>],
        _range: TimeRange,
        _limits: &SelectLimits,
    ) -> Result<Vec<String>> {
        todo!()
    }
    /// Deletes the samples in `range` of the series that match; returns how many series matched.
    pub fn delete(&self, _sets: &[Vec<Matcher>], _range: TimeRange) -> Result<u64> {
        todo!()
    }
    /// Remembers what metrics are; durable on return.
    pub fn put_metadata(&self, _metadata: &[Metadata]) -> Result<()> {
        todo!()
    }
    /// What is known of `metric`, or of all metrics by name, at most `limit`.
    pub fn metadata(&self, _metric: Option<&str>, _limit: usize) -> Vec<Metadata> {
        todo!()
    }
    /// Writes the head to disk.
    pub fn flush(&self) -> Result<()> {
        todo!()
    }
    /// Merges each partition (whose name, `YYYY-MM`, starts with the prefix) down to as few parts as can be.
    pub fn force_merge(&self, _partition_prefix: &str) -> Result<()> {
        todo!()
    }
    /// Freezes the store's files under `snapshots/<name>` by hard links; returns the name.
    pub fn create_snapshot(&self) -> Result<String> {
        todo!()
    }
    /// Names of the snapshots.
    pub fn snapshots(&self) -> Result<Vec<String>> {
        todo!()
    }
    /// Removes a snapshot.
    pub fn delete_snapshot(&self, _name: &str) -> Result<()> {
        todo!()
    }
    /// Counters and sizes.
    pub fn stats(&self) -> StoreStats {
        todo!()
    }
    /// Who makes the series.
    pub fn cardinality(&self, _request: &CardinalityRequest) -> Result<Cardinality> {
        todo!()
    }
    /// Flushes, syncs, stops the background threads.
    pub fn close(&self) -> Result<()> {
        todo!()
    }
}

/// Walks every checksum and invariant of the store in `dir`, which must not be open.
pub fn verify(_vfs: Arc<dyn Vfs>, _dir: &Path) -> Result<VerifyReport> {
    todo!()
}
