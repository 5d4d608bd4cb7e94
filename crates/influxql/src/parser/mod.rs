//! Tokens to statements, as InfluxDB 1.x reads them.

mod changes;
mod expressions;

mod select;
mod show;

use crate::ast::{Expr, Statement};
use crate::error::ParseError;
use crate::lexer::{Lexeme, Lexer};
use crate::pattern::{Allowance, Pattern};
use crate::token::Token;
use std::collections::BTreeMap;

pub use expressions::parameters;

/// Bytes of one request's text.
pub const TEXT_SIZE_MAX: usize = 1 << 20;
/// Expressions, parentheses and subqueries within each other.
pub const NESTING_MAX: usize = 64;
/// Statements of one request.
pub const STATEMENTS_MAX: usize = 1_000;
/// Operators and arguments of one text: a chain of them is a tree as deep as it is long.
pub const OPERATORS_MAX: usize = 2_000;

/// Values that `$name` stands for.
pub type Parameters = BTreeMap<String, Expr>;

/// The words that begin statements.
const STATEMENTS: &[&str] = &[
    "SELECT", "DELETE", "SHOW", "CREATE", "DROP", "EXPLAIN", "GRANT", "REVOKE", "ALTER", "SET",
    "KILL",
];

type Result<T> = std::result::Result<T, ParseError>;

/// The statements of a text.
///
/// # Errors
/// What is wrong with it.
pub fn parse(text: &str, parameters: &Parameters) -> Result<Vec<Statement>> {
    parse_within(text, parameters, Allowance::default())
}

/// The same where regular expressions may be no more than that.
///
/// # Errors
/// As [`parse`].
pub fn parse_within(
    text: &str,
    parameters: &Parameters,
    regexes: Allowance,
) -> Result<Vec<Statement>> {
    if TEXT_SIZE_MAX < text.len() {
        let size = text.len();
        let message = format!("query of {size} bytes, the limit is {TEXT_SIZE_MAX}");
        return Err(ParseError::plain(message));
    }
    let lexer = Lexer::new(text);
    let mut parser = Parser { lexer, parameters, depth: 0, operators: 0, regexes, seen: None };
    let mut statements = Vec::new();
    let mut is_separated = true;
    loop {
        match parser.peek().token {
            Token::Eof => return Ok(statements),
            Token::Semicolon => {
                parser.next();
                is_separated = true;
            }
            _ if !is_separated => return Err(parser.unexpected(&[";"])),
            _ => {
                if statements.len() == STATEMENTS_MAX {
                    let message = format!("more than {STATEMENTS_MAX} statements");
                    return Err(ParseError::plain(message));
                }
                statements.push(parser.statement()?);
                is_separated = false;
            }
        }
    }
}

/// What has been read, and what may be within what.
pub(crate) struct Parser<'a> {
    lexer: Lexer<'a>,
    parameters: &'a Parameters,
    depth: usize,
    operators: usize,
    regexes: Allowance,
    /// The token behind a place, and where it ends: most are looked at several times.
    seen: Option<(usize, usize, Lexeme<'a>)>,
}

