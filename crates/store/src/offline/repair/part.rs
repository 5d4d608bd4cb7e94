//! Writes a part again without what cannot be read and what belongs to nobody: slice by slice, so
//! that memory holds one column.
//!
//! A histogram is rows of several series, and goes as a whole. Of a slice of hidden series all
//! columns go when one does; and where hidden rows went, the markers of their histograms go, which
//! would be floats without them.

use crate::Result;
use crate::base::narrow::to_u32;
use crate::offline::verify::part_faults::Times;
use crate::part::{ColumnTimes, Part, PartInfo, PartSink, PartWriter, Slice, SliceKey};
use crate::partition::disk::live_part::open_part;
use crate::partition::histograms::marker::Marker;
use codec::Effort;
use model::TimeRange;
use roaring::RoaringBitmap;
use std::collections::BTreeSet;
use std::path::PathBuf;
use vfs::Vfs;

/// What is left out of a part.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// Columns that cannot be read: slice and column.
    pub columns: BTreeSet<(usize, u32)>,
    /// Series that the index does not know.
    pub series: RoaringBitmap,
    /// Markers at these times: of these series, or of all.
    pub markers: Vec<(TimeRange, Option<RoaringBitmap>)>,
}

/// A part to be written again.
#[derive(Debug)]
pub struct PartRewrite {
    /// The file.
    pub from: PathBuf,
    /// The file to be, which is not there yet.
    pub to: PathBuf,
    /// Its place among the others.
    pub order: u64,
    /// The partition.
    pub keep: TimeRange,
    /// What it lacks.
    pub without: LeftOut,
}

impl PartRewrite {
    /// Whether the file will hold any sample.
    ///
    /// # Errors
    /// As [`PartRewrite::run`].
    pub fn leaves_samples(&self, part: &Part) -> Result<bool> {
        let mut copy = Copy::default();
        for (idx, slice) in part.slices().iter().enumerate() {
            for column in 0..slice.columns as usize {
                let times = part.column_times(idx, column);
                if times == ColumnTimes::Empty || self.is_lost(idx, column) {
                    continue;
                }
                if !self.touches(&slice, column) {
                    return Ok(true);
                }
                if times == ColumnTimes::Shared {
                    copy.shared.read_shared(part, idx)?;
                }
                copy.filtered(self, part, idx, column)?;
                if !copy.kept_times.is_empty() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Writes the file, whole and durable.
    ///
    /// # Errors
    /// On I/O errors, and when what could be read before cannot any more.
    pub fn run(&self, vfs: &dyn Vfs) -> Result<()> {
        let part = open_part(vfs, &self.from)?;
        let sink = PartSink::File(vfs.create(&self.to)?);
        let mut writer = PartWriter::new(sink, Effort::Dense);
        let mut copy = Copy::default();
        for idx in 0..part.slices().len() {
            copy.slice(self, &part, idx, &mut writer)?;
        }
        writer.finish(PartInfo { sequence: self.order })?;
        Ok(vfs.sync_dir(self.to.parent().unwrap_or(&self.to))?)
    }

    fn is_lost(&self, idx: usize, column: usize) -> bool {
        self.without.columns.contains(&(idx, to_u32(column)))
    }

    /// Whether samples of a column may have to go one by one.
    fn touches(&self, slice: &Slice, column: usize) -> bool {
        let first = slice.ordinal(column, 0);
        let span = TimeRange::new(slice.min_ts, slice.max_ts);
        let last = first + (slice.slots - 1);
        0 < self.without.series.range_cardinality(first..=last)
            || !self.keep.covers(&span)
            || self.without.markers.iter().any(|(range, _)| range.overlaps(&span))
    }

    fn keeps(&self, ordinal: u32, time: i64, value: f64) -> bool {
        let is_of = |series: &Option<RoaringBitmap>| {
            series.as_ref().is_none_or(|series| series.contains(ordinal))
        };
        let is_lost_marker = || {
            Marker::of(value).is_some()
                && self.without.markers.iter().any(|(r, series)| r.contains(time) && is_of(series))
        };
        self.keep.contains(time) && !self.without.series.contains(ordinal) && !is_lost_marker()
    }
}

/// Buffers.
#[derive(Default)]
struct Copy {
    shared: Times,
    own: Times,
    values: Vec<f64>,
    kept_lens: Vec<u32>,
    kept_times: Vec<i64>,
    kept_values: Vec<f64>,
}

impl Copy {
    fn slice(
        &mut self,
        rewrite: &PartRewrite,
        part: &Part,
        idx: usize,
        writer: &mut PartWriter,
    ) -> Result<()> {
        let slice = &part.slice(idx);
        let columns = 0..slice.columns as usize;
        let of_kind = |column: &usize, kind| part.column_times(idx, *column) == kind;
        let is_kept = |column: &usize| !rewrite.is_lost(idx, *column);
        let is_shared = |column: &usize| of_kind(column, ColumnTimes::Shared) && is_kept(column);
        if columns.clone().any(|column| is_shared(&column)) {
            self.shared.read_shared(part, idx)?;
        }
        let SliceKeyOf(key) = slice.into();
        writer.begin_slice(key);
        let stays_shared = |column: &usize| is_shared(column) && !rewrite.touches(slice, *column);
        if columns.clone().any(|column| stays_shared(&column)) {
            writer.shared_times(&self.shared.lens, &self.shared.times)?;
        }
        for column in columns {
            if !is_kept(&column) || of_kind(&column, ColumnTimes::Empty) {
                writer.column_empty();
            } else if stays_shared(&column) {
                self.shared.read_values(part, idx, column, &mut self.values)?;
                writer.column_shared(&self.values)?;
            } else {
                self.filtered(rewrite, part, idx, column)?;
                writer.column_own(&self.kept_lens, &self.kept_times, &self.kept_values)?;
            }
        }
        writer.end_slice();
        Ok(())
    }

    /// Fills the buffers with the samples of a column that stay.
    fn filtered(
        &mut self,
        rewrite: &PartRewrite,
        part: &Part,
        idx: usize,
        column: usize,
    ) -> Result<()> {
        let times = match part.column_times(idx, column) {
            ColumnTimes::Own => {
                self.own.read_own(part, idx, column)?;
                &self.own
            }
            _ => &self.shared,
        };
        times.read_values(part, idx, column, &mut self.values)?;
        self.kept_lens.clear();
        self.kept_times.clear();
        self.kept_values.clear();
        let mut samples = times.times.iter().zip(&self.values);
        let slice = &part.slice(idx);
        for (slot, len) in times.lens.iter().enumerate() {
            let ordinal = slice.ordinal(column, slot);
            let before = self.kept_times.len();
            for (time, value) in samples.by_ref().take(*len as usize) {
                if rewrite.keeps(ordinal, *time, *value) {
                    self.kept_times.push(*time);
                    self.kept_values.push(*value);
                }
            }
            self.kept_lens.push(to_u32(self.kept_times.len() - before));
        }
        Ok(())
    }
}

/// The block of a slice.
struct SliceKeyOf(SliceKey);

impl From<&Slice> for SliceKeyOf {
    fn from(slice: &Slice) -> SliceKeyOf {
        let Slice { series_start, capacity, columns, slots, .. } = *slice;
        SliceKeyOf(SliceKey { series_start, capacity, columns, slots })
    }
}
