//! The pieces of a text.

use crate::time::Duration;
use std::sync::Arc;

/// A piece.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Name(Arc<str>),
    Integer(i64),
    Float(f64),
    Duration(Duration),
    Time(i64),
    /// The bytes between the quotes, escapes and `${}` not yet undone.
    Text {
        start: usize,
        end: usize,
    },
    /// A sign of one or two characters, or a keyword.
    Sign(&'static str),
    End,
}

/// Signs, the longest first.
pub(crate) const SIGNS: &[&str] = &[
    "|>", "=>", "<-", "==", "!=", "<=", ">=", "=~", "!~", "+", "-", "*", "/", "%", "^", "<", ">",
    "=", "(", ")", "[", "]", "{", "}", ",", ":", ".", "?", "@", "|",
];

/// Names that mean something.
pub(crate) const KEYWORDS: &[&str] = &[
    "and", "or", "not", "in", "import", "package", "return", "option", "builtin", "test",
    "testcase", "if", "then", "else", "exists", "with",
];

impl Token {
    /// As an error calls it.
    pub(crate) fn words(&self) -> String {
        match self {
            Token::Name(name) => format!("identifier {name:?}"),
            Token::Integer(_) | Token::Float(_) => "number".to_string(),
            Token::Duration(_) => "duration".to_string(),
            Token::Time(_) => "time".to_string(),
            Token::Text { .. } => "string".to_string(),
            Token::Sign(sign) => format!("{sign:?}"),
            Token::End => "end of text".to_string(),
        }
    }
}
