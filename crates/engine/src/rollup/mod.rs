//! Rollups: functions from a window of samples to one value, over all steps of a series.
//!
//! `fill` is the hot loop: the match on the function is outside, the loop over the
//! steps inside, and each kernel works on slices straight from the decoder.

mod counter;
mod edges;
mod over_time;
mod regression;
pub(crate) mod sum;

use crate::error::{QueryError, Result};
use crate::gap::ABSENT;
use crate::options::QueryOptions;
use crate::scalar::Scalar;
use crate::time::{Reference, seconds, to_ns};
use promql::Span;
use std::ops::Range;

pub(crate) use counter::{Extrapolation, Started, instant_rate, since_start};
pub(crate) use edges::{EdgedWindows, check_edges};
pub(crate) use over_time::{max, min, quantile};

/// The functions on windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rollup {
    Rate,
    Increase,
    Delta,
    Irate,
    Idelta,
    Changes,
    Resets,
    Deriv,
    PredictLinear,
    DoubleExponentialSmoothing,
    Avg,
    Sum,
    Min,
    Max,
    Count,
    Present,
    Absent,
    First,
    Last,
    Quantile,
    Mad,
    Stddev,
    Stdvar,
    TimeOfFirst,
    TimeOfLast,
    TimeOfMax,
    TimeOfMin,
}

impl Rollup {
    /// Whether the result is one of the series' samples, so that it keeps its name.
    pub fn keeps_name(self) -> bool {
        matches!(self, Rollup::First | Rollup::Last)
    }

    /// Whether the result is on the series' own scale.
    pub fn keeps_scale(self) -> bool {
        matches!(
            self,
            Rollup::First
                | Rollup::Last
                | Rollup::Avg
                | Rollup::Min
                | Rollup::Max
                | Rollup::Quantile
                | Rollup::PredictLinear
                | Rollup::DoubleExponentialSmoothing
        )
    }

    /// Whether it is for counters, whose names end in one of four ways.
    pub fn expects_counter(self) -> bool {
        matches!(self, Rollup::Rate | Rollup::Increase)
    }
}

/// A rollup with its arguments, ready to run over series.
pub(crate) struct RollupCall {
    pub rollup: Rollup,
    /// The window's length.
    pub range_ms: i64,
    /// Where the windows end.
    pub reference: Reference,
    /// The time of each step, which is not where its window ends under `offset` or `@`.
    pub steps: Reference,
    /// Scalar arguments, in order.
    pub parameters: Vec<Scalar>,
    /// Where the first argument stands, which notes are about.
    pub span: Span,
}

impl RollupCall {
    /// Writes the value of every step to `row`; `bounds` are the steps' windows.
    pub fn fill(
        &self,
        timestamps: &[i64],
        values: &[f64],
        bounds: &[(u32, u32)],
        row: &mut [f64],
    ) -> Result<()> {
        self.fill_steps(Series { timestamps, values, bounds, first: 0 }, row)
    }

    /// As [`RollupCall::fill`], looking at the query's deadline between pieces of work.
    pub fn fill_watched(
        &self,
        options: &QueryOptions,
        timestamps: &[i64],
        values: &[f64],
        bounds: &[(u32, u32)],
        row: &mut [f64],
    ) -> Result<()> {
        let mut first = 0;
        loop {
            let steps = piece_of_work(bounds, values.len(), first);
            let (bounds_here, end) = (&bounds[steps.clone()], steps.end);
            let series = Series { timestamps, values, bounds: bounds_here, first };
            self.fill_steps(series, &mut row[steps])?;
            if bounds.len() <= end {
                return Ok(());
            }
            first = end;
            options.check()?;
        }
    }

