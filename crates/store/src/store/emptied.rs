//! Series of which a deletion by time leaves no sample in a partition, though its range does not cover the
//! partition. Lists of series look at whole days, so without more they would name such a series until a
//! merge writes its parts again. A second tombstone, of all the partition's time, hides it at once.
//!
//! The check reads the remaining samples of the series that matched. It has a budget: the next merge removes empty
//! series beyond it.

use crate::base::ground::Ground;
use crate::part::page_headers::PageHeaders;
use crate::partition::Partition;
use crate::partition::histograms::names::LABEL;
use crate::read::missing::Watch;
use crate::read::read_column::{ColumnRequest, ReadScratch, Samples, read_column};
use crate::read::view::PartitionView;
use crate::{Result, SelectLimits};
use index::{BlockMatch, CompiledMatchers, Completeness, Search};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Samples that one deletion reads at most.
const SAMPLES_MAX: u64 = 4 << 20;

/// Looks for emptied series; one for each deletion.
pub(crate) struct EmptiedSeries<'a> {
    ground: &'a Ground,
    sets: &'a [CompiledMatchers],
    limits: &'a SelectLimits,
    /// Samples that may still be read.
    budget: u64,
}

impl<'a> EmptiedSeries<'a> {
    pub fn new(
        ground: &'a Ground,
        sets: &'a [CompiledMatchers],
        limits: &'a SelectLimits,
    ) -> EmptiedSeries<'a> {
        EmptiedSeries { ground, sets, limits, budget: SAMPLES_MAX }
    }

    /// Ordinals of the series that match and have no sample in the partition. The caller holds its
    /// `change` lock, and nothing is flushed meanwhile.
    ///
    /// # Errors
    /// On I/O errors, for damaged parts, and when `limits` say so.
    pub fn find(&mut self, partition: &Arc<Partition>) -> Result<RoaringBitmap> {
        let mut emptied = RoaringBitmap::new();
        let search = Search::new(self.sets, Completeness::AtStart);
        let found = partition.search(search, &mut index::refuse_rot)?;
        let range = partition.period.range();
        let view = {
            let state = partition.read();
            // Native histograms are in hidden series beside those that match.
            if state.series.index.knows_tag(LABEL)? {
                return Ok(emptied);
            }
            PartitionView::new(partition, &state, found, &range, None)
        };
        for group in 0..view.groups.len() {
            self.add_group(&view, group, &mut emptied)?;
        }
        Ok(emptied)
    }

    fn add_group(
        &mut self,
        view: &PartitionView,
        group: usize,
        emptied: &mut RoaringBitmap,
    ) -> Result<()> {
        let BlockMatch { block, columns, slots, .. } = &view.groups[group];
        let slices =
            view.sources.iter().flat_map(|one| one.part.part.slices_of(block.series_start));
        let samples: u64 = slices.map(|slice| slice.samples).sum();
        let Some(budget) = self.budget.checked_sub(samples) else { return Ok(()) };
        self.budget = budget;
        let slots: Vec<u16> = slots.iter().collect();
        let (watch, page_headers) = (Watch::new(self.ground, None), PageHeaders::none());
        let (range, without) = (view.partition.period.range(), &[]);
        let (mut scratch, mut left) = (ReadScratch::default(), Samples::default());
        for column in columns.iter() {
            self.limits.check_interrupt()?;
            left.clear();
            let request = ColumnRequest {
                view,
                group,
                column,
                slots: &slots,
                range,
                page_headers: &page_headers,
                watch: &watch,
                without,
            };
            read_column(&request, &mut scratch, &mut left)?;
            let spans = slots.iter().zip(&left.spans);
            let without_samples = spans.filter(|(_, span)| span.values().is_empty());
            emptied.extend(without_samples.map(|(slot, _)| block.ordinal(column, *slot)));
        }
        Ok(())
    }
}
