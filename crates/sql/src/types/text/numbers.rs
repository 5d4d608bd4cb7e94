//! Decimal numbers as columns of `numeric` keep them: whole numbers of the smallest digit.

/// A number as it was written: `digits * 10 ^ exponent`.
struct Written {
    is_negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

/// Exponents beyond are of numbers that no column has.
const EXPONENT_MAX: i64 = 1000;

fn read(text: &str) -> Option<Written> {
    let text = text.trim();
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    if all.is_empty() || !all.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let zeros = all.iter().take_while(|digit| **digit == b'0').count();
    let digits: Vec<u8> = all[zeros..].to_vec();
    let is_sane = digits.is_empty() || exponent.abs() <= EXPONENT_MAX;
    is_sane.then_some(Written { is_negative, digits, exponent })
}

/// What a text is, in units of `10 ^ -scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// So many.
    Exact(i128),
    /// So many, to the nearest; halves go away from zero.
    Rounded(i128),
    /// More than there may be.
    TooMany,
    /// It is no number.
    None,
}

/// Reads a number of at most so many digits.
pub fn units_of(text: &str, precision: u8, scale: i8) -> Units {
    let Some(Written { is_negative, digits, exponent }) = read(text) else { return Units::None };
    let shift = exponent + i64::from(scale);
    let (kept, is_exact, rounds_up) = match usize::try_from(-shift) {
        Ok(cut) if 0 < cut => {
            let at = digits.len().saturating_sub(cut);
            let is_exact = digits[at..].iter().all(|digit| *digit == b'0');
            // The first digit that is cut off; what has fewer digits than are cut off begins with zeros.
            let first = if cut <= digits.len() { digits.get(at) } else { None };
            (digits[..at].to_vec(), is_exact, first.is_some_and(|first| b'5' <= *first))
        }
        _ => {
            let mut kept = digits;
            if !kept.is_empty() {
                kept.extend(std::iter::repeat_n(b'0', usize::try_from(shift).unwrap_or(0)));
            }
            (kept, true, false)
        }
    };
    if usize::from(precision) < kept.len() {
        return Units::TooMany;
    }
    let units = kept.iter().fold(0i128, |all, digit| all * 10 + i128::from(*digit - b'0'));
    let units = units + i128::from(rounds_up);
    if 10i128.checked_pow(u32::from(precision)).is_some_and(|end| end <= units) {
        return Units::TooMany;
    }
    let units = if is_negative { -units } else { units };
    if is_exact { Units::Exact(units) } else { Units::Rounded(units) }
}

/// So many units of `10 ^ -scale` as text.
pub fn text_of(units: i128, scale: i8) -> String {
    let places = usize::try_from(scale).unwrap_or(0);
    let sign = if units < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", units.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    match fraction.is_empty() {
        true => format!("{sign}{whole}"),
        false => format!("{sign}{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_away_from_zero() {
        for (text, expected) in [
            ("12.345", Units::Rounded(1235)),
            ("-12.345", Units::Rounded(-1235)),
            ("12.344", Units::Rounded(1234)),
            ("12.3", Units::Exact(1230)),
            ("0.005", Units::Rounded(1)),
            ("0.0049", Units::Rounded(0)),
            ("0.0005", Units::Rounded(0)),
            ("1e2", Units::Exact(10_000)),
            ("1.5E-1", Units::Exact(15)),
            ("  7 ", Units::Exact(700)),
            ("+.5", Units::Exact(50)),
            ("0e999999999", Units::Exact(0)),
            ("00012.30", Units::Exact(1230)),
            ("99999", Units::TooMany),
            ("999.995", Units::TooMany),
            ("1e900", Units::TooMany),
            ("1e-900", Units::Rounded(0)),
            ("", Units::None),
            (".", Units::None),
            ("1e", Units::None),
            ("NaN", Units::None),
            ("1_0", Units::None),
        ] {
            assert_eq!(units_of(text, 5, 2), expected, "{text}");
        }
        assert_eq!(units_of(&"9".repeat(38), 38, 0), Units::Exact(10i128.pow(38) - 1));
    }

    #[test]
    fn numbers_are_shown() {
        assert_eq!(text_of(-5, 2), "-0.05");
        assert_eq!(text_of(1200, 2), "12.00");
        assert_eq!(text_of(7, 0), "7");
    }
}
