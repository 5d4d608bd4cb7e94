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

/// Time zone that `tz()` names, as Go finds it: no name is UTC, too.
pub fn zone(name: &str) -> Option<TimeZone> {
    match name {
        "" | "UTC" | "Local" => Some(TimeZone::UTC),
        name => TimeZone::get(name).ok(),
    }
}

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
    let offset = zone.map_or(0, |zone| {
        let moment = jiff::Timestamp::from_nanosecond(i128::from(nanos));
        moment.map_or(0, |moment| i64::from(zone.to_offset(moment).seconds()))
    });
    let seconds = nanos.div_euclid(NANOS_PER_SECOND) + offset;
    let (year, month, day) = civil(seconds.div_euclid(SECONDS_PER_DAY));
    let of_day = seconds.rem_euclid(SECONDS_PER_DAY) as u32;
    let year = year.unsigned_abs() as u32;
    let mut text = *b"0000-00-00T00:00:00";
    let pairs = [year / 100, year % 100, month, day, of_day / 3_600, of_day / 60 % 60, of_day % 60];
    for (at, number) in [0, 2, 5, 8, 11, 14, 17].into_iter().zip(pairs) {
        text[at] = b'0' + (number / 10 % 10) as u8;
        text[at + 1] = b'0' + (number % 10) as u8;
    }
    out.push_str(std::str::from_utf8(&text).unwrap_or_default());
    let fraction = nanos.rem_euclid(NANOS_PER_SECOND);
    if fraction != 0 {
        out.push('.');
        push_digits(out, fraction, NANOS_PER_SECOND / 10);
        out.truncate(out.trim_end_matches('0').len());
    }
    if offset == 0 {
        out.push('Z');
        return;
    }
    out.push(if offset < 0 { '-' } else { '+' });
    push_digits(out, offset.abs() / 3_600, 10);
    out.push(':');
    push_digits(out, offset.abs() / 60 % 60, 10);
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// The digits of a number from that of `first` on: a power of ten.
fn push_digits(out: &mut String, number: i64, first: i64) {
    let mut unit = first;
    while 0 < unit {
        let digit = (number / unit % 10).unsigned_abs() as u8;
        out.push(char::from(b'0' + digit));
        unit /= 10;
    }
}

/// Year, month and day of a day since the epoch: years begin in March, so that the day that some of them
/// have more is their last, and come again after 400.
fn civil(day: i64) -> (i64, u32, u32) {
    let since = day + 719_468;
    let (era, of_era) = (since.div_euclid(146_097), since.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + later, month as u32, day as u32)
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

    #[test]
    fn moments_are_told_as_the_calendar_has_them() {
        let day = SECONDS_PER_DAY * NANOS_PER_SECOND;
        let days = (-106_000..106_000).step_by(101).map(|at| at * day + at * 1_000_007);
        for nanos in days.chain([TIME_MIN, TIME_MAX, 0, -1, 1_582_934_400 * NANOS_PER_SECOND]) {
            let mut out = String::new();
            format_time(nanos, None, &mut out);
            let expected = jiff::Timestamp::from_nanosecond(i128::from(nanos));
            assert_eq!(Ok(out), expected.map(|moment| moment.to_string()).map_err(|_| ()));
        }
        let zone = TimeZone::get("America/St_Johns").ok();
        let mut out = String::new();
        format_time(1_451_606_400_000_000_000, zone.as_ref(), &mut out);
        assert_eq!(out, "2015-12-31T20:30:00-03:30");
    }
}
