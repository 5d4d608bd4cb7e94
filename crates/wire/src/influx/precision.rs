//! The unit of a request's timestamps.

use super::fault::Fault;
use model::Timestamp;

/// The `precision` parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// `ns` and `n`; what requests without the parameter mean.
    #[default]
    Nanosecond,
    /// `us`, `u`, `µ` and `microsecond`.
    Microsecond,
    /// `ms` and `millisecond`.
    Millisecond,
    /// `s` and `second`.
    Second,
    /// `m`.
    Minute,
    /// `h`.
    Hour,
    /// `auto`: guessed from each timestamp's magnitude, as InfluxDB 3 does.
    Auto,
}

impl Precision {
    /// The precision that the parameter's text names.
    pub fn parse(text: &str) -> Option<Precision> {
        Some(match text {
            "" | "n" | "ns" | "nanosecond" => Precision::Nanosecond,
            "u" | "us" | "µ" | "µs" | "microsecond" => Precision::Microsecond,
            "ms" | "millisecond" => Precision::Millisecond,
            "s" | "second" => Precision::Second,
            "m" => Precision::Minute,
            "h" => Precision::Hour,
            "auto" => Precision::Auto,
            _ => return None,
        })
    }

    /// Nanoseconds per unit; `value` matters to [`Precision::Auto`] only.
    #[inline(always)]
    fn nanos(self, value: i64) -> i64 {
        match self {
            Precision::Nanosecond => 1,
            Precision::Microsecond => 1_000,
            Precision::Millisecond => 1_000_000,
            Precision::Second => 1_000_000_000,
            Precision::Minute => 60_000_000_000,
            Precision::Hour => 3_600_000_000_000,
            Precision::Auto => guess(value),
        }
    }

    /// The instant that `value` units since the epoch are.
    #[inline(always)]
    pub(super) fn timestamp(self, value: i64) -> Result<Timestamp, Fault> {
        let nanos = value.checked_mul(self.nanos(value)).ok_or(Fault::TimeOutOfRange)?;
        let is_inside = (TIME_MIN..=TIME_MAX).contains(&nanos);
        if is_inside { Ok(nanos) } else { Err(Fault::TimeOutOfRange) }
    }

    /// `now` as a server stamps it: cut to the unit.
    pub(super) fn truncate(self, now: Timestamp) -> Timestamp {
        match self {
            Precision::Auto => now,
            unit => now - now.rem_euclid(unit.nanos(0)),
        }
    }
}

/// InfluxDB's first instant, in 1677.
const TIME_MIN: i64 = i64::MIN + 2;
/// InfluxDB's last instant, in 2262.
const TIME_MAX: i64 = i64::MAX - 1;

/// Nanoseconds per unit by magnitude: seconds until the year 2128, and so on.
fn guess(value: i64) -> i64 {
    match value.unsigned_abs() {
        0..5_000_000_000 => 1_000_000_000,
        5_000_000_000..5_000_000_000_000 => 1_000_000,
        5_000_000_000_000..5_000_000_000_000_000 => 1_000,
        _ => 1,
    }
}
