//! Keys by which values are sorted, grouped and compared.

pub(crate) mod distinct_keys;
pub(crate) mod equal_groups;
pub(crate) mod grouping_expressions;
pub(crate) mod order_keys;
pub(crate) mod sort_keys;
