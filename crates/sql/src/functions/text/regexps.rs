//! `SIMILAR TO`, and functions on patterns that make rows and lists: `regexp_matches`,
//! `regexp_split_to_array` and their kin.

use crate::functions::bounded::{Growth, bounded};
use crate::types::error::SqlError;
use crate::types::function::function;
use crate::types::runtime::cancellation;
use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, Int32Builder, ListBuilder, StringViewArray,
    StringViewBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ScalarUDF, Signature, TypeSignature, Volatility};
use regex::{Regex, RegexBuilder};
use std::sync::{Arc, LazyLock};

/// A pattern of `SIMILAR TO` as a regular expression.
pub const SIMILAR: &str = "similar_to_escape";
/// What `regexp_matches` makes rows of: a list of lists.
pub const MATCHES: &str = "regexp_matches_list";
/// What `regexp_split_to_table` makes rows of.
pub const SPLIT: &str = "regexp_split_to_array";
/// Bytes of a compiled pattern. They are tried one after the other: the first that is enough says how large a
/// pattern is, about.
const PATTERN_SIZES: [usize; 6] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 10 << 20];
/// Bytes of a compiled pattern times bytes of a text that one match may take: the slowest way to match does some
/// 2^31 of them a second.
const MATCH_COST_MAX: u64 = 1 << 37;
/// Bytes of a pattern: its tree takes hundreds of times as much, whatever the compiled pattern takes.
const PATTERN_LENGTH_MAX: usize = 256 << 10;
/// Bytes of a text from which on it is looked at what a match may cost.
const LONG_TEXT_SIZE: usize = 8 << 10;

/// The function that says whether a text has a match; `~` and its kin where the pattern is no plain literal.
pub static LIKE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(regexp_like()));

fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, true)))
}

/// All of them.
pub fn functions() -> impl Iterator<Item = ScalarUDF> {
    let any = |least: usize, most: usize| {
        let all = (least..=most).map(TypeSignature::Any).collect();
        Signature::one_of(all, Volatility::Immutable)
    };
    let grown = |inner: ScalarUDF, times: usize| bounded(Arc::new(inner), Growth::Times(times));
    let texts = |_: &[DataType]| list_of(DataType::Utf8View);
    let lists = |_: &[DataType]| list_of(list_of(DataType::Utf8View));
    [
        grown(function(SIMILAR, any(1, 2), |_| DataType::Utf8View, similar_all), 4),
        grown(function(MATCHES, any(2, 3), lists, matches), 40),
        grown(function("regexp_match", any(2, 3), texts, first_match), 20),
        grown(function(SPLIT, any(2, 3), texts, split), 20),
        function("regexp_substr", any(2, 6), |_| DataType::Utf8View, substring),
        function("regexp_instr", any(2, 7), |_| DataType::Int32, position),
        function("regexp_count", any(2, 4), |_| DataType::Int32, count),
        (**LIKE).clone(),
    ]
    .into_iter()
}

fn regexp_like() -> ScalarUDF {
    let signatures = vec![TypeSignature::Any(2), TypeSignature::Any(3)];
    let signature = Signature::one_of(signatures, Volatility::Immutable);
    function("regexp_like", signature, |_| DataType::Boolean, like)
}

