//! Texts that are intervals (<https://www.postgresql.org/docs/15/datatype-datetime.html#DATATYPE-INTERVAL-INPUT>):
//! `1 day 02:03`, `2 hours ago`, `1-2`, and ISO 8601 with designators, `P1DT2H`.

/// Microseconds of a second, a minute, an hour and a day.
const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Characters of a unit that PostgreSQL looks at.
const UNIT_SIZE: usize = 10;
/// Digits behind the point that are read.
const FRACTION_DIGITS_MAX: usize = 18;

/// An interval in months, days and microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub months: i64,
    pub days: i64,
    pub micros: i64,
}

impl Span {
    fn add_months(&mut self, number: i64, scale: i64) -> Option<()> {
        self.months = number.checked_mul(scale)?.checked_add(self.months)?;
        Some(())
    }

    fn add_days(&mut self, number: i64, scale: i64) -> Option<()> {
        self.days = number.checked_mul(scale)?.checked_add(self.days)?;
        Some(())
    }

    fn add_micros(&mut self, number: i64, fraction: f64, scale: i64) -> Option<()> {
        self.micros = number.checked_mul(scale)?.checked_add(self.micros)?;
        let micros = fraction * scale as f64;
        // Halves go towards zero.
        let micros = (micros.abs() - 0.5).ceil().copysign(micros) as i64;
        self.micros = self.micros.checked_add(micros)?;
        Some(())
    }

    fn add_fraction_of_days(&mut self, fraction: f64, scale: f64) -> Option<()> {
        let days = fraction * scale;
        self.add_days(days.trunc() as i64, 1)?;
        self.add_micros(0, days.fract(), DAY)
    }

    fn add(&mut self, number: Number, unit: Unit) -> Option<()> {
        let Number { whole, fraction } = number;
        match unit {
            Unit::Micros(scale) => self.add_micros(whole, fraction, scale),
            Unit::Days(scale) => {
                self.add_days(whole, scale)?;
                self.add_fraction_of_days(fraction, scale as f64)
            }
            Unit::Month => {
                self.add_months(whole, 1)?;
                self.add_fraction_of_days(fraction, 30.0)
            }
            Unit::Years(scale) => {
                self.add_months(whole, scale * 12)?;
                self.add_months((fraction * (scale * 12) as f64).round_ties_even() as i64, 1)
            }
        }
    }

    fn negated(self) -> Option<Span> {
        Some(Span {
            months: self.months.checked_neg()?,
            days: self.days.checked_neg()?,
            micros: self.micros.checked_neg()?,
        })
    }
}

/// The integer part and the fraction of a number; both have its sign.
#[derive(Clone, Copy)]
struct Number {
    whole: i64,
    fraction: f64,
}

/// A unit with its size in microseconds, days or years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Micros(i64),
    Days(i64),
    Month,
    Years(i64),
}

/// Fields that an interval has once at most.
#[derive(Default)]
struct Fields(Vec<Unit>);

impl Fields {
    fn insert(&mut self, unit: Unit) -> Option<()> {
        if self.0.contains(&unit) {
            return None;
        }
        self.0.push(unit);
        Some(())
    }
}

enum Token {
    /// A number with or without a sign; it may be `years-months`.
    Number(String),
    /// A time of day with or without a sign.
    Time(String),
    Word(String),
}

/// Reads an interval; none if the text is none, or one of its numbers is out of range.
pub fn read_interval(text: &str) -> Option<Span> {
    match read_words(text) {
        Some(span) => Some(span),
        None => read_iso(text.trim()),
    }
}

/// An interval as arrow reads it: `1 day 02:03:04.5` is `1 days 7384.5 secs`. A text that is no interval stays as it is, for
/// arrow to refuse.
pub fn interval_text(text: &str) -> String {
    let Some(Span { months, days, micros }) = read_interval(text) else {
        return text.to_string();
    };
    let mut words = Vec::new();
    if months != 0 {
        words.push(format!("{months} mons"));
    }
    if days != 0 {
        words.push(format!("{days} days"));
    }
    if micros != 0 || words.is_empty() {
        let sign = if micros < 0 { "-" } else { "" };
        let (whole, rest) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
        let point = if rest == 0 { String::new() } else { format!(".{rest:06}") };
        words.push(format!("{sign}{whole}{point} secs"));
    }
    words.join(" ")
}

