//! Copies windows, one after the other: a thread reads and packs, this one sends.
//!
//! A window is done when all of it is stored; the progress file says so, so that a later run begins with
//! the next. One that broke off is read again from its beginning: what is stored twice is there once.

pub mod kept;
pub mod overlap;
pub mod progress;
pub mod refused;
pub mod target;
pub mod until;

use super::nameless::Nameless;
use super::series::Filter;
use super::source::{Source, Window};
use anyhow::anyhow;
use cli::checkpoint::Checkpoint;
use cli::quantity::format_count;
use http_client::client::Client;
use http_client::retry::{PAUSE, TRIES_MAX};
use indicatif::{ProgressBar, ProgressStyle};
use kept::KeptCounts;
use overlap::Counter;
use progress::{Part, Progress};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};
use target::{KnownPolicies, Packer, Request, send};
use until::Mover;

/// Requests that wait to be sent, beside the one under way.
const AHEAD: usize = 2;
/// How often it is written down how far a copy is, at most.
const SAVED_EVERY: Duration = Duration::from_secs(1);
/// What was refused that is shown in words.
const REFUSALS_SHOWN: u64 = 10;

/// What a copy did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Copied {
    /// Samples that were sent.
    pub samples: u64,
    /// Requests of which something was refused.
    pub refused: u64,
}

/// How it is done.
pub struct Copier<'a> {
    /// The server that stores.
    pub client: Client,
    /// Retention policies that were created on the target so far.
    pub policies: KnownPolicies,
    /// What is copied.
    pub filter: &'a Filter,
    /// Samples a second at most.
    pub rate_max: Option<f64>,
    /// Where it is remembered how far it is.
    pub checkpoint: Checkpoint,
    /// How far it is.
    pub progress: Progress,
    /// When that was written down.
    pub saved: Option<Instant>,
    /// What was left out of the windows that were read.
    pub nameless: Nameless,
    /// Counts of what the target has.
    pub kept: KeptCounts,
    /// Who moves the `until` of a legacy backend behind it.
    pub mover: Option<Mover>,
}

