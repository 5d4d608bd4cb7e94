//! The parts of an index that never change. A search shares them and needs no lock.

use crate::index::Part;
use crate::memory::MemoryIndex;
use crate::segment::Segment;
use std::sync::Arc;

/// Segments and sealed memory indexes.
#[derive(Clone, Default)]
pub(crate) struct FrozenParts {
    /// By increasing entities.
    pub segments: Vec<Arc<Segment>>,
    /// Behind the segments; nothing is registered in them any more.
    pub sealed: Vec<Arc<MemoryIndex>>,
}

impl FrozenParts {
    /// All parts, by increasing ids.
    pub(crate) fn parts(&self) -> impl DoubleEndedIterator<Item = Part<'_>> {
        let segments = self.segments.iter().map(|segment| Part::Segment(segment));
        segments.chain(self.sealed.iter().map(|memory| Part::Memory(memory)))
    }
}
