//! Floats of 64 significant bits, as `INCRBYFLOAT` and `HINCRBYFLOAT` calculate: a C `long double` on
//! x86. With the 53 bits of `f64` 0.1 and 0.2 would not be 0.3 to clients that know Redis.

/// The longest text that is read, in bytes.
const TEXT_SIZE_MAX: usize = 5 << 10;
/// Decimal exponents beyond this are infinite or nothing, whatever the digits.
const EXPONENT_MAX: i64 = 12_000;
/// The binary exponent of the first float that is infinite.
const INFINITE_EXPONENT: i64 = 16_384;
/// Decimals of a float's text, at most.
const DECIMALS: u32 = 17;
const MANTISSA_BITS: i64 = 64;

/// A float. Not a number is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extended {
    /// `mantissa` times two to the power of `exponent`; the highest bit of a mantissa is set, or it
    /// is zero.
    Finite {
        /// Below zero.
        is_negative: bool,
        /// Its significant bits.
        mantissa: u64,
        /// Of two.
        exponent: i64,
    },
    /// Beyond all floats.
    Infinite {
        /// Below them.
        is_negative: bool,
    },
}

impl Extended {
    /// Zero.
    pub const ZERO: Extended = Extended::Finite { is_negative: false, mantissa: 0, exponent: 0 };

    /// Reads a float: decimal or hexadecimal, with an exponent, or `inf`. None for anything else, for
    /// not a number, and for what is too large or too small.
    pub fn parse(text: &[u8]) -> Option<Extended> {
        if TEXT_SIZE_MAX <= text.len() {
            return None;
        }
        let (is_negative, text) = match text.split_first()? {
            (b'-', rest) => (true, rest),
            (b'+', rest) => (false, rest),
            _ => (false, text),
        };
        let lower = text.to_ascii_lowercase();
        let parsed = match lower.as_slice() {
            b"inf" | b"infinity" => return Some(Extended::Infinite { is_negative }),
            [b'0', b'x', digits @ ..] => Digits::read(digits, 16, b'p')?.to_binary(is_negative),
            digits => Digits::read(digits, 10, b'e')?.to_binary(is_negative),
        };
        parsed.filter(|parsed| matches!(parsed, Extended::Finite { .. }))
    }

    /// The sum; none where it is not a number.
    pub fn plus(self, other: Extended) -> Option<Extended> {
        use Extended::{Finite, Infinite};
        match (self, other) {
            (Infinite { is_negative: one }, Infinite { is_negative: other }) => {
                (one == other).then_some(self)
            }
            (Infinite { .. }, _) => Some(self),
            (_, Infinite { .. }) => Some(other),
            (Finite { mantissa: 0, .. }, _) => Some(other),
            (_, Finite { mantissa: 0, .. }) => Some(self),
            (
                Finite { is_negative, mantissa, exponent },
                Finite { is_negative: other_sign, mantissa: other_mantissa, exponent: other_exp },
            ) => {
                let one = (exponent, mantissa, is_negative);
                let other = (other_exp, other_mantissa, other_sign);
                Some(sum(one.max(other), one.min(other)))
            }
        }
    }

