//! The series of one field, and their samples as what was written.

use super::Result;
use super::held::Held;
use super::window::Windows;
use crate::ast::DataType;
use crate::source::SharedSet;
use crate::value::Value;
use std::collections::HashMap;
use std::ops::Range;

/// The samples of one series.
pub(super) type Samples = Vec<(i64, f64)>;

/// The selected series of a field.
pub(super) struct FieldSet<'s> {
    pub name: String,
    pub kind: DataType,
    pub set: SharedSet<'s>,
    /// Whether it is read for its own sake, not for a condition alone.
    pub is_selected: bool,
    /// What was read ahead, of each series.
    pub ahead: Option<Vec<Samples>>,
}

/// What a field's series are found by in one input: all of its sources have one condition and time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SetKey {
    pub database: String,
    pub measurement: String,
    pub field: String,
    pub kind: DataType,
}

/// The series that an input has selected, with their memory: a source that is named twice is selected
/// once.
pub(super) type KnownSets<'s> = HashMap<SetKey, (SharedSet<'s>, Held)>;

impl FieldSet<'_> {
    /// A sample as what was written.
    pub fn value(&self, sample: f64) -> Value {
        match self.kind {
            DataType::String => self.set.text(sample).map_or(Value::Null, Value::Text),
            _ if self.set.integers().is_some() => Value::Integer(integer_of(sample)),
            kind => Value::of_sample(sample, kind),
        }
    }

    /// Calls `sink` for each series of a range with its samples in the statement's time; those of
    /// whole numbers beyond float64 have the bits of these ([`integer_of`]).
    pub fn read(
        &self,
        windows: &Windows,
        range: Range<usize>,
        sink: &mut dyn FnMut(Samples),
    ) -> Result<()> {
        match self.set.integers() {
            Some(integers) => integers.read(range, &mut |_, times, numbers| {
                let samples = numbers.iter().map(|number| f64::from_bits(*number as u64));
                let pairs = times.iter().copied().zip(samples);
                sink(pairs.filter(|(time, _)| windows.covers(*time)).collect());
            }),
            None => self.set.read(range, &mut |_, times, values| {
                sink(present(windows, times, values));
            }),
        }
    }
}

/// The whole number whose bits stand in a sample.
fn integer_of(sample: f64) -> i64 {
    sample.to_bits() as i64
}

/// The samples that are there, within the time that is asked for.
fn present(windows: &Windows, times: &[i64], values: &[f64]) -> Samples {
    let pairs = times.iter().copied().zip(values.iter().copied());
    let is_there = |(time, value): &(i64, f64)| !value.is_nan() && windows.covers(*time);
    pairs.filter(is_there).collect()
}
