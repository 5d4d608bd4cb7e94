//! Points in time and durations as people write them: `2016-01-01T00:00:00Z`, `10s`, `24h`.

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds of a second.
pub const SECOND_NS: i64 = 1_000_000_000;
/// Nanoseconds of an hour.
pub const HOUR_NS: i64 = 3600 * SECOND_NS;
/// Nanoseconds of a day.
pub const DAY_NS: i64 = 24 * HOUR_NS;

/// Nanoseconds since 1970 of an RFC 3339 time, with an optional fraction, in UTC or with an offset.
///
/// # Errors
/// When the text has another shape or a field is out of range.
pub fn parse_rfc3339(text: &str) -> Result<i64> {
    let context = || format!("{text:?} is not a time like 2016-01-01T00:00:00Z");
    let moment: Timestamp = text.parse().with_context(context)?;
    i64::try_from(moment.as_nanosecond()).with_context(context)
}

/// The UTC time of nanoseconds since 1970, to the second.
pub fn format_rfc3339(timestamp_ns: i64) -> String {
    let seconds = timestamp_ns.div_euclid(SECOND_NS);
    Timestamp::from_second(seconds).expect("nanoseconds of 64 bits end in 2262").to_string()
}

/// A duration like `80s`, `10m`, `1h`, `3d`, `5y`, `250ms`; a bare number is seconds.
///
/// # Errors
/// When the text has another shape.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().with_context(|| format!("{text:?} is not a duration"))?;
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 7 * 86_400_000,
        "y" => 365 * 86_400_000,
        _ => bail!("{text:?}: unknown unit {unit:?}, use ms, s, m, h, d, w or y"),
    };
    let ms = number.checked_mul(unit_ms).with_context(|| format!("{text:?} is too long"))?;
    Ok(Duration::from_millis(ms))
}

/// Now, as nanoseconds since 1970.
pub fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_time(text: &str, expected_s: i64) {
        let parsed = parse_rfc3339(text).expect(text);
        assert_eq!(parsed / SECOND_NS, expected_s, "{text}");
    }

    #[test]
    fn times_are_read_and_written() {
        check_time("1970-01-01T00:00:00Z", 0);
        check_time("2016-01-01T00:00:00Z", 1_451_606_400);
        check_time("2016-02-29T23:59:59Z", 1_456_790_399);
        check_time("2016-01-01T02:00:00+02:00", 1_451_606_400);
        check_time("2015-12-31T19:00:00-05:00", 1_451_606_400);
        assert_eq!(parse_rfc3339("1970-01-01T00:00:00.25Z").unwrap(), SECOND_NS / 4);
        for seconds in [0, 1_451_606_400, 1_456_790_399, 4_102_444_799, -86_401] {
            let text = format_rfc3339(seconds * SECOND_NS);
            check_time(&text, seconds);
        }
        for bad in ["", "2016", "2016-01-01", "2016-13-01T00:00:00Z", "2016-01-01T00:00:00"] {
            assert!(parse_rfc3339(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_are_read() {
        assert_eq!(parse_duration("80s").unwrap(), Duration::from_secs(80));
        assert_eq!(parse_duration("10").unwrap(), Duration::from_secs(10));
        assert_eq!(parse_duration("3d").unwrap(), Duration::from_secs(3 * 86_400));
        for bad in ["", "s", "5x", "99999999999999999999s", "18446744073709551615d"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }
}
