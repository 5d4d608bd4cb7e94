//! One writer: posts batches of random size one after the other until the server is gone.

use super::ledger::Ledger;
use super::sample::put_line;
use quipu_bench::http::HttpClient;
use rng::Random;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Largest batch.
const LINES_MAX: u64 = 600;
/// Pause between two batches of a writer that has sent its lines.
const SLOW_PAUSE: Duration = Duration::from_millis(3);
/// Pause after a server that is overloaded said so.
const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// A request without an answer after so long has failed.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A writer for one round.
pub(super) struct Writer<'a> {
    /// Which writer.
    pub idx: u64,
    /// What it has sent in this directory.
    pub ledger: &'a mut Ledger,
    /// Chooses batches.
    pub random: Random,
    /// Lines to send fast; afterwards batches are small and slow.
    pub lines_fast: u64,
}

impl Writer<'_> {
    /// Posts until the server is gone or the round is over; a refusal is a violation.
    pub fn run(&mut self, authority: &str, is_over: &AtomicBool) -> Option<String> {
        let mut client = HttpClient::new(authority, ANSWER_TIMEOUT);
        let mut body = Vec::new();
        let mut lines = self.first_batch();
        let fast_end = self.ledger.len() + self.lines_fast;
        while !is_over.load(Ordering::Acquire) {
            body.clear();
            lines.clone().for_each(|line| put_line(self.idx, line, &mut body));
            self.ledger.sending(lines.clone());
            match client.post("/write", "", &body) {
                Ok(answer) if answer.status == 204 => self.ledger.acknowledge(lines.clone()),
                // The same lines again, as a client does.
                Ok(answer) if matches!(answer.status, 429 | 503) => {
                    std::thread::sleep(BUSY_PAUSE);
                    continue;
                }
                Ok(answer) => {
                    let (status, excerpt) = (answer.status, answer.excerpt());
                    return Some(format!("a sound batch was refused: {status} {excerpt}"));
                }
                Err(_) => return None,
            }
            lines = self.next_batch(fast_end);
        }
        None
    }

    /// After a crash a client sends again what got no answer; every other time ours does not, so
    /// that half-written batches stay visible.
    fn first_batch(&mut self) -> std::ops::Range<u64> {
        let tail = self.ledger.unknown_tail();
        if !tail.is_empty() && self.random.below(2) == 0 {
            return tail;
        }
        self.next_batch(self.ledger.len() + self.lines_fast)
    }

    fn next_batch(&mut self, fast_end: u64) -> std::ops::Range<u64> {
        let start = self.ledger.len();
        if start >= fast_end {
            std::thread::sleep(SLOW_PAUSE);
            return start..start + 1 + self.random.below(3);
        }
        // Mostly small batches, for many acknowledgements; some large ones, to be cut in two.
        let lines_max = if self.random.below(4) == 0 { LINES_MAX } else { 40 };
        start..start + 1 + self.random.below(lines_max)
    }
}
