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
pub(crate) mod errors;
pub(crate) mod unpacked;
pub(crate) mod writer;

pub use errors::MAGIC;
pub use reader::{FileReader, Progress};
pub use samples::{Sample, SampleRows};
pub use source::Source;
pub use writer::RowsWriter;
