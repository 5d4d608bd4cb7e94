//! Functions of windows of samples.
//!
//! ```text
//! a series' samples ──> samples: ms, no NaN, no resets ──> window: cut for all steps
//!                                                             │
//!           Series <── labels <── kernels, one window each <──┘
//!                                 counter, over_time, interval, spread, trend, candlestick
//! ```
//!
//! Times are milliseconds, as VictoriaMetrics keeps them; nanoseconds are rounded down on the
//! way in. What a window sees depends on samples around it, so the numbers are VictoriaMetrics'
//! only if exactly the samples of [`RollupCall::time_range`], or for a subquery the points of
//! [`RollupCall::subquery_grid`], are handed in.

mod candlestick;
mod counter;
mod functions;
mod interval;
mod labelled;
mod over_time;
mod samples;
mod spread;
mod trend;
pub(crate) mod vmrange;
mod window;

use super::{Argument, CallContext, Series, without_name};
use crate::error::Result;
use crate::time::{Grid, to_ns};
use functions::{CANDLESTICK, EXTREMES, Function, Kernel, Kind};
use labelled::Labelled;
use model::{Labels, TimeRange, sample::NANOS_PER_MILLI};
use samples::{Change, Samples, remove_resets};
use std::ops::Range;
use window::{Cut, Reach};

/// How long before the first window samples are looked for that a function takes for the value
/// at its start. VictoriaMetrics' default of `-search.minStalenessInterval`.
const SILENCE_MS: i64 = 5 * 60 * 1000;

/// The label that tells apart the rows of functions with several.
const ROW_LABEL: &str = "rollup";

/// Where the windows of a call end and how long they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    /// Where they end: the query's grid, moved by `offset`, or the one moment of `@`. The step is
    /// the query's even if there is only one moment.
    pub grid: Grid,
    /// The query's end, moved likewise: the grid's last moment or less than a step behind it.
    /// Samples up to here are read; an instant query is one whose start is its end.
    pub end_ms: i64,
    /// `[d]` in milliseconds, if it was given.
    pub window_ms: Option<i64>,
    /// The longest lookback behind the window that the server allows, in milliseconds, if it says.
    pub lookback_ms: Option<i64>,
    /// Whether the samples are those of a subquery or another expression, not of a selector.
    pub is_subquery: bool,
}

/// Which argument of a call with `count` arguments holds the series.
pub(crate) fn series_argument(name: &str, count: usize) -> usize {
    match name {
        "aggr_over_time"
        | "count_values_over_time"
        | "hoeffding_bound_lower"
        | "hoeffding_bound_upper"
        | "quantile_over_time" => 1,
        "quantiles_over_time" => count.saturating_sub(1),
        _ => 0,
    }
}

/// Whether a rollup of that name makes one row, by looking at the samples of each window once.
pub(crate) fn is_plain_rollup(name: &str) -> bool {
    Function::alone(name).is_some_and(|one| matches!(one.kind, Kind::Row(Kernel::Plain(_), _)))
}

/// The values of `absent_over_time` over all series, of which `rows` are what each of them gave:
/// a gap wherever any has a sample, 1 elsewhere.
pub(crate) fn join_absent(rows: &[Series], steps: usize) -> Vec<f64> {
    let is_present = |step: usize| rows.iter().any(|row| row.values[step].is_nan());
    (0..steps).map(|step| if is_present(step) { f64::NAN } else { 1.0 }).collect()
}

/// A rollup with its arguments, ready to run over series.
#[derive(Clone)]
pub(crate) struct RollupCall {
    function: &'static Function,
    windows: Windows,
    keeps_name: bool,
    /// Scalar arguments, a number for each step.
    numbers: Vec<Vec<f64>>,
    output: Output,
    /// Resets of counters are removed first.
    is_counter: bool,
    /// What is done to the samples then.
    change: Option<Change>,
    /// Memory for the samples of a series.
    samples: Samples,
    /// Its windows, which stay for the next series as long as timestamps are the same.
    bounds: Vec<(u32, u32)>,
    /// How far they reach.
    reach: Reach,
    /// Memory for kernels that sort.
    sorted: Vec<f64>,
    /// Memory for a row.
    row: Vec<f64>,
}

