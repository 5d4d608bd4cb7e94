//! An answer that is kept, and how parts of several answers become one.

use super::plan::Plan;
use crate::gap::{ABSENT, is_absent};
use crate::result::{Matrix, QueryResult, Value};
use crate::time::Grid;
use model::Labels;
use std::ops::Range;

/// What is told beside the value of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Notes {
    pub warnings: Vec<String>,
    pub infos: Vec<String>,
}

impl Notes {
    pub fn of(result: &QueryResult) -> Notes {
        Notes { warnings: result.warnings.clone(), infos: result.infos.clone() }
    }

    pub fn is_empty(&self) -> bool {
        self.warnings.is_empty() && self.infos.is_empty()
    }

    /// Whether each of these is one of the others.
    pub fn are_among(&self, others: &Notes) -> bool {
        self.warnings.iter().all(|note| others.warnings.contains(note))
            && self.infos.iter().all(|note| others.infos.contains(note))
    }

    /// Whether some tell of more than one step, so that they cannot be told of a part.
    pub fn tell_of_all(&self) -> bool {
        self.warnings.iter().chain(&self.infos).any(|note| crate::annotations::tells_of_all(note))
    }
}

/// The answer to a range query, as of a version of the source.
#[derive(Debug)]
pub(super) struct Entry {
    /// Taken before anything of it was selected.
    pub version: u64,
    pub grid: Grid,
    pub notes: Notes,
    pub rows: Rows,
}

/// Series in the order of an answer, and their values at all steps of a grid, gaps among them.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    pub labels: Vec<Labels>,
    pub values: Vec<f64>,
}

impl Rows {
    /// The rows of an answer; `None` when they are on no grid.
    pub fn of(matrix: &Matrix) -> Option<Rows> {
        let mut rows = Rows::default();
        rows.labels.reserve(matrix.len());
        rows.values.reserve(matrix.cells());
        for idx in 0..matrix.len() {
            rows.labels.push(matrix.labels(idx).clone());
            rows.values.extend_from_slice(matrix.grid_row(idx)?);
        }
        Some(rows)
    }

    /// Bytes of memory that they take.
    pub fn size(&self) -> usize {
        let of_labels = |labels: &Labels| size_of::<Labels>() + allocated(labels.as_bytes().len());
        let labels: usize = self.labels.iter().map(of_labels).sum();
        labels + self.values.len() * size_of::<f64>()
    }
}

/// About what the allocator takes for so many bytes.
pub(super) fn allocated(size: usize) -> usize {
    size.next_multiple_of(16)
}

impl Entry {
    /// Bytes of memory that it takes.
    pub fn size(&self) -> usize {
        let notes = self.notes.warnings.iter().chain(&self.notes.infos);
        let notes: usize = notes.map(|note| size_of::<String>() + allocated(note.len())).sum();
        size_of::<Entry>() + self.rows.size() + notes
    }
}

/// One of the answers that are joined.
struct Part<'a> {
    rows: PartRows<'a>,
    /// Steps of the whole, and where the first of them is in a row of this part.
    pieces: Vec<(Range<usize>, usize)>,
    next: usize,
}

enum PartRows<'a> {
    Held(&'a Entry),
    Fresh(&'a Matrix),
}

impl Part<'_> {
    /// The labels of the next row.
    fn head(&self) -> Option<&Labels> {
        match self.rows {
            PartRows::Held(entry) => entry.rows.labels.get(self.next),
            PartRows::Fresh(matrix) if self.next < matrix.len() => Some(matrix.labels(self.next)),
            PartRows::Fresh(_) => None,
        }
    }

    fn is_next(&self, labels: &Labels) -> bool {
        self.head().is_some_and(|head| head.as_bytes() == labels.as_bytes())
    }

    /// Copies what the next row has for the whole; `None` when it has no values on a grid.
    fn copy_to(&self, whole: &mut [f64]) -> Option<()> {
        let row = match self.rows {
            PartRows::Held(Entry { rows, grid, .. }) => {
                &rows.values[self.next * grid.len..(self.next + 1) * grid.len]
            }
            PartRows::Fresh(matrix) => matrix.grid_row(self.next)?,
        };
        for (steps, start) in &self.pieces {
            whole[steps.clone()].copy_from_slice(&row[*start..start + steps.len()]);
        }
        Some(())
    }
}

