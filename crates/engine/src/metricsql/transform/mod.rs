//! Functions of series' values, a file per kind.
//!
//! Those of single points drop the metric's name unless they are in [`rows::KEEPS_NAME`] or
//! `keep_metric_names` stands behind the call. Functions of whole series do as they do: most keep
//! the name, the running ones and those of the range that are made of them drop it, whatever
//! stands behind the call.

mod buckets;
mod constant;
mod date;
mod gaps;
mod histogram;
mod math;
mod order;
mod random;
mod range;
mod rows;
mod running;
#[cfg(test)]
mod tests;

pub(super) use buckets::ranges_to_bounds;

use super::arguments::{drop_empty, is_scalar};
use super::{Argument, CallContext, Series};
use crate::error::Result;
use std::collections::HashSet;

/// Calls the transform of that name; `union` has no name as well.
///
/// # Errors
/// Wrong arguments, or a name that is none of a transform.
pub(crate) fn call(context: &CallContext<'_>, mut arguments: Vec<Argument>) -> Result<Vec<Series>> {
    let arguments = arguments.as_mut_slice();
    match context.name {
        "" | "union" => union(context, arguments),
        "absent" => absent(context, arguments),
        "vector" => context.take_only(arguments),
        "drop_empty_series" => {
            let mut series = context.take_only(arguments)?;
            drop_empty(&mut series);
            Ok(series)
        }
        "scalar" | "pi" | "now" | "time" | "start" | "end" | "step" => {
            constant::call(context, arguments)
        }
        "rand" | "rand_normal" | "rand_exponential" => random::call(context, arguments),
        "minute" | "hour" | "day_of_week" | "day_of_month" | "day_of_year" | "days_in_month"
        | "month" | "year" | "timezone_offset" => date::call(context, arguments),
        "keep_last_value" | "keep_next_value" | "interpolate" => gaps::call(context, arguments),
        "sort" | "sort_desc" | "limit_offset" => order::call(context, arguments),
        "remove_resets" | "smooth_exponential" => running::call(context, arguments),
        "buckets_limit" | "prometheus_buckets" => buckets::call(context, arguments),
        name if name.starts_with("histogram_") => histogram::call(context, arguments),
        name if name.starts_with("running_") => running::call(context, arguments),
        name if name.starts_with("range_") => range::call(context, arguments),
        _ => math::call(context, arguments),
    }
}

/// All series of all arguments; of several with equal labels the first. Numbers alone are all
/// kept, so that `q == (1, 2, 3)` has something to compare with.
fn union(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    if arguments.is_empty() {
        return Ok(context.constant(f64::NAN));
    }
    let are_numbers = arguments.iter().all(is_scalar);
    let mut series = context.take_all(arguments)?;
    if !are_numbers {
        let mut seen = HashSet::with_capacity(series.len());
        series.retain(|one| seen.insert(one.labels.clone()));
    }
    Ok(series)
}

/// 1 where no series has a point. The labels that the selector demands are the evaluator's part.
fn absent(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    let series = context.take_only(arguments)?;
    let mut marks = vec![1.0; context.grid.len];
    for one in &series {
        for (mark, value) in marks.iter_mut().zip(&one.values) {
            if !value.is_nan() {
                *mark = f64::NAN;
            }
        }
    }
    Ok(vec![context.nameless(marks)])
}
