//! Points in time and durations as people write them: `2016-01-01T00:00:00Z`, `10s`, `24h`.

use anyhow::{Context, Result, bail};
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
    let (date, time) = text.split_once(['T', 't', ' ']).with_context(context)?;
    let zone_idx = time.find(['Z', 'z', '+', '-']).with_context(context)?;
    let (clock, zone) = time.split_at(zone_idx);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [year, month, day] = numbers(date, '-').with_context(context)?;
    let [hour, minute, second] = numbers(clock, ':').with_context(context)?;
    let in_range = (1678..=2261).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second)
        && (1..=9).contains(&fraction.len());
    if !in_range {
        bail!(context());
    }
    let nanos: i64 = format!("{fraction:0<9}").parse().with_context(context)?;
    let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Ok((seconds - zone_seconds(zone).with_context(context)?) * SECOND_NS + nanos)
}

/// The UTC time of nanoseconds since 1970, to the second.
pub fn format_rfc3339(timestamp_ns: i64) -> String {
    let seconds = timestamp_ns.div_euclid(SECOND_NS);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
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

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let mut parts = text.split(separator).map(|part| part.parse::<i64>().ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

fn zone_seconds(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    Some(sign * (hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60))
}

/// Days since 1970 of a Gregorian date; years start in March so that the leap day is the last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
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
