//! Passes and planners that give expressions the types that PostgreSQL gives them.

pub(crate) mod casts;
pub(crate) mod common_types;
pub(crate) mod comparisons;
pub(crate) mod floats;
pub(crate) mod keys;
pub(crate) mod list_members;
pub(crate) mod nested_unnest;
pub(crate) mod number_operators;
pub(crate) mod operator_types;
pub(crate) mod operators;
pub(crate) mod patterns;
pub(crate) mod special_types;
pub(crate) mod typed;
pub(crate) mod window_calls;
