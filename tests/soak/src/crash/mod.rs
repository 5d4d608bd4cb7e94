//! Kills a server under load, again and again, and checks what comes back.
//!
//! ```text
//! round:  spawn ─► ready ─► writers post batches ─► kill -9 ─► verify ─► spawn ─► read all ─► check
//!                  │        disturber: flush, merge  at a random moment            every sample
//!                  └ or kill during recovery, and spawn again
//! ```
//!
//! What must hold: every sample of an acknowledged batch is there, with the right value, once; no
//! sample that was never sent; batches whose answer the kill cut off may be there in any part.
//! The directory lives on for some rounds, so that crashes pile up on the traces of earlier ones.

mod check;
mod disturber;
mod ledger;
mod sample;
mod writer;

use anyhow::{Context, Result, ensure};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use ledger::Ledger;
use quipu_bench::observe::disk;
use quipu_bench::server::{Installed, RunningServer};
use rng::Random;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By SIGKILL.
    Kill,
    /// By SIGTERM: shows that the test itself finds no fault where there is none.
    Stop,
}

/// How to run the test.
#[derive(Clone, Debug)]
pub struct CrashOptions {
    /// The server to kill.
    pub installed: Installed,
    /// Where its directories are made.
    pub dir: PathBuf,
    /// How many kills.
    pub rounds: u64,
    /// Rounds after which an empty directory is taken.
    pub rounds_per_directory: u64,
    /// Threads that write.
    pub writers: u64,
    /// Lines that a writer sends fast in a round; then it goes on slowly.
    pub lines_per_round: u64,
    /// Longest time under load before the kill.
    pub load_max: Duration,
    /// How a round ends.
    pub end: End,
    /// Chooses batches and moments.
    pub seed: u64,
}

/// What all rounds found.
#[derive(Clone, Debug, Default)]
pub struct CrashSummary {
    /// Kills under load.
    pub rounds: u64,
    /// Kills during recovery, on top.
    pub recovery_kills: u64,
    /// Samples acknowledged in all.
    pub acknowledged: u64,
    /// Samples found beyond the acknowledged ones: sent, their answer cut off.
    pub unacknowledged_found: u64,
    /// Longest time from a start until ready.
    pub ready_max: Duration,
    /// What must not be, described.
    pub violations: Vec<String>,
}

/// One directory's life.
struct Life {
    data_dir: PathBuf,
    log: PathBuf,
    ledgers: Vec<Ledger>,
}

