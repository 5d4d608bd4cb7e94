//! Functions of all points up to each.

use super::super::{Argument, CallContext, Series, without_name};
use crate::error::Result;

/// From the number so far, the next value and the index behind the first value to the number.
pub(super) type Step = fn(f64, f64, f64) -> f64;

pub(super) fn call(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    match context.name {
        "smooth_exponential" => return smooth_exponential(context, arguments),
        "remove_resets" => {
            let mut series = context.take_only(arguments)?;
            series.iter_mut().for_each(|one| remove_resets(&mut one.values));
            return Ok(series);
        }
        _ => {}
    }
    let Some(step) = step(context.name) else { return context.fail("no such function") };
    let mut series = context.take_only(arguments)?;
    series.iter_mut().for_each(|one| run(one, step));
    Ok(series)
}

/// The step of `running_…` and `range_…`.
pub(super) fn step(name: &str) -> Option<Step> {
    Some(match name.split_once('_')?.1 {
        "sum" => |sum, value, _| sum + value,
        "min" => |min, value, _| if min < value { min } else { value },
        "max" => |max, value, _| if value < max { max } else { value },
        "avg" => |average, value, idx| average + (value - average) / (idx + 1.0),
        _ => return None,
    })
}

/// Replaces each point, and each gap behind the first point, by the number up to there.
/// Takes the name away.
pub(super) fn run(series: &mut Series, step: Step) {
    series.labels = without_name(&series.labels);
    let Some(first) = series.values.iter().position(|value| !value.is_nan()) else { return };
    let values = &mut series.values[first..];
    let mut so_far = values[0];
    for (idx, value) in values.iter_mut().enumerate().skip(1) {
        if !value.is_nan() {
            so_far = step(so_far, *value, idx as f64);
        }
        *value = so_far;
    }
}

/// Adds to a counter what it lost when it started again.
fn remove_resets(values: &mut [f64]) {
    let mut lost = 0.0;
    let mut before = f64::NAN;
    for value in values.iter_mut().filter(|value| !value.is_nan()) {
        let now = *value;
        if now < before {
            // A small fall is no start from zero but a correction of the counter.
            lost += if (before - now) * 8.0 < before { before - now } else { before };
        }
        before = now;
        *value = now + lost;
    }
}

/// Averages in which the past fades; the factor is the weight of the present.
fn smooth_exponential(
    context: &CallContext<'_>,
    arguments: &mut [Argument],
) -> Result<Vec<Series>> {
    context.expect_count(arguments, 2, 2)?;
    let mut series = context.take(arguments, 0)?;
    let factors = context.numbers(arguments, 1)?;
    for one in &mut series {
        let values = &mut one.values;
        let Some(point) = values.iter().position(|value| !value.is_nan()) else { continue };
        // Infinities at the start are left as they are, unless there is nothing else.
        let finite = values[point..].iter().position(|value| !value.is_infinite());
        let first = point + finite.unwrap_or(0);
        let mut average = values[first];
        for (value, factor) in values.iter_mut().zip(factors).skip(first + 1) {
            if value.is_nan() {
                continue;
            }
            if value.is_finite() {
                let factor = if factor.is_nan() { 1.0 } else { factor.clamp(0.0, 1.0) };
                average = average * (1.0 - factor) + *value * factor;
            }
            *value = average;
        }
    }
    Ok(series)
}
