//! Trigonometric functions of radians, and of degrees, exact where PostgreSQL's are, as in `sind(30)`
//! (<https://www.postgresql.org/docs/15/functions-math.html>).

use crate::types::error::SqlError;
use crate::types::function::function;
use crate::types::numeric::{conversions, exact_casts};
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Float64Builder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::sync::Arc;

type Made = Result<f64, SqlError>;

/// The functions.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    [
        of_one("sind", sine),
        of_one("cosd", cosine),
        of_one("tand", tangent),
        of_one("cotd", cotangent),
        of_one("asind", arc_sine),
        of_one("acosd", arc_cosine),
        of_one("atand", |one| Ok(one.atan() / 1f64.atan() * 45.0)),
        degrees("atan2d", 2, |args| Ok(args[0].atan2(args[1]) / 1f64.atan() * 45.0)),
    ]
    .into_iter()
    .chain(of_radians())
}

/// Functions of radians that refuse what they have no value for, where DataFusion's say NaN or infinity.
fn of_radians() -> [ScalarUDF; 9] {
    [
        of_one("sin", |one| finite(one).map(f64::sin)),
        of_one("cos", |one| finite(one).map(f64::cos)),
        of_one("tan", |one| finite(one).map(f64::tan)),
        of_one("cot", |one| finite(one).map(|one| 1.0 / one.tan())),
        of_one("asin", |one| within(one, -1.0, 1.0).map(f64::asin)),
        of_one("acos", |one| within(one, -1.0, 1.0).map(f64::acos)),
        of_one("acosh", |one| within(one, 1.0, f64::INFINITY).map(f64::acosh)),
        of_one("atanh", |one| within(one, -1.0, 1.0).map(f64::atanh)),
        of_one("degrees", |one| {
            let made = one.to_degrees();
            match made.is_infinite() && one.is_finite() {
                true => Err(SqlError::new("22003", "value out of range: overflow")),
                false => Ok(made),
            }
        }),
    ]
}

fn finite(one: f64) -> Made {
    if one.is_infinite() { Err(out_of_range()) } else { Ok(one) }
}

fn within(one: f64, least: f64, most: f64) -> Made {
    if (least..=most).contains(&one) { Ok(one) } else { Err(out_of_range()) }
}

fn of_one(name: &'static str, work: fn(f64) -> Made) -> ScalarUDF {
    degrees(name, 1, move |args| if args[0].is_nan() { Ok(f64::NAN) } else { work(args[0]) })
}

fn degrees(
    name: &'static str,
    count: usize,
    work: impl Fn(&[f64]) -> Made + Send + Sync + 'static,
) -> ScalarUDF {
    let signature = Signature::any(count, Volatility::Immutable);
    let all = move |args: &[ArrayRef], rows: usize| {
        let args = args.iter().map(as_float8).collect::<Result<Vec<_>, _>>()?;
        let mut out = Float64Builder::with_capacity(rows);
        for row in 0..rows {
            if args.iter().any(|one| one.is_null(row)) {
                out.append_null();
                continue;
            }
            let values: Vec<f64> =
                args.iter().map(|one| one.as_primitive::<Float64Type>().value(row)).collect();
            let made = work(&values);
            out.append_value(made.map_err(|error| DataFusionError::External(Box::new(error)))?);
        }
        Ok(Arc::new(out.finish()) as ArrayRef)
    };
    function(name, signature, |_| DataType::Float64, all)
}

/// Numbers, or texts of such, as `float8`.
///
/// # Errors
/// 22P02 when a text is no number.
pub fn as_float8(array: &ArrayRef) -> Result<ArrayRef, DataFusionError> {
    let of = array.data_type();
    if of.is_decimal() {
        let numbers: ArrayRef = Arc::new(conversions::decimals(array)?);
        return exact_casts::convert(&numbers, &DataType::Float64);
    }
    if !of.is_string() {
        return Ok(cast(array, &DataType::Float64)?);
    }
    let texts = cast(array, &DataType::Utf8View)?;
    let mut out = Float64Builder::with_capacity(array.len());
    for text in texts.as_string_view() {
        let read = text.map(|text| {
            text.trim().parse::<f64>().map_err(|_| {
                let words = format!("invalid input syntax for type double precision: \"{text}\"");
                DataFusionError::External(Box::new(SqlError::new("22P02", words)))
            })
        });
        out.append_option(read.transpose()?);
    }
    Ok(Arc::new(out.finish()))
}

