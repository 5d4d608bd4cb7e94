//! A part: an immutable sorted file of samples, and the unit that flush and merge write.
//!
//! ```text
//! header | slice | slice | ... | liveness of each day | directory | trailer
//!
//! slice of a block with k columns:   shared times | column 0 | column 1 | ... | column k-1
//! column:  nothing (no sample)  |  values (times are the shared ones)  |  own times, values
//! ```
//!
//! A *slice* is one entity block's samples for one span of time.
//! Slices are sorted by (series, time), slices of one block never overlap in time, and a part holds
//! a series' timestamp at most once.
//! The same bytes serve in memory (from the head, [`codec::Effort::Fast`]) and on disk
//! ([`codec::Effort::Dense`]); every byte is described in `docs/format/part.md`.
//!
//! Read in this order: [`mod@format`], [`writer`], [`directory`], [`slices`], [`liveness`], [`read_back`], [`reader`],
//! [`verify`].

pub mod directory;
pub mod format;
#[doc(hidden)]
pub mod fuzzing;
pub mod liveness;
pub(crate) mod page_headers;
mod read_back;
pub mod reader;
pub mod slices;
pub mod verify;
pub mod writer;

pub use directory::Slice;
pub use read_back::reencoded_pages;
pub use reader::{ColumnTimes, KnownColumn, Part};
pub use writer::{PartInfo, PartSink, PartWriter, SliceKey};

#[cfg(test)]
mod tests;
