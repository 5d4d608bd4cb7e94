//! Lengths, positions and halves of numbers in the widths that the index keeps them in.
//!
//! What is registered has limits, and what a segment says of itself is held against its size and
//! those limits when it is read: a number that does not fit here is a fault of ours, and ends in a
//! panic before anything wrong is written.

/// How many blocks, groups, strings or series there are, or which of them one is.
#[inline]
pub(crate) fn to_u32(number: usize) -> u32 {
    u32::try_from(number).expect("ids of an index have 32 bits")
}

/// A slot of a block, or a column of an entity.
#[inline]
pub(crate) fn to_u16(number: usize) -> u16 {
    u16::try_from(number).expect("slots and columns have 16 bits")
}

/// What is counted in a segment that is mapped as a whole.
#[inline]
pub(crate) fn to_usize(number: u64) -> usize {
    usize::try_from(number).expect("what is mapped has an address")
}

/// The lower half of an entry of the table of hashes.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "half of it is asked for")]
pub(crate) fn low_half(number: u64) -> u32 {
    number as u32
}
