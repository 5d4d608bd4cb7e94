//! Where the partitions keep the selected series.
//!
//! ```text
//! series i = list[starts[i] .. starts[i + 1]], one place for each partition it lives in, oldest first
//! ```
//!
//! - Every series has a place, and of one partition one at most.
//! - Series stand in the order in which they are first met, unless they were put in another;
//!   `starts` is empty when each has exactly one place, in the first order.

use crate::Result;
use crate::base::narrow::to_u32;
use crate::base::select_limits::SelectLimits;
use crate::read::missing::Watch;
use crate::read::view::PartitionView;
use hashbrown::HashMap;
use model::{Labels, LabelsBuilder};
use std::ops::Range;

/// Labels that are read under one lock of a partition: some milliseconds.
const LABELS_PER_LOCK: usize = 4096;
/// From so many series on, those of one column are gathered alone.
const COLUMN_SERIES_MIN: usize = 64;

/// Where one partition keeps a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub view: u16,
    pub group: u32,
    pub column: u16,
    pub slot: u16,
}

impl Place {
    /// Which column of which block of which partition.
    pub fn column_place(&self) -> (u16, u32, u16) {
        (self.view, self.group, self.column)
    }
}

/// The places of the selected series.
pub(crate) struct Places {
    pub views: Vec<PartitionView>,
    list: Vec<Place>,
    /// Where each series' places start; one more entry than series.
    starts: Vec<u32>,
}

impl Places {
    /// The places of about `count` series in these views.
    pub fn new(
        views: Vec<PartitionView>,
        count: usize,
        (limits, watch): (&SelectLimits, &Watch),
    ) -> Result<Places> {
        let mut places = Places { views, list: Vec::with_capacity(count), starts: Vec::new() };
        places.list_all();
        if 1 < places.views.len() {
            places.join_partitions(limits, watch)?;
        }
        Ok(places)
    }

    /// Bytes of memory held, about.
    pub fn memory_size(&self) -> usize {
        let views: usize = self.views.iter().map(PartitionView::memory_size).sum();
        views + size_of::<Place>() * self.list.capacity() + 4 * self.starts.capacity()
    }

    /// How many series there are.
    pub fn len(&self) -> usize {
        if self.starts.is_empty() { self.list.len() } else { self.starts.len() - 1 }
    }

    /// Puts the series in another order.
    pub fn put_in_order(&mut self, order: &[u32]) {
        assert_eq!(order.len(), self.len(), "every series has a place");
        let mut list = Vec::with_capacity(self.list.len());
        let mut starts = Vec::with_capacity(order.len() + 1);
        for idx in order {
            starts.push(to_u32(list.len()));
            list.extend_from_slice(self.of(*idx as usize));
        }
        starts.push(to_u32(list.len()));
        // With `starts`, for those of one column no longer lie side by side.
        (self.list, self.starts) = (list, starts);
    }

    /// The places of a series, oldest partition first.
    pub fn of(&self, idx: usize) -> &[Place] {
        match self.starts.get(idx..idx + 2) {
            Some(bounds) => &self.list[bounds[0] as usize..bounds[1] as usize],
            None => &self.list[idx..idx + 1],
        }
    }

    /// The oldest place of a series.
    pub fn first_of(&self, idx: usize) -> &Place {
        &self.of(idx)[0]
    }

    /// Where the series end that are gathered at once, from the first of `range` on.
    pub fn gathered_end(&self, range: Range<usize>, count_max: usize) -> usize {
        debug_assert!(range.start < range.end && 0 < count_max, "some are left to gather");
        let end = range.end.min(range.start + count_max);
        if !self.starts.is_empty() {
            return end;
        }
        // The samples of one column are not copied once more.
        let first = self.list[range.start].column_place();
        let places = &self.list[range.start..end];
        let count = places.partition_point(|place| place.column_place() == first);
        if count < COLUMN_SERIES_MIN { end } else { range.start + count }
    }

