//! Times and durations in URLs: what Prometheus accepts, and what VictoriaMetrics accepts besides.
//!
//! ```text
//! time      1435781430.781            Unix seconds, rounded to milliseconds
//!           1435781430781             Unix ms, us, ns, told by magnitude
//!           2015-07-01T20:10:30.781Z  RFC 3339
//!           2015-07, 2015-07-01T20    its beginnings, UTC
//!           now, now-30m, -1h, 1h     relative; without a sign in the past
//! duration  5m, 1h30m, 1.5h, 90       units y w d h m s ms; a bare number is seconds
//! ```

use crate::Error;
use crate::narrow::whole;
use crate::number;
use jiff::civil::Date;
use model::Timestamp;
use model::sample::{NANOS_PER_MILLI, NANOS_PER_SECOND};

/// Longest text that is looked at.
const TEXT_SIZE_MAX: usize = 64;
/// Largest number of seconds that nanoseconds since the epoch can express.
const SECONDS_MAX: f64 = 9_223_372_036.0;
/// What Prometheus prints for its first instant, and clients send back.
const PROMETHEUS_MIN: &str = "-292273086-05-16T16:47:06Z";
/// What Prometheus prints for its last instant.
const PROMETHEUS_MAX: &str = "292277025-08-18T07:12:54.999999999Z";

/// The instant that `text` names.
///
/// # Errors
/// In Prometheus' words.
pub fn parse_time(text: &str, now: Timestamp) -> Result<Timestamp, Error> {
    let invalid =
        || Error::Invalid(format!("cannot parse {:?} to a valid timestamp", shorten(text)));
    if text.is_empty() || TEXT_SIZE_MAX < text.len() {
        return Err(invalid());
    }
    if let Some(value) = whole_number(text) {
        return unix_time(text, value).ok_or_else(invalid);
    }
    match text {
        PROMETHEUS_MIN => return Ok(i64::MIN),
        PROMETHEUS_MAX => return Ok(i64::MAX),
        _ => {}
    }
    relative_time(text, now).or_else(|| calendar_time(text.as_bytes())).ok_or_else(invalid)
}

/// The nanoseconds that `text` stands for; negative ones too.
///
/// # Errors
/// In Prometheus' words.
pub fn parse_duration(text: &str) -> Result<i64, Error> {
    let invalid =
        || Error::Invalid(format!("cannot parse {:?} to a valid duration", shorten(text)));
    if text.is_empty() || TEXT_SIZE_MAX < text.len() {
        return Err(invalid());
    }
    if let Some(seconds) = whole_number(text) {
        return nanos_of(seconds * 1e9).ok_or_else(invalid);
    }
    duration(text).ok_or_else(invalid)
}

