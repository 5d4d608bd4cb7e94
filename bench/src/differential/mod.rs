//! The same data and the same random expressions in two servers: answers must be alike.

pub mod compare;
mod data;
mod expressions;
pub mod redis;

pub use expressions::Dialect;

use crate::http::HttpClient;
use crate::payload::{Packer, Protocol};
use crate::server::{Installed, RunningServer};
use crate::tsbs::queries::percent_encode;
use anyhow::{Context, Result, ensure};
use compare::{Verdict, compare};
use data::{SPAN_MS, START_MS};
use expressions::Generator;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::time::Duration;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Differences that are described; all are counted.
const DESCRIBED_MAX: usize = 40;

/// How to run the comparison.
#[derive(Clone, Debug)]
pub struct DifferentialOptions {
    /// Quipu.
    pub quipu: Installed,
    /// What it is held against: Prometheus or VictoriaMetrics, by the dialect.
    pub peer: Installed,
    /// Whose language the expressions are in.
    pub dialect: Dialect,
    /// How many expressions.
    pub count: u64,
    /// Chooses data and expressions.
    pub seed: u64,
    /// Largest relative difference between two values that count as equal.
    pub tolerance: f64,
    /// Where directories and logs are made.
    pub dir: PathBuf,
}

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct DifferentialSummary {
    /// Expressions with the same answer.
    pub alike: u64,
    /// Among these, answers without any series.
    pub empty: u64,
    /// Expressions that both refuse.
    pub refused: u64,
    /// Expressions with different answers.
    pub different: u64,
    /// The first of these, described.
    pub differences: Vec<String>,
}

/// Asks both servers.
///
/// # Errors
/// When a server cannot be started, filled or asked.
pub fn run(options: &DifferentialOptions) -> Result<DifferentialSummary> {
    let place = |name: &str| -> Result<(PathBuf, PathBuf)> {
        let dir = options.dir.join(name);
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        Ok((dir.clone(), options.dir.join(format!("{name}.log"))))
    };
    let start = |installed: &Installed, name: &str| {
        let (dir, log) = place(name)?;
        RunningServer::start(installed, &dir, &log)
    };
    let (quipu, peer) = (start(&options.quipu, "quipu")?, start(&options.peer, "peer")?);
    // Windows of Prometheus 2 are closed at both ends, those of 3 and ours are open on the left: no
    // sample may lie on an edge.
    let (data_shift_ms, ask_shift) = match options.dialect {
        Dialect::PromQl => (503, ".25"),
        Dialect::MetricsQl => (0, ""),
    };
    let plain = data::request(options.seed, data_shift_ms);
    for (server, installed) in [(&quipu, &options.quipu), (&peer, &options.peer)] {
        fill(server, installed, &plain)?;
    }
    let mut clients = [&quipu, &peer].map(|one| HttpClient::new(one.authority(), ANSWER_TIMEOUT));
    let mut summary = DifferentialSummary::default();
    let mut generator = Generator::new(options.seed, options.dialect);
    let style = ProgressStyle::with_template("{pos}/{len} {bar:40} {elapsed}, {eta} left")?;
    let progress = ProgressBar::new(options.count).with_style(style);
    for _ in 0..options.count {
        let (expression, step) = (generator.expression(), generator.step_seconds());
        let path = path(&expression, step, ask_shift);
        let suffix = match options.dialect {
            Dialect::PromQl => "",
            Dialect::MetricsQl => "&dialect=metricsql",
        };
        let ours = clients[0].get(&format!("{path}{suffix}"))?;
        let theirs = clients[1].get(&path)?;
        note(&mut summary, compare(&ours, &theirs, options.tolerance)?, &expression, step);
        progress.inc(1);
    }
    progress.finish_and_clear();
    quipu.stop()?;
    peer.stop()?;
    Ok(summary)
}

fn note(summary: &mut DifferentialSummary, verdict: Verdict, expression: &str, step: Option<i64>) {
    match verdict {
        Verdict::Alike { is_empty } => {
            summary.alike += 1;
            summary.empty += u64::from(is_empty);
        }
        Verdict::Refused => summary.refused += 1,
        Verdict::Different(how) => {
            summary.different += 1;
            if summary.differences.len() < DESCRIBED_MAX {
                let kind = step.map_or("instant".to_string(), |step| format!("step {step}s"));
                summary.differences.push(format!("{kind}: {expression}\n    {how}"));
            }
        }
    }
}

fn fill(server: &RunningServer, installed: &Installed, plain: &[u8]) -> Result<()> {
    let protocol = Protocol::RemoteWrite;
    let path = installed.write_path(protocol).context("the server takes no remote write")?;
    let mut packer = Packer::new(protocol);
    let mut client = HttpClient::new(server.authority(), ANSWER_TIMEOUT);
    let answer = client.post(path, protocol.headers(), packer.pack(plain)?)?;
    ensure!(protocol.is_success(answer.status), "status {}: {}", answer.status, answer.excerpt());
    if let Some(flush) = installed.peer.flush {
        crate::load::settle::call(server.authority(), flush, ANSWER_TIMEOUT)?;
    }
    Ok(())
}

/// An instant query in the middle of the data, or a range over the last part of it.
fn path(expression: &str, step: Option<i64>, shift: &str) -> String {
    let (start, end) = (START_MS / 1000, (START_MS + SPAN_MS) / 1000);
    let query = percent_encode(expression);
    match step {
        None => format!("/api/v1/query?time={}{shift}&query={query}", end - 1207),
        Some(step) => format!(
            "/api/v1/query_range?start={}{shift}&end={}{shift}&step={step}&query={query}",
            start + 3000,
            end + 300
        ),
    }
}
