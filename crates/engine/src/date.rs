//! Numbers of seconds since 1970 as dates, in UTC.
//!
//! PromQL takes any number for a date, `jiff` those of some 20,000 years; the calendar repeats every 400.

use jiff::civil::Date;
use jiff::tz::Offset;

/// Years until the calendar repeats, weekdays included.
const CYCLE_YEARS: i64 = 400;
/// Seconds of so many years.
const CYCLE_SECONDS: i64 = 146_097 * 86_400;

pub(crate) fn minute(seconds: i64) -> f64 {
    (seconds.rem_euclid(3600) / 60) as f64
}

pub(crate) fn hour(seconds: i64) -> f64 {
    (seconds.rem_euclid(86_400) / 3600) as f64
}

/// Sunday is 0.
pub(crate) fn day_of_week(seconds: i64) -> f64 {
    f64::from(in_cycle(seconds).weekday().to_sunday_zero_offset())
}

pub(crate) fn day_of_month(seconds: i64) -> f64 {
    f64::from(in_cycle(seconds).day())
}

pub(crate) fn day_of_year(seconds: i64) -> f64 {
    f64::from(in_cycle(seconds).day_of_year())
}

pub(crate) fn days_in_month(seconds: i64) -> f64 {
    f64::from(in_cycle(seconds).days_in_month())
}

pub(crate) fn month(seconds: i64) -> f64 {
    f64::from(in_cycle(seconds).month())
}

pub(crate) fn year(seconds: i64) -> f64 {
    year_of(seconds) as f64
}

/// A moment as `1970-01-01T00:00:00Z`.
pub(crate) fn rfc3339(seconds: i64) -> String {
    let (date, second) = (in_cycle(seconds), seconds.rem_euclid(86_400));
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        year_of(seconds),
        date.month(),
        date.day(),
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

fn year_of(seconds: i64) -> i64 {
    let cycles = seconds.div_euclid(CYCLE_SECONDS);
    i64::from(in_cycle(seconds).year()) + cycles * CYCLE_YEARS
}

/// The date as it is in the 400 years from 1970.
fn in_cycle(seconds: i64) -> Date {
    let moment = jiff::Timestamp::from_second(seconds.rem_euclid(CYCLE_SECONDS));
    Offset::UTC.to_datetime(moment.expect("400 years are a timestamp")).date()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn civil(day: i64) -> (i64, i8, i8) {
        let date = in_cycle(day * 86_400);
        (year_of(day * 86_400), date.month(), date.day())
    }

    #[test]
    fn dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(-1), (1969, 12, 31));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(19_782), (2024, 2, 29));
        assert_eq!(civil(11_016), (2000, 2, 29));
        // Any number is a date.
        assert_eq!(year_of(i64::MAX), 292_277_026_596);
        assert_eq!(year_of(i64::MIN), -292_277_022_657);
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut expected = (1899, 12, 31);
        for day in -25_568..80_000 {
            let found = civil(day);
            assert_eq!(found, expected, "{day}");
            expected.2 += 1;
            if in_cycle(day * 86_400).days_in_month() < expected.2 {
                expected = (expected.0, expected.1 + 1, 1);
            }
            if expected.1 == 13 {
                expected = (expected.0 + 1, 1, 1);
            }
        }
    }

    #[test]
    fn parts() {
        let at = 1_709_210_096; // 2024-02-29 12:34:56, a Thursday.
        let parts = [minute, hour, day_of_week, day_of_month, day_of_year];
        assert_eq!(parts.map(|part| part(at)), [34.0, 12.0, 4.0, 29.0, 60.0]);
        assert_eq!([days_in_month, month, year].map(|part| part(at)), [29.0, 2.0, 2024.0]);
        assert_eq!(hour(-1), 23.0);
        assert_eq!(rfc3339(at), "2024-02-29T12:34:56Z");
    }
}
