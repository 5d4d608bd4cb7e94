//! For one partition: matchers to series, series to labels, label sets to ids.
//!
//! ```text
//!              register, replay                    freeze              merge
//! label sets ───────────────────► MemoryIndex ───────────► Segment ───────────► Segment
//!                                      │                      │
//! matchers ── CompiledMatchers ────────┴──── search ──────────┴──► [BlockMatch] ── labels ──► Labels
//! ```
//!
//! An [`Index`] is any number of immutable segments on disk plus one index in memory (and sealed
//! ones for the seconds that it takes to freeze them).
//! They cover disjoint, increasing ranges of entities, so their answers are concatenated.
//! Ids are dense `u32`, given out in blocks ([`BlockRef`]); they are never reused and never
//! leave the store.
//!
//! Read in this order: [`entity`], [`subset`], [`matcher`], [`memory`], [`segment`], [`jobs`],
//! [`index`], [`cardinality`].

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests own their files"))]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

pub mod cardinality;
pub mod entity;
pub mod error;
mod format;
mod frozen;
#[doc(hidden)]
pub mod fuzzing;
pub mod index;
pub mod interrupt;
pub mod jobs;
mod match_union;
pub mod matcher;
pub mod memory;
mod search_steps;
pub mod segment;
pub mod subset;
#[cfg(test)]
mod testing;

pub use cardinality::{BytesOf, Cardinality, CardinalityQuestion, Counted};
pub use entity::{BLOCK_SLOTS_MAX, BlockRef, EntityId, NewEntity};
pub use error::{Error, Result};
pub use format::sequence_of;
pub use index::{Index, LabelReader, OnRot, merge_sorted, refuse_rot};
pub use interrupt::{CancelFlag, Interrupt, Interruption};
pub use jobs::{FreezeJob, MergeJob, NewSegment};
pub use matcher::CompiledMatchers;
pub use matcher::demand::{Demand, demand_of};
pub use matcher::pattern::RegexBudget;
pub use memory::MemoryIndex;
use model::narrow;
pub use search_steps::{Completeness, Search, Step};
pub use segment::Segment;
pub use segment::entry::{SegmentEntry, parse_segment_name};
pub use segment::rebuild::{Salvaged, salvage};
pub use subset::{BlockMatch, Subset, sort_by_entity};
