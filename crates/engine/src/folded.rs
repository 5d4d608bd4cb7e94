//! Steps of an aggregation that another database makes itself of the samples that it has.
//!
//! Which aggregations these are is the same in both languages: of rollups that look at nothing but the
//! samples in their windows, by labels that are named. `rate` is none of them: what it makes of the same
//! samples differs from one database to the next. Nor are sums and counts of windows: a VictoriaMetrics
//! has samples twice that were written twice.

use crate::context::Context;
use crate::error::Result;
use crate::time::Grid;
use model::Matcher;
use store::{Fold, Folded, SeriesFold, WindowFold};

/// How a rollup of that name makes a number of a window, if it looks at nothing else.
pub(crate) fn window_fold(name: &str) -> Option<WindowFold> {
    match name {
        "min_over_time" => Some(WindowFold::Min),
        "max_over_time" => Some(WindowFold::Max),
        "avg_over_time" => Some(WindowFold::Avg),
        "last_over_time" => Some(WindowFold::Last),
        _ => None,
    }
}

/// How an aggregate of that name makes one number of many.
pub(crate) fn series_fold(name: &str) -> Option<SeriesFold> {
    match name {
        "min" => Some(SeriesFold::Min),
        "max" => Some(SeriesFold::Max),
        "sum" => Some(SeriesFold::Sum),
        "avg" => Some(SeriesFold::Avg),
        "count" => Some(SeriesFold::Count),
        "group" => Some(SeriesFold::Group),
        _ => None,
    }
}

/// What is asked for at each step of a grid.
pub(crate) struct Question<'q> {
    /// Whose samples.
    pub set: &'q Vec<Matcher>,
    /// Of a window's samples ...
    pub window: WindowFold,
    /// ... with windows so long.
    pub window_ms: i64,
    /// Of a group's series.
    pub series: SeriesFold,
    /// The labels that make a group.
    pub by: &'q [String],
}

impl Question<'_> {
    /// The first steps of a grid, where somebody makes them elsewhere.
    pub fn ask(&self, context: &Context<'_>, grid: Grid) -> Result<Option<Folded>> {
        // Samples that do not come cannot be counted. And who demands nothing asks for nothing.
        if context.step_samples.is_some() || self.set.is_empty() || self.window_ms <= 0 {
            return Ok(None);
        }
        let Question { window, window_ms, series, by, .. } = *self;
        let Grid { start_ms, step_ms, len } = grid;
        let fold = Fold { window, window_ms, series, by, start_ms, step_ms, len };
        let sets = std::slice::from_ref(self.set);
        Ok(context.source.fold(sets, &fold, &context.select_limits())?)
    }
}