    /// Its text: 17 decimals at most, no exponent, no zeros that say nothing.
    pub fn text(self) -> String {
        let (is_negative, mantissa, exponent) = match self {
            Extended::Infinite { is_negative } => {
                return if is_negative { "-inf" } else { "inf" }.to_owned();
            }
            Extended::Finite { is_negative, mantissa, exponent } => {
                (is_negative, mantissa, exponent)
            }
        };
        let digits = match u32::try_from(-exponent) {
            Err(_) | Ok(0) => {
                let mut whole = Big::from(mantissa);
                whole.shift_left(usize::try_from(exponent).unwrap_or(0));
                whole.decimal()
            }
            Ok(shift) => {
                let unit = 10u128.pow(DECIMALS);
                let scaled = halve(u128::from(mantissa) * unit, shift);
                let (whole, decimals) = (scaled / unit, scaled % unit);
                let text = format!("{whole}.{decimals:017}");
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
        };
        if is_negative && digits != "0" { format!("-{digits}") } else { digits }
    }
}

/// Divides by a power of two and rounds to the nearest, to the even one of two.
fn halve(value: u128, shift: u32) -> u128 {
    if u128::BITS <= shift {
        return 0;
    }
    let (whole, rest) = (value >> shift, value & ((1 << shift) - 1));
    let half = 1u128 << (shift - 1);
    whole + u128::from(half < rest || half == rest && whole & 1 == 1)
}

/// The sum of two floats that are not zero, the larger one first: exponent, mantissa, sign.
fn sum(large: (i64, u64, bool), small: (i64, u64, bool)) -> Extended {
    const GUARD_BITS: i64 = MANTISSA_BITS - 1;
    let (exponent, mantissa, is_negative) = large;
    let distance = exponent - small.0;
    let large = u128::from(mantissa) << GUARD_BITS;
    let aligned = u128::from(small.1) << GUARD_BITS;
    let shift = u32::try_from(distance).unwrap_or(u32::MAX);
    let shifted = aligned.checked_shr(shift).unwrap_or(0);
    let is_cut = shifted.checked_shl(shift).unwrap_or(0) != aligned;
    let total = match small.2 == is_negative {
        true => large + shifted,
        // What was cut off is taken away, too: it shows as a bit that is far below the last.
        false => large - shifted - u128::from(is_cut),
    };
    round(is_negative, total, is_cut, exponent - GUARD_BITS)
}

/// The nearest float to `value` (and a little more, if so) times two to the power of `exponent`.
fn round(is_negative: bool, value: u128, is_more: bool, exponent: i64) -> Extended {
    if value == 0 {
        return Extended::ZERO;
    }
    let bits = i64::from(u128::BITS - value.leading_zeros());
    let excess = bits - MANTISSA_BITS;
    let (mut mantissa, mut exponent) = match u32::try_from(excess) {
        Err(_) => (value << excess.unsigned_abs(), exponent + excess),
        Ok(0) => (value, exponent),
        Ok(shift) => {
            let is_half = value & ((1 << shift) - 1) == 1 << (shift - 1);
            let rounded = match is_half && is_more {
                true => (value >> shift) + 1,
                false => halve(value, shift),
            };
            (rounded, exponent + excess)
        }
    };
    if 1 << MANTISSA_BITS <= mantissa {
        (mantissa, exponent) = (mantissa >> 1, exponent + 1);
    }
    if INFINITE_EXPONENT < exponent + MANTISSA_BITS {
        return Extended::Infinite { is_negative };
    }
    let mantissa = u64::try_from(mantissa).unwrap_or(u64::MAX);
    Extended::Finite { is_negative, mantissa, exponent }
}

/// Digits of a number as they were written.
struct Digits {
    /// All digits as one integer.
    whole: Big,
    base: u32,
    /// The power of ten, or of two for hexadecimal digits, that it is multiplied with.
    exponent: i64,
}

impl Digits {
    fn read(text: &[u8], base: u32, exponent_mark: u8) -> Option<Digits> {
        let end = text.iter().position(|byte| *byte == exponent_mark);
        let (digits, exponent) = text.split_at(end.unwrap_or(text.len()));
        let exponent = match exponent.split_first() {
            None => 0,
            Some((_, text)) => exponent_of(text)?,
        };
        let mut whole = Big::default();
        let (mut count, mut decimals, mut has_point) = (0, 0, false);
        for byte in digits {
            if *byte == b'.' && !has_point {
                has_point = true;
                continue;
            }
            let digit = char::from(*byte).to_digit(base)?;
            whole.multiply_add(base, digit);
            count += 1;
            decimals += i64::from(has_point);
        }
        let per_digit = if base == 16 { 4 } else { 1 };
        (0 < count).then_some(Digits { whole, base, exponent: exponent - decimals * per_digit })
    }

