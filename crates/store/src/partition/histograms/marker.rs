//! The marker: the float that stands in the plain series at the time of a histogram.
//!
//! ```text
//! bit 63        1
//! bits 62..52   all ones: not a number
//! bit 51        0: signalling, as no arithmetic gives it
//! bits 50..41   0x23b
//! bits 40..38   version, 1
//! bits 37..34   schema + 4, or 15 for custom bounds
//! bits 33..32   reset hint: 0 unknown, 1 reset, 2 no reset, 3 gauge
//! bits 31..0    hash of the layout
//! ```
//!
//! A client may send a float of just these bits. It stays a float: only with a hidden row of the
//! same time and layout is a marker one.

use crate::base::narrow::low_half;
use histogram::{CUSTOM_SCHEMA, ResetHint, SCHEMA_MAX, SCHEMA_MIN};

const FIXED: u64 = 0xfff0 << 48 | 0x23b << 41 | 1 << 38;
const FIXED_MASK: u64 = !0 << 38;
const CUSTOM_CODE: u64 = 15;
const SCHEMAS: u64 = (SCHEMA_MAX - SCHEMA_MIN) as u64 + 1;

/// What a marker says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The histogram's schema.
    pub schema: i8,
    /// The histogram's reset hint.
    pub reset_hint: ResetHint,
    /// Hash of the runs it has.
    pub layout: u32,
}

impl Marker {
    /// The marker as a float; `None` for a schema that there is not.
    pub fn to_value(self) -> Option<f64> {
        let schema = match self.schema {
            CUSTOM_SCHEMA => CUSTOM_CODE,
            SCHEMA_MIN..=SCHEMA_MAX => (self.schema - SCHEMA_MIN) as u64,
            _ => return None,
        };
        let hint: u64 = match self.reset_hint {
            ResetHint::Unknown => 0,
            ResetHint::Reset => 1,
            ResetHint::NoReset => 2,
            ResetHint::Gauge => 3,
        };
        Some(f64::from_bits(FIXED | schema << 34 | hint << 32 | u64::from(self.layout)))
    }

    /// The marker that a float may be.
    pub fn of(value: f64) -> Option<Marker> {
        if !may_be_marker(value) {
            return None;
        }
        let bits = value.to_bits();
        let schema = match bits >> 34 & 15 {
            CUSTOM_CODE => CUSTOM_SCHEMA,
            code if code < SCHEMAS => i8::try_from(code).ok()? + SCHEMA_MIN,
            _ => return None,
        };
        let reset_hint = match bits >> 32 & 3 {
            0 => ResetHint::Unknown,
            1 => ResetHint::Reset,
            2 => ResetHint::NoReset,
            _ => ResetHint::Gauge,
        };
        Some(Marker { schema, reset_hint, layout: low_half(bits) })
    }
}

/// Whether a float has the bits that all markers have.
#[inline]
pub fn may_be_marker(value: f64) -> bool {
    value.to_bits() & FIXED_MASK == FIXED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_say_what_was_put_in() {
        let hints = [ResetHint::Unknown, ResetHint::Reset, ResetHint::NoReset, ResetHint::Gauge];
        for schema in (SCHEMA_MIN..=SCHEMA_MAX).chain([CUSTOM_SCHEMA]) {
            for reset_hint in hints {
                for layout in [0, 1, 0xdead_beef, u32::MAX] {
                    let marker = Marker { schema, reset_hint, layout };
                    let value = marker.to_value().expect("a known schema");
                    assert!(value.is_nan() && !model::is_stale_marker(value));
                    assert_eq!(Marker::of(value), Some(marker));
                }
            }
        }
        for schema in [9, -5, -52, 127] {
            let marker = Marker { schema, reset_hint: ResetHint::Unknown, layout: 0 };
            assert_eq!(marker.to_value(), None);
        }
    }

    #[test]
    fn other_floats_are_no_markers() {
        for value in [0.0, -1.5, f64::NAN, -f64::NAN, f64::INFINITY, model::stale_marker()] {
            assert_eq!(Marker::of(value), None);
        }
        let of_a_schema_to_come = FIXED | 13 << 34;
        assert_eq!(Marker::of(f64::from_bits(of_a_schema_to_come)), None);
    }
}