fn outside(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn texts(array: &ArrayRef) -> Result<StringViewArray> {
    Ok(cast(array, &DataType::Utf8View)?.as_string_view().clone())
}

/// The regular expression that a pattern of `SIMILAR TO` is; `escape` takes what is next as it is.
///
/// # Errors
/// When it ends with an escape.
pub fn similar(pattern: &str, escape: Option<char>) -> Result<String, SqlError> {
    let mut out = String::from("^(?:");
    let (mut characters, mut in_brackets) = (pattern.chars(), false);
    while let Some(one) = characters.next() {
        if Some(one) == escape && !in_brackets {
            match characters.next() {
                // Parts of a pattern, which only SUBSTRING tells apart.
                Some('"') => {
                    return Err(SqlError::unsupported("separators in a pattern of SIMILAR TO"));
                }
                Some(next) => {
                    if !next.is_alphanumeric() {
                        out.push('\\');
                    }
                    out.push(next);
                }
                None => {
                    let words = "invalid escape sequence: a pattern ends with an escape";
                    return Err(SqlError::new("22025", words));
                }
            }
            continue;
        }
        match one {
            ']' if in_brackets => {
                in_brackets = false;
                out.push(']');
            }
            '\\' | '[' if in_brackets => out.extend(['\\', one]),
            plain if in_brackets => out.push(plain),
            '[' => {
                in_brackets = true;
                out.push('[');
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '\\' | '.' | '^' | '$' => out.extend(['\\', one]),
            plain => out.push(plain),
        }
    }
    out.push_str(")$");
    Ok(out)
}

fn similar_all(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let patterns = texts(&args[0])?;
    let escapes = args.get(1).map(texts).transpose()?;
    let mut out = StringViewBuilder::with_capacity(rows);
    for (row, pattern) in patterns.iter().enumerate() {
        let escape = match &escapes {
            None => Some('\\'),
            Some(all) => {
                all.is_valid(row).then(|| all.value(row)).and_then(|one| one.chars().next())
            }
        };
        let made = pattern.map(|pattern| similar(pattern, escape));
        out.append_option(made.transpose().map_err(outside)?);
    }
    Ok(Arc::new(out.finish()))
}

/// A pattern that is compiled.
struct Pattern {
    regex: Regex,
    /// Whether all matches are wanted (`g`).
    is_global: bool,
    /// Bytes that it takes at most.
    size: usize,
}

impl Pattern {
    /// Fails if a match with a text of `bytes` bytes would take too long.
    fn check(&self, bytes: usize) -> Result<(), SqlError> {
        let cost = (self.size as u64).saturating_mul(bytes as u64);
        if cost <= MATCH_COST_MAX {
            return Ok(());
        }
        let words = format!(
            "a regular expression of {} bytes of memory and a text of {bytes} bytes: their product may be \
             {MATCH_COST_MAX} at most",
            self.size
        );
        Err(SqlError::limit(words))
    }
}

/// Fails if a match with a text of this size would take too long, and for an invalid pattern.
///
/// # Errors
/// `54000`, `2201B`.
pub fn check_match(pattern: &str, bytes: usize) -> Result<(), SqlError> {
    match bytes < LONG_TEXT_SIZE {
        true => Ok(()),
        false => compiled(pattern, "")?.check(bytes),
    }
}

/// The pattern that was compiled last: it is used again as long as the next row has the same.
#[derive(Default)]
struct LastPattern(Option<(String, String, Pattern)>);

impl LastPattern {
    fn of(&mut self, pattern: &str, flags: &str) -> Result<&Pattern> {
        let is_last = |last: &(String, String, Pattern)| last.0 == pattern && last.1 == flags;
        if !self.0.as_ref().is_some_and(is_last) {
            let made = compiled(pattern, flags).map_err(outside)?;
            self.0 = Some((pattern.to_string(), flags.to_string(), made));
        }
        let last = self.0.as_ref();
        let last = last.ok_or_else(|| outside(SqlError::unexpected("no pattern")))?;
        Ok(&last.2)
    }
}

fn compiled(pattern: &str, flags: &str) -> Result<Pattern, SqlError> {
    if PATTERN_LENGTH_MAX < pattern.len() {
        let words = format!("a pattern of {} bytes, at most {PATTERN_LENGTH_MAX}", pattern.len());
        return Err(SqlError::limit(words));
    }
    // A dot is a newline, too, unless somebody says otherwise.
    let (mut is_any, mut has_lines) = (true, false);
    let (mut is_either_case, mut is_spaced, mut is_global) = (false, false, false);
    let mut is_plain = false;
    for flag in flags.chars() {
        match flag {
            'g' => is_global = true,
            'i' | 'c' => is_either_case = flag == 'i',
            's' => (is_any, has_lines) = (true, false),
            'n' | 'm' => (is_any, has_lines) = (false, true),
            'p' => (is_any, has_lines) = (false, false),
            'w' => (is_any, has_lines) = (true, true),
            'q' => is_plain = true,
            't' => is_spaced = false,
            'x' => is_spaced = true,
            other => {
                let words = format!("invalid regular expression option: \"{other}\"");
                return Err(SqlError::wrong_value(words));
            }
        }
    }
    let escaped = is_plain.then(|| regex::escape(pattern));
    let mut builder = RegexBuilder::new(escaped.as_deref().unwrap_or(pattern));
    builder.case_insensitive(is_either_case).multi_line(has_lines);
    builder.ignore_whitespace(is_spaced && !is_plain);
    builder.dot_matches_new_line(is_any);
    let largest = PATTERN_SIZES[PATTERN_SIZES.len() - 1];
    for size in PATTERN_SIZES {
        match builder.size_limit(size).build() {
            Ok(regex) => return Ok(Pattern { regex, is_global, size }),
            Err(regex::Error::CompiledTooBig(_)) if size < largest => {}
            Err(error) => {
                let words = format!("invalid regular expression: {error}");
                return Err(SqlError::new("2201B", words));
            }
        }
    }
    Err(SqlError::unexpected("no size of a pattern"))
}

/// Calls `work` with each text, its pattern and whether all matches are wanted; with none where one is
/// null.
pub(crate) fn each(
    args: &[ArrayRef],
    rows: usize,
    flags_at: usize,
    mut work: impl FnMut(Option<(&str, &Regex, bool)>) -> Result<()>,
) -> Result<()> {
    let (all, patterns) = (texts(&args[0])?, texts(&args[1])?);
    let flags = args.get(flags_at).map(texts).transpose()?;
    let mut known = LastPattern::default();
    for row in 0..rows {
        cancellation::check()?;
        let is_null = flags.as_ref().is_some_and(|all| all.is_null(row));
        if all.is_null(row) || patterns.is_null(row) || is_null {
            work(None)?;
            continue;
        }
        let flags = flags.as_ref().map_or("", |all| all.value(row));
        let (text, pattern) = (all.value(row), known.of(patterns.value(row), flags)?);
        pattern.check(text.len()).map_err(outside)?;
        work(Some((text, &pattern.regex, pattern.is_global)))?;
    }
    Ok(())
}

/// All matches of a pattern from a byte on. One of nothing may stand right behind another, which the iterators of the
/// library leave out.
struct Matches<'r, 't> {
    regex: &'r Regex,
    text: &'t str,
    /// Byte offset at which the next match may begin; none after the end.
    at: Option<usize>,
}

impl<'r, 't> Matches<'r, 't> {
    fn new(regex: &'r Regex, text: &'t str) -> Matches<'r, 't> {
        Matches { regex, text, at: Some(0) }
    }
}

impl<'t> Iterator for Matches<'_, 't> {
    type Item = regex::Captures<'t>;

    fn next(&mut self) -> Option<regex::Captures<'t>> {
        let at = self.at.take()?;
        let found = self.regex.captures_at(self.text, at)?;
        let whole = found.get(0)?;
        self.at = match whole.is_empty() {
            false => Some(whole.end()),
            true => self.text[whole.end()..].chars().next().map(|one| whole.end() + one.len_utf8()),
        };
        Some(found)
    }
}

