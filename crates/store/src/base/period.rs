//! Which partition an instant belongs to: one day, ISO week, month or year of the calendar, UTC.
//!
//! ```text
//! length   number 0             numbers of all instants    name
//! day      1970-01-01           -106,752 to 106,751        2024-10-05
//! week     Monday 1969-12-29    -15,250 to 15,250          2024-W07   (ISO 8601)
//! month    January 1970         -3,508 to 3,507            2024-10
//! year     1970                 -293 to 292                2024
//! ```
//!
//! A data directory has partitions of one length, see [`crate::base::directory::partition_length`]. Names sort by
//! time, and tell their length; so do codes, which stand for a period in files. Civil dates by
//! Howard Hinnant's `days_from_civil` (chrono-compatible low-level date algorithms).

use model::TimeRange;
use model::sample::{NANOS_PER_DAY, NANOS_PER_HOUR, Timestamp};
use std::fmt;

/// Days from the Monday of week 0 to the epoch, a Thursday.
const EPOCH_WEEKDAY: i64 = 3;

/// How long the partitions of a data directory are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartitionLength {
    /// A day.
    Day,
    /// A week from Monday on, as ISO 8601 counts them.
    Week,
    /// A month.
    Month,
    /// A year.
    Year,
}

impl PartitionLength {
    /// All there are.
    pub const ALL: [PartitionLength; 4] = [
        PartitionLength::Day,
        PartitionLength::Week,
        PartitionLength::Month,
        PartitionLength::Year,
    ];

    /// The word for it, as the flag has it.
    pub fn word(self) -> &'static str {
        match self {
            PartitionLength::Day => "day",
            PartitionLength::Week => "week",
            PartitionLength::Month => "month",
            PartitionLength::Year => "year",
        }
    }

    /// The length that [`PartitionLength::word`] stands for.
    pub fn parse(word: &str) -> Option<PartitionLength> {
        PartitionLength::ALL.into_iter().find(|length| length.word() == word)
    }

    /// The period that `timestamp` falls in.
    #[inline]
    pub fn of(self, timestamp: Timestamp) -> Period {
        let days = timestamp.div_euclid(NANOS_PER_DAY);
        let number = match self {
            PartitionLength::Day => days,
            PartitionLength::Week => week_of_day(days),
            PartitionLength::Month => {
                let (year, month) = civil_from_days(days);
                (year - 1970) * 12 + i64::from(month) - 1
            }
            PartitionLength::Year => civil_from_days(days).0 - 1970,
        };
        debug_assert!(number.abs() <= self.number_max(), "all instants have a number");
        Period { length: self, number: narrow_number(number) }
    }

    /// The period of a number; `None` when no instant falls into it.
    pub fn period(self, number: i64) -> Option<Period> {
        let period = Period { length: self, number: i32::try_from(number).ok()? };
        (self.of(i64::MIN)..=self.of(i64::MAX)).contains(&period).then_some(period)
    }

    /// Whether a code stands for the period right behind the last one. Earlier versions prepared that
    /// partition for the series of the last one, and logged them with its code.
    pub fn is_code_behind_time(code: i64) -> bool {
        PartitionLength::ALL.into_iter().any(|length| code == length.of(i64::MAX).code() + 1)
    }

    /// Day number of the first day of the period with this number.
    fn first_day(self, number: i64) -> i64 {
        debug_assert!(number.abs() <= self.number_max(), "a number near those of instants");
        match self {
            PartitionLength::Day => number,
            PartitionLength::Week => number * 7 - EPOCH_WEEKDAY,
            PartitionLength::Month => {
                let month = u32::try_from(number.rem_euclid(12) + 1).expect("1 to 12");
                days_from_civil(1970 + number.div_euclid(12), month)
            }
            PartitionLength::Year => days_from_civil(1970 + number, 1),
        }
    }

    /// How long before the end of a partition the next one is made ready for its series. Whoever is
    /// active in that time is registered there, gone or not when it begins: so of a day it is less.
    pub fn rollover_ahead_ns(self) -> i64 {
        match self {
            PartitionLength::Day => NANOS_PER_HOUR,
            _ => 6 * NANOS_PER_HOUR,
        }
    }

    /// The largest number, and with a minus the smallest: all that an instant may fall into, with
    /// room to spare.
    const fn number_max(self) -> i64 {
        match self {
            PartitionLength::Day => 125_000,
            PartitionLength::Week => 18_000,
            PartitionLength::Month => 4_000,
            PartitionLength::Year => 400,
        }
    }

    /// What is added to numbers to make codes of them.
    const fn code_base(self) -> i64 {
        match self {
            PartitionLength::Month => 0,
            PartitionLength::Year => 10_000,
            PartitionLength::Week => 100_000,
            PartitionLength::Day => 1_000_000,
        }
    }

    /// The smallest and the largest code.
    const fn codes(self) -> (i64, i64) {
        (self.code_base() - self.number_max(), self.code_base() + self.number_max())
    }
}

