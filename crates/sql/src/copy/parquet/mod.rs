//! Parquet: rows of queries and samples to files, files to samples.
//!
//! ```text
//! batches ─► writer (row groups of bounded size) ─► bytes, taken as they come
//! source ─► pages (do headers claim what may be?) ─► reader ─► JSON lines, which are stored as others
//! ```
//!
//! | column | Parquet | meaning |
//! |---|---|---|
//! | `name` | string | the metric's name |
//! | `time` | timestamp, microseconds, UTC | when, rounded down |
//! | `value` | double, every bit kept | what; null where a histogram stands |
//! | `labels` | map of strings to strings | all other labels |
//! | `nanos` | 16-bit integer, or null | nanoseconds behind `time`, where there are any |
//! | `start_ms` | 64-bit integer, or null | since when a sample counts, in milliseconds |
//! | `histogram` | string, or null | a native histogram, as JSON lines have it |

pub(crate) mod columns;
pub(crate) mod pages;
pub(crate) mod reader;
pub(crate) mod samples;
pub(crate) mod source;
#[cfg(test)]
mod tests;
pub(crate) mod unpacked;
pub(crate) mod writer;

pub use crate::copy::parquet::reader::{FileReader, Progress};
pub use crate::copy::parquet::samples::{Sample, SampleRows};
pub use crate::copy::parquet::source::Source;
pub use crate::copy::parquet::writer::RowsWriter;

use crate::types::error::SqlError;
use ::parquet::errors::ParquetError;

/// The format's word for itself, at both ends of a file.
pub const MAGIC: &[u8; 4] = b"PAR1";

/// What is wrong with a file that is read.
fn unreadable(error: impl std::fmt::Display) -> SqlError {
    SqlError::new("22P04", format!("the Parquet file cannot be read: {error}"))
}

/// Why rows cannot be written.
fn unwritten(error: ParquetError) -> SqlError {
    match error {
        ParquetError::NYI(words) => SqlError::unsupported(format!("Parquet: {words}")),
        ParquetError::External(inner) => SqlError::new("58030", inner.to_string()),
        other => SqlError::unexpected(format!("Parquet: {other}")),
    }
}
