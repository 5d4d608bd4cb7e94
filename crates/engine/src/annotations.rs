//! Warnings and infos: what a person should know about an answer that is no error.
//!
//! Texts and positions are Prometheus'. The same note from many series or steps is kept once.

use crate::date::rfc3339;
use promql::Span;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Notes of one level that an answer carries at most; the rest are counted.
const NOTES_MAX: usize = 10;

/// How serious a note is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Warning,
    Info,
}

/// Buckets that had to be made monotonic: over which steps, and how badly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Monotonicity {
    pub first_ms: i64,
    pub last_ms: i64,
    pub bucket_min: f64,
    pub bucket_max: f64,
    pub difference_max: f64,
    pub count: u64,
}

/// How the note begins that buckets had to be made monotonic.
const MONOTONICITY: &str = "input to histogram_quantile needed to be fixed for monotonicity";
/// How the line ends that counts notes left out.
const OMITTED: &str = "annotations omitted";

/// Whether a rendered note tells of all steps together, not of any one of them.
pub(crate) fn tells_of_all(note: &str) -> bool {
    note.contains(MONOTONICITY) || note.ends_with(OMITTED)
}

/// Collects the notes of one evaluation.
pub(crate) struct Annotations {
    text: String,
    /// Notes in order of their text and position, with details where they have some.
    notes: RefCell<BTreeMap<(Level, String, u32), Option<Monotonicity>>>,
}

impl Annotations {
    /// For the expression `text`, which positions refer to.
    pub fn new(text: &str) -> Annotations {
        Annotations { text: text.to_string(), notes: RefCell::default() }
    }

    /// Adds a warning about the part of the expression at `span`.
    pub fn warn(&self, span: Span, message: String) {
        self.note(Level::Warning, span, message);
    }

    /// Adds an info about the part of the expression at `span`.
    pub fn info(&self, span: Span, message: String) {
        self.note(Level::Info, span, message);
    }

    fn note(&self, level: Level, span: Span, message: String) {
        self.notes.borrow_mut().entry((level, message, span.start)).or_insert(None);
    }

    /// Adds an info that `histogram_quantile` had to repair its input.
    pub fn monotonicity(&self, span: Span, found: Monotonicity) {
        let message = format!(
            "{MONOTONICITY} (see \
             https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile)"
        );
        let key = (Level::Info, message, span.start);
        let mut notes = self.notes.borrow_mut();
        let details = notes.entry(key).or_insert(None);
        *details = Some(match details {
            None => found,
            Some(known) => Monotonicity {
                first_ms: known.first_ms.min(found.first_ms),
                last_ms: known.last_ms.max(found.last_ms),
                bucket_min: known.bucket_min.min(found.bucket_min),
                bucket_max: known.bucket_max.max(found.bucket_max),
                difference_max: known.difference_max.max(found.difference_max),
                count: known.count + found.count,
            },
        });
    }

    /// The notes of one level as the API shows them, at most ten and a line that counts the rest.
    pub fn render(&self, level: Level) -> Vec<String> {
        let word = if level == Level::Warning { "warning" } else { "info" };
        let notes = self.notes.borrow();
        let all: Vec<String> = notes
            .iter()
            .filter(|((of, _, _), _)| *of == level)
            .map(|((_, message, start), details)| {
                let position = Span { start: *start, end: *start }.position(&self.text);
                let details = details.map(|d| describe(&d)).unwrap_or_default();
                format!("PromQL {word}: {message}{details} ({position})")
            })
            .collect();
        let skipped = all.len().saturating_sub(NOTES_MAX);
        let mut shown: Vec<String> = all.into_iter().take(NOTES_MAX).collect();
        if 0 < skipped {
            shown.push(format!("{skipped} more {word} {OMITTED}"));
        }
        shown
    }
}

fn describe(found: &Monotonicity) -> String {
    format!(
        ", from buckets {} to {}, with a max diff of {}, over {} samples from {} to {}",
        short(found.bucket_min),
        short(found.bucket_max),
        two_digits(found.difference_max),
        found.count,
        rfc3339(found.first_ms.div_euclid(1000)),
        rfc3339(found.last_ms.div_euclid(1000))
    )
}

/// A number as Go's `%g` prints it: with an exponent below 1e-4 and from 1e6 on.
pub(crate) fn short(value: f64) -> String {
    let magnitude = value.abs();
    if value.is_finite() && magnitude != 0.0 && !(1e-4..1e6).contains(&magnitude) {
        exponent(&format!("{value:e}"))
    } else {
        promql::format_number(value)
    }
}

/// A number as Go's `%.2g` prints it.
fn two_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return promql::format_number(value);
    }
    let scientific = format!("{value:.1e}");
    let Some((_, power)) = scientific.split_once('e') else { return scientific };
    match power.parse::<i32>() {
        Ok(power) if (-4..2).contains(&power) => {
            let rounded: f64 = scientific.parse().unwrap_or(value);
            promql::format_number(rounded)
        }
        _ => {
            let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
            exponent(&format!("{}e{power}", digits.trim_end_matches(".0")))
        }
    }
}

/// `1e-5` as Go writes it: `1e-05`.
fn exponent(text: &str) -> String {
    let Some((digits, power)) = text.split_once('e') else { return text.to_string() };
    let (sign, power) = match power.strip_prefix('-') {
        Some(power) => ('-', power),
        None => ('+', power),
    };
    format!("{digits}e{sign}{power:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_go_prints_them() {
        assert_eq!(short(0.00001), "1e-05");
        assert_eq!(short(f64::NAN), "NaN");
        assert_eq!(short(2.0), "2");
        assert_eq!(two_digits(12.3), "12");
        assert_eq!(two_digits(123.4), "1.2e+02");
        assert_eq!(two_digits(0.123), "0.12");
    }

    #[test]
    fn notes_are_kept_once_and_counted() {
        let notes = Annotations::new("rate(x[5m])");
        for idx in 0..12 {
            notes.warn(Span { start: 5, end: 6 }, format!("w{:02}", idx % 12));
            notes.info(Span { start: 5, end: 6 }, "i".to_string());
        }
        assert_eq!(notes.render(Level::Info), ["PromQL info: i (1:6)"]);
        let warnings = notes.render(Level::Warning);
        assert_eq!(warnings.len(), 11);
        assert_eq!(warnings[10], "2 more warning annotations omitted");
    }
}