/// What a call makes of one series.
#[derive(Clone)]
enum Output {
    /// A row for each kernel, with the value of the label that tells them apart.
    Rows(Vec<(Option<&'static str>, Kernel)>),
    /// Rows that its samples decide on.
    Labelled(Labelled),
}

impl RollupCall {
    /// Checks name and arguments; the one of the series is left out of `arguments`. The names for
    /// `aggr_over_time` are one text argument each.
    ///
    /// # Errors
    /// Wrong arguments, or a name that is none of a rollup.
    pub fn new(
        context: &CallContext<'_>,
        arguments: Vec<Argument>,
        windows: Windows,
    ) -> Result<RollupCall> {
        let Some(function) = Function::alone(context.name) else {
            return context.fail("no such rollup");
        };
        let mut call = RollupCall {
            function,
            windows,
            keeps_name: function.keeps_name || context.keep_metric_names,
            numbers: Vec::new(),
            output: Output::Rows(Vec::new()),
            is_counter: function.is_counter,
            change: None,
            samples: Samples::default(),
            bounds: Vec::new(),
            reach: Reach { window_ms: 0, previous_ms: 0, earlier_ms: None },
            sorted: Vec::new(),
            row: Vec::new(),
        };
        call.windows.window_ms = windows.window_ms.filter(|length| 0 < *length);
        call.windows.lookback_ms = windows.lookback_ms.filter(|length| 0 < *length);
        call.take_arguments(context, &arguments)?;
        Ok(call)
    }

    fn take_arguments(&mut self, context: &CallContext<'_>, arguments: &[Argument]) -> Result<()> {
        self.output = match self.function.kind {
            Kind::Row(kernel, count) => {
                context.expect_count(arguments, count, count)?;
                for idx in 0..count {
                    self.numbers.push(context.numbers(arguments, idx)?.to_vec());
                }
                Output::Rows(vec![(None, kernel)])
            }
            Kind::Extremes(change) => {
                self.change = Some(change);
                let rows = named_rows(context, arguments, &EXTREMES)?;
                let is_one = rows.len() == 1;
                // The row that was asked for by name needs no label, unlike a candlestick's.
                let label = |name| if is_one { None } else { Some(name) };
                Output::Rows(rows.iter().map(|(name, kernel)| (label(*name), *kernel)).collect())
            }
            Kind::Candlestick => {
                self.move_by_step();
                let rows = named_rows(context, arguments, &CANDLESTICK)?;
                Output::Rows(rows.iter().map(|(name, kernel)| (Some(*name), *kernel)).collect())
            }
            Kind::Several => self.take_names(context, arguments)?,
            Kind::Quantiles => Output::Labelled(quantiles(context, arguments)?),
            Kind::Values => {
                context.expect_count(arguments, 1, 1)?;
                let label = context.text(arguments, 0)?.to_string();
                Output::Labelled(Labelled::Values { label })
            }
            Kind::Histogram => {
                context.expect_count(arguments, 0, 0)?;
                Output::Labelled(Labelled::Histogram)
            }
        };
        Ok(())
    }

    /// A candle shows what comes behind its moment, not before.
    fn move_by_step(&mut self) {
        let Windows { grid, end_ms, .. } = &mut self.windows;
        grid.start_ms = grid.start_ms.saturating_add(grid.step_ms);
        *end_ms = end_ms.saturating_add(grid.step_ms);
    }

    /// The rows of `aggr_over_time`. All see the same samples: one counter makes counters of all.
    fn take_names(&mut self, context: &CallContext<'_>, arguments: &[Argument]) -> Result<Output> {
        context.expect_count(arguments, 1, usize::MAX)?;
        let mut rows = Vec::new();
        for idx in 0..arguments.len() {
            let name = context.text(arguments, idx)?;
            let Some((function, kernel)) = Function::inside(name) else {
                return context.fail(format!("{name:?} cannot be used inside it"));
            };
            self.is_counter |= function.is_counter;
            rows.push((Some(function.name), kernel));
        }
        Ok(Output::Rows(rows))
    }

    /// The time whose samples of a selector are needed, nanoseconds.
    pub fn time_range(&self) -> TimeRange {
        let Windows { grid, end_ms, window_ms, .. } = self.windows;
        let silence_ms = if self.function.reads_before { SILENCE_MS } else { 0 };
        let length_ms = window_ms.unwrap_or(0).max(grid.step_ms).saturating_add(silence_ms);
        let start = to_ns(grid.start_ms.saturating_sub(length_ms));
        TimeRange::new(start, to_ns(end_ms).saturating_add(NANOS_PER_MILLI - 1))
    }

    /// The moments that a subquery of this step is evaluated at, or one without a step or any
    /// other expression. All points that it has there are for [`RollupCall::run`].
    pub fn subquery_grid(&self, step_ms: Option<i64>) -> Grid {
        let Windows { grid, end_ms, window_ms, .. } = self.windows;
        let step_ms = step_ms.filter(|step| 0 < *step).unwrap_or(grid.step_ms);
        let length_ms = window_ms.unwrap_or(0).saturating_add(step_ms).saturating_add(SILENCE_MS);
        let start_ms = grid.start_ms.saturating_sub(length_ms);
        let start_ms = start_ms - start_ms % step_ms;
        let mut last_ms = end_ms.saturating_add(step_ms);
        if 0 < last_ms % step_ms {
            last_ms = last_ms.saturating_add(step_ms - last_ms % step_ms);
        }
        Grid::span(start_ms, last_ms, step_ms).unwrap_or(Grid { start_ms, step_ms, len: 1 })
    }

    /// Appends what one series gives: most functions one row, some several with labels of their
    /// own. Samples are oldest first, times in nanoseconds; stale markers are among them when they
    /// come from a selector.
    ///
    /// # Errors
    /// Those of `check`, which is asked between pieces of work: one series may have long windows
    /// at many steps.
    pub fn run(
        &mut self,
        labels: &Labels,
        timestamps: &[i64],
        values: &[f64],
        check: &dyn Fn() -> Result<()>,
        out: &mut Vec<Series>,
    ) -> Result<()> {
        self.load(timestamps, values);
        let mut sorted = std::mem::take(&mut self.sorted);
        let result = self.push_rows(labels, &self.cut(), check, &mut sorted, out);
        self.sorted = sorted;
        result
    }

    /// Whether every series gives one row, and no label tells it apart.
    pub fn makes_one_row(&self) -> bool {
        self.only_kernel().is_some()
    }

    /// Whether a row keeps the name of its series.
    pub fn keeps_name(&self) -> bool {
        self.keeps_name
    }

    /// How many values a row has.
    pub fn steps(&self) -> usize {
        self.windows.grid.len
    }

    fn only_kernel(&self) -> Option<Kernel> {
        match &self.output {
            Output::Rows(rows) => match rows.as_slice() {
                [(None, kernel)] => Some(*kernel),
                _ => None,
            },
            Output::Labelled(_) => None,
        }
    }

    /// As [`RollupCall::run`] for a call that makes one row, whose values are written to `row`.
    ///
    /// # Errors
    /// Those of `check`.
    ///
    /// # Panics
    /// When the call makes other rows, or `row` has another length.
    pub fn fill_row(
        &mut self,
        timestamps: &[i64],
        values: &[f64],
        check: &dyn Fn() -> Result<()>,
        row: &mut [f64],
    ) -> Result<()> {
        let kernel = self.only_kernel().expect("a call that makes one row");
        self.load(timestamps, values);
        let (mut sorted, mut made) =
            (std::mem::take(&mut self.sorted), std::mem::take(&mut self.row));
        made.clear();
        let result = self.push_values(kernel, &self.cut(), check, &mut sorted, &mut made);
        if result.is_ok() {
            row.copy_from_slice(&made);
        }
        (self.sorted, self.row) = (sorted, made);
        result
    }

    /// Takes the samples of a series and cuts them into windows.
    fn load(&mut self, timestamps: &[i64], values: &[f64]) {
        let keeps_stale = self.function.keeps_stale && !self.windows.is_subquery;
        let mut samples = std::mem::take(&mut self.samples);
        if !samples.load(timestamps, values, keeps_stale) {
            self.reach = self.reach(&samples.timestamps);
            let (grid, window_ms) = (self.windows.grid, self.reach.window_ms);
            window::cut(grid, window_ms, &samples.timestamps, &mut self.bounds);
        }
        self.prepare(&mut samples);
        self.samples = samples;
    }

    fn cut(&self) -> Cut<'_> {
        let Samples { timestamps, values, .. } = &self.samples;
        let (grid, reach) = (self.windows.grid, self.reach);
        Cut { timestamps, values, bounds: &self.bounds, grid, reach }
    }

    fn prepare(&self, samples: &mut Samples) {
        let Windows { window_ms, lookback_ms, .. } = self.windows;
        if self.is_counter {
            let gap_max_ms =
                lookback_ms.map(|length| length.saturating_add(window_ms.unwrap_or(0)));
            remove_resets(&samples.timestamps, &mut samples.values, gap_max_ms);
        }
        if let Some(change) = self.change {
            change(&samples.timestamps, &mut samples.values);
        }
    }

    /// How far the windows of a series with these samples reach.
    fn reach(&self, timestamps: &[i64]) -> Reach {
        let Windows { grid, end_ms, window_ms, lookback_ms, .. } = self.windows;
        let is_instant = end_ms <= grid.start_ms;
        let mut previous_ms = if is_instant {
            grid.step_ms
        } else {
            let interval_ms = window::sample_interval_ms(timestamps).unwrap_or(grid.step_ms);
            window::tolerated_gap_ms(interval_ms)
        };
        if let Some(limit) = lookback_ms {
            previous_ms = previous_ms.min(limit);
        }
        let window_ms = window_ms.unwrap_or_else(|| {
            let stretched = if self.function.stretches { previous_ms } else { 0 };
            let length = grid.step_ms.max(stretched);
            match lookback_ms {
                Some(limit) if self.function.name == "default_rollup" => length.min(limit),
                _ => length,
            }
        });
        Reach { window_ms, previous_ms, earlier_ms: lookback_ms }
    }

    fn push_rows(
        &self,
        labels: &Labels,
        cut: &Cut<'_>,
        check: &dyn Fn() -> Result<()>,
        sorted: &mut Vec<f64>,
        out: &mut Vec<Series>,
    ) -> Result<()> {
        let labels = if self.keeps_name { labels.clone() } else { without_name(labels) };
        match &self.output {
            Output::Rows(rows) => {
                for (name, kernel) in rows {
                    let mut values = Vec::with_capacity(cut.bounds.len());
                    self.push_values(*kernel, cut, check, sorted, &mut values)?;
                    let labels = match name {
                        Some(name) => with_label(&labels, ROW_LABEL, name),
                        None => labels.clone(),
                    };
                    out.push(Series { labels, values });
                }
            }
            Output::Labelled(labelled) => {
                for (text, values) in labelled.rows(cut) {
                    let labels = with_label(&labels, labelled.label(), &text);
                    out.push(Series { labels, values });
                }
            }
        }
        Ok(())
    }

    /// Appends the values of all steps.
    fn push_values(
        &self,
        kernel: Kernel,
        cut: &Cut<'_>,
        check: &dyn Fn() -> Result<()>,
        sorted: &mut Vec<f64>,
        values: &mut Vec<f64>,
    ) -> Result<()> {
        while values.len() < cut.bounds.len() {
            let steps = piece_of_work(cut.bounds, values.len());
            fill(kernel, cut, &self.numbers, steps, sorted, values);
            check()?;
        }
        Ok(())
    }
}

/// Samples in windows that are looked at between two checks: some milliseconds of sorting.
const SAMPLES_PER_CHECK: u64 = 1 << 20;

/// The steps from `start` on whose windows have about as many samples as a check is worth.
fn piece_of_work(bounds: &[(u32, u32)], start: usize) -> Range<usize> {
    let mut samples = 0;
    let is_enough = |(low, high): &(u32, u32)| {
        samples += u64::from(high.saturating_sub(*low)) + 1;
        SAMPLES_PER_CHECK <= samples
    };
    let length = bounds[start..].iter().position(is_enough);
    start..length.map_or(bounds.len(), |length| start + length + 1)
}

/// The rows of a table: all, or the one that the only argument names.
fn named_rows<'a>(
    context: &CallContext<'_>,
    arguments: &[Argument],
    table: &'a [(&'static str, Kernel)],
) -> Result<&'a [(&'static str, Kernel)]> {
    context.expect_count(arguments, 0, 1)?;
    if arguments.is_empty() {
        return Ok(table);
    }
    let name = context.text(arguments, 0)?;
    match table.iter().position(|(known, _)| *known == name) {
        Some(idx) => Ok(&table[idx..=idx]),
        None => {
            let known: Vec<&str> = table.iter().map(|(known, _)| *known).collect();
            context.fail(format!("{name:?} given, one of {} expected", known.join(", ")))
        }
    }
}

