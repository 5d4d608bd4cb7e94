//! Days and moments as text: RFC 3339 and back, UTC only.

use jiff::civil::Date;
use model::Timestamp;

/// The years that days may be of: those that timestamps reach.
const YEARS: std::ops::Range<i16> = 1970..2263;

/// `YYYY-MM-DDTHH:MM:SS.nnnnnnnnnZ`, without trailing zeros behind the point.
pub fn rfc3339(timestamp: Timestamp) -> String {
    let moment = jiff::Timestamp::from_nanosecond(i128::from(timestamp));
    moment.expect("nanoseconds of 64 bits end in 2262").to_string()
}

/// `YYYY-MM-DD`, from 1970 to 2262, to a day number since 1970.
pub fn parse_day(text: &str) -> Option<i32> {
    let mut pieces = text.split('-');
    let year = pieces.next()?.parse().ok().filter(|year| YEARS.contains(year))?;
    let (month, day) = (pieces.next()?.parse().ok()?, pieces.next()?.parse().ok()?);
    let date = Date::new(year, month, day).ok()?;
    i32::try_from(date.duration_since(Date::constant(1970, 1, 1)).as_hours() / 24).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
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
        for (text, day) in [
            ("1970-01-01", 0),
            ("1970-03-01", 59),
            ("1971-01-01", 365),
            ("2024-02-29", 19_782),
            ("2024-3-1", 19_783),
            ("2262-04-11", 106_751),
        ] {
            assert_eq!(parse_day(text), Some(day), "{text}");
        }
        for bad in ["", "2024", "2024-02-30", "2024-13-01", "x-y-z", "9999-01-01"] {
            assert_eq!(parse_day(bad), None, "{bad}");
        }
    }
}
