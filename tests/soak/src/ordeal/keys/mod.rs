//! kill -9 of the real binary under commands of all types, while it makes checkpoints, empties
//! segments, learns dictionaries and makes snapshots, and its disk stalls, fills up or fails to sync.
//!
//! ```text
//! connection c (its own databases): unit, marker, unit, marker ...     marker: SET done:c n; INCR all
//! start ─► done:c = n: the first n units are there, perhaps one more, and no other ─► load ─► kill -9
//!            └ a second Quipu that is never killed does the same units: replies and keys are alike
//! ```
//!
//! With `always` n is no less than what was answered; without, all connections have lost what came
//! after one moment, and no answer older than a second.

mod grammar;
mod ledger;
mod load;
mod patterns;
mod replies;
mod state;
mod words;

use super::server::{Server, free_port, verify};
use super::shim::{Shim, Weather};
use anyhow::{Context, Result, bail, ensure};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use ledger::{Ledger, Unit};
use load::Snapshot;
use patterns::Patterns;
use quipu_bench::resp::{Reply, RespClient, shown};
use replies::{is_alike, name_of};
use rng::Random;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// What may be lost with `everysec`, and some time for a machine that is busy.
const LOSS_MAX: Duration = Duration::from_millis(2500);
/// Rounds between those that last long enough for something to be too old to be lost.
const LONG_EVERY: u64 = 20;
const LONG: Duration = Duration::from_secs(4);
const DURABILITIES: [&str; 3] = ["always", "everysec", "no"];

/// How to run it.
#[derive(Clone, Debug)]
pub struct KeysOptions {
    /// The server.
    pub binary: PathBuf,
    /// Where directories and logs are made.
    pub dir: PathBuf,
    /// How many kills.
    pub rounds: u64,
    /// Rounds after which an empty directory is taken, with another durability.
    pub rounds_per_directory: u64,
    /// Connections that write, 6 at most.
    pub connections: u64,
    /// Longest time under load.
    pub load_max: Duration,
    /// Chooses what can be chosen; moments differ from run to run.
    pub seed: u64,
}

/// What all rounds found.
#[derive(Clone, Debug, Default)]
pub struct KeysSummary {
    /// Rounds run.
    pub rounds: u64,
    /// By durability and weather.
    pub kinds: BTreeMap<String, u64>,
    /// Units that were answered.
    pub acknowledged: u64,
    /// Units that were answered and lost, as durability allows.
    pub lost: u64,
    /// Keys compared.
    pub compared: u64,
    /// Snapshots started and looked at.
    pub snapshots: u64,
    /// What must not be.
    pub violations: Vec<String>,
}

/// A server that speaks to Redis' clients.
struct KeyServer {
    server: Server,
    redis: String,
}

impl KeyServer {
    fn start(
        binary: &Path,
        dir: &Path,
        log: &Path,
        shim: Option<&Shim>,
        durability: &str,
    ) -> Result<KeyServer> {
        let redis = format!("127.0.0.1:{}", free_port()?);
        let flags = ["--kv-memory=1MiB", "--kv-durability", durability, "--redis-listen", &redis];
        let server = Server::start_with(binary, dir, log, shim, &flags)?;
        Ok(KeyServer { server, redis })
    }

    fn connect(&self) -> Result<RespClient> {
        Ok(RespClient::connect(&self.redis, ANSWER_TIMEOUT)?)
    }
}

/// One directory's life.
struct Life {
    data_dir: PathBuf,
    log: PathBuf,
    durability: &'static str,
    ledgers: Vec<Ledger>,
    /// Quipu that is never killed.
    oracle: KeyServer,
    snapshot: Option<Snapshot>,
    /// The last round's kill, and whether the disk was well in it.
    killed: Option<(Instant, bool)>,
}

