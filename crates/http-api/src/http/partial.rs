//! Answers of which something is missing: what a door collects, and how it says it.
//!
//! ```text
//! door ─ noting ─► store ─ rot ─► Missing ─┬─ JSON of Prometheus' API: warnings, "isPartial":true
//!                                          ├─ every format, when it is known before the body: a header
//!                                          ├─ exports, when it is found later: a body that breaks off
//!                                          ├─ always: a counter (the store's log line names the file)
//!                                          └─ denied: 503, or a body that breaks off
//! ```

use super::answer::Answer;
use super::request::LabelFilters;
use super::request::Request;
use super::request::selection::{self, has_switch};
use app::App;
use model::TimeRange;
use net::failure::{Failure, Kind};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use store::{Asks, Damage, DamagePlace, Missing, Questions};
use wire::prom_json::Notes;

pub use wire::partial_answer::{DENIED, HEADER};

/// What one answer lacks, and what is done about that.
pub struct Partial {
    missing: Arc<Missing>,
    is_denied: bool,
    asks: Asks,
    filters: LabelFilters,
    head: AtomicU8,
}

/// Head of a streamed answer: not sent, sent without the header of a partial answer.
const NOT_SENT: u8 = 0;
const SENT_AS_WHOLE: u8 = 1;
/// The client knows that something may be missing: by the header, by the body, or as it asked for that.
const TOLD: u8 = 2;

/// Whether answers that are not whole are denied: by `deny_partial_response` of VictoriaMetrics or
/// `partial_response` of Thanos, else by the flag query.deny-partial.
///
/// # Errors
/// 400 for a parameter that is neither yes nor no.
pub fn is_denied(app: &App, request: &Request) -> Result<bool, Failure> {
    let given = |name: &str| request.params.filled(name).is_some();
    match (given("deny_partial_response"), given("partial_response")) {
        (true, _) => has_switch(request, "deny_partial_response"),
        (false, true) => Ok(!has_switch(request, "partial_response")?),
        (false, false) => Ok(app.config.query.denies_partial),
    }
}

/// Whether a request says whether it takes partial answers.
fn says_which(request: &Request) -> bool {
    let names = ["deny_partial_response", "partial_response"];
    names.iter().any(|name| request.params.filled(name).is_some())
}

/// 503: the answer would not be whole. There is nothing to wait for, so no `Retry-After`.
pub fn denial(reason: impl Into<String>) -> Failure {
    Failure::new(Kind::Damaged, reason)
}

impl Partial {
    /// Nothing is missing yet.
    ///
    /// # Errors
    /// As [`is_denied`].
    pub fn of(app: &App, request: &Request) -> Result<Partial, Failure> {
        let asks = selection::asks(request)?;
        let (is_denied, filters) = (is_denied(app, request)?, request.filters.clone());
        let head = AtomicU8::new(if says_which(request) { TOLD } else { NOT_SENT });
        Ok(Partial { missing: Missing::new(), is_denied, asks, filters, head })
    }

    /// Nothing is missing yet from an answer in a format that has no place for warnings, and whose clients
    /// read no headers: it is whole or an error, unless the request says `deny_partial_response=0`.
    ///
    /// # Errors
    /// As [`is_denied`].
    pub fn of_mute_format(app: &App, request: &Request) -> Result<Partial, Failure> {
        let partial = Partial::of(app, request)?;
        let is_denied = partial.is_denied || !says_which(request);
        Ok(Partial { is_denied, ..partial })
    }

    /// The store, for an answer whose gaps are collected here and that is confined to the series
    /// which match the request's label filters.
    pub fn noting<'a>(&'a self, app: &'a App) -> Questions<'a> {
        let (list_size_max, _) = selection::memory_max(app);
        let noting = app.store.noting(&self.missing).asking(self.asks);
        noting.confined_to(&self.filters).listing_at_most(list_size_max)
    }

    /// Fails when something is missing and that is denied.
    ///
    /// # Errors
    /// 503.
    pub fn check(&self) -> Result<(), Failure> {
        if !self.is_denied || self.missing.is_empty() {
            return Ok(());
        }
        let text = self.missing.sentences().join("; ");
        let failure = denial(format!("{DENIED} (query.deny-partial): {text}"));
        Err(failure.advised("deny_partial_response=0 takes what there is"))
    }