/// Runs all rounds, or until the first one with a violation.
///
/// # Errors
/// When the server cannot be started or asked; a lost sample is not an error but a violation.
pub fn run(options: &CrashOptions) -> Result<CrashSummary> {
    ensure!(options.writers > 0 && options.rounds_per_directory > 0, "nothing to do");
    std::fs::create_dir_all(&options.dir)?;
    let mut random = Random(options.seed);
    let mut summary = CrashSummary::default();
    let bar = ProgressBar::new(options.rounds);
    let style =
        ProgressStyle::with_template("crash {wide_bar} {pos}/{len} rounds, {msg}, {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut life: Option<Life> = None;
    while summary.rounds < options.rounds && summary.violations.is_empty() {
        let idx = summary.rounds / options.rounds_per_directory;
        if summary.rounds.is_multiple_of(options.rounds_per_directory)
            && let Some(ended) = life.take()
        {
            end_life(options, &ended, &mut summary)?;
        }
        let life = life.get_or_insert_with(|| begin_life(options, idx));
        std::fs::create_dir_all(&life.data_dir)?;
        round(options, life, &mut random, &mut summary)
            .with_context(|| format!("round {}", summary.rounds + 1))?;
        summary.rounds += 1;
        bar.set_message(format!("{} samples", HumanCount(summary.acknowledged)));
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let Some(ended) = life {
        end_life(options, &ended, &mut summary)?;
    }
    Ok(summary)
}

fn begin_life(options: &CrashOptions, idx: u64) -> Life {
    Life {
        data_dir: options.dir.join(format!("data-{idx}")),
        log: options.dir.join(format!("server-{idx}.log")),
        ledgers: (0..options.writers).map(|_| Ledger::default()).collect(),
    }
}

/// One kill under load, and the check of what it left.
fn round(
    options: &CrashOptions,
    life: &mut Life,
    random: &mut Random,
    summary: &mut CrashSummary,
) -> Result<()> {
    let start = Instant::now();
    let before = acknowledged(&life.ledgers);
    let mut server = RunningServer::start(&options.installed, &life.data_dir, &life.log)?;
    let load_ms = random.below(options.load_max.as_millis() as u64) + 1;
    load_and_kill(options, life, random, server, Duration::from_millis(load_ms), summary)?;
    verify(options, life, summary)?;
    if options.end == End::Kill && random.below(4) == 0 {
        server = RunningServer::spawn(&options.installed, &life.data_dir, &life.log)?;
        std::thread::sleep(Duration::from_millis(random.below(100)));
        server.kill()?;
        summary.recovery_kills += 1;
    }
    let spawned = Instant::now();
    server = RunningServer::start(&options.installed, &life.data_dir, &life.log)?;
    let ready = spawned.elapsed();
    summary.ready_max = summary.ready_max.max(ready);
    let found =
        check::run(server.authority(), &life.ledgers, options.installed.peer.value_error_max)?;
    summary.violations.extend(found.violations);
    // Half of the checks end politely, half by another kill.
    if random.below(2) == 0 {
        server.stop().map(|_| ())?
    } else {
        server.kill()?
    }
    let sent = acknowledged(&life.ledgers) - before;
    summary.acknowledged += sent;
    println!(
        "round {:3}: killed after {load_ms:4} ms, {} samples acknowledged, {} of {} present, \
         {} unacknowledged, ready in {} ms, {} KiB, {:.1} s",
        summary.rounds + 1,
        HumanCount(sent),
        HumanCount(found.acknowledged_present),
        HumanCount(acknowledged(&life.ledgers)),
        HumanCount(found.unacknowledged_present),
        ready.as_millis(),
        disk::measure(&life.data_dir).apparent_bytes >> 10,
        start.elapsed().as_secs_f64()
    );
    summary.unacknowledged_found = summary.unacknowledged_found.max(found.unacknowledged_present);
    Ok(())
}

/// Samples acknowledged so far in a directory.
fn acknowledged(ledgers: &[Ledger]) -> u64 {
    let lines: u64 = ledgers.iter().map(Ledger::acknowledged_lines).sum();
    lines * sample::FIELDS.len() as u64
}

fn load_and_kill(
    options: &CrashOptions,
    life: &mut Life,
    random: &mut Random,
    server: RunningServer,
    load: Duration,
    summary: &mut CrashSummary,
) -> Result<()> {
    let is_over = AtomicBool::new(false);
    let authority = server.authority().to_string();
    let (killed, refused) = std::thread::scope(|scope| {
        let writers = life.ledgers.iter_mut().enumerate().map(|(idx, ledger)| {
            let (authority, is_over) = (&authority, &is_over);
            let mut writer = writer::Writer {
                idx: idx as u64,
                ledger,
                random: Random(random.next()),
                lines_fast: options.lines_per_round,
            };
            scope.spawn(move || writer.run(authority, is_over))
        });
        let writers = writers.collect::<Vec<_>>();
        let disturber = Random(random.next());
        let peer = options.installed.peer;
        scope.spawn(|| disturber::run(&authority, peer, disturber, &is_over));
        std::thread::sleep(load);
        let killed = end(server, options.end);
        is_over.store(true, Ordering::Release);
        let refused = writers.into_iter().filter_map(|writer| writer.join().ok().flatten());
        (killed, refused.collect::<Vec<_>>())
    });
    killed?;
    summary.violations.extend(refused);
    Ok(())
}

fn end(server: RunningServer, end: End) -> Result<()> {
    match end {
        End::Kill => server.kill(),
        End::Stop => server.stop().map(|_| ()),
    }
}

/// Checks the stopped server's directory with its own tool.
fn verify(options: &CrashOptions, life: &Life, summary: &mut CrashSummary) -> Result<()> {
    let Some(arguments) = options.installed.peer.verify_arguments else { return Ok(()) };
    let output = Command::new(&options.installed.binary)
        .args(arguments(&life.data_dir))
        .output()
        .context("cannot run verify")?;
    if !output.status.success() {
        summary.violations.push(format!(
            "verify ended with {}: {}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(())
}

/// A last start and a polite stop; then a sound directory is removed.
fn end_life(options: &CrashOptions, life: &Life, summary: &mut CrashSummary) -> Result<()> {
    if !summary.violations.is_empty() {
        println!("kept for inspection: {} and {}", life.data_dir.display(), life.log.display());
        return Ok(());
    }
    RunningServer::start(&options.installed, &life.data_dir, &life.log)?.stop()?;
    verify(options, life, summary)?;
    if summary.violations.is_empty() {
        remove(&life.data_dir)?;
        std::fs::remove_file(&life.log)?;
    }
    Ok(())
}

fn remove(dir: &Path) -> Result<()> {
    std::fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))
}