/// The parts of a match, or all of it where the pattern has none.
fn parts<'a>(found: &regex::Captures<'a>) -> Vec<Option<&'a str>> {
    let from = usize::from(1 < found.len());
    found.iter().skip(from).map(|part| part.map(|part| part.as_str())).collect()
}

fn matches(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut out = ListBuilder::new(ListBuilder::new(StringViewBuilder::new()));
    each(args, rows, 2, |given| {
        if let Some((text, regex, is_global)) = given {
            let most = if is_global { usize::MAX } else { 1 };
            for found in Matches::new(regex, text).take(most) {
                cancellation::check()?;
                out.values().append_value(parts(&found));
            }
        }
        // Nothing makes no rows, as an empty list does.
        out.append(true);
        Ok(())
    })?;
    Ok(Arc::new(out.finish()))
}

fn first_match(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut out = ListBuilder::new(StringViewBuilder::new());
    each(args, rows, 2, |given| {
        let found = match given {
            Some((_, _, true)) => {
                let words = "regexp_match() does not support the \"global\" option";
                let error = SqlError::wrong_value(words)
                    .with_hint("Use the regexp_matches function instead.");
                return Err(outside(error));
            }
            Some((text, regex, false)) => regex.captures(text),
            None => None,
        };
        match found {
            Some(found) => out.append_value(parts(&found)),
            None => out.append_null(),
        }
        Ok(())
    })?;
    Ok(Arc::new(out.finish()))
}

