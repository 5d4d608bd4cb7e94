//! Values that are on disk alone, read before the commands that need them run, while others have the
//! keys.
//!
//! ```text
//! batch ─► a command's key is cold ─► what was done is committed, the keys are given back
//!            ─► its records and those of the commands behind it are read: at once what the system
//!               has in memory, the rest on other threads ─► the batch goes on with that command
//! ```
//! Nothing of a connection overtakes anything else of it; other connections do. A transaction's
//! values are read when `EXEC` comes, a script's when its keys are named. What commands find out
//! about only while they run (`SORT` by patterns, `SCAN`) they read themselves.

use super::dispatch::Known;
use super::session::Session;
use kv::Keyspace;
use kv::commands::Keys;
use kv::keyspace::Fetch;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use wire::resp::{Limits, Parsed, Requests};

/// Values that are read at a time for commands behind the one that waits.
const AHEAD_MAX: usize = 64;
/// Commands that are looked at for that.
const AHEAD_COMMANDS_MAX: usize = 256;
/// Values that are read at a time for one command.
const COMMAND_MAX: usize = 1024;
/// Bytes of values after which no more are read at a time.
const SIZE_MAX: usize = 16 << 20;
/// Bytes of values that are read at once, while the door's other clients wait.
const CACHED_SIZE_MAX: usize = 256 << 10;
/// Values that one thread reads.
const THREAD_SHARE: usize = 8;
/// How often values are read for one command before it reads the rest itself: some may go cold again
/// while others are read.
pub const ROUNDS_MAX: u32 = 16;

/// Adds what a command needs from disk. Returns whether it needs anything.
pub fn gather(
    session: &Session,
    keys: &Keyspace,
    args: &[&[u8]],
    fetches: &mut Vec<Fetch>,
) -> bool {
    let Ok(known) = Known::check(args) else { return false };
    let is_exec = known.info().name == "exec";
    match &session.transaction {
        Some(transaction) if is_exec => {
            for queued in &transaction.commands {
                let args: Vec<&[u8]> = queued.iter().map(Vec::as_slice).collect();
                if let Some(known) = Known::find(&args) {
                    gather_one(session, keys, known, &args, fetches);
                }
            }
        }
        // It is only queued.
        Some(_) => {}
        None => gather_one(session, keys, known, args, fetches),
    }
    !fetches.is_empty()
}

fn gather_one(
    session: &Session,
    keys: &Keyspace,
    known: Known,
    args: &[&[u8]],
    fetches: &mut Vec<Fetch>,
) {
    // Who may not read a value does not have it read.
    let is_allowed =
        session.is_known && (session.user.may_all || session.user.check(known, args).is_ok());
    if !is_allowed {
        return;
    }
    let mut fetch = |place: usize| {
        if let (Some(key), true) = (args.get(place), fetches.len() < COMMAND_MAX) {
            keys.fetch(session.db, key, fetches);
        }
    };
    match known.info().keys {
        Keys::None => {}
        Keys::Range { first: 1, last: 1, .. } => fetch(1),
        _ => known.info().key_places(args).unwrap_or_default().into_iter().for_each(fetch),
    }
}

/// Adds what the commands behind need, as far as they came.
pub fn look_ahead(
    session: &Session,
    keys: &Keyspace,
    bytes: &[u8],
    limits: &Limits,
    fetches: &mut Vec<Fetch>,
) {
    let (mut requests, mut rest) = (Requests::default(), bytes);
    for _ in 0..AHEAD_COMMANDS_MAX {
        if AHEAD_MAX <= fetches.len() {
            return;
        }
        let size = match requests.parse(rest, limits) {
            Ok(Parsed::Command(size)) => size,
            Ok(Parsed::Nothing(size)) => {
                rest = rest.get(size..).unwrap_or_default();
                continue;
            }
            Ok(Parsed::Incomplete(_)) | Err(_) => return,
        };
        let args: Vec<&[u8]> = requests.arguments(rest).collect();
        let Ok(known) = Known::check(&args) else { return };
        if known.info().name == "select" {
            return;
        }
        gather_one(session, keys, known, &args, fetches);
        rest = rest.get(size..).unwrap_or_default();
    }
}

/// Reads them. Returns those that were read: the others are read by their commands, or later.
pub async fn read(fetches: Vec<Fetch>) -> Vec<Fetch> {
    let mut size = 0;
    let mut waits = Vec::new();
    let mut read = Vec::with_capacity(fetches.len());
    for mut fetch in fetches {
        if size < CACHED_SIZE_MAX && fetch.read_cached() {
            size += fetch.size();
            read.push(fetch);
        } else {
            waits.push(fetch);
        }
    }
    let total = Arc::new(AtomicUsize::new(size));
    let mut threads = Vec::new();
    while !waits.is_empty() {
        let mut share = waits.split_off(waits.len().saturating_sub(THREAD_SHARE));
        let total = total.clone();
        threads.push(tokio::task::spawn_blocking(move || {
            for fetch in &mut share {
                if total.load(Relaxed) < SIZE_MAX {
                    fetch.read();
                    total.fetch_add(fetch.size(), Relaxed);
                }
            }
            share
        }));
    }
    for thread in threads {
        // One that panicked has said so; its commands read what it did not.
        read.extend(thread.await.unwrap_or_default());
    }
    read.retain(Fetch::is_read);
    read
}
