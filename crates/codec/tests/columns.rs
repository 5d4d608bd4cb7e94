//! Columns of every shape come back as they were, whole and slot by slot.
//! `SEED=n cargo test -p codec --test all columns` replays one seed.

use crate::shapes::{Draws, STALE, TIMESTAMPS, VALUES};
use codec::{
    ColumnScratch, Effort, Layout, Paging, TimestampsReader, ValuesOutline, ValuesReader,
    encode_timestamps, encode_values,
};
use rng::Random;
use std::ops::Range;
use std::sync::Arc;

const EFFORTS: [Effort; 2] = [Effort::Fast, Effort::Dense];

/// Lens of columns: tiny, empty, uneven, long.
fn lens(random: &mut Random) -> Vec<u32> {
    match random.within(8) {
        0 => vec![],
        1 => vec![0; random.within(5) as usize],
        2 => vec![1 + random.within(4) as u32],
        3 => vec![1; random.within(40) as usize],
        4 => vec![3; 1 + random.within(1200) as usize],
        5 => (0..random.within(60)).map(|_| random.within(3) as u32 * 40).collect(),
        6 => (0..1 + random.within(6)).map(|_| random.within(5000) as u32).collect(),
        _ => vec![72; 1 + random.within(100) as usize],
    }
}

/// Some ranges of slots: each alone if there are few, all of them, some.
fn ranges(random: &mut Random, slots: usize) -> Vec<Range<usize>> {
    let mut ranges: Vec<_> = (0..slots.min(20)).map(|slot| slot..slot + 1).collect();
    ranges.extend([0..slots, 0..0, slots..slots]);
    for _ in 0..10 {
        let start = random.within(slots as u64 + 1) as usize;
        ranges.push(start..start + random.within((slots - start) as u64 + 1) as usize);
    }
    ranges
}

fn starts(lens: &[u32]) -> Vec<usize> {
    let mut starts = vec![0];
    for &len in lens {
        starts.push(starts[starts.len() - 1] + len as usize);
    }
    starts
}

#[track_caller]
fn check_values(random: &mut Random, values: &[f64], lens: &[u32], effort: Effort) -> usize {
    let mut bytes = vec![0xaa; 3];
    encode_values(values, lens, effort, &mut bytes);
    let bytes = &bytes[3..];
    let reader = ValuesReader::open(bytes, lens, Paging::NEWEST).unwrap();
    let starts = starts(lens);
    for slots in ranges(random, lens.len()) {
        let mut back = vec![7.0];
        reader.read(slots.clone(), &mut back).unwrap();
        let expected = &values[starts[slots.start]..starts[slots.end]];
        assert_eq!(back.len() - 1, expected.len());
        for (at, (back, expected)) in back[1..].iter().zip(expected).enumerate() {
            assert_eq!(back.to_bits(), expected.to_bits(), "slots {slots:?}, sample {at}");
        }
    }
    assert!(reader.read(0..lens.len() + 1, &mut Vec::new()).is_err());
    check_parts_of_slots(random, bytes, values, lens);
    bytes.len()
}

/// Any samples of any slot come back alone, from an outline that is used again.
#[track_caller]
fn check_parts_of_slots(random: &mut Random, bytes: &[u8], values: &[f64], lens: &[u32]) {
    let outline =
        ValuesOutline::open(bytes, Arc::new(Layout::new(lens, Paging::NEWEST).unwrap())).unwrap();
    let mut scratch = ColumnScratch::default();
    let starts = starts(lens);
    for slots in ranges(random, lens.len()).into_iter().filter(|slots| !slots.is_empty()) {
        let slot = slots.start;
        let len = lens[slot] as usize;
        for samples in ranges(random, len) {
            let mut back = vec![7.0];
            outline.read_slot(bytes, slot, samples.clone(), &mut scratch, &mut back).unwrap();
            let expected = &values[starts[slot]..][samples.clone()];
            assert_eq!(back.len() - 1, expected.len());
            let same = back[1..].iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "slot {slot}, samples {samples:?}");
        }
        let mut out = Vec::new();
        assert!(outline.read_slot(bytes, slot, 0..len + 1, &mut scratch, &mut out).is_err());
    }
    let mut out = Vec::new();
    assert!(outline.read_slot(bytes, lens.len(), 0..0, &mut scratch, &mut out).is_err());
}

