//! Feeds every decoder mutated bytes: `cargo run -p quipu-fuzz -- [--iterations N] [--seed N] [TARGET]`.
//!
//! Seeded and without any outside tool, so that the same run finds the same input everywhere. Inputs grow
//! from each target's corpus (`fuzz/corpus/<target>/`, found inputs are kept there) by flipping, cutting,
//! repeating and splicing. A target that panics ends the run with the input's bytes and the seed.

#![allow(clippy::disallowed_methods, reason = "a tool on a real machine")]

use anyhow::{Context, Result, bail};
use random::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// A decoder's fuzz function.
type Target = (&'static str, fn(&[u8]));

/// Everything that reads bytes from outside.
const TARGETS: &[Target] = &[
    ("codec-values", codec::fuzzing::fuzz_values),
    ("codec-timestamps", codec::fuzzing::fuzz_timestamps),
    ("codec-values-round-trip", codec::fuzzing::fuzz_values_round_trip),
    ("codec-timestamps-round-trip", codec::fuzzing::fuzz_timestamps_round_trip),
    ("wal-segment", wal::fuzzing::fuzz_wal_segment),
    ("index-segment", index::fuzzing::fuzz_segment),
    ("index-mutated-segment", index::fuzzing::fuzz_mutated_segment),
    ("index-replay", index::fuzzing::fuzz_replay),
    ("index-pattern", index::fuzzing::fuzz_pattern),
    ("store-part", store::part::fuzzing::fuzz_part),
    ("store-merge", store::merge::fuzzing::fuzz_merge),
    ("wire-influx", wire::fuzzing::fuzz_influx),
    ("wire-remote-write-v1", wire::fuzzing::fuzz_remote_write_v1),
    ("wire-remote-write-v2", wire::fuzzing::fuzz_remote_write_v2),
    ("wire-remote-read", wire::fuzzing::fuzz_remote_read),
    ("wire-remote-read-answer", wire::fuzzing::fuzz_remote_read_answer),
    ("wire-exposition", wire::fuzzing::fuzz_exposition),
    ("wire-json-lines", wire::fuzzing::fuzz_json_lines),
    ("wire-compression", wire::fuzzing::fuzz_compression),
    ("wire-params", wire::fuzzing::fuzz_params),
    ("wire-prom-json", wire::fuzzing::fuzz_prom_json),
    ("promql-parse", promql::fuzzing::fuzz_parse),
    ("promql-metricsql", promql::fuzzing::fuzz_metricsql),
    ("engine-evaluate", engine::fuzzing::fuzz_evaluate),
];
/// Bytes of an input.
const INPUT_SIZE_MAX: usize = 4096;

fn main() -> Result<()> {
    let (mut iterations, mut seed, mut wanted) = (20_000u64, 1u64, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number =
            || -> Result<u64> { Ok(arguments.next().context("a number is missing")?.parse()?) };
        match argument.as_str() {
            "--iterations" => iterations = number()?,
            "--seed" => seed = number()?,
            name => wanted = Some(name.to_string()),
        }
    }
    let is_wanted = |target: &&Target| wanted.as_deref().is_none_or(|name| name == target.0);
    let targets: Vec<&Target> = TARGETS.iter().filter(is_wanted).collect();
    if targets.is_empty() {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.0).collect();
        bail!("no such target; there are: {}", names.join(", "));
    }
    for (name, target) in targets {
        let corpus = corpus(name);
        run(name, *target, &corpus, iterations, seed)?;
        println!("{name}: {iterations} inputs from {} seeds, seed {seed}", corpus.len());
    }
    Ok(())
}

/// Inputs worth mutating: files kept for the target, else a few bytes of each kind.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|f| f.path()).collect();
    files.sort();
    let mut inputs: Vec<Vec<u8>> =
        files.iter().filter_map(|path| std::fs::read(path).ok()).collect();
    inputs.push(Vec::new());
    inputs.push((0..=255).collect());
    inputs.push(b"cpu,host=a,b=c x=1i,y=2.5 1451606400000000000\n".to_vec());
    inputs.push(b"# TYPE a counter\na{b=\"c\"} 1 2\n".to_vec());
    inputs.push(br#"{"metric":{"__name__":"a"},"values":[1],"timestamps":[2]}"#.to_vec());
    inputs.push(b"sum by (a) (rate(b{c=~\"d.*\"}[5m] offset 1h)) > 1".to_vec());
    inputs
}

fn run(
    name: &str,
    target: fn(&[u8]),
    corpus: &[Vec<u8>],
    iterations: u64,
    seed: u64,
) -> Result<()> {
    let mut random = Random(seed);
    for iteration in 0..iterations {
        let input = mutate(corpus, &mut random);
        if catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
            bail!("{name} panics at iteration {iteration} of seed {seed} on {input:?}");
        }
    }
    Ok(())
}

fn mutate(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = corpus[random.index(corpus.len())].clone();
    for _ in 0..random.index(6) {
        let at = random.index(input.len() + 1);
        match random.index(6) {
            0 if at < input.len() => input[at] ^= 1 << random.index(8),
            1 => input.truncate(at),
            2 => input.insert(at, random.next() as u8),
            3 => {
                let other = &corpus[random.index(corpus.len())];
                input.truncate(at);
                input.extend_from_slice(&other[random.index(other.len() + 1)..]);
            }
            4 => {
                let tail = input[at..].to_vec();
                input.extend_from_slice(&tail);
            }
            _ => input.extend((0..random.index(32)).map(|_| random.next() as u8)),
        }
        input.truncate(INPUT_SIZE_MAX);
    }
    input
}
