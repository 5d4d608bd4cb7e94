//! Every limit on what a client may send or ask that more than one room must know.
//!
//! Defaults; those that users may want to change are fields of [`Limits`] and flags of the binary.

/// Labels a series may have, the metric's name included.
pub const LABELS_PER_SERIES_MAX: usize = 64;
/// Bytes of a label's name.
pub const LABEL_NAME_SIZE_MAX: usize = 1024;
/// Bytes of a label's value.
pub const LABEL_VALUE_SIZE_MAX: usize = 4096;
/// Fields of one line of line protocol.
pub const FIELDS_PER_LINE_MAX: usize = 4096;
/// Buckets of one native histogram, and custom bounds.
pub const HISTOGRAM_BUCKETS_MAX: usize = 16_384;
/// Bytes of one line of a text protocol, and of one line of JSON import.
pub const LINE_SIZE_MAX: usize = 16 << 20;
/// Bytes of a request's body, as sent and again once decompressed.
pub const BODY_SIZE_MAX: usize = 128 << 20;
/// Rows of one batch; doors cut longer requests into several.
pub const BATCH_ROWS_MAX: usize = 4 << 20;
/// Characters of all names and values of an exemplar's labels: the bound of OpenMetrics.
pub const EXEMPLAR_CHARS_MAX: usize = 128;
/// Exemplars of one batch; text doors cut longer requests into several.
pub const BATCH_EXEMPLARS_MAX: usize = 64 << 10;

const _: () = assert!(LABEL_VALUE_SIZE_MAX * LABELS_PER_SERIES_MAX < BODY_SIZE_MAX);
const _: () = assert!(LINE_SIZE_MAX < BODY_SIZE_MAX);
// Offsets into a body are u32.
const _: () = assert!(BODY_SIZE_MAX < u32::MAX as usize);

/// The limits that flags may change.
#[derive(Clone, Debug)]
pub struct Limits {
    /// See [`LABELS_PER_SERIES_MAX`].
    pub labels_per_series_max: usize,
    /// See [`LABEL_NAME_SIZE_MAX`].
    pub label_name_size_max: usize,
    /// See [`LABEL_VALUE_SIZE_MAX`].
    pub label_value_size_max: usize,
}

impl Limits {
    /// The limits that hold when no flag says otherwise.
    pub const DEFAULT: Limits = Limits {
        labels_per_series_max: LABELS_PER_SERIES_MAX,
        label_name_size_max: LABEL_NAME_SIZE_MAX,
        label_value_size_max: LABEL_VALUE_SIZE_MAX,
    };
}
