//! Functions from a window that may have histograms to one value.
//!
//! Numbers alone are worked out as ever; the steps whose windows have histograms are then gone over
//! one by one.

use crate::context::Context;
use crate::error::Result;
use crate::histograms::cells::Cell;
use crate::histograms::edges;
use crate::histograms::notes::{Note, Notes, Operation};
use crate::histograms::point::{Point, Value, changes, resets, write};
use crate::histograms::rate::{self, Beginning};
use crate::histograms::samples::{MixedSamples, MixedWindows};
use crate::histograms::sum::Accumulator;
use crate::rollup::{EdgedWindows, Rollup, RollupCall, instant_rate};
use crate::staleness::StaleFilter;
use crate::time::{seconds, to_ns};
use histogram::Histogram;
use model::Labels;

/// Writes the value of every step: as [`RollupCall::fill`] where there may be histograms.
fn fill(
    context: &Context<'_>,
    call: &RollupCall,
    windows: &mut MixedWindows,
    samples: &MixedSamples<'_>,
    (row, cells): (&mut [f64], &mut [Cell]),
    notes: &mut Notes,
) -> Result<()> {
    let (numbers, histograms) = windows.of(samples);
    call.fill(samples.times, samples.values, numbers, row)?;
    for (step, (value, cell)) in row.iter_mut().zip(cells).enumerate() {
        let window = samples.window(numbers[step], histograms[step]);
        if window.histograms.is_empty() {
            continue;
        }
        if takes_numbers(call.rollup) {
            if call.rollup == Rollup::DoubleExponentialSmoothing {
                call.check_factors(step)?;
            }
            if !window.times.is_empty() {
                notes.add(Note::Ignored);
            }
            continue;
        }
        // A window may have very many histograms.
        context.check()?;
        write(value_of(call, step, &window, notes), value, cell);
    }
    Ok(())
}

/// Whether a function leaves histograms out.
fn takes_numbers(rollup: Rollup) -> bool {
    matches!(
        rollup,
        Rollup::Deriv
            | Rollup::PredictLinear
            | Rollup::DoubleExponentialSmoothing
            | Rollup::Min
            | Rollup::Max
            | Rollup::Quantile
            | Rollup::Mad
            | Rollup::Stddev
            | Rollup::Stdvar
            | Rollup::TimeOfMax
            | Rollup::TimeOfMin
    )
}

/// The value of a window with histograms.
fn value_of(call: &RollupCall, step: usize, window: &MixedSamples<'_>, notes: &mut Notes) -> Value {
    let is_mixed = !window.times.is_empty();
    let ends = || {
        let times = window.times.iter().chain(window.histogram_times);
        times.fold((i64::MAX, i64::MIN), |(low, high), time| (low.min(*time), high.max(*time)))
    };
    match call.rollup {
        Rollup::Count => Value::Number((window.times.len() + window.histograms.len()) as f64),
        Rollup::Present | Rollup::Absent => Value::Number(1.0),
        Rollup::TimeOfFirst => Value::Number(seconds(ends().0)),
        Rollup::TimeOfLast => Value::Number(seconds(ends().1)),
        Rollup::First => window.merged().next().into(),
        Rollup::Last => window.merged().last().into(),
        Rollup::Changes => Value::Number(changes(window.merged())),
        Rollup::Resets => Value::Number(resets(window.merged())),
        Rollup::Irate | Rollup::Idelta => instant(window, call.rollup == Rollup::Irate, notes),
        _ if is_mixed => {
            notes.add(Note::MixedWindow);
            Value::Gap
        }
        Rollup::Sum => {
            added_up(Accumulator::total(&window.histograms[0]), &window.histograms[1..], notes)
                .into()
        }
        Rollup::Avg => {
            added_up(Accumulator::mean(&window.histograms[0]), &window.histograms[1..], notes)
                .into()
        }
        _ => extrapolated(call, step, window, notes).into(),
    }
}

