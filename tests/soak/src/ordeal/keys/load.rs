//! The load of a round: connections that send units, and one who makes checkpoints and snapshots.

use super::ledger::Ledger;
use super::patterns::Patterns;
use quipu_bench::http::HttpClient;
use quipu_bench::resp::{Reply, RespClient, words};
use rng::Random;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Units that are under way at once.
const BATCH_MAX: u64 = 8;
/// Units of a connection in a round, about: keeps checks short.
const UNITS_PER_ROUND: usize = 6000;

/// A snapshot that was acknowledged, and by connection how many units were answered before.
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// Units that must be in it.
    pub answered: Vec<u64>,
}

/// Sends until the server is gone or takes nothing more, or the round is over.
pub fn send(
    authority: &str,
    ledger: &mut Ledger,
    patterns: &Patterns,
    mut random: Random,
    answered: &AtomicU64,
    is_over: &AtomicBool,
) {
    // The end of the server is what a round is about.
    let _ = try_send(authority, ledger, patterns, &mut random, answered, is_over);
}

fn try_send(
    authority: &str,
    ledger: &mut Ledger,
    patterns: &Patterns,
    random: &mut Random,
    answered: &AtomicU64,
    is_over: &AtomicBool,
) -> io::Result<()> {
    let mut client = RespClient::connect(authority, ANSWER_TIMEOUT)?;
    client.call(&["SELECT", &ledger.database().to_string()])?;
    while !is_over.load(Ordering::Acquire) && ledger.units.len() < UNITS_PER_ROUND {
        let start = ledger.units.len();
        (0..=random.below(BATCH_MAX)).for_each(|_| ledger.draw(patterns, random));
        for at in start..ledger.units.len() {
            for command in &ledger.units[at].commands {
                client.send(command)?;
            }
            client.send(&ledger.marker(at))?;
        }
        client.flush()?;
        for at in start..ledger.units.len() {
            for _ in 0..ledger.units[at].commands.len() {
                let reply = taken(client.receive()?)?;
                ledger.units[at].replies.push(reply);
            }
            ledger.units[at].answered = Some(Instant::now());
            if let Reply::Int(place) = taken(client.receive()?)? {
                ledger.units[at].place = Some(place);
                answered.store(ledger.done + at as u64 + 1, Ordering::Release);
            }
        }
    }
    Ok(())
}

/// A reply that says what was done; not that the log takes no more.
fn taken(reply: Reply) -> io::Result<Reply> {
    match &reply {
        Reply::Line(b'-', line) if line.starts_with(b"MISCONF") => {
            Err(io::Error::other(String::from_utf8_lossy(line)))
        }
        _ => Ok(reply),
    }
}

/// Makes checkpoints and snapshots until the server is gone; returns the last snapshot.
pub fn disturb(
    http: &str,
    authority: &str,
    answered: &[AtomicU64],
    mut random: Random,
    is_over: &AtomicBool,
) -> Option<Snapshot> {
    let mut last = None;
    let Ok(mut client) = RespClient::connect(authority, ANSWER_TIMEOUT) else { return last };
    let mut other = HttpClient::new(http, ANSWER_TIMEOUT);
    while !is_over.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(random.below(30)));
        let done = match random.below(6) {
            0..=2 => client.call(&words(&["SAVE"])).map(drop),
            3 | 4 => client.call(&words(&["BGREWRITEAOF"])).map(drop),
            _ => snapshot(&mut other, answered, &mut last),
        };
        if done.is_err() {
            return last;
        }
    }
    last
}

/// Makes a snapshot and removes the one before.
fn snapshot(
    http: &mut HttpClient,
    answered: &[AtomicU64],
    last: &mut Option<Snapshot>,
) -> io::Result<()> {
    let answered: Vec<u64> = answered.iter().map(|one| one.load(Ordering::Acquire)).collect();
    let answer = http.post("/api/v1/admin/tsdb/snapshot", "", b"")?;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let name = text.split('"').find(|word| word.starts_with('0') && 20 < word.len());
    let Some(name) = name.filter(|_| answer.status == 200) else { return Ok(()) };
    let before = last.replace(Snapshot { name: name.to_string(), answered });
    if let Some(before) = before {
        http.post(&format!("/snapshot/delete?snapshot={}", before.name), "", b"")?;
    }
    Ok(())
}
