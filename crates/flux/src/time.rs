//! Durations and moments as Flux writes them, and windows of time.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Months, which have no length, and nanoseconds, with one sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Duration {
    pub(crate) months: i64,
    pub(crate) nanos: i64,
}

const SECOND: i64 = 1_000_000_000;
const UNITS: &[(&str, i64)] = &[
    ("w", 604_800 * SECOND),
    ("d", 86_400 * SECOND),
    ("h", 3_600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ns", 1),
];

/// What stands for "no end": `inf`.
pub(crate) const INFINITE: Duration = Duration { months: 0, nanos: i64::MAX };

impl Duration {
    /// So many nanoseconds.
    pub(crate) fn of_nanos(nanos: i64) -> Duration {
        Duration { months: 0, nanos }
    }

    /// `1h30m`, `1mo` and the like.
    pub(crate) fn parse(text: &str) -> Option<Duration> {
        let mut total = Duration::default();
        let mut rest = text;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit())?;
            let count: i64 = rest[..digits].parse().ok()?;
            rest = &rest[digits..];
            let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            total = total.plus(Duration::of_unit(count, &rest[..end])?)?;
            rest = &rest[end..];
        }
        (!text.is_empty()).then_some(total)
    }

    /// So many of a unit.
    pub(crate) fn of_unit(count: i64, unit: &str) -> Option<Duration> {
        match unit {
            "y" => Some(Duration { months: count.checked_mul(12)?, nanos: 0 }),
            "mo" => Some(Duration { months: count, nanos: 0 }),
            unit => {
                let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
                Some(Duration::of_nanos(count.checked_mul(*size)?))
            }
        }
    }

    pub(crate) fn plus(self, other: Duration) -> Option<Duration> {
        let months = self.months.checked_add(other.months)?;
        Some(Duration { months, nanos: self.nanos.checked_add(other.nanos)? })
    }

    pub(crate) fn times(self, factor: i64) -> Option<Duration> {
        let months = self.months.checked_mul(factor)?;
        Some(Duration { months, nanos: self.nanos.checked_mul(factor)? })
    }

    pub(crate) fn negated(self) -> Duration {
        Duration { months: self.months.saturating_neg(), nanos: self.nanos.saturating_neg() }
    }

    pub(crate) fn is_zero(self) -> bool {
        self.months == 0 && self.nanos == 0
    }

    /// The moment that much later.
    pub(crate) fn after(self, time: i64) -> i64 {
        let start = match self.months {
            0 => time,
            months => add_months(time, months),
        };
        start.saturating_add(self.nanos)
    }

    /// As Flux prints it.
    pub(crate) fn words(self) -> String {
        let mut out = String::new();
        let is_negative = self.months < 0 || self.nanos < 0;
        if is_negative {
            out.push('-');
        }
        let (months, mut nanos) = (self.months.unsigned_abs(), self.nanos.unsigned_abs());
        for (name, count) in [("y", months / 12), ("mo", months % 12)] {
            if count != 0 {
                out.push_str(&format!("{count}{name}"));
            }
        }
        for (name, size) in UNITS.iter().filter(|(name, _)| name.is_ascii()) {
            let count = nanos / size.unsigned_abs();
            if count != 0 {
                out.push_str(&format!("{count}{name}"));
                nanos %= size.unsigned_abs();
            }
        }
        if self.is_zero() {
            out.push_str("0ns");
        }
        out
    }
}

/// Nanoseconds of RFC 3339, or of a date.
pub(crate) fn parse_time(text: &str) -> Option<i64> {
    influxql::parse_time(text, None)
}

/// A moment in UTC as the calendar says it.
fn civil(time: i64) -> Option<DateTime> {
    let moment = jiff::Timestamp::from_nanosecond(i128::from(time)).ok()?;
    Some(TimeZone::UTC.to_datetime(moment))
}

fn nanos_of(civil: DateTime) -> Option<i64> {
    let moment = TimeZone::UTC.to_timestamp(civil).ok()?;
    i64::try_from(moment.as_nanosecond()).ok()
}

/// The same day and time so many months later; the last day of a shorter month.
fn add_months(time: i64, months: i64) -> i64 {
    let end = if months < 0 { i64::MIN } else { i64::MAX };
    let span = jiff::Span::new().try_months(months);
    let later = span.ok().and_then(|span| civil(time)?.checked_add(span).ok());
    later.and_then(nanos_of).unwrap_or(end)
}

/// Months since the year 0.
fn month_number(time: i64) -> Option<i64> {
    let civil = civil(time)?;
    Some(i64::from(civil.year()) * 12 + i64::from(civil.month()) - 1)
}

/// Whether day and time of `one` come before those of `other`, whatever their months.
fn is_earlier_in_month(one: i64, other: i64) -> bool {
    let place = |time| civil(time).map(|civil| (civil.day(), civil.time()));
    place(one) < place(other)
}

/// One window after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows<'z> {
    pub(crate) every: Duration,
    pub(crate) period: Duration,
    pub(crate) offset: Duration,
    /// The zone whose midnights count, if it is not UTC.
    pub(crate) zone: Option<&'z TimeZone>,
}

