//! Text to tokens.
//!
//! What a character means depends on where it stands, so the lexer keeps three states:
//! inside braces only names, strings and matcher operators occur; right after a `[` only
//! what makes a duration; everywhere else the whole language. All tokens are made up front.
//! The first error ends the list with a token of kind `Error`; whether it is the first error
//! of the whole expression is for the parser to see, as a grammar error may come before it.

use crate::error::Span;
use crate::quote::{quote, quote_char};
use crate::token::{Keyword, OperatorToken, Token, TokenKind, keyword};

/// The tokens of a text, the last of which is `Eof` or `Error`.
pub(crate) struct Tokens {
    pub list: Vec<Token>,
    /// What the `Error` token stands for.
    pub error: Option<String>,
}

/// Splits `text` into tokens.
pub(crate) fn lex(text: &str) -> Tokens {
    let mut lexer = Lexer {
        text,
        pos: 0,
        start: 0,
        paren_depth: 0,
        in_braces: false,
        in_brackets: false,
        seen_colon: false,
        seen_duration: false,
        tokens: Vec::with_capacity(text.len() / 4 + 2),
    };
    let error = lexer.run().err();
    if error.is_some() {
        let span = Span::new(lexer.start, text.len());
        lexer.tokens.push(Token { kind: TokenKind::Error, span });
    }
    Tokens { list: lexer.tokens, error }
}

struct Lexer<'a> {
    text: &'a str,
    /// Next byte to read.
    pos: usize,
    /// First byte of the token being read.
    start: usize,
    paren_depth: usize,
    in_braces: bool,
    in_brackets: bool,
    /// Whether the brackets have had their `:`.
    seen_colon: bool,
    /// Whether the brackets have had a number or duration.
    seen_duration: bool,
    tokens: Vec<Token>,
}

type Step<T> = Result<T, String>;

