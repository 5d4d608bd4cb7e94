//! The load of a round: writers that send, send again what was refused, and delete; one who flushes,
//! merges and makes snapshots.

use super::ledger::{Demand, Ledger};
use super::sample::{Tongue, body};
use quipu_bench::http::HttpClient;
use quipu_bench::percent_encode;
use rng::Random;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
const BUSY_PAUSE: Duration = Duration::from_millis(2);
/// Largest request.
const LINES_MAX: u64 = 120;
/// Lines of a writer in a round: keeps the data small.
const LINES_PER_ROUND: u64 = 1500;

/// A snapshot that was acknowledged, and what must be in it.
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// By writer and line.
    pub demands: Vec<Vec<Demand>>,
}

/// Answers by status, of all requests that change something.
pub type Statuses = BTreeMap<u16, u64>;

/// Notes the ledger of one writer; locked for moments.
pub type Ledgers = [Mutex<Ledger>];

/// Locks a ledger; no thread panics while it holds one.
pub fn lock(ledger: &Mutex<Ledger>) -> std::sync::MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Sends until the server is gone or the round is over.
pub fn write(
    authority: &str,
    writer: u64,
    ledger: &Mutex<Ledger>,
    mut random: Random,
    is_over: &AtomicBool,
) -> Statuses {
    let mut client = HttpClient::new(authority, ANSWER_TIMEOUT);
    let mut statuses = Statuses::new();
    let start = lock(ledger).len();
    let mut lines = start..start;
    while !is_over.load(Ordering::Acquire) {
        if random.below(14) == 0 {
            delete(&mut client, writer, ledger, &mut random, &mut statuses);
        }
        if lines.is_empty() {
            lines = next_lines(start, lock(ledger).len(), &mut random);
        }
        lock(ledger).sending(lines.clone());
        let (path, headers) = Tongue::of(writer).door();
        match client.post(path, headers, &body(writer, lines.clone())) {
            Ok(answer) if answer.status / 100 == 2 => {
                *statuses.entry(answer.status).or_default() += 1;
                lock(ledger).acknowledge(lines.clone());
                lines.start = lines.end;
            }
            Ok(answer) => {
                // The same lines again, as a client does.
                *statuses.entry(answer.status).or_default() += 1;
                std::thread::sleep(BUSY_PAUSE);
            }
            Err(_) => return statuses,
        }
    }
    statuses
}

fn next_lines(start: u64, end: u64, random: &mut Random) -> Range<u64> {
    if start + LINES_PER_ROUND <= end {
        std::thread::sleep(BUSY_PAUSE);
        return end..end + 1;
    }
    end..end + 1 + random.below(LINES_MAX)
}

/// Deletes one of the writer's whole batches.
fn delete(
    client: &mut HttpClient,
    writer: u64,
    ledger: &Mutex<Ledger>,
    random: &mut Random,
    statuses: &mut Statuses,
) {
    let batches = lock(ledger).batches();
    // The last whole one may have lines that are being sent again.
    if batches < 3 {
        return;
    }
    let batch = random.below(batches - 2);
    lock(ledger).deleting(batch);
    let matcher = percent_encode(&format!("{{writer=\"w{writer}\",batch=\"b{batch}\"}}"));
    let path = format!("/api/v1/admin/tsdb/delete_series?match[]={matcher}");
    if let Ok(answer) = client.post(&path, "", b"") {
        *statuses.entry(answer.status).or_default() += 1;
        if answer.status / 100 == 2 {
            lock(ledger).deleted(batch);
        }
    }
}

#[derive(Deserialize)]
struct Created {
    data: CreatedName,
}

#[derive(Deserialize)]
struct CreatedName {
    name: String,
}

/// Flushes, merges and makes snapshots until the server is gone; returns the last snapshot. Deletes
/// others but never the one that is kept until there is a newer one.
pub fn disturb(
    authority: &str,
    ledgers: &Ledgers,
    kept: Option<&str>,
    mut random: Random,
    is_over: &AtomicBool,
) -> Option<Snapshot> {
    let mut client = HttpClient::new(authority, ANSWER_TIMEOUT);
    let mut last: Option<Snapshot> = None;
    while !is_over.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(random.below(40)));
        match random.below(5) {
            0 | 1 => drop(client.post("/internal/force_flush", "", b"")),
            2 => drop(client.post("/internal/force_merge", "", b"")),
            3 => {
                let before: Vec<Ledger> = ledgers.iter().map(|one| lock(one).clone()).collect();
                let answer = client.post("/api/v1/admin/tsdb/snapshot", "", b"");
                let Some(answer) = answer.ok().filter(|answer| answer.status == 200) else {
                    continue;
                };
                let Ok(created) = serde_json::from_slice::<Created>(&answer.body) else { continue };
                let pairs = before.iter().zip(ledgers);
                let demands =
                    pairs.map(|(before, now)| Ledger::demands_between(before, &lock(now)));
                last = Some(Snapshot { name: created.data.name, demands: demands.collect() });
            }
            _ => {
                // Of an older one, so that the last stays.
                let Ok(answer) = client.get("/snapshot/list") else { return last };
                let text = String::from_utf8_lossy(&answer.body).into_owned();
                let names = text.split('"').filter(|word| word.starts_with('0') && 20 < word.len());
                let last = last.as_ref().map(|last| last.name.as_str()).or(kept);
                let is_last = |name: &&str| last == Some(*name);
                if let Some(name) = names.filter(|name| !is_last(name)).min() {
                    drop(client.post(&format!("/snapshot/delete?snapshot={name}"), "", b""));
                }
            }
        }
    }
    last
}