fn out_of_range() -> SqlError {
    SqlError::new("22003", "input is out of range")
}

/// The sine of 0 to 30 degrees.
fn small_sine(degrees: f64) -> f64 {
    degrees.to_radians().sin() / 30f64.to_radians().sin() / 2.0
}

/// The cosine of 0 to 60 degrees.
fn small_cosine(degrees: f64) -> f64 {
    1.0 - (1.0 - degrees.to_radians().cos()) / (1.0 - 60f64.to_radians().cos()) / 2.0
}

/// The sine of 0 to 90 degrees.
fn quarter_sine(degrees: f64) -> f64 {
    if degrees <= 30.0 { small_sine(degrees) } else { small_cosine(90.0 - degrees) }
}

/// The cosine of 0 to 90 degrees.
fn quarter_cosine(degrees: f64) -> f64 {
    if degrees <= 60.0 { small_cosine(degrees) } else { small_sine(90.0 - degrees) }
}

/// The angle of 0 to 90 degrees that an angle is mirrored to, and whether it was below zero, above 180 and above 90
/// degrees.
fn mirrored(degrees: f64) -> Result<(f64, [bool; 3]), SqlError> {
    if degrees.is_infinite() {
        return Err(out_of_range());
    }
    let rest = degrees % 360.0;
    let (is_negative, rest) = (rest < 0.0, rest.abs());
    let is_back = 180.0 < rest;
    let rest = if is_back { 360.0 - rest } else { rest };
    let is_obtuse = 90.0 < rest;
    let rest = if is_obtuse { 180.0 - rest } else { rest };
    Ok((rest, [is_negative, is_back, is_obtuse]))
}

fn signed(value: f64, is_negative: bool) -> f64 {
    if is_negative { -value } else { value }
}

fn sine(degrees: f64) -> Made {
    let (rest, [is_negative, is_back, _]) = mirrored(degrees)?;
    Ok(signed(quarter_sine(rest), is_negative != is_back))
}

fn cosine(degrees: f64) -> Made {
    let (rest, [_, _, is_obtuse]) = mirrored(degrees)?;
    Ok(signed(quarter_cosine(rest), is_obtuse))
}

fn tangent(degrees: f64) -> Made {
    let (rest, [is_negative, is_back, is_obtuse]) = mirrored(degrees)?;
    let of = |angle| quarter_sine(angle) / quarter_cosine(angle);
    let made = signed(of(rest) / of(45.0), is_negative ^ is_back ^ is_obtuse);
    Ok(if made == 0.0 { 0.0 } else { made })
}

fn cotangent(degrees: f64) -> Made {
    let (rest, [is_negative, is_back, is_obtuse]) = mirrored(degrees)?;
    let of = |angle| quarter_cosine(angle) / quarter_sine(angle);
    let made = signed(of(rest) / of(45.0), is_negative ^ is_back ^ is_obtuse);
    Ok(if made == 0.0 { 0.0 } else { made })
}

/// The arc sine of 0 to 1.
fn positive_arc_sine(value: f64) -> f64 {
    match value <= 0.5 {
        true => value.asin() / 0.5f64.asin() * 30.0,
        false => 90.0 - value.acos() / 0.5f64.acos() * 60.0,
    }
}

fn arc_sine(value: f64) -> Made {
    match value.abs() <= 1.0 {
        true => Ok(signed(positive_arc_sine(value.abs()), value < 0.0)),
        false => Err(out_of_range()),
    }
}

fn arc_cosine(value: f64) -> Made {
    match value {
        _ if 1.0 < value.abs() => Err(out_of_range()),
        _ if value < 0.0 => Ok(90.0 + positive_arc_sine(-value)),
        _ if value <= 0.5 => Ok(90.0 - value.asin() / 0.5f64.asin() * 30.0),
        _ => Ok(value.acos() / 0.5f64.acos() * 60.0),
    }
}
