//! Text to tokens.
//!
//! Keywords are not told from names here: nearly all of them may be names of metrics, and only
//! the parser knows where. Between brackets a colon stands for itself, elsewhere it is part of
//! names. A text that is no token ends the list with a [`Kind::Bad`], so that the parser reports
//! the first error of a text, whoever finds it.

use crate::error::Span;
use crate::metricsql::ast::BinaryOp;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or keyword.
    Name,
    /// A string with its quotes.
    String,
    /// `1.5e3`, `0x1f`, `5Ki`
    Number,
    /// `1h30m`, `5i`
    Duration,
    /// `$__interval` or `$__rate_interval`, as dashboards have them.
    Interval,
    /// An operator made of symbols; `!=` inside braces as well.
    Operator(BinaryOp),
    /// `=`
    Assign,
    /// `=~`
    Matches,
    /// `!~`
    MatchesNot,
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `{`
    LeftBrace,
    /// `}`
    RightBrace,
    /// `[`
    LeftBracket,
    /// `]`
    RightBracket,
    /// `,`
    Comma,
    /// `:` between brackets.
    Colon,
    /// `@`
    At,
    /// The end of the text.
    End,
    /// Text that is no token, and why.
    Bad(&'static str),
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    /// What it is.
    pub kind: Kind,
    /// Where.
    pub span: Span,
}

/// The tokens of `text`, of which the last is [`Kind::End`] or [`Kind::Bad`].
pub(crate) fn lex(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { text, at: 0, in_brackets: false };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_space();
        let start = lexer.at;
        let kind = lexer.token();
        tokens.push(Token { kind, span: Span::new(start, lexer.at) });
        if matches!(kind, Kind::End | Kind::Bad(_)) {
            return tokens;
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    in_brackets: bool,
}

impl Lexer<'_> {
    fn token(&mut self) -> Kind {
        let Some(c) = self.rest().chars().next() else { return Kind::End };
        if let Some(kind) = self.bracket(c) {
            self.at += 1;
            return kind;
        }
        if let Some(size) = name_size(self.rest(), self.in_brackets) {
            self.at += size;
            return Kind::Name;
        }
        if matches!(c, '"' | '\'' | '`') {
            return self.string(c);
        }
        if let Some((size, kind)) = symbol(self.rest()) {
            self.at += size;
            return kind;
        }
        if let Some(size) = duration_size(self.rest()) {
            self.at += size;
            return Kind::Duration;
        }
        if c.is_ascii_digit() || c == '.' {
            return self.number();
        }
        for name in ["$__interval", "$__rate_interval"] {
            if self.rest().starts_with(name) {
                self.at += name.len();
                return Kind::Interval;
            }
        }
        self.bad(c.len_utf8(), "unexpected character")
    }

    fn bracket(&mut self, c: char) -> Option<Kind> {
        Some(match c {
            '(' => Kind::LeftParen,
            ')' => Kind::RightParen,
            '{' => Kind::LeftBrace,
            '}' => Kind::RightBrace,
            '[' => {
                self.in_brackets = true;
                Kind::LeftBracket
            }
            ']' => {
                self.in_brackets = false;
                Kind::RightBracket
            }
            ',' => Kind::Comma,
            '@' => Kind::At,
            ':' if self.in_brackets => Kind::Colon,
            _ => return None,
        })
    }

    /// A string ends at the next quote of its kind that has no backslash before it; one in back quotes knows none.
    fn string(&mut self, quote: char) -> Kind {
        let mut is_escaped = false;
        for (offset, c) in self.rest().char_indices().skip(1) {
            if c == quote && !is_escaped {
                self.at += offset + 1;
                return Kind::String;
            }
            is_escaped = c == '\\' && !is_escaped && quote != '`';
        }
        self.bad(self.rest().len(), "unterminated string")
    }

    fn number(&mut self) -> Kind {
        match number_size(self.rest()) {
            Some(size) => {
                self.at += size;
                Kind::Number
            }
            None => self.bad(1, "bad number"),
        }
    }

    fn bad(&mut self, size: usize, why: &'static str) -> Kind {
        self.at += size;
        Kind::Bad(why)
    }

    /// Skips white space and comments.
    fn skip_space(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }
}

