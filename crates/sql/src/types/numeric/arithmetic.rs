//! Operations on `numeric`, with the scales of PostgreSQL's results
//! (<https://github.com/postgres/postgres/blob/REL_15_STABLE/src/backend/utils/adt/numeric.c>).

use crate::types::error::SqlError;
use crate::types::numeric::value::{Decimal, Numeric, SCALE_MAX, power_of_10, too_long};
use Numeric::{Finite, Infinity, NaN, NegativeInfinity};
use datafusion::arrow::datatypes::i256;

/// Significant digits of a quotient, at least.
const SIGNIFICANT_MIN: i32 = 16;
/// Digits of a group to the base of 10,000.
const GROUP_DIGITS: i32 = 4;

/// The result of an operation.
pub type NumericResult = Result<Numeric, SqlError>;

fn division_by_zero() -> SqlError {
    SqlError::new("22012", "division by zero")
}

/// -1, 0 or 1.
fn sign_of(one: &Numeric) -> i32 {
    match one {
        Finite(one) if one.is_zero() => 0,
        Finite(one) if one.units.is_negative() => -1,
        NegativeInfinity => -1,
        _ => 1,
    }
}

fn infinity(sign: i32) -> Numeric {
    match sign {
        0 => NaN,
        1.. => Infinity,
        _ => NegativeInfinity,
    }
}

fn aligned(left: &Decimal, right: &Decimal) -> Result<(i256, i256, u8), SqlError> {
    let scale = left.scale.max(right.scale);
    Ok((left.units_at(scale)?, right.units_at(scale)?, scale))
}

pub fn negated(one: &Numeric) -> Numeric {
    match one {
        Finite(one) => Decimal::new(one.units.wrapping_neg(), one.scale).into(),
        NaN => NaN,
        Infinity => NegativeInfinity,
        NegativeInfinity => Infinity,
    }
}

pub fn absolute(one: &Numeric) -> Numeric {
    if sign_of(one) < 0 { negated(one) } else { *one }
}

pub fn sign(one: &Numeric) -> Numeric {
    match one {
        NaN => NaN,
        other => Decimal::whole(i128::from(sign_of(other))).into(),
    }
}

pub fn add(left: &Numeric, right: &Numeric) -> NumericResult {
    match (left, right) {
        (NaN, _) | (_, NaN) | (Infinity, NegativeInfinity) | (NegativeInfinity, Infinity) => {
            Ok(NaN)
        }
        (Finite(left), Finite(right)) => {
            let (left, right, scale) = aligned(left, right)?;
            let sum = left.checked_add(right).ok_or_else(too_long)?;
            Ok(Decimal::new(sum, scale).into())
        }
        (Finite(_), infinite) | (infinite, _) => Ok(*infinite),
    }
}

pub fn subtract(left: &Numeric, right: &Numeric) -> NumericResult {
    add(left, &negated(right))
}

pub fn multiply(left: &Numeric, right: &Numeric) -> NumericResult {
    match (left, right) {
        (NaN, _) | (_, NaN) => Ok(NaN),
        (Finite(left), Finite(right)) => {
            let scale = left.scale + right.scale;
            let units = left.units.checked_mul(right.units).ok_or_else(too_long)?;
            let made = Decimal::new(units, scale);
            match SCALE_MAX < scale {
                // Zeros at the end are no digits that are lost.
                true if made.least_scale() <= SCALE_MAX => {
                    made.rounded(i32::from(SCALE_MAX)).map(Finite)
                }
                true => Err(too_long()),
                false => Ok(made.into()),
            }
        }
        _ => Ok(infinity(sign_of(left) * sign_of(right))),
    }
}

/// Digits behind the point of a quotient: as many as make it exact enough.
pub fn quotient_scale(left: &Decimal, right: &Decimal) -> i32 {
    let ((left_place, left_first), (right_place, right_first)) =
        (left.first_digit(), right.first_digit());
    let place = left_place - right_place - i32::from(left_first <= right_first);
    let scale = SIGNIFICANT_MIN - place * GROUP_DIGITS;
    scale.max(i32::from(left.scale)).max(i32::from(right.scale)).max(0)
}

