//! Start timestamps: `rate`, `increase`, `irate` and `resets` know since when a counter counts.
//!
//! A sample whose start timestamp lies behind the sample before it counts from zero, whatever its
//! value; one whose start timestamp lies within the window was zero there, so nothing has to be
//! guessed on the left. As Prometheus 3.14 does with `use-start-timestamps`. Whoever does not ask,
//! or selects series without start timestamps, never comes here.
//!
//! Times are nanoseconds; 0 is no start timestamp, as in Prometheus.

use crate::context::Context;
use crate::error::Result;
use crate::gap::{ABSENT, is_absent};
use crate::histograms::cells::Cell;
use crate::histograms::notes::{Note, Notes};
use crate::histograms::point::{Point, Value, write};
use crate::histograms::rate::{self, Beginning};
use crate::histograms::samples::{MixedSamples, MixedWindows};
use crate::names::Key;
use crate::options::StartTimestamps;
use crate::reservation::Reservation;
use crate::rollup::{Rollup, RollupCall, Started, since_start};
use crate::row::RowVisitor;
use crate::staleness::StaleFilter;
use crate::time::{Grid, seconds, to_ns};
use crate::vector::Vector;
use crate::windows::Windows;
use hashbrown::HashMap;
use histogram::Histogram;
use model::{Labels, Matcher, TimeRange};
use promql::VectorSelector;

/// Bytes of one start timestamp and its sample's time.
const START_SIZE: u64 = 16;

/// Times of samples and their start timestamps.
type Series = (Vec<i64>, Vec<i64>);

/// The start timestamps of some series.
pub(crate) struct Starts {
    by_series: HashMap<u128, Series>,
    _held: Reservation,
}

/// The samples of a window and, beside each, its start timestamp.
struct Window<'a> {
    samples: MixedSamples<'a>,
    numbers: &'a [i64],
    histograms: &'a [i64],
}

impl Rollup {
    /// Whether the function asks since when a counter counts.
    pub fn knows_starts(self) -> bool {
        matches!(self, Rollup::Rate | Rollup::Increase | Rollup::Irate | Rollup::Resets)
    }
}

impl Starts {
    /// The start timestamps of a series' samples at `times`, which rise.
    fn at(&self, fingerprint: u128, times: &[i64], out: &mut Vec<i64>) {
        out.clear();
        let Some((known, starts)) = self.by_series.get(&fingerprint) else {
            out.resize(times.len(), 0);
            return;
        };
        let mut next = 0;
        for time in times {
            next += known[next..].iter().take_while(|one| *one < time).count();
            let is_its = known.get(next) == Some(time);
            out.push(if is_its { starts[next] } else { 0 });
        }
    }
}

