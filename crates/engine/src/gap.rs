//! The stale marker as the value of a step at which a series has no sample. No expression results in
//! one (`crate::vector`).

use model::sample::STALE_NAN_BITS;

/// The value of a gap.
pub(crate) const ABSENT: f64 = f64::from_bits(STALE_NAN_BITS);

/// A value of a sample. Functions that change the sign of a NaN, and fields of native histograms,
/// can have the bits of a gap: these become the usual NaN.
#[inline(always)]
pub(crate) fn to_number(value: f64) -> f64 {
    if is_absent(value) { f64::NAN } else { value }
}

/// Whether there is no sample.
#[inline(always)]
pub(crate) fn is_absent(value: f64) -> bool {
    value.to_bits() == STALE_NAN_BITS
}