    fn fill_steps(&self, series: Series<'_>, row: &mut [f64]) -> Result<()> {
        let seconds_at = |at: usize| seconds(series.timestamps[at]);
        match self.rollup {
            Rollup::Rate | Rollup::Increase | Rollup::Delta => self.extrapolated(&series, row),
            Rollup::Irate => series.pairs(row, instant_rate),
            Rollup::Idelta => series.pairs(row, counter::instant_delta),
            Rollup::Changes => series.values(row, counter::changes),
            Rollup::Resets => series.values(row, counter::resets),
            Rollup::Deriv => series.each(row, |_, times, values| {
                regression::fit(times, values, times[0]).map_or(ABSENT, |line| line.slope)
            }),
            Rollup::PredictLinear => series.each(row, |step, times, values| {
                let line = regression::fit(times, values, to_ns(self.steps.at_ms(step)));
                line.map_or(ABSENT, |line| {
                    line.slope * self.parameters[0].at(step) + line.intercept
                })
            }),
            Rollup::DoubleExponentialSmoothing => self.smoothing(&series, row)?,
            Rollup::Avg => series.values(row, sum::average),
            Rollup::Sum => series.values(row, sum::total),
            Rollup::Min => series.values(row, min),
            Rollup::Max => series.values(row, max),
            Rollup::Count => series.values(row, |values| values.len() as f64),
            Rollup::Present | Rollup::Absent => series.values(row, |_| 1.0),
            Rollup::First => series.values(row, |values| values[0]),
            Rollup::Last => series.values(row, |values| values[values.len() - 1]),
            Rollup::Quantile => {
                let mut sorted = Vec::new();
                series.each(row, |step, _, values| {
                    quantile(self.parameters[0].at(step), values, &mut sorted)
                });
            }
            Rollup::Mad => {
                let mut sorted = Vec::new();
                series.values(row, |values| over_time::median_deviation(values, &mut sorted));
            }
            Rollup::Stddev => series.values(row, |values| sum::variance(values).sqrt()),
            Rollup::Stdvar => series.values(row, sum::variance),
            Rollup::TimeOfFirst => series.indexes(row, |_, _| 0, seconds_at),
            Rollup::TimeOfLast => series.indexes(row, |_, values| values.len() - 1, seconds_at),
            Rollup::TimeOfMax => series.indexes(row, |_, v| over_time::last_max(v), seconds_at),
            Rollup::TimeOfMin => series.indexes(row, |_, v| over_time::last_min(v), seconds_at),
        }
        Ok(())
    }

    /// How a difference within a window is drawn out to its bounds.
    pub fn extrapolation(&self) -> Extrapolation {
        Extrapolation {
            is_counter: self.rollup != Rollup::Delta,
            is_rate: self.rollup == Rollup::Rate,
            range_seconds: self.range_ms as f64 / 1000.0,
        }
    }

    fn extrapolated(&self, series: &Series<'_>, row: &mut [f64]) {
        let extrapolation = self.extrapolation();
        let range_ns = to_ns(self.range_ms);
        series.each(row, |step, times, values| {
            let end = self.reference.at_ns(step);
            extrapolation.apply(times, values, end.saturating_sub(range_ns), end)
        });
    }

    /// Refuses factors of `double_exponential_smoothing` at a step that has samples.
    pub fn check_factors(&self, step: usize) -> Result<()> {
        for (name, factor) in ["smoothing", "trend"].iter().zip(&self.parameters) {
            let symbol = if *name == "smoothing" { "sf" } else { "tf" };
            let value = factor.at(step);
            if value <= 0.0 || 1.0 <= value {
                return Err(QueryError::Execution(format!(
                    "invalid {name} factor. Expected: 0 < {symbol} < 1, got: {value:.6}"
                )));
            }
        }
        Ok(())
    }

    fn smoothing(&self, series: &Series<'_>, row: &mut [f64]) -> Result<()> {
        for (step, (low, high)) in series.bounds.iter().enumerate() {
            if low < high {
                self.check_factors(series.first + step)?;
            }
        }
        series.each(row, |step, _, values| {
            let (smoothing, trend) = (self.parameters[0].at(step), self.parameters[1].at(step));
            regression::double_exponential_smoothing(values, smoothing, trend)
        });
        Ok(())
    }
}

/// One series' samples and the windows of the steps. Kernels never see an empty window.
struct Series<'a> {
    timestamps: &'a [i64],
    values: &'a [f64],
    bounds: &'a [(u32, u32)],
    /// The step of the first window.
    first: usize,
}

impl Series<'_> {
    #[inline(always)]
    fn each(&self, row: &mut [f64], mut kernel: impl FnMut(usize, &[i64], &[f64]) -> f64) {
        for (step, (out, (low, high))) in row.iter_mut().zip(self.bounds).enumerate() {
            let window = *low as usize..*high as usize;
            *out = if window.is_empty() {
                ABSENT
            } else {
                kernel(self.first + step, &self.timestamps[window.clone()], &self.values[window])
            };
        }
    }

    #[inline(always)]
    fn values(&self, row: &mut [f64], mut kernel: impl FnMut(&[f64]) -> f64) {
        self.each(row, |_, _, values| kernel(values));
    }

    /// Kernels on the last two samples: `(t0, v0), (t1, v1)`.
    #[inline(always)]
    fn pairs(&self, row: &mut [f64], kernel: impl Fn([(i64, f64); 2]) -> f64) {
        self.each(row, |_, times, values| match (times, values) {
            ([.., t0, t1], [.., v0, v1]) => kernel([(*t0, *v0), (*t1, *v1)]),
            _ => ABSENT,
        });
    }

    /// Kernels that pick a sample, of which another function makes the value.
    #[inline(always)]
    fn indexes(
        &self,
        row: &mut [f64],
        pick: impl Fn(&[i64], &[f64]) -> usize,
        value_of: impl Fn(usize) -> f64,
    ) {
        for (out, (low, high)) in row.iter_mut().zip(self.bounds) {
            let window = *low as usize..*high as usize;
            *out = if window.is_empty() {
                ABSENT
            } else {
                let at = pick(&self.timestamps[window.clone()], &self.values[window.clone()]);
                value_of(window.start + at)
            };
        }
    }
}

