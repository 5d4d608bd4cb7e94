//! Aggregates that the store evaluates instead of DataFusion.

pub(crate) mod direct;
