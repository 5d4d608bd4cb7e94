//! `strings`, with the meaning of Go's package: places are bytes, an empty piece is between all
//! characters.

use super::scalars::{glued, subject};
use super::{Builtin, Call, function};
use crate::error::{Error, Result};
use crate::value::{Value, check_size};
use std::cmp::Ordering;

pub(super) const FUNCTIONS: &[Builtin] = &[
    function("strings", "title", of_text),
    function("strings", "toTitle", of_text),
    function("strings", "toUpper", of_text),
    function("strings", "toLower", of_text),
    function("strings", "split", split),
    function("strings", "splitAfter", split),
    function("strings", "splitN", split),
    function("strings", "splitAfterN", split),
    function("strings", "countStr", place),
    function("strings", "index", place),
    function("strings", "lastIndex", place),
    function("strings", "indexAny", place_of_any),
    function("strings", "lastIndexAny", place_of_any),
    function("strings", "containsAny", place_of_any),
    function("strings", "compare", compare),
    function("strings", "equalFold", compare),
    function("strings", "isDigit", kind_of_character),
    function("strings", "isLetter", kind_of_character),
    function("strings", "isLower", kind_of_character),
    function("strings", "isUpper", kind_of_character),
    function("strings", "repeat", repeat),
    function("strings", "replace", replace),
    function("strings", "replaceAll", replace),
    function("strings", "trimLeft", trim_side),
    function("strings", "trimRight", trim_side),
];

/// The one character that a mapping makes, or the character itself where it makes several.
fn mapped<M: Iterator<Item = char>>(from: char, mut mapping: M) -> char {
    match (mapping.next(), mapping.next()) {
        (Some(to), None) => to,
        _ => from,
    }
}

/// Whether a word ends before this character.
fn is_separator(c: char) -> bool {
    match c.is_ascii() {
        true => !c.is_ascii_alphanumeric() && c != '_',
        false => !c.is_alphanumeric() && c.is_whitespace(),
    }
}

fn of_text(call: Call<'_>) -> Result<Value> {
    let Some(text) = subject(&call)? else { return Ok(Value::Null) };
    call.done()?;
    let upper = |c: char| mapped(c, c.to_uppercase());
    let made: String = match call.name {
        "toLower" => {
            // Go's table has this one character more.
            let lower = |c: char| if c == 'İ' { 'i' } else { mapped(c, c.to_lowercase()) };
            text.chars().map(lower).collect()
        }
        "title" => {
            let mut before = ' ';
            let title = |c: char| {
                let begins = is_separator(std::mem::replace(&mut before, c));
                if begins { upper(c) } else { c }
            };
            text.chars().map(title).collect()
        }
        _ => text.chars().map(upper).collect(),
    };
    Ok(Value::text(&made))
}

/// The pieces of a text, at most `most` of them, each with what is behind it or without.
fn pieces<'t>(text: &'t str, between: &str, most: usize, keeps: bool) -> Vec<&'t str> {
    let mut found = Vec::new();
    let mut rest = text;
    while found.len() + 1 < most {
        let next = match between.is_empty() {
            true => rest.chars().next().map(char::len_utf8).filter(|len| *len < rest.len()),
            false => rest.find(between),
        };
        let Some(at) = next else { break };
        let kept = if keeps { at + between.len() } else { at };
        found.push(&rest[..kept]);
        rest = &rest[at + between.len()..];
    }
    // Nothing between characters leaves no empty piece.
    if !(between.is_empty() && rest.is_empty()) && most != 0 {
        found.push(rest);
    }
    found
}

fn split(call: Call<'_>) -> Result<Value> {
    let Some(text) = subject(&call)? else { return Ok(Value::Null) };
    let between = call.required_text("t")?;
    let most = match call.name.ends_with('N') {
        true => {
            let missing = || Error::name(format!("{}: missing required argument i", call.name));
            let most = call.integer("i")?.ok_or_else(missing)?;
            usize::try_from(most).unwrap_or(usize::MAX)
        }
        false => usize::MAX,
    };
    call.done()?;
    let mut list = Vec::new();
    for piece in pieces(&text, &between, most, call.name.starts_with("splitAfter")) {
        let piece = Value::text(piece);
        call.evaluation.hold(size_of::<Value>() + piece.size())?;
        list.push(piece);
    }
    Ok(Value::list(list))
}