impl Lexer<'_> {
    fn run(&mut self) -> Step<()> {
        let mut after_left_bracket = false;
        loop {
            self.skip_space();
            if !after_left_bracket && self.skip_comment() {
                continue;
            }
            self.start = self.pos;
            if self.in_braces {
                self.inside_braces()?;
                continue;
            }
            if after_left_bracket {
                after_left_bracket = self.duration_token()?;
                continue;
            }
            if self.peek().is_none() {
                return self.end();
            }
            after_left_bracket = self.token()?;
        }
    }

    fn end(&mut self) -> Step<()> {
        if self.paren_depth != 0 {
            return Err("unclosed left parenthesis".to_string());
        }
        if self.in_brackets {
            return Err("unclosed left bracket".to_string());
        }
        self.emit(TokenKind::Eof);
        Ok(())
    }

    /// Reads one token outside braces; says whether the duration state begins.
    fn token(&mut self) -> Step<bool> {
        let Some(c) = self.next() else { return Ok(false) };
        match c {
            '"' | '\'' => self.string(c)?,
            '`' => self.raw_string()?,
            '(' => {
                self.paren_depth += 1;
                self.emit(TokenKind::LeftParen);
            }
            ')' => self.right_paren()?,
            '{' => {
                self.in_braces = true;
                self.emit(TokenKind::LeftBrace);
            }
            '[' => {
                if self.in_brackets {
                    return Err(format!("unexpected left bracket {}", quote_char(c)));
                }
                self.in_brackets = true;
                self.seen_colon = false;
                self.seen_duration = false;
                self.emit(TokenKind::LeftBracket);
                return Ok(true);
            }
            ']' => {
                if !self.in_brackets {
                    return Err(format!("unexpected right bracket {}", quote_char(c)));
                }
                self.in_brackets = false;
                self.emit(TokenKind::RightBracket);
            }
            ',' => self.emit(TokenKind::Comma),
            _ if c.is_ascii_digit() || (c == '.' && self.peek_is_digit()) => {
                self.pos = self.start;
                self.number_or_duration()?;
                // Numbers inside brackets return to the ordinary state, which knows the brackets.
            }
            _ if is_alpha(c) || c == ':' => self.word(c)?,
            _ => self.operator(c)?,
        }
        Ok(false)
    }

    fn right_paren(&mut self) -> Step<()> {
        if self.paren_depth == 0 {
            self.start = self.pos;
            return Err("unexpected right parenthesis ')'".to_string());
        }
        self.paren_depth -= 1;
        self.emit(TokenKind::RightParen);
        Ok(())
    }

    /// Operators, which are one or two characters.
    fn operator(&mut self, c: char) -> Step<()> {
        let followed_by = |lexer: &mut Self, second: char| {
            let found = lexer.peek() == Some(second);
            if found {
                lexer.pos += second.len_utf8();
            }
            found
        };
        let op = match c {
            '+' => OperatorToken::Add,
            '-' => OperatorToken::Sub,
            '*' => OperatorToken::Mul,
            '/' => OperatorToken::Div,
            '%' => OperatorToken::Mod,
            '^' => OperatorToken::Pow,
            '@' => OperatorToken::At,
            '=' if followed_by(self, '=') => OperatorToken::Equal,
            '=' if self.peek() == Some('~') => {
                return Err("unexpected character after '=': '~'".to_string());
            }
            '=' => {
                self.emit(TokenKind::Assign);
                return Ok(());
            }
            '!' if followed_by(self, '=') => OperatorToken::NotEqual,
            '!' => {
                let after = self.next().unwrap_or(char::REPLACEMENT_CHARACTER);
                return Err(format!("unexpected character after '!': {}", quote_char(after)));
            }
            '<' if followed_by(self, '=') => OperatorToken::LessEqual,
            '<' if followed_by(self, '/') => OperatorToken::TrimUpper,
            '<' => OperatorToken::Less,
            '>' if followed_by(self, '=') => OperatorToken::GreaterEqual,
            '>' if followed_by(self, '/') => OperatorToken::TrimLower,
            '>' => OperatorToken::Greater,
            _ => return Err(format!("unexpected character: {}", quote_char(c))),
        };
        self.emit(TokenKind::Operator(op));
        Ok(())
    }

    /// A name or keyword; inside brackets only a colon and the keywords of durations.
    fn word(&mut self, first: char) -> Step<()> {
        if self.in_brackets {
            if first == ':' {
                if self.seen_colon {
                    return Err("unexpected colon ':'".to_string());
                }
                self.seen_colon = true;
                self.emit(TokenKind::Colon);
                return Ok(());
            }
            if self.duration_keyword() {
                return Ok(());
            }
            let first = quote_char(first);
            return Err(format!("unexpected character: {first}, expected ':'"));
        }
        self.skip_while(|c| is_alphanumeric(c) || c == ':');
        let word = &self.text[self.start..self.pos];
        let kind = match keyword(word) {
            Some(TokenKind::Keyword(Keyword::Fill | Keyword::FillLeft | Keyword::FillRight))
                if !self.text[self.pos..].trim_start_matches(is_space).starts_with('(') =>
            {
                TokenKind::Identifier
            }
            Some(kind) => kind,
            None if word.contains(':') => TokenKind::MetricIdentifier,
            None => TokenKind::Identifier,
        };
        self.emit(kind);
        Ok(())
    }

    fn duration_keyword(&mut self) -> bool {
        self.skip_while(is_alpha);
        match keyword(&self.text[self.start..self.pos]) {
            Some(
                kind @ TokenKind::Keyword(
                    Keyword::Step | Keyword::Range | Keyword::MaxOf | Keyword::MinOf,
                ),
            ) => {
                self.emit(kind);
                true
            }
            _ => false,
        }
    }

    /// One token inside braces.
    fn inside_braces(&mut self) -> Step<()> {
        let Some(c) = self.next() else {
            return Err("unexpected end of input inside braces".to_string());
        };
        match c {
            ',' => self.emit(TokenKind::Comma),
            '"' | '\'' => self.string(c)?,
            '`' => self.raw_string()?,
            '=' if self.peek() == Some('~') => {
                self.pos += 1;
                self.emit(TokenKind::Operator(OperatorToken::RegexEqual));
            }
            '=' => self.emit(TokenKind::Assign),
            '!' => match self.next() {
                Some('~') => self.emit(TokenKind::Operator(OperatorToken::RegexNotEqual)),
                Some('=') => self.emit(TokenKind::Operator(OperatorToken::NotEqual)),
                other => {
                    let other = quote_char(other.unwrap_or(char::REPLACEMENT_CHARACTER));
                    return Err(format!("unexpected character after '!' inside braces: {other}"));
                }
            },
            '{' => return Err("unexpected left brace '{'".to_string()),
            '}' => {
                self.in_braces = false;
                self.emit(TokenKind::RightBrace);
            }
            _ if is_alpha(c) => {
                self.skip_while(is_alphanumeric);
                self.emit(TokenKind::Identifier);
            }
            _ => {
                return Err(format!("unexpected character inside braces: {}", quote_char(c)));
            }
        }
        Ok(())
    }

    /// One token between `[` and the first number; says whether that state goes on.
    fn duration_token(&mut self) -> Step<bool> {
        let Some(c) = self.next() else {
            return Err("unexpected end of input in duration expression".to_string());
        };
        let kind = match c {
            ']' => {
                self.in_brackets = false;
                self.emit(TokenKind::RightBracket);
                return Ok(false);
            }
            ':' => {
                if !self.seen_duration {
                    self.start = self.pos;
                    let message = "unexpected colon before duration in duration expression";
                    return Err(message.to_string());
                }
                self.emit(TokenKind::Colon);
                self.seen_colon = true;
                return Ok(true);
            }
            '(' => {
                self.paren_depth += 1;
                TokenKind::LeftParen
            }
            ')' => {
                self.right_paren()?;
                return Ok(true);
            }
            '+' => TokenKind::Operator(OperatorToken::Add),
            '-' => TokenKind::Operator(OperatorToken::Sub),
            '*' => TokenKind::Operator(OperatorToken::Mul),
            '/' => TokenKind::Operator(OperatorToken::Div),
            '%' => TokenKind::Operator(OperatorToken::Mod),
            '^' => TokenKind::Operator(OperatorToken::Pow),
            ',' => TokenKind::Comma,
            _ if c.is_ascii_digit() || (c == '.' && self.peek_is_digit()) => {
                self.pos = self.start;
                self.seen_duration = true;
                self.number_or_duration()?;
                return Ok(false);
            }
            _ => {
                if matches!(c.to_ascii_lowercase(), 's' | 'r' | 'm') && self.duration_keyword() {
                    return Ok(true);
                }
                let c = quote_char(c);
                return Err(format!("unexpected character in duration expression: {c}"));
            }
        };
        self.emit(kind);
        Ok(true)
    }

    fn string(&mut self, quote: char) -> Step<()> {
        loop {
            match self.next() {
                Some('\\') => self.escape(quote)?,
                None | Some('\n') => return Err("unterminated quoted string".to_string()),
                Some(c) if c == quote => break,
                Some(char::REPLACEMENT_CHARACTER) => return Err("invalid UTF-8 rune".to_string()),
                Some(_) => {}
            }
        }
        self.emit(TokenKind::String);
        Ok(())
    }

    fn raw_string(&mut self) -> Step<()> {
        loop {
            match self.next() {
                None => return Err("unterminated raw string".to_string()),
                Some('`') => break,
                Some(char::REPLACEMENT_CHARACTER) => return Err("invalid UTF-8 rune".to_string()),
                Some(_) => {}
            }
        }
        self.emit(TokenKind::String);
        Ok(())
    }

    /// Checks an escape sequence; its value is made when the literal is unquoted.
    fn escape(&mut self, quote: char) -> Step<()> {
        let not_terminated = || "escape sequence not terminated".to_string();
        let c = self.next().ok_or_else(not_terminated)?;
        let (count, radix, max) = match c {
            'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '\\' => return Ok(()),
            _ if c == quote => return Ok(()),
            '0'..='7' => {
                self.pos -= 1;
                (3, 8, 255)
            }
            'x' => (2, 16, 255),
            'u' => (4, 16, 0x10_ffff),
            'U' => (8, 16, 0x10_ffff),
            _ => return Err(format!("unknown escape sequence {}", describe_char(c))),
        };
        let mut value = 0u64;
        for _ in 0..count {
            let c = self.next().ok_or_else(not_terminated)?;
            let digit = c.to_digit(radix).ok_or_else(|| {
                format!("illegal character {} in escape sequence", describe_char(c))
            })?;
            value = value * u64::from(radix) + u64::from(digit);
        }
        if max < value || (0xd800..0xe000).contains(&value) {
            return Err("escape sequence is an invalid Unicode code point".to_string());
        }
        Ok(())
    }

    fn number_or_duration(&mut self) -> Step<()> {
        if self.scan_number() {
            self.emit(TokenKind::Number);
            return Ok(());
        }
        if self.scan_rest_of_duration() {
            self.emit(TokenKind::Duration);
            return Ok(());
        }
        let seen = quote(&self.text[self.start..self.pos]);
        Err(format!("bad number or duration syntax: {seen}"))
    }

    /// Scans what may be a number, which the parser then checks. On failure `pos` stands where
    /// the text stopped being one, possibly at a unit.
    fn scan_number(&mut self) -> bool {
        let is_hex = self.accept("0") && self.accept("xX");
        let digits = if is_hex { "0123456789abcdefABCDEF" } else { "0123456789" };
        if is_hex {
            self.accept("_");
        }
        let begin = self.pos;
        self.accept(".");
        self.accept(digits);
        let mut dot_seen = false;
        let mut exponent_seen = false;
        while let Some(c) = self.peek() {
            if digits.contains(c) {
                // In hexadecimal, `e` is a digit.
                self.skip_while(|c| digits.contains(c));
                continue;
            }
            match c {
                '.' => {
                    self.pos += 1;
                    if dot_seen || self.accept("_.") || is_hex {
                        return false;
                    }
                    dot_seen = true;
                }
                'e' | 'E' => {
                    self.pos += 1;
                    if exponent_seen {
                        return false;
                    }
                    exponent_seen = true;
                    self.accept("+-");
                    if self.accept("._eE") || self.peek().is_none() {
                        return false;
                    }
                }
                '_' => {
                    self.pos += 1;
                    if self.accept("._eE") || self.peek().is_none() {
                        return false;
                    }
                }
                _ => break,
            }
        }
        let is_empty = self.pos == begin && self.pos == self.start;
        !is_empty && !self.peek().is_some_and(is_alphanumeric)
    }

    fn scan_rest_of_duration(&mut self) -> bool {
        if !self.accept("smhdwy") {
            return false;
        }
        self.accept("s");
        while self.peek_is_digit() {
            self.skip_while(|c| c.is_ascii_digit());
            if !self.accept("smhdw") {
                return false;
            }
            self.accept("s");
        }
        match self.peek() {
            Some(c) if is_alphanumeric(c) => {
                // The message shows the character that spoils it.
                self.pos += 1;
                false
            }
            _ => true,
        }
    }

    fn emit(&mut self, kind: TokenKind) {
        self.tokens.push(Token { kind, span: Span::new(self.start, self.pos) });
    }

    fn skip_space(&mut self) {
        self.skip_while(is_space);
    }

    fn skip_comment(&mut self) -> bool {
        let is_comment = self.peek() == Some('#');
        if is_comment {
            self.skip_while(|c| c != '\n' && c != '\r');
        }
        is_comment
    }

    fn skip_while(&mut self, accepted: impl Fn(char) -> bool) {
        while let Some(c) = self.peek() {
            if !accepted(c) {
                break;
            }
            self.pos += c.len_utf8();
        }
    }

    fn accept(&mut self, set: &str) -> bool {
        let found = self.peek().is_some_and(|c| set.contains(c));
        if found {
            self.pos += 1;
        }
        found
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.text[self.pos..].chars().next()
    }

    fn peek_is_digit(&self) -> bool {
        self.peek().is_some_and(|c| c.is_ascii_digit())
    }
}

fn describe_char(c: char) -> String {
    format!("U+{:04X} {}", c as u32, quote_char(c).replace("'\\''", "'''"))
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

fn is_alpha(c: char) -> bool {
    c == '_' || c.is_ascii_alphabetic()
}

fn is_alphanumeric(c: char) -> bool {
    is_alpha(c) || c.is_ascii_digit()
}
