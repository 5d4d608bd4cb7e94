//! Time zones: what a clock says there, and when a clock there says so.
//!
//! Times are instants in UTC wherever they are kept. A session has a zone in which it sees them.

use crate::types::error::SqlError;
use crate::types::time::zone_abbreviations::abbreviation;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};

const MICROS: i64 = 1_000_000;
/// A zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    zone: TimeZone,
    name: String,
}

/// What a clock says.
#[derive(Clone, Debug)]
pub struct ClockAt {
    /// The date and the time of day, to the microsecond.
    pub clock: DateTime,
    /// Seconds ahead of UTC.
    pub offset: i32,
    /// What the zone is called then.
    pub abbreviation: String,
}

impl Zone {
    /// UTC.
    pub fn utc() -> Zone {
        Zone { zone: TimeZone::UTC, name: "UTC".to_string() }
    }

    /// A zone as `SET TimeZone` names it: by its place, an abbreviation, or how far
    /// it is from UTC, which POSIX counts to the west where a name stands before it or no zone is
    /// said.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn named(name: &str) -> Result<Zone, SqlError> {
        let plain = name.trim();
        let unknown = || {
            SqlError::new("22023", format!("time zone \"{name}\" not recognized"))
                .with_hint("A zone is called as in SELECT name FROM pg_timezone_names.")
        };
        if ["utc", "gmt", "z", "zulu", "etc/utc", "+00:00", "+00"]
            .iter()
            .any(|one| plain.eq_ignore_ascii_case(one))
        {
            return Ok(Zone { zone: TimeZone::UTC, name: named_utc(plain) });
        }
        if let Some(seconds) = offset_of(plain) {
            let offset = Offset::from_seconds(seconds).map_err(|_| unknown())?;
            return Ok(Zone { zone: TimeZone::fixed(offset), name: plain.to_string() });
        }
        if let Ok(zone) = TimeZone::get(plain) {
            let name = zone.iana_name().unwrap_or(plain).to_string();
            return Ok(Zone { zone, name });
        }
        Zone::abbreviated(plain).ok_or_else(unknown)
    }

    /// A zone as `AT TIME ZONE` names it: as [`Zone::named`], but an abbreviation is as far from UTC all
    /// year.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn of_expression(name: &str) -> Result<Zone, SqlError> {
        match Zone::abbreviated(name.trim()) {
            Some(zone) => Ok(zone),
            None => Zone::named(name),
        }
    }

    fn abbreviated(name: &str) -> Option<Zone> {
        let offset = Offset::from_seconds(abbreviation(name)?).ok()?;
        Some(Zone { zone: TimeZone::fixed(offset), name: name.to_ascii_uppercase() })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a clock there says what one of UTC does.
    pub fn is_utc(&self) -> bool {
        self.zone == TimeZone::UTC
    }

    /// What a clock there says at an instant, in microseconds since 1970; none where no calendar says
    /// it.
    pub fn at(&self, micros: i64) -> Option<ClockAt> {
        let instant = Timestamp::from_microsecond(micros).ok()?;
        let info = self.zone.to_offset_info(instant);
        let offset = info.offset();
        let clock = offset.to_datetime(instant);
        let is_fixed = self.zone.iana_name().is_none() && !self.is_utc();
        let abbreviation = match is_fixed {
            true => self.name.clone(),
            false => info.abbreviation().to_string(),
        };
        Some(ClockAt { clock, offset: offset.seconds(), abbreviation })
    }

    /// Whether the clock is set to summer time at an instant.
    pub fn is_summer_at(&self, micros: i64) -> bool {
        let instant = Timestamp::from_microsecond(micros);
        instant.is_ok_and(|instant| self.zone.to_offset_info(instant).dst().is_dst())
    }

    /// Seconds that a clock there is ahead of UTC at an instant.
    pub fn offset_at(&self, micros: i64) -> i32 {
        if self.is_utc() {
            return 0;
        }
        let instant = Timestamp::from_microsecond(micros);
        instant.map_or(0, |instant| self.zone.to_offset(instant).seconds())
    }

    /// What a clock there says at an instant, as if it were one of UTC; infinities stay.
    pub fn clock_of(&self, micros: i64) -> i64 {
        match micros {
            i64::MIN | i64::MAX => micros,
            _ => micros.saturating_add(i64::from(self.offset_at(micros)) * MICROS),
        }
    }

    /// When a clock there says so; of what it says twice the first time but one, as PostgreSQL has
    /// it, and what it passes over is that much later. None past all calendars.
    pub fn instant_of_clock(&self, micros: i64) -> Option<i64> {
        if self.is_utc() || [i64::MIN, i64::MAX].contains(&micros) {
            return Some(micros);
        }
        let clock = clock(micros)?;
        let ambiguous = self.zone.to_ambiguous_timestamp(clock);
        // What is there twice is standard time, which is the later of the two.
        let instant = match ambiguous.offset() {
            jiff::tz::AmbiguousOffset::Fold { .. } => ambiguous.later(),
            _ => ambiguous.compatible(),
        };
        Some(instant.ok()?.as_microsecond())
    }
}