/// `irate` and `idelta`: of the last two samples.
fn instant(window: &MixedSamples<'_>, is_rate: bool, notes: &mut Notes) -> Value {
    let (mut before, mut last) = (None, None);
    for point in window.merged() {
        (before, last) = (last, Some(point));
    }
    match (before, last) {
        (Some((start, Point::Histogram(a))), Some((end, Point::Histogram(b)))) => {
            let mut found = rate::instant_difference([a, b], is_rate, Beginning::Unknown, notes);
            if let Some(found) = found.as_mut().filter(|_| is_rate) {
                found.div(seconds(end - start));
            }
            found.into()
        }
        // Numbers are worked out already, but among histograms they are not the last samples.
        (Some((start, Point::Number(a))), Some((end, Point::Number(b)))) => {
            Value::Number(match is_rate {
                true => instant_rate([(start, a), (end, b)]),
                false => b - a,
            })
        }
        (Some(_), Some(_)) => {
            notes.add(Note::MixedWindow);
            Value::Gap
        }
        _ => Value::Gap,
    }
}

/// `sum_over_time` and `avg_over_time`, begun with the first of the histograms.
fn added_up(mut sum: Accumulator, others: &[Histogram], notes: &mut Notes) -> Option<Histogram> {
    if others.iter().try_for_each(|other| sum.add(other)).is_err() {
        notes.add(Note::Incompatible);
        return None;
    }
    let (found, noted) = sum.finish();
    notes.add_found(noted, Operation::Aggregation);
    Some(found)
}

/// `rate`, `increase` and `delta`.
fn extrapolated(
    call: &RollupCall,
    step: usize,
    window: &MixedSamples<'_>,
    notes: &mut Notes,
) -> Option<Histogram> {
    let extrapolation = call.extrapolation();
    let (points, times) = (window.histograms, window.histogram_times);
    let (found, noted) = rate::difference(points, extrapolation.is_counter, |_| Beginning::Unknown);
    notes.extend(noted);
    let mut found = found?;
    let end = call.reference.at_ns(step);
    let start = end.saturating_sub(to_ns(call.range_ms));
    let first = points[0].count;
    let share_to_zero = (extrapolation.is_counter && 0.0 < found.count && 0.0 <= first)
        .then(|| first / found.count);
    let sampled = (times[0], times[times.len() - 1], times.len());
    found.mul(extrapolation.factor(sampled, (start, end), share_to_zero));
    Some(found)
}

/// Makes the rows of a rollup over series that may have histograms, and tells what there is to note.
pub(crate) struct MixedRollup<'a> {
    context: &'a Context<'a>,
    call: &'a RollupCall,
    /// Where the windows are when their edges count.
    edged: Option<EdgedWindows>,
    windows: MixedWindows,
    filter: StaleFilter,
    notes: Notes,
}

impl<'a> MixedRollup<'a> {
    pub fn new(
        context: &'a Context<'a>,
        call: &'a RollupCall,
        edged: Option<EdgedWindows>,
    ) -> MixedRollup<'a> {
        let windows = MixedWindows::new(call.reference, call.range_ms);
        let (filter, notes) = (StaleFilter::default(), Notes::default());
        MixedRollup { context, call, edged, windows, filter, notes }
    }

    /// Writes the value of every step.
    pub fn make(
        &mut self,
        labels: &Labels,
        samples: &MixedSamples<'_>,
        row: &mut [f64],
        cells: &mut [Cell],
    ) -> Result<()> {
        let (times, values) = self.filter.apply(samples.times, samples.values);
        let samples = MixedSamples { times, values, ..*samples };
        if let Some(tally) = self.context.tally() {
            match &self.edged {
                None => tally.add_mixed(&mut self.windows, &samples),
                Some(edged) => tally.add_around(edged, &samples),
            }
        }
        let (context, notes) = (self.context, &mut self.notes);
        match &self.edged {
            None => fill(context, self.call, &mut self.windows, &samples, (row, cells), notes)?,
            Some(edged) => {
                let rollup = self.call.rollup;
                edges::fill(context, (edged, rollup), &samples, (row, cells), notes)?;
            }
        }
        notes.tell(self.context, labels.metric_name(), self.call.span);
        Ok(())
    }
}
