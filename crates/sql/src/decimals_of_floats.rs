//! Floats that become `numeric`: with the fifteen digits that a `float8` has for sure, or the six of a `float4`, as
//! in PostgreSQL. Arrow multiplies, which makes digits up.

use crate::error::SqlError;
use crate::function::function;
use datafusion::arrow::array::{ArrayRef, AsArray as _, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::sync::{Arc, LazyLock};

/// The digits of a float, as a text that is cast to a decimal.
pub static DIGITS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(function(
        "pg_float_digits",
        signature,
        |_| DataType::Utf8,
        |args, rows| digits_of_all(&args[0], rows),
    ))
});

fn digits_of_all(array: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    let count = if *array.data_type() == DataType::Float32 { 6 } else { 15 };
    let wide = cast(array, &DataType::Float64)?;
    let mut out = StringBuilder::with_capacity(rows, rows * 16);
    for value in wide.as_primitive::<Float64Type>() {
        out.append_option(value.map(|value| digits(value, count)).transpose()?);
    }
    Ok(Arc::new(out.finish()))
}

fn digits(value: f64, count: usize) -> Result<String> {
    if !value.is_finite() {
        let error = SqlError::unsupported(format!("a numeric that is {value} is not known here"));
        return Err(DataFusionError::External(Box::new(error)));
    }
    let shown = format!("{value:.*e}", count - 1);
    let plain = plain_digits(&shown);
    Ok(plain.unwrap_or(shown))
}

/// Exponents of numbers that are written out.
const EXPONENT_MAX: i32 = 400;

/// A number without an exponent; none of what is no number.
pub fn plain_digits(text: &str) -> Option<String> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    if EXPONENT_MAX < exponent.abs() {
        return None;
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let point = i32::try_from(whole.len()).ok()? + exponent;
    let (whole, fraction) = match usize::try_from(point) {
        Ok(point) if point <= all.len() => (all[..point].to_string(), all[point..].to_string()),
        Ok(point) => (format!("{all}{}", "0".repeat(point - all.len())), String::new()),
        Err(_) => {
            let zeros = "0".repeat(usize::try_from(point.unsigned_abs()).ok()?);
            (String::new(), format!("{zeros}{all}"))
        }
    };
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    Some(match fraction.is_empty() {
        true => format!("{sign}{whole}"),
        false => format!("{sign}{whole}.{fraction}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_postgresql() {
        for (value, count, right) in [
            (1e20, 15, "100000000000000000000"),
            (0.1 + 0.2, 15, "0.300000000000000"),
            (123456789.123, 15, "123456789.123000"),
            (-1.5e-3, 15, "-0.00150000000000000"),
            (f64::from(0.1_f32), 6, "0.100000"),
            (0.0, 15, "0.00000000000000"),
        ] {
            assert_eq!(digits(value, count).unwrap(), right);
        }
        assert!(digits(f64::NAN, 15).is_err());
        assert_eq!(plain_digits("1.5E3").as_deref(), Some("1500"));
        assert_eq!(plain_digits(".5e-2").as_deref(), Some("0.005"));
        assert_eq!(plain_digits("12").as_deref(), Some("12"));
        assert_eq!(
            (plain_digits("1e999"), plain_digits("x"), plain_digits("")),
            (None, None, None)
        );
    }
}
