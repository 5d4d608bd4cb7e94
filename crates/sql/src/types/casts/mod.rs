//! Casts between types.

pub(crate) mod array_casts;
pub(crate) mod cast_functions;
pub(crate) mod clock_casts;
pub(crate) mod jsonb_casts;
pub(crate) mod special_arrays;
pub(crate) mod text_casts;