#[track_caller]
fn check_timestamps(random: &mut Random, times: &[i64], lens: &[u32], effort: Effort) -> usize {
    let mut bytes = vec![0xaa; 3];
    encode_timestamps(times, lens, effort, &mut bytes);
    let bytes = &bytes[3..];
    let reader = TimestampsReader::open(bytes, Paging::NEWEST).unwrap();
    assert_eq!(reader.lens(), lens);
    let starts = starts(lens);
    for slots in ranges(random, lens.len()) {
        let mut back = vec![7];
        reader.read(slots.clone(), &mut back).unwrap();
        assert_eq!(back[1..], times[starts[slots.start]..starts[slots.end]]);
    }
    assert!(reader.read(0..lens.len() + 1, &mut Vec::new()).is_err());
    let mut slots = starts.windows(2).map(|pair| &times[pair[0]..pair[1]]);
    let mut used = slots.by_ref().filter(|slot| !slot.is_empty());
    match used.next() {
        Some(first) if used.all(|slot| slot == first) => assert_eq!(reader.grid(), Some(first)),
        _ => assert_eq!(reader.grid(), None),
    }
    bytes.len()
}

#[test]
fn values_of_every_shape_come_back() {
    for seed in rng::seeds(0..12) {
        let mut random = Random(seed);
        for (name, slot) in VALUES {
            let lens = lens(&mut random);
            let values: Vec<f64> =
                lens.iter().flat_map(|&len| slot(&mut random, len as usize)).collect();
            for effort in EFFORTS {
                println!("seed {seed}, {name}, {effort:?}, {} slots", lens.len());
                let size = check_values(&mut random, &values, &lens, effort);
                let size_max = 24 + values.len() * 81 / 10;
                assert!(size <= size_max, "{size} bytes for {} samples", values.len());
            }
        }
    }
}

#[test]
fn columns_of_mixed_shapes_come_back() {
    for seed in rng::seeds(0..12) {
        let mut random = Random(1000 + seed);
        let lens = lens(&mut random);
        let mut values = Vec::new();
        for &len in &lens {
            let (_, slot) = VALUES[random.within(VALUES.len() as u64) as usize];
            values.extend(slot(&mut random, len as usize));
        }
        for effort in EFFORTS {
            println!("seed {seed}, {effort:?}, {} slots", lens.len());
            check_values(&mut random, &values, &lens, effort);
        }
    }
}

#[test]
fn timestamps_of_every_shape_come_back() {
    for seed in rng::seeds(0..12) {
        let mut random = Random(seed);
        for (name, times) in TIMESTAMPS {
            let lens = lens(&mut random);
            let times = times(&mut random, &lens);
            for effort in EFFORTS {
                println!("seed {seed}, {name}, {effort:?}, {} slots", lens.len());
                check_timestamps(&mut random, &times, &lens, effort);
            }
        }
    }
}

/// Decodes a column whole and compares every bit.
#[track_caller]
fn check_round_trip(
    values: &[f64],
    lens: &[u32],
    effort: Effort,
    buffers: &mut (Vec<u8>, Vec<f64>),
) {
    let (bytes, decoded) = buffers;
    bytes.clear();
    decoded.clear();
    encode_values(values, lens, effort, bytes);
    let reader = ValuesReader::open(bytes, lens, Paging::NEWEST).unwrap();
    reader.read(0..lens.len(), decoded).unwrap();
    let same = decoded.len() == values.len()
        && decoded.iter().zip(values).all(|(a, b)| a.to_bits() == b.to_bits());
    assert!(same, "{values:?} came back as {decoded:?}, {effort:?}");
}

