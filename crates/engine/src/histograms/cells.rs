//! Histograms beside the numbers of rows.

use crate::gap::is_absent;
use histogram::{Bucket, Histogram};
use std::sync::Arc;

/// A step's histogram, if its value is one. Steps that show the same sample share it.
pub(crate) type Cell = Option<Arc<Histogram>>;

/// What stands among the numbers where there is a histogram: not a gap, and seen if it leaks.
pub(crate) const HISTOGRAM: f64 = f64::NAN;

/// What Prometheus counts for a histogram apart from its buckets, in bytes.
const SAMPLE_BYTES: usize = 168;

/// How many samples a histogram counts for in a query's limit, as Prometheus counts: a sample is
/// sixteen bytes of memory as Prometheus would lay it out.
pub(crate) fn samples_of(histogram: &Histogram) -> u64 {
    let Histogram { positive, negative, custom_bounds, .. } = histogram;
    let words = positive.len() + negative.len() + custom_bounds.len();
    let spans = spans(positive) + spans(negative);
    ((SAMPLE_BYTES + 8 * (words + spans) + 8) / 16) as u64
}

/// Runs of buckets without a gap.
fn spans(buckets: &[Bucket]) -> usize {
    let gaps = buckets.windows(2).filter(|pair| pair[0].index + 1 != pair[1].index).count();
    gaps + usize::from(!buckets.is_empty())
}

/// The memory that a histogram takes.
pub(crate) fn bytes_of(histogram: &Histogram) -> usize {
    let buckets = histogram.positive.capacity() + histogram.negative.capacity();
    size_of::<Histogram>()
        + size_of::<Bucket>() * buckets
        + size_of::<f64>() * histogram.custom_bounds.capacity()
}

/// What a row's histograms add to what its numbers take: samples, of which each cell was counted as
/// one already, and bytes. Neighbours that are the same are counted once in bytes.
pub(crate) fn weight(values: &[f64], cells: &[Cell]) -> (u64, usize) {
    let (mut samples, mut bytes) = (0, size_of_val(cells));
    let mut before: Option<&Arc<Histogram>> = None;
    for (_, histogram) in present(values, cells) {
        samples += samples_of(histogram) - 1;
        if !before.is_some_and(|before| Arc::ptr_eq(before, histogram)) {
            bytes += bytes_of(histogram);
        }
        before = Some(histogram);
    }
    (samples, bytes)
}

/// The steps of a row that have a histogram.
pub(crate) fn present<'a>(
    values: &'a [f64],
    cells: &'a [Cell],
) -> impl Iterator<Item = (usize, &'a Arc<Histogram>)> {
    let steps = values.iter().zip(cells).enumerate();
    steps.filter(|(_, (value, _))| !is_absent(**value)).filter_map(|(step, (_, cell))| {
        let histogram = cell.as_ref()?;
        Some((step, histogram))
    })
}

/// Whether a row has a number at any step.
pub(crate) fn has_numbers(values: &[f64], cells: &[Cell]) -> bool {
    let is_number = |step: usize| !is_absent(values[step]) && cell_at(cells, step).is_none();
    (0..values.len()).any(is_number)
}

/// The histogram of a step whose value is there; rows of numbers have no cells.
pub(crate) fn cell_at(cells: &[Cell], step: usize) -> Option<&Arc<Histogram>> {
    cells.get(step).and_then(Option::as_ref)
}

/// The histograms of all rows of a vector. Rows of numbers have no cells.
#[derive(Debug, Default)]
pub(crate) struct CellRows {
    rows: Vec<Box<[Cell]>>,
}

impl CellRows {
    /// The cells of a row.
    pub fn row(&self, idx: usize) -> &[Cell] {
        self.rows.get(idx).map_or(&[], |row| row)
    }

    /// Sets the cells of a row.
    pub fn set(&mut self, idx: usize, cells: &[Cell]) {
        if cells.iter().all(Option::is_none) && self.rows.len() <= idx {
            return;
        }
        if self.rows.len() <= idx {
            self.rows.resize_with(idx + 1, Box::default);
        }
        self.rows[idx] = cells.into();
    }

    /// Moves a row's cells to another place.
    pub fn move_row(&mut self, from: usize, to: usize) {
        if from < self.rows.len() {
            self.rows.swap(from, to);
        } else if to < self.rows.len() {
            self.rows[to] = Box::default();
        }
    }

    /// Forgets the cells of all rows from `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.rows.truncate(len);
    }

    /// Gives the cell of one row's step to another row.
    pub fn hand_over(&mut self, step: usize, from: usize, to: usize, steps: usize) {
        let cell = self.rows.get_mut(from).and_then(|row| row.get_mut(step)?.take());
        if let Some(to) = self.rows.get_mut(to).filter(|row| !row.is_empty()) {
            to[step] = cell;
        } else if cell.is_some() {
            let mut cells = vec![None; steps];
            cells[step] = cell;
            self.set(to, &cells);
        }
    }

    /// The rows in the given order.
    pub fn reordered(&self, order: &[usize]) -> CellRows {
        CellRows { rows: order.iter().map(|idx| self.row(*idx).into()).collect() }
    }

    /// Every histogram, to be replaced.
    pub fn map(&mut self, map: impl Fn(&Histogram) -> Histogram) {
        for cell in self.rows.iter_mut().flatten().flatten() {
            *cell = Arc::new(map(cell));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gap::ABSENT;

    fn histogram(indexes: &[i32]) -> Histogram {
        let positive = indexes.iter().map(|index| Bucket { index: *index, count: 1.0 }).collect();
        Histogram { positive, ..Histogram::default() }
    }

    #[test]
    fn histograms_count_as_prometheus_counts() {
        assert_eq!(samples_of(&histogram(&[])), 11);
        // Three buckets in two runs.
        assert_eq!(samples_of(&histogram(&[0, 1, 5])), (168 + 40 + 8) / 16);
    }

    #[test]
    fn cells_count_once_where_they_are_shared() {
        let cell = Some(Arc::new(histogram(&[0])));
        let one = bytes_of(&histogram(&[0]));
        let (samples, bytes) = weight(&[HISTOGRAM; 2], &[cell.clone(), cell.clone()]);
        assert_eq!((samples, bytes), (2 * (168 + 16 + 8) / 16 - 2, one + 16));
        assert_eq!(weight(&[ABSENT, HISTOGRAM], &[cell.clone(), None]).0, 0);
        assert!(!has_numbers(&[ABSENT, HISTOGRAM], &[None, cell.clone()]));
        assert!(has_numbers(&[1.0, HISTOGRAM], &[None, cell]));
    }

    #[test]
    fn rows_without_histograms_have_no_cells() {
        let cell = Some(Arc::new(histogram(&[0])));
        let mut rows = CellRows::default();
        rows.set(0, &[None, None]);
        assert!(rows.row(0).is_empty());
        rows.set(2, &[None, cell.clone()]);
        assert_eq!((rows.row(1).len(), rows.row(2)[1].is_some()), (0, true));
        rows.hand_over(1, 2, 0, 2);
        assert_eq!((rows.row(0)[1].is_some(), rows.row(2)[1].is_some()), (true, false));
        rows.move_row(0, 1);
        assert_eq!((rows.row(0).len(), rows.row(1)[1].is_some()), (0, true));
        rows.move_row(5, 1);
        assert!(rows.row(1).is_empty());
    }
}
