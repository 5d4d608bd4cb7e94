//! Functions of arrays.

pub(crate) mod array_fill;
pub(crate) mod array_order;
pub(crate) mod array_sets;
pub(crate) mod array_slices;
pub(crate) mod no_null_array;
pub(crate) mod null_arrays;