    /// The labels of a series.
    pub fn labels(&self, idx: usize, watch: &Watch) -> Result<Labels> {
        let place = self.first_of(idx);
        let view = &self.views[usize::from(place.view)];
        let block = &view.groups[place.group as usize].block;
        let mut builder = LabelsBuilder::new();
        let state = view.partition.read();
        let read = state.series.index.labels(block, place.column, place.slot, &mut builder);
        read.map_err(|error| watch.found_rot(&view.partition, error))?;
        Ok(builder.finish())
    }

    /// The fingerprint of each of these series, in order.
    pub fn fingerprints(&self, series: &[usize], watch: &Watch) -> Result<Vec<u128>> {
        let places = series.iter().map(|idx| self.first_of(*idx));
        let mut out = Vec::with_capacity(series.len());
        let mut sink = |_: &Place, labels: Labels| out.push(labels.fingerprint());
        self.read_labels(places, (None, watch), &mut sink)?;
        assert_eq!(out.len(), series.len(), "a fingerprint for each series");
        Ok(out)
    }

    /// Calls `sink(place, labels)` for each place, in order, a bounded number under each lock of a
    /// partition; quick where neighbours are of one partition.
    pub fn read_labels<'p>(
        &self,
        places: impl IntoIterator<Item = &'p Place>,
        (wanted, watch): (Option<&[&str]>, &Watch),
        sink: &mut dyn FnMut(&Place, Labels),
    ) -> Result<()> {
        let mut builder = LabelsBuilder::new();
        let mut places = places.into_iter().peekable();
        while let Some(view_idx) = places.peek().map(|first| first.view) {
            let view = &self.views[usize::from(view_idx)];
            let state = view.partition.read();
            let mut reader = match wanted {
                Some(wanted) => state.series.index.label_reader_of(wanted),
                None => state.series.index.label_reader(),
            };
            for _ in 0..LABELS_PER_LOCK {
                let Some(place) = places.next_if(|place| place.view == view_idx) else { break };
                let group = &view.groups[place.group as usize];
                builder.clear();
                let read = reader.match_labels(group, place.column, place.slot, &mut builder);
                read.map_err(|error| watch.found_rot(&view.partition, error))?;
                sink(place, builder.finish());
            }
        }
        Ok(())
    }

    /// Lists the places of all views.
    fn list_all(&mut self) {
        assert!(self.views.len() <= usize::from(u16::MAX), "partitions have a limit");
        for (view, view_idx) in self.views.iter().zip(0u16..) {
            for (group, group_idx) in view.groups.iter().zip(0u32..) {
                for column in group.columns.iter() {
                    let place = |slot| Place { view: view_idx, group: group_idx, column, slot };
                    self.list.extend(group.slots.iter().map(place));
                }
            }
        }
    }

    /// Brings the places of one series together, in the order in which series are first met.
    fn join_partitions(&mut self, limits: &SelectLimits, watch: &Watch) -> Result<()> {
        let mut series_of: HashMap<u128, u32> = HashMap::with_capacity(self.list.len() / 2);
        let mut by_series: Vec<(u32, Place)> = Vec::with_capacity(self.list.len());
        for some in self.list.chunks(LABELS_PER_LOCK) {
            limits.check_interrupt()?;
            self.read_labels(some, (None, watch), &mut |place, labels| {
                let next = to_u32(series_of.len());
                let series = *series_of.entry(labels.fingerprint()).or_insert(next);
                by_series.push((series, *place));
            })?;
        }
        by_series.sort_unstable();
        self.starts.clear();
        for (idx, (series, _)) in by_series.iter().enumerate() {
            if *series as usize == self.starts.len() {
                self.starts.push(to_u32(idx));
            }
        }
        assert_eq!(self.starts.len(), series_of.len(), "every series has a place");
        self.starts.push(to_u32(by_series.len()));
        self.list = by_series.into_iter().map(|(_, place)| place).collect();
        Ok(())
    }
}
