//! Rewrites of literals, operators and conditions.

pub(crate) mod arithmetic;
pub(crate) mod bit_strings;
pub(crate) mod like_lists;
pub(crate) mod moments;
pub(crate) mod numerals;
pub(crate) mod periods;
pub(crate) mod quantified;
pub(crate) mod simple_case;
pub(crate) mod vectors;
