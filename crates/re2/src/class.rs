//! Bracket expressions and escapes.

use crate::error::{Error, ErrorCode};
use crate::node::{Node, write_character};
use crate::parser::before;

/// Names in `[:name:]`; both dialects take them as ASCII.
const POSIX_NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];
/// Scripts whose name has four letters. Other names of that length are short forms of the `regex`
/// crate, which Go does not have.
const SCRIPTS_OF_FOUR_LETTERS: [&str; 9] =
    ["ahom", "cham", "kawi", "lisu", "miao", "modi", "newa", "thai", "toto"];
/// Surrogates are code points that no text has.
const SURROGATES: std::ops::RangeInclusive<u32> = 0xD800..=0xDFFF;

/// A class without members.
pub(crate) fn nothing() -> Node {
    Node::Class { text: "[^\\x00-\\x{10FFFF}]".to_string(), folds_case: false }
}

/// Reads a bracket expression at the start of `text`. Returns it for the `regex` crate, and what
/// follows it.
pub(crate) fn parse_brackets(text: &str) -> Result<(String, &str), Error> {
    let mut tail = &text[1..];
    let mut members = String::new();
    let is_negated = tail.starts_with('^');
    if is_negated {
        tail = &tail[1..];
    }
    let mut is_first = true;
    while is_first || !tail.starts_with(']') {
        tail = parse_member(text, tail, &mut members)?;
        is_first = false;
    }
    let class = match (members.is_empty(), is_negated) {
        (true, false) => "[^\\x00-\\x{10FFFF}]".to_string(),
        (true, true) => "[\\x00-\\x{10FFFF}]".to_string(),
        (false, false) => format!("[{members}]"),
        (false, true) => format!("[^{members}]"),
    };
    Ok((class, &tail[1..]))
}

/// Reads one member of the bracket expression `class` at the start of `tail`.
fn parse_member<'a>(class: &str, tail: &'a str, out: &mut String) -> Result<&'a str, Error> {
    if let Some((name, rest)) = split_posix_name(tail) {
        if !POSIX_NAMES
            .contains(&name.trim_start_matches("[:").trim_start_matches('^').trim_end_matches(":]"))
        {
            return Err(Error::new(ErrorCode::InvalidCharRange, name));
        }
        out.push_str(name);
        return Ok(rest);
    }
    if let Some((text, rest)) = parse_named_escape(tail)? {
        out.push_str(&text);
        return Ok(rest);
    }
    let (low, mut rest) = parse_class_character(class, tail)?;
    let mut high = low;
    if rest.starts_with('-') && 2 <= rest.len() && !rest.starts_with("-]") {
        (high, rest) = parse_class_character(class, &rest[1..])?;
        if high < low {
            return Err(Error::new(ErrorCode::InvalidCharRange, before(tail, rest)));
        }
    }
    write_range(low, high, out);
    Ok(rest)
}

/// Splits `[:name:]` off the start of `text`.
fn split_posix_name(text: &str) -> Option<(&str, &str)> {
    let size = text.strip_prefix("[:")?.find(":]")? + 4;
    Some(text.split_at(size))
}

/// Reads a character or an escape. `class` is the whole bracket expression, for an error.
fn parse_class_character<'a>(class: &str, text: &'a str) -> Result<(u32, &'a str), Error> {
    match text.chars().next() {
        None => Err(Error::new(ErrorCode::MissingBracket, class)),
        Some('\\') => parse_escape(text),
        Some(character) => Ok((character as u32, &text[character.len_utf8()..])),
    }
}

/// Writes a range for the `regex` crate, without surrogates.
fn write_range(low: u32, high: u32, out: &mut String) {
    let low = if SURROGATES.contains(&low) { SURROGATES.end() + 1 } else { low };
    let high = if SURROGATES.contains(&high) { SURROGATES.start() - 1 } else { high };
    let (Some(first), Some(last)) = (char::from_u32(low), char::from_u32(high)) else { return };
    if last < first {
        return;
    }
    write_character(first, out);
    if first < last {
        out.push('-');
        write_character(last, out);
    }
}

