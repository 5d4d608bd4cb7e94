//! Functions of PostgreSQL and its extensions, a file or folder for each family.

pub(crate) mod aggregates;
pub(crate) mod arrays;
pub(crate) mod bounded;
pub(crate) mod calendar;
pub(crate) mod gapfill;
pub(crate) mod generate_series;
pub(crate) mod json;
pub(crate) mod markers;
pub(crate) mod now;
pub(crate) mod ntile;
pub(crate) mod numbers;
pub(crate) mod prom;
pub(crate) mod register;
pub(crate) mod signatures;
pub(crate) mod sleep;
pub(crate) mod templates;
pub(crate) mod text;
pub(crate) mod ties_marker;
pub(crate) mod told_apart;
pub(crate) mod toolkit;
pub(crate) mod vectors;
