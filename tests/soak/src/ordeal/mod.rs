//! kill -9 of the real binary under mixed load, while its disk stalls, fills up or fails to sync.
//!
//! ```text
//! round:  start ─► read all, compare ─► writers, deletions, flushes, merges, snapshots ─► kill -9 ─► verify
//!                       │                             ▲
//!                       └ the last snapshot, copied   └ shim: calm, stall, full, failing syncs
//!                         and started, too
//! ```
//!
//! A round takes about 0.3 s. What must hold: the server starts; what was acknowledged is there;
//! what was never sent, or was deleted, is not; `quipu verify` finds nothing.

mod check;
pub mod keys;
mod ledger;
mod load;
mod sample;
mod server;
mod shim;

use anyhow::{Context, Result};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use ledger::{Demand, Ledger};
use load::{Snapshot, Statuses, lock};
use rng::Random;
use server::Server;
use shim::{Shim, Weather};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How to run it.
#[derive(Clone, Debug)]
pub struct OrdealOptions {
    /// The server.
    pub binary: PathBuf,
    /// Where directories and logs are made.
    pub dir: PathBuf,
    /// How many kills.
    pub rounds: u64,
    /// Rounds after which an empty directory is taken.
    pub rounds_per_directory: u64,
    /// Threads that write.
    pub writers: u64,
    /// Longest time under load.
    pub load_max: Duration,
    /// Chooses what can be chosen; moments differ from run to run.
    pub seed: u64,
}

