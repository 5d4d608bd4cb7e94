//! Conversions of numbers into types with fewer bits, without a cast that cuts silently.
//!
//! Counts have limits: a block has at most 1,024 slots, a slice fewer than 2^32 samples, a partition
//! fewer than 2^32 ordinals, and decoders check numbers from files and clients against such limits. A
//! number that still does not fit is a bug, and panics before anything wrong is written.

use crate::limits::BODY_SIZE_MAX;

const _: () = assert!(BODY_SIZE_MAX <= u32::MAX as usize);

/// A count or an id with 32 bits.
///
/// # Panics
/// When the number does not fit.
#[inline]
pub fn to_u32(number: impl TryInto<u32>) -> u32 {
    number.try_into().unwrap_or_else(|_| panic!("number does not fit into 32 bits"))
}

/// The ordinal of a series. Bounds past the last series have more bits.
///
/// # Panics
/// When the number does not fit.
#[inline]
pub fn to_ordinal(number: u64) -> u32 {
    to_u32(number)
}

/// A slot or a column of a block.
///
/// # Panics
/// When the number does not fit.
#[inline]
pub fn to_u16(number: impl TryInto<u16>) -> u16 {
    number.try_into().unwrap_or_else(|_| panic!("number does not fit into 16 bits"))
}

/// A count of something in memory, or in a file that is mapped whole.
///
/// # Panics
/// When the number does not fit.
#[inline]
pub fn to_usize(number: u64) -> usize {
    usize::try_from(number).expect("number does not fit into the address space")
}

/// A position in a request's body, or a count of something in it. Only debug builds check it: no
/// decoder takes more bytes than [`BODY_SIZE_MAX`].
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "BODY_SIZE_MAX fits into 32 bits")]
pub fn body_offset(number: usize) -> u32 {
    debug_assert!(number <= u32::MAX as usize);
    number as u32
}

/// The lowest eight bits.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "drops the other bits on purpose")]
pub fn low_byte(bits: u64) -> u8 {
    bits as u8
}

/// The lower 32 bits.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "drops the other bits on purpose")]
pub fn low_half(bits: u64) -> u32 {
    bits as u32
}

/// The integer part. Saturates, and gives 0 for NaN.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "drops the fraction on purpose")]
pub fn whole(number: f64) -> i64 {
    number as i64
}

/// The integer part of a number that is not negative. Saturates, and gives 0 for NaN.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "drops the fraction on purpose")]
pub fn whole_unsigned(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_the_edge_fit() {
        assert_eq!(to_u32(u64::from(u32::MAX)), u32::MAX);
        assert_eq!(to_u16(usize::from(u16::MAX)), u16::MAX);
        assert_eq!(low_half(0x1_0000_0002), 2);
        assert_eq!(low_byte(0x102), 2);
        assert_eq!((whole(f64::NAN), whole(-1.5), whole(1e300)), (0, -1, i64::MAX));
        assert_eq!((whole_unsigned(-1.0), whole_unsigned(1.5)), (0, 1));
    }

    #[test]
    #[should_panic = "does not fit into 32 bits"]
    fn a_number_beyond_32_bits_panics() {
        to_u32(1u64 << 32);
    }

    #[test]
    #[should_panic = "does not fit into 16 bits"]
    fn a_number_beyond_16_bits_panics() {
        to_u16(1u32 << 16);
    }
}
