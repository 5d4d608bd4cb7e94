//! Rows: the values of one series at every step, on their way from one operation to the next.

use crate::error::Result;
use crate::histograms::cells::Cell;
use crate::names::{Key, NameState, without_metadata};
use model::Labels;

/// A row before its key is made: most rows are added to a group and need no labels of their own.
pub(crate) struct Row<'a> {
    pub labels: &'a Labels,
    pub name: NameState,
    pub values: &'a [f64],
    /// The histograms among the values; nothing where all are numbers.
    pub cells: &'a [Cell],
}

impl<'a> Row<'a> {
    /// A row of numbers.
    pub fn numbers(labels: &'a Labels, name: NameState, values: &'a [f64]) -> Row<'a> {
        Row { labels, name, values, cells: &[] }
    }

    pub fn key(&self) -> Key {
        match self.name {
            NameState::Kept => Key::new(self.labels.clone()),
            NameState::Dropped => Key::new(without_metadata(self.labels)),
            NameState::DroppedLate => Key { labels: self.labels.clone(), drops_name: true },
        }
    }
}

/// Receives rows; most of the engine's operations on whole vectors are one.
pub(crate) type RowSink<'s> = dyn FnMut(&Row<'_>) -> Result<()> + 's;

/// Names of the labels that rows are to have; all when there is no list.
pub(crate) type Wanted<'w> = Option<&'w [&'w str]>;

/// Receives one series: its labels, timestamps and values.
pub(crate) type SeriesVisitor<'v> = dyn FnMut(&Labels, &[i64], &[f64]) -> Result<()> + 'v;

/// Receives the labels and the row of one series, and the histograms in it if it has any.
pub(crate) type RowVisitor<'v> = dyn FnMut(&Labels, &[f64], &[Cell]) -> Result<()> + 'v;
