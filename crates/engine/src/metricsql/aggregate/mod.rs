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
mod points;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use fold::{Folding, is_fold};

use super::arguments::drop_empty;
use super::{Argument, CallContext, Series};
use crate::aggregate::Groups;
use crate::error::Result;
use crate::selector::{NameState, Row};
use model::Labels;
use promql::Grouping;

/// Series that belong together.
struct Group {
    /// What they have in common, which names their sum.
    labels: Labels,
    /// At least one, each with a point at least.
    series: Vec<Series>,
}

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

/// How series become groups.
struct Grouped<'a> {
    grouping: &'a Grouping,
    /// At most so many groups; 0 is no limit.
    limit: u64,
}

impl Grouped<'_> {
    /// The groups, in the order of their first series. Series without points belong to none.
    fn split(&self, mut series: Vec<Series>) -> Vec<Group> {
        drop_empty(&mut series);
        let mut groups = Groups::new(self.grouping);
        let mut members: Vec<Vec<Series>> = Vec::new();
        for one in series {
            let row = Row::numbers(&one.labels, NameState::Kept, &one.values);
            let idx = groups.of(&row);
            if idx == members.len() && (self.limit == 0 || (idx as u64) < self.limit) {
                members.push(Vec::new());
            }
            if let Some(members) = members.get_mut(idx) {
                members.push(one);
            }
        }
        let labels = groups.keys().into_iter().map(|key| key.labels);
        labels.zip(members).map(|(labels, series)| Group { labels, series }).collect()
    }
}

impl Group {
    /// Replaces `values` by those that the series have at a point.
    fn values_at(&self, point: usize, values: &mut Vec<f64>) {
        values.clear();
        let column = self.series.iter().map(|one| one.values[point]);
        values.extend(column.filter(|value| !value.is_nan()));
    }

    /// A number of the values at each point, which are in `values` when it is called and may be
    /// reordered there.
    fn for_each_point(
        &self,
        context: &CallContext<'_>,
        mut number: impl FnMut(usize, &mut [f64]) -> f64,
    ) -> Vec<f64> {
        let mut values = Vec::with_capacity(self.series.len());
        (0..context.grid.len)
            .map(|point| {
                self.values_at(point, &mut values);
                number(point, &mut values)
            })
            .collect()
    }
}
