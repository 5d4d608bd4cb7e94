//! Functions of all points of a series, from the first step of the query to the last.

use super::super::statistics::{
    mean, median_deviation, quantile, quantile_sorted, regression, sorted, variance,
};
use super::super::{Argument, CallContext, Series};
use super::running;
use crate::error::Result;

pub(super) fn call(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    match context.name {
        "range_normalize" => return normalize(context, arguments),
        "range_linear_regression" => return linear_regression(context, arguments),
        _ => {}
    }
    if let Some(function) = whole(context.name) {
        let mut series = context.take_only(arguments)?;
        series.iter_mut().for_each(|one| function(&mut one.values));
        return Ok(series);
    }
    if let Some(function) = with_parameter(context.name) {
        context.expect_count(arguments, 2, 2)?;
        let parameter = context.number(arguments, 0)?;
        let mut series = context.take(arguments, 1)?;
        series.iter_mut().for_each(|one| function(parameter, &mut one.values));
        return Ok(series);
    }
    let Some(step) = running::step(context.name) else { return context.fail("no such function") };
    let mut series = context.take_only(arguments)?;
    for one in &mut series {
        running::run(one, step);
        spread_last(&mut one.values);
    }
    Ok(series)
}

/// Functions of a series alone.
fn whole(name: &str) -> Option<fn(&mut [f64])> {
    Some(match name {
        "range_first" => |values| spread(values.iter().copied().find(|v| !v.is_nan()), values),
        "range_last" => spread_last,
        "range_median" => |values| spread_quantile(0.5, values),
        "range_mad" => |values| values.fill(median_deviation(values)),
        "range_stddev" => |values| values.fill(variance(values).sqrt()),
        "range_stdvar" => |values| values.fill(variance(values)),
        "range_zscore" => |values| {
            let (mean, deviation) = (mean(values), variance(values).sqrt());
            values.iter_mut().for_each(|value| *value = (*value - mean) / deviation);
        },
        _ => return None,
    })
}

/// Functions of a number and a series.
fn with_parameter(name: &str) -> Option<fn(f64, &mut [f64])> {
    Some(match name {
        "range_quantile" => spread_quantile,
        "range_trim_outliers" => |k, values| {
            let distance_max = k * median_deviation(values);
            let median = quantile(0.5, values);
            trim(values, |value| distance_max < (value - median).abs());
        },
        "range_trim_spikes" => |q, values| {
            let sorted = sorted(values);
            let high = quantile_sorted(1.0 - q / 2.0, &sorted);
            let low = quantile_sorted(q / 2.0, &sorted);
            trim(values, |value| value < low || high < value);
        },
        "range_trim_zscore" => |z, values| {
            let (mean, deviation) = (mean(values), variance(values).sqrt());
            trim(values, |value| z.abs() < (value - mean).abs() / deviation);
        },
        _ => return None,
    })
}

/// Makes gaps of the points for which `is_out` holds.
fn trim(values: &mut [f64], is_out: impl Fn(f64) -> bool) {
    for value in values.iter_mut().filter(|value| is_out(**value)) {
        *value = f64::NAN;
    }
}

/// Puts the value everywhere, gaps included.
fn spread(value: Option<f64>, values: &mut [f64]) {
    if let Some(value) = value {
        values.fill(value);
    }
}

fn spread_quantile(q: f64, values: &mut [f64]) {
    let sorted = sorted(values);
    let Some(last) = values.iter().rposition(|value| !value.is_nan()) else { return };
    let quantile = quantile_sorted(q, &sorted);
    if quantile.is_nan() {
        // There is none between infinities. VictoriaMetrics puts it in the last value's place and
        // then spreads the last number that it finds.
        values[last] = f64::NAN;
        return spread_last(values);
    }
    values.fill(quantile);
}

fn spread_last(values: &mut [f64]) {
    spread(values.iter().copied().rev().find(|value| !value.is_nan()), values);
}

/// Moves each series of each argument between 0 and 1. What has no bounds is left out.
fn normalize(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    let mut out = Vec::new();
    for idx in 0..arguments.len() {
        for mut one in context.take(arguments, idx)? {
            let low = one.values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = one.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let width = high - low;
            if width.is_infinite() {
                continue;
            }
            one.values.iter_mut().for_each(|value| *value = (*value - low) / width);
            out.push(one);
        }
    }
    Ok(out)
}

/// The line that lies closest to each series' points.
fn linear_regression(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    let mut series = context.take_only(arguments)?;
    let grid = context.grid;
    let seconds = |idx: usize| (grid.at_ms(idx) - grid.start_ms) as f64 / 1e3;
    for one in &mut series {
        let (start, slope) = regression((0..grid.len).map(seconds), &one.values);
        for (idx, value) in one.values.iter_mut().enumerate() {
            *value = start + slope * seconds(idx);
        }
    }
    Ok(series)
}
