//! Parts come back as they were written, and damaged ones are refused.

use super::verify::VerifiedPart;
use super::writer::FinishedPart;
use super::*;
use codec::Effort;
use std::path::PathBuf;
use vfs::Vfs;

const DAY: i64 = 86_400_000_000_000;
const KEY: SliceKey = SliceKey { series_start: 100, capacity: 16, columns: 3, slots: 4 };

/// A column of the sample part: lens, times, bits of the values.
type Column = (Vec<u32>, Vec<i64>, Vec<u64>);

fn open(bytes: Vec<u8>) -> crate::Result<Part> {
    Part::open(vfs::Bytes::from_vec(bytes), PathBuf::from("part"))
}

fn floats(count: usize, seed: u64) -> Vec<f64> {
    let bits = |idx: usize| match idx % 5 {
        0 => model::STALE_NAN_BITS,
        1 => 0x7ff8_dead_beef_0001 + seed,
        2 => (-0.0f64).to_bits(),
        3 => (idx as f64 * 0.25).to_bits(),
        _ => (idx as f64).to_bits(),
    };
    (0..count).map(|idx| f64::from_bits(bits(idx))).collect()
}

/// Two slices of one block (shared, own and empty columns; the second on two days), then a block of
/// a single series at the very end of the ordinals.
fn write(sink: PartSink, effort: Effort) -> FinishedPart {
    let mut writer = PartWriter::new(sink, effort);
    writer.begin_slice(KEY);
    writer.shared_times(&[2, 0, 1, 2], &[10, 20, 15, 10, 20]).unwrap();
    writer.column_shared(&floats(5, 1)).unwrap();
    writer.column_empty();
    writer.column_own(&[0, 1, 0, 0], &[12], &floats(1, 2)).unwrap();
    writer.end_slice();
    writer.begin_slice(SliceKey { slots: 5, ..KEY });
    writer.column_own(&[0, 0, 0, 0, 2], &[DAY - 1, DAY], &floats(2, 3)).unwrap();
    writer.column_empty();
    writer.column_own(&[1, 1, 0, 0, 0], &[DAY + 5, DAY + 6], &floats(2, 4)).unwrap();
    writer.end_slice();
    writer.begin_slice(SliceKey { series_start: 200, capacity: 1, columns: 2, slots: 1 });
    writer.column_empty();
    writer.column_own(&[0], &[], &[]).unwrap();
    writer.end_slice();
    let last = SliceKey { series_start: u32::MAX, capacity: 1, columns: 1, slots: 1 };
    writer.begin_slice(last);
    writer.shared_times(&[2], &[i64::MIN, i64::MAX]).unwrap();
    writer.column_shared(&floats(2, 5)).unwrap();
    writer.end_slice();
    assert_eq!(writer.samples(), 12);
    writer.finish(PartInfo { sequence: 7 }).unwrap()
}

fn bytes_of(effort: Effort) -> Vec<u8> {
    write(PartSink::Memory(Vec::new()), effort).bytes.unwrap()
}

/// Everything in a part, read the way a query does.
fn contents(part: &Part) -> crate::Result<Vec<Vec<Option<Column>>>> {
    let read = |idx: usize, column: usize| -> crate::Result<Option<Column>> {
        let Some(reader) = part.times(idx, column)? else { return Ok(None) };
        let lens = reader.lens().to_vec();
        let (mut times, mut values) = (Vec::new(), Vec::new());
        part.read_all_times(idx, &reader, &mut times)?;
        let read = part.values(idx, column, &lens)?.read(0..lens.len(), &mut values);
        read.map_err(|error| part.corrupt_page(0, error))?;
        Ok(Some((lens, times, values.iter().map(|value| value.to_bits()).collect())))
    };
    let slices = part.slices().iter().enumerate();
    slices.map(|(idx, slice)| (0..slice.columns as usize).map(|c| read(idx, c)).collect()).collect()
}