// A code is of one length only.
const _: () = assert!(
    PartitionLength::Month.codes().1 < PartitionLength::Year.codes().0
        && PartitionLength::Year.codes().1 < PartitionLength::Week.codes().0
        && PartitionLength::Week.codes().1 < PartitionLength::Day.codes().0
);

impl fmt::Display for PartitionLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The time of a partition, UTC; the unit that retention drops. Ordered by time among those of one
/// length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period {
    length: PartitionLength,
    number: i32,
}

impl Period {
    /// How long it is.
    pub fn length(self) -> PartitionLength {
        self.length
    }

    /// What stands for it in files: for a month its number, for others one that is no month's.
    pub fn code(self) -> i64 {
        self.length.code_base() + i64::from(self.number)
    }

    /// The period of a code that comes from outside; `None` when it is none.
    pub fn from_code(code: i64) -> Option<Period> {
        let is_of = |length: &PartitionLength| {
            let (first, last) = length.codes();
            (first..=last).contains(&code)
        };
        let length = PartitionLength::ALL.into_iter().find(is_of)?;
        length.period(code - length.code_base())
    }

    /// The period after it; `None` after the last one that has an instant.
    pub fn next(self) -> Option<Period> {
        self.length.period(i64::from(self.number) + 1)
    }

    /// The period before it; `None` before the first one that has an instant.
    pub fn previous(self) -> Option<Period> {
        self.length.period(i64::from(self.number) - 1)
    }

    /// Whether it is this period, the one before it or the one after it.
    pub fn is_near(self, other: Period) -> bool {
        self.length == other.length && self.number.abs_diff(other.number) <= 1
    }

    /// All instants of the period (cut at what an `i64` of nanoseconds can say).
    #[inline]
    pub fn range(self) -> TimeRange {
        let number = i64::from(self.number);
        let start = self.length.first_day(number).saturating_mul(NANOS_PER_DAY);
        let end = self.length.first_day(number + 1).saturating_mul(NANOS_PER_DAY);
        TimeRange::new(start, if end == i64::MAX { end } else { end.saturating_sub(1) })
    }

    /// The directory's name.
    pub fn name(self) -> String {
        let first_day = self.length.first_day(i64::from(self.number));
        match self.length {
            PartitionLength::Day => {
                let (year, month) = civil_from_days(first_day);
                let day = first_day - days_from_civil(year, month) + 1;
                format!("{year:04}-{month:02}-{day:02}")
            }
            PartitionLength::Week => {
                // A week is of the year that its Thursday is of.
                let thursday = first_day + 3;
                let (year, _) = civil_from_days(thursday);
                format!("{year:04}-W{:02}", (thursday - days_from_civil(year, 1)) / 7 + 1)
            }
            PartitionLength::Month => {
                let (year, month) = civil_from_days(first_day);
                format!("{year:04}-{month:02}")
            }
            PartitionLength::Year => format!("{:04}", civil_from_days(first_day).0),
        }
    }

    /// The period that [`Period::name`] printed, or `None`.
    pub fn parse(name: &str) -> Option<Period> {
        let (year, rest) = (name.get(..4)?, name.get(4..)?);
        let year: i64 = year.parse().ok()?;
        let first_day = days_from_civil(year, 1);
        let parsed = match (rest.len(), rest.strip_prefix("-W"), rest.strip_prefix('-')) {
            (0, ..) => PartitionLength::Year.period(year - 1970),
            (4, Some(week), _) => {
                // The first week has the fourth of January.
                let first = week_of_day(first_day + 3);
                PartitionLength::Week.period(first + number(week)? - 1)
            }
            (3, None, Some(month)) => {
                PartitionLength::Month.period((year - 1970) * 12 + number(month)? - 1)
            }
            (6, None, Some(date)) => {
                let (month, day) = date.split_once('-')?;
                let month = u32::try_from(number(month)?).ok().filter(|m| (1..=12).contains(m))?;
                PartitionLength::Day.period(days_from_civil(year, month) + number(day)? - 1)
            }
            _ => None,
        };
        parsed.filter(|parsed| parsed.name() == name)
    }
}

/// A number of a period that some instant falls into.
#[inline]
fn narrow_number(number: i64) -> i32 {
    i32::try_from(number).expect("numbers of periods have 32 bits")
}

