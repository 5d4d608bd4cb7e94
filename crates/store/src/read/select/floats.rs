//! The floats of some series, gathered column by column.

use super::places::{Place, Places};
use super::scope::SelectScope;
use crate::Result;
use crate::base::narrow::to_u32;
use crate::partition::histograms::marker::may_be_marker;
use crate::read::read_column::{ColumnRequest, ReadScratch, Samples, Span, read_column};
use std::ops::Range;

/// Buffers of one thread that reads the floats of a selection.
#[derive(Default)]
pub(crate) struct FloatReader {
    scratch: ReadScratch,
    samples: Samples,
    /// (place, its index among the places of the series that are being read).
    order: Vec<(Place, u32)>,
    /// By that index, the span in `samples`.
    spans: Vec<Span>,
    /// Where the spans of each series start, and where they end.
    starts: Vec<usize>,
    slots: Vec<u16>,
    times: Vec<i64>,
    values: Vec<f64>,
}

impl FloatReader {
    /// The samples of a series that was gathered, by its place among those.
    pub fn series(&mut self, idx: usize) -> (&[i64], &[f64]) {
        let spans = &self.spans[self.starts[idx]..self.starts[idx + 1]];
        if let [span] = spans {
            return self.samples.of(span);
        }
        self.times.clear();
        self.values.clear();
        for span in spans {
            let (times, values) = self.samples.of(span);
            self.times.extend_from_slice(times);
            self.values.extend_from_slice(values);
        }
        (&self.times, &self.values)
    }

    /// How many values of a series that was gathered look like the markers of histograms.
    pub fn markers(&self, idx: usize) -> usize {
        let spans = &self.spans[self.starts[idx]..self.starts[idx + 1]];
        let of_span = |span| {
            let (_, values) = self.samples.of(span);
            values.iter().filter(|value| may_be_marker(**value)).count()
        };
        spans.iter().map(of_span).sum()
    }

    /// Reads all places of the series, those of one column of one block together.
    pub fn gather(
        &mut self,
        places: &Places,
        scope: &SelectScope,
        range: &Range<usize>,
    ) -> Result<()> {
        self.samples.clear();
        self.order.clear();
        self.starts.clear();
        for idx in range.clone() {
            self.starts.push(self.order.len());
            for place in places.of(idx) {
                self.order.push((*place, to_u32(self.order.len())));
            }
        }
        self.starts.push(self.order.len());
        self.order.sort_unstable();
        self.spans.clear();
        self.spans.resize(self.order.len(), Span::default());
        for same in self.order.chunk_by(|a, b| a.0.column_place() == b.0.column_place()) {
            let place = &same[0].0;
            self.slots.clear();
            self.slots.extend(same.iter().map(|(place, _)| place.slot));
            let request = ColumnRequest {
                view: &places.views[usize::from(place.view)],
                group: place.group as usize,
                column: place.column,
                slots: &self.slots,
                range: scope.range,
                page_headers: &scope.page_headers,
                watch: &scope.watch,
                without: &[],
            };
            let first = self.samples.spans.len();
            read_column(&request, &mut self.scratch, &mut self.samples)?;
            assert_eq!(self.samples.spans.len() - first, same.len(), "a span for each slot");
            for ((_, idx), span) in same.iter().zip(&self.samples.spans[first..]) {
                self.spans[*idx as usize] = span.clone();
            }
        }
        Ok(())
    }
}
