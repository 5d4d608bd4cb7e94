//! One legacy backend: its clients, who may ask it when, and its bounds.
//!
//! - Some requests at a time, so that it is not drowned, and its answers bounded in memory; others
//!   wait for their turn, as long as they would for an answer.
//! - After a few requests in a row without any answer it is left alone for some seconds, and then
//!   tried by one: queries should not each wait for what is not there.

use super::counters::{Counters, Outcome};
use super::faults::{Excess, is_refusal, refusal};
use super::influx::known::Known;
use super::limits::TakenLimits;
use super::rule::{Export, Kind, Rule};
use anyhow::{anyhow, bail, ensure};
use bytes::Bytes;
use http_client::client::{Access, Asked as Sent, BEARER, Client, OnBytes, PartialAnswer, Reply};
use http_client::influxdb::TOKEN;
use hyper::{Method, StatusCode};
use model::Timestamp;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use store::{Answer, Asked, Fault, Limit};
use vfs::Vfs;
use wire::partial_answer as partial;

/// Requests to one backend at a time.
const REQUESTS_MAX: usize = 8;
/// Requests in a row without an answer, after which it is left alone.
const SILENT_MAX: u32 = 3;
/// For how long.
const REST: Duration = Duration::from_secs(5);
/// Bytes of an error's text that come into a warning.
const REASON_SIZE_MAX: usize = 300;
/// Bytes of a list, which is read as a whole.
const LIST_SIZE_MAX: u64 = 256 << 20;
/// Bytes of a query in a URL; a longer one is sent as a form.
const URL_SIZE_MAX: usize = 4 << 10;

/// A server that is asked.
pub struct Backend {
    rule: Rule,
    name: String,
    limits: TakenLimits,
    /// Up to when it is asked, in nanoseconds: no later than the rule says.
    until: AtomicI64,
    state: Mutex<State>,
    /// Told when a request is over.
    over: Condvar,
    /// How its samples come, once its flags are known.
    export: OnceLock<Export>,
    counters: Arc<Counters>,
    /// What is known of an InfluxDB.
    influx: Arc<Known>,
    /// Whose clock says what is new; none before it is registered.
    clock: OnceLock<Arc<dyn Vfs>>,
}

#[derive(Default)]
struct State {
    running: usize,
    /// Those that wait for the next request, with their connections.
    clients: Vec<Client>,
    /// Requests in a row without any answer.
    silent: u32,
    /// Until when nobody asks.
    rests_until: Option<Instant>,
}

/// A request under way.
pub struct Request<'b> {
    backend: &'b Backend,
    client: Client,
    deadline: Instant,
}

/// What a request may take.
#[derive(Clone, Copy)]
pub struct Bounds<'b> {
    limits: TakenLimits,
    counters: &'b Counters,
}

impl Backend {
    /// Nobody is asked yet.
    ///
    /// # Errors
    /// A URL or a file that cannot be used.
    pub fn new(rule: Rule, limits: TakenLimits) -> anyhow::Result<Backend> {
        let backend = Backend {
            name: format!("legacy backend {}", rule.url),
            until: AtomicI64::new(rule.until),
            rule,
            limits,
            state: Mutex::default(),
            over: Condvar::new(),
            export: OnceLock::new(),
            counters: Arc::default(),
            influx: Arc::default(),
            clock: OnceLock::new(),
        };
        let client = backend.client();
        backend.state().clients.push(client.map_err(|error| error.context("--legacy"))?);
        Ok(backend)
    }

