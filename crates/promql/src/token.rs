//! The kinds of tokens, the keywords, and how error messages name them.

use crate::ast::AggregateOp;
use crate::error::Span;
use crate::quote::quote;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Eof,
    /// Where the lexer gave up; its message is kept beside the tokens.
    Error,
    Identifier,
    /// An identifier with a colon, which only metrics have.
    MetricIdentifier,
    Number,
    Duration,
    String,
    LeftParen,
    RightParen,
    LeftBrace,
    RightBrace,
    LeftBracket,
    RightBracket,
    Comma,
    Colon,
    /// `=`
    Assign,
    Operator(OperatorToken),
    Aggregate(AggregateOp),
    Keyword(Keyword),
}

/// Operators that are tokens, be they operators of the language or of matchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperatorToken {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Pow,
    Atan2,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    TrimUpper,
    TrimLower,
    RegexEqual,
    RegexNotEqual,
    And,
    Or,
    Unless,
    At,
}

/// Words with a meaning in some places, names everywhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Bool,
    By,
    GroupLeft,
    GroupRight,
    Fill,
    FillLeft,
    FillRight,
    Ignoring,
    Offset,
    Smoothed,
    Anchored,
    On,
    Without,
    Start,
    End,
    Step,
    Range,
    MaxOf,
    MinOf,
}

/// One token: its kind and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

/// The keyword that `word` is, in any case; numbers `inf` and `nan` included.
pub(crate) fn keyword(word: &str) -> Option<TokenKind> {
    let mut lower = [0u8; 16];
    let bytes = word.as_bytes();
    if lower.len() < bytes.len() {
        return None;
    }
    lower[..bytes.len()].copy_from_slice(bytes);
    lower.make_ascii_lowercase();
    Some(match &lower[..bytes.len()] {
        b"and" => TokenKind::Operator(OperatorToken::And),
        b"or" => TokenKind::Operator(OperatorToken::Or),
        b"unless" => TokenKind::Operator(OperatorToken::Unless),
        b"atan2" => TokenKind::Operator(OperatorToken::Atan2),
        b"inf" | b"nan" => TokenKind::Number,
        b"bool" => TokenKind::Keyword(Keyword::Bool),
        b"by" => TokenKind::Keyword(Keyword::By),
        b"group_left" => TokenKind::Keyword(Keyword::GroupLeft),
        b"group_right" => TokenKind::Keyword(Keyword::GroupRight),
        b"fill" => TokenKind::Keyword(Keyword::Fill),
        b"fill_left" => TokenKind::Keyword(Keyword::FillLeft),
        b"fill_right" => TokenKind::Keyword(Keyword::FillRight),
        b"ignoring" => TokenKind::Keyword(Keyword::Ignoring),
        b"offset" => TokenKind::Keyword(Keyword::Offset),
        b"smoothed" => TokenKind::Keyword(Keyword::Smoothed),
        b"anchored" => TokenKind::Keyword(Keyword::Anchored),
        b"on" => TokenKind::Keyword(Keyword::On),
        b"without" => TokenKind::Keyword(Keyword::Without),
        b"start" => TokenKind::Keyword(Keyword::Start),
        b"end" => TokenKind::Keyword(Keyword::End),
        b"step" => TokenKind::Keyword(Keyword::Step),
        b"range" => TokenKind::Keyword(Keyword::Range),
        b"max_of" => TokenKind::Keyword(Keyword::MaxOf),
        b"min_of" => TokenKind::Keyword(Keyword::MinOf),
        other => TokenKind::Aggregate(AggregateOp::parse(std::str::from_utf8(other).ok()?)?),
    })
}

impl TokenKind {
    /// Whether a token of this kind may stand where a metric's name is expected.
    pub fn is_metric_name(self) -> bool {
        match self {
            TokenKind::Identifier | TokenKind::MetricIdentifier | TokenKind::Aggregate(_) => true,
            TokenKind::Operator(op) => {
                matches!(op, OperatorToken::And | OperatorToken::Or | OperatorToken::Unless)
            }
            TokenKind::Keyword(keyword) => !matches!(
                keyword,
                Keyword::Bool
                    | Keyword::On
                    | Keyword::Ignoring
                    | Keyword::GroupLeft
                    | Keyword::GroupRight
            ),
            _ => false,
        }
    }

    /// Whether a token of this kind may be a label's name in `by (...)` and its like.
    pub fn is_label_name(self) -> bool {
        self.is_metric_name()
            || matches!(self, TokenKind::Keyword(_) | TokenKind::Operator(OperatorToken::Atan2))
    }
}

/// How an error message names a token: its kind and its text, as Prometheus does.
pub(crate) fn describe(token: &Token, text: &str) -> String {
    let value = &text[token.span.start as usize..token.span.end as usize];
    match token.kind {
        TokenKind::Eof => "end of input".to_string(),
        TokenKind::Identifier => format!("identifier {}", quote(value)),
        TokenKind::MetricIdentifier => format!("metric identifier {}", quote(value)),
        TokenKind::Number => format!("number {}", quote_start(value)),
        TokenKind::Duration => format!("duration {}", quote_start(value)),
        TokenKind::String => format!("string {}", quote_start(value)),
        TokenKind::Operator(_) => format!("<op:{value}>"),
        TokenKind::Aggregate(_) => format!("<aggr:{value}>"),
        TokenKind::Keyword(
            Keyword::Start
            | Keyword::End
            | Keyword::Step
            | Keyword::Range
            | Keyword::MaxOf
            | Keyword::MinOf,
        ) => quote(value),
        TokenKind::Keyword(_) => format!("<{value}>"),
        _ => quote(value),
    }
}

/// The text in quotes, cut after ten characters.
fn quote_start(value: &str) -> String {
    if value.len() <= 10 {
        return quote(value);
    }
    let start: String = value.chars().take(10).collect();
    format!("{}...", quote(&start))
}
