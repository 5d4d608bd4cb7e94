//! Which partition an instant belongs to: calendar months, UTC.
//!
//! Months are numbered from January 1970 (number 0); years 1677 to 2262 give -3,516 to 3,507.
//! Civil dates by Howard Hinnant's `days_from_civil` (chrono-compatible low-level date algorithms).

use model::TimeRange;
use model::sample::{NANOS_PER_DAY, Timestamp};
use std::ops::RangeInclusive;

/// Numbers of months: all that an instant may fall into, with room to spare.
const NUMBERS: RangeInclusive<i64> = -4000..=4000;

/// A calendar month, UTC; the unit that retention drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month(pub i32);

impl Month {
    /// The month that `timestamp` falls in.
    pub fn of(timestamp: Timestamp) -> Month {
        let (year, month) = civil_from_days(timestamp.div_euclid(NANOS_PER_DAY));
        Month(((year - 1970) * 12 + i64::from(month) - 1) as i32)
    }

    /// The month of a number that comes from outside; `None` when no instant falls near it.
    pub fn from_number(number: i64) -> Option<Month> {
        NUMBERS.contains(&number).then_some(Month(number as i32))
    }

    /// All instants of the month (cut at what an `i64` of nanoseconds can say).
    pub fn range(self) -> TimeRange {
        let start = self.first_day().saturating_mul(NANOS_PER_DAY);
        let end = Month(self.0 + 1).first_day().saturating_mul(NANOS_PER_DAY);
        TimeRange::new(start, if end == i64::MAX { end } else { end - 1 })
    }

    /// The directory's name, `YYYY-MM`.
    pub fn name(self) -> String {
        format!("{:04}-{:02}", self.year(), self.0.rem_euclid(12) + 1)
    }

    /// The month that [`Month::name`] printed, or `None`.
    pub fn parse(name: &str) -> Option<Month> {
        let (year, month) = name.split_once('-')?;
        let (year, month): (i32, i32) = (year.parse().ok()?, month.parse().ok()?);
        let number = (i64::from(year) - 1970) * 12 + i64::from(month) - 1;
        let parsed = Month::from_number(number)?;
        ((1..=12).contains(&month) && parsed.name() == name).then_some(parsed)
    }

    fn year(self) -> i32 {
        1970 + self.0.div_euclid(12)
    }

    fn first_day(self) -> i64 {
        days_from_civil(i64::from(self.year()), self.0.rem_euclid(12) as u32 + 1)
    }
}

/// Days since the epoch of the first day of a month (1 to 12).
fn days_from_civil(year: i64, month: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((i64::from(month) + 9) % 12) + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year and month (1 to 12) of a day number since the epoch.
fn civil_from_days(days: i64) -> (i64, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_tile_all_of_time() {
        assert_eq!(Month::of(0).name(), "1970-01");
        assert_eq!(Month::of(1_451_606_400_000_000_000).name(), "2016-01");
        assert_eq!(Month::of(i64::MIN).name(), "1677-09");
        assert_eq!(Month::of(i64::MAX).name(), "2262-04");
        let mut month = Month::of(i64::MIN);
        while month < Month::of(i64::MAX) {
            let range = month.range();
            assert_eq!(Month::of(range.start), month);
            assert_eq!(Month::of(range.end), month);
            assert_eq!(Month::parse(&month.name()), Some(month));
            let next = Month(month.0 + 1);
            assert_eq!(next.range().start, range.end + 1);
            month = next;
        }
        let beyond =
            ["99999999999-01", "178958970-01", "178958970-09", "-2147483648-01", "9999-12"];
        let bad = ["", "2016", "2016-13", "2016-1", "x-01", "2016-00"];
        for bad in bad.into_iter().chain(beyond) {
            assert_eq!(Month::parse(bad), None, "{bad}");
        }
    }
}