#[test]
fn what_was_written_comes_back() {
    for effort in [Effort::Fast, Effort::Dense] {
        let finished = write(PartSink::Memory(Vec::new()), effort);
        let part = open(finished.bytes.unwrap()).unwrap();
        assert_eq!(*part.summary(), finished.summary);
        let summary = part.summary();
        assert_eq!((summary.sequence, summary.samples, summary.slices), (7, 12, 3));
        assert_eq!((summary.min_ts, summary.max_ts), (i64::MIN, i64::MAX));
        assert_eq!(part.find(99), 0..0);
        assert_eq!(part.find(100), 0..2);
        assert_eq!(part.find(101), 2..2);
        assert_eq!(part.find(u32::MAX), 2..3);
        assert!(part.is_shared(0, 0) && !part.is_shared(0, 1) && !part.is_shared(1, 0));
        assert_eq!(part.column_times(0, 1), ColumnTimes::Empty);
        assert!(part.values(0, 1, &[0, 0, 0, 0]).is_err());
        let all = contents(&part).unwrap();
        let bits =
            |count, seed| floats(count, seed).iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(all[0][0], Some((vec![2, 0, 1, 2], vec![10, 20, 15, 10, 20], bits(5, 1))));
        assert_eq!(all[0][1], None);
        assert_eq!(all[0][2], Some((vec![0, 1, 0, 0], vec![12], bits(1, 2))));
        assert_eq!(all[1][0], Some((vec![0, 0, 0, 0, 2], vec![DAY - 1, DAY], bits(2, 3))));
        assert_eq!(all[2][0], Some((vec![2], vec![i64::MIN, i64::MAX], bits(2, 5))));
        let counts = part.verify().unwrap();
        assert_eq!(counts, VerifiedPart { slices: 3, columns: 5, samples: 12, days: 4 });
    }
}

#[test]
fn days_name_the_series_with_samples() {
    let part = open(bytes_of(Effort::Dense)).unwrap();
    let days = part.live_days().unwrap();
    let days: Vec<(i32, Vec<u32>)> =
        days.into_iter().map(|(day, set)| (day, set.iter().collect())).collect();
    let first = model::time_range::day_of(i64::MIN);
    let last = model::time_range::day_of(i64::MAX);
    let expected = [
        (first, vec![u32::MAX]),
        (0, vec![100, 102, 103, 104, 133]),
        (1, vec![104, 132, 133]),
        (last, vec![u32::MAX]),
    ];
    assert_eq!(days, expected);
    let union: Vec<u32> = part.live_on(1, i32::MAX).unwrap().iter().collect();
    assert_eq!(union, [104, 132, 133, u32::MAX]);
}

#[test]
fn a_copied_slice_is_the_same_bytes() {
    let bytes = bytes_of(Effort::Dense);
    let part = open(bytes.clone()).unwrap();
    let mut writer = PartWriter::new(PartSink::Memory(Vec::new()), Effort::Dense);
    for idx in 0..part.slices().len() {
        writer.copy_slice(&part, idx).unwrap();
    }
    let copy = writer.finish(PartInfo { sequence: 7 }).unwrap().bytes.unwrap();
    assert!(copy == bytes);
}

#[test]
fn a_part_without_samples_is_a_part() {
    let writer = PartWriter::new(PartSink::Memory(Vec::new()), Effort::Fast);
    let bytes = writer.finish(PartInfo { sequence: 0 }).unwrap().bytes.unwrap();
    let part = open(bytes).unwrap();
    assert_eq!(part.summary().samples, 0);
    assert_eq!(part.verify().unwrap(), VerifiedPart::default());
    assert_eq!(part.find(0), 0..0);
}

#[test]
fn a_file_holds_what_memory_would() {
    let disk = vfs::SimVfs::new(1);
    let path = PathBuf::from("/part");
    let sink = PartSink::File(disk.create(&path).unwrap());
    let finished = write(sink, Effort::Dense);
    assert!(finished.bytes.is_none());
    let bytes = disk.map(&path).unwrap();
    assert!(*bytes == *bytes_of(Effort::Dense));
    assert_eq!(Part::open(bytes, path).unwrap().summary(), &finished.summary);
}

#[test]
fn no_flipped_bit_changes_an_answer() {
    for effort in [Effort::Fast, Effort::Dense] {
        let bytes = bytes_of(effort);
        let expected = contents(&open(bytes.clone()).unwrap()).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let Ok(part) = open(damaged) else { continue };
            assert!(part.verify().is_err(), "bit {bit} goes unnoticed");
            if let Ok(found) = contents(&part) {
                assert_eq!(found, expected, "bit {bit}");
                // Nothing depends on the header, whose content the directory has, too.
                let is_elsewhere = part.live_days().is_err() || !part.has_sound_header();
                assert!(is_elsewhere, "bit {bit} is in no column");
            }
        }
    }
}

