//! How many samples each step sees, counted when a query asks for it.
//!
//! As Prometheus counts them: each step has what an instant query at its time would read. A window
//! counts whole at every step, whether the step before saw the same samples or not; what does not
//! depend on the step counts at all of them; of a subquery the samples that it makes count, not
//! those that it reads.
//!
//! Rows are made by several threads at once, so the counters are atomic; nobody has any who did not
//! ask.

use crate::gap::is_absent;
use crate::histograms::cells::{Cell as HistogramCell, samples_of};
use crate::histograms::samples::{MixedSamples, MixedWindows};
use crate::rollup::EdgedWindows;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of one query.
pub(crate) struct StepSamples {
    steps: Box<[AtomicU64]>,
    /// What counts at every step.
    of_all: [AtomicU64; 1],
    scope: Cell<Scope>,
}

/// To which steps the samples belong that are read just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Each to its own.
    Own,
    /// To all steps: what is evaluated does not depend on them.
    All,
    /// To none: they are those of a subquery.
    Nowhere,
}

/// Sets where samples count until it is dropped.
pub(crate) struct CountingScope<'c> {
    counters: Option<&'c StepSamples>,
    before: Scope,
}

impl<'c> CountingScope<'c> {
    /// Counts so from now on; within a subquery nothing counts.
    pub fn begin(counters: Option<&'c StepSamples>, scope: Scope) -> CountingScope<'c> {
        let before = counters.map_or(Scope::Own, |counters| counters.scope.get());
        if let Some(counters) = counters.filter(|_| before != Scope::Nowhere) {
            counters.scope.set(scope);
        }
        CountingScope { counters, before }
    }
}

impl Drop for CountingScope<'_> {
    fn drop(&mut self) {
        if let Some(counters) = self.counters {
            counters.scope.set(self.before);
        }
    }
}

impl StepSamples {
    /// Counters of so many steps.
    pub fn new(steps: usize) -> StepSamples {
        StepSamples {
            steps: (0..steps).map(|_| AtomicU64::new(0)).collect(),
            of_all: Default::default(),
            scope: Cell::new(Scope::Own),
        }
    }

    /// Where the steps of the present grid count, if they do.
    pub fn tally(&self) -> Option<Tally<'_>> {
        match self.scope.get() {
            Scope::Own => Some(Tally { steps: &self.steps }),
            Scope::All => Some(Tally { steps: &self.of_all }),
            Scope::Nowhere => None,
        }
    }

    /// What was counted, by step.
    pub fn totals(&self) -> Vec<u64> {
        let of_all = self.of_all[0].load(Relaxed);
        self.steps.iter().map(|step| of_all + step.load(Relaxed)).collect()
    }
}

/// Counts for the steps of one grid.
#[derive(Clone, Copy)]
pub(crate) struct Tally<'c> {
    steps: &'c [AtomicU64],
}

impl Tally<'_> {
    /// Adds samples to a step.
    pub fn add(&self, step: usize, samples: u64) {
        let counter = match self.steps {
            [only] => Some(only),
            steps => steps.get(step),
        };
        // A grid that is not the query's has no counters of its own.
        if let Some(counter) = counter {
            counter.fetch_add(samples, Relaxed);
        }
    }

    /// Adds the newest of each step's window: one number, or a histogram by its size.
    pub fn add_newest(&self, row: &[f64], cells: &[HistogramCell]) {
        for (step, _) in row.iter().enumerate().filter(|(_, value)| !is_absent(**value)) {
            let histogram = cells.get(step).and_then(Option::as_ref);
            self.add(step, histogram.map_or(1, |histogram| samples_of(histogram)));
        }
    }

    /// Adds what lies around windows with values at their edges.
    pub fn add_around(&self, windows: &EdgedWindows, samples: &MixedSamples<'_>) {
        for step in 0..windows.reference.len {
            let histograms = windows.around(step, samples.histogram_times);
            let sizes = samples.histograms[histograms].iter().map(samples_of).sum::<u64>();
            self.add(step, windows.around(step, samples.times).len() as u64 + sizes);
        }
    }

    /// Adds what the windows of each step have.
    pub fn add_windows(&self, bounds: &[(u32, u32)]) {
        for (step, (low, high)) in bounds.iter().enumerate() {
            self.add(step, u64::from(high.saturating_sub(*low)));
        }
    }

    /// As [`Tally::add_windows`] with histograms, which count by their size.
    pub fn add_mixed(&self, windows: &mut MixedWindows, samples: &MixedSamples<'_>) {
        let (numbers, histograms) = windows.of(samples);
        self.add_windows(numbers);
        for (step, (low, high)) in histograms.iter().enumerate() {
            let window = &samples.histograms[*low as usize..*high as usize];
            self.add(step, window.iter().map(samples_of).sum());
        }
    }
}
