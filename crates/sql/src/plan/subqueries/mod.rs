//! Passes for subqueries and lateral joins.

pub(crate) mod correlated;
pub(crate) mod decorrelation;
pub(crate) mod empty_subqueries;
pub(crate) mod first_rows;
pub(crate) mod laterals;
pub(crate) mod newest;
