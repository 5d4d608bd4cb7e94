//! Merge: several parts become one, sample by sample the same answer. Flush is a merge, too: of the
//! head's parts in memory into one on disk.
//!
//! ```text
//! run      blocks in ascending order, from all inputs at once
//!  sweep   one block: opens its slices in time order and cuts time into windows of bounded size
//!   window one window: decides which columns share timestamps, then column by column:
//!          decode each input's values once > copy the rows in merge order > encode
//! ```
//!
//! The merge order of a list of timestamps is computed once (see `order`) and serves all columns
//! that have it, so a sample costs its decoding, a short copy and its encoding.
//! Memory is bounded by the input slices that overlap one window, however long the history is.
//! Among equal timestamps of a series the input that comes later in the list wins.
//! Tombstones and the retention cutoff drop rows on the way. A slice that nothing overlaps and that
//! is big enough already is taken over byte for byte.
//!
//! Read in this order: [`mod@choose`] (what to merge, pure), `input`, `run`, then `sweep`, `window`,
//! `order`, `deleted`, `decoded`, `track`.

pub mod choose;
mod decoded;
mod deleted;
mod input;
#[doc(hidden)]
pub mod fuzzing;
mod order;
mod run;
mod sweep;
mod track;
mod window;

pub use choose::{ChooseLimits, PartFacts, choose, choose_all};
pub use input::{MergeInput, MergeOutcome};
pub use run::run;

#[cfg(test)]
mod tests;
