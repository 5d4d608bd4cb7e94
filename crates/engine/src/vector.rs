//! The working shape: series by steps, dense.
//!
//! ```text
//!            step 0   step 1   step 2            one row per series, rows one after the other;
//! {a="1"}    [ 1.0      -        3.0  ]          a gap is a stale marker's bits
//! {a="2"}    [ 2.0      4.0       -   ]
//! ```
//!
//! Selectors drop stale markers, no literal can write one, and arithmetic that meets one makes
//! it quiet, which changes its bits. What changes bits without arithmetic (`abs`, `-`, fields of
//! histograms) passes `gap::to_number`. So no value of an expression has these bits and they are
//! free to mean "no sample here". A row without any value is not kept.

use crate::context::Context;
use crate::error::{QueryError, Result};
use crate::gap::{ABSENT, is_absent, to_number};
use crate::histograms::cells::{Cell as HistogramCell, CellRows, cell_at, weight};
use crate::names::{Key, NameState};
use crate::options::NameRemoval;
use crate::reservation::Reservation;
use crate::row::{Row, RowSink};
use histogram::Histogram;
use model::Labels;
use std::collections::HashMap;
use std::sync::Arc;

/// An instant vector at every step of a grid.
#[derive(Debug)]
pub(crate) struct Vector {
    steps: usize,
    keys: Vec<Key>,
    /// `keys.len() * steps` values.
    values: Vec<f64>,
    /// The histograms among the values; nothing where all are numbers.
    histograms: Option<Box<CellRows>>,
    /// Whether somebody asked for the order of the rows: `sort`, `topk`.
    pub is_ordered: bool,
    reserved: Reservation,
}

impl Vector {
    /// No rows.
    pub fn new(context: &Context<'_>, steps: usize) -> Vector {
        let reserved = Reservation::new(&context.usage);
        let (keys, values) = (Vec::new(), Vec::new());
        Vector { steps, keys, values, histograms: None, is_ordered: false, reserved }
    }

    /// Takes memory for so many more rows.
    pub fn reserve(&mut self, rows: usize) {
        self.keys.reserve(rows);
        self.values.reserve(rows * self.steps);
    }

    /// Appends a row, unless it has no value.
    pub fn push(&mut self, context: &Context<'_>, key: Key, row: &[f64]) -> Result<()> {
        debug_assert_eq!(row.len(), self.steps);
        let present = row.iter().filter(|value| !is_absent(**value)).count();
        if present == 0 {
            return Ok(());
        }
        let bytes = row.len() * 8 + key.labels.as_bytes().len() + size_of::<Key>();
        self.reserved.grow(present as u64, bytes as u64);
        context.check_memory()?;
        self.keys.push(key);
        self.values.extend_from_slice(row);
        Ok(())
    }

    /// As [`Vector::push`] for a row that may have histograms; `cells` is empty if it has none.
    pub fn push_mixed(
        &mut self,
        context: &Context<'_>,
        key: Key,
        row: &[f64],
        cells: &[HistogramCell],
    ) -> Result<()> {
        let idx = self.keys.len();
        self.push(context, key, row)?;
        if cells.is_empty() || self.keys.len() == idx {
            return Ok(());
        }
        debug_assert_eq!(cells.len(), self.steps);
        let (samples, bytes) = weight(row, cells);
        if samples == 0 {
            return Ok(());
        }
        self.histograms.get_or_insert_default().set(idx, cells);
        self.reserved.grow(samples, bytes as u64);
        context.check_memory()
    }

    /// Whether any value may be a histogram.
    #[inline(always)]
    pub fn has_histograms(&self) -> bool {
        self.histograms.is_some()
    }

    /// The histograms of a row, by step; empty when it has none. A cell counts only where the row's
    /// value is no gap.
    pub fn cells(&self, idx: usize) -> &[HistogramCell] {
        self.histograms.as_ref().map_or(&[], |rows| rows.row(idx))
    }

    /// The histogram at a step of a row, if its value is one.
    pub fn histogram(&self, idx: usize, step: usize) -> Option<&Arc<Histogram>> {
        cell_at(self.cells(idx), step).filter(|_| !is_absent(self.row(idx)[step]))
    }