    /// The same for who is writing already: the body breaks off. It does so, too, where the head said that
    /// the answer is whole.
    ///
    /// # Errors
    /// What [`Partial::check`] says, and what is missing.
    pub fn check_stream(&self) -> io::Result<()> {
        self.check().map_err(io::Error::other)?;
        if self.missing.is_empty() || self.head.load(Ordering::Acquire) != SENT_AS_WHOLE {
            return Ok(());
        }
        let text = self.missing.sentences().join("; ");
        Err(io::Error::other(denial(format!(
            "found while the answer was sent: {text}. Ask again: damage that is known is in the header \
             {HEADER}"
        ))))
    }

    /// A stream whose head has the header where something is missing by then, or where damage is known
    /// that touches the time of the answer.
    pub fn mark_stream(self: &Arc<Self>, app: &App, range: &TimeRange, answer: Answer) -> Answer {
        let touches = |one: &Damage| {
            let is_of_samples = !matches!(one.place, DamagePlace::SideFile | DamagePlace::Log);
            is_of_samples && one.samples != Some(0) && !one.span.intersect(range).is_empty()
        };
        // Where partial answers are denied the body breaks off.
        let is_known = !self.is_denied && app.store.damage().iter().any(touches);
        let partial = Arc::clone(self);
        let decide = move || {
            let is_partial = is_known || !partial.missing.is_empty();
            let head = if is_partial { TOLD } else { SENT_AS_WHOLE };
            // A client that already knows that the answer is partial stays marked so.
            let _ =
                partial.head.compare_exchange(NOT_SENT, head, Ordering::AcqRel, Ordering::Acquire);
            is_partial.then_some((HEADER, "true"))
        };
        Answer { late_header: Some(Box::new(decide)), ..answer }
    }

    /// To be called where the body of a stream says at its end what is missing.
    pub fn tell_in_body(&self) {
        self.head.store(TOLD, Ordering::Release);
    }

    /// Adds what is missing to the notes of an answer in JSON.
    pub fn note(&self, notes: &mut Notes) {
        if !self.missing.is_empty() {
            notes.is_partial = true;
            notes.warnings.extend(self.missing.sentences());
        }
    }

    /// Notes that a file which belongs to no partition is damaged, if it is and nothing has its content.
    pub fn note_side_file(&self, app: &App, file: &str) {
        let is_it = |one: &&Damage| {
            one.place == DamagePlace::SideFile && one.file == file && one.samples != Some(0)
        };
        app.store.damage().iter().filter(is_it).for_each(|damage| self.missing.note(damage));
    }

    /// An answer of Prometheus' shape, with what is missing from it.
    ///
    /// # Errors
    /// As [`Partial::check`].
    pub fn success(&self, app: &App, data: serde_json::Value) -> Result<Answer, Failure> {
        if self.missing.is_empty() {
            return Ok(Answer::success(data));
        }
        let warnings = self.missing.sentences();
        let answer = serde_json::json!({
            "status": "success", "isPartial": true, "data": data, "warnings": warnings,
        });
        self.finish(app, Answer::json(&answer))
    }

    /// Counts the answer if something is missing, now that all is read.
    pub fn count(&self, app: &App) {
        if !self.missing.is_empty() {
            app.telemetry.partial_answers.add(1);
        }
    }

    /// The header for what is known to be missing before the body is sent.
    pub fn mark(&self, answer: Answer) -> Answer {
        if self.missing.is_empty() { answer } else { mark(answer) }
    }

    /// All that is done to an answer that was read completely before it is sent, but for its notes.
    ///
    /// # Errors
    /// As [`Partial::check`].
    pub fn finish(&self, app: &App, answer: Answer) -> Result<Answer, Failure> {
        self.check()?;
        self.count(app);
        Ok(self.mark(answer))
    }
}

/// The answer with the header that says that something is missing.
pub fn mark(answer: Answer) -> Answer {
    answer.with_header(HEADER, "true")
}
