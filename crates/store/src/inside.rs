//! Internals that tests, fuzzers and measurements of other crates use.

pub use crate::merge::fuzzing::fuzz_merge;
pub use crate::part::fuzzing::fuzz_part;
pub use crate::partition::disk::manifest::Manifest;
pub use crate::partition::head::arena::CHUNK_WORDS;
pub use crate::partition::histograms::lower::Lowered;
pub use crate::partition::histograms::marker::Marker;
pub use crate::partition::series_map::{GROUP_ROWS, SeriesMap, Target};
pub use crate::store::backup::fuzz_backup_manifest;
