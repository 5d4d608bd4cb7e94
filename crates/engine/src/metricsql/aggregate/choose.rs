//! Aggregates that leave series as they are but choose among them, or change them all.

use super::super::arguments::{drop_empty, with_label};
use super::super::statistics::{mean, mean_and_variance, median_deviation, quantile};
use super::super::{Argument, CallContext, Series};
use super::group::{Group, Grouped};
use crate::error::Result;
use model::{Labels, METRIC_NAME};
use std::cmp::Ordering;
use xxhash_rust::xxh64::Xxh64;

pub(super) fn call(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
    groups: &Grouped<'_>,
) -> Result<Vec<Series>> {
    match context.name {
        "any" => any(context, arguments, groups),
        "share" => change(context, arguments, groups, share),
        "zscore" => change(context, arguments, groups, zscore),
        "limitk" => limit(context, arguments, groups),
        "topk" | "bottomk" => rank_points(context, arguments, groups),
        "outliers_iqr" | "outliers_mad" => outliers(context, arguments, groups),
        _ => rank_series(context, arguments, groups),
    }
}

/// The first series of each group; under a limit, that of the first group alone.
fn any(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
    groups: &Grouped<'_>,
) -> Result<Vec<Series>> {
    let groups = Grouped { limit: groups.limit.min(1), ..*groups };
    let mut chosen = Vec::new();
    for group in groups.split(context.take_all(arguments)?) {
        chosen.extend(group.series.into_iter().next());
    }
    Ok(chosen)
}

/// Changes all values of a group, point by point.
fn change(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
    groups: &Grouped<'_>,
    change: fn(&mut [f64]),
) -> Result<Vec<Series>> {
    let mut out = Vec::new();
    let mut column = Vec::new();
    for mut group in groups.split(context.take_all(arguments)?) {
        for point in 0..context.grid.len {
            column.clear();
            column.extend(group.series.iter().map(|one| one.values[point]));
            change(&mut column);
            for (one, value) in group.series.iter_mut().zip(&column) {
                one.values[point] = *value;
            }
        }
        out.append(&mut group.series);
    }
    Ok(out)
}

/// Each value's part of the sum; negative ones have none.
fn share(values: &mut [f64]) {
    let sum: f64 = values.iter().filter(|value| 0.0 <= **value).sum();
    for value in values {
        *value = if 0.0 <= *value { *value / sum } else { f64::NAN };
    }
}

/// Each value's distance from the average, in standard deviations.
fn zscore(values: &mut [f64]) {
    let (mean, variance) = mean_and_variance(values.iter().copied());
    let deviation = variance.sqrt();
    values.iter_mut().for_each(|value| *value = (*value - mean) / deviation);
}

/// Some series of each group, always the same ones: those whose labels have the smallest hashes.
fn limit(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
    groups: &Grouped<'_>,
) -> Result<Vec<Series>> {
    context.expect_count(arguments, 2, 2)?;
    let count = context.integer(arguments, 0)?;
    let count = usize::try_from(count).unwrap_or(0);
    let mut out = Vec::new();
    for mut group in groups.split(context.take(arguments, 1)?) {
        group.series.sort_by_cached_key(|one| hash(&one.labels));
        group.series.truncate(count);
        out.append(&mut group.series);
    }
    Ok(out)
}

/// XXH64 of the name, then of each label's name and value, with nothing between them.
fn hash(labels: &Labels) -> u64 {
    let mut hash = Xxh64::new(0);
    hash.update(labels.metric_name().as_bytes());
    for (name, value) in labels.iter().filter(|(name, _)| *name != METRIC_NAME) {
        hash.update(name.as_bytes());
        hash.update(value.as_bytes());
    }
    hash.digest()
}

/// The series with a point among those that are unusual at that point.
fn outliers(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
    groups: &Grouped<'_>,
) -> Result<Vec<Series>> {
    let is_iqr = context.name == "outliers_iqr";
    let count = if is_iqr { 1 } else { 2 };
    context.expect_count(arguments, count, count)?;
    let series = context.take(arguments, count - 1)?;
    let tolerances = if is_iqr { &[] } else { context.numbers(arguments, 0)? };
    let mut out = Vec::new();
    for mut group in groups.split(series) {
        // The middle of what is usual and how far it reaches, by point.
        let mut usual = Vec::with_capacity(context.grid.len);
        let mut values = Vec::new();
        for point in 0..context.grid.len {
            group.values_at(point, &mut values);
            usual.push(match tolerances.get(point) {
                Some(tolerance) => {
                    let median = quantile(0.5, &values);
                    let reach = median_deviation(&values) * tolerance;
                    Usual { from: f64::NAN, to: f64::NAN, median, reach }
                }
                None => Usual::between_quartiles(&values),
            });
        }
        group.series.retain(|one| {
            one.values.iter().zip(&usual).any(|(value, usual)| !usual.contains(*value))
        });
        out.append(&mut group.series);
    }
    Ok(out)
}

/// The values at a point that are no outliers. A bound that is NaN bounds nothing.
struct Usual {
    from: f64,
    to: f64,
    /// The middle and how far it reaches, where distances from the middle decide.
    median: f64,
    reach: f64,
}

impl Usual {
    fn between_quartiles(values: &[f64]) -> Usual {
        let (low, high) = (quantile(0.25, values), quantile(0.75, values));
        let reach = 1.5 * (high - low);
        Usual { from: low - reach, to: high + reach, median: f64::NAN, reach: f64::NAN }
    }