/// Reads `\d`, `\pL`, `\p{Greek}` and their like at the start of `text`. Returns a member of a class
/// for the `regex` crate.
pub(crate) fn parse_named_escape(text: &str) -> Result<Option<(String, &str)>, Error> {
    let Some(kind) = text.strip_prefix('\\').and_then(|tail| tail.chars().next()) else {
        return Ok(None);
    };
    let members = match kind {
        'd' => "0-9",
        'D' => "[^0-9]",
        'w' => "0-9A-Za-z_",
        'W' => "[^0-9A-Za-z_]",
        's' => "\\t\\n\\f\\r ",
        'S' => "[^\\t\\n\\f\\r ]",
        'p' | 'P' => return parse_unicode_class(text).map(Some),
        _ => return Ok(None),
    };
    Ok(Some((members.to_string(), &text[2..])))
}

/// Reads `\pL`, `\p{Lu}`, `\P{Greek}` or `\p{^Greek}` at the start of `text`.
fn parse_unicode_class(text: &str) -> Result<(String, &str), Error> {
    let tail = &text[2..];
    let (name, rest) = match tail.strip_prefix('{') {
        Some(inner) => match inner.split_once('}') {
            Some(parts) => parts,
            None => return Err(Error::new(ErrorCode::InvalidCharRange, text)),
        },
        None => tail.split_at(tail.chars().next().map_or(0, char::len_utf8)),
    };
    let (name, is_inverted) = match name.strip_prefix('^') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let Some(class) = unicode_class(name) else {
        return Err(Error::new(ErrorCode::InvalidCharRange, before(text, rest)));
    };
    let is_negated = text.starts_with("\\P") != is_inverted;
    Ok((if is_negated { format!("[^{class}]") } else { class }, rest))
}

/// The class of a category or a script, for the `regex` crate.
fn unicode_class(name: &str) -> Option<String> {
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_- ".contains(&byte)) {
        return None;
    }
    let is_valid = |class: &String| regex_syntax::parse(class).is_ok();
    let category = Some(format!("\\p{{gc={name}}}")).filter(is_valid);
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    if plain.len() == 4 && !SCRIPTS_OF_FOUR_LETTERS.contains(&plain.as_str()) {
        return category;
    }
    category.or_else(|| Some(format!("\\p{{sc={name}}}")).filter(is_valid))
}

/// Reads an escape that stands for one code point at the start of `text`.
pub(crate) fn parse_escape(text: &str) -> Result<(u32, &str), Error> {
    let Some(kind) = text[1..].chars().next() else {
        return Err(Error::new(ErrorCode::TrailingBackslash, ""));
    };
    let tail = &text[1 + kind.len_utf8()..];
    let code = match kind {
        'a' => 7,
        'f' => 12,
        'n' => 10,
        'r' => 13,
        't' => 9,
        'v' => 11,
        '0' => return Ok(parse_octal(&text[1..])),
        // A single digit would be a reference to a group, which the dialect does not have.
        '1'..='7' if tail.starts_with(|next: char| next.is_digit(8)) => {
            return Ok(parse_octal(&text[1..]));
        }
        'x' => return parse_hexadecimal(text),
        _ if kind.is_ascii() && !kind.is_ascii_alphanumeric() => kind as u32,
        _ => return Err(Error::new(ErrorCode::InvalidEscape, before(text, tail))),
    };
    Ok((code, tail))
}

/// Reads up to three octal digits.
fn parse_octal(text: &str) -> (u32, &str) {
    let size = text.bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    let (digits, tail) = text.split_at(size);
    (digits.bytes().fold(0, |code, digit| code * 8 + u32::from(digit - b'0')), tail)
}

/// Reads `\xff` or `\x{10ffff}` at the start of `text`.
fn parse_hexadecimal(text: &str) -> Result<(u32, &str), Error> {
    let tail = &text[2..];
    let mut code: u32 = 0;
    let Some(inner) = tail.strip_prefix('{') else {
        let mut characters = tail.chars();
        let pair = [characters.next(), characters.next()];
        let rest = characters.as_str();
        for character in pair {
            match character.and_then(|character| character.to_digit(16)) {
                Some(digit) => code = code * 16 + digit,
                None => return Err(Error::new(ErrorCode::InvalidEscape, before(text, rest))),
            }
        }
        return Ok((code, rest));
    };
    let mut end = 0;
    for (at, character) in inner.char_indices() {
        end = at + character.len_utf8();
        if character == '}' && at != 0 {
            return Ok((code, &inner[end..]));
        }
        let Some(digit) = character.to_digit(16) else { break };
        code = code * 16 + digit;
        if 0x10FFFF < code {
            break;
        }
    }
    Err(Error::new(ErrorCode::InvalidEscape, before(text, &inner[end..])))
}
