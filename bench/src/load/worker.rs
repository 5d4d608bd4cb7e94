//! One worker: makes a request, posts it until it is acknowledged, makes the next.
//!
//! As the suite's loader does: anything but success is sent again after 10 ms. Unlike it, a
//! worker gives up after a while, says why, and counts how often it had to repeat.

use super::limits::Stop;
use super::sender::Sender;
use super::{LoadOptions, Tally};
use crate::payload::Packer;
use crate::workload::{Share, Workload};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Pause before a request is sent again: that of the suite's loader.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

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
    let mut sender = Sender::new(options);
    let mut plain = Vec::new();
    while let Some(samples) = requests.next(&mut plain) {
        let outcome = match packer.pack(&plain) {
            Ok(body) => post(&mut sender, body, samples, options, tally, stop),
            Err(error) => Err(error.to_string()),
        };
        if let Err(reason) = outcome {
            stop.set(reason);
        }
        if stop.is_set() {
            break;
        }
    }
}

/// Sends until success, giving up, or a stop.
fn post(
    sender: &mut Sender<'_>,
    body: &[u8],
    samples: u64,
    options: &LoadOptions,
    tally: &Tally,
    stop: &Stop,
) -> Result<(), String> {
    let start = Instant::now();
    loop {
        let failure = match sender.send(body) {
            Ok(written) => {
                check_written(written, samples)?;
                tally.samples.fetch_add(samples, Ordering::Relaxed);
                tally.sent_bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
                return Ok(());
            }
            Err(failure) => failure,
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

/// When the server says how many samples it wrote, fewer than sent is a silent loss.
fn check_written(written: Option<u64>, samples: u64) -> Result<(), String> {
    match written {
        Some(written) if written != samples => {
            Err(format!("the server wrote {written} of {samples} samples of a request"))
        }
        _ => Ok(()),
    }
}