impl Context<'_> {
    /// Whether series that these matchers select have start timestamps, and somebody asks.
    pub fn has_starts(&self, sets: &[Vec<Matcher>], range: TimeRange) -> Result<bool> {
        if self.options.start_timestamps == StartTimestamps::Ignored || range.is_empty() {
            return Ok(false);
        }
        let found = self.source.select_starts(sets, range, &self.select_limits())?;
        Ok(found.is_some_and(|found| !found.is_empty()))
    }

    /// The start timestamps of the series that these matchers select.
    fn read_starts(&self, sets: &[Vec<Matcher>], range: TimeRange) -> Result<Starts> {
        let held = Reservation::new(&self.usage);
        let mut by_series: HashMap<u128, Series> = HashMap::new();
        let Some(set) = self.source.select_starts(sets, range, &self.select_limits())? else {
            return Ok(Starts { by_series, _held: held });
        };
        let mut next = 0;
        while next < set.len() {
            self.check()?;
            let batch = next..set.len().min(next + set.batch_len());
            next = batch.end;
            let mut fingerprints = Vec::with_capacity(batch.len());
            set.read_labels(batch.clone(), None, &mut |_, labels| {
                fingerprints.push(labels.fingerprint());
            })?;
            let (first, mut count) = (batch.start, 0);
            set.read(batch, &mut |idx, times, millis| {
                count += times.len() as u64;
                let starts = millis.iter().map(|millis| to_ns(*millis as i64)).collect();
                by_series.insert(fingerprints[idx - first], (times.to_vec(), starts));
            })?;
            held.grow(count, START_SIZE * count);
            self.check_memory()?;
        }
        Ok(Starts { by_series, _held: held })
    }

    /// As [`Context::read_rows`] for a function that knows start timestamps: calls `visit` with the
    /// row of each series.
    pub fn read_rows_with_starts(
        &self,
        call: &RollupCall,
        (sets, range): (&[Vec<Matcher>], TimeRange),
        visit: &mut RowVisitor<'_>,
    ) -> Result<()> {
        let mut maker = StartRollup::new(self, call);
        let mut known = None;
        let (mut row, mut cells) = (vec![ABSENT; call.steps.len], vec![None; call.steps.len]);
        self.read_samples(sets, range, None, &mut |labels, samples| {
            // Behind the samples, as they come in: so none that is seen lacks its own.
            if known.is_none() {
                known = Some(self.read_starts(sets, range)?);
            }
            let starts = known.as_ref().expect("they were read");
            row.fill(ABSENT);
            cells.fill(None);
            maker.make(labels, samples, starts, (&mut row, &mut cells))?;
            let is_mixed = cells.iter().any(Option::is_some);
            visit(labels, &row, if is_mixed { &cells } else { &[] })
        })
    }

    /// The start timestamp of the sample that each step sees, in seconds; 0 for one without.
    pub fn selector_starts(&self, selector: &VectorSelector, grid: Grid) -> Result<Vector> {
        let mut vector = Vector::new(self, grid.len);
        if self.options.start_timestamps == StartTimestamps::Ignored {
            return Ok(vector);
        }
        let reference = self.reference(grid, selector.at, selector.offset_ms);
        let mut windows = MixedWindows::new(reference, self.options.lookback_ms);
        let range = Windows::new(reference, self.options.lookback_ms).time_range();
        let sets = std::slice::from_ref(&selector.matchers);
        let (tally, mut known) = (self.tally(), None);
        let (mut row, mut starts) = (vec![ABSENT; grid.len], Vec::new());
        self.read_samples(sets, range, None, &mut |labels, samples| {
            if known.is_none() {
                known = Some(self.read_starts(sets, range)?);
            }
            let (numbers, histograms) = windows.of(samples);
            let newest = |step: usize| samples.window(numbers[step], histograms[step]).newest();
            let times = (0..grid.len).filter_map(|step| newest(step).map(|(time, _)| time));
            let times: Vec<i64> = times.collect();
            known.as_ref().expect("they were read").at(labels.fingerprint(), &times, &mut starts);
            let mut starts = starts.iter();
            for (step, value) in row.iter_mut().enumerate() {
                *value = match newest(step) {
                    None => ABSENT,
                    Some((_, found)) => {
                        let start = starts.next().copied().unwrap_or(0);
                        let is_stale = found.is_ok_and(is_absent);
                        if is_stale { ABSENT } else { seconds(start) }
                    }
                };
            }
            if let Some(tally) = tally {
                tally.add_newest(&row, &[]);
            }
            vector.push(self, Key::new(labels.clone()), &row)
        })?;
        Ok(vector)
    }
}

/// Makes the rows of a rollup over series that may have start timestamps.
struct StartRollup<'a> {
    context: &'a Context<'a>,
    call: &'a RollupCall,
    windows: MixedWindows,
    filter: StaleFilter,
    notes: Notes,
    /// Of the numbers and of the histograms of the present series.
    starts: [Vec<i64>; 2],
}