/// Reads numbers and units from the right to the left, as PostgreSQL does: a number without a unit is one of seconds, or of
/// days before a time of day.
fn read_words(text: &str) -> Option<Span> {
    let mut span = Span::default();
    let mut fields = Fields::default();
    let (mut unit, mut is_ago) = (Some(Unit::Micros(SECOND)), false);
    for token in tokens(text)?.into_iter().rev() {
        match token {
            Token::Time(clock) => {
                let (sign, clock) = signed(&clock);
                span.micros = span.micros.checked_add(sign * time_of(clock)?)?;
                for part in [HOUR, MINUTE, SECOND] {
                    fields.insert(Unit::Micros(part))?;
                }
                unit = Some(Unit::Days(1));
            }
            Token::Number(number) => {
                let (number, own) = match years_and_months(&number) {
                    Some(months) => (Number { whole: months?, fraction: 0.0 }, Unit::Month),
                    None => (number_of(&number)?, unit?),
                };
                fields.insert(own)?;
                span.add(number, own)?;
                unit = match own {
                    Unit::Micros(HOUR) => Some(Unit::Days(1)),
                    _ => Some(own),
                };
            }
            Token::Word(word) if word == "ago" => (is_ago, unit) = (true, None),
            Token::Word(word) => unit = Some(unit_of(&word)?),
        }
    }
    if fields.0.is_empty() {
        return None;
    }
    if is_ago { span.negated() } else { Some(span) }
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_sign = matches!(first, '+' | '-');
        let size = match first {
            'a'..='z' | 'A'..='Z' => {
                let size = rest.find(|one: char| !one.is_ascii_alphabetic()).unwrap_or(rest.len());
                let (word, after) = rest.split_at(size);
                // One letter stands between numbers: `1h30m`.
                if 1 < size && after.starts_with(|one: char| one.is_ascii_digit()) {
                    return None;
                }
                found.push(Token::Word(word.to_ascii_lowercase()));
                size
            }
            '0'..='9' | '.' | '+' | '-' => {
                let digits = if is_sign { rest[1..].trim_start() } else { rest };
                let is_part = |one: char| one.is_ascii_digit() || ":.-".contains(one);
                let size = digits.find(|one: char| !is_part(one)).unwrap_or(digits.len());
                let (digits, after) = digits.split_at(size);
                if !digits.starts_with(|one: char| one.is_ascii_digit() || one == '.') {
                    return None;
                }
                let sign = if is_sign { &rest[..1] } else { "" };
                let token = format!("{sign}{digits}");
                found.push(match token.contains(':') {
                    true => Token::Time(token),
                    false => Token::Number(token),
                });
                rest.len() - after.len()
            }
            // PostgreSQL skips spaces and other punctuation.
            other if other.is_ascii_whitespace() || other.is_ascii_punctuation() => 1,
            _ => return None,
        };
        rest = &rest[size..];
    }
    Some(found)
}

