//! `to_date` and `to_timestamp` of a text and a template: what the fields say, put together.
//!
//! As in PostgreSQL, a blank or a sign between fields stands for any or none, unless the template says
//! `FX`.

use crate::functions::templates::pattern::{
    DAYS, Field, MONTHS, Piece, ROMAN, Said, is_separator, pieces,
};
use crate::types::error::SqlError;
use jiff::civil::{Date, DateTime, ISOWeekDate, Time, Weekday};

const MICROS: i64 = 1_000_000;
/// The number of the Julian day that 1970 began with.
const EPOCH_JULIAN: i64 = 2_440_588;

/// What a text says by a template.
#[derive(Debug, Default)]
struct Found {
    year: Option<i64>,
    year_iso: Option<i64>,
    century: Option<i64>,
    is_before: bool,
    month: Option<i64>,
    week: Option<i64>,
    week_iso: Option<i64>,
    week_of_month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    day_of_week_iso: Option<i64>,
    julian: Option<i64>,
    hour: i64,
    is_twelve: bool,
    is_afternoon: Option<bool>,
    minute: i64,
    second: i64,
    second_of_day: Option<i64>,
    micros: i64,
    offset_hours: Option<i64>,
    offset_minutes: i64,
}

/// A date and time of day that was read, and how far ahead of UTC its text says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The clock, whole seconds.
    pub clock: DateTime,
    /// What is left of a second.
    pub micros: i64,
    /// Seconds ahead of UTC.
    pub offset: Option<i64>,
}

/// Reads a text by a template.
///
/// # Errors
/// When it does not fit, and when there is no such time.
pub fn read(text: &str, template: &str) -> Result<Read, SqlError> {
    let mut reader = Reader { rest: text, found: Found::default(), skipped: 0 };
    let pieces = pieces(template);
    let is_exact =
        pieces.iter().any(|one| matches!(one, Piece::Field(said) if said.field == Field::Exact));
    for (at, piece) in pieces.iter().enumerate() {
        if reader.rest.is_empty() {
            break;
        }
        match piece {
            Piece::Field(said) if said.field == Field::Exact => {}
            Piece::Field(said) => {
                if !is_exact {
                    reader.skip_spaces();
                }
                let is_open = said.is_filled || parts(pieces.get(at + 1));
                reader.field(*said, is_open)?;
                if !is_exact {
                    reader.skipped = 0;
                    reader.skip_spaces();
                }
            }
            Piece::Other(_) if is_exact => reader.pass(),
            Piece::Other(one) => {
                if at == 0 {
                    reader.skip_spaces();
                }
                reader.between(*one);
            }
        }
    }
    reader.found.whole(text)
}

/// Whether a number ends before a piece of the template, however long it is.
fn parts(next: Option<&Piece>) -> bool {
    match next {
        None => true,
        Some(Piece::Other(one)) => !one.is_ascii_digit(),
        Some(Piece::Field(said)) => matches!(
            said.field,
            Field::Era(_)
                | Field::Half(_)
                | Field::DayName
                | Field::DayNameShort
                | Field::MonthName
                | Field::MonthNameShort
                | Field::Roman
                | Field::Offset
                | Field::Zone
                | Field::ZoneHours
        ),
    }
}

struct Reader<'a> {
    rest: &'a str,
    found: Found,
    /// Blanks that were skipped, which stand for characters of the template.
    skipped: usize,
}

