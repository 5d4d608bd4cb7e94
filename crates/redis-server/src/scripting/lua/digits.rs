//! Floats as C's `printf` writes them, which is what scripts' numbers become on their way out.

/// As `%.{precision}g`: that many significant digits at most, without zeros behind.
pub fn general(value: f64, precision: usize) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() { "-nan" } else { "nan" }.to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let precision = precision.max(1);
    let scientific = format!("{value:.*e}", precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits_max = i32::try_from(precision).unwrap_or(i32::MAX);
    if exponent < -4 || digits_max <= exponent {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.unsigned_abs());
    }
    let decimals = usize::try_from(digits_max - 1 - exponent).unwrap_or(0);
    trimmed(&format!("{value:.decimals$}")).to_owned()
}

/// Without zeros behind the point.
fn trimmed(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::general;

    #[allow(
        clippy::approx_constant,
        clippy::excessive_precision,
        reason = "digits are what is tested"
    )]
    #[test]
    fn as_printf_does() {
        for (value, precision, text) in [
            (0.0, 17, "0"),
            (-0.0, 17, "-0"),
            (1.0, 17, "1"),
            (100.5, 17, "100.5"),
            (0.1, 17, "0.10000000000000001"),
            (1e17, 17, "1e+17"),
            (1e16, 17, "10000000000000000"),
            (1e-5, 14, "1e-05"),
            (0.0001, 14, "0.0001"),
            (3.14159265358979, 14, "3.1415926535898"),
            (1e300, 14, "1e+300"),
            (9.999999999999999e22, 17, "9.9999999999999992e+22"),
            (f64::INFINITY, 14, "inf"),
            (99999.5, 5, "1e+05"),
        ] {
            assert_eq!(general(value, precision), text);
        }
    }
}
