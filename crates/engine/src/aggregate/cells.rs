//! Aggregations that keep a fixed state per group and step.
//!
//! ```text
//!              step 0   step 1   step 2
//! group 0      cell     cell     cell        a row is added to its group's cells, one by one
//! group 1      cell     cell     cell
//! ```
//!
//! A group's first row is kept as it is, which takes a quarter of the memory of cells: many groups
//! never get a second one.

use crate::gap::{ABSENT, is_absent};
use crate::rollup::quantile;
use crate::rollup::sum::{Mean, Sum};
use crate::scalar::Scalar;
use promql::AggregateOp;

/// The cells of one aggregation.
pub(super) trait Cells {
    /// Adds one more group with its first row.
    fn add_group(&mut self, values: &[f64]);
    /// What a group takes.
    fn bytes_per_group(&self) -> usize;
    /// Adds the values of a row to its group.
    fn add_row(&mut self, group: usize, values: &[f64]);
    /// Writes the group's values to `row`.
    fn finish(&mut self, group: usize, row: &mut [f64]);
}

/// The cells of an operator; `parameter` is the quantile's.
pub(super) fn for_op(op: AggregateOp, steps: usize, parameter: Option<Scalar>) -> Box<dyn Cells> {
    match op {
        AggregateOp::Sum => Box::new(Grid::<Total>::new(steps)),
        AggregateOp::Avg => Box::new(Grid::<Average>::new(steps)),
        AggregateOp::Min => Box::new(Grid::<Smallest>::new(steps)),
        AggregateOp::Max => Box::new(Grid::<Largest>::new(steps)),
        AggregateOp::Count => Box::new(Grid::<Count>::new(steps)),
        AggregateOp::Group => Box::new(Grid::<One>::new(steps)),
        AggregateOp::Stddev => Box::new(Grid::<Deviation>::new(steps)),
        AggregateOp::Stdvar => Box::new(Grid::<Variance>::new(steps)),
        _ => Box::new(Quantiles {
            steps,
            q: parameter.unwrap_or(Scalar::Constant(f64::NAN)),
            values: Vec::new(),
            sorted: Vec::new(),
        }),
    }
}

/// The state of one group at one step.
trait Cell: Copy {
    /// No value yet.
    const EMPTY: Self;
    fn add(&mut self, value: f64);
    #[inline(always)]
    fn add_if_there(&mut self, value: f64) {
        if !is_absent(value) {
            self.add(value);
        }
    }
    /// The value, or [`ABSENT`].
    fn value(&self) -> f64;
}

struct Grid<C> {
    steps: usize,
    /// The first row of each group.
    firsts: Vec<f64>,
    /// Which cells each group has: an index into `cells` by rows, [`NO_CELLS`] while it has one row.
    places: Vec<u32>,
    cells: Vec<C>,
}

/// The place of the cells of a group without any.
const NO_CELLS: u32 = u32::MAX;

impl<C: Cell> Grid<C> {
    fn new(steps: usize) -> Grid<C> {
        Grid { steps, firsts: Vec::new(), places: Vec::new(), cells: Vec::new() }
    }

    fn first(&self, group: usize) -> &[f64] {
        &self.firsts[group * self.steps..(group + 1) * self.steps]
    }

    /// Cells for the group, with its first row in them.
    fn add_cells(&mut self, group: usize) -> usize {
        let place = self.cells.len() / self.steps;
        assert!(place < NO_CELLS as usize, "groups fit a u32");
        self.cells.extend(self.firsts[group * self.steps..].iter().take(self.steps).map(|value| {
            let mut cell = C::EMPTY;
            cell.add_if_there(*value);
            cell
        }));
        self.places[group] = place as u32;
        place
    }
}

impl<C: Cell> Cells for Grid<C> {
    fn add_group(&mut self, values: &[f64]) {
        debug_assert_eq!(values.len(), self.steps);
        self.places.push(NO_CELLS);
        self.firsts.extend_from_slice(values);
    }

    fn bytes_per_group(&self) -> usize {
        self.steps * (size_of::<f64>() + size_of::<C>())
    }

    fn add_row(&mut self, group: usize, values: &[f64]) {
        let place = match self.places[group] {
            NO_CELLS => self.add_cells(group),
            place => place as usize,
        };
        let cells = &mut self.cells[place * self.steps..(place + 1) * self.steps];
        for (cell, value) in cells.iter_mut().zip(values) {
            cell.add_if_there(*value);
        }
    }

    fn finish(&mut self, group: usize, row: &mut [f64]) {
        if self.places[group] == NO_CELLS {
            for (value, first) in row.iter_mut().zip(self.first(group)) {
                let mut cell = C::EMPTY;
                cell.add_if_there(*first);
                *value = cell.value();
            }
            return;
        }
        let place = self.places[group] as usize;
        let cells = &self.cells[place * self.steps..(place + 1) * self.steps];
        for (value, cell) in row.iter_mut().zip(cells) {
            *value = cell.value();
        }
    }
}