pub fn divide(left: &Numeric, right: &Numeric) -> NumericResult {
    match (left, right) {
        (NaN, _) | (_, NaN) => Ok(NaN),
        (Finite(left), Finite(right)) => {
            divided(left, right, quotient_scale(left, right)).map(Finite)
        }
        (Finite(_), _) => Ok(Decimal::whole(0).into()),
        (infinite, Finite(right)) => match sign_of(&Finite(*right)) {
            0 => Err(division_by_zero()),
            sign => Ok(infinity(sign_of(infinite) * sign)),
        },
        _ => Ok(NaN),
    }
}

/// A quotient of so many digits behind the point, as far as a number keeps them; halves go away from zero.
///
/// # Errors
/// When the divisor is zero, and when there is no room.
pub fn divided(left: &Decimal, right: &Decimal, scale: i32) -> Result<Decimal, SqlError> {
    let (whole, rest, divisor, scale) = long_division(left, right, scale)?;
    let half = divisor.wrapping_sub(rest) <= rest;
    let units = if half { whole.wrapping_add(i256::ONE) } else { whole };
    let is_negative = left.units.is_negative() != right.units.is_negative();
    Ok(Decimal::new(if is_negative { units.wrapping_neg() } else { units }, scale))
}

/// The quotient of the numbers without their signs, what is left, and the divisor.
fn long_division(
    left: &Decimal,
    right: &Decimal,
    scale: i32,
) -> Result<(i256, i256, i256, u8), SqlError> {
    if right.is_zero() {
        return Err(division_by_zero());
    }
    let scale = u8::try_from(scale.clamp(0, i32::from(SCALE_MAX))).unwrap_or(SCALE_MAX);
    let (number, mut divisor) = (left.units.wrapping_abs(), right.units.wrapping_abs());
    let more = i32::from(scale) + i32::from(right.scale) - i32::from(left.scale);
    if more < 0 {
        let power = power_of_10(more.unsigned_abs()).ok_or_else(too_long)?;
        divisor = divisor.checked_mul(power).ok_or_else(too_long)?;
    }
    let (mut whole, mut rest) = (number.wrapping_div(divisor), number.wrapping_rem(divisor));
    let mut more = more.max(0).unsigned_abs();
    let room = 75_u32.saturating_sub(digits_of(divisor)).max(1);
    while 0 < more {
        let step = room.min(more);
        let power = power_of_10(step).ok_or_else(too_long)?;
        rest = rest.checked_mul(power).ok_or_else(too_long)?;
        let next = rest.wrapping_div(divisor);
        rest = rest.wrapping_rem(divisor);
        whole =
            whole.checked_mul(power).and_then(|one| one.checked_add(next)).ok_or_else(too_long)?;
        more -= step;
    }
    Ok((whole, rest, divisor, scale))
}

fn digits_of(units: i256) -> u32 {
    units.checked_ilog10().unwrap_or(0) + 1
}

/// A quotient without its fraction.
pub fn divide_whole(left: &Numeric, right: &Numeric) -> NumericResult {
    match (left, right) {
        (Finite(left), Finite(right)) => {
            let (whole, ..) = long_division(left, right, 0)?;
            let is_negative = left.units.is_negative() != right.units.is_negative();
            let units = if is_negative { whole.wrapping_neg() } else { whole };
            Ok(Decimal::new(units, 0).into())
        }
        _ => divide(left, right),
    }
}

pub fn remainder(left: &Numeric, right: &Numeric) -> NumericResult {
    match (left, right) {
        (NaN, _) | (_, NaN) => Ok(NaN),
        (_, Finite(right)) if right.is_zero() => Err(division_by_zero()),
        (Finite(left), Finite(right)) => {
            let (left, right, scale) = aligned(left, right)?;
            Ok(Decimal::new(left.wrapping_rem(right), scale).into())
        }
        (Finite(left), _) => Ok(Finite(*left)),
        _ => Ok(NaN),
    }
}

fn of_finite(
    one: &Numeric,
    work: impl FnOnce(&Decimal) -> Result<Decimal, SqlError>,
) -> NumericResult {
    match one {
        Finite(decimal) => work(decimal).map(Finite),
        other => Ok(*other),
    }
}

pub fn round(one: &Numeric, digits: i32) -> NumericResult {
    of_finite(one, |one| one.rounded(digits))
}

pub fn truncate(one: &Numeric, digits: i32) -> NumericResult {
    of_finite(one, |one| one.cut(digits))
}

pub fn ceiling(one: &Numeric) -> NumericResult {
    of_finite(one, |one| {
        let whole = one.cut(0)?;
        let is_above = !one.units.is_negative() && whole.units_at(one.scale)? != one.units;
        let units = if is_above { whole.units.wrapping_add(i256::ONE) } else { whole.units };
        Ok(Decimal::new(units, 0))
    })
}