impl Copier<'_> {
    /// Copies all windows that are not done yet.
    ///
    /// # Errors
    /// When the source breaks off again and again, or the server does not take samples.
    pub fn run(&mut self, source: &mut dyn Source, windows: &[Window]) -> anyhow::Result<Copied> {
        // Where it cannot be written it is better known before hours of copying.
        self.checkpoint.write(&self.progress)?;
        let mut copied = Copied::default();
        let shown = Shown::new(source, windows)?;
        for window in windows {
            if self.progress.done.contains_key(&window.name) {
                shown.end(source, window);
                shown.bar.reset_eta();
                continue;
            }
            let before = copied.refused;
            let stored = match self.window(source, window, &mut copied, &shown) {
                Ok(stored) => stored,
                Err(Failure::Source(error)) if source.is_apart() => {
                    let why = format!("{error:#}");
                    shown.bar.suspend(|| eprintln!("quipu: {window}: {why}"));
                    self.note(window, Err(why));
                    shown.end(source, window);
                    continue;
                }
                Err(Failure::Source(error) | Failure::Target(error)) => {
                    self.checkpoint.write(&self.progress)?;
                    self.move_until(windows, Mover::advance_now, &shown);
                    return Err(error.context(format!("{window}: run it again to go on from here")));
                }
            };
            self.note(
                window,
                match copied.refused - before {
                    0 => Ok(stored),
                    refused => Err(format!("{refused} requests had samples that were refused")),
                },
            );
            if self.progress.done.contains_key(&window.name) {
                let of = (window, shown.start);
                self.kept.note(&mut self.client, &mut self.progress, of);
            }
            self.progress.lacks |=
                !source.left_out().is_empty() || self.nameless.left_out().is_some();
            self.save()?;
            self.move_until(windows, Mover::advance, &shown);
            shown.end(source, window);
        }
        self.move_until(windows, Mover::advance_now, &shown);
        shown.bar.finish_and_clear();
        self.checkpoint.write(&self.progress)?;
        Ok(copied)
    }

    /// Writes down how far it is, if that was not done just now: what is lost of it by a kill is copied again.
    fn save(&mut self) -> anyhow::Result<()> {
        if self.saved.is_none_or(|saved| SAVED_EVERY <= saved.elapsed()) {
            self.checkpoint.write(&self.progress)?;
            self.saved = Some(Instant::now());
        }
        Ok(())
    }

    /// Lets the `until` of a legacy backend follow, where nothing was left out of what was copied, now
    /// or before it was interrupted.
    fn move_until(
        &mut self,
        windows: &[Window],
        advance: fn(&mut Mover, &[Window], &mut Progress) -> Option<String>,
        shown: &Shown,
    ) {
        let Some(mover) = self.mover.as_mut().filter(|_| !self.progress.lacks) else {
            return;
        };
        if let Some(words) = advance(mover, windows, &mut self.progress) {
            shown.bar.suspend(|| eprintln!("{words}"));
        }
    }

    /// Notes how many samples a window had, or why it is not done.
    fn note(&mut self, window: &Window, outcome: Result<u64, String>) {
        let name = window.name.clone();
        self.progress.part = None;
        match outcome {
            Ok(stored) => {
                self.progress.undone.remove(&name);
                self.progress.done.insert(name, stored);
            }
            Err(why) => drop(self.progress.undone.insert(name, why)),
        }
    }

    /// Copies one, however often it takes; returns its samples.
    fn window(
        &mut self,
        source: &mut dyn Source,
        window: &Window,
        copied: &mut Copied,
        shown: &Shown,
    ) -> Result<u64, Failure> {
        let mut pause = PAUSE;
        for tried in 1.. {
            let before = *copied;
            let earlier = self.part_of(window).map_or(0, |part| part.samples);
            match self.try_once(source, window, copied, shown) {
                Ok(()) => return Ok(earlier + copied.samples - before.samples),
                // Samples before the error are stored and are not read again in this run.
                Err(Failure::Source(error)) if source.is_apart() => {
                    return Err(Failure::Source(error));
                }
                Err(Failure::Source(error)) => {
                    // What was sent of it comes again, but for what stands before a mark.
                    let stored = self.part_of(window).map_or(0, |part| part.samples);
                    let samples = before.samples + stored.saturating_sub(earlier);
                    *copied = Copied { samples, ..before };
                    if TRIES_MAX <= tried {
                        let words = format!("gave up after {TRIES_MAX} tries");
                        return Err(Failure::Source(error.context(words)));
                    }
                    let words = format!("quipu: {window}: {error:#}; reading it again");
                    shown.bar.suspend(|| eprintln!("{words}"));
                    std::thread::sleep(pause);
                    pause *= 2;
                }
                Err(failure) => return Err(failure),
            }
        }
        unreachable!("the last try returns")
    }

    /// How far a window is, if it is the one under way.
    fn part_of(&self, window: &Window) -> Option<&Part> {
        self.progress.part.as_ref().filter(|part| part.window == window.name)
    }

    fn try_once(
        &mut self,
        source: &mut dyn Source,
        window: &Window,
        copied: &mut Copied,
        shown: &Shown,
    ) -> Result<(), Failure> {
        let (requests, arriving) = sync_channel::<Request>(AHEAD);
        let filter = self.filter;
        let mut counter = (!self.progress.had.is_empty()).then(Counter::default);
        let counting = counter.as_mut();
        let mut part = self.part_of(window).cloned();
        if let Some(Part { mark, .. }) = part {
            source.go_on(window, mark);
        }
        let mut nameless = Nameless::default();
        let left_out = &mut nameless;
        let is_apart = source.is_apart();
        let copied = std::thread::scope(|scope| {
            let reader = scope.spawn(move || -> anyhow::Result<()> {
                let mut counting = counting;
                let mut packer = Packer::new(filter);
                let mut ship =
                    |request| requests.send(request).map_err(|_| anyhow!("nobody sends any more"));
                let read = source.read(window, &mut |given| {
                    counting.iter_mut().for_each(|counter| counter.take(&given));
                    packer.push(given, &mut ship)
                });
                // What was read before something was wrong is stored, too.
                let finished = packer.finish(&mut ship);
                *left_out = packer.into_nameless();
                read.and(finished)
            });
            let mut sent = part.as_ref().map_or(0, |part| part.samples);
            let before = copied.refused;
            for request in arriving {
                let Request { samples, mark, .. } = request;
                let refusal = self.ship(request).map_err(Failure::Target)?;
                if let Some(words) = refusal {
                    copied.refused += 1;
                    if copied.refused <= REFUSALS_SHOWN {
                        shown.bar.suspend(|| eprintln!("quipu: {window}: refused: {words}"));
                    }
                }
                copied.samples += samples;
                sent += samples;
                // A later run must meet what was refused again.
                let is_all_stored = copied.refused == before;
                if let Some(mark) = mark.filter(|_| is_all_stored) {
                    part = Some(Part { window: window.name.clone(), mark, samples: sent });
                }
                self.progress.part = part.clone().filter(|_| is_all_stored);
                self.save().map_err(Failure::Target)?;
                self.keep_to_rate(copied.samples, shown.start);
                shown.sent(copied.samples);
            }
            match reader.join() {
                Ok(read) => read.map_err(Failure::Source),
                Err(_) => Err(Failure::Source(anyhow!("the reader panicked"))),
            }
        });
        // What broke off is read again, but where that is of no use.
        if copied.is_ok() || is_apart {
            self.nameless.add(nameless);
        }
        if let (Ok(()), Some(counter)) = (&copied, counter) {
            counter.finish(&mut self.progress);
        }
        copied
    }

    /// Sends a request, once the target has the retention policy that its path names.
    fn ship(&mut self, request: Request) -> anyhow::Result<Option<String>> {
        self.policies.ensure(&mut self.client, &request.door)?;
        send(&mut self.client, request)
    }

    fn keep_to_rate(&self, samples: u64, start: Instant) {
        if let Some(rate_max) = self.rate_max {
            let due = Duration::try_from_secs_f64(samples as f64 / rate_max).unwrap_or_default();
            std::thread::sleep(due.saturating_sub(start.elapsed()));
        }
    }
}