impl<'a> StartRollup<'a> {
    fn new(context: &'a Context<'a>, call: &'a RollupCall) -> StartRollup<'a> {
        let windows = MixedWindows::new(call.reference, call.range_ms);
        let (filter, notes) = (StaleFilter::default(), Notes::default());
        StartRollup { context, call, windows, filter, notes, starts: Default::default() }
    }

    /// Writes the value of every step.
    fn make(
        &mut self,
        labels: &Labels,
        samples: &MixedSamples<'_>,
        starts: &Starts,
        (row, cells): (&mut [f64], &mut [Cell]),
    ) -> Result<()> {
        let (times, values) = self.filter.apply(samples.times, samples.values);
        let samples = MixedSamples { times, values, ..*samples };
        let [of_numbers, of_histograms] = &mut self.starts;
        let fingerprint = labels.fingerprint();
        starts.at(fingerprint, samples.times, of_numbers);
        starts.at(fingerprint, samples.histogram_times, of_histograms);
        if let Some(tally) = self.context.tally() {
            tally.add_mixed(&mut self.windows, &samples);
        }
        let (numbers, histograms) = self.windows.of(&samples);
        for (step, (value, cell)) in row.iter_mut().zip(cells).enumerate() {
            let (numbers, histograms) = (numbers[step], histograms[step]);
            if numbers.0 == numbers.1 && histograms.0 == histograms.1 {
                continue;
            }
            // A window may have very many samples.
            self.context.check()?;
            let window = Window {
                samples: samples.window(numbers, histograms),
                numbers: &of_numbers[numbers.0 as usize..numbers.1 as usize],
                histograms: &of_histograms[histograms.0 as usize..histograms.1 as usize],
            };
            write(value_of(self.call, step, &window, &mut self.notes), value, cell);
        }
        self.notes.tell(self.context, labels.metric_name(), self.call.span);
        Ok(())
    }
}

/// The value of a window that is not empty.
fn value_of(call: &RollupCall, step: usize, window: &Window<'_>, notes: &mut Notes) -> Value {
    match call.rollup {
        Rollup::Resets => Value::Number(window.resets()),
        Rollup::Irate => window.instant_rate(notes),
        _ if !window.numbers.is_empty() && !window.histograms.is_empty() => {
            notes.add(Note::MixedWindow);
            Value::Gap
        }
        _ if window.histograms.is_empty() => {
            window.note_overlaps(window.samples.times, window.numbers, notes);
            let end = call.reference.at_ns(step);
            let start = end.saturating_sub(to_ns(call.range_ms));
            let MixedSamples { times, values, .. } = window.samples;
            let samples = (times, values, window.numbers);
            let value = call.extrapolation().apply_with_starts(samples, start, end);
            if is_absent(value) { Value::Gap } else { Value::Number(value) }
        }
        _ => extrapolated(call, step, window, notes).map_or(Value::Gap, Value::Histogram),
    }
}

/// `rate` and `increase` of histograms.
fn extrapolated(
    call: &RollupCall,
    step: usize,
    window: &Window<'_>,
    notes: &mut Notes,
) -> Option<Histogram> {
    let extrapolation = call.extrapolation();
    let (points, times) = (window.samples.histograms, window.samples.histogram_times);
    let starts = window.histograms;
    let started = |idx: usize| Started { at: times[idx], start: starts[idx] };
    let mut found = None;
    if 1 < points.len() {
        let begins = |idx: usize| match started(idx).is_reset_after(started(idx - 1)) {
            true => Beginning::Told,
            false => Beginning::Unknown,
        };
        let (difference, noted) = rate::difference(points, extrapolation.is_counter, begins);
        notes.extend(noted);
        found = Some(difference?);
        window.note_overlaps(times, starts, notes);
    }
    let end = call.reference.at_ns(step);
    let start = end.saturating_sub(to_ns(call.range_ms));
    let (first, last) = (times[0], times[times.len() - 1]);
    if let Some(began) = since_start(starts[0], first, start) {
        let mut whole = match found {
            None => points[0].clone(),
            Some(mut found) => {
                rate::add(&mut found, &points[0], notes)?;
                found
            }
        };
        whole.mul(extrapolation.factor_since(began, (first, last, times.len()), end));
        return Some(whole);
    }
    let mut found = found?;
    let count = points[0].count;
    let share_to_zero = (0.0 < found.count && 0.0 <= count).then(|| count / found.count);
    found.mul(extrapolation.factor((first, last, times.len()), (start, end), share_to_zero));
    Some(found)
}

impl Window<'_> {
    /// The samples of either kind with their start timestamps, oldest first.
    fn merged(&self) -> impl Iterator<Item = (Started, Point<'_>)> {
        let (mut numbers, mut histograms) = (self.numbers.iter(), self.histograms.iter());
        self.samples.merged().map(move |(at, point)| {
            let start = match point {
                Point::Number(_) => numbers.next(),
                Point::Histogram(_) => histograms.next(),
            };
            (Started { at, start: start.copied().unwrap_or(0) }, point)
        })
    }

