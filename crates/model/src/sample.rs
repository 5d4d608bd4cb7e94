//! A sample is a timestamp and a float64, every bit of which is kept.

/// Nanoseconds since the Unix epoch, UTC. Covers the years 1677 to 2262.
pub type Timestamp = i64;

/// Nanoseconds in a microsecond, which SQL and many protocols count in.
pub const NANOS_PER_MICRO: i64 = 1000;
/// Nanoseconds in a millisecond: PromQL thinks in milliseconds, the store in nanoseconds.
pub const NANOS_PER_MILLI: i64 = 1_000_000;
/// Nanoseconds in a second.
pub const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// Nanoseconds in an hour.
pub const NANOS_PER_HOUR: i64 = 3600 * NANOS_PER_SECOND;
/// Nanoseconds in a UTC day; the store's liveness is exact to the day.
pub const NANOS_PER_DAY: i64 = 86_400 * NANOS_PER_SECOND;

/// The NaN payload by which Prometheus marks that a series has ended.
/// Source: Prometheus `model/value/value.go`, documented in the remote-write specification.
pub const STALE_NAN_BITS: u64 = 0x7ff0_0000_0000_0002;

/// One measured value of one series.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When, in nanoseconds since the epoch.
    pub timestamp: Timestamp,
    /// What; any bit pattern, stale markers and NaN payloads included.
    pub value: f64,
}

/// Whether `value` is exactly Prometheus' stale marker; an ordinary NaN is not.
pub fn is_stale_marker(value: f64) -> bool {
    value.to_bits() == STALE_NAN_BITS
}

/// The stale marker as a value.
pub fn stale_marker() -> f64 {
    f64::from_bits(STALE_NAN_BITS)
}
