//! What is wrong with an expression, and where.

use std::fmt;

/// A range of byte offsets in the text of an expression, `start <= end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// From one byte to just before another.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    /// From the start of `self` to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end }
    }

    /// `line:column` of the span's start, both from 1, columns in bytes, as Prometheus counts them.
    pub fn position(&self, text: &str) -> String {
        if text.is_empty() {
            return "unknown position".to_string();
        }
        let before = &text.as_bytes()[..(self.start as usize).min(text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        format!("{line}:{}", before.len() - line_start + 1)
    }
}

/// An expression that is none. Displays as Prometheus' `1:5: parse error: ...`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// What is wrong, in Prometheus' words where Prometheus has the error.
    pub message: String,
    /// Where.
    pub span: Span,
    /// `line:column` of the start of `span`.
    pub position: String,
}

impl ParseError {
    pub(crate) fn new(text: &str, span: Span, message: impl Into<String>) -> ParseError {
        ParseError { message: message.into(), span, position: span.position(text) }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: parse error: {}", self.position, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::Span;

    #[test]
    fn positions_count_lines_and_bytes() {
        assert_eq!(Span::new(0, 0).position(""), "unknown position");
        assert_eq!(Span::new(0, 1).position("a"), "1:1");
        assert_eq!(Span::new(3, 4).position("a\nbc"), "2:2");
        assert_eq!(Span::new(2, 4).position("a\nbc"), "2:1");
    }
}
