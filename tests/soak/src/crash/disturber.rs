//! Makes the server flush and merge at random moments, so that kills fall into those too.

use quipu_bench::http::HttpClient;
use quipu_bench::load::settle::Call;
use quipu_bench::server::Peer;
use rng::Random;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest pause between two calls.
const PAUSE_MAX_MS: u64 = 400;

/// Calls until the round is over; what the server answers does not matter here.
pub(super) fn run(authority: &str, peer: &Peer, mut random: Random, is_over: &AtomicBool) {
    let mut client = HttpClient::new(authority, Duration::from_secs(5));
    while !is_over.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(random.below(PAUSE_MAX_MS)));
        let call = if random.below(3) == 0 { peer.merge } else { peer.flush };
        let Some(Call::Http(path)) = call else { continue };
        if client.get(path).is_ok_and(|answer| answer.status == 405) {
            let _ = client.post(path, "", b"");
        }
    }
}
