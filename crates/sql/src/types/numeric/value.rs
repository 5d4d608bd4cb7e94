//! Decimal numbers as PostgreSQL keeps them: digits, and how many of them are shown behind the point.
//!
//! ```text
//! Decimal256(76, 40): [36 digits][38 digits behind the point][number of digits shown, 2 digits]
//! ```
//!
//! Numbers of one value and other shown digits stand beside each other in this order; `key` makes them equal.
//! NaN and the infinities are the ends of the range.

use crate::types::error::SqlError;
use datafusion::arrow::datatypes::{DataType, i256};
use std::cmp::Ordering;
use std::sync::LazyLock;

/// The type of `numeric`. Nothing else here has it.
pub const NUMERIC: DataType = DataType::Decimal256(PRECISION, SCALE);
/// Its precision and scale as Arrow has them.
pub const PRECISION: u8 = 76;
pub const SCALE: i8 = 40;
/// Digits behind the point.
pub const SCALE_MAX: u8 = 38;
/// Digits before the point.
const WHOLE_MAX: u32 = 36;
/// Upper bound of a scale: the encoding keeps the scale in the two lowest decimal digits.
const SCALE_BOUND: i256 = i256::from_i128(100);
/// PostgreSQL's largest exponent.
const EXPONENT_MAX: i64 = 131_072;
/// Digits that a `float8` has for sure.
const FLOAT_DIGITS: usize = 15;

static POWERS: LazyLock<Vec<i256>> = LazyLock::new(|| {
    let ten = i256::from_i128(10);
    std::iter::successors(Some(i256::ONE), |last| last.checked_mul(ten)).collect()
});

/// `10 ^ exponent`; none where it has no room.
pub fn power_of_10(exponent: u32) -> Option<i256> {
    POWERS.get(usize::try_from(exponent).ok()?).copied()
}

/// A `numeric`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numeric {
    Finite(Decimal),
    NaN,
    Infinity,
    NegativeInfinity,
}

/// A finite number: `units * 10 ^ -scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    pub units: i256,
    pub scale: u8,
}

/// Returns the error for a number with more digits than the encoding keeps.
pub fn too_long() -> SqlError {
    let words = format!(
        "numeric keeps {WHOLE_MAX} digits before its point here, and {SCALE_MAX} behind; this number has more"
    );
    SqlError::unsupported(words).with_hint("Cast it to double precision, or round it.")
}

fn malformed(text: &str) -> SqlError {
    let shown: String = text.chars().take(100).collect();
    SqlError::new("22P02", format!("invalid input syntax for type numeric: \"{shown}\""))
}

fn end() -> i256 {
    POWERS[usize::from(PRECISION)]
}

fn two() -> i256 {
    i256::from_i128(2)
}

impl Decimal {
    pub fn new(units: i256, scale: u8) -> Decimal {
        Decimal { units, scale }
    }

    /// A whole number.
    pub fn whole(number: i128) -> Decimal {
        Decimal::new(i256::from_i128(number), 0)
    }

    pub fn is_zero(&self) -> bool {
        self.units == i256::ZERO
    }

    /// The same number in units of another scale that is not smaller.
    pub fn units_at(&self, scale: u8) -> Result<i256, SqlError> {
        let more = u32::from(scale.saturating_sub(self.scale));
        let power = power_of_10(more).ok_or_else(too_long)?;
        self.units.checked_mul(power).ok_or_else(too_long)
    }

    /// Rounds to `digits` behind the point, or before it if negative; halves go away from zero.
    pub fn rounded(&self, digits: i32) -> Result<Decimal, SqlError> {
        self.shortened(digits, true)
    }

    /// The same, cut off.
    pub fn cut(&self, digits: i32) -> Result<Decimal, SqlError> {
        self.shortened(digits, false)
    }

    fn shortened(&self, digits: i32, rounds: bool) -> Result<Decimal, SqlError> {
        let scale = u8::try_from(digits.max(0)).ok().filter(|one| *one <= SCALE_MAX);
        let scale = scale.ok_or_else(too_long)?;
        let fewer = i32::from(self.scale) - digits;
        if fewer <= 0 {
            return Ok(Decimal::new(self.units_at(scale)?, scale));
        }
        let Some(power) = power_of_10(fewer.unsigned_abs()) else {
            return Ok(Decimal::new(i256::ZERO, scale));
        };
        let (whole, rest) = (self.units.wrapping_div(power), self.units.wrapping_rem(power));
        let half = power.wrapping_sub(rest.wrapping_abs()) <= rest.wrapping_abs();
        let units = match rounds && half {
            true => whole.wrapping_add(self.units.signum()),
            false => whole,
        };
        match power_of_10((-digits).max(0).unsigned_abs()) {
            Some(power) => Ok(Decimal::new(units.checked_mul(power).ok_or_else(too_long)?, scale)),
            None => Ok(Decimal::new(i256::ZERO, scale)),
        }
    }

