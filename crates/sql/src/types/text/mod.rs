//! Values as text.

pub(crate) mod numbers;
pub mod shown;
pub(crate) mod array_literals;
pub(crate) mod literals;
pub mod bytea_text;
