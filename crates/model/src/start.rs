//! Start timestamps: since when the thing that a sample counts has been counted.

use crate::sample::Timestamp;

/// Start timestamps, in milliseconds since the epoch, lie between minus this and this: the store
/// keeps them as float64, exactly.
pub const START_MS_MAX: i64 = 1 << 53;

/// The start timestamp of one sample, with the series it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartRow {
    /// When the sample was.
    pub timestamp: Timestamp,
    /// When counting began, in milliseconds since the epoch; never 0, which stands for none.
    pub start_ms: i64,
    /// Where the series' key starts in the batch's bytes: a whole series.
    pub key_offset: u32,
    /// How many bytes the key has.
    pub key_size: u32,
    /// What a person calls the series: its number in the request.
    pub position: u32,
}
