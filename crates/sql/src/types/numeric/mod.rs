//! Values of `numeric`, their arithmetic and conversions.

pub(crate) mod arithmetic;
pub(crate) mod conversions;
pub(crate) mod exact_casts;
pub(crate) mod value;
