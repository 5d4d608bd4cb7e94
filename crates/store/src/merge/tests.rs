//! Merged parts answer as a naive map of all samples does.

use super::input::SliceLimits;
use super::run::run_within;
use super::window::Block;
use super::*;
use crate::Error;
use crate::part::format::{Encoding, TRAILER_SIZE};
use crate::part::writer::FinishedPart;
use crate::part::{Part, PartInfo, PartSink, PartWriter, SliceKey};
use codec::{Effort, Paging};
use model::TimeRange;
use model::time_range::day_of;
use rng::Random;
use roaring::RoaringBitmap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Bits of the values by series and timestamp.
type Samples = BTreeMap<(u32, i64), u64>;

const MINUTE: i64 = 60_000_000_000;
const BLOCKS: [Block; 4] = [
    Block { series_start: 0, capacity: 1, columns: 1 },
    Block { series_start: 1, capacity: 16, columns: 3 },
    Block { series_start: 64, capacity: 1, columns: 5 },
    Block { series_start: 1000, capacity: 64, columns: 4 },
];
const SMALL: SliceLimits = SliceLimits { rows_max: 40, samples_max: 500, column_samples_max: 900 };

/// What parts are drawn by.
trait Draws {
    fn chance(&mut self, percent: u64) -> bool;
    fn value(&mut self) -> u64;
    /// Increasing timestamps from `start` on, about a minute apart.
    fn times(&mut self, start: i64, rows: usize) -> Vec<i64>;
    /// Timestamps for each slot: one grid or lists, with gaps.
    fn lists(&mut self, start: i64, slots: usize, rows: usize) -> Vec<Vec<i64>>;
}

impl Draws for Random {
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn value(&mut self) -> u64 {
        match self.below(8) {
            0 => model::STALE_NAN_BITS,
            1 => f64::NAN.to_bits() ^ self.below(1 << 50),
            2 => (-0.0f64).to_bits(),
            3 => self.below(u64::MAX),
            _ => (self.below(100) as f64 / 4.0).to_bits(),
        }
    }

    fn times(&mut self, start: i64, rows: usize) -> Vec<i64> {
        let mut timestamp = start;
        let step = |random: &mut Random| MINUTE * (1 + random.below(3) as i64);
        (0..rows)
            .map(|_| {
                timestamp += step(self);
                timestamp
            })
            .collect()
    }

    fn lists(&mut self, start: i64, slots: usize, rows: usize) -> Vec<Vec<i64>> {
        let grid = self.times(start, rows);
        let is_grid = self.chance(50);
        (0..slots)
            .map(|_| match self.below(10) {
                0 => Vec::new(),
                _ if is_grid => grid.clone(),
                1 => self.times(start, rows),
                _ => grid.iter().copied().filter(|_| self.chance(80)).collect(),
            })
            .collect()
    }
}

fn flat(lists: &[Vec<i64>]) -> (Vec<u32>, Vec<i64>) {
    (lists.iter().map(|list| list.len() as u32).collect(), lists.concat())
}

/// Draws values for the lists and notes them in `samples`.
fn values(random: &mut Random, lists: &[Vec<i64>], first: u32, samples: &mut Samples) -> Vec<f64> {
    let mut values = Vec::new();
    for (slot, list) in lists.iter().enumerate() {
        for &timestamp in list {
            let bits = random.value();
            samples.insert((first + slot as u32, timestamp), bits);
            values.push(f64::from_bits(bits));
        }
    }
    values
}

fn write_slice(
    random: &mut Random,
    block: Block,
    start: i64,
    writer: &mut PartWriter,
    samples: &mut Samples,
) -> i64 {
    let Block { series_start, capacity, columns } = block;
    let slots = 1 + random.below(u64::from(capacity)) as usize;
    // Now and then a source that reaches through many windows.
    let most = if random.chance(10) && slots < 20 { 1500 } else { 30 };
    let rows = 1 + random.below(most) as usize;
    let shared = random.lists(start, slots, rows);
    let (lens, times) = flat(&shared);
    let kinds: Vec<u64> = (0..columns).map(|_| random.below(10)).collect();
    writer.begin_slice(SliceKey { series_start, capacity, columns, slots: slots as u32 });
    let has_shared = !times.is_empty() && kinds.iter().any(|&kind| kind < 6);
    if has_shared {
        writer.shared_times(&lens, &times).unwrap();
    }
    for (column, kind) in kinds.into_iter().enumerate() {
        let first = series_start + column as u32 * capacity;
        match kind {
            0..6 if has_shared => {
                let values = values(random, &shared, first, samples);
                writer.column_shared(&values).unwrap();
            }
            6..9 => {
                let own = random.lists(start, slots, rows);
                let values = values(random, &own, first, samples);
                let (lens, times) = flat(&own);
                writer.column_own(&lens, &times, &values).unwrap();
            }
            _ => writer.column_empty(),
        }
    }
    writer.end_slice();
    // Three minutes a row at most.
    start + 3 * MINUTE * rows as i64
}

