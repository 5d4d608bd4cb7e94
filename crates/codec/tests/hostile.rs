//! Bytes that no encoder wrote: decoders answer with errors, and never panic.
//! `SEED=n HOSTILE_ROUNDS=m cargo test --release -p codec --test all hostile` goes on for longer.

use crate::shapes::{Draws, TIMESTAMPS, VALUES};
use codec::fuzzing;
use codec::{Effort, Paging, TimestampsReader, ValuesReader, encode_timestamps, encode_values};
use rng::Random;

/// A generator, and how many times as many rounds as usual.
fn start() -> (Random, u64) {
    let rounds = std::env::var("HOSTILE_ROUNDS").ok().and_then(|value| value.parse().ok());
    (Random::seeded(1), rounds.unwrap_or(1))
}

fn bytes(random: &mut Random, len: u64) -> Vec<u8> {
    // Small bytes are likelier to be kinds, counts and widths that exist.
    let shift = random.within(8);
    (0..random.within(len)).map(|_| (random.next() as u8) >> shift).collect()
}

fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..1 + random.within(4) {
        if bytes.is_empty() {
            return;
        }
        // Headers are where mutations tell.
        let end = if random.within(2) == 0 { bytes.len().min(64) } else { bytes.len() };
        let at = random.within(end as u64) as usize;
        match random.within(5) {
            0 => bytes[at] = random.next() as u8,
            1 => bytes[at] ^= 1 << random.within(8),
            2 => bytes.truncate(at),
            3 => bytes.insert(at, random.next() as u8),
            _ => drop(bytes.remove(at)),
        }
    }
}

fn small_lens(random: &mut Random) -> Vec<u32> {
    (0..1 + random.within(8)).map(|_| random.within(400) as u32).collect()
}

fn effort(random: &mut Random) -> Effort {
    if random.within(4) == 0 { Effort::Fast } else { Effort::Dense }
}

#[test]
fn random_bytes_do_not_panic() {
    let (mut random, rounds) = start();
    for _ in 0..4000 * rounds {
        let data = bytes(&mut random, 300);
        fuzzing::fuzz_values(&data);
        fuzzing::fuzz_timestamps(&data);
        fuzzing::fuzz_values_round_trip(&data);
        fuzzing::fuzz_timestamps_round_trip(&data);
    }
}

#[test]
fn mutated_values_do_not_panic() {
    let (mut random, rounds) = start();
    for _ in 0..4 * rounds {
        for (_, slot) in VALUES {
            let lens = small_lens(&mut random);
            let values: Vec<f64> =
                lens.iter().flat_map(|&len| slot(&mut random, len as usize)).collect();
            let mut valid = Vec::new();
            encode_values(&values, &lens, effort(&mut random), &mut valid);
            for _ in 0..40 {
                let mut mutated = valid.clone();
                mutate(&mut random, &mut mutated);
                fuzzing::read_values(&mutated, &lens);
            }
        }
    }
}

#[test]
fn mutated_timestamps_do_not_panic() {
    let (mut random, rounds) = start();
    for _ in 0..8 * rounds {
        for (_, times) in TIMESTAMPS {
            let lens = small_lens(&mut random);
            let times = times(&mut random, &lens);
            let mut valid = Vec::new();
            encode_timestamps(&times, &lens, effort(&mut random), &mut valid);
            for _ in 0..40 {
                let mut mutated = valid.clone();
                mutate(&mut random, &mut mutated);
                fuzzing::fuzz_timestamps(&mutated);
            }
        }
    }
}

#[test]
fn every_cut_is_an_error() {
    let (mut random, _) = start();
    for (name, slot) in VALUES {
        let lens = [100, 0, 300, 2];
        let values: Vec<f64> =
            lens.iter().flat_map(|&len| slot(&mut random, len as usize)).collect();
        let mut column = Vec::new();
        encode_values(&values, &lens, Effort::Dense, &mut column);
        for cut in 0..column.len() {
            let result = ValuesReader::open(&column[..cut], &lens, Paging::NEWEST)
                .and_then(|reader| reader.read(0..4, &mut Vec::new()));
            assert!(result.is_err(), "{name} cut to {cut} of {} bytes", column.len());
        }
    }
}

#[test]
fn lens_that_lie_are_errors() {
    let mut column = Vec::new();
    encode_values(&[1.0, 2.0, 5.0], &[3], Effort::Fast, &mut column);
    assert!(ValuesReader::open(&column, &[u32::MAX], Paging::NEWEST).is_err());
    assert!(ValuesReader::open(&[], &[3], Paging::NEWEST).is_err());
    assert!(ValuesReader::open(&column, &[], Paging::NEWEST).is_err());
    // Own lists of two slots, with lens over every limit.
    assert!(
        TimestampsReader::open(&[0, 2, 0, 0xfe, 0xff, 0xff, 0xff, 0x1f], Paging::NEWEST).is_err()
    );
    // More slots than a column may have.
    assert!(TimestampsReader::open(&[0, 0x81, 0x80, 0x04], Paging::NEWEST).is_err());
}
