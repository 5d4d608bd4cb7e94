//! Clients of our own, for what `redis-benchmark` cannot do: skewed keys, values of all sizes, every
//! key once.

use super::data::{Choice, Values, put_key};
use super::measure::Rate;
use super::resp;
use super::server::Server;
use crate::random::mix;
use anyhow::{Result, anyhow};
use std::time::Instant;

/// Threads that send: more would take the server's core.
const THREADS: u64 = 1;

/// What to send.
#[derive(Clone, Debug)]
pub struct Load {
    /// Connections in all.
    pub clients: u64,
    /// Commands that each sends before it waits for answers.
    pub pipeline: u64,
    /// Commands in all.
    pub requests: u64,
    /// Different keys.
    pub keys: u64,
    /// Which of them.
    pub choice: Choice,
    /// What SET sends.
    pub values: Values,
    /// Commands of a hundred that are SET; the others are GET.
    pub set_percent: u64,
}

impl Load {
    /// Sets every key once.
    pub fn fill(keys: u64, values: Values) -> Load {
        Load {
            clients: 4,
            pipeline: 64,
            requests: keys,
            keys,
            choice: Choice::Sequence,
            values,
            set_percent: 100,
        }
    }
}

/// Sends it and measures.
///
/// # Errors
/// When the server answers an error or hangs up.
pub fn run(server: &Server, load: &Load) -> Result<Rate> {
    let before = server.used()?;
    let started = Instant::now();
    let shares: Vec<Result<Vec<f64>>> = std::thread::scope(|scope| {
        let share = |nth| scope.spawn(move || send_share(server, load, nth));
        let threads: Vec<_> = (0..THREADS).map(share).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("a client panicked"))))
            .collect()
    });
    let seconds = started.elapsed().as_secs_f64();
    let mut waits_ms = Vec::new();
    for share in shares {
        waits_ms.extend(share?);
    }
    let cpu_seconds = server.used()?.cpu_seconds - before.cpu_seconds;
    waits_ms.sort_unstable_by(f64::total_cmp);
    let quantile = |share: f64| {
        let at = ((waits_ms.len() as f64 - 1.0) * share).round() as usize;
        waits_ms.get(at).copied().unwrap_or(0.0)
    };
    Ok(Rate {
        per_second: load.requests as f64 / seconds,
        p50_ms: quantile(0.5),
        p99_ms: quantile(0.99),
        cpu_us: cpu_seconds * 1e6 / load.requests as f64,
    })
}

/// The waits of one thread's connections, in milliseconds.
fn send_share(server: &Server, load: &Load, nth: u64) -> Result<Vec<f64>> {
    let clients = load.clients / THREADS;
    let mut connections =
        (0..clients.max(1)).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
    let end = load.requests * (nth + 1) / THREADS;
    let mut at = load.requests * nth / THREADS;
    let (mut waits_ms, mut bytes, mut sent) = (Vec::new(), Vec::new(), Vec::new());
    while at < end {
        sent.clear();
        for connection in &mut connections {
            let count = load.pipeline.min(end - at);
            bytes.clear();
            for _ in 0..count {
                put_request(load, at, &mut bytes);
                at += 1;
            }
            sent.push((Instant::now(), usize::try_from(count)?));
            if 0 < count {
                connection.send(&bytes)?;
            }
        }
        for (connection, (begun, count)) in connections.iter_mut().zip(&sent) {
            if 0 < *count {
                connection.skip(*count)?;
                waits_ms.push(begun.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    Ok(waits_ms)
}

fn put_request(load: &Load, nth: u64, bytes: &mut Vec<u8>) {
    let number = load.choice.pick(nth, load.keys);
    let mut key = Vec::with_capacity(16);
    put_key(number, &mut key);
    if mix(nth ^ 0x5e7) % 100 < load.set_percent {
        let mut value = Vec::with_capacity(512);
        load.values.put(number, &mut value);
        resp::put(bytes, &[b"SET", &key, &value]);
    } else {
        resp::put(bytes, &[b"GET", &key]);
    }
}
