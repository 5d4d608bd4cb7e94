//! Rows that are made where their samples are read, so that only rows go from thread to thread.
//!
//! ```text
//! samples of a series ──► maker of the thread ──► a row of the batch ──► the thread that evaluates
//! ```

use crate::error::{QueryError, Result};
use crate::gap::ABSENT;
use crate::read_ahead::read_labels;
use crate::row::Wanted;
use crate::source::SeriesSet;
use model::Labels;
use std::ops::Range;

/// Values of a batch, about: half a megabyte.
const VALUES_MAX: usize = 64 << 10;
/// Batches that each thread makes at least, if there are series enough: the one that evaluates
/// should not wait long for the first, nor the others for the last.
const BATCHES_PER_THREAD: usize = 4;

/// Makes the row of a series from its samples, of which there is at least one.
pub(crate) trait RowMaker {
    /// Writes every value of `row`.
    fn make(&mut self, timestamps: &[i64], values: &[f64], row: &mut [f64]) -> Result<()>;
}

/// Some series' rows, one after the other.
#[derive(Default)]
pub(crate) struct RowBatch {
    labels: Vec<Labels>,
    values: Vec<f64>,
    /// Samples read.
    samples: u64,
    /// Why the row behind the last one could not be made.
    failure: Option<QueryError>,
}

impl RowBatch {
    /// How many series to put into a batch: more than are read at once, as rows are small, but
    /// not more than VALUES_MAX allows.
    pub fn len_max(read_len: usize, steps: usize, series_per_thread: usize) -> usize {
        let fair = series_per_thread / BATCHES_PER_THREAD / read_len * read_len;
        fair.max(read_len).min(VALUES_MAX / steps.max(1)).max(1)
    }

    /// Replaces what is there by the rows of the series of `range`.
    pub fn read(
        &mut self,
        set: &dyn SeriesSet,
        range: Range<usize>,
        wanted: Wanted<'_>,
        steps: usize,
        maker: &mut impl RowMaker,
    ) -> Result<()> {
        let RowBatch { labels, values: rows, samples, failure } = self;
        read_labels(set, range.clone(), wanted, labels)?;
        rows.clear();
        (*samples, *failure) = (0, None);
        set.read(range, &mut |_, timestamps, values| {
            debug_assert_eq!(timestamps.len(), values.len());
            if failure.is_some() {
                return;
            }
            let start = rows.len();
            rows.resize(start + steps, ABSENT);
            if timestamps.is_empty() {
                return;
            }
            *samples += timestamps.len() as u64;
            if let Err(error) = maker.make(timestamps, values, &mut rows[start..]) {
                rows.truncate(start);
                *failure = Some(error);
            }
        })?;
        Ok(())
    }

    /// Labels and values of its rows, in order; those of series without samples have no value.
    pub fn rows(&self, steps: usize) -> impl Iterator<Item = (&Labels, &[f64])> {
        self.labels.iter().zip(self.values.chunks_exact(steps))
    }

    /// How many samples were read for it.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Fails when not all rows could be made.
    pub fn take_failure(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }
}
