//! Rows in order of arrival become a part in memory: sorted by entity and encoded, cheaply.
//!
//! Whoever fills the arena seals what was taken from it, outside the partition's lock. The sort is
//! a radix sort over (entity, row id), so rows of an entity stay in order of arrival and the last
//! of two rows with the same time wins.

use crate::Result;
use crate::base::narrow::{low_half, to_u16, to_u32, to_usize};
use crate::part::{Part, PartInfo, PartSink, PartWriter, SliceKey};
use crate::partition::head::arena::{ArenaView, RowView, Single};
use codec::Effort;
use index::{BlockRef, Index};
use model::Timestamp;
use std::path::PathBuf;
use vfs::Bytes;

/// Rows are of registered entities, so the index is not what it was when they were taken.
const UNKNOWN_ENTITY: index::Error = index::Error::InvalidEntity("a row of an unknown entity");

/// Bits sorted by one pass of the radix sort.
const DIGIT_BITS: u32 = 11;

/// The entity of a key of [`Sealing`].
#[inline(always)]
fn entity_of(key: u64) -> u32 {
    (key >> 32) as u32
}

/// Blocks that are found by one look at the index: rows of a million odd series have a million of
/// them.
const BLOCKS_TOGETHER: usize = 4096;

/// What belongs to one entity block, as ranges of the sorted lists.
struct BlockRows {
    block: BlockRef,
    keys: std::ops::Range<usize>,
    singles: std::ops::Range<usize>,
}

/// The rows of a view on their way to a part: sorted, then cut by block and encoded, some blocks after
/// the other.
pub struct Sealing<'a> {
    view: &'a ArenaView,
    /// `entity << 32 | row id`, sorted.
    keys: Vec<u64>,
    /// Sorted by entity, column, time, arrival.
    singles: Vec<Single>,
    /// How far both are cut.
    cut: (usize, usize),
    /// What is cut and not encoded yet.
    blocks: Vec<BlockRows>,
    scratch: Scratch<'a>,
    writer: PartWriter,
}

impl<'a> Sealing<'a> {
    /// Sorts the view's rows; needs no lock.
    pub fn new(view: &'a ArenaView) -> Sealing<'a> {
        let mut keys: Vec<u64> =
            view.rows().map(|row| u64::from(row.entity) << 32 | u64::from(row.id)).collect();
        radix_sort_by_entity(&mut keys);
        let mut singles = view.singles().to_vec();
        singles.sort_by_key(|single| (single.entity, single.column, single.timestamp));
        debug_assert!(keys.is_sorted(), "by entity, those of one in the order of arrival");
        Sealing {
            view,
            keys,
            singles,
            cut: (0, 0),
            blocks: Vec::new(),
            scratch: Scratch::default(),
            writer: PartWriter::new(PartSink::Memory(Vec::new()), Effort::Fast),
        }
    }

    /// Finds the next blocks of the sorted rows. Returns whether there are any.
    pub fn cut_by_block(&mut self, index: &Index) -> Result<bool> {
        let (mut key_idx, mut single_idx) = self.cut;
        while self.blocks.len() < BLOCKS_TOGETHER {
            let next_key = self.keys.get(key_idx).map(|key| entity_of(*key));
            let next_single = self.singles.get(single_idx).map(|single| single.entity);
            let Some(entity) = next_key.into_iter().chain(next_single).min() else { break };
            let block = index.block_of(entity)?.ok_or(UNKNOWN_ENTITY)?;
            let end = u64::from(block.entity_start) + u64::from(block.capacity);
            let keys = key_idx..key_idx + self.keys[key_idx..].partition_point(|k| k >> 32 < end);
            let singles = single_idx
                ..single_idx
                    + self.singles[single_idx..].partition_point(|s| u64::from(s.entity) < end);
            (key_idx, single_idx) = (keys.end, singles.end);
            self.blocks.push(BlockRows { block, keys, singles });
        }
        self.cut = (key_idx, single_idx);
        Ok(!self.blocks.is_empty())
    }

    /// Encodes the blocks that were found.
    pub fn encode(&mut self) -> Result<()> {
        let mut blocks = std::mem::take(&mut self.blocks);
        for rows in blocks.drain(..) {
            self.encode_block(&rows)?;
        }
        self.blocks = blocks;
        Ok(())
    }

    /// The part in memory, once all is encoded.
    pub fn finish(self) -> Result<Part> {
        assert!(self.blocks.is_empty() && self.cut == (self.keys.len(), self.singles.len()));
        let finished = self.writer.finish(PartInfo { sequence: 0 })?;
        let bytes = finished.bytes.expect("a part in memory has bytes");
        let part = Part::open(Bytes::from_vec(bytes), PathBuf::from("(memory)"))?;
        assert_eq!(*part.summary(), finished.summary, "it reads back as it was written");
        Ok(part)
    }

    fn encode_block(&mut self, rows: &BlockRows) -> Result<()> {
        let Sealing { view, keys, singles, scratch, writer, .. } = self;
        let block = &rows.block;
        let keys = &keys[rows.keys.clone()];
        let singles = &singles[rows.singles.clone()];
        let last_key = keys.last().map(|key| entity_of(*key));
        let last_single = singles.last().map(|single| single.entity);
        let last = last_key.max(last_single).expect("a block with rows");
        let slots = last - block.entity_start + 1;
        assert!(slots <= block.capacity, "rows of this block alone");
        scratch.collect_rows(view, keys, block.entity_start, slots);
        writer.begin_slice(SliceKey {
            series_start: block.series_start,
            capacity: block.capacity,
            columns: block.columns,
            slots,
        });
        let mut has_own = vec![false; block.columns as usize];
        for single in singles {
            has_own[usize::from(single.column)] = true;
        }
        if !scratch.rows.is_empty() && !has_own.iter().all(|own| *own) {
            writer.shared_times(&scratch.lens, &scratch.times)?;
        }
        for column in 0..block.columns {
            if has_own[column as usize] {
                scratch.merge_singles(singles, column, block.entity_start);
                writer.column_own(&scratch.own_lens, &scratch.own_times, &scratch.values)?;
            } else if scratch.rows.is_empty() {
                writer.column_empty();
            } else {
                scratch.gather(column as usize);
                writer.column_shared(&scratch.values)?;
            }
        }
        writer.end_slice();
        Ok(())
    }
}

/// Buffers used again for each block.
#[derive(Default)]
struct Scratch<'a> {
    /// Rows by slot, then time; one per instant.
    rows: Vec<RowView<'a>>,
    lens: Vec<u32>,
    times: Vec<Timestamp>,
    own_lens: Vec<u32>,
    own_times: Vec<Timestamp>,
    values: Vec<f64>,
}

