//! What lies between two times, in years, months and days, and intervals put in order.

use crate::functions::calendar::fields::{Unit, unknown_unit};
use crate::types::error::SqlError;
use crate::types::text::shown::Length;
use crate::types::time::zones::clock;
use jiff::civil::{Date, DateTime};

const DAY_MICROS: i64 = 86_400_000_000;
const MONTH_DAYS: i32 = 30;

/// Microseconds of a day until a clock says so.
fn time_of_day(clock: DateTime) -> i64 {
    let seconds =
        i64::from(clock.hour()) * 3600 + i64::from(clock.minute()) * 60 + i64::from(clock.second());
    seconds * 1_000_000 + i64::from(clock.subsec_nanosecond() / 1000)
}

fn days_of_month(year: i16, month: i8) -> i32 {
    Date::new(year, month, 1).map_or(31, |date| i32::from(date.days_in_month()))
}

/// `age`: fields of the later one less those of the earlier one, where what is missing is borrowed from the next
/// field; days from the month of the earlier one. None past all calendars.
pub fn between(later: i64, earlier: i64) -> Option<Length> {
    let is_negative = later < earlier;
    let (high, low) = if is_negative { (earlier, later) } else { (later, earlier) };
    let (high, low) = (clock(high)?, clock(low)?);
    let mut micros = time_of_day(high) - time_of_day(low);
    let mut days = i32::from(high.day()) - i32::from(low.day());
    let mut months = i32::from(high.month()) - i32::from(low.month());
    let mut years = i32::from(high.year()) - i32::from(low.year());
    if micros < 0 {
        micros += DAY_MICROS;
        days -= 1;
    }
    while days < 0 {
        days += days_of_month(low.year(), low.month());
        months -= 1;
    }
    while months < 0 {
        months += 12;
        years -= 1;
    }
    let length = Length { months: years * 12 + months, days, micros };
    Some(if is_negative {
        Length { months: -length.months, days: -days, micros: -micros }
    } else {
        length
    })
}

/// `justify_hours`: 24 hours are a day.
pub fn hours(length: Length) -> Length {
    let Length { months, days, micros } = length;
    let whole = i32::try_from(micros / DAY_MICROS).unwrap_or(i32::MAX);
    let (mut days, mut micros) = (days.saturating_add(whole), micros % DAY_MICROS);
    if 0 < days && micros < 0 {
        (days, micros) = (days - 1, micros + DAY_MICROS);
    } else if days < 0 && 0 < micros {
        (days, micros) = (days + 1, micros - DAY_MICROS);
    }
    Length { months, days, micros }
}

/// `justify_days`: 30 days are a month.
pub fn days(length: Length) -> Length {
    let Length { months, days, micros } = length;
    let (mut months, mut days) = (months.saturating_add(days / MONTH_DAYS), days % MONTH_DAYS);
    if 0 < months && days < 0 {
        (months, days) = (months - 1, days + MONTH_DAYS);
    } else if months < 0 && 0 < days {
        (months, days) = (months + 1, days - MONTH_DAYS);
    }
    Length { months, days, micros }
}

/// `justify_interval`: both, with one sign for all of it.
pub fn both(length: Length) -> Length {
    let Length { mut months, mut days, micros } = length;
    let whole = i32::try_from(micros / DAY_MICROS).unwrap_or(i32::MAX);
    days = days.saturating_add(whole);
    let mut micros = micros % DAY_MICROS;
    months = months.saturating_add(days / MONTH_DAYS);
    days %= MONTH_DAYS;
    if 0 < months && (days < 0 || days == 0 && micros < 0) {
        (months, days) = (months - 1, days + MONTH_DAYS);
    } else if months < 0 && (0 < days || days == 0 && 0 < micros) {
        (months, days) = (months + 1, days - MONTH_DAYS);
    }
    if 0 < days && micros < 0 {
        (days, micros) = (days - 1, micros + DAY_MICROS);
    } else if days < 0 && 0 < micros {
        (days, micros) = (days + 1, micros - DAY_MICROS);
    }
    Length { months, days, micros }
}

/// `date_trunc` of an interval.
///
/// # Errors
/// When it has no such unit.
pub fn truncated(unit: &str, length: Length) -> Result<Length, SqlError> {
    let Length { months, days, micros } = length;
    let of_months = |step: i32| Length { months: months / step * step, days: 0, micros: 0 };
    let of_micros = |step: i64| Length { months, days, micros: micros / step * step };
    let known = Unit::named(unit).ok_or_else(|| unknown_unit(unit, "interval"))?;
    Ok(match known {
        Unit::Millennium => of_months(12_000),
        Unit::Century => of_months(1200),
        Unit::Decade => of_months(120),
        Unit::Year => of_months(12),
        Unit::Quarter => of_months(3),
        Unit::Month => of_months(1),
        Unit::Day => Length { months, days, micros: 0 },
        Unit::Hour => of_micros(3_600_000_000),
        Unit::Minute => of_micros(60_000_000),
        Unit::Second => of_micros(1_000_000),
        Unit::Milliseconds => of_micros(1000),
        Unit::Microseconds => length,
        _ => {
            let words = format!("unit \"{unit}\" not supported for type interval");
            return Err(SqlError::unsupported(words));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::time::instants::clock_of;

    #[test]
    fn ages_are_those_of_postgresql() {
        let check = |later: &str, earlier: &str, months: i32, days: i32, micros: i64| {
            let found = between(clock_of(later).unwrap(), clock_of(earlier).unwrap());
            assert_eq!(found, Some(Length { months, days, micros }), "{later} {earlier}");
        };
        check("2001-04-10", "1957-06-13", 43 * 12 + 9, 27, 0);
        check("1957-06-13", "2001-04-10", -(43 * 12 + 9), -27, 0);
        check("2024-03-01", "2024-01-31 12:00", 1, 0, 43_200_000_000);
        check("2024-02-29", "2024-02-29", 0, 0, 0);
        assert_eq!(between(i64::MAX, 0), None);
    }

    #[test]
    fn intervals_are_put_in_order() {
        let length = |months, days, micros| Length { months, days, micros };
        let hour = 3_600_000_000;
        assert_eq!(hours(length(0, 0, 30 * hour)), length(0, 1, 6 * hour));
        assert_eq!(hours(length(0, 1, -hour)), length(0, 0, 23 * hour));
        assert_eq!(days(length(0, 40, 0)), length(1, 10, 0));
        assert_eq!(both(length(1, 0, -hour)), length(0, 29, 23 * hour));
        assert_eq!(truncated("hour", length(0, 2, 13_240_000_000)), Ok(length(0, 2, 3 * hour)));
        assert_eq!(truncated("years", length(25, 2, 1)), Ok(length(24, 0, 0)));
        let code = |unit| truncated(unit, length(0, 0, 0)).map_err(|error| error.code);
        assert_eq!((code("week"), code("moon")), (Err("0A000"), Err("22023")));
    }
}
