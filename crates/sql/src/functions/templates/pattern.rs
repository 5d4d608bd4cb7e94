//! A template of `to_char` and `to_timestamp`, cut into fields and what stands between them
//! (<https://www.postgresql.org/docs/15/functions-formatting.html>).

/// What a field says. Those whose letters say how theirs are to be are there once, with [`Case`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `AD`, `BC`; with dots or without.
    Era(Dots),
    /// `AM`, `PM`; with dots or without.
    Half(Dots),
    Century,
    DayName,
    DayNameShort,
    DayOfWeek,
    DayOfWeekIso,
    DayOfYear,
    DayOfYearIso,
    Day,
    /// So many digits of a second.
    Fraction(usize),
    /// `FX`: exactly as the template says.
    Exact,
    Hour24,
    Hour12,
    WeekIso,
    /// So many digits of the year of ISO's weeks.
    YearIso(usize),
    Julian,
    Minute,
    Month,
    MonthName,
    MonthNameShort,
    /// `OF`.
    Offset,
    Quarter,
    Roman,
    SecondOfDay,
    Second,
    ZoneHours,
    ZoneMinutes,
    Zone,
    Week,
    WeekOfMonth,
    /// `Y,YYY`.
    YearWithComma,
    /// So many digits of the year.
    Year(usize),
}

/// Whether `A.D.` has dots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dots {
    With,
    Without,
}

/// In which letters a word is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Upper,
    Title,
    Lower,
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A field.
    Field(Said),
    /// Anything else, character by character.
    Other(char),
}

/// A field as it was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    pub field: Field,
    pub case: Case,
    /// `FM`: without the blanks and zeros that fill it up.
    pub is_filled: bool,
    /// `TH` or `th` stands behind it.
    pub ordinal: Option<Case>,
    /// As it stands in the template, for words.
    pub name: &'static str,
}

/// Fields by their letters; of two that begin alike the longer one is first. Those of letters alone
/// are also there in small ones, with the same meaning.
const FIELDS: &[(&str, Field, Case)] = &[
    ("A.D.", Field::Era(Dots::With), Case::Upper),
    ("A.M.", Field::Half(Dots::With), Case::Upper),
    ("AD", Field::Era(Dots::Without), Case::Upper),
    ("AM", Field::Half(Dots::Without), Case::Upper),
    ("B.C.", Field::Era(Dots::With), Case::Upper),
    ("BC", Field::Era(Dots::Without), Case::Upper),
    ("CC", Field::Century, Case::Upper),
    ("DAY", Field::DayName, Case::Upper),
    ("DDD", Field::DayOfYear, Case::Upper),
    ("DD", Field::Day, Case::Upper),
    ("DY", Field::DayNameShort, Case::Upper),
    ("Day", Field::DayName, Case::Title),
    ("Dy", Field::DayNameShort, Case::Title),
    ("D", Field::DayOfWeek, Case::Upper),
    ("FF1", Field::Fraction(1), Case::Upper),
    ("FF2", Field::Fraction(2), Case::Upper),
    ("FF3", Field::Fraction(3), Case::Upper),
    ("FF4", Field::Fraction(4), Case::Upper),
    ("FF5", Field::Fraction(5), Case::Upper),
    ("FF6", Field::Fraction(6), Case::Upper),
    ("FX", Field::Exact, Case::Upper),
    ("HH24", Field::Hour24, Case::Upper),
    ("HH12", Field::Hour12, Case::Upper),
    ("HH", Field::Hour12, Case::Upper),
    ("IDDD", Field::DayOfYearIso, Case::Upper),
    ("ID", Field::DayOfWeekIso, Case::Upper),
    ("IW", Field::WeekIso, Case::Upper),
    ("IYYY", Field::YearIso(4), Case::Upper),
    ("IYY", Field::YearIso(3), Case::Upper),
    ("IY", Field::YearIso(2), Case::Upper),
    ("I", Field::YearIso(1), Case::Upper),
    ("J", Field::Julian, Case::Upper),
    ("MI", Field::Minute, Case::Upper),
    ("MM", Field::Month, Case::Upper),
    ("MONTH", Field::MonthName, Case::Upper),
    ("MON", Field::MonthNameShort, Case::Upper),
    ("MS", Field::Fraction(3), Case::Upper),
    ("Month", Field::MonthName, Case::Title),
    ("Mon", Field::MonthNameShort, Case::Title),
    ("OF", Field::Offset, Case::Upper),
    ("P.M.", Field::Half(Dots::With), Case::Upper),
    ("PM", Field::Half(Dots::Without), Case::Upper),
    ("Q", Field::Quarter, Case::Upper),
    ("RM", Field::Roman, Case::Upper),
    ("SSSSS", Field::SecondOfDay, Case::Upper),
    ("SSSS", Field::SecondOfDay, Case::Upper),
    ("SS", Field::Second, Case::Upper),
    ("TZH", Field::ZoneHours, Case::Upper),
    ("TZM", Field::ZoneMinutes, Case::Upper),
    ("TZ", Field::Zone, Case::Upper),
    ("US", Field::Fraction(6), Case::Upper),
    ("WW", Field::Week, Case::Upper),
    ("W", Field::WeekOfMonth, Case::Upper),
    ("Y,YYY", Field::YearWithComma, Case::Upper),
    ("YYYY", Field::Year(4), Case::Upper),
    ("YYY", Field::Year(3), Case::Upper),
    ("YY", Field::Year(2), Case::Upper),
    ("Y", Field::Year(1), Case::Upper),
];

