//! Runs many queries of one type against a server: rate, latencies, the server's CPU per query.

use crate::http::HttpClient;
use crate::observe::Observed;
use crate::random::Random;
use crate::tsbs::Scale;
use crate::tsbs::queries::{Query, QueryType};
use anyhow::{Context, Result, bail, ensure};
use indicatif::ProgressBar;
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};

/// A query that takes longer has failed.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// How to run.
#[derive(Clone, Debug)]
pub struct QueryOptions {
    /// The server: `127.0.0.1:8428`.
    pub authority: String,
    /// How many queries.
    pub count: u64,
    /// Threads, each with a connection.
    pub workers: u64,
}

/// What a run gives.
#[derive(Clone, Debug, Serialize)]
pub struct QueryReport {
    /// The type's name.
    pub query_type: String,
    /// Queries run.
    pub count: u64,
    /// Threads.
    pub workers: u64,
    /// Queries a second.
    pub queries_per_second: f64,
    /// Median latency.
    pub p50_ms: f64,
    /// Latency that one in a hundred exceeds.
    pub p99_ms: f64,
    /// The worst latency.
    pub max_ms: f64,
    /// The server's CPU time per query, when its process is known.
    pub server_cpu_ms: Option<f64>,
    /// Bytes of an answer, on average.
    pub answer_bytes: f64,
    /// Answers without any series: should be 0 over the data set's own time.
    pub empty_answers: u64,
}

impl QueryReport {
    /// The column titles of the one-line form.
    pub const HEADER: &'static str = "type                       q/s     p50 ms     p99 ms     max ms   CPU ms/q  bytes    empty";
}

impl Display for QueryReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let cpu = self.server_cpu_ms.map_or("-".to_string(), |cpu| format!("{cpu:.3}"));
        write!(
            f,
            "{:22} {:8.2} {:10.3} {:10.3} {:10.3} {cpu:>10} {:8.0} {:5}",
            self.query_type,
            self.queries_per_second,
            self.p50_ms,
            self.p99_ms,
            self.max_ms,
            self.answer_bytes,
            self.empty_answers
        )
    }
}

/// One answered query.
struct Answered {
    latency: Duration,
    bytes: usize,
    is_empty: bool,
}

/// Runs `options.count` queries, the same ones for the same seed.
///
/// # Errors
/// When a query cannot be made for the data set, or fails.
pub fn run(
    query_type: &QueryType,
    scale: &Scale,
    options: &QueryOptions,
    observed: &Observed,
) -> Result<QueryReport> {
    ensure!(options.count > 0, "--count must be at least 1");
    let mut random = Random::new(scale.seed);
    let queries = (0..options.count)
        .map(|_| query_type.query(scale, &mut random))
        .collect::<Result<Vec<Query>>>()?;
    let before = observed.process()?;
    let bar = ProgressBar::new(options.count).with_prefix(query_type.name);
    let start = Instant::now();
    let answered = run_workers(&queries, options, &bar)?;
    let seconds = start.elapsed().as_secs_f64();
    bar.finish_and_clear();
    let after = observed.process()?;
    let cpu_seconds =
        before.zip(after).map(|(before, after)| after.cpu_seconds - before.cpu_seconds);
    Ok(summarize(query_type, options, &answered, seconds, cpu_seconds))
}

fn run_workers(
    queries: &[Query],
    options: &QueryOptions,
    bar: &ProgressBar,
) -> Result<Vec<Answered>> {
    std::thread::scope(|scope| {
        let workers = (0..options.workers as usize).map(|idx| {
            scope.spawn(move || {
                let mut client = HttpClient::new(&options.authority, ANSWER_TIMEOUT);
                let share = queries.iter().skip(idx).step_by(options.workers as usize);
                share
                    .map(|query| {
                        let answered = ask(&mut client, query)?;
                        bar.inc(1);
                        Ok(answered)
                    })
                    .collect::<Result<Vec<Answered>>>()
            })
        });
        let workers = workers.collect::<Vec<_>>();
        let mut answered = Vec::with_capacity(queries.len());
        for worker in workers {
            match worker.join() {
                Ok(share) => answered.extend(share?),
                Err(_) => bail!("a worker panicked"),
            }
        }
        Ok(answered)
    })
}

fn ask(client: &mut HttpClient, query: &Query) -> Result<Answered> {
    let start = Instant::now();
    let answer = client.get(&query.path()).with_context(|| query.expression.clone())?;
    let latency = start.elapsed();
    if answer.status != 200 {
        bail!("{}: status {}: {}", query.expression, answer.status, answer.excerpt());
    }
    let is_empty = !answer.body.windows(9).any(|bytes| bytes == b"\"values\":");
    Ok(Answered { latency, bytes: answer.body.len(), is_empty })
}

fn summarize(
    query_type: &QueryType,
    options: &QueryOptions,
    answered: &[Answered],
    seconds: f64,
    cpu_seconds: Option<f64>,
) -> QueryReport {
    let mut latencies = answered.iter().map(|one| one.latency).collect::<Vec<_>>();
    latencies.sort();
    let quantile = |share: f64| {
        let idx = ((latencies.len() as f64 * share).ceil() as usize).clamp(1, latencies.len());
        latencies[idx - 1].as_secs_f64() * 1e3
    };
    let count = answered.len() as f64;
    QueryReport {
        query_type: query_type.name.to_string(),
        count: options.count,
        workers: options.workers,
        queries_per_second: count / seconds,
        p50_ms: quantile(0.5),
        p99_ms: quantile(0.99),
        max_ms: quantile(1.0),
        server_cpu_ms: cpu_seconds.map(|cpu| cpu * 1e3 / count),
        answer_bytes: answered.iter().map(|one| one.bytes).sum::<usize>() as f64 / count,
        empty_answers: answered.iter().filter(|one| one.is_empty).count() as u64,
    }
}