fn shorten(text: &str) -> &str {
    let end = (0..=TEXT_SIZE_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// The number, if the text is nothing else.
fn whole_number(text: &str) -> Option<f64> {
    let text = text.strip_prefix('+').unwrap_or(text).as_bytes();
    number::decimal(text, 0).filter(|number| number.end == text.len()).map(|number| number.value)
}

fn nanos_of(nanos: f64) -> Option<i64> {
    let is_inside = nanos.abs() <= SECONDS_MAX * 1e9;
    is_inside.then_some(whole(nanos.round()))
}

/// Unix time in a unit that the magnitude tells.
fn unix_time(text: &str, value: f64) -> Option<Timestamp> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let integer = number::signed(unsigned.as_bytes());
    if value.abs() <= SECONDS_MAX {
        return match integer {
            Some(seconds) => seconds.checked_mul(NANOS_PER_SECOND),
            None => Some(whole((value * 1e3).round()) * NANOS_PER_MILLI),
        };
    }
    let unit = match value.abs() / SECONDS_MAX {
        ..=1e3 => NANOS_PER_MILLI,
        ..=1e6 => 1_000,
        ..=1.01e9 => 1,
        _ => return None,
    };
    match integer {
        Some(count) => count.checked_mul(unit),
        None => nanos_of(value * unit as f64),
    }
}

/// `now`, `now-1h`, `-1h`, `1h`.
fn relative_time(text: &str, now: Timestamp) -> Option<Timestamp> {
    let offset = match text.strip_prefix("now") {
        Some("") => 0,
        Some(signed) if signed.starts_with(['-', '+']) => duration(signed)?,
        Some(_) => return None,
        None if text.starts_with('+') => duration(text)?,
        None => -duration(text)?.checked_abs()?,
    };
    now.checked_add(offset)
}

/// One or more numbers with units, and a sign before them.
fn duration(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let bytes = unsigned.as_bytes();
    let mut total = 0i64;
    let mut at = 0;
    while at < bytes.len() {
        let whole = number::digits(bytes, at);
        let mut end = at + whole.count;
        if bytes.get(end) == Some(&b'.') {
            end += 1 + number::digits(bytes, end + 1).count;
        }
        let count: f64 = unsigned.get(at..end)?.parse().ok()?;
        let rest = unsigned.get(end..)?;
        let (unit, nanos) = UNITS.iter().find(|(unit, _)| rest.starts_with(unit))?;
        let is_integer = end == at + whole.count && whole.count <= 18;
        let part = match is_integer {
            true => i64::try_from(whole.value).ok()?.checked_mul(*nanos)?,
            false => nanos_of(count * *nanos as f64)?,
        };
        total = total.checked_add(part)?;
        at = end + unit.len();
    }
    let is_empty = bytes.is_empty();
    if is_empty {
        return None;
    }
    Some(if text.starts_with('-') { -total } else { total })
}

/// Units of durations; `ms` before `m`. A year has 365 days, as in Prometheus.
const UNITS: [(&str, i64); 7] = [
    ("ms", NANOS_PER_MILLI),
    ("y", 365 * 86_400 * NANOS_PER_SECOND),
    ("w", 7 * 86_400 * NANOS_PER_SECOND),
    ("d", 86_400 * NANOS_PER_SECOND),
    ("h", 3_600 * NANOS_PER_SECOND),
    ("m", 60 * NANOS_PER_SECOND),
    ("s", NANOS_PER_SECOND),
];

/// RFC 3339, or a beginning of it down to the month; instants beyond the range become its ends.
fn calendar_time(text: &[u8]) -> Option<Timestamp> {
    let (text, offset_seconds) = split_zone(text)?;
    let mut fields = Fields { text, at: 0 };
    let year = fields.number(4)?;
    let month = fields.after(b'-', 2)??;
    let day = fields.after(b'-', 2)?.unwrap_or(1);
    let is_time_next = matches!(fields.next(), Some(b'T' | b't' | b' '));
    if is_time_next && text.len() < 13 {
        return None;
    }
    let hour = match is_time_next {
        true => {
            fields.at += 1;
            fields.number(2)?
        }
        false => 0,
    };
    let minute = fields.after(b':', 2)?.unwrap_or(0);
    let second = fields.after(b':', 2)?.unwrap_or(0);
    let nanos = fields.fraction()?;
    if fields.at != text.len() || 23 < hour || 59 < minute || 59 < second {
        return None;
    }
    let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    let date = Date::new(i16::try_from(year).ok()?, month, day).ok()?;
    let since_epoch = date.duration_since(Date::constant(1970, 1, 1)).as_secs();
    let seconds = since_epoch + hour * 3_600 + minute * 60 + second - offset_seconds;
    let total = i128::from(seconds) * i128::from(NANOS_PER_SECOND) + i128::from(nanos);
    Some(i64::try_from(total).unwrap_or(if total < 0 { i64::MIN } else { i64::MAX }))
}

/// Splits `Z` or `+hh:mm` from the end; without them it is UTC.
fn split_zone(text: &[u8]) -> Option<(&[u8], i64)> {
    if let Some(rest) = text.strip_suffix(b"Z").or_else(|| text.strip_suffix(b"z")) {
        return Some((rest, 0));
    }
    let Some((rest, [sign @ (b'+' | b'-'), h, hh, b':', m, mm])) = text.split_last_chunk::<6>()
    else {
        return Some((text, 0));
    };
    // `2015-07-01` ends in no zone: a zone needs a time before it.
    if rest.len() < 13 {
        return Some((text, 0));
    }
    let mut fields = Fields { text: &[*h, *hh, *m, *mm], at: 0 };
    let (hours, minutes) = (fields.number(2)?, fields.number(2)?);
    if 23 < hours || 59 < minutes {
        return None;
    }
    let seconds = hours * 3_600 + minutes * 60;
    Some((rest, if *sign == b'-' { -seconds } else { seconds }))
}

/// Reads fields of fixed width.
struct Fields<'a> {
    text: &'a [u8],
    at: usize,
}