/// A part of random slices, and what is in it.
fn random_part(random: &mut Random, sequence: u64) -> (Part, Samples) {
    let effort = if random.chance(50) { Effort::Fast } else { Effort::Dense };
    let mut writer = PartWriter::new(PartSink::Memory(Vec::new()), effort);
    let mut samples = Samples::new();
    for block in BLOCKS {
        let mut start = MINUTE * random.below(3000) as i64 - 1440 * MINUTE;
        for _ in 0..random.below(5) {
            start = write_slice(random, block, start, &mut writer, &mut samples);
            start += MINUTE * random.below(500) as i64;
        }
    }
    (open(writer.finish(PartInfo { sequence }).unwrap()), samples)
}

fn open(finished: FinishedPart) -> Part {
    let bytes = vfs::Bytes::from_vec(finished.bytes.unwrap());
    Part::open(bytes, PathBuf::from("part")).unwrap()
}

/// All samples, read slice by slice.
fn samples_of(part: &Part) -> Samples {
    let mut samples = Samples::new();
    for (idx, slice) in part.slices().iter().enumerate() {
        for column in 0..slice.columns as usize {
            let Some(reader) = part.times(idx, column).unwrap() else { continue };
            let lens = reader.lens().to_vec();
            let (mut times, mut values) = (Vec::new(), Vec::new());
            reader.read(0..lens.len(), &mut times).unwrap();
            part.values(idx, column, &lens).unwrap().read(0..lens.len(), &mut values).unwrap();
            let mut at = 0;
            for (slot, len) in lens.into_iter().enumerate() {
                for _ in 0..len {
                    let key = (slice.ordinal(column, slot), times[at]);
                    assert!(samples.insert(key, values[at].to_bits()).is_none(), "{key:?} twice");
                    at += 1;
                }
            }
        }
    }
    samples
}

