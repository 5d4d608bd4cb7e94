//! Numbers as templates want them: whole ones and decimals with all their digits, floats with fifteen.

use crate::functions::templates::numbers::{FLOAT_DIGITS, Number};

/// Largest number in Roman numerals.
const ROMAN_MAX: u32 = 3999;

/// So many units of `10 ^ -scale`.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    /// How many.
    pub units: i128,
    /// Digits behind the point.
    pub scale: i8,
}

impl Decimal {
    fn places(&self) -> usize {
        usize::try_from(self.scale).unwrap_or(0)
    }
}

impl Number for Decimal {
    fn is_negative(&self) -> bool {
        self.units < 0
    }

    /// A `numeric` that is rounded to zero has no sign.
    fn is_negative_at(&self, behind: usize) -> bool {
        self.is_negative() && self.digits(behind).bytes().any(|one| (b'1'..=b'9').contains(&one))
    }

    fn digits(&self, behind: usize) -> String {
        let whole = self.units.unsigned_abs();
        let scale = self.places();
        let (units, shown) = match scale.checked_sub(behind) {
            // To the nearest, halves away from nothing.
            Some(fewer) if 0 < fewer => {
                let power = 10_u128.saturating_pow(u32::try_from(fewer).unwrap_or(u32::MAX));
                ((whole + power / 2) / power, behind)
            }
            _ => (whole, scale),
        };
        let mut text = format!("{units:0width$}", width = shown + 1);
        if behind == 0 {
            return text;
        }
        text.insert(text.len() - shown, '.');
        text.extend(std::iter::repeat_n('0', behind - shown));
        text
    }

    fn shifted(&self, by: usize) -> Box<dyn Number> {
        // What has no room for its digits has none for them in the template.
        let (mut units, mut scale) = (self.units, self.scale);
        for _ in 0..by {
            match scale {
                0 => units = units.saturating_mul(10),
                _ => scale -= 1,
            }
        }
        Box::new(Decimal { units, scale })
    }

    fn scientific(&self, behind: usize) -> Option<String> {
        let digits = self.units.unsigned_abs().to_string();
        let sign = if self.units < 0 { "-" } else { "" };
        if self.units == 0 {
            return Some(scientific(sign, "0", 0, behind));
        }
        let exponent = i64::try_from(digits.len()).ok()? - 1 - i64::from(self.scale);
        // Round to so many digits, which may be one more in front.
        let kept = digits.len().min(behind + 1);
        let power = 10_u128.pow(u32::try_from(digits.len() - kept).ok()?);
        let rounded = ((self.units.unsigned_abs() + power / 2) / power).to_string();
        let exponent = exponent + i64::try_from(rounded.len() - kept).ok()?;
        Some(scientific(sign, &rounded, exponent, behind))
    }

    fn roman(&self) -> Option<u32> {
        let whole = self.digits(0).parse().ok().filter(|_| 0 < self.units);
        whole.filter(|number| (1..=ROMAN_MAX).contains(number))
    }
}

fn scientific(sign: &str, digits: &str, exponent: i64, behind: usize) -> String {
    let (first, rest) = digits.split_at(1);
    let rest: String = rest.chars().chain(std::iter::repeat('0')).take(behind).collect();
    let point = if behind == 0 { "" } else { "." };
    let mark = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{first}{point}{rest}e{mark}{:02}", exponent.abs())
}

/// A `double precision`.
#[derive(Clone, Copy, Debug)]
pub struct Float(pub f64);

impl Number for Float {
    fn is_negative(&self) -> bool {
        self.0 < 0.0
    }

    fn digits(&self, behind: usize) -> String {
        if !self.0.is_finite() {
            return if self.0.is_nan() { "NaN" } else { "Infinity" }.to_string();
        }
        let number = self.0.abs();
        let whole = format!("{number:.0}").len();
        let behind = match whole {
            FLOAT_DIGITS.. => 0,
            _ => behind.min(FLOAT_DIGITS - whole),
        };
        format!("{number:.behind$}")
    }

    fn shifted(&self, by: usize) -> Box<dyn Number> {
        Box::new(Float(self.0 * 10_f64.powi(i32::try_from(by).unwrap_or(i32::MAX))))
    }

    fn scientific(&self, behind: usize) -> Option<String> {
        if !self.0.is_finite() {
            return None;
        }
        let text = format!("{:.behind$e}", self.0);
        let (mantissa, exponent) = text.split_once('e')?;
        let exponent: i32 = exponent.parse().ok()?;
        let mark = if exponent < 0 { '-' } else { '+' };
        Some(format!("{mantissa}e{mark}{:02}", exponent.abs()))
    }

    fn roman(&self) -> Option<u32> {
        let whole = self.0.round_ties_even();
        ((1.0..=f64::from(ROMAN_MAX)).contains(&whole)).then_some(whole as u32)
    }
}