#[derive(Clone, Copy)]
struct Total {
    sum: Sum,
    is_empty: bool,
}

impl Cell for Total {
    const EMPTY: Total = Total { sum: Sum { sum: 0.0, compensation: 0.0 }, is_empty: true };

    #[inline(always)]
    fn add(&mut self, value: f64) {
        if self.is_empty {
            // Not 0 + value, which would lose the sign of -0.
            self.sum.sum = value;
            self.is_empty = false;
        } else {
            self.sum.add(value);
        }
    }

    fn value(&self) -> f64 {
        if self.is_empty { ABSENT } else { self.sum.sum + self.sum.compensation }
    }
}

#[derive(Clone, Copy)]
struct Average(Mean);

impl Cell for Average {
    const EMPTY: Average = Average(Mean {
        running: Sum { sum: 0.0, compensation: 0.0 },
        count: 0.0,
        is_incremental: false,
    });

    #[inline(always)]
    fn add(&mut self, value: f64) {
        if self.0.count == 0.0 {
            self.0 = Mean::first(value);
        } else {
            self.0.add(value);
        }
    }

    fn value(&self) -> f64 {
        if self.0.count == 0.0 { ABSENT } else { self.0.mean() }
    }
}

#[derive(Clone, Copy)]
struct Smallest(f64);

impl Cell for Smallest {
    const EMPTY: Smallest = Smallest(ABSENT);

    #[inline(always)]
    fn add(&mut self, value: f64) {
        // A gap is a NaN too, so the first value and the first number take its place.
        if value < self.0 || self.0.is_nan() {
            self.0 = value;
        }
    }

    fn value(&self) -> f64 {
        self.0
    }
}

#[derive(Clone, Copy)]
struct Largest(f64);

impl Cell for Largest {
    const EMPTY: Largest = Largest(ABSENT);

    #[inline(always)]
    fn add(&mut self, value: f64) {
        if value > self.0 || self.0.is_nan() {
            self.0 = value;
        }
    }

    fn value(&self) -> f64 {
        self.0
    }
}

#[derive(Clone, Copy)]
struct Count(u32);

impl Cell for Count {
    const EMPTY: Count = Count(0);

    #[inline(always)]
    fn add(&mut self, _: f64) {
        self.0 += 1;
    }

    fn value(&self) -> f64 {
        if self.0 == 0 { ABSENT } else { f64::from(self.0) }
    }
}

#[derive(Clone, Copy)]
struct One(bool);

impl Cell for One {
    const EMPTY: One = One(false);

    #[inline(always)]
    fn add(&mut self, _: f64) {
        self.0 = true;
    }

    fn value(&self) -> f64 {
        if self.0 { 1.0 } else { ABSENT }
    }
}

/// Welford's running variance.
#[derive(Clone, Copy)]
struct Variance {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Cell for Variance {
    const EMPTY: Variance = Variance { count: 0.0, mean: 0.0, squares: 0.0 };

    #[inline(always)]
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        if self.count == 1.0 {
            self.mean = value;
            self.squares = if value.is_finite() { 0.0 } else { f64::NAN };
        } else {
            let delta = value - self.mean;
            self.mean += delta / self.count;
            self.squares += delta * (value - self.mean);
        }
    }

    fn value(&self) -> f64 {
        if self.count == 0.0 { ABSENT } else { self.squares / self.count }
    }
}

#[derive(Clone, Copy)]
struct Deviation(Variance);

impl Cell for Deviation {
    const EMPTY: Deviation = Deviation(Variance::EMPTY);

    #[inline(always)]
    fn add(&mut self, value: f64) {
        self.0.add(value);
    }

    fn value(&self) -> f64 {
        if self.0.count == 0.0 { ABSENT } else { self.0.value().sqrt() }
    }
}

/// `quantile`: every value is needed at the end.
struct Quantiles {
    steps: usize,
    q: Scalar,
    values: Vec<Vec<f64>>,
    sorted: Vec<f64>,
}

impl Cells for Quantiles {
    fn add_group(&mut self, values: &[f64]) {
        let group = self.values.len() / self.steps;
        self.values.resize(self.values.len() + self.steps, Vec::new());
        self.add_row(group, values);
    }

    fn bytes_per_group(&self) -> usize {
        self.steps * size_of::<Vec<f64>>()
    }

    fn add_row(&mut self, group: usize, values: &[f64]) {
        let cells = &mut self.values[group * self.steps..(group + 1) * self.steps];
        for (cell, value) in cells.iter_mut().zip(values) {
            if !is_absent(*value) {
                cell.push(*value);
            }
        }
    }

    fn finish(&mut self, group: usize, row: &mut [f64]) {
        let cells = &self.values[group * self.steps..(group + 1) * self.steps];
        for (step, (value, cell)) in row.iter_mut().zip(cells).enumerate() {
            *value = if cell.is_empty() {
                ABSENT
            } else {
                quantile(self.q.at(step), cell, &mut self.sorted)
            };
        }
    }
}