fn merged(
    inputs: &[MergeInput<'_>],
    keep_from: Option<i64>,
    limits: &SliceLimits,
    effort: Effort,
) -> (MergeOutcome, Part) {
    let mut writer = PartWriter::new(PartSink::Memory(Vec::new()), effort);
    let go_on = |_| ControlFlow::Continue(());
    let outcome = run_within(limits, inputs, keep_from, &mut writer, &go_on).unwrap();
    (outcome, open(writer.finish(PartInfo { sequence: 99 }).unwrap()))
}

fn random_tombstones(random: &mut Random) -> Vec<(RoaringBitmap, TimeRange)> {
    let one = |random: &mut Random| {
        let first = random.below(1300) as u32;
        let series: RoaringBitmap = match random.below(3) {
            0 => (first..first + 1 + random.below(100) as u32).collect(),
            1 => (0..20).map(|_| random.below(1300) as u32).collect(),
            _ => (0..2000).collect(),
        };
        let start = MINUTE * random.below(3000) as i64 - 1440 * MINUTE;
        (series, TimeRange::new(start, start + MINUTE * random.below(600) as i64 - MINUTE))
    };
    (0..random.below(4)).map(|_| one(random)).collect()
}

fn check_live_days(part: &Part, samples: &Samples) {
    let mut expected: BTreeMap<i32, BTreeSet<u32>> = BTreeMap::new();
    for &(series, timestamp) in samples.keys() {
        expected.entry(day_of(timestamp)).or_default().insert(series);
    }
    let days = part.live_days().unwrap();
    assert_eq!(days.len(), expected.len());
    for (day, set) in days {
        assert!(set.iter().eq(expected[&day].iter().copied()), "day {day}");
    }
}

fn check_slices(part: &Part, limits: &SliceLimits) {
    part.verify().unwrap();
    for (idx, slice) in part.slices().iter().enumerate() {
        for column in 0..slice.columns as usize {
            let Some(reader) = part.times(idx, column).unwrap() else { continue };
            let samples: usize = reader.lens().iter().map(|&len| len as usize).sum();
            assert!(samples <= limits.column_samples_max, "{samples} samples in a column");
        }
    }
}

#[test]
fn a_merge_is_the_union_with_the_last_write() {
    for seed in rng::seeds(1..=100) {
        println!("SEED={seed}");
        let mut random = Random(seed);
        let count = 1 + random.below(6);
        let parts: Vec<_> = (0..count).map(|at| random_part(&mut random, at)).collect();
        let with_tombstones = random.chance(40);
        let tombstones: Vec<_> = parts
            .iter()
            .map(|_| if with_tombstones { random_tombstones(&mut random) } else { Vec::new() })
            .collect();
        let keep_from = random.chance(30).then(|| MINUTE * random.below(1500) as i64);
        let mut expected = Samples::new();
        for ((_, samples), tombstones) in parts.iter().zip(&tombstones) {
            let is_deleted = |series, timestamp| {
                tombstones.iter().any(|(set, range): &(RoaringBitmap, TimeRange)| {
                    set.contains(series) && range.contains(timestamp)
                })
            };
            expected.extend(samples.iter().filter(|((s, t), _)| !is_deleted(*s, *t)));
        }
        expected.retain(|(_, timestamp), _| keep_from.is_none_or(|from| from <= *timestamp));
        let inputs: Vec<_> = parts
            .iter()
            .zip(&tombstones)
            .map(|((part, _), tombstones)| MergeInput { part, tombstones })
            .collect();
        let limits = if random.chance(70) { SMALL } else { SliceLimits::DEFAULT };
        let effort = if random.chance(50) { Effort::Fast } else { Effort::Dense };
        let (outcome, part) = merged(&inputs, keep_from, &limits, effort);
        let outcome_expected = match expected.len() as u64 {
            0 => MergeOutcome::Empty,
            samples => MergeOutcome::Written { samples },
        };
        assert_eq!(outcome, outcome_expected);
        assert!(samples_of(&part) == expected, "samples differ");
        check_live_days(&part, &expected);
        check_slices(&part, &limits);
    }
}

/// A part of one block with one grid for all columns: `rows` rows from `start` on.
fn grid_part(block: Block, slots: u32, start: i64, rows: i64, effort: Effort) -> Part {
    open(grid_file(block, slots, start, rows, effort))
}

fn grid_file(block: Block, slots: u32, start: i64, rows: i64, effort: Effort) -> FinishedPart {
    let mut writer = PartWriter::new(PartSink::Memory(Vec::new()), effort);
    let Block { series_start, capacity, columns } = block;
    writer.begin_slice(SliceKey { series_start, capacity, columns, slots });
    let grid: Vec<i64> = (0..rows).map(|row| (start + row) * MINUTE).collect();
    let times = grid.repeat(slots as usize);
    writer.shared_times(&vec![rows as u32; slots as usize], &times).unwrap();
    for column in 0..columns {
        let values = times.iter().map(|&t| (t / MINUTE + i64::from(column)) as f64);
        writer.column_shared(&values.collect::<Vec<_>>()).unwrap();
    }
    writer.end_slice();
    writer.finish(PartInfo { sequence: start as u64 }).unwrap()
}

fn inputs(parts: &[Part]) -> Vec<MergeInput<'_>> {
    parts.iter().map(|part| MergeInput { part, tombstones: &[] }).collect()
}

#[test]
fn consecutive_parts_share_one_grid() {
    let block = BLOCKS[3];
    let parts: Vec<Part> =
        (0..10).map(|at| grid_part(block, 64, at * 5, 5, Effort::Fast)).collect();
    let (_, part) = merged(&inputs(&parts), None, &SliceLimits::DEFAULT, Effort::Dense);
    assert_eq!(part.slices().len(), 1);
    assert!((0..4).all(|column| part.is_shared(0, column)));
    let reader = part.shared_times(0).unwrap().unwrap();
    assert_eq!(reader.grid().map(<[i64]>::len), Some(50));
}

#[test]
fn windows_are_full_and_within_their_limits() {
    let block = BLOCKS[3];
    let limits = SliceLimits { rows_max: 100, samples_max: 64 * 30, column_samples_max: 1 << 20 };
    for step in [7, 30, 45, 200] {
        // Overlapping neighbours, as two workers make them.
        let parts: Vec<Part> = (0..2000 / step)
            .map(|at| grid_part(block, 64, at * step, step + step / 5, Effort::Fast))
            .collect();
        let (outcome, part) = merged(&inputs(&parts), None, &limits, Effort::Dense);
        let rows = (2000 / step) * step + step / 5;
        assert_eq!(outcome, MergeOutcome::Written { samples: rows as u64 * 64 * 4 });
        check_slices(&part, &SliceLimits { column_samples_max: limits.samples_max, ..limits });
        let fewest = rows as usize / 30;
        assert!(part.slices().len() <= 3 * fewest, "{} for {fewest}", part.slices().len());
    }
}

