//! `COPY .. TO` as Parquet: the parser knows neither the format nor all its options, so what stands
//! behind `TO` is read here, and the parser reads the rest as if lines were wanted.

use crate::copy::statement::{CopyTo, Options, Words};
use crate::parse::token_forms::word;
use crate::types::error::SqlError;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Word};

/// Reads what stands behind `TO` of a `COPY` when it is a Parquet file, or any on the server; none
/// otherwise. Returns the statement with `TO STDOUT` at its end, too. `words` are `tokens` without
/// spaces.
///
/// # Errors
/// When it makes no sense.
pub fn copy_parquet(
    tokens: &[Token],
    words: &[&Token],
) -> Result<Option<(Vec<Token>, CopyTo)>, SqlError> {
    let is =
        |at: usize, one: &str| word(words.get(at)).is_some_and(|w| w.eq_ignore_ascii_case(one));
    let Some(to) = is(0, "copy").then(|| outermost_to(words)).flatten() else { return Ok(None) };
    let mut behind = Words { words, at: to + 1 };
    let file = match words.get(to + 1) {
        Some(Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_)) => behind.file("")?,
        // Of others the parser knows better what is wrong with them.
        _ if !says_parquet(&words[to..]) => return Ok(None),
        _ => behind.file("stdout")?,
    };
    let mut options = Options::default();
    behind.options(&mut options)?;
    let may: &[&str] = if file.is_some() { &["overwrite"] } else { &[] };
    if !options.is_parquet(file.as_deref(), may)? {
        return Ok(None);
    }
    let overwrites = options.overwrites;
    let wanted = match file {
        Some(name) => CopyTo::File { name, overwrites },
        None => CopyTo::Parquet,
    };
    // The same word among the tokens that have spaces between them.
    let is_said = |at: &usize| !matches!(tokens[*at], Token::Whitespace(_));
    let at = (0..tokens.len()).filter(is_said).nth(to).unwrap_or_default();
    let mut lines = tokens[..=at].to_vec();
    let space = Token::Whitespace(datafusion::sql::sqlparser::tokenizer::Whitespace::Space);
    let stdout = Word { value: "STDOUT".into(), quote_style: None, keyword: Keyword::STDOUT };
    lines.extend([space, Token::Word(stdout)]);
    Ok(Some((lines, wanted)))
}

/// Where `TO` stands outside of all parentheses.
fn outermost_to(words: &[&Token]) -> Option<usize> {
    let mut depth = 0usize;
    words.iter().position(|one| {
        match one {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_bare = matches!(one, Token::Word(word) if word.quote_style.is_none());
        depth == 0 && is_bare && word(Some(one)).is_some_and(|w| w.eq_ignore_ascii_case("to"))
    })
}

fn says_parquet(words: &[&Token]) -> bool {
    let is = |one: &Token, wanted: &str| {
        word(Some(&one)).is_some_and(|said| said.eq_ignore_ascii_case(wanted))
    };
    words.windows(2).any(|two| is(two[0], "format") && is(two[1], "parquet"))
}
