//! Many series to one of each group, or to some of each group.
//!
//! ```text
//! fold       a number that grows with each series: sum, max, count
//! points     a number of all values at a point: median, mode, stddev
//! rows       several series of each group: histogram, quantiles, count_values
//! choose     some of the series as they are, or all of them changed: topk, outliersk, share
//! ```
//!
//! What makes one series of a group names it by the group's labels, what chooses series leaves
//! them theirs. Groups come in the order in which the first series of each is met, chosen series
//! best first. An aggregate's own order of series stays in the answer for `topk`, `bottomk`,
//! `outliersk` and their kin.

mod choose;
mod fold;
mod group;
mod points;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use fold::{Folding, is_fold};

use super::{Argument, CallContext, Series};
use crate::error::Result;
use group::Grouped;
use promql::Grouping;

/// Calls the aggregate of that name over all series of all its arguments. `limit` is the number
/// of groups after which further ones are left out, 0 for none.
///
/// # Errors
/// Wrong arguments, or a name that is none of an aggregate.
pub(crate) fn call(
    context: &CallContext<'_>,
    mut arguments: Vec<Argument>,
    grouping: Option<&Grouping>,
    limit: u64,
) -> Result<Vec<Series>> {
    let arguments = arguments.as_mut_slice();
    let one_group = Grouping::By(Vec::new());
    let groups = Grouped { grouping: grouping.unwrap_or(&one_group), limit };
    match context.name {
        name if is_fold(name) => fold::call(context, arguments, &groups),
        "stddev" | "stdvar" | "distinct" | "mode" | "median" | "mad" | "quantile" => {
            points::call(context, arguments, &groups)
        }
        "histogram" | "quantiles" | "count_values" => rows::call(context, arguments, &groups),
        _ => choose::call(context, arguments, &groups),
    }
}

/// An aggregation of that name that is fed with one row after the other, if it is of that kind.
pub(crate) fn folding(
    name: &str,
    grouping: Option<&Grouping>,
    limit: u64,
    steps: usize,
) -> Option<Folding> {
    let one_group = Grouping::By(Vec::new());
    let grouping = grouping.unwrap_or(&one_group);
    is_fold(name).then(|| Folding::new(name, grouping, limit, steps))
}