fn quantiles(context: &CallContext<'_>, arguments: &[Argument]) -> Result<Labelled> {
    context.expect_count(arguments, 2, usize::MAX)?;
    let label = context.text(arguments, 0)?.to_string();
    let mut quantiles = Vec::new();
    for idx in 1..arguments.len() {
        // Rows are named after them, so they do not change from step to step.
        quantiles.push(context.numbers(arguments, idx)?.first().copied().unwrap_or(f64::NAN));
    }
    Ok(Labelled::Quantiles { label, quantiles })
}

/// Appends the values of some steps.
fn fill(
    kernel: Kernel,
    cut: &Cut<'_>,
    numbers: &[Vec<f64>],
    steps: Range<usize>,
    sorted: &mut Vec<f64>,
    out: &mut Vec<f64>,
) {
    let number = |idx: usize, step: usize| {
        numbers.get(idx).and_then(|steps| steps.get(step)).copied().unwrap_or(f64::NAN)
    };
    let window = |step: usize| cut.window(step, [number(0, step), number(1, step)]);
    match kernel {
        Kernel::Plain(kernel) => out.extend(steps.map(|step| kernel(&window(step)))),
        Kernel::Sorting(kernel) => out.extend(steps.map(|step| kernel(&window(step), sorted))),
    }
}

fn with_label(labels: &Labels, name: &str, value: &str) -> Labels {
    let mut builder = labels.to_builder();
    builder.set(name, value);
    builder.finish()
}

#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod tests;