fn signed(text: &str) -> (i64, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// `years-months`; none if the text is a plain number.
fn years_and_months(text: &str) -> Option<Option<i64>> {
    let (sign, rest) = signed(text);
    let (years, months) = rest.split_once('-')?;
    let whole = |digits: &str| digits.parse::<u32>().ok().map(i64::from);
    let read = || {
        let months = whole(months).filter(|months| *months < 12)?;
        Some(sign * (whole(years)? * 12 + months))
    };
    Some(read())
}

fn number_of(text: &str) -> Option<Number> {
    let (sign, digits) = signed(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()? };
    Some(Number { whole: sign * whole, fraction: sign as f64 * fraction_of(fraction)? })
}

fn fraction_of(digits: &str) -> Option<f64> {
    if !digits.bytes().all(|one| one.is_ascii_digit()) {
        return None;
    }
    let digits = &digits[..digits.len().min(FRACTION_DIGITS_MAX)];
    if digits.is_empty() { Some(0.0) } else { format!("0.{digits}").parse().ok() }
}

/// `hours:minutes`, `hours:minutes:seconds`, or `minutes:seconds` where the seconds have a point.
fn time_of(clock: &str) -> Option<i64> {
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let parts = clock.split(':').map(|part| part.parse::<u32>().ok().map(i64::from));
    let parts = parts.collect::<Option<Vec<i64>>>()?;
    let (hours, minutes, seconds) = match parts.as_slice() {
        [minutes, seconds] if !fraction.is_empty() => (0, *minutes, *seconds),
        [hours, minutes] => (*hours, *minutes, 0),
        [hours, minutes, seconds] => (*hours, *minutes, *seconds),
        _ => return None,
    };
    let micros = (fraction_of(fraction)? * SECOND as f64).round_ties_even() as i64;
    let is_within = minutes < 60 && seconds <= 60;
    is_within.then_some(hours * HOUR + minutes * MINUTE + seconds * SECOND + micros)
}

fn unit_of(word: &str) -> Option<Unit> {
    Some(match &word[..word.len().min(UNIT_SIZE)] {
        "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => Unit::Micros(1),
        "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => Unit::Micros(1_000),
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Micros(SECOND),
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Micros(MINUTE),
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Micros(HOUR),
        "d" | "day" | "days" => Unit::Days(1),
        "w" | "week" | "weeks" => Unit::Days(7),
        "mon" | "mons" | "month" | "months" => Unit::Month,
        "y" | "yr" | "yrs" | "year" | "years" => Unit::Years(1),
        "dec" | "decs" | "decade" | "decades" => Unit::Years(10),
        "c" | "cent" | "century" | "centuries" => Unit::Years(100),
        "mil" | "mils" | "millennia" | "millennium" => Unit::Years(1_000),
        _ => return None,
    })
}

/// Reads ISO 8601 with designators, and the alternative form `P0001-02-03T04:05:06`.
fn read_iso(text: &str) -> Option<Span> {
    let rest = text.strip_prefix('P').filter(|rest| !rest.is_empty())?;
    let (date, time) = match rest.split_once('T') {
        Some((date, time)) => (date, time),
        None => (rest, ""),
    };
    let mut span = Span::default();
    let mut parts = date.splitn(3, '-');
    let alternative = (parts.next(), parts.next(), parts.next());
    match alternative {
        (Some(years), Some(months), Some(days)) if !years.is_empty() && !is_designated(date) => {
            span.add(number_of(years)?, Unit::Years(1))?;
            span.add(number_of(months)?, Unit::Month)?;
            span.add(number_of(days)?, Unit::Days(1))?;
        }
        _ => add_designated(&mut span, date, |unit| match unit {
            'Y' => Some(Unit::Years(1)),
            'M' => Some(Unit::Month),
            'W' => Some(Unit::Days(7)),
            'D' => Some(Unit::Days(1)),
            _ => None,
        })?,
    }
    if time.contains(':') {
        span.micros = span.micros.checked_add(time_of(time)?)?;
        return Some(span);
    }
    add_designated(&mut span, time, |unit| match unit {
        'H' => Some(Unit::Micros(HOUR)),
        'M' => Some(Unit::Micros(MINUTE)),
        'S' => Some(Unit::Micros(SECOND)),
        _ => None,
    })?;
    Some(span)
}

fn is_designated(text: &str) -> bool {
    text.contains(|one: char| one.is_ascii_alphabetic())
}

fn add_designated(span: &mut Span, text: &str, unit: fn(char) -> Option<Unit>) -> Option<()> {
    let mut rest = text;
    while !rest.is_empty() {
        let at = rest.find(|one: char| one.is_ascii_alphabetic())?;
        let designator = rest[at..].chars().next()?;
        let number = &rest[..at];
        if number.starts_with('+') {
            return None;
        }
        span.add(number_of(number)?, unit(designator)?)?;
        rest = &rest[at + 1..];
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<(i64, i64, i64)> {
        read_interval(text).map(|span| (span.months, span.days, span.micros))
    }

    #[test]
    fn intervals_are_read_as_in_postgresql() {
        for (text, expected) in [
            ("1 day -02:03:04.5", (0, 1, -7_384_500_000)),
            ("5 minutes", (0, 0, 5 * MINUTE)),
            ("30", (0, 0, 30 * SECOND)),
            ("1 day -1.5", (0, 1, -1_500_000)),
            ("1 02:00", (0, 1, 2 * HOUR)),
            ("2 hours ago", (0, 0, -2 * HOUR)),
            ("@ 1 year 2 mons -3 days ago", (-14, 3, 0)),
            ("1-2", (14, 0, 0)),
            ("-1-2 +3 -4:05", (-14, 3, -4 * HOUR - 5 * MINUTE)),
            ("1.5 months", (1, 15, 0)),
            ("1.1 years", (13, 0, 0)),
            ("1.5 weeks", (0, 10, DAY / 2)),
            ("1.5 days", (0, 1, DAY / 2)),
            ("1h30m", (0, 0, 90 * MINUTE)),
            (".5 h", (0, 0, HOUR / 2)),
            ("1 century 1 decade", (1_320, 0, 0)),
            ("12:34.5", (0, 0, 12 * MINUTE + 34_500_000)),
            ("1.0000005 s", (0, 0, 1_000_000)),
            ("3 MILLISECONDS 4 microseconds", (0, 0, 3_004)),
            ("P1D", (0, 1, 0)),
            ("P1Y2M3W4DT5H6M7.5S", (14, 25, 5 * HOUR + 6 * MINUTE + 7_500_000)),
            ("P-1DT-1.5H", (0, -1, -90 * MINUTE)),
            ("P0001-02-03T04:05:06", (14, 3, 4 * HOUR + 5 * MINUTE + 6 * SECOND)),
            ("PT", (0, 0, 0)),
            ("0", (0, 0, 0)),
        ] {
            assert_eq!(parts(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "P",
            "day",
            "1 dayx",
            "1 day 2 days",
            "1-12",
            "1:60",
            "P1",
            "PT1D",
            "p1d",
            "1 é",
            "9223372036854775808",
            "1 fortnight",
            "-",
            "1..2",
            "5 ago",
        ] {
            assert_eq!(parts(text), None, "{text}");
        }
    }

    #[test]
    fn arrow_reads_what_is_written() {
        assert_eq!(interval_text("1 day -02:03:04.5"), "1 days -7384.500000 secs");
        assert_eq!(interval_text("0"), "0 secs");
        assert_eq!(interval_text("-1-2"), "-14 mons");
        assert_eq!(interval_text("nothing"), "nothing");
    }
}