    /// Leaves only the numbers.
    pub fn drop_histograms(&mut self) {
        let Some(rows) = self.histograms.take() else { return };
        for idx in 0..self.keys.len() {
            for (value, cell) in self.row_mut(idx).iter_mut().zip(rows.row(idx)) {
                if cell.is_some() {
                    *value = ABSENT;
                }
            }
        }
        self.drop_empty();
    }

    /// Makes numbers of all values; whoever calls it gives them values.
    pub fn forget_histograms(&mut self) {
        self.histograms = None;
    }

    /// Every histogram, to be replaced.
    pub fn map_histograms(&mut self, map: impl Fn(&Histogram) -> Histogram) {
        if let Some(rows) = &mut self.histograms {
            rows.map(map);
        }
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn steps(&self) -> usize {
        self.steps
    }

    pub fn key(&self, idx: usize) -> &Key {
        &self.keys[idx]
    }

    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    pub fn row(&self, idx: usize) -> &[f64] {
        &self.values[idx * self.steps..(idx + 1) * self.steps]
    }

    pub fn row_mut(&mut self, idx: usize) -> &mut [f64] {
        &mut self.values[idx * self.steps..(idx + 1) * self.steps]
    }

    pub fn rows(&self) -> impl Iterator<Item = (&Key, &[f64])> {
        self.keys.iter().zip(self.values.chunks_exact(self.steps))
    }

    /// Hands its rows to `sink`.
    pub fn stream(&self, sink: &mut RowSink<'_>) -> Result<()> {
        for (idx, (key, values)) in self.rows().enumerate() {
            let (labels, name) = (&key.labels, NameState::of(key));
            sink(&Row { labels, name, values, cells: self.cells(idx) })?;
        }
        Ok(())
    }

    /// Changes every value that is there in place. Makes no gaps.
    pub fn map_values(&mut self, map: impl Fn(f64) -> f64) {
        for value in &mut self.values {
            if !is_absent(*value) {
                *value = to_number(map(*value));
            }
        }
    }

    /// As [`Vector::map_values`] with the step's index. `map` may make gaps.
    pub fn map_steps(&mut self, map: impl Fn(usize, f64) -> f64) {
        for row in self.values.chunks_exact_mut(self.steps) {
            for (step, value) in row.iter_mut().enumerate() {
                if !is_absent(*value) {
                    *value = map(step, *value);
                }
            }
        }
    }

    /// Drops the rows that have no value left.
    pub fn drop_empty(&mut self) {
        let steps = self.steps;
        let mut kept = 0;
        for idx in 0..self.keys.len() {
            let row = idx * steps..(idx + 1) * steps;
            if self.values[row.clone()].iter().all(|value| is_absent(*value)) {
                continue;
            }
            if kept != idx {
                self.keys.swap(kept, idx);
                self.values.copy_within(row, kept * steps);
                if let Some(rows) = &mut self.histograms {
                    rows.move_row(idx, kept);
                }
            }
            kept += 1;
        }
        self.keys.truncate(kept);
        self.values.truncate(kept * steps);
        if let Some(rows) = &mut self.histograms {
            rows.truncate(kept);
        }
    }

    /// Gives each row a new key. Rows that come to have equal labels become one row.
    ///
    /// # Errors
    /// When two such rows have a value at the same step.
    pub fn rekey(mut self, mut rename: impl FnMut(&Key) -> Key) -> Result<Vector> {
        for key in &mut self.keys {
            *key = rename(key);
        }
        self.merge_same_labels()
    }

    /// As [`Vector::rekey`], for labels that the query creates. Charges them to the memory of the query and checks its deadline.
    ///
    /// # Errors
    /// As [`Vector::rekey`]; beyond the memory limit or the deadline of the query.
    pub fn rekey_within(
        mut self,
        context: &Context<'_>,
        mut rename: impl FnMut(&Key) -> Result<Key>,
    ) -> Result<Vector> {
        for key in &mut self.keys {
            let size = key.labels.as_bytes().len();
            *key = rename(key)?;
            let more = key.labels.as_bytes().len().saturating_sub(size);
            self.reserved.grow(0, more as u64);
            context.check_memory()?;
            context.check()?;
        }
        self.merge_same_labels()
    }

    /// Takes the metric's name from every row, as `removal` says.
    pub fn without_names(mut self, removal: NameRemoval) -> Result<Vector> {
        if removal == NameRemoval::Late {
            for key in &mut self.keys {
                key.drops_name = true;
            }
            return Ok(self);
        }
        // Rows that all had the same name stay distinct without it.
        let first = self.keys.first().map(|key| key.labels.metric_name().to_string());
        let same_name =
            self.keys.iter().all(|key| Some(key.labels.metric_name()) == first.as_deref());
        for key in &mut self.keys {
            *key = key.nameless(removal);
        }
        if same_name && !self.keys.iter().any(|key| key.drops_name) {
            return Ok(self);
        }
        self.merge_same_labels()
    }

    /// Drops the names that were to be dropped late.
    pub fn without_late_names(self) -> Result<Vector> {
        if !self.keys.iter().any(|key| key.drops_name) {
            return Ok(self);
        }
        self.rekey(
            |key| {
                if key.drops_name { key.nameless(NameRemoval::AtOnce) } else { key.clone() }
            },
        )
    }

    /// Joins rows of equal labels into one, which must not both have a value at any step.
    pub fn merge_same_labels(mut self) -> Result<Vector> {
        self.join_same_labels()?;
        Ok(self)
    }

    /// As [`Vector::merge_same_labels`], in place.
    pub fn join_same_labels(&mut self) -> Result<()> {
        let mut seen: HashMap<Labels, usize> = HashMap::with_capacity(self.keys.len());
        let mut has_merged = false;
        for idx in 0..self.keys.len() {
            let into = *seen.entry(self.keys[idx].labels.clone()).or_insert(idx);
            if into == idx {
                continue;
            }
            self.hand_over_histograms(idx, into);
            let (head, tail) = self.values.split_at_mut(idx * self.steps);
            let target = &mut head[into * self.steps..(into + 1) * self.steps];
            for (target, value) in target.iter_mut().zip(&mut tail[..self.steps]) {
                if is_absent(*value) {
                    continue;
                }
                if !is_absent(*target) {
                    return Err(QueryError::same_labels());
                }
                *target = std::mem::replace(value, ABSENT);
            }
            has_merged = true;
        }
        if has_merged {
            self.drop_empty();
        }
        Ok(())
    }

    /// Gives the histograms of row `from` to row `to`, with whose values its own will be.
    fn hand_over_histograms(&mut self, from: usize, to: usize) {
        let Some(rows) = &mut self.histograms else { return };
        for step in 0..self.steps {
            if !is_absent(self.values[from * self.steps + step]) {
                rows.hand_over(step, from, to, self.steps);
            }
        }
    }

    /// Makes a row of one step a row of `steps` equal ones.
    pub fn broadcast(self, context: &Context<'_>, steps: usize) -> Result<Vector> {
        debug_assert_eq!(self.steps, 1);
        let mut wide = Vector::new(context, steps);
        let mut row = vec![0.0; steps];
        let rows = self.histograms.unwrap_or_default();
        for (idx, (key, value)) in self.keys.into_iter().zip(self.values).enumerate() {
            row.fill(value);
            let cells: Vec<HistogramCell> =
                rows.row(idx).iter().flat_map(|cell| vec![cell.clone(); steps]).collect();
            wide.push_mixed(context, key, &row, &cells)?;
        }
        Ok(wide)
    }

    /// Puts the rows in the given order; rows that it leaves out are dropped.
    pub fn reorder(&mut self, order: &[usize]) {
        let values = order.iter().flat_map(|idx| self.row(*idx).iter().copied()).collect();
        self.keys = order.iter().map(|idx| self.keys[*idx].clone()).collect();
        self.values = values;
        self.histograms = self.histograms.take().map(|rows| Box::new(rows.reordered(order)));
    }

    /// Puts the rows in the order of their labels.
    pub fn order_by_labels(&mut self) {
        let order = crate::result::order(self.keys.iter().map(|key| &key.labels));
        if !order.is_sorted() {
            let order: Vec<usize> = order.into_iter().map(|idx| idx as usize).collect();
            self.reorder(&order);
        }
    }

    /// Takes the vector apart: keys, values and the histograms among these.
    pub fn into_parts(self) -> (Vec<Key>, Vec<f64>, Option<Box<CellRows>>) {
        (self.keys, self.values, self.histograms)
    }
}
