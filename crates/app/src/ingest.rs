//! What all doors in share: appending batches, adding up what became of them.
//!
//! ```text
//! bytes ─ decode (wire) ─► batch ─ append (store) ─► Outcome ─► the protocol's answer
//! ```
//!
//! The good part of a request is stored, the bad lines are told by number; a store that cannot
//! take anything just now passes and is never the client's fault. So is one that cannot take new
//! series just now: what it knows is stored all the same, of the whole request, or a sender that
//! tries again and again would keep everything behind one new series waiting.

use crate::app::App;
use crate::write_conflicts::{drop_replaced_histograms, take_stale_markers};
use cli::quantity::count_of;
use model::{Rejection, Timestamp};
use net::failure::Failure;
use net::telemetry::{Lossy, Protocol};
use std::ops::Range;
use store::{AppendedExemplars, Durability, StartBatch};
use wire::{Counts, Decoded, LineErrors};

/// Time in which samples are whose timestamps are read in too small a unit.
const YEAR_1970: Range<Timestamp> = 0..365 * 86_400 * 1_000_000_000;
/// Refused lines that a plain answer repeats.
const LINES_SHOWN_MAX: usize = 10;

/// What became of a request, batch by batch.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Samples stored, native histograms not counted.
    pub samples: u64,
    /// Native histograms stored.
    pub histograms: u64,
    /// What the decoder refused.
    pub errors: LineErrors,
    /// The first rows that the store refused.
    pub rejections: Vec<Rejection>,
    /// All of them, counted.
    pub rejected: u64,
    /// What became of exemplars.
    pub exemplars: AppendedExemplars,
    /// What else was counted.
    pub counts: Counts,
    /// Whether a sample came whose time is not in 1970.
    has_other_year: bool,
    /// Rows that must be sent again, exemplars too.
    pub postponed_rows: u64,
    /// Why.
    postponed: Option<Failure>,
}

impl Outcome {
    /// Adds what became of a part of the same request.
    pub fn add(&mut self, part: Outcome) {
        self.samples += part.samples;
        self.histograms += part.histograms;
        self.errors.append(part.errors);
        self.rejections.extend(part.rejections);
        self.rejected += part.rejected;
        self.exemplars.add(part.exemplars);
        self.counts.add(&part.counts);
        self.has_other_year |= part.has_other_year;
        self.postponed_rows += part.postponed_rows;
        self.postponed = self.postponed.take().or(part.postponed);
    }

    /// Adds rows that the store refuses.
    pub fn reject(&mut self, rejections: Vec<Rejection>) {
        self.rejected += rejections.len() as u64;
        self.rejections.extend(rejections);
    }

    /// Renames the lines that were refused.
    pub fn rename_positions(&mut self, name: impl Fn(u32) -> u32) {
        self.errors.rename_positions(&name);
        for rejection in &mut self.rejections {
            rejection.position = name(rejection.position);
        }
    }

    /// Whether everything was taken.
    pub fn is_complete(&self) -> bool {
        self.errors.is_empty() && self.rejected == 0
    }

    /// Stores a decoded batch, its exemplars and its metadata. What must come again is told by
    /// [`Outcome::finish`].
    ///
    /// # Errors
    /// When the store takes nothing at all.
    pub fn append(
        &mut self,
        app: &App,
        mut decoded: Decoded<'_>,
        durability: Durability,
    ) -> Result<(), Failure> {
        if !app.config.insert.keeps_starts {
            self.counts.created_timestamps += decoded.starts.len() as u64;
            decoded.starts.clear();
        }
        self.note_years(&decoded);
        self.histograms += drop_replaced_histograms(&mut decoded);
        let markers = take_stale_markers(&mut decoded);
        // Exemplars, start timestamps and markers wait for what was logged before them, too.
        let is_last = decoded.exemplars.is_empty() && decoded.starts.is_empty();
        let of_rows = if is_last && markers.is_empty() { durability } else { Durability::Relaxed };
        self.append_samples(app, &mut decoded, (of_rows, durability))?;
        if !markers.is_empty() {
            self.samples += markers.put_back(app, &mut decoded);
            self.append_samples(app, &mut decoded, (durability, durability))?;
        }
        if !decoded.starts.is_empty() {
            self.append_starts(app, &decoded, durability)?;
        }
        if !decoded.exemplars.is_empty() {
            let Decoded { batch, exemplars, .. } = &decoded;
            let appended = app.store.append_exemplars(batch, exemplars, durability);
            let appended = self.taken(appended)?;
            self.exemplars.add(appended);
        }
        self.errors.append(decoded.errors);
        self.counts.add(&decoded.counts);
        if !decoded.metadata.is_empty() {
            app.store.put_metadata(&decoded.metadata).map_err(Failure::of_write)?;
        }
        Ok(())
    }

    fn note_years(&mut self, decoded: &Decoded<'_>) {
        let rows = decoded.batch.rows.iter().map(|row| row.timestamp);
        let histograms = decoded.histograms.iter().map(|row| row.timestamp);
        // The first one decides, mostly.
        let mut times = rows.chain(histograms);
        self.has_other_year = self.has_other_year || times.any(|time| !YEAR_1970.contains(&time));
    }

    /// Whether samples were stored and the times of all are in 1970.
    pub fn is_all_in_1970(&self) -> bool {
        self.samples + self.histograms != 0 && !self.has_other_year
    }