    /// The nearest float; none where it would be zero without saying so.
    fn to_binary(&self, is_negative: bool) -> Option<Extended> {
        if self.whole.is_zero() {
            return Some(Extended::Finite { is_negative, mantissa: 0, exponent: 0 });
        }
        if EXPONENT_MAX < self.exponent.abs() {
            return None;
        }
        let (mut above, mut below) = (self.whole.clone(), Big::from(1));
        let power = self.exponent.unsigned_abs();
        let mut shift = 0;
        if self.base == 16 {
            shift = self.exponent;
        } else if self.exponent < 0 {
            below.raise(power);
        } else {
            above.raise(power);
        }
        // A quotient of 66 bits or 67: the first 64 count, the rest rounds.
        let wanted = 66 - (above.bits() - below.bits());
        match usize::try_from(wanted) {
            Ok(up) => above.shift_left(up),
            Err(_) => below.shift_left(usize::try_from(-wanted).unwrap_or(0)),
        }
        let quotient = above.divide(&below);
        let found = round(is_negative, quotient, !above.is_zero(), shift - wanted);
        let is_tiny = matches!(found, Extended::Finite { exponent, .. } if exponent < -16_445 - 64);
        (!is_tiny).then_some(found)
    }
}

fn exponent_of(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text.split_first()? {
        (b'-', digits) => (true, digits),
        (b'+', digits) => (false, digits),
        _ => (false, text),
    };
    if digits.is_empty() {
        return None;
    }
    let mut exponent: i64 = 0;
    for byte in digits {
        let digit = char::from(*byte).to_digit(10)?;
        // Far beyond all floats it may stop to grow.
        exponent = (exponent * 10 + i64::from(digit)).min(1 << 32);
    }
    Some(if is_negative { -exponent } else { exponent })
}

/// A natural number of any size; the lowest bits come first, the last part is not zero.
#[derive(Clone, Debug, Default)]
struct Big(Vec<u32>);

impl From<u64> for Big {
    fn from(value: u64) -> Big {
        let mut big = Big(vec![value as u32, (value >> 32) as u32]);
        big.trim();
        big
    }
}

impl Big {
    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn bits(&self) -> i64 {
        let Some(last) = self.0.last() else { return 0 };
        let parts = i64::try_from(self.0.len()).unwrap_or(0);
        parts * 32 - i64::from(last.leading_zeros())
    }

    fn multiply_add(&mut self, by: u32, more: u32) {
        let mut carry = u64::from(more);
        for part in &mut self.0 {
            carry += u64::from(*part) * u64::from(by);
            *part = carry as u32;
            carry >>= 32;
        }
        if 0 < carry {
            self.0.push(carry as u32);
        }
    }

    /// Multiplies with a power of ten.
    fn raise(&mut self, power: u64) {
        (0..power / 9).for_each(|_| self.multiply_add(1_000_000_000, 0));
        (0..power % 9).for_each(|_| self.multiply_add(10, 0));
    }

    fn shift_left(&mut self, bits: usize) {
        let (parts, bits) = (bits / 32, bits % 32);
        if 0 < bits {
            self.multiply_add(1 << bits, 0);
        }
        if !self.is_zero() {
            self.0.splice(..0, std::iter::repeat_n(0, parts));
        }
    }

    fn is_below(&self, other: &Big) -> bool {
        match self.0.len() == other.0.len() {
            true => self.0.iter().rev().lt(other.0.iter().rev()),
            false => self.0.len() < other.0.len(),
        }
    }

    /// Takes away a number that is not larger.
    fn subtract(&mut self, other: &Big) {
        let mut borrow = 0;
        for (at, part) in self.0.iter_mut().enumerate() {
            let taken = i64::from(other.0.get(at).copied().unwrap_or(0)) + borrow;
            let left = i64::from(*part) - taken;
            *part = left as u32;
            borrow = i64::from(left < 0);
        }
        self.trim();
    }

