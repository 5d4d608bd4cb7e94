//! `to_char` of numbers, and `to_number`.
//!
//! A template has places for digits, and signs between them; what a number has no digit for is a
//! blank, or with `FM` nothing, and one that has more digits than places is shown as `#`.

use crate::functions::templates::pattern::{Case, ordinal};
use crate::types::error::SqlError;

/// Digits that a `double precision` has for sure.
pub const FLOAT_DIGITS: usize = 15;
/// Places of a template: more digits has no number.
const PLACES_MAX: usize = 1000;
/// Columns of a number in Roman numerals.
const ROMAN_WIDTH: usize = 15;

/// A piece of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// `9`.
    Digit,
    /// `0`.
    Zero,
    /// `.` and `D`.
    Point,
    /// `,` and `G`.
    Group,
    /// `L`.
    Currency,
    /// `MI`.
    Minus,
    /// `PL`.
    Plus,
    /// `SG`.
    Sign,
    /// `RN`.
    Roman(Case),
    /// `TH`.
    Ordinal(Case),
    /// Those that say how all of it is to be.
    Silent,
    Other(char),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeadingSign {
    Before,
    Behind,
}

/// What a template says of the whole number.
#[derive(Clone, Debug, Default)]
struct Format {
    marks: Vec<Mark>,
    /// Places before the point, and behind it.
    before: usize,
    behind: usize,
    has_point: bool,
    /// The place of the first `0` before the point, counted from 1, and the last one.
    zero_start: Option<usize>,
    zero_end: usize,
    is_filled: bool,
    sign: Option<LeadingSign>,
    /// Places before the `S`.
    before_sign: usize,
    has_minus: bool,
    has_plus: bool,
    has_brackets: bool,
    is_roman: bool,
    /// Digits behind `V`.
    shift: Option<usize>,
    is_scientific: bool,
}

/// Words of a template; of two that begin alike the longer one is first.
const WORDS: &[&str] = &[
    "EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH", "B", "C", "D", "G", "L", "S", "V", ",",
    ".", "0", "9",
];

fn wrong(words: &str) -> SqlError {
    SqlError::invalid(words)
}

impl Format {
    fn of(template: &str) -> Result<Format, SqlError> {
        let (mut format, mut rest) = (Format::default(), template);
        while !rest.is_empty() {
            let starts = |word: &&&str| {
                let begun = rest.get(..word.len());
                begun.is_some_and(|begun| *begun == ***word || begun == word.to_ascii_lowercase())
            };
            if let Some(word) = WORDS.iter().find(starts) {
                let is_small = rest.starts_with(|first: char| first.is_ascii_lowercase());
                rest = &rest[word.len()..];
                format.take(word, if is_small { Case::Lower } else { Case::Upper })?;
                continue;
            }
            rest = format.other(rest);
        }
        if PLACES_MAX < format.before + format.behind {
            let words = format!("a template of more than {PLACES_MAX} digits");
            return Err(SqlError::limit(words));
        }
        Ok(format)
    }

