//! The mark of a Parquet file, and errors.

use crate::types::error::SqlError;
use ::parquet::errors::ParquetError;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The format's word for itself, at both ends of a file.
pub const MAGIC: &[u8; 4] = b"PAR1";

/// What is wrong with a file that is read.
pub(crate) fn unreadable(error: impl Display) -> SqlError {
    SqlError::new("22P04", format!("the Parquet file cannot be read: {error}"))
}

/// Why rows cannot be written.
pub(crate) fn unwritten(error: ParquetError) -> SqlError {
    match error {
        ParquetError::NYI(words) => SqlError::unsupported(format!("Parquet: {words}")),
        ParquetError::External(inner) => SqlError::new("58030", inner.to_string()),
        other => SqlError::unexpected(format!("Parquet: {other}")),
    }
}

/// Does something with bytes that nobody may trust. The crate that knows the format panics at some
/// that are damaged (a length of levels that is not so), and a bad file is its sender's fault, not
/// ours. What it worked on is not used again.
pub(crate) fn guarded<T, E: Display>(work: impl FnOnce() -> Result<T, E>) -> Result<T, SqlError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(unreadable),
        Err(_) => Err(unreadable("it is damaged")),
    }
}
