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
//!
//! A record is read by one connection at a time; others wait until the keys have it. So many clients
//! of one large value have it in memory once.

use crate::clients::session::Session;
use crate::registry::Known;
use kv::Keyspace;
use kv::commands::Keys;
use kv::index::Address;
use kv::keyspace::Fetch;
use std::collections::HashSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use wire::resp::{Limits, Parsed, Requests};

/// Values that are read at a time for commands behind the one that waits.
const AHEAD_MAX: usize = 64;
/// Commands that are looked at for that.
const AHEAD_COMMANDS_MAX: usize = 256;
/// Values that are read at a time for one command.
const COMMAND_MAX: usize = 1024;
/// Bytes of values that are read at a time, for all connections together: in [`UNIT`]s. One that is
/// larger is read when nothing else is.
const ROOM: usize = (64 << 20) / UNIT;
/// What room is counted in, bytes.
const UNIT: usize = 1 << 10;
/// Bytes of a value that is read together with others.
const SMALL_SIZE_MAX: usize = 256 << 10;
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

/// What is being read for all connections, and how much of it may be in memory at a time before the
/// keys account for it.
pub struct Flights {
    records: Mutex<HashSet<Address>>,
    landed: Notify,
    room: Arc<Semaphore>,
}

impl Default for Flights {
    fn default() -> Flights {
        let room = Arc::new(Semaphore::new(ROOM));
        Flights { records: Mutex::default(), landed: Notify::new(), room }
    }
}

impl Flights {
    fn records(&self) -> MutexGuard<'_, HashSet<Address>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A record that nobody else reads meanwhile.
struct Claim {
    flights: Arc<Flights>,
    address: Address,
}

impl Claim {
    /// None while another has it.
    fn of(flights: &Arc<Flights>, address: Address) -> Option<Claim> {
        let is_free = flights.records().insert(address);
        is_free.then(|| Claim { flights: flights.clone(), address })
    }

    /// When it is free; it may be hot by then.
    async fn wait(flights: &Flights, address: Address) {
        loop {
            let mut landed = pin!(flights.landed.notified());
            landed.as_mut().enable();
            if !flights.records().contains(&address) {
                return;
            }
            landed.await;
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.flights.records().remove(&self.address);
        self.flights.landed.notify_waiters();
    }
}

/// What was read. It holds its room, and keeps others from reading the same, until it is dropped: that
/// is, until the keys have it.
#[derive(Default)]
pub struct Arrived {
    /// The values, and what could not be read.
    pub fetches: Vec<Fetch>,
    /// Whether somebody else has read what was wanted, or there was no room for all.
    pub is_to_repeat: bool,
    held: Vec<(Claim, OwnedSemaphorePermit)>,
}

/// Reads values. Those that were not read are read by their commands, or later.
///
/// Who waits for another's claim holds nothing; who waits for room holds claims, and no room. So
/// nobody waits in a circle.
pub async fn read(flights: &Arc<Flights>, fetches: Vec<Fetch>) -> Arrived {
    let mut arrived = Arrived::default();
    let (mut size, mut waits) = (0, Vec::new());
    for mut fetch in fetches {
        if size < CACHED_SIZE_MAX && fetch.read_cached() {
            size += fetch.size();
            arrived.fetches.push(fetch);
        } else if let Some(claim) = Claim::of(flights, fetch.address()) {
            waits.push((fetch, claim));
        } else if arrived.fetches.is_empty() && waits.is_empty() {
            Claim::wait(flights, fetch.address()).await;
            return Arrived { is_to_repeat: true, ..arrived };
        }
    }
    let large = read_small(flights, waits, &mut arrived).await;
    for (fetch, claim) in large {
        read_large(flights, fetch, claim, &mut arrived).await;
    }
    arrived
}

/// Reads those that are small, some on each thread. Returns the others.
async fn read_small(
    flights: &Flights,
    mut waits: Vec<(Fetch, Claim)>,
    arrived: &mut Arrived,
) -> Vec<(Fetch, Claim)> {
    let mut threads = Vec::new();
    while !waits.is_empty() {
        let mut share = waits.split_off(waits.len().saturating_sub(THREAD_SHARE));
        let room = flights.room.clone();
        threads.push(tokio::task::spawn_blocking(move || {
            let read = |(fetch, _): &mut (Fetch, Claim)| {
                let size = fetch.size_to_be().filter(|size| *size <= SMALL_SIZE_MAX)?;
                let permit = room.clone().try_acquire_many_owned(units(size)).ok()?;
                fetch.read();
                fetch.is_read().then_some(permit)
            };
            let permits: Vec<_> = share.iter_mut().map(read).collect();
            share.into_iter().zip(permits).collect::<Vec<_>>()
        }));
    }
    let mut large = Vec::new();
    for thread in threads {
        // One that panicked has said so; its commands read what it did not.
        for ((fetch, claim), permit) in thread.await.unwrap_or_default() {
            match permit {
                Some(permit) => arrived.keep(fetch, claim, permit),
                None => large.push((fetch, claim)),
            }
        }
    }
    large
}

/// Reads one by itself once there is room for it; without waiting if others wait for room that this
/// connection has.
async fn read_large(flights: &Flights, fetch: Fetch, claim: Claim, arrived: &mut Arrived) {
    let sized = tokio::task::spawn_blocking(move || (fetch.size_to_be(), fetch)).await;
    let Ok((Some(size), mut fetch)) = sized else { return };
    let room = flights.room.clone();
    let permit = match arrived.held.is_empty() {
        true => room.acquire_many_owned(units(size)).await.ok(),
        false => room.try_acquire_many_owned(units(size)).ok(),
    };
    let Some(permit) = permit else {
        arrived.is_to_repeat = true;
        return;
    };
    let read = tokio::task::spawn_blocking(move || {
        fetch.read();
        (fetch, permit)
    });
    if let Ok((fetch, permit)) = read.await {
        arrived.keep(fetch, claim, permit);
    }
}

/// Room for a value, all there is where it needs more.
fn units(size: usize) -> u32 {
    u32::try_from(size.div_ceil(UNIT).clamp(1, ROOM)).unwrap_or(u32::MAX)
}

impl Arrived {
    fn keep(&mut self, fetch: Fetch, claim: Claim, permit: OwnedSemaphorePermit) {
        self.held.push((claim, permit));
        if fetch.is_read() {
            self.fetches.push(fetch);
        }
    }
}
