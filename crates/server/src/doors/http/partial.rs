//! Answers of which something is missing: what a door collects, and how it says it.
//!
//! ```text
//! door ─ noting ─► store ─ rot ─► Missing ─┬─ JSON of Prometheus' API: warnings, "isPartial":true
//!                                          ├─ every format, when it is known before the body: a header
//!                                          ├─ always: a counter (the store's log line names the file)
//!                                          └─ denied: 503, or a body that breaks off
//! ```

use super::answer::Answer;
use super::request::Request;
use super::selection::{self, has_switch};
use crate::app::App;
use crate::failure::{Failure, Kind};
use std::io;
use std::sync::Arc;
use store::{Asks, Damage, DamagePlace, Missing, Questions};
use wire::prom_json::Notes;

/// The header of an answer of which something is missing.
const HEADER: &str = "x-quipu-partial";

/// What one answer lacks, and what is done about that.
pub struct Partial {
    missing: Arc<Missing>,
    is_denied: bool,
    asks: Asks,
}

/// Whether answers that are not whole are denied: by `deny_partial_response`, else by the flag
/// query.deny-partial.
///
/// # Errors
/// 400 for a parameter that is neither yes nor no.
pub fn is_denied(app: &App, request: &Request) -> Result<bool, Failure> {
    match request.params.filled("deny_partial_response") {
        None => Ok(app.config.query.denies_partial),
        Some(_) => has_switch(request, "deny_partial_response"),
    }
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
        Ok(Partial { missing: Missing::new(), is_denied: is_denied(app, request)?, asks })
    }

    /// The store, for an answer whose gaps are collected here.
    pub fn noting<'a>(&'a self, app: &'a App) -> Questions<'a> {
        app.store.noting(&self.missing).asking(self.asks)
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
        Err(denial(format!("partial answers are denied (query.deny-partial): {text}")))
    }

    /// The same for who is writing already: the body breaks off.
    ///
    /// # Errors
    /// What [`Partial::check`] says.
    pub fn check_stream(&self) -> io::Result<()> {
        self.check().map_err(io::Error::other)
    }

    /// Adds what is missing to the notes of an answer in JSON.
    pub fn note(&self, notes: &mut Notes) {
        if !self.missing.is_empty() {
            notes.is_partial = true;
            notes.warnings.extend(self.missing.sentences());
        }
    }

    /// Notes that a file which belongs to no partition is damaged, if it is.
    pub fn note_side_file(&self, app: &App, file: &str) {
        let is_it = |one: &&Damage| one.place == DamagePlace::SideFile && one.file == file;
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