pub fn floor(one: &Numeric) -> NumericResult {
    ceiling(&negated(one)).map(|one| negated(&one))
}

pub fn trim_scale(one: &Numeric) -> NumericResult {
    of_finite(one, |one| one.rounded(i32::from(one.least_scale())))
}

/// The square root of so many digits behind the point, as far as a number keeps them.
///
/// # Errors
/// When there is no room.
pub fn root_of(one: &Decimal, scale: i32) -> Result<Decimal, SqlError> {
    let scale = u8::try_from(scale.clamp(0, i32::from(SCALE_MAX))).unwrap_or(SCALE_MAX);
    let more = 2 * i32::from(scale) - i32::from(one.scale);
    let units = match u32::try_from(more) {
        Ok(more) => {
            let power = power_of_10(more).ok_or_else(too_long)?;
            one.units.checked_mul(power).ok_or_else(too_long)?
        }
        Err(_) => {
            let power = power_of_10(more.unsigned_abs()).ok_or_else(too_long)?;
            one.units.wrapping_div(power)
        }
    };
    if units == i256::ZERO {
        return Ok(Decimal::new(units, scale));
    }
    let mut guess = power_of_10(digits_of(units).div_ceil(2)).ok_or_else(too_long)?;
    loop {
        let next = guess.wrapping_add(units.wrapping_div(guess)).wrapping_div(i256::from_i128(2));
        if guess <= next {
            break;
        }
        guess = next;
    }
    let rest = units.wrapping_sub(guess.wrapping_mul(guess));
    let units = if guess < rest { guess.wrapping_add(i256::ONE) } else { guess };
    Ok(Decimal::new(units, scale))
}

pub fn square_root(one: &Numeric) -> NumericResult {
    let refused = || Err(SqlError::new("2201F", "cannot take square root of a negative number"));
    match one {
        Finite(one) if one.units.is_negative() => refused(),
        NegativeInfinity => refused(),
        Finite(one) => {
            let (place, _) = one.first_digit();
            let whole = (place + 1) * GROUP_DIGITS / 2 - 1;
            let scale = (SIGNIFICANT_MIN - whole).max(i32::from(one.scale)).max(0);
            root_of(one, scale).map(Finite)
        }
        other => Ok(*other),
    }
}

fn common_divisor(mut left: i256, mut right: i256) -> i256 {
    while right != i256::ZERO {
        (left, right) = (right, left.wrapping_rem(right));
    }
    left.wrapping_abs()
}

pub fn gcd(left: &Numeric, right: &Numeric) -> NumericResult {
    match (left, right) {
        (Finite(left), Finite(right)) => {
            let (left, right, scale) = aligned(left, right)?;
            Ok(Decimal::new(common_divisor(left, right), scale).into())
        }
        _ => Ok(NaN),
    }
}

pub fn lcm(left: &Numeric, right: &Numeric) -> NumericResult {
    match (left, right) {
        (Finite(left), Finite(right)) => {
            let (left, right, scale) = aligned(left, right)?;
            if left == i256::ZERO || right == i256::ZERO {
                return Ok(Decimal::new(i256::ZERO, scale).into());
            }
            let units = left.wrapping_div(common_divisor(left, right)).checked_mul(right);
            Ok(Decimal::new(units.ok_or_else(too_long)?.wrapping_abs(), scale).into())
        }
        _ => Ok(NaN),
    }
}

/// # Errors
/// When the number is negative, and when there is no room.
pub fn factorial(number: i64) -> NumericResult {
    if number < 0 {
        return Err(SqlError::new("22003", "factorial of a negative number is undefined"));
    }
    let mut made = i256::ONE;
    for factor in 2..=number {
        made = made.checked_mul(i256::from_i128(i128::from(factor))).ok_or_else(too_long)?;
    }
    Ok(Decimal::new(made, 0).into())
}

