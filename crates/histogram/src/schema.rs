//! Which values a bucket stands for.
//!
//! ```text
//! schema 0:   index -1: (1/4 .. 1/2]   index 0: (1/2 .. 1]   index 1: (1 .. 2]   index 2: (2 .. 4]
//! schema s:   index i: (2^((i-1) * 2^-s) .. 2^(i * 2^-s)]
//! custom:     index i: (bounds[i-1] .. bounds[i]], the first from -inf, the last to +inf
//! ```

/// The coarsest schema: each bound is 2^16 times the one before.
pub const SCHEMA_MIN: i8 = -4;
/// The finest schema: each bound is 2^(1/256) times the one before.
pub const SCHEMA_MAX: i8 = 8;
/// Says that the bounds are given one by one.
pub const CUSTOM_SCHEMA: i8 = -53;

/// Positive or negative values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Values above zero, and all values with custom bounds.
    Positive,
    /// Values below zero.
    Negative,
}