/// What people see of a copy under way, on standard error: windows, or bytes where the source knows them.
struct Shown {
    bar: ProgressBar,
    start: Instant,
    read: Option<Arc<AtomicU64>>,
    /// What the bar says of windows that are over, and what was read then.
    over: Cell<(u64, u64)>,
}

impl Shown {
    fn new(source: &dyn Source, windows: &[Window]) -> anyhow::Result<Shown> {
        let read = source.bytes_read();
        let size: u64 = windows.iter().filter_map(|one| source.size(one)).sum();
        let (length, template) = match &read {
            Some(_) => (
                size,
                "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {msg}, {eta} left",
            ),
            None => (windows.len() as u64, "{bar:30} {pos} of {len} windows, {msg}, {eta} left"),
        };
        let bar = ProgressBar::new(length);
        bar.set_style(ProgressStyle::with_template(template)?);
        bar.set_message(rate(0, Instant::now()));
        Ok(Shown { bar, start: Instant::now(), read, over: Cell::default() })
    }

    fn read(&self) -> u64 {
        self.read.as_ref().map_or(0, |read| read.load(Ordering::Relaxed))
    }

    /// Shows how many samples were sent.
    fn sent(&self, samples: u64) {
        if self.read.is_some() {
            let (over, read) = self.over.get();
            self.bar.set_position(over + self.read().saturating_sub(read));
        }
        self.bar.set_message(rate(samples, self.start));
    }

    /// A window is over, however it went.
    fn end(&self, source: &dyn Source, window: &Window) {
        let size = if self.read.is_some() { source.size(window).unwrap_or(0) } else { 1 };
        self.over.set((self.over.get().0 + size, self.read()));
        self.bar.set_position(self.over.get().0);
    }
}

/// Who failed.
enum Failure {
    Source(anyhow::Error),
    Target(anyhow::Error),
}

/// How many samples there were, and how many in a second.
pub fn rate(samples: u64, start: Instant) -> String {
    let seconds = start.elapsed().as_secs_f64().max(0.001);
    format!(
        "{} samples, {}/s",
        format_count(samples),
        format_count((samples as f64 / seconds) as u64)
    )
}