    /// Name in logs and warnings.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.rule.url
    }

    /// What is known of it, where it is an InfluxDB.
    pub fn influx(&self) -> Option<&Arc<Known>> {
        (self.rule.kind == Kind::InfluxDb).then_some(&self.influx)
    }

    /// Tells it the time from now on.
    pub(super) fn set_clock(&self, clock: Arc<dyn Vfs>) {
        let _ = self.clock.set(clock);
    }

    /// Time of the clock; `None` before it is set.
    pub(super) fn now(&self) -> Option<Timestamp> {
        self.clock.get().map(|clock| clock.now())
    }

    /// What the flag says of it.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Up to when it is asked.
    pub fn until_now(&self) -> Timestamp {
        self.until.load(Ordering::Acquire)
    }

    /// Asks it up to another time; the store has to know that it moves.
    pub(super) fn set_until(&self, until: Timestamp) {
        assert!(until <= self.rule.until, "the flag is the latest time");
        self.until.store(until, Ordering::Release);
    }

    /// Who asks it, as [`Client::login_digest`] says it.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn login_digest(&self) -> anyhow::Result<String> {
        Ok(self.client()?.login_digest())
    }

    /// Whether its last requests had no answer.
    pub fn is_away(&self) -> bool {
        SILENT_MAX <= self.state().silent
    }

    /// What is counted of it.
    pub fn counters(&self) -> Arc<Counters> {
        self.counters.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client(&self) -> anyhow::Result<Client> {
        let Rule { url, user, password_file, bearer_token_file, ca, .. } = &self.rule;
        let access = Access {
            user: user.as_deref(),
            password_file: password_file.as_deref(),
            bearer_token_file: bearer_token_file.as_deref(),
            token_word: if self.rule.kind == Kind::InfluxDb { TOKEN } else { BEARER },
            tls_ca: ca.as_deref(),
            ca_flag: "ca=FILE of --legacy",
            login_flags: "user= with password-file=, or bearer-token-file= of --legacy",
        };
        let client = Client::open(url, &access).map_err(|error| error.context(url.clone()))?;
        Ok(client.refusing_partial())
    }

    /// Asks, for a question of the store.
    pub(super) fn answer<T>(
        &self,
        asked: &Asked<'_>,
        ask: impl FnOnce(&mut Request<'_>) -> anyhow::Result<T>,
    ) -> Answer<T> {
        let own = Instant::now() + self.rule.timeout;
        self.with(asked.deadline.map_or(own, |at| at.min(own)), ask)
    }

    /// Asks when it is this request's turn.
    pub(super) fn with<T>(
        &self,
        deadline: Instant,
        ask: impl FnOnce(&mut Request<'_>) -> anyhow::Result<T>,
    ) -> Answer<T> {
        let began = Instant::now();
        let client = match self.enter(deadline) {
            Ok(client) => client,
            Err(reason) => {
                self.counters.note(Outcome::Refused, began.elapsed());
                return Err(Fault::Away(reason));
            }
        };
        // Gives the place back whatever happens, and not before what came of it is noted.
        let _place = Place(self);
        let opened = client.map_or_else(|| self.client(), Ok);
        let answer = opened.and_then(|client| {
            let mut request = Request { backend: self, client, deadline };
            let answer = ask(&mut request);
            if answer.is_ok() {
                self.state().clients.push(request.client);
            }
            answer
        });
        let fault = match answer {
            Ok(answer) => {
                self.note_heard();
                self.counters.note(Outcome::Answered, began.elapsed());
                return Ok(answer);
            }
            Err(error) => self.fault_of(&error),
        };
        let is_limit = matches!(fault, Fault::TooMuch { .. });
        let outcome = if is_limit { Outcome::Limit } else { Outcome::Failed };
        self.counters.note(outcome, began.elapsed());
        Err(fault)
    }

    /// Waits for a turn; a client that waits for work, if there is one.
    fn enter(&self, deadline: Instant) -> Result<Option<Client>, String> {
        let mut state = self.state();
        loop {
            let now = Instant::now();
            // One finds out whether it is there again; the others do not wait for that.
            let is_tried = SILENT_MAX <= state.silent && 0 < state.running;
            if is_tried || state.rests_until.is_some_and(|until| now < until) {
                return Err(format!(
                    "the last {SILENT_MAX} requests had no answer, so it is asked now and then only"
                ));
            }
            if state.running < REQUESTS_MAX {
                state.running += 1;
                return Ok(state.clients.pop());
            }
            if deadline <= now {
                return Err(format!("{REQUESTS_MAX} other requests to it are under way"));
            }
            let waited = self.over.wait_timeout(state, deadline - now);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn note_heard(&self) {
        let mut state = self.state();
        if SILENT_MAX <= state.silent {
            tracing::info!("{} answers again", self.name);
        }
        (state.silent, state.rests_until) = (0, None);
    }

    fn note_silent(&self, reason: &str) {
        let mut state = self.state();
        state.silent = state.silent.saturating_add(1);
        if state.silent == SILENT_MAX {
            tracing::warn!(
                "{} has not answered {SILENT_MAX} requests in a row: {reason}; answers that need \
                 it are not whole, and say so",
                self.name
            );
        }
        if SILENT_MAX <= state.silent {
            state.rests_until = Some(Instant::now() + REST);
        }
    }

    fn fault_of(&self, error: &anyhow::Error) -> Fault {
        if let Some(Excess(fault)) = error.downcast_ref() {
            self.note_heard();
            return fault.clone();
        }
        // Some of it is the backend's: one line, and short.
        let text = format!("{error:#}");
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let reason: String =
            line.chars().filter(|c| !c.is_control()).take(REASON_SIZE_MAX).collect();
        if is_refusal(error) {
            self.note_heard();
        } else {
            self.note_silent(&reason);
        }
        Fault::Away(reason)
    }
}

/// Given back when it goes.
struct Place<'b>(&'b Backend);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.state().running -= 1;
        // All of them: one alone might find that nobody may ask any more, and the others would wait on.
        self.0.over.notify_all();
    }
}

impl<'b> Request<'b> {
    /// How the backend is spoken to.
    pub fn kind(&self) -> Kind {
        self.backend.rule.kind
    }

    /// When nobody waits any longer.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// What the rule says.
    pub fn rule(&self) -> &'b Rule {
        &self.backend.rule
    }

    /// What is known of an InfluxDB.
    pub fn influx(&self) -> &'b Known {
        &self.backend.influx
    }

    /// How a VictoriaMetrics is to send its samples: by what the rule says, or its own flags do.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn export(&mut self) -> anyhow::Result<Export> {
        let backend = self.backend;
        if let Some(known) = backend.rule.export.or_else(|| backend.export.get().copied()) {
            return Ok(known);
        }
        let page = match self.text("/metrics", "") {
            Ok(page) => page,
            // A cluster has its page elsewhere, some keep theirs closed.
            Err(error) if is_refusal(&error) => Vec::new(),
            Err(error) => return Err(error),
        };
        let export = if deduplicates(&page) { Export::Lines } else { Export::Blocks };
        Ok(*backend.export.get_or_init(|| export))
    }

    /// Counts an aggregation that came instead of samples.
    pub fn note_aggregate(&self) {
        self.backend.counters.aggregates.add(1);
    }

    /// What the request may take.
    pub fn bounds(&self) -> Bounds<'b> {
        Bounds { limits: self.backend.limits, counters: &self.backend.counters }
    }

    /// An answer that is read as a whole.
    ///
    /// # Errors
    /// When there is none, or it is too large.
    pub fn text(&mut self, path: &str, query: &str) -> anyhow::Result<Vec<u8>> {
        let mut text = Vec::new();
        let size_max = self.backend.limits.size_max.min(LIST_SIZE_MAX);
        self.send(path, query, &mut |bytes| {
            let size = (text.len() + bytes.len()) as u64;
            check(size, size_max, (Limit::ElsewhereSize, "bytes of a list from a legacy backend"))?;
            text.extend_from_slice(bytes);
            Ok(())
        })?;
        self.backend.counters.bytes.add(text.len() as u64);
        Ok(text)
    }

    /// An answer that is taken as it comes.
    ///
    /// # Errors
    /// When there is none, it is too large, or `on_bytes` fails.
    pub fn stream(
        &mut self,
        path: &str,
        query: &str,
        asked: &Asked<'_>,
        on_bytes: OnBytes<'_>,
    ) -> anyhow::Result<Reply> {
        let bounds = self.bounds();
        self.send(path, query, &mut |bytes| {
            bounds.note_bytes(bytes.len(), asked)?;
            on_bytes(bytes)
        })
    }

    /// An answer that no question of the store pays for, of no more than a list may have.
    ///
    /// # Errors
    /// As [`Request::stream`].
    pub fn own(
        &mut self,
        path: &str,
        sent: &Sent<'_>,
        on_bytes: OnBytes<'_>,
    ) -> anyhow::Result<Reply> {
        let counters = self.backend.counters.clone();
        let size_max = self.backend.limits.size_max.min(LIST_SIZE_MAX);
        let mut size = 0;
        self.exchange(path, sent, &mut |bytes| {
            counters.bytes.add(bytes.len() as u64);
            size += bytes.len() as u64;
            check(size, size_max, (Limit::ElsewhereSize, "bytes of a list from a legacy backend"))?;
            on_bytes(bytes)
        })
    }

    /// The same of a request that is made already.
    ///
    /// # Errors
    /// As [`Request::stream`].
    pub fn ask(
        &mut self,
        path: &str,
        sent: &Sent<'_>,
        asked: &Asked<'_>,
        on_bytes: OnBytes<'_>,
    ) -> anyhow::Result<Reply> {
        let bounds = self.bounds();
        self.exchange(path, sent, &mut |bytes| {
            bounds.note_bytes(bytes.len(), asked)?;
            on_bytes(bytes)
        })
    }

    fn send(&mut self, path: &str, query: &str, on_bytes: OnBytes<'_>) -> anyhow::Result<Reply> {
        // Prometheus takes no forms for the values of a label.
        if query.len() <= URL_SIZE_MAX || path.ends_with("/values") {
            let whole = format!("{path}?{query}");
            let sent = Sent { method: Method::GET, path: &whole, headers: &[], body: Bytes::new() };
            return self.exchange(path, &sent, on_bytes);
        }
        let headers = &[("content-type", "application/x-www-form-urlencoded")];
        let body = Bytes::from(query.to_string());
        self.exchange(path, &Sent { method: Method::POST, path, headers, body }, on_bytes)
    }

    fn exchange(
        &mut self,
        path: &str,
        sent: &Sent<'_>,
        on_bytes: OnBytes<'_>,
    ) -> anyhow::Result<Reply> {
        let deadline = self.deadline;
        let reply = self.client.ask_until(deadline, sent, &mut |bytes| {
            ensure!(Instant::now() < deadline, "not within its time");
            on_bytes(bytes)
        });
        let reply = reply.map_err(|error| match error.is::<PartialAnswer>() {
            true => refusal(error.to_string()),
            false => error.context(path.to_string()),
        });
        let reply = reply?;
        let Reply { status, error, .. } = &reply;
        let is_there = match *status {
            _ if status.is_success() => return Ok(reply),
            StatusCode::TOO_MANY_REQUESTS => false,
            // A Quipu that has damaged files is there.
            StatusCode::SERVICE_UNAVAILABLE if error.contains(partial::DENIED) => true,
            _ => !status.is_server_error(),
        };
        let text = format!("{path}: {status}: {error}");
        if is_there {
            return Err(refusal(text));
        }
        Err(anyhow!(text))
    }
}

