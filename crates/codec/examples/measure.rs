//! Bytes and nanoseconds a sample of every shape, in both efforts.
//!
//! ```text
//! cargo run --release -p codec --example measure [part of a shape's name]
//! ```

#![allow(clippy::disallowed_methods, reason = "a tool on a real machine")]

#[path = "../tests/shapes/mod.rs"]
mod shapes;

use codec::{Effort, Paging, TimestampsReader, ValuesReader, encode_timestamps, encode_values};
use rng::Random;
use shapes::{TIMESTAMPS, VALUES};
use std::time::{Duration, Instant};

/// Slots and samples a slot.
const SIZES: [(usize, usize); 5] = [(1024, 3), (1024, 30), (1024, 72), (64, 72), (1024, 1080)];
/// The best of so many: the machine may be shared.
const REPEATS: usize = 9;

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    println!(
        "{:28} {:>12} {:6} {:>8} {:>8} {:>8} {:>10}",
        "shape", "slots x len", "effort", "B/sample", "enc ns", "dec ns", "1 slot us"
    );
    for (name, slot) in VALUES.iter().filter(|shape| shape.0.contains(&wanted)) {
        for (slots, len) in SIZES {
            let mut random = Random(1);
            let lens = vec![len as u32; slots];
            let values: Vec<f64> = lens.iter().flat_map(|_| slot(&mut random, len)).collect();
            for effort in [Effort::Fast, Effort::Dense] {
                measure_values(name, &values, &lens, effort);
            }
        }
    }
    for (name, times) in TIMESTAMPS.iter().filter(|shape| shape.0.contains(&wanted)) {
        for (slots, len) in SIZES {
            let lens = vec![len as u32; slots];
            let times = times(&mut Random(1), &lens);
            for effort in [Effort::Fast, Effort::Dense] {
                measure_timestamps(name, &times, &lens, effort);
            }
        }
    }
}

fn best(mut work: impl FnMut()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..REPEATS).map(time).min().unwrap_or_default()
}

struct Figures {
    size: usize,
    encode: Duration,
    decode: Duration,
    one: Duration,
}

fn print(name: &str, lens: &[u32], effort: Effort, figures: &Figures) {
    let samples = lens.iter().map(|&len| len as usize).sum::<usize>() as f64;
    let nanos = |duration: Duration| duration.as_nanos() as f64 / samples;
    println!(
        "{name:28} {:>12} {:6} {:8.4} {:8.2} {:8.2} {:10.2}",
        format!("{} x {}", lens.len(), lens[0]),
        format!("{effort:?}"),
        figures.size as f64 / samples,
        nanos(figures.encode),
        nanos(figures.decode),
        figures.one.as_nanos() as f64 / 1000.0,
    );
}

fn measure_values(name: &str, values: &[f64], lens: &[u32], effort: Effort) {
    let mut bytes = Vec::new();
    let encode = best(|| {
        bytes.clear();
        encode_values(values, lens, effort, &mut bytes);
    });
    let mut back = Vec::with_capacity(values.len());
    let mut read = |slots: std::ops::Range<usize>| {
        best(|| {
            back.clear();
            let reader = ValuesReader::open(&bytes, lens, Paging::NEWEST).expect("just encoded");
            reader.read(slots.clone(), &mut back).expect("just encoded");
        })
    };
    let (decode, one) = (read(0..lens.len()), read(lens.len() / 2..lens.len() / 2 + 1));
    print(name, lens, effort, &Figures { size: bytes.len(), encode, decode, one });
}

fn measure_timestamps(name: &str, times: &[i64], lens: &[u32], effort: Effort) {
    let mut bytes = Vec::new();
    let encode = best(|| {
        bytes.clear();
        encode_timestamps(times, lens, effort, &mut bytes);
    });
    let mut back = Vec::with_capacity(times.len());
    let mut read = |slots: std::ops::Range<usize>| {
        best(|| {
            back.clear();
            let reader = TimestampsReader::open(&bytes, Paging::NEWEST).expect("just encoded");
            reader.read(slots.clone(), &mut back).expect("just encoded");
        })
    };
    let (decode, one) = (read(0..lens.len()), read(lens.len() / 2..lens.len() / 2 + 1));
    print(name, lens, effort, &Figures { size: bytes.len(), encode, decode, one });
}
