//! `COPY metrics FROM STDIN`: lines of exposition text to samples, all of them or none.
//!
//! ```text
//! pieces of any size ─► whole lines are looked at as they come ─► the end: all are stored
//!                          └─ a bad one: the COPY fails with its number and text, nothing is stored
//! ```
//! With `ON_ERROR ignore` lines are stored as they come, bad ones are counted and left out.
//! What the store itself refuses while it stores (limits on labels and series) comes too late for the
//! lines before it.

use crate::app::App;
use crate::failure::{Failure, Kind};
use crate::ingest::Outcome;
use crate::telemetry::Protocol;
use model::{LabelsBuilder, WriteBatch};
use sql::statements::CopyIn;
use std::collections::HashSet;
use store::Durability;
use wire::exposition::{Created, ExpositionKeys, Format, Options, decode};
use wire::{LineError, Start};

/// Bytes of one `COPY` that is stored as a whole.
pub const WHOLE_SIZE_MAX: usize = 256 << 20;
/// Bytes that are looked at, or stored, at a time.
const PIECE_SIZE: usize = 1 << 20;
/// Bytes of a line that an error shows.
const SHOWN_SIZE_MAX: usize = 200;

/// Why a `COPY` failed.
#[derive(Debug)]
pub struct CopyError {
    /// PostgreSQL's code for it.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub context: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// A `COPY` on its way.
pub struct Copying {
    asked: CopyIn,
    keys: ExpositionKeys,
    /// The time of lines that have none: when it began.
    now: i64,
    /// What came and is not stored.
    bytes: Vec<u8>,
    /// How far it was looked at, or stored; always the start of a line.
    seen: Start,
    /// Lines in `seen` and before that were dropped from `bytes`.
    outcome: Outcome,
    received: usize,
    rejected: u64,
    /// Keys that were found to be good, by their hashes.
    checked: HashSet<u128>,
}

/// What came of a `COPY`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Samples stored.
    pub samples: u64,
    /// Lines left out.
    pub rejected: u64,
}

impl Copying {
    /// One that has just begun.
    pub fn new(asked: CopyIn, keys: ExpositionKeys, now: i64) -> Copying {
        Copying {
            asked,
            keys,
            now,
            bytes: Vec::new(),
            seen: Start::default(),
            outcome: Outcome::default(),
            received: 0,
            rejected: 0,
            checked: HashSet::new(),
        }
    }

    /// Takes a piece. Returns whether there is so much that [`Copying::work`] should follow.
    ///
    /// # Errors
    /// When it is more than one `COPY` may be.
    pub fn push(&mut self, piece: &[u8]) -> Result<bool, CopyError> {
        self.received += piece.len();
        if WHOLE_SIZE_MAX < self.bytes.len() + piece.len() {
            return Err(CopyError {
                code: "54000",
                message: format!(
                    "COPY of more than {WHOLE_SIZE_MAX} bytes cannot be stored as a whole"
                ),
                context: Some(format!("COPY {}", self.asked.table)),
                hint: Some(
                    "Copy it in parts, or WITH (ON_ERROR ignore), which stores as it goes.".into(),
                ),
            });
        }
        self.bytes.extend_from_slice(piece);
        Ok(PIECE_SIZE <= self.bytes.len() - self.seen.offset)
    }

    /// Looks at the whole lines that came, or stores them.
    ///
    /// # Errors
    /// A bad line, or a store that takes nothing.
    pub fn work(&mut self, app: &App) -> Result<(), CopyError> {
        let end = memchr_last_line(&self.bytes);
        self.work_until(app, end)
    }

    fn work_until(&mut self, app: &App, end: usize) -> Result<(), CopyError> {
        if end <= self.seen.offset {
            return Ok(());
        }
        match self.asked.skips_errors {
            true => {
                self.store(app, end, Durability::Synced)?;
                self.bytes.drain(..end);
                self.seen.offset = 0;
                self.check_rejected()
            }
            false => self.look(app, end),
        }
    }

    /// Ends it: what came is stored and on disk.
    ///
    /// # Errors
    /// As [`Copying::work`].
    pub fn finish(&mut self, app: &App) -> Result<Copied, CopyError> {
        if self.bytes.ends_with(b"\\.\n") || self.bytes == b"\\." || self.bytes.ends_with(b"\n\\.")
        {
            let kept = self.bytes.len() - 2 - usize::from(self.bytes.ends_with(b"\n"));
            self.bytes.truncate(kept);
        }
        let end = self.bytes.len();
        self.work_until(app, end)?;
        if !self.asked.skips_errors {
            self.seen = Start::default();
            self.store(app, end, Durability::Synced)?;
        }
        let finished = self.outcome.finish(app, Protocol::Postgres, self.received);
        finished.map_err(|failure| failed(&failure))?;
        Ok(Copied { samples: self.outcome.samples, rejected: self.rejected })
    }

