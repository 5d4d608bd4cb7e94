//! Values in lines: numbers exactly as they are, and the names of those that JSON has none for.

use super::NORMAL_NAN_BITS;
use super::scan::{Fault, Scan};
use crate::number;
use crate::prom_json::number::push_value;

/// Appends a value so that it reads back to the same bits.
pub(super) fn push_exact(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        push_value(out, value);
    } else if value.is_infinite() {
        out.extend_from_slice(if value < 0.0 { b"\"-Infinity\"" } else { b"\"Infinity\"" });
    } else if value.to_bits() == NORMAL_NAN_BITS {
        out.extend_from_slice(b"null");
    } else {
        out.extend_from_slice(format!("\"NaN:{:016x}\"", value.to_bits()).as_bytes());
    }
}

/// A number, `null`, or a string that names a number.
#[inline(always)]
pub(super) fn value(scan: &mut Scan<'_>) -> Result<f64, Fault> {
    match scan.peek() {
        Some(b'"') => {
            let start = scan.at;
            let text = scan.raw_string()?;
            let fault = Fault { offset: start, expected: "a number" };
            named_value(text).ok_or(fault)
        }
        Some(b'n') if scan.text.get(scan.at..).is_some_and(|rest| rest.starts_with(b"null")) => {
            scan.at += 4;
            Ok(f64::from_bits(NORMAL_NAN_BITS))
        }
        _ => match number::decimal(scan.text, scan.at) {
            Some(number) => {
                scan.at = number.end;
                Ok(number.value)
            }
            None => bare_value(scan),
        },
    }
}

/// Numbers that JSON has no text for, as VictoriaMetrics' export has them at times: without quotes.
#[cold]
fn bare_value(scan: &mut Scan<'_>) -> Result<f64, Fault> {
    let rest = scan.text.get(scan.at..).unwrap_or_default();
    let size =
        rest.iter().take_while(|byte| matches!(byte, b'+' | b'-' | b'A'..=b'Z' | b'a'..=b'z'));
    let size = size.count();
    match named_value(rest.get(..size).unwrap_or_default()) {
        Some(value) => {
            scan.at += size;
            Ok(value)
        }
        None => scan.fault("a number"),
    }
}

/// The value of a string.
fn named_value(text: &[u8]) -> Option<f64> {
    match text {
        b"NaN" | b"null" | b"nan" => return Some(f64::from_bits(NORMAL_NAN_BITS)),
        b"Infinity" | b"+Infinity" | b"Inf" | b"+Inf" => return Some(f64::INFINITY),
        b"-Infinity" | b"-Inf" => return Some(f64::NEG_INFINITY),
        b"StaleNaN" => return Some(model::stale_marker()),
        _ => {}
    }
    if let Some(bits) = text.strip_prefix(b"NaN:") {
        let is_hexadecimal = bits.len() == 16 && bits.iter().all(u8::is_ascii_hexdigit);
        let bits = std::str::from_utf8(bits).ok().filter(|_| is_hexadecimal)?;
        let value = f64::from_bits(u64::from_str_radix(bits, 16).ok()?);
        return value.is_nan().then_some(value);
    }
    number::decimal(text, 0).filter(|number| number.end == text.len()).map(|number| number.value)
}