    fn resets(&self) -> f64 {
        let mut before = None;
        let resets = self.merged().filter(|(started, point)| {
            let is_reset = before.is_some_and(|(old, was)| match (was, *point) {
                (Point::Number(a), Point::Number(b)) => b < a || started.is_reset_after(old),
                (Point::Histogram(a), Point::Histogram(b)) => {
                    started.is_reset_after(old) || b.is_reset_after(a)
                }
                _ => true,
            });
            before = Some((*started, *point));
            is_reset
        });
        resets.count() as f64
    }

    /// Of the last two samples.
    fn instant_rate(&self, notes: &mut Notes) -> Value {
        let (mut before, mut last) = (None, None);
        for point in self.merged() {
            (before, last) = (last, Some(point));
        }
        let (Some((old, a)), Some((new, b))) = (before, last) else { return Value::Gap };
        let is_reset = new.is_reset_after(old);
        let elapsed = seconds(new.at - old.at);
        match (a, b) {
            (Point::Number(a), Point::Number(b)) => {
                let difference = if b < a || is_reset { b } else { b - a };
                Value::Number(difference / elapsed)
            }
            (Point::Histogram(a), Point::Histogram(b)) => {
                let begins = if is_reset { Beginning::Told } else { Beginning::Unknown };
                let mut found = rate::instant_difference([a, b], true, begins, notes);
                if let Some(found) = &mut found {
                    found.div(elapsed);
                }
                found.map_or(Value::Gap, Value::Histogram)
            }
            _ => {
                notes.add(Note::MixedWindow);
                Value::Gap
            }
        }
    }

    /// Notes samples that claim what others counted already.
    fn note_overlaps(&self, times: &[i64], starts: &[i64], notes: &mut Notes) {
        let started =
            times.iter().zip(starts).map(|(at, start)| Started { at: *at, start: *start });
        let mut pairs = started.clone().zip(started.skip(1));
        if pairs.any(|(before, after)| after.overlaps(before)) {
            notes.add(Note::StartOverlap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_behind_the_sample_before_is_a_reset() {
        let sample = |at, start| Started { at, start };
        for (before, after, expected) in [
            (sample(10, 0), sample(20, 0), false),
            (sample(10, 5), sample(20, 5), false),
            (sample(10, 5), sample(20, 11), true),
            // Deltas, and counters whose start was not known.
            (sample(10, 5), sample(20, 10), true),
            (sample(10, 0), sample(20, 10), false),
            (sample(10, 10), sample(20, 10), false),
            // What cannot be.
            (sample(10, 12), sample(20, 10), false),
            (sample(10, 5), sample(20, 20), false),
            (sample(10, 5), sample(20, 21), false),
        ] {
            let found = after.is_reset_after(before);
            assert_eq!(
                found, expected,
                "{}/{} {}/{}",
                before.at, before.start, after.at, after.start
            );
        }
        assert!(sample(20, 7).overlaps(sample(10, 5)));
        assert!(!sample(20, 10).overlaps(sample(10, 5)));
        assert!(!sample(20, 5).overlaps(sample(10, 5)));
    }

    #[test]
    fn starts_stand_at_the_times_of_their_samples() {
        let usage = std::rc::Rc::default();
        let starts = Starts {
            by_series: HashMap::from([(7, (vec![1, 3, 4], vec![10, 30, 40]))]),
            _held: Reservation::new(&usage),
        };
        let mut found = Vec::new();
        starts.at(7, &[0, 1, 2, 3, 3, 5], &mut found);
        assert_eq!(found, [0, 10, 0, 30, 30, 0]);
        starts.at(8, &[1, 3], &mut found);
        assert_eq!(found, [0, 0]);
    }
}
