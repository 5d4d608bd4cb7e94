//! The value that stands where a series has no sample: a stale marker, of which no expression
//! makes any (`crate::vector`).

use model::sample::STALE_NAN_BITS;

/// The value of a gap.
pub(crate) const ABSENT: f64 = f64::from_bits(STALE_NAN_BITS);

/// Whether there is no sample.
#[inline(always)]
pub(crate) fn is_absent(value: f64) -> bool {
    value.to_bits() == STALE_NAN_BITS
}
