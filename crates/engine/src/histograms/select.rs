//! Selectors whose series may have histograms: the general way, one series at a time.

use crate::error::{QueryError, Result};
use crate::histograms::cells::{Cell, HISTOGRAM, samples_of};
use crate::query::Context;
use crate::read_ahead::read_labels;
use crate::result::HistogramPoints;
use crate::selector::{RowVisitor, Windows, batch_len};
use crate::source::SeriesSet;
use crate::time::{Reference, seconds};
use crate::vector::{ABSENT, is_absent};
use histogram::Histogram;
use model::Labels;
use model::sample::NANOS_PER_MILLI;
use std::sync::Arc;

/// The samples of one series, oldest first; times in nanoseconds. No time is in both lists.
#[derive(Clone, Copy)]
pub(crate) struct MixedSamples<'a> {
    pub times: &'a [i64],
    pub values: &'a [f64],
    pub histogram_times: &'a [i64],
    pub histograms: &'a [Histogram],
}

impl<'a> MixedSamples<'a> {
    /// Samples of a series of numbers.
    pub fn numbers(times: &'a [i64], values: &'a [f64]) -> MixedSamples<'a> {
        MixedSamples { times, values, histogram_times: &[], histograms: &[] }
    }

    /// How many samples they count for.
    pub fn len(&self) -> u64 {
        self.times.len() as u64 + self.histograms.iter().map(samples_of).sum::<u64>()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty() && self.histograms.is_empty()
    }

    /// The histograms as they leave the engine.
    pub fn histogram_points(&self) -> HistogramPoints {
        let points = self.histogram_times.iter().zip(self.histograms);
        let point = |(time, one): (&i64, &Histogram)| {
            (time.div_euclid(NANOS_PER_MILLI), Arc::new(one.clone()))
        };
        points.map(point).collect()
    }

    /// The samples of a window of each list.
    pub fn window(&self, (low, high): (u32, u32), (first, last): (u32, u32)) -> MixedSamples<'a> {
        let (numbers, histograms) = (low as usize..high as usize, first as usize..last as usize);
        MixedSamples {
            times: &self.times[numbers.clone()],
            values: &self.values[numbers],
            histogram_times: &self.histogram_times[histograms.clone()],
            histograms: &self.histograms[histograms],
        }
    }

    /// The time and value of the newest sample: a number, which may be a stale marker, or else the
    /// index of a histogram.
    pub fn newest(&self) -> Option<(i64, std::result::Result<f64, usize>)> {
        let number = self.times.last().zip(self.values.last());
        let histogram = self.histogram_times.last();
        match (number, histogram) {
            (Some((time, value)), other) if other.is_none_or(|other| other < time) => {
                Some((*time, Ok(*value)))
            }
            (_, Some(time)) => Some((*time, Err(self.histograms.len() - 1))),
            _ => None,
        }
    }
}

/// Receives the labels and samples of one series.
pub(crate) type MixedVisitor<'v> = dyn FnMut(&Labels, &MixedSamples<'_>) -> Result<()> + 'v;

/// Makes the row of a series that may have histograms; `row` and `cells` come as gaps.
pub(crate) type MixedMaker<'m> =
    dyn FnMut(&Labels, &MixedSamples<'_>, &mut [f64], &mut [Cell]) -> Result<()> + 'm;

impl Context<'_> {
    /// Calls `visit` with the labels and samples of every series of a set that has samples.
    pub fn read_mixed(&self, set: &dyn SeriesSet, visit: &mut MixedVisitor<'_>) -> Result<()> {
        let (mut next, mut labels) = (0, Vec::new());
        while next < set.len() {
            self.check()?;
            let start = next;
            next = set.len().min(start + batch_len(set));
            read_labels(set, start..next, None, &mut labels)?;
            let mut failure: Option<QueryError> = None;
            let mut count = 0;
            set.read_mixed(start..next, &mut |idx, times, values, histogram_times, histograms| {
                debug_assert_eq!(times.len(), values.len());
                debug_assert_eq!(histogram_times.len(), histograms.len());
                let samples = MixedSamples { times, values, histogram_times, histograms };
                if failure.is_none() && !samples.is_empty() {
                    count += samples.len();
                    failure = visit(&labels[idx - start], &samples).err();
                }
            })?;
            self.count_samples_read(count);
            failure.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// As [`Context::read_mixed`] for who wants rows of `steps` values.
    pub fn read_mixed_rows(
        &self,
        set: &dyn SeriesSet,
        steps: usize,
        make: &mut MixedMaker<'_>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<()> {
        let (mut row, mut cells) = (vec![ABSENT; steps], vec![None; steps]);
        self.read_mixed(set, &mut |labels, samples| {
            row.fill(ABSENT);
            cells.fill(None);
            make(labels, samples, &mut row, &mut cells)?;
            let is_mixed = cells.iter().any(Option::is_some);
            visit(labels, &row, if is_mixed { &cells } else { &[] })
        })
    }
}

/// The windows of both lists of samples.
pub(crate) struct MixedWindows {
    numbers: Windows,
    histograms: Windows,
}

impl MixedWindows {
    pub fn new(reference: Reference, range_ms: i64) -> MixedWindows {
        let new = || Windows::new(reference, range_ms);
        MixedWindows { numbers: new(), histograms: new() }
    }

    /// The windows of numbers and those of histograms, by step.
    pub fn of(&mut self, samples: &MixedSamples<'_>) -> (&[(u32, u32)], &[(u32, u32)]) {
        (self.numbers.of(samples.times), self.histograms.of(samples.histogram_times))
    }

    /// Writes the time of the newest sample of each window, in seconds.
    pub fn newest_times(&mut self, samples: &MixedSamples<'_>, row: &mut [f64]) {
        let (numbers, histograms) = self.of(samples);
        for (step, value) in row.iter_mut().enumerate() {
            *value = match samples.window(numbers[step], histograms[step]).newest() {
                Some((_, Ok(number))) if is_absent(number) => ABSENT,
                Some((time, _)) => seconds(time),
                None => ABSENT,
            };
        }
    }

    /// Writes the newest sample of each window.
    pub fn newest(&mut self, samples: &MixedSamples<'_>, row: &mut [f64], cells: &mut [Cell]) {
        let (numbers, histograms) = self.of(samples);
        // Steps that see the same sample share it.
        let mut last: Option<(u32, Arc<Histogram>)> = None;
        for (step, (value, cell)) in row.iter_mut().zip(cells).enumerate() {
            let found = samples.window(numbers[step], histograms[step]).newest();
            match found {
                None => {}
                Some((_, Ok(number))) => *value = number,
                Some((_, Err(_))) => {
                    let at = histograms[step].1 - 1;
                    if last.as_ref().is_none_or(|(known, _)| *known != at) {
                        last = Some((at, Arc::new(samples.histograms[at as usize].clone())));
                    }
                    *value = HISTOGRAM;
                    *cell = last.as_ref().map(|(_, histogram)| Arc::clone(histogram));
                }
            }
        }
    }
}