impl Windows<'_> {
    /// What is added to UTC in the zone at that time.
    fn shift(&self, time: i64) -> i64 {
        let Some(zone) = self.zone else { return 0 };
        let moment = jiff::Timestamp::from_nanosecond(i128::from(time));
        moment.map_or(0, |moment| i64::from(zone.to_offset(moment).seconds()) * SECOND)
    }

    /// UTC of a local time.
    fn utc_of(&self, local: i64) -> i64 {
        match self.zone {
            None => local,
            Some(_) => {
                let guess = local.saturating_sub(self.shift(local));
                local.saturating_sub(self.shift(guess))
            }
        }
    }

    /// Of windows of months: the first one since 1970, the month that it is in, and how many months
    /// they have. All others are so many months from it, so that those of the 31st begin on the last
    /// days of shorter months.
    fn months(&self) -> Option<(i64, i64, i64)> {
        let zero = self.offset.after(0);
        (self.every.months != 0)
            .then(|| Some((zero, month_number(zero)?, self.every.months.max(1))))
            .flatten()
    }

    /// The window of months that begins `count` windows behind the one that begins at `local`.
    fn months_from(&self, local: i64, count: i64) -> Option<i64> {
        let (zero, first, every) = self.months()?;
        let idx = (month_number(local)? - first).div_euclid(every) + count;
        Some(add_months(zero, idx * every))
    }

    /// The beginning of the last window that begins at or before `time`.
    pub(crate) fn start_of(&self, time: i64) -> i64 {
        let local = time.saturating_add(self.shift(time));
        let start = match self.months() {
            None => {
                let every = self.every.nanos.max(1);
                let base = self.offset.negated().after(local);
                self.offset.after(base.saturating_sub(base.rem_euclid(every)))
            }
            Some((zero, first, every)) => {
                let before = i64::from(is_earlier_in_month(local, zero));
                let number = month_number(local).map(|number| number - before - first);
                number.map_or(local, |number| add_months(zero, number.div_euclid(every) * every))
            }
        };
        self.utc_of(start)
    }

    /// The beginning of the window behind one that begins at `start`.
    pub(crate) fn next(&self, start: i64) -> i64 {
        let local = start.saturating_add(self.shift(start));
        let next = self.months_from(local, 1).unwrap_or_else(|| self.every.after(local));
        self.utc_of(next).max(start.saturating_add(1))
    }

    /// The beginning of the window before.
    pub(crate) fn previous(&self, start: i64) -> i64 {
        let local = start.saturating_add(self.shift(start));
        let before = self.months_from(local, -1);
        let before = before.unwrap_or_else(|| self.every.negated().after(local));
        self.utc_of(before).min(start.saturating_sub(1))
    }

    /// The end of a window.
    pub(crate) fn stop_of(&self, start: i64) -> i64 {
        let local = start.saturating_add(self.shift(start));
        self.utc_of(self.period.after(local))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let duration = Duration::parse("1y2mo1w1h30m").expect("a duration");
        assert_eq!(duration.words(), "1y2mo1w1h30m");
        assert_eq!(duration.negated().words(), "-1y2mo1w1h30m");
        assert_eq!(Duration::parse("1q"), None);
        assert_eq!(Duration::default().words(), "0ns");
    }

    #[test]
    fn windows_of_months_begin_with_them() {
        let at = |text: &str| parse_time(text).expect("a time");
        let month = Duration { months: 1, nanos: 0 };
        let windows =
            Windows { every: month, period: month, offset: Duration::default(), zone: None };
        let start = windows.start_of(at("2024-02-29T12:00:00Z"));
        assert_eq!(start, at("2024-02-01T00:00:00Z"));
        assert_eq!(windows.next(start), at("2024-03-01T00:00:00Z"));
        assert_eq!(windows.previous(start), at("2024-01-01T00:00:00Z"));
        // InfluxDB's engine: windows of the 31st begin on the 30th where there is none, and what is
        // between the end of one and the beginning of the next is in no window.
        let day = Duration::of_nanos(86_400 * SECOND);
        let ends = Windows { offset: day.negated(), ..windows };
        let start = ends.start_of(at("2020-10-29T00:00:00Z"));
        assert_eq!(start, at("2020-09-30T00:00:00Z"));
        assert_eq!(ends.stop_of(start), at("2020-10-30T00:00:00Z"));
        assert_eq!(ends.next(start), at("2020-10-31T00:00:00Z"));
        assert_eq!(ends.start_of(at("2020-09-30T12:00:00Z")), at("2020-08-31T00:00:00Z"));
        let zone = TimeZone::get("Europe/Berlin").expect("a zone");
        let day = Duration::of_nanos(86_400 * SECOND);
        let windows =
            Windows { every: day, period: day, offset: Duration::default(), zone: Some(&zone) };
        // The day on which summer time begins has 23 hours.
        let start = windows.start_of(at("2024-03-31T12:00:00Z"));
        assert_eq!(start, at("2024-03-30T23:00:00Z"));
        assert_eq!(windows.next(start), at("2024-03-31T22:00:00Z"));
    }
}
