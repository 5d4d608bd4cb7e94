//! Days and times as text, for messages that name a key.

use std::fmt;

/// Microseconds of a day.
pub(crate) const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Year, month and day of a day since 1970, in the calendar that goes on for ever either way.
fn civil(days: i64) -> (i64, i64, i64) {
    // Eras of 400 years that begin in March, so that the leap day is a year's last.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// `2024-02-29`
pub(crate) fn write_date(f: &mut fmt::Formatter<'_>, days: i64) -> fmt::Result {
    if days == i64::from(i32::MAX) || days == i64::from(i32::MIN) {
        return f.write_str(if days < 0 { "-infinity" } else { "infinity" });
    }
    let (year, month, day) = civil(days);
    write!(f, "{year:04}-{month:02}-{day:02}")
}

/// `13:37:00.25`
pub(crate) fn write_time(f: &mut fmt::Formatter<'_>, micros: i64) -> fmt::Result {
    let (seconds, rest) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    write!(f, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    match rest {
        0 => Ok(()),
        rest => f.write_str(format!(".{rest:06}").trim_end_matches('0')),
    }
}

/// `2024-02-29 13:37:00.25`
pub(crate) fn write_timestamp(f: &mut fmt::Formatter<'_>, micros: i64) -> fmt::Result {
    if micros == i64::MAX || micros == i64::MIN {
        return f.write_str(if micros < 0 { "-infinity" } else { "infinity" });
    }
    write_date(f, micros.div_euclid(MICROS_PER_DAY))?;
    f.write_str(" ")?;
    write_time(f, micros.rem_euclid(MICROS_PER_DAY))
}

#[cfg(test)]
mod tests {
    use crate::Datum;

    #[track_caller]
    fn check(datum: Datum, text: &str) {
        assert_eq!(datum.to_string(), text);
    }

    #[test]
    fn moments_are_shown() {
        check(Datum::Date(0), "1970-01-01");
        check(Datum::Date(19_782), "2024-02-29");
        check(Datum::Date(-1), "1969-12-31");
        check(Datum::Date(i32::MAX), "infinity");
        check(Datum::Date(i32::MIN + 1), "-5877641-06-24");
        check(Datum::Timestamptz(1_709_213_820_250_000), "2024-02-29 13:37:00.25+00");
        check(Datum::Timestamp(i64::MIN), "-infinity");
        check(Datum::Timestamp(-1), "1969-12-31 23:59:59.999999");
        check(Datum::Time(86_400_000_000), "24:00:00");
        check(Datum::Array(vec![Datum::Int4(1), Datum::Null]), "{1,null}");
        check(Datum::Bytea(vec![0, 255]), "\\x00ff");
    }
}
