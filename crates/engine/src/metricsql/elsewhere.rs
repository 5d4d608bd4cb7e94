//! Aggregations whose first steps another database makes itself ([`crate::folded`]).

use super::Series;
use super::eval::{Evaluator, Steps};
use crate::error::Result;
use crate::folded::{Question, series_fold, window_fold};
use model::Labels;
use promql::Grouping;
use promql::metricsql::{Aggregate, Expr, Rollup, Selector};
use std::collections::HashMap;
use store::{Folded, WindowFold};

impl Evaluator<'_> {
    /// The first steps of an aggregation, where another database makes them itself.
    pub fn folded_elsewhere(&self, aggregate: &Aggregate, steps: Steps) -> Result<Option<Folded>> {
        let [argument] = aggregate.arguments.as_slice() else { return Ok(None) };
        let Some(looked) = looked_at(argument, steps.grid.step_ms) else { return Ok(None) };
        let Some(series) = series_fold(aggregate.function.name) else { return Ok(None) };
        let by: &[String] = match &aggregate.grouping {
            None => &[],
            Some(Grouping::By(labels)) => labels,
            Some(Grouping::Without(_)) => return Ok(None),
        };
        if aggregate.limit != 0 {
            return Ok(None);
        }
        let Looked { set, window, window_ms } = looked;
        Question { set, window, window_ms, series, by }.ask(self.context, steps.grid)
    }
}

/// What a rollup looks at.
struct Looked<'e> {
    set: &'e Vec<model::Matcher>,
    window: WindowFold,
    window_ms: i64,
}

/// What a rollup of a selector looks at from each step, if it is nothing but the samples in a window.
fn looked_at(expr: &Expr, step_ms: i64) -> Option<Looked<'_>> {
    let Expr::Call(call) = expr else { return None };
    let [Expr::Rollup(rollup)] = call.arguments.as_slice() else { return None };
    let Rollup { expr, window, step: None, has_colon: false, offset: None, at: None, .. } =
        &**rollup
    else {
        return None;
    };
    let Expr::Selector(Selector { sets, .. }) = expr else { return None };
    let [set] = sets.as_slice() else { return None };
    let window_ms = window.as_ref()?.at_step(step_ms);
    let window = window_fold(call.function.name).filter(|_| !call.keep_metric_names)?;
    Some(Looked { set, window, window_ms })
}

/// The rows of the first steps with those of the steps behind them.
pub(super) fn joined(folded: Folded, rest: Vec<Series>, len: usize) -> Vec<Series> {
    let before = folded.steps;
    let mut rest: HashMap<Labels, Vec<f64>> =
        rest.into_iter().map(|one| (one.labels, one.values)).collect();
    let mut all = Vec::with_capacity(folded.rows.len().max(rest.len()));
    for row in folded.rows {
        let mut values = row.values;
        match rest.remove(&row.labels) {
            Some(behind) => values.extend(behind),
            None => values.resize(len, f64::NAN),
        }
        all.push(Series { labels: row.labels, values });
    }
    let mut new: Vec<Series> = rest
        .into_iter()
        .map(|(labels, behind)| {
            let mut values = vec![f64::NAN; before];
            values.extend(behind);
            Series { labels, values }
        })
        .collect();
    new.sort_by(|a, b| a.labels.cmp(&b.labels));
    all.extend(new);
    debug_assert!(all.iter().all(|one| one.values.len() == len));
    all
}