#[test]
fn large_slices_that_nothing_overlaps_are_copied() {
    let block = BLOCKS[3];
    let limits = SliceLimits { rows_max: 100, samples_max: 64 * 30, column_samples_max: 1 << 20 };
    let parts: Vec<Part> =
        (0..4).map(|at| grid_part(block, 64, at * 30, 30, Effort::Dense)).collect();
    let (_, part) = merged(&inputs(&parts), None, &limits, Effort::Dense);
    assert_eq!(part.slices().len(), 4);
    assert_eq!(part.summary().samples, 4 * 30 * 64 * 4);
    part.verify().unwrap();
}

/// A part of columns of one page each as it was written when pages were wider.
fn of_wide_pages(file: FinishedPart, effort: Effort) -> Part {
    let flags = Encoding { effort, paging: Paging::Wide }.flags().to_le_bytes();
    let mut bytes = file.bytes.unwrap();
    let trailer = bytes.len() - TRAILER_SIZE;
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let directory = number(trailer) as usize..(number(trailer) + number(trailer + 8)) as usize;
    bytes[12..16].copy_from_slice(&flags);
    bytes[directory.start..directory.start + 4].copy_from_slice(&flags);
    let checksum = codec::crc32(&bytes[directory]);
    bytes[trailer + 16..trailer + 20].copy_from_slice(&checksum.to_le_bytes());
    Part::open(vfs::Bytes::from_vec(bytes), PathBuf::from("wide")).unwrap()
}

#[test]
fn slices_of_wider_pages_are_encoded_anew() {
    let limits = SliceLimits { rows_max: 20, samples_max: 16 * 20, column_samples_max: 1 << 20 };
    let file = |at: i64| grid_file(BLOCKS[3], 16, at * 20, 20, Effort::Dense);
    let parts: Vec<Part> = (0..3).map(|at| of_wide_pages(file(at), Effort::Dense)).collect();
    assert!(parts.iter().all(|part| part.summary().encoding.paging == Paging::Wide));
    let (_, part) = merged(&inputs(&parts), None, &limits, Effort::Dense);
    assert_eq!(part.summary().encoding, Encoding::newest(Effort::Dense));
    let expected: Samples = parts.iter().flat_map(samples_of).collect();
    assert!(samples_of(&part) == expected, "samples differ");
    part.verify().unwrap();
}

#[test]
fn own_timestamps_that_have_become_equal_are_shared() {
    let key = SliceKey { series_start: 0, capacity: 4, columns: 2, slots: 2 };
    // Each part misses rows of the other column; together both have all.
    let half = |missing: i64| {
        let mut writer = PartWriter::new(PartSink::Memory(Vec::new()), Effort::Fast);
        let mut rows = vec![1, 2, 3, 4, 1, 2, 3, 4];
        writer.begin_slice(key);
        writer.shared_times(&[4, 4], &rows).unwrap();
        writer.column_shared(&[1.0; 8]).unwrap();
        rows.retain(|&row| row != missing);
        writer.column_own(&[3, 3], &rows, &[2.0; 6]).unwrap();
        writer.end_slice();
        open(writer.finish(PartInfo { sequence: 1 }).unwrap())
    };
    let parts = [half(2), half(3)];
    let (_, part) = merged(&inputs(&parts), None, &SliceLimits::DEFAULT, Effort::Dense);
    assert!(part.is_shared(0, 0) && part.is_shared(0, 1));
}

#[test]
fn columns_much_larger_than_the_shared_ones_are_split() {
    let key = SliceKey { series_start: 0, capacity: 1, columns: 2, slots: 1 };
    let slice = |start: i64| {
        let mut writer = PartWriter::new(PartSink::Memory(Vec::new()), Effort::Fast);
        writer.begin_slice(key);
        writer.shared_times(&[1], &[start]).unwrap();
        writer.column_shared(&[1.0]).unwrap();
        let times: Vec<i64> = (start..start + 800).collect();
        writer.column_own(&[800], &times, &[2.0; 800]).unwrap();
        writer.end_slice();
        open(writer.finish(PartInfo { sequence: 1 }).unwrap())
    };
    let parts: Vec<Part> = (0..20).map(|at| slice(at * 700)).collect();
    let (outcome, part) = merged(&inputs(&parts), None, &SMALL, Effort::Dense);
    assert_eq!(outcome, MergeOutcome::Written { samples: 20 + 19 * 700 + 800 });
    check_slices(&part, &SMALL);
}