    fn contains(&self, value: f64) -> bool {
        !(value < self.from || self.to < value || self.reach < (value - self.median).abs())
    }
}

/// `topk` and `bottomk`: the best at each point, each for itself.
fn rank_points(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
    groups: &Grouped<'_>,
) -> Result<Vec<Series>> {
    context.expect_count(arguments, 2, 2)?;
    let series = context.take(arguments, 1)?;
    let counts = context.numbers(arguments, 0)?;
    let compare = worst_first(context.name);
    let mut out = Vec::new();
    for group in groups.split(series) {
        let mut series = group.series;
        // Worst first; the order at one point decides among equals at the next.
        let mut order: Vec<usize> = (0..series.len()).collect();
        for (point, count) in counts.iter().enumerate() {
            order.sort_by(|a, b| compare(series[*a].values[point], series[*b].values[point]));
            for idx in &order[..series.len() - chosen_count(*count, series.len())] {
                series[*idx].values[point] = f64::NAN;
            }
        }
        out.append(&mut best_first(series, &order));
    }
    Ok(out)
}

/// The series in the order given, turned round, without those that are empty.
fn best_first(series: Vec<Series>, order: &[usize]) -> Vec<Series> {
    let mut slots: Vec<Option<Series>> = series.into_iter().map(Some).collect();
    let mut ordered: Vec<Series> =
        order.iter().rev().filter_map(|idx| slots[*idx].take()).collect();
    drop_empty(&mut ordered);
    ordered
}

/// The order of an aggregate's values, the worst first, where no value is worst of all.
fn worst_first(name: &str) -> fn(f64, f64) -> Ordering {
    fn ascending(a: f64, b: f64) -> Ordering {
        b.is_nan().cmp(&a.is_nan()).then(a.partial_cmp(&b).unwrap_or(Ordering::Equal))
    }
    fn descending(a: f64, b: f64) -> Ordering {
        b.is_nan().cmp(&a.is_nan()).then(b.partial_cmp(&a).unwrap_or(Ordering::Equal))
    }
    if name.starts_with("bottomk") { descending } else { ascending }
}

/// How many of `len` series `k` means.
fn chosen_count(k: f64, len: usize) -> usize {
    // Negative numbers and NaN become 0.
    (k as usize).min(len)
}

/// `topk_max` and its kin: the best series by a number of all their points. The sum of the others
/// is shown if a label for it is given.
fn rank_series(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
    groups: &Grouped<'_>,
) -> Result<Vec<Series>> {
    let is_outliers = context.name == "outliersk";
    let number = number(context.name);
    if !is_outliers && number.is_none() {
        return context.fail("no such aggregate");
    }
    context.expect_count(arguments, 2, if is_outliers { 2 } else { 3 })?;
    let series = context.take(arguments, 1)?;
    let counts = context.numbers(arguments, 0)?;
    let rest_label = match arguments.len() {
        3 => context.text(arguments, 2)?,
        _ => "",
    };
    let compare = worst_first(context.name);
    let mut out = Vec::new();
    for group in groups.split(series) {
        let numbers: Vec<f64> = match number {
            Some(number) => group.series.iter().map(|one| number(&one.values)).collect(),
            None => distances(context, &group),
        };
        let mut order: Vec<usize> = (0..group.series.len()).collect();
        order.sort_by(|a, b| compare(numbers[*a], numbers[*b]));
        let mut series = group.series;
        let rest = take_rest(&mut series, &order, counts);
        if !rest_label.is_empty() && rest.iter().any(|value| !value.is_nan()) {
            let labels = rest_labels(&group.labels, rest_label);
            out.push(Series { labels, values: rest });
        }
        out.append(&mut best_first(series, &order));
    }
    Ok(out)
}

/// The number of a series that decides on its place.
fn number(name: &str) -> Option<fn(&[f64]) -> f64> {
    let (_, number) = name.split_once("topk_").or_else(|| name.split_once("bottomk_"))?;
    Some(match number {
        "avg" => mean,
        // A gap is neither smaller nor larger.
        "max" => |values| values.iter().copied().fold(f64::NAN, f64::max),
        "min" => |values| values.iter().copied().fold(f64::NAN, f64::min),
        "median" => |values| quantile(0.5, values),
        "last" => {
            |values| values.iter().copied().rev().find(|value| !value.is_nan()).unwrap_or(f64::NAN)
        }
        _ => return None,
    })
}

/// How far each series is from the medians; one with a gap is nearer than any.
fn distances(context: &CallContext<'_>, group: &Group) -> Vec<f64> {
    let medians = group.for_each_point(context, |_, values| quantile(0.5, values));
    let distance = |one: &Series| {
        one.values.iter().zip(&medians).map(|(value, median)| (value - median).powi(2)).sum()
    };
    group.series.iter().map(distance).collect()
}

/// Makes gaps of what is not among the best and gives its sum.
fn take_rest(series: &mut [Series], order: &[usize], counts: &[f64]) -> Vec<f64> {
    let mut rest = vec![f64::NAN; counts.len()];
    for (point, count) in counts.iter().enumerate() {
        for idx in &order[..series.len() - chosen_count(*count, series.len())] {
            let value = std::mem::replace(&mut series[*idx].values[point], f64::NAN);
            if !value.is_nan() {
                rest[point] = if rest[point].is_nan() { value } else { rest[point] + value };
            }
        }
    }
    rest
}

/// `label=value`, or the label for a value of the same name.
fn rest_labels(group: &Labels, label: &str) -> Labels {
    let (name, value) = label.split_once('=').unwrap_or((label, label));
    with_label(group, name, value)
}
