//! InfluxDB line protocol to rows.
//!
//! ```text
//! line  = measurement *( "," tagkey "=" tagvalue ) 1*SP field *( "," field ) [ 1*SP timestamp ] *SP
//! field = fieldkey "=" ( float | int "i" | uint "u" | bool | string )
//! ```
//!
//! A row's key is measurement and tags as they stand; nothing in them is looked at until the store
//! meets a key for the first time and asks [`InfluxKeys`].
//! Field names of a line are compared with those of the line before, so a stream of equal lines
//! costs one scan for the key's end, one hash, one comparison and one number per field.
//!
//! Rules are those of InfluxDB 1.x' own parser: a separator counts as escaped when the byte before
//! it is a backslash; a newline inside a quoted string does not end the line; each bad line is
//! refused in InfluxDB's words and the others are kept.
//! What differs is in `docs/doors/influx.md`: numbers become float64, booleans 1 or 0, strings
//! numbers of a dictionary, where one is given, and are left out elsewhere.

pub mod answer;
pub mod columns;
pub mod decode;
pub mod encode;
pub mod envelope;
mod fault;
pub mod keys;
pub mod long;
pub mod precision;
pub mod report;
mod scan;
mod shapes;
pub mod texts;
#[cfg(test)]
mod tests;
mod typed;

pub use decode::{Options, decode, decode_pieces};
pub use keys::{Escapes, FieldNames, InfluxKeys};
pub use long::{LONG_MIN, LONG_SUFFIX};
pub use precision::Precision;
pub use report::{BadLine, ERROR_LINE_SIZE_MAX, bad_lines, error_text, line_end};
pub use texts::{TEXT_SUFFIX, Texts, TextsRead};
pub use typed::{FieldType, TypedFields, has_valid_row, kinds_by_shape, kinds_of_lines};

/// Bytes of measurement, tags and one field name together; InfluxDB's own limit.
pub const KEY_SIZE_MAX: usize = 65_535;
/// Bytes of one string field; InfluxDB's own limit.
pub const STRING_SIZE_MAX: usize = 64 << 10;
