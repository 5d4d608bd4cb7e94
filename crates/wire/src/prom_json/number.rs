//! float64 and timestamps as text, as Go's `strconv` and Prometheus print them.
//!
//! Digits are the shortest that read back to the same bits (Żmij's); only their layout is ours:
//!
//! ```text
//! API answers   'f', or 'e' below 1e-6 and from 1e21 on    1234567   0.00001   1e-07   1e+21
//! exposition    'g'                                        1.234567e+06
//! JSON lines    as API answers, with a sign for -0
//! ```

use crate::narrow;
use crate::narrow::body_offset;

/// Appends a value as the Prometheus API prints it, without quotes.
pub fn push_value(out: &mut Vec<u8>, value: f64) {
    // What comes back unchanged is an integer.
    let whole = narrow::whole(value);
    let is_whole = whole as f64 == value && value.abs() < 1e15;
    if is_whole && (whole != 0 || value.is_sign_positive()) {
        out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
        return;
    }
    if push_plain_text(out, value) {
        return;
    }
    let Some(digits) = Digits::of(value, out) else { return };
    let absolute = value.abs();
    if absolute != 0.0 && !(1e-6..1e21).contains(&absolute) {
        digits.push_scientific(out);
    } else {
        digits.push_plain(out);
    }
}

/// Appends a value without an exponent: Go's `'f'`, as Prometheus prints scalars.
pub fn push_decimal(out: &mut Vec<u8>, value: f64) {
    if let Some(digits) = Digits::of(value, out) {
        digits.push_plain(out);
    }
}

/// Appends Żmij's text where it is what the API prints: plain digits around a point. Tells whether
/// it was.
fn push_plain_text(out: &mut Vec<u8>, value: f64) -> bool {
    if !(1e-4..1e15).contains(&value.abs()) {
        return false;
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value).as_bytes();
    debug_assert!(!text.contains(&b'e'), "no exponent in this range");
    out.extend_from_slice(text.strip_suffix(b".0").unwrap_or(text));
    true
}

/// Appends a value as the text exposition format prints it: Go's `'g'`.
pub fn push_exposition_value(out: &mut Vec<u8>, value: f64) {
    let Some(digits) = Digits::of(value, out) else { return };
    if value != 0.0 && !(-4..6).contains(&(digits.point - 1)) {
        digits.push_scientific(out);
    } else {
        digits.push_plain(out);
    }
}

/// Appends milliseconds as seconds with up to three decimals.
pub fn push_millis(out: &mut Vec<u8>, millis: i64) {
    if millis < 0 {
        out.push(b'-');
    }
    let millis = millis.unsigned_abs();
    out.extend_from_slice(itoa::Buffer::new().format(millis / 1000).as_bytes());
    let fraction = millis % 1000;
    if fraction != 0 {
        let digit = |power| b'0' + (fraction / power % 10) as u8;
        out.extend_from_slice(&[b'.', digit(100), digit(10), digit(1)]);
    }
}

/// Most digits that the shortest form of a float64 has.
const DIGITS_MAX: usize = 17;

/// `0.d1d2d3… * 10^point`, with a sign.
struct Digits {
    digits: [u8; DIGITS_MAX],
    len: usize,
    point: i32,
    is_negative: bool,
}

impl Digits {
    /// The shortest digits of a finite value; other values are written to `out` at once.
    fn of(value: f64, out: &mut Vec<u8>) -> Option<Digits> {
        if value.is_nan() {
            out.extend_from_slice(b"NaN");
            return None;
        }
        if value.is_infinite() {
            out.extend_from_slice(if value < 0.0 { b"-Inf" } else { b"+Inf" });
            return None;
        }
        let mut buffer = zmij::Buffer::new();
        Some(Digits::read(buffer.format_finite(value.abs()), value.is_sign_negative()))
    }

    /// Takes Żmij's text apart: `123.0`, `0.00123`, `1.23e-7`.
    fn read(text: &str, is_negative: bool) -> Digits {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let mut found = Digits { digits: [0; DIGITS_MAX], len: 0, point: 0, is_negative };
        found.point = exponent.saturating_add_unsigned(body_offset(whole.len()));
        let is_zero = |byte: &u8| *byte == b'0';
        let all = whole.bytes().chain(fraction.bytes());
        let leading = all.clone().take_while(is_zero).count();
        found.point = found.point.saturating_sub_unsigned(body_offset(leading));
        for (slot, digit) in found.digits.iter_mut().zip(all.skip(leading)) {
            *slot = digit;
            found.len += 1;
        }
        while found.digits.get(..found.len).and_then(<[u8]>::last) == Some(&b'0') {
            found.len -= 1;
        }
        if found.len == 0 {
            (found.digits[0], found.len, found.point) = (b'0', 1, 1);
        }
        found
    }

    fn digits(&self) -> &[u8] {
        self.digits.get(..self.len).unwrap_or_default()
    }

    fn push_sign(&self, out: &mut Vec<u8>) {
        if self.is_negative {
            out.push(b'-');
        }
    }

    /// `123`, `0.00123`, `12300`.
    fn push_plain(&self, out: &mut Vec<u8>) {
        self.push_sign(out);
        let digits = self.digits();
        let point = usize::try_from(self.point).unwrap_or(0);
        if point == 0 {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + self.point.unsigned_abs() as usize, b'0');
            out.extend_from_slice(digits);
            return;
        }
        let (whole, fraction) = digits.split_at(point.min(digits.len()));
        out.extend_from_slice(whole);
        out.resize(out.len() + point - whole.len(), b'0');
        if !fraction.is_empty() {
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
    }

    /// `1.23e-07`: at least two digits of exponent.
    fn push_scientific(&self, out: &mut Vec<u8>) {
        self.push_sign(out);
        let (first, rest) = self.digits().split_at(1);
        out.extend_from_slice(first);
        if !rest.is_empty() {
            out.push(b'.');
            out.extend_from_slice(rest);
        }
        let exponent = self.point - 1;
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        let exponent = exponent.unsigned_abs();
        if exponent < 10 {
            out.push(b'0');
        }
        out.extend_from_slice(itoa::Buffer::new().format(exponent).as_bytes());
    }
}
