//! `PREPARE` and `EXECUTE` as statements: the first keeps what stands behind `AS`, the second puts values
//! into it, which is then a statement as any other.

use crate::session::parsed::Parsed;
use crate::types::error::SqlError;
use crate::types::names::{folded, quoted_literal};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, Word};

/// A statement that waits for its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    tokens: Vec<Token>,
    /// What its parameters are said to be.
    types: Vec<String>,
    /// How many it has.
    count: usize,
}

/// Reads `PREPARE name [(types)] AS statement`; none where it is no such thing.
///
/// # Errors
/// When it cannot be read.
pub fn prepare(tokens: &[Token]) -> Result<Option<Parsed>, SqlError> {
    let Some((name, rest)) = named(tokens, "prepare") else { return Ok(None) };
    let (types, rest) = match rest.first() {
        Some(Token::LParen) => parts(rest)?,
        _ => (Vec::new(), rest),
    };
    let rest = without_spaces(rest);
    let (Some(Token::Word(word)), Some(statement)) = (rest.first(), rest.get(1..)) else {
        return Err(SqlError::invalid("PREPARE name AS statement is what there is"));
    };
    if word.keyword != Keyword::AS {
        return Err(SqlError::invalid("PREPARE name AS statement is what there is"));
    }
    let numbers = statement.iter().filter_map(placeholder);
    let count = numbers.max().unwrap_or(0).max(types.len());
    let template = Template { tokens: statement.to_vec(), types, count };
    Ok(Some(Parsed::Prepare { name, template }))
}

/// Reads `EXECUTE name [(values)]`; none where it is no such thing.
///
/// # Errors
/// When it cannot be read.
pub fn execute(tokens: &[Token]) -> Result<Option<Parsed>, SqlError> {
    let Some((name, rest)) = named(tokens, "execute") else { return Ok(None) };
    let (values, rest) = match rest.first() {
        Some(Token::LParen) => parts(rest)?,
        _ => (Vec::new(), rest),
    };
    match without_spaces(rest).first() {
        None => Ok(Some(Parsed::Execute { name, values })),
        Some(other) => Err(SqlError::invalid(format!("syntax error at or near \"{other}\""))),
    }
}

/// The name behind a word that begins a statement, and what is behind it.
fn named<'a>(tokens: &'a [Token], word: &str) -> Option<(String, &'a [Token])> {
    let rest = behind_word(tokens, word)?;
    let (Token::Word(name), rest) = without_spaces(rest).split_first()? else { return None };
    let name = folded(&name.clone().into_ident(Span::empty()));
    Some((name, without_spaces(rest)))
}

fn behind_word<'a>(tokens: &'a [Token], wanted: &str) -> Option<&'a [Token]> {
    let (Token::Word(word), rest) = without_spaces(tokens).split_first()? else { return None };
    let is_one = word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted);
    is_one.then_some(rest)
}

fn without_spaces(mut tokens: &[Token]) -> &[Token] {
    while let [Token::Whitespace(_), rest @ ..] = tokens {
        tokens = rest;
    }
    tokens
}

/// What stands between parentheses, apart by commas, as text; and what is behind them.
fn parts(tokens: &[Token]) -> Result<(Vec<String>, &[Token]), SqlError> {
    let (mut all, mut one, mut depth) = (Vec::new(), String::new(), 0usize);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::LParen | Token::LBracket => {
                depth += 1;
                if depth == 1 {
                    continue;
                }
            }
            Token::RParen | Token::RBracket => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    all.push(one.trim().to_string());
                    if all.iter().any(String::is_empty) {
                        return Err(SqlError::invalid("syntax error: a value is missing"));
                    }
                    return Ok((all, &tokens[at + 1..]));
                }
            }
            Token::Comma if depth == 1 => {
                all.push(std::mem::take(&mut one).trim().to_string());
                continue;
            }
            _ => {}
        }
        push(&mut one, token);
    }
    Err(SqlError::invalid("syntax error: parentheses are not closed"))
}

fn placeholder(token: &Token) -> Option<usize> {
    match token {
        Token::Placeholder(name) => name.strip_prefix('$')?.parse().ok(),
        _ => None,
    }
}

/// Appends a token as it was written; texts and names in quotes with the quotes within them.
fn push(out: &mut String, token: &Token) {
    match token {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text)
        | Token::NationalStringLiteral(text) => out.push_str(&quoted_literal(text)),
        Token::Word(Word { value, quote_style: Some('"'), .. }) => {
            out.push('"');
            out.push_str(&value.replace('"', "\"\""));
            out.push('"');
        }
        other => out.push_str(&other.to_string()),
    }
}

impl Template {
    /// Bytes that it takes.
    pub fn size(&self) -> usize {
        self.tokens.len() * size_of::<Token>() + self.text().len()
    }

    /// The statement as it was written.
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.tokens.iter().for_each(|token| push(&mut out, token));
        out.trim().to_string()
    }

    /// The statement with these values in their places.
    ///
    /// # Errors
    /// When there are too many or too few.
    pub fn with_values(&self, name: &str, values: &[String]) -> Result<String, SqlError> {
        if values.len() != self.count {
            let words = format!("wrong number of parameters for prepared statement \"{name}\"");
            let detail = format!("Expected {} parameters but got {}.", self.count, values.len());
            return Err(SqlError { detail: Some(detail), ..SqlError::invalid(words) });
        }
        let mut out = String::new();
        for token in &self.tokens {
            let at = placeholder(token).and_then(|number| number.checked_sub(1));
            let Some((at, value)) = at.and_then(|at| Some((at, values.get(at)?))) else {
                push(&mut out, token);
                continue;
            };
            let is_plain = value.starts_with('\'')
                && value[1..].find('\'') == Some(value.len() - 2)
                || value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
            match (self.types.get(at), is_plain) {
                (Some(of), _) if !of.eq_ignore_ascii_case("unknown") => {
                    out.push_str(&format!("CAST({value} AS {of})"));
                }
                (_, true) => out.push_str(value),
                (_, false) => out.push_str(&format!("({value})")),
            }
        }
        Ok(out.trim().to_string())
    }
}