    /// Takes a quoted text or a character. Returns what is behind it.
    fn other<'a>(&mut self, text: &'a str) -> &'a str {
        let mut characters = text.chars();
        match characters.next() {
            Some('"') => {
                for one in characters.by_ref() {
                    match one {
                        '"' => break,
                        plain => self.marks.push(Mark::Other(plain)),
                    }
                }
            }
            Some('\\') if characters.as_str().starts_with('"') => {
                self.marks.extend(characters.next().map(Mark::Other));
            }
            one => self.marks.extend(one.map(Mark::Other)),
        }
        characters.as_str()
    }

    fn take(&mut self, word: &str, case: Case) -> Result<(), SqlError> {
        if self.is_scientific && word != "FM" {
            return Err(wrong("\"EEEE\" must be the last pattern used"));
        }
        let mark = match word {
            "9" | "0" => self.place(word == "0")?,
            "." | "D" => {
                if self.has_point {
                    return Err(wrong("multiple decimal points"));
                }
                if self.shift.is_some() {
                    return Err(wrong("cannot use \"V\" and decimal point together"));
                }
                self.has_point = true;
                Mark::Point
            }
            "," | "G" => Mark::Group,
            "L" => Mark::Currency,
            "FM" => {
                self.is_filled = true;
                Mark::Silent
            }
            "S" => {
                self.leading_sign()?;
                Mark::Silent
            }
            "MI" | "PL" | "SG" => {
                if self.sign.is_some() {
                    return Err(wrong(&format!("cannot use \"S\" and \"{word}\" together")));
                }
                self.has_minus |= word != "PL";
                self.has_plus |= word != "MI";
                match word {
                    "MI" => Mark::Minus,
                    "PL" => Mark::Plus,
                    _ => Mark::Sign,
                }
            }
            "PR" => {
                if self.sign.is_some() || self.has_minus || self.has_plus {
                    return Err(wrong("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
                }
                self.has_brackets = true;
                Mark::Silent
            }
            "RN" => {
                self.is_roman = true;
                Mark::Roman(case)
            }
            "TH" => Mark::Ordinal(case),
            "V" => {
                if self.has_point {
                    return Err(wrong("cannot use \"V\" and decimal point together"));
                }
                self.shift = Some(0);
                Mark::Silent
            }
            "EEEE" => {
                self.is_scientific = true;
                Mark::Silent
            }
            _ => Mark::Silent,
        };
        self.marks.push(mark);
        Ok(())
    }

    fn place(&mut self, is_zero: bool) -> Result<Mark, SqlError> {
        if self.has_brackets {
            return Err(wrong("\"9\" must be ahead of \"PR\""));
        }
        if is_zero && self.zero_start.is_none() && !self.has_point {
            self.zero_start = Some(self.before + 1);
        }
        match &mut self.shift {
            Some(digits) if !is_zero => *digits += 1,
            _ if self.has_point => self.behind += 1,
            _ => self.before += 1,
        }
        if is_zero {
            self.zero_end = self.before + self.behind;
        }
        Ok(if is_zero { Mark::Zero } else { Mark::Digit })
    }

    fn leading_sign(&mut self) -> Result<(), SqlError> {
        if self.sign == Some(LeadingSign::Before) {
            return Err(wrong("cannot use \"S\" twice"));
        }
        if self.has_minus || self.has_plus || self.has_brackets {
            return Err(wrong("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
        }
        match self.has_point {
            false => {
                self.sign = Some(LeadingSign::Before);
                self.before_sign = self.before;
            }
            true => self.sign = self.sign.or(Some(LeadingSign::Behind)),
        }
        Ok(())
    }
}

/// A number, by its sign and its digits with a point among them.
pub trait Number {
    /// Whether it is less than nothing.
    fn is_negative(&self) -> bool;
    /// Whether the number is below zero after it is rounded to `behind` digits behind the point.
    fn is_negative_at(&self, _behind: usize) -> bool {
        self.is_negative()
    }
    /// Its digits, without a sign, so many of them behind the point; fewer where it has no more.
    fn digits(&self, behind: usize) -> String;
    /// The same number times a power of ten.
    fn shifted(&self, by: usize) -> Box<dyn Number>;
    /// With so many digits behind the first one, and an exponent; none of what is no number.
    fn scientific(&self, behind: usize) -> Option<String>;
    /// As a whole number for Roman numerals, if it is one of those.
    fn roman(&self) -> Option<u32>;
}

/// A number as a template has it.
///
/// # Errors
/// When the template contradicts itself.
pub fn number(number: &dyn Number, template: &str) -> Result<String, SqlError> {
    let format = Format::of(template)?;
    if format.is_roman {
        return Ok(roman(number, &format));
    }
    if format.is_scientific {
        let text = number.scientific(format.behind);
        return Ok(match text {
            Some(text) if number.is_negative() => text,
            Some(text) => format!(" {text}"),
            None => "#".repeat(format.before + format.behind + 1),
        });
    }
    let shifted = format.shift.map(|by| number.shifted(by));
    let number = shifted.as_deref().unwrap_or(number);
    let format = match format.shift {
        Some(by) => Format { before: format.before + by, ..format },
        None => format,
    };
    Ok(Written::new(number, format).text())
}

fn roman(number: &dyn Number, format: &Format) -> String {
    const NUMERALS: [(u32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let numeral = match number.roman() {
        Some(mut left) => {
            let mut numeral = String::new();
            for (worth, letters) in NUMERALS {
                while worth <= left {
                    numeral.push_str(letters);
                    left -= worth;
                }
            }
            numeral
        }
        None => "#".repeat(ROMAN_WIDTH),
    };
    let mut out = String::new();
    for mark in &format.marks {
        match mark {
            Mark::Roman(case) => {
                let numeral = crate::functions::templates::pattern::in_case(&numeral, *case);
                match format.is_filled {
                    true => out.push_str(&numeral),
                    false => out.push_str(&format!("{numeral:>ROMAN_WIDTH$}")),
                }
            }
            Mark::Other(one) => out.push(*one),
            _ => {}
        }
    }
    out
}

/// A number on its way into a template.
struct Written {
    format: Format,
    is_negative: bool,
    digits: Vec<u8>,
    /// The next digit.
    at: usize,
    /// The last digit that `FM` keeps; the point itself where there is none behind it.
    last: Option<usize>,
    /// Places before the number begins.
    blanks: usize,
    /// Places that were passed.
    places: usize,
    has_sign: bool,
    has_begun: bool,
    count: usize,
    out: String,
}

impl Written {
    fn new(number: &dyn Number, mut format: Format) -> Written {
        let is_negative = number.is_negative_at(format.behind);
        let mut digits = number.digits(format.behind);
        let whole = digits.find('.').unwrap_or(digits.len());
        format.behind = if digits.contains('.') { digits.len() - whole - 1 } else { 0 };
        let blanks = format.before.saturating_sub(whole);
        if format.before < whole {
            // It has no room.
            digits = "#".repeat(format.before);
            if format.has_point || format.behind != 0 {
                digits.push('.');
                digits.push_str(&"#".repeat(format.behind));
            }
        }
        if !is_negative && format.is_filled {
            format.has_brackets = false;
        }
        let has_sign = match (format.has_plus, format.has_minus) {
            (true, false) => false,
            (false, false) => !is_negative && format.is_filled && format.sign.is_none(),
            _ => true,
        };
        if format.sign == Some(LeadingSign::Before) && format.before == format.before_sign {
            format.sign = Some(LeadingSign::Behind);
        }
        let digits = digits.into_bytes();
        let last = if format.is_filled && format.has_point {
            last_kept(&digits, &format, blanks)
        } else {
            None
        };
        let mut count = (format.behind + format.before).saturating_sub(1);
        count += usize::from(!has_sign && blanks == 0);
        let (at, places, has_begun) = (0, 0, false);
        let out = String::new();
        Written {
            format,
            is_negative,
            digits,
            at,
            last,
            blanks,
            places,
            has_sign,
            has_begun,
            count,
            out,
        }
    }

    fn text(mut self) -> String {
        let marks = std::mem::take(&mut self.format.marks);
        for mark in &marks {
            let is_filled = self.format.is_filled;
            match mark {
                Mark::Digit | Mark::Zero | Mark::Point => self.place(*mark),
                Mark::Group if self.has_begun => self.out.push(','),
                Mark::Group | Mark::Currency if !is_filled => self.out.push(' '),
                Mark::Currency => self.out.push(' '),
                Mark::Ordinal(case) => {
                    let is_shown = self.digits.first() != Some(&b'#')
                        && !self.is_negative
                        && !self.format.has_point;
                    if is_shown {
                        let digits = String::from_utf8_lossy(&self.digits).into_owned();
                        self.out.push_str(ordinal(&digits, *case));
                    }
                }
                Mark::Minus if self.is_negative => self.out.push('-'),
                Mark::Plus if !self.is_negative => self.out.push('+'),
                Mark::Minus | Mark::Plus if !is_filled => self.out.push(' '),
                Mark::Sign => self.out.push(if self.is_negative { '-' } else { '+' }),
                Mark::Other(one) => self.out.push(*one),
                _ => {}
            }
        }
        self.out
    }

    /// Whether the next digit is the nought before a point, for which `9` has a blank.
    fn is_lone_nought(&self) -> bool {
        let has_zero = self.format.zero_start.is_some();
        !has_zero && self.at == 0 && self.digits.first() == Some(&b'0') && self.format.behind != 0
    }

    fn ends_in_point(&self) -> bool {
        self.last.is_some_and(|last| self.digits.get(last) == Some(&b'.'))
    }

    fn sign(&mut self) {
        let has_room = self.blanks <= self.places
            || self.format.zero_start.is_some_and(|start| start - 1 == self.places);
        if self.has_sign || !has_room || self.is_lone_nought() && !self.ends_in_point() {
            return;
        }
        match self.format.sign {
            Some(LeadingSign::Before) => {
                self.out.push(if self.is_negative { '-' } else { '+' });
                self.has_sign = true;
            }
            Some(LeadingSign::Behind) => {}
            None if self.format.has_brackets => {
                self.out.push(if self.is_negative { '<' } else { ' ' });
                self.has_sign = true;
            }
            None => {
                match self.is_negative {
                    true => self.out.push('-'),
                    false if !self.format.is_filled => self.out.push(' '),
                    false => {}
                }
                self.has_sign = true;
            }
        }
    }

    fn place(&mut self, mark: Mark) {
        self.has_begun = false;
        self.sign();
        let zero_start = self.format.zero_start.map(|start| start - 1);
        if self.places < self.blanks {
            match zero_start {
                Some(start) if start <= self.places => {
                    self.out.push('0');
                    self.has_begun = true;
                }
                _ if !self.format.is_filled => self.out.push(' '),
                _ => {}
            }
        } else {
            self.digit(mark);
        }
        let mut end =
            self.count + usize::from(self.blanks != 0) + usize::from(self.format.has_point);
        if self.last == Some(self.at) && self.last.is_some() {
            end = self.places;
        }
        if self.places + 1 == end {
            if self.has_sign && self.format.has_brackets {
                self.out.push(if self.is_negative { '>' } else { ' ' });
            } else if self.format.sign == Some(LeadingSign::Behind) {
                self.out.push(if self.is_negative { '-' } else { '+' });
            }
        }
        self.places += 1;
    }

    fn digit(&mut self, mark: Mark) {
        let Some(digit) = self.digits.get(self.at).copied() else { return };
        if digit == b'.' {
            if !self.ends_in_point() || self.format.is_filled {
                self.out.push('.');
            }
        } else if self.last.is_some_and(|last| last < self.at) && mark != Mark::Zero {
            // `FM` leaves it out.
        } else if self.is_lone_nought() {
            if !self.format.is_filled {
                self.out.push(' ');
            } else if self.ends_in_point() {
                self.out.push('0');
            }
        } else {
            self.out.push(char::from(digit));
            self.has_begun = true;
        }
        self.at += 1;
    }
}

/// The place of the last digit that is not cut off: one that is no nought, or stands for a `0`.
fn last_kept(digits: &[u8], format: &Format, blanks: usize) -> Option<usize> {
    let point = digits.iter().position(|digit| *digit == b'.')?;
    let behind = digits.iter().rposition(|digit| *digit != b'0').unwrap_or(point);
    let mut last = behind.max(point);
    if blanks < format.zero_end {
        let zero = (digits.len() - 1).min(format.zero_end - blanks);
        last = last.max(zero);
    }
    Some(last)
}

/// The number that a text is by a template, in digits with a sign and a point; none where there is none.
///
/// # Errors
/// When the template contradicts itself.
pub fn read(text: &str, template: &str) -> Result<Option<String>, SqlError> {
    let format = Format::of(template)?;
    if format.is_roman || format.is_scientific {
        let word = if format.is_roman { "RN" } else { "EEEE" };
        return Err(SqlError::unsupported(format!("\"{word}\" not supported for input")));
    }
    let (mut digits, mut is_negative) = (String::new(), false);
    let (mut places, mut behind) = (format.before, format.behind);
    let mut has_point = false;
    for one in text.chars() {
        match one {
            '-' | '<' => is_negative = true,
            '.' if format.has_point && !has_point => {
                has_point = true;
                digits.push('.');
            }
            '.' if !format.has_point => break,
            digit if digit.is_ascii_digit() => {
                let left = if has_point { &mut behind } else { &mut places };
                match left.checked_sub(1) {
                    Some(fewer) => *left = fewer,
                    None => continue,
                }
                digits.push(digit);
            }
            _ => {}
        }
    }
    if !digits.contains(|one: char| one.is_ascii_digit()) {
        return Ok(None);
    }
    let sign = if is_negative { "-" } else { "" };
    Ok(Some(format!("{sign}{digits}")))
}
