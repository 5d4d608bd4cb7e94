//! Answers that wait for the disk, under `--kv-durability=always`.
//!
//! ```text
//! batch ─► its place in the log ─► waits ─┐            ┌─► all of them answer
//! batch ─► ...                    ─► waits ┴► one sync ─┘   and send the next, which are synced together
//! ```
//! One task waits for the disk, for all connections. It has a sync begin once those have come that the
//! one before let go, or an eighth of that one's time has passed: what is too late for a sync waits for
//! the whole of the next, so two syncs of half the clients each would take twice as long.

use kv::Kv;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use wal::Lsn;

/// Part of a sync's time for which the next one waits for those who are about to come.
const GATHER_PART: u32 = 8;
/// Longest such time.
const GATHER_TIME_MAX: Duration = Duration::from_millis(2);

/// How far the log is on disk.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    lsn: Lsn,
    has_failed: bool,
}

/// Who waits for the disk.
pub struct Durable {
    reached: watch::Sender<Reached>,
    /// Batches that wait.
    waiting: AtomicUsize,
    /// Somebody has come to wait.
    wanted: Notify,
}

impl Default for Durable {
    fn default() -> Durable {
        let (reached, _) = watch::channel(Reached::default());
        Durable { reached, waiting: AtomicUsize::new(0), wanted: Notify::new() }
    }
}

/// Counts one who waits, for as long as it does.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Durable {
    /// Returns once that place of the log is on disk; false if it never will be.
    pub async fn wait(&self, lsn: Lsn) -> bool {
        let mut reached = self.reached.subscribe();
        self.waiting.fetch_add(1, Relaxed);
        let _waiting = Waiting(&self.waiting);
        self.wanted.notify_one();
        let is_settled = |reached: &Reached| lsn <= reached.lsn || reached.has_failed;
        let settled = reached.wait_for(is_settled).await;
        settled.is_ok_and(|reached| lsn <= reached.lsn)
    }

    /// Syncs the log for those who wait, for ever.
    pub async fn serve(&self, kv: Arc<Kv>) {
        let (mut released, mut gather_time) = (0, Duration::ZERO);
        loop {
            self.wanted.notified().await;
            self.gather(released, gather_time).await;
            released = self.waiting.load(Relaxed);
            if released == 0 {
                continue;
            }
            let (lsn, started) = (kv.log_end(), Instant::now());
            let kv = kv.clone();
            let synced = tokio::task::spawn_blocking(move || kv.wait_durable(lsn)).await;
            let has_failed = !synced.is_ok_and(|result| result.is_ok());
            gather_time = (started.elapsed() / GATHER_PART).min(GATHER_TIME_MAX);
            self.reached.send_modify(|reached| match has_failed {
                true => reached.has_failed = true,
                false => reached.lsn = lsn,
            });
        }
    }

    /// Waits until as many wait as were released before, but not for long.
    async fn gather(&self, released: usize, time_max: Duration) {
        // Whose commands have come already is before us in the queue.
        tokio::task::yield_now().await;
        let started = Instant::now();
        while self.waiting.load(Relaxed) < released && started.elapsed() < time_max {
            tokio::task::yield_now().await;
        }
    }
}
