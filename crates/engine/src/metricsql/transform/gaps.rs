//! Functions that fill gaps.

use super::super::{Argument, CallContext, Series};
use crate::error::Result;

pub(super) fn call(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    let mut series = context.take_only(arguments)?;
    let fill: fn(&mut [f64]) = match context.name {
        "keep_last_value" => |values| carry(values.iter_mut()),
        "keep_next_value" => |values| carry(values.iter_mut().rev()),
        _ => interpolate,
    };
    for one in &mut series {
        fill(&mut one.values);
    }
    Ok(series)
}

/// Puts the value before a gap into it.
fn carry<'a>(values: impl Iterator<Item = &'a mut f64>) {
    let mut last = f64::NAN;
    for value in values {
        if value.is_nan() {
            *value = last;
        } else {
            last = *value;
        }
    }
}

/// Draws straight lines over gaps that have a value on both sides.
fn interpolate(values: &mut [f64]) {
    let Some(mut left) = values.iter().position(|value| !value.is_nan()) else { return };
    for right in left + 1..values.len() {
        if values[right].is_nan() {
            continue;
        }
        let delta = (values[right] - values[left]) / (right - left) as f64;
        for idx in left + 1..right {
            // Step by step, which rounds as VictoriaMetrics does.
            values[idx] = values[idx - 1] + delta;
        }
        left = right;
    }
}
