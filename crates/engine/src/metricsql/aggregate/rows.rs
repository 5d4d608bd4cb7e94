//! Aggregates that make several series of a group.

use super::super::arguments::{format_shortest, with_label};
use super::super::statistics::quantile_sorted;
use super::super::transform::ranges_to_bounds;
use super::super::{Argument, CallContext, Series};
use super::group::{Group, Grouped};
use crate::error::Result;
use promql::Grouping;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// Powers of ten between which buckets are, and how many buckets there are for each.
const BUCKETS_FROM: i32 = -9;
const BUCKETS_TO: i32 = 18;
const BUCKETS_PER_POWER: i32 = 18;
const BUCKET_COUNT: usize = ((BUCKETS_TO - BUCKETS_FROM) * BUCKETS_PER_POWER) as usize;

pub(super) fn call(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
    groups: &Grouped<'_>,
) -> Result<Vec<Series>> {
    match context.name {
        "quantiles" => quantiles(context, arguments, groups),
        "count_values" => count_values(context, arguments, groups),
        _ => {
            let series = context.take_all(arguments)?;
            let mut out = Vec::new();
            for group in groups.split(series) {
                let mut buckets = ranges_to_bounds(histogram(context, &group)?);
                out.append(&mut buckets);
                context.check_made(out.len())?;
            }
            Ok(out)
        }
    }
}

fn quantiles(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
    groups: &Grouped<'_>,
) -> Result<Vec<Series>> {
    context.expect_at_least(arguments, 3)?;
    let last = arguments.len() - 1;
    let series = context.take(arguments, last)?;
    let label = context.text(arguments, 0)?;
    let parameters: Result<Vec<f64>> =
        (1..last).map(|idx| context.number(arguments, idx)).collect();
    let parameters = parameters?;
    let groups = groups.split(series);
    context.check_made(groups.len().saturating_mul(parameters.len()))?;
    let mut out = Vec::new();
    for group in groups {
        let first = out.len();
        for parameter in &parameters {
            let labels = with_label(&group.labels, label, &format_shortest(*parameter));
            out.push(Series { labels, values: Vec::with_capacity(context.grid.len) });
        }
        let mut values = Vec::new();
        for point in 0..context.grid.len {
            group.values_at(point, &mut values);
            values.sort_unstable_by(f64::total_cmp);
            for (row, parameter) in out[first..].iter_mut().zip(&parameters) {
                row.values.push(quantile_sorted(*parameter, &values));
            }
        }
    }
    Ok(out)
}

/// A series for each value, which counts how many series have it.
fn count_values(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
    groups: &Grouped<'_>,
) -> Result<Vec<Series>> {
    context.expect_count(arguments, 2, 2)?;
    let series = context.take(arguments, 1)?;
    let label = context.text(arguments, 0)?;
    // The label is the value's, so it makes no groups.
    let grouping = match groups.grouping {
        Grouping::By(names) => {
            Grouping::By(names.iter().filter(|name| *name != label).cloned().collect())
        }
        Grouping::Without(names) => {
            Grouping::Without(names.iter().cloned().chain([label.to_string()]).collect())
        }
    };
    let groups = Grouped { grouping: &grouping, limit: groups.limit };
    let mut out: Vec<Series> = Vec::new();
    for group in groups.split(series) {
        let mut known: HashMap<u64, usize> = HashMap::new();
        for one in &group.series {
            for (point, value) in one.values.iter().enumerate().filter(|(_, v)| !v.is_nan()) {
                // Both zeros are one value.
                let idx = *known.entry((value + 0.0).to_bits()).or_insert(out.len());
                if idx == out.len() {
                    context.check_made(idx + 1)?;
                    let labels = with_label(&group.labels, label, &promql::format_number(*value));
                    out.push(Series { labels, values: vec![f64::NAN; context.grid.len] });
                }
                let count = &mut out[idx].values[point];
                *count = if count.is_nan() { 1.0 } else { *count + 1.0 };
            }
        }
    }
    Ok(out)
}

/// Series with `vmrange`, each counting the group's values in that range.
fn histogram(context: &CallContext<'_>, group: &Group) -> Result<Vec<Series>> {
    let mut ranges: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for one in &group.series {
        for (point, value) in one.values.iter().enumerate() {
            let Some(idx) = bucket_of(*value) else { continue };
            let counts = ranges.entry(idx).or_insert_with(|| vec![0.0; context.grid.len]);
            counts[point] += 1.0;
        }
    }
    let range = |(idx, values): (usize, Vec<f64>)| Series {
        labels: with_label(&group.labels, "vmrange", &RANGES[idx]),
        values,
    };
    context.check_made(ranges.len())?;
    Ok(ranges.into_iter().map(range).collect())
}

/// The bucket of a value: 0 for what is too small, the last for what is too large. Negative
/// values have none.
fn bucket_of(value: f64) -> Option<usize> {
    if value.is_nan() || value < 0.0 {
        return None;
    }
    let place = (value.log10() - f64::from(BUCKETS_FROM)) * f64::from(BUCKETS_PER_POWER);
    if place < 0.0 {
        return Some(0);
    }
    if BUCKET_COUNT as f64 <= place {
        return Some(BUCKET_COUNT + 1);
    }
    let idx = place as usize;
    // A bucket's upper bound is in it.
    let is_bound = place == idx as f64 && 0 < idx;
    Some(if is_bound { idx } else { idx + 1 })
}

/// What the buckets are called.
static RANGES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let bound = |value: f64| scientific(value);
    let factor = 10_f64.powf(1.0 / f64::from(BUCKETS_PER_POWER));
    let lowest = 1e-9;
    let mut ranges = vec![format!("0...{}", bound(lowest))];
    let mut start = lowest;
    for _ in 0..BUCKET_COUNT {
        let end = start * factor;
        ranges.push(format!("{}...{}", bound(start), bound(end)));
        start = end;
    }
    ranges.push(format!("{}...+Inf", bound(1e18)));
    ranges
});

/// Four digits and an exponent of two: `1.136e-09`.
fn scientific(value: f64) -> String {
    let text = format!("{value:.3e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => match exponent.strip_prefix('-') {
            Some(digits) => format!("{mantissa}e-{digits:0>2}"),
            None => format!("{mantissa}e+{exponent:0>2}"),
        },
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_their_upper_bound() {
        let range = |value: f64| bucket_of(value).map(|idx| RANGES[idx].as_str());
        assert_eq!(range(1.0), Some("8.799e-01...1.000e+00"));
        assert_eq!(range(0.0), Some("0...1.000e-09"));
        assert_eq!(range(2e18), Some("1.000e+18...+Inf"));
        assert_eq!(range(f64::INFINITY), Some("1.000e+18...+Inf"));
        assert_eq!(range(-1.0), None);
        assert_eq!(range(1.1), Some("1.000e+00...1.136e+00"));
    }
}