impl Reader<'_> {
    fn skip_spaces(&mut self) {
        let plain = self.rest.trim_start_matches(|one: char| one.is_ascii_whitespace());
        self.skipped += self.rest.len() - plain.len();
        self.rest = plain;
    }

    fn pass(&mut self) {
        let mut characters = self.rest.chars();
        characters.next();
        self.rest = characters.as_str();
    }

    /// What stands between two fields.
    fn between(&mut self, one: char) {
        if one == ' ' || is_separator(one) {
            let next = self.rest.chars().next();
            match next.is_some_and(|next| next.is_ascii_whitespace() || is_separator(next)) {
                true => self.pass(),
                false => self.skipped = self.skipped.saturating_sub(1),
            }
        } else if self.skipped == 0 {
            self.pass();
        } else {
            self.skipped -= 1;
        }
    }

    /// A number of so many digits, or of as many as there are where it `is_open`.
    fn number(&mut self, most: usize, is_open: bool, said: Said) -> Result<i64, SqlError> {
        let sign = usize::from(self.rest.starts_with(['-', '+']));
        let digits = self.rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let most = if is_open { usize::MAX } else { most };
        let taken = (sign + digits).min(most);
        let text = &self.rest[..taken];
        let number = text.parse::<i64>();
        if !is_open && taken < most {
            let words = match self.rest.len() < most {
                true => format!("source string too short for \"{}\" formatting field", said.name),
                false => wrong_value(&self.rest[..floor(self.rest, most)], said),
            };
            return Err(SqlError::new("22007", words));
        }
        let number = number.map_err(|_| {
            let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
            SqlError::new("22007", wrong_value(&self.rest[..end], said))
        })?;
        self.rest = &self.rest[taken..];
        if said.ordinal.is_some() {
            self.rest = self.rest.get(2..).unwrap_or_default();
        }
        Ok(number)
    }

    /// The place of the word that the text begins with, of those that may stand there.
    fn word(&mut self, words: &[&str], said: Said) -> Result<i64, SqlError> {
        let starts = |word: &str| {
            self.rest.get(..word.len()).is_some_and(|begun| begun.eq_ignore_ascii_case(word))
        };
        let found = words.iter().position(|word| starts(word));
        let at = found.ok_or_else(|| {
            let end = self.rest.find(|one: char| !one.is_alphabetic());
            let word = &self.rest[..end.unwrap_or(self.rest.len())];
            SqlError::new("22007", wrong_value(word, said))
        })?;
        self.rest = &self.rest[words[at].len()..];
        Ok(i64::try_from(at).unwrap_or(0))
    }

    fn field(&mut self, said: Said, is_open: bool) -> Result<(), SqlError> {
        match said.field {
            Field::Offset | Field::Zone => {
                let words =
                    format!("formatting field \"{}\" is only supported in to_char", said.name);
                return Err(SqlError::unsupported(words));
            }
            Field::ZoneHours => {
                let sign = if self.rest.starts_with('-') { -1 } else { 1 };
                self.rest = self.rest.trim_start_matches(['-', '+', ' ']);
                self.found.offset_hours = Some(sign * self.number(2, is_open, said)?);
            }
            Field::ZoneMinutes => {
                let sign = if self.found.offset_hours.unwrap_or(0) < 0 { -1 } else { 1 };
                self.found.offset_minutes = sign * self.number(2, is_open, said)?;
            }
            Field::Era(_) => {
                let at = self.word(&["A.D.", "AD", "B.C.", "BC"], said)?;
                self.found.is_before = 2 <= at;
            }
            Field::Half(_) => {
                let at = self.word(&["A.M.", "AM", "P.M.", "PM"], said)?;
                (self.found.is_afternoon, self.found.is_twelve) = (Some(2 <= at), true);
            }
            Field::Hour24 => self.found.hour = self.number(2, is_open, said)?,
            Field::Hour12 => {
                self.found.hour = self.number(2, is_open, said)?;
                self.found.is_twelve = true;
            }
            Field::Minute => self.found.minute = self.number(2, is_open, said)?,
            Field::Second => self.found.second = self.number(2, is_open, said)?,
            Field::SecondOfDay => {
                self.found.second_of_day = Some(self.number(5, is_open, said)?);
            }
            Field::Fraction(count) => self.fraction(count, is_open, said)?,
            _ => self.date(said, is_open)?,
        }
        Ok(())
    }

    /// Digits behind a second's point.
    fn fraction(&mut self, count: usize, is_open: bool, said: Said) -> Result<(), SqlError> {
        let before = self.rest.len();
        let number = self.number(count, is_open, said)?;
        let read = before - self.rest.len();
        let digits = u32::try_from(read.min(6)).unwrap_or(6);
        self.found.micros = number.saturating_mul(10_i64.pow(6 - digits));
        Ok(())
    }

    fn date(&mut self, said: Said, is_open: bool) -> Result<(), SqlError> {
        match said.field {
            Field::MonthName => {
                let short: Vec<&str> = MONTHS.iter().map(|name| &name[..3]).collect();
                let at = self
                    .word(&MONTHS, said)
                    .or_else(|error| self.word(&short, said).map_err(|_| error))?;
                self.found.month = Some(at + 1);
            }
            Field::MonthNameShort => {
                let short: Vec<&str> = MONTHS.iter().map(|name| &name[..3]).collect();
                self.found.month = Some(self.word(&short, said)? + 1);
            }
            Field::DayName => drop(self.word(&DAYS, said)?),
            Field::DayNameShort => {
                let short: Vec<&str> = DAYS.iter().map(|name| &name[..3]).collect();
                self.word(&short, said)?;
            }
            Field::Roman => {
                let mut longest = ROMAN;
                longest.sort_by_key(|one| std::cmp::Reverse(one.len()));
                let at = usize::try_from(self.word(&longest, said)?).unwrap_or(0);
                let month = ROMAN.iter().position(|one| *one == longest[at]).unwrap_or(0);
                self.found.month = Some(i64::try_from(month).unwrap_or(0) + 1);
            }
            Field::Month => self.found.month = Some(self.number(2, is_open, said)?),
            Field::Day => self.found.day = Some(self.number(2, is_open, said)?),
            Field::DayOfYear => self.found.day_of_year = Some(self.number(3, is_open, said)?),
            Field::Julian => self.found.julian = Some(self.number(usize::MAX, true, said)?),
            Field::Week => self.found.week = Some(self.number(2, is_open, said)?),
            Field::WeekIso => self.found.week_iso = Some(self.number(2, is_open, said)?),
            Field::WeekOfMonth => {
                self.found.week_of_month = Some(self.number(1, is_open, said)?);
            }
            Field::DayOfWeekIso => {
                self.found.day_of_week_iso = Some(self.number(1, is_open, said)?);
            }
            Field::Century => self.found.century = Some(self.number(2, is_open, said)?),
            // They say nothing that others do not.
            Field::Quarter | Field::DayOfWeek => drop(self.number(1, is_open, said)?),
            Field::DayOfYearIso => {
                let day = self.number(3, is_open, said)?;
                self.found.week_iso = Some((day - 1).div_euclid(7) + 1);
                self.found.day_of_week_iso = Some((day - 1).rem_euclid(7) + 1);
            }
            Field::YearWithComma => {
                let thousands = self.number(1, true, said)?;
                self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
                let rest = self.number(3, is_open, said)?;
                self.found.year = Some(thousands.saturating_mul(1000).saturating_add(rest));
            }
            Field::Year(count) => self.found.year = Some(self.year(count, is_open, said)?),
            Field::YearIso(count) => {
                self.found.year_iso = Some(self.year(count, is_open, said)?);
            }
            _ => {}
        }
        Ok(())
    }

    /// A year; one of few digits is the one that is nearest to 2020.
    fn year(&mut self, count: usize, is_open: bool, said: Said) -> Result<i64, SqlError> {
        let before = self.rest.len();
        let year = self.number(count, is_open, said)?;
        let is_short = before - self.rest.len() < 4 && count < 4;
        Ok(match year {
            _ if !is_short => year,
            0..70 => year + 2000,
            70..100 => year + 1900,
            100..520 => year + 2000,
            520..1000 => year + 1000,
            _ => year,
        })
    }
}

