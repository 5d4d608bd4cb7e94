//! Values as text.

pub(crate) mod array_literals;
pub mod bytea_text;
pub(crate) mod literals;
pub(crate) mod numbers;
pub mod shown;