/// Runs all rounds, or until the first with a violation.
///
/// # Errors
/// When there is no compiler or server, or it cannot be asked.
pub fn run(options: &KeysOptions) -> Result<KeysSummary> {
    std::fs::create_dir_all(&options.dir)?;
    let shim = Shim::build(&options.dir)?;
    let patterns = ledger::patterns();
    let mut random = Random(options.seed);
    let mut summary = KeysSummary::default();
    let bar = ProgressBar::new(options.rounds);
    let style = ProgressStyle::with_template(
        "keys {wide_bar} {pos}/{len} rounds, {msg}, {elapsed}, {eta} to go",
    );
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let started = Instant::now();
    let mut life: Option<Life> = None;
    while summary.rounds < options.rounds && summary.violations.is_empty() {
        if summary.rounds.is_multiple_of(options.rounds_per_directory)
            && let Some(ended) = life.take()
        {
            end_life(options, ended)?;
        }
        if life.is_none() {
            life = Some(begin_life(options, summary.rounds)?);
        }
        let Some(life) = &mut life else { continue };
        let run = Run { options, shim: &shim, patterns: &patterns };
        if let Err(error) = run.round(life, &mut random, &mut summary) {
            summary.violations.push(format!("round {}: {error:#}", summary.rounds + 1));
        }
        summary.rounds += 1;
        bar.set_message(format!("{} units", HumanCount(summary.acknowledged)));
        bar.inc(1);
        // A bar is drawn on a terminal only.
        if bar.is_hidden() && summary.rounds.is_multiple_of(50) {
            let seconds = started.elapsed().as_secs_f64();
            println!("{} rounds in {seconds:.0} s, {} units", summary.rounds, summary.acknowledged);
        }
    }
    bar.finish_and_clear();
    match life {
        Some(life) if !summary.violations.is_empty() => {
            println!("kept for inspection: {} and {}", life.data_dir.display(), life.log.display());
        }
        Some(life) => end_life(options, life)?,
        None => {}
    }
    Ok(summary)
}

fn begin_life(options: &KeysOptions, round: u64) -> Result<Life> {
    let place = |name: &str| options.dir.join(format!("{name}-{round}"));
    let (oracle_dir, oracle_log) = (options.dir.join("oracle"), options.dir.join("oracle.log"));
    let oracle = KeyServer::start(&options.binary, &oracle_dir, &oracle_log, None, "no")?;
    let number = (round / options.rounds_per_directory + options.seed) % 3;
    Ok(Life {
        data_dir: place("keys"),
        log: place("server").with_extension("log"),
        durability: DURABILITIES[number as usize],
        ledgers: (0..options.connections).map(Ledger::new).collect(),
        oracle,
        snapshot: None,
        killed: None,
    })
}

fn end_life(options: &KeysOptions, life: Life) -> Result<()> {
    life.oracle.server.kill()?;
    std::fs::remove_dir_all(options.dir.join("oracle"))?;
    std::fs::remove_dir_all(&life.data_dir)?;
    Ok(std::fs::remove_file(&life.log)?)
}

/// What does not change from round to round.
struct Run<'a> {
    options: &'a KeysOptions,
    shim: &'a Shim,
    patterns: &'a Patterns,
}

impl Run<'_> {
    fn round(&self, life: &mut Life, random: &mut Random, summary: &mut KeysSummary) -> Result<()> {
        self.shim.set(Weather::Calm)?;
        let binary = &self.options.binary;
        let server =
            KeyServer::start(binary, &life.data_dir, &life.log, Some(self.shim), life.durability)?;
        check(&server, life, summary)?;
        self.look_at_snapshot(life, summary).context("snapshot")?;
        self.load_and_kill(life, random, server, summary)?;
        for ledger in &life.ledgers {
            summary.acknowledged +=
                ledger.units.iter().filter(|unit| unit.is_acknowledged()).count() as u64;
        }
        if let Some(text) = verify(binary, &life.data_dir)? {
            bail!("verify: {text}");
        }
        Ok(())
    }

    /// Starts a server on a copy of the last snapshot: it has what was answered before it.
    fn look_at_snapshot(&self, life: &mut Life, summary: &mut KeysSummary) -> Result<()> {
        let Some(snapshot) = life.snapshot.take() else { return Ok(()) };
        let to = self.options.dir.join("restored");
        if to.exists() {
            std::fs::remove_dir_all(&to)?;
        }
        let from = life.data_dir.join("snapshots").join(&snapshot.name);
        super::copy(&from, &to)?;
        if let Some(text) = verify(&self.options.binary, &to)? {
            bail!("verify: {text}");
        }
        let server = KeyServer::start(&self.options.binary, &to, &life.log, None, life.durability)?;
        let mut client = server.connect()?;
        for (ledger, answered) in life.ledgers.iter().zip(&snapshot.answered) {
            let found = done_units(&mut client, ledger)?;
            let name = ledger.marker_key();
            ensure!(*answered <= found, "{name}: {found}, though {answered} were answered before");
        }
        summary.snapshots += 1;
        server.server.kill()
    }

    fn load_and_kill(
        &self,
        life: &mut Life,
        random: &mut Random,
        server: KeyServer,
        summary: &mut KeysSummary,
    ) -> Result<()> {
        let (name, weather) = draw_weather(random);
        *summary.kinds.entry(format!("{}, {name}", life.durability)).or_default() += 1;
        let is_long = (summary.rounds + 1).is_multiple_of(LONG_EVERY);
        let load_max = if is_long { LONG } else { self.options.load_max };
        let is_over = AtomicBool::new(false);
        let answered: Vec<AtomicU64> =
            life.ledgers.iter().map(|ledger| AtomicU64::new(ledger.done)).collect();
        let (http, redis) = (server.server.authority().to_string(), server.redis.clone());
        let ended = std::thread::scope(|scope| {
            let (http, redis, is_over, answered) = (&http, &redis, &is_over, &answered);
            for (ledger, answered) in life.ledgers.iter_mut().zip(answered) {
                let random = Random(random.next());
                let patterns = self.patterns;
                scope.spawn(move || {
                    load::send(redis, ledger, patterns, random, answered, is_over);
                });
            }
            let others = Random(random.next());
            let disturber =
                scope.spawn(move || load::disturb(http, redis, answered, others, is_over));
            let ended = self.weather_then_kill(weather, load_max, random, server.server);
            is_over.store(true, Ordering::Release);
            life.snapshot = disturber.join().ok().flatten();
            ended
        });
        life.killed = Some((ended?, weather == Weather::Calm));
        Ok(())
    }

    /// Calm, then the weather, then perhaps calm again; then the end.
    fn weather_then_kill(
        &self,
        weather: Weather,
        load_max: Duration,
        random: &mut Random,
        server: Server,
    ) -> Result<Instant> {
        let third_ms = load_max.as_millis() as u64 / 3;
        let mut pause =
            || std::thread::sleep(Duration::from_millis(1 + random.below(third_ms.max(1))));
        pause();
        self.shim.set(weather)?;
        pause();
        if random.below(2) == 0 {
            self.shim.set(Weather::Calm)?;
            std::thread::sleep(Duration::from_millis(1 + random.below(third_ms.max(1))));
        }
        let moment = Instant::now();
        if random.below(12) == 0 {
            self.shim.set(Weather::Calm)?;
            server.stop()?;
        } else {
            server.kill()?;
        }
        Ok(moment)
    }
}

