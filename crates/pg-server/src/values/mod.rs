//! Rows, errors and parameters in the formats of messages.

pub mod answers;
pub mod array_values;
pub mod parameters;
pub mod rows;
