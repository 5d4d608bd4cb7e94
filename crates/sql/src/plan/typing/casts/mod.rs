//! Casts, and types of literals.

pub(crate) mod cast_changes;
pub(crate) mod checked_casts;
pub(crate) mod implicit_casts;
pub(crate) mod literal_arguments;
pub(crate) mod literal_types;
