//! The place of an error in the text of a statement, which clients mark with a caret
//! (field `P`, <https://www.postgresql.org/docs/15/protocol-error-fields.html>).
//!
//! The planner does not say where a name is, so the name in the message is looked for.

use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

/// Bytes of a text that is searched; longer ones are generated.
const TEXT_SIZE_MAX: usize = 64 << 10;

/// The character of `text` that an error is about, counted from 1; none if that is not known.
pub fn error_position(text: &str, code: &str, message: &str) -> Option<usize> {
    let (start, end) = match code {
        "42703" => ("column \"", "\""),
        "42P01" => ("relation \"", "\""),
        "42702" => ("column reference \"", "\""),
        "42883" => ("function ", "("),
        "42704" => ("type \"", "\""),
        "42601" => ("at or near \"", "\""),
        _ => return None,
    };
    let (_, rest) = message.split_once(start)?;
    let (name, _) = rest.split_once(end)?;
    if name.is_empty() || TEXT_SIZE_MAX < text.len() {
        return None;
    }
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().ok()?;
    let tokens: Vec<TokenWithSpan> =
        tokens.into_iter().filter(|one| !matches!(one.token, Token::Whitespace(_))).collect();
    let parts: Vec<&str> = if name == "." { vec![name] } else { name.split('.').collect() };
    let mut found = (0..tokens.len()).filter(|at| begins_with(&tokens[*at..], &parts));
    let first = found.next()?;
    // The parser fails at one of several equal words; which one is not known.
    let is_certain = code != "42601" || found.next().is_none();
    is_certain.then(|| character_at(text, tokens[first].span.start))?
}

/// Whether tokens begin with the parts of a name, with periods between them.
fn begins_with(tokens: &[TokenWithSpan], parts: &[&str]) -> bool {
    let is_part = |token: &TokenWithSpan, part: &str| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => word.value.eq_ignore_ascii_case(part),
        Token::Word(word) => word.value == part,
        other => other.to_string() == part,
    };
    let is_period = |at: usize| tokens.get(at).is_some_and(|one| one.token == Token::Period);
    parts.iter().enumerate().all(|(at, part)| {
        let has_period = at == 0 || is_period(2 * at - 1);
        has_period && tokens.get(2 * at).is_some_and(|token| is_part(token, part))
    })
}

/// The number of a character, counted from 1, by its line and column.
fn character_at(text: &str, place: Location) -> Option<usize> {
    let line = usize::try_from(place.line).ok()?.checked_sub(1)?;
    let before: usize =
        text.split_inclusive('\n').take(line).map(|line| line.chars().count()).sum();
    Some(before + usize::try_from(place.column).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_places() {
        let at = |code, message: &str, text: &str| error_position(text, code, message);
        let column = "column \"nosuch\" does not exist";
        assert_eq!(at("42703", column, "select nosuch from t"), Some(8));
        assert_eq!(at("42703", column, "select 'nosuch',\n  'ä', NoSuch from t"), Some(25));
        assert_eq!(at("42703", "column \"t.b\" does not exist", "select b, t.b from t"), Some(11));
        assert_eq!(at("42P01", "relation \"x\" does not exist", "select * from \"x\""), Some(15));
        assert_eq!(at("42883", "function f() does not exist", "select g(1), f(2)"), Some(14));
        let near = "syntax error at or near \"from\"";
        assert_eq!(at("42601", near, "select a, from t"), Some(11));
        assert_eq!(at("42601", near, "select a from t, from u"), None);
        assert_eq!(at("42601", "syntax error at end of input", "select"), None);
        assert_eq!(at("22012", "division by zero", "select 1/0"), None);
    }
}
