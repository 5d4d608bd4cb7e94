//! Native histograms as columns of numbers, described in `docs/format/histograms.md`.
//!
//! ```text
//! m{job="a"}                                 marker          an ordinary series; the marker says:
//!                                               │            here is a histogram of this layout
//! {job="a", LABEL="m"}                       count sum zero_count zero_threshold layout
//! {job="a", LABEL="m", RUN_LABEL="p0"}       b0 b1 ... b15 layout      buckets 0 to 15, above zero
//! {job="a", LABEL="m", RUN_LABEL="n-2"}      b0 b1 ... b15 layout      buckets -32 to -17, below zero
//! {job="a", LABEL="m", RUN_LABEL="b0"}       b0 b1 ... b15 layout      custom bounds 0 to 15
//! ```
//!
//! All but the first are *hidden series*: no selection finds them, and no client can write them.
//! They go the way of all rows: log, arena, parts, merges, retention. The rows of a histogram are
//! in one record of the log and in one part, so it is there whole or not at all. What was replaced
//! at the same instant by a histogram with other runs is told by the layout's hash, which the
//! marker and every hidden row carry.
//!
//! Read the files in this order: [`names`], [`marker`], [`lower`], [`crate::write::append_histograms`],
//! [`crate::read::hidden_series`], [`crate::read::histogram_reader`].

pub(crate) mod lower;
pub(crate) mod marker;
pub(crate) mod names;
