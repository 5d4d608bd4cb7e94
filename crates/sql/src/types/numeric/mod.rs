//! Values of `numeric`, their arithmetic and conversions.

pub(crate) mod arithmetic;
pub(crate) mod conversions;
pub(crate) mod value;
pub(crate) mod exact_casts;
