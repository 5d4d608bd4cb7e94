//! Aggregates that need all values at a point to give one number.

use super::super::statistics::{mean_and_variance, median_deviation, mode_sorted, quantile_sorted};
use super::super::{Argument, CallContext, Series};
use super::group::{Group, Grouped};
use crate::error::Result;

pub(super) fn call(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
    groups: &Grouped<'_>,
) -> Result<Vec<Series>> {
    if context.name == "quantile" {
        context.expect_count(arguments, 2, 2)?;
        let series = context.take(arguments, 1)?;
        let quantiles = context.numbers(arguments, 0)?;
        return Ok(each(context, groups, series, |_, point, values| {
            values.sort_unstable_by(f64::total_cmp);
            quantile_sorted(quantiles[point], values)
        }));
    }
    let series = context.take_all(arguments)?;
    let number = number(context.name);
    Ok(each(context, groups, series, |group, _, values| {
        if values.is_empty() { f64::NAN } else { number(group, values) }
    }))
}

fn each(
    context: &CallContext<'_>,
    groups: &Grouped<'_>,
    series: Vec<Series>,
    number: impl Fn(&Group, usize, &mut [f64]) -> f64,
) -> Vec<Series> {
    let row = |group: Group| {
        let values = group.for_each_point(context, |point, values| number(&group, point, values));
        Series { labels: group.labels, values }
    };
    groups.split(series).into_iter().map(row).collect()
}

/// The number of some values of a group.
fn number(name: &str) -> fn(&Group, &mut [f64]) -> f64 {
    match name {
        "stddev" => |group, values| variance(group, values).sqrt(),
        "stdvar" => variance,
        "distinct" => |_, values| {
            values.sort_unstable_by(f64::total_cmp);
            values.chunk_by(|a, b| a == b).count() as f64
        },
        "mode" => |_, values| {
            values.sort_unstable_by(f64::total_cmp);
            mode_sorted(values)
        },
        "mad" => |_, values| median_deviation(values),
        _ => |_, values| {
            values.sort_unstable_by(f64::total_cmp);
            quantile_sorted(0.5, values)
        },
    }
}

/// That of a group's only series is 0, even where it is infinite.
fn variance(group: &Group, values: &mut [f64]) -> f64 {
    match group.series.len() {
        1 => 0.0,
        _ => mean_and_variance(values.iter().copied()).1,
    }
}
