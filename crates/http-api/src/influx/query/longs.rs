//! Fields of whole numbers beyond float64: samples and their low bits, which stand in series of their
//! own, put together (decision 49).

use super::source::Selected;
use influxql::{EvalError, IntegerSeries, IntegerSink, SampleSink, SeriesSet};
use model::Labels;
use std::collections::HashMap;
use std::ops::Range;
use wire::influx::long::{exact, is_long};

/// Series of a field, and those of the low bits.
pub struct Longs {
    samples: Selected,
    lows: Selected,
    /// Where the low bits of each series of samples are.
    places: Vec<Option<usize>>,
}

/// A series' times and values.
#[derive(Default)]
struct Column {
    times: Vec<i64>,
    values: Vec<f64>,
}

impl Column {
    fn read(series: &Selected, idx: usize) -> Result<Column, EvalError> {
        let mut column = Column::default();
        series.read(idx..idx + 1, &mut |_, times, values| {
            column.times.extend_from_slice(times);
            column.values.extend_from_slice(values);
        })?;
        Ok(column)
    }
}

impl Longs {
    /// Joins both by their tags.
    ///
    /// # Errors
    /// A failed read.
    pub fn join(samples: Selected, lows: Selected) -> Result<Longs, EvalError> {
        let by_tags: HashMap<Labels, usize> = lows.tags(None)?.into_iter().zip(0..).collect();
        let tags = samples.tags(None)?;
        let places = tags.iter().map(|tags| by_tags.get(tags).copied()).collect();
        Ok(Longs { samples, lows, places })
    }

    fn read_one(&self, idx: usize, sink: &mut IntegerSink<'_>) -> Result<(), EvalError> {
        let column = Column::read(&self.samples, idx)?;
        let place = self.places.get(idx).copied().flatten();
        let low = match place.filter(|_| column.values.iter().any(|value| is_long(*value))) {
            Some(place) => Column::read(&self.lows, place)?,
            None => Column::default(),
        };
        let (mut times, mut numbers) = (Vec::new(), Vec::new());
        let mut next = 0;
        for (time, value) in column.times.into_iter().zip(column.values) {
            if value.is_nan() {
                continue;
            }
            next += low.times[next..].partition_point(|other| *other < time);
            let is_there = low.times.get(next) == Some(&time);
            let bits = low.values.get(next).filter(|_| is_there);
            let number = bits.and_then(|bits| exact(value, *bits));
            times.push(time);
            numbers.push(match number {
                Some(number) => i64::try_from(number).unwrap_or(i64::MAX),
                None => value as i64,
            });
        }
        sink(idx, &times, &numbers);
        Ok(())
    }
}

impl SeriesSet for Longs {
    fn len(&self) -> usize {
        self.samples.len()
    }

    fn memory_size(&self) -> usize {
        let places = size_of_val(self.places.as_slice());
        self.samples.memory_size() + self.lows.memory_size() + places
    }

    fn tags(&self, wanted: Option<&[&str]>) -> Result<Vec<Labels>, EvalError> {
        self.samples.tags(wanted)
    }

    fn read(&self, range: Range<usize>, sink: &mut SampleSink<'_>) -> Result<(), EvalError> {
        self.samples.read(range, sink)
    }

    fn integers(&self) -> Option<&dyn IntegerSeries> {
        Some(self)
    }
}

impl IntegerSeries for Longs {
    fn read(&self, range: Range<usize>, sink: &mut IntegerSink<'_>) -> Result<(), EvalError> {
        for idx in range {
            self.read_one(idx, sink)?;
        }
        Ok(())
    }
}
