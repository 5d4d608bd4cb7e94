//! The old server, and Quipu in each state of a move away from it.

use super::options::LegacyOptions;
use crate::cases::loading::Loading;
use crate::cases::{Profile, Setting, load_options};
use crate::instant::{DAY_NS, SECOND_NS, format_rfc3339};
use crate::load::limits::Limits;
use crate::load::settle;
use crate::payload::Protocol;
use crate::server::{Installed, RunningServer};
use crate::workload::Workload;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Where the samples are when a question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// In the old server, which is asked itself.
    Before,
    /// In the old server; Quipu is asked.
    RightAfter,
    /// The older half in the old server, the newer in Quipu.
    HalfAndHalf,
    /// All in Quipu, whose legacy backend has nothing that counts.
    LongAfter,
    /// All in Quipu, which knows no legacy backend.
    Alone,
}

impl State {
    /// In the order of the tables' columns.
    pub const ALL: [State; 5] =
        [State::Before, State::RightAfter, State::HalfAndHalf, State::LongAfter, State::Alone];

    /// As tables call it.
    pub fn name(self) -> &'static str {
        match self {
            State::Before => "before",
            State::RightAfter => "right after",
            State::HalfAndHalf => "half and half",
            State::LongAfter => "long after",
            State::Alone => "alone",
        }
    }
}

/// All servers of a data set, in the order of [`State::ALL`].
pub struct Moving {
    servers: Vec<RunningServer>,
}

/// The time that the samples have.
#[derive(Clone, Copy)]
struct Span {
    start_ns: i64,
    end_ns: i64,
}

impl Moving {
    /// Loads the old server, starts Quipu in its states and copies what each state has.
    ///
    /// # Errors
    /// When a server cannot be run, or a load or a copy is not whole.
    pub fn prepare(options: &LegacyOptions, workload: &dyn Workload, dir: &Path) -> Result<Moving> {
        let (start_ns, end_ns) = workload.span_ns();
        let span = Span { start_ns, end_ns };
        let mut servers = vec![old_server(&options.victoria_metrics, workload, dir)?];
        for state in &State::ALL[1..] {
            let server = new_server(&options.quipu, *state, &servers[0], span, dir)?;
            servers.push(server);
        }
        Ok(Moving { servers })
    }

    /// A state's server: `host:port`.
    pub fn authority(&self, state: State) -> Result<&str> {
        let idx = State::ALL.iter().position(|one| *one == state);
        let server = idx.and_then(|idx| self.servers.get(idx));
        Ok(server.context("a state without a server")?.authority())
    }

    /// Stops all of them, the old server last.
    ///
    /// # Errors
    /// When one does not end in good order.
    pub fn stop(self) -> Result<()> {
        for server in self.servers.into_iter().rev() {
            server.stop()?;
        }
        Ok(())
    }
}

fn old_server(installed: &Installed, workload: &dyn Workload, dir: &Path) -> Result<RunningServer> {
    let data_dir = dir.join("old");
    fs::create_dir(&data_dir)?;
    let server = RunningServer::start(installed, &data_dir, &dir.join("old.log"))?;
    let no_inside = Setting { profile: Profile::Full, inside: None, limits: Limits::default() };
    let loading = Loading {
        protocols: vec![Protocol::RemoteWrite],
        options: load_options(&no_inside),
        idle: Duration::from_secs(1),
    };
    let report = loading.load(workload, installed, &server)?;
    if let Some(reason) = report.stopped {
        bail!("load of the old server: {reason}");
    }
    Ok(server)
}

fn new_server(
    installed: &Installed,
    state: State,
    old: &RunningServer,
    span: Span,
    dir: &Path,
) -> Result<RunningServer> {
    let name = state.name().replace(' ', "-");
    let data_dir = dir.join(&name);
    fs::create_dir(&data_dir)?;
    let middle_ns = span.start_ns + (span.end_ns - span.start_ns) / 2;
    let (until_ns, copied_from_ns) = match state {
        State::Before => bail!("the old server is no Quipu"),
        State::RightAfter => (Some(span.end_ns + SECOND_NS), None),
        State::HalfAndHalf => (Some(middle_ns), Some(middle_ns)),
        // No window of a question reaches as far back.
        State::LongAfter => (Some(span.start_ns - DAY_NS), Some(span.start_ns)),
        State::Alone => (None, Some(span.start_ns)),
    };
    let legacy = |until_ns| {
        let (old, until) = (old.authority(), format_rfc3339(until_ns));
        format!("url=http://{old} kind=victoriametrics timeout=5m until={until}")
    };
    let mut variables = vec![
        // What dashboards of a VictoriaMetrics are written in.
        ("QUIPU_QUERY_DIALECT", "metricsql".to_string()),
        ("QUIPU_LEGACY_MAX_SAMPLES", "1000000000".to_string()),
        ("QUIPU_LEGACY_MAX_SIZE", "8GiB".to_string()),
    ];
    variables.extend(until_ns.map(|until_ns| ("QUIPU_LEGACY", legacy(until_ns))));
    let log = dir.join(format!("{name}.log"));
    let server = RunningServer::start_with(installed, &data_dir, &log, &variables)?;
    if let Some(from_ns) = copied_from_ns {
        copy(installed, old, &server, from_ns, &dir.join(format!("{name}.progress")))?;
        let asked = installed.peer.settle(Duration::ZERO);
        settle::run(&asked, server.authority(), &server.observed())?;
    }
    Ok(server)
}

/// `quipu migrate` of what is not older than a time.
fn copy(
    installed: &Installed,
    old: &RunningServer,
    new: &RunningServer,
    from_ns: i64,
    progress: &Path,
) -> Result<()> {
    let status = Command::new(std::path::absolute(&installed.binary)?)
        .args(["migrate", "victoriametrics"])
        .arg(format!("http://{}", old.authority()))
        .args(["--url", &format!("http://{}", new.authority())])
        .args(["--start", &format_rfc3339(from_ns), "--progress"])
        .arg(progress)
        .status()?;
    ensure!(status.success(), "quipu migrate ended with {status}");
    Ok(())
}
