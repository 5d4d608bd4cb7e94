//! `exp`, `ln`, `log` and `power` of `numeric`, with the scales of PostgreSQL's results: at least sixteen
//! significant digits. They are worked out with 34 digits behind the point.

use crate::types::error::SqlError;
use crate::types::numeric::arithmetic::{NumericResult, absolute, divided, multiply};
use crate::types::numeric::value::{Decimal, Numeric, power_of_10, too_long};
use Numeric::{Finite, Infinity, NaN, NegativeInfinity};
use datafusion::arrow::datatypes::i256;

/// Digits behind the point while something is worked out.
const WORKING_SCALE: u8 = 34;
/// Digits of an intermediate result that are certainly correct.
const CORRECT_DIGITS: i32 = 31;
/// Significant digits of a result, at least.
const SIGNIFICANT_MIN: i32 = 16;
const LN_10: &str = "23025850929940456840179914546843642";
/// Decimal logarithm of e.
const LOG10_E: f64 = std::f64::consts::LOG10_E;
/// Exponents of ten beyond which no result has room.
const EXPONENT_MAX: f64 = 80.0;

fn constant(digits: &str) -> i256 {
    i256::from_string(digits).unwrap_or(i256::ZERO)
}

fn one() -> i256 {
    power_of_10(u32::from(WORKING_SCALE)).unwrap_or(i256::ONE)
}

fn small(number: i64) -> i256 {
    i256::from_i128(i128::from(number))
}

/// The product of two numbers of so many digits as are worked with.
fn product(left: i256, right: i256) -> Result<i256, SqlError> {
    Ok(left.checked_mul(right).ok_or_else(too_long)?.wrapping_div(one()))
}

fn quotient(left: i256, right: i256) -> Result<i256, SqlError> {
    Ok(left.checked_mul(one()).ok_or_else(too_long)?.wrapping_div(right))
}

/// A number in units that are worked with.
fn units(number: &Decimal) -> Result<i256, SqlError> {
    match WORKING_SCALE < number.scale {
        true => Ok(number.rounded(i32::from(WORKING_SCALE))?.units),
        false => number.units_at(WORKING_SCALE),
    }
}

/// Rounds an intermediate result to `scale` digits behind the point.
fn shown(units: i256, shift: i32, scale: i32) -> Result<Decimal, SqlError> {
    if CORRECT_DIGITS < scale.max(0) + shift.max(0) {
        return Err(too_long());
    }
    let moved = i32::from(WORKING_SCALE) - shift;
    let made = match u8::try_from(moved) {
        Ok(digits) => Decimal::new(units, digits),
        Err(_) => {
            let power = power_of_10(moved.unsigned_abs()).ok_or_else(too_long)?;
            Decimal::new(units.checked_mul(power).ok_or_else(too_long)?, 0)
        }
    };
    // More digits than a number keeps are rounded here.
    made.rounded(scale)
}

fn float(number: &Decimal) -> f64 {
    Finite(*number).to_f64()
}

/// `e ^ x`, as so many units times a power of ten.
fn exponential(x: i256) -> Result<(i256, i32), SqlError> {
    let ln_10 = constant(LN_10);
    let tens = x.wrapping_div(ln_10);
    let rest = x.wrapping_sub(tens.wrapping_mul(ln_10));
    let (mut sum, mut term, mut nth) = (one(), one(), 1_i64);
    while term != i256::ZERO {
        term = product(term, rest)?.wrapping_div(small(nth));
        sum = sum.wrapping_add(term);
        nth += 1;
    }
    let tens = tens.to_i128().and_then(|one| i32::try_from(one).ok()).ok_or_else(too_long)?;
    Ok((sum, tens))
}

/// The natural logarithm.
fn logarithm(number: &Decimal) -> Result<i256, SqlError> {
    let digits = number.units.to_string();
    let len = i32::try_from(digits.len()).unwrap_or(0);
    // Between 0.1 and 1, and then as near to 1 as may be.
    let mut tens = len - i32::from(number.scale);
    let mut part = match u32::try_from(i32::from(WORKING_SCALE) - len) {
        Ok(more) => number.units.wrapping_mul(power_of_10(more).unwrap_or(i256::ONE)),
        Err(_) => {
            let fewer = power_of_10((len - i32::from(WORKING_SCALE)).unsigned_abs());
            number.units.wrapping_div(fewer.unwrap_or(i256::ONE))
        }
    };
    if part < one().wrapping_div(small(3)) {
        part = part.wrapping_mul(small(10));
        tens -= 1;
    }
    let z = quotient(part.wrapping_sub(one()), part.wrapping_add(one()))?;
    let square = product(z, z)?;
    let (mut sum, mut power, mut nth) = (z, z, 3_i64);
    loop {
        power = product(power, square)?;
        let term = power.wrapping_div(small(nth));
        if term == i256::ZERO {
            break;
        }
        sum = sum.wrapping_add(term);
        nth += 2;
    }
    let of_tens = constant(LN_10).wrapping_mul(small(i64::from(tens)));
    Ok(sum.wrapping_mul(small(2)).wrapping_add(of_tens))
}

