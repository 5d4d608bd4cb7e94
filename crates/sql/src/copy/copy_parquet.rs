//! `COPY .. TO` as Parquet: the parser knows neither the format nor all its options, so what stands
//! behind `TO` is read here, and the parser reads the rest as if lines were wanted.

use crate::copy::statement::{CopyTo, Options, Words, word};
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::statement::{CopyIn, CopyOut, Given, ParquetIn};
    use crate::session::statements::{Parsed, parse};
    use crate::tables::metrics::tables::Column;

    fn out(text: &str) -> CopyTo {
        match parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).remove(0) {
            Parsed::CopyOut(CopyOut { to, .. }) => to,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn files_go_out() {
        for text in [
            "COPY (SELECT 1 AS to) TO STDOUT (FORMAT parquet)",
            "copy metrics to stdout with (format 'Parquet')",
            "COPY metrics (time, value) TO STDOUT WITH (FORMAT PARQUET);",
        ] {
            assert_eq!(out(text), CopyTo::Parquet, "{text}");
        }
        let file = |overwrites| CopyTo::File { name: "x.parquet".into(), overwrites };
        for (text, expected) in [
            ("COPY metrics TO 'x.parquet'", file(false)),
            ("COPY (SELECT 1) TO 'x.parquet' (FORMAT parquet)", file(false)),
            ("COPY (SELECT 1) TO 'x.parquet' WITH (FORMAT parquet, OVERWRITE)", file(true)),
            ("COPY (SELECT 1) TO 'x.parquet' WITH (OVERWRITE false)", file(false)),
        ] {
            assert_eq!(out(text), expected, "{text}");
        }
        for (text, code) in [
            ("COPY metrics TO 'x.csv'", "0A000"),
            ("COPY metrics TO 'x.parquet' (FORMAT csv)", "0A000"),
            ("COPY metrics TO PROGRAM 'x' (FORMAT parquet)", "0A000"),
            ("COPY metrics TO 'x.parquet' (HEADER)", "42601"),
            ("COPY metrics TO STDOUT (FORMAT parquet, OVERWRITE)", "42601"),
            ("COPY metrics TO STDOUT (FORMAT parquet, DELIMITER ',')", "42601"),
            ("COPY metrics TO 'x.parquet' (OVERWRITE 7)", "0A000"),
        ] {
            assert_eq!(parse(text).err().map(|error| error.code), Some(code), "{text}");
        }
    }

    #[test]
    fn files_come_in() {
        let given = |text: &str| match parse(text).unwrap().remove(0) {
            Parsed::CopyIn(CopyIn { given: Given::Parquet(parquet), .. }) => parquet,
            other => panic!("{text}: {other:?}"),
        };
        let file = Some("x.parquet".to_string());
        let expected = ParquetIn { columns: None, file: file.clone() };
        assert_eq!(given("COPY metrics FROM 'x.parquet'"), expected);
        let text = "COPY metrics FROM 'x.parquet' (FORMAT parquet, ON_ERROR ignore)";
        assert_eq!(given(text), expected);
        let columns = Some(vec![Column::Name, Column::Value]);
        let text = "COPY metrics (metric, value) FROM STDIN (FORMAT parquet)";
        assert_eq!(given(text), ParquetIn { columns, file: None });
        for (text, code) in [
            ("COPY metrics FROM 'x.csv'", "0A000"),
            ("COPY hosts FROM 'x.parquet'", "0A000"),
            ("COPY metrics FROM STDIN (FORMAT parquet, HEADER)", "42601"),
            ("COPY metrics FROM STDIN (OVERWRITE)", "42601"),
            ("COPY metrics FROM PROGRAM 'x'", "0A000"),
            ("COPY metrics (x) FROM 'x.parquet'", "42703"),
        ] {
            assert_eq!(parse(text).err().map(|error| error.code), Some(code), "{text}");
        }
    }
}
