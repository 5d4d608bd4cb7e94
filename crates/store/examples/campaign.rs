//! Millions of faults against long mixed histories, or bits that rot in what they leave.
//!
//! ```text
//! cargo run --release -p store --example campaign -- --points 1000000 --seed 1
//! cargo run --release -p store --example campaign -- --replay HISTORY     every step of one
//! cargo run --release -p store --example campaign -- --flips --points 100000    one bit at a time
//! cargo run --release -p store --example campaign -- --rot --points 100000      sectors and files, too
//! ```
//!
//! Histories run on all cores; each follows from its own seed, which a failure names. Ends with a
//! failing code when anything was lost, invented, wrong or would not open.

#![allow(clippy::disallowed_methods, reason = "a tool on a real machine")]

#[path = "../tests/histories/mod.rs"]
mod histories;
#[path = "../tests/rows/mod.rs"]
mod rows;
#[path = "../tests/stores/mod.rs"]
mod stores;

use histories::history::{self, LIVES, Mix, Talk};
use histories::rotten::{self, Decay, RotTally};
use histories::seed_of;
use histories::tally::Tally;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// What the command line says.
struct Options {
    points: u64,
    seed: u64,
    replay: Option<u64>,
    rot: Option<Decay>,
    goes_on: bool,
    mix: Mix,
    threads: usize,
}

fn options() -> Options {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let mut options = Options {
        points: 100_000,
        seed: 1,
        replay: None,
        rot: None,
        goes_on: false,
        mix: Mix::ALL,
        threads: cores,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let text = words.next().unwrap_or_default();
            text.parse().unwrap_or_else(|_| panic!("{word} needs a number, not {text:?}"))
        };
        match word.as_str() {
            "--points" => options.points = number(),
            "--seed" => options.seed = number(),
            "--replay" => options.replay = Some(number()),
            "--threads" => options.threads = number() as usize,
            "--rot" => options.rot = Some(Decay::Anything),
            "--flips" => options.rot = Some(Decay::Bits),
            "--no-kills" => options.mix.has_kills = false,
            "--no-jumps" => options.mix.has_jumps = false,
            "--no-failures" => options.mix.has_failures = false,
            "--no-snapshots" => options.mix.has_snapshots = false,
            "--go-on" => options.goes_on = true,
            _ => panic!(
                "{word}? There are --points N, --seed N, --threads N, --replay HISTORY, --rot, --flips, --go-on, \
                 --no-kills, --no-jumps, --no-failures and --no-snapshots"
            ),
        }
    }
    options
}

fn main() -> ExitCode {
    let options = options();
    if let (Some(seed), Some(decay)) = (options.replay, options.rot) {
        let tally = rotten::run(seed, decay);
        println!("{tally}");
        return code(tally.silent() == 0);
    }
    if let Some(seed) = options.replay {
        let tally = history::run(seed, LIVES, options.mix, Talk::Aloud);
        println!("{tally}");
        return code(tally.failed() == 0);
    }
    // Panics are counted and told with the rest.
    std::panic::set_hook(Box::new(|_| ()));
    match options.rot {
        Some(decay) => rot(&options, decay),
        None => faults(&options),
    }
}

fn code(is_good: bool) -> ExitCode {
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn faults(options: &Options) -> ExitCode {
    let total = Mutex::new(Tally::default());
    let started = Instant::now();
    work(options, &|seed| {
        let tally = history::run(seed, LIVES, options.mix, Talk::Silent);
        let mut total = total.lock().unwrap();
        total.add(tally);
        progress(started, total.points, options.points, &total.line());
        total.points < options.points && (total.failed() == 0 || options.goes_on)
    });
    let total = total.into_inner().unwrap();
    println!("\nseed {}, {:.0} s: {total}", options.seed, started.elapsed().as_secs_f64());
    code(total.failed() == 0)
}

fn rot(options: &Options, decay: Decay) -> ExitCode {
    let total = Mutex::new(RotTally::default());
    let started = Instant::now();
    work(options, &|seed| {
        let tally = rotten::run(seed, decay);
        let mut total = total.lock().unwrap();
        total.add(tally);
        let line = format!("{} pieces of rot, {} silent", total.total(), total.silent());
        progress(started, total.total(), options.points, &line);
        total.total() < options.points
    });
    let total = total.into_inner().unwrap();
    println!("\nseed {}, {:.0} s: {total}", options.seed, started.elapsed().as_secs_f64());
    code(total.silent() == 0)
}

/// Runs histories on all threads, one after the other, until one of them says that it is enough.
fn work(options: &Options, run: &(dyn Fn(u64) -> bool + Sync)) {
    let next = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..options.threads {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let seed = seed_of(options.seed, next.fetch_add(1, Ordering::Relaxed));
                    if !run(seed) {
                        is_over.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
}

fn progress(started: Instant, done: u64, of: u64, line: &str) {
    let share = 100.0 * done as f64 / of as f64;
    print!("\r{share:5.1} %, {:5.0} s, {line}   ", started.elapsed().as_secs_f64());
    std::io::stdout().flush().unwrap_or_default();
}