impl<'a> Scratch<'a> {
    fn collect_rows(&mut self, view: &'a ArenaView, keys: &[u64], entity_start: u32, slots: u32) {
        self.rows.clear();
        self.lens.clear();
        self.lens.resize(slots as usize, 0);
        for same_entity in keys.chunk_by(|a, b| a >> 32 == b >> 32) {
            let start = self.rows.len();
            let rows =
                same_entity.iter().map(|key| view.row(low_half(*key)).expect("a row's own id"));
            self.rows.extend(rows);
            keep_last_of_each_time(&mut self.rows, start);
            let slot = entity_of(same_entity[0]) - entity_start;
            self.lens[slot as usize] = to_u32(self.rows.len() - start);
        }
        self.times.clear();
        self.times.extend(self.rows.iter().map(|row| row.timestamp));
        let sum = || self.lens.iter().map(|len| *len as usize).sum::<usize>();
        debug_assert_eq!(sum(), self.times.len(), "each row has its slot");
    }

    fn gather(&mut self, column: usize) {
        self.values.clear();
        self.values.extend(self.rows.iter().map(|row| f64::from_bits(row.bits[column])));
    }

    /// Rows and singles of one column in one list per slot; of equal times the last arrival wins.
    fn merge_singles(&mut self, singles: &[Single], column: u32, entity_start: u32) {
        self.own_lens.clear();
        self.own_times.clear();
        self.values.clear();
        let mut row_start = 0;
        for (slot, len) in self.lens.iter().enumerate() {
            let rows = &self.rows[row_start..row_start + *len as usize];
            row_start += *len as usize;
            let entity = entity_start + to_u32(slot);
            let key = (entity, to_u16(column));
            let first = singles.partition_point(|s| (s.entity, s.column) < key);
            let end = singles.partition_point(|s| (s.entity, s.column) <= key);
            let start = self.own_times.len();
            merge_two(
                rows.iter().map(|row| (row.timestamp, row.arrival(), row.bits[column as usize])),
                singles[first..end].iter().map(|s| (s.timestamp, s.arrival(), s.bits)),
                &mut self.own_times,
                &mut self.values,
            );
            self.own_lens.push(to_u32(self.own_times.len() - start));
        }
        debug_assert_eq!(row_start, self.rows.len(), "no row is left over");
        debug_assert_eq!(self.own_times.len(), self.values.len(), "a value for each timestamp");
    }
}

