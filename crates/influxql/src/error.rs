//! Why a text is no query, in InfluxDB's words.

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Something stands where other things were expected; line and character count from 1.
    #[error("found {found}, expected {} at line {line}, char {character}", .expected.join(", "))]
    Expected {
        /// What stands there.
        found: String,
        /// What may stand there.
        expected: Vec<&'static str>,
        /// Where.
        line: usize,
        /// Where in the line.
        character: usize,
    },
    /// Anything else.
    #[error("{message} at line {line}, char {character}")]
    At {
        /// What.
        message: String,
        /// Where.
        line: usize,
        /// Where in the line.
        character: usize,
    },
    /// The same without a place.
    #[error("{0}")]
    Plain(String),
}

impl ParseError {
    /// Without a place.
    pub fn plain(message: impl Into<String>) -> ParseError {
        ParseError::Plain(message.into())
    }
}
