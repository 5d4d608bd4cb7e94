//! Passes and planners that give expressions the types that PostgreSQL gives them.

pub(crate) mod checked_casts;
pub(crate) mod common_types;
pub(crate) mod comparisons;
pub(crate) mod distinct_keys;
pub(crate) mod equal_groups;
pub(crate) mod floats;
pub(crate) mod grouping_expressions;
pub(crate) mod implicit_casts;
pub(crate) mod list_members;
pub(crate) mod literal_arguments;
pub(crate) mod literal_types;
pub(crate) mod nested_unnest;
pub(crate) mod number_operators;
pub(crate) mod operator_types;
pub(crate) mod operators;
pub(crate) mod patterns;
pub(crate) mod sort_keys;
pub(crate) mod special_types;
pub(crate) mod typed;
pub(crate) mod window_calls;
