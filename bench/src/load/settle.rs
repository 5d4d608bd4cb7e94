//! After the load: let the server rest, make it flush or merge, wait until it is quiet.

use crate::http::HttpClient;
use crate::observe::Observed;
use crate::observe::disk::DiskUse;
use crate::observe::process::ProcessUse;
use crate::sql::SqlClient;
use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// What to do between the last request and the last measurement.
#[derive(Clone, Debug, Default)]
pub struct Settle {
    /// How long the server rests before anything else.
    pub idle: Duration,
    /// Called then: makes everything durable; `None` where the server cannot be asked to.
    pub flush: Option<Call>,
    /// Called last: makes few parts of many; `None` where the server cannot be asked to.
    pub merge: Option<Call>,
    /// How long each of the two may take with what it sets off; 30 minutes if not said.
    pub time_max: Option<Duration>,
}

/// How a server is told to do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A path of its HTTP door.
    Http(&'static str),
    /// A statement on a connection of PostgreSQL's protocol.
    Sql(&'static str),
    /// It cannot be told: it works on its own, and is waited for until it is quiet.
    Quiet,
}

/// What was measured while the server settled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settled {
    /// After the rest.
    pub idle: Option<ProcessUse>,
    /// After the flush.
    pub disk_flushed: Option<DiskUse>,
    /// After the merge; `None` without a merge.
    pub disk_merged: Option<DiskUse>,
    /// At the end.
    pub end: Option<ProcessUse>,
}

/// A flush or merge may take so long before its answer, and background work after it.
const TIME_MAX: Duration = Duration::from_secs(1800);
/// A server is quiet when it used less than this share of a core ...
const QUIET_SHARE: f64 = 0.05;
/// ... over so long.
const QUIET_WINDOW: Duration = Duration::from_secs(2);

/// Settles the server.
///
/// # Errors
/// When a call fails, the process is gone, or the server is still at work when its time is over.
pub fn run(settle: &Settle, authority: &str, observed: &Observed) -> Result<Settled> {
    std::thread::sleep(settle.idle);
    let idle = observed.process()?;
    let time_max = settle.time_max.unwrap_or(TIME_MAX);
    if let Some(flush) = settle.flush {
        call(authority, flush, time_max)?;
        wait_until_quiet(observed, time_max)?;
    }
    let disk_flushed = observed.disk();
    let mut disk_merged = None;
    if let Some(merge) = settle.merge {
        call(authority, merge, time_max)?;
        wait_until_quiet(observed, time_max)?;
        disk_merged = observed.disk();
    }
    Ok(Settled { idle, disk_flushed, disk_merged, end: observed.process()? })
}

/// Tells the server to do something and waits until it has. A path is called by GET, or by POST
/// where GET is not allowed.
///
/// # Errors
/// What the server said instead of success.
pub fn call(authority: &str, call: Call, time_max: Duration) -> Result<()> {
    let path = match call {
        Call::Http(path) => path,
        Call::Sql(statement) => return SqlClient::new(authority, time_max).execute(statement),
        Call::Quiet => return Ok(()),
    };
    let mut client = HttpClient::new(authority, time_max);
    let mut answer = client.get(path)?;
    if answer.status == 405 {
        answer = client.post(path, "", b"")?;
    }
    match answer.status {
        200..300 => Ok(()),
        status => bail!("{path}: status {status}: {}", answer.excerpt()),
    }
}

/// Waits until the server does next to nothing: merges go on in the background.
fn wait_until_quiet(observed: &Observed, time_max: Duration) -> Result<()> {
    let start = Instant::now();
    let cpu_seconds = || observed.process().ok().flatten().map(|used| used.cpu_seconds);
    while start.elapsed() < time_max {
        let Some(before) = cpu_seconds() else { return Ok(()) };
        std::thread::sleep(QUIET_WINDOW);
        let Some(after) = cpu_seconds() else { return Ok(()) };
        if after - before <= QUIET_SHARE * QUIET_WINDOW.as_secs_f64() {
            return Ok(());
        }
    }
    bail!("still at work after {:.1} min", time_max.as_secs_f64() / 60.0)
}
