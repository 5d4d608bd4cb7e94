//! Aggregates that take in one series after the other.

use super::super::{Argument, CallContext, Series};
use super::{Group, Grouped};
use crate::error::Result;

/// How the values at a point become one.
struct Fold {
    /// The number of the first value.
    first: fn(f64) -> f64,
    /// The number so far with a further value.
    next: fn(f64, f64) -> f64,
    /// The number and the count of values to the result.
    finish: fn(f64, f64) -> f64,
}

pub(super) fn call(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
    groups: &Grouped<'_>,
) -> Result<Vec<Series>> {
    let fold = fold(context.name);
    let series = context.take_all(arguments)?;
    Ok(groups.split(series).into_iter().map(|group| run(group, &fold)).collect())
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

fn run(group: Group, fold: &Fold) -> Series {
    let mut numbers = vec![f64::NAN; group.series[0].values.len()];
    let mut counts = vec![0.0; numbers.len()];
    for one in &group.series {
        for ((number, count), value) in numbers.iter_mut().zip(&mut counts).zip(&one.values) {
            if value.is_nan() {
                continue;
            }
            *number =
                if *count == 0.0 { (fold.first)(*value) } else { (fold.next)(*number, *value) };
            *count += 1.0;
        }
    }
    for (number, count) in numbers.iter_mut().zip(counts).filter(|(_, count)| 0.0 < *count) {
        *number = (fold.finish)(*number, count);
    }
    Series { labels: group.labels, values: numbers }
}
