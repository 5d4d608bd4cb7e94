//! Libraries of functions: loading, the payload of `FUNCTION DUMP`, and their file.

pub mod keeping;
pub mod library;
pub mod payload;
pub mod registering;