fn number(text: &str) -> Option<i64> {
    text.parse::<u8>().ok().map(i64::from)
}

fn week_of_day(days: i64) -> i64 {
    (days + EPOCH_WEEKDAY).div_euclid(7)
}

/// Days since the epoch of the first day of a month (1 to 12).
fn days_from_civil(year: i64, month: u32) -> i64 {
    debug_assert!((1..=12).contains(&month), "{month}");
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
    (year, u32::try_from(month).expect("months are 1 to 12"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_of_each_length_tile_all_of_time() {
        for length in PartitionLength::ALL {
            assert_eq!(PartitionLength::parse(length.word()), Some(length));
            let mut period = length.of(i64::MIN);
            let mut count = 0;
            while period < length.of(i64::MAX) {
                let range = period.range();
                assert_eq!((length.of(range.start), length.of(range.end)), (period, period));
                let name = period.name();
                assert_eq!((Period::parse(&name), period.length()), (Some(period), length));
                assert_eq!(Period::from_code(period.code()), Some(period), "{name}");
                let next = period.next().expect("there is a later instant");
                assert!(name < next.name(), "names sort by time: {name}");
                assert_eq!((next.range().start, next.previous()), (range.end + 1, Some(period)));
                assert!(next.is_near(period) && period.is_near(next) && period.is_near(period));
                period = next;
                count += 1;
            }
            assert!(count < length.number_max() * 2, "{count} {length}s");
        }
    }

    #[test]
    fn periods_that_no_instant_falls_in_are_none() {
        for name in
            ["1650-01", "1676", "1677-W37", "1677-09-20", "2262-04-12", "2262-05", "2290-W01"]
        {
            assert_eq!(Period::parse(name), None, "{name}");
        }
        for length in PartitionLength::ALL {
            let (first, last) = (length.of(i64::MIN), length.of(i64::MAX));
            assert_eq!((first.previous(), last.next()), (None, None));
            assert_eq!(Period::from_code(first.code() - 1), None);
            assert_eq!(Period::from_code(last.code() + 1), None);
            assert!(PartitionLength::is_code_behind_time(last.code() + 1));
            assert!(!PartitionLength::is_code_behind_time(last.code()));
            assert_eq!((first.range().start, last.range().end), (i64::MIN, i64::MAX));
        }
    }

    #[test]
    fn names_and_codes_are_those_of_the_documents() {
        #[track_caller]
        fn check(timestamp: i64, expected: [(&str, i64); 4]) {
            for (length, (name, code)) in PartitionLength::ALL.into_iter().zip(expected) {
                let period = length.of(timestamp);
                assert_eq!((period.name().as_str(), period.code()), (name, code));
            }
        }
        let names = [("1970-01-01", 1_000_000), ("1970-W01", 100_000)];
        check(0, [names[0], names[1], ("1970-01", 0), ("1970", 10_000)]);
        // New Year's Eve of 2024, a Tuesday, is in the first week of 2025.
        let time = (20_088 * 24 + 12) * NANOS_PER_HOUR;
        let names = [("2024-12-31", 1_020_088), ("2025-W01", 102_870)];
        check(time, [names[0], names[1], ("2024-12", 659), ("2024", 10_054)]);
        // The first of January 2021, a Friday, is in the last week of 2020, which has 53.
        let names = [("2021-01-01", 1_018_628), ("2020-W53", 102_661)];
        check(18_628 * NANOS_PER_DAY, [names[0], names[1], ("2021-01", 612), ("2021", 10_051)]);
        let names = [("1677-09-21", 893_248), ("1677-W38", 84_750)];
        check(i64::MIN, [names[0], names[1], ("1677-09", -3_508), ("1677", 9_707)]);
    }

    #[test]
    fn what_no_period_is_called_is_none() {
        let beyond = ["99999999999-01", "178958970-01", "-2147483648-01", "9999-12", "9999"];
        let bad = ["", "2016-13", "2016-1", "x-01", "2016-00", "201é", "2016-", "+016", "20160"];
        let weeks = ["2024-W53", "2024-W00", "2024-W7", "2024-w07", "2024-W+7", "2024W07"];
        let days =
            ["2023-02-29", "2024-02-30", "2024-10-5", "2024-10-00", "2024-13-01", "2024-1-05"];
        for bad in bad.into_iter().chain(beyond).chain(weeks).chain(days) {
            assert_eq!(Period::parse(bad), None, "{bad}");
        }
        for code in [4_001, 9_599, 10_401, 81_999, 118_001, 874_999, 1_125_001, i64::MIN, i64::MAX]
        {
            assert_eq!(Period::from_code(code), None, "{code}");
        }
    }
}
