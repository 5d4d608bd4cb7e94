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

use super::arguments::{drop_empty, filter_labels};
use super::{Argument, CallContext, Series};
use crate::error::Result;
use model::{Labels, METRIC_NAME};
use promql::Grouping;
use std::collections::HashMap;

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
    let groups = Grouped { grouping: &canonical(grouping), limit };
    match context.name {
        "sum" | "sum2" | "min" | "max" | "avg" | "count" | "group" | "geomean" => {
            fold::call(context, arguments, &groups)
        }
        "stddev" | "stdvar" | "distinct" | "mode" | "median" | "mad" | "quantile" => {
            points::call(context, arguments, &groups)
        }
        "histogram" | "quantiles" | "count_values" => rows::call(context, arguments, &groups),
        _ => choose::call(context, arguments, &groups),
    }
}

/// The labels that make groups; without any there is one group.
fn canonical(grouping: Option<&Grouping>) -> Grouping {
    match grouping {
        None => Grouping::By(Vec::new()),
        Some(Grouping::By(names)) => Grouping::By(names.clone()),
        Some(Grouping::Without(names)) => {
            let mut names = names.clone();
            names.push(METRIC_NAME.to_string());
            Grouping::Without(names)
        }
    }
}

/// How series become groups.
struct Grouped<'a> {
    grouping: &'a Grouping,
    limit: u64,
}

impl Grouped<'_> {
    /// The labels of the group that a series belongs to.
    fn labels_of(&self, labels: &Labels) -> Labels {
        let is_listed = |names: &[String], name: &str| names.iter().any(|listed| listed == name);
        match self.grouping {
            Grouping::By(names) if names.is_empty() => Labels::default(),
            Grouping::By(names) => filter_labels(labels, |name| is_listed(names, name)),
            Grouping::Without(names) => filter_labels(labels, |name| !is_listed(names, name)),
        }
    }

    /// The groups, in the order of their first series. Series without points belong to none.
    fn split(&self, mut series: Vec<Series>) -> Vec<Group> {
        drop_empty(&mut series);
        let mut known: HashMap<Labels, usize> = HashMap::new();
        let mut groups: Vec<Group> = Vec::new();
        for one in series {
            let labels = self.labels_of(&one.labels);
            if let Some(idx) = known.get(&labels) {
                groups[*idx].series.push(one);
            } else if self.limit == 0 || (groups.len() as u64) < self.limit {
                known.insert(labels.clone(), groups.len());
                groups.push(Group { labels, series: vec![one] });
            }
        }
        groups
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
