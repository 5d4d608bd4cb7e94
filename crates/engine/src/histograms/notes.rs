//! What is said about histograms that do not fit: texts as Prometheus has them.

use crate::context::Context;
use promql::Span;

/// What was done to histograms when something is noted about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Addition,
    Subtraction,
    Aggregation,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Operation::Addition => "addition",
            Operation::Subtraction => "subtraction",
            Operation::Aggregation => "aggregation",
        }
    }
}

/// Something to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// A window has numbers and histograms, which the function cannot take together.
    MixedWindow,
    /// A group has numbers and histograms.
    MixedGroup,
    /// A window's histograms were left out, as the function takes numbers.
    Ignored,
    /// A function for counters met a gauge.
    NotCounter,
    /// A function for gauges met a counter.
    NotGauge,
    /// Histograms with custom bounds met others.
    Incompatible,
    /// Custom bounds were not the same.
    Reconciled(Operation),
    /// A histogram after a reset met one that is not.
    Collided(Operation),
    /// A sample's start timestamp lies before the sample before it, and is not that one's.
    StartOverlap,
}

/// Notes about one series or group, each once.
#[derive(Debug, Default)]
pub(crate) struct Notes(Vec<Note>);

impl Notes {
    /// Notes nothing but this.
    pub fn only(note: Note) -> Notes {
        Notes(vec![note])
    }

    pub fn add(&mut self, note: Note) {
        if !self.0.contains(&note) {
            self.0.push(note);
        }
    }

    /// Adds what an operation on histograms tells.
    pub fn add_found(&mut self, found: histogram::Notes, operation: Operation) {
        self.add_reconciled(found, operation);
        if found.hints_collided {
            self.add(Note::Collided(operation));
        }
    }

    /// Adds what an operation on histograms tells about custom bounds.
    pub fn add_reconciled(&mut self, found: histogram::Notes, operation: Operation) {
        if found.bounds_reconciled {
            self.add(Note::Reconciled(operation));
        }
    }

    pub fn extend(&mut self, other: Notes) {
        for note in other.0 {
            self.add(note);
        }
    }

    /// Hands the notes to the query: about a metric, and the part of the expression at `span`.
    pub fn tell(&mut self, context: &Context<'_>, name: &str, span: Span) {
        for note in self.0.drain(..) {
            tell(context, name, span, note);
        }
    }
}

/// Hands one note to the query.
pub(crate) fn tell(context: &Context<'_>, name: &str, span: Span, note: Note) {
    let name = || promql::quote(name);
    let notes = &context.annotations;
    match note {
        Note::MixedWindow => notes.warn(
            span,
            format!("encountered a mix of histograms and floats for metric name {}", name()),
        ),
        Note::MixedGroup => notes
            .warn(span, "encountered a mix of histograms and floats for aggregation".to_string()),
        Note::Ignored => notes.info(
            span,
            format!(
                "ignored histograms in a range containing both floats and histograms for metric \
                 name {}",
                name()
            ),
        ),
        Note::NotCounter => {
            notes.warn(span, format!("this native histogram metric is not a counter: {}", name()))
        }
        Note::NotGauge => {
            notes.warn(span, format!("this native histogram metric is not a gauge: {}", name()));
        }
        Note::StartOverlap => notes.warn(
            span,
            format!(
                "sample has start time that overlaps with previous sample timestamp for metric {}",
                name()
            ),
        ),
        Note::Incompatible => notes.warn(
            span,
            format!(
                "vector contains a mix of histograms with exponential and custom buckets schemas \
                 for metric name {}",
                name()
            ),
        ),
        Note::Reconciled(operation) => notes.info(
            span,
            format!("mismatched custom buckets were reconciled during {}", operation.as_str()),
        ),
        Note::Collided(operation) => notes.warn(
            span,
            format!("conflicting counter resets during histogram {}", operation.as_str()),
        ),
    }
}