/// Puts the steps that are reused and those that were evaluated, one answer for each run, together.
/// `None` when some answer has no values on a grid, or equal labels twice.
pub(super) fn join(held: &Entry, plan: &Plan, fresh: &[Matrix], len: usize) -> Option<Rows> {
    assert_eq!(plan.missing.len(), fresh.len());
    let on_held = |run: &Range<usize>| (run.clone(), (run.start as i64 + plan.shift) as usize);
    let pieces = plan.reused.iter().map(on_held).collect();
    let mut parts = vec![Part { rows: PartRows::Held(held), pieces, next: 0 }];
    parts.extend(plan.missing.iter().zip(fresh).map(|(run, matrix)| Part {
        rows: PartRows::Fresh(matrix),
        pieces: vec![(run.clone(), 0)],
        next: 0,
    }));
    let mut rows = Rows::default();
    rows.values.reserve(held.rows.labels.len() * len);
    let mut row = vec![ABSENT; len];
    while let Some(labels) = first_labels(&parts) {
        let labels = labels.clone();
        row.fill(ABSENT);
        for part in &mut parts {
            if part.is_next(&labels) {
                part.copy_to(&mut row)?;
                part.next += 1;
                if part.is_next(&labels) {
                    return None;
                }
            }
        }
        if !row.iter().all(|value| is_absent(*value)) {
            rows.labels.push(labels);
            rows.values.extend_from_slice(&row);
        }
    }
    Some(rows)
}

/// The labels that come first among those of the parts' next rows.
fn first_labels<'p>(parts: &'p [Part<'_>]) -> Option<&'p Labels> {
    let heads = parts.iter().filter_map(Part::head);
    heads.reduce(|first, head| {
        // Most rows are in all parts.
        let is_same = first.as_bytes() == head.as_bytes();
        match is_same || first < head {
            true => first,
            false => head,
        }
    })
}

/// The matrix of an answer; `None` for other values.
pub(super) fn matrix(value: Value) -> Option<Matrix> {
    match value {
        Value::Matrix(matrix) => Some(matrix),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use histogram::Histogram;
    use std::sync::Arc;

    fn labels(name: &str) -> Labels {
        Labels::from_pairs(&[("a", name)])
    }

    fn fresh(len: usize, rows: &[(&str, &[f64])]) -> Matrix {
        let grid = Grid { start_ms: 0, step_ms: 1, len };
        let values = rows.iter().flat_map(|(_, values)| values.iter().copied()).collect();
        Matrix::on_grid(grid, rows.iter().map(|(name, _)| labels(name)).collect(), values)
    }

    fn held() -> Entry {
        let matrix = fresh(3, &[("b", &[1.0, 2.0, 3.0]), ("c", &[9.0, ABSENT, ABSENT])]);
        let grid = Grid { start_ms: 0, step_ms: 1, len: 3 };
        let rows = Rows::of(&matrix).unwrap();
        Entry { version: 1, grid, notes: Notes::default(), rows }
    }

    fn plan(reused: Range<usize>, missing: Option<Range<usize>>, shift: i64) -> Plan {
        Plan { reused: vec![reused], missing: missing.into_iter().collect(), shift }
    }

    #[test]
    fn rows_are_joined_by_labels_and_empty_ones_go() {
        let plan = plan(0..2, Some(2..4), 1);
        let new = fresh(2, &[("d", &[7.0, ABSENT]), ("a", &[5.0, 6.0]), ("b", &[ABSENT, 4.0])]);
        let rows = join(&held(), &plan, &[new], 4).unwrap();
        assert_eq!(rows.labels, [labels("a"), labels("b"), labels("d")], "c is gone");
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        let expected =
            [[ABSENT, ABSENT, 5.0, 6.0], [2.0, 3.0, ABSENT, 4.0], [ABSENT, ABSENT, 7.0, ABSENT]];
        assert_eq!(bits(&rows.values), bits(&expected.concat()));
        let size = rows.size();
        assert!(rows.values.len() * 8 + 3 * size_of::<Labels>() < size && size < 1024, "{size}");
    }

    #[test]
    fn histograms_are_neither_kept_nor_joined() {
        let plan = plan(0..2, Some(2..3), 0);
        let new = || fresh(1, &[("b", &[ABSENT])]);
        assert!(join(&held(), &plan, &[new()], 3).is_some());
        let points = || vec![(0, Arc::new(Histogram::default()))];
        let new = || new().with_histograms(vec![points()]);
        assert!(join(&held(), &plan, &[new()], 3).is_none());
        assert!(Rows::of(&new()).is_none());
    }

    #[test]
    fn equal_labels_cannot_be_joined() {
        let two = plan(0..2, Some(2..3), 0);
        let new = fresh(1, &[("b", &[1.0]), ("b", &[2.0])]);
        assert!(join(&held(), &two, &[new], 3).is_none());
        let all = plan(0..3, None, 0);
        assert_eq!(join(&held(), &all, &[], 3).unwrap().labels.len(), 2);
    }
}
