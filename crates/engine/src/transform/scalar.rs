//! Functions that give scalars: of the query itself, of scalars, and of a vector's only row.

use super::math;
use crate::call::CallContext;
use crate::error::Result;
use crate::gap::{ABSENT, is_absent};
use crate::scalar::Scalar;
use crate::vector::Vector;

/// `time`.
pub(crate) fn time(call: &CallContext<'_>) -> Result<Scalar> {
    let grid = call.grid;
    Ok(Scalar::Steps((0..grid.len).map(|step| seconds(grid.at_ms(step))).collect()))
}

/// `pi`.
pub(crate) fn pi(_: &CallContext<'_>) -> Result<Scalar> {
    Ok(Scalar::Constant(std::f64::consts::PI))
}

/// `start`.
pub(crate) fn start(call: &CallContext<'_>) -> Result<Scalar> {
    Ok(Scalar::Constant(seconds(call.context.start_ms)))
}

/// `end`.
pub(crate) fn end(call: &CallContext<'_>) -> Result<Scalar> {
    Ok(Scalar::Constant(seconds(call.context.end_ms)))
}

/// `range`.
pub(crate) fn range(call: &CallContext<'_>) -> Result<Scalar> {
    let context = call.context;
    Ok(Scalar::Constant(seconds(context.end_ms.saturating_sub(context.start_ms))))
}

/// `step`.
pub(crate) fn step(call: &CallContext<'_>) -> Result<Scalar> {
    Ok(Scalar::Constant(seconds(call.context.step_ms)))
}

/// `max_of`.
pub(crate) fn max_of(call: &CallContext<'_>) -> Result<Scalar> {
    Ok(call.scalar(0)?.zip(&call.scalar(1)?, call.grid.len, math::max))
}

/// `min_of`.
pub(crate) fn min_of(call: &CallContext<'_>) -> Result<Scalar> {
    Ok(call.scalar(0)?.zip(&call.scalar(1)?, call.grid.len, math::min))
}

/// `scalar`.
pub(crate) fn scalar(call: &CallContext<'_>) -> Result<Scalar> {
    Ok(Scalar::Steps(only_value(&call.numbers(0)?)))
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

/// At each step the value of the only row that has one; NaN where none or several do.
fn only_value(vector: &Vector) -> Vec<f64> {
    let mut found = vec![ABSENT; vector.steps()];
    for (_, row) in vector.rows() {
        for (found, value) in found.iter_mut().zip(row) {
            if !is_absent(*value) {
                *found = if is_absent(*found) { *value } else { f64::NAN };
            }
        }
    }
    for found in &mut found {
        if is_absent(*found) {
            *found = f64::NAN;
        }
    }
    found
}
