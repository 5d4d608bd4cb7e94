//! `DECLARE` and `FETCH` of cursors (<https://www.postgresql.org/docs/15/sql-declare.html>).

use crate::parse::token_forms::word;
use crate::parse::written::query_text;
use crate::session::parsed::Parsed;
use crate::types::error::SqlError;
use crate::types::names::folded;
use datafusion::sql::sqlparser::ast::{Declare, FetchDirection, ValueWithSpan};
use datafusion::sql::sqlparser::tokenizer::{Span, Token};

/// Reads `FETCH FROM name`, `FETCH name` and `FETCH ALL name`, which the parser does not know.
pub fn fetch_next(words: &[&Token]) -> Option<Parsed> {
    let is =
        |at: usize, one: &str| word(words.get(at)).is_some_and(|w| w.eq_ignore_ascii_case(one));
    if !is(0, "fetch") {
        return None;
    }
    let (name, count) = match words {
        [_, name] => (name, Some(1)),
        [_, _, name] if ["from", "in", "next", "forward"].iter().any(|one| is(1, one)) => {
            (name, Some(1))
        }
        [_, _, _, name] if is(1, "forward") && (is(2, "from") || is(2, "in")) => (name, Some(1)),
        [_, _, name] if is(1, "all") => (name, None),
        [_, Token::Number(count, _), name] => (name, Some(count.parse().ok()?)),
        [_, _, _, name] if is(1, "forward") && is(2, "all") => (name, None),
        [_, _, Token::Number(count, _), name] if is(1, "forward") => {
            (name, Some(count.parse().ok()?))
        }
        _ => return None,
    };
    let Token::Word(name) = name else { return None };
    let name = folded(&name.clone().into_ident(Span::empty()));
    Some(Parsed::Fetch { name, count })
}

/// Reads `DECLARE` of a cursor that goes forward, through one query; none of other cursors.
pub fn read_declare(all: &[Declare]) -> Result<Option<Parsed>, SqlError> {
    let [Declare { names, for_query: Some(query), hold, .. }] = all else { return Ok(None) };
    let [name] = names.as_slice() else { return Ok(None) };
    let (name, text) = (folded(name), query_text(query)?);
    Ok(Some(Parsed::Declare { name, text, is_held: *hold == Some(true) }))
}

/// Reads how many rows a direction asks for: none of those that go back, nothing for all of them.
pub fn read_direction(direction: &FetchDirection) -> Option<Option<usize>> {
    let number = |limit: &ValueWithSpan| limit.to_string().parse().ok();
    match direction {
        FetchDirection::Next | FetchDirection::Forward { limit: None } => Some(Some(1)),
        FetchDirection::Count { limit } | FetchDirection::Forward { limit: Some(limit) } => {
            number(limit).map(Some)
        }
        FetchDirection::All | FetchDirection::ForwardAll => Some(None),
        _ => None,
    }
}