/// Samples in windows that are looked at between two checks: some milliseconds of sorting.
const SAMPLES_PER_CHECK: usize = 1 << 20;

/// The steps from `first` on whose windows, of a series of so many samples, have about as many as a
/// check is worth.
fn piece_of_work(bounds: &[(u32, u32)], samples: usize, first: usize) -> Range<usize> {
    // Nearly always: no window has more than all.
    if bounds.len().saturating_mul(samples + 1) < SAMPLES_PER_CHECK {
        return first..bounds.len();
    }
    let mut seen = 0;
    let is_enough = |(low, high): &(u32, u32)| {
        seen += high.saturating_sub(*low) as usize + 1;
        SAMPLES_PER_CHECK <= seen
    };
    let length = bounds[first..].iter().position(is_enough);
    first..length.map_or(bounds.len(), |length| first + length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    fn call(rollup: Rollup, steps: usize, parameters: Vec<Scalar>) -> RollupCall {
        let reference = Reference { first_ms: 0, step_ms: 1, len: steps };
        let span = promql::parse("m").unwrap().span();
        RollupCall { rollup, range_ms: 1000, reference, steps: reference, parameters, span }
    }

    #[test]
    fn one_long_series_looks_at_the_deadline() {
        let samples = 1 << 20;
        let (times, values) = (vec![1; samples], vec![1.0; samples]);
        let bounds = vec![(0, samples as u32); 4];
        let late = QueryOptions { deadline: Some(Instant::now()), ..QueryOptions::default() };
        let killed = Some(Arc::new(AtomicBool::new(true)));
        let killed = QueryOptions { cancelled: killed, ..QueryOptions::default() };
        let call = call(Rollup::Sum, 4, Vec::new());
        let fill = |options: &QueryOptions, bounds: &[(u32, u32)]| {
            let mut row = vec![0.0; bounds.len()];
            call.fill_watched(options, &times, &values, bounds, &mut row).map(|()| row)
        };
        assert_eq!(fill(&QueryOptions::default(), &bounds).unwrap(), [samples as f64; 4]);
        assert!(matches!(fill(&late, &bounds), Err(QueryError::Timeout(_))));
        assert!(matches!(fill(&killed, &bounds), Err(QueryError::Canceled(_))));
        // What is little work is done before anybody looks.
        assert_eq!(fill(&late, &[(0, 5); 4]).unwrap(), [5.0; 4]);
    }

    #[test]
    fn pieces_give_what_the_whole_gives() {
        let samples = 3 << 18;
        let values: Vec<f64> = (0..samples).map(|idx| (idx % 1000) as f64).collect();
        let times: Vec<i64> = (0..samples as i64).collect();
        let bounds: Vec<(u32, u32)> =
            (0..9).map(|step| (step * 1000, samples as u32 - step * 70_000)).collect();
        let quantiles = Scalar::Steps((0..9).map(|step| f64::from(step) / 10.0).collect());
        for (rollup, parameters) in [
            (Rollup::Quantile, vec![quantiles]),
            (Rollup::Rate, Vec::new()),
            (Rollup::TimeOfMax, Vec::new()),
        ] {
            let call = call(rollup, 9, parameters);
            let (mut whole, mut pieces) = (vec![0.0; 9], vec![0.0; 9]);
            call.fill(&times, &values, &bounds, &mut whole).unwrap();
            let options = QueryOptions::default();
            call.fill_watched(&options, &times, &values, &bounds, &mut pieces).unwrap();
            assert_eq!(whole, pieces, "{rollup:?}");
        }
        let pieces = (1..9).filter(|first| piece_of_work(&bounds, samples, *first).end < 9);
        assert!(2 < pieces.count(), "there are pieces");
    }
}
