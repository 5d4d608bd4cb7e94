//! Numbers in the widths that ids and files have.
//!
//! What is counted here has limits, and what a file says of itself is held against them when it is
//! read: blocks have at most [`index::BLOCK_SLOTS_MAX`] slots and [`crate::partition::head::arena::COLUMNS_MAX`]
//! columns, a slice fewer than 2^32 samples, a partition fewer than 2^32 ordinals. A number that does
//! not fit is a fault of ours, and ends in a panic before anything wrong is written.

/// How many slots, columns, slices or samples of a slice there are, or which of them one is.
#[inline]
pub(crate) fn to_u32(number: usize) -> u32 {
    u32::try_from(number).expect("what a part counts has 32 bits")
}

/// The ordinal of a series, where bounds past the last one have more bits.
#[inline]
pub(crate) fn to_ordinal(number: u64) -> u32 {
    u32::try_from(number).expect("ordinals have 32 bits")
}

/// A slot or a column of a block.
#[inline]
pub(crate) fn to_u16(number: u32) -> u16 {
    u16::try_from(number).expect("slots and columns have 16 bits")
}

/// What is counted in memory, or in a file that is mapped as a whole.
#[inline]
pub(crate) fn to_usize(number: u64) -> usize {
    usize::try_from(number).expect("what is in memory has an address")
}

/// The lower half, where two numbers share a word.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "half of it is asked for")]
pub(crate) fn low_half(word: u64) -> u32 {
    word as u32
}

/// The integer part, the nearest that there is, and 0 for NaN.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "fractions are to go; it saturates")]
pub(crate) fn whole(number: f64) -> i64 {
    number as i64
}