/// Before, an unknown version or flag counted as corrupt, and the part was set aside.
#[test]
fn what_a_newer_program_wrote_is_refused_and_not_corrupt() {
    let bytes = bytes_of(Effort::Dense);
    let trailer = bytes.len() - 28;
    let directory = u64::from_le_bytes(bytes[trailer..trailer + 8].try_into().unwrap()) as usize;
    // Flags of the directory, under its checksum.
    let mut newer = bytes.clone();
    newer[directory] |= 8;
    let checksum = codec::crc32(&newer[directory..trailer]);
    newer[trailer + 16..trailer + 20].copy_from_slice(&checksum.to_le_bytes());
    assert!(matches!(open(newer), Err(crate::Error::UnknownVersion { .. })));
    // Another layout: nothing but the header is where it was.
    let mut newer = bytes.clone();
    newer[8] = 2;
    newer[trailer + 20..].fill(7);
    let error = open(newer).err().unwrap();
    assert!(error.to_string().contains("a newer Quipu wrote it; nothing was changed"), "{error}");
    // A header that the directory does not confirm is rotten, and the part is read.
    for byte in 0..16 {
        let mut rotten = bytes.clone();
        rotten[byte] ^= 4;
        let part = open(rotten).unwrap();
        assert!(!part.has_sound_header() && part.verify().is_err(), "byte {byte}");
        assert_eq!(contents(&part).unwrap(), contents(&open(bytes.clone()).unwrap()).unwrap());
    }
    // Without a directory, the version that is known is not a newer one.
    let mut rotten = bytes;
    rotten[trailer + 16] ^= 1;
    assert!(matches!(open(rotten), Err(crate::Error::Corrupt { .. })));
}

#[test]
fn no_truncated_part_opens() {
    let bytes = bytes_of(Effort::Dense);
    for size in 0..bytes.len() {
        assert!(open(bytes[..size].to_vec()).is_err(), "{size} bytes");
        assert!(open(bytes[size + 1..].to_vec()).is_err(), "from byte {size} on");
    }
    assert!(open([bytes.clone(), vec![0]].concat()).is_err());
}

#[test]
fn small_blocks_cost_little() {
    let mut writer = PartWriter::new(PartSink::Memory(Vec::new()), Effort::Dense);
    let count = 10_000u32;
    let before = writer.size();
    for series_start in 0..count {
        writer.begin_slice(SliceKey { series_start, capacity: 1, columns: 1, slots: 1 });
        let start = 1_700_000_000_000_000_000 + i64::from(series_start) * 1_000_000;
        let times: Vec<i64> = (0..10).map(|row| start + row * 15_000_000_000).collect();
        writer.shared_times(&[10], &times).unwrap();
        writer.column_shared(&[1.0; 10]).unwrap();
        writer.end_slice();
    }
    let pages = writer.size() - before;
    let finished = writer.finish(PartInfo { sequence: 1 }).unwrap();
    let directory = finished.summary.size - pages;
    let per_slice = directory as f64 / f64::from(count);
    assert!(per_slice < 16.0, "{per_slice} bytes of directory a slice");
    let part = open(finished.bytes.unwrap()).unwrap();
    assert!(part.directory_size() <= 24 * count as usize, "{}", part.directory_size());
}

#[test]
fn mutated_bytes_do_not_panic() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1u64);
    let mut state = seed;
    let mut random = move |bound: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    };
    let originals = [bytes_of(Effort::Fast), bytes_of(Effort::Dense)];
    for _ in 0..3000 {
        let mut bytes = originals[random(2)].clone();
        for _ in 0..1 + random(4) {
            let at = random(bytes.len());
            match random(4) {
                0 => bytes[at] = random(256) as u8,
                1 => bytes[at] ^= 1 << random(8),
                2 => drop(bytes.drain(at..(at + random(4)).min(bytes.len()))),
                _ => bytes.insert(at, random(256) as u8),
            }
            if bytes.is_empty() {
                bytes.push(0);
            }
        }
        fuzzing::fuzz_part(&bytes);
        let noise: Vec<u8> = (0..random(200)).map(|_| random(256) as u8).collect();
        fuzzing::fuzz_part(&noise);
    }
}