/// An operator or an equals sign, and its bytes.
fn symbol(text: &str) -> Option<(usize, Kind)> {
    const TABLE: &[(&str, Kind)] = &[
        ("==", Kind::Operator(BinaryOp::Equal)),
        ("!=", Kind::Operator(BinaryOp::NotEqual)),
        ("<=", Kind::Operator(BinaryOp::LessEqual)),
        (">=", Kind::Operator(BinaryOp::GreaterEqual)),
        ("=~", Kind::Matches),
        ("!~", Kind::MatchesNot),
        ("<", Kind::Operator(BinaryOp::Less)),
        (">", Kind::Operator(BinaryOp::Greater)),
        ("+", Kind::Operator(BinaryOp::Add)),
        ("-", Kind::Operator(BinaryOp::Sub)),
        ("*", Kind::Operator(BinaryOp::Mul)),
        ("/", Kind::Operator(BinaryOp::Div)),
        ("%", Kind::Operator(BinaryOp::Mod)),
        ("^", Kind::Operator(BinaryOp::Pow)),
        ("=", Kind::Assign),
    ];
    TABLE.iter().find(|(sign, _)| text.starts_with(sign)).map(|(sign, kind)| (sign.len(), *kind))
}

// ---- names ----

/// The bytes of the name that `text` begins with.
fn name_size(text: &str, without_colons: bool) -> Option<usize> {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if c == '\\' {
            match unescape(&text[at + 1..]) {
                Some((_, size)) => at += 1 + size,
                None => break,
            }
            continue;
        }
        let fits = if at == 0 { may_begin_name(c) } else { may_continue_name(c) };
        if !fits || (c == ':' && without_colons) {
            break;
        }
        at += c.len_utf8();
    }
    (0 < at).then_some(at)
}

/// Whether a name may begin with this character, unescaped.
fn may_begin_name(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == ':'
}

fn may_continue_name(c: char) -> bool {
    may_begin_name(c) || c.is_ascii_digit() || c == '.'
}

/// Whether `name` is one without escapes and quotes.
pub(crate) fn is_plain_name(name: &str) -> bool {
    name.starts_with(may_begin_name) && name.chars().all(may_continue_name)
}

/// The name that stands for itself in a text: `a\-b` is `a-b`.
pub(crate) fn unescape_name(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match unescape(rest) {
            Some((c, size)) => {
                out.push(c);
                rest = &rest[size..];
            }
            None => out.push('\\'),
        }
    }
    out.push_str(rest);
    out
}

/// The text that is read as this name.
pub(crate) fn escape_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (at, c) in name.char_indices() {
        let fits = if at == 0 { may_begin_name(c) } else { may_continue_name(c) };
        match c {
            _ if fits => out.push(c),
            _ if c.is_control() || (c != ' ' && c.is_whitespace()) => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            _ => out.extend(['\\', c]),
        }
    }
    out
}

/// The character that follows a backslash in a name, and its bytes: itself, `x2d` or `u002d`.
fn unescape(text: &str) -> Option<(char, usize)> {
    let first = text.chars().next()?;
    let digits = match first {
        'x' | 'X' => 2,
        'u' | 'U' => 4,
        _ => {
            let is_visible = !first.is_control() && (first == ' ' || !first.is_whitespace());
            let is_known = first != char::REPLACEMENT_CHARACTER;
            return (is_visible && is_known).then_some((first, first.len_utf8()));
        }
    };
    let hex = text.get(1..1 + digits)?;
    if !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let code = u32::from_str_radix(hex, 16).ok()?;
    char::from_u32(code).map(|c| (c, 1 + digits))
}

// ---- numbers and durations ----

