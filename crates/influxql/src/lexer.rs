//! Text to tokens, one at a time: what a slash begins only the parser knows.

use crate::token::{Op, Token, keyword};
use std::borrow::Cow;

/// A token, what it says and where it begins.
#[derive(Clone, Debug)]
pub struct Lexeme<'a> {
    pub token: Token,
    /// The text of words, numbers and strings; empty for signs.
    pub text: Cow<'a, str>,
    pub at: usize,
}

/// Reads tokens; `at` may be set back.
pub struct Lexer<'a> {
    text: &'a str,
    pub at: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    /// Line and column of a place, from 0.
    pub fn position(&self, at: usize) -> (usize, usize) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count();
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (line, before[start..].chars().count())
    }

    /// Whether the last word of the text is a number or a string.
    pub fn ends_in_literal(&self) -> bool {
        let is_part = |c: char| is_ident(c) || c == '.';
        let word = self.text.rfind(|c| !is_part(c)).map_or(self.text, |at| {
            let next = at + self.text[at..].chars().next().map_or(0, char::len_utf8);
            &self.text[next..]
        });
        self.text.ends_with(['\'', '"']) || word.starts_with(|c: char| c.is_ascii_digit())
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// The next character, which stays.
    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take_while(&mut self, is_in: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !is_in(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// The next token.
    pub fn next(&mut self) -> Lexeme<'a> {
        let at = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return lexeme(Token::Eof, "", at) };
        if first.is_whitespace() || rest.starts_with("--") || rest.starts_with("/*") {
            self.skip_space();
            return lexeme(Token::Space, " ", at);
        }
        if is_ident_first(first) {
            return self.word(at);
        }
        let follows = rest[first.len_utf8()..].chars().next();
        if first.is_ascii_digit() || (first == '.' && follows.is_some_and(|c| c.is_ascii_digit())) {
            return self.number(at);
        }
        match first {
            '"' => return self.quoted(at, '"', Token::Ident),
            '\'' => return self.quoted(at, '\'', Token::String),
            '$' => return self.parameter(at),
            _ => {}
        }
        let (token, size) = sign(rest);
        self.at += size;
        match token {
            Token::Illegal => lexeme(token, &rest[..size], at),
            _ => lexeme(token, "", at),
        }
    }

    fn skip_space(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            let rest = self.rest();
            if rest.starts_with("--") {
                self.take_while(|c| c != '\n');
            } else if rest.starts_with("/*") {
                self.at += rest.find("*/").map_or(rest.len(), |end| end + 2);
            } else {
                return;
            }
        }
    }

    fn word(&mut self, at: usize) -> Lexeme<'a> {
        let word = self.take_while(is_ident);
        match keyword(word) {
            Some(token) => lexeme(token, if word.is_empty() { "" } else { token.name() }, at),
            None => lexeme(Token::Ident, word, at),
        }
    }

    fn number(&mut self, at: usize) -> Lexeme<'a> {
        let whole = self.take_while(|c| c.is_ascii_digit());
        if !whole.is_empty() && self.peek().is_some_and(is_unit) {
            self.take_while(|c| c.is_ascii_digit() || is_unit(c));
            return lexeme(Token::Duration, &self.text[at..self.at], at);
        }
        if self.peek() != Some('.') {
            return lexeme(Token::Integer, whole, at);
        }
        self.at += 1;
        // `1.` is a number, too, which InfluxDB writes without its point.
        match self.take_while(|c| c.is_ascii_digit()) {
            "" => lexeme(Token::Number, whole, at),
            _ => lexeme(Token::Number, &self.text[at..self.at], at),
        }
    }

    /// What stands between two quotes.
    fn quoted(&mut self, at: usize, quote: char, token: Token) -> Lexeme<'a> {
        // InfluxDB says the place before the quote.
        let at = at.saturating_sub(1);
        let rest = self.rest();
        let is_special = |c: char| c == quote || matches!(c, '\\' | '\n');
        // Most have nothing between their quotes that stands for something else.
        if let Some(end) = rest.get(1..).and_then(|inner| inner.find(is_special))
            && rest[1 + end..].starts_with(quote)
        {
            self.at += end + 2;
            return lexeme(token, &rest[1..=end], at);
        }
        let mut out = String::new();
        let mut characters = rest.char_indices().skip(1);
        while let Some((offset, character)) = characters.next() {
            match character {
                '\n' => {
                    self.at += offset;
                    return Lexeme { token: Token::BadString, text: out.into(), at };
                }
                '\\' => match characters.next() {
                    Some((_, 'n')) => out.push('\n'),
                    Some((_, escaped @ ('\\' | '"' | '\''))) => out.push(escaped),
                    Some((offset, other)) => {
                        let at = self.at + offset - 1;
                        self.at += offset + other.len_utf8();
                        let text = format!("\\{other}").into();
                        return Lexeme { token: Token::BadEscape, text, at };
                    }
                    None => break,
                },
                c if c == quote => {
                    self.at += offset + c.len_utf8();
                    return Lexeme { token, text: out.into(), at };
                }
                c => out.push(c),
            }
        }
        self.at = self.text.len();
        Lexeme { token: Token::BadString, text: out.into(), at }
    }

    fn parameter(&mut self, at: usize) -> Lexeme<'a> {
        self.at += 1;
        if self.peek() == Some('"') {
            let quoted = self.quoted(at, '"', Token::BoundParameter);
            return Lexeme { text: format!("${}", quoted.text).into(), ..quoted };
        }
        self.take_while(is_ident);
        lexeme(Token::BoundParameter, &self.text[at..self.at], at)
    }

    /// A regular expression, if one is next, behind blanks.
    pub fn regex(&mut self) -> Option<Lexeme<'a>> {
        let back = self.at;
        self.skip_space();
        let at = self.at;
        if self.peek() != Some('/') {
            self.at = back;
            return None;
        }
        let at = at.saturating_sub(1);
        let mut out = String::new();
        let mut characters = self.rest().char_indices().skip(1).peekable();
        while let Some((offset, character)) = characters.next() {
            match character {
                '/' => {
                    self.at += offset + 1;
                    return Some(Lexeme { token: Token::Regex, text: out.into(), at });
                }
                '\\' if characters.peek().is_some_and(|(_, next)| *next == '/') => {
                    out.push('/');
                    characters.next();
                }
                '\n' => break,
                c => out.push(c),
            }
        }
        self.at = self.text.len();
        Some(Lexeme { token: Token::BadRegex, text: out.into(), at })
    }
}