/// Values at the limits of floats and of the integers that encoders make of them, each bit pattern
/// once: signed zeros, powers of two and ten, the ends of `i64`, subnormals, infinities, NaNs, and
/// the neighbours of all of these.
fn extreme_values() -> Vec<f64> {
    let mut centers: Vec<u64> = (-1074..1024).step_by(31).map(|p| 2f64.powi(p).to_bits()).collect();
    centers.extend([0, 31, 32, 51, 52, 53, 54, 61, 62, 63, 64].map(|p| 2f64.powi(p).to_bits()));
    centers.extend((0..20).map(|p| 10f64.powi(p).to_bits()));
    centers.extend([0, i64::MAX as u64, f64::INFINITY.to_bits(), f64::NAN.to_bits(), STALE]);
    let neighbours = |bits: &u64| [-1i64, 0, 1].map(|by| bits.wrapping_add_signed(by));
    let mut all: Vec<u64> = centers.iter().flat_map(neighbours).collect();
    all.extend([2f64.powi(31), 2f64.powi(32), 2f64.powi(52)].map(|v| (v - 1.0).to_bits()));
    all.extend(all.clone().iter().map(|bits| bits ^ 1 << 63));
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(f64::from_bits).collect()
}

#[test]
fn pairs_of_extreme_values_come_back() {
    let extremes = extreme_values();
    let mut buffers = (Vec::new(), Vec::new());
    for &a in &extremes {
        for &b in &extremes {
            check_round_trip(&[a, b], &[2], Effort::Fast, &mut buffers);
        }
    }
    println!("{} pairs", extremes.len() * extremes.len());
}

/// Random columns of a test; `COLUMN_ROUNDS=n` asks for more.
fn column_rounds(default: u64) -> u64 {
    let rounds = std::env::var("COLUMN_ROUNDS").ok().and_then(|value| value.parse().ok());
    rounds.unwrap_or(default)
}

#[test]
fn mixtures_of_extreme_values_come_back() {
    let extremes = extreme_values();
    let mut buffers = (Vec::new(), Vec::new());
    let rounds = column_rounds(4000);
    println!("{} columns of values", rounds * EFFORTS.len() as u64);
    for seed in rng::seeds(0..rounds) {
        let mut random = Random(seed);
        let mut pick = || extremes[random.within(extremes.len() as u64) as usize];
        let choice = [pick(), pick(), pick(), pick()];
        let kinds = 2 + seed % 3;
        let len = [2, 3, 5, 70, 300][(seed / 3 % 5) as usize];
        let mut values = vec![choice[0]; len];
        for value in &mut values[len / 2..] {
            *value = choice[random.within(kinds) as usize];
        }
        let lens = [(len / 2) as u32, 0, len.div_ceil(2) as u32];
        EFFORTS.iter().for_each(|&effort| check_round_trip(&values, &lens, effort, &mut buffers));
    }
}