fn split(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut out = ListBuilder::new(StringViewBuilder::new());
    each(args, rows, 2, |given| {
        let Some((text, regex, _)) = given else {
            out.append_null();
            return Ok(());
        };
        let mut start = 0;
        for found in regex.find_iter(text) {
            cancellation::check()?;
            // A match of nothing at either end, or right behind another, parts nothing.
            let parts_nothing = found.start() == start || found.end() == text.len();
            if found.is_empty() && parts_nothing {
                continue;
            }
            out.values().append_value(&text[start..found.start()]);
            start = found.end();
        }
        out.values().append_value(&text[start..]);
        out.append(true);
        Ok(())
    })?;
    Ok(Arc::new(out.finish()))
}

fn number(args: &[ArrayRef], at: usize, row: usize, otherwise: i64) -> Result<Option<usize>> {
    let Some(array) = args.get(at) else { return Ok(usize::try_from(otherwise).ok()) };
    let numbers = cast(array, &DataType::Int64)?;
    let numbers = numbers.as_primitive::<Int64Type>();
    if numbers.is_null(row) {
        return Ok(None);
    }
    let number = usize::try_from(numbers.value(row));
    number
        .map(Some)
        .map_err(|_| outside(SqlError::wrong_value("a place or number less than nothing")))
}

/// The match of that number, counted from 1; 0 is the first as well.
fn nth_match<'a>(regex: &Regex, text: &'a str, nth: usize) -> Result<Option<regex::Captures<'a>>> {
    let mut matches = Matches::new(regex, text);
    for _ in 1..nth {
        cancellation::check()?;
        if matches.next().is_none() {
            return Ok(None);
        }
    }
    Ok(matches.next())
}

/// `regexp_substr(text, pattern [, start [, nth [, flags [, part]]]])`.
fn substring(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut out = StringViewBuilder::with_capacity(rows);
    let mut row = 0;
    each(args, rows, 4, |given| {
        let at = row;
        row += 1;
        let start = number(args, 2, at, 1)?;
        let (nth, part) = (number(args, 3, at, 1)?, number(args, 5, at, 0)?);
        let (Some((text, regex, _)), Some(start), Some(nth), Some(part)) =
            (given, start, nth, part)
        else {
            out.append_null();
            return Ok(());
        };
        let begin = text.char_indices().nth(start.max(1) - 1).map_or(text.len(), |(at, _)| at);
        let found = nth_match(regex, &text[begin..], nth)?;
        out.append_option(found.and_then(|found| found.get(part)).map(|part| part.as_str()));
        Ok(())
    })?;
    Ok(Arc::new(out.finish()))
}

