//! Days and moments as text: RFC 3339 and back, UTC only.

use model::Timestamp;
use model::sample::{NANOS_PER_DAY, NANOS_PER_SECOND};

/// Year, month and day of a day number since 1970, by counting from a 1 March: then leap days come last.
pub fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468; // days from 0000-03-01 to 1970-01-01
    let era = shifted.div_euclid(146_097); // days in 400 years
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// `YYYY-MM-DDTHH:MM:SS.nnnnnnnnnZ`, without trailing zeros behind the point.
pub fn rfc3339(timestamp: Timestamp) -> String {
    let (year, month, day) = civil(timestamp.div_euclid(NANOS_PER_DAY));
    let nanos = timestamp.rem_euclid(NANOS_PER_DAY);
    let seconds = nanos / NANOS_PER_SECOND;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = format!("{:09}", nanos % NANOS_PER_SECOND);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{point}{fraction}Z")
}

/// `YYYY-MM-DD`, from 1970 to 2262, to a day number since 1970.
pub fn parse_day(text: &str) -> Option<i32> {
    let mut pieces = text.split('-').map(|piece| piece.parse::<i64>().ok());
    let mut next = || pieces.next().flatten();
    let wanted = (next()?, next()?, next()?);
    let (year, _, _) = wanted;
    if !(1970..2263).contains(&year) {
        return None;
    }
    // The year's first day is within two days of the guess.
    let guess = (year - 1970) * 365 + (year - 1969) / 4;
    let day = (guess - 2..guess + 400).find(|number| civil(*number) == wanted)?;
    i32::try_from(day).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(19_782), (2024, 2, 29));
        assert_eq!(rfc3339(1_456_790_399_123_000_000), "2016-02-29T23:59:59.123Z");
        assert_eq!(rfc3339(-1), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        for timestamp in [i64::MIN + 2, -1, 0, 1, 1_456_790_399_123_456_789, i64::MAX] {
            let text = rfc3339(timestamp);
            assert_eq!(wire::params::parse_time(&text, 0).ok(), Some(timestamp), "{text}");
        }
    }

    #[test]
    fn days() {
        for day in [0, 59, 365, 19_782, 19_783, 20_000, 60_000] {
            let (year, month, date) = civil(i64::from(day));
            let text = format!("{year:04}-{month:02}-{date:02}");
            assert_eq!(parse_day(&text), Some(day), "{text}");
        }
        for bad in ["", "2024", "2024-02-30", "2024-13-01", "x-y-z", "9999-01-01"] {
            assert_eq!(parse_day(bad), None, "{bad}");
        }
    }
}
