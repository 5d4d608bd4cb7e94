//! One worker: makes a request, posts it until it is acknowledged, makes the next.
//!
//! As the suite's loader does: anything but success is sent again after 10 ms. Unlike it, a
//! worker gives up after a while, says why, and counts how often it had to repeat.

use super::limits::Stop;
use super::{LoadOptions, Tally};
use crate::http::{Answer, HttpClient};
use crate::payload::{Packer, Protocol};
use crate::workload::{Share, Workload};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Pause before a request is sent again: that of the suite's loader.
const RETRY_PAUSE: Duration = Duration::from_millis(10);
/// A request that gets no answer for so long has failed.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Sends a worker's share.
pub(super) fn run(
    workload: &dyn Workload,
    share: Share,
    options: &LoadOptions,
    tally: &Tally,
    stop: &Stop,
) {
    let mut requests = workload.requests(share, options.format);
    let mut packer = Packer::new(options.format.protocol);
    let mut client = HttpClient::new(&options.authority, ANSWER_TIMEOUT);
    let mut plain = Vec::new();
    while let Some(samples) = requests.next(&mut plain) {
        let outcome = match packer.pack(&plain) {
            Ok(body) => post(&mut client, body, samples, options, tally, stop),
            Err(error) => Err(error.to_string()),
        };
        if let Err(reason) = outcome {
            stop.set(reason);
        }
        if stop.is_set() {
            break;
        }
    }
    tally.finished.fetch_add(1, Ordering::Release);
}

/// Posts until success, giving up, or a stop.
fn post(
    client: &mut HttpClient,
    body: &[u8],
    samples: u64,
    options: &LoadOptions,
    tally: &Tally,
    stop: &Stop,
) -> Result<(), String> {
    let protocol = options.format.protocol;
    let start = Instant::now();
    loop {
        let failure = match client.post(&options.path, protocol.headers(), body) {
            Ok(answer) if protocol.is_success(answer.status) => {
                check_written(protocol, &answer, samples)?;
                tally.samples.fetch_add(samples, Ordering::Relaxed);
                tally.sent_bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
                return Ok(());
            }
            Ok(answer) => format!("status {}: {}", answer.status, answer.excerpt()),
            Err(error) => error.to_string(),
        };
        if stop.is_set() {
            return Ok(());
        }
        if start.elapsed() > options.give_up_after {
            let seconds = options.give_up_after.as_secs();
            return Err(format!("a request failed for {seconds} s, at last with {failure}"));
        }
        tally.retries.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(RETRY_PAUSE);
    }
}

/// Remote write 2.0 says how many samples were written; fewer than sent is a silent loss.
fn check_written(protocol: Protocol, answer: &Answer, samples: u64) -> Result<(), String> {
    match answer.samples_written {
        Some(written) if protocol == Protocol::RemoteWriteV2 && written != samples => {
            Err(format!("the server wrote {written} of {samples} samples of a request"))
        }
        _ => Ok(()),
    }
}
