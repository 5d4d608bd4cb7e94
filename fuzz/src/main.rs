//! Feeds every decoder mutated bytes:
//! `cargo run -p quipu-fuzz -- [--iterations N] [--seed N] [--replay FILE] [TARGET]`.
//!
//! Seeded and without any outside tool, so that the same run finds the same input everywhere.
//! Inputs grow from each target's corpus by flipping, cutting, repeating and splicing. A target
//! that panics ends the run with the input's bytes and the seed. `--replay` feeds one file as it
//! is, such as those that `cargo xtask fuzz` reports.

#![allow(clippy::disallowed_methods, reason = "a tool on a real machine")]

use anyhow::{Context, Result, bail, ensure};
use quipu_fuzz::{INPUT_SIZE_MAX, TARGETS, Target};
use rng::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// The folder of inputs that every target begins with.
const COMMON: &str = "common";

/// What the command line asks for.
struct Request {
    iterations: u64,
    seed: u64,
    replay: Option<PathBuf>,
    target: Option<String>,
}

fn main() -> Result<()> {
    let request = parse(std::env::args().skip(1))?;
    let is_wanted =
        |target: &&Target| request.target.as_deref().is_none_or(|name| name == target.0);
    let targets: Vec<&Target> = TARGETS.iter().filter(is_wanted).collect();
    if targets.is_empty() {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.0).collect();
        bail!("no such target; there are: {}", names.join(", "));
    }
    if let Some(path) = &request.replay {
        ensure!(request.target.is_some(), "--replay needs a target");
        let input = std::fs::read(path).with_context(|| format!("{}", path.display()))?;
        targets.iter().for_each(|(_, target)| target(&input));
        return Ok(());
    }
    for target in targets {
        let corpus = corpus(target.0)?;
        run(target, &corpus, &request)?;
        let (name, Request { iterations, seed, .. }) = (target.0, &request);
        println!("{name}: {iterations} inputs from {} seeds, seed {seed}", corpus.len());
    }
    Ok(())
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Request> {
    let mut request = Request { iterations: 20_000, seed: 1, replay: None, target: None };
    while let Some(argument) = arguments.next() {
        let mut value =
            || arguments.next().with_context(|| format!("{argument}: its value is missing"));
        match argument.as_str() {
            "--iterations" => request.iterations = value()?.parse()?,
            "--seed" => request.seed = value()?.parse()?,
            "--replay" => request.replay = Some(value()?.into()),
            _ => request.target = Some(argument),
        }
    }
    Ok(request)
}

/// Inputs worth mutating: the target's pack and files, and the files that are for all. Sorted by
/// folder and name, because a seed draws inputs by their place in the list.
fn corpus(name: &str) -> Result<Vec<Vec<u8>>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut inputs: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for input in fuzz_pack::read(&root.join(format!("{name}.pack")))? {
        inputs.push((root.join(name).join(input.name), input.bytes));
    }
    for folder in [root.join(name), root.join(COMMON)] {
        // A target may have no files of its own.
        for file in std::fs::read_dir(folder).into_iter().flatten() {
            let path = file?.path();
            let bytes = std::fs::read(&path)?;
            inputs.push((path, bytes));
        }
    }
    inputs.sort();
    let mut inputs: Vec<Vec<u8>> = inputs.into_iter().map(|(_, bytes)| bytes).collect();
    inputs.push(Vec::new());
    Ok(inputs)
}

fn run((name, target): &Target, corpus: &[Vec<u8>], request: &Request) -> Result<()> {
    let (seed, mut random) = (request.seed, Random(request.seed));
    for iteration in 0..request.iterations {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A pack or folder whose target was renamed would be read by no run.
    #[test]
    fn everything_in_the_corpus_belongs_to_a_target() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        for entry in std::fs::read_dir(&root).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let is_known = name == COMMON || TARGETS.iter().any(|target| target.0 == name);
            assert!(is_known, "{}: no target has this name", path.display());
        }
        for (name, _) in TARGETS {
            let inputs = corpus(name).unwrap();
            assert!(inputs.iter().all(|input| input.len() <= INPUT_SIZE_MAX), "{name}");
        }
    }
}
