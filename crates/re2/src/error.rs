//! Errors of expressions, worded as those of Go's `regexp/syntax`.

use std::fmt;

/// Reason why an expression is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// A range of a class is reversed, or a class name is unknown.
    InvalidCharRange,
    /// A backslash before a character that has no such form.
    InvalidEscape,
    /// The name of a group is empty or has other characters than letters, digits and `_`.
    InvalidNamedCapture,
    /// A group starts with `(?` and something unknown.
    InvalidPerlOp,
    /// Two repetitions in a row, as in `a**`.
    InvalidRepeatOp,
    /// A repetition count above 1000, or a reversed one.
    InvalidRepeatSize,
    /// A class has no end.
    MissingBracket,
    /// A group has no end.
    MissingParen,
    /// Nothing stands before a repetition.
    MissingRepeatArgument,
    /// The expression ends within an escape.
    TrailingBackslash,
    /// A group ends that did not begin.
    UnexpectedParen,
    /// Groups are nested too deeply.
    NestingDepth,
    /// The automaton needs more memory than the caller allows.
    Large,
}

impl ErrorCode {
    fn as_str(self) -> &'static str {
        match self {
            ErrorCode::InvalidCharRange => "invalid character class range",
            ErrorCode::InvalidEscape => "invalid escape sequence",
            ErrorCode::InvalidNamedCapture => "invalid named capture",
            ErrorCode::InvalidPerlOp => "invalid or unsupported Perl syntax",
            ErrorCode::InvalidRepeatOp => "invalid nested repetition operator",
            ErrorCode::InvalidRepeatSize => "invalid repeat count",
            ErrorCode::MissingBracket => "missing closing ]",
            ErrorCode::MissingParen => "missing closing )",
            ErrorCode::MissingRepeatArgument => "missing argument to repetition operator",
            ErrorCode::TrailingBackslash => "trailing backslash at end of expression",
            ErrorCode::UnexpectedParen => "unexpected )",
            ErrorCode::NestingDepth => "expression nests too deeply",
            ErrorCode::Large => "expression too large",
        }
    }
}

/// Bytes of an expression that an error shows at most.
const EXCERPT_SIZE_MAX: usize = 200;

/// Rejected expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Reason.
    pub code: ErrorCode,
    /// Part of the expression that is at fault.
    pub excerpt: String,
}

impl Error {
    pub(crate) fn new(code: ErrorCode, excerpt: &str) -> Error {
        let mut end = excerpt.len().min(EXCERPT_SIZE_MAX);
        while !excerpt.is_char_boundary(end) {
            end -= 1;
        }
        let ellipsis = if end < excerpt.len() { "..." } else { "" };
        Error { code, excerpt: format!("{}{ellipsis}", &excerpt[..end]) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error parsing regexp: {}: `{}`", self.code.as_str(), self.excerpt)
    }
}

impl std::error::Error for Error {}
