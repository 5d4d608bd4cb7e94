//! What can be wrong with a whole request; what is wrong with one line of it is a
//! [`crate::decoded::LineError`].

/// The request cannot be served; nothing of it was decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The client must send less: HTTP 413, or 400 where the protocol has no other word.
    #[error("{limit} is {value}, the limit is {max}")]
    LimitExceeded {
        /// The limit's name.
        limit: &'static str,
        /// What the client asked for; at least this much.
        value: u64,
        /// What is allowed.
        max: u64,
    },
    /// The bytes are not what the protocol says: HTTP 400.
    #[error("invalid {what} at byte {offset}: {reason}")]
    Malformed {
        /// Which encoding.
        what: &'static str,
        /// Where in the bytes of that encoding.
        offset: usize,
        /// What was expected.
        reason: &'static str,
    },
    /// A parameter's value cannot be understood: HTTP 400.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    pub(crate) fn malformed(what: &'static str, offset: usize, reason: &'static str) -> Error {
        Error::Malformed { what, offset, reason }
    }
}