/// The field at the beginning of a text.
fn field_at(text: &str) -> Option<(&'static str, Field, Case)> {
    let exact = FIELDS.iter().find(|(letters, ..)| text.starts_with(letters));
    let small = || {
        let starts = |letters: &str| {
            text.get(..letters.len()).is_some_and(|begun| {
                begun.to_ascii_uppercase() == letters && *begun == letters.to_ascii_lowercase()
            })
        };
        let is_upper = |case: &Case| *case == Case::Upper;
        FIELDS.iter().find(|(letters, _, case)| is_upper(case) && starts(letters))
    };
    match exact {
        Some((letters, field, case)) => Some((*letters, *field, *case)),
        None => small().map(|(letters, field, _)| (*letters, *field, Case::Lower)),
    }
}

/// Cuts a template.
pub fn pieces(template: &str) -> Vec<Piece> {
    let (mut all, mut rest) = (Vec::new(), template);
    while !rest.is_empty() {
        let mut said = rest;
        let (mut is_filled, mut is_translated) = (false, false);
        // Prefixes of a field; without one they are themselves.
        while let Some(begun) = said.get(..2) {
            match begun {
                "FM" | "fm" => is_filled = true,
                "TM" | "tm" => is_translated = true,
                _ => break,
            }
            said = &said[2..];
        }
        if let Some((name, field, case)) = field_at(said) {
            said = &said[name.len()..];
            // Names in the language of the session are not padded.
            is_filled |= is_translated && matches!(field, Field::DayName | Field::MonthName);
            let ordinal = match said.get(..2) {
                Some("TH") => Some(Case::Upper),
                Some("th") => Some(Case::Lower),
                _ => None,
            };
            if ordinal.is_some() {
                said = &said[2..];
            }
            all.push(Piece::Field(Said { field, case, is_filled, ordinal, name }));
            rest = said;
            continue;
        }
        rest = match said.is_empty() {
            true => said,
            false => other(said, &mut all),
        };
    }
    all
}

/// Takes what is no field: a quoted text, or a character. Returns what is behind it.
fn other<'a>(text: &'a str, all: &mut Vec<Piece>) -> &'a str {
    let mut characters = text.chars();
    match characters.next() {
        Some('"') => {
            while let Some(one) = characters.next() {
                match one {
                    '"' => break,
                    '\\' => all.extend(characters.next().map(Piece::Other)),
                    plain => all.push(Piece::Other(plain)),
                }
            }
        }
        // A backslash escapes a quote alone.
        Some('\\') if characters.as_str().starts_with('"') => {
            all.extend(characters.next().map(Piece::Other));
        }
        Some(plain) => all.push(Piece::Other(plain)),
        None => {}
    }
    characters.as_str()
}

/// Whether a character parts fields: what is neither a letter, a digit nor a control character.
pub fn is_separator(one: char) -> bool {
    one.is_ascii_graphic() && !one.is_ascii_alphanumeric()
}

/// The names of months.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The names of days, from Sunday on.
pub const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Months in Roman numerals.
pub const ROMAN: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// A word in such letters.
pub fn in_case(word: &str, case: Case) -> String {
    match case {
        Case::Upper => word.to_uppercase(),
        Case::Title => word.to_string(),
        Case::Lower => word.to_lowercase(),
    }
}

/// What stands behind an ordinal number.
pub fn ordinal(digits: &str, case: Case) -> &'static str {
    let mut last = digits.bytes().rev();
    let (units, tens) = (last.next().unwrap_or(b'0'), last.next().unwrap_or(b'0'));
    let (upper, lower) = match (tens, units) {
        (b'1', _) => ("TH", "th"),
        (_, b'1') => ("ST", "st"),
        (_, b'2') => ("ND", "nd"),
        (_, b'3') => ("RD", "rd"),
        _ => ("TH", "th"),
    };
    if case == Case::Upper { upper } else { lower }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_field_counts() {
        let names = |template: &str| {
            let all = pieces(template).into_iter();
            let shown = all.map(|piece| match piece {
                Piece::Field(said) => format!("<{}>", said.name),
                Piece::Other(one) => one.to_string(),
            });
            shown.collect::<String>()
        };
        for (template, expected) in [
            ("YYYY-MM-DD HH24:MI:SS", "<YYYY>-<MM>-<DD> <HH24>:<MI>:<SS>"),
            ("yyyymmdd", "<YYYY><MM><DD>"),
            ("FMDay, FMDDth", "<Day>, <DD>"),
            ("\"at\" HH12\\\"", "at <HH12>\""),
            ("Hh", "Hh"),
            ("SSSSS SSSS MS US FF3", "<SSSSS> <SSSS> <MS> <US> <FF3>"),
            ("", ""),
            ("FM", ""),
            ("é\"", "é"),
        ] {
            assert_eq!(names(template), expected, "{template}");
        }
    }
}