/// Timestamps at the ends of time and around powers of two, each once, ascending.
fn extreme_timestamps() -> Vec<i64> {
    let mut all = vec![i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX];
    for power in (0..63).step_by(3).chain([31, 32, 53, 62]) {
        let center = 1i64 << power;
        all.extend([center - 1, center, center + 1, -center - 1, -center, 1 - center]);
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn check_times_round_trip(times: &[i64], lens: &[u32]) {
    for effort in EFFORTS {
        let mut bytes = Vec::new();
        encode_timestamps(times, lens, effort, &mut bytes);
        let reader = TimestampsReader::open(&bytes, Paging::NEWEST).unwrap();
        let mut back = Vec::new();
        reader.read(0..lens.len(), &mut back).unwrap();
        assert_eq!((reader.lens(), &back[..]), (lens, times), "{effort:?}");
    }
}

#[test]
fn pairs_of_extreme_timestamps_come_back() {
    let extremes = extreme_timestamps();
    for (idx, &a) in extremes.iter().enumerate() {
        for &b in &extremes[idx + 1..] {
            check_times_round_trip(&[a, b], &[2]);
            check_times_round_trip(&[b, a, b], &[1, 2]);
        }
    }
}

#[test]
fn mixtures_of_extreme_and_usual_timestamps_come_back() {
    let extremes = extreme_timestamps();
    let rounds = column_rounds(600);
    println!("{} columns of timestamps", rounds * EFFORTS.len() as u64);
    for seed in rng::seeds(0..rounds) {
        let mut random = Random(seed);
        let slots = 1 + random.within(4) as usize;
        let (mut times, mut lens) = (Vec::new(), Vec::new());
        for _ in 0..slots {
            let mut slot: Vec<i64> = (0..random.within(4))
                .map(|_| extremes[random.within(extremes.len() as u64) as usize])
                .collect();
            let steps = [0, 3, 70, 300][random.within(4) as usize];
            let (start, step) = (random.next() as i64 / 2, 1 + (random.next() >> 34) as i64);
            slot.extend((0..steps).map(|idx| start + idx * step));
            slot.sort_unstable();
            slot.dedup();
            lens.push(slot.len() as u32);
            times.extend(slot);
        }
        check_times_round_trip(&times, &lens);
    }
}

#[test]
fn plain_columns_of_extremes_come_back() {
    let (values, times) = (extreme_values(), extreme_timestamps());
    let lens = [values.len() as u32 - 3, 0, 3];
    let mut bytes = Vec::new();
    codec::encode_values_plainly(&values, &lens, &mut bytes);
    let mut back = Vec::new();
    let reader = ValuesReader::open(&bytes, &lens, Paging::NEWEST).unwrap();
    reader.read(0..3, &mut back).unwrap();
    assert!(back.iter().zip(&values).all(|(a, b)| a.to_bits() == b.to_bits()));
    assert_eq!(back.len(), values.len());
    let lens = [0, times.len() as u32];
    let (mut bytes, mut back) = (Vec::new(), Vec::new());
    codec::encode_timestamps_plainly(&times, &lens, &mut bytes);
    TimestampsReader::open(&bytes, Paging::NEWEST).unwrap().read(0..2, &mut back).unwrap();
    assert_eq!(back, times);
}

/// What the store's budget counts on.
#[test]
fn columns_are_small() {
    let mut random = Random(1);
    let size = |random: &mut Random, name: &str, slots: usize, len: usize, effort| {
        let (_, slot) = VALUES.iter().find(|shape| shape.0 == name).unwrap();
        let lens = vec![len as u32; slots];
        let values: Vec<f64> = lens.iter().flat_map(|_| slot(random, len)).collect();
        check_values(random, &values, &lens, effort) as f64 / values.len() as f64
    };
    let cases = [
        ("tsbs", 256, 1080, Effort::Dense, 0.29),
        ("tsbs", 1024, 72, Effort::Dense, 0.33),
        ("tsbs", 1024, 3, Effort::Fast, 0.9),
        ("tsbs", 1024, 30, Effort::Fast, 0.6),
        ("constant", 1024, 72, Effort::Fast, 0.001),
        ("constant per slot", 1024, 72, Effort::Dense, 0.06),
        ("steady counter", 1024, 72, Effort::Dense, 0.06),
        ("up, then stale", 1024, 72, Effort::Dense, 0.1),
        ("full mantissa", 64, 300, Effort::Dense, 8.1),
        ("any bits", 64, 300, Effort::Fast, 8.1),
        ("any bits", 64, 300, Effort::Dense, 8.1),
    ];
    for (name, slots, len, effort, size_max) in cases {
        let size = size(&mut random, name, slots, len, effort);
        assert!(size <= size_max, "{name}, {len} samples, {effort:?}: {size} bytes a sample");
    }
}

#[test]
fn timestamps_are_small() {
    let mut random = Random(2);
    let cases = [
        ("grid", 1024, 72, Effort::Fast, 64.0),
        ("grid", 1024, 1080, Effort::Dense, 64.0),
        ("three grids", 1024, 72, Effort::Dense, 1024.0),
        ("own phase", 1024, 72, Effort::Dense, 1024.0 * 8.0),
        ("jitter", 256, 240, Effort::Dense, 256.0 * 240.0 * 0.55),
        ("jitter", 256, 240, Effort::Fast, 256.0 * 240.0),
        ("grid", 1, 1, Effort::Fast, 20.0),
    ];
    for (name, slots, len, effort, size_max) in cases {
        let (_, times) = TIMESTAMPS.iter().find(|shape| shape.0 == name).unwrap();
        let lens = vec![len; slots];
        let times = times(&mut random, &lens);
        let size = check_timestamps(&mut random, &times, &lens, effort) as f64;
        assert!(size <= size_max, "{name}, {len} samples, {effort:?}: {size} bytes");
    }
}
