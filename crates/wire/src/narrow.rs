//! Numbers in fewer bits than they come in.

use model::limits::BODY_SIZE_MAX;

const _: () = assert!(BODY_SIZE_MAX <= u32::MAX as usize);

/// A position in a body, or how many of something a body has: no decoder takes more bytes than
/// [`BODY_SIZE_MAX`].
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "bodies have a limit, which 32 bits hold")]
pub(crate) fn to_u32(number: usize) -> u32 {
    debug_assert!(number <= u32::MAX as usize);
    number as u32
}

/// The lowest eight bits.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the others are not asked for")]
pub(crate) fn low_byte(bits: u64) -> u8 {
    bits as u8
}

/// The lower half, which is what 32-bit fields of a protocol keep.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the others are not asked for")]
pub(crate) fn low_half(bits: u64) -> u32 {
    bits as u32
}

/// The integer part, the nearest that there is, and 0 for NaN.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "fractions are to go; it saturates")]
pub(crate) fn whole(number: f64) -> i64 {
    number as i64
}

/// The same from 0 on.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "fractions are to go; it saturates")]
pub(crate) fn whole_unsigned(number: f64) -> u64 {
    number as u64
}
