//! Buffers of one thread that appends histograms.

use super::lower::Lowered;
use super::names::Piece;
use crate::series_map::Target;
use hashbrown::HashMap;

/// Buffers of one thread that appends histograms.
#[derive(Default)]
pub(crate) struct HistogramScratch {
    pub lowered: Lowered,
    /// Hash of each piece's shape in the batch's context.
    pub shapes: HashMap<Piece, u64>,
    pub hashes: Vec<u128>,
    /// Where the rows of the present histogram go: the plain one, then the hidden ones.
    pub targets: Vec<Option<Target>>,
}
