//! Values as text.

pub(crate) mod numbers;
pub mod shown;
