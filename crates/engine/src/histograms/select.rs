//! Selectors whose series may have histograms: the general way, one series at a time.

use crate::context::Context;
use crate::error::{QueryError, Result};
use crate::gap::ABSENT;
use crate::histograms::cells::{Cell, bytes_of};
use crate::histograms::samples::MixedSamples;
use crate::histograms::totals::{Reading, totals};
use crate::read_ahead::{batch_len, read_labels};
use crate::reservation::Reservation;
use crate::row::RowVisitor;
use crate::source::SeriesSet;
use model::Labels;

/// Receives the labels and samples of one series.
pub(crate) type MixedVisitor<'v> = dyn FnMut(&Labels, &MixedSamples<'_>) -> Result<()> + 'v;

/// Makes the row of a series that may have histograms; `row` and `cells` come as gaps.
pub(crate) type MixedMaker<'m> =
    dyn FnMut(&Labels, &MixedSamples<'_>, &mut [f64], &mut [Cell]) -> Result<()> + 'm;

impl Context<'_> {
    /// Calls `visit` with the labels and samples of every series of a set that has samples. One
    /// series' histograms are held at a time, and count.
    pub fn read_mixed(&self, set: &dyn SeriesSet, visit: &mut MixedVisitor<'_>) -> Result<()> {
        let (mut next, mut labels) = (0, Vec::new());
        let reads_totals = self.reading.get() == Reading::Totals;
        while next < set.len() {
            self.check()?;
            let start = next;
            next = set.len().min(start + batch_len(set));
            read_labels(set, start..next, None, &mut labels)?;
            let mut failure: Option<QueryError> = None;
            let mut count = 0;
            set.read_mixed(start..next, &mut |idx, times, values, histogram_times, histograms| {
                debug_assert_eq!(times.len(), values.len());
                debug_assert_eq!(histogram_times.len(), histograms.len());
                let mut samples = MixedSamples { times, values, histogram_times, histograms };
                let small;
                if reads_totals {
                    small = totals(histograms);
                    samples.histograms = &small;
                }
                if failure.is_none() && !samples.is_empty() {
                    count += samples.len();
                    let held = Reservation::new(&self.usage);
                    held.grow(0, histograms.iter().map(bytes_of).sum::<usize>() as u64);
                    let visited = self.check_memory();
                    failure = visited.and_then(|()| visit(&labels[idx - start], &samples)).err();
                }
            })?;
            self.count_samples_read(count);
            failure.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// As [`Context::read_mixed`] for who wants rows of `steps` values.
    pub fn read_mixed_rows(
        &self,
        set: &dyn SeriesSet,
        steps: usize,
        make: &mut MixedMaker<'_>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<()> {
        let (mut row, mut cells) = (vec![ABSENT; steps], vec![None; steps]);
        self.read_mixed(set, &mut |labels, samples| {
            row.fill(ABSENT);
            cells.fill(None);
            make(labels, samples, &mut row, &mut cells)?;
            let is_mixed = cells.iter().any(Option::is_some);
            visit(labels, &row, if is_mixed { &cells } else { &[] })
        })
    }
}
