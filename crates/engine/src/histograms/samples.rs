//! The samples of a series that may have histograms, and the windows of steps over them.

use crate::gap::{ABSENT, is_absent};
use crate::histograms::cells::{Cell, HISTOGRAM, samples_of};
use crate::result::HistogramPoints;
use crate::time::{Reference, seconds};
use crate::windows::Windows;
use histogram::Histogram;
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
    pub fn newest(&self) -> Option<(i64, Result<f64, usize>)> {
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

/// Where each step's samples are in a list: the first and what is after the last.
type Bounds = [(u32, u32)];

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
    pub fn of(&mut self, samples: &MixedSamples<'_>) -> (&Bounds, &Bounds) {
        (self.numbers.of(samples.times), self.histograms.of(samples.histogram_times))
    }

    /// Writes the time of the newest sample of each window, in seconds. Says whether any of them is
    /// a histogram.
    pub fn newest_times(&mut self, samples: &MixedSamples<'_>, row: &mut [f64]) -> bool {
        let (numbers, histograms) = self.of(samples);
        let mut has_histograms = false;
        for (step, value) in row.iter_mut().enumerate() {
            let newest = samples.window(numbers[step], histograms[step]).newest();
            has_histograms |= matches!(newest, Some((_, Err(_))));
            *value = match newest {
                Some((_, Ok(number))) if is_absent(number) => ABSENT,
                Some((time, _)) => seconds(time),
                None => ABSENT,
            };
        }
        has_histograms
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