#[test]
fn extreme_timestamps_merge() {
    let key = SliceKey { series_start: 0, capacity: 1, columns: 1, slots: 1 };
    let slice = |times: &[i64]| {
        let mut writer = PartWriter::new(PartSink::Memory(Vec::new()), Effort::Fast);
        writer.begin_slice(key);
        writer.shared_times(&[times.len() as u32], times).unwrap();
        writer.column_shared(&vec![1.0; times.len()]).unwrap();
        writer.end_slice();
        open(writer.finish(PartInfo { sequence: 1 }).unwrap())
    };
    let parts = [slice(&[i64::MIN, 0, i64::MAX]), slice(&[i64::MIN, i64::MAX]), slice(&[i64::MAX])];
    for rows_max in 1..4 {
        let limits = SliceLimits { rows_max, samples_max: 10, column_samples_max: 10 };
        let (_, part) = merged(&inputs(&parts), None, &limits, Effort::Dense);
        let expected = [i64::MIN, 0, i64::MAX].map(|t| ((0, t), 1f64.to_bits()));
        assert_eq!(samples_of(&part), Samples::from(expected));
        let (_, part) = merged(&inputs(&parts), Some(i64::MAX), &limits, Effort::Dense);
        assert_eq!(part.summary().samples, 1);
    }
}

#[test]
fn pace_can_stop_a_merge() {
    let parts: Vec<Part> =
        (0..100).map(|at| grid_part(BLOCKS[3], 64, at * 30, 30, Effort::Fast)).collect();
    let mut writer = PartWriter::new(PartSink::Memory(Vec::new()), Effort::Dense);
    let stop = |done| {
        assert!(0 < done);
        ControlFlow::Break(())
    };
    let outcome = run(&inputs(&parts), None, &mut writer, &stop).unwrap();
    assert_eq!(outcome, MergeOutcome::Aborted);
}

#[test]
fn a_corrupt_input_is_named() {
    let part = grid_part(BLOCKS[3], 64, 0, 30, Effort::Fast);
    let mut writer = PartWriter::new(PartSink::Memory(Vec::new()), Effort::Fast);
    writer.copy_slice(&part, 0).unwrap();
    let mut bytes = writer.finish(PartInfo { sequence: 1 }).unwrap().bytes.unwrap();
    bytes[100] ^= 1;
    let name = PathBuf::from("damaged");
    let parts = [Part::open(vfs::Bytes::from_vec(bytes), name.clone()).unwrap()];
    for effort in [Effort::Fast, Effort::Dense] {
        let mut writer = PartWriter::new(PartSink::Memory(Vec::new()), effort);
        let result = run(&inputs(&parts), None, &mut writer, &|_| ControlFlow::Continue(()));
        assert!(matches!(result, Err(Error::Corrupt { file, .. }) if file == name));
    }
}

#[test]
fn mutated_parts_merge_or_fail() {
    for seed in rng::seeds(1..=12) {
        println!("SEED={seed}");
        let mut random = Random(seed);
        let mut writer = PartWriter::new(PartSink::Memory(Vec::new()), Effort::Dense);
        for block in BLOCKS {
            let next = write_slice(&mut random, block, 0, &mut writer, &mut Samples::new());
            write_slice(&mut random, block, next, &mut writer, &mut Samples::new());
        }
        let original = writer.finish(PartInfo { sequence: 1 }).unwrap().bytes.unwrap();
        fuzzing::fuzz_merge(&original);
        for _ in 0..50 {
            let mut bytes = original.clone();
            for _ in 0..1 + random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.below(256) as u8;
            }
            fuzzing::fuzz_merge(&bytes);
        }
    }
}

/// Parts that were written beside different indexes have no series in common; before, the writer was
/// asked for the impossible and panicked.
#[test]
fn blocks_that_overlap_are_of_another_index() {
    let part = |block: Block| {
        let mut writer = PartWriter::new(PartSink::Memory(Vec::new()), Effort::Fast);
        let mut random = Random::seeded(1);
        write_slice(&mut random, block, 0, &mut writer, &mut Samples::new());
        open(writer.finish(PartInfo { sequence: 1 }).unwrap())
    };
    let ours = part(Block { series_start: 0, capacity: 16, columns: 2 });
    for theirs in [
        Block { series_start: 0, capacity: 16, columns: 3 },
        Block { series_start: 0, capacity: 1, columns: 2 },
        Block { series_start: 31, capacity: 1, columns: 1 },
    ] {
        let theirs = part(theirs);
        let inputs = [&ours, &theirs].map(|part| MergeInput { part, tombstones: &[] });
        let mut writer = PartWriter::new(PartSink::Memory(Vec::new()), Effort::Fast);
        let merged = run(&inputs, None, &mut writer, &|_| ControlFlow::Continue(()));
        assert!(matches!(merged, Err(Error::Corrupt { .. })), "{merged:?}");
    }
}