fn digits_size(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The bytes of a duration such as `1h30m` or `1d-2.5h`: a first part without sign, and more.
fn duration_size(text: &str) -> Option<usize> {
    let mut size = duration_part_size(text)?;
    loop {
        let rest = &text[size..];
        let sign = usize::from(rest.starts_with('-'));
        match duration_part_size(&rest[sign..]) {
            Some(part) => size += sign + part,
            None => return Some(size),
        }
    }
}

/// The bytes of a number and its unit. Units are of either case, but `M` is a million, and `mi`
/// and `mb` belong to numbers.
pub(crate) fn duration_part_size(text: &str) -> Option<usize> {
    let mut size = digits_size(text);
    if size == 0 {
        return None;
    }
    if text[size..].starts_with('.') {
        size += 1 + digits_size(&text[size + 1..]);
    }
    let unit = &text.as_bytes()[size..];
    let second = unit.get(1).map(u8::to_ascii_lowercase);
    match unit.first()? {
        b'm' | b'M' if second == Some(b's') => Some(size + 2),
        b'm' if !matches!(second, Some(b'i' | b'b')) => Some(size + 1),
        b's' | b'h' | b'd' | b'w' | b'y' | b'i' => Some(size + 1),
        b'S' | b'H' | b'D' | b'W' | b'Y' | b'I' => Some(size + 1),
        _ => None,
    }
}

/// The bytes of a number that `text` begins with.
fn number_size(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes[0] == b'0' && matches!(bytes.get(1), Some(b'x' | b'X')) {
        return Some(2 + bytes[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count());
    }
    let has_prefix = bytes[0] == b'0' && matches!(bytes.get(1), Some(b'o' | b'O' | b'b' | b'B'));
    let whole = |from: usize| {
        let rest = &bytes[from..];
        from + rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'_').count()
    };
    let mut at = whole(if has_prefix { 2 } else { 0 });
    if bytes.get(at) == Some(&b'.') {
        at = whole(at + 1);
        if at == 1 {
            return None;
        }
    }
    if let Some((size, _)) = multiplier(&text[at..]) {
        return Some(at + size);
    }
    if !matches!(bytes.get(at), Some(b'e' | b'E')) {
        return Some(at);
    }
    at += 1;
    at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
    match digits_size(&text[at..]) {
        0 => None,
        size => Some(at + size),
    }
}

/// The multiplier that `text` begins with, in any case, and its bytes.
pub(crate) fn multiplier(text: &str) -> Option<(usize, f64)> {
    let power = match text.as_bytes().first()?.to_ascii_lowercase() {
        b'k' => 1,
        b'm' => 2,
        b'g' => 3,
        b't' => 4,
        _ => return None,
    };
    let follows = |at: usize, wanted: u8| {
        text.as_bytes().get(at).is_some_and(|byte| byte.to_ascii_lowercase() == wanted)
    };
    let (base, size) = match (follows(1, b'i'), follows(1, b'b')) {
        (true, _) if follows(2, b'b') => (1024f64, 3),
        (true, _) => (1024.0, 2),
        (_, true) => (1000.0, 2),
        _ => (1000.0, 1),
    };
    Some((size, base.powi(power)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, kinds: &[Kind]) {
        let found: Vec<Kind> = lex(text).iter().map(|token| token.kind).collect();
        assert_eq!(found, kinds, "{text}");
    }

    #[test]
    fn tokens() {
        check("1h-30m # x", &[Kind::Duration, Kind::End]);
        let sub = Kind::Operator(BinaryOp::Sub);
        check("5m-3", &[Kind::Duration, sub, Kind::Number, Kind::End]);
        check(
            "5M 5mi 5Ki 1_0.5e-3",
            &[Kind::Number; 4].into_iter().chain([Kind::End]).collect::<Vec<_>>(),
        );
        check("a:b\\-c.d", &[Kind::Name, Kind::End]);
        let brackets = [
            Kind::LeftBracket,
            Kind::Name,
            Kind::Colon,
            Kind::Duration,
            Kind::RightBracket,
            Kind::End,
        ];
        check("[w:5m]", &brackets);
        check("'a\\'b'", &[Kind::String, Kind::End]);
        check("'a", &[Kind::Bad("unterminated string")]);
        check("1e", &[Kind::Bad("bad number")]);
        check("$__rate_interval", &[Kind::Interval, Kind::End]);
        check("é$", &[Kind::Name, Kind::Bad("unexpected character")]);
        for name in ["a-b c", "1\u{1}", "é\\x"] {
            assert_eq!(unescape_name(&escape_name(name)), name);
        }
        assert_eq!(unescape_name("a\\x2db\\u00e9\\é\\xzz"), "a-béé\\xzz");
    }
}
