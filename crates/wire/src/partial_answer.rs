//! Words by which an answer says that data is missing.

/// The header of an answer of which something is missing.
pub const HEADER: &str = "x-quipu-partial";

/// Prefix of the error for a denied partial answer.
pub const DENIED: &str = "partial answers are denied";