/// What all rounds found.
#[derive(Clone, Debug, Default)]
pub struct OrdealSummary {
    /// Rounds run.
    pub rounds: u64,
    /// By weather.
    pub weathers: BTreeMap<&'static str, u64>,
    /// Lines acknowledged.
    pub acknowledged: u64,
    /// Samples read back and compared, over all checks.
    pub compared: u64,
    /// Snapshots started and compared.
    pub snapshots: u64,
    /// Answers to changes, by weather and status.
    pub statuses: BTreeMap<(&'static str, u16), u64>,
    /// What must not be.
    pub violations: Vec<String>,
}

/// One directory's life.
struct Life {
    data_dir: PathBuf,
    log: PathBuf,
    ledgers: Vec<Mutex<Ledger>>,
    snapshot: Option<Snapshot>,
}

/// Runs all rounds, or until the first with a violation.
///
/// # Errors
/// When there is no compiler or server, or it cannot be asked.
pub fn run(options: &OrdealOptions) -> Result<OrdealSummary> {
    std::fs::create_dir_all(&options.dir)?;
    let shim = Shim::build(&options.dir)?;
    let mut random = Random(options.seed);
    let mut summary = OrdealSummary::default();
    let bar = ProgressBar::new(options.rounds);
    let style = ProgressStyle::with_template(
        "ordeal {wide_bar} {pos}/{len} rounds, {msg}, {elapsed}, {eta} to go",
    );
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let started = Instant::now();
    let mut life: Option<Life> = None;
    while summary.rounds < options.rounds && summary.violations.is_empty() {
        if summary.rounds.is_multiple_of(options.rounds_per_directory)
            && let Some(ended) = life.take()
        {
            std::fs::remove_dir_all(&ended.data_dir)?;
            std::fs::remove_file(&ended.log)?;
        }
        let life = life.get_or_insert_with(|| begin_life(options, summary.rounds));
        let done = round(options, &shim, life, &mut random, &mut summary);
        if let Err(error) = done {
            summary.violations.push(format!("round {}: {error:#}", summary.rounds + 1));
        }
        summary.rounds += 1;
        bar.set_message(format!("{} lines", HumanCount(summary.acknowledged)));
        bar.inc(1);
        // A bar is drawn on a terminal only.
        if bar.is_hidden() && summary.rounds.is_multiple_of(100) {
            let seconds = started.elapsed().as_secs_f64();
            println!("{} rounds in {seconds:.0} s, {} lines", summary.rounds, summary.acknowledged);
        }
    }
    bar.finish_and_clear();
    if let Some(life) = life.filter(|_| !summary.violations.is_empty()) {
        println!("kept for inspection: {} and {}", life.data_dir.display(), life.log.display());
    }
    Ok(summary)
}

fn begin_life(options: &OrdealOptions, round: u64) -> Life {
    Life {
        data_dir: options.dir.join(format!("data-{round}")),
        log: options.dir.join(format!("server-{round}.log")),
        ledgers: (0..options.writers).map(|_| Mutex::default()).collect(),
        snapshot: None,
    }
}

fn round(
    options: &OrdealOptions,
    shim: &Shim,
    life: &mut Life,
    random: &mut Random,
    summary: &mut OrdealSummary,
) -> Result<()> {
    shim.set(Weather::Calm)?;
    let server = Server::start(&options.binary, &life.data_dir, &life.log, Some(shim))?;
    let demands: Vec<Vec<Demand>> =
        life.ledgers.iter().map(|ledger| lock(ledger).demands()).collect();
    let (found, restored) = std::thread::scope(|scope| {
        let restored = scope.spawn(|| restore(options, life));
        let found = check::run(server.authority(), &demands);
        (found, restored.join())
    });
    let found = found?;
    summary.compared += found.samples;
    summary.violations.extend(found.violations);
    for (ledger, lines) in life.ledgers.iter().zip(&found.lines) {
        lock(ledger).resolve(lines);
    }
    if let Ok(restored) = restored
        && let Some(violations) = restored.context("snapshot")?
    {
        summary.snapshots += 1;
        summary.violations.extend(violations);
    }
    let before: u64 = life.ledgers.iter().map(|ledger| lock(ledger).acknowledged()).sum();
    load_and_kill(options, shim, life, random, server, summary)?;
    let after: u64 = life.ledgers.iter().map(|ledger| lock(ledger).acknowledged()).sum();
    summary.acknowledged += after.saturating_sub(before);
    if let Some(text) = server::verify(&options.binary, &life.data_dir)? {
        summary.violations.push(format!("verify: {text}"));
    }
    Ok(())
}

/// Starts a server on a copy of the last snapshot and compares what it has.
fn restore(options: &OrdealOptions, life: &Life) -> Result<Option<Vec<String>>> {
    let Some(snapshot) = &life.snapshot else { return Ok(None) };
    let from = life.data_dir.join("snapshots").join(&snapshot.name);
    let to = options.dir.join("restored");
    if to.exists() {
        std::fs::remove_dir_all(&to)?;
    }
    copy(&from, &to)?;
    let server = Server::start(&options.binary, &to, &life.log, None)?;
    let found = check::run(server.authority(), &snapshot.demands)?;
    server.kill()?;
    let name = &snapshot.name;
    Ok(Some(found.violations.iter().map(|text| format!("snapshot {name}: {text}")).collect()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").arg("-r").arg(from).arg(to).status()?;
    anyhow::ensure!(status.success(), "cannot copy {}", from.display());
    Ok(())
}

/// What the disk does in a round.
fn draw_weather(random: &mut Random) -> (&'static str, Weather) {
    match random.below(5) {
        0 => ("calm", Weather::Calm),
        1 | 2 => ("stall", Weather::Stall),
        3 => ("full", Weather::Full(random.below(60_000) as i64)),
        _ => ("failing syncs", Weather::FailingSyncs(1 + random.below(3) as i64)),
    }
}

fn load_and_kill(
    options: &OrdealOptions,
    shim: &Shim,
    life: &mut Life,
    random: &mut Random,
    server: Server,
    summary: &mut OrdealSummary,
) -> Result<()> {
    let is_over = AtomicBool::new(false);
    let authority = server.authority().to_string();
    let (name, weather) = draw_weather(random);
    *summary.weathers.entry(name).or_default() += 1;
    let ledgers = &life.ledgers;
    let kept = life.snapshot.as_ref().map(|kept| kept.name.as_str());
    let (ended, statuses, snapshot) = std::thread::scope(|scope| {
        let (authority, is_over) = (&authority, &is_over);
        let mut writers = Vec::new();
        for (writer, ledger) in (0..).zip(ledgers) {
            let random = Random(random.next());
            writers
                .push(scope.spawn(move || load::write(authority, writer, ledger, random, is_over)));
        }
        let others = Random(random.next());
        let disturber =
            scope.spawn(move || load::disturb(authority, ledgers, kept, others, is_over));
        let ended = weather_then_end(options, shim, weather, random, server);
        is_over.store(true, Ordering::Release);
        let statuses: Vec<Statuses> =
            writers.into_iter().filter_map(|one| one.join().ok()).collect();
        (ended, statuses, disturber.join().ok().flatten())
    });
    ended?;
    for (status, count) in statuses.into_iter().flatten() {
        *summary.statuses.entry((name, status)).or_default() += count;
        // A disk that fails is an internal error; one that waits or is slow is none.
        let has_failed = matches!(weather, Weather::FailingSyncs(_) | Weather::Full(_));
        let is_allowed = matches!(status, 200 | 204 | 429 | 503) || (status == 500 && has_failed);
        if !is_allowed {
            summary.violations.push(format!("{count} answers of status {status} ({name})"));
        }
    }
    if snapshot.is_some() {
        life.snapshot = snapshot;
    }
    Ok(())
}

/// Calm, then the weather, then perhaps calm again; then the end.
fn weather_then_end(
    options: &OrdealOptions,
    shim: &Shim,
    weather: Weather,
    random: &mut Random,
    server: Server,
) -> Result<()> {
    let load_ms = options.load_max.as_millis() as u64;
    let mut pause = || std::thread::sleep(Duration::from_millis(1 + random.below(load_ms / 3)));
    pause();
    shim.set(weather)?;
    pause();
    if random.below(2) == 0 {
        shim.set(Weather::Calm)?;
        std::thread::sleep(Duration::from_millis(1 + random.below(load_ms / 3)));
    }
    if random.below(10) == 0 {
        shim.set(Weather::Calm)?;
        return server.stop();
    }
    server.kill()
}
