//! Texts that are times, as PostgreSQL reads them (<https://www.postgresql.org/docs/15/datatype-datetime.html>):
//! those of ISO 8601, with or without seconds, and a zone that says how far from UTC it is.

use crate::types::error::SqlError;
use crate::types::time::zones::Zone;
use jiff::civil::{Date, DateTime, Time};

/// Microseconds of a second.
const MICROS: i64 = 1_000_000;
/// Microseconds of a day.
const DAY: i64 = 86_400 * MICROS;
/// Digits of the year of a date, however far away.
const YEAR_DIGITS_MAX: usize = 8;
/// Digits behind the point of a second that are kept.
const DIGITS: usize = 6;

/// The instant that a text is, in microseconds since 1970; none when it is no such text. Without a
/// zone it is one of UTC.
pub fn instant_of(text: &str) -> Option<i64> {
    let (clock, offset) = moment(text)?;
    clock.checked_sub(offset)
}

/// The date and time of day that a text is, whatever its zone.
pub fn clock_of(text: &str) -> Option<i64> {
    moment(text).map(|(clock, _)| clock)
}

/// The time of day that a text is, in microseconds since midnight; none when it is no such text. A date before it, and
/// a zone behind it, are passed over.
pub fn time_of_day(text: &str) -> Option<i64> {
    let plain = || {
        let at = text.rfind(['+', '-'])?;
        let (clock, zone) = text.split_at(at);
        offset_of(zone.trim()).and_then(|_| plain_time(clock))
    };
    let dated =
        || clock_of(text).filter(|_| text.contains(':')).map(|micros| micros.rem_euclid(DAY));
    plain_time(text).or_else(plain).or_else(dated)
}

/// As [`time_of_day`], of a time alone.
fn plain_time(text: &str) -> Option<i64> {
    let text = text.trim().to_ascii_lowercase();
    let half = ["am", "pm"].into_iter().find(|one| text.ends_with(one));
    let clock = half.and_then(|half| text.strip_suffix(half)).unwrap_or(&text).trim_end();
    if half.is_none() && clock == "24:00" || clock == "24:00:00" {
        return Some(24 * 3600 * MICROS);
    }
    let spread = spread_digits(clock);
    let (time, micros) = time_of(spread.as_deref().unwrap_or(clock))?;
    let is_wrong = half.is_some() && !(1..=12).contains(&time.hour());
    let time = if is_wrong { return None } else { in_half(time, half)? };
    let seconds = i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60;
    Some((seconds + i64::from(time.second())) * MICROS + micros)
}

/// A time of the half of the day that `am` or `pm` says.
fn in_half(time: Time, half: Option<&str>) -> Option<Time> {
    let hour = match (half, time.hour()) {
        (None, hour) => hour,
        (Some("am"), 12) => 0,
        (Some("pm"), hour @ 1..12) => hour + 12,
        (Some(_), hour @ 1..=12) => hour,
        (Some(_), _) => return None,
    };
    Time::new(hour, time.minute(), time.second(), 0).ok()
}

/// The half of the day at the beginning of a text, and the rest.
fn half_of_day(text: &str) -> (Option<&'static str>, &str) {
    let trimmed = text.trim_start();
    for half in ["am", "pm"] {
        if let Some((begun, rest)) = trimmed.split_at_checked(2)
            && begun.eq_ignore_ascii_case(half)
            && !rest.starts_with(|one: char| one.is_ascii_alphabetic())
        {
            return (Some(half), &trimmed[2..]);
        }
    }
    (None, text)
}

/// A date with the name of its month, `5 January 2024`, `Jan 5, 2024` or `08-Jan-1999`, and what follows it.
fn date_by_name(text: &str) -> Option<(Date, &str)> {
    let mut words = words(text);
    let mut first = words.next()?;
    if is_one_of(first.0, &DAYS) {
        first = words.next()?;
    }
    let (second, third) = (words.next()?, words.next()?);
    let month_of = |word: &str| MONTHS.iter().position(|name| is_one_of(word, &[name]));
    let (month, day, year) = match (month_of(first.0), month_of(second.0)) {
        (Some(month), None) => (month, second.0, third.0),
        (None, Some(month)) if first.0.len() == 4 => (month, third.0, first.0),
        (None, Some(month)) => (month, first.0, third.0),
        _ => return None,
    };
    let year: i16 = number(year).filter(|number| year.len() == 4 && *number != 0)?;
    let month = i8::try_from(month + 1).ok()?;
    let date = Date::new(year, month, number(day).filter(|_| day.len() <= 2)?).ok()?;
    Some((date, &text[third.1..]))
}