/// Merges two lists of (time, arrival, bits) sorted by time and arrival; of equal times the last
/// arrival stays.
pub fn merge_two(
    first: impl Iterator<Item = (Timestamp, u64, u64)>,
    second: impl Iterator<Item = (Timestamp, u64, u64)>,
    times: &mut Vec<Timestamp>,
    values: &mut Vec<f64>,
) {
    let start = times.len();
    let (mut first, mut second) = (first.peekable(), second.peekable());
    loop {
        let next = match (first.peek(), second.peek()) {
            (Some(a), Some(b)) if (a.0, a.1) <= (b.0, b.1) => first.next(),
            (_, Some(_)) => second.next(),
            (Some(_), None) => first.next(),
            (None, None) => return,
        };
        let (time, _, bits) = next.expect("peeked");
        if start < times.len() && times.last() == Some(&time) {
            values.pop();
        } else {
            times.push(time);
        }
        values.push(f64::from_bits(bits));
    }
}

/// Sorts the rows from `start` on by time unless they are; of equal times the last arrival stays.
fn keep_last_of_each_time(rows: &mut Vec<RowView<'_>>, start: usize) {
    if rows[start..].is_sorted_by(|a, b| a.timestamp < b.timestamp) {
        return;
    }
    rows[start..].sort_by_key(|row| row.timestamp);
    let mut kept = start;
    for idx in start..rows.len() {
        if start < kept && rows[kept - 1].timestamp == rows[idx].timestamp {
            kept -= 1;
        }
        rows[kept] = rows[idx];
        kept += 1;
    }
    rows.truncate(kept);
    debug_assert!(rows[start..].is_sorted_by(|a, b| a.timestamp < b.timestamp), "one per instant");
}

/// Stable LSD radix sort by the upper half of each key.
fn radix_sort_by_entity(keys: &mut Vec<u64>) {
    if keys.is_sorted_by(|a, b| a >> 32 <= b >> 32) {
        return;
    }
    assert!(u32::try_from(keys.len()).is_ok(), "places are counted in 32 bits");
    let (min, max) =
        keys.iter().fold((u64::MAX, 0), |(min, max), key| (min.min(key >> 32), max.max(key >> 32)));
    let mut other = vec![0u64; keys.len()];
    let mut shift = 0;
    while shift < 32 && 0 < (max - min) >> shift {
        let digit = |key: u64| to_usize(((key >> 32) - min) >> shift & ((1 << DIGIT_BITS) - 1));
        let mut starts = [0u32; 1 << DIGIT_BITS];
        for key in keys.iter() {
            starts[digit(*key)] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += std::mem::replace(start, sum);
        }
        for key in keys.iter() {
            let place = &mut starts[digit(*key)];
            other[*place as usize] = *key;
            *place += 1;
        }
        std::mem::swap(keys, &mut other);
        shift += DIGIT_BITS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radix_sort_is_stable() {
        let mut state = 42u64;
        for count in [0usize, 1, 2, 1000, 40_000] {
            let mut keys: Vec<u64> = (0..count as u64)
                .map(|id| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                    (((state >> 40) % 5_000_000) << 32) | id
                })
                .collect();
            let mut expected = keys.clone();
            expected.sort();
            radix_sort_by_entity(&mut keys);
            assert_eq!(keys, expected);
        }
    }

    #[test]
    fn merged_lists_keep_the_later_of_equal_times() {
        let (mut times, mut values) = (vec![9], vec![9.0]);
        let bits = f64::to_bits;
        merge_two(
            [(1, 1, bits(1.0)), (3, 3, bits(3.0)), (9, 5, bits(9.5))].into_iter(),
            [(0, 0, bits(0.0)), (3, 4, bits(3.5)), (3, 6, bits(3.75)), (9, 2, bits(9.25))]
                .into_iter(),
            &mut times,
            &mut values,
        );
        assert_eq!(times, [9, 0, 1, 3, 9]);
        assert_eq!(values, [9.0, 0.0, 1.0, 3.75, 9.5]);
    }
}
