//! Functions of each point by itself.

use super::super::{Argument, CallContext, Series};
use super::rows::map_rows;
use crate::error::Result;
use crate::functions;

/// How far decimals are looked for in a number with a fraction.
const DECIMALS_PRECISION: f64 = 1e12;
/// The same for numbers above a million.
const DECIMALS_PRECISION_LARGE: f64 = 1e15;

/// Calls such a function; those that no other file knows end here too.
pub(super) fn call(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    if let Some(function) = of_point(context.name) {
        let series = context.take_only(arguments)?;
        return Ok(map_rows(context, series, |values| {
            values.iter_mut().for_each(|value| *value = function(*value));
        }));
    }
    if let Some(function) = with_parameter(context.name) {
        context.expect_count(arguments, 2, 2)?;
        let series = context.take(arguments, 0)?;
        let parameters = context.numbers(arguments, 1)?;
        return Ok(map_rows(context, series, |values| {
            for (value, parameter) in values.iter_mut().zip(parameters) {
                *value = function(*value, *parameter);
            }
        }));
    }
    match context.name {
        "clamp" => clamp(context, arguments),
        "round" => round(context, arguments),
        _ => context.fail("no such function"),
    }
}

/// Functions of one number.
fn of_point(name: &str) -> Option<fn(f64) -> f64> {
    match name {
        "sgn" => Some(sign),
        _ => functions::number(name),
    }
}

/// Functions of a number and another one that may differ from step to step.
fn with_parameter(name: &str) -> Option<fn(f64, f64) -> f64> {
    Some(match name {
        "clamp_max" => |value, high| if high < value { high } else { value },
        "clamp_min" => |value, low| if value < low { low } else { value },
        "bitmap_and" => |value, mask| bitwise(value, mask, |a, b| a & b),
        "bitmap_or" => |value, mask| bitwise(value, mask, |a, b| a | b),
        "bitmap_xor" => |value, mask| bitwise(value, mask, |a, b| a ^ b),
        _ => return None,
    })
}

/// -1, 0 or 1. A gap is neither above nor below zero, so it becomes 0.
fn sign(value: f64) -> f64 {
    if value < 0.0 {
        -1.0
    } else if 0.0 < value {
        1.0
    } else {
        0.0
    }
}

fn bitwise(a: f64, b: f64, operation: fn(u64, u64) -> u64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    operation(bits(a), bits(b)) as f64
}

/// The integer in 64 bits, a negative one as its complement; bit 63 alone for what has no place.
fn bits(value: f64) -> u64 {
    if value < 0.0 {
        value as i64 as u64
    } else if value < u64::MAX as f64 {
        value as u64
    } else {
        1 << 63
    }
}

fn clamp(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_count(arguments, 3, 3)?;
    let series = context.take(arguments, 0)?;
    let (lows, highs) = (context.numbers(arguments, 1)?, context.numbers(arguments, 2)?);
    Ok(map_rows(context, series, |values| {
        for (value, (low, high)) in values.iter_mut().zip(lows.iter().zip(highs)) {
            if high < value {
                *value = *high;
            } else if *value < *low {
                *value = *low;
            }
        }
    }))
}

fn round(context: &CallContext<'_>, arguments: &mut [Argument]) -> Result<Vec<Series>> {
    context.expect_count(arguments, 1, 2)?;
    let series = context.take(arguments, 0)?;
    let nearest = match arguments.len() {
        1 => vec![1.0; context.grid.len],
        _ => context.numbers(arguments, 1)?.to_vec(),
    };
    // Decimal digits that the result may have, by step; nearly always all the same.
    let scales: Vec<f64> = nearest.iter().map(|nearest| power_of_10(-exponent(*nearest))).collect();
    Ok(map_rows(context, series, |values| {
        for ((value, nearest), scale) in values.iter_mut().zip(&nearest).zip(&scales) {
            *value = round_to(*value, *nearest, *scale);
        }
    }))
}

/// The multiple of `nearest` that is nearest, halves away from zero, cut to the digits that
/// `nearest` itself has.
fn round_to(value: f64, nearest: f64, scale: f64) -> f64 {
    let shifted = value + 0.5 * nearest.copysign(value);
    let multiple = shifted - shifted % nearest;
    (multiple * scale).trunc() / scale
}

fn power_of_10(exponent: i32) -> f64 {
    // Text is the one way to the number that is closest.
    format!("1e{exponent}").parse().unwrap_or(f64::NAN)
}

/// The power of ten of a number's last decimal digit: -2 for 1.25, 1 for 30.
fn exponent(value: f64) -> i32 {
    let value = value.abs();
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    if value.fract() == 0.0 && value < u64::MAX as f64 {
        return exponent_of_integer(value as u64);
    }
    let mut exponent = 0;
    let mut value = value;
    let mut precision = DECIMALS_PRECISION;
    if !(1e-6..=1e6).contains(&value) {
        if 1e6 < value {
            precision = DECIMALS_PRECISION_LARGE;
        }
        exponent = (f64::from(binary_exponent(value)) * std::f64::consts::LOG10_2) as i32;
        value *= power_of_10(-exponent);
    }
    while value < precision {
        let (whole, rest) = (value.trunc(), value.fract());
        if rest * precision < whole {
            value = whole;
            break;
        }
        if (1.0 - rest) * precision < whole {
            value = whole + 1.0;
            break;
        }
        value *= 100.0;
        exponent -= 2;
    }
    if (value as u64).is_multiple_of(10) { exponent + 1 } else { exponent }
}

fn exponent_of_integer(mut value: u64) -> i32 {
    let mut exponent = 0;
    // Digits behind the 55th bit are none of the number's own.
    while (1 << 55) <= value || value.is_multiple_of(10) {
        value /= 10;
        exponent += 1;
    }
    exponent
}

/// The exponent of two above a number that is no zero, within those of full precision.
fn binary_exponent(value: f64) -> i32 {
    let biased = (value.to_bits() >> 52 & 0x7ff) as i32;
    (biased - 1022).clamp(-1022, 1023)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_digits() {
        let cases = [(0.0, 0), (1.0, 0), (30.0, 1), (1.25, -2), (0.1, -1), (0.5, -1), (1e-9, -9)];
        for (value, expected) in cases {
            assert_eq!(exponent(value), expected, "{value}");
        }
    }

    #[test]
    fn bits_of_numbers() {
        assert_eq!(bits(-1.0), u64::MAX);
        assert_eq!(bits(f64::INFINITY), 1 << 63);
        assert_eq!(bits(5.9), 5);
    }
}