    fn options(&self) -> Options {
        Options { format: Format::Text, now: self.now, created: Created::Samples }
    }

    /// Decodes lines to find bad ones.
    fn look(&mut self, app: &App, end: usize) -> Result<(), CopyError> {
        let (options, hasher) = (self.options(), app.store.hasher());
        let mut next = Some(self.seen);
        while let Some(start) = next {
            let body = &self.bytes[..end];
            let decoded = decode(body, start, &options, &hasher, &self.keys);
            let decoded = decoded.map_err(|error| failed(&error.into()))?;
            let bad_key = first_bad_key(&decoded.batch, &mut self.checked);
            let bad_line = decoded.errors.kept().first().cloned();
            let first = [bad_key, bad_line].into_iter().flatten().min_by_key(|one| one.position);
            if let Some(error) = first {
                return Err(self.bad_line(&error));
            }
            next = decoded.rest;
        }
        self.seen = Start {
            offset: end,
            line: self.seen.line + count_lines(&self.bytes[self.seen.offset..end]),
        };
        Ok(())
    }

    fn store(&mut self, app: &App, end: usize, durability: Durability) -> Result<(), CopyError> {
        let (options, hasher) = (self.options(), app.store.hasher());
        let mut next = Some(self.seen);
        while let Some(start) = next {
            let body = &self.bytes[..end];
            let decoded = decode(body, start, &options, &hasher, &self.keys);
            let decoded = decoded.map_err(|error| failed(&error.into()))?;
            next = decoded.rest;
            // Only the last waits for the disk: it waits for all before it, too.
            let durability = if next.is_some() { Durability::Relaxed } else { durability };
            let refused = (decoded.errors.count(), self.outcome.rejected);
            self.outcome.append(app, decoded, durability).map_err(|failure| failed(&failure))?;
            self.rejected += refused.0 + (self.outcome.rejected - refused.1);
            if !self.asked.skips_errors
                && let Some(row) = self.outcome.rejections.first()
            {
                let error = LineError { position: row.position, reason: row.reason.clone() };
                return Err(self.bad_line(&error));
            }
        }
        self.seen.line += count_lines(&self.bytes[self.seen.offset..end]);
        Ok(())
    }

    fn check_rejected(&self) -> Result<(), CopyError> {
        match self.asked.reject_limit.filter(|limit| *limit < self.rejected) {
            Some(limit) => Err(CopyError {
                code: "22P02",
                message: format!(
                    "skipped more than REJECT_LIMIT ({limit}) rows due to data type incompatibility"
                ),
                context: Some(format!("COPY {}", self.asked.table)),
                hint: None,
            }),
            None => Ok(()),
        }
    }

    fn bad_line(&self, error: &LineError) -> CopyError {
        let nth = error.position.saturating_sub(1) as usize;
        let mut lines = self.bytes.split(|byte| *byte == b'\n');
        let text = lines.nth(nth).unwrap_or_default();
        let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN_SIZE_MAX)]);
        CopyError {
            code: "22P02",
            message: format!("invalid input syntax for prometheus sample: {}", error.reason),
            context: Some(format!(
                "COPY {}, line {}: \"{}\"",
                self.asked.table,
                error.position,
                shown.trim_end()
            )),
            hint: Some("WITH (ON_ERROR ignore) leaves bad lines out.".into()),
        }
    }
}

/// Labels are looked at when the store meets a series for the first time: too late for who wants all
/// lines or none.
fn first_bad_key(batch: &WriteBatch<'_>, checked: &mut HashSet<u128>) -> Option<LineError> {
    let (mut tags, mut name) = (LabelsBuilder::new(), String::new());
    for row in &batch.rows {
        if !checked.insert(row.hash) {
            continue;
        }
        tags.clear();
        name.clear();
        let key = batch.key(row);
        let decoded = batch
            .decoder
            .tags(key, &mut tags)
            .and_then(|()| batch.decoder.metric_name(key, "", &mut name));
        if let Err(error) = decoded {
            return Some(LineError { position: row.position, reason: error.to_string() });
        }
    }
    None
}

fn failed(failure: &Failure) -> CopyError {
    let code = match failure.kind {
        Kind::ReadOnly => "25006",
        Kind::Busy => "53300",
        Kind::Limit => "54000",
        Kind::BadInput => "22P02",
        _ => "58000",
    };
    CopyError {
        code,
        message: failure.message.clone(),
        context: None,
        hint: failure.remedy.clone(),
    }
}

/// Where the last whole line ends.
fn memchr_last_line(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

fn count_lines(bytes: &[u8]) -> u32 {
    let count = bytes.iter().filter(|byte| **byte == b'\n').count();
    u32::try_from(count).unwrap_or(u32::MAX)
}
