//! Durations and moments as InfluxQL writes them.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The earliest time, which stands for "no bound".
pub const TIME_MIN: i64 = i64::MIN + 2;
/// The latest time.
pub const TIME_MAX: i64 = i64::MAX - 1;

const UNITS: &[(&str, i64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("u", 1_000),
    ("µ", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
];

/// Nanoseconds of `1h30m` and the like.
pub fn parse_duration(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut total: i64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let count: i64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = UNITS.iter().find(|(name, _)| *name == &rest[..unit_end])?;
        total = total.checked_add(count.checked_mul(unit.1)?)?;
        rest = &rest[unit_end..];
    }
    Some(total)
}

/// As InfluxQL prints a duration.
pub fn format_duration(nanos: i64) -> String {
    if nanos == 0 {
        return "0s".to_string();
    }
    let units = [("w", 10), ("d", 9), ("h", 8), ("m", 7), ("s", 6), ("ms", 5), ("u", 1)];
    for (name, idx) in units {
        let size = UNITS[idx].1;
        if nanos % size == 0 {
            return format!("{}{name}", nanos / size);
        }
    }
    format!("{nanos}ns")
}

/// Whether a string looks like a date: only those may be compared with `time`.
pub fn looks_like_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let dash = |at: usize| bytes.get(at) == Some(&b'-');
    // Go's pattern wants one to four digits before the first dash, we are as strict as its layouts.
    digits(0..4) && dash(4) && digits(5..7) && dash(7) && digits(8..10)
}

/// Nanoseconds since the epoch of a string; dates without an offset are of `zone`.
pub fn parse_time(text: &str, zone: Option<&TimeZone>) -> Option<i64> {
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        return i64::try_from(moment.as_nanosecond()).ok();
    }
    let civil: DateTime = text.replacen(' ', "T", 1).parse().ok()?;
    let zone = zone.cloned().unwrap_or(TimeZone::UTC);
    let moment = zone.to_ambiguous_timestamp(civil).compatible().ok()?;
    i64::try_from(moment.as_nanosecond()).ok()
}

/// As RFC 3339 with as many digits of the second as there are, in `zone`.
pub fn format_time(nanos: i64, zone: Option<&TimeZone>, out: &mut String) {
    use std::fmt::Write;
    let Ok(moment) = jiff::Timestamp::from_nanosecond(i128::from(nanos)) else { return };
    let zone = zone.cloned().unwrap_or(TimeZone::UTC);
    let offset = zone.to_offset(moment);
    let civil = offset.to_datetime(moment);
    let _ = write!(
        out,
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        civil.year(),
        civil.month(),
        civil.day(),
        civil.hour(),
        civil.minute(),
        civil.second()
    );
    let fraction = civil.subsec_nanosecond();
    if fraction != 0 {
        let digits = format!("{fraction:09}");
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
    match offset.seconds() {
        0 => out.push('Z'),
        seconds => {
            let sign = if seconds < 0 { '-' } else { '+' };
            let minutes = seconds.unsigned_abs() / 60;
            let _ = write!(out, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(parse_duration("1h30m"), Some(5_400_000_000_000));
        assert_eq!(parse_duration("10µ"), Some(10_000));
        assert_eq!(parse_duration("1x"), None);
        assert_eq!(parse_duration("99999999999w"), None);
        assert_eq!(format_duration(5_400_000_000_000), "90m");
    }

    #[test]
    fn moments() {
        assert_eq!(parse_time("2016-01-01T00:00:00Z", None), Some(1_451_606_400_000_000_000));
        assert_eq!(parse_time("2016-01-01 00:00:00.5", None), Some(1_451_606_400_500_000_000));
        assert_eq!(parse_time("2016-01-01", None), Some(1_451_606_400_000_000_000));
        assert_eq!(parse_time("soon", None), None);
        let mut out = String::new();
        format_time(1_451_606_400_500_000_000, None, &mut out);
        assert_eq!(out, "2016-01-01T00:00:00.5Z");
    }
}
