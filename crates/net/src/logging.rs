//! Logs: one line per event on standard error, bounded in length, and not too many of one kind.
//!
//! Clients cause lines: scripts log, requests fail. Each place in the code that logs has a burst of
//! lines and a pace behind it; lines beyond that are counted, and the count is logged.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tracing::callsite::Identifier;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt;

/// Starts logging at the level that the flag's word names; a second call changes nothing.
pub fn start(level: &str) {
    let level: Level = level.parse().unwrap_or(Level::INFO);
    let subscriber = fmt::Subscriber::builder()
        .with_max_level(level)
        .with_writer(|| OneLine(io::stderr()))
        .with_ansi(false)
        .with_target(false)
        .finish();
    let _ = tracing::subscriber::set_global_default(Paced::new(subscriber));
}

/// Lines that one place in the code may log at once.
const LINES_BURST: u64 = 100;
/// Lines a second behind that.
const LINES_PER_S: u64 = 1;
/// Bytes of a line.
const LINE_SIZE_MAX: usize = 8 << 10;
/// Target of lines about lines that were left out.
const LEFT_OUT: &str = "left_out";

/// Lines of one place in the code.
struct Lines {
    /// Lines that may be logged now.
    left: u64,
    /// Second of the last refill.
    refilled_s: u64,
    left_out: u64,
}

impl Lines {
    /// Whether a line may be logged in that second of this run, and how many were left out before it.
    fn admit(&mut self, now_s: u64) -> Option<u64> {
        let passed = now_s.saturating_sub(self.refilled_s);
        self.left = LINES_BURST.min(self.left.saturating_add(passed.saturating_mul(LINES_PER_S)));
        self.refilled_s = now_s;
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Some(std::mem::take(&mut self.left_out))
            }
            None => {
                self.left_out += 1;
                None
            }
        }
    }
}

/// Bounds the pace of each place that logs.
struct Paced<S> {
    inner: S,
    begun: Instant,
    lines: Mutex<HashMap<Identifier, Lines>>,
}

impl<S> Paced<S> {
    fn new(inner: S) -> Paced<S> {
        Paced { inner, begun: Instant::now(), lines: Mutex::default() }
    }

    fn admit(&self, metadata: &Metadata<'_>) -> Option<u64> {
        let now_s = self.begun.elapsed().as_secs();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Lines { left: LINES_BURST, refilled_s: now_s, left_out: 0 };
        lines.entry(metadata.callsite()).or_insert_with(new).admit(now_s)
    }
}

impl<S: Subscriber> Subscriber for Paced<S> {
    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        if metadata.target() == LEFT_OUT {
            return self.inner.event(event);
        }
        let Some(left_out) = self.admit(metadata) else { return };
        if 0 < left_out {
            tracing::warn!(target: LEFT_OUT, "{left_out} lines like the next one were left out");
        }
        self.inner.event(event);
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.inner.register_callsite(metadata)
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.inner.enabled(metadata)
    }

    fn event_enabled(&self, event: &Event<'_>) -> bool {
        self.inner.event_enabled(event)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.inner.max_level_hint()
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.inner.new_span(span)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.inner.record(span, values);
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        self.inner.record_follows_from(span, follows);
    }

    fn enter(&self, span: &Id) {
        self.inner.enter(span);
    }

    fn exit(&self, span: &Id) {
        self.inner.exit(span);
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.inner.clone_span(id)
    }

    fn try_close(&self, id: Id) -> bool {
        self.inner.try_close(id)
    }
}

/// Writes each event as one line: control characters, which clients may have put into it, are
/// escaped, so that a client cannot forge a line or control a terminal.
struct OneLine<W>(W);

impl<W: Write> Write for OneLine<W> {
    /// Takes a whole event, which is how the subscriber writes it. An event that cannot be written is
    /// lost.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        // The subscriber would print the error to standard error, and panic there: the terminal may be
        // closed.
        let _ = self.0.write_all(one_line(event).as_bytes());
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn one_line(event: &[u8]) -> String {
    let (text, end) = match event.split_last() {
        Some((b'\n', text)) => (text, "\n"),
        _ => (event, ""),
    };
    let shown = text.get(..LINE_SIZE_MAX).unwrap_or(text);
    let mut line = String::with_capacity(shown.len() + 40);
    for letter in String::from_utf8_lossy(shown).chars() {
        // The two at the end separate lines and paragraphs in Unicode.
        match letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') {
            true => line.extend(letter.escape_default()),
            false => line.push(letter),
        }
    }
    if shown.len() < text.len() {
        line += &format!(" ... ({} bytes more)", text.len() - shown.len());
    }
    line.push_str(end);
    line
}

/// Milliseconds between two lines about the same thing.
const LINE_PAUSE_MS: u64 = 60_000;

/// Says when it is time for another line about one thing, so that a flood of events is no flood of
/// lines.
#[derive(Debug, Default)]
pub struct Pace {
    /// When the last line was; 0 for never.
    told_at_ms: AtomicU64,
}

impl Pace {
    /// Nothing has been told.
    pub const fn new() -> Pace {
        Pace { told_at_ms: AtomicU64::new(0) }
    }

    /// Whether a line is due; to one of those who ask at the same time.
    pub fn is_due(&self, now_ms: u64) -> bool {
        let before = self.told_at_ms.load(Relaxed);
        let is_due = before == 0 || LINE_PAUSE_MS <= now_ms.saturating_sub(before);
        is_due && self.told_at_ms.compare_exchange(before, now_ms, Relaxed, Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_an_event_are_escaped() {
        for (event, expected) in [
            ("INFO as it is: äß \"x\"\n", "INFO as it is: äß \"x\"\n"),
            ("a\n2026-01-01 INFO fake\n", "a\\n2026-01-01 INFO fake\n"),
            ("a\r\n\n", "a\\r\\n\n"),
            ("\x1b[2J\x07\0\x7f\t", "\\u{1b}[2J\\u{7}\\u{0}\\u{7f}\\t"),
            ("\u{85}\u{9b}\u{2028}\u{2029}", "\\u{85}\\u{9b}\\u{2028}\\u{2029}"),
        ] {
            let mut written = OneLine(Vec::new());
            written.write_all(event.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(written.0).unwrap(), expected);
        }
    }

    #[test]
    fn a_line_has_a_length() {
        let event = "x".repeat(LINE_SIZE_MAX + 5) + "\n";
        let expected = "x".repeat(LINE_SIZE_MAX) + " ... (5 bytes more)\n";
        assert_eq!(one_line(event.as_bytes()), expected);
    }

    #[test]
    fn lines_have_a_pace() {
        let mut lines = Lines { left: LINES_BURST, refilled_s: 5, left_out: 0 };
        let admitted = (0..LINES_BURST + 7).filter(|_| lines.admit(5).is_some()).count() as u64;
        assert_eq!(admitted, LINES_BURST);
        assert_eq!(lines.admit(6), Some(7));
        assert_eq!(lines.admit(6), None);
        assert_eq!(lines.admit(1000), Some(1));
        assert_eq!(lines.left, LINES_BURST - 1);
    }

    #[test]
    fn a_minute_lies_between_lines() {
        let pace = Pace::new();
        let due = [5, 6, 60_004, 60_005, 60_006, 200_000].map(|now_ms| pace.is_due(now_ms));
        assert_eq!(due, [true, false, false, true, false, true]);
    }
}