    /// Digits behind the point without zeros at the end.
    pub fn least_scale(&self) -> u8 {
        let (mut units, mut scale) = (self.units, self.scale);
        let ten = i256::from_i128(10);
        while 0 < scale && units.wrapping_rem(ten) == i256::ZERO {
            units = units.wrapping_div(ten);
            scale -= 1;
        }
        scale
    }

    /// The place of the first digit to the base of 10,000, and that digit.
    pub fn first_digit(&self) -> (i32, u32) {
        let digits = self.units.wrapping_abs().to_string();
        if self.is_zero() {
            return (0, 0);
        }
        let padded = self.scale.next_multiple_of(4);
        let len = digits.len() + usize::from(padded - self.scale);
        let groups = len.div_ceil(4);
        let first = len - 4 * (groups - 1);
        let text: String = digits.chars().chain(std::iter::repeat('0')).take(first).collect();
        let place = i32::try_from(groups).unwrap_or(0) - 1 - i32::from(padded) / 4;
        (place, text.parse().unwrap_or(0))
    }

    fn text(&self) -> String {
        let places = usize::from(self.scale);
        let sign = if self.units.is_negative() { "-" } else { "" };
        let digits = self.units.wrapping_abs().to_string();
        let digits = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        let point = if places == 0 { "" } else { "." };
        format!("{sign}{whole}{point}{fraction}")
    }

    /// The nearest whole number, none where it has no room.
    pub fn to_i128(self) -> Option<i128> {
        self.rounded(0).ok()?.units.to_i128()
    }
}

impl From<Decimal> for Numeric {
    fn from(one: Decimal) -> Numeric {
        Numeric::Finite(one)
    }
}

impl Numeric {
    /// A value of a column.
    pub fn decode(raw: i256) -> Numeric {
        let (nan, infinity) = (end().wrapping_sub(i256::ONE), end().wrapping_sub(two()));
        if raw == nan {
            return Numeric::NaN;
        }
        if raw == infinity {
            return Numeric::Infinity;
        }
        if raw == infinity.wrapping_neg() {
            return Numeric::NegativeInfinity;
        }
        let (value, shown) =
            (raw.wrapping_div(SCALE_BOUND), raw.wrapping_rem(SCALE_BOUND).wrapping_abs());
        let shown = shown.to_i128().and_then(|one| u8::try_from(one).ok()).unwrap_or(0);
        let mut scale = shown.min(SCALE_MAX);
        loop {
            let power = POWERS[usize::from(SCALE_MAX - scale)];
            if value.wrapping_rem(power) == i256::ZERO {
                return Numeric::Finite(Decimal::new(value.wrapping_div(power), scale));
            }
            scale += 1;
        }
    }

    /// Encodes the number as columns store it.
    ///
    /// # Errors
    /// When it has more digits than there is room for.
    pub fn encode(&self) -> Result<i256, SqlError> {
        let decimal = match self {
            Numeric::NaN => return Ok(end().wrapping_sub(i256::ONE)),
            Numeric::Infinity => return Ok(end().wrapping_sub(two())),
            Numeric::NegativeInfinity => return Ok(end().wrapping_sub(two()).wrapping_neg()),
            Numeric::Finite(decimal) => decimal,
        };
        if SCALE_MAX < decimal.scale {
            return Err(too_long());
        }
        let value = decimal.units_at(SCALE_MAX)?;
        if POWERS[usize::from(PRECISION) - 2] <= value.wrapping_abs() {
            return Err(too_long());
        }
        let shown = i256::from_i128(i128::from(decimal.scale));
        let raw = value.wrapping_mul(SCALE_BOUND);
        Ok(match raw.is_negative() {
            true => raw.wrapping_sub(shown),
            false => raw.wrapping_add(shown),
        })
    }