/// What the disk does in a round.
fn draw_weather(random: &mut Random) -> (&'static str, Weather) {
    match random.below(8) {
        0..=3 => ("calm", Weather::Calm),
        4 | 5 => ("stall", Weather::Stall),
        6 => ("full", Weather::Full(random.below(400_000) as i64)),
        _ => ("failing syncs", Weather::FailingSyncs(1 + random.below(3) as i64)),
    }
}

/// How many units of a connection were done, as its marker says.
fn done_units(client: &mut RespClient, ledger: &Ledger) -> Result<u64> {
    client.call(&["SELECT", "15"])?;
    match client.call(&["GET", &ledger.marker_key()])? {
        Reply::Null(_) => Ok(0),
        Reply::Bulk(digits) => Ok(std::str::from_utf8(&digits)?.parse()?),
        other => bail!("GET {}: {}", ledger.marker_key(), other.shown()),
    }
}

/// Compares what is there with what was done, and forgets the units that were not.
fn check(server: &KeyServer, life: &mut Life, summary: &mut KeysSummary) -> Result<()> {
    let mut client = server.connect()?;
    client.call(&["SELECT", "15"])?;
    let all = match client.call(&["GET", "all"])? {
        Reply::Bulk(digits) => std::str::from_utf8(&digits)?.parse::<i64>()?,
        _ => 0,
    };
    let mut is_corrected = false;
    for ledger in &mut life.ledgers {
        let found = done_units(&mut client, ledger)?;
        let name = format!("connection {}", ledger.connection);
        let sent = ledger.done + ledger.units.len() as u64;
        ensure!(
            (ledger.done..=sent).contains(&found),
            "{name}: {found} units done; {} were before, {sent} were sent",
            ledger.done
        );
        let count = (found - ledger.done) as usize;
        is_history(ledger, count, all).with_context(|| name.clone())?;
        is_kept(ledger, count, life.durability, life.killed).with_context(|| name.clone())?;
        let answered = ledger.units.iter().filter(|unit| unit.place.is_some()).count();
        summary.lost += answered.saturating_sub(count) as u64;
        let must_have_next = life.durability == "always"
            && ledger.units.get(count).is_some_and(Unit::is_acknowledged);
        let compared = compare(&mut client, &life.oracle, ledger, count, must_have_next);
        let (keys, done) = compared.with_context(|| name.clone())?;
        summary.compared += keys;
        ledger.done += done as u64;
        ledger.units.clear();
        if done != count {
            // The unit is there and its marker is not: from here on it counts.
            client.call(&["SELECT", "15"])?;
            client.call(&["SET", &ledger.marker_key(), &ledger.done.to_string()])?;
            is_corrected = true;
        }
    }
    if is_corrected {
        client.call(&["SAVE"])?;
    }
    Ok(())
}