/// The end of a character that is no further than so many bytes.
fn floor(text: &str, most: usize) -> usize {
    let most = most.min(text.len());
    (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn wrong_value(text: &str, said: Said) -> String {
    format!("invalid value \"{text}\" for \"{}\"", said.name)
}

impl Found {
    fn whole(&self, text: &str) -> Result<Read, SqlError> {
        let out_of_range = || {
            let words = format!("date/time field value out of range: \"{text}\"");
            SqlError::new("22008", words)
        };
        let date = self.date().ok_or_else(out_of_range)?;
        let mut hour = self.hour;
        if self.is_twelve {
            if !(1..=12).contains(&hour) {
                let words = format!("hour \"{hour}\" is invalid for the 12-hour clock");
                let hint = "Use the 24-hour clock, or give an hour between 1 and 12.";
                return Err(SqlError::new("22007", words).with_hint(hint));
            }
            hour = match self.is_afternoon {
                Some(true) if hour < 12 => hour + 12,
                Some(false) if hour == 12 => 0,
                _ => hour,
            };
        }
        let (mut minute, mut second) = (self.minute, self.second);
        if let Some(seconds) = self.second_of_day {
            (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        }
        let part = |number: i64| i8::try_from(number).map_err(|_| out_of_range());
        let time = Time::new(part(hour)?, part(minute)?, part(second)?, 0);
        let clock = DateTime::from_parts(date, time.map_err(|_| out_of_range())?);
        let offset = self.offset_hours.map(|hours| hours * 3600 + self.offset_minutes * 60);
        let is_known = offset.is_none_or(|offset| offset.abs() < 16 * 3600);
        let is_short = (0..MICROS).contains(&self.micros);
        match is_known && is_short {
            true => Ok(Read { clock, micros: self.micros, offset }),
            false => Err(out_of_range()),
        }
    }

    fn date(&self) -> Option<Date> {
        let before = |year: i64| if self.is_before { 1 - year } else { year };
        if let Some(julian) = self.julian {
            return days_on(Date::new(1970, 1, 1).ok()?, julian.checked_sub(EPOCH_JULIAN)?);
        }
        if let Some(year) = self.year_iso {
            let year = i16::try_from(before(year)).ok()?;
            let week = i8::try_from(self.week_iso.unwrap_or(1)).ok()?;
            let day = i8::try_from(self.day_of_week_iso.unwrap_or(1)).ok()?;
            let day = Weekday::from_monday_one_offset(day).ok()?;
            return Some(ISOWeekDate::new(year, week, day).ok()?.date());
        }
        let year = match (self.year, self.century) {
            (Some(year), Some(century)) if (0..100).contains(&(year % 100)) && year < 100 => {
                (century - 1) * 100 + year
            }
            (Some(year), _) => before(year),
            (None, Some(century)) => before((century - 1) * 100 + 1),
            // The year before the first, as PostgreSQL has it where nobody says one.
            (None, None) => 0,
        };
        let year = i16::try_from(year).ok()?;
        let day_of_year = self.day_of_year.or(self.week.map(|week| (week - 1) * 7 + 1));
        if let Some(day) = day_of_year
            && (self.month.is_none() || self.week.is_some())
        {
            let first = Date::new(year, 1, 1).ok()?;
            return days_on(first, day.checked_sub(1)?).filter(|date| date.year() == year);
        }
        let day = self.day.or(self.week_of_month.map(|week| (week - 1) * 7 + 1)).unwrap_or(1);
        Date::new(year, i8::try_from(self.month.unwrap_or(1)).ok()?, i8::try_from(day).ok()?).ok()
    }
}

fn days_on(from: Date, days: i64) -> Option<Date> {
    let span = jiff::Span::new().try_days(days).ok()?;
    from.checked_add(span).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, template: &str, expected: &str) {
        let shown = match read(text, template) {
            Ok(Read { clock, micros, offset }) => {
                let offset = offset.map_or(String::new(), |offset| format!(" {offset}"));
                format!("{clock} {micros}{offset}")
            }
            Err(error) => error.code.to_string(),
        };
        assert_eq!(shown, expected, "{text} by {template}");
    }

    #[test]
    fn times_are_read_by_their_template() {
        check("05 Dec 2000", "DD Mon YYYY", "2000-12-05T00:00:00 0");
        check("20240229", "YYYYMMDD", "2024-02-29T00:00:00 0");
        check("2024-02-29 13:14:15.5", "YYYY-MM-DD HH24:MI:SS.MS", "2024-02-29T13:14:15 500000");
        check("2024/02/29", "YYYY-MM-DD", "2024-02-29T00:00:00 0");
        check("1:5 pm", "HH12:MI am", "0000-01-01T13:05:00 0");
        check("12 AM", "HH AM", "0000-01-01T00:00:00 0");
        check("2024-060", "YYYY-DDD", "2024-02-29T00:00:00 0");
        check("2024 09 4", "IYYY IW ID", "2024-02-29T00:00:00 0");
        check("29th February 24", "DDth Month YY", "2024-02-29T00:00:00 0");
        check("  2024", "YYYY", "2024-01-01T00:00:00 0");
        check(
            "2024-02-29 12:00 +02:30",
            "YYYY-MM-DD HH24:MI TZH:TZM",
            "2024-02-29T12:00:00 0 9000",
        );
        check("2460370", "J", "2024-02-29T00:00:00 0");
        check("13 AM", "HH AM", "22007");
        check("2024-02-30", "YYYY-MM-DD", "22008");
        check("x", "YYYY", "22007");
        check("2024 CET", "YYYY TZ", "0A000");
        check("99999999999999999999", "YYYY", "22007");
        check("99999", "SSSSS", "22008");
    }
}