/// A number of a type that says how many digits it keeps: `numeric(precision, scale)`.
///
/// # Errors
/// When it has more digits before the point.
pub fn limited(one: &Numeric, precision: i32, scale: i32) -> NumericResult {
    let overflow = |what: &str| {
        let detail = format!("A field with precision {precision}, scale {scale} {what}.");
        SqlError::new("22003", "numeric field overflow").with_detail(detail)
    };
    match one {
        NaN => Ok(NaN),
        Infinity | NegativeInfinity => Err(overflow("cannot hold an infinite value")),
        Finite(one) => {
            let rounded = one.rounded(scale)?;
            let most = u32::try_from(precision - scale).ok().and_then(power_of_10);
            let whole = rounded.cut(0)?.units.wrapping_abs();
            match precision < scale || most.is_some_and(|most| most <= whole) {
                true if precision < scale => fraction_limited(&rounded, precision, scale, overflow),
                true => Err(overflow("must round to an absolute value less than a power of ten")),
                false => Ok(rounded.into()),
            }
        }
    }
}

/// The same of a type all whose digits stand behind zeros: `numeric(2, 4)`.
fn fraction_limited(
    rounded: &Decimal,
    precision: i32,
    scale: i32,
    overflow: impl Fn(&str) -> SqlError,
) -> NumericResult {
    let most = u32::try_from(precision).ok().and_then(power_of_10).ok_or_else(too_long)?;
    let units = rounded.units_at(u8::try_from(scale).unwrap_or(SCALE_MAX))?;
    match units.wrapping_abs() < most {
        true => Ok((*rounded).into()),
        false => Err(overflow("must round to an absolute value less than a power of ten")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Numeric {
        Numeric::parse(text).unwrap()
    }

    #[track_caller]
    fn check(made: NumericResult, expected: &str) {
        let shown = match made.and_then(|one| one.encode()) {
            Ok(raw) => Numeric::decode(raw).text(),
            Err(error) => error.code.to_string(),
        };
        assert_eq!(shown, expected);
    }

    /// Answers are PostgreSQL 15's.
    #[test]
    fn results_have_the_scale_of_postgresql() {
        for (left, op, right, expected) in [
            ("1.1", '+', "2.2", "3.3"),
            ("1.10", '-', "1.1", "0.00"),
            ("1.50", '*', "2.0", "3.000"),
            ("1", '/', "3", "0.33333333333333333333"),
            ("10.00", '/', "3", "3.3333333333333333"),
            ("100000", '/', "3", "33333.333333333333"),
            ("2", '/', "0.5", "4.0000000000000000"),
            ("1.5", '/', "1.5", "1.00000000000000000000"),
            ("-7", '/', "2", "-3.5000000000000000"),
            ("0", '/', "5", "0.00000000000000000000"),
            ("5.5", '%', "2", "1.5"),
            ("-5.5", '%', "2", "-1.5"),
            ("1", '/', "0", "22012"),
            ("1", '%', "0.0", "22012"),
            ("NaN", '+', "1", "NaN"),
            ("Infinity", '-', "Infinity", "NaN"),
            ("Infinity", '*', "-2", "-Infinity"),
            ("1", '/', "Infinity", "0"),
            ("Infinity", '/', "0", "22012"),
            ("1e-20", '*', "1e-20", "0A000"),
        ] {
            let (left, right) = (number(left), number(right));
            let made = match op {
                '+' => add(&left, &right),
                '-' => subtract(&left, &right),
                '*' => multiply(&left, &right),
                '/' => divide(&left, &right),
                _ => remainder(&left, &right),
            };
            check(made, expected);
        }
    }

    #[test]
    fn functions_have_the_scale_of_postgresql() {
        check(square_root(&number("2")), "1.414213562373095");
        check(square_root(&number("4")), "2.000000000000000");
        check(square_root(&number("12345.678")), "111.1111065555555");
        check(square_root(&number("-1")), "2201F");
        check(ceiling(&number("-1.5")), "-1");
        check(ceiling(&number("1.01")), "2");
        check(floor(&number("-1.5")), "-2");
        check(floor(&number("2")), "2");
        check(truncate(&number("-1.59"), 1), "-1.5");
        check(trim_scale(&number("1.500")), "1.5");
        check(gcd(&number("1.5"), &number("0.25")), "0.25");
        check(lcm(&number("1.5"), &number("-0.25")), "1.50");
        check(divide_whole(&number("-7.5"), &number("2")), "-3");
        check(factorial(5), "120");
        check(factorial(-1), "22003");
        check(limited(&number("1.255"), 10, 2), "1.26");
        check(limited(&number("999.995"), 5, 2), "22003");
        check(limited(&number("1250"), 4, -1), "1250");
        check(limited(&number("0.00123"), 2, 4), "0.0012");
    }
}
