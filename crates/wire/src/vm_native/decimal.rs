//! Floats as whole numbers and powers of ten, as VictoriaMetrics keeps them.
//!
//! What it reads of a number is a float64 of the whole number, divided or multiplied by a float64 of the
//! power of ten: each rounds. So a whole number is looked for of which that is the float that was meant.

use crate::narrow::whole;

/// Infinity.
pub(super) const ENDLESS: i64 = i64::MAX;
/// The infinity below all numbers.
pub(super) const ENDLESS_BELOW: i64 = i64::MIN;
/// The marker of a series that has ended.
pub(super) const ENDED: i64 = i64::MAX - 1;
/// Decimal digits that every whole number may have.
pub(super) const DIGITS_MAX: i32 = 18;
/// The lowest power of ten whose inverse is a float: VictoriaMetrics divides by that.
const EXPONENT_MIN: i32 = -308;
/// Up to here every whole number is a float.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A number that is no zero and neither infinite nor NaN: digits times ten to the power of `exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    /// Its digits, without zeros at their end.
    pub digits: i64,
    /// How many digits there are.
    pub digit_count: i32,
    /// The power of ten.
    pub exponent: i32,
}

/// The shortest digits that mean the number.
pub(super) fn shortest(number: f64) -> Decimal {
    if number.abs() < EXACT_MAX && number.trunc().to_bits() == number.to_bits() {
        return trimmed(whole(number), 0);
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(number);
    let (mut digits, mut exponent) = (0i64, 0i32);
    let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let mut is_fraction = false;
    for byte in mantissa.bytes() {
        match byte {
            b'.' => is_fraction = true,
            // Zeros at the end of large numbers may be more than fit: the digits before them do.
            b'0'..=b'9' if digits < 1_000_000_000_000_000_000 / 10 => {
                digits = digits * 10 + i64::from(byte - b'0');
                exponent -= i32::from(is_fraction);
            }
            b'0'..=b'9' => exponent += i32::from(!is_fraction),
            _ => {}
        }
    }
    let sign = if number < 0.0 { -1 } else { 1 };
    trimmed(sign * digits, exponent + power.parse::<i32>().unwrap_or(0))
}

fn trimmed(mut digits: i64, mut exponent: i32) -> Decimal {
    while exponent < EXPONENT_MIN && digits != 0 {
        digits = digits / 10 + digits % 10 / 5;
        exponent += 1;
    }
    // Nothing is left of a number that is too small: it must not give its block a power that is no float.
    exponent = exponent.max(EXPONENT_MIN);
    while digits != 0 && digits % 10 == 0 {
        digits /= 10;
        exponent += 1;
    }
    let digit_count = i32::try_from(digits.unsigned_abs().max(1).ilog10()).unwrap_or(0) + 1;
    Decimal { digits, digit_count, exponent }
}

/// The powers of ten that are floats.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// A power of ten that a block has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Which.
    pub exponent: i32,
    /// Ten to the power of it without its sign, by which VictoriaMetrics multiplies, or divides.
    power: f64,
}

impl Scale {
    pub(super) fn new(exponent: i32) -> Scale {
        let size = exponent.unsigned_abs() as usize;
        let power = match EXACT_POWERS.get(size) {
            Some(power) => *power,
            // Of a text, as products of powers round more than once.
            None => format!("1e{size}").parse().unwrap_or(f64::INFINITY),
        };
        Scale { exponent, power }
    }

    /// What VictoriaMetrics makes of whole numbers.
    pub(super) fn meanings(self, numbers: &[i64], values: &mut Vec<f64>) {
        values.clear();
        // Those with another meaning stand at both ends of all whole numbers.
        let is_plain = numbers.iter().all(|number| (ENDLESS_BELOW + 1..ENDED).contains(number));
        match self.exponent {
            _ if !is_plain || self.power.is_infinite() => {
                values.extend(numbers.iter().map(|number| self.meaning(*number)));
            }
            ..0 => values.extend(numbers.iter().map(|number| *number as f64 / self.power)),
            _ => values.extend(numbers.iter().map(|number| *number as f64 * self.power)),
        }
    }

    /// What VictoriaMetrics makes of a whole number.
    pub(super) fn meaning(self, number: i64) -> f64 {
        match number {
            ENDLESS => f64::INFINITY,
            ENDLESS_BELOW => f64::NEG_INFINITY,
            ENDED => model::stale_marker(),
            0 => 0.0,
            _ if self.exponent < 0 => number as f64 / self.power,
            _ => number as f64 * self.power,
        }
    }

    /// The whole number that means `number`, of whose digits none is below this power and at most
    /// [`DIGITS_MAX`] are above it: exactly where there is one, else one near it.
    pub(super) fn whole_of(self, number: f64, decimal: &Decimal) -> i64 {
        let up = u32::try_from(decimal.exponent - self.exponent).unwrap_or(0);
        let digits = decimal.digits.saturating_mul(10i64.saturating_pow(up));
        let is_meant = |digits: &i64| self.meaning(*digits).to_bits() == number.to_bits();
        if is_meant(&digits) {
            return digits;
        }
        // Its float neighbours: within one of them all whole numbers mean the same.
        let float = digits as f64;
        let near = [float.next_up(), float.next_down()].map(whole);
        near.into_iter().find(is_meant).unwrap_or(digits)
    }
}
