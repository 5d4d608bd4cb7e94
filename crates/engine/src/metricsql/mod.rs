//! MetricsQL: VictoriaMetrics' language with VictoriaMetrics' numbers.
//!
//! ```text
//! eval ── selectors, windows, subqueries ──> rollup      samples to points on the grid
//!      ├─ values ──────────────────────────> transform
//!      ├─ labels ──────────────────────────> label
//!      ├─ many series to one ──────────────> aggregate
//!      └─ two sides ───────────────────────> binary
//! ```
//!
//! Everything is a list of [`Series`]: a number is one series without labels, a gap is NaN, and
//! what has nothing but gaps at the end is left out of the answer.

mod aggregate;
mod arguments;
mod binary;
mod brief;
mod elsewhere;
mod eval;
mod label;
#[cfg(test)]
mod observed;
mod prepare;
mod pushdown;
mod query;
mod rollup;
mod rows;
mod statistics;
mod transform;

pub(crate) use query::{instant, parse, parse_brief, range};

use crate::context::Context;
use crate::error::{QueryError, Result};
use crate::reservation::Reservation;
use crate::time::Grid;
use model::{Labels, LabelsBuilder, METRIC_NAME};
use std::sync::OnceLock;

/// The points of one series on the query's grid.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// Its labels, the metric's name among them.
    pub labels: Labels,
    /// A value for each step of the grid; NaN is a gap.
    pub values: Vec<f64>,
}

/// What a function is called with, evaluated.
#[derive(Clone, Debug)]
pub(crate) enum Argument {
    /// A string literal.
    Text(Text),
    /// Anything else.
    Series(Vec<Series>),
}

impl Argument {
    /// A string literal.
    pub fn text(value: impl Into<String>) -> Argument {
        Argument::Text(Text { value: value.into(), series: OnceLock::new() })
    }
}

/// A string literal.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    value: String,
    /// One series of gaps, made where a function expects series, as in VictoriaMetrics.
    series: OnceLock<[Series; 1]>,
}

impl Text {
    fn series(&self, steps: usize) -> &[Series; 1] {
        self.series.get_or_init(|| [string_series(&self.value, steps)])
    }
}

/// VictoriaMetrics' value of a string that no function takes as one: gaps with the string as the name.
pub(crate) fn string_series(text: &str, steps: usize) -> Series {
    let mut builder = LabelsBuilder::new();
    if !text.is_empty() {
        builder.push(METRIC_NAME, text);
    }
    Series { labels: builder.finish(), values: vec![f64::NAN; steps] }
}

/// What a function knows besides its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallContext<'a> {
    /// The function's name in lower case, for dispatch and errors.
    pub name: &'a str,
    /// The steps that all series have values for.
    pub grid: Grid,
    /// The end that was asked for: the last step, or less than a step behind it.
    pub end_ms: i64,
    /// The clock of whoever asks, milliseconds since the epoch.
    pub now_ms: i64,
    /// `keep_metric_names` stands behind the call.
    pub keep_metric_names: bool,
    /// Memory for labels that the call makes; none in tests of functions alone.
    pub label_memory: Option<LabelMemory<'a>>,
}

/// Charges labels that a query makes against its memory.
#[derive(Clone, Copy)]
pub(crate) struct LabelMemory<'a> {
    context: &'a Context<'a>,
    held: &'a Reservation,
}

impl LabelMemory<'_> {
    /// Takes memory for labels.
    ///
    /// # Errors
    /// Beyond the memory limit or the deadline of the query.
    pub fn charge(&self, size: usize) -> Result<()> {
        self.held.grow(0, size as u64);
        self.context.check_memory()?;
        self.context.check()
    }
}

impl std::fmt::Debug for LabelMemory<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LabelMemory").finish_non_exhaustive()
    }
}

impl<'a> CallContext<'a> {
    /// A call on a grid that ends where it was asked to, at the epoch.
    #[cfg(test)]
    pub fn new(name: &'a str, grid: Grid) -> CallContext<'a> {
        let end_ms = grid.at_ms(grid.len - 1);
        CallContext { name, grid, end_ms, now_ms: 0, keep_metric_names: false, label_memory: None }
    }

    /// An error of this call.
    pub fn fail<T>(&self, message: impl std::fmt::Display) -> Result<T> {
        Err(QueryError::Execution(format!("{}: {message}", self.name)))
    }

    /// Fails unless there are `min..=max` arguments.
    pub fn expect_count(&self, arguments: &[Argument], min: usize, max: usize) -> Result<()> {
        if (min..=max).contains(&arguments.len()) {
            return Ok(());
        }
        let wanted = if min == max { min.to_string() } else { format!("{min} to {max}") };
        self.fail(format!("{} arguments given, {wanted} expected", arguments.len()))
    }

    /// The argument's string.
    pub fn text<'b>(&self, arguments: &'b [Argument], idx: usize) -> Result<&'b str> {
        match arguments.get(idx) {
            Some(Argument::Text(text)) => Ok(&text.value),
            Some(Argument::Series(_)) => {
                self.fail(format!("argument {} must be a string", idx + 1))
            }
            None => self.fail(format!("argument {} is missing", idx + 1)),
        }
    }

    /// The argument's series.
    pub fn series<'b>(&self, arguments: &'b [Argument], idx: usize) -> Result<&'b [Series]> {
        match arguments.get(idx) {
            Some(Argument::Series(series)) => Ok(series),
            Some(Argument::Text(text)) => Ok(text.series(self.grid.len)),
            None => self.fail(format!("argument {} is missing", idx + 1)),
        }
    }

    /// The argument's one series as a number for each step.
    pub fn numbers<'b>(&self, arguments: &'b [Argument], idx: usize) -> Result<&'b [f64]> {
        match self.series(arguments, idx)? {
            [one] => Ok(&one.values),
            many => {
                self.fail(format!("argument {} must be one series, {} given", idx + 1, many.len()))
            }
        }
    }
}

/// The labels without the metric's name.
pub(crate) fn without_name(labels: &Labels) -> Labels {
    let mut builder = labels.to_builder();
    builder.remove(METRIC_NAME);
    builder.finish()
}

/// Sorts series by the metric's name, then by labels.
pub(crate) fn sort_by_name(series: &mut [Series]) {
    series.sort_by(|a, b| {
        let names = a.labels.metric_name().cmp(b.labels.metric_name());
        names.then_with(|| a.labels.cmp(&b.labels))
    });
}