impl Bounds<'_> {
    /// Samples that may come, in which memory counts.
    pub fn weight_max(&self) -> usize {
        usize::try_from(self.limits.samples_max).unwrap_or(usize::MAX)
    }

    /// Bytes that may come.
    pub fn size_max(&self) -> usize {
        usize::try_from(self.limits.size_max).unwrap_or(usize::MAX)
    }

    /// Fails when there are more series than may be.
    ///
    /// # Errors
    /// The limit.
    pub fn check_series(&self, count: usize, asked: &Asked<'_>) -> anyhow::Result<()> {
        check(count as u64, asked.series_max as u64, (Limit::Series, "series of a legacy backend"))
    }

    /// Counts samples that came, and what they take of memory: in samples of 16 bytes, as the limit is.
    ///
    /// # Errors
    /// The limit, when there are more than may be.
    pub fn note_samples(
        &self,
        count: usize,
        weight: usize,
        asked: &Asked<'_>,
    ) -> anyhow::Result<()> {
        self.counters.samples.add(count as u64);
        let all = asked.taken.add_samples(weight as u64);
        let what = "samples from legacy backends";
        check(all, self.limits.samples_max, (Limit::ElsewhereSamples, what))
    }

    fn note_bytes(&self, count: usize, asked: &Asked<'_>) -> anyhow::Result<()> {
        self.counters.bytes.add(count as u64);
        let all = asked.taken.add_bytes(count as u64);
        let what = "bytes from legacy backends";
        check(all, self.limits.size_max, (Limit::ElsewhereSize, what))
    }
}

