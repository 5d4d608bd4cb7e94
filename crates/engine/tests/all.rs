//! All tests of the room in one program.

#![allow(clippy::disallowed_methods, reason = "tests own their files and threads")]

mod changed;
mod limits;
mod metricsql_rows;
mod names;
mod nan_bits;
mod partial;
mod result_cache;
#[path = "../../store/tests/rows/mod.rs"]
mod rows;
mod scripts;
mod step_stats;
#[path = "../../store/tests/stores/mod.rs"]
mod stores;