/// The decimal place of the first digit of a number's logarithm, about.
fn logarithm_place(number: &Decimal) -> i32 {
    if number.units <= i256::ZERO {
        return 0;
    }
    let value = float(number);
    let near = match (0.9..=1.1).contains(&value) {
        true => {
            let one = number.units_at(number.scale).map(|units| {
                let whole = power_of_10(u32::from(number.scale)).unwrap_or(i256::ONE);
                Decimal::new(units.wrapping_sub(whole), number.scale)
            });
            let Ok(rest) = one else { return 0 };
            if rest.is_zero() {
                return 0;
            }
            let (place, first) = rest.first_digit();
            return place * 4 + f64::from(first).log10() as i32;
        }
        false => value.ln().abs(),
    };
    near.log10() as i32
}

fn scale_by(place: i32, scales: &[u8]) -> i32 {
    let least = scales.iter().copied().max().unwrap_or(0);
    (SIGNIFICANT_MIN - place).max(i32::from(least)).max(0)
}

pub fn exp(number: &Numeric) -> NumericResult {
    match number {
        Finite(number) => {
            let place = float(number) * LOG10_E;
            let scale = scale_by(place as i32, &[number.scale]);
            if EXPONENT_MAX < place {
                return Err(too_long());
            }
            if place < -EXPONENT_MAX {
                return Decimal::new(i256::ZERO, 0).rounded(scale).map(Finite);
            }
            let (made, tens) = exponential(units(number)?)?;
            shown(made, tens, scale).map(Finite)
        }
        NegativeInfinity => Ok(Decimal::whole(0).into()),
        other => Ok(*other),
    }
}

fn positive(number: &Numeric) -> Result<Option<&Decimal>, SqlError> {
    let refused =
        |what: &str| Err(SqlError::new("2201E", format!("cannot take logarithm of {what}")));
    match number {
        Finite(one) if one.is_zero() => refused("zero"),
        Finite(one) if one.units.is_negative() => refused("a negative number"),
        NegativeInfinity => refused("a negative number"),
        Finite(one) => Ok(Some(one)),
        _ => Ok(None),
    }
}

pub fn ln(number: &Numeric) -> NumericResult {
    let Some(one) = positive(number)? else { return Ok(*number) };
    let scale = scale_by(logarithm_place(one), &[one.scale]);
    shown(logarithm(one)?, 0, scale).map(Finite)
}

/// The logarithm to a base.
pub fn log(base: &Numeric, number: &Numeric) -> NumericResult {
    if matches!((base, number), (NaN, _) | (_, NaN)) {
        return Ok(NaN);
    }
    let (of_base, of_number) = (positive(base)?, positive(number)?);
    let (Some(base), Some(number)) = (of_base, of_number) else {
        return Ok(match (of_base, of_number) {
            (Some(_), None) => Infinity,
            (None, Some(_)) => Decimal::whole(0).into(),
            _ => NaN,
        });
    };
    let place = logarithm_place(number) - logarithm_place(base);
    let scale = scale_by(place, &[base.scale, number.scale]);
    let divisor = logarithm(base)?;
    if divisor == i256::ZERO {
        return Err(SqlError::new("22012", "division by zero"));
    }
    shown(quotient(logarithm(number)?, divisor)?, 0, scale).map(Finite)
}

pub fn log_10(number: &Numeric) -> NumericResult {
    log(&Decimal::whole(10).into(), number)
}

pub fn power(base: &Numeric, exponent: &Numeric) -> NumericResult {
    let refused = |words: &str| Err(SqlError::new("2201F", words));
    match (base, exponent) {
        (_, Finite(zero)) if zero.is_zero() && matches!(base, NaN) => Ok(Decimal::whole(1).into()),
        (Finite(one), NaN) if *one == Decimal::whole(1) => Ok(Decimal::whole(1).into()),
        (NaN, _) | (_, NaN) => Ok(NaN),
        (Finite(base), Finite(exponent)) => {
            if base.is_zero() && exponent.units.is_negative() {
                return refused("zero raised to a negative power is undefined");
            }
            let is_whole = exponent.least_scale() == 0;
            if base.units.is_negative() && !is_whole {
                let words =
                    "a negative number raised to a non-integer power yields a complex result";
                return refused(words);
            }
            match exponent.to_i128().and_then(|one| i32::try_from(one).ok()) {
                Some(whole) if is_whole => whole_power(base, whole).map(Finite),
                _ => broken_power(base, exponent).map(Finite),
            }
        }
        _ => infinite_power(base, exponent),
    }
}