/// Names of months and days, which may be short: the first three letters, and `sept`.
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

fn is_one_of(word: &str, names: &[&str]) -> bool {
    let word = word.to_ascii_lowercase();
    let is_one = |name: &&str| **name == word || name.get(..3) == Some(word.as_str());
    word == "sept" && names.contains(&"september") || names.iter().any(is_one)
}

/// Runs of letters and of digits that spaces, commas and hyphens separate, and where they end.
fn words(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &text[at..];
        let begin = at + rest.find(|one: char| !" ,-".contains(one))?;
        let len = text[begin..].find(|one: char| !one.is_ascii_alphanumeric());
        at = begin + len.unwrap_or(text.len() - begin);
        (begin < at).then(|| (&text[begin..at], at))
    })
}

/// A time of day with colons, of one without: `040506` or `0405`.
fn spread_digits(clock: &str) -> Option<String> {
    let (digits, fraction) = match clock.split_once('.') {
        Some((digits, fraction)) => (digits, format!(".{fraction}")),
        None => (clock, String::new()),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match digits.len() {
        4 => Some(format!("{}:{}", &digits[..2], &digits[2..])),
        6 => Some(format!("{}:{}:{}{fraction}", &digits[..2], &digits[2..4], &digits[4..])),
        _ => None,
    }
}

/// Date and time of day, as if they were of UTC, and how far their zone is ahead of it, both in
/// microseconds.
fn moment(text: &str) -> Option<(i64, i64)> {
    let text = text.trim();
    match text.to_ascii_lowercase().as_str() {
        "epoch" => return Some((0, 0)),
        "infinity" => return Some((i64::MAX, 0)),
        "-infinity" => return Some((i64::MIN, 0)),
        _ => {}
    }
    let (date, rest) = match date_by_name(text) {
        Some((date, rest)) => (date, rest.trim()),
        None => {
            let end = text.find(['T', 't', ' ']).unwrap_or(text.len());
            let (date, rest) = text.split_at(end);
            (date_of(date)?, rest.trim_start_matches(['T', 't']).trim())
        }
    };
    let (time, zone) = match rest.find(|one: char| !one.is_ascii_digit() && !":.".contains(one)) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (half, zone) = half_of_day(zone);
    let (time, micros) = match time {
        "" => (Time::midnight(), 0),
        time => {
            let spread = spread_digits(time);
            let (time, micros) = time_of(spread.as_deref().unwrap_or(time))?;
            (in_half(time, half)?, micros)
        }
    };
    let clock = DateTime::from_parts(date, time);
    let epoch = DateTime::from_parts(Date::constant(1970, 1, 1), Time::midnight());
    let whole = clock.duration_since(epoch).as_secs().checked_mul(MICROS)?;
    let clock = whole.checked_add(micros)?;
    let zone = zone.trim();
    Some((clock, offset_of(zone).or_else(|| offset_by_name(zone, clock))?))
}

/// Whether a text looks like a zone's name: `Nowhere/Town`.
fn is_zone_name(zone: &str) -> bool {
    let zone = zone.trim();
    let is_letter = |one: char| one.is_ascii_alphabetic() || "/_-".contains(one);
    zone.contains('/')
        && zone.starts_with(|one: char| one.is_ascii_alphabetic())
        && zone.chars().all(is_letter)
}

/// The error of a text that is no time: a field that is too large, or a text that has no such fields.
pub fn wrong_time(text: &str, type_name: &str) -> SqlError {
    let is_number = |one: &str, most: usize| {
        let digits = one.split('.').next().unwrap_or_default();
        (1..=most).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_field = |one: &str| is_number(one, 4);
    let is_part = |one: &str| is_number(one, YEAR_DIGITS_MAX);
    let trimmed = text.trim();
    let end = trimmed.find(['T', 't', ' ']).unwrap_or(trimmed.len());
    let (day, clock) = match trimmed.split_at(end) {
        (clock, "") if !clock.contains(['-', '/']) => ("", clock),
        (day, clock) => (day, clock.trim_start_matches(['T', 't', ' '])),
    };
    let zone_start = clock.find(|one: char| !one.is_ascii_digit() && !":.".contains(one));
    let (clock, zone) = clock.split_at(zone_start.unwrap_or(clock.len()));
    let separator = if day.contains('/') { '/' } else { '-' };
    let parts = || day.split(separator);
    let is_day = day.is_empty() || parts().count() == 3 && parts().all(is_part);
    let count = clock.split(':').count();
    let is_clock = clock.is_empty() || (2..=3).contains(&count) && clock.split(':').all(is_field);
    let has_fields = is_day && is_clock && !(day.is_empty() && clock.is_empty());
    let is_shift = zone.starts_with(['+', '-'])
        && zone.len() <= 3
        && zone[1..].bytes().all(|byte| byte.is_ascii_digit());
    match zone.is_empty() {
        true if has_fields => {
            SqlError::new("22008", format!("date/time field value out of range: \"{text}\""))
        }
        false if has_fields && is_zone_name(zone) => {
            let words = format!("time zone \"{}\" not recognized", zone.trim().to_lowercase());
            SqlError::new("22023", words)
        }
        false if has_fields && is_shift => {
            SqlError::new("22009", format!("time zone displacement out of range: \"{text}\""))
        }
        _ => {
            SqlError::new("22007", format!("invalid input syntax for type {type_name}: \"{text}\""))
        }
    }
}

/// A date as `year-month-day` or `month/day/year`; there is no year zero.
fn date_of(text: &str) -> Option<Date> {
    if text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let year: i16 = number(&text[..4]).filter(|year| *year != 0)?;
        return Date::new(year, number(&text[4..6])?, number(&text[6..])?).ok();
    }
    let separator = if text.contains('/') { '/' } else { '-' };
    let parts: Vec<&str> = text.split(separator).collect();
    let (year, month, day) = match (separator, parts.as_slice()) {
        ('-', [year, month, day]) => (year, month, day),
        ('/', [year, month, day]) if year.len() == 4 => (year, month, day),
        ('/', [month, day, year]) => (year, month, day),
        _ => return None,
    };
    let year: i16 = number(year).filter(|number| year.len() == 4 && *number != 0)?;
    Date::new(year, number(month)?, number(day)?).ok()
}

/// The day that a text is, counted from 1970, whatever its time of day; none when it is no such text.
pub fn date_of_text(text: &str) -> Option<i32> {
    let zoneless = || {
        let (date, zone) = text.trim().split_at(text.trim().find('+')?);
        offset_of(zone).and_then(|_| clock_of(date))
    };
    let micros = clock_of(text).or_else(zoneless);
    let micros = micros.filter(|micros| ![i64::MIN, i64::MAX].contains(micros))?;
    i32::try_from(micros.div_euclid(DAY)).ok()
}

/// A time of day to the second, and the microseconds that are left.
fn time_of(text: &str) -> Option<(Time, i64)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let parts: Vec<&str> = whole.split(':').collect();
    let (hour, minute, second) = match parts.as_slice() {
        [hour, minute] if fraction.is_empty() => (hour, minute, "0"),
        [hour, minute, second] => (hour, minute, *second),
        _ => return None,
    };
    let time = Time::new(number(hour)?, number(minute)?, number(second)?, 0).ok()?;
    let is_read = fraction.bytes().all(|byte| byte.is_ascii_digit());
    let mut digits = fraction.bytes().chain(std::iter::repeat(b'0'));
    let micros =
        digits.by_ref().take(DIGITS).fold(0, |all, byte| all * 10 + i64::from(byte - b'0'));
    // To the nearest.
    let is_more = digits.next().is_some_and(|byte| b'5' <= byte);
    is_read.then_some((time, micros + i64::from(is_more)))
}

