//! Numbers as text, as Go's `%g` prints them.

/// The fewest digits that give the number back, with an exponent where it is below -4 or above 5.
pub fn format_shortest(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_string();
    }
    if value.is_infinite() {
        return if 0.0 < value { "+Inf" } else { "-Inf" }.to_string();
    }
    let text = format!("{value:e}");
    let power = text.split_once('e').and_then(|(_, power)| power.parse::<i32>().ok());
    match power {
        Some(-4..6) => format!("{value}"),
        _ => padded_exponent(&text),
    }
}

/// `1e-5` as Go writes it: `1e-05`.
pub fn padded_exponent(text: &str) -> String {
    let Some((digits, power)) = text.split_once('e') else { return text.to_string() };
    let (sign, power) = match power.strip_prefix('-') {
        Some(power) => ('-', power),
        None => ('+', power),
    };
    format!("{digits}e{sign}{power:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (0.5, "0.5"),
            (100000.0, "100000"),
            (1e6, "1e+06"),
            (1234567.5, "1.2345675e+06"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-1.5e300, "-1.5e+300"),
            (f64::INFINITY, "+Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(format_shortest(value), text);
        }
    }
}
