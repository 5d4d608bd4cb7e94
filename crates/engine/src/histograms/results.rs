//! Histograms of a vector on their way out.

use crate::gap::ABSENT;
use crate::histograms::cells::{CellRows, cell_at, present};
use crate::result::HistogramPoints;
use crate::time::Grid;
use histogram::Histogram;

/// Takes the histograms of rows on a grid, leaving gaps in their places.
pub(crate) fn take_points(
    grid: Grid,
    values: &mut [f64],
    rows: Option<Box<CellRows>>,
) -> Vec<HistogramPoints> {
    let Some(rows) = rows else { return Vec::new() };
    let take = |(idx, values): (usize, &mut [f64])| {
        let found = present(values, rows.row(idx));
        let points: HistogramPoints =
            found.map(|(step, one)| (grid.at_ms(step), one.clone())).collect();
        for (value, cell) in values.iter_mut().zip(rows.row(idx)) {
            if cell.is_some() {
                *value = ABSENT;
            }
        }
        points
    };
    values.chunks_exact_mut(grid.len).enumerate().map(take).collect()
}

/// The histogram of a row of one step.
pub(crate) fn only_histogram(rows: &CellRows, idx: usize) -> Option<Box<Histogram>> {
    cell_at(rows.row(idx), 0).map(|one| Box::new(Histogram::clone(one)))
}