/// How far a zone is ahead of UTC, in microseconds.
fn offset_of(zone: &str) -> Option<i64> {
    if ["", "z", "utc", "gmt"].iter().any(|one| zone.eq_ignore_ascii_case(one)) {
        return Some(0);
    }
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let parts: Vec<&str> = match digits.len() {
        // hhmm
        4 if !digits.contains(':') => vec![digits.get(..2)?, digits.get(2..)?],
        _ => digits.split(':').collect(),
    };
    let mut seconds = 0;
    for (at, part) in parts.iter().enumerate() {
        let (most, scale) = *[(15, 3600), (59, 60), (59, 1)].get(at)?;
        let part: i64 = number(part)?;
        seconds += if part <= most { part * scale } else { return None };
    }
    Some(sign * seconds * MICROS)
}

/// The same of a zone that is called by its name, when a clock there says so.
fn offset_by_name(zone: &str, clock: i64) -> Option<i64> {
    let zone =
        Zone::named(zone).ok().filter(|_| zone.starts_with(|one: char| one.is_alphabetic()))?;
    clock.checked_sub(zone.instant_of_clock(clock)?)
}

/// A number of one to four digits, and nothing else.
fn number<T: std::str::FromStr>(digits: &str) -> Option<T> {
    let is_plain =
        (1..=4).contains(&digits.len()) && digits.bytes().all(|one| one.is_ascii_digit());
    digits.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_may_have_names_of_months() {
        let day = |text: &str| clock_of(text).map(|micros| micros / DAY);
        for text in [
            "2024/01/05",
            "20240105",
            "5 January 2024",
            "05-Jan-2024",
            "Jan 5, 2024",
            "2024-Jan-05",
            "Fri Jan 5 2024",
            "1/5/2024",
            "5 JANUARY 2024",
        ] {
            assert_eq!(day(text), Some(19_727), "{text}");
        }
        for text in ["31 Feb 2024", "5 Janu 2024", "Foo 5 2024", "5 Jan", "00000101", "3 März 2024"]
        {
            assert_eq!(day(text), None, "{text}");
        }
        let micros = |text: &str| clock_of(text).map(|micros| micros % DAY / MICROS);
        for (text, expected) in [
            ("2024-01-05 10:00 PM", Some(79_200)),
            ("5 January 2024 12:00 am", Some(0)),
            ("20240105T101112", Some(36_672)),
            ("2024-01-05 13:00 PM", None),
        ] {
            assert_eq!(micros(text), expected, "{text}");
        }
        assert_eq!(time_of_day("040506"), Some(14_706 * MICROS));
        assert_eq!(time_of_day("10"), None);
    }

    #[test]
    fn times_are_read_as_postgresql_reads_them() {
        const NOON: i64 = 1_709_208_000 * MICROS;
        for (text, expected) in [
            ("2024-02-29 12:00:00+00", NOON),
            ("2024-02-29 12:00", NOON),
            ("2024-02-29T12:00Z", NOON),
            (" 2024-02-29 12:00:00 UTC ", NOON),
            ("2024-02-29 13:30:00+01:30", NOON),
            ("2024-02-29 13:30:00 +0130", NOON),
            ("2024-02-29 04:00-08", NOON),
            ("2024-02-29 13:00:00 CET", NOON),
            ("2024-02-29 13:00:00 Europe/Berlin", NOON),
            ("2024-02-29 08:00 America/Halifax", NOON),
            ("2024-02-29", NOON - 12 * 3600 * MICROS),
            ("2024-02-29 12:00:00.1234565", NOON + 123_457),
            ("2024-02-29 11:59:59.9999999", NOON),
            ("1969-12-31 23:59:59.999999", -1),
            ("epoch", 0),
            ("Infinity", i64::MAX),
            ("2500-01-01", 16_725_225_600 * MICROS),
            ("9999-12-31 23:59:59", 253_402_300_799 * MICROS),
            ("0001-01-01", -62_135_596_800 * MICROS),
        ] {
            assert_eq!(instant_of(text), Some(expected), "{text}");
        }
        assert_eq!(clock_of("2024-02-29 12:00:00+05"), Some(NOON));
        for text in [
            "",
            "now",
            "2024-02-30",
            "2024-13-01",
            "2024-02-29 25:00",
            "2024-02-29 12",
            "2024-02-29 12:00.5",
            "2024-02-29 12:00:00.x",
            "2024-02-29 12:00:00 Nowhere/Town",
            "2024-02-29 12:00:00+99",
            "+024-02-29",
            "2024-02-29-01",
            "2024-02-29 12:00:00+",
            "2024-02-29 12:00:00é",
        ] {
            assert_eq!(instant_of(text), None, "{text}");
        }
    }
}
