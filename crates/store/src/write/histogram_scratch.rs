//! Buffers of one thread that appends histograms.

use crate::partition::histograms::lower::Lowered;
use crate::partition::histograms::names::Piece;
use crate::partition::series_map::Target;
use hashbrown::HashMap;
use index::EntityId;

/// Buffers of one thread that appends histograms.
#[derive(Default)]
pub(crate) struct HistogramScratch {
    pub lowered: Lowered,
    /// Hash of each piece's shape in the batch's context.
    pub shapes: HashMap<Piece, u64>,
    pub hashes: Vec<u128>,
    /// What is known of the keys of one histogram's rows.
    pub found: Vec<Option<Target>>,
    /// Where the hidden rows of the present histogram go, in their order.
    pub hidden: Vec<EntityId>,
    /// Those among them that are still to be found or registered, as indexes.
    pub unknown: Vec<usize>,
}

/// Stands in [`HistogramScratch::hidden`] until the entity is known.
const UNKNOWN: EntityId = EntityId::MAX;

impl HistogramScratch {
    /// Takes over what the map knows of the hidden rows. A hidden entity has columns that no client
    /// can name, so its rows go to it whole or are looked up again.
    pub fn note_found(&mut self) {
        self.hidden.clear();
        self.unknown.clear();
        for (idx, found) in self.found.iter().skip(1).enumerate() {
            match found {
                Some(Target::Entity(entity)) => self.hidden.push(*entity),
                _ => {
                    self.unknown.push(idx);
                    self.hidden.push(UNKNOWN);
                }
            }
        }
    }
}