fn infinite_power(base: &Numeric, exponent: &Numeric) -> NumericResult {
    let one: Numeric = Decimal::whole(1).into();
    let is_negative = matches!(exponent, NegativeInfinity)
        || matches!(exponent, Finite(one) if one.units.is_negative());
    if matches!(exponent, Finite(zero) if zero.is_zero()) {
        return Ok(one);
    }
    let order = absolute(base).partial_cmp(&one);
    match (order, is_negative) {
        (Some(std::cmp::Ordering::Equal), _) => Ok(one),
        (Some(std::cmp::Ordering::Greater), false) | (Some(std::cmp::Ordering::Less), true) => {
            let is_odd = matches!((base, exponent), (NegativeInfinity, Finite(one))
                if one.least_scale() == 0 && one.to_i128().is_some_and(|one| one % 2 != 0));
            Ok(if is_odd { NegativeInfinity } else { Infinity })
        }
        _ => Ok(Decimal::whole(0).into()),
    }
}

/// A power whose exponent is a whole number.
fn whole_power(base: &Decimal, exponent: i32) -> Result<Decimal, SqlError> {
    let place = match base.is_zero() {
        true => 0.0,
        false => f64::from(exponent) * float(base).abs().log10(),
    };
    if EXPONENT_MAX < place {
        return Err(too_long());
    }
    let scale = scale_by(0, &[base.scale]);
    if base.is_zero() && exponent != 0 || place < -EXPONENT_MAX {
        return Decimal::new(i256::ZERO, 0).rounded(scale);
    }
    let is_inverse = exponent < 0;
    let exact = exact_power(base, exponent.unsigned_abs());
    match exact {
        Some(made) if is_inverse => divided(&Decimal::whole(1), &made, scale),
        Some(made) => made.rounded(scale),
        None => {
            let positive = Decimal::new(base.units.wrapping_abs(), base.scale);
            let made = logarithm(&positive)?.checked_mul(small(i64::from(exponent)));
            let (made, tens) = exponential(made.ok_or_else(too_long)?)?;
            let is_negative = base.units.is_negative() && exponent % 2 != 0;
            shown(if is_negative { made.wrapping_neg() } else { made }, tens, scale)
        }
    }
}

/// All digits of a power; none where they have no room.
fn exact_power(base: &Decimal, exponent: u32) -> Option<Decimal> {
    let (mut made, mut left) = (Decimal::whole(1), exponent);
    if 80 < exponent {
        return None;
    }
    while 0 < left {
        made = match multiply(&Finite(made), &Finite(*base)).ok()? {
            Finite(made) => made,
            _ => return None,
        };
        left -= 1;
    }
    Some(made)
}

/// A power whose exponent has a fraction.
fn broken_power(base: &Decimal, exponent: &Decimal) -> Result<Decimal, SqlError> {
    if base.is_zero() {
        let scale = scale_by(0, &[base.scale, exponent.scale]);
        return Decimal::new(i256::ZERO, 0).rounded(scale);
    }
    let product = product(logarithm(base)?, units(exponent)?)?;
    let place = float(&Decimal::new(product, WORKING_SCALE)) * LOG10_E;
    if EXPONENT_MAX < place.abs() {
        return Err(too_long());
    }
    let scale = scale_by(place as i32, &[base.scale, exponent.scale]);
    let (made, tens) = exponential(product)?;
    shown(made, tens, scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(made: NumericResult, expected: &str) {
        let shown = match made {
            Ok(made) => made.text(),
            Err(error) => error.code.to_string(),
        };
        assert_eq!(shown, expected);
    }

    fn number(text: &str) -> Numeric {
        Numeric::parse(text).unwrap()
    }

    /// Answers are PostgreSQL 15's.
    #[test]
    fn results_are_those_of_postgresql() {
        check(exp(&number("1.0")), "2.7182818284590452");
        check(exp(&number("0.0")), "1.0000000000000000");
        check(exp(&number("50")), "5184705528587072464087");
        check(exp(&number("-5.5")), "0.004086771438464067");
        check(ln(&number("2.0")), "0.6931471805599453");
        check(ln(&number("10")), "2.3025850929940457");
        check(ln(&number("1.0")), "0.0000000000000000");
        check(ln(&number("0")), "2201E");
        check(log_10(&number("100")), "2.0000000000000000");
        check(log(&number("2.0"), &number("64.0")), "6.0000000000000000");
        check(power(&number("2.5"), &number("2")), "6.2500000000000000");
        check(power(&number("2.5"), &number("-3")), "0.0640000000000000");
        check(power(&number("10.5"), &number("5")), "127628.1562500000000000");
        check(power(&number("100"), &number("-0.5")), "0.10000000000000000");
        check(ln(&number("1.05")), "0.048790164169432003");
        check(power(&number("2.0"), &number("0.5")), "1.4142135623730950");
        check(power(&number("0.0"), &number("2")), "0.0000000000000000");
        check(power(&number("0"), &number("-1")), "2201F");
        check(power(&number("-8"), &number("0.5")), "2201F");
    }
}