fn named_utc(plain: &str) -> String {
    match plain.to_ascii_lowercase().as_str() {
        "gmt" => "GMT".to_string(),
        "etc/utc" => "Etc/UTC".to_string(),
        _ => "UTC".to_string(),
    }
}

/// The clock of so many microseconds, as one of UTC says it.
pub fn clock(micros: i64) -> Option<DateTime> {
    Some(Offset::UTC.to_datetime(Timestamp::from_microsecond(micros).ok()?))
}

/// The microseconds of a clock, as one of UTC says them.
pub fn micros_of(clock: DateTime) -> i64 {
    let epoch = DateTime::from_parts(Date::constant(1970, 1, 1), Time::midnight());
    let since = clock.duration_since(epoch);
    since.as_secs() * MICROS + i64::from(since.subsec_nanos() / 1000)
}
/// Seconds ahead of UTC of a zone that is said in hours: `+05:30` lies to the west, as in POSIX, and
/// so does `<+02>-02` the other way round; a bare number of `SET TIME ZONE` lies to the east.
fn offset_of(text: &str) -> Option<i32> {
    if let Some(rest) = text.strip_prefix('<') {
        let (_, rest) = rest.split_once('>')?;
        return offset_of_posix(rest);
    }
    offset_of_posix(text)
}

fn offset_of_posix(text: &str) -> Option<i32> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => (-1, &text[1..]),
        b'-' => (1, &text[1..]),
        b'0'..=b'9' => (-1, text),
        _ => return None,
    };
    let mut seconds = 0;
    for (part, scale) in digits.split(':').zip([3600, 60, 1]) {
        let number: i32 = part.parse().ok().filter(|_| part.len() <= 2)?;
        seconds += number * scale;
    }
    let is_short = digits.split(':').count() <= 3 && seconds < 168 * 3600;
    is_short.then_some(sign * seconds)
}

/// The zone of times: they are instants, shown in UTC.
pub const ZONE: &str = "+00:00";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_set_twice_a_year() {
        let berlin = Zone::named("europe/berlin").unwrap();
        assert_eq!(berlin.name(), "Europe/Berlin");
        let read = |text: &str| crate::types::time::instants::clock_of(text).unwrap();
        let there = |text: &str| {
            let instant = berlin.instant_of_clock(read(text)).unwrap();
            crate::types::text::shown::instant(instant, "")
        };
        assert_eq!(there("2024-07-01 12:00"), "2024-07-01 10:00:00");
        assert_eq!(there("2024-01-01 12:00"), "2024-01-01 11:00:00");
        // What is there twice is the later, what is not there that much later.
        assert_eq!(there("2024-10-27 02:30"), "2024-10-27 01:30:00");
        assert_eq!(there("2024-03-31 02:30"), "2024-03-31 01:30:00");
        let at = berlin.at(read("2024-07-01 10:00")).unwrap();
        assert_eq!((at.offset, at.abbreviation.as_str()), (7200, "CEST"));
        assert_eq!(berlin.clock_of(i64::MAX), i64::MAX);
    }

    #[test]
    fn zones_have_many_names() {
        let ahead = |name: &str| Zone::named(name).map(|zone| zone.offset_at(0) / 60);
        for (name, minutes) in [
            ("UTC", 0),
            ("gmt", 0),
            ("Asia/Kolkata", 330),
            ("+05:30", -330),
            ("-03", 180),
            ("<+02>-02", 120),
            ("CEST", 120),
            ("pst", -480),
        ] {
            assert_eq!(ahead(name), Ok(minutes), "{name}");
        }
        for name in ["", "Nowhere/Town", "+99:99:99:99", "../etc/passwd"] {
            assert_eq!(ahead(name).map_err(|error| error.code), Err("22023"), "{name}");
        }
    }
}
