//! Limits on what remote databases send.

/// Bytes of a sample in memory, in which the limit on samples counts.
pub const SAMPLE_SIZE: usize = 16;

/// Limits of what one query takes from all backends.
#[derive(Clone, Copy, Debug, Default)]
pub struct TakenLimits {
    /// Samples.
    pub samples_max: u64,
    /// Bytes of answers.
    pub size_max: u64,
}