/// `regexp_instr(text, pattern [, start [, nth [, 1 for behind the match [, flags [, part]]]]])`.
fn position(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut out = Int32Builder::with_capacity(rows);
    let mut row = 0;
    each(args, rows, 5, |given| {
        let at = row;
        row += 1;
        let (start, nth) = (number(args, 2, at, 1)?, number(args, 3, at, 1)?);
        let (end, part) = (number(args, 4, at, 0)?, number(args, 6, at, 0)?);
        let (Some((text, regex, _)), Some(start), Some(nth), Some(end), Some(part)) =
            (given, start, nth, end, part)
        else {
            out.append_null();
            return Ok(());
        };
        let begin = text.char_indices().nth(start.max(1) - 1).map_or(text.len(), |(at, _)| at);
        let found = nth_match(regex, &text[begin..], nth)?;
        let found = found.and_then(|found| found.get(part));
        let place = found.map(|part| if end == 0 { part.start() } else { part.end() });
        let place = place.map_or(0, |place| text[..begin + place].chars().count() + 1);
        out.append_value(i32::try_from(place).unwrap_or(i32::MAX));
        Ok(())
    })?;
    Ok(Arc::new(out.finish()))
}

/// `regexp_count(text, pattern [, start [, flags]])`.
fn count(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut out = Int32Builder::with_capacity(rows);
    let mut row = 0;
    each(args, rows, 3, |given| {
        let start = number(args, 2, row, 1)?;
        row += 1;
        let (Some((text, regex, _)), Some(start)) = (given, start) else {
            out.append_null();
            return Ok(());
        };
        let begin = text.char_indices().nth(start.max(1) - 1).map_or(text.len(), |(at, _)| at);
        let mut count = 0usize;
        for _ in Matches::new(regex, &text[begin..]) {
            cancellation::check()?;
            count += 1;
        }
        out.append_value(i32::try_from(count).unwrap_or(i32::MAX));
        Ok(())
    })?;
    Ok(Arc::new(out.finish()))
}

fn like(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut out = datafusion::arrow::array::BooleanBuilder::with_capacity(rows);
    each(args, rows, 2, |given| {
        out.append_option(given.map(|(text, regex, _)| regex.is_match(text)));
        Ok(())
    })?;
    Ok(Arc::new(out.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_that_would_take_too_long_are_refused() {
        assert_eq!(check_match("^host-[0-9]+$", 1 << 20), Ok(()));
        let large = "\\pL{100}";
        assert_eq!(check_match(large, LONG_TEXT_SIZE), Ok(()));
        let code = |pattern: &str, bytes| check_match(pattern, bytes).unwrap_err().code;
        assert_eq!(code(large, 64 << 20), "54000");
        assert_eq!(code("(", 64 << 20), "2201B");
    }

    #[test]
    fn patterns_of_sql_become_regular_expressions() {
        let check = |pattern: &str, yes: &[&str], no: &[&str]| {
            let made = similar(pattern, Some('\\')).unwrap();
            let regex = compiled(&made, "").unwrap().regex;
            yes.iter().for_each(|text| assert!(regex.is_match(text), "{pattern} {text}"));
            no.iter().for_each(|text| assert!(!regex.is_match(text), "{pattern} {text}"));
        };
        check("a%", &["a", "abc", "a\nb"], &["ba"]);
        check("(b|c)%", &["bx", "c"], &["abc"]);
        check("%(b|d)%", &["abc"], &["x"]);
        check("a.c", &["a.c"], &["abc"]);
        check("a\\%", &["a%"], &["ab"]);
        check("[a-c]+", &["abc"], &["abd", ""]);
        check("[\\%]", &["%", "\\"], &["a"]);
        check("_{2}", &["ab"], &["a"]);
        assert_eq!(similar("a\\", Some('\\')).map_err(|error| error.code), Err("22025"));
        assert_eq!(similar("a\\", None).unwrap(), "^(?:a\\\\)$");
    }
}
