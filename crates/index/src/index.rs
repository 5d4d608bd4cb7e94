//! The index of one partition: segments on disk and one index in memory, answering as one.

#[cfg(test)]
mod tests;

use crate::entity::{BlockRef, EntityId, NewEntity};
use crate::error::Result;
use crate::matcher::CompiledMatchers;
use crate::memory::MemoryIndex;
use crate::subset::BlockMatch;
use model::LabelsBuilder;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// All label sets of one partition.
pub struct Index {
    #[expect(dead_code, reason = "segments follow")]
    vfs: Arc<dyn vfs::Vfs>,
    #[expect(dead_code, reason = "segments follow")]
    dir: PathBuf,
    memory: MemoryIndex,
}

impl Index {
    /// Opens the segments that the store's manifest names (none for a new partition); what was
    /// registered after them comes through [`Index::replay`].
    ///
    /// # Errors
    /// When a segment is missing or corrupt.
    pub fn open(vfs: Arc<dyn vfs::Vfs>, dir: &Path, segment_names: &[String]) -> Result<Index> {
        assert!(segment_names.is_empty(), "segments follow");
        Ok(Index { vfs, dir: dir.to_path_buf(), memory: MemoryIndex::new(0, 0) })
    }

    /// The entity with exactly these metric names (in this order) and tags.
    ///
    /// # Errors
    /// When a segment turns out to be corrupt, as in all methods that read.
    pub fn find_entity(&self, entity: &NewEntity<'_>) -> Result<Option<EntityId>> {
        Ok(self.memory.find_entity(entity))
    }

    /// The series of this metric name and these tags, whether it came alone or as one metric of
    /// an entity: its entity and column.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn find_series(
        &self,
        name: &str,
        tags: &[(&str, &str)],
    ) -> Result<Option<(EntityId, u16)>> {
        Ok(self.memory.find_series(name, tags))
    }

    /// Registers an entity that [`Index::find_entity`] did not find, and appends to `log` a
    /// record that [`Index::replay`] understands.
    ///
    /// # Errors
    /// As [`MemoryIndex::register`]; nothing has changed then.
    pub fn register(&mut self, entity: &NewEntity<'_>, log: &mut Vec<u8>) -> Result<EntityId> {
        self.memory.register(entity, log)
    }

    /// Applies registrations from the log; what the index already holds is skipped.
    ///
    /// # Errors
    /// As [`MemoryIndex::replay`].
    pub fn replay(&mut self, registrations: &[u8]) -> Result<()> {
        self.memory.replay(registrations)
    }

    /// The block that an entity lives in.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn block_of(&self, entity: EntityId) -> Result<Option<BlockRef>> {
        Ok(self.memory.block_of(entity))
    }

    /// The block that an ordinal lives in.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn block_of_ordinal(&self, ordinal: u32) -> Result<Option<BlockRef>> {
        Ok(self.memory.block_of_ordinal(ordinal))
    }

    /// The series that satisfy all matchers, by increasing block; each series once.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn search(&self, matchers: &CompiledMatchers) -> Result<Vec<BlockMatch>> {
        Ok(self.memory.search(matchers))
    }

    /// Appends the labels of a series to `out`, the metric's name included, in no order.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn labels(
        &self,
        block: &BlockRef,
        column: u16,
        slot: u16,
        out: &mut LabelsBuilder,
    ) -> Result<()> {
        self.memory.labels(block, column, slot, out)
    }

    /// The names of the labels of these series, sorted.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn label_names(&self, matches: &[BlockMatch]) -> Result<BTreeSet<String>> {
        let mut out = BTreeSet::new();
        self.memory.label_names(matches, &mut out);
        Ok(out)
    }

    /// The distinct values that these series have for a label, sorted.
    ///
    /// # Errors
    /// As [`Index::find_entity`].
    pub fn label_values(&self, name: &str, matches: &[BlockMatch]) -> Result<BTreeSet<String>> {
        let mut out = BTreeSet::new();
        self.memory.label_values(name, matches, &mut out);
        Ok(out)
    }

    /// What is registered but in no segment yet.
    pub fn memory(&self) -> &MemoryIndex {
        &self.memory
    }
}
