//! Aggregates that take in one series after the other.

use super::super::{Argument, CallContext, Series};
use super::group::Grouped;
use crate::aggregate::Groups;
use crate::error::Result;
use crate::names::NameState;
use crate::row::Row;
use model::Labels;
use promql::Grouping;

/// How the values at a point become one.
struct Fold {
    /// The number of the first value.
    first: fn(f64) -> f64,
    /// The number so far with a further value.
    next: fn(f64, f64) -> f64,
    /// The number and the count of values to the result.
    finish: fn(f64, f64) -> f64,
}

/// Whether an aggregate of that name takes in one series after the other.
pub(crate) fn is_fold(name: &str) -> bool {
    matches!(name, "sum" | "sum2" | "min" | "max" | "avg" | "count" | "group" | "geomean")
}

pub(super) fn call(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
    grouped: &Grouped<'_>,
) -> Result<Vec<Series>> {
    let mut folding = Folding::new(context.name, grouped.grouping, grouped.limit, context.grid.len);
    for one in context.take_all(arguments)? {
        folding.add(&one.labels, &one.values);
    }
    Ok(folding.finish())
}

/// An aggregation that is fed with one row after the other and keeps only groups.
pub(crate) struct Folding {
    fold: Fold,
    groups: Groups,
    /// Further groups are left out; 0 is no limit.
    limit: u64,
    /// Whether rows without points make groups without points, which `default` and comparisons see.
    keeps_empty: bool,
    steps: usize,
    /// `steps` numbers of each group, and how many values they are of.
    numbers: Vec<f64>,
    counts: Vec<f64>,
}

impl Folding {
    /// No rows yet. The name is one of a fold.
    pub fn new(name: &str, grouping: &Grouping, limit: u64, steps: usize) -> Folding {
        let groups = Groups::new(grouping);
        let (numbers, counts) = (Vec::new(), Vec::new());
        Folding { fold: fold(name), groups, limit, keeps_empty: false, steps, numbers, counts }
    }

    /// The same where rows without points make groups, too.
    pub fn keeping_empty(self) -> Folding {
        Folding { keeps_empty: true, ..self }
    }

    /// Takes in a row. Says whether a group was made for it.
    pub fn add(&mut self, labels: &Labels, values: &[f64]) -> bool {
        if !self.keeps_empty && values.iter().all(|value| value.is_nan()) {
            return false;
        }
        let known = self.numbers.len() / self.steps;
        let group = self.groups.of(&Row::numbers(labels, NameState::Kept, values));
        if self.limit != 0 && self.limit <= group as u64 {
            return false;
        }
        let is_new = group == known;
        if is_new {
            self.numbers.resize(self.numbers.len() + self.steps, f64::NAN);
            self.counts.resize(self.numbers.len(), 0.0);
        }
        let span = group * self.steps..(group + 1) * self.steps;
        let numbers = self.numbers[span.clone()].iter_mut();
        for ((number, count), value) in numbers.zip(&mut self.counts[span]).zip(values) {
            if !value.is_nan() {
                let Fold { first, next, .. } = self.fold;
                *number = if *count == 0.0 { first(*value) } else { next(*number, *value) };
                *count += 1.0;
            }
        }
        is_new
    }

    /// A row for each group.
    pub fn finish(mut self) -> Vec<Series> {
        for (number, count) in self.numbers.iter_mut().zip(&self.counts) {
            if 0.0 < *count {
                *number = (self.fold.finish)(*number, *count);
            }
        }
        let labels = self.groups.keys().into_iter().map(|key| key.labels);
        let rows = self.numbers.chunks_exact(self.steps).map(<[f64]>::to_vec);
        labels.zip(rows).map(|(labels, values)| Series { labels, values }).collect()
    }
}

fn fold(name: &str) -> Fold {
    let itself: fn(f64) -> f64 = |value| value;
    let plain: fn(f64, f64) -> f64 = |number, _| number;
    match name {
        "sum2" => Fold {
            first: |value| value * value,
            next: |sum, value| sum + value * value,
            finish: plain,
        },
        "min" => Fold {
            first: itself,
            next: |min, value| if value < min { value } else { min },
            finish: plain,
        },
        "max" => Fold {
            first: itself,
            next: |max, value| if max < value { value } else { max },
            finish: plain,
        },
        "avg" => {
            Fold { first: itself, next: |sum, value| sum + value, finish: |sum, count| sum / count }
        }
        "count" => Fold { first: itself, next: plain, finish: |_, count| count },
        "group" => Fold { first: |_| 1.0, next: plain, finish: plain },
        "geomean" => Fold {
            first: itself,
            next: |product, value| product * value,
            finish: |product, count| product.powf(1.0 / count),
        },
        _ => Fold { first: itself, next: |sum, value| sum + value, finish: plain },
    }
}
