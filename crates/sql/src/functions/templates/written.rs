//! `to_char` of times and intervals.

use crate::functions::templates::pattern::{
    Case, DAYS, Dots, Field, MONTHS, Piece, ROMAN, Said, in_case, ordinal, pieces,
};
use crate::types::error::SqlError;
use crate::types::text::shown::Length;
use jiff::civil::DateTime;

/// Columns of a name that is filled up with blanks.
const NAME_WIDTH: usize = 9;
/// Columns of a month in Roman numerals.
const ROMAN_WIDTH: usize = 4;
/// The number of the Julian day that 1970 began with.
const EPOCH_JULIAN: i64 = 2_440_588;
const MICROS: i64 = 1_000_000;

/// Where a clock stands.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Seconds ahead of UTC.
    pub offset: i32,
    /// Its zone's name; empty where there is none.
    pub zone: &'a str,
}

/// What the fields of a time are.
struct Parts<'a> {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    day_of_year: i64,
    julian: i64,
    /// The year, the week and the day of ISO's calendar, and the day from Sunday on; none of an interval.
    week: Option<Week>,
    place: Place<'a>,
}

struct Week {
    year: i64,
    week: i64,
    /// From Monday, 1.
    day: i64,
}

/// A time as a template has it.
pub fn time(clock: DateTime, place: Place<'_>, template: &str) -> Result<String, SqlError> {
    let date = clock.date();
    let iso = date.iso_week_date();
    let epoch = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
    let days = clock.duration_since(epoch).as_secs().div_euclid(86_400);
    let parts = Parts {
        year: i64::from(date.year()),
        month: i64::from(date.month()),
        day: i64::from(date.day()),
        hour: i64::from(clock.hour()),
        minute: i64::from(clock.minute()),
        second: i64::from(clock.second()),
        micros: i64::from(clock.subsec_nanosecond() / 1000),
        day_of_year: i64::from(date.day_of_year()),
        julian: days + EPOCH_JULIAN,
        week: Some(Week {
            year: i64::from(iso.year()),
            week: i64::from(iso.week()),
            day: i64::from(iso.weekday().to_monday_one_offset()),
        }),
        place,
    };
    parts.written(template)
}

/// An interval as a template has it.
pub fn interval(length: Length, template: &str) -> Result<String, SqlError> {
    let (years, months) = (i64::from(length.months / 12), i64::from(length.months % 12));
    let seconds = length.micros / MICROS;
    let parts = Parts {
        year: years,
        month: months,
        day: i64::from(length.days),
        hour: seconds / 3600,
        minute: seconds / 60 % 60,
        second: seconds % 60,
        micros: length.micros % MICROS,
        day_of_year: i64::from(length.months) * 30 + i64::from(length.days),
        julian: i64::from(length.months) * 30 + i64::from(length.days),
        week: None,
        place: Place { offset: 0, zone: "" },
    };
    parts.written(template)
}

/// A number with zeros before it, unless it is not to be filled up; a sign takes a place of its own.
fn digits(number: i64, width: usize, said: Said) -> String {
    let width = if said.is_filled { 0 } else { width + usize::from(number < 0) };
    let mut text = format!("{number:0width$}");
    if let Some(case) = said.ordinal {
        text.push_str(ordinal(&text.clone(), case));
    }
    text
}

fn padded(word: String, width: usize, said: Said) -> String {
    if said.is_filled { word } else { format!("{word:width$}") }
}

fn in_dots(word: [&str; 2], dots: Dots, case: Case) -> String {
    let [plain, dotted] = word;
    in_case(if dots == Dots::With { dotted } else { plain }, case)
}

