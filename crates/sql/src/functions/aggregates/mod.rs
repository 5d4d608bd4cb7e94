//! Aggregate functions.

pub(crate) mod charged_aggregates;
pub(crate) mod extremes;
pub(crate) mod interval_averages;
pub(crate) mod moving_floats;
pub(crate) mod number_aggregates;
pub(crate) mod paired_floats;
pub(crate) mod string_agg;
pub(crate) mod taken;
