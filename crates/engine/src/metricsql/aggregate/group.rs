//! Series that belong together, and how they come to.

use crate::aggregate::Groups;
use crate::metricsql::arguments::drop_empty;
use crate::metricsql::{CallContext, Series};
use crate::names::NameState;
use crate::row::Row;
use model::Labels;
use promql::Grouping;

/// Series that belong together.
pub(super) struct Group {
    /// What they have in common, which names their sum.
    pub labels: Labels,
    /// At least one, each with a point at least.
    pub series: Vec<Series>,
}

/// How series become groups.
pub(super) struct Grouped<'a> {
    pub grouping: &'a Grouping,
    /// At most so many groups; 0 is no limit.
    pub limit: u64,
}

impl Grouped<'_> {
    /// The groups, in the order of their first series. Series without points belong to none.
    pub fn split(&self, mut series: Vec<Series>) -> Vec<Group> {
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
    pub fn values_at(&self, point: usize, values: &mut Vec<f64>) {
        values.clear();
        let column = self.series.iter().map(|one| one.values[point]);
        values.extend(column.filter(|value| !value.is_nan()));
    }

    /// A number of the values at each point, which are in `values` when it is called and may be
    /// reordered there.
    pub fn for_each_point(
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