fn number(at: Option<usize>) -> Value {
    Value::Integer(at.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
}

fn place(call: Call<'_>) -> Result<Value> {
    let Some(text) = subject(&call)? else { return Ok(Value::Null) };
    let piece = call.required_text("substr")?;
    call.done()?;
    Ok(match call.name {
        "countStr" if piece.is_empty() => number(Some(text.chars().count() + 1)),
        "countStr" => number(Some(text.matches(&*piece).count())),
        "index" => number(text.find(&*piece)),
        _ => number(text.rfind(&*piece)),
    })
}

fn place_of_any(call: Call<'_>) -> Result<Value> {
    let Some(text) = subject(&call)? else { return Ok(Value::Null) };
    let set: std::collections::BTreeSet<char> = call.required_text("chars")?.chars().collect();
    call.done()?;
    let is_one = |c: char| set.contains(&c);
    Ok(match call.name {
        "containsAny" => Value::Boolean(text.contains(is_one)),
        "indexAny" => number(text.find(is_one)),
        _ => number(text.rfind(is_one)),
    })
}

fn compare(call: Call<'_>) -> Result<Value> {
    let Some(text) = subject(&call)? else { return Ok(Value::Null) };
    let other = call.required_text("t")?;
    call.done()?;
    if call.name == "equalFold" {
        let folded = |text: &str| -> String {
            text.chars().flat_map(|c| mapped(c, c.to_uppercase()).to_lowercase()).collect()
        };
        return Ok(Value::Boolean(folded(&text) == folded(&other)));
    }
    Ok(Value::Integer(match text.cmp(&other) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }))
}

fn kind_of_character(call: Call<'_>) -> Result<Value> {
    let Some(text) = subject(&call)? else { return Ok(Value::Null) };
    call.done()?;
    let mut characters = text.chars();
    let (Some(c), None) = (characters.next(), characters.next()) else {
        return Err(Error::runtime(format!("{}: string is not a single character", call.name)));
    };
    Ok(Value::Boolean(match call.name {
        "isDigit" => c.is_ascii_digit(),
        "isLetter" => c.is_alphabetic(),
        "isLower" => c.is_lowercase(),
        _ => c.is_uppercase(),
    }))
}

fn repeat(call: Call<'_>) -> Result<Value> {
    let Some(text) = subject(&call)? else { return Ok(Value::Null) };
    let missing = || Error::name("repeat: missing required argument i");
    let count = call.count("i")?.ok_or_else(missing)?;
    call.done()?;
    check_size(text.len().saturating_mul(count))?;
    Ok(Value::text(&text.repeat(count)))
}

fn replace(call: Call<'_>) -> Result<Value> {
    let Some(text) = subject(&call)? else { return Ok(Value::Null) };
    let (old, new) = (call.required_text("t")?, call.required_text("u")?);
    let most = match call.name {
        "replace" => {
            let missing = || Error::name("replace: missing required argument i");
            usize::try_from(call.integer("i")?.ok_or_else(missing)?).unwrap_or(usize::MAX)
        }
        _ => usize::MAX,
    };
    call.done()?;
    let found: Vec<&str> = match old.is_empty() {
        // The empty string occurs before each character and behind the last.
        true => {
            let mut found = Vec::new();
            let mut rest = &*text;
            for at in 0..most.min(text.chars().count() + 1) {
                let first = if at == 0 { None } else { rest.chars().next() };
                let (piece, others) = rest.split_at(first.map_or(0, char::len_utf8));
                found.push(piece);
                rest = others;
            }
            found.push(rest);
            found
        }
        false => text.splitn(most.saturating_add(1), &*old).collect(),
    };
    glued(&found, &new)
}

fn trim_side(call: Call<'_>) -> Result<Value> {
    let Some(text) = subject(&call)? else { return Ok(Value::Null) };
    let set: std::collections::BTreeSet<char> = call.required_text("cutset")?.chars().collect();
    call.done()?;
    let is_one = |c: char| set.contains(&c);
    Ok(Value::text(match call.name {
        "trimLeft" => text.trim_start_matches(is_one),
        _ => text.trim_end_matches(is_one),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_as_in_go() {
        for (text, between, most, keeps, expected) in [
            ("abc", "", usize::MAX, false, &["a", "b", "c"][..]),
            ("aé", "", usize::MAX, false, &["a", "é"]),
            ("", "", usize::MAX, false, &[]),
            ("", ",", usize::MAX, false, &[""]),
            ("a,b,c", ",", usize::MAX, false, &["a", "b", "c"]),
            (",a,", ",", usize::MAX, false, &["", "a", ""]),
            ("a,b,c", ",", 2, false, &["a", "b,c"]),
            ("a,b,c", ",", 0, false, &[]),
            ("abc", "", 2, false, &["a", "bc"]),
            ("a,b,c", ",", usize::MAX, true, &["a,", "b,", "c"]),
            ("a,b,", ",", usize::MAX, true, &["a,", "b,", ""]),
            ("abc", "", usize::MAX, true, &["a", "b", "c"]),
        ] {
            assert_eq!(pieces(text, between, most, keeps), expected, "{text:?} at {between:?}");
        }
    }
}