fn check(value: u64, max: u64, (limit, what): (Limit, &'static str)) -> anyhow::Result<()> {
    match value <= max {
        true => Ok(()),
        false => bail!(Excess(Fault::TooMuch { limit, what, value, max })),
    }
}

/// Whether a VictoriaMetrics' page of metrics says that it takes samples away when they are read.
fn deduplicates(page: &[u8]) -> bool {
    let page = String::from_utf8_lossy(page);
    let mut flags = page.lines().filter(|line| line.starts_with("flag{"));
    flags.any(|line| {
        let value = line.split_once("value=\"").and_then(|(_, rest)| rest.split_once('"'));
        let is_on = value.is_some_and(|(value, _)| value.chars().any(|c| ('1'..='9').contains(&c)));
        line.contains("name=\"dedup.minScrapeInterval\"") && is_on
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_a_turn_is_told_at_once_that_there_is_none() {
        let rule = "url=http://127.0.0.1:1 kind=prometheus until=1";
        let rule = crate::rule::parse(rule).expect("a rule").remove(0);
        let backend = Backend::new(rule, TakenLimits::default()).expect("a backend");
        let (began, wait) = (Instant::now(), Duration::from_secs(60));
        std::thread::scope(|scope| {
            for _ in 0..3 * REQUESTS_MAX {
                scope.spawn(|| {
                    let answer = backend.with(began + wait, |_| -> anyhow::Result<()> {
                        let (_keep, never) = std::sync::mpsc::channel::<()>();
                        let _ = never.recv_timeout(Duration::from_millis(500));
                        bail!("nobody is there")
                    });
                    assert!(matches!(answer, Err(Fault::Away(_))));
                });
            }
        });
        assert!(began.elapsed() < wait / 2, "{:?}", began.elapsed());
        assert_eq!(backend.state().running, 0);
    }

    #[test]
    fn flags_say_whether_samples_are_taken_away() {
        let page = |value: &str| {
            format!(
                "a 1\nflag{{name=\"dedup.minScrapeInterval\", value=\"{value}\", is_set=\"true\"}} 1\n"
            )
        };
        assert!(deduplicates(page("30s").as_bytes()));
        assert!(deduplicates(page("1ms").as_bytes()));
        assert!(!deduplicates(page("0s").as_bytes()));
        assert!(!deduplicates(b"flag{name=\"retentionPeriod\", value=\"30d\"} 1\n"));
        assert!(!deduplicates(b""));
    }
}