/// All connections have lost what came after one moment.
fn is_history(ledger: &Ledger, count: usize, all: i64) -> Result<()> {
    for (at, unit) in ledger.units.iter().enumerate() {
        let Some(place) = unit.place else { continue };
        let is_there = at < count;
        ensure!(
            is_there == (place <= all),
            "a hole: unit {at} of {count} was the {place}th of all, of which {all} are there"
        );
    }
    Ok(())
}

/// Nothing is lost that durability promises.
fn is_kept(
    ledger: &Ledger,
    count: usize,
    durability: &str,
    killed: Option<(Instant, bool)>,
) -> Result<()> {
    for (at, unit) in ledger.units.iter().enumerate().skip(count) {
        let Some(answered) = unit.answered.filter(|_| unit.place.is_some()) else { continue };
        ensure!(durability != "always", "unit {at} was acknowledged and is lost");
        if let (Some((killed, true)), "everysec") = (killed, durability) {
            let age = killed.saturating_duration_since(answered);
            ensure!(age < LOSS_MAX, "unit {at} was answered {age:?} before the kill and is lost");
        }
    }
    Ok(())
}

/// Does the units that are there with the server that is never killed, and compares replies and
/// keys. Returns how many keys there are, and how many units were done.
fn compare(
    client: &mut RespClient,
    oracle: &KeyServer,
    ledger: &Ledger,
    count: usize,
    must_have_next: bool,
) -> Result<(u64, usize)> {
    let mut other = oracle.connect()?;
    let (first, second) = (ledger.database().to_string(), (ledger.database() + 1).to_string());
    other.call(&["SELECT", &first])?;
    for unit in &ledger.units[..count] {
        do_again(&mut other, unit)?;
    }
    let next = ledger.units.get(count);
    let states = |what: &mut RespClient| -> Result<[state::State; 2]> {
        let mut read = |db: &str| {
            what.call(&["SELECT", db])?;
            state::read(what)
        };
        Ok([read(&first)?, read(&second)?])
    };
    let found = states(client)?;
    let mut first_difference = None;
    for done in [count, count + 1] {
        if done != count {
            let Some(next) = next else { break };
            // As the connection was when it sent that.
            let select = ledger.units[..count].iter().rev().find_map(select_of);
            other.call(&["SELECT".to_string(), select.unwrap_or(first.clone())])?;
            do_again(&mut other, next)?;
        } else if must_have_next {
            continue;
        }
        let expected = states(&mut other)?;
        let difference = (0..2).find_map(|at| state::difference(&found[at], &expected[at]));
        let keys = found.iter().map(|one| one.len() as u64).sum();
        match difference {
            None => return Ok((keys, done)),
            Some(text) => first_difference = first_difference.or(Some(text)),
        }
    }
    let around = ledger.units[count.saturating_sub(3)..].iter().take(5);
    let around: Vec<String> = around
        .map(|unit| unit.commands.iter().map(|one| shown(one)).collect::<Vec<_>>().join("; "))
        .collect();
    let difference = first_difference.unwrap_or_default();
    bail!("after {count} units: {difference}\nunits around: {around:#?}")
}

/// The database that a unit goes on in.
fn select_of(unit: &Unit) -> Option<String> {
    let select = unit.commands.iter().rev().find(|command| name_of(command) == "select")?;
    Some(String::from_utf8_lossy(select.get(1)?).into_owned())
}

/// Does a unit; its replies are those that were acknowledged, but for what nobody can foretell.
fn do_again(other: &mut RespClient, unit: &Unit) -> Result<()> {
    const UNFORETOLD: [&str; 9] =
        ["dbsize", "keys", "scan", "randomkey", "ttl", "pttl", "expiretime", "pexpiretime", "exec"];
    let replies = other.pipeline(&unit.commands)?;
    for (command, (expected, found)) in unit.commands.iter().zip(replies.iter().zip(&unit.replies))
    {
        let inner = replies::in_script(command).unwrap_or(command);
        let is_foretold = !UNFORETOLD.contains(&name_of(inner).as_str());
        ensure!(
            !is_foretold || is_alike(command, &[], found, expected),
            "{} was answered with {}, not with {}",
            shown(command),
            found.shown(),
            expected.shown()
        );
    }
    Ok(())
}
