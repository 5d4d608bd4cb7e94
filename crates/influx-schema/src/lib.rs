//! Schema of InfluxDB's clients: measurements with their fields and types, strings, retention policies, names
//! of metrics.

pub mod borrowed_strings;
#[doc(hidden)]
pub mod fuzzing;
pub mod metric_names;
pub mod records;
pub mod retention_policies;
pub mod schema;
pub mod strings;
pub mod tag_keys;

/// The database of what was written without one.
pub const NAMELESS_DATABASE: &str = "quipu";
