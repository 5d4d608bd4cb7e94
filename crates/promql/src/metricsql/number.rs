//! Numbers and durations: from text and to text.

use crate::metricsql::ast::Duration;
use crate::metricsql::lexer::{duration_part_size, multiplier};
use crate::number::{format_duration_ms, parse_number as parse_plain_number};

/// The longest duration; longer ones are cut to it.
const DURATION_MS_MAX: f64 = i64::MAX as f64;
/// Whole numbers up to this one are exact.
const EXACT_MAX: f64 = (1u64 << 53) as f64;

/// The number that a literal stands for, such as `1.5Ki`, `1_000` or `0x1f`.
pub(crate) fn parse_number(text: &str) -> Result<f64, String> {
    let is_hex = text.starts_with("0x") || text.starts_with("0X");
    let at = if is_hex { None } else { text.find(|c: char| "kmgtKMGT".contains(c)) };
    let (digits, factor) = match at.and_then(|at| Some((at, multiplier(&text[at..])?))) {
        Some((at, (_, factor))) => (&text[..at], factor),
        None => (text, 1.0),
    };
    let value = parse_plain_number(digits).map_err(|_| format!("bad number {text:?}"))?;
    Ok(value * factor)
}

/// A number of seconds as a duration.
pub(crate) fn seconds(value: f64) -> Duration {
    Duration { ms: clamp(value * 1000.0), steps: 0.0 }
}

/// The duration that a literal stands for, such as `1h30m`, `1.5d-2h` or `5i`.
///
/// From the first negative part on all parts are: `-1h30m` is minus 90 minutes, and `2h-1h30m`
/// is half an hour.
pub(crate) fn parse_duration(text: &str, is_negative: bool) -> Result<Duration, String> {
    let mut duration = Duration::default();
    let mut rest = text;
    let mut sign = if is_negative { -1.0 } else { 1.0 };
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('-') {
            sign = -1.0;
            rest = after;
        }
        let malformed = || format!("bad duration {text:?}");
        let size = duration_part_size(rest).ok_or_else(malformed)?;
        let digits = rest[..size].trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let count = sign * digits.parse::<f64>().map_err(|_| malformed())?;
        match unit_ms(&rest[digits.len()..size]) {
            Some(ms) => duration.ms += count * ms,
            None => duration.steps += count,
        }
        rest = &rest[size..];
    }
    Ok(Duration { ms: clamp(duration.ms), steps: clamp(duration.steps) })
}

/// Milliseconds of a unit; nothing for steps.
fn unit_ms(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "ms" => 1.0,
        "s" => 1e3,
        "m" => 60e3,
        "h" => 3600e3,
        "d" => 86_400e3,
        "w" => 7.0 * 86_400e3,
        "y" => 365.0 * 86_400e3,
        _ => return None,
    })
}

fn clamp(value: f64) -> f64 {
    value.clamp(-DURATION_MS_MAX, DURATION_MS_MAX)
}

/// A duration that stands where a sign may be.
pub(crate) fn format_signed_duration(duration: Duration) -> String {
    let mut out = String::new();
    // A positive part goes first, or it would take the sign of the other.
    if duration.ms < 0.0 && 0.0 < duration.steps {
        push_steps(&mut out, duration.steps);
        push_ms(&mut out, duration.ms);
        return out;
    }
    if duration.ms != 0.0 || duration.steps == 0.0 {
        push_ms(&mut out, duration.ms);
    }
    if duration.steps != 0.0 {
        push_steps(&mut out, duration.steps);
    }
    out
}

/// A duration that stands where its first part must be positive.
pub(crate) fn format_duration(duration: Duration) -> String {
    let text = format_signed_duration(duration);
    if text.starts_with('-') { format!("0s{text}") } else { text }
}

fn push_ms(out: &mut String, ms: f64) {
    if ms.fract() == 0.0 && ms.abs() < EXACT_MAX {
        out.push_str(&format_duration_ms(ms as i64));
    } else {
        out.push_str(&format!("{ms}ms"));
    }
}

fn push_steps(out: &mut String, steps: f64) {
    out.push_str(&format!("{steps}i"));
}

/// A number that parses to the same one; negative ones begin with a sign.
pub(crate) fn format_number(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_string();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-Inf" } else { "Inf" }.to_string();
    }
    if value == 0.0 && value.is_sign_negative() {
        // `-0` is `0 - 0`, which has no sign.
        return "(0 * -1)".to_string();
    }
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        format!("{value:e}")
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (text, value) in [
            ("1.5Ki", 1536.0),
            ("2kb", 2000.0),
            ("1M", 1e6),
            ("3GiB", 3.0 * (1u64 << 30) as f64),
            ("1T", 1e12),
            ("0x1B", 27.0),
            ("0b101", 5.0),
            ("0o17", 15.0),
            ("1_000", 1000.0),
            ("1e3", 1000.0),
        ] {
            assert_eq!(parse_number(text), Ok(value), "{text}");
        }
        for text in ["1__0", "1e999", "0x", "0b2"] {
            assert!(parse_number(text).is_err(), "{text}");
        }
        for value in [0.1, 1e21, -5e-7, 1.5e300, 123456789.0, 1e20] {
            assert_eq!(parse_number(&format_number(f64::abs(value))), Ok(value.abs()));
        }
    }

    #[test]
    fn durations() {
        for (text, ms, steps, printed) in [
            ("1h30m", 5400e3, 0.0, "1h30m"),
            ("2h-1h30m", -1800e3 + 3600e3, 0.0, "30m"),
            ("1.5s", 1500.0, 0.0, "1s500ms"),
            ("0.5ms", 0.5, 0.0, "0.5ms"),
            ("5i", 0.0, 5.0, "5i"),
            ("1h2.5i", 3600e3, 2.5, "1h2.5i"),
            ("1I-5M", -300e3, 1.0, "1i-5m"),
            ("5m-10m", -300e3, 0.0, "0s-5m"),
        ] {
            // `M` is no unit in a text, but one here.
            let text = text.replace("5M", "5m");
            let duration = parse_duration(&text, false).unwrap();
            assert_eq!(duration, Duration { ms, steps }, "{text}");
            assert_eq!(format_duration(duration), printed);
            assert_eq!(parse_duration(printed, false), Ok(duration));
        }
        assert_eq!(parse_duration("1h30m", true).unwrap().ms, -5400e3);
        let long = parse_duration(&format!("{}y", "9".repeat(400)), false).unwrap();
        assert_eq!(parse_duration(&format_duration(long), false), Ok(long));
    }
}
