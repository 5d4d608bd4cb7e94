//! Functions of each sample by itself.

use crate::call::CallContext;
use crate::error::Result;
use crate::gap::{ABSENT, is_absent};
use crate::names::Key;
use crate::vector::Vector;
use model::Labels;
use promql::Expr;
use std::f64::consts::{LN_2, PI};

/// A function of each number.
pub(crate) fn each(call: &CallContext<'_>, function: fn(f64) -> f64) -> Result<Vector> {
    let mut vector = call.numbers(0)?;
    vector.map_values(function);
    call.without_names(vector)
}

/// `rad`.
pub(crate) fn radians(value: f64) -> f64 {
    value * PI / 180.0
}

/// `deg`.
pub(crate) fn degrees(value: f64) -> f64 {
    value * 180.0 / PI
}

/// Numbers from which on the square root of `x² ± 1` is `x`. Half of them have no squares.
const HYPERBOLIC_LARGE: f64 = (1 << 28) as f64;

/// `acosh`.
pub(crate) fn acosh(value: f64) -> f64 {
    if HYPERBOLIC_LARGE <= value {
        return value.ln() + LN_2;
    }
    if value < 1.0 {
        return f64::NAN;
    }
    let above = value - 1.0;
    (above + (2.0 * above + above * above).sqrt()).ln_1p()
}

/// `asinh`.
pub(crate) fn asinh(value: f64) -> f64 {
    if value.is_finite() && HYPERBOLIC_LARGE <= value.abs() {
        return (value.abs().ln() + LN_2).copysign(value);
    }
    value.asinh()
}

/// `sgn`.
pub(crate) fn sign(value: f64) -> f64 {
    if value < 0.0 {
        -1.0
    } else if 0.0 < value {
        1.0
    } else {
        value
    }
}

/// `clamp`: nothing where the bounds leave no room.
pub(crate) fn clamp(call: &CallContext<'_>) -> Result<Vector> {
    let mut values = call.numbers(0)?;
    let (low, high) = (call.scalar(1)?, call.scalar(2)?);
    for idx in 0..values.len() {
        for (step, value) in values.row_mut(idx).iter_mut().enumerate() {
            let (low, high) = (low.at(step), high.at(step));
            if high < low {
                *value = ABSENT;
            } else if !is_absent(*value) {
                *value = max(low, min(high, *value));
            }
        }
    }
    values.drop_empty();
    call.without_names(values)
}

/// `clamp_max`.
pub(crate) fn clamp_max(call: &CallContext<'_>) -> Result<Vector> {
    let mut values = call.numbers(0)?;
    let high = call.scalar(1)?;
    values.map_steps(|step, value| min(high.at(step), value));
    call.without_names(values)
}

/// `clamp_min`.
pub(crate) fn clamp_min(call: &CallContext<'_>) -> Result<Vector> {
    let mut values = call.numbers(0)?;
    let low = call.scalar(1)?;
    values.map_steps(|step, value| max(low.at(step), value));
    call.without_names(values)
}

/// `round`: halves are rounded up.
pub(crate) fn round(call: &CallContext<'_>) -> Result<Vector> {
    let mut values = call.numbers(0)?;
    match call.call.arguments.len() {
        1 => values.map_values(|value| nearest_multiple(value, 1.0)),
        _ => {
            let nearest = call.scalar(1)?;
            values.map_steps(|step, value| nearest_multiple(value, nearest.at(step)));
        }
    }
    call.without_names(values)
}

fn nearest_multiple(value: f64, of: f64) -> f64 {
    // The inverse loses less: 0.1 is no binary fraction, 10 is.
    let inverse = 1.0 / of;
    (value * inverse + 0.5).floor() / inverse
}

/// The larger number as Go has it: infinity is larger than NaN, which is larger than others, and 0 is
/// larger than -0.
pub(crate) fn max(a: f64, b: f64) -> f64 {
    match (a, b) {
        _ if a == f64::INFINITY || b == f64::INFINITY => f64::INFINITY,
        _ if a.is_nan() || b.is_nan() => f64::NAN,
        _ if a == 0.0 && b == 0.0 => {
            if a.is_sign_negative() {
                b
            } else {
                a
            }
        }
        _ => a.max(b),
    }
}

/// The smaller number, as [`max`].
pub(crate) fn min(a: f64, b: f64) -> f64 {
    -max(-a, -b)
}

/// `vector`.
pub(crate) fn vector(call: &CallContext<'_>) -> Result<Vector> {
    let value = call.scalar(0)?;
    let row: Vec<f64> = (0..call.grid.len).map(|step| value.at(step)).collect();
    let mut vector = Vector::new(call.context, call.grid.len);
    vector.push(call.context, Key::new(Labels::default()), &row)?;
    Ok(vector)
}

/// `timestamp`: of a bare selector the samples' own times.
pub(crate) fn timestamp(call: &CallContext<'_>) -> Result<Vector> {
    let grid = call.grid;
    let times = match call.argument(0).without_parens() {
        Expr::Vector(selector) => call.context.selector_times(selector, grid, |_| Ok(()))?,
        _ => {
            let mut vector = call.vector(0)?;
            vector.forget_histograms();
            vector.map_steps(|step, _| grid.at_ms(step) as f64 / 1000.0);
            vector
        }
    };
    call.without_names(times)
}

/// `start_timestamp`: only samples have start timestamps, of what an expression makes of them there
/// is nothing.
pub(crate) fn start_timestamp(call: &CallContext<'_>) -> Result<Vector> {
    match call.argument(0).without_parens() {
        Expr::Vector(selector) => {
            call.without_names(call.context.selector_starts(selector, call.grid)?)
        }
        _ => {
            call.vector(0)?;
            Ok(Vector::new(call.context, call.grid.len))
        }
    }
}
