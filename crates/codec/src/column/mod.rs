//! A column slice to bytes and back: the samples of `n` series (slots), one after the other.
//!
//! `lens[i]` samples belong to slot `i` (none is allowed); the data are concatenated in slot order.
//! Values and timestamps have columns of different kinds, but share the notion of a *page*:
//! a group of whole slots of some hundred samples that decodes without its neighbours ([`Paging`]).
//!
//! The layout of both kinds is in `docs/format/column.md`.

mod bitpack;
mod choose;
mod decimal;
mod directory;
mod exceptions;
mod floats;
mod format;
mod integers;
mod layout;
mod lists;
mod model;
mod order;
mod runs;
mod scale;
mod timestamps;
mod values;

pub use layout::{Layout, Paging};
pub use timestamps::{
    TimestampsOutline, TimestampsReader, encode_timestamps, encode_timestamps_plainly,
};
pub use values::{
    ColumnScratch, ValuesOutline, ValuesReader, encode_values, encode_values_plainly,
};

/// Slots a column may have; an entity block has at most 1,024.
pub const SLOTS_MAX: usize = 1 << 16;

/// Samples a column may have in all; the most that one model of the dense form can describe.
pub const SAMPLES_MAX: usize = 1 << 24;

/// What an encoder optimises for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A few nanoseconds a sample: parts in memory that will be rewritten.
    Fast,
    /// Few bytes: parts on disk.
    Dense,
}
