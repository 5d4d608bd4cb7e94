//! What can be wrong with a line, in InfluxDB's words, which clients look for.

use super::{KEY_SIZE_MAX, STRING_SIZE_MAX};
use model::limits::{FIELDS_PER_LINE_MAX, LINE_SIZE_MAX};

/// Why a line is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("missing measurement")]
    MissingMeasurement,
    #[error("missing fields")]
    MissingFields,
    #[error("missing field key")]
    MissingFieldKey,
    #[error("missing field value")]
    MissingFieldValue,
    #[error("invalid field format")]
    InvalidFieldFormat,
    #[error("invalid number")]
    InvalidNumber,
    #[error("unable to parse integer: value out of range")]
    IntegerOutOfRange,
    #[error("invalid boolean")]
    InvalidBoolean,
    #[error("unbalanced quotes")]
    UnbalancedQuotes,
    #[error("bad timestamp")]
    BadTimestamp,
    #[error("time outside range {} - {}", i64::MIN + 2, i64::MAX - 1)]
    TimeOutOfRange,
    #[error("field names that end in :text are those of strings")]
    ReservedName,
    #[error("field names that end in :low53 are those of long integers")]
    ReservedForLongs,
    #[error("invalid UTF-8 in field name")]
    InvalidUtf8,
    #[error("max key length exceeded: {0} > {KEY_SIZE_MAX}")]
    KeyTooLong(usize),
    #[error("string field of more than {STRING_SIZE_MAX} bytes")]
    StringTooLong,
    #[error("more than {FIELDS_PER_LINE_MAX} fields (max-fields-per-line)")]
    TooManyFields,
    #[error("line of {0} bytes, the limit is {LINE_SIZE_MAX} (max-line-size)")]
    LineTooLong(usize),
    /// The key's own fault, found when the rest of the line is bad too.
    #[error("{0}")]
    Key(model::LabelError),
}
