//! Aggregations whose first steps another database makes itself ([`crate::folded`]).

use crate::error::Result;
use crate::eval::Evaluator;
use crate::folded::{Question, series_fold, window_fold};
use crate::functions;
use crate::gap::ABSENT;
use crate::names::{Key, NameState, is_metadata_label};
use crate::names_kept::demands_one_name;
use crate::options::NameRemoval;
use crate::time::Grid;
use crate::vector::Vector;
use model::{Labels, METRIC_NAME};
use promql::{Aggregate, Edges, Expr, Grouping, VectorSelector};
use std::collections::HashMap;
use store::{Folded, WindowFold};

/// Where a group's row stands among all of them.
type Places = HashMap<Labels, usize>;

impl Evaluator<'_> {
    /// The first steps of an aggregation, where another database makes them itself.
    pub(super) fn folded_elsewhere(
        &self,
        aggregate: &Aggregate,
        grid: Grid,
    ) -> Result<Option<Folded>> {
        let Some(looked) = self.looked_at(&aggregate.expr) else { return Ok(None) };
        let Some(series) = series_fold(aggregate.op.as_str()) else { return Ok(None) };
        let Some(by) = groups_by(&aggregate.grouping, looked.name) else { return Ok(None) };
        let Looked { set, window, window_ms, .. } = looked;
        let set = &set.matchers;
        Question { set, window, window_ms, series, by: &by }.ask(self.context, grid)
    }

    /// What a selector, or a rollup of one, looks at from each step, if it is nothing but the samples
    /// in a window.
    fn looked_at<'e>(&self, expr: &'e Expr) -> Option<Looked<'e>> {
        let options = &self.context.options;
        let looked = match expr.without_parens() {
            Expr::Vector(selector) => Looked {
                set: selector,
                window: WindowFold::Last,
                window_ms: options.lookback_ms,
                name: NameState::Kept,
            },
            Expr::Call(call) => {
                let [argument] = call.arguments.as_slice() else { return None };
                let Expr::Matrix(matrix) = argument.without_parens() else { return None };
                Looked {
                    set: &matrix.selector,
                    window: window_fold(call.function.name)?,
                    window_ms: matrix.range_ms,
                    name: self.rollup_name(functions::rollup(call.function.name)?),
                }
            }
            _ => return None,
        };
        let VectorSelector { offset_ms, at, edges, .. } = looked.set;
        let is_plain = *offset_ms == 0 && at.is_none() && *edges == Edges::Samples;
        // Where several metrics lose their names their rows may collide, which is an error.
        let is_unique = looked.name == NameState::Kept || demands_one_name(looked.set);
        let is_at_once = options.name_removal != NameRemoval::Late;
        (is_plain && is_unique && is_at_once).then_some(looked)
    }

    /// The value at every step, of which the first are made already.
    pub(super) fn behind_folded(
        &self,
        folded: Folded,
        aggregate: &Aggregate,
        grid: Grid,
    ) -> Result<Vector> {
        let rest = match grid.behind(folded.steps) {
            Some(behind) => self.aggregate_here(aggregate, behind)?,
            None => Vector::new(self.context, 1),
        };
        let (before, after) = (folded.steps, grid.len - folded.steps);
        let places: Places =
            rest.keys().iter().enumerate().map(|(idx, key)| (key.labels.clone(), idx)).collect();
        let mut is_joined = vec![false; rest.len()];
        let mut out = Vector::new(self.context, grid.len);
        out.reserve(rest.len().max(folded.rows.len()));
        for row in folded.rows {
            let mut values: Vec<f64> = row.values.into_iter().map(gap_where_nan).collect();
            values.resize(grid.len, ABSENT);
            let mut cells = Vec::new();
            if let Some(idx) = places.get(&row.labels) {
                is_joined[*idx] = true;
                values[before..].copy_from_slice(rest.row(*idx));
                cells = cells_behind(rest.cells(*idx), before);
            }
            out.push_mixed(self.context, Key::new(row.labels), &values, &cells)?;
        }
        let new = (0..rest.len()).filter(|idx| !is_joined[*idx]);
        for idx in new {
            let mut values = vec![ABSENT; before];
            values.extend_from_slice(rest.row(idx));
            debug_assert_eq!(values.len(), before + after);
            let cells = cells_behind(rest.cells(idx), before);
            out.push_mixed(self.context, rest.key(idx).clone(), &values, &cells)?;
        }
        Ok(out)
    }
}

/// What a selector or a rollup of one looks at.
struct Looked<'e> {
    set: &'e VectorSelector,
    window: WindowFold,
    window_ms: i64,
    /// What becomes of the metric's name.
    name: NameState,
}

/// The labels that make a group, where they are named; without the metric's name where that is gone.
fn groups_by(grouping: &Grouping, name: NameState) -> Option<Vec<String>> {
    let Grouping::By(labels) = grouping else { return None };
    let is_gone = |label: &String| name == NameState::Dropped && is_metadata_label(label);
    let by: Vec<String> = labels.iter().filter(|label| !is_gone(label)).cloned().collect();
    // Others than the name are no labels like any other, either.
    let is_known = |label: &String| label == METRIC_NAME || !is_metadata_label(label);
    by.iter().all(is_known).then_some(by)
}

fn gap_where_nan(value: f64) -> f64 {
    if value.is_nan() { ABSENT } else { value }
}

/// A row's histograms behind steps without any.
fn cells_behind<T: Clone>(cells: &[Option<T>], steps: usize) -> Vec<Option<T>> {
    if cells.is_empty() {
        return Vec::new();
    }
    let mut all = vec![None; steps];
    all.extend_from_slice(cells);
    all
}