impl Fields<'_> {
    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn number(&mut self, width: usize) -> Option<i64> {
        let text = self.text.get(self.at..self.at + width)?;
        let digits = number::digits(text, 0);
        self.at += width;
        (digits.count == width).then_some(digits.value as i64)
    }

    /// The number behind `separator`; `Some(None)` when the separator is not there.
    fn after(&mut self, separator: u8, width: usize) -> Option<Option<i64>> {
        if self.next() != Some(separator) {
            return Some(None);
        }
        self.at += 1;
        self.number(width).map(Some)
    }

    /// Nanoseconds behind a point; more than nine digits are cut.
    fn fraction(&mut self) -> Option<i64> {
        if self.next() != Some(b'.') {
            return Some(0);
        }
        let digits = number::digits(self.text, self.at + 1);
        let start = self.at + 1;
        self.at = start + digits.count;
        if digits.count == 0 {
            return None;
        }
        let mut nanos = 0;
        for idx in 0..9 {
            let digit = self.text.get(start + idx).filter(|_| idx < digits.count);
            nanos = nanos * 10 + digit.map_or(0, |byte| i64::from(byte - b'0'));
        }
        Some(nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = 1_700_000_000 * NANOS_PER_SECOND;

    #[track_caller]
    fn time(text: &str, want: i64) {
        assert_eq!(parse_time(text, NOW), Ok(want), "{text}");
    }

    #[test]
    fn times_of_prometheus() {
        time("0", 0);
        time("1435781430", 1_435_781_430_000_000_000);
        time("1435781430.781", 1_435_781_430_781_000_000);
        time("1435781430.7809999", 1_435_781_430_781_000_000);
        time("-62.5", -62_500_000_000);
        time("1.5e9", 1_500_000_000_000_000_000);
        time("2015-07-01T20:10:30.781Z", 1_435_781_430_781_000_000);
        time("2015-07-01T20:10:30.123456789Z", 1_435_781_430_123_456_789);
        time("2015-07-01T22:10:30+02:00", 1_435_781_430_000_000_000);
        time("1969-12-31T23:59:59Z", -NANOS_PER_SECOND);
        time("2000-02-29T00:00:00Z", 951_782_400 * NANOS_PER_SECOND);
        time("0001-01-01T00:00:00Z", i64::MIN);
        time("9999-12-31T23:59:59Z", i64::MAX);
        time(PROMETHEUS_MIN, i64::MIN);
        time(PROMETHEUS_MAX, i64::MAX);
    }

    #[test]
    fn times_of_victoriametrics() {
        time("1435781430781", 1_435_781_430_781_000_000);
        time("1435781430781123", 1_435_781_430_781_123_000);
        time("1435781430781123456", 1_435_781_430_781_123_456);
        time("9223372036854775807", i64::MAX);
        time("2015-07", 1_435_708_800 * NANOS_PER_SECOND);
        time("2015-07-01", 1_435_708_800 * NANOS_PER_SECOND);
        time("2015-07-01T20", 1_435_780_800 * NANOS_PER_SECOND);
        time("2015-07-01T20:10", 1_435_781_400 * NANOS_PER_SECOND);
        time("2015-07-01T20:10+01:00", 1_435_777_800 * NANOS_PER_SECOND);
        time("2015-07-01 20:10:30", 1_435_781_430 * NANOS_PER_SECOND);
        time("now", NOW);
        time("now-30m", NOW - 1_800 * NANOS_PER_SECOND);
        time("now+1s", NOW + NANOS_PER_SECOND);
        time("-1h", NOW - 3_600 * NANOS_PER_SECOND);
        time("1h30m", NOW - 5_400 * NANOS_PER_SECOND);
    }

    #[test]
    fn what_is_no_time() {
        for text in [
            "",
            "x",
            "nowx",
            "now-",
            "2015-13-01",
            "2015-02-29",
            "2015-07-01T24:00:00Z",
            "2015-",
            "2015-07-01T",
            "2015-07-01T20:10:30.Z",
            "NaN",
            "inf",
            "1e30",
            "2015-07-01Tx",
            "1x",
            "é",
            "2015-07-01T20:10:30+25:00",
            "-",
            "1h-",
            "99999999999999999999",
            "1e999",
        ] {
            let want = format!("cannot parse {text:?} to a valid timestamp");
            assert_eq!(parse_time(text, NOW), Err(Error::Invalid(want)));
        }
        assert!(parse_time(&"é".repeat(100), NOW).is_err());
    }

    #[test]
    fn durations() {
        for (text, want) in [
            ("5m", 300.0),
            ("1h30m", 5400.0),
            ("90", 90.0),
            ("0.5", 0.5),
            ("1.5h", 5400.0),
            ("2w", 1_209_600.0),
            ("1y", 31_536_000.0),
            ("1d1ms", 86_400.001),
            ("0", 0.0),
            ("0s", 0.0),
            ("-5m", -300.0),
            ("1e3", 1000.0),
            ("15ms", 0.015),
        ] {
            assert_eq!(parse_duration(text), Ok((want * 1e9f64).round() as i64), "{text}");
        }
        for text in ["", "m", "5", "5mm", "1 h", "NaN", "Inf", "1e30", "99999y", "5m ", "-", "."] {
            let is_number = text == "5";
            assert_eq!(parse_duration(text).is_ok(), is_number, "{text}");
        }
    }

    #[test]
    fn random_texts_do_not_panic() {
        let mut random = rng::Random::seeded(0x5eed);
        let alphabet: Vec<char> = "0123456789-+:.TZnowhmsywd e\u{e9}".chars().collect();
        for _ in 0..50_000 {
            let size = random.below(30);
            let text: String = (0..size).map(|_| *random.pick(&alphabet)).collect();
            let _ = (parse_time(&text, NOW), parse_duration(&text));
        }
    }
}
