//! Functions of windows of samples.

use super::{Argument, CallContext, Series};
use crate::error::Result;
use crate::time::Grid;
use model::{Labels, TimeRange};

/// A rollup with its arguments, ready to run over series.
pub(crate) struct RollupCall {}

/// Where the windows of a call end and how long they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    /// Where they end: the query's grid, moved by `offset` and `@`.
    pub grid: Grid,
    /// `[d]` in milliseconds, if it was given.
    pub window_ms: Option<i64>,
    /// The longest lookback behind the window that the server allows, in milliseconds, if it says.
    pub lookback_ms: Option<i64>,
    /// Whether the samples are those of a subquery or another expression, not of a selector.
    pub is_subquery: bool,
}

/// Which argument of a call holds the series.
pub(crate) fn series_argument(_name: &str, _count: usize) -> usize {
    0
}

impl RollupCall {
    /// Checks name and arguments; the one of the series is left out of `arguments`.
    ///
    /// # Errors
    /// Wrong arguments, or a name that is none of a rollup.
    pub fn new(
        context: &CallContext<'_>,
        _arguments: Vec<Argument>,
        _windows: Windows,
    ) -> Result<RollupCall> {
        context.fail("no such rollup")
    }

    /// The time whose samples are needed, nanoseconds.
    pub fn time_range(&self) -> TimeRange {
        TimeRange::new(0, 0)
    }

    /// Appends what one series gives: most functions one row, some several with labels of their
    /// own. Samples are oldest first, times in nanoseconds; stale markers are among them when they
    /// come from a selector.
    pub fn run(
        &mut self,
        _labels: &Labels,
        _timestamps: &[i64],
        _values: &[f64],
        _out: &mut Vec<Series>,
    ) {
    }
}