impl<'a> Parser<'a> {
    /// The next token that is no blank.
    fn next(&mut self) -> Lexeme<'a> {
        let (_, end, lexeme) = self.look().clone();
        self.lexer.at = end;
        lexeme
    }

    /// The place that is reached, where the next token that is no blank ends, and that token.
    fn look(&mut self) -> &(usize, usize, Lexeme<'a>) {
        let from = self.lexer.at;
        let known = self.seen.take().filter(|(at, _, _)| *at == from);
        let seen = known.unwrap_or_else(|| {
            let lexeme = loop {
                let lexeme = self.lexer.next();
                if lexeme.token != Token::Space {
                    break self.bound(lexeme);
                }
            };
            let end = std::mem::replace(&mut self.lexer.at, from);
            (from, end, lexeme)
        });
        self.seen.insert(seen)
    }

    /// What a parameter stands for where it is a name: all else expressions look up themselves.
    fn bound(&self, lexeme: Lexeme<'a>) -> Lexeme<'a> {
        if lexeme.token != Token::BoundParameter {
            return lexeme;
        }
        let at = lexeme.at;
        match self.parameters.get(lexeme.text.trim_start_matches('$')) {
            Some(Expr::Var { name, .. }) => {
                Lexeme { token: Token::Ident, text: name.as_str().into(), at }
            }
            Some(Expr::Integer(value)) if 0 <= *value => {
                Lexeme { token: Token::Integer, text: value.to_string().into(), at }
            }
            Some(Expr::Text(text)) => {
                Lexeme { token: Token::String, text: text.as_str().into(), at }
            }
            _ => lexeme,
        }
    }

    /// The next token that is no blank, which stays.
    fn peek(&mut self) -> Lexeme<'a> {
        self.look().2.clone()
    }

    /// Takes the keyword if it is next.
    fn accept(&mut self, word: &str) -> bool {
        self.accept_token(|token| matches!(token, Token::Keyword(keyword) if keyword == word))
    }

    fn accept_token(&mut self, is_it: impl Fn(Token) -> bool) -> bool {
        let (_, end, lexeme) = self.look();
        let (end, is_next) = (*end, is_it(lexeme.token));
        if is_next {
            self.lexer.at = end;
        }
        is_next
    }

    /// Takes the keyword, which must be next.
    fn expect(&mut self, word: &'static str) -> Result<()> {
        if self.accept(word) { Ok(()) } else { Err(self.unexpected(&[word])) }
    }

    fn expect_token(&mut self, token: Token) -> Result<()> {
        match self.accept_token(|next| next == token) {
            true => Ok(()),
            false => Err(self.unexpected(&[token.name()])),
        }
    }

    /// The next token is none of those.
    fn unexpected(&mut self, expected: &[&'static str]) -> ParseError {
        let lexeme = self.peek();
        self.unexpected_at(&lexeme, expected)
    }

    fn unexpected_at(&self, lexeme: &Lexeme<'_>, expected: &[&'static str]) -> ParseError {
        let (line, character) = self.lexer.position(lexeme.at);
        // InfluxDB's reader stands behind the end when it finds it, but for numbers and strings.
        let past = usize::from(lexeme.token == Token::Eof && !self.lexer.ends_in_literal());
        let found = match lexeme.text.is_empty() {
            true => lexeme.token.name().to_string(),
            false => lexeme.text.to_string(),
        };
        let expected = expected.to_vec();
        ParseError::Expected { found, expected, line: line + 1, character: character + 1 + past }
    }

    fn error_at(&self, at: usize, message: impl Into<String>) -> ParseError {
        let (line, character) = self.lexer.position(at);
        ParseError::At { message: message.into(), line: line + 1, character: character + 1 }
    }

    /// One level deeper, and back.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == NESTING_MAX {
            let message = format!("more than {NESTING_MAX} levels of nesting");
            return Err(ParseError::plain(message));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn identifier(&mut self) -> Result<String> {
        let lexeme = self.peek();
        if lexeme.token != Token::Ident {
            return Err(self.unexpected(&["identifier"]));
        }
        self.next();
        Ok(lexeme.text.into_owned())
    }

    fn string(&mut self) -> Result<String> {
        let lexeme = self.peek();
        if lexeme.token != Token::String {
            return Err(self.unexpected(&["string"]));
        }
        self.next();
        Ok(lexeme.text.into_owned())
    }

    /// A whole number from `min`.
    fn integer(&mut self, min: i64) -> Result<i64> {
        let lexeme = self.peek();
        if lexeme.token != Token::Integer {
            return Err(self.unexpected(&["integer"]));
        }
        self.next();
        let parsed = lexeme.text.parse::<i64>();
        let value = parsed.map_err(|_| self.error_at(lexeme.at, "unable to parse integer"))?;
        if value < min {
            let message = format!("invalid value {value}: must be {min} <= n");
            return Err(self.error_at(lexeme.at, message));
        }
        Ok(value)
    }

    /// A duration; `INF` is 0.
    fn duration(&mut self) -> Result<i64> {
        let lexeme = self.peek();
        match lexeme.token {
            Token::Duration => {
                self.next();
                let parsed = crate::time::parse_duration(&lexeme.text);
                parsed.ok_or_else(|| self.error_at(lexeme.at, "invalid duration"))
            }
            Token::Keyword("INF") => {
                self.next();
                Ok(0)
            }
            _ => Err(self.unexpected(&["duration"])),
        }
    }

    /// A regular expression, if one is next.
    fn regex(&mut self) -> Result<Option<Pattern>> {
        let Some(lexeme) = self.lexer.regex() else { return Ok(None) };
        if lexeme.token == Token::BadRegex {
            return Err(self.unexpected_at(&lexeme, &["regex"]));
        }
        let pattern = self.regexes.pattern(&lexeme.text);
        pattern.map(Some).map_err(|error| self.error_at(lexeme.at, error))
    }

    fn statement(&mut self) -> Result<Statement> {
        let lexeme = self.peek();
        let Token::Keyword(word) = lexeme.token else { return Err(self.unexpected(STATEMENTS)) };
        if !STATEMENTS.contains(&word) {
            return Err(self.unexpected(STATEMENTS));
        }
        self.next();
        match word {
            "SELECT" => Ok(Statement::Select(Box::new(self.select()?))),
            "SHOW" => self.show(),
            "EXPLAIN" => {
                let analyze = self.accept("ANALYZE");
                self.expect("SELECT")?;
                Ok(Statement::Explain { select: Box::new(self.select()?), analyze })
            }
            _ => self.change(word),
        }
    }
}
