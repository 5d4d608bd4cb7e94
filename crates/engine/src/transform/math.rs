//! Functions of each sample by itself.

use crate::error::Result;
use crate::eval::Evaluator;
use crate::gap::{ABSENT, is_absent};
use crate::row::Key;
use crate::scalar::Scalar;
use crate::time::Grid;
use crate::vector::Vector;
use model::Labels;
use promql::{Call, Expr};
use std::f64::consts::PI;

/// Evaluates a call of such a function.
pub(crate) fn call(evaluator: &Evaluator<'_>, call: &Call, grid: Grid) -> Result<Vector> {
    let name = call.function.name;
    match name {
        "vector" => return vector(evaluator, &call.arguments[0], grid),
        "start_timestamp" => return start_timestamp(evaluator, &call.arguments[0], grid),
        "timestamp" => return timestamp(evaluator, &call.arguments[0], grid),
        _ => {}
    }
    let mut values = evaluator.vector(&call.arguments[0], grid)?;
    values.drop_histograms();
    let parameters: Result<Vec<Scalar>> =
        call.arguments[1..].iter().map(|argument| evaluator.scalar(argument, grid)).collect();
    let parameters = parameters?;
    match simple(name) {
        Some(function) => values.map_values(function),
        None => with_parameters(name, &mut values, &parameters),
    }
    values.without_names(evaluator.context.options.name_removal)
}

/// Functions of one number.
pub(crate) fn simple(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "abs" => f64::abs,
        "ceil" => f64::ceil,
        "floor" => f64::floor,
        "exp" => f64::exp,
        "sqrt" => f64::sqrt,
        "ln" => f64::ln,
        "log2" => f64::log2,
        "log10" => f64::log10,
        "sin" => f64::sin,
        "cos" => f64::cos,
        "tan" => f64::tan,
        "asin" => f64::asin,
        "acos" => f64::acos,
        "atan" => f64::atan,
        "sinh" => f64::sinh,
        "cosh" => f64::cosh,
        "tanh" => f64::tanh,
        "asinh" => f64::asinh,
        "acosh" => f64::acosh,
        "atanh" => f64::atanh,
        "rad" => |value| value * PI / 180.0,
        "deg" => |value| value * 180.0 / PI,
        "sgn" => |value| {
            if value < 0.0 {
                -1.0
            } else if 0.0 < value {
                1.0
            } else {
                value
            }
        },
        _ => return None,
    })
}

fn with_parameters(name: &str, values: &mut Vector, parameters: &[Scalar]) {
    match (name, parameters) {
        ("clamp", [low, high]) => {
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
        }
        ("clamp_max", [high]) => values.map_steps(|step, value| min(high.at(step), value)),
        ("clamp_min", [low]) => values.map_steps(|step, value| max(low.at(step), value)),
        ("round", [nearest]) => values.map_steps(|step, value| round(value, nearest.at(step))),
        _ => values.map_values(|value| round(value, 1.0)),
    }
}

/// Halves are rounded up.
fn round(value: f64, nearest: f64) -> f64 {
    // The inverse loses less: 0.1 is no binary fraction, 10 is.
    let inverse = 1.0 / nearest;
    (value * inverse + 0.5).floor() / inverse
}

/// The larger number, NaN if either is.
pub(crate) fn max(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// The smaller number, NaN if either is.
pub(crate) fn min(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }
}

fn vector(evaluator: &Evaluator<'_>, argument: &Expr, grid: Grid) -> Result<Vector> {
    let value = evaluator.scalar(argument, grid)?;
    let row: Vec<f64> = (0..grid.len).map(|step| value.at(step)).collect();
    let mut vector = Vector::new(evaluator.context, grid.len);
    vector.push(evaluator.context, Key::new(Labels::default()), &row)?;
    Ok(vector)
}

fn timestamp(evaluator: &Evaluator<'_>, argument: &Expr, grid: Grid) -> Result<Vector> {
    let times = match argument.without_parens() {
        Expr::Vector(selector) => evaluator.context.selector_times(selector, grid, |_| Ok(()))?,
        _ => {
            let mut vector = evaluator.vector(argument, grid)?;
            vector.forget_histograms();
            vector.map_steps(|step, _| grid.at_ms(step) as f64 / 1000.0);
            vector
        }
    };
    times.without_names(evaluator.context.options.name_removal)
}

/// Only samples have start timestamps: of what an expression makes of them there is nothing.
fn start_timestamp(evaluator: &Evaluator<'_>, argument: &Expr, grid: Grid) -> Result<Vector> {
    let context = evaluator.context;
    match argument.without_parens() {
        Expr::Vector(selector) => {
            let starts = context.selector_starts(selector, grid)?;
            starts.without_names(context.options.name_removal)
        }
        _ => {
            evaluator.vector(argument, grid)?;
            Ok(Vector::new(context, grid.len))
        }
    }
}

/// At each step the value of the only row that has one; NaN where none or several do.
pub(crate) fn only_value(vector: &Vector) -> Vec<f64> {
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