    /// Divides by a number that is not zero, leaves what remains, and returns the quotient, which has
    /// less than 127 bits.
    fn divide(&mut self, by: &Big) -> u128 {
        let places = usize::try_from(self.bits() - by.bits()).unwrap_or(0);
        let mut quotient = 0;
        for place in (0..=places).rev() {
            let mut shifted = by.clone();
            shifted.shift_left(place);
            quotient <<= 1;
            if !self.is_below(&shifted) {
                self.subtract(&shifted);
                quotient |= 1;
            }
        }
        quotient
    }

    fn decimal(mut self) -> String {
        const GROUP: u64 = 1_000_000_000;
        let mut groups = Vec::new();
        while !self.is_zero() {
            let mut rest = 0;
            for part in self.0.iter_mut().rev() {
                let value = rest << 32 | u64::from(*part);
                *part = (value / GROUP) as u32;
                rest = value % GROUP;
            }
            self.trim();
            groups.push(rest);
        }
        let Some(first) = groups.pop() else { return "0".to_owned() };
        let mut text = first.to_string();
        groups.iter().rev().for_each(|group| text += &format!("{group:09}"));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(one: &str, other: &str, expected: &str) {
        let parse = |text: &str| Extended::parse(text.as_bytes()).expect("a float");
        let sum = parse(one).plus(parse(other)).expect("a number");
        assert_eq!(sum.text(), expected, "{one} + {other}");
    }

    #[test]
    fn sums_as_redis_answers_them() {
        check("0.1", "0.2", "0.3");
        check("3.0", "1.1", "4.1");
        check("1000.1", "0.2", "1000.29999999999999999");
        check("1e10", "0.1", "10000000000.09999999962747097");
        check("123456789.123", "0.001", "123456789.12399999999615829");
        check("1.5", "-1.5", "0");
        check("0", "1e20", "100000000000000000000");
        check("1e17", "1", "100000000000000001");
        check("1e-10", "0", "0.0000000001");
        check("-0", "0", "0");
        check("5", "-5.0", "0");
        check("0x10", "1", "17");
        check("0x1.8p1", "0", "3");
        check("0", "5e-324", "0");
        check("1e2", "1", "101");
        check("-1.1", "0.05", "-1.05");
        check(
            "1e308",
            "0",
            "99999999999999999996685879655845645660560099847415567207797047994921734868838061872100126921888539320446747225054013223152134749593960583597420814430196418767959100019603190778663109604507106667939153395788938914560543563061268364901618630217086589253444881623791300855757318142424510452728255046343928578048",
        );
    }

    #[test]
    fn what_is_no_float() {
        for text in
            ["", " 1", "1 ", "nan", "x", "1e", "1e5000", "1e-6000", ".", "--1", "0x", "1.2.3"]
        {
            assert_eq!(Extended::parse(text.as_bytes()), None, "{text}");
        }
        let infinite = Extended::parse(b"-inf").expect("a float");
        assert_eq!(infinite, Extended::Infinite { is_negative: true });
        assert_eq!(infinite.plus(Extended::Infinite { is_negative: false }), None);
        let large = Extended::parse(b"1e4932").expect("a float");
        assert_eq!(large.plus(large), Some(Extended::Infinite { is_negative: false }));
    }

    #[test]
    fn sums_of_what_f64_can_say_are_exact() {
        let mut dice = rng::Random(5);
        for _ in 0..2000 {
            let one = (dice.next() >> 12) as i64 - (1 << 51);
            let other = (dice.next() >> 12) as i64 - (1 << 51);
            let quarters = |value: i64| {
                let text = format!("{:.2}", value as f64 / 4.0);
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            };
            check(&quarters(one), &quarters(other), &quarters(one + other));
        }
    }
}