fn lexeme(token: Token, text: &str, at: usize) -> Lexeme<'_> {
    Lexeme { token, text: Cow::Borrowed(text), at }
}

fn is_ident_first(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_ident(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_unit(c: char) -> bool {
    c.is_ascii_alphabetic() || c == 'µ'
}

/// A sign and its size.
fn sign(rest: &str) -> (Token, usize) {
    let bytes = rest.as_bytes();
    let (first, second) = (bytes.first().copied().unwrap_or(0), bytes.get(1).copied());
    let long = match (first, second) {
        (b':', Some(b':')) => Token::DoubleColon,
        (b'=', Some(b'~')) => Token::Op(Op::EqRegex),
        (b'!', Some(b'~')) => Token::Op(Op::NotEqRegex),
        (b'!', Some(b'=')) | (b'<', Some(b'>')) => Token::Op(Op::NotEq),
        (b'<', Some(b'=')) => Token::Op(Op::LessEq),
        (b'>', Some(b'=')) => Token::Op(Op::GreaterEq),
        _ => Token::Illegal,
    };
    if long != Token::Illegal {
        return (long, 2);
    }
    let short = match first {
        b'=' => Token::Op(Op::Eq),
        b'<' => Token::Op(Op::Less),
        b'>' => Token::Op(Op::Greater),
        b'+' => Token::Op(Op::Add),
        b'-' => Token::Op(Op::Sub),
        b'*' => Token::Op(Op::Mul),
        b'/' => Token::Op(Op::Div),
        b'%' => Token::Op(Op::Mod),
        b'&' => Token::Op(Op::BitAnd),
        b'|' => Token::Op(Op::BitOr),
        b'^' => Token::Op(Op::BitXor),
        b'(' => Token::LeftParen,
        b')' => Token::RightParen,
        b',' => Token::Comma,
        b';' => Token::Semicolon,
        b':' => Token::Colon,
        b'.' => Token::Dot,
        _ => Token::Illegal,
    };
    (short, rest.chars().next().map_or(0, char::len_utf8))
}
