//! Runs many queries of one type against a server: rate, latencies, the server's CPU per query.

use crate::http::HttpClient;
use crate::observe::Observed;
use crate::random::stream;
use crate::sql::SqlClient;
use crate::tsbs::Scale;
use crate::tsbs::queries::{Language, QueryType, Request, RequestForm};
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
    /// What it is asked in.
    pub language: Language,
    /// How many queries.
    pub count: u64,
    /// Threads, each with a connection.
    pub workers: u64,
    /// No further query is sent after so long; each worker sends one at least.
    pub time_max: Option<Duration>,
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
    /// What the server said instead of answering, if it does not take this type; then there are
    /// no figures.
    pub refused: Option<String>,
}

impl QueryReport {
    /// The column titles of the one-line form.
    pub const HEADER: &'static str = "type                       q/s     p50 ms     p99 ms     max ms   CPU ms/q  bytes    empty";
}

impl Display for QueryReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(reason) = &self.refused {
            return write!(f, "{:22} refused: {reason}", self.query_type);
        }
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
    content: Content,
}

/// What was in an answer.
#[derive(Debug, PartialEq)]
struct Content {
    bytes: usize,
    is_empty: bool,
}

/// What a server did with a query.
enum Reply {
    /// It answered.
    Answered(Answered),
    /// It does not take such a query; it would say the same to the next.
    Refused(String),
}

/// Runs `options.count` queries, the same ones for the same seed. A server that refuses the type
/// gives a report that says so.
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
    let mut random = stream(scale.seed);
    let queries = (0..options.count)
        .map(|_| Ok(query_type.query(scale, &mut random)?.request(options.language)))
        .collect::<Result<Vec<Request>>>()?;
    let before = observed.process()?;
    let bar = ProgressBar::new(options.count).with_prefix(query_type.name);
    let start = Instant::now();
    let replies = run_workers(&queries, options, &bar)?;
    let seconds = start.elapsed().as_secs_f64();
    bar.finish_and_clear();
    let after = observed.process()?;
    let cpu_seconds =
        before.zip(after).map(|(before, after)| after.cpu_seconds - before.cpu_seconds);
    let mut answered = Vec::with_capacity(replies.len());
    for reply in replies {
        match reply {
            Reply::Answered(one) => answered.push(one),
            Reply::Refused(reason) => return Ok(refused(query_type, options, reason)),
        }
    }
    Ok(summarize(query_type, options, &answered, seconds, cpu_seconds))
}

fn run_workers(
    queries: &[Request],
    options: &QueryOptions,
    bar: &ProgressBar,
) -> Result<Vec<Reply>> {
    std::thread::scope(|scope| {
        let workers = (0..options.workers as usize).map(|idx| {
            let share = queries.iter().skip(idx).step_by(options.workers as usize);
            scope.spawn(move || run_worker(share, options, bar))
        });
        let workers = workers.collect::<Vec<_>>();
        let mut replies = Vec::with_capacity(queries.len());
        for worker in workers {
            match worker.join() {
                Ok(share) => replies.extend(share?),
                Err(_) => bail!("a worker panicked"),
            }
        }
        Ok(replies)
    })
}

/// Asks one query after the other, until the first that is refused.
fn run_worker<'a>(
    share: impl Iterator<Item = &'a Request>,
    options: &QueryOptions,
    bar: &ProgressBar,
) -> Result<Vec<Reply>> {
    let mut asker = Asker {
        http: HttpClient::new(&options.authority, ANSWER_TIMEOUT),
        sql: SqlClient::new(&options.authority, ANSWER_TIMEOUT),
    };
    let (start, mut replies) = (Instant::now(), Vec::new());
    for request in share {
        if !replies.is_empty() && options.time_max.is_some_and(|max| start.elapsed() > max) {
            break;
        }
        let reply = asker.ask(request).with_context(|| request.text.clone())?;
        let is_refused = matches!(reply, Reply::Refused(_));
        replies.push(reply);
        if is_refused {
            break;
        }
        bar.inc(1);
    }
    Ok(replies)
}

/// A worker's connections; only the one that its requests need is ever opened.
struct Asker {
    http: HttpClient,
    sql: SqlClient,
}

impl Asker {
    fn ask(&mut self, request: &Request) -> Result<Reply> {
        let start = Instant::now();
        let content = match &request.form {
            RequestForm::Path(path) => {
                let answer = self.http.get(path)?;
                match judge(answer.status, &answer.body) {
                    Ok(content) => content,
                    Err(_) if (400..500).contains(&answer.status) => {
                        let (status, excerpt) = (answer.status, answer.excerpt());
                        return Ok(Reply::Refused(format!("status {status}: {excerpt}")));
                    }
                    Err(error) => return Err(error),
                }
            }
            RequestForm::Statement => {
                let rows = self.sql.rows(&request.text)?;
                Content { bytes: rows.bytes, is_empty: rows.count == 0 }
            }
        };
        Ok(Reply::Answered(Answered { latency: start.elapsed(), content }))
    }
}

/// What is in an answer in JSON. Prometheus and InfluxDB both call points `values`; InfluxDB
/// reports some errors with status 200.
fn judge(status: u16, body: &[u8]) -> Result<Content> {
    let has = |text: &[u8]| body.windows(text.len()).any(|bytes| bytes == text);
    let excerpt = || String::from_utf8_lossy(&body[..body.len().min(300)]).trim_end().to_string();
    ensure!(status == 200, "status {status}: {}", excerpt());
    let is_empty = !has(b"\"values\":");
    ensure!(!(is_empty && has(b"\"error\":")), "{}", excerpt());
    Ok(Content { bytes: body.len(), is_empty })
}

/// The report on a type that the server does not take.
fn refused(query_type: &QueryType, options: &QueryOptions, reason: String) -> QueryReport {
    QueryReport {
        query_type: query_type.name.to_string(),
        count: 0,
        workers: options.workers,
        queries_per_second: 0.0,
        p50_ms: 0.0,
        p99_ms: 0.0,
        max_ms: 0.0,
        server_cpu_ms: None,
        answer_bytes: 0.0,
        empty_answers: 0,
        refused: Some(reason),
    }
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
        count: answered.len() as u64,
        workers: options.workers,
        queries_per_second: count / seconds,
        p50_ms: quantile(0.5),
        p99_ms: quantile(0.99),
        max_ms: quantile(1.0),
        server_cpu_ms: cpu_seconds.map(|cpu| cpu * 1e3 / count),
        answer_bytes: answered.iter().map(|one| one.content.bytes).sum::<usize>() as f64 / count,
        empty_answers: answered.iter().filter(|one| one.content.is_empty).count() as u64,
        refused: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, body: &str, is_empty: Option<bool>) {
        let found = judge(status, body.as_bytes()).ok();
        let expected = is_empty.map(|is_empty| Content { bytes: body.len(), is_empty });
        assert_eq!(found, expected, "{body}");
    }

    #[test]
    fn answers_are_judged() {
        let points = r#"{"data":{"result":[{"metric":{},"values":[[1,"2"]]}]}}"#;
        check(200, points, Some(false));
        check(422, points, None);
        check(200, r#"{"data":{"result":[]}}"#, Some(true));
        check(200, r#"{"results":[{"series":[{"name":"cpu","values":[[1,2]]}]}]}"#, Some(false));
        check(200, r#"{"results":[{"statement_id":0}]}"#, Some(true));
        check(200, r#"{"results":[{"statement_id":0,"error":"no database"}]}"#, None);
    }
}
