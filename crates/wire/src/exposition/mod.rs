//! Prometheus' text format 0.0.4 and OpenMetrics 1.0: to rows, and from series.
//!
//! ```text
//! # HELP name text      # TYPE name kind      # UNIT name unit (OpenMetrics)      # EOF (OpenMetrics)
//! name { label = "value" , … } value [timestamp] [# {…} value [timestamp]]  an exemplar
//! {"name with dots", label = "value"} value         names outside [a-zA-Z_:][a-zA-Z0-9_:]*
//! ```
//!
//! Timestamps are milliseconds in the text format, seconds with decimals in OpenMetrics.
//! A row's key is name and labels as they stand; they are looked at when the store meets a key for
//! the first time.
//! Each bad line is refused with its number, the others are kept.

pub mod created;
pub mod decode;
pub mod encode;
pub mod escaping;
mod exemplars;
pub mod keys;
mod line;
pub mod openmetrics;
mod scan;
#[cfg(test)]
mod tests;

pub use created::Created;
pub use decode::{Format, Options, decode};
pub use keys::ExpositionKeys;
pub use line::{Line, decode_line};

/// Bytes of a series' name and labels.
pub const KEY_SIZE_MAX: usize = 512 << 10;
/// Metadata entries taken from one body; more are left aside.
pub const METADATA_MAX: usize = 64 << 10;
/// Bytes kept of a help text.
pub const HELP_SIZE_MAX: usize = 4096;
