//! Reads every byte of a part and checks all that must hold; for `quipu verify` and the tests.

use super::directory::ColumnTimes;
use super::liveness::{DayRuns, Liveness};
use super::reader::{Check, Part};
use crate::Result;

/// What was found in a part that is sound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifiedPart {
    /// Slices read.
    pub slices: u64,
    /// Columns with samples.
    pub columns: u64,
    /// Samples decoded.
    pub samples: u64,
    /// UTC days with samples.
    pub days: u64,
}

/// Buffers of one verification.
#[derive(Default)]
struct Verification {
    counts: VerifiedPart,
    liveness: Liveness,
    shared_lens: Vec<u32>,
    own_lens: Vec<u32>,
    shared_days: DayRuns,
    own_days: DayRuns,
    times: Vec<i64>,
    values: Vec<f64>,
    /// Span of the slice's samples seen so far.
    span: Option<(i64, i64)>,
}

impl Part {
    /// Decodes everything and checks checksums, order, spans, counts and liveness.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] for the first thing that does not hold.
    pub fn verify(&self) -> Result<VerifiedPart> {
        if !self.has_sound_header() {
            return Err(self.corrupt(0, "a header that the directory confirms"));
        }
        let (mut verification, faults) = (Verification::default(), self.faults());
        for idx in 0..self.slices().len() {
            verification.slice(self, idx)?;
        }
        verification.days(self)?;
        self.check_faults(faults, 0)?;
        Ok(verification.counts)
    }
}

impl Verification {
    fn slice(&mut self, part: &Part, idx: usize) -> Result<()> {
        let slice = &part.slice(idx);
        self.span = None;
        self.shared_lens.clear();
        if let Some(reader) = part.shared_times_with(idx, Check::Always)? {
            part.read_all_times(idx, &reader, &mut self.times)?;
            self.shared_lens.extend_from_slice(reader.lens());
            self.shared_days.compute(&self.shared_lens, &self.times);
            self.widen();
        }
        let mut samples = 0;
        for column in 0..slice.columns as usize {
            samples += self.column(part, idx, column)?;
        }
        if samples != slice.samples || self.span != Some((slice.min_ts, slice.max_ts)) {
            return Err(part.corrupt_slice(idx, "counts and span that agree"));
        }
        self.counts.slices += 1;
        self.counts.samples += samples;
        Ok(())
    }

    fn column(&mut self, part: &Part, idx: usize, column: usize) -> Result<u64> {
        let first = part.slice(idx).ordinal(column, 0);
        let lens = match part.column_times(idx, column) {
            ColumnTimes::Empty => return Ok(0),
            ColumnTimes::Shared => {
                self.liveness.add(first, &self.shared_days);
                &self.shared_lens
            }
            ColumnTimes::Own => {
                let reader = part.own_times_with(idx, column, Check::Always)?;
                part.read_all_times(idx, &reader, &mut self.times)?;
                self.own_lens.clear();
                self.own_lens.extend_from_slice(reader.lens());
                self.own_days.compute(&self.own_lens, &self.times);
                self.liveness.add(first, &self.own_days);
                self.widen();
                &self.own_lens
            }
        };
        self.values.clear();
        part.values_with(idx, column, lens, Check::Always)?
            .read(0..lens.len(), &mut self.values)
            .map_err(|error| part.corrupt_page(part.slice(idx).offset, error))?;
        let expected: u64 = lens.iter().map(|&len| u64::from(len)).sum();
        if expected == 0 || self.values.len() as u64 != expected {
            return Err(part.corrupt_slice(idx, "a value for each timestamp"));
        }
        self.counts.columns += 1;
        Ok(expected)
    }

    fn widen(&mut self) {
        for &timestamp in &self.times {
            let (min, max) = self.span.unwrap_or((timestamp, timestamp));
            self.span = Some((min.min(timestamp), max.max(timestamp)));
        }
    }

    fn days(&mut self, part: &Part) -> Result<()> {
        let expected = self.liveness.finish();
        let found = part.live_days()?;
        if !expected.iter().map(|(day, set)| (*day, set)).eq(found.iter().map(|(d, s)| (*d, s))) {
            let offset = part.directory().days.first().map_or(0, |day| day.offset);
            return Err(part.corrupt(offset, "the series of each day"));
        }
        self.counts.days = found.len() as u64;
        Ok(())
    }
}