    /// Stores the rows, then the native histograms of a batch, each as durably as said.
    fn append_samples(
        &mut self,
        app: &App,
        decoded: &mut Decoded<'_>,
        (of_rows, of_histograms): (Durability, Durability),
    ) -> Result<(), Failure> {
        if !decoded.batch.rows.is_empty() {
            let appended = self.taken(app.store.append(&decoded.batch, of_rows))?;
            self.samples += appended.samples;
            self.rejected += appended.rejected;
            self.rejections.extend(appended.rejections);
        }
        if !decoded.histograms.is_empty() {
            let batch = decoded.histogram_batch();
            let appended = self.taken(app.store.append_histograms(&batch, of_histograms))?;
            self.histograms += appended.samples;
            self.counts.histograms += appended.rejected;
            self.rejected += appended.rejected;
            self.rejections.extend(appended.rejections);
        }
        Ok(())
    }

    /// Stores the start timestamps of what was appended; what a limit refuses is counted.
    fn append_starts(
        &mut self,
        app: &App,
        decoded: &Decoded<'_>,
        durability: Durability,
    ) -> Result<(), Failure> {
        let Decoded { batch, starts: rows, context, .. } = decoded;
        let starts = StartBatch { bytes: &batch.bytes, rows, decoder: batch.decoder, context };
        let appended = self.taken(app.store.append_starts(&starts, durability))?;
        self.counts.created_timestamps += appended.refused;
        Ok(())
    }

    /// What was taken of a batch; the rest of the request goes on where only some rows must come
    /// again.
    fn taken<T: Default>(&mut self, result: store::Result<T>) -> Result<T, Failure> {
        match result {
            Err(error @ store::Error::NewSeriesRefused { count, .. }) => {
                self.postponed_rows += count;
                self.postponed.get_or_insert_with(|| error.into());
                Ok(T::default())
            }
            result => result.map_err(Failure::of_write),
        }
    }

    /// Exemplars that are not kept, whoever refused them.
    pub fn exemplars_refused(&self) -> u64 {
        self.counts.exemplars + self.exemplars.out_of_order + self.exemplars.refused
    }

    /// Adds the request to the counters, once all of it was appended.
    ///
    /// # Errors
    /// When some of it must be sent again: whatever else is to be told waits until then.
    pub fn finish(&self, app: &App, protocol: Protocol, body_size: usize) -> Result<(), Failure> {
        let counters = app.telemetry.protocol(protocol);
        counters.samples.add(self.samples);
        counters.histograms.add(self.histograms);
        counters.bytes.add(body_size as u64);
        counters.lines_refused.add(self.errors.count());
        counters.rows_refused.add(self.rejected);
        let lossy = [
            (Lossy::Strings, self.counts.strings),
            (Lossy::InexactIntegers, self.counts.inexact_integers),
            (Lossy::Booleans, self.counts.booleans),
            (Lossy::Exemplars, self.exemplars_refused()),
            (Lossy::Histograms, self.counts.histograms),
            (Lossy::RoundedHistograms, self.counts.rounded_histograms),
            (Lossy::CreatedTimestamps, self.counts.created_timestamps),
        ];
        for (kind, count) in lossy.into_iter().filter(|(_, count)| *count != 0) {
            if app.telemetry.lossy(kind, count) && kind == Lossy::Strings {
                // Once: senders such as Telegraf have some in every batch, and ignore the answer.
                self.log_dropped_strings(app, protocol);
            }
        }
        self.postponed.clone().map_or(Ok(()), Err)
    }

    /// Logs that string fields are dropped: with the first field and its limit, or with the flag that
    /// turns strings off.
    fn log_dropped_strings(&self, app: &App, protocol: Protocol) {
        let name = protocol.as_str();
        if !app.texts.is_on() {
            tracing::info!("{name}: string fields are dropped, as --influx.max-strings is 0");
            return;
        }
        let dropped = self.errors.kept().iter().find_map(|error| dropped_string(&error.reason));
        let dropped =
            dropped.unwrap_or("some are beyond influx.max-strings or influx.max-string-size");
        tracing::warn!(
            "{name}: string fields are dropped, the numbers of their lines are stored: {dropped}. \
             Raise --influx.max-strings or --influx.max-string-size; quipu_insert_lossy_total \
             counts dropped strings"
        );
    }

    /// What was refused, for answers that are plain text; `unit` is `line` or `series`.
    pub fn report(&self, unit: &str) -> String {
        let refused = self.errors.refused() + self.rejected;
        let stored = self.samples + self.histograms;
        let or_sample = if refused == 1 { "sample" } else { "samples" };
        let (stored, units) = (count_of(stored, "sample"), count_of(refused, unit));
        let mut text = format!("{stored} stored, {units} or {or_sample} refused:");
        let errors = self.errors.kept().iter().map(|error| (error.position, &error.reason));
        let rejections = self.rejections.iter().map(|row| (row.position, &row.reason));
        let mut all: Vec<(u32, &String)> = errors.chain(rejections).collect();
        all.sort_by_key(|(position, _)| *position);
        for (position, reason) in all.iter().take(LINES_SHOWN_MAX) {
            text.push_str(&format!("\n{unit} {position}: {reason}"));
        }
        if (LINES_SHOWN_MAX as u64) < self.errors.count() + self.rejected {
            text.push_str("\n...");
        }
        text
    }
}

/// The part of a decoder's error that names a dropped string field and its limit.
fn dropped_string(reason: &str) -> Option<&str> {
    // The line of the client stands before it. Quotes in a field's name are escaped.
    let fault = reason.rfind("field \"").and_then(|at| reason.get(at..)).unwrap_or(reason);
    fault.contains("influx.max-string").then_some(fault)
}