impl Parts<'_> {
    fn written(&self, template: &str) -> Result<String, SqlError> {
        let mut out = String::with_capacity(template.len() + 16);
        for piece in pieces(template) {
            match piece {
                Piece::Other(one) => out.push(one),
                Piece::Field(said) => out.push_str(&self.field(said)?),
            }
        }
        Ok(out)
    }

    fn week(&self) -> Result<&Week, SqlError> {
        self.week.as_ref().ok_or_else(|| {
            let words = "invalid format specification for an interval value";
            SqlError::new("22007", words)
                .with_hint("Intervals are not tied to specific calendar dates.")
        })
    }

    /// Years before the first are counted from its end.
    fn shown_year(&self) -> i64 {
        match self.week {
            Some(_) if self.year <= 0 => 1 - self.year,
            _ => self.year,
        }
    }

    fn field(&self, said: Said) -> Result<String, SqlError> {
        Ok(match said.field {
            Field::Exact => String::new(),
            Field::Era(dots) => {
                self.week()?;
                let word = if self.year <= 0 { ["BC", "B.C."] } else { ["AD", "A.D."] };
                in_dots(word, dots, said.case)
            }
            Field::Half(dots) => {
                let word =
                    if 12 <= self.hour.rem_euclid(24) { ["PM", "P.M."] } else { ["AM", "A.M."] };
                in_dots(word, dots, said.case)
            }
            Field::Hour24 => digits(self.hour, 2, said),
            Field::Hour12 => match self.hour % 12 {
                0 => digits(12, 2, said),
                hour => digits(hour, 2, said),
            },
            Field::Minute => digits(self.minute, 2, said),
            Field::Second => digits(self.second, 2, said),
            Field::Fraction(count) => {
                let scale = 10_i64.pow(6 - u32::try_from(count).unwrap_or(6));
                let filled = Said { is_filled: false, ..said };
                digits(self.micros / scale, count, filled)
            }
            Field::SecondOfDay => {
                let seconds = self.hour * 3600 + self.minute * 60 + self.second;
                digits(seconds, 0, said)
            }
            Field::Zone => in_case(self.place.zone, said.case),
            Field::Offset | Field::ZoneHours | Field::ZoneMinutes => self.offset(said)?,
            _ => self.calendar(said)?,
        })
    }

    fn offset(&self, said: Said) -> Result<String, SqlError> {
        self.week()?;
        let offset = self.place.offset;
        let sign = if offset < 0 { '-' } else { '+' };
        let (hours, minutes) = (offset.abs() / 3600, offset.abs() / 60 % 60);
        Ok(match said.field {
            Field::ZoneHours => format!("{sign}{hours:02}"),
            Field::ZoneMinutes => format!("{minutes:02}"),
            _ if minutes == 0 => format!("{sign}{hours:02}"),
            _ => format!("{sign}{hours:02}:{minutes:02}"),
        })
    }

    /// What days, weeks and months are called.
    fn name(&self, said: Said) -> Result<String, SqlError> {
        let is_short = matches!(said.field, Field::DayNameShort | Field::MonthNameShort);
        let name = match said.field {
            Field::DayName | Field::DayNameShort => {
                DAYS[usize::try_from(self.week()?.day % 7).unwrap_or(0)]
            }
            _ => {
                self.week()?;
                MONTHS[usize::try_from(self.month - 1).unwrap_or(0) % 12]
            }
        };
        let name = in_case(if is_short { &name[..3] } else { name }, said.case);
        Ok(if is_short { name } else { padded(name, NAME_WIDTH, said) })
    }

    fn calendar(&self, said: Said) -> Result<String, SqlError> {
        let year = self.shown_year();
        Ok(match said.field {
            Field::DayName | Field::DayNameShort | Field::MonthName | Field::MonthNameShort => {
                self.name(said)?
            }
            Field::Month => digits(self.month, 2, said),
            Field::Roman if self.month == 0 => String::new(),
            Field::Roman => {
                let numeral = ROMAN[usize::try_from(self.month - 1).unwrap_or(0) % 12];
                padded(in_case(numeral, said.case), ROMAN_WIDTH, said)
            }
            Field::Quarter if self.month == 0 => String::new(),
            Field::Quarter => digits((self.month - 1) / 3 + 1, 0, said),
            // The sign takes a place, as it does for no other field.
            Field::Day => digits(self.day, 2 - usize::from(self.day < 0), said),
            Field::DayOfYear => digits(self.day_of_year, 3, said),
            Field::DayOfYearIso => {
                let week = self.week()?;
                digits((week.week - 1) * 7 + week.day, 3, said)
            }
            Field::DayOfWeek => digits(self.week()?.day % 7 + 1, 0, said),
            Field::DayOfWeekIso => digits(self.week()?.day, 0, said),
            Field::Week => digits((self.day_of_year - 1) / 7 + 1, 2, said),
            Field::WeekIso => digits(self.week()?.week, 2, said),
            Field::WeekOfMonth => digits((self.day - 1) / 7 + 1, 0, said),
            Field::Julian => digits(self.julian, 0, said),
            Field::Century => {
                let century = match self.week {
                    None => self.year / 100,
                    Some(_) if 0 < self.year => (self.year - 1) / 100 + 1,
                    Some(_) => self.year / 100 - 1,
                };
                digits(century, 2, said)
            }
            Field::YearWithComma => {
                let text = format!("{},{:03}", year / 1000, year % 1000);
                let ending = said.ordinal.map_or("", |case| ordinal(&text, case));
                format!("{text}{ending}")
            }
            Field::Year(count) => years(year, count, said),
            Field::YearIso(count) => years(self.week()?.year, count, said),
            _ => String::new(),
        })
    }
}

/// The last digits of a year.
fn years(year: i64, count: usize, said: Said) -> String {
    match count {
        4 => digits(year, 4, said),
        count => {
            let scale = 10_i64.pow(u32::try_from(count).unwrap_or(1));
            digits(year % scale, count, said)
        }
    }
}
