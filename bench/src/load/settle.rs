//! After the load: let the server rest, make it flush or merge, wait until it is quiet.

use super::limits::Stop;
use crate::http::HttpClient;
use crate::observe::Observed;
use std::time::{Duration, Instant};

/// What to do between the last request and the measurement of memory and disk.
#[derive(Clone, Debug, Default)]
pub struct Settle {
    /// How long the server rests before anything else.
    pub idle: Duration,
    /// Paths to call then, in order: flush, merge.
    pub paths: Vec<String>,
}

/// A flush or merge may take so long before its answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(1800);
/// Background work is waited for at most so long.
const QUIET_TIMEOUT: Duration = Duration::from_secs(1800);
/// A server is quiet when it used less than this share of a core ...
const QUIET_SHARE: f64 = 0.05;
/// ... over so long.
const QUIET_WINDOW: Duration = Duration::from_secs(2);

/// Settles the server; a failing call is reported as the run's reason to stop.
pub fn run(settle: &Settle, authority: &str, observed: &Observed, stop: &Stop) {
    std::thread::sleep(settle.idle);
    for path in &settle.paths {
        if let Err(reason) = call(authority, path) {
            stop.set(format!("{path}: {reason}"));
            return;
        }
        wait_until_quiet(observed);
    }
}

/// Calls an administrative path: by GET, or by POST where GET is not allowed.
///
/// # Errors
/// What the server said instead of success.
pub fn call(authority: &str, path: &str) -> Result<(), String> {
    let mut client = HttpClient::new(authority, CALL_TIMEOUT);
    let mut answer = client.get(path).map_err(|error| error.to_string())?;
    if answer.status == 405 {
        answer = client.post(path, "", b"").map_err(|error| error.to_string())?;
    }
    match answer.status {
        200..300 => Ok(()),
        status => Err(format!("status {status}: {}", answer.excerpt())),
    }
}

/// Waits until the server does next to nothing: merges go on in the background.
pub fn wait_until_quiet(observed: &Observed) {
    let start = Instant::now();
    let cpu_seconds = || observed.process().ok().flatten().map(|used| used.cpu_seconds);
    while start.elapsed() < QUIET_TIMEOUT {
        let Some(before) = cpu_seconds() else { return };
        std::thread::sleep(QUIET_WINDOW);
        let Some(after) = cpu_seconds() else { return };
        if after - before <= QUIET_SHARE * QUIET_WINDOW.as_secs_f64() {
            return;
        }
    }
}
