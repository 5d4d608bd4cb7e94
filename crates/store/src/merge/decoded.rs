//! What has been decoded of the sources of a window: own timestamps and values, column by column.
//!
//! Most sources are decoded for one window or two and their buffers used again at once. A source
//! that reaches through many windows (a part in memory can hold a million rows of one busy series)
//! would be decoded for each; its columns are kept until it ends, within [`KEPT_MAX`].

use super::sweep::OpenSlice;
use super::track::Track;
use crate::Result;
use crate::part::reader::Check;
use crate::part::{ColumnTimes, Part};
use std::collections::BTreeMap;

/// Numbers kept for later windows, of eight bytes each: 64 MiB.
const KEPT_MAX: usize = 8 << 20;

/// Input, slice, column.
type Key = (usize, usize, usize);

/// A column of a source, and where the source is among those of the window.
#[derive(Clone, Copy)]
pub struct OpenColumn<'a> {
    /// The source's index in the window.
    pub at: usize,
    /// The source.
    pub source: &'a OpenSlice,
    /// Its part.
    pub part: &'a Part,
    /// The column.
    pub column: usize,
    /// Whether many windows will need it.
    pub is_long: bool,
}

impl OpenColumn<'_> {
    fn key(&self) -> Key {
        (self.source.input, self.source.idx, self.column)
    }

    /// Where the column's timestamps are.
    pub fn times(&self) -> ColumnTimes {
        self.part.column_times(self.source.idx, self.column)
    }
}

/// The buffers.
#[derive(Debug, Default)]
pub struct Decoded {
    /// Own timestamps of the column at hand, for each source of the window.
    tracks: Vec<Track>,
    /// Values of the column at hand, likewise.
    values: Vec<Vec<f64>>,
    kept_tracks: BTreeMap<Key, Track>,
    kept_values: BTreeMap<Key, Vec<f64>>,
    /// Numbers in the kept buffers.
    kept_len: usize,
}

impl Decoded {
    /// Drops what was kept of sources that are no longer among these.
    pub fn keep_only(&mut self, sources: &[OpenSlice]) {
        if self.kept_len == 0 {
            return;
        }
        let is_open =
            |key: &Key| sources.iter().any(|source| (source.input, source.idx) == (key.0, key.1));
        self.kept_tracks.retain(|key, _| is_open(key));
        self.kept_values.retain(|key, _| is_open(key));
        let tracks: usize = self.kept_tracks.values().map(Track::samples).sum();
        let values: usize = self.kept_values.values().map(Vec::len).sum();
        self.kept_len = tracks + values;
    }

    /// Drops everything that was kept; the next block's sources have the same names.
    pub fn clear(&mut self) {
        self.keep_only(&[]);
    }

    /// Decodes the column's own timestamps, if it has any.
    pub fn load_times(&mut self, place: OpenColumn<'_>) -> Result<()> {
        if place.times() != ColumnTimes::Own || self.kept_tracks.contains_key(&place.key()) {
            return Ok(());
        }
        let (part, idx) = (place.part, place.source.idx);
        let reader = part.own_times_with(idx, place.column, Check::Always)?;
        if place.is_long && self.kept_len < KEPT_MAX {
            let mut track = Track::default();
            track.load(part, idx, &reader)?;
            self.kept_len += track.samples();
            self.kept_tracks.insert(place.key(), track);
            return Ok(());
        }
        self.tracks.resize_with(self.tracks.len().max(place.at + 1), Track::default);
        self.tracks[place.at].load(part, idx, &reader)
    }

    /// The column's timestamps, own ones as loaded before; the column is not empty.
    pub fn times<'t>(&'t self, place: OpenColumn<'t>) -> &'t Track {
        if place.times() != ColumnTimes::Own {
            return &place.source.track;
        }
        self.kept_tracks.get(&place.key()).unwrap_or_else(|| &self.tracks[place.at])
    }

    /// Decodes the column's values, whose timestamps were loaded before.
    pub fn load_values(&mut self, place: OpenColumn<'_>) -> Result<()> {
        if self.kept_values.contains_key(&place.key()) {
            return Ok(());
        }
        self.values.resize_with(self.values.len().max(place.at + 1), Vec::new);
        let mut values = std::mem::take(&mut self.values[place.at]);
        values.clear();
        let track = self.times(place);
        let (part, idx) = (place.part, place.source.idx);
        part.values_with(idx, place.column, track.lens(), Check::Always)?
            .read(0..track.lens().len(), &mut values)
            .map_err(|_| part.corrupt_slice(idx, "values that decode"))?;
        if values.len() != track.samples() {
            return Err(part.corrupt_slice(idx, "a value for each timestamp"));
        }
        if place.is_long && self.kept_len < KEPT_MAX {
            self.kept_len += values.len();
            self.kept_values.insert(place.key(), values);
        } else {
            self.values[place.at] = values;
        }
        Ok(())
    }

    /// The values as loaded before.
    pub fn values(&self, place: OpenColumn<'_>) -> &[f64] {
        let values = match self.kept_values.get(&place.key()) {
            Some(values) => values,
            None => &self.values[place.at],
        };
        debug_assert_eq!(values.len(), self.times(place).samples(), "those of this column");
        values
    }
}
