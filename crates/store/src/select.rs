//! A selection: the series that matched, and their samples on demand.

use crate::Result;
use model::Labels;
use std::ops::Range;
use std::time::Instant;

/// Bounds on one selection.
#[derive(Clone, Debug)]
pub struct SelectLimits {
    /// Series that may match.
    pub series_max: usize,
    /// When to give up.
    pub deadline: Option<Instant>,
}

/// Matched series and a frozen view of their samples. `Send + Sync`; reads may run in parallel.
pub struct Selection {}

impl Selection {
    /// How many series matched.
    pub fn len(&self) -> usize {
        todo!()
    }

    /// Whether none did.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The labels of series `idx`.
    pub fn labels(&self, _idx: usize) -> Labels {
        todo!()
    }

    /// Calls `sink(idx, timestamps, values)` once for each series of `range`, in order; the slices
    /// are empty when the series has no sample in the selected time.
    pub fn read(
        &self,
        _range: Range<usize>,
        _sink: &mut dyn FnMut(usize, &[i64], &[f64]),
    ) -> Result<()> {
        todo!()
    }
}
