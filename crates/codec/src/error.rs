//! The one thing that can go wrong in a decoder: the bytes are not what an encoder wrote.

/// The bytes do not decode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("corrupt at byte {offset}: {what}")]
pub struct Error {
    /// Where in the slice that was given.
    pub offset: usize,
    /// What was expected.
    pub what: &'static str,
}