    /// A number as somebody wrote it.
    ///
    /// # Errors
    /// When it is none, and when it has more digits than there is room for.
    pub fn parse(text: &str) -> Result<Numeric, SqlError> {
        let plain = text.trim_matches(|one: char| one.is_ascii_whitespace());
        let (is_negative, digits) = match plain.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, plain.strip_prefix('+').unwrap_or(plain)),
        };
        let is = |word: &str| digits.eq_ignore_ascii_case(word);
        if plain.eq_ignore_ascii_case("nan") {
            return Ok(Numeric::NaN);
        }
        if is("infinity") || is("inf") {
            return Ok(if is_negative { Numeric::NegativeInfinity } else { Numeric::Infinity });
        }
        let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => {
                (mantissa, exponent.parse::<i64>().map_err(|_| malformed(text))?)
            }
            None => (digits, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: String = [whole, fraction].concat();
        if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(malformed(text));
        }
        let significant = all.trim_start_matches('0');
        let behind = i64::try_from(fraction.len()).unwrap_or(i64::MAX).saturating_sub(exponent);
        if EXPONENT_MAX < exponent && !significant.is_empty() {
            return Err(SqlError::new("22003", "value overflows numeric format"));
        }
        let scale = u8::try_from(behind.max(0)).ok().filter(|one| *one <= SCALE_MAX);
        let scale = scale.ok_or_else(too_long)?;
        if usize::try_from(WHOLE_MAX + u32::from(SCALE_MAX)).unwrap_or(0) < significant.len() {
            return Err(too_long());
        }
        let mut units = match significant {
            "" => i256::ZERO,
            digits => i256::from_string(digits).ok_or_else(too_long)?,
        };
        if behind < 0 && units != i256::ZERO {
            let power = u32::try_from(-behind).ok().and_then(power_of_10);
            units = power.and_then(|one| units.checked_mul(one)).ok_or_else(too_long)?;
        }
        let units = if is_negative { units.wrapping_neg() } else { units };
        let made = Numeric::Finite(Decimal::new(units, scale));
        made.encode().map(|_| made)
    }

    /// A float, by the digits that it has for sure.
    ///
    /// # Errors
    /// When it has more digits than there is room for.
    pub fn of_float(value: f64, digits: usize) -> Result<Numeric, SqlError> {
        if value.is_nan() {
            return Ok(Numeric::NaN);
        }
        if value.is_infinite() {
            return Ok(if value < 0.0 { Numeric::NegativeInfinity } else { Numeric::Infinity });
        }
        let shown = format!("{value:.*e}", digits - 1);
        let Some((mantissa, exponent)) = shown.split_once('e') else { return Err(too_long()) };
        let mantissa = match mantissa.contains('.') {
            true => mantissa.trim_end_matches('0').trim_end_matches('.'),
            false => mantissa,
        };
        Numeric::parse(&format!("{mantissa}e{exponent}"))
    }

    /// The same of a `float8`.
    ///
    /// # Errors
    /// Converts a `float4` as [`Numeric::of_float`] does a `float8`.
    pub fn of_f64(value: f64) -> Result<Numeric, SqlError> {
        Numeric::of_float(value, FLOAT_DIGITS)
    }

    /// Returns the text that PostgreSQL shows.
    pub fn text(&self) -> String {
        match self {
            Numeric::Finite(decimal) => decimal.text(),
            Numeric::NaN => "NaN".into(),
            Numeric::Infinity => "Infinity".into(),
            Numeric::NegativeInfinity => "-Infinity".into(),
        }
    }

    /// The nearest `float8`.
    pub fn to_f64(self) -> f64 {
        match self {
            Numeric::Finite(decimal) => decimal.text().parse().unwrap_or(f64::NAN),
            Numeric::NaN => f64::NAN,
            Numeric::Infinity => f64::INFINITY,
            Numeric::NegativeInfinity => f64::NEG_INFINITY,
        }
    }

    /// The nearest whole number; halves go away from zero.
    ///
    /// # Errors
    /// When there is none, or none of 64 bits.
    pub fn to_i64(self) -> Result<i64, SqlError> {
        let refused =
            |word: &str| Err(SqlError::unsupported(format!("cannot convert {word} to bigint")));
        match self {
            Numeric::Finite(decimal) => {
                let whole = decimal.to_i128().and_then(|one| i64::try_from(one).ok());
                whole.ok_or_else(|| SqlError::new("22003", "bigint out of range"))
            }
            Numeric::NaN => refused("NaN"),
            Numeric::Infinity | Numeric::NegativeInfinity => refused("infinity"),
        }
    }

    /// Returns a key for sorting and equality: the encoded number without its scale.
    pub fn key(raw: i256) -> i256 {
        let (nan, infinity) = (end().wrapping_sub(i256::ONE), end().wrapping_sub(two()));
        match raw == nan || raw.wrapping_abs() == infinity {
            true => raw,
            false => raw.wrapping_sub(raw.wrapping_rem(SCALE_BOUND)),
        }
    }
}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        let key = |one: &Numeric| one.encode().map(Numeric::key).ok();
        key(self)?.partial_cmp(&key(other)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match Numeric::parse(text) {
            Ok(one) => Numeric::decode(one.encode().unwrap()).text(),
            Err(error) => error.code.to_string(),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn texts_are_read_and_shown_with_their_digits() {
        for (text, expected) in [
            ("0", "0"),
            ("0.00", "0.00"),
            ("-0.50", "-0.50"),
            ("1.0", "1.0"),
            ("1e3", "1000"),
            ("1.50e1", "15.0"),
            ("1e-3", "0.001"),
            (".5", "0.5"),
            ("5.", "5"),
            (" 7 ", "7"),
            ("NaN", "NaN"),
            ("-inf", "-Infinity"),
            ("Infinity", "Infinity"),
            ("123456789012345678901234567890123456", "123456789012345678901234567890123456"),
            ("1234567890123456789012345678901234567", "0A000"),
            ("1e-38", "0.00000000000000000000000000000000000001"),
            ("1e-39", "0A000"),
            ("1e200000", "22003"),
            ("", "22P02"),
            ("x", "22P02"),
            ("1e", "22P02"),
            ("--1", "22P02"),
            ("-nan", "22P02"),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn keys_of_equal_numbers_are_equal() {
        let raw = |text: &str| Numeric::parse(text).unwrap().encode().unwrap();
        assert_ne!(raw("1.0"), raw("1.00"));
        assert_eq!(Numeric::key(raw("1.0")), Numeric::key(raw("1.00")));
        assert_eq!(Numeric::key(raw("-1.0")), Numeric::key(raw("-1.00")));
        assert_eq!(Numeric::decode(Numeric::key(raw("-1.50"))).text(), "-1.5");
        let mut all = ["NaN", "1", "Infinity", "-2", "-Infinity", "0.5", "-1.5"].map(raw);
        all.sort();
        let shown: Vec<String> = all.iter().map(|one| Numeric::decode(*one).text()).collect();
        assert_eq!(shown.join(" "), "-Infinity -2 -1.5 0.5 1 Infinity NaN");
    }

    #[test]
    fn halves_go_away_from_zero() {
        let round = |text: &str, digits| match Numeric::parse(text).unwrap() {
            Numeric::Finite(one) => one.rounded(digits).unwrap().text(),
            other => other.text(),
        };
        assert_eq!(round("2.5", 0), "3");
        assert_eq!(round("-2.5", 0), "-3");
        assert_eq!(round("1.25", 1), "1.3");
        assert_eq!(round("1.5", 3), "1.500");
        assert_eq!(round("1250", -2), "1300");
        assert_eq!(round("49", -2), "0");
        assert_eq!(round("5", -40), "0");
    }

    #[test]
    fn floats_have_their_sure_digits() {
        let shown = |value: f64| Numeric::of_f64(value).unwrap().text();
        assert_eq!(shown(0.1 + 0.2), "0.3");
        assert_eq!(shown(1e20), "100000000000000000000");
        assert_eq!(shown(-1.5e-3), "-0.0015");
        assert_eq!(shown(f64::NAN), "NaN");
        assert_eq!(Numeric::of_f64(1e300).unwrap_err().code, "0A000");
        assert_eq!(Numeric::parse("0.1").unwrap().to_f64(), 0.1);
    }

    #[test]
    fn first_digits_are_to_the_base_of_10000() {
        let first = |text: &str| match Numeric::parse(text).unwrap() {
            Numeric::Finite(one) => one.first_digit(),
            _ => (0, 0),
        };
        assert_eq!(first("12345.678"), (1, 1));
        assert_eq!(first("9999"), (0, 9999));
        assert_eq!(first("0.5"), (-1, 5000));
        assert_eq!(first("0.00001"), (-2, 1000));
        assert_eq!(first("0.0012"), (-1, 12));
        assert_eq!(first("0.00"), (0, 0));
    }
}
